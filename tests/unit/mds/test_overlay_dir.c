/* SPDX-License-Identifier: Apache-2.0 */
/* What the overlay knows of a directory goes with the groups that it is of. */
#include "mds/shard/overlay.h"

#include "tests/support/suite.h"

enum { N = 10000 };

static struct overlay overlay;
static struct obj_group groups[N];

static void setup(void)
{
    ck_assert_int_eq(overlay_init(&overlay, NULL, 0), 0);
    for (unsigned i = 0; i < N; i++) {
        groups[i] = (struct obj_group){.parent = 7, .hash = hash_u64(i)};
        ck_assert_int_eq(overlay_dir_enter(&overlay, &groups[i]), 0);
    }
}

static void teardown(void)
{
    overlay_fini(&overlay);
}

static void check(const struct overlay_dir *d, uint32_t n)
{
    ck_assert_uint_eq(d->n, n);
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_ptr_eq(d->at[i].group->dir, d);
        ck_assert_uint_eq(d->at[i].group->at, i);
        ck_assert_uint_eq(d->at[i].hash, d->at[i].group->hash);
    }
}

START_TEST(a_group_that_stays_keeps_no_room_for_those_that_go)
{
    const struct overlay_dir *d = groups[0].dir;

    check(d, N);
    for (unsigned i = 1; i < N; i++) {
        overlay_dir_leave(&overlay, &groups[i * 3571u % N]); /* all but the first, in no order */
        ck_assert_uint_le(d->cap, 4 * MAX(d->n, 2u));
        if (i % 1000 == 0)
            check(d, N - i);
    }
    check(d, 1);
    ck_assert_ptr_eq(d->at[0].group, &groups[0]);
    for (unsigned i = 1; i < N; i++)
        ck_assert_int_eq(overlay_dir_enter(&overlay, &groups[i]), 0);
    check(d, N);
    for (unsigned i = 0; i < N; i++)
        overlay_dir_leave(&overlay, &groups[i]);
    ck_assert_uint_eq(overlay.dirs.count, 0);
}
END_TEST

SUITE_MAIN("overlay-dir", setup, teardown, a_group_that_stays_keeps_no_room_for_those_that_go)
