/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of files without data: fallocate in all its forms, looking for data and holes; and copying
 * ranges. */
#include <check.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "tests/support/file_bed.h"
#include "tests/support/suite.h"

#define ROOM  (6u * MIB)
#define KEEP  FALLOC_FL_KEEP_SIZE
#define PUNCH (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)
#define ZERO  FALLOC_FL_ZERO_RANGE

static void setup(void)
{
    file_bed_setup(3, ROOM);
    memset(data, 0, ROOM);
    bed.cluster.avail_bytes = GIB;
}

static int allocate(struct core *by, struct core_file *f, int mode, uint64_t offset, uint64_t len)
{
    struct bed_op op;

    bed_op_init(&op);
    core_fallocate(by, &op.q, f, mode, offset, len);
    return bed_wait(&bed, &op);
}

/* The same to the file and to what it must be. */
static void put(struct core_file *f, uint64_t offset, uint32_t len, unsigned seed)
{
    bed_pattern(data + offset, len, offset, seed);
    for (uint32_t at = 0, step; at < len; at += step) {
        step = MIN(len - at, MIB);
        ck_assert_int_eq(bed_write(&bed, c, f, offset + at, data + offset + at, step), 0);
    }
}

static void zero(struct core_file *f, int mode, uint64_t offset, uint64_t len)
{
    ck_assert_int_eq(allocate(c, f, mode, offset, len), 0);
    memset(data + offset, 0, MIN(len, ROOM - offset));
}

static void expect_all(struct core *by, struct core_file *f, uint64_t size)
{
    uint64_t at;

    for (at = 0; at < size; at += MIB) {
        uint32_t len = (uint32_t)MIN(size - at, MIB);

        ck_assert_int_eq(bed_read(&bed, by, f, at, back, MIB), (int)len);
        ck_assert_int_eq(memcmp(back, data + at, len), 0);
    }
    ck_assert_int_eq(bed_read(&bed, by, f, size, back, 10), 0);
}

static void expect_durable(struct core_file *f, const char *name, uint32_t size)
{
    expect_all(c, f, size);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, name, data, size);
    expect_all(c, f, size);
}

static unsigned punches(void)
{
    return bed.cluster.oss[0].punches + bed.cluster.oss[1].punches + bed.cluster.oss[2].punches;
}

START_TEST(what_is_punched_is_zeros_here_and_on_the_targets)
{
    struct core_file *f = bed_create(&bed, c, "f");

    put(f, 0, 5 * MIB, 1);
    zero(f, PUNCH, MIB - 10, 2 * MIB + 20); /* nothing was sent yet */
    expect_durable(f, "f", 5 * MIB);
    ck_assert_uint_eq(punches(), 3);
    zero(f, PUNCH, 4 * MIB + 1, 10); /* one chunk: one target */
    ck_assert_uint_eq(punches(), 4);
    expect_durable(f, "f", 5 * MIB);
    put(f, MIB, 100, 2);
    expect_durable(f, "f", 5 * MIB);
    zero(f, PUNCH, 4 * MIB, 100 * MIB); /* over the end: it stays */
    expect_durable(f, "f", 5 * MIB);
    zero(f, PUNCH, 50 * MIB, MIB);
    ck_assert_uint_eq(punches(), 5);
    zero(f, ZERO | KEEP, 3 * MIB, 3 * MIB);
    expect_durable(f, "f", 5 * MIB);
    zero(f, ZERO, 2 * MIB - 1, 3 * MIB + 500);
    expect_durable(f, "f", 5 * MIB + 499);
    core_release(c, f);
}
END_TEST

START_TEST(what_was_punched_is_not_written_again_after_a_restart)
{
    struct core_file *f = bed_create(&bed, c, "f");

    put(f, 0, 3 * MIB, 1);
    ck_assert_int_eq(bed_flush(&bed, c, f), 0); /* sent, not committed */
    zero(f, PUNCH, 1000, 2 * MIB);
    fake_targets_restart(&bed.cluster);
    put(f, MIB, 1, 3);
    expect_durable(f, "f", 3 * MIB);
    core_release(c, f);
}
END_TEST

START_TEST(small_files_are_changed_in_place_and_grow)
{
    struct core_file *f = bed_create(&bed, c, "f");
    struct fake_inode *i = fake_inode(&bed.cluster, "f");

    ck_assert_int_eq(allocate(c, f, 0, 0, 3000), 0);
    expect_durable(f, "f", 3000);
    put(f, 0, 3000, 1);
    zero(f, PUNCH, 1000, 50);
    zero(f, PUNCH, 2990, 5000);
    expect_durable(f, "f", 3000);
    zero(f, ZERO, 2000, 3000);
    expect_durable(f, "f", 5000);
    ck_assert_int_eq(allocate(c, f, KEEP, 0, 10000), 0);
    expect_durable(f, "f", 5000);
    ck_assert(i->attr.flags & MSG_ATTR_INLINE);
    ck_assert_uint_eq(punches(), 0);
    ck_assert_int_eq(allocate(c, f, 0, 100, 100000), 0); /* too large for the metadata server */
    expect_durable(f, "f", 100100);
    ck_assert(!(i->attr.flags & MSG_ATTR_INLINE));
    core_release(c, f);
    f = bed_create(&bed, c, "g");
    memset(data, 0, ROOM);
    put(f, 0, 9000, 2);
    zero(f, ZERO, 4000, 2 * MIB);
    expect_durable(f, "g", 2 * MIB + 4000);
    core_release(c, f);
}
END_TEST

START_TEST(a_small_file_that_cannot_grow_is_not_punched_and_stays_usable)
{
    struct core_file *f = bed_create(&bed, c, "f");
    struct fake_inode *i = fake_inode(&bed.cluster, "f");

    put(f, 0, 1000, 1);
    expect_durable(f, "f", 1000);
    fake_targets_fail_writes(&bed.cluster, -ENOSPC);
    ck_assert_int_eq(allocate(c, f, 0, 0, 100000), 0); /* it will grow when it is written back */
    ck_assert_int_eq(allocate(c, f, PUNCH, 60000, 1000), -ENOSPC);
    ck_assert_uint_eq(punches(), 0);
    ck_assert(i->attr.flags & MSG_ATTR_INLINE);
    ck_assert_int_eq(bed_fsync(&bed, c, f), -ENOSPC); /* the size that was given has gone */
    expect_durable(f, "f", 1000);
    fake_targets_fail_writes(&bed.cluster, 0);
    zero(f, PUNCH, 100, 200);
    expect_durable(f, "f", 1000);
    core_release(c, f);
}
END_TEST

START_TEST(without_a_lease_the_targets_and_the_server_are_told_at_once)
{
    struct core *other = bed_mount(&bed, NULL);
    struct core_file *f = bed_create(&bed, c, "f"), *g = bed_create(&bed, c, "g"), *f2, *g2;
    struct fake_inode *i = fake_inode(&bed.cluster, "f");

    put(f, 0, 3 * MIB, 1);
    f2 = bed_open(&bed, other, "f", O_RDWR, NULL);
    zero(f, PUNCH, 100, MIB);
    expect_all(other, f2, 3 * MIB);
    zero(f, ZERO, 3 * MIB - 5, 1000);
    ck_assert_uint_eq(i->attr.size, 3 * MIB + 995);
    expect_all(other, f2, 3 * MIB + 995);
    ck_assert_int_eq(allocate(c, f, 0, 3 * MIB, 4000), 0);
    ck_assert_uint_eq(i->attr.size, 3 * MIB + 4000);
    bed.cluster.stale = 1; /* cut meanwhile: so be it */
    ck_assert_int_eq(allocate(c, f, 0, 4 * MIB, 1), 0);
    ck_assert_uint_eq(i->attr.size, 3 * MIB + 4000);
    expect_all(other, f2, 3 * MIB + 4000);
    memset(data, 0, ROOM);
    put(g, 0, 2000, 1);
    g2 = bed_open(&bed, other, "g", O_RDWR, NULL);
    zero(g, PUNCH, 5, 500);
    expect_all(other, g2, 2000);
    ck_assert_uint_eq(bed.cluster.calls[RPC_OP_LEASE_GET], 1);
    core_release(c, f);
    core_release(c, g);
    core_release(other, f2);
    core_release(other, g2);
    bed_unmount(&bed, other, false, 0);
}
END_TEST

START_TEST(a_punch_that_fails_says_so_and_reads_tell_what_is_there)
{
    struct core_file *f = bed_create(&bed, c, "f");

    put(f, 0, 3 * MIB, 1);
    expect_durable(f, "f", 3 * MIB);
    bed.cluster.oss[1].fail_punches = -EIO;
    ck_assert_int_eq(allocate(c, f, PUNCH, 0, 3 * MIB), -EIO);
    fake_contents(&bed.cluster, fake_inode(&bed.cluster, "f"), 0, data, 3 * MIB, true);
    expect_all(c, f, 3 * MIB);
    bed.cluster.oss[1].fail_punches = 0;
    zero(f, PUNCH, 0, 3 * MIB);
    expect_durable(f, "f", 3 * MIB);
    core_release(c, f);
}
END_TEST

/* A file of which nothing is cached here. */
static struct core_file *file_of_another(const char *name, uint32_t len)
{
    struct core *other = bed_mount(&bed, NULL);
    struct core_file *f = bed_create(&bed, other, name);

    bed_pattern(data, len, 0, 1);
    for (uint32_t at = 0; at < len; at += MIB)
        ck_assert_int_eq(bed_write(&bed, other, f, at, data + at, MIN(len - at, MIB)), 0);
    ck_assert_int_eq(bed_fsync(&bed, other, f), 0);
    core_release(other, f);
    bed_unmount(&bed, other, false, 0);
    return bed_open(&bed, c, name, O_RDWR, NULL);
}

START_TEST(it_waits_for_reads_under_way_and_keeps_others_out)
{
    struct core_file *f = file_of_another("f", 3 * MIB);
    struct bed_op read, punch, late;
    unsigned k;

    fake_targets_hold(&bed.cluster);
    bed_op_init(&read);
    read.q.direct = true;
    core_read(c, &read.q, f, MIB, 4096, back);
    bed_op_init(&punch);
    core_fallocate(c, &punch.q, f, PUNCH, 0, 3 * MIB);
    bed_op_init(&late);
    core_read(c, &late.q, f, MIB, 4096, back + 8192);
    bed_spin(&bed, 100 * NS_PER_MS);
    ck_assert(!read.done && !punch.done && !late.done);
    ck_assert_uint_eq(punches(), 0);
    fake_targets_release(&bed.cluster);
    ck_assert_int_eq(bed_wait(&bed, &read), 0);
    core_read_done(&read.q);
    ck_assert_int_eq(memcmp(back, data + MIB, 4096), 0);
    ck_assert_int_eq(bed_wait(&bed, &punch), 0);
    ck_assert_int_eq(bed_wait(&bed, &late), 0);
    core_read_done(&late.q);
    for (k = 0; k < 4096; k++)
        ck_assert_uint_eq(back[8192 + k], 0);
    core_release(c, f);
}
END_TEST

START_TEST(who_is_interrupted_leaves_the_file_to_others)
{
    struct core_file *f = bed_create(&bed, c, "f");
    struct bed_op punch;

    put(f, 0, 3 * MIB, 1);
    expect_durable(f, "f", 3 * MIB);
    fake_targets_hold(&bed.cluster);
    bed_op_init(&punch);
    core_fallocate(c, &punch.q, f, PUNCH, 0, 3 * MIB);
    bed_spin(&bed, 100 * NS_PER_MS);
    ck_assert(!punch.done);
    core_cancel(&punch.q);
    ck_assert_int_eq(bed_wait(&bed, &punch), -EINTR);
    fake_targets_release(&bed.cluster);
    memset(data, 0, ROOM);
    put(f, 0, 3 * MIB, 2);
    expect_durable(f, "f", 3 * MIB);
    core_release(c, f);
}
END_TEST

START_TEST(what_cannot_be_is_refused)
{
    struct core_file *f = bed_create(&bed, c, "f"), *r;
    uint64_t max = CORE_SIZE_MAX;

    put(f, 0, 3 * MIB, 1);
    ck_assert_int_eq(allocate(c, f, FALLOC_FL_COLLAPSE_RANGE, 0, 4096), -EOPNOTSUPP);
    ck_assert_int_eq(allocate(c, f, FALLOC_FL_INSERT_RANGE, 0, 4096), -EOPNOTSUPP);
    ck_assert_int_eq(allocate(c, f, FALLOC_FL_PUNCH_HOLE, 0, 4096), -EOPNOTSUPP);
    ck_assert_int_eq(allocate(c, f, PUNCH | ZERO, 0, 4096), -EOPNOTSUPP);
    ck_assert_int_eq(allocate(c, f, 0, 0, 0), -EINVAL);
    ck_assert_int_eq(allocate(c, f, 0, max, 1), -EFBIG);
    ck_assert_int_eq(allocate(c, f, 0, 4096, UINT64_MAX - 100), -EFBIG);
    ck_assert_int_eq(allocate(c, f, 0, 3 * MIB, GIB + 1), -ENOSPC);
    ck_assert_int_eq(allocate(c, f, KEEP, MIB, 2 * GIB), -ENOSPC);
    ck_assert_int_eq(allocate(c, f, 0, 3 * MIB, GIB), 0);
    ck_assert_int_eq(bed_write(&bed, c, f, max - 5, data, 10), -EFBIG);
    ck_assert_int_eq(allocate(c, f, PUNCH, 0, max), 0); /* however far */
    bed.cluster.avail_bytes = UINT64_MAX;
    ck_assert_int_eq(allocate(c, f, 0, max - 1, 1), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    ck_assert_uint_eq(fake_inode(&bed.cluster, "f")->attr.size, max);
    ck_assert_int_eq(bed_write(&bed, c, f, max - 5, data, 5), 0);
    ck_assert_int_eq(bed_read(&bed, c, f, max - 3, back, 100), 3);
    r = bed_open(&bed, c, "f", O_RDONLY, NULL);
    ck_assert_int_eq(allocate(c, r, 0, 0, 1), -EBADF);
    core_release(c, r);
    core_release(c, f);
}
END_TEST

/* What a kernel writes back of a mapping comes through any open file, also one that appends. */
START_TEST(pages_go_where_they_belong_through_a_file_that_appends)
{
    struct core_file *f = bed_create(&bed, c, "f"), *a;
    struct core *other;
    struct iovec iov = {data + 5000, 100};
    struct bed_op op;

    put(f, 0, 2 * MIB, 1);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    a = bed_open(&bed, c, "f", O_RDWR | O_APPEND, NULL);
    for (unsigned k = 0; k < 2; k++) { /* with a lease, and without */
        bed_pattern(data + 5000, 100, 5000, 7 + k);
        bed_op_init(&op);
        op.q.in_place = true;
        core_write(c, &op.q, a, 5000, &iov, 1, 100);
        ck_assert_int_eq(bed_wait(&bed, &op), 0);
        expect_durable(f, "f", 2 * MIB);
        if (k == 0) {
            other = bed_mount(&bed, NULL);
            core_release(other, bed_open(&bed, other, "f", O_RDWR, NULL));
        }
    }
    core_release(c, a);
    core_release(c, f);
    bed_unmount(&bed, other, false, 0);
}
END_TEST

static long long seek_to(struct core_file *f, uint64_t offset, bool hole)
{
    struct bed_op op;
    int rc;

    bed_op_init(&op);
    core_seek(c, &op.q, f, offset, hole);
    rc = bed_wait(&bed, &op);
    return rc ? rc : (long long)op.q.out.offset;
}

START_TEST(data_and_holes_are_found_over_all_stripes)
{
    struct core_file *f = bed_create(&bed, c, "f"), *small = bed_create(&bed, c, "small");

    ck_assert_int_eq(seek_to(small, 0, false), -ENXIO);
    put(small, 0, 100, 1);
    ck_assert_int_eq(seek_to(small, 5, false), 5);
    ck_assert_int_eq(seek_to(small, 5, true), 100);
    ck_assert_int_eq(seek_to(small, 100, true), -ENXIO);
    put(f, 40 * KIB, 2 * MIB, 1); /* not sent yet */
    ck_assert_int_eq(seek_to(f, 0, false), 40 * KIB);
    ck_assert_int_eq(seek_to(f, 0, true), 0);
    ck_assert_int_eq(seek_to(f, 50 * KIB, true), 2 * MIB + 40 * KIB);
    put(f, 5 * MIB + 8192, 10, 1);
    ck_assert_int_eq(seek_to(f, MIB, true), 2 * MIB + 40 * KIB);
    ck_assert_int_eq(seek_to(f, 2 * MIB + 40 * KIB, false), 5 * MIB + 8192);
    ck_assert_int_eq(seek_to(f, 5 * MIB + 8193, true), 5 * MIB + 8202);
    zero(f, PUNCH, MIB, 4096);
    ck_assert_int_eq(seek_to(f, 50 * KIB, true), MIB);
    ck_assert_int_eq(seek_to(f, MIB, false), MIB + 4096);
    ck_assert_int_eq(bed_truncate(&bed, c, f, 100 * MIB), 0);
    ck_assert_int_eq(seek_to(f, 6 * MIB, false), -ENXIO);
    ck_assert_int_eq(seek_to(f, 6 * MIB, true), 6 * MIB);
    core_release(c, f);
    core_release(c, small);
}
END_TEST

static int copy(struct core_file *from, uint64_t at, struct core_file *to, uint64_t to_at,
                uint64_t len, uint64_t *ret_copied)
{
    struct bed_op op;
    int rc;

    bed_op_init(&op);
    core_copy(c, &op.q, from, at, to, to_at, len);
    rc = bed_wait(&bed, &op);
    *ret_copied = op.q.out.copied;
    return rc;
}

START_TEST(ranges_are_copied_with_what_is_not_written_yet)
{
    struct core_file *f = bed_create(&bed, c, "f"), *g = bed_create(&bed, c, "g"), *r;
    uint64_t n;

    put(f, 0, 3 * MIB + 77, 1);
    ck_assert_int_eq(copy(f, 0, g, 0, 100 * MIB, &n), 0);
    ck_assert_uint_eq(n, 3 * MIB + 77);
    expect_durable(g, "g", 3 * MIB + 77);
    ck_assert_int_eq(copy(f, 3 * MIB + 77, g, 0, 10, &n), 0);
    ck_assert_uint_eq(n, 0);
    ck_assert_int_eq(copy(g, 5, g, 2 * MIB + 3, MIB, &n), 0);
    ck_assert_uint_eq(n, MIB);
    memcpy(data + 2 * MIB + 3, data + 5, MIB);
    expect_durable(g, "g", 3 * MIB + 77);
    ck_assert_int_eq(copy(g, 5, g, 100, 96, &n), -EINVAL);
    ck_assert_int_eq(copy(g, 5, g, 100, 95, &n), 0);
    ck_assert_int_eq(copy(f, 0, g, CORE_SIZE_MAX, 1, &n), -EFBIG);
    r = bed_open(&bed, c, "g", O_RDONLY, NULL);
    ck_assert_int_eq(copy(f, 0, r, 0, 1, &n), -EBADF);
    core_release(c, f);
    core_release(c, g);
    core_release(c, r);
}
END_TEST

START_TEST(a_copy_that_is_interrupted_ends)
{
    struct core_file *f = file_of_another("f", 3 * MIB), *g = bed_create(&bed, c, "g");
    struct bed_op op;

    fake_targets_hold(&bed.cluster);
    bed_op_init(&op);
    core_copy(c, &op.q, f, MIB / 2, g, 0, 2 * MIB);
    core_cancel(&op.q);
    ck_assert_int_eq(bed_wait(&bed, &op), -EINTR);
    fake_targets_release(&bed.cluster);
    core_release(c, f);
    core_release(c, g);
}
END_TEST

/* Two files that another mount writes as well: no lease here. */
struct written_twice {
    struct core *other;
    struct core_file *f, *g, *of, *og;
};

static void open_twice(struct written_twice *w, struct core *by)
{
    core_release(c, file_of_another("f", 3 * MIB));
    core_release(c, bed_create(&bed, c, "g"));
    bed_spin(&bed, 50 * NS_PER_MS);
    w->other = bed_mount(&bed, NULL);
    w->of = bed_open(&bed, w->other, "f", O_RDWR, NULL);
    w->og = bed_open(&bed, w->other, "g", O_RDWR, NULL);
    w->f = bed_open(&bed, by, "f", O_RDWR, NULL);
    w->g = bed_open(&bed, by, "g", O_RDWR, NULL);
}

static void close_other(struct written_twice *w)
{
    core_release(w->other, w->of);
    core_release(w->other, w->og);
    bed_unmount(&bed, w->other, false, 0);
}

static void hold_all(bool hold)
{
    for (unsigned k = 0; k < 3; k++) {
        if (hold)
            bed.cluster.oss[k].hold = true;
        else
            fake_oss_release(&bed.cluster.oss[k]);
    }
}

static void start_copy(struct core *by, struct bed_op *op, struct core_file *from,
                       struct core_file *to)
{
    bed_op_init(op);
    core_copy(by, &op->q, from, 0, to, 0, 2 * MIB);
    bed_spin(&bed, 100 * NS_PER_MS);
    ck_assert(!op->done);
}

START_TEST(a_copy_without_a_lease_ends_when_it_is_interrupted)
{
    struct core_file *mine = bed_create(&bed, c, "mine");
    struct written_twice w;
    struct bed_op op;

    open_twice(&w, c);
    put(mine, 0, 2 * MIB, 1);
    for (unsigned k = 0; k < 2; k++) { /* while it reads; while it writes */
        hold_all(true);
        start_copy(c, &op, k ? mine : w.f, w.g);
        core_cancel(&op.q);
        ck_assert_int_eq(bed_wait(&bed, &op), -EINTR);
        ck_assert_uint_eq(op.q.out.copied, 0);
        hold_all(false);
    }
    core_release(c, mine);
    core_release(c, w.f);
    core_release(c, w.g);
    close_other(&w);
}
END_TEST

START_TEST(a_copy_without_a_lease_of_a_soft_mount_gives_up)
{
    struct written_twice w;
    struct core_options o;
    struct core *soft;
    struct bed_op op;

    core_options_default(&o);
    o.soft = true;
    o.timeo_ns = 400 * NS_PER_MS;
    soft = bed_mount(&bed, &o);
    open_twice(&w, soft);
    hold_all(true);
    start_copy(soft, &op, w.f, w.g);
    ck_assert_int_eq(bed_wait(&bed, &op), -AIFS_ETIMEOUT);
    hold_all(false);
    core_release(soft, w.f);
    core_release(soft, w.g);
    bed_unmount(&bed, soft, false, 0);
    close_other(&w);
}
END_TEST

START_TEST(a_forced_unmount_ends_a_copy_without_a_lease)
{
    struct core *by = bed_mount(&bed, NULL);
    struct written_twice w;
    struct bed_op op;

    open_twice(&w, by);
    hold_all(true);
    start_copy(by, &op, w.f, w.g);
    core_release(by, w.f);
    core_release(by, w.g);
    bed_unmount(&bed, by, true, 0);
    ck_assert(op.done);
    ck_assert_int_eq(op.status, -EIO);
    hold_all(false);
    close_other(&w);
}
END_TEST

START_TEST(more_copies_at_once_than_there_is_memory_for_go_on)
{
    struct core_file *f[12], *g[12];
    struct core_options o;
    uint64_t begun_ns;
    struct bed_op op[12];
    char name[16];

    core_options_default(&o);
    o.memory_limit = 32 * MIB;
    file_bed_remount(&o);
    bed_pattern(data, 2 * MIB, 0, 1);
    for (unsigned k = 0; k < bed.cluster.n_oss; k++)
        bed.cluster.oss[k].grant = GIB;
    for (unsigned k = 0; k < ARRAY_LEN(f); k++) {
        snprintf(name, sizeof name, "from%u", k);
        f[k] = stored_file(name, MIB);
        core_advise(f[k], 0, 0, CORE_ADVICE_DONTNEED);
        snprintf(name, sizeof name, "to%u", k);
        g[k] = bed_create(&bed, c, name);
        bed_op_init(&op[k]);
    }
    fake_targets_hold(&bed.cluster);
    for (unsigned k = 0; k < ARRAY_LEN(f); k++)
        core_copy(c, &op[k].q, f[k], 0, g[k], k, MIB);
    bed_spin(&bed, NS_PER_MS);
    core_give_up(&op[11].q);
    fake_targets_release(&bed.cluster);
    begun_ns = clock_mono_ns(&bed.clock.clock);
    for (unsigned k = 0; k < ARRAY_LEN(f); k++)
        ck_assert_int_eq(bed_wait(&bed, &op[k]), k == 11 ? -EINTR : 0);
    ck_assert_uint_lt(clock_mono_ns(&bed.clock.clock) - begun_ns, 3 * NS_PER_S);
    for (unsigned k = 0; k < ARRAY_LEN(f); k++) {
        ck_assert(bed_read(&bed, c, g[k], k, back, MIB) == (k < 11 ? (int)MIB : 0));
        ck_assert(k == 11 || !memcmp(back, data, MIB));
        core_release(c, f[k]);
        core_release(c, g[k]);
    }
}
END_TEST

SUITE_MAIN(
    "client-ranges", setup, file_bed_teardown, what_is_punched_is_zeros_here_and_on_the_targets,
    what_was_punched_is_not_written_again_after_a_restart,
    small_files_are_changed_in_place_and_grow,
    a_small_file_that_cannot_grow_is_not_punched_and_stays_usable,
    without_a_lease_the_targets_and_the_server_are_told_at_once,
    a_punch_that_fails_says_so_and_reads_tell_what_is_there,
    it_waits_for_reads_under_way_and_keeps_others_out, who_is_interrupted_leaves_the_file_to_others,
    what_cannot_be_is_refused, pages_go_where_they_belong_through_a_file_that_appends,
    data_and_holes_are_found_over_all_stripes, ranges_are_copied_with_what_is_not_written_yet,
    a_copy_that_is_interrupted_ends, a_copy_without_a_lease_ends_when_it_is_interrupted,
    a_copy_without_a_lease_of_a_soft_mount_gives_up, a_forced_unmount_ends_a_copy_without_a_lease,
    more_copies_at_once_than_there_is_memory_for_go_on)
