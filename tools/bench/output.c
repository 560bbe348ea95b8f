/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as text, or as one JSON document; and what is seen meanwhile on a terminal. */
#include <jansson.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "common/rt/thread.h"
#include "tools/bench/bench.h"

static const char *latency(uint64_t ns, char *out, size_t len)
{
    if (ns == 0)
        snprintf(out, len, "-");
    else if (ns < 10000000)
        snprintf(out, len, "%.1fus", (double)ns / 1e3);
    else
        snprintf(out, len, "%.1fms", (double)ns / 1e6);
    return out;
}

static double client_cpu_seconds(const struct bench_result *r)
{
    return r->cpu_seconds + MAX(r->mount_cpu_seconds, 0.0);
}

/* Whether it is of interest what one operation costs, not what a GiB does. */
static bool is_rate_of_operations(const struct bench_result *r)
{
    return r->operations > 0 && r->mds_cpu_seconds >= 0 && strstr(r->unit, "B/s") == NULL;
}

static void print_costs(const struct bench *b)
{
    for (unsigned i = 0; i < b->n_results; i++) {
        const struct bench_result *r = &b->results[i];
        double gib = (double)r->bytes / (double)GIB, each = (double)r->operations / 1e6;

        if (r->server_cpu_seconds < 0)
            continue;
        if (is_rate_of_operations(r))
            printf("cost of %-26s %6.1f us of CPU each here, %.1f in mounts, %.1f in the MDS, %.1f "
                   "in OSS\n",
                   r->name, r->cpu_seconds / each, MAX(r->mount_cpu_seconds, 0.0) / each,
                   r->mds_cpu_seconds / each,
                   MAX(r->server_cpu_seconds - r->mds_cpu_seconds, 0.0) / each);
        else if (r->bytes > 0)
            printf("cost of %-26s %6.2f s of CPU per GiB here and in mounts, %.2f in servers\n",
                   r->name, client_cpu_seconds(r) / gib, r->server_cpu_seconds / gib);
    }
}

static void print_text(const struct bench *b)
{
    char p50[24], p95[24], p99[24], roof[32];

    printf("%-34s %12s %-8s %9s %9s %9s %9s %s\n", "MEASUREMENT", "VALUE", "UNIT", "P50", "P95",
           "P99", "CPU", "OF LIMIT");
    for (unsigned i = 0; i < b->n_results; i++) {
        const struct bench_result *r = &b->results[i];

        roof[0] = '\0';
        if (r->limit > 0)
            snprintf(roof, sizeof roof, "%.0f%% of ", 100.0 * r->value / r->limit);
        printf("%-34s %12.*f %-8s %9s %9s %9s %8.2fs %s%s\n", r->name, r->value < 100 ? 2 : 0,
               r->value, r->unit, latency(r->p50_ns, p50, sizeof p50),
               latency(r->p95_ns, p95, sizeof p95), latency(r->p99_ns, p99, sizeof p99),
               r->cpu_seconds, roof, r->limit > 0 ? r->limit_name : "");
    }
    print_costs(b);
    for (unsigned i = 0; i < b->n_notes; i++)
        printf("(%s)\n", b->notes[i]);
}

static json_t *row_json(const struct bench_result *r)
{
    json_t *row = json_pack("{s:s, s:s, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "name",
                            r->name, "unit", r->unit, "value", r->value, "seconds", r->seconds,
                            "operations", (json_int_t)r->operations, "bytes", (json_int_t)r->bytes,
                            "p50_ns", (json_int_t)r->p50_ns, "p95_ns", (json_int_t)r->p95_ns,
                            "p99_ns", (json_int_t)r->p99_ns, "max_ns", (json_int_t)r->max_ns,
                            "cpu_seconds", r->cpu_seconds);

    if (r->server_cpu_seconds >= 0 && r->bytes > 0) {
        double gib = (double)r->bytes / (double)GIB;

        json_object_set_new(row, "client_cpu_s_per_gib", json_real(client_cpu_seconds(r) / gib));
        json_object_set_new(row, "server_cpu_s_per_gib", json_real(r->server_cpu_seconds / gib));
    }
    if (is_rate_of_operations(r)) {
        double each = (double)r->operations / 1e6,
               oss = MAX(r->server_cpu_seconds - r->mds_cpu_seconds, 0.0);

        json_object_set_new(row, "client_cpu_us_per_op", json_real(client_cpu_seconds(r) / each));
        json_object_set_new(row, "mds_cpu_us_per_op", json_real(r->mds_cpu_seconds / each));
        json_object_set_new(row, "oss_cpu_us_per_op", json_real(oss / each));
    }
    if (r->limit > 0) {
        json_object_set_new(row, "limit", json_real(r->limit));
        json_object_set_new(row, "limit_name", json_string(r->limit_name));
    }
    return row;
}

/* What must be known to judge figures later. */
static json_t *host_json(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    struct utsname u;
    double load = 0;

    if (uname(&u) != 0 || getloadavg(&load, 1) != 1)
        return json_object();
    return json_pack("{s:i, s:I, s:s, s:s, s:f}", "cpus", (int)sysconf(_SC_NPROCESSORS_ONLN),
                     "memory_bytes", (json_int_t)pages * page, "system", u.sysname, "release",
                     u.release, "load", load);
}

static json_t *texts_json(const struct bench *b, bool arguments)
{
    json_t *list = json_array();

    for (int i = 0; arguments && i < b->n_arguments; i++)
        json_array_append_new(list, json_string(b->arguments[i]));
    for (unsigned i = 0; !arguments && i < b->n_notes; i++)
        json_array_append_new(list, json_string(b->notes[i]));
    return list;
}

static void print_json(const struct bench *b)
{
    json_t *items = json_array(), *root;
    time_t now = time(NULL);
    struct tm tm;
    char when[32];

    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    for (unsigned i = 0; i < b->n_results; i++)
        json_array_append_new(items, row_json(&b->results[i]));
    root =
        json_pack("{s:s, s:s, s:o, s:s, s:s, s:o, s:o, s:o}", "schema", "aifs.bench/1", "scenario",
                  b->scenario, "arguments", texts_json(b, true), "when", when, "version",
                  AIFS_VERSION, "host", host_json(), "notes", texts_json(b, false), "items", items);
    json_dumpf(root, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(root);
}

void bench_print(const struct bench *b)
{
    if (b->json)
        print_json(b);
    else
        print_text(b);
}

void bench_note(struct bench *b, const char *fmt, ...)
{
    va_list ap;

    if (b->n_notes == BENCH_NOTES_MAX)
        return;
    va_start(ap, fmt);
    vsnprintf(b->notes[b->n_notes++], sizeof b->notes[0], fmt, ap);
    va_end(ap);
}

bool bench_listed(const char *list, const char *name)
{
    size_t len = strlen(name);

    for (const char *s = list; (s = strstr(s, name)) != NULL; s += len)
        if ((s == list || s[-1] == ',') && (s[len] == ',' || s[len] == '\0'))
            return true;
    return false;
}

/* ---- progress, on a terminal ---- */

#define PROGRESS_WIDTH     30u
#define PROGRESS_PERIOD_MS 200

struct bench_progress {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool over;
    char name[64];
    double limit_s;
    uint64_t begin_ns;
};

static bool progress_off;

void bench_progress_off(void)
{
    progress_off = true;
}

static void show(const struct bench_progress *p)
{
    static const char full[] = "##############################", wheel[] = "|/-\\";
    double seconds = (double)(bench_now_ns() - p->begin_ns) / 1e9;
    unsigned part =
        p->limit_s > 0 ? (unsigned)(PROGRESS_WIDTH * MIN(1.0, seconds / p->limit_s)) : 0;

    if (p->limit_s > 0)
        fprintf(stderr, "\r%-34s [%-*.*s] %5.1f of %.1f s", p->name, (int)PROGRESS_WIDTH, (int)part,
                full, seconds, p->limit_s);
    else
        fprintf(stderr, "\r%-34s %c %5.1f s", p->name, wheel[(unsigned)(seconds * 5) % 4], seconds);
}

static void *show_until_over(void *arg)
{
    struct bench_progress *p = arg;

    pthread_mutex_lock(&p->lock);
    while (!p->over) {
        struct timespec until;

        show(p);
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += PROGRESS_PERIOD_MS * 1000000l;
        until.tv_sec += until.tv_nsec / 1000000000l;
        until.tv_nsec %= 1000000000l;
        pthread_cond_timedwait(&p->changed, &p->lock, &until);
    }
    pthread_mutex_unlock(&p->lock);
    fprintf(stderr, "\r\033[K"); /* the line was only for now */
    return NULL;
}

struct bench_progress *bench_progress_begin(const char *name, double limit_s)
{
    struct bench_progress *p = !progress_off && isatty(STDERR_FILENO) ? calloc(1, sizeof *p) : NULL;

    if (!p)
        return NULL;
    snprintf(p->name, sizeof p->name, "%s", name);
    p->limit_s = limit_s;
    p->begin_ns = bench_now_ns();
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    if (thread_start(&p->thread, "bench-progress", show_until_over, p) == 0)
        return p;
    free(p);
    return NULL;
}

void bench_progress_end(struct bench_progress *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->over = true;
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
