/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `md PATH`: metadata rates. Each job works on its own files, spread over its share of the
 * directories, one phase after the other: create, stat, open and close, rename, unlink, mkdir,
 * rmdir; what create made limits the later phases. With --shared all jobs work in one directory.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/bench/bench.h"

static struct {
    unsigned jobs, files, dirs;
    uint64_t size;
    double seconds;
    bool shared, keep;
} opt = {.jobs = 8, .files = 5000, .dirs = 8, .seconds = 10};

static const struct bench_option options[] = {
    {"jobs", BENCH_NUMBER, &opt.jobs, "threads (8)"},
    {"files", BENCH_NUMBER, &opt.files, "files per job at most (5000)"},
    {"dirs", BENCH_NUMBER, &opt.dirs, "directories (8)"},
    {"size", BENCH_SIZE, &opt.size, "bytes written to each new file (0)"},
    {"seconds", BENCH_SECONDS, &opt.seconds, "longest time of each phase (10)"},
    {"shared", BENCH_FLAG, &opt.shared, "all jobs in one directory"},
    {"keep", BENCH_FLAG, &opt.keep, "leave the directories behind"},
};

struct md {
    char root[3500];
    unsigned made[BENCH_JOBS_MAX], dirs_made[BENCH_JOBS_MAX];
    const void *data;
};

static void file_path(const struct md *m, const struct bench_job *j, unsigned i, const char *suffix,
                      char out[4096])
{
    snprintf(out, 4096, "%s/d%03u/f%u.%u%s", m->root,
             opt.shared ? 0 : (j->index + i * j->n_jobs) % opt.dirs, j->index, i, suffix);
}

static bool failed(struct bench_job *j, const char *path)
{
    j->status = -errno;
    snprintf(j->where, sizeof j->where, "%.250s", path);
    return false;
}

static bool do_create(struct bench_job *j, struct md *m, unsigned i)
{
    char path[4096];
    int fd;

    file_path(m, j, i, "", path);
    fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    if (fd < 0)
        return failed(j, path);
    if (opt.size && write(fd, m->data, opt.size) != (ssize_t)opt.size) {
        close(fd);
        return failed(j, path);
    }
    if (close(fd) != 0)
        return failed(j, path);
    m->made[j->index]++;
    j->bytes += opt.size;
    return true;
}

static bool do_stat(struct bench_job *j, struct md *m, unsigned i)
{
    struct stat st;
    char path[4096];

    file_path(m, j, i, "", path);
    return lstat(path, &st) == 0 || failed(j, path);
}

static bool do_open(struct bench_job *j, struct md *m, unsigned i)
{
    char path[4096];
    int fd;

    file_path(m, j, i, "", path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return (fd >= 0 && close(fd) == 0) || failed(j, path);
}

static bool do_rename(struct bench_job *j, struct md *m, unsigned i)
{
    char from[4096], to[4096];

    file_path(m, j, i, "", from);
    file_path(m, j, i, ".r", to);
    if (rename(from, to) != 0 || rename(to, from) != 0)
        return failed(j, from);
    j->operations++; /* two */
    return true;
}

static bool do_unlink(struct bench_job *j, struct md *m, unsigned i)
{
    char path[4096];

    file_path(m, j, i, "", path);
    return unlink(path) == 0 || failed(j, path);
}

static bool do_mkdir(struct bench_job *j, struct md *m, unsigned i)
{
    char path[4096];

    file_path(m, j, i, ".d", path);
    if (mkdir(path, 0755) != 0)
        return failed(j, path);
    m->dirs_made[j->index]++;
    return true;
}

static bool do_rmdir(struct bench_job *j, struct md *m, unsigned i)
{
    char path[4096];

    file_path(m, j, i, ".d", path);
    return rmdir(path) == 0 || failed(j, path);
}

static const struct phase {
    const char *name;
    bool (*fn)(struct bench_job *j, struct md *m, unsigned i);
    enum { ON_NEW, ON_FILES, ON_DIRS } on;
    bool must_finish;
} phases[] = {
    {"create", do_create, ON_NEW, false},     {"stat", do_stat, ON_FILES, false},
    {"open+close", do_open, ON_FILES, false}, {"rename", do_rename, ON_FILES, false},
    {"unlink", do_unlink, ON_FILES, true},    {"mkdir", do_mkdir, ON_NEW, false},
    {"rmdir", do_rmdir, ON_DIRS, true},
};

struct phase_arg {
    struct md *md;
    const struct phase *phase;
};

static void job(struct bench_job *j)
{
    struct phase_arg *a = j->arg;
    unsigned n = a->phase->on == ON_FILES  ? a->md->made[j->index]
                 : a->phase->on == ON_DIRS ? a->md->dirs_made[j->index]
                                           : opt.files;
    uint64_t before = bench_now_ns();

    for (unsigned i = 0; i < n && (a->phase->must_finish || !bench_over(j, before)); i++) {
        uint64_t after;

        if (!a->phase->fn(j, a->md, i))
            return;
        after = bench_now_ns();
        stat_record(&j->latency, after - before);
        before = after;
        j->operations++;
    }
}

static int make_dirs(const struct md *m, bool make)
{
    char path[4096];

    for (unsigned i = 0; i < opt.dirs; i++) {
        snprintf(path, sizeof path, "%s/d%03u", m->root, i);
        if ((make ? mkdir(path, 0755) : rmdir(path)) != 0) {
            bench_error("%s: %m", path);
            return 1;
        }
    }
    return 0;
}

static int run(struct bench *b, int argc, char **argv)
{
    static struct md m;
    char name[64];
    int rc;

    if (argc != 1 || opt.jobs == 0 || opt.dirs == 0 || opt.jobs > BENCH_JOBS_MAX) {
        bench_error("md: say where: one directory (and 1 to %d jobs)", BENCH_JOBS_MAX);
        return 2;
    }
    snprintf(m.root, sizeof m.root, "%s/bench-md.%d", argv[0], (int)getpid());
    if (mkdir(m.root, 0755) != 0) {
        bench_error("%s: %m", m.root);
        return 1;
    }
    m.data = calloc(1, opt.size + 1);
    rc = m.data ? make_dirs(&m, true) : 1;
    for (size_t i = 0; i < ARRAY_LEN(phases) && rc == 0; i++) {
        struct phase_arg a = {&m, &phases[i]};

        snprintf(name, sizeof name, "md.%s%s", phases[i].name, opt.shared ? ".shared" : "");
        rc = bench_run(b, name, "op/s", opt.jobs, opt.seconds, job, &a) < 0;
    }
    if (rc == 0 && !opt.keep && make_dirs(&m, false) == 0)
        rmdir(m.root);
    free((void *)m.data);
    return rc;
}

const struct bench_scenario bench_md = {
    "md",    "[options] PATH",   "metadata: create, stat, open, rename, unlink, mkdir, rmdir",
    options, ARRAY_LEN(options), run};
