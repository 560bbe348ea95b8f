// SPDX-License-Identifier: Apache-2.0
/* What /proc tells of a caller: a process that is stopped, so that its signals wait for it. Its
 * capabilities want root, as which these tests run. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/fuse/channel.h"
#include "common/base/mem.h"
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

/* ---- capabilities ---- */

static struct msg_cred cred_of_child(uint32_t **ret_ranges)
{
    struct channel_req q = {.pid = (uint32_t)child};
    struct msg_cred c = {0};
    uint32_t caps;

    ck_assert_int_ge(channel_req_groups(&q, NULL, 0, &caps), 0);
    *ret_ranges = channel_req_caps(&q, caps, &c);
    return c;
}

static void write_map(const char *name, const char *text)
{
    char path[64];
    int fd;

    snprintf(path, sizeof path, "/proc/%d/%s", child, name);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text)); /* taken once */
    close(fd);
}

/* A child that is in a user name space of its own. */
static void start_inner_child(void)
{
    siginfo_t info;

    end_child();
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        if (unshare(CLONE_NEWUSER) != 0)
            _exit(77);
        raise(SIGSTOP);
        _exit(0);
    }
    ck_assert_int_eq(waitid(P_PID, (id_t)child, &info, WSTOPPED | WEXITED | WNOWAIT), 0);
    ck_assert_msg(info.si_code == CLD_STOPPED, "no user name spaces here");
}

START_TEST(the_capabilities_of_root_count_everywhere)
{
    uint32_t *ranges;
    struct msg_cred c = cred_of_child(&ranges);

    ck_assert_ptr_null(ranges);
    ck_assert(cred_can_all(&c, MSG_CAP_DAC_OVERRIDE));
    ck_assert(cred_can(&c, MSG_CAP_CHOWN, 7, 7));
}
END_TEST

START_TEST(those_of_a_user_name_space_count_over_the_ids_that_it_knows)
{
    uint32_t *ranges;
    struct msg_cred c;

    start_inner_child();
    write_map("uid_map", "0 1000 1\n1 200000 65536\n");
    write_map("gid_map", "0 500 1\n");
    c = cred_of_child(&ranges);
    ck_assert(c.mapped);
    ck_assert(!cred_can_all(&c, MSG_CAP_CHOWN));
    ck_assert(cred_can(&c, MSG_CAP_CHOWN, 1000, 500));
    ck_assert(cred_can(&c, MSG_CAP_CHOWN, 200000, 500));
    ck_assert(cred_can(&c, MSG_CAP_CHOWN, 265535, 500));
    ck_assert(!cred_can(&c, MSG_CAP_CHOWN, 265536, 500));
    ck_assert(!cred_can(&c, MSG_CAP_CHOWN, 0, 500));
    ck_assert(!cred_can(&c, MSG_CAP_CHOWN, 1000, 501));
    mem_free(ranges);
}
END_TEST

START_TEST(as_many_ranges_as_the_kernel_takes_are_read)
{
    char map[4096];
    size_t n = 0;
    uint32_t *ranges;
    struct msg_cred c;

    for (unsigned i = 0; i < MSG_ID_RANGES_MAX; i++)
        n += (size_t)snprintf(map + n, sizeof map - n, "%u %u 1\n", i, 1000 + 2 * i);
    start_inner_child();
    write_map("uid_map", map);
    write_map("gid_map", map);
    c = cred_of_child(&ranges);
    ck_assert_uint_eq(c.n_uids, MSG_ID_RANGES_MAX * 2);
    ck_assert(cred_can(&c, MSG_CAP_CHOWN, 1000, 1000 + 2 * (MSG_ID_RANGES_MAX - 1)));
    ck_assert(!cred_can(&c, MSG_CAP_CHOWN, 1000, 1001));
    mem_free(ranges);
}
END_TEST

START_TEST(those_of_one_that_knows_no_ids_count_nowhere)
{
    uint32_t *ranges;
    struct msg_cred c;

    start_inner_child();
    c = cred_of_child(&ranges);
    ck_assert(!cred_can_all(&c, MSG_CAP_CHOWN));
    ck_assert(!cred_can(&c, MSG_CAP_CHOWN, 0, 0));
    mem_free(ranges);
}
END_TEST

START_TEST(a_caller_that_cannot_be_seen_has_none)
{
    struct channel_req q = {.pid = 0};
    struct msg_cred c = {0};
    uint32_t caps;

    ck_assert_int_lt(channel_req_groups(&q, NULL, 0, &caps), 0);
    ck_assert_ptr_null(channel_req_caps(&q, caps, &c));
    ck_assert_uint_eq(c.caps, 0);
}
END_TEST

SUITE_MAIN("fuse-caller", start_child, end_child,
           a_signal_that_is_handled_blocked_ignored_or_harmless_is_not_its_end,
           a_signal_that_it_does_nothing_about_is, one_that_dumps_core_is, a_real_time_signal_is,
           a_caller_that_cannot_be_seen_is_taken_to_end,
           one_that_has_left_its_program_is_seen_and_no_other,
           the_capabilities_of_root_count_everywhere,
           those_of_a_user_name_space_count_over_the_ids_that_it_knows,
           as_many_ranges_as_the_kernel_takes_are_read,
           those_of_one_that_knows_no_ids_count_nowhere, a_caller_that_cannot_be_seen_has_none)
