// SPDX-License-Identifier: Apache-2.0
/* Fault points: the specification, the counting, and each action. */
#include "common/fault/fault.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/compiler.h"
#include "tests/support/suite.h"

static void teardown(void)
{
    fault_disarm_all();
}

START_TEST(nothing_armed_nothing_happens)
{
    ck_assert(!FAULT("a"));
    ck_assert_uint_eq(fault_count("a"), 0);
}
END_TEST

START_TEST(an_error_without_a_number_happens_every_time)
{
    ck_assert_int_eq(fault_arm("a=error"), 0);
    for (int i = 0; i < 3; i++)
        ck_assert(FAULT("a"));
    ck_assert(!FAULT("b"));
    ck_assert_uint_eq(fault_count("a"), 3);
}
END_TEST

START_TEST(a_number_means_that_time_only_and_with_plus_from_then_on)
{
    ck_assert_int_eq(fault_arm("once=error@3,onward=error@3+"), 0);
    for (int i = 1; i <= 5; i++) {
        ck_assert_int_eq(FAULT("once"), i == 3);
        ck_assert_int_eq(FAULT("onward"), i >= 3);
    }
}
END_TEST

START_TEST(arming_again_replaces_and_counts_anew)
{
    ck_assert_int_eq(fault_arm("a=error@2"), 0);
    ck_assert(!FAULT("a"));
    ck_assert_int_eq(fault_arm("a=error@2"), 0);
    ck_assert(!FAULT("a"));
    ck_assert(FAULT("a"));
    ck_assert_int_eq(atomic_load(&fault_armed), 1);
}
END_TEST

START_TEST(disarming_ends_it)
{
    ck_assert_int_eq(fault_arm("a=error,b=error"), 0);
    fault_disarm_all();
    ck_assert(!FAULT("a"));
    ck_assert_int_eq(atomic_load(&fault_armed), 0);
}
END_TEST

START_TEST(a_wrong_specification_arms_nothing)
{
    static const char *const wrong[] = {"",           "a",         "=error",         "a=",
                                        "a=explode",  "a=error@",  "a=error@0",      "a=error@x",
                                        "a=error@+",  "a=error:5", "a=delay",        "a=delay:x",
                                        "a=delay:-1", "a=error,",  ",a=error",       "a=error,b",
                                        "a=error@1-", "a=crash:1", "a=delay:9999999"};
    char huge[2000];

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        ck_assert_msg(fault_arm(wrong[i]) == -EINVAL, "\"%s\"", wrong[i]);
        ck_assert_int_eq(atomic_load(&fault_armed), 0);
    }
    memset(huge, 'a', sizeof huge);
    strcpy(huge + sizeof huge - 10, "=error");
    ck_assert_int_eq(fault_arm(huge), -EINVAL);
    strcpy(huge + 100, "=error");
    ck_assert_int_eq(fault_arm(huge), -EINVAL);
}
END_TEST

START_TEST(more_points_than_there_is_room_for_are_refused_as_a_whole)
{
    char spec[32];
    int i;

    for (i = 0; i < 1000; i++) {
        snprintf(spec, sizeof spec, "p%d=error", i);
        if (fault_arm(spec))
            break;
    }
    ck_assert_int_lt(i, 1000);
    ck_assert_int_eq(fault_arm("p0=error@2,new=error"), -EINVAL);
    ck_assert(FAULT("p0"));
    ck_assert(!FAULT("new"));
}
END_TEST

START_TEST(a_delay_delays_and_does_not_fail)
{
    uint64_t start = clock_mono_ns(clock_real());

    ck_assert_int_eq(fault_arm("a=delay:20"), 0);
    ck_assert(!FAULT("a"));
    ck_assert_uint_ge(clock_mono_ns(clock_real()) - start, 20 * NS_PER_MS);
}
END_TEST

START_TEST(a_crash_leaves_as_a_kill_would)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        if (fault_arm("a=crash@2"))
            _exit(1);
        FAULT_CRASH("a");
        FAULT_CRASH("a");
        _exit(2);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 137);
}
END_TEST

START_TEST(the_environment_arms)
{
    ck_assert_int_eq(unsetenv("AIFS_FAULT"), 0);
    ck_assert_int_eq(fault_arm_from_env(), 0);
    ck_assert(!FAULT("a"));
    ck_assert_int_eq(setenv("AIFS_FAULT", "a=error", 1), 0);
    ck_assert_int_eq(fault_arm_from_env(), 0);
    ck_assert(FAULT("a"));
    ck_assert_int_eq(setenv("AIFS_FAULT", "nonsense", 1), 0);
    ck_assert_int_eq(fault_arm_from_env(), -EINVAL);
}
END_TEST

SUITE_MAIN("fault", NULL, teardown, nothing_armed_nothing_happens,
           an_error_without_a_number_happens_every_time,
           a_number_means_that_time_only_and_with_plus_from_then_on,
           arming_again_replaces_and_counts_anew, disarming_ends_it,
           a_wrong_specification_arms_nothing,
           more_points_than_there_is_room_for_are_refused_as_a_whole,
           a_delay_delays_and_does_not_fail, a_crash_leaves_as_a_kill_would, the_environment_arms)
