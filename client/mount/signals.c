/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals that end the daemon.
 *
 * Happy path: the first unmounts, in a thread of its own; the end of the mount does the rest
 * (daemon.c). A mount in use is synced and detached, and ends with its last open file.
 *
 * The second ends one that is in use: whoever uses it is refused, what has been written is written
 * back. A third ends the process. Before there is a mount any of them gives up mounting.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/mount/daemon.h"
#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/rt/thread.h"

#define TAG              "mount"
#define SECOND_SIGNAL_NS (10 * NS_PER_S)

static int run_fusermount(const char *dir)
{
    char *argv[] = {(char *)"fusermount3", (char *)"-u", (char *)"-z",
                    (char *)"--",          (char *)dir,  NULL};
    char *envp[] = {(char *)"PATH=/usr/bin:/bin", NULL};
    int status;
    pid_t pid;

    if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, envp) != 0)
        return -ENOENT;
    return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -EBUSY;
}

/* What has been written through mappings is the kernel's still. */
static void sync_mount(const char *dir)
{
    AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 || syncfs(fd) != 0)
        LOG_WARN(TAG, "sync %s: %m", dir);
}

static void unmount(const char *dir)
{
    if (geteuid() != 0) {
        sync_mount(dir);
        if (run_fusermount(dir) != 0)
            LOG_ERROR(TAG, "fusermount3 cannot unmount %s", dir);
    } else if (umount2(dir, UMOUNT_NOFOLLOW) != 0 && errno == EBUSY) {
        LOG_WARN(TAG,
                 "%s is in use: detached; ends with the last open file, or with another "
                 "signal",
                 dir);
        sync_mount(dir);
        if (umount2(dir, UMOUNT_NOFOLLOW | MNT_DETACH) != 0)
            LOG_ERROR(TAG, "unmount %s: %m", dir);
    }
}

/* A thread of its own: the kernel may ask this daemon while it resolves the path. */
static void *unmount_main(void *arg)
{
    struct mount_daemon *d = arg;

    unmount(d->m->dir);
    reactor_post(d->fs.reactor, &d->detach);
    return NULL;
}

/* The second signal: whoever uses it still is refused from now on. */
static void end_in_use(struct mount_daemon *d)
{
    LOG_WARN(TAG, "%s ends although it is in use", d->m->dir);
    channel_refuse(d->fs.channel);
}

static void on_detached(struct reactor_work *w)
{
    struct mount_daemon *d = container_of(w, struct mount_daemon, detach);

    d->detached = true;
    if (d->n_signals > 1 && d->state == MOUNT_STATE_SERVING)
        end_in_use(d);
}

static void on_second_signal_late(struct reactor_timer *t)
{
    end_in_use(container_of(t, struct mount_daemon, timer));
}

/* Not before the first has done its work: the kernel writes what it has of mapped files, and most
 * mounts end by it alone. It may ask servers that do not answer. */
static void second_signal(struct mount_daemon *d)
{
    if (!d->unmounting || d->detached) {
        end_in_use(d);
        return;
    }
    d->timer.fn = on_second_signal_late;
    reactor_timer_start(d->fs.reactor, &d->timer, reactor_now_ns(d->fs.reactor) + SECOND_SIGNAL_NS);
}

/* What another has mounted there is not ours to unmount. */
static void first_signal(struct mount_daemon *d)
{
    if (!channel_is_mounted(d->fs.channel)) {
        LOG_WARN(TAG,
                 "%s: another mount lies on top, or it was detached: ends with the last open file, "
                 "or with another signal",
                 d->m->dir);
        return;
    }
    d->detach.fn = on_detached;
    d->unmounting = thread_start(&d->unmounter, "umount", unmount_main, d) == 0;
}

static void on_signal(struct reactor_watch *w, uint32_t events UNUSED)
{
    struct mount_daemon *d = container_of(w, struct mount_daemon, signals);
    struct signalfd_siginfo info;

    if (read(w->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    LOG_INFO(TAG, "signal %u from process %u", info.ssi_signo, info.ssi_pid);
    d->n_signals++;
    if (d->state == MOUNT_STATE_CONNECTING) {
        core_cancel(&d->req);
    } else if (d->n_signals == 1 && d->state == MOUNT_STATE_SERVING) {
        first_signal(d);
    } else if (d->n_signals == 2 && d->state == MOUNT_STATE_SERVING) {
        second_signal(d);
    } else if (d->n_signals > 2) {
        reactor_stop(d->fs.reactor);
    }
}

int mount_signals_start(struct mount_daemon *d)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    signal(SIGPIPE, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        return -errno;
    d->signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    d->signals.events = EPOLLIN;
    d->signals.fn = on_signal;
    return d->signals.fd < 0 ? -errno : reactor_watch_add(d->fs.reactor, &d->signals);
}
