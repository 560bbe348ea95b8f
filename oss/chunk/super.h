/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The superblock of a target: the text file `target` in its directory, and the lock file `lock`
 * that keeps two servers apart. Replaced as a whole (common/base/file.h). Blocking; at start and
 * when the cluster gives the target its number.
 */
#ifndef AIFS_OSS_CHUNK_SUPER_H
#define AIFS_OSS_CHUNK_SUPER_H

#include <stdint.h>

#include "common/base/compiler.h"
#include "common/base/ids.h"

#define SUPER_POOL_BYTES     64
#define SUPER_FORMAT_VERSION 1u

struct super {
    struct uuid target, cluster, node;
    uint32_t target_id;          /* 0: the cluster has not numbered it yet */
    char pool[SUPER_POOL_BYTES]; /* wanted when it is new */
};

/*
 * Reads and checks dir/target. -ENOENT: not formatted. -AIFS_EFORMAT: a format this program does
 * not know; -AIFS_ECORRUPT. err gets a sentence.
 */
int super_load(const char *dir, struct super *ret_super, char *err, size_t err_len) MUST_USE;
int super_save(const char *dir, const struct super *s) MUST_USE;
/* The same in a directory that is open, wherever it is by now; dir is for the log. */
int super_save_at(int dir_fd, const char *dir, const struct super *s) MUST_USE;
/*
 * May dir become a target? It is there, a directory, writable and empty. -ENOENT: it is not there,
 * and is not made: it may have been mistyped, or be on a disk that is not mounted. -ENOTEMPTY:
 * there is something else in it. -EEXIST: it is a target already. -EINVAL: pool is no name of one.
 * err gets a sentence.
 */
int super_check_new(const char *dir, const char *pool, char *err, size_t err_len) MUST_USE;
/* Makes dir, for which super_check_new() holds, a target: seg/, index/ and the superblock. */
int super_format(const char *dir, const struct uuid *cluster, const struct uuid *node,
                 const char *pool, char *err, size_t err_len) MUST_USE;
/* Takes the lock file; -EBUSY when another process has it. Released by closing the descriptor. */
int super_lock(const char *dir, int *ret_fd) MUST_USE;

#endif
