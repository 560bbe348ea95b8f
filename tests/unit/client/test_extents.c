/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of byte ranges, against a plain bitmap as the model. */
#include <errno.h>
#include <string.h>

#include "client/core/extents.h"
#include "tests/support/suite.h"

#define ROOM 512u

START_TEST(neighbours_merge_and_order_does_not_matter)
{
    struct extents x = {0};

    ck_assert_int_eq(extents_add(&x, 10, 20), 0);
    ck_assert_int_eq(extents_add(&x, 30, 40), 0);
    ck_assert_int_eq(extents_add(&x, 0, 5), 0);
    ck_assert_uint_eq(x.n, 3);
    ck_assert_int_eq(extents_add(&x, 20, 30), 0);
    ck_assert_uint_eq(x.n, 2);
    ck_assert_uint_eq(extents_bytes(&x), 35);
    ck_assert_uint_eq(extents_end(&x), 40);
}
END_TEST

START_TEST(the_first_gap_is_found)
{
    struct extents x = {0};
    struct extent gap;

    ck_assert(extents_gap(&x, 3, 9, &gap));
    ck_assert(gap.start == 3 && gap.end == 9);
    ck_assert_int_eq(extents_add(&x, 0, 5), 0);
    ck_assert_int_eq(extents_add(&x, 7, 9), 0);
    ck_assert(extents_gap(&x, 3, 20, &gap));
    ck_assert(gap.start == 5 && gap.end == 7);
    ck_assert(!extents_gap(&x, 7, 9, &gap));
    ck_assert(extents_cover(&x, 0, 5) && !extents_cover(&x, 0, 6));
}
END_TEST

START_TEST(a_change_that_needs_too_many_pieces_changes_nothing)
{
    struct extents x = {0}, before;
    uint32_t i;

    for (i = 0; i < EXTENTS_MAX; i++)
        ck_assert_int_eq(extents_add(&x, i * 10, i * 10 + 5), 0);
    before = x;
    ck_assert_int_eq(extents_add(&x, 7, 8), -ENOSPC);
    ck_assert_int_eq(extents_remove(&x, 1, 2), -ENOSPC);
    ck_assert_int_eq(memcmp(&x, &before, sizeof x), 0);
    ck_assert_int_eq(extents_add(&x, 5, 10), 0); /* joining two is always possible */
    ck_assert_uint_eq(x.n, EXTENTS_MAX - 1);
}
END_TEST

static void expect_equal(const struct extents *x, const bool *model)
{
    uint32_t at, pieces = 0;

    for (at = 0; at < ROOM; at++) {
        ck_assert_int_eq(extents_cover(x, at, at + 1), model[at]);
        ck_assert_int_eq(extents_overlap(x, at, at + 1), model[at]);
        pieces += model[at] && (at == 0 || !model[at - 1]);
    }
    ck_assert_uint_eq(x->n, pieces);
}

START_TEST(ten_thousand_random_changes_agree_with_a_bitmap)
{
    struct extents x = {0};
    bool model[ROOM] = {0};
    unsigned seed = 7, step;

    for (step = 0; step < 10000; step++) {
        uint32_t a = (uint32_t)rand_r(&seed) % ROOM, b = a + (uint32_t)rand_r(&seed) % (ROOM - a);
        unsigned kind = (unsigned)rand_r(&seed) % 8;
        uint32_t at;

        if (kind == 0) {
            extents_cut(&x, a);
            memset(model + a, 0, ROOM - a);
            continue;
        }
        if (kind < 5 ? extents_add(&x, a, b) : extents_remove(&x, a, b))
            continue;
        for (at = a; at < b; at++)
            model[at] = kind < 5;
        if (step % 50 == 0)
            expect_equal(&x, model);
    }
    expect_equal(&x, model);
}
END_TEST

SUITE_MAIN("client-extents", NULL, NULL, neighbours_merge_and_order_does_not_matter,
           the_first_gap_is_found, a_change_that_needs_too_many_pieces_changes_nothing,
           ten_thousand_random_changes_agree_with_a_bitmap)
