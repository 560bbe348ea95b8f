/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a metadata server: "shard<N>" per shard, "lock", "node". Making a shard is atomic:
 * it is complete under its name, or there is nothing under it. */
#ifndef AIFS_MDS_SHARD_FORMAT_H
#define AIFS_MDS_SHARD_FORMAT_H

#include "mds/shard/shard.h"

/* "DIR/shard<id>"; NULL: out of memory. Freed with mem_free(). */
char *shard_path(const char *dir, uint32_t id) MUST_USE;
/* Makes DIR and the shard in it. -EEXIST: there is one; -ENOTEMPTY: DIR holds something else. */
int shard_make(const char *dir, uint32_t id, const struct shard_format *f,
               shard_exec_fn *const *exec) MUST_USE;
/* Locks DIR against other processes until the descriptor is closed; -EBUSY: somebody has it
 * (logged, with the process). */
int shard_dir_lock(const char *dir, int *ret_fd) MUST_USE;
/* The server's own identity, made with its first shard. */
int shard_dir_node(const char *dir, struct uuid *ret_node) MUST_USE;

#endif
