/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open files of a session that is lost.
 *
 * Happy path: each is opened again in the next session, by its inode, and goes on under that open
 * when all of its inode that are open here are. Before, nobody has used a lease that has come with
 * the first of them: it is given back at once (lease.c). Else two clients could wait for each
 * other's, each with requests that wait for the second.
 *
 * Failure: what cannot be opened again, or has lost locks, gets EIO for its requests.
 */
#include "client/core/core_int.h"

void file_counts_closed(struct core_file *f, bool closed)
{
    f->inode->n_closed += closed;
    f->inode->n_closed -= f->closed;
    f->closed = closed;
}

static void reopened(struct mds_op *op, int status)
{
    struct core *c = op->core;
    const struct msg_inode_rep *rep = op->call.rep;
    struct core_file *f = NULL;
    struct list *l;

    list_for_each (l, &c->files) {
        if (l == (struct list *)(uintptr_t)op->n1)
            f = list_entry(l, struct core_file, all);
    }
    if (!f || f->inode != op->inode || !f->reopening) {
        if (!status)
            file_close_later(c, op->inode->ino, rep->open_id);
        return;
    }
    f->reopening = false;
    if (op->generation != c->session.epoch ||
        session_is_over(status)) { /* that session is gone too */
        c->reopen_due = true;
        return;
    }
    if (status) {
        LOG_WARN("client", "inode %llu cannot be opened again: %s",
                 (unsigned long long)f->inode->ino, err_text(status));
        f->open_id = 0;
    } else {
        inode_merge(f->inode, &rep->inode, true);
        lease_reply(f->inode, op, &rep->inode);
        f->open_id = rep->open_id;
    }
    f->session_epoch = op->generation;
    file_counts_closed(f, false);
    inode_settle(f->inode);
    session_resume(c);
}

static void reopen(struct core *c, struct core_file *f)
{
    struct mds_op *op = mds_op_new(c, RPC_OP_OPEN, NULL, reopened);

    if (!op) {
        c->reopen_due = true; /* the tick tries again */
        return;
    }
    op->msg.open.ino = f->inode->ino;
    op->msg.open.flags = (uint32_t)f->flags & O_ACCMODE;
    mds_op_cred(op, &op->msg.open.cred, &f->cred);
    op->inode = inode_ref(f->inode);
    op->n1 = (uint64_t)(uintptr_t)&f->all;
    f->reopening = true;
    mds_op_start(op);
}

void files_reopen(struct core *c)
{
    struct list *l;

    c->reopen_due = false;
    list_for_each (l, &c->files) {
        struct core_file *f = list_entry(l, struct core_file, all);

        if (f->session_epoch == c->session.epoch || f->reopening || f->creating)
            continue;
        if (f->locks_lost) { /* others may have them by now: nothing goes through it any more */
            f->open_id = 0;
            f->session_epoch = c->session.epoch;
        }
        file_counts_closed(f, !f->released && !f->locks_lost);
        if (f->closed)
            reopen(c, f);
    }
}
