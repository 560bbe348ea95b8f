/* SPDX-License-Identifier: Apache-2.0 */
/* GETATTR. */
#include "client/fuse/fs.h"

static void run(struct op *o)
{
    core_getattr(o->fs->core, &o->req, fs_ino(o->fs, o->q->node));
}

static void finish(struct op *o, int status)
{
    struct core_entry e = o->req.entry;

    if (status != 0)
        op_fail_inode(o, status);
    else
        channel_reply_attr(op_end(o, 0), &e.attr, e.attr_valid_ns);
}

void op_getattr(struct channel_req *q)
{
    op_start(q, run, finish, false);
}
