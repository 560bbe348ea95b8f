/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of the null file system. Fails: no FUSE, no rights to mount. */
#include "tools/bench/null_mount.h"

#include <errno.h>
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
    int rc;

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
    bench_error("no rows for FUSE: %s", answer);
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

static void stop_server(struct null_mount *m)
{
    if (!m->server)
        return;
    close(m->until);
    waitpid(m->server, NULL, 0);
    rpc_null_free(m->rpc);
}

bool null_mount_start(struct null_mount *m, enum channel_kind kind, bool cached, unsigned want)
{
    const char *tmp = getenv("TMPDIR");
    struct null_fs_options o = {.channel = kind, .timeout_ns = NS_PER_S, .direct = !cached};
    struct null_fs_remote remote;
    struct crypto_key key;
    uint16_t port;

    *m = (struct null_mount){0};
    snprintf(m->dir, sizeof m->dir, "%s/bench-null.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(m->dir)) {
        bench_error("%s: %m", m->dir);
        return false;
    }
    if (want != NULL_MOUNT_NO_RPC) {
        if (rpc_server_start(want, RPC_DEPTH, &key, &port, &m->until, &m->server) != 0 ||
            rpc_null_create(want, &key, port, &remote, &m->rpc) < 0) {
            stop_server(m);
            rmdir(m->dir);
            return false;
        }
        o.remote = &remote;
    }
    m->pid = start(m, &o);
    if (!m->pid) {
        stop_server(m);
        rmdir(m->dir);
    }
    return m->pid != 0;
}

void null_mount_stop(struct null_mount *m)
{
    unmount(m->dir);
    waitpid(m->pid, NULL, 0);
    stop_server(m);
    rmdir(m->dir);
}
