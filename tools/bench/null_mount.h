/* SPDX-License-Identifier: Apache-2.0 */
/* The null file system, mounted by a process of its own; its data answered there, or by raw RPC
 * from one more process. */
#ifndef AIFS_TOOLS_BENCH_NULL_MOUNT_H
#define AIFS_TOOLS_BENCH_NULL_MOUNT_H

#include <stdbool.h>
#include <sys/types.h>

#include "client/fuse/null_fs.h"

#define NULL_MOUNT_NO_RPC (~0u)

struct null_mount {
    char dir[4096];
    pid_t pid, server; /* server 0: none */
    int until;         /* closed: the server ends */
    bool own_dir;      /* made here */
    struct rpc_null *rpc;
};
/* On a directory that is there. want: enum net_want, or NULL_MOUNT_NO_RPC; o->remote is not read.
 * false where it cannot be, after saying so. */
bool null_mount_on(struct null_mount *m, const char *dir, const struct null_fs_options *o,
                   unsigned want) MUST_USE;
/* On a new one, by this kind of channel. cached: the kernel's page cache is used. */
bool null_mount_start(struct null_mount *m, enum channel_kind kind, bool cached,
                      unsigned want) MUST_USE;
/* Who still uses it is left with errors. */
void null_mount_stop(struct null_mount *m);

#endif
