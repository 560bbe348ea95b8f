/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes: the daemon goes on alone, the one that mount(8) waits for ends when the mount is
 * usable or has failed. Between them a pipe: one byte of exit code, then text. The waiting process
 * asks the file system for statfs(2) itself before it says that all is well.
 *
 * Fails: the daemon dies without a word (internal error); statfs does not come back in time; the
 * waiting process is interrupted, then the daemon is told to end.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/mount/mount.h"
#include "common/base/log.h"
#include "proto/rpc.h"

#define STATFS_TIMEOUT_S 30
#define SAY_AFTER_MS     1500
#define GRACE_S          15 /* the daemon keeps its own time limit; this one is for a stuck daemon */

static volatile sig_atomic_t interrupted;
static volatile sig_atomic_t daemon_pid;

static void on_signal(int sig)
{
    interrupted = sig;
    if (daemon_pid > 0)
        kill(daemon_pid, SIGTERM);
}

static void catch_signals(void)
{
    struct sigaction sa = {.sa_handler = on_signal};

    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGHUP, &sa, NULL);
}

/* Reads until the daemon has closed its end; how many bytes. */
static size_t read_all(int fd, char *buf, size_t len, time_t end)
{
    size_t n = 0;

    while (n < len) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        time_t now = time(NULL);
        ssize_t got;

        if (now >= end || (poll(&p, 1, (int)(MIN(end - now, 3600)) * 1000) < 0 && errno != EINTR))
            break;
        if (!p.revents)
            continue;
        got = read(fd, buf + n, len - n);
        if (got == 0 || (got < 0 && errno != EINTR))
            break;
        if (got > 0)
            n += (size_t)got;
    }
    return n;
}

/* In a process of its own, which may be left behind should the kernel never answer. */
static bool answers_statfs(const char *dir)
{
    time_t end = time(NULL) + STATFS_TIMEOUT_S;
    int status, fds[2];
    char byte;
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC) != 0)
        return false;
    pid = fork();
    if (pid == 0) {
        struct statfs s;

        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        _exit(statfs(dir, &s) == 0 ? 0 : 1);
    }
    close(fds[1]);
    if (pid > 0)
        read_all(fds[0], &byte, 1, end); /* its end */
    close(fds[0]);
    if (pid < 0 || time(NULL) >= end)
        return false;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool is_readable(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, timeout_ms) > 0;
}

/* Nobody likes to look at a terminal that is silent for the time that servers are given. */
static void say_waiting(const struct mount_request *m, uint64_t limit_ns)
{
    fprintf(stderr, "mount.aifs: waiting for");
    for (unsigned i = 0; i < m->source.n_servers; i++) {
        char name[NET_ADDR_NAME_BYTES];

        net_addr_name(m->source.servers[i], RPC_PORT_DEFAULT, name, sizeof(name));
        fprintf(stderr, "%s %s", i ? "," : "", name);
    }
    fprintf(stderr, ", for up to %llu s (mount_timeout)\n",
            (unsigned long long)(limit_ns / NS_PER_S));
}

static int wait_for_daemon(const struct mount_request *m, int fd, char *err, size_t err_len)
{
    uint64_t limit_ns = MAX(conf_u64(m->conf, "mount_timeout"), conf_u64(m->conf, "retry"));
    time_t end = time(NULL) + (time_t)(limit_ns / NS_PER_S) + 1 + GRACE_S;
    char text[MOUNT_ERROR_BYTES + 1];
    size_t n = 0;
    int status;

    if (!is_readable(fd, SAY_AFTER_MS) && !interrupted)
        say_waiting(m, limit_ns);
    n = read_all(fd, text, sizeof(text) - 1, end);
    text[n] = '\0';
    if (n == 0 && interrupted) {
        snprintf(err, err_len, "interrupted");
        return MOUNT_INTERRUPTED;
    }
    if (n == 0 && waitpid(daemon_pid, &status, WNOHANG) == daemon_pid) {
        snprintf(err, err_len, "the daemon ended without a word (%s %d)",
                 WIFSIGNALED(status) ? "signal" : "status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        return MOUNT_INTERNAL;
    }
    if (n == 0) {
        snprintf(err, err_len, "the daemon does not say whether the mount has worked");
        kill(daemon_pid, SIGKILL);
        return MOUNT_INTERNAL;
    }
    if (text[0] != MOUNT_OK) {
        snprintf(err, err_len, "%s", text + 1);
        return (unsigned char)text[0];
    }
    if (n > 1) { /* goes on in the background */
        fprintf(stderr, "mount.aifs: %s\n", text + 1);
        return MOUNT_OK;
    }
    if (answers_statfs(m->dir))
        return MOUNT_OK;
    snprintf(err, err_len, "%s is mounted but does not answer statfs", m->dir);
    kill(daemon_pid, SIGTERM);
    return MOUNT_FAILED;
}

static int become_daemon(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0)
        return -errno;
    if (setsid() < 0 || chdir("/") != 0) {
        close(null);
        return -errno;
    }
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    close(null);
    return 0;
}

int mount_fork(const struct mount_request *m, struct mount_report *ret_report, int *ret_exit,
               char *err, size_t err_len)
{
    int fds[2];
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC) != 0 || (pid = fork()) < 0) {
        snprintf(err, err_len, "cannot start the daemon: %s", strerror(errno));
        *ret_exit = MOUNT_SYSTEM;
        return 1;
    }
    if (pid == 0) {
        close(fds[0]);
        if (become_daemon() != 0)
            _exit(MOUNT_SYSTEM);
        ret_report->fd = fds[1];
        return 0;
    }
    close(fds[1]);
    daemon_pid = pid;
    catch_signals();
    *ret_exit = wait_for_daemon(m, fds[0], err, err_len);
    close(fds[0]);
    return 1;
}

void mount_report(struct mount_report *r, int exit_code, const char *text)
{
    char buf[MOUNT_ERROR_BYTES];
    int n = snprintf(buf, sizeof(buf), "%c%s", exit_code, text ? text : "");

    if (exit_code != MOUNT_OK && text && r->fd < 0)
        fprintf(stderr, "mount.aifs: %s\n", text);
    else if (exit_code != MOUNT_OK && text)
        LOG_ERROR("mount", "%s", text);
    if (r->fd < 0)
        return;
    buf[0] = (char)exit_code; /* "%c" of 0 ends the string for snprintf's reader, not for write */
    n = MIN(n, (int)sizeof(buf) - 1);
    while (write(r->fd, buf, (size_t)n) < 0 && errno == EINTR)
        continue;
    close(r->fd);
    r->fd = -1;
    if (exit_code == MOUNT_OK) { /* nobody reads it any more */
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

        if (null >= 0) {
            dup2(null, STDERR_FILENO);
            close(null);
        }
    }
}
