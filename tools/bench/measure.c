/* SPDX-License-Identifier: Apache-2.0 */
/* Running jobs together and turning their counters into a row. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/rt/thread.h"
#include "tools/bench/bench.h"

struct start {
    pthread_barrier_t barrier;
    bench_job_fn *fn;
    double limit_s;
};

struct runner {
    struct bench_job job;
    struct start *start;
    pthread_t thread;
    uint64_t begin_ns, end_ns;
};

uint64_t bench_now_ns(void)
{
    return clock_mono_ns(clock_real());
}

double bench_cpu_seconds(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static volatile sig_atomic_t stopped;

static void stop(int sig)
{
    stopped = sig;
}

static const int signals[] = {SIGINT, SIGTERM};

void bench_catch_signals(void)
{
    struct sigaction a = {.sa_handler = stop, .sa_flags = SA_RESTART | (int)SA_RESETHAND}, old;

    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(signals[i], &a, NULL);
}

void bench_release_signals(void)
{
    struct sigaction old;

    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == stop)
            signal(signals[i], SIG_DFL);
}

int bench_stopped(void)
{
    return stopped;
}

static void *run_job(void *arg)
{
    struct runner *r = arg;

    pthread_barrier_wait(&r->start->barrier);
    r->begin_ns = bench_now_ns();
    if (r->start->limit_s > 0)
        r->job.deadline_ns = r->begin_ns + (uint64_t)(r->start->limit_s * 1e9);
    r->start->fn(&r->job);
    r->end_ns = bench_now_ns();
    return NULL;
}

static void add_histogram(struct stat_histogram *to, const struct stat_histogram *from)
{
    to->count += from->count;
    to->sum += from->sum;
    for (unsigned i = 0; i < STAT_HIST_BUCKETS; i++)
        to->buckets[i] += from->buckets[i];
}

static uint64_t largest(const struct stat_histogram *h)
{
    for (unsigned i = STAT_HIST_BUCKETS; i-- > 0;)
        if (h->buckets[i])
            return stat_bucket_upper(i);
    return 0;
}

void bench_latencies(struct bench_result *r, const struct stat_histogram *h)
{
    r->p50_ns = stat_percentile(h, 0.50);
    r->p95_ns = stat_percentile(h, 0.95);
    r->p99_ns = stat_percentile(h, 0.99);
    r->max_ns = largest(h);
}

/* CPU time when a row began. */
struct spent {
    double here, servers, mds, mounts;
};

static double since(const struct bench_pids *p, double before)
{
    return p->n ? bench_pids_cpu_seconds(p) - before : -1;
}

/* Sums up the runners; the time is from the first start to the last end. */
static int collect(struct bench *b, const char *name, const char *unit, struct runner *runners,
                   unsigned n, const struct spent *before)
{
    struct stat_histogram *all = calloc(1, sizeof *all);
    uint64_t begin = UINT64_MAX, end = 0, operations = 0, bytes = 0;
    struct bench_result *r;
    double seconds;
    int status = all ? 0 : -ENOMEM;

    if (stopped)
        status = -EINTR; /* half a measurement is none */
    for (unsigned i = 0; i < n && status == 0; i++) {
        begin = MIN(begin, runners[i].begin_ns);
        end = MAX(end, runners[i].end_ns);
        operations += runners[i].job.operations;
        bytes += runners[i].job.bytes;
        add_histogram(all, &runners[i].job.latency);
        status = runners[i].job.status;
        if (status < 0 && !stopped)
            bench_error("%s: %s: %s", name, runners[i].job.where, err_text(status));
    }
    if (status == 0) {
        seconds = (double)(end - begin) / 1e9;
        r = bench_add(b, name, unit,
                      (strstr(unit, "B/s") ? (double)bytes / 1e6 : (double)operations) / seconds,
                      seconds);
        r->operations = operations;
        r->bytes = bytes;
        bench_latencies(r, all);
        r->cpu_seconds = bench_cpu_seconds() - before->here;
        r->server_cpu_seconds = since(&b->servers, before->servers);
        r->mds_cpu_seconds = since(&b->mds, before->mds);
        r->mount_cpu_seconds = since(&b->mounts, before->mounts);
    }
    free(all);
    return status;
}

int bench_run(struct bench *b, const char *name, const char *unit, unsigned n_jobs, double limit_s,
              bench_job_fn *fn, void *arg)
{
    struct start start = {.fn = fn, .limit_s = limit_s};
    struct runner *runners = calloc(n_jobs, sizeof *runners);
    struct spent before = {bench_cpu_seconds(), bench_pids_cpu_seconds(&b->servers),
                           bench_pids_cpu_seconds(&b->mds), bench_pids_cpu_seconds(&b->mounts)};
    struct bench_progress *progress;
    unsigned started = 0;
    int rc = 0;

    if (stopped) {
        free(runners);
        return -EINTR;
    }
    if (!runners || n_jobs == 0 || n_jobs > BENCH_JOBS_MAX) {
        free(runners);
        bench_error("%s: 1 to %d jobs", name, BENCH_JOBS_MAX);
        return -EINVAL;
    }
    pthread_barrier_init(&start.barrier, NULL, n_jobs);
    progress = bench_progress_begin(name, limit_s);
    for (; started < n_jobs && rc == 0; started++) {
        runners[started].job = (struct bench_job){.index = started, .n_jobs = n_jobs, .arg = arg};
        runners[started].start = &start;
        rc = thread_start(&runners[started].thread, "bench-job", run_job, &runners[started]);
    }
    if (rc < 0) { /* the others wait at the barrier for ever: nothing sensible is left to do */
        bench_error("%s: cannot start job %u: %s", name, started, err_text(rc));
        exit(1);
    }
    for (unsigned i = 0; i < started; i++)
        pthread_join(runners[i].thread, NULL);
    bench_progress_end(progress);
    rc = collect(b, name, unit, runners, n_jobs, &before);
    pthread_barrier_destroy(&start.barrier);
    free(runners);
    return rc;
}

struct bench_result *bench_add(struct bench *b, const char *name, const char *unit, double value,
                               double seconds)
{
    struct bench_result *r;

    if (b->n_results == ARRAY_LEN(b->results)) {
        bench_error("more than %zu results", ARRAY_LEN(b->results));
        exit(1);
    }
    r = &b->results[b->n_results++];
    *r = (struct bench_result){.unit = unit,
                               .value = value,
                               .seconds = seconds,
                               .server_cpu_seconds = -1,
                               .mds_cpu_seconds = -1,
                               .mount_cpu_seconds = -1};
    snprintf(r->name, sizeof r->name, "%s", name);
    return r;
}

struct bench_result *bench_last(struct bench *b)
{
    return b->n_results ? &b->results[b->n_results - 1] : NULL;
}

void bench_set_limit(struct bench *b, const char *result, const char *limit_name, double limit)
{
    for (unsigned i = 0; i < b->n_results; i++)
        if (!strcmp(b->results[i].name, result)) {
            b->results[i].limit = limit;
            b->results[i].limit_name = limit_name;
        }
}

int bench_drop_caches(void)
{
    int fd, rc = 0;

    sync();
    fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "3", 1) != 1) {
        rc = -errno;
        bench_error("/proc/sys/vm/drop_caches: %m: a cold measurement needs root");
    }
    if (fd >= 0)
        close(fd);
    return rc;
}
