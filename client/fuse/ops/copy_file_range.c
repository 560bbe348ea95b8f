/* SPDX-License-Identifier: Apache-2.0 */
/* COPY_FILE_RANGE between two files of this mount. Whoever called it asks for the rest of a short
 * one. */
#include "client/fuse/fs.h"

static void run(struct op *o)
{
    const struct channel_req *q = o->q;

    core_copy(o->fs->core, &o->req, fs_file_of(q->transfer.fh)->file, q->transfer.offset,
              fs_file_of(q->transfer.to_fh)->file, q->transfer.to_offset, q->transfer.len);
}

static void finish(struct op *o, int status)
{
    uint32_t bytes = (uint32_t)o->req.out.copied; /* of at most some MiB */

    if (status != 0)
        op_fail(o, status);
    else
        channel_reply_write(op_end(o, 0), bytes);
}

void op_copy_file_range(struct channel_req *q)
{
    op_start_change(q, q->transfer.to_fh, q->transfer.to_node, q->uid != 0, run, finish);
}
