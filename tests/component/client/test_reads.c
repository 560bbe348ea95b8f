/* SPDX-License-Identifier: Apache-2.0 */
/* relatime: what a client tells of reads, and what it is worth. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "proto/atime.h"
#include "tests/support/client_bed.h"
#include "tests/support/suite.h"

#define SOON_NS (30 * NS_PER_MS) /* when a CLOSE has gone */

static struct bed bed;
static struct core *c;
static uint8_t data[5000], into[5000];

static struct core *mount_with(bool relatime, bool read_only)
{
    struct core_options o;

    core_options_default(&o);
    o.relatime = relatime;
    o.read_only = read_only;
    return bed_mount(&bed, &o);
}

static void setup(void)
{
    bed_setup(&bed, 3);
    c = mount_with(true, false);
    bed_pattern(data, sizeof data, 0, 1);
}

static void teardown(void)
{
    bed_unmount(&bed, c, false, 0);
    bed_teardown(&bed);
}

static uint64_t make(const char *name)
{
    struct core_file *f = bed_create(&bed, c, name);
    uint64_t ino = core_file_ino(f);

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, sizeof data), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    core_release(c, f);
    bed_spin(&bed, NS_PER_S);
    return ino;
}

static void read_by(struct core_file *f)
{
    ck_assert_int_eq(bed_read(&bed, c, f, 0, into, sizeof into), sizeof into);
}

static void read_once(const char *name, int flags)
{
    struct core_file *f = bed_open(&bed, c, name, O_RDONLY | flags, NULL);

    read_by(f);
    core_release(c, f);
}

static struct msg_attr told(uint64_t ino)
{
    struct bed_op op;

    bed_op_init(&op);
    core_getattr(c, &op.q, ino);
    ck_assert_int_eq(bed_wait(&bed, &op), 0);
    return op.q.entry.attr;
}

static bool was_read(const struct msg_attr *a)
{
    return atime_is_before(a->mtime, a->atime) && atime_is_before(a->ctime, a->atime);
}

static const struct msg_attr *stored(const char *name)
{
    return &fake_inode(&bed.cluster, name)->attr;
}

START_TEST(a_read_is_seen_here_at_once_and_told_with_the_close)
{
    uint64_t ino = make("f");
    unsigned calls = bed.cluster.calls[RPC_OP_CLOSE];
    struct core_file *f = bed_open(&bed, c, "f", O_RDONLY, NULL);
    struct msg_attr a;

    read_by(f);
    a = told(ino);
    ck_assert(was_read(&a));
    ck_assert(!was_read(stored("f")));
    core_release(c, f);
    bed_spin(&bed, SOON_NS);
    ck_assert(was_read(stored("f")));
    ck_assert_uint_eq(bed.cluster.reads_told, 1);
    ck_assert_uint_eq(bed.cluster.calls[RPC_OP_CLOSE], calls + 1);
    a = told(ino);
    ck_assert(was_read(&a));
}
END_TEST

START_TEST(reading_on_and_again_tells_nothing)
{
    make("f");
    for (int k = 0; k < 3; k++) {
        struct core_file *f = bed_open(&bed, c, "f", O_RDONLY, NULL);

        read_by(f);
        read_by(f);
        core_release(c, f);
        bed_spin(&bed, NS_PER_S);
    }
    ck_assert_uint_eq(bed.cluster.reads_told, 1);
}
END_TEST

START_TEST(a_read_after_a_write_counts_and_after_a_day)
{
    uint64_t ino = make("f");
    struct core_file *f = bed_open(&bed, c, "f", O_RDWR, NULL);
    struct msg_attr a;

    read_by(f);
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 10), 0); /* at the very same moment */
    a = told(ino);
    ck_assert(!was_read(&a) && atime_is_before(a.atime, a.mtime));
    read_by(f);
    a = told(ino);
    ck_assert(was_read(&a));
    core_release(c, f);
    bed_spin(&bed, NS_PER_S);
    ck_assert(was_read(stored("f")));
    ck_assert_uint_eq(bed.cluster.reads_told, 1);
    fake_inode(&bed.cluster, "f")->attr.atime.sec -= ATIME_OLD_S;
    fake_inode(&bed.cluster, "f")->attr.mtime.sec -= ATIME_OLD_S + 1;
    fake_inode(&bed.cluster, "f")->attr.ctime.sec -= ATIME_OLD_S + 1;
    fake_inode(&bed.cluster, "f")->attr.change++;
    read_once("f", 0);
    bed_spin(&bed, NS_PER_S);
    ck_assert_uint_eq(bed.cluster.reads_told, 2);
}
END_TEST

START_TEST(a_file_that_stays_open_is_told_of_in_a_while)
{
    struct core_file *f;

    make("f");
    f = bed_open(&bed, c, "f", O_RDONLY, NULL);
    read_by(f);
    bed_spin(&bed, 4 * NS_PER_S);
    ck_assert_uint_eq(bed.cluster.reads_told, 0);
    bed_spin(&bed, 2 * NS_PER_S);
    ck_assert_uint_eq(bed.cluster.reads_told, 1);
    core_release(c, f);
}
END_TEST

START_TEST(many_reads_share_calls)
{
    char name[16];
    unsigned calls;

    for (int k = 0; k < 150; k++) {
        snprintf(name, sizeof name, "f%d", k);
        make(name);
    }
    calls = bed.cluster.calls[RPC_OP_CLOSE];
    for (int k = 0; k < 150; k++) {
        snprintf(name, sizeof name, "f%d", k);
        read_once(name, 0);
    }
    bed_spin(&bed, NS_PER_S);
    ck_assert_uint_eq(bed.cluster.reads_told, 150);
    ck_assert_uint_le(bed.cluster.calls[RPC_OP_CLOSE], calls + 20);
}
END_TEST

START_TEST(what_does_not_count_is_not_told)
{
    struct core_file *f;

    make("f");
    read_once("f", O_NOATIME);
    f = bed_open(&bed, c, "f", O_RDONLY, NULL);
    core_release(c, f);
    bed_spin(&bed, 10 * NS_PER_S);
    ck_assert_uint_eq(bed.cluster.reads_told, 0);
    bed_unmount(&bed, c, false, 0);
    c = mount_with(true, true);
    read_once("f", 0);
    bed_unmount(&bed, c, false, 0);
    c = mount_with(false, false);
    read_once("f", 0);
    bed_spin(&bed, 10 * NS_PER_S);
    ck_assert_uint_eq(bed.cluster.reads_told, 0);
    ck_assert(!was_read(stored("f")));
}
END_TEST

START_TEST(a_time_that_is_set_after_the_read_is_not_told_over)
{
    uint64_t ino = make("f");
    struct core_file *f = bed_open(&bed, c, "f", O_RDONLY, NULL);
    struct msg_setattr_req set = {.ino = ino, .set = MSG_SET_ATIME};
    struct bed_op op;

    set.atime = told(ino).atime; /* what it was before */
    read_by(f);
    bed_op_init(&op);
    bed_spin(&bed, 1000);
    core_setattr(c, &op.q, &set, f);
    ck_assert_int_eq(bed_wait(&bed, &op), 0);
    core_release(c, f);
    bed_spin(&bed, 10 * NS_PER_S);
    ck_assert_uint_eq(bed.cluster.reads_told, 0);
    ck_assert_int_eq(told(ino).atime.sec, set.atime.sec);
}
END_TEST

START_TEST(the_kernel_shows_an_unread_file_again_rather_than_its_pages)
{
    struct core_opened opened;
    struct core_file *f;

    make("f");
    f = bed_open(&bed, c, "f", O_RDONLY, &opened);
    ck_assert(!opened.keep_cache);
    read_by(f);
    core_release(c, f);
    f = bed_open(&bed, c, "f", O_RDONLY, &opened);
    ck_assert(opened.keep_cache);
    core_release(c, f);
}
END_TEST

START_TEST(that_others_have_read_a_file_is_asked_for_after_half_a_minute)
{
    uint64_t ino = make("f");
    struct msg_attr a = told(ino);
    unsigned calls = bed.cluster.calls[RPC_OP_GETATTR];

    ck_assert(!was_read(&a));
    fake_inode(&bed.cluster, "f")->attr.atime = (struct msg_time){a.mtime.sec + 1, 0};
    a = told(ino);
    ck_assert(!was_read(&a));
    ck_assert_uint_eq(bed.cluster.calls[RPC_OP_GETATTR], calls);
    bed_spin(&bed, 31 * NS_PER_S);
    a = told(ino);
    ck_assert(was_read(&a));
    bed_spin(&bed, 31 * NS_PER_S);
    a = told(ino);
    ck_assert_uint_eq(bed.cluster.calls[RPC_OP_GETATTR], calls + 1);
}
END_TEST

START_TEST(what_is_not_told_yet_goes_with_the_unmount)
{
    make("f");
    read_once("f", 0);
    ck_assert_uint_eq(bed.cluster.reads_told, 0);
    bed_unmount(&bed, c, false, 0);
    ck_assert_uint_eq(bed.cluster.reads_told, 1);
    c = mount_with(true, false);
    make("g");
    read_once("g", 0);
    bed_unmount(&bed, c, true, 0);
    ck_assert_uint_eq(bed.cluster.reads_told, 1);
    c = mount_with(true, false);
}
END_TEST

SUITE_MAIN("client-reads", setup, teardown, a_read_is_seen_here_at_once_and_told_with_the_close,
           reading_on_and_again_tells_nothing, a_read_after_a_write_counts_and_after_a_day,
           a_file_that_stays_open_is_told_of_in_a_while, many_reads_share_calls,
           what_does_not_count_is_not_told, a_time_that_is_set_after_the_read_is_not_told_over,
           the_kernel_shows_an_unread_file_again_rather_than_its_pages,
           that_others_have_read_a_file_is_asked_for_after_half_a_minute,
           what_is_not_told_yet_goes_with_the_unmount)
