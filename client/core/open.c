/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening files.
 *
 * Happy path: OPEN or CREATE registers the open with the server and brings attributes, layout,
 * inline data and a lease, in one call. O_TRUNC goes with it where the server knows all that was
 * written; else a truncation of its own follows.
 *
 * Failure: an open that nobody waits for any more is closed at once. One whose session was lost
 * meanwhile is made again, reopen.c.
 */
#include "client/core/core_int.h"
#include "proto/atime.h"

/* Attributes, contents and lease of an OPEN or CREATE reply. */
static void opened_inode(struct core_inode *i, const struct mds_op *op,
                         struct core_opened *ret_opened)
{
    const struct msg_inode *m = &((const struct msg_inode_rep *)op->call.rep)->inode;

    ret_opened->attr_changed =
        i->told_change != m->attr.change || atime_is_before(i->told_atime, m->attr.atime);
    ret_opened->keep_cache =
        i->lease != MSG_LEASE_NONE || (i->data_change && i->data_change == m->attr.change);
    ret_opened->fresh = !ret_opened->attr_changed && i->lease == MSG_LEASE_NONE && !i->data_change;
    ret_opened->whole = 0;
    lease_reply(i, op, m);
    if (m->has_data)
        inline_load(i, m);
    ret_opened->lease = i->lease;
    ret_opened->locks_seen = i->locks_seen;
}

static void trunc_done(struct core_req *inner, int status)
{
    struct core_req *q = inner->arg;

    mem_free(inner);
    if (status) {
        core_release(q->p.core, q->out.opened.file);
        req_finish(q, status);
        return;
    }
    inode_entry(q->out.opened.file->inode, &q->entry);
    req_finish(q, 0);
}

/* O_TRUNC of a file that has unreported data here, or that CREATE found: as a truncate of its own.
 * Who has opened it to read only may cut it by its mode, not by that open. */
static void open_truncate(struct core_req *q)
{
    struct core_req *inner = core_no_memory() ? NULL : mem_zalloc(sizeof *inner);
    struct msg_setattr_req set = {.ino = q->out.opened.file->inode->ino, .set = MSG_SET_SIZE};

    if (!inner) {
        core_release(q->p.core, q->out.opened.file);
        req_finish(q, -ENOMEM);
        return;
    }
    inner->cred = q->cred;
    inner->done = trunc_done;
    inner->arg = q;
    q->p.cancel = NULL; /* the truncate is short: it is not interrupted */
    core_setattr(q->p.core, inner, &set,
                 (q->p.n1 & O_ACCMODE) == O_RDONLY ? NULL : q->out.opened.file);
}

/* The inode has lost its last name, and nobody here has it open: it was meant by a name that
 * somebody else has removed, and lives on only because another client has it open, or has not
 * closed yet. */
static bool is_leftover(const struct mds_op *op, const struct core_inode *i)
{
    const struct msg_inode_rep *rep = op->call.rep;

    /* as it was when it was opened, and maybe cut: it may have lost its name since */
    return !op->n1 && rep->inode.attr.nlink == 0 && !inode_has_user(i);
}

/* What CREATE has made, or found. */
static bool made_name(const struct mds_op *op, bool created, uint64_t ino)
{
    const struct msg_create_req *m = &op->msg.create;
    struct core_inode *i = inode_find(op->core, ino);
    struct answer a = answer_of(op);

    if (i)
        i->parent = m->parent;
    if (created) {
        inode_take_dir(op, op->call.rep, m->parent);
        creating_executed(op);
    }
    return names_changed(op->core, &a, RPC_FLAG_KEPT_DIR, m->parent, m->name.data, m->name.len,
                         ino);
}

/* After O_TRUNC: also an empty file has changed now, unless the server has cut it, which it does
 * when it is asked to and the file has a name. If its answer was lost and is told again, what
 * others have written since must stay. */
static bool still_to_cut(const struct mds_op *op, const struct core_inode *i)
{
    const struct msg_inode_rep *rep = op->call.rep;
    bool is_cut = !op->n1 && (op->msg.open.flags & O_TRUNC) && rep->inode.attr.nlink > 0;

    return op->q->p.n2 && (!is_cut || i->meta_seq != i->meta_done);
}

/* Its answer was an error, and it may have been cut all the same. */
static void open_failed(struct mds_op *op, int status)
{
    struct core_inode *i = op->n1 ? NULL : inode_find(op->core, op->msg.open.ino);

    if (i && op->msg.open.flags & O_TRUNC)
        inode_doubt_size(i);
    if (i && status == -ENOENT)
        inode_expire(op->core, i->ino); /* nor is its name to be believed */
}

/* What was found is given to who asked for it. n2: it is still to be cut. */
static void open_serve(struct core_req *q)
{
    if (q->p.n2) {
        open_truncate(q);
        return;
    }
    preread_opened(q->out.opened.file, &q->out.opened);
    req_finish(q, 0);
}

static void open_held_over(struct core_req *q)
{
    struct core_inode *i = q->out.opened.file->inode;
    uint64_t name_valid_ns = q->entry.entry_valid_ns;

    q->out.opened.lease = i->lease;
    q->out.opened.keep_cache = false;
    q->out.opened.attr_changed = true;
    q->out.opened.fresh = false;
    inode_entry(i, &q->entry);
    q->entry.entry_valid_ns = name_valid_ns;
    open_serve(q);
}

static void cancel_held(struct core_req *q, int status)
{
    list_remove(&q->p.wait);
    core_release(q->p.core, q->out.opened.file);
    req_finish(q, status);
}

/* An OPEN with O_TRUNC of the same file is under way. The server may not have executed it yet: what
 * was written before that, by whoever has opened the file meanwhile, would be cut behind the back
 * of what keeps and reports it here, and a growth would leave old bytes in the chunks. So nobody
 * here gets the file until it has been answered. */
static void open_hold(struct core_req *q)
{
    q->p.resume = open_held_over;
    req_wait(q, "waits for an open that cuts the file", cancel_held);
    list_push_back(&q->out.opened.file->inode->opens_held, &q->p.wait);
}

static void open_answered(struct mds_op *op, int status)
{
    struct core *c = op->core;
    struct core_req *q = op->q;
    const struct msg_inode_rep *rep = op->call.rep;
    struct core_inode *i = status ? NULL : inode_from_reply(op, &rep->inode);
    struct core_file *f;
    bool created = !status && rep->created, leftover, believed = false;

    if (status)
        open_failed(op, status);
    if (op->n1 && !status && !(op->msg.create.flags & MSG_CREATE_UNNAMED))
        /* created or found under this name, even if nobody waits any more */
        believed = made_name(op, created, rep->inode.attr.ino);
    if (!i || !q) {
        if (i)
            inode_put(i);
        if (!status && rep->open_id)
            file_close_later(c, rep->inode.attr.ino, rep->open_id);
        if (q)
            req_finish(q, status ? status : inode_why_not(&rep->inode));
        return;
    }
    leftover = is_leftover(op, i);
    opened_inode(i, op, &q->out.opened);
    if ((q->p.n1 & O_ACCMODE) != O_WRONLY && !(q->p.n1 & O_NOATIME) && atime_awaits_read(i))
        q->out.opened.keep_cache = false;
    f = file_new(c, q, i, rep->open_id, (int)q->p.n1);
    if (!f) {
        file_close_later(c, i->ino, rep->open_id);
        if (list_empty(&i->files))
            i->lease = MSG_LEASE_NONE; /* goes with that close */
    }
    q->out.opened.file = f;
    if (f) {
        f->made = created && op->may_ahead;
        f->session_epoch = op->generation; /* it may be lost by now: then it is opened again */
        c->reopen_due |= !mds_op_is_current(op);
    }
    inode_entry(i, &q->entry);
    q->entry.entry_valid_ns = core_name_valid_ns(c, believed);
    if (f && leftover) {
        core_release(c, f);
        inode_expire(c, i->ino);
        req_finish(q, -ENOENT);
    } else if (!f || created) {
        req_finish(q, f ? 0 : -ENOMEM);
    } else {
        q->p.n2 = still_to_cut(op, i);
        if (i->opens_cutting)
            open_hold(q);
        else
            open_serve(q);
    }
    inode_put(i);
}

static void opened(struct mds_op *op, int status)
{
    struct core_inode *cut = op->n1 ? NULL : op->inode;

    if (cut)
        cut->opens_cutting--;
    open_answered(op, status);
    if (cut && !cut->opens_cutting)
        req_resume_list(&cut->opens_held);
}

/* Truncating with the open itself is one call less, but only when the server knows all that was
 * written. */
static bool may_truncate(struct core *c, uint64_t ino)
{
    struct core_inode *i = ino ? inode_find(c, ino) : NULL;

    return i ? list_empty(&i->dirty_link) && list_empty(&i->files) : list_empty(&c->dirty_inodes);
}

void core_open(struct core *c, struct core_req *q, uint64_t ino, int flags)
{
    struct core_inode *i;
    struct mds_op *op;
    bool cut = flags & O_TRUNC;

    req_begin(c, q, "open", ino);
    if (!core_usable(c, q))
        return;
    if (c->o.read_only && ((flags & O_ACCMODE) != O_RDONLY || cut)) {
        req_end(q, -EROFS);
        return;
    }
    op = mds_op_new(c, RPC_OP_OPEN, q, opened);
    q->p.n1 = (uint64_t)(flags & ~(O_TRUNC | O_CREAT | O_EXCL));
    if (op) {
        op->msg.open.ino = ino;
        op->msg.open.flags = (uint32_t)flags & O_ACCMODE;
        mds_op_cred(op, &op->msg.open.cred, &q->cred);
        i = inode_find(c, ino);
        if (cut && i && may_truncate(c, ino)) {
            op->msg.open.flags |= O_TRUNC;
            op->inode = inode_ref(i);
            i->opens_cutting++;
            blocks_drop_all(i, true);
            i->data_change = 0;
        }
        q->p.n2 = cut; /* unless the server has done it: still_to_cut() */
    }
    req_call(q, op, "waits for the metadata server: OPEN");
}

static struct mds_op *create_op(struct core *c, struct core_req *q, uint64_t parent,
                                const char *name, uint32_t len, int flags)
{
    bool unnamed = (flags & O_TMPFILE) == O_TMPFILE;
    struct mds_op *op = mds_op_new(c, RPC_OP_CREATE, q, opened);

    q->p.n1 = (uint64_t)(flags & ~(O_TRUNC | O_CREAT | O_EXCL | O_TMPFILE));
    q->p.n2 = (flags & O_TRUNC) != 0;
    if (!op)
        return NULL;
    if (!unnamed)
        op->dirs[0] = parent;
    op->n1 = 1;
    op->msg.create = (struct msg_create_req){
        .parent = parent,
        .name = mds_op_bytes(op, name, len),
        .flags = MSG_CREATE_OPEN | (flags & O_EXCL ? MSG_CREATE_EXCL : 0) |
                 (unnamed ? MSG_CREATE_UNNAMED : 0),
        .open_flags = (uint32_t)flags & O_ACCMODE,
    };
    mds_op_cred(op, &op->msg.create.cred, &q->cred);
    return op;
}

void core_create_file(struct core *c, struct core_req *q, uint64_t parent, const char *name,
                      uint32_t len, uint32_t mode, int flags, const struct msg_stripe *stripe)
{
    struct mds_op *op;

    req_begin(c, q, "create", parent);
    if (!core_usable(c, q))
        return;
    if (c->o.read_only) {
        req_end(q, -EROFS);
        return;
    }
    op = create_op(c, q, parent, name, len, flags);
    if (op) {
        struct msg_create_req *m = &op->msg.create;

        m->masked = q->masked;
        m->mode = (mode & 07777) | S_IFREG;
        m->has_stripe = stripe != NULL;
        if (stripe) {
            m->stripe = *stripe;
            m->stripe.pool = mds_op_bytes(op, stripe->pool.data, stripe->pool.len);
        }
        op->may_ahead =
            c->o.create_ahead && q->ahead && !(m->flags & MSG_CREATE_UNNAMED) && !stripe;
    }
    req_call(q, op, "waits for the metadata server: CREATE");
}

void core_open_name(struct core *c, struct core_req *q, uint64_t parent, const char *name,
                    uint32_t len, int flags)
{
    const struct rpc_link *link = rpc_peer_link(c->session.peer);
    struct mds_op *op;

    req_begin(c, q, "open by name", parent);
    if (!core_usable(c, q))
        return;
    if (c->o.read_only && ((flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC)) {
        req_end(q, -EROFS);
        return;
    }
    if (!link || !(rpc_link_features(link) & RPC_FEATURE_BY_NAME)) {
        req_end(q, -EOPNOTSUPP);
        return;
    }
    op = create_op(c, q, parent, name, len, flags & ~(O_CREAT | O_EXCL));
    if (op) {
        op->msg.create.mode = S_IFREG;
        op->msg.create.flags |= MSG_CREATE_FOUND;
    }
    req_call(q, op, "waits for the metadata server: CREATE");
}
