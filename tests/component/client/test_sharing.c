/* SPDX-License-Identifier: Apache-2.0 */
/* Two clients and one file: leases are given back in time, and nobody reads old bytes. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/fault/fault.h"
#include "common/net/net.h"
#include "tests/support/client_bed.h"
#include "tests/support/suite.h"

static struct bed bed;
static struct core *a, *b;
static uint8_t *data, *back;

#define ROOM (6u * MIB)

static void setup(void)
{
    bed_setup(&bed, 3);
    a = bed_mount(&bed, NULL);
    b = bed_mount(&bed, NULL);
    data = malloc(ROOM);
    back = malloc(ROOM);
    bed_pattern(data, ROOM, 0, 1);
}

static void teardown(void)
{
    bed_unmount(&bed, a, false, 0);
    bed_unmount(&bed, b, false, 0);
    free(data);
    free(back);
    bed_teardown(&bed);
}

static void expect_read(struct core *c, struct core_file *f, uint64_t offset, uint32_t len)
{
    memset(back, 0xee, len);
    ck_assert_int_eq(bed_read(&bed, c, f, offset, back, len), (int)len);
    ck_assert_int_eq(memcmp(back, data + offset, len), 0);
}

START_TEST(a_reader_elsewhere_sees_what_was_written_and_not_yet_flushed)
{
    struct core_file *w = bed_create(&bed, a, "shared"), *r;
    struct core_opened o;
    struct core_stats stats;

    ck_assert_int_eq(bed_write(&bed, a, w, 0, data, 5 * MIB), 0);
    r = bed_open(&bed, b, "shared", O_RDONLY, &o);
    ck_assert_int_eq(o.lease, MSG_LEASE_NONE);
    expect_read(b, r, 0, 5 * MIB);
    core_get_stats(a, &stats);
    ck_assert_uint_eq(stats.recalls, 1);
    ck_assert_uint_eq(stats.uncommitted_bytes, 0);
    ck_assert_int_eq(bed_write(&bed, a, w, 5 * MIB, data + 5 * MIB, MIB),
                     0); /* without a lease now: at once */
    expect_read(b, r, 0, ROOM);
    core_release(a, w);
    core_release(b, r);
}
END_TEST

START_TEST(small_files_are_shared_through_the_metadata_server)
{
    struct core_file *w = bed_create(&bed, a, "small"), *r;

    ck_assert_int_eq(bed_write(&bed, a, w, 0, data, 1000), 0);
    r = bed_open(&bed, b, "small", O_RDWR, NULL);
    expect_read(b, r, 0, 1000);
    ck_assert_int_eq(bed_write(&bed, a, w, 1000, data + 1000, 1000), 0);
    expect_read(b, r, 0, 2000);
    ck_assert_int_eq(bed_write(&bed, b, r, 2000, data + 2000, 1000), 0);
    expect_read(a, w, 0, 3000);
    core_release(a, w);
    core_release(b, r);
}
END_TEST

START_TEST(a_shared_small_file_grows_when_a_write_does_not_fit)
{
    struct core_file *w = bed_create(&bed, a, "grow"), *r;

    ck_assert_int_eq(bed_write(&bed, a, w, 0, data, 1000), 0);
    r = bed_open(&bed, b, "grow", O_RDWR, NULL);
    ck_assert_int_eq(bed_write(&bed, b, r, 1000, data + 1000, 2 * MIB), 0);
    ck_assert_uint_eq(bed.cluster.executed[RPC_OP_GROW], 1);
    bed_spin(&bed, 20 * NS_PER_MS);
    expect_read(a, w, 0, 2 * MIB + 1000);
    ck_assert_int_eq(bed_write(&bed, a, w, 2 * MIB + 1000, data + 2 * MIB + 1000, 5000), 0);
    expect_read(b, r, 0, 2 * MIB + 6000);
    core_release(a, w);
    core_release(b, r);
}
END_TEST

/* While it grows others read what the server has: so do those beside the writer. */
START_TEST(a_shared_file_that_grows_is_seen_by_all_at_once)
{
    struct core_file *w = bed_create(&bed, a, "grow"), *r;
    struct iovec iov = {data + 1000, 100000};
    struct bed_op write, read;
    uint64_t size;

    ck_assert_int_eq(bed_write(&bed, a, w, 0, data, 1000), 0);
    r = bed_open(&bed, b, "grow", O_RDWR, NULL);
    fake_targets_hold(&bed.cluster);
    bed_op_init(&write);
    core_write(b, &write.q, r, 1000, &iov, 1, 100000);
    bed_spin(&bed, 200 * NS_PER_MS);
    bed_op_init(&read);
    core_read(b, &read.q, r, 50000, 100, NULL);
    bed_spin(&bed, 200 * NS_PER_MS);
    ck_assert(!write.done && !read.done);
    ck_assert_int_eq(bed_size(&bed, a, core_file_ino(w), &size), 0);
    ck_assert_uint_eq(size, 1000);
    ck_assert_int_eq(bed_size(&bed, b, core_file_ino(r), &size), 0);
    ck_assert_uint_eq(size, 1000);
    ck_assert_int_eq(bed_read(&bed, a, w, 50000, back, 100), 0);
    fake_targets_release(&bed.cluster);
    ck_assert_int_eq(bed_wait(&bed, &write), 0);
    ck_assert_int_eq(bed_wait(&bed, &read), 0);
    ck_assert_uint_eq(read.q.out.read.bytes, 100);
    core_read_done(&read.q);
    expect_read(a, w, 0, 101000);
    expect_read(b, r, 0, 101000);
    core_release(a, w);
    core_release(b, r);
}
END_TEST

/* What was written before a cut is gone with it: its end must not be told behind the cut. */
START_TEST(a_shared_write_that_a_cut_overtakes_is_written_again)
{
    struct core_file *w = bed_create(&bed, a, "cut"), *r;
    struct fake_inode *i = fake_inode(&bed.cluster, "cut");
    struct iovec iov = {data + 200000, 1000};
    struct bed_op write;
    uint64_t size;

    ck_assert_int_eq(bed_write(&bed, a, w, 0, data, 200000), 0);
    r = bed_open(&bed, b, "cut", O_RDWR, NULL);
    expect_read(b, r, 0, 200000);
    fake_targets_hold(&bed.cluster);
    bed_op_init(&write);
    core_write(b, &write.q, r, 200000, &iov, 1, 1000);
    bed_spin(&bed, 50 * NS_PER_MS);
    i->attr.truncate_gen++; /* its targets hear of it later */
    i->attr.size = 100000;
    i->attr.change = ++bed.cluster.change;
    ck_assert_int_eq(bed_size(&bed, b, core_file_ino(r), &size), 0);
    ck_assert_uint_eq(size, 100000);
    bed.cluster.executed[RPC_OP_SIZE] = 0;
    unsigned before = 0, after = 0;
    for (unsigned k = 0; k < bed.cluster.n_oss; k++) {
        before += bed.cluster.oss[k].writes;
        fake_oss_release(&bed.cluster.oss[k]);
    }
    ck_assert_int_eq(bed_wait(&bed, &write), 0);
    for (unsigned k = 0; k < bed.cluster.n_oss; k++)
        after += bed.cluster.oss[k].writes;
    ck_assert_uint_eq(after - before, 2);
    ck_assert_uint_eq(bed.cluster.executed[RPC_OP_SIZE], 1);
    ck_assert_int_eq(bed_size(&bed, a, core_file_ino(w), &size), 0);
    ck_assert_uint_eq(size, 201000);
    core_release(a, w);
    core_release(b, r);
}
END_TEST

/* A target that a cut has not reached would take it all the same. */
START_TEST(a_shared_write_asks_whether_it_was_cut_unless_it_would_have_been_told)
{
    struct core_file *w = bed_create(&bed, a, "doubt"), *r;
    struct fake_inode *i = fake_inode(&bed.cluster, "doubt");
    uint64_t size;

    bed.cluster.cuts_told = true;
    ck_assert_int_eq(bed_write(&bed, a, w, 0, data, 200000), 0);
    r = bed_open(&bed, b, "doubt", O_RDWR, NULL);
    bed.cluster.executed[RPC_OP_SIZE] = 0;
    ck_assert_int_eq(bed_write(&bed, b, r, 100000, data, 1000), 0);
    ck_assert_uint_eq(bed.cluster.executed[RPC_OP_SIZE], 0);
    bed.cluster.cuts_told = false;
    bed_unmount(&bed, b, false, 0);
    b = bed_mount(&bed, NULL);
    r = bed_open(&bed, b, "doubt", O_RDWR, NULL);
    i->attr.truncate_gen++; /* its targets hear of it later */
    i->attr.size = 50000;
    i->attr.change = ++bed.cluster.change;
    ck_assert_int_eq(bed_write(&bed, b, r, 100000, data, 1000), 0);
    ck_assert_int_eq(bed_size(&bed, b, core_file_ino(r), &size), 0);
    ck_assert_uint_eq(size, 101000);
    core_release(a, w);
    core_release(b, r);
}
END_TEST

START_TEST(a_lease_that_comes_during_a_shared_write_knows_its_end)
{
    struct core_file *w = bed_create(&bed, a, "late"), *r, *again;
    struct iovec iov = {data + 200000, 1000};
    struct bed_op write;

    ck_assert_int_eq(bed_write(&bed, a, w, 0, data, 200000), 0);
    r = bed_open(&bed, b, "late", O_RDWR, NULL);
    expect_read(b, r, 0, 200000);
    fake_targets_hold(&bed.cluster);
    bed_op_init(&write);
    core_write(b, &write.q, r, 200000, &iov, 1, 1000);
    bed_spin(&bed, 50 * NS_PER_MS);
    core_release(a, w);
    bed_spin(&bed, 50 * NS_PER_MS);
    again = bed_open(&bed, b, "late", O_RDWR, NULL);
    ck_assert(!write.done);
    fake_targets_release(&bed.cluster);
    ck_assert_int_eq(bed_wait(&bed, &write), 0);
    expect_read(b, again, 0, 201000);
    core_release(b, r);
    core_release(b, again);
}
END_TEST

START_TEST(an_answer_that_a_whole_recall_overtakes_grants_nothing)
{
    struct core_file *w = bed_create(&bed, a, "late"), *again, *r;
    struct bed_op open;
    struct bed_late late;

    ck_assert_int_eq(bed_write(&bed, a, w, 0, data, 100000), 0);
    ck_assert_int_eq(bed_fsync(&bed, a, w), 0);
    bed_op_init(&open);
    bed_answer_late(&late, 300 * NS_PER_MS);
    core_open(a, &open.q, core_file_ino(w), O_RDWR);
    bed_spin(&bed, 20 * NS_PER_MS);
    net_loop_set_policy(NULL, NULL);
    ck_assert(!open.done);
    r = bed_open(&bed, b, "late", O_RDWR, NULL);
    ck_assert(!open.done);
    ck_assert_int_eq(bed_wait(&bed, &open), 0);
    again = open.q.out.opened.file;
    expect_read(a, again, 0, 100000);
    memset(data, 7, 1000);
    ck_assert_int_eq(bed_write(&bed, b, r, 0, data, 1000), 0);
    expect_read(a, again, 0, 100000);
    core_release(a, w);
    core_release(a, again);
    core_release(b, r);
}
END_TEST

static void set_size(struct core *c, struct core_file *f, uint64_t size, struct bed_op *op)
{
    struct msg_setattr_req set = {.ino = core_file_ino(f), .set = MSG_SET_SIZE, .size = size};

    bed_op_init(op);
    core_setattr(c, &op->q, &set, f);
}

START_TEST(an_answer_that_another_cut_overtakes_brings_no_old_size_back)
{
    struct core_file *w = bed_create(&bed, a, "cuts"), *r;
    struct bed_op mine, other;
    struct bed_late late;
    uint64_t size;

    bed.cluster.cuts_told = true;
    ck_assert_int_eq(bed_write(&bed, a, w, 0, data, 200000), 0);
    r = bed_open(&bed, b, "cuts", O_RDWR, NULL);
    expect_read(b, r, 0, 200000);
    bed_answer_late(&late, 300 * NS_PER_MS);
    set_size(a, w, 60000, &mine);
    bed_spin(&bed, 20 * NS_PER_MS);
    net_loop_set_policy(NULL, NULL);
    set_size(b, r, 1000, &other);
    ck_assert_int_eq(bed_wait(&bed, &other), 0);
    ck_assert(!mine.done);
    ck_assert_int_eq(bed_size(&bed, a, core_file_ino(w), &size), 0);
    ck_assert_uint_eq(size, 1000);
    ck_assert_int_eq(bed_wait(&bed, &mine), 0);
    ck_assert_int_eq(bed_read(&bed, a, w, 5000, back, 16), 0);
    core_release(a, w);
    core_release(b, r);
}
END_TEST

START_TEST(an_append_that_a_cut_overtakes_goes_to_the_new_end_only)
{
    struct core_file *w = bed_create(&bed, a, "journal"), *r, *o = bed_create(&bed, b, "other");
    struct fake_inode *i = fake_inode(&bed.cluster, "journal");
    struct iovec iov = {data + 200000, 1000};
    unsigned before = 0, after = 0;
    struct bed_op append;
    uint64_t size;

    ck_assert_int_eq(bed_write(&bed, b, o, 0, data, bed.cluster.n_oss * MIB), 0);
    core_release(b, o); /* now every target has promised room */
    ck_assert_int_eq(bed_write(&bed, a, w, 0, data, 200000), 0);
    r = bed_open(&bed, b, "journal", O_RDWR | O_APPEND, NULL);
    fake_targets_hold(&bed.cluster);
    bed_op_init(&append);
    core_write(b, &append.q, r, 0, &iov, 1, 1000);
    bed_spin(&bed, 50 * NS_PER_MS);
    i->attr.truncate_gen++;
    i->attr.size = 100000;
    i->attr.change = ++bed.cluster.change;
    for (unsigned k = 0; k < bed.cluster.n_oss; k++) {
        bed.cluster.oss[k].truncate_gen[core_file_ino(r)] = i->attr.truncate_gen;
        before += bed.cluster.oss[k].writes;
    }
    fake_targets_release(&bed.cluster);
    ck_assert_int_eq(bed_wait(&bed, &append), 0);
    for (unsigned k = 0; k < bed.cluster.n_oss; k++)
        after += bed.cluster.oss[k].writes;
    ck_assert_uint_eq(after - before, 2);
    ck_assert_uint_eq(append.q.out.write.offset, 100000);
    ck_assert_int_eq(bed_size(&bed, b, core_file_ino(r), &size), 0);
    ck_assert_uint_eq(size, 101000);
    core_release(a, w);
    core_release(b, r);
}
END_TEST

START_TEST(appends_of_two_clients_never_overwrite_each_other)
{
    struct core_file *w = bed_create(&bed, a, "log"), *x, *y;
    uint64_t size;
    unsigned k, seen[2] = {0};

    ck_assert_int_eq(bed_write(&bed, a, w, 0, data, 100 * KIB), 0);
    ck_assert_int_eq(bed_flush(&bed, a, w), 0);
    x = bed_open(&bed, a, "log", O_WRONLY | O_APPEND, NULL);
    y = bed_open(&bed, b, "log", O_WRONLY | O_APPEND, NULL);
    for (k = 0; k < 50; k++) {
        struct core *c = k % 2 ? a : b;
        uint8_t line[64];

        memset(line, k % 2 ? 'a' : 'b', sizeof line);
        ck_assert_int_eq(bed_write(&bed, c, k % 2 ? x : y, 0, line, sizeof line), 0);
    }
    ck_assert_int_eq(bed_size(&bed, b, core_file_ino(y), &size), 0);
    ck_assert_uint_eq(size, 100 * KIB + 50 * 64);
    ck_assert_int_eq(bed_read(&bed, a, w, 100 * KIB, back, 50 * 64), 50 * 64);
    for (k = 0; k < 50; k++)
        seen[back[k * 64] == 'a']++;
    ck_assert_uint_eq(seen[0], 25);
    ck_assert_uint_eq(seen[1], 25);
    core_release(a, w);
    core_release(a, x);
    core_release(b, y);
}
END_TEST

START_TEST(an_append_whose_answer_is_overtaken_tells_where_it_went)
{
    struct core_file *x, *y = bed_create(&bed, b, "log");
    struct iovec iov = {data, 100};
    struct bed_op append;
    struct bed_late late;
    uint64_t size;

    x = bed_open(&bed, a, "log", O_WRONLY | O_APPEND, NULL);
    bed_op_init(&append);
    bed_answer_late(&late, 100 * NS_PER_MS);
    core_write(a, &append.q, x, 0, &iov, 1, 100);
    bed_spin(&bed, 20 * NS_PER_MS);
    net_loop_set_policy(NULL, NULL);
    ck_assert_int_eq(bed_write(&bed, b, y, 1000, data, 500), 0);
    ck_assert_int_eq(bed_size(&bed, a, core_file_ino(x), &size), 0);
    ck_assert(size == 1500 && !append.done);
    ck_assert_int_eq(bed_wait(&bed, &append), 0);
    ck_assert_uint_eq(append.q.out.write.offset, 0);
    core_release(a, x);
    core_release(b, y);
}
END_TEST

START_TEST(readers_share_and_a_writer_takes_their_caches_away)
{
    struct core_file *w = bed_create(&bed, a, "read"), *r1, *r2;
    struct core_opened o;

    ck_assert_int_eq(bed_write(&bed, a, w, 0, data, ROOM), 0);
    ck_assert_int_eq(bed_fsync(&bed, a, w), 0);
    core_release(a, w);
    bed_spin(&bed, 50 * NS_PER_MS);
    r1 = bed_open(&bed, a, "read", O_RDONLY, &o);
    ck_assert_int_eq(o.lease, MSG_LEASE_READ);
    ck_assert(o.keep_cache);
    r2 = bed_open(&bed, b, "read", O_RDONLY, &o);
    ck_assert_int_eq(o.lease, MSG_LEASE_READ);
    expect_read(a, r1, 0, ROOM);
    expect_read(b, r2, 0, ROOM);
    w = bed_open(&bed, b, "read", O_WRONLY, NULL);
    bed_pattern(data, ROOM, 0, 9);
    ck_assert_int_eq(bed_write(&bed, b, w, 0, data, ROOM), 0);
    ck_assert_int_eq(bed_flush(&bed, b, w), 0);
    expect_read(a, r1, 0, ROOM);
    core_release(a, r1);
    core_release(b, r2);
    core_release(b, w);
}
END_TEST

START_TEST(a_truncate_elsewhere_is_seen_by_a_reader)
{
    struct core_file *w = bed_create(&bed, a, "cut"), *r;

    ck_assert_int_eq(bed_write(&bed, a, w, 0, data, ROOM), 0);
    r = bed_open(&bed, b, "cut", O_RDONLY, NULL);
    expect_read(b, r, 0, ROOM);
    ck_assert_int_eq(bed_truncate(&bed, a, w, MIB + 5), 0);
    memset(data + MIB + 5, 0, ROOM - MIB - 5);
    ck_assert_int_eq(bed_truncate(&bed, a, w, 3 * MIB), 0);
    expect_read(b, r, 0, 3 * MIB);
    ck_assert_int_eq(bed_read(&bed, b, r, 3 * MIB, back, 10), 0);
    core_release(a, w);
    core_release(b, r);
}
END_TEST

/* The kernel of client a, which takes its time to drop its pages. */
static struct core_inval *asked;

static void inval(void *arg, struct core_inval *v)
{
    (void)arg;
    asked = v;
}

START_TEST(a_lease_goes_back_only_after_the_kernel_has_dropped_its_pages)
{
    struct core_options o;
    struct core_file *w, *r;
    struct bed_op op;
    struct core *k;
    uint64_t ino;

    core_options_default(&o);
    o.events.inval_inode = inval;
    k = bed_mount(&bed, &o);
    w = bed_create(&bed, k, "pages");
    ck_assert_int_eq(bed_write(&bed, k, w, 0, data, 3 * MIB), 0);
    ino = core_file_ino(w);
    bed_op_init(&op);
    core_open(b, &op.q, ino, O_RDONLY);
    bed_spin(&bed, 50 * NS_PER_MS);
    ck_assert_ptr_nonnull(asked);
    ck_assert_uint_eq(asked->ino, ino);
    ck_assert(asked->data && !op.done);
    ck_assert_int_eq(bed_write(&bed, k, w, 3 * MIB, data + 3 * MIB, MIB),
                     0); /* still under the lease */
    core_inval_done(k, asked);
    ck_assert_int_eq(bed_wait(&bed, &op), 0);
    r = op.q.out.opened.file;
    expect_read(b, r, 0, 4 * MIB);
    core_release(k, w);
    core_release(b, r);
    bed_unmount(&bed, k, false, 0);
}
END_TEST

/* a has a lease on "shared"; b opens it, and the release does not work at first. */
static void expect_opened_elsewhere(void)
{
    struct core_file *w = bed_create(&bed, a, "shared"), *r;

    ck_assert_int_eq(bed_write(&bed, a, w, 0, data, 3 * MIB), 0);
    r = bed_open(&bed, b, "shared", O_RDWR, NULL);
    expect_read(b, r, 0, 3 * MIB);
    ck_assert_int_eq(bed_write(&bed, a, w, 0, data + 5, MIB), 0);
    memmove(data, data + 5, MIB);
    expect_read(b, r, 0, 3 * MIB);
    expect_read(a, w, 0, 3 * MIB);
    core_release(a, w);
    core_release(b, r);
    bed_spin(&bed, 50 * NS_PER_MS);
    w = bed_open(&bed, a, "shared", O_RDWR, NULL);
    ck_assert_int_eq(bed_write(&bed, a, w, 0, data + 9, MIB), 0);
    ck_assert_int_eq(bed_fsync(&bed, a, w), 0);
    core_release(a, w);
}

START_TEST(a_truncate_elsewhere_between_a_write_and_its_size_is_no_error)
{
    struct core_file *w = bed_create(&bed, a, "raced"), *r;

    ck_assert_int_eq(bed_write(&bed, a, w, 0, data, 2 * MIB), 0);
    r = bed_open(&bed, b, "raced", O_RDWR, NULL);
    bed.cluster.stale = 1;
    ck_assert_int_eq(bed_write(&bed, a, w, 2 * MIB, data, 5000), 0);
    ck_assert_uint_eq(bed.cluster.stale, 0);
    expect_read(b, r, 0, 2 * MIB);
    core_release(a, w);
    core_release(b, r);
}
END_TEST

START_TEST(attributes_that_are_never_new_enough_are_an_error_at_last)
{
    struct core_file *w = bed_create(&bed, a, "stale"), *small = bed_create(&bed, a, "small"), *r,
                     *s, *log;
    int fd = memfd_create("log", 0);
    char said[4096] = "";

    ck_assert_int_eq(bed_write(&bed, a, w, 0, data, 100 * KIB), 0);
    ck_assert_int_eq(bed_write(&bed, a, small, 0, data, 100), 0);
    r = bed_open(&bed, b, "stale", O_RDWR, NULL);
    s = bed_open(&bed, b, "small", O_RDWR, NULL);
    log = bed_open(&bed, a, "stale", O_RDWR | O_APPEND, NULL);
    bed.cluster.stale = UINT32_MAX;
    ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    ck_assert_int_ne(bed_write(&bed, a, log, 0, data, 100), 0);
    ck_assert_int_ne(bed_write(&bed, a, small, 0, data, 100), 0);
    bed.cluster.stale = 0;
    ck_assert_int_gt(pread(fd, said, sizeof said - 1, 0), 0);
    ck_assert_msg(strstr(said, "write of inode") && strstr(said, "given up after 17 tries"),
                  "it says %s", said);
    close(fd);
    ck_assert_int_eq(bed_write(&bed, a, log, 0, data, 100), 0);
    ck_assert_int_eq(bed_write(&bed, a, small, 0, data, 100), 0);
    core_release(a, w);
    core_release(a, small);
    core_release(a, log);
    core_release(b, r);
    core_release(b, s);
}
END_TEST

START_TEST(a_release_that_has_failed_is_made_again)
{
    bed.cluster.fail_release = -EIO;
    bed.cluster.fail_release_n = 3;
    expect_opened_elsewhere();
    ck_assert_uint_ge(bed.cluster.calls[RPC_OP_LEASE_RELEASE], 4);
}
END_TEST

START_TEST(without_memory_for_a_release_it_is_made_later)
{
    ck_assert_int_eq(fault_arm("client.release.memory=error@1"), 0);
    expect_opened_elsewhere();
    ck_assert_uint_ge(fault_count("client.release.memory"), 2);
    fault_disarm_all();
}
END_TEST

/* A lease that is got anew and given back without a write tells no time of an earlier write. */
START_TEST(a_time_set_elsewhere_survives_a_lease_that_comes_and_goes)
{
    struct core_file *w = bed_create(&bed, a, "times"), *again, *r;
    struct fake_inode *i = fake_inode(&bed.cluster, "times");
    struct msg_setattr_req set = {
        .ino = core_file_ino(w), .set = MSG_SET_MTIME, .mtime = {1000000, 5}};
    struct core_opened o;
    struct bed_op op;

    ck_assert_int_eq(bed_write(&bed, a, w, 0, data, 1000), 0);
    ck_assert_int_eq(bed_fsync(&bed, a, w), 0);
    r = bed_open(&bed, b, "times", O_RDONLY, &o);
    bed_op_init(&op);
    core_setattr(b, &op.q, &set, NULL);
    ck_assert_int_eq(bed_wait(&bed, &op), 0);
    core_release(b, r);
    bed_spin(&bed, NS_PER_S);
    again = bed_open(&bed, a, "times", O_RDONLY, &o);
    ck_assert_int_eq(o.lease, MSG_LEASE_WRITE);
    r = bed_open(&bed, b, "times", O_RDONLY, &o);
    ck_assert_int_eq(o.lease, MSG_LEASE_NONE);
    ck_assert_int_eq(i->attr.mtime.sec, 1000000);
    core_release(a, again);
    core_release(a, w);
    core_release(b, r);
}
END_TEST

SUITE_MAIN("client-sharing", setup, teardown,
           a_reader_elsewhere_sees_what_was_written_and_not_yet_flushed,
           small_files_are_shared_through_the_metadata_server,
           a_shared_small_file_grows_when_a_write_does_not_fit,
           a_shared_file_that_grows_is_seen_by_all_at_once,
           a_shared_write_that_a_cut_overtakes_is_written_again,
           a_shared_write_asks_whether_it_was_cut_unless_it_would_have_been_told,
           a_lease_that_comes_during_a_shared_write_knows_its_end,
           an_answer_that_a_whole_recall_overtakes_grants_nothing,
           an_answer_that_another_cut_overtakes_brings_no_old_size_back,
           an_append_that_a_cut_overtakes_goes_to_the_new_end_only,
           appends_of_two_clients_never_overwrite_each_other,
           an_append_whose_answer_is_overtaken_tells_where_it_went,
           readers_share_and_a_writer_takes_their_caches_away,
           a_truncate_elsewhere_is_seen_by_a_reader,
           a_lease_goes_back_only_after_the_kernel_has_dropped_its_pages,
           a_truncate_elsewhere_between_a_write_and_its_size_is_no_error,
           attributes_that_are_never_new_enough_are_an_error_at_last,
           a_time_set_elsewhere_survives_a_lease_that_comes_and_goes,
           a_release_that_has_failed_is_made_again, without_memory_for_a_release_it_is_made_later)
