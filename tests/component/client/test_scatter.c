/* SPDX-License-Identifier: Apache-2.0 */
/* Small overwrites all over a file: the memory they take, and that nothing of them is lost. */
#include <check.h>
#include <fcntl.h>
#include <string.h>

#include "common/base/err.h"
#include "tests/support/file_bed.h"
#include "tests/support/suite.h"

#define ROOM (12u * MIB)

static void setup(void)
{
    file_bed_setup(3, ROOM);
    memset(data, 0, ROOM);
}

static void mount_with(uint64_t memory)
{
    struct core_options o;

    core_options_default(&o);
    o.memory_limit = memory;
    file_bed_remount(&o);
}

static uint64_t memory_used(void)
{
    struct core_stats stats;

    core_get_stats(c, &stats);
    return stats.memory_used;
}

/* A file of holes: nothing of it is cached. */
static struct core_file *holes(const char *name, uint64_t size)
{
    struct core_file *f = bed_create(&bed, c, name);

    ck_assert_int_eq(bed_truncate(&bed, c, f, size), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    return f;
}

static void put(struct core_file *f, uint32_t at, uint32_t len, unsigned seed)
{
    bed_pattern(data + at, len, at, seed);
    ck_assert_int_eq(bed_write(&bed, c, f, at, data + at, len), 0);
}

START_TEST(small_overwrites_take_no_more_memory_than_their_pages)
{
    struct core_file *f;
    uint64_t before;

    mount_with(2 * GIB);
    f = holes("wide", (uint64_t)100 * MIB);
    before = memory_used();
    for (uint64_t k = 0; k < 100; k++)
        ck_assert_int_eq(
            bed_write(&bed, c, f, k * MIB + 4096 * (1 + k % 200), data + 4096 * (k % 3), 4096), 0);
    ck_assert_uint_le(memory_used() - before, 8 * MIB);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    core_release(c, f);
}
END_TEST

START_TEST(more_small_overwrites_than_there_are_pages_are_all_stored)
{
    struct core_file *f;
    unsigned seed = 3;

    mount_with(48 * MIB);
    f = holes("many", ROOM);
    for (unsigned k = 0; k < 1500; k++)
        put(f, (uint32_t)rand_r(&seed) % (ROOM / 4096) * 4096, 4096, k);
    ck_assert_uint_le(memory_used(), 48 * MIB);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "many", data, ROOM);
    core_release(c, f);
}
END_TEST

START_TEST(what_is_scattered_is_read_before_and_after_it_is_stored)
{
    struct core_file *f;

    mount_with(2 * GIB);
    f = holes("read", ROOM);
    for (unsigned k = 0; k < 11; k++)
        put(f, k * MIB + 5000 + 70000 * (k % 7), 1 + 1500 * k, k); /* some over a page's end */
    expect_read(f, 0, data, 4 * MIB);
    expect_read(f, 5 * MIB + 5000, data + 5 * MIB + 5000, 100);
    put(f, 3 * MIB + 5100, 50, 77); /* in what is an ordinary block by now */
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    for (unsigned k = 0; k < 11; k += 3)
        expect_read(f, k * MIB, data + k * MIB, MIB);
    bed_expect_durable(&bed, "read", data, ROOM);
    core_release(c, f);
}
END_TEST

START_TEST(a_restart_of_the_targets_loses_no_scattered_write)
{
    struct core_file *f;

    mount_with(2 * GIB);
    f = holes("restart", ROOM);
    for (unsigned round = 0; round < 6; round++) {
        for (unsigned k = 0; k < 60; k++)
            put(f, (k * 397 + round * 11) % 3000 * 4096 + 512, 3000, round);
        ck_assert_int_eq(bed_flush(&bed, c, f), 0);
        fake_oss_restart(&bed.cluster.oss[round % 3]);
        put(f, 4096 * 100 + 10, 20, round);
    }
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "restart", data, ROOM);
    core_release(c, f);
}
END_TEST

START_TEST(a_cut_takes_what_is_scattered_behind_it)
{
    struct core_file *f;
    uint32_t cut = 2 * MIB + 3 * 4096 + 100;

    mount_with(2 * GIB);
    f = holes("cut", ROOM);
    for (unsigned k = 0; k < 10; k++)
        put(f, 2 * MIB + 4096 * (2 * k + 1), 4096, k);
    ck_assert_int_eq(bed_flush(&bed, c, f), 0);
    put(f, 2 * MIB + 4096, 10, 50);
    put(f, 5 * MIB, 4096, 51);
    ck_assert_int_eq(bed_truncate(&bed, c, f, cut), 0);
    ck_assert_int_eq(bed_truncate(&bed, c, f, ROOM), 0);
    memset(data + cut, 0, ROOM - cut);
    expect_read(f, MIB, data + MIB, 5 * MIB);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "cut", data, ROOM);
    core_release(c, f);
}
END_TEST

START_TEST(a_block_that_fills_up_becomes_an_ordinary_one)
{
    struct core_file *f;

    mount_with(2 * GIB);
    f = holes("full", ROOM);
    for (unsigned k = 0; k < 200; k++)
        put(f, MIB + (k * 67 % 256) * 4096, 4096, k); /* one block, in no order */
    expect_read(f, MIB, data + MIB, MIB);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "full", data, ROOM);
    core_release(c, f);
}
END_TEST

#define AT_ONCE 64u

/* Of a round all write the same bytes at the same place, in whichever order they come to it. */
static void write_at_once(struct core_file *f, unsigned round, unsigned *seed)
{
    static struct bed_op ops[AT_ONCE];
    static struct iovec iov[AT_ONCE];

    for (unsigned k = 0; k < AT_ONCE; k++) {
        uint32_t len = 1 + (uint32_t)rand_r(seed) % (k % 8 ? 5000 : 40000);
        uint32_t at = (uint32_t)rand_r(seed) % (ROOM - len);

        if (k % 4 == 3)
            at = at % 5 * MIB + at % 9 * 3000; /* where others are, too */
        bed_pattern(data + at, len, at, round);
        iov[k] = (struct iovec){data + at, len};
        bed_op_init(&ops[k]);
        core_write(c, &ops[k].q, f, at, &iov[k], 1, len);
    }
    for (unsigned k = 0; k < AT_ONCE; k++)
        ck_assert_int_eq(bed_wait(&bed, &ops[k]), 0);
}

START_TEST(many_at_once_in_little_memory_lose_nothing_when_targets_restart)
{
    struct core_file *f;
    unsigned seed = 11;

    mount_with(48 * MIB);
    f = holes("at-once", ROOM);
    for (unsigned round = 0; round < 40; round++) {
        write_at_once(f, round, &seed);
        if (round % 3 == 1)
            expect_read(f, round % 11 * MIB + 3000, data + round % 11 * MIB + 3000, 70000);
        if (round % 5 == 2)
            ck_assert_int_eq(bed_flush(&bed, c, f), 0);
        if (round % 4 == 3)
            fake_oss_restart(&bed.cluster.oss[round % 3]);
    }
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "at-once", data, ROOM);
    core_release(c, f);
}
END_TEST

SUITE_MAIN("client-scatter", setup, file_bed_teardown,
           small_overwrites_take_no_more_memory_than_their_pages,
           more_small_overwrites_than_there_are_pages_are_all_stored,
           what_is_scattered_is_read_before_and_after_it_is_stored,
           a_restart_of_the_targets_loses_no_scattered_write,
           a_cut_takes_what_is_scattered_behind_it, a_block_that_fills_up_becomes_an_ordinary_one,
           many_at_once_in_little_memory_lose_nothing_when_targets_restart)
