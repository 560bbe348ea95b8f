/* SPDX-License-Identifier: Apache-2.0 */
/* The read-ahead detector: what it fetches for streams, and that it leaves random readers alone. */
#include <string.h>

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

START_TEST(random_reads_of_many_kib_in_a_small_file_are_no_streams)
{
    struct readahead ra = {0};
    unsigned seed = 7;
    int sequential = 0;

    for (int i = 0; i < 2000; i++) {
        uint64_t at = (1 + (uint64_t)rand_r(&seed) % 511) * 128 * KIB;

        sequential += readahead_next(&ra, at, 128 * KIB, 512 * 128 * KIB, UNIT, MAX_).sequential;
    }
    ck_assert_int_lt(sequential, 20); /* by chance */
}
END_TEST

/* Draws a place; one that was read already gives way to the next that was not (fio does so). */
static unsigned draw_unread(bool *read, unsigned n, unsigned *seed)
{
    unsigned k = (unsigned)rand_r(seed) % n;

    while (read[k])
        k = (k + 1) % n;
    read[k] = true;
    return k;
}

START_TEST(random_reads_of_which_none_comes_twice_bring_little_else)
{
    enum { PLACES = 512 };
    uint64_t fetched = 0;

    for (unsigned seed = 1, job = 0; job < 8; job++) {
        struct readahead ra = {0};
        bool read[PLACES] = {false};

        for (int i = 0; i < PLACES; i++) {
            uint64_t at = ((uint64_t)job * PLACES + draw_unread(read, PLACES, &seed)) * 128 * KIB;
            struct readahead_plan p = readahead_next(&ra, at, 128 * KIB, SIZE, UNIT, MAX_);

            fetched += (p.end - p.start) * MAX(p.count, 1u);
        }
    }
    ck_assert_uint_lt(fetched, 8ull * PLACES * 128 * KIB / 20);
}
END_TEST

START_TEST(a_stream_is_seen_after_many_reads_at_random_too)
{
    struct readahead ra = {0};
    unsigned seed = 11, since = 0;
    uint64_t at = 600 * UNIT;

    for (int i = 0; i < 1000; i++)
        readahead_next(&ra, ((uint64_t)rand_r(&seed) * 4096) % SIZE, 4096, SIZE, UNIT, MAX_);
    while (!readahead_next(&ra, at, 128 * KIB, SIZE, UNIT, MAX_).sequential) {
        ck_assert_uint_lt(++since, 12);
        at += 128 * KIB;
    }
    for (int k = 0; k < 100; k++) { /* and stays one, whoever looks something up in between */
        for (int i = 0; i < 3; i++)
            readahead_next(&ra, ((uint64_t)rand_r(&seed) * 4096) % SIZE, 4096, SIZE, UNIT, MAX_);
        at += 128 * KIB;
        ck_assert(readahead_next(&ra, at, 128 * KIB, SIZE, UNIT, MAX_).sequential);
    }
}
END_TEST

START_TEST(a_stream_from_the_beginning_may_be_overtaken_at_once)
{
    static const int order[] = {0, 4, 1, 2, 3, 5, 8, 6, 7};
    struct readahead ra = {0};

    for (unsigned i = 0; i < ARRAY_LEN(order); i++)
        ck_assert(readahead_next(&ra, (uint64_t)order[i] * 128 * KIB, 128 * KIB, SIZE, UNIT, MAX_)
                      .sequential);
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

START_TEST(less_than_a_block_at_a_time_becomes_a_stream_with_the_third_read)
{
    struct readahead ra = {0};
    const uint64_t begin = 500 * UNIT;

    ck_assert(!readahead_next(&ra, begin, 4096, SIZE, UNIT, MAX_).sequential);
    ck_assert(!readahead_next(&ra, begin + 4096, 4096, SIZE, UNIT, MAX_).sequential);
    ck_assert(readahead_next(&ra, begin + 8192, 4096, SIZE, UNIT, MAX_).sequential);
}
END_TEST

START_TEST(advice_is_taken)
{
    struct readahead ra = {.advice = READAHEAD_SEQUENTIAL};
    struct readahead_plan p = readahead_next(&ra, 300 * UNIT, 4096, SIZE, UNIT, MAX_);

    ck_assert(p.sequential);
    ck_assert_uint_ge(p.end - p.start, MAX_ - UNIT);
    ra = (struct readahead){.advice = READAHEAD_RANDOM};
    for (uint64_t at = 0; at < 50 * MIB; at += MIB) {
        p = readahead_next(&ra, at, MIB, SIZE, UNIT, MAX_);
        ck_assert(!p.sequential && p.start == p.end);
    }
}
END_TEST

START_TEST(readers_of_one_file_keep_their_streams)
{
    struct readahead ra = {0};
    uint64_t fetched[3] = {0};
    unsigned seed = 5;

    for (int k = 0; k < 400; k++) {
        for (unsigned j = 0; j < 3; j++) {
            uint64_t at = j * 300 * UNIT + (uint64_t)k * 128 * KIB;
            struct readahead_plan p = readahead_next(&ra, at, 128 * KIB, SIZE, UNIT, MAX_);

            if (k > 1)
                ck_assert(p.sequential);
            fetched[j] = p.start < p.end ? p.end : fetched[j];
            ck_assert(k < 2 || fetched[j] > at); /* always ahead */
        }
        /* somebody looks something up in between */
        readahead_next(&ra, ((uint64_t)rand_r(&seed) * 4096) % SIZE, 4096, SIZE, UNIT, MAX_);
    }
}
END_TEST

START_TEST(a_reader_that_goes_backwards_is_read_ahead_downwards)
{
    static const uint32_t lens[] = {4096, 128 * KIB, MIB};

    for (unsigned j = 0; j < ARRAY_LEN(lens); j++) {
        struct readahead ra = {0};
        uint64_t at = 100 * UNIT, lowest = at, above = 0;

        for (int k = 0; at >= lens[j]; k++) {
            struct readahead_plan p;

            at -= lens[j];
            p = readahead_next(&ra, at, lens[j], SIZE, UNIT, MAX_);
            ck_assert(k < 2 || p.sequential);
            if (p.start == p.end)
                continue;
            above += p.start >= at;
            ck_assert(k < 3 || p.end <= lowest); /* nothing twice */
            lowest = MIN(lowest, p.start);
            ck_assert(k < 8 || lowest < at || !at);
            ck_assert_uint_ge(p.end - p.start + MAX_ + UNIT, at - p.start);
        }
        ck_assert_uint_le(above, 1); /* before it was clear */
        ck_assert_uint_eq(lowest, 0);
    }
}
END_TEST

START_TEST(who_turns_round_is_followed)
{
    struct readahead ra = {0};
    struct readahead_plan p = {0};
    uint64_t at = 200 * UNIT, end = 0;

    for (int k = 0; k < 20; k++, at -= MIB)
        p = readahead_next(&ra, at, MIB, SIZE, UNIT, MAX_);
    for (int k = 0; k < 20; k++, at += MIB) {
        p = readahead_next(&ra, at, MIB, SIZE, UNIT, MAX_);
        ck_assert(p.sequential);
        end = p.start < p.end ? p.end : end;
    }
    ck_assert_uint_gt(end, at);
}
END_TEST

static void expect_stride(int64_t step, uint64_t from, uint64_t size)
{
    struct readahead ra = {0};
    static bool asked[4096];
    uint64_t at = from;
    unsigned deepest = 0;

    memset(asked, 0, sizeof asked);
    for (unsigned k = 0; at < size; k++, at += (uint64_t)step) {
        struct readahead_plan p = readahead_next(&ra, at, 47008, size, UNIT, MAX_);

        ck_assert(k == 0 || !p.sequential);
        ck_assert(k < 3 || asked[k]);
        deepest = MAX(deepest, p.count);
        for (unsigned j = 0; p.start < p.end && j < MAX(p.count, 1u); j++) {
            uint64_t begin = p.start + (uint64_t)(p.step * (int64_t)j);
            unsigned n = (unsigned)((int64_t)(begin - from) / step);

            ck_assert_uint_eq(begin, from + (uint64_t)(step * n));
            ck_assert_uint_eq(p.end - p.start, 47008);
            ck_assert_uint_le(begin + 47008, size);
            ck_assert(!asked[n]); /* nothing twice */
            asked[n] = true;
        }
    }
    ck_assert_uint_ge(deepest, 2);
    ck_assert_uint_le(deepest, READAHEAD_STRIDE_DEPTH);
}

START_TEST(records_at_equal_distances_are_fetched_and_not_what_lies_between)
{
    expect_stride(3 * UNIT + 12345, 7 * UNIT, SIZE);
    expect_stride(-(int64_t)(2 * UNIT), 901 * UNIT, SIZE);
}
END_TEST

START_TEST(reads_that_gather_in_one_place_bring_all_of_it_once)
{
    static const unsigned page[] = {0, 5, 2, 7, 1, 6, 3, 4};
    struct readahead ra = {0};
    unsigned fetched = 0;

    for (unsigned k = 0; k < 8; k++) { /* pages of one mapping */
        uint64_t at = 500 * UNIT + page[k] * 200 * KIB;
        struct readahead_plan p = readahead_next(&ra, at, 4096, SIZE, UNIT, MAX_);

        if (p.start == p.end)
            continue;
        ck_assert(p.sequential);
        ck_assert_uint_eq(p.start, 500 * UNIT);
        ck_assert_uint_eq(p.end, 502 * UNIT);
        fetched++;
    }
    ck_assert_uint_ge(fetched, 1);
    ck_assert_uint_le(fetched, 2);
}
END_TEST

SUITE_MAIN("client-readahead", NULL, NULL,
           a_stream_is_seen_at_its_first_read_and_its_window_doubles_up_to_the_bound,
           random_reads_are_left_alone, random_reads_of_many_kib_in_a_small_file_are_no_streams,
           random_reads_of_which_none_comes_twice_bring_little_else,
           a_stream_is_seen_after_many_reads_at_random_too,
           a_stream_from_the_beginning_may_be_overtaken_at_once,
           requests_of_one_stream_may_overtake_each_other,
           nothing_is_fetched_behind_the_end_of_file,
           a_reader_that_starts_in_the_middle_becomes_a_stream_with_its_second_read,
           less_than_a_block_at_a_time_becomes_a_stream_with_the_third_read, advice_is_taken,
           readers_of_one_file_keep_their_streams,
           a_reader_that_goes_backwards_is_read_ahead_downwards, who_turns_round_is_followed,
           records_at_equal_distances_are_fetched_and_not_what_lies_between,
           reads_that_gather_in_one_place_bring_all_of_it_once)
