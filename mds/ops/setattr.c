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

/* Whoever changes these takes the capabilities of a program away. */
#define CAPS_GO (MSG_SET_SIZE | MSG_SET_UID | MSG_SET_GID | MSG_SET_KILL_PRIV)

int exec_setattr(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct msg_setattr_req *req = e->msg;
    const struct mds_inode *seen;
    struct mds_inode *in;
    int64_t now;
    int rc = txn_inode_modify(t, req->ino, &in);

    seen = in;
    if (rc == 0)
        rc = exec_acl(t, &seen);
    if (rc == 0)
        rc = ns_setattr_check(seen, req);
    if (rc == 0 && e->refused)
        rc = -AIFS_ERETRY;
    if (rc == 0 && (req->set & MSG_SET_SIZE))
        rc = exec_resize(t, e, in, req->size);
    if (rc == 0 && (req->set & CAPS_GO))
        rc = exec_caps_drop(t, in);
    if (rc < 0)
        return rc;
    now = exec_when(e, req->when_ns);
    ns_setattr_apply(
        in, req, (struct msg_time){now / (int64_t)NS_PER_S, (uint32_t)(now % (int64_t)NS_PER_S)});
    return exec_reply_inode(t, e, req->ino, false, ret_rep);
}
