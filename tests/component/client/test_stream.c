/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream of writes: what is stored is committed before anybody waits for memory, what is under
 * way to targets that do not answer is a part of the memory only, and more memory is taken only
 * when targets would be idle without.
 */
#include <check.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/client_bed.h"
#include "tests/support/suite.h"

#define TARGETS 3u
#define FIRST   (TARGETS * MIB)
#define ROOM    (16u * MIB)
#define AHEAD   (2u * MIB) /* of 96 MiB: stored on a target, then committed */
#define FLIGHT  3u         /* of 96 MiB: writes of 1 MiB that a target may have at once */
#define AMPLE   (512u * MIB)
#define BEGIN   (16u * MIB) /* what streams take without asking */
#define MANY    64u
#define RECORD  47008u
#define RANKS   8u

static struct bed bed;
static struct core *c;
static struct core_file *f;
static uint8_t *data;

static struct bed_op ops[MANY];

static void begin(const struct core_options *o)
{
    bed_setup(&bed, TARGETS);
    c = bed_mount(&bed, o);
    data = malloc(ROOM);
    bed_pattern(data, ROOM, 0, 1);
    f = bed_create(&bed, c, "stream");
    for (unsigned k = 0; k < 2; k++) { /* striped; the targets have promised room; in memory */
        ck_assert_int_eq(bed_write(&bed, c, f, 0, data, FIRST), 0);
        ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    }
}

static void setup(void)
{
    begin(NULL);
}

static void again_with_ample_memory(void)
{
    struct core_options o;

    core_release(c, f);
    bed_unmount(&bed, c, false, 0);
    free(data);
    bed_teardown(&bed);
    core_options_default(&o);
    o.memory_limit = AMPLE;
    begin(&o);
}

static void teardown(void)
{
    core_release(c, f);
    bed_unmount(&bed, c, false, 0);
    free(data);
    bed_teardown(&bed);
}

static void stream(uint32_t from, uint32_t to)
{
    for (uint32_t at = from; at < to; at += MIB)
        ck_assert_int_eq(bed_write(&bed, c, f, at, data + at, MIB), 0);
}

static void expect_durable(uint32_t len)
{
    bed_expect_durable(&bed, "stream", data, len);
}

START_TEST(what_is_stored_is_committed_long_before_memory_is_spent)
{
    unsigned before[TARGETS];
    struct core_stats stats;

    for (unsigned k = 0; k < TARGETS; k++)
        before[k] = bed.cluster.oss[k].commits;
    stream(FIRST, FIRST + TARGETS * AHEAD);
    bed_spin(&bed, 10 * NS_PER_MS); /* much less than the age at which anything is committed */
    core_get_stats(c, &stats);
    ck_assert_uint_eq(stats.dirty_bytes, 0);
    ck_assert_uint_eq(stats.uncommitted_bytes, 0);
    for (unsigned k = 0; k < TARGETS; k++)
        ck_assert_uint_gt(bed.cluster.oss[k].commits, before[k]);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    expect_durable(FIRST + TARGETS * AHEAD);
}
END_TEST

START_TEST(what_a_target_says_is_durable_is_neither_kept_nor_committed)
{
    unsigned before[TARGETS];
    struct core_stats stats;

    for (unsigned k = 0; k < TARGETS; k++) {
        bed.cluster.oss[k].commits_at_once = true;
        before[k] = bed.cluster.oss[k].commits;
    }
    for (uint32_t at = FIRST; at < ROOM; at += MIB) {
        ck_assert_int_eq(bed_write(&bed, c, f, at, data + at, MIB), 0);
        bed_spin(&bed, NS_PER_MS);
        core_get_stats(c, &stats);
        ck_assert_uint_eq(stats.dirty_bytes, 0);
        ck_assert_uint_eq(stats.uncommitted_bytes, 0);
    }
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    for (unsigned k = 0; k < TARGETS; k++)
        ck_assert_uint_eq(bed.cluster.oss[k].commits, before[k]);
    expect_durable(ROOM);
}
END_TEST

START_TEST(streams_side_by_side_are_committed_together)
{
    struct core_file *files[AHEAD / MIB];
    struct core_stats stats;

    for (unsigned k = 0; k < AHEAD / MIB; k++) {
        char name[16];

        snprintf(name, sizeof name, "side%u", k);
        files[k] = bed_create(&bed, c, name);
        ck_assert_int_eq(bed_write(&bed, c, files[k], 0, data, FIRST), 0);
        ck_assert_int_eq(bed_fsync(&bed, c, files[k]), 0);
    }
    for (unsigned k = 0; k < AHEAD / MIB; k++) /* a part of AHEAD on each target */
        for (uint32_t at = FIRST; at < 2 * FIRST; at += MIB)
            ck_assert_int_eq(bed_write(&bed, c, files[k], at, data + at, MIB), 0);
    bed_spin(&bed, 10 * NS_PER_MS);
    core_get_stats(c, &stats);
    ck_assert_uint_eq(stats.dirty_bytes, 0);
    ck_assert_uint_eq(stats.uncommitted_bytes, 0);
    for (unsigned k = 0; k < AHEAD / MIB; k++)
        core_release(c, files[k]);
}
END_TEST

START_TEST(targets_that_do_not_answer_have_a_part_of_the_memory)
{
    for (unsigned k = 0; k < TARGETS; k++)
        bed.cluster.oss[k].hold = true;
    stream(FIRST, ROOM);
    bed_spin(&bed, 10 * NS_PER_MS);
    for (unsigned k = 0; k < TARGETS; k++)
        ck_assert_uint_eq(bed.cluster.oss[k].held_now, FLIGHT);
    for (unsigned k = 0; k < TARGETS; k++)
        fake_oss_release(&bed.cluster.oss[k]);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    expect_durable(ROOM);
}
END_TEST

static uint64_t memory_used(void)
{
    struct core_stats stats;

    core_get_stats(c, &stats);
    return stats.memory_used;
}

/* Writes of all that MANY holds, while nobody answers: how many of them ended. */
static unsigned begin_many(struct iovec *iov)
{
    unsigned n_done = 0;

    for (unsigned k = 0; k < TARGETS; k++)
        bed.cluster.oss[k].hold = true;
    for (unsigned k = 0; k < MANY; k++) {
        iov[k] = (struct iovec){data + k % 16 * MIB, MIB};
        bed_op_init(&ops[k]);
        core_write(c, &ops[k].q, f, (uint64_t)k * MIB, &iov[k], 1, MIB);
    }
    bed_spin(&bed, 100 * NS_PER_MS); /* less than the age at which what is dirty is sent */
    for (unsigned k = 0; k < MANY; k++)
        n_done += ops[k].done;
    return n_done;
}

static void end_many(void)
{
    for (unsigned k = 0; k < TARGETS; k++)
        fake_oss_release(&bed.cluster.oss[k]);
    for (unsigned k = 0; k < MANY; k++)
        ck_assert_int_eq(bed_wait(&bed, &ops[k]), 0);
}

START_TEST(targets_that_commit_at_once_are_kept_busy_with_little_memory)
{
    static struct iovec iov[MANY];
    unsigned n_done;

    again_with_ample_memory();
    for (unsigned k = 0; k < TARGETS; k++)
        bed.cluster.oss[k].commits_at_once = true;
    stream(FIRST, 2 * FIRST); /* their answers tell */
    bed_spin(&bed, 10 * NS_PER_MS);
    n_done = begin_many(iov);
    ck_assert_uint_ge(n_done, TARGETS * 2);
    ck_assert_uint_lt(n_done, BEGIN / MIB - FIRST / MIB);
    ck_assert_uint_lt(memory_used(), BEGIN);
    end_many();
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
}
END_TEST

START_TEST(targets_that_do_not_answer_get_no_more_memory_than_they_can_use)
{
    static struct iovec iov[MANY];
    unsigned n_done;

    again_with_ample_memory();
    n_done = begin_many(iov);
    ck_assert_uint_ge(n_done, BEGIN / MIB - FIRST / MIB);
    ck_assert_uint_le(n_done, BEGIN / MIB);
    ck_assert_uint_lt(memory_used(), BEGIN + 4 * MIB);
    end_many();
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    ck_assert_uint_eq(fake_inode(&bed.cluster, "stream")->attr.size, MANY * MIB);
}
END_TEST

START_TEST(targets_whose_commits_take_long_are_kept_busy_with_more_memory)
{
    again_with_ample_memory();
    for (unsigned k = 0; k < TARGETS; k++)
        bed.cluster.oss[k].hold_commits = true;
    for (unsigned k = 0; k < 2 * BEGIN / MIB; k++)
        ck_assert_int_eq(bed_write(&bed, c, f, (uint64_t)k * MIB, data + k % 16 * MIB, MIB), 0);
    ck_assert_uint_ge(memory_used(), 2 * BEGIN - 4 * MIB);
    for (unsigned k = 0; k < TARGETS; k++)
        fake_oss_release(&bed.cluster.oss[k]);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    ck_assert_uint_eq(fake_inode(&bed.cluster, "stream")->attr.size, 2 * BEGIN);
}
END_TEST

/* The thread has a clock of its own. */
static void wait_for_thread(struct bed_op *op)
{
    while (!op->done) {
        bed_spin(&bed, NS_PER_MS);
        sched_yield();
    }
}

static struct core *mount_with_thread(struct core_file **ret_file)
{
    struct core_options o;
    struct core *second;

    core_options_default(&o);
    o.memory_limit = AMPLE;
    o.memory_threads = 1;
    second = bed_mount(&bed, &o);
    *ret_file = bed_create(&bed, second, "other");
    return second;
}

START_TEST(a_thread_touches_memory_while_the_reactor_goes_on)
{
    struct core_file *other;
    struct core *second = mount_with_thread(&other);

    for (uint32_t at = 0; at < ROOM; at += MIB) {
        struct iovec iov = {data + at, MIB};

        bed_op_init(&ops[0]);
        core_write(second, &ops[0].q, other, at, &iov, 1, MIB);
        wait_for_thread(&ops[0]);
    }
    ck_assert_int_eq(bed_fsync(&bed, second, other), 0);
    core_release(second, other);
    bed_op_init(&ops[0]);
    core_unmount(second, &ops[0].q, false);
    wait_for_thread(&ops[0]);
    core_destroy(second);
}
END_TEST

START_TEST(an_unmount_waits_for_memory_that_is_being_touched)
{
    struct core_file *other;
    struct core *second = mount_with_thread(&other);
    struct iovec iov = {data, MIB};

    bed_op_init(&ops[0]);
    bed_op_init(&ops[1]);
    core_write(second, &ops[0].q, other, 0, &iov, 1, MIB);
    ck_assert(!ops[0].done); /* its memory comes in a later turn */
    core_release(second, other);
    core_unmount(second, &ops[1].q, true);
    wait_for_thread(&ops[1]);
    ck_assert(ops[0].done);
    core_destroy(second);
}
END_TEST

/* ---- writers that are not in step ---- */

static unsigned ranges_written(void)
{
    unsigned sum = 0;

    for (unsigned k = 0; k < TARGETS; k++)
        sum += bed.cluster.oss[k].write_ranges;
    return sum;
}

static void record(unsigned k)
{
    uint32_t at = FIRST + k * RECORD, len = MIN(RECORD, ROOM - at);

    ck_assert_int_eq(bed_write(&bed, c, f, at, data + at, len), 0);
}

START_TEST(records_that_come_in_no_order_leave_as_whole_blocks)
{
    unsigned n = (ROOM - FIRST + RECORD - 1) / RECORD, before = ranges_written();

    for (unsigned k = 0; k < n; k += RANKS) /* of each turn the last rank comes first */
        for (unsigned rank = RANKS; rank-- > 0;)
            if (k + rank < n)
                record(k + rank);
    bed_spin(&bed, NS_PER_MS);
    ck_assert_uint_eq(ranges_written() - before, (ROOM - FIRST) / MIB);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    expect_durable(ROOM);
}
END_TEST

START_TEST(what_is_left_out_keeps_the_rest_of_its_block_for_a_while_only)
{
    unsigned before = ranges_written(), n = 24;
    struct core_stats stats;

    for (uint64_t k = 0; k < n; k++) { /* of each block a page in the middle */
        uint64_t at = FIRST + k * MIB;

        ck_assert_int_eq(bed_write(&bed, c, f, at, data, MIB / 2), 0);
        ck_assert_int_eq(bed_write(&bed, c, f, at + MIB / 2 + 4096, data, MIB / 2 - 4096), 0);
    }
    bed_spin(&bed, NS_PER_MS);
    core_get_stats(c, &stats);
    ck_assert_uint_le(stats.dirty_bytes, 16 * MIB);
    ck_assert_uint_ge(ranges_written() - before, 2 * (n - 16));
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    ck_assert_uint_eq(ranges_written() - before, 2 * n);
}
END_TEST

SUITE_MAIN("client-stream", setup, teardown,
           what_is_stored_is_committed_long_before_memory_is_spent,
           what_a_target_says_is_durable_is_neither_kept_nor_committed,
           streams_side_by_side_are_committed_together,
           targets_that_do_not_answer_have_a_part_of_the_memory,
           targets_that_do_not_answer_get_no_more_memory_than_they_can_use,
           targets_whose_commits_take_long_are_kept_busy_with_more_memory,
           targets_that_commit_at_once_are_kept_busy_with_little_memory,
           a_thread_touches_memory_while_the_reactor_goes_on,
           an_unmount_waits_for_memory_that_is_being_touched,
           records_that_come_in_no_order_leave_as_whole_blocks,
           what_is_left_out_keeps_the_rest_of_its_block_for_a_while_only)
