/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of the null file system. Fails: no FUSE, no rights to mount. */
#include "tools/bench/null_mount.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/bench/rpc_load.h"
#include "tools/bench/rpc_null.h"

#define READY     'r'
#define RPC_DEPTH 64u

static void is_ready(void *arg)
{
    const char c = READY;

    if (write(*(int *)arg, &c, 1) != 1)
        _exit(1);
}

static void serve(const char *dir, const struct null_fs_options *o, int told)
{
    char err[256];
    sigset_t none;
    int rc;

    sigemptyset(&none);
    signal(SIGINT, SIG_IGN); /* of a terminal: the parent unmounts */
    signal(SIGHUP, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    rc = null_fs_serve(dir, o, is_ready, &told, err, sizeof err);
    if (rc < 0 && write(told, err, strlen(err)) < 0)
        _exit(2);
    _exit(rc < 0);
}

/* The pid once it is mounted; 0 where it cannot be, after saying so. */
static pid_t start(const struct null_mount *m, const struct null_fs_options *o)
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
        if (m->server)
            close(m->until);
        serve(m->dir, o, told[1]);
    }
    close(told[1]);
    n = pid > 0 ? read(told[0], answer, sizeof answer - 1) : -1;
    close(told[0]);
    if (n == 1 && answer[0] == READY)
        return pid;
    if (n > 0)
        answer[n] = '\0';
    bench_error("null FUSE on %s: %s", m->dir, answer);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    return 0;
}

/* The process ends with its last user: of a mount that is in use, now. */
static void unmount(const struct null_mount *m)
{
    pid_t pid;

    if (umount2(m->dir, 0) == 0)
        return;
    if (umount2(m->dir, MNT_DETACH) != 0) {
        pid = fork();
        if (pid == 0) {
            execlp("fusermount3", "fusermount3", "-u", "-z", m->dir, (char *)NULL);
            _exit(127);
        }
        if (pid > 0)
            waitpid(pid, NULL, 0);
    }
    kill(m->pid, SIGTERM);
}

/* By itself or by somebody, when its process has exited; when that was killed it is there still. */
static bool is_unmounted(const struct null_mount *m)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)m->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid &&
           info.si_code == CLD_EXITED;
}

static void stop_server(struct null_mount *m)
{
    if (!m->server)
        return;
    close(m->until);
    waitpid(m->server, NULL, 0);
    rpc_null_free(m->rpc);
}

bool null_mount_on(struct null_mount *m, const char *dir, const struct null_fs_options *o,
                   unsigned want)
{
    struct null_fs_options options = *o;
    struct null_fs_remote remote;
    struct crypto_key key;
    uint16_t port;

    *m = (struct null_mount){0};
    snprintf(m->dir, sizeof m->dir, "%s", dir);
    options.remote = NULL;
    if (want != NULL_MOUNT_NO_RPC) {
        if (rpc_server_start(want, RPC_DEPTH, &key, &port, &m->until, &m->server) != 0 ||
            rpc_null_create(want, &key, port, &remote, &m->rpc) < 0) {
            stop_server(m);
            return false;
        }
        options.remote = &remote;
    }
    m->pid = start(m, &options);
    if (!m->pid)
        stop_server(m);
    return m->pid != 0;
}

bool null_mount_start(struct null_mount *m, enum channel_kind kind, bool cached, unsigned want)
{
    const char *tmp = getenv("TMPDIR");
    struct null_fs_options o = {.channel = kind, .timeout_ns = NS_PER_S, .direct = !cached};
    char dir[sizeof m->dir];

    snprintf(dir, sizeof dir, "%s/bench-null.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(dir)) {
        bench_error("%s: %m", dir);
        return false;
    }
    if (!null_mount_on(m, dir, &o, want)) {
        rmdir(dir);
        return false;
    }
    m->own_dir = true;
    return true;
}

void null_mount_stop(struct null_mount *m)
{
    if (!is_unmounted(m)) /* else another mount there would go */
        unmount(m);
    waitpid(m->pid, NULL, 0);
    stop_server(m);
    if (m->own_dir)
        rmdir(m->dir);
}
