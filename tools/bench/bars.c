/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `bars --demo DIR`: the figures that the project sets itself, on a demo cluster, each beside its
 * limit, measured right before or after it; medians of several runs (bars.h has the list). The
 * program mounts for itself, so that it can mount anew where something is to be cold.
 */
#include "tools/bench/bars.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/base/crc.h"
#include "tools/admin/proc.h"
#include "tools/bench/null_mount.h"
#include "tools/bench/place.h"
#include "tools/bench/report.h"
#include "tools/bench/rpc_load.h"

#define RPC_SECONDS 0.5
#define OVERWRITE_S 0.3

static struct {
    const char *net;
    uint64_t size;
    unsigned runs, files;
} opt = {.net = "auto", .size = 64 * MIB, .runs = 5, .files = 1000};

static const struct bench_option options[] = {
    {"net", BENCH_TEXT, &opt.net,
     "transport of clients and of the limits: auto, tcp or shm (auto)"},
    {"size", BENCH_SIZE, &opt.size, "bytes of each job (64Mi)"},
    {"files", BENCH_NUMBER, &opt.files, "small files of 100 KiB (1000)"},
    {"runs", BENCH_NUMBER, &opt.runs, "of everything; medians are shown (5)"},
};

struct taken { /* of one bar */
    unsigned n;
    struct bench_result last;
    double values[REPORT_RUNS_MAX], limits[REPORT_RUNS_MAX];
};

struct session {
    struct bench *t; /* rows of the part that runs */
    const char *demo;
    unsigned want;
    char dir[PATH_MAX], source[80], lib[96], lib_options[PATH_MAX + 64],
        mount_options[PATH_MAX * 2];
    char program[PATH_MAX];
    uint64_t written; /* by servers, when the row began */
    struct taken taken[32];
};

/* ---- what is written down ---- */

static void take(struct session *s, const char *name, const struct bench_result *r, double limit)
{
    const struct bar *bar = bar_of(name);
    struct taken *t = &s->taken[bar - bars];

    if (t->n == REPORT_RUNS_MAX)
        return;
    t->last = *r;
    t->values[t->n] = r->value;
    t->limits[t->n++] = limit;
}

/* Rows of the part that is to run. */
static struct bench_result *fresh(struct session *s)
{
    s->t->n_results = 0;
    return s->t->results;
}

/* ---- the mount ---- */

static int mount_it(const struct session *s)
{
    const char *argv[] = {s->program, s->source, s->dir, "-o", s->mount_options, NULL};

    return proc_run(argv, -1);
}

static int unmount_it(const struct session *s)
{
    const char *argv[] = {s->program, "--umount", s->dir, NULL};

    return proc_run(argv, -1);
}

/* Before a row that reads: nothing of it is in any cache of ours. */
static int mount_anew(void *arg, bool reads)
{
    struct session *s = arg;

    if (!reads)
        return 0;
    if (unmount_it(s) != 0 || mount_it(s) != 0) {
        bench_error("bars: cannot mount again");
        return -EIO;
    }
    return bench_find_demo(s->t) == 0 ? 0 : -EIO;
}

/* The same load on null FUSE over RPC; its rows follow in s->t. */
static int on_null_fuse(struct session *s, const struct io_options *o)
{
    struct io_options same = *o;
    struct null_mount m;
    int rc;

    same.before = NULL;
    if (!null_mount_start(&m, CHANNEL_KIND_AUTO, !o->direct, s->want))
        return 1;
    rc = io_measure(s->t, &same, "null", m.dir);
    null_mount_stop(&m);
    return rc;
}

static bool is_tmpfs(const char *dir)
{
    struct statfs st;

    return statfs(dir, &st) == 0 && st.f_type == TMPFS_MAGIC;
}

/* As people call it; the kinds that differ in how they keep pages. */
static const char *file_system_of(const char *dir)
{
    static const struct {
        long magic;
        const char *name;
    } known[] = {{EXT4_SUPER_MAGIC, "ext4"},
                 {XFS_SUPER_MAGIC, "xfs"},
                 {BTRFS_SUPER_MAGIC, "btrfs"},
                 {TMPFS_MAGIC, "tmpfs"},
                 {OVERLAYFS_SUPER_MAGIC, "overlayfs"}};
    struct statfs st;

    for (size_t i = 0; statfs(dir, &st) == 0 && i < ARRAY_LEN(known); i++)
        if (st.f_type == known[i].magic)
            return known[i].name;
    return "another";
}

/* ---- the parts ---- */

static int rpc_limit(struct session *s, enum rpc_load_op op, uint32_t bs, unsigned depth,
                     double *ret)
{
    struct rpc_load l = {op, s->want, bs, depth, RPC_SECONDS};
    struct bench_result *r;
    int rc = rpc_load_measure(s->t, &l, "rpc", &r);

    if (rc == 0)
        *ret = r->value;
    return rc;
}

static int part_lib(struct session *s)
{
    struct io_options o = IO_OPTIONS_DEFAULT;
    struct bench_result *r = fresh(s);
    double reading = 0, writing = 0;
    int rc;

    o.rw = "write,read";
    o.depth = 8;
    o.size = 4 * opt.size;
    o.cold = true;
    o.options = s->lib_options;
    rc = rpc_limit(s, RPC_LOAD_WRITE, MIB, 8, &writing);
    r = fresh(s);
    if (rc == 0)
        rc = io_measure(s->t, &o, "lib", s->lib);
    if (rc == 0)
        rc = rpc_limit(s, RPC_LOAD_READ, MIB, 8, &reading);
    if (rc)
        return rc;
    take(s, "bar.lib.write", &r[0], writing);
    take(s, "bar.lib.read", &r[1], reading);
    r = fresh(s);
    o.rw = "randread";
    o.bs = 4096;
    o.depth = 32;
    o.size = opt.size / 2;
    rc = io_measure(s->t, &o, "lib", s->lib);
    if (rc == 0)
        rc = rpc_limit(s, RPC_LOAD_READ, 4096, 32, &reading);
    if (rc == 0)
        take(s, "bar.lib.randread", &r[0], reading);
    return rc;
}

static int part_mount(struct session *s)
{
    struct io_options o = IO_OPTIONS_DEFAULT;
    struct bench_result *r = fresh(s);
    int rc;

    o.rw = "write,read";
    o.jobs = 4;
    o.size = opt.size;
    o.direct = true;
    o.before = mount_anew;
    o.before_arg = s;
    rc = io_measure(s->t, &o, "mount", s->dir);
    if (rc == 0)
        rc = on_null_fuse(s, &o);
    if (rc)
        return rc;
    take(s, "bar.mount.write", &r[0], r[2].value);
    take(s, "bar.mount.read", &r[1], r[3].value);
    r = fresh(s);
    o.rw = "randread";
    o.bs = 4096;
    o.jobs = 8;
    o.size = opt.size / 16;
    rc = io_measure(s->t, &o, "mount", s->dir);
    if (rc == 0)
        rc = on_null_fuse(s, &o);
    if (rc == 0)
        take(s, "bar.mount.randread", &r[0], r[1].value);
    return rc;
}

/* Everywhere the third time: the second moves the pages to the kernel's list of those in use, which
 * takes as long as copying them. */
static int reread(struct session *s, const char *prefix, const char *where,
                  struct bench_result *ret_row)
{
    struct io_options o = IO_OPTIONS_DEFAULT;
    struct bench_result *r = fresh(s);
    int rc;

    o.rw = "write,read,read,read";
    o.jobs = 4;
    o.size = opt.size;
    rc = io_measure(s->t, &o, prefix, where);
    if (rc == 0)
        *ret_row = r[3];
    return rc;
}

static int part_reread(struct session *s)
{
    const char *tmp = getenv("TMPDIR");
    struct bench_result mount, local;
    int rc = reread(s, "mount", s->dir, &mount);

    if (rc == 0)
        rc = reread(s, "local", tmp && *tmp ? tmp : "/tmp", &local);
    if (rc)
        return rc;
    take(s, "bar.mount.reread", &mount, local.value);
    if (!is_tmpfs("/dev/shm"))
        return 0;
    rc = reread(s, "tmpfs", "/dev/shm", &local);
    if (rc == 0)
        take(s, "bar.mount.reread.tmpfs", &mount, local.value);
    return rc;
}

static int part_small(struct session *s)
{
    struct small_options o = SMALL_OPTIONS_DEFAULT;
    struct bench_result *r = fresh(s);
    struct null_mount m;
    int rc;

    o.files = opt.files;
    o.before = mount_anew;
    o.before_arg = s;
    rc = small_measure(s->t, &o, "mount", s->dir);
    o.before = NULL;
    if (rc == 0 && !null_mount_start(&m, CHANNEL_KIND_AUTO, false, s->want))
        rc = 1;
    if (rc)
        return rc;
    rc = small_measure(s->t, &o, "null", m.dir);
    null_mount_stop(&m);
    if (rc == 0)
        take(s, "bar.small.read", &r[1], r[5].value);
    return rc;
}

static int note_written(void *arg, bool reads)
{
    struct session *s = arg;

    (void)reads;
    s->written = bench_pids_written(&s->t->servers);
    return 0;
}

/* All that the servers write, their logs and answers too. */
static int part_overwrite(struct session *s)
{
    struct io_options o = IO_OPTIONS_DEFAULT;
    struct bench_result *r = fresh(s);
    int rc;

    o.rw = "randwrite";
    o.bs = 4096;
    o.size = 4 * opt.size;
    o.seconds = OVERWRITE_S;
    o.fsync = true;
    o.before = note_written;
    o.before_arg = s;
    rc = io_measure(s->t, &o, "mount", s->dir);
    if (rc)
        return rc;
    r->value = (double)(bench_pids_written(&s->t->servers) - s->written) / (double)r->bytes;
    r->unit = "x";
    take(s, "bar.overwrite", r, 0);
    return 0;
}

/* What a target would do with the bytes: sum them up, write them, make them durable. */
static void accept_locally(struct bench_job *j)
{
    const struct session *s = j->arg;
    uint8_t *buf = place_memory("bars", MIB);
    uint32_t sums[MIB / CRC_BLOCK_BYTES];
    char path[PATH_MAX + 32];
    int fd = -1;

    snprintf(path, sizeof path, "%s/bench-accept.%d.%u", s->demo, (int)getpid(), j->index);
    if (buf)
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    for (uint64_t at = 0; fd >= 0 && at < opt.size && j->status == 0; at += MIB) {
        uint64_t before = bench_now_ns();

        crc32c_blocks(0, buf, MIB, sums);
        if (pwrite(fd, buf, MIB, (off_t)at) != (ssize_t)MIB)
            place_failed(j, errno ? -errno : -EIO, path);
        stat_record(&j->latency, bench_now_ns() - before);
        j->bytes += MIB;
        j->operations++;
    }
    if (fd < 0 || fdatasync(fd) != 0)
        place_failed(j, errno ? -errno : -ENOMEM, path);
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
    place_memory_free(buf, MIB);
}

static int part_ckpt(struct session *s)
{
    struct io_options o = IO_OPTIONS_DEFAULT;
    struct bench_result *r = fresh(s);
    int rc;

    o.rw = "write";
    o.jobs = 4;
    o.bs = 4 * MIB;
    o.size = opt.size;
    o.fsync = true;
    rc = io_measure(s->t, &o, "mount", s->dir);
    if (rc == 0)
        rc = bench_run(s->t, "accept", "MB/s", o.jobs, 0, accept_locally, s) < 0;
    if (rc == 0)
        take(s, "bar.ckpt", &r[0], r[1].value);
    return rc;
}

/* ---- all of it ---- */

static int session_begin(struct session *s, const struct bench *b)
{
    char port[32], run_dir[PATH_MAX];
    const char *tmp = getenv("TMPDIR");

    s->demo = b->demo;
    s->t->demo = b->demo;
    if (rpc_load_want(opt.net, &s->want) < 0 || opt.runs == 0 || opt.runs > REPORT_RUNS_MAX ||
        opt.size < 4 * MIB || opt.size % (4 * MIB) || opt.files == 0) {
        bench_error("bars: --net auto, tcp or shm; --size a multiple of 4Mi; 1 to %u runs",
                    REPORT_RUNS_MAX);
        return 2;
    }
    snprintf(run_dir, sizeof run_dir, "%s/mds", b->demo);
    if (proc_program("aifs-mount", s->program, sizeof s->program) < 0 ||
        proc_wait_file(run_dir, "port", getpid(), 1000, port, sizeof port) < 0) {
        bench_error("bars: the program aifs-mount, or %s/run/port, is not there", run_dir);
        return 1;
    }
    port[strcspn(port, "\n")] = '\0';
    snprintf(s->source, sizeof s->source, "127.0.0.1:%s:/", port);
    snprintf(s->lib, sizeof s->lib, "aifs:%s", s->source);
    snprintf(s->lib_options, sizeof s->lib_options, "key_file=%s/key/client.key,net=%s", b->demo,
             opt.net);
    snprintf(s->dir, sizeof s->dir, "%s/bench-bars.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(s->dir)) {
        bench_error("%s: %m", s->dir);
        return 1;
    }
    snprintf(s->mount_options, sizeof s->mount_options,
             "keyfile=%s/key/client.key,net=%s,log=%s.log", b->demo, opt.net, s->dir);
    return 0;
}

static void session_end(const struct session *s)
{
    char log[PATH_MAX + 8];

    snprintf(log, sizeof log, "%s.log", s->dir);
    unlink(log);
    if (rmdir(s->dir) != 0)
        bench_error("%s: %m", s->dir);
}

static int all_parts(struct session *s)
{
    static int (*const parts[])(struct session * s) = {part_lib,   part_mount,     part_reread,
                                                       part_small, part_overwrite, part_ckpt};
    int rc = mount_it(s);

    if (rc) {
        bench_error("bars: cannot mount %s (%d)", s->source, rc);
        return 1;
    }
    rc = bench_find_demo(s->t);
    for (size_t i = 0; i < ARRAY_LEN(parts) && rc == 0; i++)
        rc = parts[i](s);
    return unmount_it(s) != 0 || rc;
}

static void add_row(struct bench *b, const struct bar *bar, const struct taken *t)
{
    double value = report_median(t->values, t->n), limit = report_median(t->limits, t->n);
    char figure[32], need[32];
    struct bench_result *r;

    r = bench_add(b, bar->row, t->last.unit, value, t->last.seconds);
    *r = t->last;
    snprintf(r->name, sizeof r->name, "%s", bar->row);
    r->value = value;
    r->limit = limit;
    r->limit_name = bar->of;
    if (b->json)
        return;
    bar_text(bar, bar_figure(bar, value, limit), figure, sizeof figure);
    bar_text(bar, bar->need, need, sizeof need);
    printf("%-5s %8s %s %-7s %s%s%s\n", bar_holds(bar, value, limit) ? "PASS" : "MISS", figure,
           bar->kind == BAR_AT_MOST ? "<=" : ">=", need, bar->title, bar->of[0] ? ", of " : "",
           bar->of);
}

static int run(struct bench *b, int argc, char **argv)
{
    struct session *s = calloc(1, sizeof *s);
    const char *tmp = getenv("TMPDIR");
    int rc = 1;

    (void)argv;
    if (argc != 0 || !b->demo) {
        bench_error("bars: takes no path, and --demo DIR");
        free(s);
        return 2;
    }
    if (s)
        s->t = calloc(1, sizeof *s->t);
    if (s && s->t)
        rc = session_begin(s, b);
    if (rc == 0) {
        for (unsigned i = 0; i < opt.runs && rc == 0; i++)
            rc = all_parts(s);
        session_end(s);
        for (size_t i = 0; i < n_bars; i++)
            if (s->taken[i].n > 0)
                add_row(b, &bars[i], &s->taken[i]);
        bench_note(b, "bars: medians of %u, over %s, %llu MiB a job; the local file system is %s",
                   opt.runs, opt.net, (unsigned long long)(opt.size / MIB),
                   file_system_of(tmp && *tmp ? tmp : "/tmp"));
    }
    if (s)
        free(s->t);
    free(s);
    return rc;
}

const struct bench_scenario bench_bars = {
    "bars",  "--demo DIR [options]", "what the project wants to reach, beside its limits",
    options, ARRAY_LEN(options),     run};
