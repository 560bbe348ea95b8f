/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main() of a Check program in one line: SUITE_MAIN("conf", setup, teardown, test_a, test_b).
 * Who needs another time limit, or loops, fills a TCase and ends with suite_run_case().
 */
#ifndef AIFS_TESTS_SUPPORT_SUITE_H
#define AIFS_TESTS_SUPPORT_SUITE_H

#include <check.h>
#include <stddef.h>
#include <stdlib.h>

/* Takes `tc`. The status of the program. */
static inline int suite_run_case(const char *name, TCase *tc)
{
    Suite *s = suite_create(name);
    SRunner *runner = srunner_create(s);
    int failed;

    suite_add_tcase(s, tc);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static inline int suite_run(const char *name, SFun setup, SFun teardown, const TTest *const *tests,
                            size_t n)
{
    TCase *tc = tcase_create(name);

    if (setup || teardown)
        tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    for (size_t i = 0; i < n; i++)
        tcase_add_test(tc, tests[i]);
    return suite_run_case(name, tc);
}

#define SUITE_MAIN(name, setup, teardown, ...)                                                     \
    int main(void)                                                                                 \
    {                                                                                              \
        const TTest *const tests[] = {__VA_ARGS__};                                                \
                                                                                                   \
        return suite_run(name, setup, teardown, tests, sizeof tests / sizeof tests[0]);            \
    }

#endif
