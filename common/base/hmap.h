/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intrusive chained hash map. The element embeds struct hmap_node; the caller computes the hash
 * (hash_u64(), hash_bytes()) and compares keys while walking hmap_first()/hmap_next(). Grows by
 * doubling; a failed growth keeps the old table (slower, not wrong), so that inserting never fails
 * after hmap_init(). The caller owns the elements. Not thread-safe.
 */
#ifndef AIFS_COMMON_BASE_HMAP_H
#define AIFS_COMMON_BASE_HMAP_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/compiler.h"

struct hmap_node {
    struct hmap_node *next;
    uint64_t hash;
};

struct hmap {
    struct hmap_node **buckets;
    size_t n_buckets; /* a power of two */
    size_t count;
};

int hmap_init(struct hmap *m, size_t expected) MUST_USE; /* -ENOMEM */
void hmap_fini(struct hmap *m);                          /* frees the table, not the elements */
void hmap_insert(struct hmap *m, struct hmap_node *n, uint64_t hash);
void hmap_remove(struct hmap *m, struct hmap_node *n); /* n must be in m */
/* All nodes with exactly this hash, one after the other; NULL at the end. */
struct hmap_node *hmap_first(const struct hmap *m, uint64_t hash);
struct hmap_node *hmap_next(const struct hmap_node *n);
/*
 * Every node, in no order: prev_next is the next pointer of the node returned before (read it
 * before you remove that node), NULL at the start, together with *pos = 0. Only the node returned
 * last may be removed during a walk, and none inserted.
 */
struct hmap_node *hmap_walk(const struct hmap *m, size_t *pos, struct hmap_node *prev_next);
/* The same as a loop; node, next: struct hmap_node *, pos: size_t. node may be removed in the
 * body. */
#define hmap_for_each(node, next, pos, m)                                                          \
    for ((pos) = 0, (node) = hmap_walk((m), &(pos), NULL); (node) && ((next) = (node)->next, 1);   \
         (node) = hmap_walk((m), &(pos), (next)))

uint64_t hash_u64(uint64_t x);
/*
 * Of numbers that are used in their order (inodes): eight neighbours, 8k to 8k + 7, are in chains
 * side by side, so that a cache line of the table serves all of them. salt is the rest of the key,
 * a hash itself; 0: there is none.
 */
uint64_t hash_near(uint64_t x, uint64_t salt);
uint64_t hash_bytes(const void *data, size_t len, uint64_t seed);

#endif
