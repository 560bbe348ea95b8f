/* SPDX-License-Identifier: Apache-2.0 */
/* LSEEK: SEEK_DATA and SEEK_HOLE; the kernel does the others itself. */
#include "client/fuse/fs.h"

static void run(struct op *o)
{
    const struct channel_req *q = o->q;

    core_seek(o->fs->core, &o->req, fs_file_of(q->range.fh)->file, q->range.offset, q->range.hole);
}

static void finish(struct op *o, int status)
{
    uint64_t offset = o->req.out.offset;

    if (status != 0)
        op_fail(o, status);
    else
        channel_reply_offset(op_end(o, 0), offset);
}

void op_lseek(struct channel_req *q)
{
    op_start(q, run, finish, false);
}
