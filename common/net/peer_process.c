/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two sockets are the ends of one connection when each has the other's address as its peer's. An
 * IPv4 address may be written as one of IPv6 on one side (RFC 4291, 2.5.5.2). Failure: nothing is
 * known of the process, and its memory is let alone.
 */
#include "common/net/peer_process.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/net/share.h"

struct end {
    struct in6_addr ip;
    in_port_t port;
};

typedef int name_fn(int fd, struct sockaddr *sa, socklen_t *len);

static int end_of(int fd, name_fn *name, struct end *ret_end)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_storage storage;
    } sa = {0};
    socklen_t len = sizeof sa;
    struct end e = {0};

    if (name(fd, &sa.any, &len) < 0)
        return -errno;
    if (sa.any.sa_family == AF_INET6) {
        e.ip = sa.v6.sin6_addr;
        e.port = sa.v6.sin6_port;
    } else if (sa.any.sa_family == AF_INET) {
        e.ip.s6_addr[10] = e.ip.s6_addr[11] = 0xff;
        memcpy(&e.ip.s6_addr[12], &sa.v4.sin_addr, 4);
        e.port = sa.v4.sin_port;
    } else {
        return -EPERM;
    }
    *ret_end = e;
    return 0;
}

static bool end_equal(const struct end *a, const struct end *b)
{
    return a->port == b->port && memcmp(&a->ip, &b->ip, sizeof a->ip) == 0;
}

static bool is_stream(int fd)
{
    socklen_t len = sizeof(int);
    int type = 0;

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_STREAM;
}

static int is_other_end(int fd, int other, uid_t uid)
{
    struct end a[2], b[2];
    struct stat st;
    int rc = end_of(fd, getsockname, &a[0]);

    if (rc == 0)
        rc = end_of(fd, getpeername, &a[1]);
    if (rc < 0)
        return rc;
    if (end_of(other, getsockname, &b[0]) < 0 || end_of(other, getpeername, &b[1]) < 0 ||
        !is_stream(other) || !end_equal(&a[0], &b[1]) || !end_equal(&a[1], &b[0]))
        return -EPERM;
    return fstat(other, &st) == 0 && st.st_uid == uid ? 0 : -EPERM;
}

int peer_process_open(int fd, pid_t pid, int their_fd, uid_t uid)
{
    AUTO_CLOSE int process = share_open_process(pid);
    AUTO_CLOSE int other = -1;
    int rc;

    if (process < 0)
        return process;
    other = their_fd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, their_fd, 0);
    if (other < 0)
        return their_fd < 0 || errno == EBADF ? -EPERM : -errno;
    rc = is_other_end(fd, other, uid);
    if (rc < 0)
        return rc;
    rc = process;
    process = -1;
    return rc;
}

bool peer_process_lives(int process)
{
    struct pollfd p = {.fd = process, .events = POLLIN};

    return poll(&p, 1, 0) <= 0; /* EINTR: a signal is waiting, nothing has happened */
}
