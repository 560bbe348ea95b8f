/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The committed state as readers see it: a snapshot of the store and, in front of it, a cache of
 * decoded inodes and directory entries that always agrees with that snapshot.
 *
 * Point views hold `publish` for reading; the writer takes it for writing while it swaps the
 * snapshot and brings the cache up to date: both happen at once for every reader. Lock order:
 * publish, then one stripe.
 */
#ifndef AIFS_MDS_SHARD_VIEW_CACHE_H
#define AIFS_MDS_SHARD_VIEW_CACHE_H

#include <pthread.h>
#include <stdatomic.h>

#include "mds/shard/overlay.h"
#include "mds/shard/view.h"

#define VIEW_STRIPES 16

struct shard_snapshot {
    struct store_snapshot *snap;
    _Atomic uint32_t refs;
};

struct view_stripe {
    pthread_mutex_t lock;
    struct hmap map;
    struct list lru; /* most recently used last */
    uint64_t bytes;
} __attribute__((aligned(64)));

struct view_cache {
    struct store *store;
    pthread_rwlock_t publish;
    struct shard_snapshot *current;
    uint64_t stripe_limit_bytes;
    _Atomic uint64_t hits, misses;
    struct view_stripe stripes[VIEW_STRIPES];
};

int view_cache_init(struct view_cache *c, struct store *s, uint64_t limit_bytes) MUST_USE;
void view_cache_fini(struct view_cache *c); /* no view in use */
/* The dirty objects of v have been committed: readers see them from now on. -ENOMEM: readers would
 * see old state; the shard must stop. */
int view_cache_publish(struct view_cache *c, struct overlay *v) MUST_USE;

/* With publish held for reading (get, and set after a miss: what the current snapshot says). NULL:
 * gone. */
bool view_cache_get_inode(struct view_cache *c, uint64_t ino, struct mds_inode *ret);
bool view_cache_get_dirent(struct view_cache *c, uint64_t parent, uint64_t name_hash,
                           const void *name, uint32_t name_len, struct mds_dirent *ret);
void view_cache_set_inode(struct view_cache *c, uint64_t ino, const struct mds_inode *in);
void view_cache_set_dirent(struct view_cache *c, uint64_t parent, uint64_t name_hash,
                           const void *name, uint32_t name_len, const struct mds_dirent *d);
void view_snapshot_unref(struct view_cache *c, struct shard_snapshot *s);

#endif
