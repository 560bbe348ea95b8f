/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and attributes: one metadata call each, or none when the caches know.
 * Every change made here is followed in the caches before the caller hears of it; of changes by
 * others the server tells beforehand (invalidate.c).
 */
#include <stdio.h>

#include "client/core/core_int.h"

static bool changing(struct core *c, struct core_req *q)
{
    if (!core_usable(c, q))
        return false;
    if (!c->o.read_only)
        return true;
    req_end(q, -EROFS);
    return false;
}

/* The reply's inode into cache and request; an unusable one is an error. */
static int take_inode(const struct mds_op *op, struct core_req *q, const struct msg_inode *m)
{
    struct core_inode *i = inode_from_reply(op, m);

    if (!i)
        return inode_why_not(m);
    if (op->call.op == RPC_OP_LOOKUP)
        i->parent = op->msg.name.parent;
    if (q)
        inode_entry(i, &q->entry);
    inode_put(i);
    return 0;
}

/* ---- lookup, getattr ---- */

static void looked_up(struct mds_op *op, int status)
{
    struct core *c = op->core;
    struct core_req *q = op->q;
    const struct msg_inode_rep *rep = op->call.rep;
    const struct msg_name_req *m = &op->msg.name;
    struct answer a = answer_of(op);
    bool believed = false;

    if (!status)
        status = take_inode(op, q, &rep->inode);
    if (!status)
        believed = names_learn(c, &a, m->parent, m->name.data, m->name.len, rep->inode.attr.ino);
    else if (status == -ENOENT)
        believed = names_learn(c, &a, m->parent, m->name.data, m->name.len, 0);
    if (believed)
        prelist_missed(c, m->parent, &m->cred);
    if (!q)
        return;
    if (status == -ENOENT && q->want_negative) {
        memset(&q->entry, 0, sizeof q->entry);
        q->entry.entry_valid_ns = believed ? session_trust_ns(c, c->o.negative_ns) : 0;
        status = 0;
    } else if (!status) {
        q->entry.entry_valid_ns = core_name_valid_ns(c, believed);
    }
    req_finish(q, status);
}

static void answer_absent(struct core *c, struct core_req *q)
{
    memset(&q->entry, 0, sizeof q->entry);
    q->entry.entry_valid_ns = session_trust_ns(c, c->o.negative_ns);
    req_end(q, q->want_negative ? 0 : -ENOENT);
}

static bool lookup_cached(struct core *c, struct core_req *q, uint64_t parent, const char *name,
                          uint32_t len)
{
    const struct name_entry *e = names_get(c, parent, name, len);
    struct core_inode *i;

    if (e ? !e->ino : names_is_absent(c, parent, name, len, q->want_negative)) {
        answer_absent(c, q);
        return true;
    }
    i = e ? inode_find(c, e->ino) : NULL;
    if (!i || !inode_attr_fresh(i))
        return false;
    inode_entry(i, &q->entry);
    q->entry.entry_valid_ns = core_name_valid_ns(c, true);
    req_end(q, 0);
    return true;
}

void core_lookup(struct core *c, struct core_req *q, uint64_t parent, const char *name,
                 uint32_t len)
{
    struct mds_op *op;

    req_begin(c, q, "lookup", parent);
    if (!core_usable(c, q))
        return;
    if (len > MSG_NAME_MAX) {
        req_end(q, -ENAMETOOLONG);
        return;
    }
    if (lookup_cached(c, q, parent, name, len))
        return;
    op = mds_op_new(c, RPC_OP_LOOKUP, q, looked_up);
    if (op) {
        op->msg.name.parent = parent;
        op->msg.name.name = mds_op_bytes(op, name, len);
        mds_op_cred(op, &op->msg.name.cred, &q->cred);
    }
    req_call(q, op, "waits for the metadata server: LOOKUP");
}

/* What somebody has removed and that may be open here without anybody having been told: a
 * directory, a FIFO, a socket or a device node. As on a local file system it is without a name (and
 * a directory empty, and nothing can be made in it). */
static bool removed_but_open(struct mds_op *op)
{
    struct core_inode *i = inode_find(op->core, op->msg.ino.ino);

    if (!i || !i->attr_known || S_ISREG(i->attr.mode) || S_ISLNK(i->attr.mode))
        return false;
    i->attr.nlink = 0;
    if (op->q)
        inode_entry(i, &op->q->entry);
    return true;
}

static void got_attr(struct mds_op *op, int status)
{
    const struct msg_inode_rep *rep = op->call.rep;

    if (!status)
        status = take_inode(op, op->q, &rep->inode);
    else if (status == -ENOENT)
        inode_expire(op->core, op->msg.ino.ino); /* nor is its name to be believed */
    if (status == -ENOENT && removed_but_open(op))
        status = 0;
    if (op->q)
        req_finish(op->q, status);
}

void core_getattr(struct core *c, struct core_req *q, uint64_t ino)
{
    struct core_inode *i = inode_find(c, ino);
    struct mds_op *op;

    req_begin(c, q, "getattr", ino);
    if (!core_usable(c, q))
        return;
    if (i && inode_attr_fresh(i)) {
        inode_entry(i, &q->entry);
        req_end(q, 0);
        return;
    }
    op = mds_op_new(c, RPC_OP_GETATTR, q, got_attr);
    if (op) {
        op->msg.ino.ino = ino;
        mds_op_cred(op, &op->msg.ino.cred, &q->cred);
    }
    req_call(q, op, "waits for the metadata server: GETATTR");
}

/* ---- making ---- */

static void made(struct mds_op *op, int status)
{
    struct core *c = op->core;
    const struct msg_inode_rep *rep = op->call.rep;
    const struct msg_create_req *m = &op->msg.create;
    struct answer a = answer_of(op);
    struct core_inode *i;
    bool believed, executed = !status;

    if (executed)
        status = take_inode(op, op->q, &rep->inode);
    if (!status) {
        inode_take_dir(op, rep, m->parent);
        if (op->may_ahead)
            creating_executed(op);
        believed = names_changed(c, &a, RPC_FLAG_KEPT_DIR, m->parent, m->name.data, m->name.len,
                                 rep->inode.attr.ino);
        if (op->q)
            op->q->entry.entry_valid_ns = core_name_valid_ns(c, believed);
        i = inode_find(c, rep->inode.attr.ino);
        if (i)
            i->parent = m->parent;
        if (i && op->call.op == RPC_OP_MKDIR)
            names_made_empty(op, i);
        if (i && (a.kept & RPC_FLAG_ALONE))
            behind_told_dir(i, &a);
    } else {
        if (executed)
            inode_expire(c, m->parent);
        names_drop(c, m->parent, m->name.data, m->name.len, false);
    }
    if (op->q)
        req_finish(op->q, status);
}

static struct mds_op *make_op(struct core *c, struct core_req *q, unsigned opcode, uint64_t parent,
                              const char *name, uint32_t len, uint32_t mode,
                              const struct msg_stripe *stripe)
{
    struct mds_op *op = mds_op_new(c, opcode, q, made);

    if (!op)
        return NULL;
    op->dirs[0] = parent;
    op->msg.create.parent = parent;
    op->msg.create.name = mds_op_bytes(op, name, len);
    op->msg.create.mode = mode;
    op->msg.create.masked = q->masked;
    mds_op_cred(op, &op->msg.create.cred, &q->cred);
    if (stripe) {
        op->msg.create.has_stripe = true;
        op->msg.create.stripe = *stripe;
        op->msg.create.stripe.pool = mds_op_bytes(op, stripe->pool.data, stripe->pool.len);
    }
    return op;
}

void core_mkdir(struct core *c, struct core_req *q, uint64_t parent, const char *name, uint32_t len,
                uint32_t mode, const struct msg_stripe *stripe)
{
    struct mds_op *op;

    req_begin(c, q, "mkdir", parent);
    if (!changing(c, q))
        return;
    op = make_op(c, q, RPC_OP_MKDIR, parent, name, len, (mode & 07777) | S_IFDIR, stripe);
    if (op) {
        op->msg.create.alone = behind_wishes(c, &q->cred);
        op->may_ahead = c->o.create_ahead && q->ahead && !stripe;
    }
    req_call(q, op, "waits for the metadata server: MKDIR");
}

void core_mknod(struct core *c, struct core_req *q, uint64_t parent, const char *name, uint32_t len,
                uint32_t mode, uint32_t rdev, const struct msg_stripe *stripe)
{
    struct mds_op *op;

    req_begin(c, q, "mknod", parent);
    if (!changing(c, q))
        return;
    op = make_op(c, q, RPC_OP_MKNOD, parent, name, len, mode, stripe);
    if (op) {
        op->msg.create.rdev = rdev;
        op->may_ahead = c->o.create_ahead && q->ahead && !stripe && S_ISREG(mode);
    }
    req_call(q, op, "waits for the metadata server: MKNOD");
}

void core_symlink(struct core *c, struct core_req *q, uint64_t parent, const char *name,
                  uint32_t len, const char *target, uint32_t target_len)
{
    struct mds_op *op;

    req_begin(c, q, "symlink", parent);
    if (!changing(c, q))
        return;
    op = make_op(c, q, RPC_OP_SYMLINK, parent, name, len, 0777 | S_IFLNK, NULL);
    if (op)
        op->msg.create.target = mds_op_bytes(op, target, target_len);
    req_call(q, op, "waits for the metadata server: SYMLINK");
}

static void linked(struct mds_op *op, int status)
{
    struct core *c = op->core;
    const struct msg_inode_rep *rep = op->call.rep;
    const struct msg_link_req *m = &op->msg.link;
    struct answer a = answer_of(op);
    bool believed, executed = !status;
    struct core_inode *i = executed ? inode_find(c, m->ino) : NULL;

    if (i)
        behind_end(i);
    if (executed)
        status = take_inode(op, op->q, &rep->inode);
    if (!status) {
        inode_take_dir(op, rep, m->new_parent);
        believed = names_changed(c, &a, RPC_FLAG_KEPT_DIR, m->new_parent, m->new_name.data,
                                 m->new_name.len, m->ino);
        if (op->q)
            op->q->entry.entry_valid_ns = core_name_valid_ns(c, believed);
    } else {
        if (executed)
            inode_expire(c, m->new_parent);
        names_drop(c, m->new_parent, m->new_name.data, m->new_name.len, false);
    }
    if (op->q)
        req_finish(op->q, status);
}

void core_link(struct core *c, struct core_req *q, uint64_t ino, uint64_t new_parent,
               const char *name, uint32_t len)
{
    struct mds_op *op;

    req_begin(c, q, "link", ino);
    if (!changing(c, q))
        return;
    op = mds_op_new(c, RPC_OP_LINK, q, linked);
    if (op) {
        op->dirs[0] = new_parent;
        op->msg.link.ino = ino;
        op->msg.link.new_parent = new_parent;
        op->msg.link.new_name = mds_op_bytes(op, name, len);
        mds_op_cred(op, &op->msg.link.cred, &q->cred);
    }
    req_call(q, op, "waits for the metadata server: LINK");
}

/* ---- removing and renaming ---- */

/* Of a caller who would be answered ahead: the next ones may be. */
static void removed_here(struct mds_op *op)
{
    struct core_inode *dir = inode_find(op->core, op->msg.name.parent);

    behind_executed(op);
    if (dir && op->unsure)
        prelist_removed(dir, &op->msg.name.cred, false);
}

/* We have changed a directory. Unknown here, it may be known by an answer from before, on its way:
 * such are not believed. */
static void changed_dir(struct core *c, struct core_inode *i)
{
    if (i)
        behind_end(i);
    else
        c->unknown_event = ++c->events_seen;
}

/* Who still stands in it makes nothing there, least of all ahead. */
static uint64_t removed_dir(struct core *c, uint64_t ino)
{
    changed_dir(c, inode_find(c, ino));
    return ino;
}

static void removed(struct mds_op *op, int status)
{
    struct core *c = op->core;
    const struct msg_name_req *m = &op->msg.name;
    const struct msg_inode_rep *rep = op->call.rep;
    const struct name_entry *e = names_get(c, m->parent, m->name.data, m->name.len);
    uint64_t victim = e ? e->ino : 0;
    struct answer a = answer_of(op);

    if (!status) {
        if (op->call.op == RPC_OP_RMDIR)
            victim = removed_dir(c, rep->inode.attr.ino ? rep->inode.attr.ino : victim);
        if (victim)
            inode_expire(c, victim);
        if (victim && op->call.op == RPC_OP_RMDIR && inode_find(c, victim))
            behind_dir_removed(inode_find(c, victim));
        inode_take_dir(op, rep, m->parent);
        if (op->call.op == RPC_OP_UNLINK && rep->inode.attr.ino)
            (void)take_inode(op, NULL, &rep->inode); /* its link count */
        if (op->may_ahead)
            removed_here(op);
        (void)names_changed(c, &a, RPC_FLAG_KEPT_DIR, m->parent, m->name.data, m->name.len, 0);
    } else {
        names_drop(c, m->parent, m->name.data, m->name.len, false);
    }
    if (op->q)
        req_finish(op->q, status);
}

static void remove_name(struct core *c, struct core_req *q, unsigned opcode, const char *what,
                        uint64_t parent, const char *name, uint32_t len)
{
    struct mds_op *op;

    req_begin(c, q, what, parent);
    if (!changing(c, q))
        return;
    op = mds_op_new(c, opcode, q, removed);
    if (op) {
        op->dirs[0] = parent;
        op->msg.name.parent = parent;
        op->msg.name.name = mds_op_bytes(op, name, len);
        mds_op_cred(op, &op->msg.name.cred, &q->cred);
        op->may_ahead = q->ahead;
    }
    req_call(q, op,
             opcode == RPC_OP_UNLINK ? "waits for the metadata server: UNLINK"
                                     : "waits for the metadata server: RMDIR");
}

void core_unlink(struct core *c, struct core_req *q, uint64_t parent, const char *name,
                 uint32_t len)
{
    remove_name(c, q, RPC_OP_UNLINK, "unlink", parent, name, len);
}

void core_rmdir(struct core *c, struct core_req *q, uint64_t parent, const char *name, uint32_t len)
{
    remove_name(c, q, RPC_OP_RMDIR, "rmdir", parent, name, len);
}

/* What has become of an inode that we have changed, if it is known here. */
static void take_attr(const struct mds_op *op, const struct msg_attr *a)
{
    const struct msg_rename_req *m = &op->msg.rename;
    struct core_inode *i = inode_find(op->core, a->ino);
    const bool stays = m->parent == m->new_parent && !S_ISDIR(a->mode);

    if (!stays && (i || S_ISDIR(a->mode)))
        changed_dir(op->core, i);
    if (i && i->attr_known)
        inode_merge_attr(i, a);
}

/* As removed_here(). */
static void renamed_here(struct mds_op *op)
{
    const struct msg_rename_req *m = &op->msg.rename;
    struct core_inode *dir = inode_find(op->core, m->parent);

    behind_executed(op);
    if (dir && op->unsure)
        prelist_removed(dir, &m->cred, false);
}

static void renamed(struct mds_op *op, int status)
{
    struct core *c = op->core;
    const struct msg_rename_req *m = &op->msg.rename;
    const struct msg_inode_rep *rep = op->call.rep;
    bool exchange = (m->flags & RENAME_EXCHANGE) != 0;
    uint64_t moved = status ? 0 : rep->inode.attr.ino;
    uint64_t victim = moved && rep->has_victim ? rep->victim.ino : 0;
    uint8_t to = m->parent == m->new_parent ? RPC_FLAG_KEPT_DIR : RPC_FLAG_KEPT_DIR2;
    struct answer a = answer_of(op);

    if (!status) {
        inode_take_dir(op, rep, m->parent);
        if (m->new_parent != m->parent)
            inode_take_dir(op, rep, m->new_parent);
    }
    if (moved) {
        take_attr(op, &rep->inode.attr);
        if (victim)
            take_attr(op, &rep->victim);
        (void)names_changed(c, &a, RPC_FLAG_KEPT_DIR, m->parent, m->name.data, m->name.len,
                            exchange ? victim : 0);
        (void)names_changed(c, &a, to, m->new_parent, m->new_name.data, m->new_name.len, moved);
        if (op->may_ahead)
            renamed_here(op);
    } else {
        names_drop(c, m->parent, m->name.data, m->name.len, false);
        names_drop(c, m->new_parent, m->new_name.data, m->new_name.len, false);
    }
    if (op->q)
        req_finish(op->q, status);
}

void core_rename(struct core *c, struct core_req *q, uint64_t parent, const char *name,
                 uint32_t len, uint64_t new_parent, const char *new_name, uint32_t new_len,
                 uint32_t flags)
{
    struct mds_op *op;

    req_begin(c, q, "rename", parent);
    if (!changing(c, q))
        return;
    op = mds_op_new(c, RPC_OP_RENAME, q, renamed);
    if (op) {
        op->dirs[0] = parent;
        op->dirs[1] = new_parent;
        op->msg.rename = (struct msg_rename_req){
            .parent = parent,
            .new_parent = new_parent,
            .name = mds_op_bytes(op, name, len),
            .new_name = mds_op_bytes(op, new_name, new_len),
            .flags = flags,
        };
        mds_op_cred(op, &op->msg.rename.cred, &q->cred);
        op->may_ahead = c->o.ahead && q->ahead && parent == new_parent &&
                        !(flags & ~(uint32_t)RENAME_NOREPLACE);
    }
    req_call(q, op, "waits for the metadata server: RENAME");
}
