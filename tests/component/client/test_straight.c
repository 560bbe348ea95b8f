/* SPDX-License-Identifier: Apache-2.0 */
/* Large writes that leave from the caller's memory: when they do, what others who touch the same
 * bytes see of it, and what is left when they fail. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "tests/support/file_bed.h"
#include "tests/support/suite.h"

#define TARGETS 3u
#define BLOCKS  6u
#define ROOM    (BLOCKS * MIB)

static struct core_file *f;
static uint8_t *fresh; /* what is written over data */

/* A file of ROOM bytes of data, of which nothing is cached. */
static void setup(void)
{
    file_bed_setup(TARGETS, ROOM + MIB);
    for (unsigned k = 0; k < TARGETS; k++)
        bed.cluster.oss[k].commits_at_once = true;
    core_release(c, stored_file("f", ROOM));
    file_bed_remount(NULL);
    f = bed_open(&bed, c, "f", O_RDWR, NULL);
    fresh = malloc(ROOM);
    ck_assert(fresh);
    bed_pattern(fresh, ROOM, 7, 9);
}

static void teardown(void)
{
    if (c)
        core_release(c, f);
    file_bed_teardown();
    free(fresh);
}

static uint64_t straight_writes(void)
{
    struct core_stats stats;

    core_get_stats(c, &stats);
    return stats.straight_writes;
}

static struct iovec iovs[BLOCKS + 1];

static void write_later(struct bed_op *op, unsigned block)
{
    iovs[block] = (struct iovec){fresh + block * MIB, MIB};
    bed_op_init(op);
    op->q.direct = true;
    core_write(c, &op->q, f, (uint64_t)block * MIB, &iovs[block], 1, MIB);
}

static int write_block(unsigned block)
{
    struct bed_op op;

    write_later(&op, block);
    return bed_wait(&bed, &op);
}

/* They have told that they commit at once. */
static void targets_have_told(void)
{
    for (unsigned k = 0; k < 2 * TARGETS; k++)
        ck_assert_int_eq(write_block(k), 0);
    memcpy(data, fresh, ROOM);
    bed_pattern(fresh, ROOM, 3, 5);
}

static void expect_durable_block(unsigned block)
{
    fake_contents(&bed.cluster, fake_inode(&bed.cluster, "f"), (uint64_t)block * MIB, back, MIB,
                  true);
    ck_assert_int_eq(memcmp(back, fresh + block * MIB, MIB), 0);
}

/* One is under way: its target has it and does not answer. */
static void begin_held(struct bed_op *op, unsigned block)
{
    targets_have_told();
    fake_targets_hold(&bed.cluster);
    write_later(op, block);
    bed_spin(&bed, 10 * NS_PER_MS);
    ck_assert(!op->done);
}

static void end_held(struct bed_op *op)
{
    ck_assert(!op->done);
    fake_targets_release(&bed.cluster);
    ck_assert_int_eq(bed_wait(&bed, op), 0);
}

START_TEST(a_large_write_is_durable_when_it_is_over_and_takes_no_memory)
{
    uint64_t before = straight_writes();
    struct core_stats stats;

    for (unsigned k = 0; k < BLOCKS; k++) {
        ck_assert_int_eq(write_block(k), 0);
        expect_durable_block(k);
    }
    ck_assert_uint_eq(straight_writes(), before + BLOCKS);
    core_get_stats(c, &stats);
    ck_assert_uint_eq(stats.dirty_bytes + stats.uncommitted_bytes, 0);
    expect_read(f, 0, fresh, ROOM);
    for (unsigned k = 0; k < TARGETS; k++)
        bed.cluster.oss[k].commits = 0;
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    for (unsigned k = 0; k < TARGETS; k++)
        ck_assert_uint_eq(bed.cluster.oss[k].commits, 0);
}
END_TEST

START_TEST(a_new_file_grows_at_once_for_large_writes)
{
    uint64_t before;

    targets_have_told();
    core_release(c, f);
    f = bed_create(&bed, c, "new");
    before = straight_writes();
    for (unsigned k = 0; k < 2; k++)
        ck_assert_int_eq(write_block(k), 0);
    ck_assert_uint_eq(straight_writes(), before);
    bed_spin(&bed, 10 * NS_PER_MS); /* much less than the age at which anything is written back */
    ck_assert(!(fake_inode(&bed.cluster, "new")->attr.flags & MSG_ATTR_INLINE));
    for (unsigned k = 2; k < BLOCKS; k++)
        ck_assert_int_eq(write_block(k), 0);
    ck_assert_uint_eq(straight_writes(), before + BLOCKS - 2);
    expect_read(f, 0, fresh, ROOM);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "new", fresh, ROOM);
}
END_TEST

/* The flush that it asks for finds at once that the file cannot grow. */
START_TEST(none_leaves_for_a_growth_that_is_given_up)
{
    unsigned writes = 0;
    struct bed_op op;

    targets_have_told();
    core_release(c, f);
    f = stored_file("small", 1000);
    fake_targets_fail_writes(&bed.cluster, -ENOSPC);
    ck_assert_int_eq(bed_write(&bed, c, f, 1000, data + 1000, MIB - 1000), 0);
    bed_spin(&bed, 10 * NS_PER_MS);
    fake_targets_fail_writes(&bed.cluster, 0);
    for (unsigned k = 0; k < TARGETS; k++)
        writes += bed.cluster.oss[k].writes;
    bed.cluster.mds_hold = true;
    write_later(&op, 1);
    bed_spin(&bed, 10 * NS_PER_MS);
    for (unsigned k = 0; k < TARGETS; k++)
        writes -= bed.cluster.oss[k].writes;
    ck_assert_uint_eq(writes, 0);
    fake_mds_release(&bed.cluster);
    ck_assert_int_eq(bed_wait(&bed, &op), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), -ENOSPC); /* of what was lost */
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    memset(data + 1000, 0, MIB - 1000);
    memcpy(data + MIB, fresh + MIB, MIB);
    bed_expect_durable(&bed, "small", data, 2 * MIB);
}
END_TEST

START_TEST(what_was_answered_without_being_durable_is_copied)
{
    uint8_t *theirs = malloc(MIB);
    struct iovec iov = {theirs, MIB};

    for (unsigned k = 0; k < TARGETS; k++)
        bed.cluster.oss[k].commits_at_once = false;
    for (unsigned k = 0; k < BLOCKS; k++) {
        struct bed_op op;

        memcpy(theirs, fresh + k * MIB, MIB);
        bed_op_init(&op);
        op.q.direct = true;
        core_write(c, &op.q, f, (uint64_t)k * MIB, &iov, 1, MIB);
        ck_assert_int_eq(bed_wait(&bed, &op), 0);
        memset(theirs, 0xee, MIB);
        fake_targets_restart(&bed.cluster); /* what was not committed is gone */
    }
    ck_assert_uint_lt(straight_writes(), BLOCKS);
    expect_read(f, 0, fresh, ROOM);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "f", fresh, ROOM);
    free(theirs);
}
END_TEST

/* The copy, less than a block, has not been sent when it is cut, but the target has what came
 * first, and the server has targets cut what it knows of. */
START_TEST(what_was_answered_without_being_durable_is_cut_with_the_file)
{
    struct core_options o;
    struct iovec iov = {fresh, 4096};
    struct bed_op op;

    core_options_default(&o);
    o.straight_bytes = 4096;
    core_release(c, f);
    file_bed_remount(&o);
    f = bed_open(&bed, c, "f", O_RDWR, NULL);
    for (unsigned k = 0; k < TARGETS; k++) {
        bed.cluster.oss[k].commits_at_once = false;
        bed.cluster.oss[k].grant = MIB; /* else the copy would go at once, too */
        ck_assert_int_eq(bed_write(&bed, c, f, k * MIB, data + k * MIB, 100), 0);
    }
    bed_op_init(&op);
    op.q.direct = true;
    core_write(c, &op.q, f, ROOM, &iov, 1, 4096);
    ck_assert_int_eq(bed_wait(&bed, &op), 0);
    bed.cluster.fail_setattr = -EIO;
    ck_assert_int_eq(bed_truncate(&bed, c, f, ROOM), -EIO);
    ck_assert_uint_eq(fake_inode(&bed.cluster, "f")->attr.size, ROOM + 4096);
    bed.cluster.fail_setattr = 0;
    ck_assert_int_eq(bed_truncate(&bed, c, f, ROOM), 0);
    expect_read(f, 0, data, ROOM);
}
END_TEST

START_TEST(once_targets_have_said_that_they_do_not_commit_large_writes_are_copied_at_once)
{
    struct bed_op op;

    for (unsigned k = 0; k < TARGETS; k++)
        bed.cluster.oss[k].commits_at_once = false;
    targets_have_told();
    fake_targets_hold(&bed.cluster);
    write_later(&op, 1);
    ck_assert_int_eq(bed_wait(&bed, &op), 0);
    fake_targets_release(&bed.cluster);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    expect_durable_block(1);
}
END_TEST

START_TEST(a_write_whose_target_restarts_is_sent_again_from_the_callers_memory)
{
    struct bed_op op;

    begin_held(&op, 1);
    fake_targets_restart(&bed.cluster);
    end_held(&op);
    expect_durable_block(1);
}
END_TEST

START_TEST(who_reads_the_same_bytes_waits_and_nothing_is_read_ahead_there)
{
    struct core_file *other = bed_open(&bed, c, "f", O_RDONLY, NULL);
    struct bed_op op, read;

    begin_held(&op, 2);
    for (unsigned k = 0; k < TARGETS; k++)
        bed.cluster.oss[k].hold = bed.cluster.oss[k].held_now > 0;
    read_later(&read, f, 2 * MIB + 4096, 4096);
    for (unsigned k = 0; k < 2; k++) /* a stream, towards it */
        ck_assert_int_eq(bed_read(&bed, c, other, k * MIB, back, MIB), (int)MIB);
    bed_spin(&bed, 10 * NS_PER_MS);
    ck_assert(!read.done);
    end_held(&op);
    ck_assert_int_eq(bed_wait(&bed, &read), 0);
    ck_assert_int_eq(memcmp(read.q.out.read.iov[0].iov_base, fresh + 2 * MIB + 4096, 4096), 0);
    core_read_done(&read.q);
    memcpy(data + 2 * MIB, fresh + 2 * MIB, MIB);
    expect_read(other, 0, data, ROOM);
    core_release(c, other);
}
END_TEST

START_TEST(a_small_write_of_the_same_block_goes_behind_it)
{
    struct iovec iov = {data, 100};
    struct bed_op op, small;

    begin_held(&op, 1);
    bed_op_init(&small);
    core_write(c, &small.q, f, MIB + 5000, &iov, 1, 100);
    bed_spin(&bed, 10 * NS_PER_MS);
    ck_assert(!small.done);
    end_held(&op);
    ck_assert_int_eq(bed_wait(&bed, &small), 0);
    memcpy(fresh + MIB + 5000, data, 100);
    expect_read(f, MIB, fresh + MIB, MIB);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    expect_durable_block(1);
}
END_TEST

START_TEST(a_block_that_is_dirty_takes_the_write_as_a_copy)
{
    uint64_t before;

    targets_have_told();
    before = straight_writes();
    fake_targets_hold(&bed.cluster);
    ck_assert_int_eq(bed_write(&bed, c, f, MIB + 5000, data, 100), 0);
    ck_assert_int_eq(write_block(1), 0);
    ck_assert_uint_eq(straight_writes(), before);
    fake_targets_release(&bed.cluster);
    expect_read(f, MIB, fresh + MIB, MIB);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    expect_durable_block(1);
}
END_TEST

START_TEST(what_was_cached_of_its_block_is_not_read_any_more)
{
    targets_have_told();
    expect_read(f, 0, data, ROOM);
    for (unsigned k = 0; k < BLOCKS; k++)
        ck_assert_int_eq(write_block(k), 0);
    expect_read(f, 0, fresh, ROOM);
}
END_TEST

START_TEST(an_append_goes_behind_what_makes_the_file_longer)
{
    struct core_file *appender = bed_open(&bed, c, "f", O_RDWR | O_APPEND, NULL);
    struct iovec iov = {data, 100};
    struct bed_op op, append;
    uint64_t size;

    targets_have_told();
    ck_assert_int_eq(bed_truncate(&bed, c, f, 5 * MIB), 0);
    fake_targets_hold(&bed.cluster);
    write_later(&op, 5);
    bed_op_init(&append);
    core_write(c, &append.q, appender, 0, &iov, 1, 100);
    bed_spin(&bed, 10 * NS_PER_MS);
    ck_assert(!append.done);
    end_held(&op);
    ck_assert_int_eq(bed_wait(&bed, &append), 0);
    ck_assert_uint_eq(append.q.out.write.offset, 6 * MIB);
    ck_assert_int_eq(bed_size(&bed, c, core_file_ino(f), &size), 0);
    ck_assert_uint_eq(size, 6 * MIB + 100);
    core_release(c, appender);
}
END_TEST

START_TEST(a_truncate_waits_for_it)
{
    struct msg_setattr_req set = {.ino = core_file_ino(f), .set = MSG_SET_SIZE, .size = MIB};
    struct bed_op op, cut;

    begin_held(&op, 1);
    bed_op_init(&cut);
    core_setattr(c, &cut.q, &set, f);
    bed_spin(&bed, 10 * NS_PER_MS);
    ck_assert(!cut.done);
    end_held(&op);
    ck_assert_int_eq(bed_wait(&bed, &cut), 0);
    bed_expect_durable(&bed, "f", data, MIB);
}
END_TEST

START_TEST(another_client_gets_the_file_when_it_is_over)
{
    struct core *other = bed_mount(&bed, NULL);
    struct bed_op op, open;

    begin_held(&op, 1);
    bed_op_init(&open);
    core_open(other, &open.q, core_file_ino(f), O_RDWR);
    bed_spin(&bed, 10 * NS_PER_MS);
    ck_assert(!open.done);
    end_held(&op);
    ck_assert_int_eq(bed_wait(&bed, &open), 0);
    ck_assert_int_eq(bed_read(&bed, other, open.q.out.opened.file, MIB, back, MIB), (int)MIB);
    ck_assert_int_eq(memcmp(back, fresh + MIB, MIB), 0);
    core_release(other, open.q.out.opened.file);
    bed_unmount(&bed, other, false, 0);
}
END_TEST

START_TEST(its_error_is_the_callers_alone)
{
    uint64_t size;

    targets_have_told();
    fake_targets_fail_writes(&bed.cluster, -ENOSPC);
    ck_assert_int_eq(write_block(5), -ENOSPC);
    fake_targets_fail_writes(&bed.cluster, 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    ck_assert_int_eq(bed_size(&bed, c, core_file_ino(f), &size), 0);
    ck_assert_uint_eq(size, ROOM);
    ck_assert_int_eq(write_block(5), 0);
    expect_durable_block(5);
}
END_TEST

START_TEST(memory_that_changes_while_it_is_sent_is_copied)
{
    uint64_t before;

    targets_have_told();
    before = straight_writes();
    for (unsigned k = 0; k < TARGETS; k++) {
        bed.cluster.oss[k].fail_writes = -AIFS_ECHECKSUM;
        bed.cluster.oss[k].fail_writes_n = 1;
    }
    ck_assert_int_eq(write_block(1), 0);
    ck_assert_uint_eq(straight_writes(), before);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    expect_durable_block(1);
}
END_TEST

START_TEST(a_lost_session_is_an_error_of_it_and_nothing_comes_later)
{
    unsigned writes = 0;
    struct bed_op op;

    begin_held(&op, 1);
    fake_mds_forget_sessions(&bed.cluster);
    fake_mds_break_links(&bed.cluster);
    ck_assert_int_eq(bed_wait(&bed, &op), -EIO);
    for (unsigned k = 0; k < TARGETS; k++)
        writes += bed.cluster.oss[k].writes;
    fake_targets_release(&bed.cluster);
    bed_spin(&bed, 5 * NS_PER_S);
    for (unsigned k = 0; k < TARGETS; k++)
        writes -= bed.cluster.oss[k].writes;
    ck_assert_uint_eq(-writes, 1); /* what was held there */
    ck_assert_int_eq(write_block(1), 0);
    (void)bed_fsync(&bed, c, f);
    expect_durable_block(1);
}
END_TEST

START_TEST(it_can_be_interrupted_and_others_go_on)
{
    struct bed_op op, read;

    begin_held(&op, 1);
    read_later(&read, f, MIB, 4096);
    bed_spin(&bed, 10 * NS_PER_MS);
    core_cancel(&op.q);
    ck_assert_int_eq(bed_wait(&bed, &op), -EINTR);
    ck_assert(!read.done);
    fake_targets_release(&bed.cluster);
    ck_assert_int_eq(bed_wait(&bed, &read), 0);
    core_read_done(&read.q);
}
END_TEST

START_TEST(who_waits_for_it_can_be_interrupted)
{
    struct bed_op op, read;

    begin_held(&op, 1);
    read_later(&read, f, MIB, 4096);
    bed_spin(&bed, 10 * NS_PER_MS);
    core_cancel(&read.q);
    ck_assert_int_eq(bed_wait(&bed, &read), -EINTR);
    end_held(&op);
    expect_durable_block(1);
}
END_TEST

START_TEST(a_forced_unmount_ends_it)
{
    struct bed_op op, read;

    begin_held(&op, 1);
    read_later(&read, f, MIB, 4096);
    core_release(c, f);
    bed_unmount(&bed, c, true, 0);
    ck_assert(op.done && read.done);
    ck_assert_int_eq(op.status, -EIO);
    ck_assert_int_eq(read.status, -EIO);
    c = NULL;
    fake_targets_release(&bed.cluster);
}
END_TEST

START_TEST(with_o_dsync_the_server_knows_the_size_when_it_is_over)
{
    core_release(c, f);
    f = bed_open(&bed, c, "f", O_RDWR | O_DSYNC, NULL);
    targets_have_told();
    ck_assert_int_eq(bed_truncate(&bed, c, f, 5 * MIB), 0);
    ck_assert_int_eq(write_block(5), 0);
    ck_assert_uint_eq(fake_inode(&bed.cluster, "f")->attr.size, ROOM);
}
END_TEST

SUITE_MAIN("client-straight", setup, teardown,
           a_large_write_is_durable_when_it_is_over_and_takes_no_memory,
           a_new_file_grows_at_once_for_large_writes, none_leaves_for_a_growth_that_is_given_up,
           what_was_answered_without_being_durable_is_copied,
           what_was_answered_without_being_durable_is_cut_with_the_file,
           once_targets_have_said_that_they_do_not_commit_large_writes_are_copied_at_once,
           a_write_whose_target_restarts_is_sent_again_from_the_callers_memory,
           who_reads_the_same_bytes_waits_and_nothing_is_read_ahead_there,
           a_small_write_of_the_same_block_goes_behind_it,
           a_block_that_is_dirty_takes_the_write_as_a_copy,
           what_was_cached_of_its_block_is_not_read_any_more,
           an_append_goes_behind_what_makes_the_file_longer, a_truncate_waits_for_it,
           another_client_gets_the_file_when_it_is_over, its_error_is_the_callers_alone,
           memory_that_changes_while_it_is_sent_is_copied,
           a_lost_session_is_an_error_of_it_and_nothing_comes_later,
           it_can_be_interrupted_and_others_go_on, who_waits_for_it_can_be_interrupted,
           a_forced_unmount_ends_it, with_o_dsync_the_server_knows_the_size_when_it_is_over)
