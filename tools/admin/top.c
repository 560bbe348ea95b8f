// SPDX-License-Identifier: Apache-2.0
/*
 * `top`: who keeps the servers busy. Every server is asked LOAD over a connection of its own, all
 * of them at once, and asked again after the interval; what the two answers say is in top_rate.h.
 * One that does not answer is a warning (by server: a row), and is asked again the next time; once
 * it has failed it is waited for no longer than an interval, or a second. Hosts, mounts and jobs of
 * sessions are known by the metadata server; it is asked again when there is a session that it has
 * not told of.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/base/text.h"
#include "common/crypto/crypto.h"
#include "tools/admin/cluster.h"
#include "tools/admin/top_rate.h"
#include "tools/admin/top_waits.h"

#define INTERVAL_MIN_NS (100 * NS_PER_MS)
#define INTERVAL_MAX_NS (3600 * NS_PER_S)
#define LIVE_COUNT      20u /* rows, unless told otherwise */

struct who { /* a session */
    uint64_t session;
    char host[64], mount[128], job[64];
};

struct server {
    struct rpc_peer *peer;
    int status; /* of the last time it was asked */
    struct top_sample before, now;
};

struct top {
    struct admin *admin;
    struct cluster_map *map;
    enum top_by by;
    uint64_t interval_ns, count;
    struct server *servers;    /* of map->nodes */
    struct rpc_sync_ask *asks; /* the same */
    struct who *who;           /* by session */
    uint32_t n_who;
    bool any_failed;
};

/* ---- names of sessions ---- */

static int by_session(const void *a, const void *b)
{
    uint64_t x = ((const struct who *)a)->session, y = ((const struct who *)b)->session;

    return x < y ? -1 : x > y;
}

static void copy(char *out, size_t cap, struct msg_bytes b)
{
    snprintf(out, cap, "%.*s", (int)b.len, b.len ? (const char *)b.data : "");
}

static void learn(struct top *t, const struct msg_status_rep *status)
{
    struct who *who = calloc(status->n_sessions + 1, sizeof *who);

    if (!who)
        return; /* what was known before is better than nothing */
    for (uint32_t i = 0; i < status->n_sessions; i++) {
        const struct msg_session_info *s = &status->sessions[i];

        who[i].session = s->session;
        copy(who[i].host, sizeof who[i].host, s->host);
        copy(who[i].mount, sizeof who[i].mount, s->mount);
        copy(who[i].job, sizeof who[i].job, s->job);
    }
    qsort(who, status->n_sessions, sizeof *who, by_session);
    free(t->who);
    t->who = who;
    t->n_who = status->n_sessions;
}

static const struct who *who_is(const struct top *t, uint64_t session)
{
    struct who key = {.session = session};

    return session && t->n_who ? bsearch(&key, t->who, t->n_who, sizeof key, by_session) : NULL;
}

/* A metadata server that is down has its warning already. */
static void learn_unknown(struct top *t, const struct top_table *table)
{
    static const struct msg_empty none;
    const void *rep;
    bool known = true;

    for (size_t i = 0; i < table->n && known; i++)
        known = !table->rows[i].session || who_is(t, table->rows[i].session);
    if (!known && rpc_sync_call(t->admin->sync, t->admin->mds_peer, RPC_OP_STATUS, &none,
                                MIN(t->admin->timeout_ns, NS_PER_S), &rep) == 0)
        learn(t, rep);
}

/* ---- asking ---- */

static void ask(struct top *t)
{
    static const struct msg_empty none;
    unsigned n = t->map->n_nodes;
    uint64_t timeout_ns = t->admin->timeout_ns;

    for (unsigned i = 0; i < n; i++)
        t->asks[i] =
            (struct rpc_sync_ask){.peer = t->servers[i].peer, .op = RPC_OP_LOAD, .req = &none};
    if (t->any_failed)
        timeout_ns = MIN(timeout_ns, MAX(t->interval_ns, NS_PER_S));
    rpc_sync_ask(t->admin->sync, t->asks, n, timeout_ns);
    t->any_failed = false;
    for (unsigned i = 0; i < n; i++) {
        struct server *s = &t->servers[i];

        top_sample_drop(&s->before);
        s->before = s->now;
        s->now = (struct top_sample){0};
        s->status = t->asks[i].status;
        if (s->status == 0)
            top_sample_take(&s->now, t->asks[i].rep);
        else
            t->any_failed = true;
    }
    rpc_sync_ask_fini(t->asks, n);
}

/* ---- the table ---- */

static const struct out_column columns_of[3][4] = {
    [TOP_BY_CLIENT] = {{"CLIENT", OUT_TEXT, NULL},
                       {"MOUNT", OUT_TEXT, NULL},
                       {"JOB", OUT_TEXT, NULL},
                       {"SESSION", OUT_COUNT, NULL}},
    [TOP_BY_JOB] = {{"JOB", OUT_TEXT, NULL}, {"CLIENTS", OUT_COUNT, NULL}},
    [TOP_BY_SERVER] = {{"SERVER", OUT_TEXT, NULL},
                       {"TYPE", OUT_TEXT, NULL},
                       {"STATE", OUT_TEXT, NULL},
                       {"CLIENTS", OUT_COUNT, NULL}}};
static const struct out_column columns_rates[] = {{"OPS/S", OUT_COUNT, "ops_per_s"},
                                                  {"READ/S", OUT_SIZE, "read_bytes_per_s"},
                                                  {"WRITE/S", OUT_SIZE, "written_bytes_per_s"},
                                                  {"LATENCY", OUT_LATENCY, "latency_ns"},
                                                  {"BUSY", OUT_PERCENT, "busy_percent"},
                                                  {"WAITING", OUT_COUNT, NULL},
                                                  {"OLDEST", OUT_TEXT, "oldest_op"},
                                                  {"FOR", OUT_LATENCY, "oldest_ns"}};

static void out_who(const struct top *t, struct out *o, const struct top_row *r)
{
    const struct who *w = who_is(t, r->session);
    const struct map_node *n = &t->map->nodes[r->server];
    char name[96];

    switch (t->by) {
    case TOP_BY_CLIENT:
        out_text(o, w ? w->host : r->name);
        out_text(o, w ? w->mount : NULL);
        out_text(o, w ? w->job : NULL);
        r->session ? out_number(o, r->session) : out_none(o);
        break;
    case TOP_BY_JOB:
        out_text(o, w && r->job ? w->job : NULL);
        out_number(o, r->n_clients);
        break;
    case TOP_BY_SERVER:
        out_text(o, cluster_node_name(t->map, n, name));
        out_text(o, n->type == MAP_NODE_MDS ? "mds" : "oss");
        out_text(o, t->servers[r->server].status ? "unreachable" : "up");
        out_number(o, r->n_clients);
        break;
    }
}

static void out_rates(const struct top *t, struct out *o, const struct top_row *r)
{
    if (t->by == TOP_BY_SERVER && t->servers[r->server].status) {
        for (unsigned i = 0; i < ARRAY_LEN(columns_rates); i++)
            out_none(o);
        return;
    }
    out_number(o, top_whole(r->operations));
    out_number(o, top_whole(r->read_bytes));
    out_number(o, top_whole(r->written_bytes));
    r->operations > 0 ? out_number(o, top_latency_ns(r)) : out_none(o);
    out_number(o, top_whole(r->busy_ns * 100 / NS_PER_S));
    out_number(o, r->waiting);
    out_text(o, r->oldest_op ? rpc_op_name(r->oldest_op) : NULL);
    r->oldest_op ? out_number(o, r->oldest_ns) : out_none(o);
}

static void warn(const struct top *t, struct out *o)
{
    char name[96];

    for (uint32_t i = 0; i < t->map->n_nodes; i++) {
        const struct server *s = &t->servers[i];

        if (s->status)
            out_warning(o, "server %s does not answer: %s",
                        cluster_node_name(t->map, &t->map->nodes[i], name), err_text(s->status));
        else if (s->now.more)
            out_warning(o, "server %s has more connections than are counted here",
                        cluster_node_name(t->map, &t->map->nodes[i], name));
    }
}

/* Who waits for whom, below the rest. A metadata server that is down has its warning already. */
static uint32_t show_waits(const struct top *t, struct out *o)
{
    bool more = false;
    uint32_t n = 0;
    struct out *waits =
        top_waits(t->admin, MIN(t->admin->timeout_ns, NS_PER_S), t->count, &more, &n);

    if (!waits)
        return 0;
    out_also(o, "waits", waits);
    if (more)
        out_warning(o, "more requests wait than the %u that are looked at", n);
    return n;
}

static void say_idle(const struct top *t, uint32_t n_waits)
{
    fflush(stdout);
    fprintf(stderr, "%s: no client has asked a server for anything in the last %.1f s\n",
            n_waits ? "not idle, but waiting" : "idle", (double)t->interval_ns / (double)NS_PER_S);
}

static void show(struct top *t)
{
    static const char *const schemas[] = {"aifs.top.client/1", "aifs.top.job/1",
                                          "aifs.top.server/1"};
    struct out_column columns[ARRAY_LEN(columns_of[0]) + ARRAY_LEN(columns_rates)];
    struct top_table table = {0};
    uint32_t n_waits;
    unsigned n = 0;
    struct out *o;

    for (uint32_t i = 0; i < t->map->n_nodes; i++) {
        if (t->by == TOP_BY_SERVER)
            top_add_server(&table, i);
        top_add(&table, t->by, i, &t->servers[i].before, &t->servers[i].now);
    }
    top_finish(&table, t->by);
    if (t->by != TOP_BY_SERVER)
        learn_unknown(t, &table);
    while (n < ARRAY_LEN(columns_of[0]) && columns_of[t->by][n].title) {
        columns[n] = columns_of[t->by][n];
        n++;
    }
    memcpy(columns + n, columns_rates, sizeof columns_rates);
    o = out_table(t->admin, schemas[t->by], columns, n + (unsigned)ARRAY_LEN(columns_rates));
    for (size_t i = 0; i < table.n && i < t->count; i++) {
        out_who(t, o, &table.rows[i]);
        out_rates(t, o, &table.rows[i]);
    }
    warn(t, o);
    n_waits = show_waits(t, o);
    out_print(o);
    if (table.n == 0 && !t->admin->json && !t->admin->quiet)
        say_idle(t, n_waits);
    top_drop(&table);
}

/* ---- the command ---- */

static int begin(struct top *t)
{
    struct cluster c;
    int rc = cluster_get(t->admin, &c);

    if (rc != ADMIN_OK)
        return rc;
    t->map = c.map;
    learn(t, c.status);
    t->servers = calloc(c.map->n_nodes + 1, sizeof *t->servers);
    t->asks = calloc(c.map->n_nodes + 1, sizeof *t->asks);
    if (!t->servers || !t->asks)
        return admin_fail(-ENOMEM, "top");
    for (uint32_t i = 0; i < c.map->n_nodes; i++) {
        const struct map_node *n = &c.map->nodes[i];
        const char *addresses[MAP_ADDRS];

        for (uint32_t k = 0; k < n->n_addresses; k++)
            addresses[k] = n->addresses[k];
        rc = rpc_sync_peer(t->admin->sync, addresses, n->n_addresses, &t->servers[i].peer);
        if (rc)
            return admin_fail(rc, "server %s", n->alias);
    }
    return ADMIN_OK;
}

static void end(struct top *t)
{
    for (uint32_t i = 0; t->servers && i < t->map->n_nodes; i++) {
        top_sample_drop(&t->servers[i].before);
        top_sample_drop(&t->servers[i].now);
    }
    free(t->servers);
    free(t->asks);
    free(t->who);
    if (t->map)
        map_put(t->map);
}

static int run(struct top *t, bool live)
{
    int rc = begin(t);

    if (rc != ADMIN_OK)
        return rc;
    ask(t);
    do {
        rpc_sync_sleep(t->admin->sync, t->interval_ns);
        ask(t);
        if (live)
            fputs("\033[H\033[J", stdout); /* a clear screen, from the top */
        show(t);
    } while (live && fflush(stdout) == 0);
    return t->any_failed ? ADMIN_PARTIAL : ADMIN_OK;
}

static bool parse_by(const char *text, enum top_by *ret_by)
{
    static const char *const names[] = {
        [TOP_BY_CLIENT] = "client", [TOP_BY_JOB] = "job", [TOP_BY_SERVER] = "server"};

    for (unsigned i = 0; i < ARRAY_LEN(names); i++)
        if (!strcmp(text, names[i])) {
            *ret_by = (enum top_by)i;
            return true;
        }
    return false;
}

int cmd_top(struct admin *a, int argc, char **argv)
{
    const char *by = "client", *interval = "1s", *count = NULL;
    bool once = false;
    const struct admin_option options[] = {{"by", 0, &by, NULL},
                                           {"interval", 'i', &interval, NULL},
                                           {"count", 'n', &count, NULL},
                                           {"once", 0, NULL, &once}};
    struct top t = {.admin = a};
    int rc, n = admin_options(options, ARRAY_LEN(options), argc, argv);

    if (n < 0)
        return ADMIN_USAGE;
    if (n > 0)
        return admin_usage("top", NULL, "unexpected argument %s", argv[0]);
    if (!parse_by(by, &t.by))
        return admin_usage("top", NULL, "--by is client, job or server, not \"%s\"", by);
    if (text_parse_duration(interval, &t.interval_ns) < 0 || t.interval_ns < INTERVAL_MIN_NS ||
        t.interval_ns > INTERVAL_MAX_NS)
        return admin_usage("top", NULL, "--interval is a time from 100ms to 1h, not \"%s\"",
                           interval);
    if (count && (text_parse_u64(count, &t.count) < 0 || t.count == 0))
        return admin_usage("top", NULL, "--count is a number of rows, not \"%s\"", count);
    once = once || a->json || !isatty(STDOUT_FILENO);
    if (!count)
        t.count = once ? UINT64_MAX : LIVE_COUNT;
    rc = run(&t, !once);
    end(&t);
    return rc;
}
