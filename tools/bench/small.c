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

static struct {
    unsigned files, dirs, jobs;
    uint64_t size;
    const char *options;
    bool cold, verify;
} opt = {.files = 2000, .dirs = 20, .jobs = 8, .size = 100 * KIB};

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
    struct place place;
    uint8_t *memory; /* opt.size per job, in whole pages */
    size_t stride;
    enum { CREATE, READ, UNLINK } what;
    uint64_t seed; /* of the order; 0: as created */
    bool verify;
};

static void file_path(const struct small *s, uint64_t i, char out[PLACE_PATH_BYTES])
{
    snprintf(out, PLACE_PATH_BYTES, "%s/d%03u/f%06llu", s->place.dir, (unsigned)(i % opt.dirs),
             (unsigned long long)i);
}

static int one(const struct small *s, const struct bench_job *j, uint64_t i, const char *path)
{
    struct place_file f = {.path = path,
                           .len = opt.size,
                           .piece = (uint32_t)MAX(opt.size, 1u),
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
    const struct small *s = j->arg;
    uint64_t before = bench_now_ns(), now;

    for (uint64_t k = j->index; k < opt.files; k += j->n_jobs) {
        uint64_t i = s->seed ? io_shuffled(k, opt.files, s->seed) : k;
        char path[PLACE_PATH_BYTES];
        int rc;

        file_path(s, i, path);
        rc = one(s, j, i, path);
        if (rc < 0) {
            place_failed(j, rc, path);
            return;
        }
        now = bench_now_ns();
        stat_record(&j->latency, now - before);
        before = now;
        j->operations++;
        j->bytes += s->what == UNLINK ? 0 : opt.size;
    }
}

static int make_dirs(const struct small *s, bool make)
{
    int rc = 0;

    for (unsigned i = 0; i < opt.dirs && rc == 0; i++) {
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

    for (uint64_t i = 0; i < opt.files; i++) {
        file_path(s, i, path);
        s->place.backend->unlink(s->place.fs, path);
    }
}

static int phases(struct bench *b, struct small *s)
{
    int rc = make_dirs(s, true);

    s->what = CREATE;
    if (rc == 0)
        rc = bench_run(b, "small.create", "op/s", opt.jobs, 0, job, s);
    s->what = READ;
    s->seed = 1;
    if (rc == 0 && opt.cold)
        rc = s->place.backend->drop_caches(s->place.fs);
    if (rc == 0)
        rc = bench_run(b, "small.read", "op/s", opt.jobs, 0, job, s);
    s->seed = 2;
    if (rc == 0)
        rc = bench_run(b, "small.read-again", "op/s", opt.jobs, 0, job, s);
    s->what = UNLINK;
    s->seed = 0;
    if (rc == 0)
        rc = bench_run(b, "small.unlink", "op/s", opt.jobs, 0, job, s);
    if (rc < 0)
        remove_all(s);
    make_dirs(s, false);
    return rc;
}

static int run(struct bench *b, int argc, char **argv)
{
    struct small s = {.stride = (opt.size + 8191) & ~(size_t)4095,
                      .verify = opt.verify && !b->blind};
    int rc;

    if (argc != 1 || opt.jobs == 0 || opt.jobs > BENCH_JOBS_MAX || opt.dirs == 0 ||
        opt.files == 0 || opt.size > GIB) {
        bench_error("small: one directory or aifs:SOURCE, 1 to %d jobs, at least one directory and "
                    "file, at most 1 GiB",
                    BENCH_JOBS_MAX);
        return 2;
    }
    if (place_open(&s.place, "small", argv[0], opt.options) != 0)
        return 1;
    s.memory = place_memory("small", s.stride * opt.jobs);
    rc = s.memory ? phases(b, &s) : -ENOMEM;
    place_memory_free(s.memory, s.stride * opt.jobs);
    place_close(&s.place, false);
    return rc < 0;
}

const struct bench_scenario bench_small = {
    "small", "[options] PATH|aifs:SOURCE", "many small files: create, open + read + close, remove",
    options, ARRAY_LEN(options),           run};
