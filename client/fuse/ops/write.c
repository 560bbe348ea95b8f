/* SPDX-License-Identifier: Apache-2.0 */
/* WRITE: one core_write(). What the kernel writes back from its cache is placed as it is. O_APPEND
 * counts as it is set now (fcntl(2), F_SETFL), not as it was when the file was opened. */
#include <fcntl.h>

#include "client/fuse/fs.h"

static void run_write(struct op *o)
{
    const struct channel_req *q = o->q;

    o->iov = (struct iovec){(void *)(uintptr_t)q->io.data, q->io.len};
    o->req.at_end = !q->io.from_cache && (q->io.flags & O_APPEND);
    o->req.in_place = !o->req.at_end;
    core_write_from(o->fs->core, &o->req, fs_file_of(q->io.fh)->file, q->io.offset, &o->iov,
                    q->room);
}

static void finish_write(struct op *o, int status)
{
    uint32_t bytes = o->req.out.write.bytes;

    if (status != 0)
        op_fail(o, status);
    else
        channel_reply_write(op_end(o, 0), bytes);
}

void op_write(struct channel_req *q)
{
    op_start_change(q, q->io.fh, q->node, q->io.kill_priv, run_write, finish_write);
}
