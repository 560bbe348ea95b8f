/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `md aifs:SOURCE`: metadata rates through libaifs, without a mount, in batches: each job makes,
 * looks at and removes its own files and directories, so many in one call; it opens and renames
 * them one by one. With --cold the mount is made anew before stat and before opening, so that
 * nothing is cached.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/lib/aifs.h"
#include "tools/bench/bench.h"
#include "tools/bench/md_aifs.h"

struct md {
    const struct md_options *o;
    const char *source;
    struct aifs *fs;
    char root[64];
    unsigned done[BENCH_JOBS_MAX]; /* of the last phase that makes something */
};

#define PATH_BYTES 128

static bool do_open(const struct md *m, struct bench_job *j, const char *path)
{
    struct aifs_file *f = aifs_open(m->fs, path, O_RDONLY, 0);

    (void)j;
    return f && aifs_close(f) == 0;
}

static bool do_rename(const struct md *m, struct bench_job *j, const char *path)
{
    char to[PATH_BYTES + 2];

    snprintf(to, sizeof to, "%s.r", path);
    j->operations++; /* two */
    return aifs_rename(m->fs, path, to) == 0 && aifs_rename(m->fs, to, path) == 0;
}

#define ONE_BY_ONE (-1)

static const struct phase {
    const char *name;
    int op; /* enum aifs_name_op, or one by one: */
    bool (*one)(const struct md *m, struct bench_job *j, const char *path);
    bool makes, must_finish, cold;
} phases[] = {
    {"create", AIFS_NAME_CREATE, NULL, true, false, false},
    {"stat", AIFS_NAME_LSTAT, NULL, false, false, true},
    {"open+close", ONE_BY_ONE, do_open, false, false, true},
    {"rename", ONE_BY_ONE, do_rename, false, false, false},
    {"unlink", AIFS_NAME_UNLINK, NULL, false, true, false},
    {"mkdir", AIFS_NAME_MKDIR, NULL, true, false, false},
    {"rmdir", AIFS_NAME_RMDIR, NULL, false, true, false},
};

struct phase_arg {
    struct md *md;
    const struct phase *phase;
};

static bool failed(struct bench_job *j, const char *where, int status)
{
    j->status = status;
    snprintf(j->where, sizeof j->where, "%.250s", where);
    return false;
}

/* Calls first to first + n; false: one of them has failed. */
static bool run_batch(struct bench_job *j, const struct phase_arg *a, struct aifs_name *names,
                      char (*paths)[PATH_BYTES], unsigned first, unsigned n)
{
    const struct md *m = a->md;
    struct aifs_batch *b;

    for (unsigned i = 0; i < n; i++) {
        unsigned k = first + i;
        unsigned dir = m->o->shared ? 0 : (j->index + k / m->o->batch * j->n_jobs) % m->o->dirs;

        snprintf(paths[i], PATH_BYTES, "%s/d%03u/f%u.%u", m->root, dir, j->index, k);
        names[i] = (struct aifs_name){.op = a->phase->op, .mode = 0755, .path = paths[i]};
    }
    if (a->phase->one)
        return a->phase->one(m, j, paths[0]) || failed(j, paths[0], -errno);
    b = aifs_batch_submit(m->fs, names, n);
    if (!b || aifs_batch_wait(b, -1) != 0)
        return failed(j, m->root, -errno);
    for (unsigned i = 0; i < n; i++)
        if (names[i].result < 0)
            return failed(j, paths[i], names[i].result);
    return true;
}

static void job(struct bench_job *j)
{
    struct phase_arg *a = j->arg;
    struct md *m = a->md;
    unsigned n = a->phase->makes ? m->o->files : m->done[j->index];
    unsigned batch = a->phase->one ? 1 : m->o->batch;
    struct aifs_name *names = calloc(batch, sizeof *names);
    char(*paths)[PATH_BYTES] = calloc(batch, sizeof *paths);
    uint64_t before = bench_now_ns();
    unsigned k = 0;

    if (!names || !paths)
        (void)failed(j, "memory", -ENOMEM);
    while (!j->status && k < n && !bench_stopped() &&
           (a->phase->must_finish || !bench_over(j, before))) {
        unsigned some = n - k < batch ? n - k : batch;
        uint64_t after;

        if (!run_batch(j, a, names, paths, k, some))
            break;
        k += some;
        after = bench_now_ns();
        stat_record(&j->latency, after - before);
        before = after;
        j->operations += some;
    }
    if (a->phase->makes)
        m->done[j->index] = k;
    free(names);
    free(paths);
}

static int connect_fs(struct md *m)
{
    if (aifs_mount(m->source, m->o->options, &m->fs) == 0)
        return 0;
    m->fs = NULL;
    bench_error("%s: %s", m->source, aifs_mount_error());
    return 1;
}

static int disconnect_fs(struct md *m)
{
    struct aifs *fs = m->fs;

    m->fs = NULL;
    if (!fs || aifs_unmount(fs) == 0)
        return 0;
    bench_error("%s: at the end: %m", m->source);
    return 1;
}

static int make_dirs(const struct md *m, bool make)
{
    char path[PATH_BYTES];

    if (make && aifs_mkdir(m->fs, m->root, 0755) != 0) {
        bench_error("%s: %m", m->root);
        return 1;
    }
    for (unsigned i = 0; i < m->o->dirs; i++) {
        snprintf(path, sizeof path, "%s/d%03u", m->root, i);
        if ((make ? aifs_mkdir(m->fs, path, 0755) : aifs_rmdir(m->fs, path)) != 0) {
            bench_error("%s: %m", path);
            return 1;
        }
    }
    return make || aifs_rmdir(m->fs, m->root) == 0 ? 0 : 1;
}

/* Whatever the phases have left, after a failure. */
static void sweep(const struct md *m)
{
    char dir[PATH_BYTES], path[PATH_BYTES + 256];

    for (unsigned i = 0; m->fs && i < m->o->dirs; i++) {
        const struct aifs_dirent *e;
        struct aifs_dir *d;

        snprintf(dir, sizeof dir, "%s/d%03u", m->root, i);
        d = aifs_opendir(m->fs, dir);
        while (d && (e = aifs_readdir(d)) != NULL) {
            snprintf(path, sizeof path, "%s/%s", dir, e->name);
            if (strcmp(e->name, ".") != 0 && strcmp(e->name, "..") != 0 &&
                aifs_unlink(m->fs, path) != 0)
                (void)aifs_rmdir(m->fs, path);
        }
        if (d)
            (void)aifs_closedir(d);
        (void)aifs_rmdir(m->fs, dir);
    }
    if (m->fs)
        (void)aifs_rmdir(m->fs, m->root);
}

/* What is not wanted, but makes what is, or removes what would be left. */
static bool needed(const struct md_options *o, const struct phase *p)
{
    return p->op == AIFS_NAME_CREATE || (p->op == AIFS_NAME_UNLINK && !o->keep) ||
           (p->op == AIFS_NAME_RMDIR && !o->keep);
}

static int run_phase(struct bench *b, struct md *m, const struct phase *p, const char *prefix)
{
    struct phase_arg a = {m, p};
    bool want = !strcmp(m->o->phases, "all") || bench_listed(m->o->phases, p->name);
    char name[64];
    int rc;

    if (!want && !needed(m->o, p))
        return 0;
    if (m->o->cold && want && p->cold && (disconnect_fs(m) || connect_fs(m)))
        return 1;
    snprintf(name, sizeof name, "%s.%s%s", prefix, p->name, m->o->shared ? ".shared" : "");
    rc = bench_run(b, name, "op/s", m->o->jobs, m->o->seconds, job, &a);
    if (rc == 0 && !want)
        b->n_results--;
    if (p->op == AIFS_NAME_UNLINK || p->op == AIFS_NAME_RMDIR)
        memset(m->done, 0, sizeof m->done);
    return rc < 0;
}

int md_aifs_measure(struct bench *b, const struct md_options *o, const char *prefix,
                    const char *where)
{
    struct md m = {.o = o, .source = where + strlen("aifs:")};
    int rc;

    if (o->jobs == 0 || o->dirs == 0 || o->batch == 0 || o->jobs > BENCH_JOBS_MAX || o->size) {
        bench_error("md: through libaifs: 1 to %d jobs, directories, batches, and no --size",
                    BENCH_JOBS_MAX);
        return 2;
    }
    snprintf(m.root, sizeof m.root, "/bench-md.%d", (int)getpid());
    rc = connect_fs(&m);
    if (rc)
        return rc;
    rc = make_dirs(&m, true);
    for (size_t i = 0; i < sizeof phases / sizeof phases[0] && rc == 0; i++)
        rc = run_phase(b, &m, &phases[i], prefix);
    if (rc == 0 && !o->keep)
        rc = make_dirs(&m, false);
    if (rc && !o->keep)
        sweep(&m);
    return disconnect_fs(&m) || rc;
}
