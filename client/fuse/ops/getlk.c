/* SPDX-License-Identifier: Apache-2.0 */
/* GETLK: which record lock would be in the way? */
#include "client/fuse/fs.h"

static void run(struct op *o)
{
    const struct channel_req *q = o->q;

    core_lock_test(o->fs->core, &o->req, fs_file_of(q->lock.fh)->file, &q->lock.lock);
}

static void finish(struct op *o, int status)
{
    struct msg_lock l = o->req.out.lock;

    if (status != 0)
        op_fail(o, status);
    else
        channel_reply_lock(op_end(o, 0), &l);
}

void op_getlk(struct channel_req *q)
{
    op_start(q, run, finish, false);
}
