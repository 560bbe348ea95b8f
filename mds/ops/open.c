/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OPEN. Without O_TRUNC the file does not change: once the session module has granted it, the
 * answer comes from the view, with the whole content of a small file. With O_TRUNC it is an entry
 * as any other change; so it is for writing, unless the store knows already that the session may be
 * writing this file.
 *
 * Failure modes: the errnos of open(2).
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "mds/ns/ns.h"
#include "mds/ops/exec.h"
#include "mds/ops/op.h"
#include "mds/session/exec.h"

int exec_open_trunc(struct txn *t, struct shard_entry *e, uint64_t ino, const struct msg_cred *cred)
{
    struct mds_inode *in;
    int rc = txn_inode_modify(t, ino, &in);

    if (rc == 0)
        rc = exec_resize(t, e, in, 0);
    if (rc < 0)
        return rc;
    if (!ns_is_root(cred))
        ns_kill_priv(in);
    ns_modified(in, txn_now(t));
    return exec_caps_drop(t, in);
}

int exec_open(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct msg_open_req *req = e->msg;
    const struct mds_inode *in;
    int rc = txn_inode_get(t, req->ino, &in);

    if (rc < 0)
        return rc;
    if (!S_ISREG(in->mode))
        return S_ISDIR(in->mode) ? -EISDIR : -EINVAL;
    rc = exec_acl(t, &in);
    if (rc == 0)
        rc = ns_may_open(in, &req->cred, req->flags);
    if (rc == 0 && e->refused)
        rc = -AIFS_ERETRY;
    /* Without a name it is the others' who have it open: the caller may have meant a name that is
     * gone, and refuse; if not it truncates by itself. */
    if (rc == 0 && (req->flags & O_TRUNC) && in->nlink > 0)
        rc = exec_open_trunc(t, e, req->ino, &req->cred);
    if (rc == 0)
        rc = exec_mark_writer(t, e, req->ino);
    return rc < 0 ? rc : exec_reply_inode(t, e, req->ino, true, ret_rep);
}

/* Attributes and content as they are now, for an answer that was kept without the content. */
int op_open_data(struct mds_op *o, struct msg_inode_rep *rep)
{
    struct msg_inode m = {.lease = rep->inode.lease, .lease_seq = rep->inode.lease_seq};
    struct mds_inode in;
    struct view v;
    int rc;

    view_begin(o->shard, &v);
    rc = view_inode(&v, rep->inode.attr.ino, &in);
    if (rc == 0) {
        op_fill_inode(&in, &m);
        if (S_ISREG(in.mode) && (in.flags & INODE_INLINE))
            rc = op_fill_data(&v, o->req, KEY_INLINE, &in, &m);
    }
    view_end(&v);
    if (rc == 0)
        rep->inode = m;
    return rc;
}

int op_open_reply(struct mds_op *o, struct msg_inode_rep *rep)
{
    const struct msg_open_req *req = o->req->msg;
    struct mds_inode in;
    struct view v;
    int rc;

    view_begin(o->shard, &v);
    rc = view_inode(&v, req->ino, &in);
    if (rc == 0)
        rc = op_acl(&v, &o->req->arena, &in);
    if (rc == 0)
        rc = ns_may_open(&in, &req->cred, req->flags);
    if (rc == 0 && !S_ISREG(in.mode) && !S_ISDIR(in.mode))
        rc = -ENXIO; /* pipes, sockets and devices are the client's own */
    if (rc == 0) {
        *rep = (struct msg_inode_rep){0};
        op_fill_inode(&in, &rep->inode);
        if (S_ISREG(in.mode) && (in.flags & INODE_INLINE))
            rc = op_fill_data(&v, o->req, KEY_INLINE, &in, &rep->inode);
    }
    view_end(&v);
    if (rc == 0 && S_ISREG(in.mode)) {
        const struct mds_touch *t;

        if (o->open_touch < 0) /* it has become readable, or a file, since it was resolved */
            return -AIFS_ERETRY;
        t = &o->prepare.touch[o->open_touch];
        rep->open_id = t->open_id;
        rep->inode.lease = t->lease;
        rep->inode.lease_seq = t->lease_seq;
    }
    return rc;
}
