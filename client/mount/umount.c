/* SPDX-License-Identifier: Apache-2.0 */
/*
 * umount.aifs, called by umount(8): the kernel forgets a FUSE mount at once, while its daemon still
 * closes files and writes back. So the helper connects to the daemon before it unmounts, and waits
 * for the end of the connection, which is the end of the daemon. The daemon listens at an abstract
 * socket that is named after the device number of its mount and the time. The next mount may get
 * that number as soon as the kernel has forgotten this one, while this daemon still writes back (it
 * listens no more, when it has noticed): the helper takes the latest of /proc/net/unix that is
 * root's or of its own user. The daemon says nothing there, unless it gives up: one line then, and
 * the helper's status is 64 (the file system is unmounted, its data is not all on the servers).
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
#include <time.h>
#include <unistd.h>

#include "client/fuse/mountinfo.h"
#include "client/mount/mount.h"
#include "common/base/cleanup.h"

#define WAIT_S      150
#define SILENT_S    3 /* then it says what it waits for */
#define USERS_SHOWN 8
#define NAME_BYTES  64
#define NAMES_TRIED 256
#define ACCEPTS     0x10000u /* __SO_ACCEPTCON of the kernel */

/* What the names of all begin with that had this number; 16 hexadecimal digits follow. */
static size_t name_of_mount(char name[NAME_BYTES], unsigned major, unsigned minor)
{
    return (size_t)snprintf(name, NAME_BYTES, "aifs-mount/%u:%u/", major, minor);
}

static socklen_t socket_name(const char *name, struct sockaddr_un *a)
{
    int n;

    memset(a, 0, sizeof(*a));
    a->sun_family = AF_UNIX;
    n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "%s", name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* ---- the daemon's side ---- */

void mount_umount_init(struct mount_umount *u)
{
    memset(u, 0, sizeof(*u));
    u->listener = -1;
}

void mount_umount_listen(struct mount_umount *u, unsigned major, unsigned minor)
{
    char name[NAME_BYTES];
    struct sockaddr_un a;
    struct timespec now;
    size_t n = name_of_mount(name, major, minor);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(name + n, sizeof(name) - n, "%016llx",
             (unsigned long long)now.tv_sec * 1000000000 + (unsigned long long)now.tv_nsec);
    if (fd >= 0 && (bind(fd, (struct sockaddr *)&a, socket_name(name, &a)) != 0 ||
                    listen(fd, MOUNT_UMOUNT_MAX) != 0)) {
        close(fd);
        fd = -1;
    }
    u->listener = fd;
}

void mount_umount_gone(struct mount_umount *u)
{
    int fd;

    while (u->listener >= 0 && u->n_waiting < MOUNT_UMOUNT_MAX &&
           (fd = accept4(u->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
        u->waiting[u->n_waiting++] = fd;
    if (u->listener >= 0)
        close(u->listener);
    u->listener = -1;
}

void mount_umount_tell(const struct mount_umount *u, const char *text)
{
    for (unsigned i = 0; i < u->n_waiting; i++)
        (void)!send(u->waiting[i], text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- the helper's side ---- */

/* The name in a line of /proc/net/unix when that is of a socket that listens: "Num RefCount
 * Protocol Flags Type St Inode @name". */
static const char *listener_in(char *line)
{
    unsigned flags = 0;
    char *at = strchr(line, '@');

    if (!at || sscanf(line, "%*s %*x %*x %x", &flags) != 1 || !(flags & ACCEPTS))
        return NULL;
    at[strcspn(at, "\n")] = '\0';
    return at + 1;
}

/* The latest name of those that had this number, but before that of the last time, if there was
 * one; false: there is none. */
static bool find_socket(unsigned major, unsigned minor, char name[NAME_BYTES])
{
    char begin[NAME_BYTES], line[256], found[NAME_BYTES] = "";
    size_t n = name_of_mount(begin, major, minor);
    FILE *f = fopen("/proc/net/unix", "re");

    while (f && fgets(line, sizeof(line), f)) {
        const char *at = listener_in(line);

        if (at && strncmp(at, begin, n) == 0 && strlen(at) == n + 16 && strcmp(at, found) > 0 &&
            (!name[0] || strcmp(at, name) < 0))
            memcpy(found, at, n + 17);
    }
    if (f)
        fclose(f);
    memcpy(name, found, NAME_BYTES);
    return name[0];
}

/* Anybody may listen at any abstract name. */
static bool is_trusted(int fd)
{
    struct ucred by;
    socklen_t len = sizeof(by);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &by, &len) == 0 &&
           (by.uid == 0 || by.uid == geteuid());
}

static int connect_to(const char *name)
{
    struct sockaddr_un a;
    socklen_t len = socket_name(name, &a);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0 && (connect(fd, (struct sockaddr *)&a, len) != 0 || !is_trusted(fd))) {
        close(fd);
        return -1;
    }
    return fd;
}

static int connect_daemon(const char *dir, struct mountinfo *info)
{
    char name[NAME_BYTES] = "";
    int fd = -1;

    if (mountinfo_find(dir, info) != 1 || strcmp(info->type, "fuse.aifs") != 0)
        return -1;
    for (unsigned i = 0; fd < 0 && i < NAMES_TRIED && find_socket(info->major, info->minor, name);
         i++)
        fd = connect_to(name);
    return fd;
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
    struct mountinfo info = {0};
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
    fd = connect_daemon(dir, &info);
    if (umount2(dir, flags | (lazy ? MNT_DETACH : 0)) != 0) {
        int err = errno;
        bool mounted = err != EINVAL || mountinfo_find(dir, &info) != 0;

        fprintf(stderr, "umount.aifs: %s: %s\n", dir, mounted ? strerror(err) : "not mounted");
        if (err == EBUSY)
            say_users(dir);
        return MOUNT_FAILED;
    }
    /* Where it is mounted elsewhere too (a bind mount) the daemon goes on. */
    if (fd < 0 || lazy || mountinfo_has_device(info.major, info.minor) == 1)
        return MOUNT_OK;
    return wait_for_end(fd, dir);
}
