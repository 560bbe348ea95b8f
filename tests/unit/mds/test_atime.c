// SPDX-License-Identifier: Apache-2.0
/* Which reads move atime. */
#include <check.h>

#include "mds/ns/ns.h"
#include "proto/atime.h"
#include "tests/support/suite.h"

#define DAY 86400

static const struct msg_time now = {1000 * DAY, 500};

START_TEST(a_read_counts_when_it_is_the_first_after_a_change_or_after_a_day)
{
    static const struct {
        struct msg_time atime, mtime, ctime;
        bool due;
    } cases[] = {
        {{999 * DAY + 9, 600}, {999 * DAY + 9, 599}, {999 * DAY + 9, 599}, false},
        {{999 * DAY + 9, 600}, {999 * DAY + 9, 600}, {999 * DAY + 9, 599}, true},
        {{999 * DAY + 9, 600}, {999 * DAY + 9, 599}, {999 * DAY + 9, 600}, true},
        {{999 * DAY + 9, 600}, {999 * DAY + 9, 601}, {999 * DAY + 9, 599}, true},
        {{999 * DAY, 500}, {5, 0}, {5, 0}, true},
        {{999 * DAY + 1, 0}, {5, 0}, {5, 0}, false},
        {{1000 * DAY, 500}, {2000 * DAY, 0}, {5, 0}, false}, /* not before now */
        {{1000 * DAY, 501}, {2000 * DAY, 0}, {5, 0}, false},
        {{-5, 0}, {-6, 0}, {-6, 0}, true},
        {{INT64_MAX, 0}, {5, 0}, {5, 0}, false},
        {{INT64_MIN, 0}, {INT64_MIN, 0}, {5, 0}, true},
    };

    for (size_t k = 0; k < ARRAY_LEN(cases); k++)
        ck_assert_msg(atime_is_due(cases[k].atime, cases[k].mtime, cases[k].ctime, now) ==
                          cases[k].due,
                      "case %zu", k);
}
END_TEST

START_TEST(a_time_that_was_set_since_stays)
{
    struct mds_inode in = {.atime = {7, 0}, .mtime = {900, 0}, .ctime = {900, 0}};
    struct msg_read_item item = {.atime = {800, 0}, .was = {7, 0}};

    ck_assert(ns_read_counts(&in, &item, now)); /* changed since, and not by utimensat() */
    item.was.sec = 6;
    ck_assert(!ns_read_counts(&in, &item, now));
    item.atime.sec = 901; /* read behind that */
    ck_assert(ns_read_counts(&in, &item, now));
}
END_TEST

START_TEST(no_read_is_later_than_now)
{
    struct mds_inode in = {.atime = now, .mtime = now, .ctime = now};
    struct msg_read_item item = {.atime = {5000 * DAY, 0}, .was = now};

    ck_assert(!ns_read_counts(&in, &item, now));
    item.atime = (struct msg_time){5, 2000000000u};
    ck_assert(!ns_read_counts(&(struct mds_inode){0}, &item, now));
}
END_TEST

SUITE_MAIN("mds-atime", NULL, NULL,
           a_read_counts_when_it_is_the_first_after_a_change_or_after_a_day,
           a_time_that_was_set_since_stays, no_read_is_later_than_now)
