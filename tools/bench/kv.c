/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `kv PATH|aifs:SOURCE`: immutable blocks of a key-value cache for inference. Each is written under
 * a passing name and takes its own by a rename, as such stores do; then all are read whole, in
 * random order, and the time of each is what counts.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/bench/place.h"

static struct {
    unsigned blocks, jobs;
    uint64_t min, max, bs;
    const char *options;
    bool cold, fsync, verify;
} opt = {.blocks = 16, .jobs = 4, .min = 10 * MIB, .max = 80 * MIB, .bs = 4 * MIB};

static const struct bench_option options[] = {
    {"blocks", BENCH_NUMBER, &opt.blocks, "how many (16)"},
    {"min", BENCH_SIZE, &opt.min, "bytes of the smallest (10Mi)"},
    {"max", BENCH_SIZE, &opt.max, "bytes of the largest (80Mi)"},
    {"bs", BENCH_SIZE, &opt.bs, "bytes per call (4Mi)"},
    {"jobs", BENCH_NUMBER, &opt.jobs, "threads (4)"},
    {"cold", BENCH_FLAG, &opt.cold, "drop the caches before reading (root)"},
    {"fsync", BENCH_FLAG, &opt.fsync, "fsync each block before its rename"},
    {"verify", BENCH_FLAG, &opt.verify, "write bytes that tell their place, check what is read"},
    {"options", BENCH_TEXT, &opt.options, "of the mount, with aifs:SOURCE: key_file=PATH,..."},
};

struct kv {
    struct place place;
    uint8_t *memory; /* opt.bs per job */
    bool get, verify;
};

static void block_path(const struct kv *kv, uint64_t i, const char *suffix,
                       char out[PLACE_PATH_BYTES])
{
    snprintf(out, PLACE_PATH_BYTES, "%s/block-%05llu%s", kv->place.dir, (unsigned long long)i,
             suffix);
}

/* Sizes lie evenly between the smallest and the largest, in an order without pattern. */
static uint64_t block_bytes(uint64_t i)
{
    uint64_t step = opt.blocks > 1 ? (opt.max - opt.min) / (opt.blocks - 1) : 0;

    return (opt.min + io_shuffled(i, opt.blocks, 3) * step) & ~7ull;
}

static int put(const struct kv *kv, const struct place_file *f, uint64_t i)
{
    char path[PLACE_PATH_BYTES];
    int rc = place_write(&kv->place, f);

    block_path(kv, i, "", path);
    return rc ? rc : kv->place.backend->rename(kv->place.fs, f->path, path);
}

static void job(struct bench_job *j)
{
    const struct kv *kv = j->arg;
    uint64_t before = bench_now_ns(), now;

    for (uint64_t k = j->index; k < opt.blocks; k += j->n_jobs) {
        uint64_t i = kv->get ? io_shuffled(k, opt.blocks, 1) : k;
        char path[PLACE_PATH_BYTES];
        struct place_file f = {.path = path,
                               .len = block_bytes(i),
                               .piece = (uint32_t)opt.bs,
                               .seed = i,
                               .verify = kv->verify,
                               .sync = opt.fsync,
                               .memory = kv->memory + j->index * opt.bs};
        int rc;

        block_path(kv, i, kv->get ? "" : ".new", path);
        rc = kv->get ? place_read(&kv->place, &f) : put(kv, &f, i);
        if (rc < 0) {
            place_failed(j, rc, path);
            return;
        }
        now = bench_now_ns();
        stat_record(&j->latency, now - before);
        before = now;
        j->operations++;
        j->bytes += f.len;
    }
}

static int phases(struct bench *b, struct kv *kv)
{
    int rc = bench_run(b, "kv.put", "MB/s", opt.jobs, 0, job, kv);

    if (rc == 0 && opt.cold)
        rc = kv->place.backend->drop_caches(kv->place.fs);
    kv->get = true;
    if (rc == 0)
        rc = bench_run(b, "kv.get", "MB/s", opt.jobs, 0, job, kv);
    for (uint64_t i = 0; i < opt.blocks; i++) {
        static const char *const suffixes[] = {"", ".new"};

        for (unsigned k = 0; k < (rc ? 2 : 1); k++) {
            char path[PLACE_PATH_BYTES];

            block_path(kv, i, suffixes[k], path);
            kv->place.backend->unlink(kv->place.fs, path);
        }
    }
    return rc;
}

static int run(struct bench *b, int argc, char **argv)
{
    struct kv kv = {.verify = opt.verify && !b->blind};
    int rc;

    if (argc != 1 || opt.jobs == 0 || opt.jobs > BENCH_JOBS_MAX || opt.blocks == 0 ||
        opt.min == 0 || opt.max < opt.min || opt.bs < 4096 || opt.bs % 4096 || opt.bs > GIB) {
        bench_error("kv: one directory or aifs:SOURCE, 1 to %d jobs, at least one block, --max not "
                    "below --min, --bs a multiple of 4Ki",
                    BENCH_JOBS_MAX);
        return 2;
    }
    if (place_open(&kv.place, "kv", argv[0], opt.options) != 0)
        return 1;
    kv.memory = place_memory("kv", opt.bs * opt.jobs);
    rc = kv.memory ? phases(b, &kv) : -ENOMEM;
    place_memory_free(kv.memory, opt.bs * opt.jobs);
    place_close(&kv.place, false);
    return rc < 0;
}

const struct bench_scenario bench_kv = {
    "kv",    "[options] PATH|aifs:SOURCE", "immutable blocks of a cache: put, get whole",
    options, ARRAY_LEN(options),           run};
