/* SPDX-License-Identifier: Apache-2.0 */
/* FSYNC of a directory: every acknowledged change is durable already, the server confirms it. */
#include "client/fuse/fs.h"

static void run(struct op *o)
{
    const struct channel_req *q = o->q;

    core_fsync_ino(o->fs->core, &o->req, fs_ino(o->fs, q->node));
}

void op_fsyncdir(struct channel_req *q)
{
    op_start(q, run, op_reply_status, false);
}
