/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Committed state for readers on any thread. What a view shows is the state after some batch, all
 * of it; what has been answered is in every view begun afterwards.
 *
 * Two kinds. A point view (view_begin .. view_end) reads through the shard's cache of committed
 * records and holds back the publication of the next batch: keep it for a few lookups, never over a
 * callback. A scan view (view_pin .. view_unpin) holds a snapshot: for directory pages and
 * everything long; it delays nobody. Functions with a struct view * take either. Errors: -ENOENT,
 * -ENOMEM, -EIO, -AIFS_ECORRUPT, -AIFS_EFORMAT.
 */
#ifndef AIFS_MDS_SHARD_VIEW_H
#define AIFS_MDS_SHARD_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/compiler.h"
#include "common/base/mem.h"
#include "mds/store/key_fmt.h"
#include "mds/store/rec.h"
#include "mds/store/store.h"

struct shard;
struct shard_snapshot;

struct view {
    struct shard *shard;
    struct shard_snapshot *snapshot; /* borrowed by a point view, counted by a scan view */
    bool pinned;
};

void view_begin(struct shard *s, struct view *v);
void view_end(struct view *v);
void view_pin(struct shard *s, struct view *v);
void view_unpin(struct view *v);

int view_inode(struct view *v, uint64_t ino, struct mds_inode *ret_inode) MUST_USE;
int view_dirent(struct view *v, uint64_t parent, const void *name, uint32_t name_len,
                struct mds_dirent *ret_dirent) MUST_USE;
/* The same, if the cache has it: what it does not have may exist all the same. */
bool view_dirent_cached(struct view *v, uint64_t parent, const void *name, uint32_t name_len,
                        struct mds_dirent *ret_dirent);
/* Any record, copied into the arena. */
int view_record(struct view *v, const struct key *k, struct arena *a, const void **ret_value,
                uint32_t *ret_len) MUST_USE;
/* The parent of a directory; 0 for the root's. */
int view_parent(struct view *v, uint64_t ino, uint64_t *ret_parent) MUST_USE;
uint64_t view_counter(struct view *v, enum key_counter c); /* 0 when absent */

/* Records by prefix in key order, from the first key >= from (NULL: from the start), until fn
 * returns nonzero (1: stop, else an error, returned). Scan views only. */
typedef int view_scan_fn(void *arg, const void *key, size_t key_len, const void *value,
                         size_t value_len);
int view_scan(struct view *v, const struct key *prefix, const struct key *from, view_scan_fn *fn,
              void *arg) MUST_USE;
/* Names of a directory from what the writer has in memory, as overlay_list() (overlay.h), under its
 * lock, for which nobody waits: fn does not block. What it tells is the newest committed state,
 * which may be newer than the view. -ENOENT: ask the store. */
typedef int view_name_fn(void *arg, uint64_t hash, const struct mds_dirent *d, const void *name,
                         uint32_t name_len);
int view_names(struct view *v, uint64_t dir, uint64_t from_hash, uint32_t wanted, view_name_fn *fn,
               void *arg) MUST_USE;
/* Several inodes at once: sorted by number is fastest. ret_found[i]: it exists. */
int view_inodes(struct view *v, uint32_t n, const uint64_t *inos, struct mds_inode *ret_inodes,
                bool *ret_found) MUST_USE;

#endif
