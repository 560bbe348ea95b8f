/* SPDX-License-Identifier: Apache-2.0 */
/* Declared state machines. */
#include <check.h>
#include <signal.h>
#include <stdlib.h>

#include "common/base/compiler.h"
#include "common/rt/sm.h"

enum { S_START, S_WORK, S_DONE };

static const struct sm_state states[] = {
    [S_START] = {"start", SM_BIT(S_WORK), false},
    [S_WORK] = {"work", SM_BIT(S_WORK) | SM_BIT(S_DONE), false},
    [S_DONE] = {"done", 0, true},
};
static const struct sm_conf conf = {"test.op", states, ARRAY_LEN(states)};

START_TEST(a_machine_takes_the_declared_ways)
{
    struct sm m;

    sm_init(&m, &conf, S_START);
    m.id = 7;
    ck_assert_str_eq(sm_state_name(&m), "start");
    sm_move(&m, S_WORK);
    sm_move(&m, S_WORK); /* declared */
    sm_move(&m, S_DONE);
    ck_assert_uint_eq(sm_state(&m), S_DONE);
    sm_fini(&m);
}
END_TEST

START_TEST(an_undeclared_move_stops_the_process)
{
    struct sm m;

    sm_init(&m, &conf, S_START);
    sm_move(&m, S_DONE);
}
END_TEST

START_TEST(leaving_a_final_state_stops_the_process)
{
    struct sm m;

    sm_init(&m, &conf, S_DONE);
    sm_move(&m, S_START);
}
END_TEST

START_TEST(a_state_outside_the_table_stops_the_process)
{
    struct sm m;

    sm_init(&m, &conf, S_START);
    sm_move(&m, 3);
}
END_TEST

START_TEST(ending_in_a_state_that_is_not_final_stops_the_process)
{
    struct sm m;

    sm_init(&m, &conf, S_WORK);
    sm_fini(&m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sm");
    TCase *tc = tcase_create("sm");
    SRunner *sr = srunner_create(s);
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_machine_takes_the_declared_ways);
    if (srunner_fork_status(sr) == CK_FORK) {
        tcase_add_test_raise_signal(tc, an_undeclared_move_stops_the_process, SIGABRT);
        tcase_add_test_raise_signal(tc, leaving_a_final_state_stops_the_process, SIGABRT);
        tcase_add_test_raise_signal(tc, a_state_outside_the_table_stops_the_process, SIGABRT);
        tcase_add_test_raise_signal(tc, ending_in_a_state_that_is_not_final_stops_the_process,
                                    SIGABRT);
    }
    suite_add_tcase(s, tc);
    srunner_run_all(sr, CK_NORMAL);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? 1 : 0;
}
