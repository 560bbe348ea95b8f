/* SPDX-License-Identifier: Apache-2.0 */
/* FSYNC and FDATASYNC. */
#include "client/fuse/fs.h"

static void run(struct op *o)
{
    const struct channel_req *q = o->q;

    core_fsync(o->fs->core, &o->req, fs_file_of(q->file.fh)->file, q->file.datasync);
}

void op_fsync(struct channel_req *q)
{
    op_start(q, run, op_reply_status, false);
}
