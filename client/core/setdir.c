/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is set on a directory that this client has made ahead: mode, owner and times; see since.c
 * and ADR 0018.
 *
 * Happy path: tar and cp -a set times, owner and mode of a directory behind the last file in it,
 * one after the other. The attributes change here, the request is over, and its op, a SETATTR, is
 * held back for a moment for what else may be set; it leaves when all that was under way in the
 * directory has been answered, because that would change the times again. Until it is answered it
 * counts as under way in the directory: whatever asks for that, or looks a name up in it, waits.
 *
 * Only what the server would allow is taken, and only where nobody else can tell. Failure: the
 * session is lost or the store fails: it is logged, the directory is looked at afresh, and its next
 * fsync fails.
 */
#include "client/core/core_int.h"

#define COUNTED 2u /* in the directory, for it: as what is changed, and where */

static void refused(struct core_inode *dir, int status)
{
    LOG_ERROR("client", "what was set on directory %llu is not so after all: %s",
              (unsigned long long)dir->ino, err_text(status));
    dir->core->stats.sets_refused++;
    behind_end(dir);
    behind_mistaken(dir);
    if (status != -ENOENT) /* else it was not made either, and that has been told */
        behind_keep_error(dir, status);
}

static void took_place(struct mds_op *op, struct core_inode *dir)
{
    const struct msg_inode_rep *rep = op->call.rep;
    struct msg_attr foreseen = dir->attr;
    struct answer a = answer_of(op);

    inode_merge_attr(dir, &rep->inode.attr);
    inode_keep(dir, &a, RPC_FLAG_KEPT_INODE, &rep->inode.attr);
    if (!(a.kept & RPC_FLAG_KEPT_INODE)) { /* an answer told again: nobody tells us of changes */
        behind_end(dir);
        inode_expire(op->core, dir->ino);
    }
    behind_compare(dir, &foreseen);
}

static void answered(struct mds_op *op, int status)
{
    struct core *c = op->core;
    struct core_inode *dir = inode_find(c, op->n1);
    const struct msg_inode_rep *rep = op->call.rep;

    if (!status && rep->inode.attr.ino != dir->ino)
        status = -AIFS_EPROTO;
    dir->behind.setting = NULL;
    behind_answered(dir, dir);
    if (status)
        refused(dir, status);
    else
        took_place(op, dir);
    behind_over(c, dir, dir);
}

/* ---- on its way ---- */

void setdir_step(struct core_inode *dir)
{
    struct mds_op *op = dir->behind.setting;

    if (!op || op->held || op->loaded || dir->behind.n != COUNTED || dir->behind.coming)
        return;
    op->loaded = true;
    mds_op_go(op);
}

void setdir_go(struct mds_op *op)
{
    setdir_step(inode_find(op->core, op->n1));
}

/* ---- one change ---- */

static bool fits(const struct core_inode *i, const struct core_req *q,
                 const struct msg_setattr_req *m)
{
    const struct core *c = i->core;
    const struct behind_inode *b = &i->behind;

    return c->o.create_ahead && !c->forced && c->state == CORE_MOUNTED && session_believed(c) &&
           c->session.id && creating_known(c) && b->own && b->rules_known && inode_attr_fresh(i) &&
           i->attr.nlink && !(i->attr.flags & (MSG_ATTR_ACL | MSG_ATTR_DEFAULT_ACL)) && !b->error &&
           !b->leaving && !b->last && list_empty(&b->waiters) && list_empty(&c->behind.all) &&
           behind_removes(c, &q->cred) && since_allows(i, q, m);
}

/* It has not left, and is of the same caller. */
static bool takes_more(const struct mds_op *op, const struct core_req *q)
{
    const struct msg_cred *by = &op->msg.setattr.cred;

    return !op->sent && !op->attempt && op->slot < 0 && op->only_epoch == op->core->session.epoch &&
           by->uid == q->cred.uid && by->gid == q->cred.gid;
}

static struct mds_op *begin(struct core_inode *i, const struct core_req *q)
{
    struct core *c = i->core;
    struct mds_op *op =
        c->behind.n < c->behind.max ? mds_op_new(c, RPC_OP_SETATTR, NULL, answered) : NULL;

    if (!op)
        return NULL;
    mds_op_cred(op, &op->msg.setattr.cred, &q->cred);
    if (op->failed || behind_changes_now(op, i->ino, i->ino)) {
        mds_op_drop(op);
        return NULL;
    }
    op->msg.setattr.ino = i->ino;
    behind_begin(op, i, i);
    i->behind.setting = op;
    i->attr.change++;
    relist_forget(c, 0);
    if (!c->behind.urged)
        behind_hold(op);
    return op;
}

static void put_in(struct msg_setattr_req *m, const struct msg_attr *a, uint32_t set)
{
    struct msg_set_since s = {.set = m->set};

    since_add(&s, a, set);
    m->set = s.set;
    m->mode = s.mode;
    m->uid = s.uid;
    m->gid = s.gid;
    m->atime = s.atime;
    m->mtime = s.mtime;
    m->when_ns = s.when_ns;
}

bool setdir_try(struct core_inode *i, struct core_req *q, const struct msg_setattr_req *m)
{
    struct mds_op *op = i->behind.setting;

    if (!i->behind.born || !fits(i, q, m) || (op && !takes_more(op, q)))
        return false;
    op = op ? op : begin(i, q);
    if (!op)
        return false;
    since_set_here(i, m, time_later(core_now(i->core), i->attr.ctime));
    put_in(&op->msg.setattr, &i->attr, m->set);
    i->core->stats.set_ahead++;
    inode_entry(i, &q->entry);
    req_end(q, 0);
    setdir_step(i);
    return true;
}
