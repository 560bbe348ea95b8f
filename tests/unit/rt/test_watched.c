/* SPDX-License-Identifier: Apache-2.0 */
/* What an epoll descriptor watches, and what becomes of it in a child. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/rt/watched.h"
#include "tests/support/suite.h"

#define PIPES 100u /* more than there is room for at first */

static int outer, inner, pipes[PIPES][2];

static void watch(int epoll_fd, int fd)
{
    struct epoll_event ev = {.events = EPOLLIN};

    ck_assert_int_eq(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev), 0);
}

static void setup(void)
{
    outer = epoll_create1(EPOLL_CLOEXEC);
    inner = epoll_create1(EPOLL_CLOEXEC);
    ck_assert(outer >= 0 && inner >= 0);
    for (unsigned k = 0; k < PIPES; k++) {
        ck_assert_int_eq(pipe(pipes[k]), 0);
        watch(k ? outer : inner, pipes[k][0]);
    }
    watch(outer, inner);
}

static void teardown(void)
{
    for (unsigned k = 0; k < PIPES; k++) {
        close(pipes[k][0]);
        close(pipes[k][1]);
    }
    close(inner);
    close(outer);
}

static bool has(const struct watched *w, int fd)
{
    unsigned n = 0;

    for (unsigned k = 0; k < w->n; k++)
        n += w->fds[k] == fd;
    return n == 1;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

START_TEST(all_that_it_watches_is_told_and_what_one_of_its_kind_watches_too)
{
    struct watched w = {0};

    ck_assert_int_eq(watched_add(&w, outer), 0);
    ck_assert(has(&w, outer) && has(&w, inner));
    for (unsigned k = 0; k < PIPES; k++)
        ck_assert(has(&w, pipes[k][0]) && !has(&w, pipes[k][1]));
    ck_assert_uint_eq(w.n, PIPES + 2);
    w.n = 0;
    ck_assert_int_eq(watched_add(&w, inner), 0);
    ck_assert(w.n == 2 && has(&w, inner) && has(&w, pipes[0][0]));
    ck_assert_int_eq(watched_add(&w, 1000000), -ENOENT);
    mem_free(w.fds);
}
END_TEST

/* The set is shared: what the parent does with it after the fork is nothing to the child. */
START_TEST(a_child_closes_what_was_there_at_the_fork)
{
    struct watched w = {0};
    int go[2], status;
    bool ok = true;
    pid_t pid;
    char c;

    ck_assert_int_eq(pipe(go), 0);
    ck_assert_int_eq(watched_add(&w, outer), 0);
    pid = fork();
    if (pid == 0) {
        close(go[1]);
        ok = read(go[0], &c, 1) == 0;
        watched_close(&w);
        for (unsigned k = 0; k < PIPES; k++)
            ok = ok && !is_open(pipes[k][0]) && is_open(pipes[k][1]);
        _exit(!ok || is_open(outer) || is_open(inner));
    }
    ck_assert_int_eq(epoll_ctl(outer, EPOLL_CTL_DEL, pipes[1][0], NULL), 0);
    close(pipes[2][0]);
    ck_assert_int_eq(dup2(pipes[3][0], pipes[2][0]), pipes[2][0]);
    close(go[0]);
    close(go[1]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    mem_free(w.fds);
}
END_TEST

SUITE_MAIN("watched", setup, teardown,
           all_that_it_watches_is_told_and_what_one_of_its_kind_watches_too,
           a_child_closes_what_was_there_at_the_fork)
