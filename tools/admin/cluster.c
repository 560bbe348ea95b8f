/* SPDX-License-Identifier: Apache-2.0 */
/* `status`, `node` and `client`: what the metadata server knows of the cluster. */
#include "tools/admin/cluster.h"

#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/text.h"

#define LEASE_NS (15 * NS_PER_S) /* of a server that does not tell */

int cluster_get(struct admin *a, struct cluster *ret_cluster)
{
    static const struct msg_empty none;
    const void *rep;
    int rc = admin_connect(a);

    *ret_cluster = (struct cluster){0};
    if (rc == ADMIN_OK)
        rc = admin_get_map(a, &ret_cluster->map);
    if (rc == ADMIN_OK)
        rc = admin_call_mds(a, RPC_OP_STATUS, &none, &rep);
    if (rc == ADMIN_OK)
        ret_cluster->status = rep;
    else
        cluster_put(ret_cluster);
    return rc;
}

void cluster_put(struct cluster *c)
{
    if (c->map)
        map_put(c->map);
    c->map = NULL;
}

const char *cluster_node_name(const struct cluster_map *map, const struct map_node *n, char buf[96])
{
    unsigned same = 0;

    for (uint32_t i = 0; i < map->n_nodes; i++)
        same += !strcmp(map->nodes[i].alias, n->alias);
    if (same > 1)
        snprintf(buf, 96, "%s (node %u)", n->alias, n->id);
    else
        snprintf(buf, 96, "%s", n->alias);
    return buf;
}

const struct msg_node_live *cluster_node_live(const struct cluster *c, uint32_t node)
{
    for (uint32_t i = 0; i < c->status->n_nodes; i++)
        if (c->status->nodes[i].id == node)
            return &c->status->nodes[i];
    return NULL;
}

bool cluster_node_up(const struct msg_node_live *live)
{
    return live && !live->disconnected && live->seen_ns_ago <= CLUSTER_LATE_NS;
}

const struct msg_target_stat *cluster_target_live(const struct cluster *c, uint32_t target,
                                                  const struct msg_node_live **ret_node)
{
    for (uint32_t i = 0; i < c->status->n_nodes; i++) {
        const struct msg_node_live *n = &c->status->nodes[i];

        for (uint32_t t = 0; t < n->n_targets; t++)
            if (n->targets[t].id == target) {
                *ret_node = n;
                return &n->targets[t];
            }
    }
    return NULL;
}

const char *cluster_target_state(const struct cluster *c, const struct map_target *t)
{
    const struct msg_node_live *from = NULL;

    if (t->given_up)
        return "given-up";
    if (!cluster_target_live(c, t->id, &from))
        return cluster_node_up(cluster_node_live(c, t->node)) ? "missing" : "unreachable";
    if (!cluster_node_up(from))
        return "unreachable";
    return t->state == MAP_TARGET_ONLINE ? "online" : "offline";
}

static unsigned use_percent(uint64_t used_bytes, uint64_t free_bytes)
{
    uint64_t all = used_bytes + free_bytes;

    return all ? (unsigned)((used_bytes * 100 + all - 1) / all) : 0;
}

unsigned cluster_use_percent(const struct msg_target_stat *live)
{
    return use_percent(live->used_bytes, live->free_bytes);
}

bool cluster_target_refused(const struct cluster *c, const struct map_target *t)
{
    for (uint32_t i = 0; i < c->status->n_refused; i++)
        if (c->status->refused[i].instead_of == t->id)
            return true;
    return false;
}

void cluster_target_missing(struct out *o, const struct cluster *c, const struct map_target *t)
{
    const struct msg_node_live *from;
    const struct map_node *node;

    for (uint32_t i = 0; i < c->status->n_refused; i++) {
        const struct msg_refused_target *r = &c->status->refused[i];

        if (r->instead_of == t->id && t->given_up)
            out_warning(o,
                        "target %u, which was given up, is there again at %.*s of %.*s: it is not "
                        "used, for what was removed meanwhile is still on it. An empty directory "
                        "in its place becomes a new target when the server is started again",
                        t->id, (int)r->path.len, (const char *)r->path.data, (int)r->alias.len,
                        (const char *)r->alias.data);
        else if (r->instead_of == t->id)
            out_warning(o,
                        "target %u lived at %.*s on %.*s and is not there, but a new target, which "
                        "was refused: is its disk mounted? Mount it, and start the server again if "
                        "it runs; "
                        "if it is lost: aifs-admin target replace %u",
                        t->id, (int)r->path.len, (const char *)r->path.data, (int)r->alias.len,
                        (const char *)r->alias.data, t->id);
    }
    node = map_node(c->map, t->node);
    if (!cluster_target_refused(c, t) && !t->given_up && node && t->state != MAP_TARGET_ONLINE &&
        cluster_node_up(cluster_node_live(c, t->node)) && !cluster_target_live(c, t->id, &from))
        out_warning(o,
                    "target %u lived at %s on %s and is not there: was its directory renamed, is "
                    "its disk gone? The log of the server tells. When it is there again it serves, "
                    "or does after a restart of the server if that was started without it",
                    t->id, t->path[0] ? t->path : "a path that is not known", node->alias);
}

/* A client renews its session three times in a lease. */
static bool session_is_silent(const struct cluster *c, const struct msg_session_info *s)
{
    uint64_t lease_ns = c->status->lease_ns ? c->status->lease_ns : LEASE_NS;

    return s->disconnected || s->seen_ns_ago > lease_ns / 2;
}

const char *cluster_session_state(const struct cluster *c, const struct msg_session_info *s)
{
    if (s->state == MSG_SESSION_EVICTED)
        return "evicted";
    if (s->state == MSG_SESSION_CLOSING)
        return "closing";
    if (s->disconnected)
        return "disconnected";
    if (session_is_silent(c, s))
        return "silent";
    return s->state == MSG_SESSION_RECLAIMS ? "reclaims" : "connected";
}

/* ---- status ---- */

struct sums {
    uint64_t total, used, free, online, errors, silent, targets, given_up, full, filled, refused;
};

static struct sums add_up(const struct cluster *c)
{
    struct sums s = {0};

    for (uint32_t i = 0; i < c->status->n_sessions; i++)
        s.silent += session_is_silent(c, &c->status->sessions[i]);
    for (uint32_t i = 0; i < c->map->n_targets; i++) {
        const struct msg_node_live *node;
        const struct msg_target_stat *live = cluster_target_live(c, c->map->targets[i].id, &node);

        s.given_up += c->map->targets[i].given_up;
        s.refused += cluster_target_refused(c, &c->map->targets[i]);
        if (!live)
            continue;
        s.total += live->total_bytes;
        s.used += live->used_bytes;
        s.free += live->free_bytes;
        s.errors += live->errors;
        s.online += !strcmp(cluster_target_state(c, &c->map->targets[i]), "online");
        s.full += cluster_use_percent(live) >= CLUSTER_FULL_PERCENT;
        s.filled += cluster_use_percent(live) >= CLUSTER_FILLED_PERCENT;
    }
    s.targets = c->map->n_targets - s.given_up;
    return s;
}

static struct out *status_json(const struct admin *a, const struct cluster *c, const struct sums *s,
                               const char *health)
{
    static const struct out_column columns[] = {
        {"FILESYSTEM", OUT_TEXT, NULL},      {"ID", OUT_TEXT, NULL},
        {"VERSION", OUT_TEXT, NULL},         {"HEALTH", OUT_TEXT, NULL},
        {"UPTIME-NS", OUT_COUNT, NULL},      {"MAP-EPOCH", OUT_COUNT, NULL},
        {"INODES", OUT_COUNT, NULL},         {"OPERATIONS", OUT_COUNT, NULL},
        {"COMMITS", OUT_COUNT, NULL},        {"TARGETS", OUT_COUNT, NULL},
        {"TARGETS-ONLINE", OUT_COUNT, NULL}, {"TOTAL-BYTES", OUT_COUNT, NULL},
        {"USED-BYTES", OUT_COUNT, NULL},     {"ERRORS", OUT_COUNT, NULL},
        {"CLIENTS", OUT_COUNT, NULL},        {"CLIENTS-SILENT", OUT_COUNT, NULL},
        {"DESTROY-QUEUE", OUT_COUNT, NULL},  {"PUNCH-QUEUE", OUT_COUNT, NULL},
        {"RECOVERY-QUEUE", OUT_COUNT, NULL}, {"ORPHANS", OUT_COUNT, NULL},
        {"TRASH-QUEUE", OUT_COUNT, NULL},    {"TARGETS-GIVEN-UP", OUT_COUNT, NULL},
        {"TARGETS-FULL", OUT_COUNT, NULL}};
    const struct msg_status_rep *r = c->status;
    char id[UUID_TEXT_BYTES], text[128];
    struct out *o = out_table(a, "aifs.status/1", columns, ARRAY_LEN(columns));

    uuid_format(&r->fs, id);
    snprintf(text, sizeof text, "%.*s", (int)r->fs_name.len, (const char *)r->fs_name.data);
    out_text(o, text);
    out_text(o, id);
    snprintf(text, sizeof text, "%.*s", (int)r->version.len, (const char *)r->version.data);
    out_text(o, text);
    out_text(o, health);
    out_number(o, r->uptime_ns);
    out_number(o, r->map_epoch);
    out_number(o, r->inodes);
    out_number(o, r->operations);
    out_number(o, r->commits);
    out_number(o, s->targets);
    out_number(o, s->online);
    out_number(o, s->total);
    out_number(o, s->used);
    out_number(o, s->errors);
    out_number(o, r->n_sessions);
    out_number(o, s->silent);
    out_number(o, r->destroy_queue);
    out_number(o, r->punch_queue);
    out_number(o, r->recovery_queue);
    out_number(o, r->orphans);
    out_number(o, r->trash_queue);
    out_number(o, s->given_up);
    out_number(o, s->full);
    return o;
}

static void status_text(const struct cluster *c, const struct sums *s, const char *health)
{
    const struct msg_status_rep *r = c->status;
    char id[UUID_TEXT_BYTES], used[32], total[32];

    uuid_format(&r->fs, id);
    printf("filesystem  %.*s   id %s   version %.*s   health %s\n", (int)r->fs_name.len,
           (const char *)r->fs_name.data, id, (int)r->version.len, (const char *)r->version.data,
           health);
    printf("mds         1/1 up, %llu inodes, %llu operations in %llu commits since the start %llu "
           "s ago\n",
           (unsigned long long)r->inodes, (unsigned long long)r->operations,
           (unsigned long long)r->commits, (unsigned long long)(r->uptime_ns / NS_PER_S));
    printf("targets     %llu/%llu online", (unsigned long long)s->online,
           (unsigned long long)s->targets);
    if (s->given_up)
        printf(", %llu given up", (unsigned long long)s->given_up);
    printf("   used %s of %s (%u%%)%s\n", text_format_size(s->used, used, sizeof used),
           text_format_size(s->total, total, sizeof total), use_percent(s->used, s->free),
           s->errors ? "   ERRORS: see target list" : "");
    printf("clients     %u", r->n_sessions);
    if (s->silent)
        printf(" (%llu without a living connection: see client list)",
               (unsigned long long)s->silent);
    putchar('\n');
    printf(
        "queues      %llu objects to destroy, %llu truncates, %llu size recoveries, %llu orphans\n",
        (unsigned long long)r->destroy_queue, (unsigned long long)r->punch_queue,
        (unsigned long long)r->recovery_queue, (unsigned long long)r->orphans);
    for (uint32_t i = 0; i < r->n_trees; i++)
        printf(
            "rmtree      %.*s: %llu names removed in %llu s, %llu directories and the objects of "
            "%llu files left\n",
            (int)r->trees[i].name.len, (const char *)r->trees[i].name.data,
            (unsigned long long)r->trees[i].removed,
            (unsigned long long)(r->trees[i].started_ns_ago / NS_PER_S),
            (unsigned long long)r->trees[i].directories, (unsigned long long)r->trees[i].objects);
}

/* Clients that wait for a server, those of one target together. */
static void warn_waits(struct out *o, const struct cluster *c, const struct map_target *t)
{
    uint64_t oldest_ns = 0;
    uint32_t clients = 0;

    for (uint32_t i = 0; i < c->status->n_sessions; i++) {
        const struct msg_session_info *s = &c->status->sessions[i];

        if (!s->waiting || s->waits_target != t->id)
            continue;
        clients++;
        oldest_ns = MAX(oldest_ns, s->waits_ns);
    }
    if (clients && map_node(c->map, t->node))
        out_warning(o, "%u client%s for target %u (%s) on %s, for up to %.0f s now: see top",
                    clients, clients == 1 ? " waits" : "s wait", t->id, t->alias,
                    map_node(c->map, t->node)->alias, (double)oldest_ns / (double)NS_PER_S);
}

/* What it offered within this time in the place of a target was refused, and it was not let in: one
 * that has other targets as well is heard of when it registers, and later. */
static bool node_refused(const struct cluster *c, const struct map_node *n, uint64_t within_ns)
{
    const struct msg_node_live *live = cluster_node_live(c, n->id);
    const uint64_t heard_ns = live ? live->seen_ns_ago : UINT64_MAX;

    for (uint32_t i = 0; i < c->status->n_refused; i++) {
        const struct msg_refused_target *r = &c->status->refused[i];
        const struct map_target *t = map_target(c->map, r->instead_of);

        if (t && t->node == n->id && r->seen_ns_ago <= within_ns && r->seen_ns_ago < heard_ns)
            return true;
    }
    return false;
}

static void warn_full(struct out *o, const struct map_target *t, const struct msg_target_stat *live)
{
    unsigned percent = live ? cluster_use_percent(live) : 0;

    if (percent >= CLUSTER_FULL_PERCENT)
        out_warning(o, "target %u (%s) is full: files that are striped over it get ENOSPC", t->id,
                    t->alias);
    else if (percent >= CLUSTER_FILLED_PERCENT)
        out_warning(o, "target %u (%s) is %u%% full", t->id, t->alias, percent);
}

/* Nothing of it is used any more, so nobody misses it. */
static bool node_given_up(const struct cluster *c, const struct map_node *n)
{
    unsigned given_up = 0;

    for (uint32_t i = 0; i < c->map->n_targets; i++) {
        if (c->map->targets[i].node != n->id)
            continue;
        if (!c->map->targets[i].given_up)
            return false;
        given_up++;
    }
    return given_up > 0;
}

void cluster_warn(struct out *o, const struct cluster *c)
{
    char name[96];

    for (uint32_t i = 0; i < c->status->n_nodes; i++) {
        const struct msg_node_live *live = &c->status->nodes[i];
        const struct map_node *n = map_node(c->map, live->id);

        if (n && !cluster_node_up(live) && node_refused(c, n, CLUSTER_LATE_NS))
            out_warning(o,
                        "server %s is there, but without any of its targets, and is not let in: "
                        "what it offers in their place was refused",
                        cluster_node_name(c->map, n, name));
        else if (n && !node_given_up(c, n) &&
                 (live->disconnected || live->seen_ns_ago > CLUSTER_MISSED_NS))
            out_warning(o, "server %s: not heard of for %.1f s%s%s",
                        cluster_node_name(c->map, n, name),
                        (double)live->seen_ns_ago / (double)NS_PER_S,
                        live->disconnected ? ", its connection is closed" : "",
                        node_refused(c, n, UINT64_MAX)
                            ? "; it has had nothing but what was refused: with its disks mounted "
                              "it has to be started again"
                            : "");
    }
    for (uint32_t i = 0; i < c->map->n_targets; i++) {
        const struct msg_node_live *node = NULL;
        const struct msg_target_stat *live = cluster_target_live(c, c->map->targets[i].id, &node);
        const char *state = cluster_target_state(c, &c->map->targets[i]);

        if (strcmp(state, "online") != 0 && !c->map->targets[i].given_up)
            out_warning(o, "target %u (%s) is %s", c->map->targets[i].id, c->map->targets[i].alias,
                        state);
        cluster_target_missing(o, c, &c->map->targets[i]);
        warn_full(o, &c->map->targets[i], live);
        warn_waits(o, c, &c->map->targets[i]);
    }
}

static const char *health_of(const struct sums *s)
{
    if (s->online < s->targets || s->errors || s->refused)
        return "DEGRADED";
    if (s->targets == 0)
        return "NO TARGETS";
    return s->full ? "FULL" : s->filled ? "NEARLY FULL" : "OK";
}

int cmd_status(struct admin *a, int argc, char **argv)
{
    struct cluster c;
    struct sums s;
    struct out *o;
    const char *health;
    int rc;

    if (argc != 0)
        return admin_usage("status", NULL, "unexpected argument %s", argv[0]);
    rc = cluster_get(a, &c);
    if (rc != ADMIN_OK)
        return rc;
    s = add_up(&c);
    health = health_of(&s);
    o = a->json ? status_json(a, &c, &s, health) : out_table(a, NULL, NULL, 0);
    if (!a->json)
        status_text(&c, &s, health);
    if (a->json || !a->quiet)
        cluster_warn(o, &c);
    if (a->json)
        out_print(o);
    else
        out_drop(o);
    rc = strcmp(health, "OK") ? ADMIN_PARTIAL : ADMIN_OK;
    cluster_put(&c);
    return rc;
}

/* ---- node ---- */

static void node_row(struct out *o, const struct cluster *c, const struct map_node *n)
{
    const struct msg_node_live *live = cluster_node_live(c, n->id);
    bool is_mds = n->type == MAP_NODE_MDS; /* it has just answered us */
    unsigned targets = 0;
    char addresses[MAP_ADDRS * (MAP_ADDR_BYTES + 1)] = "";
    size_t at = 0;

    for (uint32_t i = 0; i < n->n_addresses && at < sizeof addresses; i++)
        at += (size_t)snprintf(addresses + at, sizeof addresses - at, "%s%s", i ? "," : "",
                               n->addresses[i]);
    for (uint32_t i = 0; i < c->map->n_targets; i++)
        targets += c->map->targets[i].node == n->id && !c->map->targets[i].given_up;
    out_number(o, n->id);
    out_text(o, n->alias);
    out_text(o, is_mds ? "mds" : "oss");
    out_text(o, is_mds || cluster_node_up(live) ? "online"
                : node_given_up(c, n)           ? "given-up"
                                                : "unreachable");
    out_text(o, addresses);
    out_number(o, targets);
    if (is_mds)
        out_number(o, 0);
    else if (live)
        out_number(o, live->seen_ns_ago);
    else
        out_none(o);
}

static int node_table(struct admin *a, const char *only)
{
    static const struct out_column columns[] = {
        {"ID", OUT_COUNT, NULL},          {"ALIAS", OUT_TEXT, NULL},
        {"TYPE", OUT_TEXT, NULL},         {"STATE", OUT_TEXT, NULL},
        {"ADDRESSES", OUT_TEXT, NULL},    {"TARGETS", OUT_COUNT, NULL},
        {"LAST", OUT_AGE, "last_seen_ns"}};
    struct cluster c;
    struct out *o;
    bool found = false, all_up = true;
    char name[96];
    int rc = cluster_get(a, &c);

    if (rc != ADMIN_OK)
        return rc;
    o = out_table(a, only ? "aifs.node.show/1" : "aifs.node.list/1", columns, ARRAY_LEN(columns));
    for (uint32_t i = 0; i < c.map->n_nodes; i++) {
        const struct map_node *n = &c.map->nodes[i];
        const struct msg_node_live *live = cluster_node_live(&c, n->id);

        if (only && !admin_node_is(n, only))
            continue;
        found = true;
        node_row(o, &c, n);
        if (n->type == MAP_NODE_OSS && !cluster_node_up(live) && !node_given_up(&c, n)) {
            out_warning(o, "server %s is unreachable", cluster_node_name(c.map, n, name));
            all_up = false;
        }
    }
    if (only && !found) {
        admin_error("there is no server %s", only);
        out_drop(o);
        cluster_put(&c);
        return ADMIN_NOT_FOUND;
    }
    out_print(o);
    cluster_put(&c);
    return all_up ? ADMIN_OK : ADMIN_PARTIAL;
}

int cmd_node_list(struct admin *a, int argc, char **argv)
{
    return argc ? admin_usage("node", "list", "unexpected argument %s", argv[0])
                : node_table(a, NULL);
}

int cmd_node_show(struct admin *a, int argc, char **argv)
{
    return argc != 1 ? admin_usage("node", "show", "say which server") : node_table(a, argv[0]);
}

/* ---- client ---- */

static void out_bytes(struct out *o, struct msg_bytes b)
{
    char text[512];

    snprintf(text, sizeof text, "%.*s", (int)MIN(b.len, sizeof text - 1),
             b.len ? (const char *)b.data : "");
    out_text(o, text);
}

/* The server tells of its connection "ROLE NAME ADDRESS TRANSPORT": the address. */
static struct msg_bytes address_of(struct msg_bytes b)
{
    const char *text = (const char *)b.data, *last, *first;
    size_t len = b.len;

    last = text && len ? memrchr(text, ' ', len) : NULL;
    if (!last)
        return b;
    first = memrchr(text, ' ', (size_t)(last - text));
    return first ? (struct msg_bytes){first + 1, (uint32_t)(last - first - 1)} : b;
}

/* The server and target that it has waited for the longest, as it says itself. */
static void out_waits(struct out *o, const struct cluster *c, const struct msg_session_info *s)
{
    const struct map_target *t = s->waiting ? map_target(c->map, s->waits_target) : NULL;
    const struct map_node *node = t ? map_node(c->map, t->node) : NULL;
    char text[MAP_NAME_BYTES + 32];

    if (!node) {
        for (int i = 0; i < 3; i++)
            out_none(o);
        return;
    }
    snprintf(text, sizeof text, "%s (target %u)", node->alias, t->id);
    out_text(o, text);
    out_number(o, s->waits_ns);
    out_number(o, s->waiting);
}

int cmd_client_list(struct admin *a, int argc, char **argv)
{
    static const struct out_column columns[] = {
        {"SESSION", OUT_COUNT, NULL},      {"HOST", OUT_TEXT, NULL},
        {"PID", OUT_COUNT, NULL},          {"MOUNT", OUT_TEXT, NULL},
        {"ADDRESS", OUT_TEXT, NULL},       {"JOB", OUT_TEXT, NULL},
        {"OPENS", OUT_COUNT, NULL},        {"LEASES", OUT_COUNT, NULL},
        {"LAST", OUT_AGE, "last_seen_ns"}, {"STATE", OUT_TEXT, NULL},
        {"WAITS-FOR", OUT_TEXT, NULL},     {"SINCE", OUT_AGE, "waits_ns"},
        {"REQUESTS", OUT_COUNT, NULL}};
    struct cluster c;
    struct out *o;
    int rc;

    if (argc != 0)
        return admin_usage("client", "list", "unexpected argument %s", argv[0]);
    rc = cluster_get(a, &c);
    if (rc != ADMIN_OK)
        return rc;
    o = out_table(a, "aifs.client.list/1", columns, ARRAY_LEN(columns));
    for (uint32_t i = 0; i < c.status->n_sessions; i++) {
        const struct msg_session_info *s = &c.status->sessions[i];

        out_number(o, s->session);
        out_bytes(o, s->host);
        out_number(o, s->pid);
        out_bytes(o, s->mount);
        out_bytes(o, address_of(s->address));
        out_bytes(o, s->job);
        out_number(o, s->opens);
        out_number(o, s->leases);
        out_number(o, s->seen_ns_ago);
        out_text(o, cluster_session_state(&c, s));
        out_waits(o, &c, s);
    }
    out_print(o);
    cluster_put(&c);
    return ADMIN_OK;
}
