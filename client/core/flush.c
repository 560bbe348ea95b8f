/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing back one inode: what close, fsync, a recall, a truncate and the background do.
 *
 * Happy path of a flush: (1) every dirty block is sent, to all stripes at once; (2) when durability
 * is asked for, or inline data that the server holds is about to be dropped, COMMIT on all targets;
 * (3) one metadata call reports the rest: WRITE_INLINE for a small file, GROW for one that has
 * outgrown the server, SIZE otherwise. Any number of flushes of an inode share transfers; each
 * waits only for what was there when it began.
 *
 * An fsync of a little takes one trip instead of three: (1) are stable writes, so that (2) has
 * nothing to do, and (3) goes beside them, where the targets have promised the room. What a crash
 * in between leaves is what it may leave of any file that was not synced: zeros at its end.
 *
 * Failure: write errors are remembered in the inode by whoever sees them, so a flush always ends; a
 * target that restarts sends the waiting flushes back to (1).
 */
#include "client/core/core_int.h"
#include "client/core/growth.h"
#include "client/core/room.h"

#define ROUNDS_BACKGROUND 1u
#define ROUNDS_REQUEST    16u
#define REPORTS_MAX       16u
#define LITTLE_BYTES      (64u * KIB)

/* One of this session that may write, if there is one. Files that could not be opened again, or
 * have lost their locks, are none of it. */
uint64_t inode_open_id(const struct core_inode *i)
{
    const struct list *l;
    uint64_t any = 0;

    list_for_each (l, &i->files) {
        const struct core_file *f = list_entry(l, const struct core_file, link);

        if (f->session_epoch != i->core->session.epoch || !f->open_id)
            continue;
        if ((f->flags & O_ACCMODE) != O_RDONLY)
            return f->open_id;
        any = f->open_id;
    }
    return any;
}

void inode_settle(struct core_inode *i)
{
    if (i->dirty_bytes || i->meta_seq != i->meta_done || i->meta_busy || !list_empty(&i->ios) ||
        !list_empty(&i->targets) || !list_empty(&i->flushers) || i->ctime_due || i->ctime_busy ||
        i->giving_up)
        return;
    i->dirty_since_ns = 0;
    files_reap(i);
    if (!list_empty(&i->dirty_link)) {
        struct core *c = i->core;

        list_remove(&i->dirty_link);
        inode_put(i);
        core_kick(c);
    }
}

/* ---- (3): the metadata call ---- */

static void inline_too_large(struct core_inode *i)
{
    struct block *b = block_find(i->core, i, 0);

    i->in_line = false;
    i->need_grow = true;
    i->grow_error_seq = i->error_seq;
    i->meta_seq++;
    if (b)
        block_dirty_valid(b);
}

/* An error has been noted, or the server's state taken over: nobody waits for a report of what
 * there was by then. */
void flush_meta_over(struct core_inode *i, uint64_t seq)
{
    struct list *l;

    i->meta_done = MAX(i->meta_done, seq);
    list_for_each (l, &i->flushers) {
        list_entry(l, struct flush_wait, link)->reports = REPORTS_MAX;
    }
}

static void meta_failed(struct core_inode *i, struct mds_op *op, int status)
{
    if (status == -AIFS_EINLINE_FULL && i->in_line) {
        inline_too_large(i);
        return;
    }
    if (!session_is_over(status)) /* the end of the session has been noted */
        inode_set_error(i, status, rpc_op_name(op->call.op));
    if (op->call.op == RPC_OP_GROW && i->need_grow)
        growth_give_up(i);
    else
        flush_meta_over(i, op->n1);
    if (op->call.op == RPC_OP_WRITE_INLINE && i->meta_seq == op->n1)
        inline_not_stored(i); /* else all of it goes once more with what was written since */
}

/* ---- times ---- */

static bool same_time(struct msg_time a, struct msg_time b)
{
    return a.sec == b.sec && a.nsec == b.nsec;
}

/* Who waits for the report waits for this one. A small file's goes with all of its contents; if
 * they are not here any more mtime goes alone. */
static void report_again(struct core_inode *i)
{
    struct list *l;

    if (i->in_line && !inline_cached(i)) {
        i->ctime_due = i->mtime_due = true;
        inode_mark_dirty(i);
        return;
    }
    i->meta_seq++;
    list_for_each (l, &i->flushers) {
        list_entry(l, struct flush_wait, link)->meta_seq = i->meta_seq;
    }
    inode_mark_dirty(i);
}

void flush_mtime_set(struct core_inode *i, const struct msg_attr *a)
{
    i->attr.mtime = i->wrote_at = a->mtime; /* a later flush must not undo it */
    i->mtime_change = a->change;
    if (i->lease == MSG_LEASE_WRITE && i->report_change > a->change &&
        !same_time(i->report_mtime, a->mtime))
        report_again(i);
}

/* This report of before mtime was set has been executed behind that: it has undone it. */
static void reported_mtime(struct core_inode *i, const struct mds_op *op, const struct msg_attr *a)
{
    i->report_change = a->change;
    i->report_mtime =
        op->call.op == RPC_OP_WRITE_INLINE ? op->msg.write_inline.mtime : op->msg.size.mtime;
    if (i->lease == MSG_LEASE_WRITE && i->mtime_change && a->change > i->mtime_change &&
        i->meta_done == i->meta_seq && !same_time(i->report_mtime, i->wrote_at))
        report_again(i);
}

static void ctime_told(struct mds_op *op, int status)
{
    const struct msg_inode_rep *rep = op->call.rep;
    struct core_inode *i = op->inode;

    i->ctime_busy = false;
    if (!status)
        inode_merge(i, &rep->inode, true);
    if (!status && op->msg.setattr.set)
        flush_mtime_set(i, &rep->inode.attr);
    flush_step(i);
}

/* A SETATTR of nothing, which changes ctime to what has been told here already, or of mtime. */
static void ctime_send(struct core_inode *i)
{
    struct mds_op *op = mds_op_new(i->core, RPC_OP_SETATTR, NULL, ctime_told);

    if (!op)
        return; /* the tick tries again */
    op->inode = inode_ref(i);
    op->msg.setattr = (struct msg_setattr_req){
        .ino = i->ino,
        .open_id = inode_open_id(i),
        .cred = {.uid = i->attr.uid, .gid = i->attr.gid},
        .set = i->mtime_due ? MSG_SET_MTIME : 0,
        .mtime = i->wrote_at,
        .when_ns = (uint64_t)i->attr.ctime.sec * NS_PER_S + i->attr.ctime.nsec,
    };
    op->writes_back = true;
    op->only_epoch = i->core->session.epoch;
    i->ctime_due = i->mtime_due = false;
    i->ctime_busy = true;
    mds_op_start(op);
}

static void meta_refreshed(struct mds_op *op, int status)
{
    struct core_inode *i = op->inode;
    const struct msg_inode_rep *rep = op->call.rep;

    i->meta_busy = false;
    if (!status) {
        inode_merge(i, &rep->inode, true);
    } else {
        inode_set_error(i, status, "write-back");
        flush_meta_over(i, i->meta_seq);
    }
    flush_step(i);
}

static void meta_refresh(struct core_inode *i)
{
    struct mds_op *op = mds_op_new(i->core, RPC_OP_GETATTR, NULL, meta_refreshed);

    if (!op)
        return; /* the report goes once more as it was, and comes back here */
    op->msg.ino.ino = i->ino;
    op->inode = inode_ref(i);
    i->meta_busy = true;
    mds_op_start(op);
}

/* The report can be made again. Not that of a growth into a layout that the file has no more. */
static bool is_outdated(const struct mds_op *op, int status)
{
    return status == -AIFS_ESTALE_TRUNC ||
           (status == -AIFS_ESTALE_LAYOUT && op->call.op != RPC_OP_GROW);
}

static void meta_called(struct mds_op *op, int status)
{
    struct core_inode *i = op->inode;
    const struct msg_inode_rep *rep = op->call.rep;

    i->meta_busy = false;
    i->meta_buf = NULL;
    if (op->only_epoch != i->core->session.epoch) { /* the end of its session has been noted */
        flush_step(i);
        return;
    }
    if (is_outdated(op, status) && op->n2++ == 0 && i->meta_stale++ < RETRY_STALE_MAX) {
        meta_refresh(i);
        flush_step(i);
        return;
    }
    i->meta_stale = 0;
    if (status) {
        meta_failed(i, op, status);
    } else {
        if (op->call.op == RPC_OP_GROW) {
            FAULT_CRASH("client.grow.after_commit");
            i->need_grow = i->server_has_inline = false;
        }
        i->meta_done = MAX(i->meta_done, op->n1);
        i->known_size = MAX(i->known_size, i->reported_size);
        inode_merge(i, &rep->inode, true);
        reported_mtime(i, op, &rep->inode.attr);
        if (op->call.op == RPC_OP_WRITE_INLINE) {
            i->server_has_inline = i->attr.size > 0;
            inline_saved(i);
        } else if (i->meta_done == i->meta_seq && i->reported_size < i->attr.size) {
            i->meta_seq++; /* bytes that were still on their way */
        }
    }
    flush_step(i);
}

/* Nothing is reported that no target has acknowledged, but for sizes the server knows already, and
 * up to ahead; and without a lease, when each write has reported its end and somebody else may have
 * cut the file, nothing at all. */
static uint64_t size_to_report(struct core_inode *i, uint64_t ahead)
{
    uint64_t stored = MAX(i->acked_size, ahead);

    if (i->lease != MSG_LEASE_WRITE) {
        i->reported_size = i->attr.size;
        return 0;
    }
    i->reported_size =
        i->dirty_bytes || !list_empty(&i->ios) ? MIN(i->attr.size, stored) : i->attr.size;
    return i->reported_size;
}

static void meta_send_inline(struct core_inode *i, struct mds_op *op)
{
    struct block *b = block_find(i->core, i, 0);
    uint32_t len = (uint32_t)i->attr.size;

    i->reported_size = len;
    ASSERT(!len || (b && extents_cover(&b->valid, 0, len)));
    op->msg.write_inline = (struct msg_write_inline_req){
        .ino = i->ino,
        .open_id = inode_open_id(i),
        .replace = true,
        .mtime = i->wrote_at,
        .truncate_gen = i->attr.truncate_gen,
        .layout_generation = i->layout.generation,
    };
    if (!len)
        return;
    buf_ref(b->buf);
    op->buf = i->meta_buf = b->buf; /* a write meanwhile takes another one */
    op->iov = (struct iovec){b->buf->data, len};
    op->call.bulk_out = &op->iov;
    op->call.n_bulk_out = 1;
}

static void meta_send(struct core_inode *i, uint64_t ahead)
{
    unsigned opcode = i->need_grow ? RPC_OP_GROW : i->in_line ? RPC_OP_WRITE_INLINE : RPC_OP_SIZE;
    struct mds_op *op;

    if (i->giving_up) {
        growth_tell(i);
        return;
    }
    if (i->need_grow && ((i->server_has_inline && i->error_seq != i->grow_error_seq) ||
                         (i->grow_trial && i->grow_trial->p.error))) {
        growth_give_up(i);
        return;
    }
    op = mds_op_new(i->core, opcode, NULL, meta_called);
    if (!op)
        return; /* the tick tries again */
    if (opcode == RPC_OP_GROW)
        FAULT_CRASH("client.grow.after_chunks");
    op->inode = inode_ref(i);
    op->n1 = i->meta_seq;
    op->writes_back = true;
    if (opcode == RPC_OP_WRITE_INLINE)
        meta_send_inline(i, op);
    else
        op->msg.size = (struct msg_size_req){
            .ino = i->ino,
            .open_id = inode_open_id(i),
            .size = size_to_report(i, ahead),
            .mtime = i->wrote_at,
            .truncate_gen = i->attr.truncate_gen,
            .layout_generation = i->layout.generation,
        };
    i->meta_busy = true;
    mds_op_start(op);
}

/* ---- the steps ---- */

static bool is_little(const struct core_inode *i, const struct flush_wait *w)
{
    return w->prompt && i->dirty_bytes && i->dirty_bytes <= LITTLE_BYTES;
}

/* Will the targets take all that is dirty? It is little. */
static bool all_promised(struct core_inode *i)
{
    const struct list *l;

    list_for_each (l, &i->blocks) {
        const struct block *b = list_entry(l, const struct block, by_inode);
        const struct oss_target *t = extents_empty(&b->dirty) ? NULL : block_target(b);

        if (!extents_empty(&b->dirty) && (!t || room_granted(t) < room_owed(t)))
            return false;
    }
    return true;
}

static bool may_tell_ahead(struct core_inode *i, const struct flush_wait *w)
{
    return is_little(i, w) && !i->in_line && !i->need_grow && i->lease == MSG_LEASE_WRITE &&
           !i->lease_temporary && !i->recalling && i->held_from == UINT64_MAX &&
           list_empty(&i->truncations) && list_empty(&i->ios) && all_promised(i);
}

/* Sends what is dirty, as far as transfers under way let it. */
static void send_round(struct core_inode *i, struct flush_wait *w)
{
    blocks_send_all(i, is_little(i, w));
    w->io_seq = i->io_seq;
    w->all_sent = blocks_all_sent(i, w->below ? i->held_from : UINT64_MAX);
}

/* Bytes go once more that flushes may take for sent. */
void flush_unsent(struct core_inode *i)
{
    struct list *l;

    list_for_each (l, &i->flushers) {
        list_entry(l, struct flush_wait, link)->all_sent = false;
    }
}

/* Something dirty may not be sent before a read of the bytes around it is over. */
static bool behind_fill(const struct core_inode *i)
{
    const struct list *l;

    list_for_each (l, &i->blocks) {
        const struct block *b = list_entry(l, const struct block, by_inode);

        if (extents_overlap(&b->dirty, b->fill_start, b->fill_end))
            return true;
    }
    return false;
}

static bool data_done(struct core_inode *i, struct flush_wait *w)
{
    bool may_leave_some = w == &i->background && !i->need_grow;

    for (;;) {
        struct oss_io *oldest =
            list_empty(&i->ios) ? NULL : list_entry(i->ios.next, struct oss_io, by_inode);
        uint64_t before = w->io_seq;

        if (oldest && oldest->seq <= w->io_seq)
            return false;
        if (w->all_sent)
            return true;
        if (w->rounds) {
            send_round(i, w);
            if (w->io_seq != before) {
                w->rounds--;
                continue;
            }
            if (w->all_sent)
                return true;
        }
        if (may_leave_some)
            return true;
        if (behind_fill(i))
            return false; /* block_filled() comes here again */
        if (i->held_from != UINT64_MAX && !w->below)
            return false; /* so does the end of the truncation */
        if (w->rounds)
            inode_set_error(i, -ENOMEM, "write-back"); /* nothing in the way, and nothing sent */
        return true;
    }
}

/* A report that was under way when the flush began, or went out for another one, may have told of
 * less than it waits for. */
static bool reported(const struct core_inode *i, const struct flush_wait *w)
{
    uint64_t size = w->below && !i->in_line ? i->acked_size : w->size;

    if (i->giving_up)
        return false;
    if (i->in_line && i->lease != MSG_LEASE_WRITE)
        return true; /* each write has gone to the server by itself, or is lost with the lease */
    return i->meta_done >= w->meta_seq &&
           (i->known_size >= MIN(size, i->attr.size) || w->reports >= REPORTS_MAX);
}

/* True when this flush is over. */
static bool wait_step(struct core_inode *i, struct flush_wait *w)
{
    if (i->behind.creating) { /* the end of that comes here again */
        behind_urge(i->core);
        return false;
    }
    if (i->ctime_due && !i->ctime_busy)
        ctime_send(i);
    if (w->tell_ahead && !i->meta_busy) {
        w->tell_ahead = false;
        if (!reported(i, w))
            meta_send(i, w->size);
    }
    if (!w->data_done) {
        if (!data_done(i, w))
            return false;
        w->data_done = true;
        w->ticket = ++i->core->commit_clock;
    }
    if (w->commit || (i->need_grow && i->server_has_inline)) {
        if (!w->commit_asked) {
            w->commit_asked = true;
            commit_request(i);
        }
        if (!commit_reached(i, w->ticket))
            return false;
    }
    if (i->ctime_busy)
        return false;
    if (reported(i, w)) /* a truncation goes behind a report of somebody else's */
        return !w->below || !i->meta_busy;
    if (!i->meta_busy) {
        w->reports += i->meta_done >= w->meta_seq;
        meta_send(i, 0);
    }
    return false;
}

void flush_step(struct core_inode *i)
{
    struct list *l, *tmp, over;

    if (i->stepping) {
        i->step_again = true;
        return;
    }
    inode_ref(i);
    i->stepping = true;
    do {
        i->step_again = false;
        list_init(&over);
        list_for_each_safe (l, tmp, &i->flushers) {
            if (wait_step(i, list_entry(l, struct flush_wait, link))) {
                list_remove(l);
                list_push_back(&over, l);
            }
        }
        i->flushing = !list_empty(&i->flushers);
        while ((l = list_pop_front(&over)) != NULL) {
            struct flush_wait *w = list_entry(l, struct flush_wait, link);

            w->done(w);
        }
    } while (i->step_again);
    i->stepping = false;
    inode_settle(i);
    inode_put(i);
}

void flush_start(struct core_inode *i, struct flush_wait *w, bool commit,
                 void (*done)(struct flush_wait *w))
{
    *w = (struct flush_wait){.commit = commit,
                             .below = w->below,
                             .prompt = commit && w->prompt,
                             .q = w->q,
                             .inode = i,
                             .done = done};
    w->rounds = w == &i->background ? ROUNDS_BACKGROUND : ROUNDS_REQUEST;
    list_push_back(&i->flushers, &w->link);
    i->flushing = true;
    w->tell_ahead = may_tell_ahead(i, w);
    send_round(i, w);
    w->tell_ahead &= w->all_sent;
    w->meta_seq = i->meta_seq;
    w->size = i->meta_seq != i->meta_done || i->meta_busy ? i->attr.size : 0;
    flush_step(i);
}

void flush_cancel(struct flush_wait *w)
{
    list_remove(&w->link);
}

/* A target has forgotten: those who wait for durability begin again. */
void flush_replayed(struct core_inode *i)
{
    struct list *l;

    list_for_each (l, &i->flushers) {
        struct flush_wait *w = list_entry(l, struct flush_wait, link);

        if (!w->commit && !w->commit_asked)
            continue;
        w->data_done = w->commit_asked = false;
        w->rounds = ROUNDS_REQUEST;
    }
    list_for_each (l, &i->flushers) {
        send_round(i, list_entry(l, struct flush_wait, link));
    }
}
