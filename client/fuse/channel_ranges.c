/* SPDX-License-Identifier: Apache-2.0 */
/* FALLOCATE, LSEEK and COPY_FILE_RANGE, from libfuse's callbacks to requests. What is no range of a
 * file is refused here. */
#include <errno.h>
#include <unistd.h>

#include "client/fuse/libfuse_int.h"

void channel_on_fallocate(fuse_req_t raw, fuse_ino_t node, int mode, off_t offset, off_t len,
                          struct fuse_file_info *fi)
{
    struct channel_req *q = libfuse_req_begin(raw, CHANNEL_FALLOCATE, node);

    if (!q)
        return;
    q->range.fh = fi->fh;
    q->range.mode = (uint32_t)mode;
    q->range.offset = (uint64_t)offset;
    q->range.len = (uint64_t)len;
    if (offset < 0 || len <= 0)
        channel_reply_err(q, -EINVAL);
    else
        channel_req_run(q);
}

void channel_on_lseek(fuse_req_t raw, fuse_ino_t node, off_t offset, int whence,
                      struct fuse_file_info *fi)
{
    struct channel_req *q = libfuse_req_begin(raw, CHANNEL_LSEEK, node);

    if (!q)
        return;
    q->range.fh = fi->fh;
    q->range.offset = (uint64_t)offset;
    q->range.hole = whence == SEEK_HOLE;
    if (whence != SEEK_HOLE && whence != SEEK_DATA)
        channel_reply_err(q, -EINVAL);
    else if (offset < 0)
        channel_reply_err(q, -ENXIO);
    else
        channel_req_run(q);
}

void channel_on_copy_file_range(fuse_req_t raw, fuse_ino_t node, off_t offset,
                                struct fuse_file_info *fi, fuse_ino_t to, off_t to_offset,
                                struct fuse_file_info *to_fi, size_t len, int flags)
{
    struct channel_req *q = libfuse_req_begin(raw, CHANNEL_COPY_FILE_RANGE, node);

    if (!q)
        return;
    q->transfer.fh = fi->fh;
    q->transfer.offset = (uint64_t)offset;
    q->transfer.to_node = to;
    q->transfer.to_fh = to_fi->fh;
    q->transfer.to_offset = (uint64_t)to_offset;
    q->transfer.len = len;
    if (offset < 0 || to_offset < 0 || flags)
        channel_reply_err(q, -EINVAL);
    else
        channel_req_run(q);
}
