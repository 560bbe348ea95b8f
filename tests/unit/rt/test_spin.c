/* SPDX-License-Identifier: Apache-2.0 */
/* When a reactor looks again before it sleeps. */
#include <check.h>

#include "common/base/clock.h"
#include "common/base/compiler.h"
#include "common/rt/spin.h"
#include "tests/support/suite.h"

#define MAX_NS (32 * NS_PER_US)

static struct spin s;
static uint64_t now, for_ns;

static void setup(void)
{
    spin_init(&s, MAX_NS, 0);
    now = NS_PER_S;
    for_ns = UINT64_MAX;
}

static void teardown(void)
{
}

/* Nothing to do until something comes gap_ns later, each turn of a spin taking turn_ns; how long
 * was spun. */
static uint64_t wait_for(uint64_t gap_ns, uint64_t turn_ns)
{
    uint64_t from = now, until = now + gap_ns, spun;

    while (now < until && spin_wanted(&s, now, for_ns)) {
        spin_yielded(&s, now, now + turn_ns);
        now += turn_ns;
    }
    spun = now - from;
    now = MAX(now, until);
    spin_came(&s, now);
    return spun;
}

START_TEST(what_comes_soon_is_waited_for_without_sleeping)
{
    for (int i = 0; i < 1000; i++)
        ck_assert_uint_eq(wait_for(20 * NS_PER_US, NS_PER_US), 20 * NS_PER_US);
}
END_TEST

START_TEST(without_a_maximum_there_is_no_spinning)
{
    spin_init(&s, 0, 0);
    for (int i = 0; i < 10; i++)
        ck_assert_uint_eq(wait_for(NS_PER_US, 100), 0);
}
END_TEST

START_TEST(where_nothing_comes_soon_spins_become_short_and_long_again_when_it_does)
{
    for (int i = 0; i < 10; i++)
        ck_assert_uint_le(wait_for(NS_PER_MS, NS_PER_US), MAX_NS);
    ck_assert_uint_eq(wait_for(NS_PER_MS, NS_PER_US), MAX_NS / 16);
    ck_assert_uint_eq(wait_for(20 * NS_PER_US, NS_PER_US), MAX_NS / 16);
    ck_assert_uint_eq(wait_for(20 * NS_PER_US, NS_PER_US), 20 * NS_PER_US);
}
END_TEST

START_TEST(a_spin_is_no_longer_than_what_is_waited_for_is_worth)
{
    for_ns = 10 * NS_PER_US;
    for (int i = 0; i < 10; i++)
        ck_assert_uint_eq(wait_for(20 * NS_PER_US, NS_PER_US), 10 * NS_PER_US);
    for_ns = UINT64_MAX; /* and none the shorter for it afterwards */
    ck_assert_uint_eq(wait_for(20 * NS_PER_US, NS_PER_US), 20 * NS_PER_US);
}
END_TEST

START_TEST(a_core_that_others_keep_is_left_to_them)
{
    ck_assert_uint_eq(wait_for(10 * NS_PER_US, 3 * NS_PER_MS), 3 * NS_PER_MS);
    ck_assert_uint_eq(wait_for(10 * NS_PER_US, NS_PER_US), 0); /* for 20 ms */
    now += 20 * NS_PER_MS;
    ck_assert_uint_eq(wait_for(10 * NS_PER_US, 3 * NS_PER_MS), 3 * NS_PER_MS);
    now += 39 * NS_PER_MS;
    ck_assert_uint_eq(wait_for(10 * NS_PER_US, NS_PER_US), 0);
    now += NS_PER_MS;
    ck_assert_uint_gt(wait_for(10 * NS_PER_US, NS_PER_US), 0);
}
END_TEST

START_TEST(how_long_it_is_left_to_them_is_the_owners_choice)
{
    spin_init(&s, MAX_NS, NS_PER_S);
    ck_assert_uint_gt(wait_for(10 * NS_PER_US, 3 * NS_PER_MS), 0);
    now += NS_PER_S - NS_PER_MS;
    ck_assert_uint_eq(wait_for(10 * NS_PER_US, NS_PER_US), 0);
    now += NS_PER_MS;
    ck_assert_uint_gt(wait_for(10 * NS_PER_US, NS_PER_US), 0);
}
END_TEST

START_TEST(others_on_the_core_all_the_time_leave_less_than_a_hundredth_to_spinning)
{
    uint64_t from = now, spun = 0;

    while (now < from + 60 * NS_PER_S)
        spun += wait_for(200 * NS_PER_US, 3 * NS_PER_MS);
    ck_assert_uint_le(spun, (now - from) / 100);
}
END_TEST

START_TEST(many_short_stays_of_others_count_as_one_long_one)
{
    unsigned n = 0;

    while (wait_for(20 * NS_PER_US, 20 * NS_PER_US) > 0)
        n++;
    ck_assert_uint_ge(n, 5); /* a few do no harm */
    ck_assert_uint_le(n, 50);
}
END_TEST

START_TEST(others_that_stay_for_less_than_a_wake_up_takes_do_not_end_it)
{
    for (int i = 0; i < 1000; i++)
        ck_assert_uint_gt(wait_for(8 * NS_PER_US, 8 * NS_PER_US), 0);
}
END_TEST

SUITE_MAIN("rt-spin", setup, teardown, what_comes_soon_is_waited_for_without_sleeping,
           without_a_maximum_there_is_no_spinning,
           where_nothing_comes_soon_spins_become_short_and_long_again_when_it_does,
           a_spin_is_no_longer_than_what_is_waited_for_is_worth,
           a_core_that_others_keep_is_left_to_them,
           how_long_it_is_left_to_them_is_the_owners_choice,
           others_on_the_core_all_the_time_leave_less_than_a_hundredth_to_spinning,
           many_short_stays_of_others_count_as_one_long_one,
           others_that_stay_for_less_than_a_wake_up_takes_do_not_end_it)
