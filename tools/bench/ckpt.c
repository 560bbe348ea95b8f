/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `ckpt PATH|aifs:SOURCE`: a checkpoint, written by all ranks at once, made durable, and read back.
 * Three layouts: "n-n", a file per rank; "n-1", one file, each rank its part of it; "records", one
 * file, the ranks' records one after the other in turns (as ior-hard). Each rank reads what the
 * next one wrote, so that no cache of its own can help. fsync and close are inside the time.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "tools/bench/place.h"

static struct {
    const char *layouts, *options;
    unsigned ranks;
    uint64_t size, bs, record;
    bool cold, verify;
} opt = {
    .layouts = "n-n,n-1,records", .ranks = 4, .size = 256 * MIB, .bs = 4 * MIB, .record = 47008};

static const struct bench_option options[] = {
    {"layouts", BENCH_TEXT, &opt.layouts, "which of n-n n-1 records (all)"},
    {"ranks", BENCH_NUMBER, &opt.ranks, "writers, threads (4)"},
    {"size", BENCH_SIZE, &opt.size, "bytes of each rank (256Mi)"},
    {"bs", BENCH_SIZE, &opt.bs, "bytes per call with n-n and n-1 (4Mi)"},
    {"record", BENCH_SIZE, &opt.record, "bytes per call with records (47008)"},
    {"cold", BENCH_FLAG, &opt.cold, "drop the caches before reading (root)"},
    {"verify", BENCH_FLAG, &opt.verify, "write bytes that tell their place, check what is read"},
    {"options", BENCH_TEXT, &opt.options, "of the mount, with aifs:SOURCE: key_file=PATH,..."},
};

struct ckpt {
    struct place place;
    uint8_t *memory;
    size_t stride;
    uint64_t piece;
    bool shared, interleaved, write, verify;
};

static const char *const layouts[] = {"n-n", "n-1", "records"};

static void file_path(const struct ckpt *c, unsigned rank, char out[PLACE_PATH_BYTES])
{
    snprintf(out, PLACE_PATH_BYTES, "%s/rank_%03u.pt", c->place.dir, c->shared ? 0 : rank);
}

static uint64_t offset_of(const struct ckpt *c, unsigned rank, uint64_t k)
{
    if (c->interleaved)
        return (k * opt.ranks + rank) * c->piece;
    return (c->shared ? rank * opt.size : 0) + k * c->piece;
}

static int pieces(const struct ckpt *c, struct bench_job *j, struct io_file *f, unsigned rank)
{
    uint8_t *buf = c->memory + j->index * c->stride;
    uint64_t n = opt.size / c->piece, before = bench_now_ns(), now;
    uint32_t len = (uint32_t)c->piece;
    uint64_t seed = c->shared ? 1 : rank + 1;
    int rc = 0;

    for (uint64_t k = 0; k < n && rc == 0; k++) {
        uint64_t offset = offset_of(c, rank, k);

        if (c->write && c->verify)
            io_pattern_fill(buf, len, seed, offset);
        rc = place_io(&c->place, f, c->write, buf, len, offset);
        if (rc == 0 && !c->write && c->verify && io_pattern_check(buf, len, seed, offset) != len)
            rc = -EIO;
        if (rc < 0)
            break;
        now = bench_now_ns();
        stat_record(&j->latency, now - before);
        before = now;
        j->operations++;
        j->bytes += len;
    }
    return rc;
}

static void job(struct bench_job *j)
{
    const struct ckpt *c = j->arg;
    unsigned rank = c->write ? j->index : (j->index + 1) % opt.ranks;
    char path[PLACE_PATH_BYTES];
    struct io_file *f;
    int rc, end;

    file_path(c, rank, path);
    rc = c->place.backend->open(c->place.fs, path, c->write ? O_WRONLY | O_CREAT : O_RDONLY, 1, &f);
    if (rc == 0) {
        rc = pieces(c, j, f, rank);
        if (rc == 0 && c->write)
            rc = c->place.backend->sync(f);
        end = c->place.backend->close(f);
        rc = rc ? rc : end;
    }
    if (rc < 0)
        place_failed(j, rc, path);
}

static int layout(struct bench *b, struct ckpt *c, unsigned which)
{
    char name[48];
    int rc;

    c->shared = which > 0;
    c->interleaved = which == 2;
    c->piece = which == 2 ? opt.record : opt.bs;
    c->write = true;
    snprintf(name, sizeof name, "ckpt.%s.write.x%u", layouts[which], opt.ranks);
    rc = bench_run(b, name, "MB/s", opt.ranks, 0, job, c);
    c->write = false;
    snprintf(name, sizeof name, "ckpt.%s.read.x%u", layouts[which], opt.ranks);
    if (rc == 0 && opt.cold)
        rc = c->place.backend->drop_caches(c->place.fs);
    if (rc == 0)
        rc = bench_run(b, name, "MB/s", opt.ranks, 0, job, c);
    for (unsigned i = 0; i < (c->shared ? 1 : opt.ranks); i++) {
        char path[PLACE_PATH_BYTES];

        file_path(c, i, path);
        c->place.backend->unlink(c->place.fs, path);
    }
    return rc;
}

static int run(struct bench *b, int argc, char **argv)
{
    struct ckpt c = {.stride = (MAX(opt.bs, opt.record) + 4095) & ~(size_t)4095,
                     .verify = opt.verify && !b->blind};
    bool any = false;
    int rc = 0;

    for (unsigned i = 0; i < ARRAY_LEN(layouts); i++)
        any |= bench_listed(opt.layouts, layouts[i]);
    if (argc != 1 || !any || opt.ranks == 0 || opt.ranks > BENCH_JOBS_MAX || opt.bs == 0 ||
        opt.bs % 8 || opt.record == 0 || opt.record % 8 || opt.bs > GIB || opt.record > GIB ||
        opt.size < MAX(opt.bs, opt.record)) {
        bench_error("ckpt: one directory or aifs:SOURCE, --layouts n-n, n-1 or records, 1 to %d "
                    "ranks, --bs and --record multiples of 8 and not above --size",
                    BENCH_JOBS_MAX);
        return 2;
    }
    if (place_open(&c.place, "ckpt", argv[0], opt.options) != 0)
        return 1;
    c.memory = place_memory("ckpt", c.stride * opt.ranks);
    if (!c.memory)
        rc = -ENOMEM;
    for (unsigned i = 0; i < ARRAY_LEN(layouts) && rc == 0; i++)
        if (bench_listed(opt.layouts, layouts[i]))
            rc = layout(b, &c, i);
    place_memory_free(c.memory, c.stride * opt.ranks);
    place_close(&c.place, false);
    return rc < 0;
}

const struct bench_scenario bench_ckpt = {
    "ckpt",  "[options] PATH|aifs:SOURCE", "a checkpoint of many ranks: write, fsync, read back",
    options, ARRAY_LEN(options),           run};
