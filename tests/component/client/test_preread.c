/* SPDX-License-Identifier: Apache-2.0 */
/* Small files that come with their open, where those of their directory are read whole. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>

#include "tests/support/file_bed.h"
#include "tests/support/suite.h"

#define LEN   100000u
#define FILES 16u

static struct core *other;
static struct core_options options;

static const char *name_of(unsigned k)
{
    static char name[16];

    snprintf(name, sizeof name, "f%u", k);
    return name;
}

/* Nobody has anything of them. */
static void setup(void)
{
    file_bed_setup(3, LEN);
    for (unsigned k = 0; k < FILES; k++)
        core_release(c, stored_file(name_of(k), LEN));
    core_options_default(&options);
    options.readers_cache = true;
    file_bed_remount(&options);
    other = bed_mount(&bed, NULL);
}

static void teardown(void)
{
    bed_unmount(&bed, other, false, 0);
    file_bed_teardown();
}

static struct core_file *open_file(unsigned k, int flags, uint32_t *ret_whole)
{
    struct core_opened opened;
    struct core_file *f = bed_open(&bed, c, name_of(k), flags, &opened);

    *ret_whole = opened.whole;
    return f;
}

/* Opened, read up to there, and closed; how much came with the open? */
static uint32_t read_file(unsigned k, uint32_t len)
{
    uint32_t whole;
    struct core_file *f = open_file(k, O_RDONLY, &whole);

    expect_read(f, 0, data, len);
    core_release(c, f);
    return whole;
}

static unsigned reads(void)
{
    unsigned n = 0;

    for (unsigned k = 0; k < 3; k++)
        n += bed.cluster.oss[k].reads;
    return n;
}

START_TEST(after_two_that_were_read_whole_the_next_comes_with_its_open)
{
    struct core_file *f;
    uint32_t whole;
    unsigned before;

    ck_assert_uint_eq(read_file(0, LEN), 0);
    ck_assert_uint_eq(read_file(1, LEN), 0);
    before = reads();
    f = open_file(2, O_RDONLY, &whole);
    ck_assert_uint_eq(whole, LEN);
    bed_spin(&bed, 20 * NS_PER_MS);
    ck_assert_uint_gt(reads(), before); /* nobody has asked yet */
    before = reads();
    expect_read(f, 0, data, LEN);
    ck_assert(core_give_whole(f));
    ck_assert_uint_eq(reads(), before);
    core_release(c, f);
}
END_TEST

START_TEST(one_of_eight_is_not_given_so_that_its_reads_are_seen)
{
    unsigned given = 0;

    for (unsigned k = 0; k < 2 + 8; k++)
        given += read_file(k, LEN) == LEN;
    ck_assert_uint_eq(given, 7);
}
END_TEST

START_TEST(where_files_are_read_in_part_none_comes_with_its_open)
{
    for (unsigned k = 0; k < 4; k++)
        ck_assert_uint_eq(read_file(k, 4096), 0);
    ck_assert_uint_eq(read_file(4, LEN), 0);
    ck_assert_uint_eq(read_file(5, LEN), 0);
    ck_assert_uint_eq(read_file(6, LEN), 0);
}
END_TEST

START_TEST(nothing_comes_with_an_open_for_writing_or_past_the_cache)
{
    static const int flags[] = {O_RDWR, O_WRONLY, O_RDONLY | O_DIRECT};
    uint32_t whole;

    ck_assert_uint_eq(read_file(0, LEN), 0);
    ck_assert_uint_eq(read_file(1, LEN), 0);
    for (unsigned k = 0; k < ARRAY_LEN(flags); k++) {
        core_release(c, open_file(2 + k, flags[k], &whole));
        ck_assert_uint_eq(whole, 0);
    }
    ck_assert_uint_eq(read_file(5, LEN), LEN);
}
END_TEST

/* The kernel may have pages of it. */
START_TEST(nothing_comes_with_a_file_that_was_open_before)
{
    ck_assert_uint_eq(read_file(0, LEN), 0);
    ck_assert_uint_eq(read_file(1, LEN), 0);
    ck_assert_uint_eq(read_file(0, LEN), 0);
    ck_assert_uint_eq(read_file(1, LEN), 0);
    ck_assert_uint_eq(read_file(2, LEN), LEN);
    ck_assert_uint_eq(read_file(2, LEN), 0);
}
END_TEST

START_TEST(nothing_comes_with_a_file_that_was_open_before_and_was_changed_elsewhere)
{
    struct core_file *writer;

    ck_assert_uint_eq(read_file(0, LEN), 0);
    ck_assert_uint_eq(read_file(1, LEN), 0);
    ck_assert_uint_eq(read_file(2, LEN), LEN);
    writer = bed_open(&bed, other, name_of(2), O_RDWR, NULL);
    ck_assert_int_eq(bed_write(&bed, other, writer, 0, data, LEN), 0);
    ck_assert_int_eq(bed_fsync(&bed, other, writer), 0);
    core_release(other, writer);
    bed_spin(&bed, 100 * NS_PER_MS); /* it is closed */
    ck_assert_uint_eq(read_file(2, LEN), 0);
    ck_assert_uint_eq(read_file(3, LEN), LEN);
}
END_TEST

START_TEST(nothing_comes_without_a_lease)
{
    struct core_file *writer = bed_open(&bed, other, name_of(2), O_RDWR, NULL);
    struct core_file *reader = bed_open(&bed, other, name_of(3), O_RDONLY, NULL);

    ck_assert_uint_eq(read_file(0, LEN), 0);
    ck_assert_uint_eq(read_file(1, LEN), 0);
    ck_assert_uint_eq(read_file(2, LEN), 0);
    ck_assert_uint_eq(read_file(3, LEN), LEN);
    core_release(other, writer);
    core_release(other, reader);
}
END_TEST

START_TEST(nothing_comes_where_readers_keep_nothing)
{
    options.readers_cache = false;
    file_bed_remount(&options);
    for (unsigned k = 0; k < 5; k++)
        ck_assert_uint_eq(read_file(k, LEN), 0);
}
END_TEST

SUITE_MAIN("client-preread", setup, teardown,
           after_two_that_were_read_whole_the_next_comes_with_its_open,
           one_of_eight_is_not_given_so_that_its_reads_are_seen,
           where_files_are_read_in_part_none_comes_with_its_open,
           nothing_comes_with_an_open_for_writing_or_past_the_cache,
           nothing_comes_with_a_file_that_was_open_before,
           nothing_comes_with_a_file_that_was_open_before_and_was_changed_elsewhere,
           nothing_comes_without_a_lease, nothing_comes_where_readers_keep_nothing)
