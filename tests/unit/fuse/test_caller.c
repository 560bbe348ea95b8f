// SPDX-License-Identifier: Apache-2.0
/* What /proc tells of a caller: a process that is stopped, so that its signals wait for it. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/fuse/channel.h"
#include "tests/support/suite.h"

static pid_t child;

static void handler(int sig UNUSED)
{
}

static void start_child(void)
{
    siginfo_t info;
    sigset_t blocked;

    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        sigemptyset(&blocked);
        sigaddset(&blocked, SIGUSR2);
        sigprocmask(SIG_BLOCK, &blocked, NULL);
        signal(SIGALRM, handler);
        signal(SIGHUP, SIG_IGN);
        signal(SIGTERM, SIG_DFL); /* Check handles it */
        signal(SIGQUIT, SIG_DFL); /* ignored in what a shell runs in the background */
        raise(SIGSTOP);
        _exit(0);
    }
    ck_assert_int_eq(waitid(P_PID, (id_t)child, &info, WSTOPPED), 0);
}

static void end_child(void)
{
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
}

static bool ends_by(int sig)
{
    struct channel_req q = {.pid = (uint32_t)child};

    kill(child, sig);
    return channel_req_ends(&q);
}

START_TEST(a_signal_that_is_handled_blocked_ignored_or_harmless_is_not_its_end)
{
    static const int signals[] = {SIGALRM, SIGUSR2, SIGHUP, SIGCHLD, SIGURG, SIGWINCH};

    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        ck_assert_msg(!ends_by(signals[i]), "signal %d", signals[i]);
}
END_TEST

START_TEST(a_signal_that_it_does_nothing_about_is)
{
    ck_assert(!ends_by(SIGALRM));
    ck_assert(ends_by(SIGTERM));
}
END_TEST

START_TEST(one_that_dumps_core_is)
{
    ck_assert(ends_by(SIGQUIT));
}
END_TEST

START_TEST(a_real_time_signal_is)
{
    ck_assert(ends_by(SIGRTMIN + 1));
}
END_TEST

START_TEST(a_caller_that_cannot_be_seen_is_taken_to_end)
{
    struct channel_req q = {.pid = 0};

    ck_assert(channel_req_ends(&q));
}
END_TEST

START_TEST(one_that_has_left_its_program_is_seen_and_no_other)
{
    struct channel_req q = {.pid = (uint32_t)child}, unseen = {.pid = 0};
    siginfo_t info;

    ck_assert(!channel_req_exits(&q));
    ck_assert(!channel_req_exits(&unseen));
    kill(child, SIGKILL);
    ck_assert_int_eq(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    ck_assert(channel_req_exits(&q));
}
END_TEST

SUITE_MAIN("fuse-caller", start_child, end_child,
           a_signal_that_is_handled_blocked_ignored_or_harmless_is_not_its_end,
           a_signal_that_it_does_nothing_about_is, one_that_dumps_core_is, a_real_time_signal_is,
           a_caller_that_cannot_be_seen_is_taken_to_end,
           one_that_has_left_its_program_is_seen_and_no_other)
