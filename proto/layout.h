/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Striping arithmetic, pure and specified bit by bit in docs/placement.md with test vectors.
 *
 * Chunk i of a file is bytes [i * chunk_bytes, (i+1) * chunk_bytes) and lives on the chain at index
 * (start + (i mod stripe_count)) mod table_len of the table (pool, copies).
 */
#ifndef AIFS_PROTO_LAYOUT_H
#define AIFS_PROTO_LAYOUT_H

#include <stdint.h>

#include "proto/map.h"
#include "proto/msg.h"

#define LAYOUT_CHUNK_MIN     (64u << 10)
#define LAYOUT_CHUNK_MAX     (64u << 20)
#define LAYOUT_CHUNK_DEFAULT (1u << 20)

/* 0, or -AIFS_EPROTO for a layout that no file can have. */
int layout_check(const struct msg_layout *l) MUST_USE;

static inline uint64_t layout_chunk(const struct msg_layout *l, uint64_t offset)
{
    return offset / l->chunk_bytes;
}

static inline uint32_t layout_chunk_offset(const struct msg_layout *l, uint64_t offset)
{
    return (uint32_t)(offset % l->chunk_bytes);
}

static inline uint32_t layout_table_index(const struct msg_layout *l, uint64_t chunk)
{
    return (uint32_t)(((uint64_t)l->start + chunk % l->stripe_count) % l->table_len);
}

/* The chain of a chunk, or NULL when the map has no such table or it is shorter than the layout
 * says (an old map). */
const struct map_chain *layout_chain(const struct msg_layout *l, const struct cluster_map *m,
                                     uint64_t chunk);

/* Of whoever asks for none: the one called default, or the oldest. NULL: there is no pool. */
const struct map_pool *layout_pool_default(const struct cluster_map *m);
/* A new file's layout: what was asked over what is inherited over the defaults; start chosen by the
 * caller's seed (the inode number), so that equal inputs give equal layouts. */
int layout_make(const struct cluster_map *m, const struct msg_stripe *asked,
                const struct msg_stripe *inherited, uint64_t seed, struct msg_layout *ret_layout)
    MUST_USE; /* -ENOENT: no such pool; -ENOSPC: pool without targets; -EINVAL */
/* Of a layout just made: it begins on the chain whose turn it is, among those for new files. */
void layout_turn(const struct cluster_map *m, uint64_t turn, struct msg_layout *l);

#endif
