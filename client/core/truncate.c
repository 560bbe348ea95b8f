/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changing attributes, and with them the size.
 *
 * Truncating, happy path: the gate is closed and the last reads and writes drain; what has not
 * been sent and will be cut is held back, the rest is written and reported (the server must know
 * how far the targets have been written before it can tell them what to cut); SETATTR, while
 * nothing else is reported; then the cache follows, the gate opens.
 *
 * Failure: the file keeps its size and all that was written; what was held back is sent with the
 * next flush.
 *
 * Other attributes are one call, SETATTR; none, or one together with what is to be written, while
 * the file is written here: while_writing(); and none while it is here only: since.c.
 */
#include "client/core/core_int.h"

struct truncation {
    struct list link;   /* core_inode.truncations */
    struct core_req *q; /* NULL: was cancelled, the work goes on */
    struct core_inode *inode;
    struct core *core;
    struct gate_waiter gate;
    struct flush_wait flush;
    struct msg_setattr_req set;
    struct msg_cred cred;
    uint32_t epoch; /* of the session that the open is of */
    bool unflushed; /* of a small file nothing is kept: nothing was sent */
};

static void truncation_begin(struct truncation *t);

/* Of what is cached behind size, only what is to be written is known to be in the file. */
static void doubt_cache(struct core_inode *i, uint64_t size)
{
    uint32_t unit = i->layout_known ? stripe_block_bytes(&i->layout) : CORE_LARGE_BYTES;
    struct list *l, *tmp;

    list_for_each_safe (l, tmp, &i->blocks) {
        struct block *b = list_entry(l, struct block, by_inode);

        if ((b->index + 1) * unit > size)
            block_doubt(b);
    }
}

static void truncation_end(struct truncation *t, int status)
{
    struct core_req *q = t->q;
    struct core_inode *i = t->inode;
    uint64_t size = t->set.size;

    list_remove(&t->link);
    mem_free(t);
    if (status) { /* it may have been made all the same */
        inode_doubt_size(i);
        doubt_cache(i, size);
    }
    if (q && !status)
        inode_entry(i, &q->entry);
    i->held_from = UINT64_MAX;
    if (!list_empty(&i->truncations))
        truncation_begin(list_entry(i->truncations.next, struct truncation, link));
    flush_step(i); /* who waited for this goes on */
    gate_open(i);
    if (q)
        req_finish(q, status);
    inode_put(i);
}

static void cut_cache(struct core_inode *i, uint64_t size)
{
    uint32_t unit = i->layout_known ? stripe_block_bytes(&i->layout) : CORE_LARGE_BYTES;
    struct list *l, *tmp;

    list_for_each_safe (l, tmp, &i->blocks) {
        struct block *b = list_entry(l, struct block, by_inode);
        uint64_t base = b->index * unit;

        if (base >= size)
            block_drop(b);
        else if (size - base < unit)
            block_cut(b, (uint32_t)(size - base));
    }
    i->acked_size = MIN(i->acked_size, size);
}

/* The server's word on size and mtime counts, whatever lease we hold; without one it may be old. */
static void follow(struct core_inode *i, const struct msg_inode *m)
{
    bool overtaken = i->lease == MSG_LEASE_NONE && m->attr.change < i->attr.change;
    struct block *b;
    uint64_t was = i->attr.size;

    inode_merge(i, m, true);
    if (overtaken) { /* by an answer from behind somebody else's change */
        cut_cache(i, MIN(m->attr.size, was));
        return;
    }
    i->attr.size = i->known_size = m->attr.size;
    i->attr.mtime = i->wrote_at = m->attr.mtime;
    cut_cache(i, m->attr.size);
    b = i->in_line ? block_find(i->core, i, 0) : NULL;
    if (b && m->attr.size > was) {
        if (m->attr.size > CORE_SMALL_BYTES || b->buf->size_bytes < m->attr.size) {
            block_drop(b);
        } else {
            memset(b->buf->data + was, 0, m->attr.size - was);
            if (extents_add(&b->valid, (uint32_t)was, (uint32_t)m->attr.size))
                block_drop(b);
        }
    }
}

static void answered(struct mds_op *op, int status)
{
    struct truncation *t = (struct truncation *)(uintptr_t)op->n1;
    const struct msg_inode_rep *rep = op->call.rep;

    t->inode->meta_busy = false;
    if (!status) {
        follow(t->inode, &rep->inode);
        if (t->unflushed)
            flush_meta_over(t->inode, t->inode->meta_seq);
    }
    truncation_end(t, status);
}

static void send_setattr(struct truncation *t)
{
    bool late = t->set.open_id && t->epoch != t->core->session.epoch;
    struct mds_op *op = late ? NULL : mds_op_new(t->core, RPC_OP_SETATTR, NULL, answered);

    if (!op) {
        truncation_end(t, late ? -EIO : -ENOMEM);
        return;
    }
    op->msg.setattr = t->set;
    mds_op_cred(op, &op->msg.setattr.cred, &t->cred);
    op->n1 = (uint64_t)(uintptr_t)t;
    op->writes_back = t->inode->lease == MSG_LEASE_WRITE; /* a recall may wait for it */
    t->inode->meta_busy = true;
    mds_op_start(op);
}

static void flushed(struct flush_wait *w)
{
    struct truncation *t = container_of(w, struct truncation, flush);
    struct core_inode *i = t->inode;

    if (i->meta_busy) { /* a report of somebody else's flush: once more, behind it */
        flush_start(i, w, false, flushed);
        return;
    }
    if (!i->in_line) /* nor is it sent again, should a target forget it now */
        i->held_from = t->set.size;
    send_setattr(t);
}

/* A file that is about to grow out of its record goes as a whole: what was durable there must not
 * be given up for a part of it. */
static void truncation_begin(struct truncation *t)
{
    struct core_inode *i = t->inode;

    if (i->lease == MSG_LEASE_WRITE && i->in_line && t->set.size == 0 && !i->meta_busy &&
        !i->giving_up) {
        t->unflushed = true;
        send_setattr(t);
        return;
    }
    if (i->lease == MSG_LEASE_WRITE && !i->in_line && !i->need_grow && t->set.size < i->attr.size)
        i->held_from = t->set.size;
    t->flush.below = true;
    flush_start(i, &t->flush, false, flushed);
}

static void drained(struct gate_waiter *w)
{
    struct truncation *t = container_of(w, struct truncation, gate);
    bool first = list_empty(&t->inode->truncations);

    list_push_back(&t->inode->truncations, &t->link);
    if (first)
        truncation_begin(t);
}

static void cancel_truncation(struct core_req *q, int status)
{
    struct truncation *t = (struct truncation *)(uintptr_t)q->p.n1;

    t->q = NULL;
    q->p.cancel = NULL;
    req_finish(q, status);
}

static void truncate_start(struct core_req *q, const struct msg_setattr_req *set)
{
    struct core *c = q->p.core;
    struct core_inode *i = inode_get(c, set->ino);
    struct truncation *t =
        i && !core_no_memory() ? mem_alloc(sizeof *t + cred_space(&q->cred)) : NULL;

    if (!t) {
        if (i)
            inode_put(i);
        req_finish(q, -ENOMEM);
        return;
    }
    *t = (struct truncation){.q = q, .inode = i, .core = c, .set = *set, .epoch = c->session.epoch};
    cred_copy(&t->cred, &q->cred, t + 1);
    q->p.n1 = (uint64_t)(uintptr_t)t;
    req_wait(q, "waits for a truncate", cancel_truncation);
    gate_close(i);
    gate_when_drained(i, &t->gate, drained);
}

/* ---- other attributes ---- */

static void attributes_set(struct mds_op *op, int status)
{
    struct core_req *q = op->q;
    const struct msg_inode_rep *rep = op->call.rep;
    struct core_inode *i = status ? NULL : inode_from_reply(op, &rep->inode);

    if (i) {
        i->ctime_due &= !op->n1; /* this one is later */
        if (op->msg.setattr.set & (MSG_SET_MTIME | MSG_SET_MTIME_NOW))
            flush_mtime_set(i, &rep->inode.attr);
        if (op->msg.setattr.set & (MSG_SET_ATIME | MSG_SET_ATIME_NOW))
            atime_set(i, op->started_ns);
        if (q)
            inode_entry(i, &q->entry);
        inode_put(i);
    } else if (!status) {
        status = inode_why_not(&rep->inode);
    }
    if (q)
        req_finish(q, status);
}

/* Owner, group and mode are what is asked for, and there is nothing that a change of them takes
 * away: all that changes is ctime. */
static bool changes_nothing(const struct core_inode *i, const struct msg_cred *cred,
                            const struct msg_setattr_req *m)
{
    const uint32_t what = MSG_SET_MODE | MSG_SET_UID | MSG_SET_GID;
    const struct msg_attr *a = &i->attr;

    return (m->set & what) && !(m->set & ~(what | MSG_SET_KILL_PRIV)) &&
           (cred->uid == 0 || cred->uid == a->uid) && !(a->mode & (S_ISUID | S_ISGID)) &&
           (a->flags & MSG_ATTR_NO_XATTRS) && !(a->flags & MSG_ATTR_ACL) &&
           (!(m->set & MSG_SET_MODE) || (m->mode & 07777) == (a->mode & 07777)) &&
           (!(m->set & MSG_SET_UID) || m->uid == a->uid) &&
           (!(m->set & MSG_SET_GID) || m->gid == a->gid);
}

/* tar, cp -a and rsync, run by root, set owner, mode and times of each file before they close it.
 * Nobody else may believe the attributes of a file that is written here; what a change of nothing
 * does to them is told with the flush, as for a write. And who sets the time of the last write does
 * not write any more: what there is goes ahead, so that close has nothing left to do. */
static bool while_writing(struct core_inode *i, struct core_req *q, const struct msg_setattr_req *m)
{
    if (i->lease != MSG_LEASE_WRITE || i->recalling || i->lease_temporary)
        return false;
    if (inode_attr_fresh(i) && changes_nothing(i, &q->cred, m)) {
        inode_touch_ctime(i);
        inode_entry(i, &q->entry);
        req_end(q, 0);
        return true;
    }
    if (m->set & MSG_SET_MTIME)
        flush_ahead(i); /* what is to be reported keeps the inode */
    return false;
}

void core_setattr(struct core *c, struct core_req *q, const struct msg_setattr_req *set,
                  struct core_file *f)
{
    struct msg_setattr_req full = *set;
    struct core_inode *i = inode_find(c, set->ino);
    struct mds_op *op;

    req_begin(c, q, "setattr", set->ino);
    if (!core_usable(c, q))
        return;
    if (c->o.read_only) {
        req_end(q, -EROFS);
        return;
    }
    if (f && set->set & MSG_SET_SIZE && file_is_dead(f)) {
        req_end(q, -EIO);
        return;
    }
    full.open_id = f && f->session_epoch == c->session.epoch ? f->open_id : 0;
    if (set->set & MSG_SET_SIZE) {
        truncate_start(q, &full);
        return;
    }
    if (i && (creating_set(i, q, &full) || setdir_try(i, q, &full) || while_writing(i, q, &full)))
        return;
    op = mds_op_new(c, RPC_OP_SETATTR, q, attributes_set);
    if (op) {
        op->n1 = i && i->ctime_due && !i->mtime_due;
        op->msg.setattr = full;
        mds_op_cred(op, &op->msg.setattr.cred, &q->cred);
    }
    req_call(q, op, "waits for the metadata server: SETATTR");
}
