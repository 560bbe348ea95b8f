/* SPDX-License-Identifier: Apache-2.0 */
/* FALLOCATE. The kernel has written back what it had of the range, and forgets it afterwards. */
#include "client/fuse/fs.h"

static void run(struct op *o)
{
    const struct channel_req *q = o->q;

    core_fallocate(o->fs->core, &o->req, fs_file_of(q->range.fh)->file, (int)q->range.mode,
                   q->range.offset, q->range.len);
}

void op_fallocate(struct channel_req *q)
{
    op_start_change(q, q->range.fh, q->node, q->uid != 0, run, op_reply_status);
}
