/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending what is dirty in blocks. A piece is on its way (block.flying) until its target has
 * answered; then it is uncommitted (commit.c), or durable already.
 *
 * Failure: a piece that no target has taken is dropped, the inode remembers the error, and who
 * reads the bytes here sees what others see.
 */
#include "client/core/core_int.h"
#include "client/core/growth.h"
#include "client/core/room.h"

/* Bytes that no target has taken are not the file's: who reads them here sees what others see, but
 * for what has been written over them since. A small file that was about to grow goes on being
 * small, with what it had; one that had nothing grows, and has a hole there. */
void block_not_stored(struct block *b, uint32_t start, uint32_t end)
{
    struct extents rest = b->valid;

    if (b->inode->in_line || growth_may_end(b->inode))
        return;
    if (extents_remove(&rest, start, end) || !extents_add_all(&rest, &b->dirty))
        (void)block_forget_clean(b); /* too scattered to note: nothing that is clean is kept */
    else
        b->valid = rest;
}

static void block_sent(struct oss_io *io, int status)
{
    struct block *b = io->block;
    struct core_inode *i = inode_ref(io->inode);
    unsigned k;

    for (k = 0; k < BLOCK_FLYING_MAX; k++)
        if (b->flying[k].start == io->start && b->flying[k].end == io->start + io->len)
            b->flying[k] = (struct extent){0, 0};
    b->n_ios--;
    if (io->of_target) {
        io->of_target->under_way -= io->len;
        io->of_target->leaving -= io->charge;
    }
    mem_freed(i->core); /* a write may have waited for its target to have less to do */
    if (status && !b->dead) {
        inode_set_error_at(i, status == -EINTR ? -AIFS_ETIMEOUT : status, "write-back", io->target);
        block_not_stored(b, io->start, io->start + io->len);
    } else if (!status && !b->dead) {
        uint64_t end = b->index * stripe_block_bytes(&i->layout) + io->start + io->len;

        i->acked_size = MAX(i->acked_size, MIN(end, i->attr.size));
        if (!io->stable)
            commit_note_written(io);
    }
    if (!extents_empty(&b->dirty) && i->flushing)
        block_send(b, false);
    block_settle(b);
    flush_step(i);
    inode_put(i);
}

static struct oss_io *piece_io(struct block *b, const struct extent *e, bool stable)
{
    struct core_inode *i = b->inode;
    struct oss_io *io = oss_io_new(i->core, OSS_IO_WRITE, i);
    uint32_t at = e->start;
    struct stripe_piece p =
        stripe_cut(&i->layout, b->index * stripe_block_bytes(&i->layout) + e->start,
                   b->index * stripe_block_bytes(&i->layout) + e->end);

    if (!io)
        return NULL;
    io->block = b;
    io->start = e->start;
    io->len = e->end - e->start;
    io->charge = room_charge(i, b->index, e->end, io->len);
    io->range = (struct msg_range){p.chunk, p.chunk_offset + e->start, io->len};
    io->buf = b->scatter ? scatter_page(b, e->start, &at) : b->buf;
    buf_ref(io->buf);
    io->iov[0] = (struct iovec){io->buf->data + at, io->len};
    io->n_iov = 1;
    io->stable = stable;
    io->done = block_sent;
    io->seq = ++i->io_seq;
    return io;
}

/* How much of the block may be sent now. */
static uint32_t send_limit(const struct block *b)
{
    uint64_t base = b->index * stripe_block_bytes(&b->inode->layout), held = b->inode->held_from;

    return held <= base ? 0 : (uint32_t)MIN(held - base, (uint64_t)UINT32_MAX);
}

void block_send(struct block *b, bool stable)
{
    uint32_t at = 0, limit = send_limit(b);
    struct extents rest;
    struct extent e;
    unsigned k;

    while (extents_next(&b->dirty, at, &e) && e.start < limit && at < limit) {
        struct oss_io *io;

        e.start = MAX(e.start, at);
        e.end = MIN(e.end, b->scatter ? MIN(limit, scatter_page_end(e.start)) : limit);
        for (k = 0; k < BLOCK_FLYING_MAX && b->flying[k].end; k++) {
        }
        if (k == BLOCK_FLYING_MAX)
            return; /* goes on when one of them is done */
        rest = b->dirty;
        if (block_busy(b, e.start, e.end) || extents_remove(&rest, e.start, e.end)) {
            at = e.end; /* later; also what would leave more pieces than can be noted */
            continue;
        }
        io = piece_io(b, &e, stable);
        if (!io)
            return; /* out of memory: the next tick tries again */
        b->dirty = rest;
        block_account_dirty(b, extents_bytes(&rest) + io->len);
        b->flying[k] = e;
        b->n_ios++;
        list_remove(&b->lru);
        list_push_back(&b->inode->ios, &io->by_inode);
        io->of_target = block_target(b);
        if (io->of_target) {
            io->of_target->under_way += io->len;
            io->of_target->leaving += io->charge;
        }
        oss_io_submit(io);
        at = e.end;
    }
}

bool blocks_all_sent(const struct core_inode *i, uint64_t from)
{
    const struct list *l;

    if (!i->dirty_bytes)
        return true;
    if (from == UINT64_MAX)
        return false;
    list_for_each (l, &i->blocks) {
        const struct block *b = list_entry(l, const struct block, by_inode);
        struct extent first;

        if (extents_next(&b->dirty, 0, &first) &&
            b->index * stripe_block_bytes(&i->layout) + first.start < from)
            return false;
    }
    return true;
}

void blocks_send_all(struct core_inode *i, bool stable)
{
    struct list *l, *tmp;

    if (!i->dirty_bytes)
        return;
    list_for_each_safe (l, tmp, &i->blocks) {
        block_send(list_entry(l, struct block, by_inode), stable);
    }
}
