/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SETATTR: attributes and size of one inode.
 *
 * Happy path: the rules allow it (ns/setattr.c), the size goes with its data, times follow.
 * Failure modes: the errnos of chmod(2), chown(2), utimensat(2), truncate(2); RETRY while a larger
 * size must wait for a cut.
 */
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
