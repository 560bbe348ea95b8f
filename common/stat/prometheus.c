// SPDX-License-Identifier: Apache-2.0
/*
 * Everything registered, as Prometheus text format 0.0.4. A histogram whose name ends in "_seconds"
 * is printed in seconds, any other in its own unit. Of the fine buckets two per power of two are
 * printed, at fixed bounds, so that the series of all servers add up. Running out of memory marks
 * the strbuf as failed and nothing else.
 */
#include <inttypes.h>
#include <string.h>

#include "common/stat/stat_int.h"

/* Bounds of the printed range as exponents: 1 us to 69 s of time; 1 to 2^36 of anything else. */
#define FIRST_EXPONENT_TIME 10u
#define FIRST_EXPONENT_ANY  3u
#define LAST_EXPONENT       36u
#define PRINTED_PER_POWER   2u

static const char *const type_names[] = {[STAT_COUNTER] = "counter",
                                         [STAT_GAUGE] = "gauge",
                                         [STAT_HISTOGRAM] = "histogram",
                                         [STAT_CALLBACK] = "gauge"};

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);

    return n >= m && strcmp(s + n - m, end) == 0;
}

/* name_suffix{labels,extra} and a space; either part may be empty. */
static void print_series(struct strbuf *out, const struct stat_item *s, const char *suffix,
                         const char *extra)
{
    const char *labels = s->labels ? s->labels : "";
    const char *comma = *labels && *extra ? "," : "";

    strbuf_printf(out, "%s%s", s->name, suffix);
    if (*labels || *extra)
        strbuf_printf(out, "{%s%s%s}", labels, comma, extra);
    strbuf_append(out, " ", 1);
}

static void print_histogram(struct strbuf *out, const struct stat_histogram *h)
{
    bool seconds = ends_with(h->stat.name, "_seconds");
    double scale = seconds ? (double)NS_PER_S : 1;
    unsigned step = STAT_HIST_SUB / PRINTED_PER_POWER, b;
    unsigned first =
        stat_bucket_of(1ull << (seconds ? FIRST_EXPONENT_TIME : FIRST_EXPONENT_ANY)) - 1;
    unsigned last = stat_bucket_of(1ull << LAST_EXPONENT) - 1;
    uint64_t seen = 0;
    char le[48];

    for (b = 0; b < STAT_HIST_BUCKETS; b++) {
        seen += atomic_load_explicit(&h->buckets[b], memory_order_relaxed);
        if (b < first || b > last || (b - first) % step)
            continue;
        snprintf(le, sizeof le, "le=\"%.10g\"", (double)stat_bucket_upper(b) / scale);
        print_series(out, &h->stat, "_bucket", le);
        strbuf_printf(out, "%" PRIu64 "\n", seen);
    }
    print_series(out, &h->stat, "_bucket", "le=\"+Inf\"");
    strbuf_printf(out, "%" PRIu64 "\n", seen);
    print_series(out, &h->stat, "_sum", "");
    strbuf_printf(out, "%.10g\n",
                  (double)atomic_load_explicit(&h->sum, memory_order_relaxed) / scale);
    print_series(out, &h->stat, "_count", "");
    strbuf_printf(out, "%" PRIu64 "\n", seen);
}

static int64_t gauge_value(const struct stat_item *s)
{
    if (s->kind == STAT_CALLBACK) {
        const struct stat_callback *c = container_of(s, const struct stat_callback, stat);

        return c->fn(c->arg);
    }
    return atomic_load_explicit(&container_of(s, const struct stat_gauge, stat)->value,
                                memory_order_relaxed);
}

void stat_print_one(struct strbuf *out, const struct stat_item *s, bool first_of_name)
{
    if (first_of_name)
        strbuf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", s->name, s->help ? s->help : "", s->name,
                      type_names[s->kind]);
    if (s->kind == STAT_HISTOGRAM) {
        print_histogram(out, container_of(s, const struct stat_histogram, stat));
        return;
    }
    print_series(out, s, "", "");
    if (s->kind == STAT_COUNTER)
        strbuf_printf(out, "%" PRIu64 "\n",
                      stat_value(container_of(s, const struct stat_counter, stat)));
    else
        strbuf_printf(out, "%" PRId64 "\n", gauge_value(s));
}
