/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metadata server says nothing for the lease time: what is cached may be wrong by then, so
 * nothing of it is served, here or by the kernel, until the server has spoken again. And an unmount
 * that waits for no server.
 */
#include <check.h>
#include <fcntl.h>
#include <string.h>

#include "common/base/err.h"
#include "tests/support/client_bed.h"
#include "tests/support/suite.h"

#define LEASE_NS (600 * NS_PER_MS)
#define LEN      (2 * MIB)

static struct bed bed;
static struct core *c;
static uint8_t *data, *back;
static unsigned n_inodes, n_all; /* what the kernel was told */
static uint64_t last_ino;

static void inval_inode(void *arg, struct core_inval *v)
{
    (void)arg;
    n_inodes++;
    last_ino = v->ino;
    ck_assert(v->data);
    core_inval_done(c, v);
}

static void inval_all(void *arg)
{
    (void)arg;
    n_all++;
}

static struct core *mount_with(bool soft)
{
    struct core_options o;

    core_options_default(&o);
    o.attr_ns = o.entry_ns = o.negative_ns = 60 * NS_PER_S;
    o.soft = soft;
    o.timeo_ns = 300 * NS_PER_MS;
    o.events.inval_inode = inval_inode;
    o.events.inval_all = inval_all;
    return bed_mount(&bed, &o);
}

static void setup(void)
{
    bed_setup(&bed, 3);
    bed.cluster.lease_ns = LEASE_NS;
    c = mount_with(false);
    data = malloc(LEN);
    back = malloc(LEN);
    bed_pattern(data, LEN, 0, 1);
    n_inodes = n_all = 0;
}

static void teardown(void)
{
    bed_unmount(&bed, c, false, 0);
    free(data);
    free(back);
    bed_teardown(&bed);
}

static struct core_file *cached_file(const char *name, uint32_t len)
{
    struct core_file *f = bed_create(&bed, c, name);

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, len), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    ck_assert_int_eq(bed_read(&bed, c, f, 0, back, len), (int)len);
    return f;
}

static void silence(void)
{
    bed.cluster.mds_hold = true;
    bed_spin(&bed, LEASE_NS + 300 * NS_PER_MS);
}

START_TEST(cached_data_waits_for_the_server)
{
    struct core_file *large = cached_file("large", LEN), *small = cached_file("small", 1000);
    struct bed_op reads[2], write;
    struct iovec iov = {data, 1000};
    unsigned k;

    silence();
    for (k = 0; k < 2; k++) {
        bed_op_init(&reads[k]);
        core_read(c, &reads[k].q, k ? small : large, 0, 1000, NULL);
    }
    bed_op_init(&write);
    core_write(c, &write.q, large, 0, &iov, 1, 1000);
    bed_spin(&bed, 100 * NS_PER_MS);
    ck_assert(!reads[0].done && !reads[1].done && !write.done);
    fake_mds_release(&bed.cluster);
    for (k = 0; k < 2; k++) {
        ck_assert_int_eq(bed_wait(&bed, &reads[k]), 0);
        ck_assert_uint_eq(reads[k].q.out.read.bytes, 1000);
        core_read_done(&reads[k].q);
    }
    ck_assert_int_eq(bed_wait(&bed, &write), 0);
    core_release(c, large);
    core_release(c, small);
}
END_TEST

START_TEST(cached_names_and_attributes_wait_for_the_server)
{
    struct core_file *f = cached_file("named", 1000);
    uint64_t ino = core_file_ino(f);
    struct bed_op ops[3];
    unsigned k;

    bed_op_init(&ops[0]);
    ops[0].q.want_negative = true;
    core_lookup(c, &ops[0].q, 1, "none", 4);
    ck_assert_int_eq(bed_wait(&bed, &ops[0]), 0);
    silence();
    for (k = 0; k < 3; k++)
        bed_op_init(&ops[k]);
    ops[0].q.want_negative = true;
    core_lookup(c, &ops[0].q, 1, "none", 4);
    core_lookup(c, &ops[1].q, 1, "named", 5);
    core_getattr(c, &ops[2].q, ino);
    bed_spin(&bed, 100 * NS_PER_MS);
    for (k = 0; k < 3; k++)
        ck_assert(!ops[k].done);
    fake_mds_release(&bed.cluster);
    for (k = 0; k < 3; k++)
        ck_assert_int_eq(bed_wait(&bed, &ops[k]), 0);
    core_release(c, f);
}
END_TEST

START_TEST(the_kernel_is_told_no_time_beyond_the_lease_and_to_drop_its_pages)
{
    struct core_file *f = cached_file("kernel", LEN);
    struct bed_op op;

    bed_op_init(&op);
    core_getattr(c, &op.q, core_file_ino(f));
    ck_assert_int_eq(bed_wait(&bed, &op), 0);
    ck_assert_uint_gt(op.q.entry.attr_valid_ns, 0);
    ck_assert_uint_le(op.q.entry.attr_valid_ns, LEASE_NS);
    bed_op_init(&op);
    core_lookup(c, &op.q, 1, "kernel", 6);
    ck_assert_int_eq(bed_wait(&bed, &op), 0);
    ck_assert_uint_le(op.q.entry.entry_valid_ns, LEASE_NS);
    ck_assert_uint_eq(n_inodes + n_all, 0);
    silence();
    ck_assert_uint_eq(n_all, 1);
    ck_assert_uint_eq(n_inodes, 1);
    ck_assert_uint_eq(last_ino, core_file_ino(f));
    fake_mds_release(&bed.cluster);
    core_release(c, f);
}
END_TEST

START_TEST(a_lease_that_the_server_still_knows_goes_on)
{
    struct core_file *f = cached_file("goes-on", LEN);
    struct core_stats before, after;

    ck_assert_int_eq(bed_write(&bed, c, f, 1000, data, 1000), 0);
    memcpy(data + 1000, data, 1000);
    silence();
    fake_mds_release(&bed.cluster);
    core_get_stats(c, &before);
    memset(back, 0, LEN);
    ck_assert_int_eq(bed_read(&bed, c, f, 0, back, LEN), (int)LEN);
    ck_assert_int_eq(memcmp(back, data, LEN), 0);
    core_get_stats(c, &after);
    ck_assert_uint_eq(after.read_misses, before.read_misses);
    ck_assert_uint_eq(after.sessions_lost, 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    fake_contents(&bed.cluster, fake_inode(&bed.cluster, "goes-on"), 0, back, LEN, true);
    ck_assert_int_eq(memcmp(back, data, LEN), 0);
    core_release(c, f);
}
END_TEST

START_TEST(after_eviction_nothing_old_is_read_by_a_request_that_waited)
{
    struct core_file *f = cached_file("evicted", LEN);
    struct fake_inode *i = fake_inode(&bed.cluster, "evicted");
    struct bed_op op;

    silence();
    bed_op_init(&op);
    core_read(c, &op.q, f, 0, 4096, NULL);
    fake_mds_forget_sessions(&bed.cluster);
    i->attr.size = 100; /* somebody else has cut it */
    i->attr.change += 1000;
    fake_mds_release(&bed.cluster);
    ck_assert_int_eq(bed_wait(&bed, &op), 0);
    ck_assert_uint_eq(op.q.out.read.bytes, 100);
    core_read_done(&op.q);
    ck_assert_uint_ge(n_inodes, 1);
    core_release(c, f);
}
END_TEST

START_TEST(a_file_that_is_gone_with_the_session_reads_as_an_error)
{
    struct core_file *f = cached_file("gone", LEN);
    struct fake_inode *i = fake_inode(&bed.cluster, "gone");

    i->used = false;
    fake_mds_forget_sessions(&bed.cluster);
    bed_spin(&bed, LEASE_NS);
    ck_assert_int_eq(bed_read(&bed, c, f, 0, back, 4096), -EIO);
    core_release(c, f);
}
END_TEST

START_TEST(a_soft_mount_fails_what_it_can_not_vouch_for)
{
    struct core *hard = c;
    struct core_file *f;

    c = mount_with(true);
    f = cached_file("soft", LEN);
    silence();
    ck_assert_int_eq(bed_read(&bed, c, f, 0, back, 1000), -AIFS_ETIMEOUT);
    fake_mds_release(&bed.cluster);
    ck_assert_int_eq(bed_read(&bed, c, f, 0, back, 1000), 1000);
    core_release(c, f);
    bed_unmount(&bed, c, false, 0);
    c = hard;
}
END_TEST

START_TEST(a_request_that_waits_for_the_session_ends_with_a_forced_unmount)
{
    struct core_file *f = cached_file("forced", LEN);
    struct bed_op op;

    silence();
    bed_op_init(&op);
    core_read(c, &op.q, f, 0, 1000, NULL);
    bed_spin(&bed, 20 * NS_PER_MS);
    ck_assert(!op.done);
    core_release(c, f);
    bed_unmount(&bed, c, true, 0);
    ck_assert(op.done);
    ck_assert_int_eq(op.status, -EIO);
    fake_mds_release(&bed.cluster);
    c = mount_with(false);
}
END_TEST

START_TEST(a_forced_unmount_tries_no_commit_again)
{
    struct core_file *f = bed_create(&bed, c, "busy");
    struct bed_op op;

    for (unsigned k = 0; k < 2; k++) /* grants are there after the first */
        ck_assert_int_eq(bed_write(&bed, c, f, 0, data, LEN), 0);
    for (unsigned k = 0; k < 3; k++)
        bed.cluster.oss[k].fail_commits = -AIFS_EBUSY_SERVER;
    bed_op_init(&op);
    core_fsync(c, &op.q, f, false);
    while (!bed.cluster.oss[0].commits && !bed.cluster.oss[1].commits &&
           !bed.cluster.oss[2].commits)
        bed_spin(&bed, NS_PER_MS);
    ck_assert(!op.done);
    fake_targets_hold(&bed.cluster);
    core_release(c, f);
    bed_unmount(&bed, c, true, 0);
    ck_assert(op.done);
    fake_targets_release(&bed.cluster);
    c = mount_with(false);
}
END_TEST

START_TEST(the_kernel_looks_names_up_again_when_an_owner_changes)
{
    struct core_file *f = bed_create(&bed, c, "f");
    bool answered;

    fake_invalidate(&bed.cluster, core_file_ino(f), "", &answered);
    bed_spin(&bed, 10 * NS_PER_MS);
    ck_assert(answered);
    ck_assert_uint_eq(n_all, 0);
    fake_invalidate_owner(&bed.cluster, core_file_ino(f), &answered);
    bed_spin(&bed, 10 * NS_PER_MS);
    ck_assert(answered);
    ck_assert_uint_eq(n_all, 1);
    core_release(c, f);
}
END_TEST

SUITE_MAIN("client-lapse", setup, teardown, cached_data_waits_for_the_server,
           cached_names_and_attributes_wait_for_the_server,
           the_kernel_is_told_no_time_beyond_the_lease_and_to_drop_its_pages,
           a_lease_that_the_server_still_knows_goes_on,
           after_eviction_nothing_old_is_read_by_a_request_that_waited,
           a_file_that_is_gone_with_the_session_reads_as_an_error,
           a_soft_mount_fails_what_it_can_not_vouch_for,
           a_request_that_waits_for_the_session_ends_with_a_forced_unmount,
           a_forced_unmount_tries_no_commit_again,
           the_kernel_looks_names_up_again_when_an_owner_changes)
