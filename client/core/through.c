/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes under a write lease that no target has promised room for.
 *
 * Such a write must not be acknowledged before it is stored, and leave nothing behind when it is
 * not. So it goes from the caller's memory, one block's part after the other, durably, past the
 * cache; the size changes when a part is stored. What the cache has of the block is written and
 * committed first, and forgotten. A small file that is to grow for it grows first, as it is: when
 * that fails it is a small file still, and nothing is lost, because the server had all of it.
 *
 * While it is under way it is on core_inode.straight: who touches the same block waits, and while a
 * small file grows everybody.
 *
 * Failure: the first part that is refused ends it; what came before has been written. When nobody
 * knows whether the target has stored it (not ENOSPC: the connection or the session is lost, or the
 * writer was killed), the size grows over it all the same: the server has to hear of what may be
 * there, before it cuts the file.
 */
#include "client/core/through.h"

#include "client/core/core_int.h"
#include "client/core/growth.h"

#define WRITE_FLUSHED 0x100u

static void enter(struct core_req *q, uint32_t flags)
{
    q->p.flags |= WRITE_STRAIGHT | flags;
    list_push_back(&q->p.inode->straight, &q->p.wait);
}

static void leave(struct core_req *q)
{
    q->p.flags &= ~(WRITE_STRAIGHT | WRITE_ALONE);
    q->p.cancel = NULL;
    list_remove(&q->p.wait);
}

/* q goes on, or ends with status; then those who waited for it, if it does not keep them waiting.
 */
static void go_on(struct core_req *q, int status)
{
    struct core_inode *i = inode_ref(q->p.inode);

    leave(q);
    if (status)
        q->p.end(q, status);
    else
        write_run(q);
    req_resume_list(&i->straight_waiters);
    inode_put(i);
}

void through_refused(struct core_req *q, int status)
{
    if (!q->p.progress) {
        q->p.end(q, status);
        return;
    }
    q->p.len = q->p.progress;
    write_done(q);
}

/* ---- flushing first ---- */

static void flushed(struct flush_wait *w)
{
    go_on(w->q, 0);
}

static void cancel_flush(struct core_req *q, int status)
{
    struct core_inode *i = inode_ref(q->p.inode);

    flush_cancel((struct flush_wait *)q->p.flush);
    if (i->grow_trial == q) {
        i->grow_trial = NULL;
        if (q->p.error) /* it cannot grow: to be given up, though nobody is told */
            i->grow_error_seq = i->error_seq - 1;
    }
    leave(q);
    req_finish(q, status);
    req_resume_list(&i->straight_waiters);
    inode_put(i);
}

/* Others may have made it dirty again; not for ever. */
static bool gave_up(struct core_req *q)
{
    if (q->p.stale++ < RETRY_STALE_MAX)
        return false;
    LOG_WARN("client", "%s of inode %llu: given up: it was flushed %u times, and is not clean",
             q->p.what, (unsigned long long)q->p.inode->ino, RETRY_STALE_MAX);
    q->p.end(q, -EIO);
    return true;
}

/* It may be over, and q with it, when this returns. */
static void flush_first(struct core_req *q, uint32_t flags, bool commit,
                        void (*done)(struct flush_wait *w))
{
    struct flush_wait *w = (struct flush_wait *)q->p.flush;

    enter(q, flags);
    req_wait(q, "waits until what came before is stored", cancel_flush);
    *w = (struct flush_wait){.q = q};
    flush_start(q->p.inode, w, commit, done);
}

/* ---- growing first ---- */

static void grown(struct flush_wait *w)
{
    struct core_req *q = w->q;
    struct core_inode *i = q->p.inode;
    int err = q->p.error;

    i->grow_trial = NULL;
    if (err && !i->in_line) /* it did, and has lost something */
        inode_set_error(i, err, "growth");
    go_on(q, i->in_line ? err : 0);
}

void through_grow(struct core_req *q)
{
    struct core_inode *i = q->p.inode;

    if (gave_up(q))
        return;
    if (i->meta_seq != i->meta_done || i->meta_busy) { /* nothing is to be lost if it cannot */
        flush_first(q, WRITE_ALONE, false, flushed);
        return;
    }
    inline_grow(i);
    i->grow_trial = q;
    flush_first(q, WRITE_ALONE, true, grown);
}

/* ---- a part ---- */

static bool is_ours(const struct core_req *q)
{
    const struct core_inode *i = q->p.inode;

    return i->lease == MSG_LEASE_WRITE && !i->in_line && q->p.n1 == i->attr.truncate_gen;
}

/* It was to leave room for what was acknowledged, some of which may have been stored by then: once
 * more, when all of it is. */
static bool must_flush(const struct oss_io *io, int status)
{
    return status == -ENOSPC && io->msg.write.keep_grant && !(io->q->p.flags & WRITE_FLUSHED);
}

static void stored(struct oss_io *io, int status)
{
    struct core_req *q = io->q;
    struct core_inode *i = inode_ref(q->p.inode);
    uint64_t end = q->p.offset + q->p.progress + io->len;

    leave(q);
    if (q->p.error)
        status = q->p.error;
    else if (!status && !is_ours(q))
        status = -EIO; /* the session, and with it the place */
    if (status != -ENOSPC && is_ours(q)) {
        inode_touch_data(i, end);
        i->acked_size = MAX(i->acked_size, end);
    }
    if (must_flush(io, status)) {
        q->p.flags |= WRITE_FLUSHED;
        flush_first(q, 0, true, flushed);
    } else if (status) {
        through_refused(q, status == -EINTR ? -AIFS_ETIMEOUT : status);
    } else {
        write_moved(q, io->len);
        q->p.stale = 0;
        if (q->p.progress == q->p.len)
            write_done(q);
        else
            write_run(q);
    }
    req_resume_list(&i->straight_waiters);
    inode_put(i);
}

/* What b, its block, holds here is clean. */
static void send_part(struct core_req *q, const struct stripe_piece *p, struct block *b)
{
    struct oss_io *io = oss_io_new(q->p.core, OSS_IO_WRITE, q->p.inode);

    if (!io) {
        q->p.end(q, -ENOMEM);
        return;
    }
    if (!direct_slice(io, q, q->p.progress, p->len)) {
        oss_io_drop(io);
        q->p.end(q, -EINVAL);
        return;
    }
    io->q = q;
    io->len = p->len;
    io->stable = io->alone = true;
    io->range = (struct msg_range){p->chunk, p->chunk_offset + p->start, p->len};
    io->done = stored;
    q->p.n1 = q->p.inode->attr.truncate_gen;
    enter(q, 0);
    req_wait(q, "waits for OSS_WRITE", direct_cancel);
    if (b) /* who waited for it goes on, and waits for this one */
        block_drop(b);
    oss_io_submit(io);
}

void through_write(struct core_req *q, const struct stripe_piece *p)
{
    struct core_inode *i = q->p.inode;
    struct block *b = block_find(i->core, i, p->block);
    bool unsaved = b && (!extents_empty(&b->dirty) || b->n_ios || b->unc_in);

    if (i->need_grow || unsaved) {
        if (!gave_up(q))
            flush_first(q, i->need_grow ? WRITE_ALONE : 0, true, flushed);
    } else if (b && b->fill_start != b->fill_end) {
        req_wait(q, "waits for a transfer of the same bytes", req_finish);
        block_wait(b, q, write_run);
    } else {
        send_part(q, p, b);
    }
}
