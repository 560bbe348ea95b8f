/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end of a connection: this process is, and what it claims beside that is
 * refused. */
#include "common/net/peer_process.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/suite.h"

struct pair {
    int ours, theirs;
};

static struct pair one, two; /* two connections to one listener */
static int listener;

static struct pair connected(int family)
{
    struct sockaddr_storage to;
    socklen_t len = sizeof to;
    struct sockaddr_in *v4 = (struct sockaddr_in *)&to;
    struct pair p = {.theirs = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};

    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&to, &len), 0);
    if (family == AF_INET6)
        *v4 = (struct sockaddr_in){.sin_family = AF_INET,
                                   .sin_port = ((struct sockaddr_in6 *)&to)->sin6_port,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    ck_assert_int_eq(connect(p.theirs, (struct sockaddr *)v4, sizeof *v4), 0);
    p.ours = accept(listener, NULL, NULL);
    ck_assert_int_ge(p.ours, 0);
    return p;
}

static void start(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&a, sizeof a), 0);
    ck_assert_int_eq(listen(listener, 4), 0);
    one = connected(AF_INET);
    two = connected(AF_INET);
}

static int asked(int fd, pid_t pid, int their_fd, uid_t uid)
{
    int process = peer_process_open(fd, pid, their_fd, uid);

    if (process >= 0)
        close(process);
    return process < 0 ? process : 0;
}

START_TEST(who_has_the_other_end_is_the_peer)
{
    ck_assert_int_eq(asked(one.ours, getpid(), one.theirs, geteuid()), 0);
    ck_assert_int_eq(asked(one.theirs, getpid(), one.ours, geteuid()), 0);
    ck_assert_int_eq(asked(two.ours, getpid(), two.theirs, geteuid()), 0);
}
END_TEST

START_TEST(an_end_that_is_anothers_is_no_proof)
{
    int file = open("/dev/null", O_RDWR | O_CLOEXEC), plain[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, plain), 0);
    ck_assert_int_eq(asked(one.ours, getpid(), two.theirs, geteuid()), -EPERM);
    ck_assert_int_eq(asked(one.ours, getpid(), one.ours, geteuid()), -EPERM);
    ck_assert_int_eq(asked(one.ours, getpid(), listener, geteuid()), -EPERM);
    ck_assert_int_eq(asked(one.ours, getpid(), file, geteuid()), -EPERM);
    ck_assert_int_eq(asked(one.ours, getpid(), plain[0], geteuid()), -EPERM);
    ck_assert_int_eq(asked(plain[0], getpid(), plain[1], geteuid()), -EPERM);
    ck_assert_int_eq(asked(one.ours, getpid(), 0x3fffffff, geteuid()), -EPERM);
    ck_assert_int_eq(asked(one.ours, getpid(), -1, geteuid()), -EPERM); /* not told */
    close(plain[0]);
    close(plain[1]);
    close(file);
}
END_TEST

START_TEST(a_user_that_the_socket_is_not_of_is_no_proof)
{
    ck_assert_int_eq(asked(one.ours, getpid(), one.theirs, geteuid() + 1), -EPERM);
}
END_TEST

START_TEST(a_process_without_the_socket_is_not_the_peer_and_its_end_is_seen)
{
    int ready[2], process;
    char byte = 0;
    pid_t pid;

    ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        close(two.theirs);
        if (write(ready[1], &byte, 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    ck_assert_int_eq(asked(two.ours, pid, two.theirs, geteuid()), -EPERM);
    process = peer_process_open(one.ours, pid, one.theirs, geteuid()); /* which it has inherited */
    ck_assert_int_ge(process, 0);
    ck_assert(peer_process_lives(process));
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert(!peer_process_lives(process));
    ck_assert_int_lt(asked(one.ours, pid, one.theirs, geteuid()), 0);
    close(process);
    close(ready[0]);
    close(ready[1]);
}
END_TEST

START_TEST(an_ipv4_address_may_be_written_as_one_of_ipv6)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct pair p;

    close(listener);
    listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 ||
        setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &(int){0}, sizeof(int)) < 0 ||
        bind(listener, (struct sockaddr *)&a, sizeof a) < 0) {
        printf("no IPv6 here: not tested\n");
        return;
    }
    ck_assert_int_eq(listen(listener, 4), 0);
    p = connected(AF_INET6);
    ck_assert_int_eq(asked(p.ours, getpid(), p.theirs, geteuid()), 0);
    ck_assert_int_eq(asked(p.theirs, getpid(), p.ours, geteuid()), 0);
    ck_assert_int_eq(asked(p.ours, getpid(), one.theirs, geteuid()), -EPERM);
}
END_TEST

static bool kernel_tells(void)
{
    int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
    int fd = self < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, self, 0, 0);
    bool tells = fd >= 0 || (self >= 0 && errno == EBADF);

    if (fd >= 0)
        close(fd);
    if (self >= 0)
        close(self);
    return tells;
}

int main(void)
{
    const TTest *const tests[] = {
        who_has_the_other_end_is_the_peer,
        an_end_that_is_anothers_is_no_proof,
        a_user_that_the_socket_is_not_of_is_no_proof,
        a_process_without_the_socket_is_not_the_peer_and_its_end_is_seen,
        an_ipv4_address_may_be_written_as_one_of_ipv6,
    };

    if (!kernel_tells()) {
        printf("pidfd_getfd(2) is not to be had here: %s\n", strerror(errno));
        return 77;
    }
    return suite_run("net-peer-process", start, NULL, tests, sizeof tests / sizeof tests[0]);
}
