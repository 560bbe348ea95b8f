/* SPDX-License-Identifier: Apache-2.0 */
/* Truncates that fail, meet restarts and other flushes; and small files that change while they are
 * sent. */
#include <check.h>
#include <fcntl.h>
#include <string.h>

#include "common/base/err.h"
#include "tests/support/file_bed.h"
#include "tests/support/suite.h"

#define ROOM (4u * MIB)

static void setup(void)
{
    file_bed_setup(3, ROOM);
}

START_TEST(what_a_truncate_has_cut_is_not_written_again_after_a_restart)
{
    struct core_file *f = stored_file("cut", 2 * MIB);

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, MIB), 0);
    ck_assert_int_eq(bed_flush(&bed, c, f), 0);
    ck_assert_int_eq(bed_truncate(&bed, c, f, 5000), 0);
    fake_targets_restart(&bed.cluster);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    ck_assert_int_eq(bed_truncate(&bed, c, f, MIB), 0);
    memset(data + 5000, 0, MIB - 5000);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "cut", data, MIB);
    expect_read(f, 0, data, MIB);
    core_release(c, f);
}
END_TEST

/* Without the words of the server a truncate has not happened: what it would have cut is kept. */
static void expect_kept(struct core_file *f, const char *name, uint32_t len, uint64_t cut)
{
    bed.cluster.fail_setattr = -EIO;
    ck_assert_int_eq(bed_truncate(&bed, c, f, cut), -EIO);
    expect_read(f, 0, data, len);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, name, data, len);
    bed.cluster.fail_setattr = 0;
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, len), 0);
    ck_assert_int_eq(bed_truncate(&bed, c, f, cut), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, name, data, (uint32_t)cut);
}

START_TEST(a_truncate_that_fails_loses_nothing)
{
    struct core_file *f = stored_file("refused", 2 * MIB), *small = bed_create(&bed, c, "small"),
                     *grown = bed_create(&bed, c, "grown");
    unsigned k;

    for (k = 0; k < 6; k++) {
        data[k * 300 * KIB] ^= 0x55;
        ck_assert_int_eq(bed_write(&bed, c, f, k * 300 * KIB, data + k * 300 * KIB, 100), 0);
    }
    expect_kept(f, "refused", 2 * MIB, 400 * KIB);
    ck_assert_int_eq(bed_write(&bed, c, small, 0, data, 1000), 0);
    expect_kept(small, "small", 1000, 0);
    ck_assert_int_eq(bed_write(&bed, c, grown, 0, data, 1000), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, grown), 0);
    ck_assert_int_eq(bed_write(&bed, c, grown, 1000, data + 1000, 100000), 0);
    expect_kept(grown, "grown", 101000, 500);
    core_release(c, f);
    core_release(c, small);
    core_release(c, grown);
}
END_TEST

START_TEST(what_a_truncate_will_cut_is_not_written_before_it)
{
    struct core_file *f = stored_file("unsent", 2 * MIB);
    unsigned k, before = 0, after = 0;

    for (k = 0; k < 3; k++)
        before += bed.cluster.oss[k].writes;
    ck_assert_int_eq(bed_write(&bed, c, f, MIB + 1, data, 1000), 0);
    ck_assert_int_eq(bed_write(&bed, c, f, 5000, data + 5000, 1000), 0);
    ck_assert_int_eq(bed_truncate(&bed, c, f, 5500), 0);
    for (k = 0; k < 3; k++)
        after += bed.cluster.oss[k].writes;
    ck_assert_uint_eq(after, before + 1);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "unsent", data, 5500);
    core_release(c, f);
}
END_TEST

START_TEST(a_flush_during_a_truncate_ends_after_it)
{
    struct core_file *f = stored_file("both", 2 * MIB);
    struct msg_setattr_req set = {.ino = core_file_ino(f), .set = MSG_SET_SIZE, .size = 5000};
    struct bed_op cut, sync;

    ck_assert_int_eq(bed_write(&bed, c, f, MIB + 1, data + MIB + 1, 1000), 0);
    bed.cluster.mds_hold = true;
    bed_op_init(&cut);
    core_setattr(c, &cut.q, &set, f);
    fsync_later(&sync, f);
    bed_spin(&bed, 50 * NS_PER_MS);
    ck_assert(!cut.done && !sync.done);
    bed.cluster.fail_setattr = -EIO;
    fake_mds_release(&bed.cluster);
    ck_assert_int_eq(bed_wait(&bed, &cut), -EIO);
    ck_assert_int_eq(bed_wait(&bed, &sync), 0);
    bed_expect_durable(&bed, "both", data, 2 * MIB);
    bed.cluster.fail_setattr = 0;
    core_release(c, f);
}
END_TEST

/* Others may be told the new size while the answer is on its way here. */
START_TEST(a_size_that_is_being_cut_is_asked_for)
{
    struct core_file *f = stored_file("asked", 2 * MIB);
    struct msg_setattr_req set = {.ino = core_file_ino(f), .set = MSG_SET_SIZE, .size = 5000};
    struct bed_op cut, before, during, after;

    bed.cluster.mds_hold = true;
    bed_op_init(&before);
    core_getattr(c, &before.q, core_file_ino(f));
    ck_assert(before.done);
    ck_assert_uint_eq(before.q.entry.attr.size, 2 * MIB);
    bed_op_init(&cut);
    core_setattr(c, &cut.q, &set, f);
    bed_op_init(&during);
    core_getattr(c, &during.q, core_file_ino(f));
    bed_spin(&bed, 20 * NS_PER_MS);
    ck_assert(!cut.done && !during.done);
    fake_mds_release(&bed.cluster);
    ck_assert_int_eq(bed_wait(&bed, &cut), 0);
    ck_assert_int_eq(bed_wait(&bed, &during), 0);
    ck_assert_uint_eq(during.q.entry.attr.size, 5000);
    bed.cluster.mds_hold = true;
    bed_op_init(&after);
    core_getattr(c, &after.q, core_file_ino(f));
    ck_assert(after.done);
    ck_assert_uint_eq(after.q.entry.attr.size, 5000);
    ck_assert(after.q.entry.attr_valid_ns > 0);
    fake_mds_release(&bed.cluster);
    core_release(c, f);
}
END_TEST

START_TEST(a_small_file_is_sent_as_it_was_when_its_flush_began)
{
    struct core_file *f = bed_create(&bed, c, "pinned");
    struct bed_op flush, write;
    struct iovec iov = {data + 1, 100000};

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 3000), 0);
    bed.cluster.refuse = -AIFS_EBUSY_SERVER;
    bed_op_init(&flush);
    core_flush(c, &flush.q, f);
    bed_spin(&bed, 10 * NS_PER_MS);
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data + 4000, 1000), 0);
    bed.cluster.refuse = 0;
    ck_assert_int_eq(bed_wait(&bed, &flush), 0);
    bed_expect_durable(&bed, "pinned", data, 3000);
    memcpy(data, data + 4000, 1000);
    ck_assert_int_eq(bed_flush(&bed, c, f), 0);
    bed_expect_durable(&bed, "pinned", data, 3000);
    bed.cluster.refuse = -AIFS_EBUSY_SERVER;
    data[0] ^= 0xff;
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 1), 0);
    bed_op_init(&flush);
    core_flush(c, &flush.q, f);
    bed_spin(&bed, 10 * NS_PER_MS);
    data[1] ^= 0xff;
    bed_op_init(&write);
    core_write(c, &write.q, f, 1, &iov, 1, 100000); /* it grows */
    bed.cluster.refuse = 0;
    ck_assert_int_eq(bed_wait(&bed, &flush), 0);
    ck_assert_int_eq(bed_wait(&bed, &write), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "pinned", data, 100001);
    core_release(c, f);
}
END_TEST

/* The server has cut it and the answer is lost: what comes before its repetition brings the new
 * generation, and with it the new size. */
START_TEST(an_answer_from_behind_a_cut_brings_its_size_too)
{
    struct core_file *f = stored_file("cut", 2 * MIB);
    struct fake_inode *i = fake_inode(&bed.cluster, "cut");
    struct msg_setattr_req set = {.ino = core_file_ino(f), .set = MSG_SET_MODE, .mode = 0640};
    struct bed_op op;

    i->attr.truncate_gen++;
    i->attr.size = MIB;
    bed_op_init(&op);
    core_setattr(c, &op.q, &set, f);
    ck_assert_int_eq(bed_wait(&bed, &op), 0);
    ck_assert_uint_eq(op.q.entry.attr.size, MIB);
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 1000), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "cut", data, MIB);
    core_release(c, f);
}
END_TEST

START_TEST(a_shared_read_that_a_cut_overtakes_ends_where_the_file_does_though_a_lease_has_come)
{
    struct core *other = bed_mount(&bed, NULL);
    struct core_file *w = bed_create(&bed, other, "cut"), *r, *again;
    struct fake_inode *i = fake_inode(&bed.cluster, "cut");
    struct bed_op read;

    ck_assert_int_eq(bed_write(&bed, other, w, 0, data, 200000), 0);
    r = bed_open(&bed, c, "cut", O_RDWR, NULL);
    ck_assert_int_eq(bed_read(&bed, c, r, 0, back, 200000), 200000);
    fake_targets_hold(&bed.cluster);
    bed_op_init(&read);
    core_read(c, &read.q, r, 99000, 2000, NULL);
    bed_spin(&bed, 50 * NS_PER_MS);
    core_release(other, w);
    bed_spin(&bed, 50 * NS_PER_MS);
    i->attr.truncate_gen++;
    i->attr.size = 100000;
    i->attr.change = ++bed.cluster.change;
    again = bed_open(&bed, c, "cut", O_RDWR, NULL);
    ck_assert(!read.done);
    fake_targets_release(&bed.cluster);
    ck_assert_int_eq(bed_wait(&bed, &read), 0);
    ck_assert_uint_eq(read.q.out.read.bytes, 1000);
    core_read_done(&read.q);
    core_release(c, r);
    core_release(c, again);
    bed_unmount(&bed, other, false, 0);
}
END_TEST

/* A stored file is opened while an open that cuts it is not answered. */
static void open_while_cut(struct bed_op *cut, struct bed_op *open)
{
    struct core_file *f = stored_file("cut", 3000);
    uint64_t ino = core_file_ino(f);

    core_release(c, f);
    bed_spin(&bed, 100 * NS_PER_MS);
    bed.cluster.hold_opens = true;
    bed_op_init(cut);
    core_open(c, &cut->q, ino, O_RDWR | O_TRUNC);
    bed_spin(&bed, 10 * NS_PER_MS);
    bed.cluster.hold_opens = false;
    bed_op_init(open);
    core_open(c, &open->q, ino, O_RDWR);
    bed_spin(&bed, 10 * NS_PER_MS);
}

/* It is executed behind an open that is answered before it, and its answer is lost: what is written
 * through the other file must not meet the cut half-way. */
START_TEST(nobody_has_a_file_that_an_open_is_cutting_before_that_is_answered)
{
    struct iovec iov = {data, 100};
    struct bed_op cut, open, write;
    struct core_file *f;
    bool early;

    open_while_cut(&cut, &open);
    early = open.done;
    bed_op_init(&write);
    if (early)
        core_write(c, &write.q, open.q.out.opened.file, 70000, &iov, 1, 100);
    bed.cluster.drop_replies = true;
    fake_release_removals(&bed.cluster);
    while (bed.cluster.drop_replies)
        bed_spin(&bed, NS_PER_MS);
    ck_assert(!cut.done);
    if (early)
        ck_assert_int_eq(bed_fsync(&bed, c, open.q.out.opened.file), 0);
    ck_assert_int_eq(bed_wait(&bed, &cut), 0);
    ck_assert_int_eq(bed_wait(&bed, &open), 0);
    f = open.q.out.opened.file;
    ck_assert_int_eq(bed_truncate(&bed, c, f, 0), 0);
    ck_assert_int_eq(bed_truncate(&bed, c, f, 3000), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    memset(data, 0, 3000);
    bed_expect_durable(&bed, "cut", data, 3000);
    ck_assert(!early);
    ck_assert_uint_eq(open.q.out.opened.lease, MSG_LEASE_WRITE);
    ck_assert(!open.q.out.opened.keep_cache);
    core_release(c, f);
    core_release(c, cut.q.out.opened.file);
}
END_TEST

START_TEST(an_open_that_waits_for_a_cut_can_be_interrupted)
{
    struct bed_op cut, open;

    open_while_cut(&cut, &open);
    ck_assert(!open.done);
    core_cancel(&open.q);
    ck_assert_int_eq(bed_wait(&bed, &open), -EINTR);
    fake_release_removals(&bed.cluster);
    ck_assert_int_eq(bed_wait(&bed, &cut), 0);
    ck_assert_uint_eq(cut.q.entry.attr.size, 0);
    core_release(c, cut.q.out.opened.file);
}
END_TEST

/* The file has been cut, and its targets have not heard of it yet: a read that is under way finds
 * there what was behind the end. It arrives when all of them have cut it and it has grown again. */
static struct core_file *cut_while_fetched(struct bed_late *late)
{
    struct core_file *f = stored_file("ahead", 2 * MIB);
    struct fake_inode *i = fake_inode(&bed.cluster, "ahead");
    struct msg_setattr_req set = {.ino = core_file_ino(f), .set = MSG_SET_MODE, .mode = 0640};
    struct bed_op op;

    core_advise(f, 0, 0, CORE_ADVICE_DONTNEED);
    i->attr.truncate_gen++;
    i->attr.size = 5000;
    bed_op_init(&op);
    core_setattr(c, &op.q, &set, f);
    ck_assert_int_eq(bed_wait(&bed, &op), 0);
    ck_assert_uint_eq(op.q.entry.attr.size, 5000);
    bed_answer_late(late, 300 * NS_PER_MS);
    core_advise(f, 0, 5000, CORE_ADVICE_WILLNEED);
    bed_spin(&bed, 10 * NS_PER_MS);
    i->attr.truncate_gen--; /* it is that cut */
    fake_targets_cut(&bed.cluster, i, 5000);
    memset(data + 5000, 0, 2 * MIB - 5000);
    return f;
}

static void grow_while_fetched(uint32_t size)
{
    struct bed_late late;
    struct core_file *f = cut_while_fetched(&late);

    ck_assert_int_eq(bed_truncate(&bed, c, f, size), 0);
    bed_spin(&bed, NS_PER_S);
    ck_assert_uint_ge(late.n, 2);
    net_loop_set_policy(NULL, NULL);
    expect_read(f, 0, data, size);
    core_release(c, f);
}

START_TEST(
    what_was_cut_does_not_come_back_with_what_was_read_ahead_when_a_truncate_adds_to_the_file)
{
    grow_while_fetched(MIB);
}
END_TEST

START_TEST(nor_when_it_adds_less_than_a_page)
{
    grow_while_fetched(6000);
}
END_TEST

START_TEST(nor_when_a_write_behind_its_end_does)
{
    struct bed_late late;
    struct core_file *f = cut_while_fetched(&late);

    memset(data + 8192, 0x77, 100);
    ck_assert_int_eq(bed_write(&bed, c, f, 8192, data + 8192, 100), 0);
    bed_spin(&bed, NS_PER_S);
    ck_assert_uint_ge(late.n, 2);
    net_loop_set_policy(NULL, NULL);
    expect_read(f, 0, data, 8292);
    core_release(c, f);
}
END_TEST

/* A mount that gave up waiting for the answer, say. */
START_TEST(what_a_truncate_has_cut_that_seemed_to_fail_does_not_come_back_from_the_cache)
{
    struct core_file *f = stored_file("cut", 2 * MIB);
    struct fake_inode *i = fake_inode(&bed.cluster, "cut");

    expect_read(f, 0, data, 2 * MIB);
    bed.cluster.fail_setattr = -EIO;
    ck_assert_int_eq(bed_truncate(&bed, c, f, 5000), -EIO);
    bed.cluster.fail_setattr = 0;
    fake_targets_cut(&bed.cluster, i, 5000);
    i->attr.size = 5000;
    i->attr.change = ++bed.cluster.change;
    ck_assert_int_eq(bed_truncate(&bed, c, f, 2 * MIB), 0);
    memset(data + 5000, 0, 2 * MIB - 5000);
    expect_read(f, 0, data, 2 * MIB);
    core_release(c, f);
}
END_TEST

SUITE_MAIN(
    "client-truncate", setup, file_bed_teardown,
    what_a_truncate_has_cut_is_not_written_again_after_a_restart,
    a_truncate_that_fails_loses_nothing, what_a_truncate_will_cut_is_not_written_before_it,
    a_flush_during_a_truncate_ends_after_it, a_size_that_is_being_cut_is_asked_for,
    a_small_file_is_sent_as_it_was_when_its_flush_began,
    an_answer_from_behind_a_cut_brings_its_size_too,
    a_shared_read_that_a_cut_overtakes_ends_where_the_file_does_though_a_lease_has_come,
    nobody_has_a_file_that_an_open_is_cutting_before_that_is_answered,
    an_open_that_waits_for_a_cut_can_be_interrupted,
    what_was_cut_does_not_come_back_with_what_was_read_ahead_when_a_truncate_adds_to_the_file,
    nor_when_it_adds_less_than_a_page, nor_when_a_write_behind_its_end_does,
    what_a_truncate_has_cut_that_seemed_to_fail_does_not_come_back_from_the_cache)
