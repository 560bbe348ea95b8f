// SPDX-License-Identifier: Apache-2.0
/*
 * Changes of a cluster map that nobody else sees yet: nodes, targets, pools, and chains for new
 * targets. A failure (-ENOMEM, -EEXIST, -ENOENT, -ENOSPC) leaves the map as it was, but for
 * map_grow_tables() and map_give_up(), which may have done a part: the caller throws the copy away.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "proto/map.h"

/* Makes room for one more element at index at; NULL when out of memory. Each call may copy the
 * whole array: who adds many makes room for all of them at once, as grow_chains() does. */
static void *map_insert(void **array, uint32_t *n, uint32_t at, size_t size)
{
    char *a = mem_realloc(*array, (*n + 1) * size);

    if (!a)
        return NULL;
    memmove(a + (at + 1) * size, a + at * size, (*n - at) * size);
    *array = a;
    *n += 1;
    return a + at * size;
}

int map_add_node(struct cluster_map *m, const struct map_node *node)
{
    uint32_t at = 0;
    void *array = m->nodes;
    struct map_node *to;

    for (uint32_t i = 0; i < m->n_nodes; i++) {
        if (m->nodes[i].id == node->id || uuid_equal(&m->nodes[i].uuid, &node->uuid))
            return -EEXIST;
        if (m->nodes[i].id < node->id)
            at = i + 1;
    }
    to = map_insert(&array, &m->n_nodes, at, sizeof *to);
    if (!to)
        return -ENOMEM;
    m->nodes = array;
    *to = *node;
    return 0;
}

int map_remove_node(struct cluster_map *m, uint32_t node)
{
    const struct map_node *n = map_node(m, node);
    uint32_t at = n ? (uint32_t)(n - m->nodes) : 0;

    if (!n)
        return -ENOENT;
    for (uint32_t i = 0; i < m->n_targets; i++) {
        if (m->targets[i].node == node && !m->targets[i].given_up)
            return -EBUSY;
    }
    m->n_nodes--;
    memmove(m->nodes + at, m->nodes + at + 1, (m->n_nodes - at) * sizeof *m->nodes);
    return 0;
}

int map_add_target(struct cluster_map *m, const struct map_target *target)
{
    uint32_t at = 0;
    void *array = m->targets;
    struct map_target *to;

    if (!map_node(m, target->node) || (target->pool && !map_pool(m, target->pool)))
        return -ENOENT;
    for (uint32_t i = 0; i < m->n_targets; i++) {
        if (m->targets[i].id == target->id || uuid_equal(&m->targets[i].uuid, &target->uuid))
            return -EEXIST;
        if (m->targets[i].id < target->id)
            at = i + 1;
    }
    to = map_insert(&array, &m->n_targets, at, sizeof *to);
    if (!to)
        return -ENOMEM;
    m->targets = array;
    *to = *target;
    return 0;
}

int map_add_pool(struct cluster_map *m, const char *name, uint32_t *ret_id)
{
    size_t len = strlen(name);
    void *array = m->pools;
    struct map_pool *to;

    if (len == 0 || len >= MAP_NAME_BYTES)
        return -EINVAL;
    if (map_pool_by_name(m, name, (uint32_t)len))
        return -EEXIST;
    to = map_insert(&array, &m->n_pools, m->n_pools, sizeof *to);
    if (!to)
        return -ENOMEM;
    m->pools = array;
    memset(to, 0, sizeof *to);
    to->id = m->n_pools > 1 ? m->pools[m->n_pools - 2].id + 1 : 1;
    memcpy(to->name, name, len);
    *ret_id = to->id;
    return 0;
}

/* ---- chains ---- */

struct grow_item {
    uint32_t rank, node, target; /* rank: the how-manieth new target of its node */
};

static int grow_compare(const void *a, const void *b)
{
    const struct grow_item *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return x->target < y->target ? -1 : x->target > y->target;
}

static struct map_table *grow_table(struct cluster_map *m, uint32_t pool)
{
    struct map_table *t = (struct map_table *)map_table(m, pool, 1);
    void *array = m->tables;

    if (t)
        return t;
    t = map_insert(&array, &m->n_tables, m->n_tables, sizeof *t);
    if (!t)
        return NULL;
    m->tables = array;
    *t = (struct map_table){.pool = pool, .copies = 1};
    return t;
}

static bool grow_has_chain(const struct cluster_map *m, const struct map_table *t, uint32_t target)
{
    for (uint32_t i = 0; i < t->n_chains; i++) {
        const struct map_chain *c = map_chain(m, t->chains[i]);

        if (c && c->targets[0] == target)
            return true;
    }
    return false;
}

/* Room at the table's end for n more. */
static int grow_room(struct map_table *t, uint32_t n)
{
    uint32_t *ids;

    if (n > MAP_ITEMS_MAX - t->n_chains)
        return -ENOSPC;
    ids = mem_realloc(t->chains, (t->n_chains + n) * sizeof *ids);
    if (!ids)
        return -ENOMEM;
    t->chains = ids;
    return 0;
}

/* One chain for each of the n targets, in their order; all with one copy of the array at most. */
static int grow_chains(struct cluster_map *m, const struct grow_item *items, uint32_t n,
                       uint32_t *ret_ids)
{
    struct map_chain *chains;
    uint32_t id;

    if (n == 0)
        return 0;
    if (n > MAP_ITEMS_MAX - m->n_chains)
        return -ENOSPC;
    chains = mem_realloc(m->chains, (m->n_chains + (size_t)n) * sizeof *chains);
    if (!chains)
        return -ENOMEM;
    m->chains = chains;
    id = m->n_chains ? chains[m->n_chains - 1].id : 0;
    for (uint32_t i = 0; i < n; i++) {
        ret_ids[i] = ++id;
        chains[m->n_chains++] = (struct map_chain){
            .id = id, .version = 1, .n_targets = 1, .targets = {items[i].target}};
    }
    return 0;
}

static bool chain_given_up(const struct cluster_map *m, uint32_t chain)
{
    const struct map_chain *c = map_chain(m, chain);

    for (uint32_t i = 0; c && i < c->n_targets; i++) {
        if (map_target(m, c->targets[i])->given_up)
            return true;
    }
    return false;
}

/*
 * A new last part: of the chains that new files have used those that are not given up, then these
 * new ones; and all but the last of them once more.
 */
static int table_renew(struct cluster_map *m, struct map_table *t, const uint32_t *ids, uint32_t n)
{
    uint32_t was = map_table_live(t), first = t->first, end = t->n_chains, live = 0;
    int rc = was + n ? grow_room(t, 2 * (was + n) - 1) : 0;

    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < was; i++) {
        if (!chain_given_up(m, t->chains[first + i]))
            t->chains[end + live++] = t->chains[first + i];
    }
    for (uint32_t i = 0; i < n; i++)
        t->chains[end + live++] = ids[i];
    for (uint32_t i = 0; i + 1 < live; i++)
        t->chains[end + live + i] = t->chains[end + i];
    t->first = end;
    t->live = live;
    t->n_chains = end + (live ? 2 * live - 1 : 0);
    return 0;
}

static int table_append(struct cluster_map *m, struct map_table *t, const uint32_t *ids, uint32_t n)
{
    int rc;

    if (n == 0)
        return 0;
    if (t->first)
        return table_renew(m, t, ids, n);
    rc = grow_room(t, n);
    for (uint32_t i = 0; rc == 0 && i < n; i++)
        t->chains[t->n_chains++] = ids[i];
    return rc;
}

/*
 * New targets are taken in turn from each node (first all first targets, then all second ones), so
 * that neighbours in the table are on different servers.
 */
int map_grow_tables(struct cluster_map *m, uint32_t pool)
{
    struct grow_item *items = mem_array(m->n_targets, sizeof *items);
    uint32_t *ids = mem_array(m->n_targets, sizeof *ids);
    struct map_table *t = NULL;
    uint32_t n = 0;
    int rc = items && ids ? 0 : -ENOMEM;

    if (rc == 0)
        t = map_pool(m, pool) ? grow_table(m, pool) : NULL;
    if (rc == 0 && !t)
        rc = map_pool(m, pool) ? -ENOMEM : -ENOENT;
    for (uint32_t i = 0; rc == 0 && i < m->n_targets; i++) {
        const struct map_target *x = &m->targets[i];

        if (x->pool != pool || x->given_up || grow_has_chain(m, t, x->id))
            continue;
        items[n] = (struct grow_item){.node = x->node, .target = x->id};
        for (uint32_t k = 0; k < n; k++)
            items[n].rank += items[k].node == x->node;
        n++;
    }
    if (n > 1)
        qsort(items, n, sizeof *items, grow_compare);
    if (rc == 0)
        rc = grow_chains(m, items, n, ids);
    if (rc == 0)
        rc = table_append(m, t, ids, n);
    mem_free(ids);
    mem_free(items);
    return rc;
}

static bool table_uses(const struct cluster_map *m, const struct map_table *t, uint32_t target)
{
    for (uint32_t i = 0; i < map_table_live(t); i++) {
        const struct map_chain *c = map_chain(m, t->chains[t->first + i]);

        for (uint32_t k = 0; k < c->n_targets; k++) {
            if (c->targets[k] == target)
                return true;
        }
    }
    return false;
}

int map_give_up(struct cluster_map *m, uint32_t target)
{
    struct map_target *t = (struct map_target *)map_target(m, target);
    int rc = 0;

    if (!t)
        return -ENOENT;
    t->state = MAP_TARGET_OFFLINE;
    t->given_up = true;
    memset(t->path, 0, sizeof t->path);
    for (uint32_t i = 0; rc == 0 && i < m->n_tables; i++) {
        if (table_uses(m, &m->tables[i], target))
            rc = table_renew(m, &m->tables[i], NULL, 0);
    }
    return rc;
}
