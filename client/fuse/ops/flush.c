/* SPDX-License-Identifier: Apache-2.0 */
/* FLUSH: close(2). Writes back what is dirty, and reports errors of earlier writes. */
#include "client/fuse/fs.h"

static void run(struct op *o)
{
    const struct channel_req *q = o->q;

    core_flush(o->fs->core, &o->req, fs_file_of(q->file.fh)->file);
}

void op_flush(struct channel_req *q)
{
    op_start(q, run, op_reply_status, false);
}
