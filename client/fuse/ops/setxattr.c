/* SPDX-License-Identifier: Apache-2.0 */
/* SETXATTR. POSIX ACLs are not supported: tools then fall back to chmod(2). */
#include <errno.h>
#include <string.h>

#include "client/fuse/fs.h"

static void run(struct op *o)
{
    const struct channel_req *q = o->q;

    core_setxattr(o->fs->core, &o->req, fs_ino(o->fs, q->node), q->xattr.name,
                  (uint32_t)strlen(q->xattr.name), q->xattr.value, q->xattr.size, q->xattr.flags);
}

void op_setxattr(struct channel_req *q)
{
    if (fs_xattr_is_acl(q->xattr.name))
        channel_reply_err(q, -EOPNOTSUPP);
    else
        op_start(q, run, op_reply_status, false);
}
