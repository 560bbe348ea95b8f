/* SPDX-License-Identifier: Apache-2.0 */
/* `pool`: named sets of targets. What would strand data is refused by the metadata server, which
 * knows. */
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "tools/admin/cluster.h"

static void pool_row(struct out *o, const struct cluster *c, const struct map_pool *p)
{
    const struct map_table *table = map_table(c->map, p->id, 1);
    uint64_t targets = 0, total = 0, used = 0, free_bytes = 0, online = 0, full = 0;
    char list[512] = "";
    size_t at = 0;

    for (uint32_t i = 0; i < c->map->n_targets; i++) {
        const struct map_target *t = &c->map->targets[i];
        const struct msg_node_live *node = NULL;
        const struct msg_target_stat *live = cluster_target_live(c, t->id, &node);

        if (t->pool != p->id || t->given_up)
            continue;
        targets++;
        if (at < sizeof list - 16)
            at += (size_t)snprintf(list + at, sizeof list - at, "%s%u", at ? "," : "", t->id);
        online += !strcmp(cluster_target_state(c, t), "online");
        if (live) {
            full += cluster_use_percent(live) >= CLUSTER_FULL_PERCENT;
            total += live->total_bytes;
            used += live->used_bytes;
            free_bytes += live->free_bytes;
        }
    }
    out_number(o, p->id);
    out_text(o, p->name);
    out_number(o, targets);
    out_number(o, table ? map_table_live(table) : 0);
    out_number(o, total);
    out_number(o, used);
    out_number(o, free_bytes);
    out_text(o, list);
    out_text(o, targets == 0 ? "no targets" : online < targets ? "degraded" : full ? "full" : "ok");
}

static int pool_table(struct admin *a, const char *only)
{
    static const struct out_column columns[] = {{"ID", OUT_COUNT, NULL},
                                                {"NAME", OUT_TEXT, NULL},
                                                {"TARGETS", OUT_COUNT, "target_count"},
                                                {"CHAINS", OUT_COUNT, NULL},
                                                {"TOTAL", OUT_SIZE, "total_bytes"},
                                                {"USED", OUT_SIZE, "used_bytes"},
                                                {"FREE", OUT_SIZE, "free_bytes"},
                                                {"TARGET-IDS", OUT_TEXT, NULL},
                                                {"STATE", OUT_TEXT, NULL}};
    struct cluster c;
    struct out *o;
    bool found = false;
    int rc = cluster_get(a, &c);

    if (rc != ADMIN_OK)
        return rc;
    o = out_table(a, only ? "aifs.pool.show/1" : "aifs.pool.list/1", columns, ARRAY_LEN(columns));
    for (uint32_t i = 0; i < c.map->n_pools; i++)
        if (!only || !strcmp(only, c.map->pools[i].name)) {
            pool_row(o, &c, &c.map->pools[i]);
            found = true;
        }
    if (only && !found) {
        admin_error("there is no pool %s", only);
        out_drop(o);
        cluster_put(&c);
        return ADMIN_NOT_FOUND;
    }
    out_print(o);
    cluster_put(&c);
    return ADMIN_OK;
}

int cmd_pool_list(struct admin *a, int argc, char **argv)
{
    return argc ? admin_usage("pool", "list", "unexpected argument %s", argv[0])
                : pool_table(a, NULL);
}

int cmd_pool_show(struct admin *a, int argc, char **argv)
{
    return argc != 1 ? admin_usage("pool", "show", "say which pool") : pool_table(a, argv[0]);
}

#define POOL_TARGETS_MAX 256

/* What op names has to be there; the rest is for the server to judge. */
static int find_pool(const struct cluster_map *map, unsigned op, const struct msg_bytes *name,
                     const struct map_pool **ret_pool)
{
    *ret_pool = map_pool_by_name(map, name->data, name->len);
    if (*ret_pool || op == RPC_OP_POOL_CREATE)
        return ADMIN_OK;
    admin_error("there is no pool %s", (const char *)name->data);
    return ADMIN_NOT_FOUND;
}

static int find_target(const struct cluster_map *map, unsigned op, const struct map_pool *pool,
                       const char *text, uint32_t *ret_id)
{
    const struct map_target *t = admin_find_target(map, text);

    if (!t) {
        admin_error("there is no target %s", text);
        return ADMIN_NOT_FOUND;
    }
    if (op == RPC_OP_POOL_REMOVE && t->pool != pool->id) {
        admin_error("target %s is not in pool %s", text, pool->name);
        return ADMIN_NOT_FOUND;
    }
    *ret_id = t->id;
    return ADMIN_OK;
}

static int change(struct admin *a, unsigned op, const char *verb, int min_targets, int argc,
                  char **argv)
{
    uint32_t ids[POOL_TARGETS_MAX];
    struct msg_pool_req req = {.targets = ids};
    const struct msg_text_rep *text;
    const struct map_pool *pool;
    char schema[48], said[512];
    struct cluster_map *map;
    const void *rep;
    int rc;

    if (argc < 1 + min_targets || argc > 1 + POOL_TARGETS_MAX)
        return admin_usage("pool", verb,
                           min_targets ? "say which pool and which targets" : "say how to call it");
    if (strlen(argv[0]) >= MAP_NAME_BYTES || !argv[0][0] || strpbrk(argv[0], " ,=/\t\n")) {
        admin_error("a pool's name has 1 to %d characters and none of \" ,=/\"",
                    MAP_NAME_BYTES - 1);
        return ADMIN_USAGE;
    }
    rc = admin_connect(a);
    if (rc == ADMIN_OK)
        rc = admin_get_map(a, &map);
    if (rc != ADMIN_OK)
        return rc;
    req.name = (struct msg_bytes){argv[0], (uint32_t)strlen(argv[0])};
    rc = find_pool(map, op, &req.name, &pool);
    for (int i = 1; i < argc && rc == ADMIN_OK; i++)
        rc = find_target(map, op, pool, argv[i], &ids[req.n_targets++]);
    map_put(map);
    if (rc != ADMIN_OK)
        return rc;
    rc = rpc_sync_call(a->sync, a->mds_peer, op, &req, a->timeout_ns, &rep);
    if (rc == -EBUSY) {
        admin_error(
            "pool %s: refused: a target that has begun to serve a pool stays in it, for files may "
            "have data there (a new one is given its pool by target add --pool), and what is in no "
            "other pool is in the default one",
            argv[0]);
        return ADMIN_CONFLICT;
    }
    if (rc == -EEXIST) {
        admin_error("there is a pool %s already (see aifs-admin pool list)", argv[0]);
        return ADMIN_CONFLICT;
    }
    if (rc < 0)
        return admin_fail(rc, "pool %s", argv[0]);
    text = rep;
    snprintf(schema, sizeof schema, "aifs.pool.%s/1", verb);
    snprintf(said, sizeof said, "%.*s", (int)text->text.len, (const char *)text->text.data);
    if (!a->json)
        puts(said);
    out_fields(a, schema, (struct out_field[]){{"pool", argv[0], 0}, {"message", said, 0}}, 2);
    return ADMIN_OK;
}

int cmd_pool_create(struct admin *a, int argc, char **argv)
{
    return change(a, RPC_OP_POOL_CREATE, "create", 0, argc, argv);
}

int cmd_pool_add(struct admin *a, int argc, char **argv)
{
    return change(a, RPC_OP_POOL_ADD, "add", 1, argc, argv);
}

int cmd_pool_remove(struct admin *a, int argc, char **argv)
{
    return change(a, RPC_OP_POOL_REMOVE, "remove", 1, argc, argv);
}
