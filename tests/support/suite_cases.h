/* SPDX-License-Identifier: Apache-2.0 */
/* main() of a Check program whose tests have different fixtures: a SUITE_CASE for each, then
 * suite_run_cases(). One fixture for all: suite.h. */
#ifndef AIFS_TESTS_SUPPORT_SUITE_CASES_H
#define AIFS_TESTS_SUPPORT_SUITE_CASES_H

#include <check.h>
#include <stddef.h>
#include <stdlib.h>

static inline TCase *suite_case(const char *name, SFun setup, SFun teardown,
                                const TTest *const *tests, size_t n)
{
    TCase *tc = tcase_create(name);

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    for (size_t i = 0; i < n; i++)
        tcase_add_test(tc, tests[i]);
    return tc;
}

#define SUITE_CASE(name, setup, teardown, ...)                                                     \
    suite_case(name, setup, teardown, (const TTest *const[]){__VA_ARGS__},                         \
               sizeof((const TTest *const[]){__VA_ARGS__}) / sizeof(const TTest *))

/* Takes `cases`. The status of the program. */
static inline int suite_run_cases(const char *name, TCase *const *cases, size_t n)
{
    Suite *s = suite_create(name);
    SRunner *runner = srunner_create(s);
    int failed;

    for (size_t i = 0; i < n; i++)
        suite_add_tcase(s, cases[i]);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
