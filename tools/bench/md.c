/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `md PATH`: metadata rates. Each job works on its own files, spread over its share of the
 * directories, one phase after the other: create, stat, read, open and close, rename, unlink,
 * mkdir, rmdir; what create made limits the later phases. With --size the files hold data, and read
 * opens, reads and closes them in random order. With --shared all jobs work in one directory.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/compiler.h"
#include "common/base/mem.h"
#include "tools/bench/bench.h"
#include "tools/bench/io.h"
#include "tools/bench/md_aifs.h"

static struct md_options opt = MD_OPTIONS_DEFAULT;

static const struct bench_option options[] = {
    {"phases", BENCH_TEXT, &opt.phases,
     "which of create stat read open+close rename unlink mkdir rmdir (all)"},
    {"jobs", BENCH_NUMBER, &opt.jobs, "threads (8)"},
    {"files", BENCH_NUMBER, &opt.files, "files per job at most (5000)"},
    {"dirs", BENCH_NUMBER, &opt.dirs, "directories (8)"},
    {"size", BENCH_SIZE, &opt.size, "bytes written to each new file (0)"},
    {"seconds", BENCH_SECONDS, &opt.seconds, "longest time of each phase (10)"},
    {"shared", BENCH_FLAG, &opt.shared, "all jobs in one directory"},
    {"cold", BENCH_FLAG, &opt.cold, "drop the caches before stat, read, open+close (root)"},
    {"keep", BENCH_FLAG, &opt.keep, "leave the directories behind"},
    {"batch", BENCH_NUMBER, &opt.batch, "with aifs:SOURCE: calls submitted together (1000)"},
    {"options", BENCH_TEXT, &opt.options, "of the mount, with aifs:SOURCE: key_file=PATH,..."},
};

struct md {
    const struct md_options *o;
    char root[3500];
    unsigned made[BENCH_JOBS_MAX], dirs_made[BENCH_JOBS_MAX];
    uint8_t *data; /* what is written; and behind it room for each job to read into */
};

static void file_path(const struct md *m, const struct bench_job *j, unsigned i, const char *suffix,
                      char out[4096])
{
    snprintf(out, 4096, "%s/d%03u/f%u.%u%s", m->root,
             m->o->shared ? 0 : (j->index + i * j->n_jobs) % m->o->dirs, j->index, i, suffix);
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
    if (m->o->size && write(fd, m->data, m->o->size) != (ssize_t)m->o->size) {
        close(fd);
        return failed(j, path);
    }
    if (close(fd) != 0)
        return failed(j, path);
    m->made[j->index]++;
    j->bytes += m->o->size;
    return true;
}

static bool do_stat(struct bench_job *j, struct md *m, unsigned i)
{
    struct stat st;
    char path[4096];

    file_path(m, j, i, "", path);
    return lstat(path, &st) == 0 || failed(j, path);
}

static bool do_read(struct bench_job *j, struct md *m, unsigned i)
{
    uint8_t *buf = m->data + (j->index + 1) * m->o->size;
    uint64_t done = 0;
    char path[4096];
    ssize_t n = 1;
    int fd;

    file_path(m, j, (unsigned)io_shuffled(i, m->made[j->index], j->index + 1), "", path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return failed(j, path);
    while (n > 0 && done < m->o->size) {
        n = read(fd, buf + done, m->o->size - done);
        done += n > 0 ? (uint64_t)n : 0;
    }
    if (n < 0 || done != m->o->size) {
        errno = n < 0 ? errno : EIO;
        failed(j, path);
        close(fd);
        return false;
    }
    j->bytes += done;
    return close(fd) == 0 || failed(j, path);
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
    bool must_finish, cold;
} phases[] = {
    {"create", do_create, ON_NEW, false, false},   {"stat", do_stat, ON_FILES, false, true},
    {"read", do_read, ON_FILES, false, true},      {"open+close", do_open, ON_FILES, false, true},
    {"rename", do_rename, ON_FILES, false, false}, {"unlink", do_unlink, ON_FILES, true, false},
    {"mkdir", do_mkdir, ON_NEW, false, false},     {"rmdir", do_rmdir, ON_DIRS, true, false},
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
                                           : a->md->o->files;
    uint64_t before = bench_now_ns();

    for (unsigned i = 0; i < n && !bench_stopped(); i++) {
        uint64_t after;

        if (!a->phase->must_finish && bench_over(j, before))
            return;
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

    for (unsigned i = 0; i < m->o->dirs; i++) {
        snprintf(path, sizeof path, "%s/d%03u", m->root, i);
        if ((make ? mkdir(path, 0755) : rmdir(path)) != 0) {
            bench_error("%s: %m", path);
            return 1;
        }
    }
    return 0;
}

static bool wanted(const struct md_options *o, const struct phase *p)
{
    if (!strcmp(o->phases, "all"))
        return p->fn != do_read || o->size > 0;
    return bench_listed(o->phases, p->name);
}

/* A phase that is not wanted but without which nothing would be there, or be left over. */
static bool needed(const struct md_options *o, const struct phase *p)
{
    return p->fn == do_create || (!o->keep && (p->fn == do_unlink || p->fn == do_rmdir));
}

static int run_phase(struct bench *b, struct md *m, const struct phase *p, const char *prefix)
{
    struct phase_arg a = {m, p};
    bool want = wanted(m->o, p);
    char name[64];
    int rc;

    if (!want && !needed(m->o, p))
        return 0;
    if (want && p->cold && m->o->cold && bench_drop_caches() < 0)
        return 1;
    snprintf(name, sizeof name, "%s.%s%s", prefix, p->name, m->o->shared ? ".shared" : "");
    rc = bench_run(b, name, "op/s", m->o->jobs, m->o->seconds, job, &a);
    if (rc == 0 && !want)
        b->n_results--;
    return rc < 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    remove(path);
    return 0;
}

int md_measure(struct bench *b, const struct md_options *o, const char *prefix, const char *where)
{
    struct md *m;
    static unsigned serial;
    int rc;

    if (o->jobs == 0 || o->dirs == 0 || o->jobs > BENCH_JOBS_MAX || o->size > GIB) {
        bench_error("md: 1 to %d jobs, at least one directory, at most 1 GiB", BENCH_JOBS_MAX);
        return 2;
    }
    m = calloc(1, sizeof *m);
    if (m)
        m->data = calloc(o->jobs + 1, o->size + 8);
    if (!m || !m->data) {
        bench_error("md: out of memory");
        free(m);
        return 1;
    }
    m->o = o;
    bench_fill(m->data, o->size, (uint64_t)getpid());
    snprintf(m->root, sizeof m->root, "%s/bench-md.%d.%u", where, (int)getpid(), serial++);
    rc = mkdir(m->root, 0755) != 0;
    if (rc)
        bench_error("%s: %m", m->root);
    else
        rc = make_dirs(m, true);
    for (size_t i = 0; i < ARRAY_LEN(phases) && rc == 0; i++)
        rc = run_phase(b, m, &phases[i], prefix);
    if (rc == 0 && !o->keep && make_dirs(m, false) == 0)
        rmdir(m->root);
    if (rc != 0 && !o->keep) /* whatever the phases have left */
        nftw(m->root, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    free(m->data);
    free(m);
    return rc;
}

static int run(struct bench *b, int argc, char **argv)
{
    if (argc != 1) {
        bench_error("md: say where: one directory, or aifs:SOURCE");
        return 2;
    }
    if (!strncmp(argv[0], "aifs:", 5))
        return md_aifs_measure(b, &opt, "md", argv[0]);
    return md_measure(b, &opt, "md", argv[0]);
}

const struct bench_scenario bench_md = {
    "md",
    "[options] PATH|aifs:SOURCE",
    "metadata: create, stat, read, open, rename, unlink, mkdir, rmdir",
    options,
    ARRAY_LEN(options),
    run};
