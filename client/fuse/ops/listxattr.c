/* SPDX-License-Identifier: Apache-2.0 */
/* LISTXATTR. */
#include "client/fuse/fs.h"

static void run(struct op *o)
{
    core_listxattr(o->fs->core, &o->req, fs_ino(o->fs, o->q->node));
}

static void finish(struct op *o, int status)
{
    struct msg_bytes names = o->req.out.bytes;

    if (status != 0)
        op_fail_inode(o, status);
    else
        channel_reply_xattr(op_end(o, 0), names.data, names.len);
}

void op_listxattr(struct channel_req *q)
{
    op_start(q, run, finish, false);
}
