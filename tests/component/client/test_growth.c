/* SPDX-License-Identifier: Apache-2.0 */
/* Small files that should grow, and cannot. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "tests/support/file_bed.h"
#include "tests/support/suite.h"

#define ROOM (4u * MIB)

static void setup(void)
{
    struct core_file *f;

    file_bed_setup(3, ROOM);
    f = stored_file("other", 3 * MIB); /* now every target has promised room */
    core_release(c, f);
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
    bed.cluster.mds_hold = true; /* SIZE: it does not grow */
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

static int seek_in(struct core_file *f, uint64_t offset, bool hole, uint64_t *ret_at)
{
    struct bed_op op;
    int status;

    bed_op_init(&op);
    core_seek(c, &op.q, f, offset, hole);
    status = bed_wait(&bed, &op);
    *ret_at = status ? 0 : op.q.out.offset;
    return status;
}

START_TEST(a_seek_whose_flush_ends_a_growth_finds_what_the_file_has)
{
    struct core_file *f = stored_file("grow", 1000);
    uint64_t at;

    ck_assert_int_eq(bed_write(&bed, c, f, 1000, data + 1000, 100000), 0);
    fake_targets_fail_writes(&bed.cluster, -ENOSPC);
    ck_assert_int_eq(seek_in(f, 10, false, &at), 0);
    ck_assert_uint_eq(at, 10);
    ck_assert_int_eq(seek_in(f, 10, true, &at), 0);
    ck_assert_uint_eq(at, 1000);
    ck_assert_int_eq(seek_in(f, 1000, true, &at), -ENXIO);
    ck_assert(fake_inode(&bed.cluster, "grow")->attr.flags & MSG_ATTR_INLINE);
    core_release(c, f);
}
END_TEST

/* The first server is full; what the second one takes of a growth is of no file. */
static void grow_in_vain(struct core_file *f, uint32_t len)
{
    bed.cluster.oss[0].fail_writes = -ENOSPC;
    bed.cluster.oss[0].fail_writes_n = UINT32_MAX;
    (void)bed_write(&bed, c, f, 1000, data + 1000, len - 1000);
    (void)bed_fsync(&bed, c, f);
    fake_targets_fail_writes(&bed.cluster, 0);
}

static unsigned chunks_of(uint64_t ino)
{
    unsigned n = 0;

    for (unsigned k = 0; k < bed.cluster.n_oss; k++) {
        struct hmap_node *h, *next;
        size_t pos;

        hmap_for_each (h, next, pos, &bed.cluster.oss[k].chunks) {
            const struct fake_chunk *chunk = container_of(h, struct fake_chunk, node);

            n += chunk->ino == ino && (chunk->now_len || chunk->durable_len);
        }
    }
    return n;
}

START_TEST(nothing_is_left_of_a_growth_that_was_given_up)
{
    struct core_file *f = stored_file("grow", 1000);
    struct fake_inode *i = fake_inode(&bed.cluster, "grow");

    grow_in_vain(f, ROOM);
    ck_assert(i->attr.flags & MSG_ATTR_INLINE);
    ck_assert_uint_eq(chunks_of(i->attr.ino), 0);
    ck_assert_int_eq(bed_write(&bed, c, f, 1000, data + 1000, 20000), 0); /* it grows to less */
    ck_assert_int_eq(bed_truncate(&bed, c, f, ROOM), 0);
    memset(data + 21000, 0, ROOM - 21000);
    expect_read(f, 0, data, ROOM);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "grow", data, ROOM);
    core_release(c, f);
}
END_TEST

START_TEST(a_growth_that_is_given_up_is_told_until_the_server_has_heard)
{
    struct core_file *f = stored_file("grow", 1000);
    struct fake_inode *i = fake_inode(&bed.cluster, "grow");
    struct iovec first = {data + 1000, 100000}, again = {data + 1000, 30000};
    struct bed_op write, sync;

    fake_targets_fail_writes(&bed.cluster, -ENOSPC);
    bed.cluster.refuse = -ENOMEM;
    bed_op_init(&write);
    core_write(c, &write.q, f, 1000, &first, 1, 100000);
    fsync_later(&sync, f);
    bed_spin(&bed, NS_PER_S);
    ck_assert(!sync.done);
    fake_targets_fail_writes(&bed.cluster, 0);
    bed_spin(&bed, NS_PER_S);
    ck_assert_uint_eq(chunks_of(i->attr.ino), 0); /* nothing goes to the targets before */
    bed.cluster.refuse = 0;
    (void)bed_wait(&bed, &sync);
    (void)bed_wait(&bed, &write);
    ck_assert_uint_eq(i->attr.truncate_gen, 1);
    bed_op_init(&write);
    core_write(c, &write.q, f, 1000, &again, 1, 30000);
    ck_assert_int_eq(bed_wait(&bed, &write), 0);
    (void)bed_fsync(&bed, c, f);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    ck_assert_int_eq(bed_truncate(&bed, c, f, ROOM), 0);
    memset(data + 31000, 0, ROOM - 31000);
    bed_expect_durable(&bed, "grow", data, ROOM);
    core_release(c, f);
}
END_TEST

START_TEST(a_file_without_a_name_grows_or_gives_it_up_before_it_is_closed)
{
    struct core_file *f = stored_file("grow", 1000);
    struct fake_inode *i = fake_inode(&bed.cluster, "grow");
    uint64_t ino = i->attr.ino;

    bed.cluster.oss[0].fail_writes = -ENOSPC;
    bed.cluster.oss[0].fail_writes_n = UINT32_MAX;
    (void)bed_write(&bed, c, f, 1000, data + 1000, ROOM - 1000);
    i->attr.nlink = 0;
    core_release(c, f);
    bed_spin(&bed, 3 * NS_PER_S);
    ck_assert_uint_eq(chunks_of(ino), 0);
}
END_TEST

START_TEST(a_growth_waits_until_what_was_given_up_is_cut_everywhere)
{
    struct core_file *f = stored_file("grow", 1000);
    struct fake_inode *i = fake_inode(&bed.cluster, "grow");
    struct iovec iov = {data + 1010, 30000};
    struct bed_op write;

    i->attr.flags |= MSG_ATTR_PUNCH_PENDING;
    i->attr.change = ++bed.cluster.change;
    ck_assert_int_eq(bed_truncate(&bed, c, f, 1000), 0);               /* brings the attributes */
    ck_assert_int_eq(bed_write(&bed, c, f, 1000, data + 1000, 10), 0); /* small: at once */
    bed_op_init(&write);
    core_write(c, &write.q, f, 1010, &iov, 1, 30000);
    bed_spin(&bed, 2 * NS_PER_S);
    ck_assert(!write.done);
    ck_assert_uint_eq(chunks_of(i->attr.ino), 0);
    i->attr.flags &= ~MSG_ATTR_PUNCH_PENDING;
    i->attr.change = ++bed.cluster.change;
    ck_assert_int_eq(bed_wait(&bed, &write), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "grow", data, 31010);
    core_release(c, f);
}
END_TEST

START_TEST(an_append_waits_until_a_cut_is_everywhere)
{
    struct core_file *f = stored_file("cut", 100000), *end;
    struct fake_inode *i = fake_inode(&bed.cluster, "cut");
    struct iovec iov = {data + 50000, 1000};
    struct bed_op write;

    i->attr.flags |= MSG_ATTR_PUNCH_PENDING; /* a target is away */
    ck_assert_int_eq(bed_truncate(&bed, c, f, 50000), 0);
    end = bed_open(&bed, c, "cut", O_WRONLY | O_APPEND, NULL);
    bed_op_init(&write);
    core_write(c, &write.q, end, 0, &iov, 1, 1000);
    bed_spin(&bed, NS_PER_S);
    ck_assert(!write.done);
    i->attr.flags &= ~MSG_ATTR_PUNCH_PENDING;
    i->attr.change = ++bed.cluster.change;
    ck_assert_int_eq(bed_wait(&bed, &write), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, end), 0);
    bed_expect_durable(&bed, "cut", data, 51000);
    core_release(c, end);
    core_release(c, f);
}
END_TEST

/* It is set and written through one open. */
START_TEST(a_file_that_is_given_another_layout_grows_into_that)
{
    struct core_file *f = bed_create(&bed, c, "moved");
    static const char name[] = "aifs.layout", value[] = "count=1";
    struct bed_op set;

    bed_op_init(&set);
    core_setxattr(c, &set.q, core_file_ino(f), name, sizeof name - 1, value, sizeof value - 1, 0);
    ck_assert_int_eq(bed_wait(&bed, &set), 0);
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 100000), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "moved", data, 100000);
    core_release(c, f);
}
END_TEST

/* What is there already would be read by nobody. */
START_TEST(a_growth_into_a_layout_that_the_file_has_no_more_is_an_error)
{
    struct core_file *f = bed_create(&bed, c, "moved");
    struct iovec iov = {data, 100000};
    struct bed_op write, sync;

    fake_targets_hold(&bed.cluster);
    bed_op_init(&write);
    core_write(c, &write.q, f, 0, &iov, 1, 100000);
    ck_assert_int_eq(bed_wait(&bed, &write), 0);
    bed_op_init(&sync);
    core_fsync(c, &sync.q, f, false);
    bed_spin(&bed, 100 * NS_PER_MS);
    ck_assert(!sync.done);
    fake_move_layout(&bed.cluster, fake_inode(&bed.cluster, "moved"));
    fake_targets_release(&bed.cluster);
    ck_assert_int_lt(bed_wait(&bed, &sync), 0);
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 100000), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "moved", data, 100000);
    core_release(c, f);
}
END_TEST

SUITE_MAIN("client-growth", setup, file_bed_teardown,
           a_small_file_that_cannot_grow_keeps_what_it_had,
           a_seek_whose_flush_ends_a_growth_finds_what_the_file_has,
           a_growth_that_fails_while_nobody_can_be_asked_leaves_the_old_size,
           what_is_written_while_a_growth_is_undone_is_kept,
           nothing_is_left_of_a_growth_that_was_given_up,
           a_growth_that_is_given_up_is_told_until_the_server_has_heard,
           a_file_without_a_name_grows_or_gives_it_up_before_it_is_closed,
           a_growth_waits_until_what_was_given_up_is_cut_everywhere,
           an_append_waits_until_a_cut_is_everywhere,
           a_file_that_is_given_another_layout_grows_into_that,
           a_growth_into_a_layout_that_the_file_has_no_more_is_an_error)
