// SPDX-License-Identifier: Apache-2.0
/* The list of fences. */
#include <check.h>

#include "mds/cluster/fence.h"
#include "tests/support/suite.h"

static struct fence_list list;

static void add(uint64_t number)
{
    struct msg_fence f = {.session = number * 10, .generation = 1};

    ck_assert_int_eq(fence_list_add(&list, number, &f), 0);
}

static void setup(void)
{
    list = (struct fence_list){0};
}

static void teardown(void)
{
    fence_list_fini(&list);
}

START_TEST(an_empty_list_knows_everything_a_server_knows)
{
    const struct msg_fence *f;
    uint64_t upto;

    ck_assert_uint_eq(fence_list_last(&list), 0);
    ck_assert_uint_eq(fence_list_after(&list, 5, 100, &f, &upto), 0);
    ck_assert_uint_eq(upto, 5);
}
END_TEST

START_TEST(fences_are_given_in_order_and_page_by_page)
{
    const struct msg_fence *f;
    uint64_t upto;

    for (uint64_t i = 200; i > 0; i--) /* the wrong way round, and past the first size */
        add(i);
    add(100); /* again */
    ck_assert_uint_eq(list.n, 200);
    ck_assert_uint_eq(fence_list_last(&list), 200);
    ck_assert_uint_eq(fence_list_after(&list, 0, 150, &f, &upto), 150);
    ck_assert_uint_eq(upto, 150);
    ck_assert_uint_eq(f[0].session, 10);
    ck_assert_uint_eq(fence_list_after(&list, upto, 150, &f, &upto), 50);
    ck_assert_uint_eq(upto, 200);
    ck_assert_uint_eq(f[49].session, 2000);
    ck_assert_uint_eq(fence_list_after(&list, upto, 150, &f, &upto), 0);
    ck_assert_uint_eq(upto, 200);
}
END_TEST

START_TEST(only_what_every_server_has_is_forgotten_and_the_newest_stay)
{
    const struct msg_fence *f;
    uint64_t upto;

    for (uint64_t i = 1; i <= 100; i++)
        add(i * 2);
    ck_assert_uint_eq(fence_list_excess(&list, 0, 10), 0);
    ck_assert_uint_eq(fence_list_excess(&list, 9, 10), 4);
    ck_assert_uint_eq(fence_list_excess(&list, 200, 10), 90);
    ck_assert_uint_eq(fence_list_excess(&list, 200, 100), 0);
    fence_list_drop(&list, 90);
    ck_assert_uint_eq(fence_list_after(&list, 0, 100, &f, &upto), 10);
    ck_assert_uint_eq(f[0].session, 1820);
}
END_TEST

SUITE_MAIN("mds-fence", setup, teardown, an_empty_list_knows_everything_a_server_knows,
           fences_are_given_in_order_and_page_by_page,
           only_what_every_server_has_is_forgotten_and_the_newest_stay)
