/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the channel on libfuse: session (channel_libfuse.c), requests (channel_decode.c),
 * locks (channel_locks.c) and ranges (channel_ranges.c). */
#ifndef AIFS_CLIENT_FUSE_LIBFUSE_INT_H
#define AIFS_CLIENT_FUSE_LIBFUSE_INT_H

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include "client/fuse/channel_int.h"

extern const struct fuse_lowlevel_ops channel_libfuse_ops;

/* A new request; NULL: out of memory, answered. */
struct channel_req *libfuse_req_begin(fuse_req_t raw, enum channel_op op, fuse_ino_t node);
void channel_on_getlk(fuse_req_t raw, fuse_ino_t node, struct fuse_file_info *fi, struct flock *f);
void channel_on_setlk(fuse_req_t raw, fuse_ino_t node, struct fuse_file_info *fi, struct flock *f,
                      int sleep);
void channel_on_flock(fuse_req_t raw, fuse_ino_t node, struct fuse_file_info *fi, int op);
void channel_on_fallocate(fuse_req_t raw, fuse_ino_t node, int mode, off_t offset, off_t len,
                          struct fuse_file_info *fi);
void channel_on_lseek(fuse_req_t raw, fuse_ino_t node, off_t offset, int whence,
                      struct fuse_file_info *fi);
void channel_on_copy_file_range(fuse_req_t raw, fuse_ino_t node, off_t offset,
                                struct fuse_file_info *fi, fuse_ino_t to, off_t to_offset,
                                struct fuse_file_info *to_fi, size_t len, int flags);
void libfuse_on_interrupt(struct channel_req *q);

#endif
