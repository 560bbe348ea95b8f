/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Daemons of a demo cluster as processes. A daemon writes run/pid and run/port into its folder when
 * it serves, and who starts it run/started before; we trust a pid only if the command line of that
 * process names the folder, for a pid file may be left over from before a reboot.
 */
#include "tools/admin/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"

#define EXEC_TRIES 50u

int proc_program(const char *name, char *ret_path, size_t len)
{
    static const char *const places[] = {
        "%s/%s",           "%s/../sbin/%s",           "%s/../bin/%s",  "%s/../../mds/%s",
        "%s/../../oss/%s", "%s/../../client/fuse/%s", "%s/../bench/%s"};
    char self[PATH_MAX], path[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash;

    if (n < 0)
        return -errno;
    self[n] = '\0';
    slash = strrchr(self, '/');
    if (!slash)
        return -ENOENT;
    *slash = '\0';
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(path, sizeof path, places[i], self, name);
#pragma GCC diagnostic pop
        if (access(path, X_OK) == 0 && realpath(path, self)) {
            snprintf(ret_path, len, "%s", self);
            return 0;
        }
    }
    return -ENOENT;
}

/* In the child: nobody can come between its start and this. */
static void record_start(const char *dir)
{
    char path[PATH_MAX];
    int fd;

    snprintf(path, sizeof path, "%s/run/started", dir);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    if (fd >= 0)
        dprintf(fd, "%d\n", (int)getpid());
}

int proc_start(const char *const *argv, const char *dir, const char *log_path, pid_t *ret_pid)
{
    pid_t pid;
    int log = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);

    if (log < 0)
        return -errno;
    pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

        setsid();
        record_start(dir);
        dup2(null, 0);
        dup2(log, 1);
        dup2(log, 2);
        syscall(SYS_close_range, 3, ~0u, 0);
        execv(argv[0], (char *const *)argv);
        dprintf(2, "cannot start %s: %m\n", argv[0]);
        _exit(127);
    }
    close(log);
    if (pid < 0)
        return -errno;
    *ret_pid = pid;
    return 0;
}

static ssize_t read_line(pid_t pid, char *out, size_t len)
{
    char path[64];
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    n = read(fd, out, len);
    close(fd);
    return n < 0 ? -errno : n;
}

/* A process has no command line while it becomes another program, and when it has ended. */
static bool names_dir(pid_t pid, const char *dir)
{
    char line[8192];
    ssize_t n = 0;

    for (unsigned i = 0; n == 0 && i < EXEC_TRIES; i++) {
        if (i)
            poll(NULL, 0, 1);
        n = read_line(pid, line, sizeof line);
    }
    return n > 0 && memmem(line, (size_t)n, dir, strlen(dir)) != NULL;
}

static ssize_t read_small(const char *dir, const char *file, char *out, size_t len)
{
    char path[PATH_MAX];
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "%s/run/%s", dir, file);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    n = read(fd, out, len - 1);
    close(fd);
    if (n < 0)
        return -errno;
    out[n] = '\0';
    out[strcspn(out, "\n")] = '\0';
    return (ssize_t)strlen(out);
}

pid_t proc_running(const char *dir)
{
    static const char *const files[] = {"pid", "started"};
    char text[32];

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        pid_t pid = read_small(dir, files[i], text, sizeof text) > 0 ? (pid_t)atoi(text) : 0;

        if (pid > 1 && names_dir(pid, dir))
            return pid;
    }
    return 0;
}

static bool is_called(const char *line, size_t len, const char *program, const char *argument)
{
    const char *end = line + len, *base = strrchr(line, '/');
    bool found = false;

    if (strcmp(base ? base + 1 : line, program) != 0)
        return false;
    for (const char *at = line; at < end && !found; at += strlen(at) + 1)
        found = !strcmp(at, argument);
    return found;
}

/* Elsewhere, in a container for one, the same path is another file. */
static bool is_here(pid_t pid)
{
    char path[64];
    struct stat its, ours;

    snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)pid);
    return stat(path, &its) == 0 && stat("/proc/self/ns/mnt", &ours) == 0 &&
           its.st_dev == ours.st_dev && its.st_ino == ours.st_ino;
}

static pid_t find(const char *program, const char *argument, bool here)
{
    char line[8192];
    pid_t found = 0;
    struct dirent *e;
    DIR *proc = opendir("/proc");

    while (proc && !found && (e = readdir(proc))) {
        pid_t pid = (pid_t)atoi(e->d_name);
        ssize_t n = pid > 1 ? read_line(pid, line, sizeof line - 1) : 0;

        if (n <= 0)
            continue;
        line[n] = '\0';
        if (is_called(line, (size_t)n, program, argument) && (!here || is_here(pid)))
            found = pid;
    }
    if (proc)
        closedir(proc);
    return found;
}

pid_t proc_find(const char *program, const char *argument)
{
    return find(program, argument, false);
}

/* A server lives on when its folder, or what says there who it is, was removed. */
static pid_t running_or_lost(const char *dir)
{
    const char *base = strrchr(dir, '/'), *name = base && base[1] == 'o' ? "oss" : "mds";
    char program[16], config[PATH_MAX + 16];
    pid_t pid = proc_running(dir);

    if (pid)
        return pid;
    snprintf(program, sizeof program, "aifs-%s", name);
    snprintf(config, sizeof config, "%s/%s.conf", dir, name);
    return find(program, config, true);
}

static bool wait_gone(int pidfd, pid_t pid, unsigned timeout_ms)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    bool gone = poll(&p, 1, (int)timeout_ms) > 0;

    waitpid(pid, NULL, WNOHANG); /* when it is our own child */
    return gone;
}

bool proc_stop(const char *dir, unsigned patience_ms)
{
    pid_t pid = running_or_lost(dir);
    bool gone;
    int pidfd;

    if (pid == 0)
        return true;
    pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0)
        return errno == ESRCH;
    syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0);
    gone = wait_gone(pidfd, pid, patience_ms);
    if (!gone) {
        syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
        gone = wait_gone(pidfd, pid, 5000);
    }
    close(pidfd);
    return gone;
}

int proc_wait_file(const char *dir, const char *file, pid_t pid, unsigned timeout_ms,
                   char *ret_text, size_t len)
{
    uint64_t end = clock_mono_ns(clock_real()) + timeout_ms * NS_PER_MS;
    char run[PATH_MAX], event[4096];
    int rc = -ETIMEDOUT, note = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p[2] = {{.fd = note, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};

    snprintf(run, sizeof run, "%s/run", dir);
    if (note < 0 || inotify_add_watch(note, run, IN_CLOSE_WRITE | IN_MOVED_TO) < 0) {
        rc = -errno;
        goto out;
    }
    for (;;) {
        uint64_t now = clock_mono_ns(clock_real());

        if (read_small(dir, file, ret_text, len) > 0) {
            rc = 0;
            break;
        }
        if (pidfd < 0 || (p[1].revents & POLLIN)) {
            rc = -ESRCH;
            break;
        }
        if (now >= end)
            break;
        poll(p, 2, (int)((end - now) / NS_PER_MS + 1));
        while (read(note, event, sizeof event) > 0)
            ;
    }
out:
    if (note >= 0)
        close(note);
    if (pidfd >= 0)
        close(pidfd);
    return rc;
}

int proc_run(const char *const *argv, int err_fd)
{
    int status;
    pid_t pid = fork();

    if (pid < 0)
        return -errno;
    if (pid == 0) {
        if (err_fd >= 0) {
            dup2(err_fd, 1);
            dup2(err_fd, 2);
        }
        execvp(argv[0], (char *const *)argv);
        dprintf(2, "cannot start %s: %m\n", argv[0]);
        _exit(127);
    }
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
