/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit that FUSE sets: the null file system in a process of its own, mounted on a new
 * directory, under the same measurements as a real mount. Twice: without the page cache, and with
 * it (cold, where the caches may be dropped).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/fuse/null_fs.h"
#include "tools/bench/io.h"
#include "tools/bench/limits.h"

#define READY 'r'

/* ---- the measurements ---- */

static int measure_io(struct bench *b, const char *prefix, const char *dir, double seconds,
                      bool cached)
{
    struct io_options o = IO_OPTIONS_DEFAULT;
    static const unsigned jobs[] = {1, 4};
    int rc = 0;

    o.cold = cached && geteuid() == 0;
    o.direct = !cached;
    for (unsigned i = 0; i < ARRAY_LEN(jobs) && rc == 0; i++) {
        o.jobs = jobs[i];
        /* what was read once is hot: a cold run goes once through its files */
        o.size = cached ? 512 * MIB / o.jobs : 64 * MIB;
        o.seconds = cached ? 0 : seconds;
        o.rw = "write,read";
        rc = io_measure(b, &o, prefix, dir);
    }
    if (rc || cached)
        return rc;
    o.jobs = 8;
    o.bs = 4096;
    o.rw = "randread";
    return io_measure(b, &o, prefix, dir);
}

static int measure_md(struct bench *b, const char *prefix, const char *dir, double seconds)
{
    struct md_options o = MD_OPTIONS_DEFAULT;

    o.phases = "create,stat,unlink";
    o.seconds = seconds;
    o.files = 20000;
    return md_measure(b, &o, prefix, dir);
}

/* ---- the null file system's process ---- */

static void is_ready(void *arg)
{
    const char c = READY;

    if (write(*(int *)arg, &c, 1) != 1)
        _exit(1);
}

static void serve(const char *dir, bool direct, int told)
{
    struct null_fs_options o = {.timeout_ns = NS_PER_S, .direct = direct};
    char err[256];
    int rc;

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    rc = null_fs_serve(dir, &o, is_ready, &told, err, sizeof err);
    if (rc < 0 && write(told, err, strlen(err)) < 0)
        _exit(2);
    _exit(rc < 0);
}

/* The pid once it is mounted; 0 where it cannot be, after saying so. */
static pid_t start(const char *dir, bool direct)
{
    char answer[256] = "the process ended";
    int told[2];
    pid_t pid;
    ssize_t n;

    if (pipe(told) != 0) {
        bench_error("pipe: %m");
        return 0;
    }
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        close(told[0]);
        serve(dir, direct, told[1]);
    }
    close(told[1]);
    n = pid > 0 ? read(told[0], answer, sizeof answer - 1) : -1;
    close(told[0]);
    if (n == 1 && answer[0] == READY)
        return pid;
    if (n > 0)
        answer[n] = '\0';
    bench_error("limits: no rows for FUSE: %s", answer);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    return 0;
}

static void unmount(const char *dir)
{
    pid_t pid;

    if (umount2(dir, 0) == 0 || umount2(dir, MNT_DETACH) == 0)
        return;
    pid = fork();
    if (pid == 0) {
        execlp("fusermount3", "fusermount3", "-u", "-z", dir, (char *)NULL);
        _exit(127);
    }
    if (pid > 0)
        waitpid(pid, NULL, 0);
}

static int with_null_fs(struct bench *b, const char *prefix, double seconds, bool cached)
{
    const char *tmp = getenv("TMPDIR");
    char dir[4096];
    pid_t pid;
    int rc;

    snprintf(dir, sizeof dir, "%s/bench-null.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(dir)) {
        bench_error("%s: %m", dir);
        return 1;
    }
    pid = start(dir, !cached);
    rc = 0;
    if (pid) {
        rc = measure_io(b, prefix, dir, seconds, cached);
        if (rc == 0 && !cached)
            rc = measure_md(b, prefix, dir, seconds);
        unmount(dir);
        waitpid(pid, NULL, 0);
    }
    rmdir(dir);
    return rc;
}

int limit_null_fuse(struct bench *b, double seconds)
{
    int rc = with_null_fs(b, "fuse", seconds, false);

    return rc ? rc : with_null_fs(b, "fuse-cached", seconds, true);
}

int limit_mount(struct bench *b, const char *dir, double seconds)
{
    unsigned before = b->n_results;
    int rc = measure_io(b, "mount", dir, seconds, false);

    if (rc == 0)
        rc = measure_md(b, "mount", dir, seconds);
    if (rc == 0)
        rc = measure_io(b, "mount-cached", dir, seconds, true);
    for (unsigned i = 0; i < before; i++) /* "fuse.x" limits "mount.x" */
        for (unsigned k = before; k < b->n_results; k++)
            if (!strncmp(b->results[i].name, "fuse", 4) &&
                !strcmp(b->results[i].name + 4, b->results[k].name + 5)) {
                b->results[k].limit = b->results[i].value;
                b->results[k].limit_name = b->results[i].name;
            }
    return rc;
}
