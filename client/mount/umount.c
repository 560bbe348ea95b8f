/* SPDX-License-Identifier: Apache-2.0 */
/*
 * umount.aifs, called by umount(8): the kernel forgets a FUSE mount at once, while its daemon still
 * closes files and writes back. So the helper connects to the daemon before it unmounts (an
 * abstract socket named after the mount's device number), and waits for the end of the connection,
 * which is the end of the daemon. The daemon says nothing there, unless it gives up: one line then,
 * and the helper's status is 64 (the file system is unmounted, its data is not all on the servers).
 *
 * Fails as umount(2) does, and names processes that use it. A daemon that cannot be reached, or
 * takes too long, is not an error: the file system is unmounted.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/fuse/mountinfo.h"
#include "client/mount/mount.h"
#include "common/base/cleanup.h"

#define WAIT_S      150
#define SILENT_S    3 /* then it says what it waits for */
#define USERS_SHOWN 8

static socklen_t socket_name(unsigned major, unsigned minor, struct sockaddr_un *a)
{
    int n;

    memset(a, 0, sizeof(*a));
    a->sun_family = AF_UNIX;
    n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "aifs-mount/%u:%u", major, minor);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

int mount_umount_socket(unsigned major, unsigned minor)
{
    struct sockaddr_un a;
    socklen_t len = socket_name(major, minor, &a);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0 && (bind(fd, (struct sockaddr *)&a, len) != 0 || listen(fd, 16) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

static int connect_daemon(const char *dir)
{
    struct sockaddr_un a;
    struct mountinfo info;
    int fd;

    if (mountinfo_find(dir, &info) != 1 || strcmp(info.type, "fuse.aifs") != 0)
        return -1;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 &&
        connect(fd, (struct sockaddr *)&a, socket_name(info.major, info.minor, &a)) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

void mount_umount_tell(int socket_fd, const char *text)
{
    int fd;

    while (socket_fd >= 0 && (fd = accept4(socket_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        (void)!send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
        close(fd);
    }
}

/* The end of the daemon, which nobody waits for after -l (it lives as long as files are open). */
static int wait_for_end(int fd, const char *dir)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char text[256];
    ssize_t n;
    int ready = poll(&p, 1, SILENT_S * 1000);

    if (ready == 0) {
        fprintf(stderr,
                "umount.aifs: %s is unmounted; waiting until the servers have all that was "
                "written, at most %d s\n",
                dir, WAIT_S);
        ready = poll(&p, 1, (WAIT_S - SILENT_S) * 1000);
    }
    if (ready == 0) {
        fprintf(stderr, "umount.aifs: %s: the daemon is still writing back\n", dir);
        return MOUNT_OK;
    }
    n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);
    if (n <= 0)
        return MOUNT_OK;
    text[n] = '\0';
    fprintf(stderr, "umount.aifs: %s: %s\n", dir, text);
    return MOUNT_SOME;
}

/* ---- who uses it ---- */

static bool links_below(const char *link, const char *dir)
{
    char target[PATH_MAX];
    ssize_t n = readlink(link, target, sizeof(target) - 1);
    size_t len = strlen(dir);

    if (n < 0 || (size_t)n < len || memcmp(target, dir, len) != 0)
        return false;
    target[n] = '\0';
    return target[len] == '/' || target[len] == '\0';
}

static bool uses(const char *pid, const char *dir)
{
    static const char *const links[] = {"cwd", "root", "exe"};
    char path[64 + 256];
    struct dirent *e;
    bool found = false;
    DIR *d;

    for (unsigned i = 0; i < ARRAY_LEN(links) && !found; i++) {
        snprintf(path, sizeof(path), "/proc/%.20s/%s", pid, links[i]);
        found = links_below(path, dir);
    }
    snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
    d = found ? NULL : opendir(path);
    while (d && !found && (e = readdir(d))) {
        snprintf(path, sizeof(path), "/proc/%.20s/fd/%s", pid, e->d_name);
        found = links_below(path, dir);
    }
    if (d)
        closedir(d);
    return found;
}

/* Whoever asks from within the mount has this helper, and the tool that calls it, begin there. */
static bool only_asks(const char *pid, const char *name)
{
    long n = strtol(pid, NULL, 10);

    return n == getpid() || (n == getppid() && strcmp(name, "aifs-admin") == 0);
}

/* By what /proc says; asks the mount nothing. */
static void say_users(const char *dir)
{
    unsigned n = 0;
    struct dirent *e;
    DIR *proc = opendir("/proc");

    while (proc && n < USERS_SHOWN && (e = readdir(proc))) {
        char path[64], name[64] = "?";
        FILE *f;

        if (e->d_name[0] < '0' || e->d_name[0] > '9' || !uses(e->d_name, dir))
            continue;
        snprintf(path, sizeof(path), "/proc/%.20s/comm", e->d_name);
        f = fopen(path, "re");
        if (f) {
            if (fgets(name, sizeof(name), f))
                name[strcspn(name, "\n")] = '\0';
            fclose(f);
        }
        if (only_asks(e->d_name, name))
            continue;
        fprintf(stderr, "umount.aifs: %s is used by process %s (%s)\n", dir, e->d_name, name);
        n++;
    }
    if (proc)
        closedir(proc);
}

int mount_umount_main(int argc, char **argv)
{
    const char *dir = NULL;
    char real[PATH_MAX];
    bool lazy = false;
    int flags = UMOUNT_NOFOLLOW;
    AUTO_CLOSE int fd = -1;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-t") == 0 || strcmp(argv[i], "-N") == 0) {
            i++;
        } else if (argv[i][0] == '-') {
            lazy |= strchr(argv[i], 'l') != NULL;
            flags |= strchr(argv[i], 'f') ? MNT_FORCE : 0;
        } else {
            dir = argv[i];
        }
    }
    if (!dir) {
        fprintf(stderr, "usage: umount.aifs DIR [-flnrv]\n");
        return MOUNT_USAGE;
    }
    if (realpath(dir, real))
        dir = real;
    fd = connect_daemon(dir);
    if (umount2(dir, flags | (lazy ? MNT_DETACH : 0)) != 0) {
        int err = errno;

        fprintf(stderr, "umount.aifs: %s: %s\n", dir, strerror(err));
        if (err == EBUSY)
            say_users(dir);
        return MOUNT_FAILED;
    }
    return fd >= 0 && !lazy ? wait_for_end(fd, dir) : MOUNT_OK;
}
