/* SPDX-License-Identifier: Apache-2.0 */
/* The read-ahead detector: what it fetches for streams, and that it leaves random readers alone. */
#include "client/core/readahead.h"
#include "common/base/compiler.h"
#include "tests/support/suite.h"

#define UNIT ((uint64_t)MIB)
#define MAX_ ((uint64_t)16 * MIB)
#define SIZE ((uint64_t)1 * GIB)

START_TEST(a_stream_is_seen_at_its_first_read_and_its_window_doubles_up_to_the_bound)
{
    struct readahead ra = {0};
    uint64_t at = 0, fetched = 0, largest = 0;
    int i;

    for (i = 0; i < 2048; i++, at += 128 * KIB) {
        struct readahead_plan p = readahead_next(&ra, at, 128 * KIB, SIZE, UNIT, MAX_);

        ck_assert(p.sequential);
        if (p.start == p.end)
            continue;
        ck_assert_uint_ge(p.start, at + 128 * KIB);
        ck_assert_uint_ge(p.start, fetched); /* nothing twice */
        fetched = p.end;
        largest = MAX(largest, p.end - (at + 128 * KIB));
    }
    ck_assert_uint_gt(largest, MAX_ - UNIT);
    ck_assert_uint_le(largest, MAX_ + UNIT);
    ck_assert_uint_gt(fetched, at); /* always ahead of the reader */
}
END_TEST

START_TEST(random_reads_are_left_alone)
{
    struct readahead ra = {0};
    unsigned seed = 3;
    int i, sequential = 0;

    for (i = 0; i < 1000; i++) {
        uint64_t at = ((uint64_t)rand_r(&seed) * 4096) % SIZE;
        struct readahead_plan p = readahead_next(&ra, at, 4096, SIZE, UNIT, MAX_);

        sequential += p.sequential;
        if (!p.sequential)
            ck_assert_uint_eq(p.start, p.end);
    }
    ck_assert_int_lt(sequential, 10);
}
END_TEST

START_TEST(requests_of_one_stream_may_overtake_each_other)
{
    static const int order[] = {0, 2, 1, 3, 5, 4, 7, 6, 8};
    struct readahead ra = {0};
    unsigned i;

    for (i = 0; i < ARRAY_LEN(order); i++)
        ck_assert(readahead_next(&ra, (uint64_t)order[i] * 128 * KIB, 128 * KIB, SIZE, UNIT, MAX_)
                      .sequential);
}
END_TEST

START_TEST(nothing_is_fetched_behind_the_end_of_file)
{
    struct readahead ra = {0};
    struct readahead_plan p = readahead_next(&ra, 0, 4096, 10000, UNIT, MAX_);

    ck_assert(p.sequential);
    ck_assert_uint_eq(p.start, 4096);
    ck_assert_uint_eq(p.end, 10000);
    p = readahead_next(&ra, 4096, 5904, 10000, UNIT, MAX_);
    ck_assert_uint_eq(p.start, p.end);
}
END_TEST

START_TEST(a_reader_that_starts_in_the_middle_becomes_a_stream_with_its_second_read)
{
    struct readahead ra = {0};

    ck_assert(!readahead_next(&ra, 500 * UNIT, MIB, SIZE, UNIT, MAX_).sequential);
    ck_assert(readahead_next(&ra, 501 * UNIT, MIB, SIZE, UNIT, MAX_).sequential);
}
END_TEST

SUITE_MAIN("client-readahead", NULL, NULL,
           a_stream_is_seen_at_its_first_read_and_its_window_doubles_up_to_the_bound,
           random_reads_are_left_alone, requests_of_one_stream_may_overtake_each_other,
           nothing_is_fetched_behind_the_end_of_file,
           a_reader_that_starts_in_the_middle_becomes_a_stream_with_its_second_read)
