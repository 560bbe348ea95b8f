/* SPDX-License-Identifier: Apache-2.0 */
/* The example of docs/placement.md: node 1 is the metadata server; then servers with some targets
 * each, numbered in order, all in the pool "default" (id 1). */
#ifndef AIFS_TESTS_EXAMPLE_MAP_H
#define AIFS_TESTS_EXAMPLE_MAP_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/mem.h"
#include "proto/map.h"

static inline void example_uuid(struct uuid *u, uint8_t kind, uint32_t id)
{
    *u = (struct uuid){{kind, (uint8_t)(id >> 8), (uint8_t)id}};
}

/* The servers and their targets, each array in one piece: to add them one by one would copy what is
 * there for each of them, which a large map has no time for. */
static inline void example_nodes(struct cluster_map *m, uint32_t n_servers, uint32_t n_targets,
                                 uint32_t pool)
{
    m->nodes = mem_array(n_servers + 1, sizeof *m->nodes);
    m->targets = mem_array((size_t)n_servers * n_targets, sizeof *m->targets);
    ck_assert(m->nodes && m->targets);
    for (uint32_t i = 1; i <= n_servers + 1; i++) {
        struct map_node *n = &m->nodes[m->n_nodes++];

        n->id = i;
        n->type = i == 1 ? MAP_NODE_MDS : MAP_NODE_OSS;
        n->n_addresses = 1;
        example_uuid(&n->uuid, 1, i);
        snprintf(n->alias, sizeof n->alias, "%s%u", i == 1 ? "mds" : "oss", i);
        snprintf(n->addresses[0], sizeof n->addresses[0], "10.0.%u.%u:7600", i / 250, i % 250);
        for (uint32_t k = 0; i > 1 && k < n_targets; k++) {
            struct map_target *t = &m->targets[m->n_targets++];

            t->id = m->n_targets;
            t->node = i;
            t->pool = pool;
            t->state = MAP_TARGET_ONLINE;
            example_uuid(&t->uuid, 2, t->id);
        }
    }
}

static inline struct cluster_map *example_map(uint32_t n_servers, uint32_t n_targets)
{
    struct cluster_map empty = {.epoch = 3, .fs.b = {1, 2, 3}, .fs_name = "example"};
    struct map_shard shard = {0, 1};
    struct cluster_map *m;
    uint32_t pool = 0;

    m = map_copy(&empty);
    ck_assert_ptr_nonnull(m);
    ck_assert_int_eq(map_add_pool(m, "default", &pool), 0);
    example_nodes(m, n_servers, n_targets, pool);
    ck_assert_int_eq(map_grow_tables(m, pool), 0);
    m->shards = mem_dup(&shard, sizeof shard);
    ck_assert_ptr_nonnull(m->shards);
    m->n_shards = 1;
    return m;
}

#endif
