/* SPDX-License-Identifier: Apache-2.0 */
/* A session is lost while something of it is yet to be sent: the next one has nothing to do with
 * that. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>

#include "common/base/err.h"
#include "common/net/net.h"
#include "tests/support/file_bed.h"
#include "tests/support/suite.h"

#define ROOM (2u * MIB)

static void setup(void)
{
    file_bed_setup(2, ROOM);
}

/* What is refused meanwhile comes again once a second; what was open is open in the next one. */
static void lose_session(void)
{
    uint64_t size;

    bed_spin(&bed, 4 * NS_PER_S);
    fake_mds_forget_sessions(&bed.cluster);
    bed.cluster.busy_writes = 0;
    bed.cluster.refuse = 0;
    ck_assert_int_eq(bed_size(&bed, c, 1, &size), 0);
    bed_spin(&bed, 250 * NS_PER_MS);
}

static void expect_eio(struct bed_op *op)
{
    ck_assert_int_eq(err_to_errno(bed_wait(&bed, op)), EIO);
}

START_TEST(a_report_of_before_is_no_error_of_what_is_written_in_it)
{
    struct core_file *f = bed_create(&bed, c, "small");
    struct bed_op sync;

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 100), 0);
    bed.cluster.busy_writes = ~0u;
    fsync_later(&sync, f);
    lose_session();
    ck_assert_int_eq(bed_wait(&bed, &sync), -EIO);
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 200), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "small", data, 200);
    core_release(c, f);
}
END_TEST

START_TEST(a_growth_of_before_ends_none_that_is_under_way_in_it)
{
    struct core_file *other = stored_file("promised", ROOM); /* room, by all of them */
    struct core_file *f = bed_create(&bed, c, "grows");
    struct bed_op sync;

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, MIB), 0);
    bed.cluster.refuse = -AIFS_EBUSY_SERVER;
    fsync_later(&sync, f);
    lose_session();
    ck_assert_int_eq(bed_wait(&bed, &sync), -EIO);
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, ROOM), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "grows", data, ROOM);
    core_release(c, other);
    core_release(c, f);
}
END_TEST

START_TEST(what_was_asked_by_an_open_of_before_is_an_io_error)
{
    struct core_file *f = stored_file("f", 100);
    struct msg_setattr_req set = {.ino = core_file_ino(f), .set = MSG_SET_SIZE, .size = 10};
    struct msg_lock lock = {
        .kind = MSG_LOCK_FLOCK, .type = MSG_LOCK_WRITE, .owner = 7, .end = MSG_LOCK_END};
    struct bed_op cut, locked;

    bed.cluster.refuse = -AIFS_EBUSY_SERVER;
    bed_op_init(&cut);
    core_setattr(c, &cut.q, &set, f);
    bed_op_init(&locked);
    core_lock(c, &locked.q, f, &lock, false);
    lose_session();
    expect_eio(&cut);
    expect_eio(&locked);
    bed_expect_durable(&bed, "f", data, 100);
    core_release(c, f);
}
END_TEST

static void write_later(struct bed_op *op, struct core_file *f, uint64_t offset,
                        const struct iovec *iov)
{
    bed_op_init(op);
    core_write(c, &op->q, f, offset, iov, 1, (uint32_t)iov->iov_len);
}

static void punch_later(struct bed_op *op, struct core_file *f)
{
    bed_op_init(op);
    core_fallocate(c, &op->q, f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, MIB);
}

static void make_dir(struct bed_op *op, const char *name)
{
    bed_op_init(op);
    core_mkdir(c, &op->q, 1, name, (uint32_t)strlen(name), 0755, NULL);
}

START_TEST(what_needs_nothing_of_it_is_done_in_the_next_one)
{
    struct core_stats stats;
    struct bed_op op[4];

    fake_mds_forget_sessions(&bed.cluster);
    make_dir(&op[0], "made");
    bed_op_init(&op[1]);
    core_lookup(c, &op[1].q, 1, "none", 4);
    bed_op_init(&op[2]);
    core_getattr(c, &op[2].q, 1);
    bed_op_init(&op[3]);
    core_readdir(c, &op[3].q, 1, 0, 4096, false);
    ck_assert_int_eq(bed_wait(&bed, &op[0]), 0);
    ck_assert_int_eq(bed_wait(&bed, &op[1]), -ENOENT);
    ck_assert_int_eq(bed_wait(&bed, &op[2]), 0);
    ck_assert_int_eq(bed_wait(&bed, &op[3]), 0);
    core_readdir_done(&op[3].q);
    ck_assert_uint_eq(bed.cluster.executed[RPC_OP_MKDIR], 1);
    core_get_stats(c, &stats);
    ck_assert_uint_eq(stats.sessions_lost, 1);
}
END_TEST

START_TEST(what_may_have_been_done_in_it_is_not_done_again)
{
    struct bed_op op;

    bed.cluster.drop_replies = true;
    make_dir(&op, "made");
    while (!bed.cluster.executed[RPC_OP_MKDIR])
        bed_spin(&bed, NS_PER_MS);
    bed.cluster.drop_replies = false;
    fake_mds_forget_sessions(&bed.cluster);
    expect_eio(&op);
    ck_assert_uint_eq(bed.cluster.executed[RPC_OP_MKDIR], 1);
}
END_TEST

START_TEST(what_is_asked_when_its_lease_is_over_is_not_sent_in_vain)
{
    struct core_stats before, after;
    struct bed_op op;

    core_get_stats(c, &before);
    fake_mds_forget_sessions(&bed.cluster);
    clock_virtual_advance(&bed.clock, 60 * NS_PER_S); /* nothing ran: the process was stopped */
    make_dir(&op, "made");
    ck_assert_int_eq(bed_wait(&bed, &op), 0);
    ck_assert_uint_eq(bed.cluster.executed[RPC_OP_MKDIR], 1);
    core_get_stats(c, &after);
    ck_assert_uint_eq(after.mds_calls - before.mds_calls, 1);
}
END_TEST

/* The next renewal is told so, whatever else is asked. */
static void end_session(void)
{
    struct core_stats stats;

    bed_spin(&bed, 50 * NS_PER_MS);
    fake_mds_forget_sessions(&bed.cluster);
    bed_spin(&bed, 6 * NS_PER_S);
    core_get_stats(c, &stats);
    ck_assert_uint_eq(stats.sessions_lost, 1);
}

/* What targets hold is done before files are open in the next one. */
static void end_session_before_opens(void)
{
    bed.cluster.hold_opens = true;
    end_session();
    fake_targets_release(&bed.cluster);
    bed_spin(&bed, 50 * NS_PER_MS);
    fake_release_removals(&bed.cluster);
}

/* What targets hold comes back with this: sent once more it would be in the next session, which
 * does not know whether it has been done. */
static void refuse_held(int status)
{
    fake_targets_fail_writes(&bed.cluster, status);
    for (unsigned k = 0; k < bed.cluster.n_oss; k++)
        bed.cluster.oss[k].fail_punches = status;
    fake_targets_release(&bed.cluster);
    fake_targets_fail_writes(&bed.cluster, 0);
    for (unsigned k = 0; k < bed.cluster.n_oss; k++)
        bed.cluster.oss[k].fail_punches = 0;
}

static struct core_file *file_without_a_lease(void)
{
    core_release(c, stored_file("f", ROOM));
    file_bed_remount(NULL);
    bed.cluster.no_leases = true;
    return bed_open(&bed, c, "f", O_RDWR, NULL);
}

START_TEST(a_write_without_a_lease_of_before_is_not_made_in_it)
{
    struct core_file *f = file_without_a_lease();
    struct iovec iov = {data + 1000, 5000};
    struct bed_op write;

    fake_targets_hold(&bed.cluster);
    write_later(&write, f, 0, &iov);
    end_session();
    refuse_held(-AIFS_EBUSY_SERVER);
    expect_eio(&write);
    bed_expect_durable(&bed, "f", data, ROOM);
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 5000), 0); /* in the next one */
    core_release(c, f);
}
END_TEST

START_TEST(writes_of_before_that_shared_a_call_are_not_made_in_it)
{
    struct core_file *f = file_without_a_lease();
    struct iovec iov = {data + 1000, 5000};
    struct bed_op writes[2];

    fake_targets_hold(&bed.cluster);
    for (unsigned k = 0; k < 2; k++)
        write_later(&writes[k], f, k * 8192, &iov);
    end_session();
    refuse_held(-AIFS_EFENCED);
    for (unsigned k = 0; k < 2; k++)
        expect_eio(&writes[k]);
    bed_expect_durable(&bed, "f", data, ROOM);
    core_release(c, f);
}
END_TEST

START_TEST(a_hole_of_before_is_not_punched_in_it)
{
    struct core_file *f = file_without_a_lease();
    struct bed_op punch;

    fake_targets_hold(&bed.cluster);
    punch_later(&punch, f);
    end_session();
    refuse_held(-AIFS_EBUSY_SERVER);
    expect_eio(&punch);
    bed_expect_durable(&bed, "f", data, ROOM);
    core_release(c, f);
}
END_TEST

/* The session is lost behind the last of its bytes. */
START_TEST(the_end_of_a_write_of_before_is_not_told_by_its_open)
{
    struct core_file *f = file_without_a_lease();
    struct iovec iov = {data, 5000};
    struct bed_op write;

    fake_targets_hold(&bed.cluster);
    write_later(&write, f, 0, &iov);
    end_session_before_opens();
    expect_eio(&write);
    core_release(c, f);
}
END_TEST

START_TEST(the_end_of_a_hole_of_before_is_not_told_by_its_open)
{
    struct core_file *f = file_without_a_lease();
    struct bed_op punch;

    fake_targets_hold(&bed.cluster);
    punch_later(&punch, f);
    end_session_before_opens();
    expect_eio(&punch);
    core_release(c, f);
}
END_TEST

/* It waits for a write that was begun before it. */
START_TEST(a_cut_of_before_that_has_not_left_is_an_io_error)
{
    struct core_file *f = file_without_a_lease();
    struct msg_setattr_req set = {.ino = core_file_ino(f), .set = MSG_SET_SIZE, .size = 10};
    struct iovec iov = {data, 5000};
    struct bed_op write, cut;

    fake_targets_hold(&bed.cluster);
    write_later(&write, f, 0, &iov);
    bed_spin(&bed, 50 * NS_PER_MS);
    bed_op_init(&cut);
    core_setattr(c, &cut.q, &set, f);
    end_session();
    refuse_held(-AIFS_EBUSY_SERVER);
    expect_eio(&write);
    expect_eio(&cut);
    bed_expect_durable(&bed, "f", data, ROOM);
    core_release(c, f);
}
END_TEST

/* The answer comes when the next session is there. */
START_TEST(a_file_that_was_opened_before_is_opened_again)
{
    struct core_file *f = stored_file("f", 100);
    struct bed_late late;
    struct bed_op open;
    uint64_t ino = core_file_ino(f);

    core_release(c, f);
    file_bed_remount(NULL);
    bed_op_init(&open);
    bed_answer_late(&late, 10 * NS_PER_S);
    core_open(c, &open.q, ino, O_RDWR);
    end_session();
    ck_assert(!open.done);
    ck_assert_int_eq(bed_wait(&bed, &open), 0);
    net_loop_set_policy(NULL, NULL);
    f = open.q.out.opened.file;
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 200), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "f", data, 200);
    core_release(c, f);
}
END_TEST

START_TEST(a_lease_that_was_given_before_is_none_in_it)
{
    struct core_file *f;
    struct iovec iov = {data, 40000};
    struct bed_late late;
    struct bed_op write;

    core_release(c, stored_file("f", 100));
    file_bed_remount(NULL);
    bed.cluster.no_leases = true;
    f = bed_open(&bed, c, "f", O_RDWR, NULL);
    bed_answer_late(&late, 10 * NS_PER_S);
    bed_op_init(&write);
    core_write(c, &write.q, f, 0, &iov, 1, 40000); /* the small file has to grow */
    end_session();
    ck_assert(!write.done);
    ck_assert_uint_eq(bed.cluster.calls[RPC_OP_LEASE_GET], 1);
    ck_assert_int_eq(bed_wait(&bed, &write), 0);
    net_loop_set_policy(NULL, NULL);
    ck_assert_uint_eq(bed.cluster.calls[RPC_OP_LEASE_GET], 2);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "f", data, 40000);
    core_release(c, f);
}
END_TEST

/* Its COMMIT is answered when another has opened the file in the next one. */
START_TEST(what_was_lost_before_is_told_to_nobody_who_opens_in_it)
{
    struct core_file *f = stored_file("f", ROOM), *g;

    bed.cluster.oss[0].hold_commits = bed.cluster.oss[1].hold_commits = true;
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, ROOM), 0);
    end_session();
    g = bed_open(&bed, c, "f", O_RDWR, NULL);
    for (unsigned k = 0; k < bed.cluster.n_oss; k++) {
        bed.cluster.oss[k].fail_commits = -AIFS_EFENCED;
        fake_oss_release(&bed.cluster.oss[k]);
        bed.cluster.oss[k].fail_commits = 0;
    }
    bed_spin(&bed, 50 * NS_PER_MS);
    ck_assert_int_eq(bed_fsync(&bed, c, g), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), -EIO);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    core_release(c, f);
    core_release(c, g);
}
END_TEST

/* It waits until what was written before it is durable. */
START_TEST(a_hole_of_before_that_has_not_been_begun_is_not_punched_in_it)
{
    struct core_file *f = stored_file("f", ROOM);
    struct bed_op punch;

    bed.cluster.oss[0].hold_commits = bed.cluster.oss[1].hold_commits = true;
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 5000), 0);
    punch_later(&punch, f);
    end_session_before_opens();
    expect_eio(&punch);
    bed_expect_durable(&bed, "f", data, ROOM);
    core_release(c, f);
}
END_TEST

START_TEST(a_file_that_has_lost_its_locks_is_not_cut_through_its_open)
{
    struct core_file *f = stored_file("f", 100);
    struct msg_lock lock = {
        .kind = MSG_LOCK_FLOCK, .type = MSG_LOCK_WRITE, .owner = 7, .end = MSG_LOCK_END};
    struct bed_op locked;

    bed_op_init(&locked);
    core_lock(c, &locked.q, f, &lock, false);
    ck_assert_int_eq(bed_wait(&bed, &locked), 0);
    end_session();
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 100), -EIO);
    ck_assert_int_eq(bed_truncate(&bed, c, f, 10), -EIO);
    bed_expect_durable(&bed, "f", data, 100);
    core_release(c, f);
}
END_TEST

START_TEST(a_lock_is_looked_for_when_the_file_is_open_again)
{
    struct core_file *f = stored_file("f", 100);
    struct msg_lock lock = {
        .kind = MSG_LOCK_RECORD, .type = MSG_LOCK_WRITE, .owner = 7, .end = MSG_LOCK_END};
    struct bed_op test;

    bed.cluster.hold_opens = true;
    end_session();
    bed_op_init(&test);
    core_lock_test(c, &test.q, f, &lock);
    bed_spin(&bed, 50 * NS_PER_MS);
    fake_release_removals(&bed.cluster);
    ck_assert_int_eq(bed_wait(&bed, &test), 0);
    ck_assert_int_eq(test.q.out.lock.type, MSG_LOCK_UNLOCK);
    core_release(c, f);
}
END_TEST

START_TEST(unmounting_that_is_given_up_says_that_not_all_is_written)
{
    struct core_file *f = stored_file("left", ROOM);
    struct bed_op op;

    fake_targets_hold(&bed.cluster);
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, ROOM), 0);
    core_release(c, f);
    bed_op_init(&op);
    core_unmount(c, &op.q, false);
    bed_spin(&bed, 20 * NS_PER_S);
    ck_assert(!op.done);
    ck_assert_uint_gt(core_bytes_under_way(c), 0);
    core_give_up(&op.q);
    ck_assert_int_eq(bed_wait(&bed, &op), -EIO);
    fake_targets_release(&bed.cluster);
    core_destroy(c);
    c = NULL;
}
END_TEST

SUITE_MAIN("client-sessions", setup, file_bed_teardown,
           what_needs_nothing_of_it_is_done_in_the_next_one,
           what_may_have_been_done_in_it_is_not_done_again,
           what_is_asked_when_its_lease_is_over_is_not_sent_in_vain,
           a_write_without_a_lease_of_before_is_not_made_in_it,
           writes_of_before_that_shared_a_call_are_not_made_in_it,
           a_hole_of_before_is_not_punched_in_it,
           the_end_of_a_hole_of_before_is_not_told_by_its_open,
           the_end_of_a_write_of_before_is_not_told_by_its_open,
           a_file_that_was_opened_before_is_opened_again,
           what_was_lost_before_is_told_to_nobody_who_opens_in_it,
           a_hole_of_before_that_has_not_been_begun_is_not_punched_in_it,
           a_file_that_has_lost_its_locks_is_not_cut_through_its_open,
           a_lock_is_looked_for_when_the_file_is_open_again,
           a_lease_that_was_given_before_is_none_in_it,
           a_cut_of_before_that_has_not_left_is_an_io_error,
           a_report_of_before_is_no_error_of_what_is_written_in_it,
           a_growth_of_before_ends_none_that_is_under_way_in_it,
           what_was_asked_by_an_open_of_before_is_an_io_error,
           unmounting_that_is_given_up_says_that_not_all_is_written)
