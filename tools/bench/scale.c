/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `scale`: does throughput grow with servers? Clusters of growing size in a network of name spaces
 * (scale.h), each server behind a link of its own of a bounded speed, so that a machine of few
 * cores can stand for many. The limit of each row is the sum of the servers' links.
 */
#include "tools/bench/scale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"

#define PLOT_WIDTH 40u

static struct {
    const char *servers, *clients, *access;
    uint64_t link;
    double seconds;
} opt = {.servers = "1,2,4,8",
         .clients = "1,2,4",
         .access = "lib,mount",
         .link = 100000000,
         .seconds = 2};

static const struct bench_option options[] = {
    {"servers", BENCH_TEXT, &opt.servers, "data servers of each cluster (1,2,4,8)"},
    {"clients", BENCH_TEXT, &opt.clients, "clients of each load (1,2,4)"},
    {"access", BENCH_TEXT, &opt.access, "lib, mount or both (lib,mount)"},
    {"link", BENCH_SIZE, &opt.link, "bytes per second of each server, each way (100000000)"},
    {"seconds", BENCH_SECONDS, &opt.seconds, "of each row, if links are the limit (2)"},
};

struct numbers {
    unsigned n, of[16];
};

static bool parse(const char *list, unsigned max, struct numbers *ret)
{
    char copy[128], *save = NULL;
    uint64_t v;

    *ret = (struct numbers){0};
    snprintf(copy, sizeof copy, "%s", list);
    for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        if (text_parse_u64(word, &v) < 0 || v == 0 || v > max || ret->n == ARRAY_LEN(ret->of))
            return false;
        ret->of[ret->n++] = (unsigned)v;
    }
    return ret->n > 0;
}

static const char *const access_names[] = {"lib", "mount"};

static void add(struct bench *b, const struct scale_load *l, const char *what,
                const struct scale_outcome *o)
{
    struct bench_result *r;
    char name[48];

    snprintf(name, sizeof name, "scale.%s.%s.s%u.c%u", access_names[l->access], what,
             l->cluster->n_servers, l->n_clients);
    r = bench_add(b, name, "MB/s", (double)o->bytes / 1e6 / o->seconds, o->seconds);
    r->bytes = o->bytes;
    r->operations = o->bytes / MIB;
    r->cpu_seconds = o->cpu_seconds;
    r->limit = (double)opt.link / 1e6 * l->cluster->n_servers;
    r->limit_name = "the servers' links";
    if (l->n_clients < 2)
        return;
    snprintf(name, sizeof name, "scale.%s.%s.s%u.c%u.spread", access_names[l->access], what,
             l->cluster->n_servers, l->n_clients);
    bench_add(b, name, "%", 100 * (o->fastest - o->slowest) / o->fastest, o->seconds);
}

/* All loads on one cluster. */
static int one_cluster(struct bench *b, struct scale_cluster *c, const struct numbers *clients)
{
    struct scale_outcome writing, reading;
    int rc = scale_cluster_start(c);

    for (unsigned a = 0; a < ARRAY_LEN(access_names); a++)
        for (unsigned i = 0; i < clients->n && rc == 0; i++) {
            struct scale_load l = {
                .cluster = c, .access = (enum scale_access)a, .n_clients = clients->of[i]};
            struct bench_progress *progress;
            char name[48];

            if (!bench_listed(opt.access, access_names[a]))
                continue;
            l.bytes = (uint64_t)((double)opt.link * c->n_servers * opt.seconds);
            snprintf(name, sizeof name, "scale %s, %u servers, %u clients", access_names[a],
                     c->n_servers, l.n_clients);
            progress = bench_progress_begin(name, 0);
            rc = scale_load_run(&l, &writing, &reading);
            bench_progress_end(progress);
            if (rc)
                break;
            add(b, &l, "write", &writing);
            add(b, &l, "read", &reading);
        }
    scale_machines_stop();
    return rc;
}

struct plan {
    struct numbers servers, clients;
};

static int in_world(struct bench *b, void *arg)
{
    const struct plan *p = arg;
    int rc = 0;

    for (unsigned i = 0; i < p->servers.n && rc == 0; i++) {
        struct scale_cluster c = {.n_servers = p->servers.of[i], .link_bytes_per_s = opt.link};

        rc = one_cluster(b, &c, &p->clients);
    }
    return rc;
}

/* ---- the table ---- */

static const struct bench_result *find(const struct bench *b, const char *access, const char *what,
                                       unsigned servers, unsigned clients)
{
    char name[48];

    snprintf(name, sizeof name, "scale.%s.%s.s%u.c%u", access, what, servers, clients);
    for (unsigned i = 0; i < b->n_results; i++)
        if (!strcmp(b->results[i].name, name))
            return &b->results[i];
    return NULL;
}

/* How many times the smallest cluster's figure, as rows; and as a table with bars for people. */
static void factors(struct bench *b, const struct plan *p, const char *access, const char *what,
                    unsigned clients)
{
    static const char bar[] = "########################################";
    unsigned last = p->servers.of[p->servers.n - 1], first = p->servers.of[0];
    const struct bench_result *one = find(b, access, what, first, clients);
    double most = (double)opt.link / 1e6 * last, seconds;
    char name[48];

    if (!one)
        return;
    for (unsigned i = 0; i < p->servers.n; i++) {
        const struct bench_result *r = find(b, access, what, p->servers.of[i], clients);
        unsigned width = r ? (unsigned)(MIN(1.0, r->value / most) * PLOT_WIDTH) : 0;

        if (r && !b->json)
            printf("%-6s %-6s %8u %8u %9.0f %6.2fx %5.0f%% |%-*.*s|\n", access, what, clients,
                   p->servers.of[i], r->value, r->value / one->value, 100 * r->value / r->limit,
                   (int)PLOT_WIDTH, (int)width, bar);
    }
    if (first == last || !find(b, access, what, last, clients))
        return;
    seconds = one->seconds;
    snprintf(name, sizeof name, "scale.%s.%s.factor.s%u.c%u", access, what, last, clients);
    bench_add(b, name, "x", find(b, access, what, last, clients)->value / one->value, seconds);
    bench_last(b)->limit = (double)last / first;
    bench_last(b)->limit_name = "linear";
}

static void table(struct bench *b, const struct plan *p)
{
    static const char *const whats[] = {"read", "write"};

    if (!b->json)
        printf("ACCESS WHAT    CLIENTS  SERVERS      MB/s  FACTOR  LINKS\n");
    for (unsigned a = 0; a < ARRAY_LEN(access_names); a++)
        for (unsigned w = 0; w < ARRAY_LEN(whats); w++)
            for (unsigned c = 0; c < p->clients.n; c++)
                factors(b, p, access_names[a], whats[w], p->clients.of[c]);
    if (!b->json)
        putchar('\n');
}

static int run(struct bench *b, int argc, char **argv)
{
    struct plan p;
    int rc;

    (void)argv;
    if (argc != 0 || !parse(opt.servers, SCALE_SERVERS_MAX, &p.servers) ||
        !parse(opt.clients, SCALE_CLIENTS_MAX, &p.clients) || opt.link < MIB || opt.seconds <= 0 ||
        (!bench_listed(opt.access, "lib") && !bench_listed(opt.access, "mount"))) {
        bench_error("scale: takes no path; --servers up to %u, --clients up to %u, --access lib or "
                    "mount, a --link of 1Mi or more",
                    SCALE_SERVERS_MAX, SCALE_CLIENTS_MAX);
        return 2;
    }
    rc = scale_world_run(b, in_world, &p);
    table(b, &p);
    bench_note(b, "scale: each server behind a link of %.0f MB/s each way, all on this machine",
               (double)opt.link / 1e6);
    return rc;
}

const struct bench_scenario bench_scale = {
    "scale", "[options]",        "throughput against servers, in a network of name spaces",
    options, ARRAY_LEN(options), run};
