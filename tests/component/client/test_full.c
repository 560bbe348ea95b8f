/* SPDX-License-Identifier: Apache-2.0 */
/* Targets that are full: who is told, and what is read of a write that they did not take. */
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

static void expect_size(struct core_file *f, const char *name, uint64_t want)
{
    uint64_t size;

    ck_assert_int_eq(bed_size(&bed, c, core_file_ino(f), &size), 0);
    ck_assert_uint_eq(size, want);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    ck_assert_uint_eq(fake_inode(&bed.cluster, name)->attr.size, want);
}

static struct fake_oss *oss_of_chunk(const char *name, uint64_t chunk)
{
    const struct msg_layout *l = &fake_inode(&bed.cluster, name)->layout;

    return &bed.cluster.oss[(l->start + chunk % l->stripe_count) % bed.cluster.n_oss];
}

START_TEST(a_full_target_is_reported_and_by_one_call_only)
{
    struct core_file *f = bed_create(&bed, c, "full");
    int err;

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 4 * MIB), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    fake_targets_fail_writes(&bed.cluster, -ENOSPC);
    err = bed_write(&bed, c, f, 4 * MIB, data, 4 * MIB);
    if (!err)
        err = bed_fsync(&bed, c, f);
    ck_assert_int_eq(err, -ENOSPC);
    fake_targets_fail_writes(&bed.cluster, 0);
    (void)bed_fsync(&bed, c, f);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, ROOM), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "full", data, ROOM);
    core_release(c, f);
}
END_TEST

START_TEST(what_no_target_has_taken_is_not_read)
{
    struct core_file *f = bed_create(&bed, c, "refused");
    unsigned k;

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 3 * MIB), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    for (k = 0; k < 3; k++)
        bed.cluster.oss[k].grant = 0;
    fake_targets_fail_writes(&bed.cluster, -ENOSPC);
    memset(back, 0xaa, MIB);
    (void)bed_write(&bed, c, f, MIB / 2, back, MIB); /* the first one may be told later */
    (void)bed_fsync(&bed, c, f);
    fake_targets_fail_writes(&bed.cluster, 0);
    expect_read(f, 0, data, 3 * MIB);
    ck_assert_int_eq(bed_write(&bed, c, f, MIB / 2, data, MIB), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "refused", data, 3 * MIB);
    core_release(c, f);
}
END_TEST

/* A growth for which nothing has to be kept goes on without it. */
START_TEST(what_a_new_file_has_lost_is_not_read)
{
    struct core_file *other = stored_file("promised", 3 * MIB); /* room, by all of them */
    struct core_file *f = bed_create(&bed, c, "new"), *g;

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 200000), 0);
    fake_targets_fail_writes(&bed.cluster, -ENOSPC);
    ck_assert_int_eq(bed_flush(&bed, c, f), -ENOSPC);
    fake_targets_fail_writes(&bed.cluster, 0);
    g = bed_open(&bed, c, "new", O_RDONLY, NULL);
    memset(back + MIB, 0, 200000);
    ck_assert_int_eq(bed_read(&bed, c, g, 0, back, 200000), 200000);
    ck_assert_int_eq(memcmp(back, back + MIB, 200000), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), -ENOSPC);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "new", back + MIB, 200000);
    core_release(c, other);
    core_release(c, f);
    core_release(c, g);
}
END_TEST

START_TEST(what_the_metadata_server_has_not_taken_is_not_read)
{
    struct core_file *f = stored_file("small", 1000);

    ck_assert_int_eq(bed_write(&bed, c, f, 500, data + 5, 1000), 0);
    bed.cluster.refuse = -ENOSPC;
    ck_assert_int_eq(bed_fsync(&bed, c, f), -ENOSPC);
    bed.cluster.refuse = 0;
    expect_size(f, "small", 1000);
    ck_assert_int_eq(bed_read(&bed, c, f, 0, back, 2000), 1000);
    ck_assert_int_eq(memcmp(back, data, 1000), 0);
    ck_assert_int_eq(bed_write(&bed, c, f, 1000, data + 1000, 100), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "small", data, 1100);
    core_release(c, f);
}
END_TEST

START_TEST(what_was_not_taken_goes_with_what_is_written_meanwhile)
{
    struct core_file *f = stored_file("small", 1000);
    struct bed_op op;

    memcpy(back, data, 2000);
    memcpy(back + 500, data + 5, 500);
    ck_assert_int_eq(bed_write(&bed, c, f, 500, back + 500, 500), 0);
    bed.cluster.mds_hold = true;
    fsync_later(&op, f);
    bed_spin(&bed, 100 * NS_PER_MS);
    ck_assert_int_eq(bed_write(&bed, c, f, 1000, back + 1000, 1000), 0);
    bed.cluster.refuse = -ENOSPC;
    fake_mds_release(&bed.cluster);
    bed.cluster.refuse = 0;
    ck_assert_int_eq(bed_wait(&bed, &op), -ENOSPC);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "small", back, 2000);
    core_release(c, f);
}
END_TEST

START_TEST(the_log_tells_of_which_file_and_on_which_target_it_was)
{
    struct core_file *f = bed_create(&bed, c, "told");
    char log[4096] = "";
    int fd = memfd_create("log", 0);

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 6 * MIB), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    core_release(c, f);
    f = bed_open(&bed, c, "told", O_RDWR, NULL); /* its name is known */
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 4096), 0);
    fake_targets_fail_writes(&bed.cluster, -ENOSPC);
    ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    ck_assert_int_eq(bed_fsync(&bed, c, f), -ENOSPC);
    fake_targets_fail_writes(&bed.cluster, 0);
    ck_assert_int_gt(pread(fd, log, sizeof log - 1, 0), 0);
    ck_assert_msg(strstr(log, "write-back of inode ") && strstr(log, " (/told) on oss") &&
                      strstr(log, ", target "),
                  "it says %s", log);
    core_release(c, f);
    close(fd);
}
END_TEST

START_TEST(without_a_grant_enospc_reaches_write)
{
    struct core_file *f = bed_create(&bed, c, "nogrant");
    unsigned k;

    for (k = 0; k < 3; k++)
        bed.cluster.oss[k].grant = 0;
    fake_targets_fail_writes(&bed.cluster, -ENOSPC);
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 200000), -ENOSPC);
    for (k = 0; k < 3; k++)
        ck_assert_uint_eq(bed.cluster.oss[k].unstable, 0);
    fake_targets_fail_writes(&bed.cluster, 0);
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 200000), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "nogrant", data, 200000);
    core_release(c, f);
}
END_TEST

/* ---- what was acknowledged, and is lost ---- */

START_TEST(what_is_lost_is_told_by_fsync_and_close_whatever_a_write_has_told)
{
    struct core_file *f = stored_file("lost", 3 * MIB), *g;

    g = bed_open(&bed, c, "lost", O_RDWR, NULL);
    fake_targets_fail_writes(&bed.cluster, -ENOSPC);
    ck_assert_int_eq(bed_write(&bed, c, f, 3 * MIB, data, 4096), 0); /* room was promised */
    bed_spin(&bed, 2 * NS_PER_S);                                    /* it is written back */
    bed_spin(&bed, 60 * NS_PER_S);                                   /* and the promise over */
    ck_assert_int_eq(bed_write(&bed, c, f, 3 * MIB + 4096, data, 4096), -ENOSPC);
    fake_targets_fail_writes(&bed.cluster, 0);
    ck_assert_int_eq(bed_write(&bed, c, f, 3 * MIB + 4096, data, 4096), 0);
    ck_assert_int_eq(bed_flush(&bed, c, f), -ENOSPC); /* of a child that ends, maybe */
    ck_assert_int_eq(bed_fsync(&bed, c, f), -ENOSPC);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    ck_assert_int_eq(bed_flush(&bed, c, f), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, g), -ENOSPC);
    ck_assert_int_eq(bed_flush(&bed, c, g), 0);
    core_release(c, f);
    core_release(c, g);
}
END_TEST

START_TEST(a_synchronous_write_does_not_take_the_error_of_another_from_fsync)
{
    struct core_file *f = stored_file("lost", 3 * MIB), *g;

    g = bed_open(&bed, c, "lost", O_WRONLY | O_DSYNC, NULL);
    fake_targets_fail_writes(&bed.cluster, -ENOSPC);
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 4096), 0);
    ck_assert_int_eq(bed_write(&bed, c, g, MIB, data, 4096), -ENOSPC);
    fake_targets_fail_writes(&bed.cluster, 0);
    ck_assert_int_eq(bed_write(&bed, c, g, MIB, data, 4096), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, g), -ENOSPC);
    ck_assert_int_eq(bed_fsync(&bed, c, f), -ENOSPC);
    core_release(c, f);
    core_release(c, g);
}
END_TEST

START_TEST(what_no_commit_has_made_durable_is_not_read_either)
{
    struct core_file *f = stored_file("lost", 3 * MIB);

    memset(back, 0xaa, 4096);
    for (unsigned k = 0; k < 3; k++)
        bed.cluster.oss[k].fail_commits = -EIO;
    ck_assert_int_eq(bed_write(&bed, c, f, 4096, back, 4096), 0);
    bed_spin(&bed, 2 * NS_PER_S);
    for (unsigned k = 0; k < 3; k++)
        bed.cluster.oss[k].fail_commits = 0;
    fake_targets_restart(&bed.cluster); /* they have forgotten it */
    ck_assert_int_eq(bed_fsync(&bed, c, f), -EIO);
    expect_read(f, 0, data, 3 * MIB);
    core_release(c, f);
}
END_TEST

/* It lies over what was on its way to be durable. */
START_TEST(what_is_written_while_a_commit_fails_is_kept)
{
    struct core_file *f = stored_file("kept", 3 * MIB);

    for (unsigned k = 0; k < 3; k++) {
        bed.cluster.oss[k].hold_commits = true;
        bed.cluster.oss[k].fail_commits = -EIO;
    }
    memset(back, 0xaa, 200000);
    ck_assert_int_eq(bed_write(&bed, c, f, 4096, back, 200000), 0); /* not scattered */
    bed_spin(&bed, 2 * NS_PER_S);                                   /* it is written back */
    ck_assert_uint_eq(oss_of_chunk("kept", 0)->held_now, 1);
    memset(data + 4096, 0xbb, 100000);
    ck_assert_int_eq(bed_write(&bed, c, f, 4096, data + 4096, 100000), 0);
    for (unsigned k = 0; k < 3; k++)
        fake_oss_release(&bed.cluster.oss[k]);
    bed_spin(&bed, 10 * NS_PER_MS); /* much less than what is written waits here */
    for (unsigned k = 0; k < 3; k++)
        bed.cluster.oss[k].fail_commits = 0;
    fake_targets_restart(&bed.cluster); /* they have forgotten it */
    expect_read(f, 0, data, 3 * MIB);
    ck_assert_int_eq(bed_fsync(&bed, c, f), -EIO);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "kept", data, 3 * MIB);
    core_release(c, f);
}
END_TEST

/* ---- what was not acknowledged ---- */

static void promise_nothing(void)
{
    for (unsigned k = 0; k < 3; k++)
        bed.cluster.oss[k].grant = 0;
    bed_spin(&bed, 60 * NS_PER_S); /* and nothing any more */
}

START_TEST(a_refused_write_leaves_the_size_as_it_was)
{
    static const int flags[] = {O_RDWR, O_RDWR | O_APPEND, O_WRONLY | O_DSYNC};
    struct core_file *f = stored_file("refused", 3 * MIB), *g;

    promise_nothing();
    for (unsigned k = 0; k < ARRAY_LEN(flags); k++) {
        g = bed_open(&bed, c, "refused", flags[k], NULL);
        fake_targets_fail_writes(&bed.cluster, -ENOSPC);
        ck_assert_int_eq(bed_write(&bed, c, g, 3 * MIB, data, 4096), -ENOSPC);
        ck_assert_int_eq(bed_write(&bed, c, g, 7 * MIB, data, MIB), -ENOSPC);
        expect_size(f, "refused", 3 * MIB);
        ck_assert_int_eq(bed_fsync(&bed, c, g), 0); /* nothing was lost */
        fake_targets_fail_writes(&bed.cluster, 0);
        core_release(c, g);
    }
    ck_assert_int_eq(bed_write(&bed, c, f, 3 * MIB, data + 3 * MIB, MIB), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "refused", data, 4 * MIB);
    core_release(c, f);
}
END_TEST

static void expect_short(struct core_file *f, const char *name, uint64_t size)
{
    struct iovec iov = {data + size, MIB};
    struct fake_oss *full = oss_of_chunk(name, size / MIB + 1);
    struct bed_op op;

    full->fail_writes = -ENOSPC;
    full->fail_writes_n = UINT32_MAX;
    bed_op_init(&op);
    core_write(c, &op.q, f, size, &iov, 1, MIB);
    ck_assert_int_eq(bed_wait(&bed, &op), 0);
    ck_assert_uint_eq(op.q.out.write.bytes, MIB - size % MIB);
    full->fail_writes = 0;
    expect_size(f, name, size / MIB * MIB + MIB);
    bed_expect_durable(&bed, name, data, (uint32_t)(size / MIB * MIB + MIB));
}

START_TEST(a_write_that_is_refused_in_part_is_short)
{
    struct core_file *f = stored_file("short", 3 * MIB + 1000);

    promise_nothing();
    expect_short(f, "short", 3 * MIB + 1000);
    core_release(c, f);
}
END_TEST

START_TEST(so_is_one_without_a_lease_and_nothing_is_left_behind_it)
{
    struct core *other = bed_mount(&bed, NULL);
    struct core_file *f = stored_file("short", 3 * MIB + 1000), *g;

    g = bed_open(&bed, other, "short", O_RDWR, NULL);
    expect_short(f, "short", 3 * MIB + 1000);
    ck_assert_int_eq(bed_truncate(&bed, c, f, 6 * MIB), 0);
    memset(data + 4 * MIB, 0, 2 * MIB);
    bed_expect_durable(&bed, "short", data, 6 * MIB);
    core_release(other, g);
    core_release(c, f);
    bed_unmount(&bed, other, false, 0);
}
END_TEST

/* Of a write over a border of targets, into holes that the file had. */
START_TEST(what_follows_a_refused_part_is_not_written_inside_the_file_either)
{
    struct core *other = bed_mount(&bed, NULL);
    struct core_file *f = stored_file("inside", 3 * MIB), *g;
    struct iovec iov = {data + 4 * MIB, MIB};
    struct fake_oss *full[2];
    struct bed_op op;

    g = bed_open(&bed, other, "inside", O_RDWR, NULL);
    promise_nothing();
    for (unsigned k = 0; k < 2; k++) {
        full[k] = oss_of_chunk("inside", k);
        full[k]->fail_writes = -ENOSPC;
        full[k]->fail_writes_n = UINT32_MAX;
        bed_op_init(&op);
        core_write(c, &op.q, f, MIB - 4096, &iov, 1, MIB);
        ck_assert_int_eq(bed_wait(&bed, &op), k ? 0 : -ENOSPC);
        ck_assert_uint_eq(op.q.out.write.bytes, k ? 4096 : 0);
        full[k]->fail_writes = 0;
        if (k)
            memcpy(data + MIB - 4096, data + 4 * MIB, 4096);
        expect_size(f, "inside", 3 * MIB);
        bed_expect_durable(&bed, "inside", data, 3 * MIB);
    }
    core_release(other, g);
    core_release(c, f);
    bed_unmount(&bed, other, false, 0);
}
END_TEST

START_TEST(a_small_file_that_finds_no_room_to_grow_has_lost_nothing)
{
    struct core_file *f = bed_create(&bed, c, "small");

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 1000), 0); /* nobody has it yet */
    fake_targets_fail_writes(&bed.cluster, -ENOSPC);
    ck_assert_int_eq(bed_write(&bed, c, f, 1000, data + 1000, 100000), -ENOSPC);
    expect_size(f, "small", 1000);
    bed_expect_durable(&bed, "small", data, 1000);
    ck_assert_int_eq(bed_flush(&bed, c, f), 0);
    fake_targets_fail_writes(&bed.cluster, 0);
    ck_assert_int_eq(bed_write(&bed, c, f, 1000, data + 1000, 100000), 0);
    expect_size(f, "small", 101000);
    bed_expect_durable(&bed, "small", data, 101000);
    core_release(c, f);
}
END_TEST

/* The record that the server has is the only good copy: nothing may take its place. */
START_TEST(a_growth_whose_writer_was_killed_is_given_up_when_it_has_failed)
{
    struct core_file *f = stored_file("killed", 1000);
    struct msg_setattr_req owner = {.ino = core_file_ino(f), .set = MSG_SET_UID | MSG_SET_GID};
    struct iovec iov = {data + 1000, 100000};
    struct bed_op op, write;

    fake_inode(&bed.cluster, "killed")->attr.flags |= MSG_ATTR_NO_XATTRS;
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 1000), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0); /* brings the attributes */
    bed_op_init(&op);
    core_setattr(c, &op.q, &owner, f); /* it is told with the next flush, which waits for that */
    ck_assert_int_eq(bed_wait(&bed, &op), 0);
    ck_assert_uint_eq(bed.cluster.calls[RPC_OP_SETATTR], 0);
    bed.cluster.mds_hold = true;
    fake_targets_fail_writes(&bed.cluster, -ENOSPC);
    bed_op_init(&write);
    core_write(c, &write.q, f, 1000, &iov, 1, 100000);
    bed_spin(&bed, 100 * NS_PER_MS);
    ck_assert(!write.done);
    core_cancel(&write.q);
    ck_assert_int_eq(bed_wait(&bed, &write), -EINTR);
    fake_targets_fail_writes(&bed.cluster, 0);
    fake_mds_release(&bed.cluster);
    (void)bed_fsync(&bed, c, f);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    expect_size(f, "killed", 1000);
    bed_expect_durable(&bed, "killed", data, 1000);
    core_release(c, f);
}
END_TEST

/* Its first part went with a growth that was given up while the second one waited. */
START_TEST(a_write_begins_again_when_what_it_has_written_went_with_a_growth)
{
    struct core_file *f = stored_file("again", 1000), *other;
    struct iovec iov = {data + 1000, MIB};
    struct fake_oss *first = oss_of_chunk("again", 0);
    struct bed_op op;

    oss_of_chunk("again", 1)->grant = 0;
    other = stored_file("other", 3 * MIB); /* the other targets promise room */
    core_release(c, other);
    first->fail_writes = -ENOSPC;
    first->fail_writes_n = 1;
    bed_op_init(&op);
    core_write(c, &op.q, f, 1000, &iov, 1, MIB);
    ck_assert_int_eq(bed_wait(&bed, &op), 0);
    ck_assert_uint_eq(op.q.out.write.bytes, MIB);
    ck_assert_uint_eq(first->fail_writes_n, 0);
    (void)bed_fsync(&bed, c, f); /* the growth is told */
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "again", data, MIB + 1000);
    core_release(c, f);
}
END_TEST

/* It waits until what came before is stored, when the session ends: it can still be interrupted. */
START_TEST(a_write_that_waits_to_be_stored_can_be_killed_after_the_end_of_the_session)
{
    struct core_file *f = stored_file("killed", 3 * MIB);
    struct iovec iov = {data, MIB};
    struct bed_op op;

    for (unsigned k = 0; k < 3; k++) {
        bed.cluster.oss[k].grant = 0;
        bed.cluster.oss[k].hold_commits = true;
    }
    ck_assert_int_eq(bed_write(&bed, c, f, 4096, data + 4096, 200000), 0);
    bed_spin(&bed, 2 * NS_PER_S); /* it is written back, and no room promised any more */
    bed_op_init(&op);
    core_write(c, &op.q, f, 0, &iov, 1, MIB);
    fake_mds_forget_sessions(&bed.cluster);
    bed_spin(&bed, 60 * NS_PER_S);
    ck_assert(!op.done);
    core_cancel(&op.q);
    bed_spin(&bed, 5 * NS_PER_S);
    ck_assert(op.done);
    fake_targets_release(&bed.cluster);
    (void)bed_fsync(&bed, c, f);
    core_release(c, f);
}
END_TEST

SUITE_MAIN("client-full", setup, file_bed_teardown, a_full_target_is_reported_and_by_one_call_only,
           what_no_target_has_taken_is_not_read, what_a_new_file_has_lost_is_not_read,
           what_the_metadata_server_has_not_taken_is_not_read,
           what_was_not_taken_goes_with_what_is_written_meanwhile,
           the_log_tells_of_which_file_and_on_which_target_it_was,
           without_a_grant_enospc_reaches_write,
           what_is_lost_is_told_by_fsync_and_close_whatever_a_write_has_told,
           a_synchronous_write_does_not_take_the_error_of_another_from_fsync,
           what_no_commit_has_made_durable_is_not_read_either,
           what_is_written_while_a_commit_fails_is_kept, a_refused_write_leaves_the_size_as_it_was,
           a_write_that_is_refused_in_part_is_short,
           so_is_one_without_a_lease_and_nothing_is_left_behind_it,
           what_follows_a_refused_part_is_not_written_inside_the_file_either,
           a_small_file_that_finds_no_room_to_grow_has_lost_nothing,
           a_growth_whose_writer_was_killed_is_given_up_when_it_has_failed,
           a_write_begins_again_when_what_it_has_written_went_with_a_growth,
           a_write_that_waits_to_be_stored_can_be_killed_after_the_end_of_the_session)
