/* SPDX-License-Identifier: Apache-2.0 */
/* Small files that should grow, and cannot. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "tests/support/file_bed.h"
#include "tests/support/suite.h"

#define ROOM (1u * MIB)

static void setup(void)
{
    file_bed_setup(3, ROOM);
}

START_TEST(a_small_file_that_cannot_grow_keeps_what_it_had)
{
    struct core_file *f = bed_create(&bed, c, "grow");
    struct fake_inode *i = fake_inode(&bed.cluster, "grow");
    uint64_t size;

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 1000), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    fake_targets_fail_writes(&bed.cluster, -ENOSPC);
    (void)bed_write(&bed, c, f, 1000, data + 1000, 100000); /* the first one may be told at once */
    (void)bed_fsync(&bed, c, f);
    ck_assert(i->attr.flags & MSG_ATTR_INLINE);
    bed_expect_durable(&bed, "grow", data, 1000);
    ck_assert_int_eq(bed_size(&bed, c, i->attr.ino, &size), 0);
    ck_assert_uint_eq(size, 1000);
    ck_assert_int_eq(bed_read(&bed, c, f, 0, back, 2000), 1000);
    ck_assert_int_eq(memcmp(back, data, 1000), 0);
    fake_targets_fail_writes(&bed.cluster, 0);
    ck_assert_int_eq(bed_write(&bed, c, f, 1000, data + 1000, 100000), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "grow", data, 101000);
    core_release(c, f);
}
END_TEST

START_TEST(a_growth_that_fails_while_nobody_can_be_asked_leaves_the_old_size)
{
    struct core_file *f = bed_create(&bed, c, "grow");
    struct fake_inode *i = fake_inode(&bed.cluster, "grow");

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 1000), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    fake_targets_fail_writes(&bed.cluster, -ENOSPC);
    bed.cluster.refuse = -EIO;
    (void)bed_write(&bed, c, f, 1000, data + 1000, 100000);
    (void)bed_fsync(&bed, c, f);
    bed.cluster.refuse = 0;
    fake_targets_fail_writes(&bed.cluster, 0);
    ck_assert_int_eq(bed_read(&bed, c, f, 0, back, 2000), 1000);
    ck_assert_int_eq(memcmp(back, data, 1000), 0);
    ck_assert_int_eq(bed_write(&bed, c, f, 1000, data + 1000, 10), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    ck_assert(i->attr.flags & MSG_ATTR_INLINE);
    bed_expect_durable(&bed, "grow", data, 1010);
    core_release(c, f);
}
END_TEST

START_TEST(what_is_written_while_a_growth_is_undone_is_kept)
{
    struct core_file *f = bed_create(&bed, c, "grow");
    struct iovec iov = {data + 5, 100000};
    struct bed_op write;

    bed.cluster.mds_hold = true; /* GROW */
    bed_op_init(&write);
    core_write(c, &write.q, f, 0, &iov, 1, 100000);
    bed_spin(&bed, NS_PER_S);
    bed.cluster.refuse = -EIO;
    fake_mds_release(&bed.cluster);
    bed.cluster.refuse = 0;
    bed.cluster.mds_hold = true; /* GETATTR: what does the server have? */
    bed_spin(&bed, 100 * NS_PER_MS);
    ck_assert(bed.cluster.inodes[core_file_ino(f)].attr.flags & MSG_ATTR_INLINE);
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 10), 0);
    fake_mds_release(&bed.cluster);
    (void)bed_wait(&bed, &write);
    (void)bed_fsync(&bed, c, f); /* tells what was lost */
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "grow", data, 10);
    core_release(c, f);
}
END_TEST

SUITE_MAIN("client-growth", setup, file_bed_teardown,
           a_small_file_that_cannot_grow_keeps_what_it_had,
           a_growth_that_fails_while_nobody_can_be_asked_leaves_the_old_size,
           what_is_written_while_a_growth_is_undone_is_kept)
