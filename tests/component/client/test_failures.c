/* SPDX-License-Identifier: Apache-2.0 */
/* What a client does when servers restart, lose answers, run full, damage data or stop
 * answering. */
#include <check.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/err.h"
#include "tests/support/file_bed.h"
#include "tests/support/suite.h"

#define ROOM (8u * MIB)

static void setup(void)
{
    file_bed_setup(3, ROOM);
}

START_TEST(uncommitted_data_is_written_again_when_a_target_forgot_it)
{
    struct core_file *f = bed_create(&bed, c, "replay");
    struct core_stats stats;
    unsigned k;

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 6 * MIB), 0); /* grants are there after it */
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, ROOM), 0);
    ck_assert_int_eq(bed_flush(&bed, c, f), 0);
    for (k = 0; k < 3; k++) {
        ck_assert_uint_gt(bed.cluster.oss[k].unstable, 0);
        fake_oss_restart(&bed.cluster.oss[k]);
    }
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "replay", data, ROOM);
    core_get_stats(c, &stats);
    ck_assert_uint_gt(stats.replays, 0);
    core_release(c, f);
}
END_TEST

static const struct fake_oss *refuse_a_write(struct core_file *f, int status)
{
    const struct fake_oss *at = NULL;
    unsigned before[3];

    for (unsigned k = 0; k < 3; k++) {
        bed.cluster.oss[k].fail_writes = status;
        bed.cluster.oss[k].fail_writes_n = 1;
        before[k] = bed.cluster.oss[k].writes;
    }
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 100), 0);
    for (unsigned k = 0; k < 3; k++) {
        bed.cluster.oss[k].fail_writes = 0;
        if (bed.cluster.oss[k].writes == before[k] + 2)
            at = &bed.cluster.oss[k];
    }
    ck_assert_ptr_nonnull(at);
    return at;
}

/* By it a target knows what it has done already. */
START_TEST(a_write_without_a_lease_keeps_its_number_while_it_is_sent_again)
{
    struct core *other = bed_mount(&bed, NULL);
    struct core_file *f = bed_create(&bed, c, "f"), *f2;
    const struct fake_oss *at;
    uint64_t first;

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, ROOM), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    for (unsigned k = 0; k < 3; k++)
        ck_assert_uint_eq(bed.cluster.oss[k].once[0], 0);
    f2 = bed_open(&bed, other, "f", O_RDWR, NULL);
    at = refuse_a_write(f, -AIFS_EBUSY_SERVER);
    first = at->once[0];
    ck_assert_uint_ne(first, 0);
    ck_assert_uint_eq(at->once[1], first);
    at = refuse_a_write(f, -AIFS_ESTALE_TRUNC); /* the file is another one then */
    ck_assert_uint_ne(at->once[1], first);
    ck_assert_uint_ne(at->once[0], at->once[1]);
    core_release(other, f2);
    bed_unmount(&bed, other, false, 0);
    core_release(c, f);
}
END_TEST

/* Each goes by itself then: with the number of the other it would count as done. */
START_TEST(writes_that_shared_a_call_have_numbers_of_their_own)
{
    struct core *other = bed_mount(&bed, NULL);
    struct core_file *f = stored_file("f", ROOM), *f2 = bed_open(&bed, other, "f", O_RDWR, NULL);
    struct iovec iov = {data, 100};
    const struct fake_oss *at = NULL;
    struct bed_op ops[2];

    for (unsigned k = 0; k < 3; k++) {
        bed.cluster.oss[k].fail_writes = -AIFS_EBUSY_SERVER;
        bed.cluster.oss[k].fail_writes_n = 1;
        bed.cluster.oss[k].writes = 0;
    }
    for (unsigned k = 0; k < 2; k++) {
        bed_op_init(&ops[k]);
        core_write(c, &ops[k].q, f, k * 8192, &iov, 1, 100);
    }
    for (unsigned k = 0; k < 2; k++)
        ck_assert_int_eq(bed_wait(&bed, &ops[k]), 0);
    for (unsigned k = 0; k < 3; k++)
        at = bed.cluster.oss[k].writes ? &bed.cluster.oss[k] : at;
    ck_assert_ptr_nonnull(at);
    ck_assert_uint_eq(at->writes, 3); /* together, and each */
    ck_assert_uint_ne(at->once[1], 0);
    ck_assert_uint_eq(at->once[0], at->once[1] + 1);
    core_release(other, f2);
    bed_unmount(&bed, other, false, 0);
    core_release(c, f);
}
END_TEST

START_TEST(a_restart_while_writes_are_in_flight_loses_nothing)
{
    struct core_file *f = bed_create(&bed, c, "inflight");
    struct bed_op op;
    unsigned round;

    for (round = 0; round < 5; round++) {
        bed.cluster.oss[1].hold = true;
        ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 64 * KIB), 0);
        bed_pattern(data, ROOM, 0, round);
        bed_op_init(&op);
        ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 100), 0);
        bed.cluster.oss[1].hold = false;
        ck_assert_int_eq(bed_write(&bed, c, f, 0, data, ROOM), 0);
        fake_oss_restart(&bed.cluster.oss[round % 3]);
        fake_oss_release(&bed.cluster.oss[1]);
        ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
        bed_expect_durable(&bed, "inflight", data, ROOM);
    }
    core_release(c, f);
}
END_TEST

START_TEST(a_change_whose_answer_is_lost_is_executed_once)
{
    struct core_file *f;

    bed.cluster.drop_replies = true;
    f = bed_create(&bed, c, "once"); /* O_EXCL: a second execution would say EEXIST */
    ck_assert_uint_eq(bed.cluster.executed[RPC_OP_CREATE], 1);
    ck_assert_uint_gt(bed.cluster.calls[RPC_OP_CREATE], 1);
    bed.cluster.drop_replies = true;
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 1000), 0);
    ck_assert_int_eq(bed_flush(&bed, c, f), 0);
    bed_expect_durable(&bed, "once", data, 1000);
    core_release(c, f);
}
END_TEST

/* The answer that is told again says how large the file is by then. */
START_TEST(a_file_is_cut_once_by_an_open_whose_answer_is_lost)
{
    struct core_file *f = bed_create(&bed, c, "cut");
    struct fake_inode *i = fake_inode(&bed.cluster, "cut");
    struct bed_op op;
    unsigned cuts;

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 100), 0);
    ck_assert_int_eq(bed_flush(&bed, c, f), 0);
    core_release(c, f);
    bed_spin(&bed, 100 * NS_PER_MS);
    cuts = bed.cluster.executed[RPC_OP_SETATTR];
    bed.cluster.drop_replies = true;
    bed_op_init(&op);
    core_open(c, &op.q, i->attr.ino, O_RDWR | O_TRUNC);
    while (bed.cluster.drop_replies)
        bed_spin(&bed, NS_PER_MS);
    ck_assert(!op.done);
    i->attr.size = 100; /* somebody else has written */
    i->attr.change = ++bed.cluster.change;
    ck_assert_int_eq(bed_wait(&bed, &op), 0);
    ck_assert_uint_eq(bed.cluster.executed[RPC_OP_SETATTR], cuts);
    core_release(c, op.q.out.opened.file);
}
END_TEST

START_TEST(a_lost_session_is_an_error_of_what_was_dirty_and_work_goes_on_in_a_new_one)
{
    struct core_file *dirty = bed_create(&bed, c, "dirty"), *clean = bed_create(&bed, c, "clean"),
                     *f;
    struct core_stats stats;

    ck_assert_int_eq(bed_write(&bed, c, clean, 0, data, 5000), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, clean), 0);
    ck_assert_int_eq(bed_write(&bed, c, dirty, 0, data, 5000), 0);
    fake_mds_forget_sessions(&bed.cluster);
    ck_assert_int_ne(bed_fsync(&bed, c, dirty), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, dirty), 0); /* once */
    ck_assert_int_eq(bed_fsync(&bed, c, clean), 0);
    f = bed_create(&bed, c, "after");
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 3 * MIB), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "after", data, 3 * MIB);
    ck_assert_int_eq(bed_read(&bed, c, clean, 0, back, 5000), 5000); /* opened again */
    ck_assert_int_eq(memcmp(back, data, 5000), 0);
    core_get_stats(c, &stats);
    ck_assert_uint_eq(stats.sessions_lost, 1);
    core_release(c, dirty);
    core_release(c, clean);
    core_release(c, f);
}
END_TEST

START_TEST(a_file_whose_locks_were_lost_does_not_keep_others_from_writing_back)
{
    struct core_file *locked = bed_create(&bed, c, "locked"),
                     *f = bed_open(&bed, c, "locked", O_RDWR, NULL);
    struct msg_lock lock = {
        .kind = MSG_LOCK_RECORD, .type = MSG_LOCK_WRITE, .owner = 7, .start = 0, .end = 9};
    struct bed_op op;

    bed_op_init(&op);
    core_lock(c, &op.q, locked, &lock, false);
    ck_assert_int_eq(bed_wait(&bed, &op), 0);
    fake_mds_forget_sessions(&bed.cluster);
    ck_assert_int_ne(bed_write(&bed, c, f, 0, data, 1000) | bed_fsync(&bed, c, f), 0);
    ck_assert_int_eq(bed_write(&bed, c, locked, 0, data, 1000), -EIO);
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 1000), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "locked", data, 1000);
    ck_assert_int_eq(bed_write(&bed, c, f, 1000, data + 1000, 100000), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "locked", data, 101000);
    core_release(c, locked);
    core_release(c, f);
}
END_TEST

START_TEST(a_file_that_is_not_open_any_more_is_not_reclaimed)
{
    struct core_file *locked = bed_create(&bed, c, "locked"), *f = bed_create(&bed, c, "other");
    struct msg_lock lock = {
        .kind = MSG_LOCK_RECORD, .type = MSG_LOCK_WRITE, .owner = 7, .start = 0, .end = 9};
    struct bed_op op;

    bed_op_init(&op);
    core_lock(c, &op.q, locked, &lock, false);
    ck_assert_int_eq(bed_wait(&bed, &op), 0);
    fake_mds_forget_sessions(&bed.cluster);
    ck_assert_int_ne(bed_write(&bed, c, f, 0, data, 1000) | bed_fsync(&bed, c, f), 0);
    ck_assert_int_eq(bed_write(&bed, c, locked, 0, data, 1000), -EIO);
    fake_mds_restart(&bed.cluster);
    bed_spin(&bed, 5 * NS_PER_S);
    ck_assert_uint_eq(bed.cluster.reclaims, 1);
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 1000), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    core_release(c, locked);
    core_release(c, f);
}
END_TEST

/* Opened again when what is cached of it is worth nothing. */
static struct core_file *changed_elsewhere(struct core_file *f, const char *name)
{
    core_release(c, f);
    bed_spin(&bed, 50 * NS_PER_MS);
    fake_inode(&bed.cluster, name)->attr.change += 1000;
    return bed_open(&bed, c, name, O_RDONLY, NULL);
}

START_TEST(damaged_data_is_read_again_and_then_an_error)
{
    struct core_file *f = stored_file("damaged", ROOM);
    struct core_stats stats;

    f = changed_elsewhere(f, "damaged");
    fake_targets_corrupt_reads(&bed.cluster, 1);
    expect_read(f, 0, data, ROOM);
    f = changed_elsewhere(f, "damaged");
    fake_targets_corrupt_reads(&bed.cluster, 1000);
    ck_assert_int_eq(bed_read(&bed, c, f, 5 * MIB, back, 4096), -EIO);
    core_get_stats(c, &stats);
    ck_assert_uint_ge(stats.checksum_errors, 4);
    core_release(c, f);
}
END_TEST

START_TEST(a_read_that_waits_for_a_silent_server_can_be_cancelled)
{
    struct core_file *f = stored_file("silent", ROOM);
    struct bed_op op;
    struct strbuf text;

    f = changed_elsewhere(f, "silent");
    fake_targets_hold(&bed.cluster);
    read_later(&op, f, 5 * MIB + 1, 8000);
    bed_spin(&bed, 20 * NS_PER_MS);
    ck_assert(!op.done);
    strbuf_init(&text);
    core_print_requests(c, &text);
    ck_assert_ptr_nonnull(strstr(text.data, "OSS_READ"));
    strbuf_fini(&text);
    core_cancel(&op.q);
    ck_assert_int_eq(bed_wait(&bed, &op), -EINTR);
    fake_targets_release(&bed.cluster);
    expect_read(f, 5 * MIB + 1, data + 5 * MIB + 1, 8000);
    core_release(c, f);
}
END_TEST

START_TEST(a_cancelled_change_is_still_made_once)
{
    struct bed_op op;
    unsigned k;

    bed.cluster.refuse = -AIFS_EBUSY_SERVER;
    bed_op_init(&op);
    core_mkdir(c, &op.q, 1, "later", 5, 0755, NULL);
    bed_spin(&bed, 30 * NS_PER_MS);
    core_cancel(&op.q);
    ck_assert_int_eq(bed_wait(&bed, &op), -EINTR);
    bed.cluster.refuse = 0;
    for (k = 0; k < 3; k++) {
        bed_op_init(&op);
        core_getattr(c, &op.q, 1);
        ck_assert_int_eq(bed_wait(&bed, &op), 0);
    }
}
END_TEST

static int find(const char *name)
{
    struct bed_op op;

    bed_op_init(&op);
    core_lookup(c, &op.q, 1, name, (uint32_t)strlen(name));
    return bed_wait(&bed, &op);
}

START_TEST(what_a_cancelled_create_has_made_is_there)
{
    struct bed_op op;

    ck_assert_int_eq(find("made"), -ENOENT);
    bed.cluster.mds_hold = true;
    bed_op_init(&op);
    core_create_file(c, &op.q, 1, "made", 4, 0644, O_RDWR | O_CREAT, NULL);
    bed_spin(&bed, 30 * NS_PER_MS);
    core_cancel(&op.q);
    ck_assert_int_eq(bed_wait(&bed, &op), -EINTR);
    fake_mds_release(&bed.cluster);
    bed_spin(&bed, 100 * NS_PER_MS);
    ck_assert_ptr_nonnull(fake_inode(&bed.cluster, "made"));
    ck_assert_int_eq(find("made"), 0);
}
END_TEST

START_TEST(a_soft_mount_gives_up_in_time)
{
    struct core_options o;
    struct core_file *f;
    struct bed_op op;
    struct core *soft;

    core_options_default(&o);
    o.soft = true;
    o.timeo_ns = 400 * NS_PER_MS;
    soft = bed_mount(&bed, &o);
    f = bed_create(&bed, soft, "soft");
    bed.cluster.refuse = -AIFS_EBUSY_SERVER;
    bed_op_init(&op);
    core_lookup(soft, &op.q, 1, "none", 4);
    ck_assert_int_eq(bed_wait(&bed, &op), -AIFS_ETIMEOUT);
    bed.cluster.refuse = 0;
    bed.cluster.oss[0].hold = bed.cluster.oss[1].hold = bed.cluster.oss[2].hold = true;
    ck_assert_int_ne(bed_write(&bed, soft, f, 0, data, 100000),
                     0); /* first write to a target: through */
    fake_oss_release(&bed.cluster.oss[0]);
    fake_oss_release(&bed.cluster.oss[1]);
    fake_oss_release(&bed.cluster.oss[2]);
    core_release(soft, f);
    bed_unmount(&bed, soft, false, 0);
}
END_TEST

START_TEST(a_server_that_does_not_answer_is_named_and_who_waits_for_it_can_be_killed)
{
    struct core_file *f = stored_file("slow", 2 * MIB);
    int fd = memfd_create("log", 0);
    char log[4096] = "";
    struct core_options o;
    struct core *other;
    struct bed_op op;
    struct core_stats stats;

    core_release(c, f);
    core_options_default(&o);
    o.hung_log_ns = 2 * NS_PER_S;
    other = bed_mount(&bed, &o);
    f = bed_open(&bed, other, "slow", O_RDONLY, NULL);
    bed.cluster.oss[0].hold = bed.cluster.oss[1].hold = bed.cluster.oss[2].hold = true;
    bed_op_init(&op);
    core_read(other, &op.q, f, MIB, 4096, NULL);
    ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    bed_spin(&bed, 3 * NS_PER_S);
    core_get_stats(other, &stats);
    ck_assert_uint_ge(stats.hung, 1);
    ck_assert_int_gt(pread(fd, log, sizeof log - 1, 0), 0);
    ck_assert_msg(strstr(log, "oss") && strstr(log, ": OSS_READ of inode"), "it says %s", log);
    core_cancel(&op.q);
    ck_assert_int_eq(bed_wait(&bed, &op), -EINTR);
    fake_targets_release(&bed.cluster);
    core_release(other, f);
    bed_unmount(&bed, other, false, 0);
    close(fd);
}
END_TEST

START_TEST(all_transfers_of_a_soft_mount_give_up_together)
{
    static struct bed_op ops[40];
    struct core_options o;
    struct core_file *f;
    struct core *soft;
    unsigned k;

    core_release(c, stored_file("soft", ROOM));
    bed_spin(&bed, 50 * NS_PER_MS);
    core_options_default(&o);
    o.soft = true;
    o.timeo_ns = 400 * NS_PER_MS;
    soft = bed_mount(&bed, &o);
    f = bed_open(&bed, soft, "soft", O_RDONLY, NULL);
    bed.cluster.oss[0].truncate_gen[core_file_ino(f)] = 9; /* these wait for attributes */
    bed.cluster.oss[1].hold = bed.cluster.oss[2].hold = true;
    bed.cluster.mds_hold = true;
    for (k = 0; k < ARRAY_LEN(ops); k++) {
        bed_op_init(&ops[k]);
        ops[k].q.direct = true;
        core_read(soft, &ops[k].q, f, k % 7 * MIB + 4096 * k, 512 * KIB, back + k * 4096);
    }
    for (k = 0; k < ARRAY_LEN(ops); k++)
        ck_assert_int_eq(bed_wait(&bed, &ops[k]), -AIFS_ETIMEOUT);
    fake_mds_release(&bed.cluster);
    fake_oss_release(&bed.cluster.oss[1]);
    fake_oss_release(&bed.cluster.oss[2]);
    core_release(soft, f);
    bed_unmount(&bed, soft, false, 0);
}
END_TEST

START_TEST(a_forced_unmount_waits_for_nobody)
{
    struct core_file *f = bed_create(&bed, c, "forced");
    struct bed_op read, op;

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, ROOM), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    fake_targets_hold(&bed.cluster);
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, ROOM), 0);
    fsync_later(&read, f);
    bed.cluster.refuse = -AIFS_EBUSY_SERVER;
    bed_op_init(&op);
    core_unlink(c, &op.q, 1, "forced", 6);
    bed_spin(&bed, 20 * NS_PER_MS);
    ck_assert(!read.done);
    core_release(c, f);
    bed_unmount(&bed, c, true, 0);
    ck_assert(read.done && op.done);
    ck_assert_int_eq(read.status, -EIO);
    ck_assert_int_eq(op.status, -EIO);
    c = NULL;
}
END_TEST

START_TEST(fsync_waits_until_the_server_knows_its_size)
{
    struct core_file *f = stored_file("reported", 2 * MIB + 1);
    struct fake_inode *i = fake_inode(&bed.cluster, "reported");
    struct fake_oss *first = &bed.cluster.oss[i->layout.start % 3],
                    *third = &bed.cluster.oss[(i->layout.start + 2) % 3];
    struct bed_op early, late;

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 4096), 0);
    ck_assert_int_eq(bed_flush(&bed, c, f), 0); /* written there, not committed */
    first->hold = third->hold = true;
    ck_assert_int_eq(bed_write(&bed, c, f, MIB, data + MIB, 4096), 0);
    fsync_later(&early, f);
    bed_spin(&bed, 20 * NS_PER_MS);
    ck_assert_int_eq(bed_write(&bed, c, f, 2 * MIB, data + 2 * MIB, 100000), 0);
    fsync_later(&late, f);
    bed_spin(&bed, 20 * NS_PER_MS);
    fake_oss_release(first); /* the early one reports what is there by now */
    bed_spin(&bed, 20 * NS_PER_MS);
    ck_assert(!late.done);
    fake_oss_release(third);
    ck_assert_int_eq(bed_wait(&bed, &late), 0);
    bed_expect_durable(&bed, "reported", data, 2 * MIB + 100000);
    ck_assert_int_eq(bed_wait(&bed, &early), 0);
    core_release(c, f);
}
END_TEST

START_TEST(fsync_of_many_small_pieces_leaves_nothing_uncommitted)
{
    struct core_file *f = stored_file("pieces", 2 * MIB);
    struct core_stats stats;
    unsigned k;

    for (k = 0; k < 20; k++) { /* more than fly at a time */
        data[k * 8192 + 5] ^= 0xff;
        ck_assert_int_eq(bed_write(&bed, c, f, k * 8192 + 5, data + k * 8192 + 5, 1), 0);
    }
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    core_get_stats(c, &stats);
    ck_assert_uint_eq(stats.dirty_bytes, 0);
    ck_assert_uint_eq(stats.uncommitted_bytes, 0);
    bed_expect_durable(&bed, "pieces", data, 2 * MIB);
    core_release(c, f);
}
END_TEST

START_TEST(fsync_waits_for_what_a_read_of_the_same_bytes_keeps_from_being_sent)
{
    struct core_file *f = stored_file("behind", 2 * MIB);
    struct bed_op read, sync;

    core_release(c, f);
    file_bed_remount(NULL);
    f = bed_open(&bed, c, "behind", O_RDWR, NULL);
    ck_assert_int_eq(bed_write(&bed, c, f, 500000, data + 500000, 1), 0); /* for a grant */
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    data[100] ^= 0xff;
    ck_assert_int_eq(bed_write(&bed, c, f, 100, data + 100, 1), 0);
    fake_targets_hold(&bed.cluster);
    read_later(&read, f, 200, 100);
    fsync_later(&sync, f);
    bed_spin(&bed, 20 * NS_PER_MS);
    ck_assert(!read.done && !sync.done);
    fake_targets_release(&bed.cluster);
    ck_assert_int_eq(bed_wait(&bed, &sync), 0);
    bed_expect_durable(&bed, "behind", data, 2 * MIB);
    ck_assert_int_eq(bed_wait(&bed, &read), 0);
    core_read_done(&read.q);
    core_release(c, f);
}
END_TEST

START_TEST(many_small_pieces_can_be_written_beside_damaged_data)
{
    struct core_file *f = stored_file("scattered", 2 * MIB);
    unsigned k;

    core_release(c, f);
    file_bed_remount(NULL);
    fake_targets_corrupt_reads(&bed.cluster, ~0u);
    f = bed_open(&bed, c, "scattered", O_RDWR, NULL);
    for (k = 0; k < 100; k++) { /* more than a block can tell apart */
        data[k * 8192 + 5] ^= 0xff;
        ck_assert_int_eq(bed_write(&bed, c, f, k * 8192 + 5, data + k * 8192 + 5, 1), 0);
    }
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    for (k = 0; k < 100; k++) {
        data[k * 8192 + 4005] ^= 0xff;
        ck_assert_int_eq(bed_write(&bed, c, f, k * 8192 + 4005, data + k * 8192 + 4005, 1), 0);
        if (k % 30 == 29)
            ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    }
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "scattered", data, 2 * MIB);
    fake_targets_corrupt_reads(&bed.cluster, 0);
    expect_read(f, 0, data, 2 * MIB);
    core_release(c, f);
}
END_TEST

SUITE_MAIN("client-failures", setup, file_bed_teardown,
           uncommitted_data_is_written_again_when_a_target_forgot_it,
           a_restart_while_writes_are_in_flight_loses_nothing,
           a_change_whose_answer_is_lost_is_executed_once,
           a_write_without_a_lease_keeps_its_number_while_it_is_sent_again,
           writes_that_shared_a_call_have_numbers_of_their_own,
           a_file_is_cut_once_by_an_open_whose_answer_is_lost,
           a_lost_session_is_an_error_of_what_was_dirty_and_work_goes_on_in_a_new_one,
           a_file_whose_locks_were_lost_does_not_keep_others_from_writing_back,
           a_file_that_is_not_open_any_more_is_not_reclaimed,
           damaged_data_is_read_again_and_then_an_error,
           a_read_that_waits_for_a_silent_server_can_be_cancelled,
           a_cancelled_change_is_still_made_once, what_a_cancelled_create_has_made_is_there,
           a_soft_mount_gives_up_in_time,
           a_server_that_does_not_answer_is_named_and_who_waits_for_it_can_be_killed,
           all_transfers_of_a_soft_mount_give_up_together, a_forced_unmount_waits_for_nobody,
           fsync_waits_until_the_server_knows_its_size,
           fsync_of_many_small_pieces_leaves_nothing_uncommitted,
           fsync_waits_for_what_a_read_of_the_same_bytes_keeps_from_being_sent,
           many_small_pieces_can_be_written_beside_damaged_data)
