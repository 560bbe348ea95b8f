// SPDX-License-Identifier: Apache-2.0
/*
 * The registry of counters and the arithmetic of histograms. Recording touches only the object
 * itself. Registering, unregistering and printing take the one mutex; series of one name are kept
 * next to each other in the list because the text format wants them together. Printing calls
 * callbacks under that mutex, so that an object cannot vanish while it is read: a callback must not
 * register or unregister.
 */
#include "common/stat/stat_int.h"

#include <pthread.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/cleanup.h"

#define SUB_SHIFT 3 /* log2(STAT_HIST_SUB) */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct list registry = {&registry, &registry};

static void stat_register(struct stat_item *s, enum stat_kind kind, const char *name,
                          const char *labels, const char *help)
{
    AUTO_LOCK(&mutex);
    struct list *e;

    s->kind = kind;
    s->name = name;
    s->labels = labels;
    s->help = help;
    for (e = registry.prev; e != &registry; e = e->prev) {
        if (strcmp(list_entry(e, struct stat_item, link)->name, name) == 0)
            break;
    }
    list_push_front(e == &registry ? registry.prev : e,
                    &s->link); /* right behind its name's last, or at the end */
}

void stat_counter_register(struct stat_counter *c, const char *name, const char *labels,
                           const char *help)
{
    stat_register(&c->stat, STAT_COUNTER, name, labels, help);
}

void stat_gauge_register(struct stat_gauge *g, const char *name, const char *labels,
                         const char *help)
{
    stat_register(&g->stat, STAT_GAUGE, name, labels, help);
}

void stat_histogram_register(struct stat_histogram *h, const char *name, const char *labels,
                             const char *help)
{
    stat_register(&h->stat, STAT_HISTOGRAM, name, labels, help);
}

void stat_callback_register(struct stat_callback *c, const char *name, const char *labels,
                            const char *help, int64_t (*fn)(void *arg), void *arg)
{
    c->fn = fn;
    c->arg = arg;
    stat_register(&c->stat, STAT_CALLBACK, name, labels, help);
}

void stat_unregister(struct stat_item *s)
{
    AUTO_LOCK(&mutex);

    if (s->link.next) /* never registered: zero */
        list_remove(&s->link);
}

unsigned stat_bucket_of(uint64_t ns)
{
    unsigned exponent, bucket;

    if (ns < STAT_HIST_SUB)
        return (unsigned)ns;
    exponent = 63 - (unsigned)__builtin_clzll(ns);
    bucket = (exponent - SUB_SHIFT + 1) * STAT_HIST_SUB +
             (unsigned)(ns >> (exponent - SUB_SHIFT) & (STAT_HIST_SUB - 1));
    return MIN(bucket, (unsigned)STAT_HIST_BUCKETS - 1);
}

uint64_t stat_bucket_upper(unsigned bucket)
{
    unsigned shift;

    ASSERT(bucket < STAT_HIST_BUCKETS);
    if (bucket < STAT_HIST_SUB)
        return bucket;
    shift = bucket / STAT_HIST_SUB - 1;
    return ((uint64_t)(STAT_HIST_SUB + bucket % STAT_HIST_SUB + 1) << shift) - 1;
}

void stat_record(struct stat_histogram *h, uint64_t ns)
{
    atomic_fetch_add_explicit(&h->buckets[stat_bucket_of(ns)], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->sum, ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->count, 1, memory_order_relaxed);
}

static uint64_t bucket_count(const struct stat_histogram *h, unsigned bucket)
{
    return atomic_load_explicit(&h->buckets[bucket], memory_order_relaxed);
}

uint64_t stat_percentile(const struct stat_histogram *h, double p)
{
    uint64_t total = 0, rank, seen = 0;
    unsigned b;

    /* Not h->count: records may arrive while we look, and the buckets have to add up. */
    for (b = 0; b < STAT_HIST_BUCKETS; b++)
        total += bucket_count(h, b);
    if (!total)
        return 0;
    p = p < 0 ? 0 : MIN(p, 1.0);
    rank = (uint64_t)(p * (double)total);
    rank += (double)rank < p * (double)total; /* rounded up */
    rank = MIN(MAX(rank, 1), total);
    for (b = 0; b < STAT_HIST_BUCKETS - 1; b++) {
        seen += bucket_count(h, b);
        if (seen >= rank)
            break;
    }
    return stat_bucket_upper(b);
}

void stat_print_prometheus(struct strbuf *out)
{
    AUTO_LOCK(&mutex);
    const char *name = "";
    struct list *e;

    list_for_each (e, &registry) {
        const struct stat_item *s = list_entry(e, struct stat_item, link);

        stat_print_one(out, s, strcmp(s->name, name) != 0);
        name = s->name;
    }
}
