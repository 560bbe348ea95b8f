// SPDX-License-Identifier: Apache-2.0
/* Rates from counters; see the header. What servers say is not trusted to be in order, or to grow.
 */
#include "tools/admin/top_rate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/compiler.h"
#include "common/crypto/crypto.h"

static void *must(void *p)
{
    if (!p) {
        fputs("aifs-admin: out of memory\n", stderr);
        exit(1);
    }
    return p;
}

/* ---- samples ---- */

static int by_link(const void *a, const void *b)
{
    uint64_t x = ((const struct top_link *)a)->load.link;
    uint64_t y = ((const struct top_link *)b)->load.link;

    return x < y ? -1 : x > y;
}

void top_sample_take(struct top_sample *s, const struct msg_load_rep *rep)
{
    *s = (struct top_sample){.boot = rep->boot,
                             .now_ns = rep->now_ns,
                             .more = rep->more,
                             .n_links = rep->n_links,
                             .links = must(calloc(rep->n_links + 1, sizeof *s->links))};
    for (uint32_t i = 0; i < rep->n_links; i++) {
        const struct msg_load *l = &rep->links[i];

        s->links[i].load = *l;
        s->links[i].load.name = (struct msg_bytes){0};
        snprintf(s->links[i].name, sizeof s->links[i].name, "%.*s", (int)l->name.len,
                 l->name.len ? (const char *)l->name.data : "");
    }
    qsort(s->links, s->n_links, sizeof *s->links, by_link);
}

void top_sample_drop(struct top_sample *s)
{
    free(s->links);
    *s = (struct top_sample){0};
}

/* ---- rates ---- */

/* What to count from: false if that is not known. */
static bool base_of(const struct top_sample *before, const struct top_sample *after,
                    const struct top_link *l, struct msg_load *ret_base)
{
    const struct top_link *found;

    *ret_base = (struct msg_load){0};
    if (!before->now_ns || !uuid_equal(&before->boot, &after->boot) ||
        after->now_ns <= before->now_ns)
        return false;
    found = bsearch(l, before->links, before->n_links, sizeof *l, by_link);
    if (found)
        *ret_base = found->load;
    return found || !before->more;
}

static double rate(uint64_t from, uint64_t to, uint64_t ns)
{
    return to > from ? (double)(to - from) * (double)NS_PER_S / (double)ns : 0;
}

static struct top_row *next_row(struct top_table *t)
{
    if (t->n == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 64;
        t->rows = must(realloc(t->rows, t->cap * sizeof *t->rows));
    }
    t->rows[t->n] = (struct top_row){0};
    return &t->rows[t->n++];
}

static void key_of(struct top_row *r, enum top_by by)
{
    if (by == TOP_BY_SERVER)
        snprintf(r->key, sizeof r->key, "%010u", r->server);
    else if (by == TOP_BY_JOB)
        snprintf(r->key, sizeof r->key, "%016llx", (unsigned long long)r->job);
    else if (r->session)
        snprintf(r->key, sizeof r->key, "session %020llu", (unsigned long long)r->session);
    else
        snprintf(r->key, sizeof r->key, "%u %s", r->role, r->name);
}

void top_add(struct top_table *t, enum top_by by, uint32_t server, const struct top_sample *before,
             const struct top_sample *after)
{
    uint64_t ns = after->now_ns - before->now_ns;

    for (uint32_t i = 0; i < after->n_links; i++) {
        const struct msg_load *l = &after->links[i].load;
        struct top_row *r = next_row(t);
        struct msg_load base;

        r->server = server;
        r->session = l->session;
        r->job = l->job;
        r->role = l->role;
        memcpy(r->name, after->links[i].name, sizeof r->name);
        r->waiting = l->waiting;
        r->oldest_op = l->oldest_op;
        r->oldest_ns = l->oldest_ns;
        key_of(r, by);
        if (!base_of(before, after, &after->links[i], &base))
            continue;
        r->operations = rate(base.operations, l->operations, ns);
        r->read_bytes = rate(base.read_bytes, l->read_bytes, ns);
        r->written_bytes = rate(base.written_bytes, l->written_bytes, ns);
        r->busy_ns = rate(base.busy_ns, l->busy_ns, ns);
    }
}

void top_add_server(struct top_table *t, uint32_t server)
{
    struct top_row *r = next_row(t);

    r->server = server;
    key_of(r, TOP_BY_SERVER);
}

/* ---- the table ---- */

static int by_key(const void *a, const void *b)
{
    const struct top_row *x = a, *y = b;
    int rc = strcmp(x->key, y->key);

    return rc ? rc : x->session < y->session ? -1 : x->session > y->session;
}

static int by_load(const void *a, const void *b)
{
    const struct top_row *x = a, *y = b;

    if (x->busy_ns != y->busy_ns)
        return x->busy_ns > y->busy_ns ? -1 : 1;
    if (x->waiting != y->waiting)
        return x->waiting > y->waiting ? -1 : 1;
    if (x->operations != y->operations)
        return x->operations > y->operations ? -1 : 1;
    return strcmp(x->key, y->key);
}

static void merge(struct top_row *into, const struct top_row *r)
{
    into->operations += r->operations;
    into->read_bytes += r->read_bytes;
    into->written_bytes += r->written_bytes;
    into->busy_ns += r->busy_ns;
    into->waiting += r->waiting;
    if (r->oldest_op && (!into->oldest_op || r->oldest_ns > into->oldest_ns)) {
        into->oldest_op = r->oldest_op;
        into->oldest_ns = r->oldest_ns;
    }
}

void top_finish(struct top_table *t, enum top_by by)
{
    uint64_t session = 0; /* of the last row merged */
    size_t n = 0;

    if (t->n == 0)
        return;
    qsort(t->rows, t->n, sizeof *t->rows, by_key);
    for (size_t i = 0; i < t->n; i++) {
        struct top_row r = t->rows[i];
        bool same = n && !strcmp(t->rows[n - 1].key, r.key);

        if (by != TOP_BY_SERVER && r.operations == 0 && r.waiting == 0)
            continue;
        r.n_clients = r.session && (!same || r.session != session);
        session = r.session;
        if (!same) {
            t->rows[n++] = r;
            continue;
        }
        merge(&t->rows[n - 1], &r);
        t->rows[n - 1].n_clients += r.n_clients;
        if (!t->rows[n - 1].session)
            t->rows[n - 1].session = r.session;
    }
    t->n = n;
    qsort(t->rows, t->n, sizeof *t->rows, by_load);
}

void top_drop(struct top_table *t)
{
    free(t->rows);
    *t = (struct top_table){0};
}

uint64_t top_whole(double per_second)
{
    uint64_t whole = (uint64_t)(per_second + 0.5);

    return whole == 0 && per_second > 0 ? 1 : whole;
}

uint64_t top_latency_ns(const struct top_row *r)
{
    return r->operations > 0 ? (uint64_t)(r->busy_ns / r->operations) : 0;
}
