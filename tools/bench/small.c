/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `small PATH|aifs:SOURCE`: many small files, as a loader of images sees them. All are created,
 * spread over the directories; then read whole (open, read, close) in one random order over all of
 * them that the jobs share, so that no job reads what it wrote itself; then read a second time;
 * then removed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/bench/place.h"

static struct small_options opt = SMALL_OPTIONS_DEFAULT;

static const struct bench_option options[] = {
    {"files", BENCH_NUMBER, &opt.files, "how many, of all jobs together (2000)"},
    {"size", BENCH_SIZE, &opt.size, "bytes of each (100Ki)"},
    {"dirs", BENCH_NUMBER, &opt.dirs, "directories they are spread over (20)"},
    {"jobs", BENCH_NUMBER, &opt.jobs, "threads (8)"},
    {"cold", BENCH_FLAG, &opt.cold, "drop the caches before the first reading (root)"},
    {"verify", BENCH_FLAG, &opt.verify, "write bytes that tell their place, check what is read"},
    {"options", BENCH_TEXT, &opt.options, "of the mount, with aifs:SOURCE: key_file=PATH,..."},
};

struct small {
    const struct small_options *o;
    struct place place;
    uint8_t *memory; /* s->o->size per job, in whole pages */
    size_t stride;
    enum { CREATE, READ, UNLINK } what;
    uint64_t seed; /* of the order; 0: as created */
    bool verify;
    uint64_t made[BENCH_JOBS_MAX]; /* files that each job has begun to make */
};

static void file_path(const struct small *s, uint64_t i, char out[PLACE_PATH_BYTES])
{
    snprintf(out, PLACE_PATH_BYTES, "%s/d%03u/f%06llu", s->place.dir, (unsigned)(i % s->o->dirs),
             (unsigned long long)i);
}

static int one(const struct small *s, const struct bench_job *j, uint64_t i, const char *path)
{
    struct place_file f = {.path = path,
                           .len = s->o->size,
                           .piece = (uint32_t)MAX(s->o->size, 1u),
                           .seed = i,
                           .verify = s->verify,
                           .memory = s->memory + j->index * s->stride};

    switch (s->what) {
    case CREATE:
        return place_write(&s->place, &f);
    case READ:
        return place_read(&s->place, &f);
    case UNLINK:
    default:
        return s->place.backend->unlink(s->place.fs, path);
    }
}

static void job(struct bench_job *j)
{
    struct small *s = j->arg;
    uint64_t before = bench_now_ns(), now;

    for (uint64_t k = j->index; k < s->o->files; k += j->n_jobs) {
        uint64_t i = s->seed ? io_shuffled(k, s->o->files, s->seed) : k;
        char path[PLACE_PATH_BYTES];
        int rc;

        file_path(s, i, path);
        if (s->what == CREATE)
            s->made[j->index]++;
        rc = one(s, j, i, path);
        if (rc < 0) {
            place_failed(j, rc, path);
            return;
        }
        now = bench_now_ns();
        stat_record(&j->latency, now - before);
        before = now;
        j->operations++;
        j->bytes += s->what == UNLINK ? 0 : s->o->size;
    }
}

static int make_dirs(const struct small *s, bool make)
{
    int rc = 0;

    for (unsigned i = 0; i < s->o->dirs && rc == 0; i++) {
        char path[PLACE_PATH_BYTES];

        snprintf(path, sizeof path, "%s/d%03u", s->place.dir, i);
        rc = make ? s->place.backend->mkdir(s->place.fs, path)
                  : s->place.backend->rmdir(s->place.fs, path);
        if (rc < 0 && make)
            bench_error("%s: %s", path, strerror(-rc));
    }
    return rc;
}

/* After a failure: whatever is there. */
static void remove_all(const struct small *s)
{
    char path[PLACE_PATH_BYTES];

    for (unsigned j = 0; j < s->o->jobs; j++)
        for (uint64_t k = 0; k < s->made[j]; k++) {
            file_path(s, j + k * s->o->jobs, path);
            s->place.backend->unlink(s->place.fs, path);
        }
}

static int phase(struct bench *b, struct small *s, const char *prefix, const char *name)
{
    char row[48];

    snprintf(row, sizeof row, "%s.%s", prefix, name);
    return bench_run(b, row, "op/s", s->o->jobs, 0, job, s);
}

static int phases(struct bench *b, struct small *s, const char *prefix)
{
    int rc = make_dirs(s, true);

    s->what = CREATE;
    if (rc == 0)
        rc = phase(b, s, prefix, "create");
    s->what = READ;
    s->seed = 1;
    if (rc == 0 && s->o->cold)
        rc = s->place.backend->drop_caches(s->place.fs);
    if (rc == 0 && s->o->before)
        rc = s->o->before(s->o->before_arg, true);
    if (rc == 0)
        rc = phase(b, s, prefix, "read");
    s->seed = 2;
    if (rc == 0)
        rc = phase(b, s, prefix, "read-again");
    s->what = UNLINK;
    s->seed = 0;
    if (rc == 0)
        rc = phase(b, s, prefix, "unlink");
    if (rc < 0)
        remove_all(s);
    make_dirs(s, false);
    return rc;
}

int small_measure(struct bench *b, const struct small_options *o, const char *prefix,
                  const char *where)
{
    struct small s = {
        .o = o, .stride = (o->size + 8191) & ~(size_t)4095, .verify = o->verify && !b->blind};
    int rc;

    if (o->jobs == 0 || o->jobs > BENCH_JOBS_MAX || o->dirs == 0 || o->files == 0 ||
        o->size > GIB) {
        bench_error("small: 1 to %d jobs, at least one directory and file, at most 1 GiB",
                    BENCH_JOBS_MAX);
        return 2;
    }
    if (place_open(&s.place, "small", where, o->options) != 0)
        return 1;
    s.memory = place_memory("small", s.stride * o->jobs);
    rc = s.memory ? phases(b, &s, prefix) : -ENOMEM;
    place_memory_free(s.memory, s.stride * o->jobs);
    place_close(&s.place, false);
    return rc < 0;
}

static int run(struct bench *b, int argc, char **argv)
{
    if (argc != 1) {
        bench_error("small: say where: one directory, or aifs:SOURCE");
        return 2;
    }
    return small_measure(b, &opt, "small", argv[0]);
}

const struct bench_scenario bench_small = {
    "small", "[options] PATH|aifs:SOURCE", "many small files: create, open + read + close, remove",
    options, ARRAY_LEN(options),           run};
