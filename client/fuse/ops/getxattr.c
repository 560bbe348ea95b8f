/* SPDX-License-Identifier: Apache-2.0 */
/* GETXATTR. The kernel asks for POSIX ACLs whenever it checks group permissions, and takes any
 * error but ENODATA for a failed check. */
#include <string.h>

#include "client/fuse/fs.h"

static void run(struct op *o)
{
    const char *name = o->q->xattr.name;

    core_getxattr(o->fs->core, &o->req, fs_ino(o->fs, o->q->node), name, (uint32_t)strlen(name));
}

static void finish(struct op *o, int status)
{
    struct msg_bytes value = o->req.out.bytes;

    if (status != 0)
        op_fail_inode(o, status);
    else
        channel_reply_xattr(op_end(o, 0), value.data, value.len);
}

void op_getxattr(struct channel_req *q)
{
    op_start(q, run, finish, false);
}
