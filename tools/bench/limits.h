/* SPDX-License-Identifier: Apache-2.0 */
/* What `limits` is put together from: each function adds its rows; 0, or 1 after printing. */
#ifndef AIFS_TOOLS_BENCH_LIMITS_H
#define AIFS_TOOLS_BENCH_LIMITS_H

#include "client/fuse/channel.h"
#include "tools/bench/bench.h"

int limit_memory(struct bench *b, double seconds);                  /* copies and checksums */
int limit_target(struct bench *b, const char *dir, double seconds); /* a file through checksums */
/* The null file system, mounted for as long as it is measured. Where FUSE cannot be mounted: says
 * so, adds nothing, 0. */
int limit_null_fuse(struct bench *b, enum channel_kind kind, double seconds);
/* Past the page cache, with the data behind raw RPC: rows "fuse-rpc-<net>...." */
int limit_rpc_fuse(struct bench *b, enum channel_kind kind, unsigned want, const char *net,
                   double seconds);
/* The same measurements on any mount, with the rows of limit_null_fuse() as limits if there. */
int limit_mount(struct bench *b, const char *dir, double seconds);

#endif
