/* SPDX-License-Identifier: Apache-2.0 */
/* Owner, mode and times that are set while a file is being written: what the server is asked, and
 * what it knows in the end. */
#include <check.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "client/core/core_int.h"
#include "tests/support/client_bed.h"
#include "tests/support/suite.h"

static struct bed bed;
static struct core *c;
static struct core_file *f;
static uint8_t data[5000];

static void setup(void)
{
    bed_setup(&bed, 1);
    c = bed_mount(&bed, NULL);
    bed_pattern(data, sizeof data, 0, 1);
    f = bed_create(&bed, c, "file");
    fake_inode(&bed.cluster, "file")->attr.flags |= MSG_ATTR_NO_XATTRS;
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, sizeof data), 0);
    ck_assert_int_eq(bed_flush(&bed, c, f), 0); /* brings the attributes */
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, sizeof data), 0);
}

static void teardown(void)
{
    core_release(c, f);
    bed_unmount(&bed, c, false, 0);
    bed_teardown(&bed);
}

static void start(struct bed_op *op, struct msg_setattr_req set)
{
    set.ino = core_file_ino(f);
    bed_op_init(op);
    core_setattr(c, &op->q, &set, f);
}

static int set_attr(struct bed_op *op, struct msg_setattr_req set)
{
    start(op, set);
    return bed_wait(&bed, op);
}

static unsigned calls(unsigned op)
{
    return bed.cluster.calls[op];
}

static const struct msg_attr *stored(void)
{
    return &fake_inode(&bed.cluster, "file")->attr;
}

static const struct msg_setattr_req same_owner = {.set = MSG_SET_UID | MSG_SET_GID |
                                                         MSG_SET_KILL_PRIV};
static const struct msg_setattr_req old_mtime = {.set = MSG_SET_MTIME, .mtime = {1000000, 5}};

START_TEST(an_owner_that_it_has_already_is_told_by_close)
{
    struct msg_time before;
    struct bed_op op;

    ck_assert_uint_eq(stored()->uid | stored()->gid, 0);
    ck_assert_int_eq(set_attr(&op, same_owner), 0);
    ck_assert_uint_eq(calls(RPC_OP_SETATTR), 0);
    before = op.q.entry.attr.ctime;
    bed_spin(&bed, 1000);
    ck_assert_int_eq(set_attr(&op, same_owner), 0);
    ck_assert(op.q.entry.attr.ctime.sec > before.sec || op.q.entry.attr.ctime.nsec > before.nsec);
    ck_assert_int_eq(bed_flush(&bed, c, f), 0);
    ck_assert_uint_eq(calls(RPC_OP_SETATTR), 1);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    ck_assert_uint_eq(calls(RPC_OP_SETATTR), 1);
}
END_TEST

/* Who has looked has seen that ctime: it is not another one later. */
START_TEST(its_time_is_that_which_has_been_told_here)
{
    struct bed_op op;

    ck_assert_int_eq(set_attr(&op, same_owner), 0);
    bed_spin(&bed, 1000);
    ck_assert_int_eq(bed_flush(&bed, c, f), 0);
    ck_assert_uint_eq(calls(RPC_OP_SETATTR), 1);
    ck_assert_int_eq(stored()->ctime.sec, op.q.entry.attr.ctime.sec);
    ck_assert_uint_eq(stored()->ctime.nsec, op.q.entry.attr.ctime.nsec);
}
END_TEST

START_TEST(it_is_told_within_a_second_if_nobody_closes)
{
    struct bed_op op;

    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    ck_assert_int_eq(set_attr(&op, same_owner), 0);
    ck_assert_uint_eq(calls(RPC_OP_SETATTR), 0);
    bed_spin(&bed, NS_PER_S);
    ck_assert_uint_eq(calls(RPC_OP_SETATTR), 1);
}
END_TEST

START_TEST(another_change_tells_of_it_too)
{
    struct bed_op op;

    ck_assert_int_eq(set_attr(&op, same_owner), 0);
    ck_assert_int_eq(set_attr(&op, (struct msg_setattr_req){.set = MSG_SET_MODE, .mode = 0600}), 0);
    ck_assert_uint_eq(stored()->mode & 07777, 0600);
    ck_assert_int_eq(bed_flush(&bed, c, f), 0);
    ck_assert_uint_eq(calls(RPC_OP_SETATTR), 1);
}
END_TEST

/* Something is changed, or may be refused, or takes something away. */
START_TEST(anything_else_is_asked_at_once)
{
    const struct msg_setattr_req to_other = {.set = MSG_SET_UID, .uid = 7};
    const struct msg_setattr_req same_mode = {.set = MSG_SET_MODE, .mode = stored()->mode & 07777};
    struct bed_op op;

    ck_assert_int_eq(set_attr(&op, to_other), 0);
    ck_assert_uint_eq(calls(RPC_OP_SETATTR), 1);
    bed_op_init(&op);
    op.q.cred.uid = 9;
    core_setattr(c, &op.q, &(struct msg_setattr_req){.ino = core_file_ino(f), .set = MSG_SET_MODE},
                 f);
    (void)bed_wait(&bed, &op);
    ck_assert_uint_eq(calls(RPC_OP_SETATTR), 2);
    ck_assert_int_eq(set_attr(&op, (struct msg_setattr_req){.set = MSG_SET_MODE, .mode = 04755}),
                     0);
    ck_assert_int_eq(set_attr(&op, same_owner), 0);
    ck_assert_uint_eq(calls(RPC_OP_SETATTR), 4);
    ck_assert_int_eq(set_attr(&op, same_mode), 0);
    ck_assert_int_eq(bed_flush(&bed, c, f), 0);
    ck_assert_int_eq(set_attr(&op, same_mode), 0);
    ck_assert_uint_eq(calls(RPC_OP_SETATTR), 5);
}
END_TEST

START_TEST(what_was_written_goes_with_the_setting_of_its_time)
{
    unsigned writes = calls(RPC_OP_WRITE_INLINE);
    struct bed_op op;

    bed.cluster.mds_hold = true;
    start(&op, old_mtime);
    bed_spin(&bed, 1000);
    ck_assert(!op.done);
    bed.cluster.mds_hold = false;
    fake_mds_release(&bed.cluster);
    ck_assert_int_eq(bed_wait(&bed, &op), 0);
    ck_assert_uint_eq(calls(RPC_OP_WRITE_INLINE), writes + 1);
    ck_assert_int_eq(bed_flush(&bed, c, f), 0);
    ck_assert_uint_eq(calls(RPC_OP_WRITE_INLINE), writes + 1);
    ck_assert_int_eq(stored()->mtime.sec, 1000000);
    bed_expect_durable(&bed, "file", data, sizeof data);
}
END_TEST

/* The server has refused the report for a while, and executes it behind the setting of mtime. */
START_TEST(a_late_report_does_not_undo_a_time_that_was_set)
{
    struct bed_op op;

    bed.cluster.busy_writes = 1;
    ck_assert_int_eq(set_attr(&op, old_mtime), 0);
    ck_assert_int_eq(bed_flush(&bed, c, f), 0);
    ck_assert_int_eq(stored()->mtime.sec, 1000000);
    ck_assert_uint_eq(stored()->mtime.nsec, 5);
}
END_TEST

/* The answer to the setting of mtime comes behind that of a report which was executed later, and
 * what was reported is not cached any more. */
START_TEST(a_late_answer_about_mtime_needs_no_contents)
{
    struct core_inode *i = f->inode;
    struct msg_attr late;

    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    late = *stored();
    late.mtime = (struct msg_time){1000000, 5};
    late.change = i->report_change - 1;
    blocks_drop_all(i, false);
    ck_assert_uint_eq(i->n_blocks, 0);
    flush_mtime_set(i, &late);
    ck_assert_int_eq(bed_flush(&bed, c, f), 0);
    ck_assert_int_eq(stored()->mtime.sec, 1000000);
    ck_assert_uint_eq(stored()->mtime.nsec, 5);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "file", data, sizeof data);
}
END_TEST

static bool is_later(struct msg_time a, struct msg_time b)
{
    return a.sec > b.sec || (a.sec == b.sec && a.nsec > b.nsec);
}

/* Others tell a write by a new mtime, whatever this client's clock says. */
START_TEST(each_write_has_an_mtime_of_its_own_also_by_a_clock_that_is_behind)
{
    struct msg_attr *a = &fake_inode(&bed.cluster, "file")->attr;
    struct msg_time before;

    core_release(c, f);
    bed_spin(&bed, NS_PER_MS);
    a->ctime.sec++; /* somebody else's */
    a->mtime = a->ctime;
    a->change++;
    bed_unmount(&bed, c, false, 0);
    c = bed_mount(&bed, NULL);
    f = bed_open(&bed, c, "file", O_RDWR, NULL);
    for (int k = 0; k < 3; k++) {
        before = stored()->mtime;
        ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 10), 0);
        ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
        ck_assert(is_later(stored()->mtime, before));
    }
}
END_TEST

/* The same of ctime, by which programs tell that attributes were set. */
START_TEST(an_owner_that_it_has_already_moves_ctime_also_by_a_clock_that_is_behind)
{
    struct msg_attr *a = &fake_inode(&bed.cluster, "file")->attr;
    struct bed_op op;
    struct msg_time before;
    unsigned told;

    ck_assert_int_eq(set_attr(&op, same_owner), 0);
    core_release(c, f);
    bed_spin(&bed, NS_PER_S);
    a->ctime = op.q.entry.attr.ctime;
    a->ctime.sec += 10; /* somebody else's */
    a->change++;
    before = a->ctime;
    told = calls(RPC_OP_SETATTR);
    bed_unmount(&bed, c, false, 0);
    c = bed_mount(&bed, NULL);
    f = bed_open(&bed, c, "file", O_RDWR, NULL);
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 10), 0);
    for (int k = 0; k < 3; k++) {
        ck_assert_int_eq(set_attr(&op, same_owner), 0);
        ck_assert_uint_eq(calls(RPC_OP_SETATTR), told);
        ck_assert(is_later(op.q.entry.attr.ctime, before));
        before = op.q.entry.attr.ctime;
    }
}
END_TEST

/* A report of a write takes them away: cp -a sets them before it closes the file. */
START_TEST(capabilities_are_set_behind_the_report_of_what_was_written_before)
{
    static const char name[] = "security.capability";
    unsigned before = calls(RPC_OP_WRITE_INLINE);
    struct bed_op op, cancelled;

    bed.cluster.mds_hold = true;
    bed_op_init(&cancelled);
    core_setxattr(c, &cancelled.q, core_file_ino(f), name, sizeof name - 1, "caps", 4, 0);
    bed_op_init(&op);
    core_setxattr(c, &op.q, core_file_ino(f), name, sizeof name - 1, "caps", 4, 0);
    bed_spin(&bed, 10 * NS_PER_MS);
    core_give_up(&cancelled.q);
    ck_assert_int_eq(cancelled.status, -EINTR);
    ck_assert_uint_eq(calls(RPC_OP_XATTR_SET), 0);
    fake_mds_release(&bed.cluster);
    ck_assert_int_eq(bed_wait(&bed, &op), -EOPNOTSUPP); /* this server knows none */
    ck_assert_uint_eq(calls(RPC_OP_XATTR_SET), 1);
    ck_assert_uint_eq(calls(RPC_OP_WRITE_INLINE), before + 1);
    ck_assert_int_eq(bed_flush(&bed, c, f), 0);
    ck_assert_uint_eq(calls(RPC_OP_WRITE_INLINE), before + 1);
}
END_TEST

SUITE_MAIN("client-attributes", setup, teardown, an_owner_that_it_has_already_is_told_by_close,
           its_time_is_that_which_has_been_told_here, it_is_told_within_a_second_if_nobody_closes,
           another_change_tells_of_it_too, anything_else_is_asked_at_once,
           what_was_written_goes_with_the_setting_of_its_time,
           a_late_report_does_not_undo_a_time_that_was_set,
           a_late_answer_about_mtime_needs_no_contents,
           each_write_has_an_mtime_of_its_own_also_by_a_clock_that_is_behind,
           an_owner_that_it_has_already_moves_ctime_also_by_a_clock_that_is_behind,
           capabilities_are_set_behind_the_report_of_what_was_written_before)
