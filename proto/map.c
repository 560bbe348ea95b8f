// SPDX-License-Identifier: Apache-2.0
/*
 * Reading and sharing cluster maps. Ids are dense in practice, so that a lookup is usually one
 * probe; otherwise a binary search. map_check() is what stands between a map from the wire or disk
 * and everybody else: after it every reference in the map resolves.
 */
#include "proto/map.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/mem.h"

/* Index of id in an array of n structs of size that begin with their id and are sorted by it; n if
 * absent. */
static uint32_t map_find(const void *array, uint32_t n, size_t size, uint32_t id)
{
    const char *a = array;
    uint32_t lo = 0, hi = n, at;

    if (id - 1 < n) {
        memcpy(&at, a + (size_t)(id - 1) * size, sizeof at);
        if (at == id)
            return id - 1;
    }
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;

        memcpy(&at, a + (size_t)mid * size, sizeof at);
        if (at == id)
            return mid;
        if (at < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return n;
}

static_assert(offsetof(struct map_node, id) == 0 && offsetof(struct map_target, id) == 0 &&
                  offsetof(struct map_pool, id) == 0 && offsetof(struct map_chain, id) == 0 &&
                  offsetof(struct map_shard, id) == 0,
              "map_find() expects the id first");

const struct map_node *map_node(const struct cluster_map *m, uint32_t id)
{
    uint32_t i = map_find(m->nodes, m->n_nodes, sizeof *m->nodes, id);

    return i < m->n_nodes ? &m->nodes[i] : NULL;
}

const struct map_target *map_target(const struct cluster_map *m, uint32_t id)
{
    uint32_t i = map_find(m->targets, m->n_targets, sizeof *m->targets, id);

    return i < m->n_targets ? &m->targets[i] : NULL;
}

const struct map_pool *map_pool(const struct cluster_map *m, uint32_t id)
{
    uint32_t i = map_find(m->pools, m->n_pools, sizeof *m->pools, id);

    return i < m->n_pools ? &m->pools[i] : NULL;
}

const struct map_pool *map_pool_by_name(const struct cluster_map *m, const char *name, uint32_t len)
{
    for (uint32_t i = 0; i < m->n_pools; i++) {
        if (strnlen(m->pools[i].name, MAP_NAME_BYTES) == len &&
            memcmp(m->pools[i].name, name, len) == 0)
            return &m->pools[i];
    }
    return NULL;
}

const struct map_chain *map_chain(const struct cluster_map *m, uint32_t id)
{
    uint32_t i = map_find(m->chains, m->n_chains, sizeof *m->chains, id);

    return i < m->n_chains ? &m->chains[i] : NULL;
}

const struct map_table *map_table(const struct cluster_map *m, uint32_t pool, uint32_t copies)
{
    for (uint32_t i = 0; i < m->n_tables; i++) {
        if (m->tables[i].pool == pool && m->tables[i].copies == copies)
            return &m->tables[i];
    }
    return NULL;
}

/* ---- sharing ---- */

static void *map_dup(const void *from, uint32_t n, size_t size, bool *failed)
{
    void *to = n ? mem_dup(from, n * size) : NULL;

    if (n && !to)
        *failed = true;
    return to;
}

struct cluster_map *map_copy(const struct cluster_map *m)
{
    struct cluster_map *c = mem_zalloc(sizeof *c);
    bool failed = false;

    if (!c)
        return NULL;
    c->epoch = m->epoch;
    c->fs = m->fs;
    memcpy(c->fs_name, m->fs_name, sizeof c->fs_name);
    c->nodes = map_dup(m->nodes, m->n_nodes, sizeof *m->nodes, &failed);
    c->targets = map_dup(m->targets, m->n_targets, sizeof *m->targets, &failed);
    c->pools = map_dup(m->pools, m->n_pools, sizeof *m->pools, &failed);
    c->chains = map_dup(m->chains, m->n_chains, sizeof *m->chains, &failed);
    c->shards = map_dup(m->shards, m->n_shards, sizeof *m->shards, &failed);
    c->tables = map_dup(m->tables, m->n_tables, sizeof *m->tables, &failed);
    c->n_nodes = m->n_nodes;
    c->n_targets = m->n_targets;
    c->n_pools = m->n_pools;
    c->n_chains = m->n_chains;
    c->n_shards = m->n_shards;
    c->n_tables = c->tables ? m->n_tables : 0;
    for (uint32_t i = 0; i < c->n_tables;
         i++) /* all of them, so that map_put() never sees a borrowed pointer */
        c->tables[i].chains =
            map_dup(m->tables[i].chains, m->tables[i].n_chains, sizeof(uint32_t), &failed);
    atomic_init(&c->refs, 1);
    if (failed) {
        map_put(c);
        return NULL;
    }
    return c;
}

struct cluster_map *map_get(struct cluster_map *m)
{
    atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    return m;
}

void map_put(struct cluster_map *m)
{
    if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < m->n_tables; i++)
        mem_free(m->tables[i].chains);
    mem_free(m->nodes);
    mem_free(m->targets);
    mem_free(m->pools);
    mem_free(m->chains);
    mem_free(m->tables);
    mem_free(m->shards);
    mem_free(m);
}

/* ---- checking ---- */

static bool map_sorted(const void *array, uint32_t n, size_t size, bool zero_ok)
{
    const char *a = array;
    uint32_t before = 0, id;

    for (uint32_t i = 0; i < n; i++) {
        memcpy(&id, a + i * size, sizeof id);
        if (i ? id <= before : id == 0 && !zero_ok)
            return false;
        before = id;
    }
    return true;
}

static bool map_chain_ok(const struct cluster_map *m, const struct map_chain *c)
{
    if (c->n_targets == 0 || c->n_targets > MSG_COPIES_MAX)
        return false;
    for (uint32_t i = 0; i < c->n_targets; i++) {
        if (!map_target(m, c->targets[i]))
            return false;
    }
    return true;
}

/* What new files use is the table's end, in the form that map.h says. */
static bool map_table_part_ok(const struct map_table *t)
{
    uint64_t len = t->live ? 2 * (uint64_t)t->live - 1 : 0;

    return t->first ? t->first + len == t->n_chains : t->live == 0;
}

static bool map_table_ok(const struct cluster_map *m, uint32_t index)
{
    const struct map_table *t = &m->tables[index];

    if (!map_table_part_ok(t) || !map_pool(m, t->pool) || t->copies == 0 ||
        t->copies > MSG_COPIES_MAX || map_table(m, t->pool, t->copies) != t)
        return false;
    for (uint32_t i = 0; i < t->n_chains; i++) {
        const struct map_chain *c = map_chain(m, t->chains[i]);

        if (!c || c->n_targets > t->copies)
            return false;
        for (uint32_t k = 0; k < c->n_targets; k++) {
            if (map_target(m, c->targets[k])->pool != t->pool)
                return false;
        }
    }
    return true;
}

int map_check(const struct cluster_map *m)
{
    bool ok = map_sorted(m->nodes, m->n_nodes, sizeof *m->nodes, false) &&
              map_sorted(m->targets, m->n_targets, sizeof *m->targets, false) &&
              map_sorted(m->pools, m->n_pools, sizeof *m->pools, false) &&
              map_sorted(m->chains, m->n_chains, sizeof *m->chains, false) &&
              map_sorted(m->shards, m->n_shards, sizeof *m->shards, true);

    for (uint32_t i = 0; ok && i < m->n_targets; i++) {
        const struct map_node *node = map_node(m, m->targets[i].node);

        ok = (node ? node->type == MAP_NODE_OSS : m->targets[i].given_up) &&
             (m->targets[i].pool == 0 || map_pool(m, m->targets[i].pool));
    }
    for (uint32_t i = 0; ok && i < m->n_shards; i++) {
        const struct map_node *node = map_node(m, m->shards[i].node);

        ok = node && node->type == MAP_NODE_MDS;
    }
    for (uint32_t i = 0; ok && i < m->n_chains; i++)
        ok = map_chain_ok(m, &m->chains[i]);
    for (uint32_t i = 0; ok && i < m->n_tables; i++)
        ok = map_table_ok(m, i);
    return ok ? 0 : -AIFS_EPROTO;
}
