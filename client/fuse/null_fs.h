/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file system in memory, served through the channel from one reactor: the limit that FUSE itself
 * sets (aifs-bench limits), and the file system that the channel's tests run on. Names and
 * attributes are real; file data is kept up to keep_bytes per file and beyond that forgotten, reads
 * of it answer with a pattern. Files named "big0" to "big63" exist in the root and have 64 GiB.
 */
#ifndef AIFS_CLIENT_FUSE_NULL_FS_H
#define AIFS_CLIENT_FUSE_NULL_FS_H

#include "client/fuse/channel.h"

struct null_fs;

/* Somebody else who has the data: the limit of FUSE and of what fetches the bytes together. Called
 * on the reactor. */
struct null_fs_remote {
    int (*start)(struct reactor *reactor, void *arg); /* before the mount; -errno */
    void (*stop)(void *arg); /* after it, if it has started; may run the reactor once more */
    void (*read)(struct channel_req *q, uint32_t len, void *arg); /* replies with len bytes */
    void (*write)(struct channel_req *q, void *arg);              /* replies */
    void *arg;
};

struct null_fs_options {
    enum channel_kind channel;
    uint64_t timeout_ns; /* attributes and names are believed by the kernel for so long */
    uint64_t keep_bytes; /* of each file; 0: no data is kept */
    bool direct;         /* no page cache in any open */
    bool writers_direct; /* none for who only writes, as in a mount of aifs (ops/open.c) */
    const struct null_fs_remote *remote; /* NULL: reads and writes are answered here */
    unsigned rooms; /* buffers for the data of large writes, as a file system has that keeps them */
    bool hold_reads; /* leave every READ unanswered until it is interrupted (for tests) */
};

int null_fs_create(const struct null_fs_options *options, struct null_fs **ret_fs) MUST_USE;
void null_fs_destroy(struct null_fs *fs);
extern const struct channel_ops null_fs_ops; /* user: the struct null_fs */

/* Reactor, channel and file system in the calling process, until it is unmounted; ready (may be
 * NULL) is called once the kernel has connected. -errno when it cannot be mounted, text in err. */
int null_fs_serve(const char *mountpoint, const struct null_fs_options *options,
                  void (*ready)(void *arg), void *arg, char *err, size_t err_len) MUST_USE;

#endif
