/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aifs-bench: scenarios of load, and the limits of this machine that they are held against. One
 * file per scenario.
 *
 * A scenario runs jobs (threads) against a path of any file system, or against libaifs; each job
 * counts operations and bytes and records the latency of each operation in a histogram of its own.
 * Results: one row per measurement, as text or one JSON document.
 */
#ifndef AIFS_TOOLS_BENCH_BENCH_H
#define AIFS_TOOLS_BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/compiler.h"
#include "common/stat/stat.h"

#define BENCH_JOBS_MAX 256

struct bench_result {
    char name[48];
    const char *unit; /* "MB/s" (10^6), "op/s", "sample/s", "%", "s" */
    double value;     /* per second */
    double seconds;
    uint64_t operations, bytes;
    uint64_t p50_ns, p95_ns, p99_ns, max_ns;      /* 0: not measured */
    double cpu_seconds;                           /* of this process */
    double server_cpu_seconds, mount_cpu_seconds; /* below 0: not known */
    double mds_cpu_seconds;                       /* part of the servers'; below 0: not known */
    double limit;                                 /* same unit; 0: none */
    const char *limit_name;
};

#define BENCH_NOTES_MAX 16
#define BENCH_PIDS_MAX  96

/* Processes whose CPU time belongs to what is measured. */
struct bench_pids {
    unsigned n;
    pid_t pids[BENCH_PIDS_MAX];
};

struct bench {
    bool json;
    bool blind;       /* what is read cannot be what was written: the file system keeps no data */
    bool roofline;    /* measure the limit of each row as well */
    const char *demo; /* folder of the cluster on this machine, or NULL */
    struct bench_pids servers, mounts; /* of the demo */
    struct bench_pids mds;             /* these are among the servers */
    const char *scenario;
    int n_arguments;
    char **arguments; /* of the scenario, as given */
    unsigned n_notes;
    char notes[BENCH_NOTES_MAX][400]; /* sentences that belong to the figures */
    unsigned n_results;
    struct bench_result results[256];
};

struct bench_job {
    unsigned index, n_jobs;
    void *arg; /* the scenario's */
    uint64_t operations, bytes;
    uint64_t deadline_ns; /* stop then; 0: none */
    struct stat_histogram latency;
    int status; /* -errno ends the measurement */
    char where[256];
};

typedef void bench_job_fn(struct bench_job *j);

/* Runs n_jobs threads, started together; adds a row. limit_s 0: until the jobs return by
 * themselves. -errno of the first job that failed, after printing it. */
int bench_run(struct bench *b, const char *name, const char *unit, unsigned n_jobs, double limit_s,
              bench_job_fn *fn, void *arg) MUST_USE;
/* The time is up, and there is something to tell: on a busy machine one operation may take longer.
 */
static inline bool bench_over(const struct bench_job *j, uint64_t now_ns)
{
    return j->deadline_ns && now_ns >= j->deadline_ns && j->operations;
}
/*
 * SIGINT or SIGTERM: jobs and whole files in pieces end early, nothing more is begun, and each
 * scenario removes what it has made, as after a failure. A second signal ends the program.
 */
void bench_catch_signals(void);
void bench_release_signals(void); /* as before: what waits for machines of its own ends at once */
int bench_stopped(void);          /* the signal; 0: none */
uint64_t bench_now_ns(void);
double bench_cpu_seconds(void); /* of this process */
/* cost.c: finds the demo's processes. 0, or 2 after printing. */
int bench_find_demo(struct bench *b) MUST_USE;
double bench_pids_cpu_seconds(const struct bench_pids *p); /* below 0: there are none */
uint64_t bench_pids_written(const struct bench_pids *p);   /* bytes, of all their writes */
/* A row measured elsewhere. */
struct bench_result *bench_add(struct bench *b, const char *name, const char *unit, double value,
                               double seconds);
void bench_latencies(struct bench_result *r, const struct stat_histogram *h);
struct bench_result *bench_last(struct bench *b);
void bench_set_limit(struct bench *b, const char *result, const char *limit_name, double limit);
void bench_note(struct bench *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
void bench_print(const struct bench *b); /* output.c */
/* On a terminal: what runs, how far it is; else nothing. update from any thread. */
struct bench_progress;
struct bench_progress *bench_progress_begin(const char *name, double limit_s);
void bench_progress_end(struct bench_progress *p);
void bench_progress_off(void); /* of this process, for ever */
/* Is name in the comma-separated list? */
bool bench_listed(const char *list, const char *name);
/* Empties the kernel's caches, after a sync. -errno after printing: root only. */
int bench_drop_caches(void) MUST_USE;
/* Pseudo-random bytes that neither compress nor repeat; the same for the same seed. */
void bench_fill(void *buf, size_t len, uint64_t seed);
uint64_t bench_random(uint64_t *state);
void bench_error(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Options of a scenario: "--name=value" or "--name value". */
struct bench_option {
    const char *name;
    enum { BENCH_TEXT, BENCH_NUMBER, BENCH_SIZE, BENCH_FLAG, BENCH_SECONDS } type;
    void *value; /* const char **, unsigned *, uint64_t *, bool *, double * */
    const char *help;
};
/* Remaining arguments, or -1 after printing. */
int bench_options(const struct bench_option *options, unsigned n, int argc, char **argv);

struct bench_scenario {
    const char *name, *args, *help;
    const struct bench_option *options;
    unsigned n_options;
    int (*run)(struct bench *b, int argc, char **argv); /* 0, 1 failed, 2 usage */
};
extern const struct bench_scenario bench_io, bench_md, bench_small, bench_ckpt, bench_train,
    bench_kv, bench_scale, bench_net, bench_null, bench_limits, bench_bars, bench_report;

/* ---- scenarios that limits runs as well ---- */

struct md_options {
    const char *phases; /* "create,stat,read,open+close,rename,unlink,mkdir,rmdir", or "all" */
    unsigned jobs, files, dirs;
    uint64_t size;
    double seconds;
    bool shared, keep, cold;
    const char *options; /* through libaifs: of aifs_mount() */
    unsigned batch;      /* calls in one */
};
#define MD_OPTIONS_DEFAULT                                                                         \
    (struct md_options)                                                                            \
    {                                                                                              \
        .phases = "all", .jobs = 8, .files = 5000, .dirs = 8, .seconds = 10, .batch = 1000         \
    }
struct small_options {
    unsigned files, dirs, jobs;
    uint64_t size;
    const char *options;
    bool cold, verify;
    int (*before)(void *arg,
                  bool reads); /* before the first reading; -errno ends it. May be NULL */
    void *before_arg;
};
#define SMALL_OPTIONS_DEFAULT                                                                      \
    {                                                                                              \
        .files = 2000, .dirs = 20, .jobs = 8, .size = 100 * KIB                                    \
    }
/* Rows "<prefix>.create", .read, .read-again, .unlink. As below. */
int small_measure(struct bench *b, const struct small_options *o, const char *prefix,
                  const char *where);

/* Rows "<prefix>.<phase>". 0, 1 failed, 2 wrong options; printed. */
int md_measure(struct bench *b, const struct md_options *o, const char *prefix, const char *where);

#endif
