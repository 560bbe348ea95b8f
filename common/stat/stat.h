/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters, gauges and latency histograms.
 *
 * Objects are static or embedded in their owner and registered under a name and a fixed label
 * string; recording is one relaxed atomic add, from any thread, and never fails. A histogram is
 * log-linear (8 sub-buckets per power of two, 1 ns to 2^40 ns: about 6 % relative error), so that
 * histograms of several processes can be added bucket by bucket. stat_print_prometheus() writes
 * everything registered in the text format 0.0.4.
 */
#ifndef AIFS_COMMON_STAT_STAT_H
#define AIFS_COMMON_STAT_STAT_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/base/compiler.h"
#include "common/base/list.h"
#include "common/base/text.h"

enum stat_kind { STAT_COUNTER, STAT_GAUGE, STAT_HISTOGRAM, STAT_CALLBACK };

#define STAT_HIST_SUB     8
#define STAT_HIST_BUCKETS (STAT_HIST_SUB * 40)

struct stat_item {
    struct list link;
    enum stat_kind kind;
    const char *name;   /* "aifs_mds_requests_total"; borrowed for as long as registered */
    const char *labels; /* "op=\"create\"", or NULL */
    const char *help;
};

struct stat_counter {
    struct stat_item stat;
    _Atomic uint64_t value;
};

struct stat_gauge {
    struct stat_item stat;
    _Atomic int64_t value;
};

struct stat_histogram {
    struct stat_item stat;
    _Atomic uint64_t count, sum;
    _Atomic uint64_t buckets[STAT_HIST_BUCKETS];
};

/* A gauge computed when asked; fn runs on the printing thread and must be safe there. */
struct stat_callback {
    struct stat_item stat;
    int64_t (*fn)(void *arg);
    void *arg;
};

/* Register; unregister before the memory goes away. Both may be called by any thread. */
void stat_counter_register(struct stat_counter *c, const char *name, const char *labels,
                           const char *help);
void stat_gauge_register(struct stat_gauge *g, const char *name, const char *labels,
                         const char *help);
void stat_histogram_register(struct stat_histogram *h, const char *name, const char *labels,
                             const char *help);
void stat_callback_register(struct stat_callback *c, const char *name, const char *labels,
                            const char *help, int64_t (*fn)(void *arg), void *arg);
void stat_unregister(struct stat_item *s);

static inline void stat_add(struct stat_counter *c, uint64_t n)
{
    atomic_fetch_add_explicit(&c->value, n, memory_order_relaxed);
}

static inline void stat_inc(struct stat_counter *c)
{
    stat_add(c, 1);
}

static inline uint64_t stat_value(const struct stat_counter *c)
{
    return atomic_load_explicit(&c->value, memory_order_relaxed);
}

static inline void stat_gauge_add(struct stat_gauge *g, int64_t n)
{
    atomic_fetch_add_explicit(&g->value, n, memory_order_relaxed);
}

static inline void stat_gauge_set(struct stat_gauge *g, int64_t v)
{
    atomic_store_explicit(&g->value, v, memory_order_relaxed);
}

void stat_record(struct stat_histogram *h, uint64_t ns);
/* Upper bound of the bucket that holds the p-th part (0..1) of all records; 0 when there are
 * none. */
uint64_t stat_percentile(const struct stat_histogram *h, double p);
unsigned stat_bucket_of(uint64_t ns);
uint64_t stat_bucket_upper(unsigned bucket);
/* A histogram named "..._seconds" is printed in seconds, any other in its own unit. */
void stat_print_prometheus(struct strbuf *out);

#endif
