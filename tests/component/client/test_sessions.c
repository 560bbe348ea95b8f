/* SPDX-License-Identifier: Apache-2.0 */
/* A session is lost while something of it is yet to be sent: the next one has nothing to do with
 * that. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>

#include "common/base/err.h"
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
    ck_assert_int_ne(bed_size(&bed, c, 1, &size), 0);
    bed.cluster.busy_writes = 0;
    bed.cluster.refuse = 0;
    bed_spin(&bed, 250 * NS_PER_MS);
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
    ck_assert_int_eq(err_to_errno(bed_wait(&bed, &cut)), EIO);
    ck_assert_int_eq(err_to_errno(bed_wait(&bed, &locked)), EIO);
    bed_expect_durable(&bed, "f", data, 100);
    core_release(c, f);
}
END_TEST

SUITE_MAIN("client-sessions", setup, file_bed_teardown,
           a_report_of_before_is_no_error_of_what_is_written_in_it,
           a_growth_of_before_ends_none_that_is_under_way_in_it,
           what_was_asked_by_an_open_of_before_is_an_io_error)
