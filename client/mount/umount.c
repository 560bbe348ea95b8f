/* SPDX-License-Identifier: Apache-2.0 */
/*
 * umount.aifs, called by umount(8): the kernel forgets a FUSE mount at once, while its daemon still
 * closes files and writes back. So the helper connects to the daemon before it unmounts (an
 * abstract socket named after the mount's device number, on which the daemon never answers), and
 * waits for the end of the connection, which is the end of the daemon.
 *
 * Fails as umount(2) does. A daemon that cannot be reached, or takes too long, is not an error: the
 * file system is unmounted.
 */
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

#define WAIT_S   150
#define SILENT_S 3 /* then it says what it waits for */

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

/* The end of the daemon, which nobody waits for after -l (it lives as long as files are open). */
static void wait_for_end(int fd, const char *dir)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    if (poll(&p, 1, SILENT_S * 1000) != 0)
        return;
    fprintf(stderr, "umount.aifs: %s: waiting until the servers have all that was written\n", dir);
    if (poll(&p, 1, (WAIT_S - SILENT_S) * 1000) == 0)
        fprintf(stderr, "umount.aifs: %s is unmounted, its daemon is still writing back\n", dir);
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
        fprintf(stderr, "umount.aifs: %s: %s\n", dir, strerror(errno));
        return MOUNT_FAILED;
    }
    if (fd >= 0 && !lazy)
        wait_for_end(fd, dir);
    return MOUNT_OK;
}
