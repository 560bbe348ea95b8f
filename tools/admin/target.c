/* SPDX-License-Identifier: Apache-2.0 */
/* `target` and `df`: the places where data lies, with their state and space. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "tools/admin/cluster.h"

static const struct out_column columns[] = {{"ID", OUT_COUNT, NULL},
                                            {"ALIAS", OUT_TEXT, NULL},
                                            {"NODE", OUT_TEXT, NULL},
                                            {"POOL", OUT_TEXT, NULL},
                                            {"STATE", OUT_TEXT, NULL},
                                            {"TOTAL", OUT_SIZE, "total_bytes"},
                                            {"USED", OUT_SIZE, "used_bytes"},
                                            {"FREE", OUT_SIZE, "free_bytes"},
                                            {"USE%", OUT_PERCENT, "use_percent"},
                                            {"CHUNKS", OUT_COUNT, NULL},
                                            {"ERRORS", OUT_COUNT, NULL},
                                            {"LAST", OUT_AGE, "last_seen_ns"}};

/* One row; false when the target does not answer, or its server offers what cannot be used. */
static bool target_row(struct out *o, const struct cluster *c, const struct map_target *t)
{
    const struct map_node *node = map_node(c->map, t->node);
    const struct map_pool *pool = map_pool(c->map, t->pool);
    const struct msg_node_live *from = NULL;
    const struct msg_target_stat *live = cluster_target_live(c, t->id, &from);
    const char *state = cluster_target_state(c, t);

    out_number(o, t->id);
    out_text(o, t->alias);
    out_text(o, node ? node->alias : NULL);
    out_text(o, pool ? pool->name : NULL);
    out_text(o, state);
    if (live) {
        out_number(o, live->total_bytes);
        out_number(o, live->used_bytes);
        out_number(o, live->free_bytes);
        out_number(o, cluster_use_percent(live));
        out_number(o, live->chunks);
        out_number(o, live->errors);
        out_number(o, from->seen_ns_ago);
    } else {
        for (int i = 0; i < 7; i++)
            out_none(o);
    }
    if (!strcmp(state, "unreachable"))
        out_warning(o, "target %u (%s) on %s is unreachable", t->id, t->alias,
                    node ? node->alias : "an unknown server");
    cluster_target_missing(o, c, t);
    return strcmp(state, "unreachable") != 0 && strcmp(state, "missing") != 0 &&
           !cluster_target_refused(c, t);
}

static int target_table(struct admin *a, const char *schema, const char *pool_name,
                        const char *only)
{
    const struct map_pool *pool = NULL;
    const struct map_target *one = NULL;
    struct cluster c;
    struct out *o;
    bool all_up = true;
    int rc = cluster_get(a, &c);

    if (rc != ADMIN_OK)
        return rc;
    if (pool_name && !(pool = map_pool_by_name(c.map, pool_name, (uint32_t)strlen(pool_name)))) {
        admin_error("there is no pool %s", pool_name);
        cluster_put(&c);
        return ADMIN_NOT_FOUND;
    }
    if (only && !(one = admin_find_target(c.map, only))) {
        admin_error("there is no target %s", only);
        cluster_put(&c);
        return ADMIN_NOT_FOUND;
    }
    o = out_table(a, schema, columns, ARRAY_LEN(columns));
    for (uint32_t i = 0; i < c.map->n_targets; i++) {
        const struct map_target *t = &c.map->targets[i];

        if ((!pool || t->pool == pool->id) && (!one || t == one))
            all_up = target_row(o, &c, t) && all_up;
    }
    out_print(o);
    cluster_put(&c);
    return all_up ? ADMIN_OK : ADMIN_PARTIAL;
}

static int list(struct admin *a, const char *noun, const char *verb, const char *schema, int argc,
                char **argv)
{
    const char *pool = NULL;
    const struct admin_option options[] = {{"pool", 'p', &pool, NULL}};
    int n = admin_options(options, ARRAY_LEN(options), argc, argv);

    if (n < 0)
        return ADMIN_USAGE;
    return n ? admin_usage(noun, verb, "unexpected argument %s", argv[0])
             : target_table(a, schema, pool, NULL);
}

int cmd_target_list(struct admin *a, int argc, char **argv)
{
    return list(a, "target", "list", "aifs.target.list/1", argc, argv);
}

int cmd_df(struct admin *a, int argc, char **argv)
{
    return list(a, "df", NULL, "aifs.df/1", argc, argv);
}

int cmd_target_show(struct admin *a, int argc, char **argv)
{
    return argc != 1 ? admin_usage("target", "show", "say which target")
                     : target_table(a, "aifs.target.show/1", NULL, argv[0]);
}

static bool same_path(const char *asked, const char *path, size_t len)
{
    size_t n = strlen(asked);

    while (n > 1 && asked[n - 1] == '/')
        n--;
    return n == len && !memcmp(asked, path, len);
}

/* As the metadata server sees it: one that has lost its targets comes back as another node. */
static bool same_server(const struct map_node *a, const struct map_node *b)
{
    for (uint32_t i = 0; i < a->n_addresses; i++)
        for (uint32_t k = 0; k < b->n_addresses; k++)
            if (!strcmp(a->addresses[i], b->addresses[k]))
                return true;
    return a->id == b->id;
}

/* The target that lived at path of this server and is not there; 0: none. */
static uint32_t find_lived(const struct cluster_map *map, const struct map_node *node,
                           const char *path)
{
    for (uint32_t i = 0; i < map->n_targets; i++) {
        const struct map_target *t = &map->targets[i];
        const struct map_node *n = map_node(map, t->node);

        if (n && same_server(n, node) && same_path(path, t->path, strlen(t->path)) &&
            t->state != MAP_TARGET_ONLINE)
            return t->id;
    }
    return 0;
}

/* What has become of it. */
struct taken {
    uint32_t id;         /* the target that it is now */
    uint32_t instead_of; /* or the one that it is refused for */
    bool given_up;       /* which was given up */
    uint32_t copy_of;    /* or the one that another server serves, */
    char server[MAP_NAME_BYTES];
};

static bool is_decided(const struct taken *t)
{
    return t->id || t->instead_of || t->copy_of;
}

static void find_added(const struct cluster *c, const struct map_node *node, const char *path,
                       const struct uuid *uuid, struct taken *ret_taken)
{
    const struct map_target *lived;

    for (uint32_t i = 0; i < c->map->n_targets; i++) {
        const struct map_target *t = &c->map->targets[i];
        const struct map_node *n = map_node(c->map, t->node);

        if (!uuid_equal(&t->uuid, uuid) || t->state != MAP_TARGET_ONLINE)
            continue;
        *(t->node == node->id ? &ret_taken->id : &ret_taken->copy_of) = t->id;
        snprintf(ret_taken->server, sizeof ret_taken->server, "%s", n ? n->alias : "another");
        return;
    }
    for (uint32_t i = 0; i < c->status->n_refused; i++) {
        const struct msg_refused_target *r = &c->status->refused[i];

        if (r->alias.len == strlen(node->alias) &&
            !memcmp(r->alias.data, node->alias, r->alias.len) &&
            same_path(path, r->path.data, r->path.len))
            ret_taken->instead_of = r->instead_of;
    }
    lived = map_target(c->map, ret_taken->instead_of);
    ret_taken->given_up = lived && lived->given_up;
}

struct adding {
    const struct map_node *node;
    const char *path, *pool;
    struct uuid uuid;
};

static int not_taken(const struct adding *add, const struct taken *t)
{
    if (t->copy_of)
        admin_error("%s on %s is target %u, which %s serves: it is not served here. Is it a copy? "
                    "If it was moved: start this server again when the other one is down",
                    add->path, add->node->alias, t->copy_of, t->server);
    else if (t->given_up)
        admin_error(
            "%s on %s is target %u, which was given up: it is not used. To make a new target "
            "of it, empty it first",
            add->path, add->node->alias, t->instead_of);
    else if (t->instead_of)
        admin_error("%s on %s is formatted, but refused: target %u lived there. Is its disk "
                    "mounted? If it is lost: aifs-admin target replace %u",
                    add->path, add->node->alias, t->instead_of, t->instead_of);
    else
        admin_error("%s on %s is formatted, and the metadata server has not taken it yet: see "
                    "target list, and the log of %s",
                    add->path, add->node->alias, add->node->alias);
    return is_decided(t) ? ADMIN_CONFLICT : ADMIN_PARTIAL;
}

/* The server has formatted it; the metadata server takes it with the next registration, or not. */
static int wait_taken(struct admin *a, const struct adding *add, uint32_t *ret_id)
{
    uint64_t end_ns = clock_mono_ns(clock_real()) + a->timeout_ns;
    struct taken t = {0};

    while (!is_decided(&t) && clock_mono_ns(clock_real()) < end_ns) {
        struct cluster c;
        int rc = cluster_get(a, &c);

        if (rc != ADMIN_OK)
            return rc;
        find_added(&c, add->node, add->path, &add->uuid, &t);
        cluster_put(&c);
        if (!is_decided(&t))
            rpc_sync_sleep(a->sync, 50 * NS_PER_MS);
    }
    *ret_id = t.id;
    return t.id ? ADMIN_OK : not_taken(add, &t);
}

static int added(struct admin *a, const struct adding *add)
{
    char said[512];
    uint32_t id;
    int rc = wait_taken(a, add, &id);

    if (rc != ADMIN_OK)
        return rc;
    snprintf(said, sizeof said, "%.400s on %s is target %u now", add->path, add->node->alias, id);
    if (!a->json)
        puts(said);
    out_fields(a, "aifs.target.add/1",
               (struct out_field[]){{"node", add->node->alias, 0},
                                    {"path", add->path, 0},
                                    {"pool", add->pool, 0},
                                    {"message", said, 0}},
               4);
    return ADMIN_OK;
}

static int add_ask(struct admin *a, const struct cluster_map *map, struct adding *add)
{
    uint32_t lived = find_lived(map, add->node, add->path);
    struct msg_target_add_req req = {.path = {add->path, (uint32_t)strlen(add->path)},
                                     .pool = {add->pool, (uint32_t)strlen(add->pool)},
                                     .lived = lived != 0};
    struct rpc_peer *peer;
    const void *rep;
    int rc = admin_connect_node(a, add->node, &peer);

    if (rc < 0)
        return admin_fail(rc, "server %s", add->node->alias);
    rc = rpc_sync_call(a->sync, peer, RPC_OP_OSS_TARGET_ADD, &req, a->timeout_ns, &rep);
    if (rc == -EEXIST) {
        admin_error("%s is a target of %s already", add->path, add->node->alias);
        return ADMIN_CONFLICT;
    }
    if (rc == -AIFS_ENOTARGET) {
        admin_error("%s on %s is empty: target %u lived there and is not there: nothing was "
                    "changed. Is its disk mounted? If it is lost: aifs-admin target replace %u",
                    add->path, add->node->alias, lived, lived);
        return ADMIN_CONFLICT;
    }
    if (rc == -ENOTUNIQ) {
        admin_error("%s is a copy of a target of %s: it is not served beside that", add->path,
                    add->node->alias);
        return ADMIN_CONFLICT;
    }
    if (rc == -ENOENT || rc == -ENOTDIR) {
        admin_error("%s on %s is no directory: a target begins in one that is there, and empty. Is "
                    "its disk mounted?",
                    add->path, add->node->alias);
        return ADMIN_NOT_FOUND;
    }
    if (rc == -ENOTEMPTY) {
        admin_error("%s on %s is not empty: a target begins in an empty directory", add->path,
                    add->node->alias);
        return ADMIN_CONFLICT;
    }
    if (rc < 0)
        return admin_fail(rc, "target %s on %s", add->path, add->node->alias);
    add->uuid = ((const struct msg_target_add_rep *)rep)->uuid;
    return added(a, add);
}

int cmd_target_add(struct admin *a, int argc, char **argv)
{
    const char *node_name = NULL;
    struct adding add = {.pool = "default"};
    const struct admin_option options[] = {{"node", 0, &node_name, NULL},
                                           {"path", 0, &add.path, NULL},
                                           {"pool", 'p', &add.pool, NULL}};
    struct cluster_map *map;
    int rc, n = admin_options(options, ARRAY_LEN(options), argc, argv);

    if (n != 0 || !node_name || !add.path)
        return n < 0 ? ADMIN_USAGE
                     : admin_usage("target", "add",
                                   "say on which server (--node) and where (--path)");
    if (add.path[0] != '/') {
        admin_error("--path is an absolute path on the server, not \"%s\"", add.path);
        return ADMIN_USAGE;
    }
    rc = admin_connect(a);
    if (rc == ADMIN_OK)
        rc = admin_get_map(a, &map);
    if (rc != ADMIN_OK)
        return rc;
    rc = admin_find_oss(map, node_name, &add.node);
    if (rc == ADMIN_OK && !map_pool_by_name(map, add.pool, (uint32_t)strlen(add.pool))) {
        admin_error("there is no pool %s (make it first: aifs-admin pool create %s)", add.pool,
                    add.pool);
        rc = ADMIN_NOT_FOUND;
    }
    if (rc == ADMIN_OK)
        rc = add_ask(a, map, &add);
    map_put(map);
    return rc;
}

int cmd_target_replace(struct admin *a, int argc, char **argv)
{
    struct msg_pool_req req = {.n_targets = 1, .dry_run = !a->yes};
    const struct msg_text_rep *text;
    const struct map_target *t;
    struct cluster_map *map;
    char said[512];
    bool given_up;
    const void *rep;
    uint32_t id = 0;
    int rc;

    if (argc != 1)
        return admin_usage("target", "replace", "say which target is lost");
    rc = admin_connect(a);
    if (rc == ADMIN_OK)
        rc = admin_get_map(a, &map);
    if (rc != ADMIN_OK)
        return rc;
    t = admin_find_target(map, argv[0]);
    id = t ? t->id : 0;
    given_up = t && t->given_up;
    map_put(map);
    if (!id) {
        admin_error("there is no target %s", argv[0]);
        return ADMIN_NOT_FOUND;
    }
    if (given_up) {
        admin_error("target %u was given up already", id);
        return ADMIN_CONFLICT;
    }
    req.targets = &id;
    rc = rpc_sync_call(a->sync, a->mds_peer, RPC_OP_TARGET_REPLACE, &req, a->timeout_ns, &rep);
    if (rc == -EBUSY) {
        admin_error("target %s serves, or did a few seconds ago: nothing to replace", argv[0]);
        return ADMIN_CONFLICT;
    }
    if (rc < 0)
        return admin_fail(rc, "target %s", argv[0]);
    text = rep;
    snprintf(said, sizeof said, "%.*s", (int)text->text.len, (const char *)text->text.data);
    if (!a->json)
        puts(said);
    out_fields(a, "aifs.target.replace/1",
               (struct out_field[]){{"target", argv[0], 0}, {"message", said, 0}}, 2);
    if (!a->yes && !a->json)
        admin_detail("nothing was changed: add --yes");
    return a->yes ? ADMIN_OK : ADMIN_CONFIRM;
}
