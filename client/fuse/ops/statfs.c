/* SPDX-License-Identifier: Apache-2.0 */
/* STATFS: size and free space, of the pool that new files of this directory go to. */
#include "client/fuse/fs.h"

static void run(struct op *o)
{
    core_statfs(o->fs->core, &o->req, fs_ino(o->fs, o->q->node));
}

static void finish(struct op *o, int status)
{
    struct msg_statfs_rep s = o->req.out.statfs;

    if (status != 0)
        op_fail(o, status);
    else
        channel_reply_statfs(op_end(o, 0), &s);
}

void op_statfs(struct channel_req *q)
{
    op_start(q, run, finish, false);
}
