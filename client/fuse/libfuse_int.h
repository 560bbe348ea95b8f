/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the channel on libfuse: session (channel_libfuse.c), requests (channel_decode.c) and
 * locks (channel_locks.c). */
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
void libfuse_on_interrupt(struct channel_req *q);

#endif
