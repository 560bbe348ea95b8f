/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing one client's files: small ones, striped ones, growth, truncation, and what
 * each may cost. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/file_bed.h"
#include "tests/support/suite.h"

#define ROOM (16u * MIB)

static void setup(void)
{
    file_bed_setup(3, ROOM);
}

static void expect_stored(const char *name, const uint8_t *want, uint32_t len, bool durable)
{
    struct fake_inode *i = fake_inode(&bed.cluster, name);

    ck_assert_ptr_nonnull(i);
    ck_assert_uint_eq(i->attr.size, len);
    fake_contents(&bed.cluster, i, 0, back, len, durable);
    ck_assert_int_eq(memcmp(back, want, len), 0);
}

START_TEST(creating_writing_and_closing_a_small_file_is_two_calls)
{
    struct core_file *f;
    struct core_stats before, after;

    core_get_stats(c, &before);
    f = bed_create(&bed, c, "small");
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 4096), 0);
    ck_assert_int_eq(bed_flush(&bed, c, f), 0);
    core_get_stats(c, &after);
    ck_assert_uint_eq(after.mds_calls - before.mds_calls, 2);
    ck_assert_uint_eq(after.oss_calls, before.oss_calls);
    expect_stored("small", data, 4096, true);
    core_release(c, f);
}
END_TEST

START_TEST(opening_and_reading_a_small_file_is_one_call)
{
    struct core_file *f = bed_create(&bed, c, "small");
    struct core_stats before, after;

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 10000), 0);
    ck_assert_int_eq(bed_flush(&bed, c, f), 0);
    core_release(c, f);
    bed_spin(&bed, 100 * NS_PER_MS);
    core_get_stats(c, &before);
    f = bed_open(&bed, c, "small", O_RDONLY, NULL);
    expect_read(f, 0, data, 10000);
    core_get_stats(c, &after);
    ck_assert_uint_eq(after.mds_calls - before.mds_calls, 1);
    core_release(c, f);
}
END_TEST

START_TEST(a_file_outgrows_the_metadata_server_and_keeps_its_contents)
{
    struct core_file *f = bed_create(&bed, c, "grows");

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 10000), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    ck_assert_int_eq(bed_write(&bed, c, f, 10000, data + 10000, 90000), 0);
    expect_read(f, 0, data, 100000);
    ck_assert_int_eq(bed_flush(&bed, c, f), 0);
    ck_assert_uint_eq(bed.cluster.executed[RPC_OP_GROW], 1);
    /* inline data that was stored may only go when it is stored elsewhere */
    fake_contents(&bed.cluster, fake_inode(&bed.cluster, "grows"), 0, back, 10000, true);
    ck_assert_int_eq(memcmp(back, data, 10000), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    expect_stored("grows", data, 100000, true);
    core_release(c, f);
    bed_spin(&bed, 50 * NS_PER_MS);
    f = bed_open(&bed, c, "grows", O_RDONLY, NULL);
    expect_read(f, 0, data, 100000);
    core_release(c, f);
}
END_TEST

START_TEST(a_striped_file_is_spread_and_durable_after_fsync)
{
    struct core_file *f = bed_create(&bed, c, "big");
    unsigned k;

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 9 * MIB + 123), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    expect_stored("big", data, 9 * MIB + 123, true);
    for (k = 0; k < 3; k++)
        ck_assert_uint_ge(bed.cluster.oss[k].bytes_written, 3 * MIB);
    expect_read(f, 0, data, 9 * MIB + 123);
    core_release(c, f);
}
END_TEST

START_TEST(holes_are_zeros)
{
    struct core_file *f = bed_create(&bed, c, "holes");
    static const uint8_t zeros[4096];

    ck_assert_int_eq(bed_write(&bed, c, f, 5 * MIB + 100, data, 1000), 0);
    expect_read(f, 3 * MIB + 5, zeros, 4096);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    core_release(c, f);
    bed_spin(&bed, 50 * NS_PER_MS);
    f = bed_open(&bed, c, "holes", O_RDONLY, NULL);
    expect_read(f, 5 * MIB + 100, data, 1000);
    expect_read(f, 5 * MIB + 100 - 4096, zeros, 4096);
    ck_assert_int_eq(bed_read(&bed, c, f, 5 * MIB + 1100, back, 10), 0);
    core_release(c, f);
}
END_TEST

START_TEST(reading_back_through_a_second_open_uses_read_ahead)
{
    struct core_file *f = bed_create(&bed, c, "stream");
    struct core_stats stats;
    uint32_t at;

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 12 * MIB), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    core_release(c, f);
    bed_spin(&bed, 50 * NS_PER_MS);
    fake_inode(&bed.cluster, "stream")->attr.change +=
        1000; /* somebody changed it: nothing cached is good */
    f = bed_open(&bed, c, "stream", O_RDONLY, NULL);
    for (at = 0; at < 12 * MIB; at += 128 * KIB)
        expect_read(f, at, data + at, 128 * KIB);
    core_get_stats(c, &stats);
    ck_assert_uint_gt(stats.readahead_bytes, 8 * MIB);
    core_release(c, f);
}
END_TEST

START_TEST(random_reads_pass_the_cache_by)
{
    struct core_file *f = bed_create(&bed, c, "random");
    unsigned seed = 5, k;

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 12 * MIB), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    core_release(c, f);
    bed_spin(&bed, 50 * NS_PER_MS);
    fake_inode(&bed.cluster, "random")->attr.change += 1000;
    f = bed_open(&bed, c, "random", O_RDONLY, NULL);
    for (k = 0; k < 200; k++) {
        uint32_t at = (uint32_t)rand_r(&seed) % (12 * MIB - 5000),
                 len = 1 + (uint32_t)rand_r(&seed) % 5000;

        expect_read(f, at, data + at, len);
    }
    core_release(c, f);
}
END_TEST

START_TEST(a_read_lands_in_the_readers_own_memory)
{
    struct core_file *f = bed_create(&bed, c, "own");
    struct bed_op op;

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 8 * MIB), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    core_release(c, f);
    bed_spin(&bed, 50 * NS_PER_MS);
    fake_inode(&bed.cluster, "own")->attr.change += 1000;
    f = bed_open(&bed, c, "own", O_RDONLY, NULL);
    bed_op_init(&op);
    memset(back, 0, MIB);
    core_read(c, &op.q, f, 5 * MIB + 512 * KIB, MIB, back);
    ck_assert_int_eq(bed_wait(&bed, &op), 0);
    ck_assert_uint_eq(op.q.out.read.bytes, MIB);
    ck_assert_ptr_eq(op.q.out.read.iov[0].iov_base, back);
    ck_assert_int_eq(memcmp(back, data + 5 * MIB + 512 * KIB, MIB), 0);
    core_read_done(&op.q);
    core_release(c, f);
}
END_TEST

START_TEST(truncating_cuts_and_what_grows_back_is_zeros)
{
    static const uint8_t zeros[4096];
    struct core_file *f = bed_create(&bed, c, "cut");
    uint64_t size;

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 5 * MIB), 0);
    ck_assert_int_eq(bed_truncate(&bed, c, f, 2 * MIB + 700), 0);
    ck_assert_int_eq(bed_size(&bed, c, core_file_ino(f), &size), 0);
    ck_assert_uint_eq(size, 2 * MIB + 700);
    ck_assert_int_eq(bed_truncate(&bed, c, f, 4 * MIB), 0);
    expect_read(f, 0, data, 2 * MIB + 700);
    expect_read(f, 2 * MIB + 700, zeros, 4096);
    ck_assert_int_eq(bed_write(&bed, c, f, 3 * MIB, data, 4096), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    memset(data + 2 * MIB + 700, 0, ROOM - 2 * MIB - 700);
    bed_pattern(data + 3 * MIB, 4096, 0, 1);
    expect_stored("cut", data, 4 * MIB, true);
    core_release(c, f);
}
END_TEST

START_TEST(truncating_a_small_file_works_before_and_after_it_was_sent)
{
    struct core_file *f = bed_create(&bed, c, "small-cut");

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 9000), 0);
    ck_assert_int_eq(bed_truncate(&bed, c, f, 0), 0);
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 5000), 0);
    ck_assert_int_eq(bed_truncate(&bed, c, f, 3000), 0);
    ck_assert_int_eq(bed_truncate(&bed, c, f, 6000), 0);
    memset(data + 3000, 0, 3000);
    expect_read(f, 0, data, 6000);
    ck_assert_int_eq(bed_flush(&bed, c, f), 0);
    expect_stored("small-cut", data, 6000, true);
    core_release(c, f);
}
END_TEST

START_TEST(a_small_file_extended_far_by_truncate_reads_as_zeros_and_can_be_written)
{
    static const uint8_t zeros[4096];
    struct core_file *f = bed_create(&bed, c, "extended");

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 100), 0);
    ck_assert_int_eq(bed_truncate(&bed, c, f, 3 * MIB), 0);
    expect_read(f, 0, data, 100);
    expect_read(f, 2 * MIB, zeros, 4096);
    ck_assert_int_eq(bed_write(&bed, c, f, 2 * MIB, data, 5000), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    memset(data + 100, 0, 3 * MIB);
    bed_pattern(data + 2 * MIB, 5000, 0, 1);
    expect_stored("extended", data, 3 * MIB, true);
    core_release(c, f);
}
END_TEST

START_TEST(scattered_small_writes_are_all_there)
{
    struct core_file *f = bed_create(&bed, c, "scattered");
    unsigned seed = 11, k;

    memset(data, 0, 6 * MIB);
    ck_assert_int_eq(bed_truncate(&bed, c, f, 6 * MIB), 0);
    for (k = 0; k < 600; k++) {
        uint32_t at = (uint32_t)rand_r(&seed) % (6 * MIB - 9000),
                 len = 1 + (uint32_t)rand_r(&seed) % 9000;

        bed_pattern(data + at, len, at, k);
        ck_assert_int_eq(bed_write(&bed, c, f, at, data + at, len), 0);
        if (k % 37 == 0)
            expect_read(f, at / 2, data + at / 2, 9000);
        if (k % 101 == 0)
            ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    }
    expect_read(f, 0, data, 6 * MIB);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    expect_stored("scattered", data, 6 * MIB, true);
    core_release(c, f);
}
END_TEST

START_TEST(appending_in_small_pieces_gathers_into_large_transfers)
{
    struct core_file *f = bed_create(&bed, c, "log");
    unsigned k, writes = 0;
    uint32_t at;

    for (at = 0; at < 6 * MIB; at += 16 * KIB)
        ck_assert_int_eq(bed_write(&bed, c, f, at, data + at, 16 * KIB), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    expect_stored("log", data, 6 * MIB, true);
    for (k = 0; k < 3; k++)
        writes += bed.cluster.oss[k].writes;
    ck_assert_uint_le(writes, 20);
    core_release(c, f);
}
END_TEST

/* More than there are buffers. */
START_TEST(small_files_that_stay_open_give_their_memory_to_others)
{
    struct core_options o;
    struct core_file *f[120];
    char name[16];

    core_options_default(&o);
    o.memory_limit = 32 * MIB;
    file_bed_remount(&o);
    for (unsigned k = 0; k < ARRAY_LEN(f); k++) {
        snprintf(name, sizeof name, "open%u", k);
        f[k] = bed_create(&bed, c, name);
        ck_assert_int_eq(bed_write(&bed, c, f[k], 0, data + k, 3000), 0);
    }
    for (unsigned k = 0; k < ARRAY_LEN(f); k++) {
        expect_read(f[k], 0, data + k, 3000);
        ck_assert_int_eq(bed_write(&bed, c, f[k], 1000, data + k, 3000), 0);
    }
    for (unsigned k = 0; k < ARRAY_LEN(f); k++) {
        expect_read(f[k], 0, data + k, 1000);
        expect_read(f[k], 1000, data + k, 3000);
        ck_assert_int_eq(bed_fsync(&bed, c, f[k]), 0);
        core_release(c, f[k]);
    }
}
END_TEST

START_TEST(more_than_the_memory_limit_can_be_written_and_read)
{
    struct core_file *f = bed_create(&bed, c, "large");
    struct core_stats stats;
    unsigned k;

    for (k = 0; k < 16; k++)
        ck_assert_int_eq(bed_write(&bed, c, f, (uint64_t)k * ROOM, data, ROOM), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    for (k = 0; k < 16; k++)
        expect_read(f, (uint64_t)k * ROOM, data, ROOM);
    core_get_stats(c, &stats);
    ck_assert_uint_le(stats.memory_used, stats.memory_limit);
    core_release(c, f);
}
END_TEST

START_TEST(many_new_files_share_the_memory_of_a_few)
{
    struct core_options o;
    struct core_stats stats;
    struct core *roomy;
    char name[16];

    core_options_default(&o);
    o.memory_limit = 2 * GIB; /* it could keep them all */
    roomy = bed_mount(&bed, &o);
    for (unsigned k = 0; k < 240; k++) {
        struct core_file *f;

        snprintf(name, sizeof name, "new%u", k);
        f = bed_create(&bed, roomy, name);
        ck_assert_int_eq(bed_write(&bed, roomy, f, 0, data + k, 200000), 0);
        ck_assert_int_eq(bed_flush(&bed, roomy, f), 0);
        core_release(roomy, f);
    }
    core_get_stats(roomy, &stats);
    ck_assert_uint_le(stats.memory_used, 44 * MIB);
    for (unsigned k = 0; k < 240; k += 13) {
        snprintf(name, sizeof name, "new%u", k);
        expect_stored(name, data + k, 200000, false);
    }
    bed_unmount(&bed, roomy, false, 0);
}
END_TEST

START_TEST(appends_that_wait_for_memory_stay_whole)
{
    struct core_file *f = bed_create(&bed, c, "appends"), *a;
    struct bed_op *ops = calloc(120, sizeof *ops);
    struct iovec *iov = calloc(120, sizeof *iov);
    uint8_t *record = malloc(MIB);
    uint64_t size;
    unsigned k, at;

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 100000), 0);
    a = bed_open(&bed, c, "appends", O_RDWR | O_APPEND, NULL);
    for (k = 0; k < 120; k++) { /* more than memory holds, all at once */
        iov[k].iov_len = 700000 + k;
        iov[k].iov_base = malloc(iov[k].iov_len);
        memset(iov[k].iov_base, (int)k + 1, iov[k].iov_len);
        bed_op_init(&ops[k]);
        core_write(c, &ops[k].q, a, 0, &iov[k], 1, (uint32_t)iov[k].iov_len);
    }
    for (k = 0, size = 100000; k < 120; k++) {
        ck_assert_int_eq(bed_wait(&bed, &ops[k]), 0);
        size += iov[k].iov_len;
    }
    ck_assert_int_eq(bed_fsync(&bed, c, a), 0);
    ck_assert_uint_eq(fake_inode(&bed.cluster, "appends")->attr.size, size);
    for (k = 0; k < 120; k++) {
        uint32_t len = (uint32_t)iov[k].iov_len;

        ck_assert_int_eq(bed_read(&bed, c, a, ops[k].q.out.write.offset, record, len), (int)len);
        for (at = 0; at < len && record[at] == ((k + 1) & 0xff); at++) {
        }
        ck_assert_uint_eq(at, len);
        free(iov[k].iov_base);
    }
    free(ops);
    free(iov);
    free(record);
    core_release(c, a);
    core_release(c, f);
}
END_TEST

static struct fake_oss *oss_of(const char *name)
{
    return &bed.cluster.oss[fake_inode(&bed.cluster, name)->layout.start % 3];
}

START_TEST(fsync_waits_for_its_own_file_only)
{
    struct core_file *slow = bed_create(&bed, c, "slow"), *f;
    struct bed_op other;
    char name[16] = "";

    ck_assert_int_eq(bed_write(&bed, c, slow, 0, data, 600000), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, slow), 0);
    ck_assert_int_eq(bed_write(&bed, c, slow, 0, data + 1, 600000), 0);
    oss_of("slow")->hold = true;
    fsync_later(&other, slow);
    for (unsigned k = 0; k < 4; k++) { /* wherever files begin: some elsewhere */
        snprintf(name, sizeof name, "file%u", k);
        f = bed_create(&bed, c, name);
        ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 10), 0);
        ck_assert_int_eq(bed_flush(&bed, c, f), 0);
        if (oss_of(name) != oss_of("slow"))
            break;
        core_release(c, f);
    }
    ck_assert_ptr_ne(oss_of(name), oss_of("slow"));
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 600000), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    ck_assert(!other.done);
    bed_expect_durable(&bed, name, data, 600000);
    fake_oss_release(oss_of("slow"));
    ck_assert_int_eq(bed_wait(&bed, &other), 0);
    bed_expect_durable(&bed, "slow", data + 1, 600000);
    core_release(c, f);
    core_release(c, slow);
}
END_TEST

/* A log: a little is written behind the end and waited for, again and again. */
START_TEST(an_fsync_of_a_little_is_one_trip)
{
    struct core_file *f = bed_create(&bed, c, "log");
    struct core_stats before, after;
    unsigned reports, commits = 0;
    struct bed_op sync;

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 3 * MIB), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0); /* striped, and the targets have promised room */
    ck_assert_int_eq(bed_write(&bed, c, f, 3 * MIB, data + 3 * MIB, 4096), 0);
    for (unsigned k = 0; k < 3; k++)
        commits += bed.cluster.oss[k].commits;
    fake_targets_hold(&bed.cluster);
    reports = bed.cluster.executed[RPC_OP_SIZE];
    core_get_stats(c, &before);
    fsync_later(&sync, f);
    bed_spin(&bed, 10 * NS_PER_MS);
    ck_assert(!sync.done);
    ck_assert_uint_eq(bed.cluster.executed[RPC_OP_SIZE], reports + 1); /* beside the write */
    fake_targets_release(&bed.cluster);
    ck_assert_int_eq(bed_wait(&bed, &sync), 0);
    core_get_stats(c, &after);
    ck_assert_uint_eq(after.oss_calls - before.oss_calls, 1);
    ck_assert_uint_eq(after.mds_calls - before.mds_calls, 1);
    for (unsigned k = 0; k < 3; k++)
        commits -= bed.cluster.oss[k].commits;
    ck_assert_uint_eq(commits, 0);
    expect_stored("log", data, 3 * MIB + 4096, true);
    core_release(c, f);
}
END_TEST

/* What is told ahead cannot be taken back. */
START_TEST(a_size_is_not_told_ahead_of_a_write_that_no_target_has_promised_room_for)
{
    struct core_file *f = bed_create(&bed, c, "log");
    struct iovec iov = {data + 3 * MIB, 4096};
    struct bed_op write, sync;
    unsigned reports;

    for (unsigned k = 0; k < 3; k++)
        bed.cluster.oss[k].grant = 8192;
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 3 * MIB), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    reports = bed.cluster.executed[RPC_OP_SIZE];
    fake_targets_hold(&bed.cluster);
    bed_op_init(&write);
    bed_op_init(&sync);
    core_write(c, &write.q, f, 3 * MIB, &iov, 1, 4096);
    core_fsync(c, &sync.q, f, false);
    bed_spin(&bed, 10 * NS_PER_MS);
    ck_assert_uint_eq(bed.cluster.executed[RPC_OP_SIZE], reports);
    fake_targets_release(&bed.cluster);
    ck_assert_int_eq(bed_wait(&bed, &write), 0);
    ck_assert_int_eq(bed_wait(&bed, &sync), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    expect_stored("log", data, 3 * MIB + 4096, true);
    core_release(c, f);
}
END_TEST

SUITE_MAIN("client-files", setup, file_bed_teardown,
           creating_writing_and_closing_a_small_file_is_two_calls,
           opening_and_reading_a_small_file_is_one_call,
           a_file_outgrows_the_metadata_server_and_keeps_its_contents,
           a_striped_file_is_spread_and_durable_after_fsync, holes_are_zeros,
           reading_back_through_a_second_open_uses_read_ahead, random_reads_pass_the_cache_by,
           a_read_lands_in_the_readers_own_memory, truncating_cuts_and_what_grows_back_is_zeros,
           truncating_a_small_file_works_before_and_after_it_was_sent,
           a_small_file_extended_far_by_truncate_reads_as_zeros_and_can_be_written,
           scattered_small_writes_are_all_there,
           appending_in_small_pieces_gathers_into_large_transfers,
           small_files_that_stay_open_give_their_memory_to_others,
           more_than_the_memory_limit_can_be_written_and_read,
           many_new_files_share_the_memory_of_a_few, appends_that_wait_for_memory_stay_whole,
           fsync_waits_for_its_own_file_only, an_fsync_of_a_little_is_one_trip,
           a_size_is_not_told_ahead_of_a_write_that_no_target_has_promised_room_for)
