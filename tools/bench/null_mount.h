/* SPDX-License-Identifier: Apache-2.0 */
/* The null file system, mounted on a new directory by a process of its own; its data answered
 * there, or by raw RPC from one more process. */
#ifndef AIFS_TOOLS_BENCH_NULL_MOUNT_H
#define AIFS_TOOLS_BENCH_NULL_MOUNT_H

#include <stdbool.h>
#include <sys/types.h>

#include "client/fuse/channel.h"

#define NULL_MOUNT_NO_RPC (~0u)

struct null_mount {
    char dir[4096];
    pid_t pid, server; /* server 0: none */
    int until;         /* closed: the server ends */
    struct rpc_null *rpc;
};
/* By this kind of channel. cached: the kernel's page cache is used. want: enum net_want, or
 * NULL_MOUNT_NO_RPC. false where it cannot be, after saying so. */
bool null_mount_start(struct null_mount *m, enum channel_kind kind, bool cached,
                      unsigned want) MUST_USE;
void null_mount_stop(struct null_mount *m);

#endif
