/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SETATTR, and OPEN with O_TRUNC: attributes and size of one inode.
 *
 * Happy path: the rules allow it (ns/setattr.c), the size goes with its data, times follow.
 * Failure modes: the errnos of chmod(2), chown(2), utimensat(2), truncate(2); RETRY while a larger
 * size must wait for a cut.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "mds/ns/ns.h"
#include "mds/ops/exec.h"

int exec_setattr(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct msg_setattr_req *req = e->msg;
    struct mds_inode *in;
    int rc = txn_inode_modify(t, req->ino, &in);

    if (rc == 0)
        rc = ns_setattr_check(in, req);
    if (rc == 0 && (req->set & MSG_SET_SIZE))
        rc = exec_resize(t, e, in, req->size);
    if (rc < 0)
        return rc;
    ns_setattr_apply(in, req, txn_now(t));
    return exec_reply_inode(t, e, req->ino, false, ret_rep);
}

int exec_open(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct msg_open_req *req = e->msg;
    struct mds_inode *in;
    int rc = txn_inode_modify(t, req->ino, &in);

    if (rc < 0)
        return rc;
    if (!S_ISREG(in->mode))
        return S_ISDIR(in->mode) ? -EISDIR : -EINVAL;
    rc = ns_may_open(in, &req->cred, req->flags);
    if (rc == 0 && (req->flags & O_TRUNC)) {
        rc = exec_resize(t, e, in, 0);
        if (!ns_is_root(&req->cred))
            ns_kill_priv(in);
        ns_modified(in, txn_now(t));
    }
    return rc < 0 ? rc : exec_reply_inode(t, e, req->ino, true, ret_rep);
}
