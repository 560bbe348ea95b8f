/* SPDX-License-Identifier: Apache-2.0 */
/* READLINK. */
#include "client/fuse/fs.h"

static void run(struct op *o)
{
    const struct fs_raced *r = fs_raced_find(o->fs, o->q);

    if (r && r->link && r->link == fs_ino(o->fs, o->q->node)) {
        o->req.out.bytes = r->target;
        o->req.done(&o->req, 0);
        return;
    }
    core_readlink(o->fs->core, &o->req, fs_ino(o->fs, o->q->node));
}

static void finish(struct op *o, int status)
{
    struct msg_bytes target = o->req.out.bytes;

    if (status != 0)
        op_fail_inode(o, status);
    else
        channel_reply_readlink(op_end(o, 0), target.data, target.len);
}

void op_readlink(struct channel_req *q)
{
    op_start(q, run, finish, false);
}
