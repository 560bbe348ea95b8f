/* SPDX-License-Identifier: Apache-2.0 */
/* What a client does when a server runs without a target, and when a target is given up. */
#include <check.h>
#include <fcntl.h>
#include <string.h>

#include "common/base/err.h"
#include "tests/support/file_bed.h"
#include "tests/support/suite.h"

#define ROOM (4u * MIB)

static void setup(void)
{
    file_bed_setup(2, ROOM);
}

/* Opened by a mount that has nothing of it in its cache. */
static struct core_file *again(const char *name, const struct core_options *o)
{
    file_bed_remount(o);
    return bed_open(&bed, c, name, O_RDWR, NULL);
}

/* The place in a file where a chunk of this server begins. */
static uint64_t place(const char *name, unsigned oss)
{
    return fake_inode(&bed.cluster, name)->layout.start == oss ? 0 : MIB;
}

/* So that the next write is only cached. */
static void get_grants(struct core_file *f)
{
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 4096), 0);
    ck_assert_int_eq(bed_write(&bed, c, f, MIB, data + MIB, 4096), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
}

START_TEST(who_needs_a_target_that_its_server_does_not_have_waits_until_it_is_there)
{
    struct core_file *f;
    struct bed_op read, sync;

    core_release(c, stored_file("f", ROOM));
    f = again("f", NULL);
    get_grants(f);
    bed.cluster.oss[1].missing = true;
    read_later(&read, f, place("f", 1) + 2 * MIB, 4096);
    ck_assert_int_eq(bed_write(&bed, c, f, place("f", 1) + 500000, data, 1000), 0);
    fsync_later(&sync, f);
    bed_spin(&bed, 100 * NS_PER_S);
    ck_assert(!read.done && !sync.done);
    bed.cluster.oss[1].missing = false;
    ck_assert_int_eq(bed_wait(&bed, &read), 0);
    core_read_done(&read.q);
    ck_assert_int_eq(bed_wait(&bed, &sync), 0);
    core_release(c, f);
}
END_TEST

START_TEST(what_waits_for_a_missing_target_is_not_sent_again_and_again)
{
    struct core_file *f = stored_file("f", ROOM);
    struct bed_op sync;

    get_grants(f);
    bed.cluster.oss[1].missing = true;
    for (unsigned k = 1; k < 4; k++)
        ck_assert_int_eq(bed_write(&bed, c, f, k * (uint64_t)ROOM, data, ROOM), 0);
    fsync_later(&sync, f);
    bed_spin(&bed, 10 * NS_PER_S);
    bed.cluster.oss[1].refused = 0;
    bed_spin(&bed, 60 * NS_PER_S);
    ck_assert_uint_gt(bed.cluster.oss[1].refused, 30);
    ck_assert_uint_lt(bed.cluster.oss[1].refused, 130); /* for 6 transfers and a commit */
    bed.cluster.oss[1].missing = false;
    ck_assert_int_eq(bed_wait(&bed, &sync), 0);
    core_release(c, f);
}
END_TEST

START_TEST(who_waits_for_a_missing_target_can_be_killed)
{
    struct core_file *f;
    struct bed_op read;

    core_release(c, stored_file("f", ROOM));
    f = again("f", NULL);
    bed.cluster.oss[1].missing = true;
    read_later(&read, f, place("f", 1), 4096);
    bed_spin(&bed, 3 * NS_PER_S);
    core_cancel(&read.q);
    ck_assert_int_eq(bed_wait(&bed, &read), -EINTR);
    bed.cluster.oss[1].missing = false;
    core_release(c, f);
}
END_TEST

START_TEST(a_soft_mount_does_not_wait_for_a_missing_target)
{
    struct core_options o;
    struct core_file *f;
    struct bed_op read;

    core_release(c, stored_file("f", ROOM));
    core_options_default(&o);
    o.soft = true;
    o.timeo_ns = 2 * NS_PER_S;
    f = again("f", &o);
    bed.cluster.oss[1].missing = true;
    read_later(&read, f, place("f", 1), 4096);
    ck_assert_int_eq(bed_wait(&bed, &read), -AIFS_ETIMEOUT);
    bed.cluster.oss[1].missing = false;
    core_release(c, f);
}
END_TEST

START_TEST(what_lay_on_a_target_that_is_given_up_is_an_error_and_never_zeros)
{
    struct core_file *f;
    uint64_t lost, there;

    core_release(c, stored_file("f", ROOM));
    f = again("f", NULL);
    lost = place("f", 1);
    there = place("f", 0);
    fake_give_up(&bed.cluster, 1);
    bed_spin(&bed, 6 * NS_PER_S); /* the next renewal tells */
    ck_assert_int_eq(bed_read(&bed, c, f, lost, back, 4096), -AIFS_ELOST);
    expect_read(f, there, data + there, 4096);
    ck_assert(bed_write(&bed, c, f, lost + 100, data, 1000) != 0 || bed_fsync(&bed, c, f) != 0);
    ck_assert_int_eq(bed_write(&bed, c, f, there + 100, data, 1000), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    ck_assert_int_lt(bed_read(&bed, c, f, lost, back, 4096), 0);
    core_release(c, f);
}
END_TEST

START_TEST(who_waits_for_a_target_gets_an_error_when_it_is_given_up)
{
    struct core_file *f;
    struct bed_op reads[2], sync;
    uint64_t size;

    core_release(c, stored_file("f", ROOM));
    f = again("f", NULL);
    get_grants(f);
    size = place("f", 1);
    ck_assert_int_eq(bed_write(&bed, c, f, size, data, 100), 0);
    ck_assert_int_eq(bed_flush(&bed, c, f), 0); /* written there, not committed */
    bed.cluster.oss[1].missing = true;
    read_later(&reads[0], f, size + 2 * MIB, 4096); /* refused */
    bed_spin(&bed, NS_PER_S);
    bed.cluster.oss[1].hold = true;
    read_later(&reads[1], f, size + 2 * MIB + 600000, 4096); /* not answered */
    fsync_later(&sync, f);
    bed_spin(&bed, 20 * NS_PER_S);
    ck_assert(!reads[0].done && !reads[1].done && !sync.done);
    fake_give_up(&bed.cluster, 1);
    bed_spin(&bed, 20 * NS_PER_S);
    ck_assert(reads[0].done && reads[1].done && sync.done);
    ck_assert_int_eq(reads[0].status, -AIFS_ELOST);
    ck_assert_int_eq(reads[1].status, -AIFS_ELOST);
    ck_assert_int_eq(sync.status, -AIFS_ELOST);
    bed.cluster.oss[1].missing = false;
    fake_oss_release(&bed.cluster.oss[1]);
    core_release(c, f);
}
END_TEST

START_TEST(the_metadata_server_is_told_what_waits_for_a_storage_server)
{
    const struct msg_server_wait *w = bed.cluster.waits;
    struct core_file *f;
    struct bed_op read, sync;

    core_release(c, stored_file("f", ROOM));
    f = again("f", NULL);
    get_grants(f);
    bed.cluster.oss[1].missing = true;
    read_later(&read, f, place("f", 1) + 2 * MIB, 4096);
    bed_spin(&bed, NS_PER_S);
    ck_assert_uint_eq(bed.cluster.n_waits, 0); /* that may happen */
    bed_spin(&bed, 2 * NS_PER_S);              /* not when the next one is due anyway */
    ck_assert_uint_eq(bed.cluster.n_waits, 1);
    ck_assert(w->target == 2 && w->ino == core_file_ino(f) && !w->write && w->requests > 0);
    ck_assert_uint_ge(w->age_ns, 2 * NS_PER_S);
    ck_assert_uint_eq(w->pid, 0);
    ck_assert_int_eq(bed_write(&bed, c, f, place("f", 1), data, 100), 0);
    bed_op_init(&sync);
    sync.q.pid = 4711;
    core_fsync(c, &sync.q, f, false);
    bed_spin(&bed, 12 * NS_PER_S);
    ck_assert(bed.cluster.n_waits == 1 && w->write && w->pid == 4711);
    bed.cluster.oss[1].missing = false;
    ck_assert_int_eq(bed_wait(&bed, &read), 0);
    core_read_done(&read.q);
    ck_assert_int_eq(bed_wait(&bed, &sync), 0);
    bed_spin(&bed, NS_PER_S);
    ck_assert_uint_eq(bed.cluster.n_waits, 0);
    core_release(c, f);
}
END_TEST

START_TEST(a_commit_that_is_not_answered_is_told_too)
{
    struct core_file *f = stored_file("f", ROOM);
    struct bed_op sync;

    bed.cluster.oss[0].hold_commits = true;
    ck_assert_int_eq(bed_write(&bed, c, f, place("f", 0), data, 100000), 0);
    fsync_later(&sync, f);
    bed_spin(&bed, 3 * NS_PER_S);
    ck_assert_uint_eq(bed.cluster.n_waits, 1);
    ck_assert(bed.cluster.waits[0].target == 1 && bed.cluster.waits[0].write);
    fake_oss_release(&bed.cluster.oss[0]);
    ck_assert_int_eq(bed_wait(&bed, &sync), 0);
    core_release(c, f);
}
END_TEST

/* Its server hears of the end of a session before or after the metadata server has told us. */
START_TEST(a_commit_of_a_session_that_is_over_does_not_end_the_next_one)
{
    struct core_file *f = stored_file("f", ROOM), *g;
    struct core_stats stats;
    struct bed_op sync;

    bed.cluster.oss[0].hold_commits = true;
    ck_assert_int_eq(bed_write(&bed, c, f, place("f", 0), data, 100000), 0);
    fsync_later(&sync, f);
    bed_spin(&bed, 100 * NS_PER_MS);
    ck_assert_uint_eq(bed.cluster.oss[0].held_now, 1);
    fake_mds_forget_sessions(&bed.cluster);
    bed_spin(&bed, 10 * NS_PER_S);
    g = bed_create(&bed, c, "after");
    ck_assert_int_eq(bed_write(&bed, c, g, 0, data, 1000), 0);
    bed.cluster.oss[0].fail_commits = -AIFS_EFENCED;
    fake_oss_release(&bed.cluster.oss[0]);
    bed.cluster.oss[0].fail_commits = 0;
    ck_assert_int_eq(err_to_errno(bed_wait(&bed, &sync)), EIO);
    ck_assert_int_eq(bed_fsync(&bed, c, g), 0);
    bed_expect_durable(&bed, "after", data, 1000);
    core_get_stats(c, &stats);
    ck_assert_uint_eq(stats.sessions_lost, 1);
    core_release(c, f);
    core_release(c, g);
}
END_TEST

SUITE_MAIN("client-targets", setup, file_bed_teardown,
           who_needs_a_target_that_its_server_does_not_have_waits_until_it_is_there,
           what_waits_for_a_missing_target_is_not_sent_again_and_again,
           who_waits_for_a_missing_target_can_be_killed,
           a_soft_mount_does_not_wait_for_a_missing_target,
           what_lay_on_a_target_that_is_given_up_is_an_error_and_never_zeros,
           who_waits_for_a_target_gets_an_error_when_it_is_given_up,
           the_metadata_server_is_told_what_waits_for_a_storage_server,
           a_commit_that_is_not_answered_is_told_too,
           a_commit_of_a_session_that_is_over_does_not_end_the_next_one)
