/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `io PATH|aifs:SOURCE`: sequential and random reads and writes. Each job has a file, or its part
 * of a common one; files that are to be read and do not exist are written first, unmeasured.
 * Without
 * --seconds a job goes once through its part; random order visits each block once before any
 * second time, so that a cold run stays cold.
 */
#include "tools/bench/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/compiler.h"
#include "common/base/err.h"
#include "common/base/text.h"
#include "tools/bench/place.h"

static struct io_options opt = IO_OPTIONS_DEFAULT;

static const struct bench_option options[] = {
    {"rw", BENCH_TEXT, &opt.rw,
     "what, in this order: read write randread randwrite mixed (write,read,randread)"},
    {"bs", BENCH_SIZE, &opt.bs, "bytes per operation (1Mi)"},
    {"size", BENCH_SIZE, &opt.size, "bytes per job (256Mi)"},
    {"jobs", BENCH_NUMBER, &opt.jobs, "threads (1)"},
    {"depth", BENCH_NUMBER, &opt.depth, "operations in flight per job, with aifs:SOURCE (1)"},
    {"files", BENCH_TEXT, &opt.files, "own: each job its file; shared: one for all (own)"},
    {"seconds", BENCH_SECONDS, &opt.seconds, "go round until then (once through the size)"},
    {"direct", BENCH_FLAG, &opt.direct, "past the page cache (O_DIRECT)"},
    {"fsync", BENCH_FLAG, &opt.fsync, "a measured fsync at the end of writing"},
    {"cold", BENCH_FLAG, &opt.cold, "drop the caches before each row that reads (root)"},
    {"verify", BENCH_FLAG, &opt.verify, "write bytes that tell their place, check what is read"},
    {"options", BENCH_TEXT, &opt.options, "of the mount, with aifs:SOURCE: key_file=PATH,..."},
    {"keep", BENCH_FLAG, &opt.keep, "leave the files behind"},
};

static const struct io_kind {
    const char *name;
    bool reads, writes, random;
} kinds[] = {
    {"read", true, false, false},    {"write", false, true, false},
    {"randread", true, false, true}, {"randwrite", false, true, true},
    {"mixed", true, true, true},
};

struct io {
    const struct io_options *o;
    struct place place;
    bool shared, laid_out;
    uint8_t *memory; /* buffers_bytes per job */
    size_t buffers_bytes;
    const struct io_kind *kind;
};

struct io_job { /* one job's walk */
    const struct io *io;
    struct bench_job *j;
    struct io_file *file;
    uint64_t base, blocks, next, seed, random;
    struct io_op ops[IO_DEPTH_MAX];
};

static void file_path(const struct io *io, unsigned job, char out[4096])
{
    snprintf(out, 4096, "%s/f%u", io->place.dir, io->shared ? 0 : job);
}

static void job_failed(struct io_job *w, int status, const char *what, uint64_t offset)
{
    if (w->j->status < 0)
        return;
    w->j->status = status;
    snprintf(w->j->where, sizeof w->j->where, "%s of job %u at %llu", what, w->j->index,
             (unsigned long long)offset);
}

static bool more(const struct io_job *w, uint64_t now_ns)
{
    if (w->j->status < 0 || bench_stopped())
        return false;
    if (w->j->deadline_ns)
        return !bench_over(w->j, now_ns);
    return w->next < w->blocks;
}

static void begin(struct io_job *w, struct io_op *op, uint64_t now_ns)
{
    const struct io_kind *k = w->io->kind;
    uint64_t i = w->next++ % w->blocks;
    int rc;

    if (k->random)
        i = io_shuffled(i, w->blocks, w->seed);
    op->offset = w->base + i * w->io->o->bs;
    op->len = (uint32_t)w->io->o->bs;
    op->write = k->writes && (!k->reads || bench_random(&w->random) % 10 < 3);
    op->begun_ns = now_ns;
    if (op->write && w->io->o->verify)
        io_pattern_fill(op->buf, op->len, w->seed, op->offset);
    rc = w->io->place.backend->begin(w->file, op);
    if (rc < 0)
        job_failed(w, rc, "begin", op->offset);
}

static void finished(struct io_job *w, const struct io_op *op, uint64_t now_ns)
{
    size_t at;

    if (op->status < 0) {
        job_failed(w, op->status, op->write ? "write" : "read", op->offset);
        return;
    }
    stat_record(&w->j->latency, now_ns - op->begun_ns);
    w->j->operations++;
    w->j->bytes += op->len;
    if (op->write || !w->io->o->verify)
        return;
    at = io_pattern_check(op->buf, op->len, w->seed, op->offset);
    if (at != op->len)
        job_failed(w, -EIO, "wrong bytes in a read", op->offset + at);
}

static void walk(struct io_job *w)
{
    const struct io *io = w->io;
    unsigned in_flight = 0;
    uint64_t now = bench_now_ns();
    struct io_op *op;

    for (unsigned i = 0; i < io->o->depth; i++)
        w->ops[i].buf = io->memory + w->j->index * io->buffers_bytes + i * io->o->bs;
    while (in_flight < io->o->depth && more(w, now)) {
        begin(w, &w->ops[in_flight], now);
        in_flight += w->j->status == 0;
    }
    while (in_flight) {
        op = io->place.backend->finish(w->file);
        now = bench_now_ns();
        finished(w, op, now);
        if (!more(w, now)) {
            in_flight--;
            continue;
        }
        begin(w, op, now);
        in_flight -= w->j->status < 0;
    }
}

/* As programs open: who only writes does not ask to read. */
static int open_flags(const struct io *io)
{
    const struct io_kind *k = io->kind;
    int flags = !k->writes ? O_RDONLY : k->reads ? O_RDWR | O_CREAT : O_WRONLY | O_CREAT;

    return flags | (io->o->direct ? O_DIRECT : 0);
}

static void job(struct bench_job *j)
{
    const struct io *io = j->arg;
    struct io_job *w = calloc(1, sizeof *w);
    char path[4096];
    int rc;

    file_path(io, j->index, path);
    if (!w) {
        j->status = -ENOMEM;
        return;
    }
    w->io = io;
    w->j = j;
    w->base = io->shared ? j->index * io->o->size : 0;
    w->blocks = io->o->size / io->o->bs;
    w->seed = io->shared ? 1 : j->index + 1;
    w->random = w->seed;
    rc = io->place.backend->open(io->place.fs, path, open_flags(io), io->o->depth, &w->file);
    if (rc < 0) {
        job_failed(w, rc, "open", 0);
    } else {
        walk(w);
        if (io->kind->writes && io->o->fsync && j->status == 0)
            rc = io->place.backend->sync(w->file);
        if (rc < 0)
            job_failed(w, rc, "fsync", 0);
        rc = io->place.backend->close(w->file);
        if (rc < 0)
            job_failed(w, rc, "close", 0);
    }
    free(w);
}

/* Writes what will be read, into a row that is taken away again. */
static int lay_out(struct bench *b, struct io *io)
{
    const struct io_kind *kind = io->kind;
    struct io_options o = *io->o;
    const struct io_options *before = io->o;
    int rc;

    if (o.size % MIB == 0)
        o.bs = MIB;
    o.depth = 1;
    o.seconds = 0;
    o.fsync = true;
    io->o = &o;
    io->kind = &kinds[1];
    rc = bench_run(b, "lay out", "MB/s", o.jobs, 0, job, io);
    if (rc == 0)
        b->n_results--;
    io->kind = kind;
    io->o = before;
    return rc;
}

static int measure_kind(struct bench *b, struct io *io, const char *prefix)
{
    const struct io_options *o = io->o;
    char name[64], size[24];
    int rc = 0;

    if (!io->laid_out && (io->kind->reads || io->kind->random))
        rc = lay_out(b, io);
    if (rc == 0 && o->cold && io->kind->reads)
        rc = io->place.backend->drop_caches(io->place.fs);
    if (rc == 0 && o->before)
        rc = o->before(o->before_arg, !io->kind->writes);
    snprintf(size, sizeof size, o->bs % MIB ? "%lluKi" : "%lluMi",
             (unsigned long long)(o->bs % MIB ? o->bs / KIB : o->bs / MIB));
    snprintf(name, sizeof name, "%s.%s.%s.x%u", prefix, io->kind->name, size, o->jobs);
    if (rc == 0)
        rc = bench_run(b, name, o->bs < 64 * KIB ? "op/s" : "MB/s", o->jobs, o->seconds, job, io);
    if (!io->kind->writes || io->kind->random || o->seconds == 0)
        io->laid_out = rc == 0;
    return rc;
}

static const struct io_kind *kind_named(const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strlen(kinds[i].name) == len && !strncmp(kinds[i].name, name, len))
            return &kinds[i];
    return NULL;
}

static int check_options(const struct io_options *o, bool async)
{
    for (const char *p = o->rw; *p;
         p += p[strcspn(p, ",")] == ',' ? strcspn(p, ",") + 1 : strcspn(p, ","))
        if (!kind_named(p, strcspn(p, ","))) {
            bench_error("io: --rw takes read, write, randread, randwrite, mixed");
            return 2;
        }
    if (strcmp(o->files, "own") != 0 && strcmp(o->files, "shared") != 0) {
        bench_error("io: --files is own or shared");
        return 2;
    }
    if (o->jobs == 0 || o->jobs > BENCH_JOBS_MAX || o->depth == 0 || o->depth > IO_DEPTH_MAX) {
        bench_error("io: 1 to %d jobs, a depth of 1 to %u", BENCH_JOBS_MAX, IO_DEPTH_MAX);
        return 2;
    }
    if (o->depth > 1 && !async) {
        bench_error("io: --depth is for aifs:SOURCE; files of a path have one operation in flight");
        return 2;
    }
    if (o->direct && async) {
        bench_error("io: --direct is for paths: with libaifs there is no page cache to pass");
        return 2;
    }
    if (o->bs < 512 || o->bs % 512 || o->bs > GIB || o->size < o->bs || o->size % o->bs) {
        bench_error("io: --bs is a multiple of 512, --size one of --bs");
        return 2;
    }
    return 0;
}

static void clean_up(struct io *io)
{
    char path[4096];

    for (unsigned i = 0; i < (io->shared ? 1 : io->o->jobs); i++) {
        file_path(io, i, path);
        io->place.backend->unlink(io->place.fs, path);
    }
}

static int measure_all(struct bench *b, struct io *io, const char *prefix)
{
    size_t bytes, len;
    int rc = 0;

    io->buffers_bytes = MAX(io->o->bs * io->o->depth, MIB);
    bytes = io->buffers_bytes * io->o->jobs;
    io->memory = place_memory("io", bytes);
    if (!io->memory)
        return 1;
    for (const char *p = io->o->rw; *p && rc == 0; p += len + (p[len] == ',')) {
        len = strcspn(p, ",");
        io->kind = kind_named(p, len);
        rc = measure_kind(b, io, prefix);
    }
    place_memory_free(io->memory, bytes);
    return rc < 0;
}

int io_measure(struct bench *b, const struct io_options *o, const char *prefix, const char *where)
{
    struct io_options mine = *o;
    struct io io = {.o = &mine, .shared = !strcmp(o->files, "shared")};
    int rc = check_options(o, !strncmp(where, "aifs:", 5));

    if (rc)
        return rc;
    mine.verify &= !b->blind;
    if (place_open(&io.place, "io", where, o->options) != 0)
        return 1;
    rc = measure_all(b, &io, prefix);
    if (!o->keep)
        clean_up(&io);
    place_close(&io.place, o->keep);
    return rc;
}

static int run(struct bench *b, int argc, char **argv)
{
    if (argc != 1) {
        bench_error("io: say where: one directory, or aifs:SOURCE");
        return 2;
    }
    return io_measure(b, &opt, "io", argv[0]);
}

const struct bench_scenario bench_io = {
    "io",    "[options] PATH|aifs:SOURCE", "sequential and random reads and writes",
    options, ARRAY_LEN(options),           run};
