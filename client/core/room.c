/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room for what is acknowledged before it is stored.
 *
 * Happy path: a target's answer to a write says how many bytes of slots it promises to this
 * session. A piece that is written into the cache is charged with what its block may take there,
 * until it is stored; as long as the promise covers all that is charged it is acknowledged at once.
 * What it does not cover is stored before it is acknowledged (through.c), and leaves the promise to
 * the others (keep_grant).
 *
 * A charge is exact where a file gets longer. Inside the file it is the bytes only: they lie in
 * slots already, unless they fill a hole. In a chunk of more than 1 MiB it is the block's part.
 *
 * Failure: a promise ends with the server, or MSG_GRANT_NS behind the last answer, and a disk that
 * others fill too may not keep it. Then the data is sent all the same, and what is refused is an
 * error of the file.
 */
#include "client/core/room.h"

#include "client/core/core_int.h"

#define SLOT_MIN (64u * KIB)

static uint64_t slot_bytes(uint64_t len)
{
    uint64_t bytes = SLOT_MIN;

    while (bytes < len)
        bytes *= 2;
    return bytes;
}

uint64_t room_charge(const struct core_inode *i, uint64_t index, uint32_t end, uint32_t bytes)
{
    uint64_t unit = stripe_block_bytes(&i->layout), base = index * unit;
    uint64_t chunk =
        i->layout.chunk_bytes ? base / i->layout.chunk_bytes * i->layout.chunk_bytes : base;
    uint64_t acked = i->in_line || i->need_grow ? 0 : i->acked_size;
    uint64_t have = acked > chunk ? acked - chunk : 0;
    uint64_t slot = slot_bytes(base - chunk + end);

    if (!end)
        return 0;
    if (base + end <= acked || (have && slot <= slot_bytes(have)))
        return bytes;
    return MIN(slot, MAX(unit, (uint64_t)SLOT_MIN));
}

uint64_t room_granted(const struct oss_target *t)
{
    return reactor_now_ns(t->core->reactor) - t->granted_ns < MSG_GRANT_NS ? t->grant : 0;
}

uint64_t room_owed(const struct oss_target *t)
{
    return t->unsent + t->leaving;
}

bool room_for(const struct core_inode *i, const struct oss_target *t, uint64_t index,
              uint32_t start, uint32_t end)
{
    const struct block *b = block_find(i->core, i, index);
    uint32_t bytes = end - start, till = end;
    uint64_t charge, charged = 0;

    if (!t)
        return false;
    if (b) {
        bytes += extents_bytes(&b->dirty);
        till = MAX(till, extents_end(&b->dirty));
        charged = b->charged;
    }
    charge = room_charge(i, index, till, bytes);
    return room_granted(t) >= room_owed(t) - MIN(charged, room_owed(t)) + charge;
}

bool room_to_append(const struct core_inode *i, uint64_t offset, uint32_t len)
{
    uint64_t unit = stripe_block_bytes(&i->layout), end = offset + len;
    uint64_t round = (uint64_t)i->layout.chunk_bytes * i->layout.stripe_count;
    uint64_t share = MIN(len, (len / MAX(round, 1) + 1) * i->layout.chunk_bytes); /* of a target */

    while (offset < end) {
        struct stripe_piece p = stripe_cut(&i->layout, offset, end);
        const struct oss_target *t = oss_target_of(i->core, &i->layout, p.chunk);

        if (!t || room_granted(t) < room_owed(t) + MAX(MAX(unit, share), (uint64_t)SLOT_MIN))
            return false; /* where it goes is not known yet: a slot as large as they come */
        offset += p.len;
    }
    return true;
}

void room_noted(struct oss_target *t, const struct msg_write_rep *rep)
{
    t->grant = rep->grant;
    t->granted_ns = reactor_now_ns(t->core->reactor);
}

void block_account_dirty(struct block *b, uint32_t before)
{
    uint32_t now = extents_bytes(&b->dirty);
    struct oss_target *t = block_target(b);

    b->inode->dirty_bytes += (uint64_t)now - before;
    b->inode->core->dirty_bytes += (uint64_t)now - before;
    if (b->charged_to)
        b->charged_to->unsent -= b->charged;
    b->charged_to = t;
    b->charged = t ? room_charge(b->inode, b->index, extents_end(&b->dirty), now) : 0;
    if (t)
        t->unsent += b->charged;
}
