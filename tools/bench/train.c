/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `train PATH|aifs:SOURCE`: training without accelerators. Each accelerator is a thread that takes
 * a batch and sleeps for the compute time of a step; its reader threads fill the next batches
 * meanwhile, a bounded number of them. What counts is how much of its time an accelerator computes.
 * Sizes, batches, threads and times are those of MLPerf Storage (train.h); fewer steps, and records
 * that are --scale times as small, are said with the figures.
 *
 * With --servers it goes through a mount of a cluster in name spaces, whose links (scale.h) are
 * sized for so many accelerators, unless told.
 */
#include "tools/bench/train.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/err.h"
#include "common/rt/thread.h"
#include "tools/bench/scale.h"

#define PREFETCH_BATCHES 2u
#define LINKS_CARRY      1.1 /* times what is asked for */

static struct {
    const char *workload, *accelerator, *options;
    unsigned accelerators, steps, scale, files, batch, threads, servers;
    uint64_t link;
    bool prepare, cold;
} opt = {.workload = "unet3d", .accelerator = "", .accelerators = 1, .steps = 10, .scale = 1};

static const struct bench_option options[] = {
    {"workload", BENCH_TEXT, &opt.workload, "unet3d, resnet50, cosmoflow or retinanet (unet3d)"},
    {"accelerator", BENCH_TEXT, &opt.accelerator, "a100, h100 or b200 (h100; retinanet: b200)"},
    {"accelerators", BENCH_NUMBER, &opt.accelerators, "how many (1)"},
    {"steps", BENCH_NUMBER, &opt.steps, "batches of each accelerator (10)"},
    {"scale", BENCH_NUMBER, &opt.scale, "records so many times as small (1)"},
    {"files", BENCH_NUMBER, &opt.files, "of the data set (as many as the steps read)"},
    {"batch", BENCH_NUMBER, &opt.batch, "samples of a step (the workload's)"},
    {"threads", BENCH_NUMBER, &opt.threads, "readers of each accelerator (the workload's)"},
    {"servers", BENCH_NUMBER, &opt.servers, "without PATH: so many, each behind a link of its own"},
    {"link", BENCH_SIZE, &opt.link,
     "bytes per second of each, each way (what is asked for, a tenth more)"},
    {"prepare", BENCH_FLAG, &opt.prepare, "only make the data set, and leave it in PATH"},
    {"cold", BENCH_FLAG, &opt.cold, "drop the caches before reading (root)"},
    {"options", BENCH_TEXT, &opt.options, "of the mount, with aifs:SOURCE: key_file=PATH,..."},
};

struct run {
    struct train_data data;
    unsigned accelerator, batch, threads;
    double compute_s;
    struct train_times times[BENCH_JOBS_MAX];
};

/* Between an accelerator and its readers. A unit is what a reader makes in one go: a batch, or a
 * sample. */
struct feed {
    struct run *run;
    struct bench_job *j;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t next_unit, n_units, units_per_step, ahead; /* ahead: units that may be unused */
    uint64_t used;                                      /* units that steps have taken */
    uint64_t n_done, next_file;
    bool done[TRAIN_THREADS_MAX * 4]; /* by batch: unit modulo size */
    int status;
    char where[PLACE_PATH_BYTES];
};

struct reader {
    struct feed *feed;
    struct train_reader r;
    pthread_t thread;
};

/* ---- readers ---- */

/* The next unit's number, or false when there is none left to read. */
static bool claim_unit(struct feed *f, uint64_t *ret_unit)
{
    bool more;

    pthread_mutex_lock(&f->lock);
    while (f->status == 0 && f->next_unit < f->n_units && f->next_unit >= f->used + f->ahead)
        pthread_cond_wait(&f->changed, &f->lock);
    more = f->status == 0 && f->next_unit < f->n_units;
    if (more)
        *ret_unit = f->next_unit++;
    pthread_mutex_unlock(&f->lock);
    return more;
}

static void deliver_unit(struct feed *f, uint64_t unit, uint64_t bytes, uint64_t samples,
                         int status, uint64_t file)
{
    pthread_mutex_lock(&f->lock);
    if (status < 0 && f->status == 0) {
        f->status = status;
        train_data_path(&f->run->data, file, f->where);
    }
    f->done[unit % ARRAY_LEN(f->done)] = true;
    f->n_done++;
    f->j->bytes += bytes;
    f->j->operations += samples;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

/* Files are dealt out to the accelerators in turns, in another order each time round. */
static uint64_t file_of(const struct feed *f, uint64_t n)
{
    uint64_t files = f->run->data.files, i = n * f->j->n_jobs + f->j->index;

    return io_shuffled(i % files, files, 1 + i / files);
}

static uint64_t claim_file(struct feed *f)
{
    uint64_t n;

    pthread_mutex_lock(&f->lock);
    n = f->next_file++;
    pthread_mutex_unlock(&f->lock);
    return file_of(f, n);
}

static void *read_units(void *arg)
{
    struct reader *rd = arg;
    struct feed *f = rd->feed;
    const struct train_shape *s = f->run->data.shape;
    uint64_t samples = s->by_batch ? f->run->batch : 1, unit;

    while (claim_unit(f, &unit)) {
        uint64_t bytes = 0, file = 0;
        int rc = 0;

        for (uint64_t i = 0; i < samples && rc == 0; i++) {
            uint64_t n = 0;
            bool used;

            if (!rd->r.file)
                file = s->by_batch ? file_of(f, unit * samples + i) : claim_file(f);
            rc = train_reader_sample(&rd->r, file, &used, &n);
            bytes += n;
        }
        deliver_unit(f, unit, bytes, samples, rc, file);
    }
    train_reader_close(&rd->r);
    return NULL;
}

/* ---- an accelerator ---- */

static bool step_is_ready(const struct feed *f, unsigned step)
{
    if (f->run->data.shape->by_batch)
        return f->done[step % ARRAY_LEN(f->done)];
    return f->n_done >= (uint64_t)(step + 1) * f->units_per_step;
}

static int take_batch(struct feed *f, unsigned step)
{
    int rc;

    pthread_mutex_lock(&f->lock);
    while (f->status == 0 && !step_is_ready(f, step))
        pthread_cond_wait(&f->changed, &f->lock);
    f->done[step % ARRAY_LEN(f->done)] = false;
    f->used += f->units_per_step;
    rc = f->status;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    return rc;
}

static void compute(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR) {
    }
}

static void steps(struct feed *f)
{
    struct train_times *t = &f->run->times[f->j->index];
    uint64_t begin = bench_now_ns();

    *t = (struct train_times){.steps = opt.steps, .compute_s = f->run->compute_s};
    for (unsigned step = 0; step < opt.steps; step++) {
        uint64_t before = bench_now_ns();

        if (take_batch(f, step) < 0)
            break;
        stat_record(&f->j->latency, bench_now_ns() - before);
        compute(t->compute_s);
        t->total_s = (double)(bench_now_ns() - begin) / 1e9;
        if (step == 0)
            t->first_s = t->total_s;
    }
}

static void accelerator(struct bench_job *j)
{
    struct run *run = j->arg;
    const struct train_shape *s = run->data.shape;
    size_t bytes = train_reader_bytes(&run->data);
    struct feed f = {.run = run, .j = j, .units_per_step = s->by_batch ? 1 : run->batch};
    struct reader *readers = calloc(run->threads, sizeof *readers);
    uint8_t *memory = place_memory("train", bytes * run->threads);
    unsigned started = 0;

    f.n_units = opt.steps * f.units_per_step;
    f.ahead = s->by_batch ? MAX(run->threads, PREFETCH_BATCHES)
                          : (1 + PREFETCH_BATCHES) * f.units_per_step;
    pthread_mutex_init(&f.lock, NULL);
    pthread_cond_init(&f.changed, NULL);
    if (!readers || !memory)
        f.status = -ENOMEM;
    for (; f.status == 0 && started < run->threads; started++) {
        struct reader *rd = &readers[started];

        *rd =
            (struct reader){.feed = &f, .r = {&run->data, memory + started * bytes, NULL, 0, 0, 0}};
        f.status = thread_start(&rd->thread, "bench-reader", read_units, rd);
        if (f.status < 0)
            break;
    }
    if (f.status == 0)
        steps(&f);
    for (unsigned i = 0; i < started; i++)
        pthread_join(readers[i].thread, NULL);
    if (f.status < 0)
        place_failed(j, f.status, f.where);
    pthread_cond_destroy(&f.changed);
    pthread_mutex_destroy(&f.lock);
    place_memory_free(memory, bytes * run->threads);
    free(readers);
}

/* ---- the run ---- */

static void add_rows(struct bench *b, const struct run *run, const char *name)
{
    double seconds = bench_last(b)->seconds, rate = 0, au = 0, wait = 0;
    char row[64];

    for (unsigned i = 0; i < opt.accelerators; i++) {
        rate += train_samples_per_second(&run->times[i], run->batch);
        au += train_utilisation(&run->times[i]) / opt.accelerators;
        wait += train_wait_seconds(&run->times[i]) / opt.accelerators;
    }
    snprintf(row, sizeof row, "%s.samples", name);
    bench_add(b, row, "sample/s", rate, seconds);
    snprintf(row, sizeof row, "%s.au", name);
    bench_add(b, row, "%", au, seconds);
    snprintf(row, sizeof row, "%s.wait", name);
    bench_add(b, row, "s", wait, seconds);
}

static void row_name(const char *accelerator_name, char *out, size_t len)
{
    int n = snprintf(out, len, "train.%s.%s.x%u", opt.workload, accelerator_name, opt.accelerators);

    if (opt.servers)
        snprintf(out + n, len - (size_t)n, ".s%u", opt.servers);
}

static int measure(struct bench *b, struct run *run)
{
    struct train_data *d = &run->data;
    const char *accelerator_name = train_accelerator_name(run->accelerator);
    bool made = false;
    char name[48];
    int rc = 0;

    snprintf(name, sizeof name, "train.%s.prepare", opt.workload);
    if (!train_data_exists(d)) {
        rc = train_data_prepare(b, d, MIN(d->files, 8u), name);
        made = !opt.prepare || bench_stopped();
    } else if (opt.prepare) {
        bench_note(b, "the data set %s is there already", d->dir);
    }
    if (rc == 0 && !opt.prepare) {
        bench_note(b,
                   "train %s: %u files, records 1/%u of their real size, %u steps of %u samples, "
                   "%u readers, %g s to compute a step (%s); MLPerf asks for 500 steps and %g %%",
                   opt.workload, d->files, opt.scale, opt.steps, run->batch, run->threads,
                   run->compute_s, accelerator_name, d->shape->au_min);
        row_name(accelerator_name, name, sizeof name);
        if (opt.cold)
            rc = d->place->backend->drop_caches(d->place->fs);
        if (rc == 0)
            rc = bench_run(b, name, "MB/s", opt.accelerators, 0, accelerator, run);
        if (rc == 0)
            add_rows(b, run, name);
        if (rc == 0 && opt.servers)
            bench_set_limit(b, name, "the servers' links", (double)opt.link * opt.servers / 1e6);
    }
    if (made)
        train_data_remove(d);
    return rc;
}

/* As many as all steps of all accelerators read, unless told. */
static unsigned files_wanted(const struct run *run)
{
    uint64_t samples = (uint64_t)opt.steps * run->batch * opt.accelerators;
    uint64_t files =
        (samples + run->data.shape->samples_per_file - 1) / run->data.shape->samples_per_file;

    return opt.files ? opt.files : (unsigned)MAX(files, opt.accelerators * run->threads);
}

/* false after saying what is wrong. */
static bool check(struct run *run)
{
    const struct train_shape *s = train_shape_named(opt.workload);
    int accelerator_number = opt.accelerator[0] ? train_accelerator_named(opt.accelerator)
                             : s && s->compute_s[TRAIN_H100] ? TRAIN_H100
                                                             : TRAIN_B200;

    if (!s || accelerator_number < 0) {
        bench_error("train: --workload unet3d, resnet50, cosmoflow or retinanet; --accelerator "
                    "a100, h100 or b200");
        return false;
    }
    if (s->compute_s[accelerator_number] <= 0) {
        bench_error("train: for %s no compute time of the %s is known", s->name, opt.accelerator);
        return false;
    }
    run->data.shape = s;
    run->data.scale = opt.scale;
    run->accelerator = (unsigned)accelerator_number;
    run->compute_s = s->compute_s[accelerator_number];
    run->batch = opt.batch ? opt.batch : s->batch;
    run->threads = opt.threads ? opt.threads : s->threads;
    if (opt.accelerators == 0 || opt.accelerators > BENCH_JOBS_MAX || opt.steps < 2 ||
        opt.steps > TRAIN_STEPS_MAX || opt.scale == 0 || run->threads > TRAIN_THREADS_MAX) {
        bench_error(
            "train: 1 to %d accelerators, 2 to %u steps, a scale from 1, at most %u threads",
            BENCH_JOBS_MAX, TRAIN_STEPS_MAX, TRAIN_THREADS_MAX);
        return false;
    }
    run->data.files = files_wanted(run);
    return true;
}

static int at(struct bench *b, const char *where, void *arg)
{
    struct run *r = arg;
    struct place place;
    int rc;

    if (place_open(&place, "train", where, opt.options) != 0)
        return 1;
    r->data.place = &place;
    snprintf(r->data.dir, sizeof r->data.dir, "%s/train-%s.%ufiles.scale%u", place.root,
             r->data.shape->name, r->data.files, opt.scale);
    rc = measure(b, r);
    if (rc < 0 && !bench_stopped())
        bench_error("train: %s", err_text(rc));
    place_close(&place, false);
    return rc < 0;
}

/* Made by one client, read by another, so that all of it comes over the links. */
static int behind_links(struct bench *b, void *arg)
{
    struct scale_cluster c = {.n_servers = opt.servers, .link_bytes_per_s = opt.link};
    int rc = scale_cluster_start(&c);

    for (int prepare = 1; prepare >= 0 && rc == 0; prepare--) {
        opt.prepare = prepare;
        rc = scale_client_run(&c, b, at, arg);
    }
    scale_machines_stop();
    return rc;
}

static int run_behind_links(struct bench *b, struct run *r)
{
    double asked =
        train_bytes_per_second(r->data.shape, r->data.files, opt.scale, r->batch, r->compute_s) *
        opt.accelerators;

    if (!opt.link)
        opt.link = MAX((uint64_t)(asked * LINKS_CARRY / opt.servers), MIB);
    bench_note(b,
               "train: %u servers behind links of %.1f MB/s each way, all on this machine; %u "
               "accelerators ask for %.1f MB/s",
               opt.servers, (double)opt.link / 1e6, opt.accelerators, asked / 1e6);
    bench_release_signals();
    return scale_world_run(b, behind_links, r);
}

static int run(struct bench *b, int argc, char **argv)
{
    static struct run r;

    if (argc != (opt.servers ? 0 : 1)) {
        bench_error(opt.servers ? "train: with --servers it takes no place"
                                : "train: say where: one directory, or aifs:SOURCE");
        return 2;
    }
    if (opt.servers > SCALE_SERVERS_MAX || (opt.link && (!opt.servers || opt.link < MIB)) ||
        (opt.servers && (opt.prepare || opt.cold || opt.options))) {
        bench_error("train: --servers up to %u, with a --link of 1Mi or more, and without "
                    "--prepare, --cold and --options",
                    SCALE_SERVERS_MAX);
        return 2;
    }
    if (!check(&r))
        return 2;
    return opt.servers ? run_behind_links(b, &r) : at(b, argv[0], &r);
}

const struct bench_scenario bench_train = {"train",
                                           "[options] [PATH|aifs:SOURCE]",
                                           "emulated training: how busy accelerators are kept",
                                           options,
                                           ARRAY_LEN(options),
                                           run};
