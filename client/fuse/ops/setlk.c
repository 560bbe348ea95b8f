/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SETLK: fcntl(2) and flock(2), setting and releasing. A lock that has to wait keeps the request
 * open, and nothing else: a signal ends it at once.
 */
#include "client/fuse/fs.h"

static void run(struct op *o)
{
    const struct channel_req *q = o->q;

    core_lock(o->fs->core, &o->req, fs_file_of(q->lock.fh)->file, &q->lock.lock, q->lock.wait);
}

void op_setlk(struct channel_req *q)
{
    op_start(q, run, op_reply_status, false);
}
