/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cluster map: who is in the cluster and where data is. Immutable once built and numbered by an
 * epoch; a new state is a new map. A counted map (map_copy) is shared between threads;
 * map_get/map_put are atomic. Everything here is pure: no I/O, no clock.
 */
#ifndef AIFS_PROTO_MAP_H
#define AIFS_PROTO_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/compiler.h"
#include "common/base/ids.h"
#include "proto/msg.h"

#define MAP_NAME_BYTES 64
#define MAP_ADDRS      4
#define MAP_ADDR_BYTES 108
#define MAP_PATH_BYTES 256
#define MAP_ITEMS_MAX  65536u /* of any array in a map */

enum map_node_type { MAP_NODE_MDS = 1, MAP_NODE_OSS = 2 };
enum map_target_state { MAP_TARGET_ONLINE = 1, MAP_TARGET_OFFLINE = 2 };

struct map_node {
    uint32_t id;
    enum map_node_type type;
    struct uuid uuid;
    char alias[MAP_NAME_BYTES];
    uint32_t n_addresses;
    char addresses[MAP_ADDRS][MAP_ADDR_BYTES];
};

struct map_target {
    uint32_t id, node, pool; /* node: perhaps removed since the target was given up */
    struct uuid uuid;
    char alias[MAP_NAME_BYTES];
    enum map_target_state state;
    bool given_up;             /* for good: what it held is lost, nobody asks it for anything */
    char path[MAP_PATH_BYTES]; /* where on its server; "": not known, given up, or too long */
};

struct map_pool {
    uint32_t id;
    char name[MAP_NAME_BYTES];
};

struct map_chain {
    uint32_t id, version;
    uint32_t n_targets;
    uint32_t targets[MSG_COPIES_MAX];
};

/*
 * The chains of a pool with one number of copies, in the order placement uses: append-only. New
 * files use the whole table until a target is given up. From then on they use its last part: live
 * chains, one after the other from first on, and all of them but the last once more, so that a file
 * may begin at any of them and never comes to the table's end (docs/placement.md).
 */
struct map_table {
    uint32_t pool, copies;
    uint32_t n_chains;
    uint32_t *chains;     /* ids */
    uint32_t first, live; /* first 0: the whole table */
};

/* Chains that new files are striped over. */
static inline uint32_t map_table_live(const struct map_table *t)
{
    return t->first ? t->live : t->n_chains;
}

struct map_shard {
    uint32_t id, node;
};

struct cluster_map {
    uint64_t epoch;
    struct uuid fs;
    char fs_name[MAP_NAME_BYTES];
    uint32_t n_nodes, n_targets, n_pools, n_chains, n_tables, n_shards;
    struct map_node *nodes; /* each array sorted by id */
    struct map_target *targets;
    struct map_pool *pools;
    struct map_chain *chains;
    struct map_table *tables;
    struct map_shard *shards;
    _Atomic uint32_t refs; /* 0: lives in somebody's arena */
};

const struct map_node *map_node(const struct cluster_map *m, uint32_t id);
const struct map_target *map_target(const struct cluster_map *m, uint32_t id);
const struct map_pool *map_pool(const struct cluster_map *m, uint32_t id);
const struct map_pool *map_pool_by_name(const struct cluster_map *m, const char *name,
                                        uint32_t len);
const struct map_chain *map_chain(const struct cluster_map *m, uint32_t id);
const struct map_table *map_table(const struct cluster_map *m, uint32_t pool, uint32_t copies);

/* A counted deep copy; NULL when out of memory. */
struct cluster_map *map_copy(const struct cluster_map *m) MUST_USE;
struct cluster_map *map_get(struct cluster_map *m);
void map_put(struct cluster_map *m);
/* References resolve, ids are unique and sorted, tables name existing chains of their pool: 0 or
 * -AIFS_EPROTO. */
int map_check(const struct cluster_map *m) MUST_USE;

/* Changes, each on a counted copy made with map_copy() and not yet shared; they raise nothing: the
 * caller sets the epoch. -ENOMEM, -EEXIST, -ENOENT. */
int map_add_node(struct cluster_map *m, const struct map_node *node) MUST_USE;
/* Its targets stay, so they have to be given up: -EBUSY, -ENOENT. */
int map_remove_node(struct cluster_map *m, uint32_t node) MUST_USE;
int map_add_target(struct cluster_map *m, const struct map_target *target) MUST_USE;
int map_add_pool(struct cluster_map *m, const char *name, uint32_t *ret_id) MUST_USE;
/* One chain more for each target of the pool that no chain of (pool, copies=1) has yet. -ENOSPC:
 * the table cannot be longer. */
int map_grow_tables(struct cluster_map *m, uint32_t pool) MUST_USE;
/* The target is given up: offline, and new files are no longer striped over it. -ENOENT, -ENOSPC as
 * above. */
int map_give_up(struct cluster_map *m, uint32_t target) MUST_USE;

#endif
