/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large writes under a write lease that leave from the caller's memory: no copy, and no memory of
 * ours to copy into.
 *
 * Such a write ends when it is durable, since nobody else has the bytes that a restarted target may
 * have forgotten. So it is for targets that commit large writes before they answer (at_once of
 * struct oss_target; one that has told nothing yet is tried), and for callers that keep so many
 * going that no target waits for the next.
 *
 * Happy path: nothing of its block is cached, or what is is clean and forgotten; direct.c sends it,
 * size and mtime change when it is stored. Until then whoever touches the same block waits, and
 * nothing is read ahead there, so that no block is made of what was there before. An append waits
 * for all of them: they may make the file longer. Truncations, the end of a lease and fallocate
 * wait at the gate.
 *
 * Failure: the caller is told itself, the file remembers nothing. A write that was answered without
 * being durable, or whose memory changed while it was sent (the target finds a wrong sum), is
 * copied and made again. When the session is lost it fails: in the next one somebody else may have
 * written there.
 */
#include "client/core/growth.h"

#include "client/core/core_int.h"
#include "client/core/through.h"

static bool overlaps(const struct core_inode *i, uint64_t start, uint64_t end)
{
    const struct list *l;

    list_for_each (l, &i->straight) {
        const struct core_req *q = list_entry(l, const struct core_req, p.wait);

        if (q->p.flags & WRITE_ALONE || (q->p.offset < end && q->p.offset + q->p.len > start))
            return true;
    }
    return false;
}

bool straight_touches(const struct core_inode *i, uint64_t block)
{
    uint64_t unit = stripe_block_bytes(&i->layout);

    return overlaps(i, block * unit, (block + 1) * unit);
}

static void wait_for_some(struct core_req *q, void (*resume)(struct core_req *q))
{
    q->p.resume = resume;
    req_wait(q, "waits for a write of the same bytes", req_finish);
    list_push_back(&q->p.inode->straight_waiters, &q->p.wait);
}

bool straight_wait(struct core_req *q, void (*resume)(struct core_req *q))
{
    struct core_inode *i = q->p.inode;
    uint64_t unit, start, end;

    if (list_empty(&i->straight))
        return false;
    unit = stripe_block_bytes(&i->layout);
    start = q->p.offset / unit * unit;
    end = (q->p.offset + q->p.len + unit - 1) / unit * unit;
    if (!overlaps(i, start, end))
        return false;
    wait_for_some(q, resume);
    return true;
}

bool straight_wait_all(struct core_req *q, void (*resume)(struct core_req *q))
{
    if (list_empty(&q->p.inode->straight))
        return false;
    wait_for_some(q, resume);
    return true;
}

/* What is cached of the block and clean is forgotten; false: some of it is not. */
static bool forget_block(struct core_inode *i, uint64_t index)
{
    struct block *b = block_find(i->core, i, index);

    if (b && !block_clean(b))
        return false;
    if (b)
        block_drop(b);
    return true;
}

/* But for what its block, ret_piece, holds here, and for a growth that is due. */
static bool fits(const struct core_req *q, struct stripe_piece *ret_piece)
{
    const struct core_inode *i = q->p.inode;
    const struct oss_target *t;

    if (!q->direct || q->p.len < i->core->o.straight_bytes || q->p.progress ||
        q->p.flags & WRITE_COPIED || write_appends(q) || i->appender || i->lease_temporary ||
        i->recalling || i->held_from != UINT64_MAX)
        return false;
    *ret_piece = stripe_cut(&i->layout, q->p.offset, q->p.offset + q->p.len);
    if (ret_piece->len != q->p.len)
        return false;
    t = oss_target_of(i->core, &i->layout, ret_piece->chunk);
    return t && (!t->told || t->at_once);
}

void straight_prepare(struct core_req *q)
{
    struct stripe_piece p;

    if (q->p.inode->need_grow && fits(q, &p))
        flush_growth(q->p.inode);
}

bool straight_may(struct core_req *q)
{
    struct core_inode *i = q->p.inode;
    struct stripe_piece p;

    return !i->need_grow && fits(q, &p) && forget_block(i, p.block);
}

void straight_enter(struct core_req *q)
{
    q->p.flags |= WRITE_STRAIGHT;
    list_push_back(&q->p.inode->straight, &q->p.wait);
}

/* Its place is one of the file's still. */
static bool is_ours(const struct core_req *q)
{
    const struct core_inode *i = q->p.inode;

    return i->lease == MSG_LEASE_WRITE && !i->lease_temporary && !i->in_line &&
           q->p.n1 == i->attr.truncate_gen;
}

/* Unless it was refused for want of room the target may have bytes up to its end: the server has to
 * hear of them before it cuts the file, or they would be back when it grows over them. */
static void note_end(const struct core_req *q)
{
    struct core_inode *i = q->p.inode;
    uint64_t end = q->p.offset + q->p.len;

    inode_touch_data(i, end);
    i->acked_size = MAX(i->acked_size, end);
}

bool straight_over(struct core_req *q)
{
    struct core_inode *i = q->p.inode;
    bool stored;

    if (!(q->p.flags & WRITE_STRAIGHT))
        return false;
    if (q->p.error == -AIFS_ECHECKSUM) {
        q->p.flags |= WRITE_COPIED;
        q->p.error = 0;
    }
    stored = is_ours(q) && !q->p.error && !(q->p.flags & WRITE_COPIED);
    q->p.flags &= ~WRITE_STRAIGHT;
    list_remove(&q->p.wait);
    if (is_ours(q) && q->p.error != -ENOSPC)
        note_end(q);
    i->core->stats.straight_writes += stored;
    inode_ref(i);
    req_resume_list(&i->straight_waiters); /* before who writes there next, when told of this end */
    if (stored)
        write_done(q);
    else if (q->p.error)
        q->p.end(q, q->p.error);
    else if (q->p.flags & WRITE_COPIED)
        write_run(q);
    else
        req_outdated(q, -AIFS_ESTALE_TRUNC, write_run);
    inode_put(i);
    return true;
}

void straight_lost(struct core_inode *i)
{
    struct list *l;

    list_for_each (l, &i->straight) {
        struct core_req *q = list_entry(l, struct core_req, p.wait);

        if (q->p.cancel == direct_cancel) /* others wait for a flush, and see it when that ends */
            direct_cancel(q, -EIO);
    }
}
