/* SPDX-License-Identifier: Apache-2.0 */
/* Read-ahead through the core: the right bytes whatever the pattern, nothing for random readers,
 * and no more than its share of the memory for all files together. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/client_bed.h"
#include "tests/support/suite.h"

#define ROOM   (12u * MIB)
#define FILES  8u
#define BUDGET (12u * MIB) /* of 96 MiB, what may be fetched and not read yet; rounded up */

static struct bed bed;
static struct core *writer, *c;
static struct core_file *files[FILES];
static uint8_t *data, *back;
static char names[FILES][8];

static void setup(void)
{
    bed_setup(&bed, 3);
    writer = bed_mount(&bed, NULL);
    c = bed_mount(&bed, NULL);
    data = malloc(ROOM);
    back = malloc(MIB);
    bed_pattern(data, ROOM, 0, 1);
    for (unsigned k = 0; k < FILES; k++) {
        struct core_file *f;

        snprintf(names[k], sizeof names[k], "f%u", k);
        f = bed_create(&bed, writer, names[k]);
        ck_assert_int_eq(bed_write(&bed, writer, f, 0, data, ROOM), 0);
        ck_assert_int_eq(bed_fsync(&bed, writer, f), 0);
        core_release(writer, f);
    }
    bed_spin(&bed, 2 * NS_PER_S); /* closed: the other may have the lease */
    for (unsigned k = 0; k < FILES; k++)
        files[k] = bed_open(&bed, c, names[k], O_RDONLY, NULL);
}

static void teardown(void)
{
    for (unsigned k = 0; k < FILES; k++)
        if (files[k])
            core_release(c, files[k]);
    bed_unmount(&bed, c, false, 0);
    bed_unmount(&bed, writer, false, 0);
    free(data);
    free(back);
    bed_teardown(&bed);
}

static struct core_stats stats(void)
{
    struct core_stats s;

    core_get_stats(c, &s);
    return s;
}

static void expect(unsigned file, uint64_t at, uint32_t len)
{
    ck_assert_int_eq(bed_read(&bed, c, files[file], at, back, len), (int)len);
    ck_assert_int_eq(memcmp(back, data + at, len), 0);
}

START_TEST(records_at_equal_distances_are_right_and_come_in_advance)
{
    for (uint64_t at = 5000; at + 10000 <= ROOM; at += 300007)
        expect(0, at, 10000);
    ck_assert_uint_gt(stats().readahead_bytes, 0);
    ck_assert_uint_lt(stats().readahead_bytes, ROOM / 4); /* not what lies between */
}
END_TEST

START_TEST(a_file_read_backwards_is_right_and_comes_in_advance)
{
    for (uint64_t at = ROOM; at; at -= 64 * KIB)
        expect(1, at - 64 * KIB, 64 * KIB);
    ck_assert_uint_gt(stats().readahead_bytes, ROOM / 2);
    ck_assert_uint_le(stats().readahead_bytes, ROOM);
}
END_TEST

START_TEST(random_readers_fetch_nothing_in_advance)
{
    unsigned seed = 11;

    for (unsigned k = 0; k < 3 * FILES; k++) /* too few in one place to mean all of it */
        expect(k % FILES, 4096 + (uint64_t)rand_r(&seed) % (ROOM / 4096 - 1) * 4096, 4096);
    ck_assert_uint_eq(stats().readahead_bytes, 0);
}
END_TEST

static unsigned reads(void)
{
    unsigned n = 0;

    for (unsigned k = 0; k < bed.cluster.n_oss; k++)
        n += bed.cluster.oss[k].reads;
    return n;
}

START_TEST(what_was_said_to_be_needed_is_there_and_what_is_not_is_forgotten)
{
    unsigned before;
    uint64_t ahead;

    core_advise(files[2], 2 * MIB, 2 * MIB, CORE_ADVICE_WILLNEED);
    bed_spin(&bed, NS_PER_S);
    ck_assert_uint_eq(stats().readahead_bytes, 2 * MIB);
    before = reads();
    expect(2, 2 * MIB + 5000, 100000);
    expect(2, 4 * MIB - 4096, 4096);
    ck_assert_uint_eq(reads(), before);
    core_advise(files[2], 2 * MIB, 2 * MIB, CORE_ADVICE_DONTNEED);
    expect(2, 2 * MIB + 5000, 100000);
    ck_assert_uint_gt(reads(), before);
    ahead = stats().readahead_bytes;
    core_advise(files[3], 0, 0, CORE_ADVICE_RANDOM);
    expect(3, 0, 64 * KIB);
    expect(3, 64 * KIB, 64 * KIB);
    ck_assert_uint_eq(stats().readahead_bytes, ahead);
}
END_TEST

/* The most that was fetched and not yet read while n files were read side by side. */
static uint64_t most_ahead(unsigned first, unsigned n)
{
    uint64_t most = 0;

    for (uint64_t at = 0; at < ROOM - MIB; at += 128 * KIB) {
        for (unsigned k = first; k < first + n; k++) {
            expect(k, at, 128 * KIB);
            most = MAX(most, stats().ahead_bytes);
        }
    }
    return most;
}

START_TEST(streams_at_the_same_time_share_what_one_alone_has_in_advance)
{
    const uint64_t alone = most_ahead(0, 1);
    uint64_t left = stats().ahead_bytes;

    ck_assert_uint_gt(alone, 3 * MIB);
    bed_spin(&bed, NS_PER_S + NS_PER_S / 10); /* it rests */
    ck_assert_uint_le(most_ahead(1, 2) - left, alone + MIB / 2);
    left = stats().ahead_bytes;
    bed_spin(&bed, NS_PER_S + NS_PER_S / 10);
    ck_assert_uint_ge(most_ahead(3, 1) - left, 3 * MIB);
}
END_TEST

START_TEST(many_streams_share_the_budget_and_what_a_closed_one_left_is_free)
{
    const uint64_t most = most_ahead(0, FILES);

    ck_assert_uint_gt(most, 2 * MIB);
    ck_assert_uint_le(most, BUDGET + FILES * MIB); /* each may have its next block */
    ck_assert_uint_gt(stats().ahead_bytes, 0);
    for (unsigned k = 0; k < FILES; k++) {
        core_release(c, files[k]);
        files[k] = NULL;
    }
    ck_assert_uint_eq(stats().ahead_bytes, 0);
}
END_TEST

SUITE_MAIN("client-ahead", setup, teardown,
           records_at_equal_distances_are_right_and_come_in_advance,
           a_file_read_backwards_is_right_and_comes_in_advance,
           random_readers_fetch_nothing_in_advance,
           what_was_said_to_be_needed_is_there_and_what_is_not_is_forgotten,
           streams_at_the_same_time_share_what_one_alone_has_in_advance,
           many_streams_share_the_budget_and_what_a_closed_one_left_is_free)
