// SPDX-License-Identifier: Apache-2.0
/*
 * Changes of the cluster map. Pure. What comes from an OSS or an operator is checked here against
 * what a map can hold; everything else is map_add_...() of proto/.
 */
#include "mds/cluster/change.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"

static struct map_node *node_by_uuid(const struct cluster_map *m, const struct uuid *uuid)
{
    for (uint32_t i = 0; i < m->n_nodes; i++) {
        if (uuid_equal(&m->nodes[i].uuid, uuid))
            return &m->nodes[i];
    }
    return NULL;
}

static struct map_target *target_by_uuid(const struct cluster_map *m, const struct uuid *uuid)
{
    for (uint32_t i = 0; i < m->n_targets; i++) {
        if (uuid_equal(&m->targets[i].uuid, uuid))
            return &m->targets[i];
    }
    return NULL;
}

uint32_t change_node_id(const struct cluster_map *m, const struct uuid *uuid)
{
    const struct map_node *n = node_by_uuid(m, uuid);

    return n ? n->id : 0;
}

uint32_t change_target_id(const struct cluster_map *m, const struct uuid *uuid)
{
    const struct map_target *t = target_by_uuid(m, uuid);

    return t ? t->id : 0;
}

uint32_t change_serving_id(const struct cluster_map *m, uint32_t node, const struct uuid *uuid)
{
    const struct map_target *t = target_by_uuid(m, uuid);

    return t && !t->given_up && t->node == node ? t->id : 0;
}

static bool is_elsewhere(const struct map_target *t, uint32_t node)
{
    return t->node != node && t->state == MAP_TARGET_ONLINE;
}

static uint32_t next_node_id(const struct cluster_map *m)
{
    uint32_t id = m->n_nodes ? m->nodes[m->n_nodes - 1].id : 0;

    for (uint32_t i = 0; i < m->n_targets; i++) /* of servers that were removed */
        id = MAX(id, m->targets[i].node);
    return id + 1;
}

static uint32_t next_target_id(const struct cluster_map *m)
{
    return m->n_targets ? m->targets[m->n_targets - 1].id + 1 : 1;
}

static bool text_fits(struct msg_bytes b, size_t size)
{
    return b.len < size && (b.len == 0 || !memchr(b.data, '\0', b.len));
}

static void text_copy(char *to, struct msg_bytes b)
{
    if (b.len)
        memcpy(to, b.data, b.len);
}

/* ---- this server ---- */

int change_self(struct cluster_map *m, const struct change_self *self)
{
    struct map_node node = {.type = MAP_NODE_MDS, .uuid = self->uuid, .n_addresses = 1};
    struct map_shard *shards;
    struct map_node *old = NULL;
    uint32_t pool;
    int rc = 0;

    snprintf(node.alias, sizeof node.alias, "%s", self->alias);
    snprintf(node.addresses[0], sizeof node.addresses[0], "%s", self->address);
    for (uint32_t i = 0; i < m->n_nodes; i++) {
        if (m->nodes[i].type == MAP_NODE_MDS)
            old = &m->nodes[i];
    }
    if (old) {
        node.id = old->id;
        if (!memcmp(&node, old, sizeof node))
            return CHANGE_NONE;
        *old = node;
        return 0;
    }
    node.id = next_node_id(m);
    rc = map_add_node(m, &node);
    if (rc == 0 && m->n_pools == 0)
        rc = map_add_pool(m, CHANGE_DEFAULT_POOL, &pool);
    if (rc < 0)
        return rc;
    shards = mem_realloc(m->shards, sizeof *shards);
    if (!shards)
        return -ENOMEM;
    m->shards = shards;
    m->n_shards = 1;
    shards[0] = (struct map_shard){.id = 0, .node = node.id};
    return 0;
}

/* ---- servers ---- */

static bool text_equal(struct msg_bytes b, const char *text)
{
    return b.len == strlen(text) && (b.len == 0 || !memcmp(b.data, text, b.len));
}

static bool same_address(const struct map_node *n, const struct msg_register_req *req)
{
    for (uint32_t i = 0; n->type == MAP_NODE_OSS && i < req->n_addresses; i++) {
        for (uint32_t k = 0; k < n->n_addresses; k++) {
            if (text_equal(req->addresses[i], n->addresses[k]))
                return true;
        }
    }
    return false;
}

static bool same_server(const struct map_node *n, const struct msg_register_req *req)
{
    return uuid_equal(&n->uuid, &req->node) || same_address(n, req);
}

static const struct map_node *node_known_as(const struct cluster_map *m,
                                            const struct msg_register_req *req)
{
    const struct map_node *n = node_by_uuid(m, &req->node);

    for (uint32_t i = 0; !n && i < m->n_nodes; i++)
        if (same_address(&m->nodes[i], req) && text_equal(req->alias, m->nodes[i].alias))
            n = &m->nodes[i];
    return n;
}

uint32_t change_known_as(const struct cluster_map *m, const struct msg_register_req *req)
{
    const struct map_node *n = node_known_as(m, req);

    return n ? n->id : 0;
}

static bool req_has_target(const struct msg_register_req *req, const struct uuid *uuid)
{
    for (uint32_t i = 0; i < req->n_targets; i++) {
        if (uuid_equal(&req->targets[i].uuid, uuid))
            return true;
    }
    return false;
}

uint32_t change_instead_of(const struct cluster_map *m, const struct msg_register_req *req,
                           uint32_t i)
{
    const struct msg_target_stat *s = &req->targets[i];
    const struct map_target *known = target_by_uuid(m, &s->uuid);

    if (known)
        return known->given_up ? known->id : 0;
    if (s->path.len == 0)
        return 0;
    for (uint32_t k = 0; k < m->n_targets; k++) {
        const struct map_target *t = &m->targets[k];
        const struct map_node *n = map_node(m, t->node);

        if (text_equal(s->path, t->path) && n && same_server(n, req) &&
            !req_has_target(req, &t->uuid))
            return t->id;
    }
    return 0;
}

/* Does this server offer a new one in its place? */
static bool is_replaced(const struct cluster_map *m, const struct msg_register_req *req,
                        const struct map_target *t)
{
    for (uint32_t i = 0; i < req->n_targets; i++) {
        if (change_instead_of(m, req, i) == t->id)
            return true;
    }
    return false;
}

/* Nothing of this server can still be somewhere else. */
static bool is_all_here(const struct cluster_map *m, const struct msg_register_req *req,
                        uint32_t node)
{
    for (uint32_t i = 0; i < m->n_targets; i++) {
        const struct map_target *t = &m->targets[i];

        if (t->node == node && !t->given_up && !is_replaced(m, req, t))
            return false;
    }
    return true;
}

/* Who it is a server keeps on its targets: one that has lost them comes as another. */
static struct map_node *node_of(struct cluster_map *m, const struct msg_register_req *req)
{
    struct map_node *n = (struct map_node *)node_known_as(m, req);

    for (uint32_t i = 0; !n && i < m->n_nodes; i++) {
        if (same_server(&m->nodes[i], req) && is_all_here(m, req, m->nodes[i].id))
            n = &m->nodes[i];
    }
    return n;
}

static int register_node(struct cluster_map *m, const struct msg_register_req *req,
                         struct map_node *ret_node, bool *changed)
{
    struct map_node node = {.type = MAP_NODE_OSS, .uuid = req->node};
    struct map_node *old = node_of(m, req);

    if (req->n_addresses == 0 || !text_fits(req->alias, sizeof node.alias) ||
        uuid_is_zero(&req->node))
        return -EINVAL;
    text_copy(node.alias, req->alias);
    node.n_addresses = MIN(req->n_addresses, MAP_ADDRS);
    for (uint32_t i = 0; i < node.n_addresses; i++) {
        if (!text_fits(req->addresses[i], sizeof node.addresses[i]) || !req->addresses[i].len)
            return -EINVAL;
        text_copy(node.addresses[i], req->addresses[i]);
    }
    node.id = old ? old->id : next_node_id(m);
    if (old && old->type != MAP_NODE_OSS)
        return -EEXIST;
    *ret_node = node;
    if (old && !memcmp(old, &node, sizeof node))
        return 0;
    *changed = true;
    if (!old)
        return map_add_node(m, &node);
    *old = node;
    return 0;
}

static bool alias_taken(const struct cluster_map *m, const char *alias)
{
    for (uint32_t i = 0; i < m->n_targets; i++) {
        if (!strcmp(m->targets[i].alias, alias))
            return true;
    }
    return false;
}

/* Shorter than what a map can hold, or not kept: what is cut off could be another's. */
static bool keep_path(struct map_target *t, struct msg_bytes path)
{
    struct map_target was = *t;

    memset(t->path, 0, sizeof t->path);
    if (text_fits(path, sizeof t->path))
        text_copy(t->path, path);
    return memcmp(was.path, t->path, sizeof was.path) != 0;
}

static const struct map_pool *pool_of(const struct cluster_map *m, const struct msg_target_stat *s)
{
    if (s->pool.len)
        return map_pool_by_name(m, s->pool.data, s->pool.len);
    return m->n_pools ? &m->pools[0] : NULL;
}

bool change_pool_exists(const struct cluster_map *m, const struct msg_target_stat *s)
{
    return pool_of(m, s) != NULL;
}

static int register_new(struct cluster_map *m, const struct map_node *node,
                        const struct msg_target_stat *s)
{
    struct map_target t = {
        .id = next_target_id(m), .node = node->id, .uuid = s->uuid, .state = MAP_TARGET_ONLINE};
    const struct map_pool *pool = pool_of(m, s);
    int rc;

    if (!pool)
        return -ENOENT;
    if (uuid_is_zero(&s->uuid))
        return -EINVAL;
    t.pool = pool->id;
    (void)keep_path(&t, s->path);
    for (uint32_t i = 1; i <= m->n_targets + 1u; i++) {
        int n = snprintf(t.alias, sizeof t.alias, "%.50s-%u", node->alias, i);

        if (n > 0 && !alias_taken(m, t.alias))
            break;
    }
    rc = map_add_target(m, &t);
    return rc < 0 ? rc : map_grow_tables(m, t.pool);
}

static bool nothing_to_take(const struct cluster_map *m, const struct msg_register_req *req)
{
    for (uint32_t i = 0; i < req->n_targets; i++) {
        if (!change_instead_of(m, req, i))
            return false;
    }
    return req->n_targets > 0 && !node_by_uuid(m, &req->node);
}

/* Something of it can be taken, or was: then what asks for a pool that does not exist is left out.
 */
static bool has_good_pool(const struct cluster_map *m, const struct msg_register_req *req)
{
    for (uint32_t i = 0; i < req->n_targets; i++) {
        if (change_target_id(m, &req->targets[i].uuid) || change_pool_exists(m, &req->targets[i]))
            return true;
    }
    return false;
}

int change_register(struct cluster_map *m, const struct msg_register_req *req)
{
    bool changed = false, has_other = has_good_pool(m, req);
    struct map_node node;
    int rc;

    if (nothing_to_take(m, req))
        return CHANGE_NONE;
    rc = register_node(m, req, &node, &changed);
    for (uint32_t i = 0; rc == 0 && i < req->n_targets; i++) {
        struct map_target *t = target_by_uuid(m, &req->targets[i].uuid);

        if (t && (t->given_up || is_elsewhere(t, node.id)))
            continue; /* given up: too late, what has been removed meanwhile is still on it */
        if (t) {
            changed = keep_path(t, req->targets[i].path) || changed;
            changed = t->node != node.id || t->state != MAP_TARGET_ONLINE || changed;
            t->node = node.id;
            t->state = MAP_TARGET_ONLINE;
        } else if (!change_instead_of(m, req, i) &&
                   (!has_other || change_pool_exists(m, &req->targets[i]))) {
            rc = register_new(m, &node, &req->targets[i]);
            changed = true;
        }
    }
    for (uint32_t i = 0; rc == 0 && i < m->n_targets; i++) {
        struct map_target *t = &m->targets[i];

        if (t->node == node.id && t->state == MAP_TARGET_ONLINE && !req_has_target(req, &t->uuid)) {
            t->state = MAP_TARGET_OFFLINE;
            changed = true;
        }
    }
    if (rc < 0)
        return rc;
    return changed ? 0 : CHANGE_NONE;
}

int change_offline(struct cluster_map *m, uint32_t node)
{
    int rc = CHANGE_NONE;

    for (uint32_t i = 0; i < m->n_targets; i++) {
        if (m->targets[i].node == node && m->targets[i].state == MAP_TARGET_ONLINE) {
            m->targets[i].state = MAP_TARGET_OFFLINE;
            rc = 0;
        }
    }
    return rc;
}

int change_replace(struct cluster_map *m, uint32_t target)
{
    struct map_target *t = (struct map_target *)map_target(m, target);

    if (!t)
        return -ENOENT;
    if (t->state == MAP_TARGET_ONLINE)
        return -EBUSY;
    if (t->given_up)
        return CHANGE_NONE;
    return map_give_up(m, target);
}

int change_remove_node(struct cluster_map *m, uint32_t node)
{
    const struct map_node *n = map_node(m, node);

    if (n && n->type != MAP_NODE_OSS)
        return -EBUSY;
    return map_remove_node(m, node);
}

/* ---- pools ---- */

static bool in_a_chain(const struct cluster_map *m, uint32_t target)
{
    for (uint32_t i = 0; i < m->n_chains; i++) {
        for (uint32_t k = 0; k < m->chains[i].n_targets; k++) {
            if (m->chains[i].targets[k] == target)
                return true;
        }
    }
    return false;
}

static int pool_take(struct cluster_map *m, uint32_t pool, const uint32_t *targets, uint32_t n)
{
    int rc = CHANGE_NONE;

    for (uint32_t i = 0; i < n; i++) {
        struct map_target *t = (struct map_target *)map_target(m, targets[i]);

        if (!t)
            return -ENOENT;
        if (t->pool == pool)
            continue;
        if (in_a_chain(m, t->id))
            return -EBUSY;
        t->pool = pool;
        rc = 0;
    }
    if (rc == 0)
        rc = map_grow_tables(m, pool);
    return rc;
}

int change_pool_create(struct cluster_map *m, const char *name, const uint32_t *targets, uint32_t n)
{
    uint32_t pool;
    int rc = map_add_pool(m, name, &pool);

    if (rc == 0)
        rc = pool_take(m, pool, targets, n);
    return rc == CHANGE_NONE ? 0 : rc;
}

int change_pool_add(struct cluster_map *m, const char *name, const uint32_t *targets, uint32_t n)
{
    const struct map_pool *pool = map_pool_by_name(m, name, (uint32_t)strlen(name));

    return pool ? pool_take(m, pool->id, targets, n) : -ENOENT;
}

int change_pool_remove(struct cluster_map *m, const char *name, const uint32_t *targets, uint32_t n)
{
    const struct map_pool *pool = map_pool_by_name(m, name, (uint32_t)strlen(name));

    if (!pool)
        return -ENOENT;
    if (pool->id == m->pools[0].id)
        return -EBUSY; /* what no other pool has is in this one */
    for (uint32_t i = 0; i < n; i++) {
        const struct map_target *t = map_target(m, targets[i]);

        if (!t || t->pool != pool->id)
            return -ENOENT;
    }
    return pool_take(m, m->pools[0].id, targets, n);
}
