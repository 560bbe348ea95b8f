/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `null`: the null file system, mounted for any other program's load, until a signal or until
 * somebody unmounts it. Fails: where it cannot be mounted.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/bench/bench.h"
#include "tools/bench/null_mount.h"
#include "tools/bench/rpc_load.h"

static struct {
    const char *net;
    uint64_t keep;
    bool direct;
} opt = {.net = "none"};

static const struct bench_option options[] = {
    {"net", BENCH_TEXT, &opt.net,
     "none: file data is answered by the mount itself; tcp, shm or auto: by raw calls to "
     "another process (none)"},
    {"keep", BENCH_SIZE, &opt.keep,
     "bytes of each file that are kept in memory, and read again; of a longer one none (0)"},
    {"direct", BENCH_FLAG, &opt.direct,
     "past the page cache whoever opens a file, not only writers"},
};

/* The mount's process ends, or a signal that ends it comes. They are blocked: none is missed. */
static void wait_for_end(const struct null_mount *m, const sigset_t *signals)
{
    siginfo_t info = {0};

    while (waitid(P_PID, (id_t)m->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && !info.si_pid) {
        int sig = sigwaitinfo(signals, NULL);

        if (sig > 0 && sig != SIGCHLD)
            return;
    }
}

/* The kernel would mount over a file as well, and hide it. */
static bool is_directory(const char *path)
{
    struct stat st;

    if (stat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode))
            return true;
        errno = ENOTDIR;
    }
    bench_error("null: %s: %m", path);
    return false;
}

static int run(struct bench *b UNUSED, int argc, char **argv)
{
    struct null_fs_options o = {.timeout_ns = NS_PER_S};
    unsigned want = NULL_MOUNT_NO_RPC;
    struct sigaction hangup;
    struct null_mount m;
    sigset_t signals;

    if (argc != 1 || strlen(argv[0]) >= sizeof m.dir) {
        bench_error("null: takes one directory to mount on");
        return 2;
    }
    if (strcmp(opt.net, "none") != 0 && rpc_load_want(opt.net, &want) < 0) {
        bench_error("null: --net %s: none, auto, tcp or shm", opt.net);
        return 2;
    }
    if (opt.keep && want != NULL_MOUNT_NO_RPC) {
        bench_error("null: --keep is for data that the mount itself answers: without --net");
        return 2;
    }
    if (!is_directory(argv[0]))
        return 1;
    o.direct = opt.direct;
    o.keep_bytes = opt.keep;
    o.writers_direct = true;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGCHLD);
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) /* nohup(1) */
        sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    if (!null_mount_on(&m, argv[0], &o, want))
        return 1;
    printf("null FUSE on %s, until interrupted or unmounted\n", m.dir);
    fflush(stdout);
    wait_for_end(&m, &signals);
    null_mount_stop(&m);
    return 0;
}

const struct bench_scenario bench_null = {
    "null",
    "[options] DIR",
    "mounts a file system in memory, without data unless told, for other programs' load",
    options,
    ARRAY_LEN(options),
    run};
