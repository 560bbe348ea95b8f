// SPDX-License-Identifier: Apache-2.0
/* The chunk store, one behaviour at a time, on a real directory. */
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/fault/fault.h"
#include "tests/component/oss/target_bed.h"
#include "tests/support/suite.h"
#include "tests/support/tmp.h"

static void setup(void)
{
    log_set_level(LOG_LEVEL_ERROR);
    target_setup();
}

/* Changes one byte of the file that holds `want`, in any segment. */
static void damage(const uint8_t *want, size_t at)
{
    static uint8_t buf[8 * MIB];
    char dir[300], path[700];
    struct dirent *e;
    DIR *d;

    snprintf(dir, sizeof dir, "%s/seg", rig.dir);
    d = opendir(dir);
    while ((e = readdir(d))) {
        uint8_t *hit;
        ssize_t n;
        int fd;

        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        fd = open(path, O_RDWR);
        n = fd < 0 ? 0 : pread(fd, buf, sizeof buf, 0);
        hit = n > 0 ? memmem(buf, (size_t)n, want, 512) : NULL;
        if (hit) {
            uint8_t b = hit[at] ^ 1;

            ck_assert_int_eq(pwrite(fd, &b, 1, hit - buf + (off_t)at), 1);
            close(fd);
            closedir(d);
            return;
        }
        if (fd >= 0)
            close(fd);
    }
    ck_abort_msg("the data is in no segment");
}

START_TEST(a_damaged_block_is_an_error_and_its_neighbours_are_not)
{
    rig_open(&rig);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, 64 * KIB, true), 0);
    damage(data + 8192, 100);
    ck_assert_int_eq(rig_read(&rig, 5, 0, 0, 0, got, 64 * KIB), -AIFS_ECORRUPT);
    ck_assert_int_eq(rig_read(&rig, 5, 0, 0, 0, got, 8192), 0);
    ck_assert_int_eq(memcmp(got, data, 8192), 0);
    ck_assert_int_eq(rig_read(&rig, 5, 0, 0, 12288, got, 4096), 0);
    ck_assert_int_eq(rig_verify(&rig, 5, 0), -AIFS_ECORRUPT);
    ck_assert_uint_eq(target_stat().errors, 2);
}
END_TEST

START_TEST(a_damaged_block_is_never_merged_into_a_new_one)
{
    rig_open(&rig);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, 64 * KIB, true), 0);
    damage(data + 8192, 100);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 8292, data, 10, false), -AIFS_ECORRUPT); /* logged */
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 24576, data, 40 * KIB, false),
                     -AIFS_ECORRUPT);                                      /* moved */
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 8192, data, 4096, true), 0); /* replaced as a whole */
    ck_assert_int_eq(rig_read(&rig, 5, 0, 0, 0, got, 64 * KIB), 0);
}
END_TEST

START_TEST(a_damaged_block_does_not_keep_a_truncate_from_happening)
{
    rig_open(&rig);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, 64 * KIB, true), 0);
    damage(data + 8192, 100);
    ck_assert_int_eq(rig_truncate(&rig, 5, 1, CB, 8192 + 50), 0);
    ck_assert_int_eq(rig_read(&rig, 5, 0, 1, 0, got, 8192), 0);
    ck_assert_int_eq(rig_read(&rig, 5, 0, 1, 8192, got, 4096), -AIFS_ECORRUPT);
    ck_assert_int_eq(rig_read(&rig, 5, 0, 1, 12288, got, 4096), 0);
    ck_assert_uint_eq(got[0], 0);
}
END_TEST

START_TEST(data_that_arrived_damaged_is_refused)
{
    struct rig_op o = {.op = {.kind = CHUNK_WRITE, .ino = 5, .len = 4096, .data = data}};

    rig_open(&rig);
    o.op.crcs = o.crcs;
    o.crcs[0] = crc32c(data, 4096) ^ 1;
    ck_assert_int_eq(rig_run(&rig, &o), -AIFS_ECHECKSUM);
    ck_assert_int_eq(rig_read(&rig, 5, 0, 0, 0, got, 4096), 0);
    ck_assert_uint_eq(got[0], 0);
}
END_TEST

START_TEST(a_small_overwrite_costs_a_log_record_and_not_a_chunk)
{
    struct chunk_stat before, after;

    rig_open(&rig);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, CB, true), 0);
    before = target_stat();
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 5000, data + 1, 4096, true), 0);
    after = target_stat();
    ck_assert_uint_eq(after.used_bytes, before.used_bytes);
    ck_assert_uint_eq(after.log_bytes, 8192);
    ck_assert_uint_eq(after.syncs, before.syncs); /* the index's sync alone */
    rig_reopen(&rig);
    ck_assert_int_eq(rig_read(&rig, 5, 0, 0, 0, got, CB), 0);
    memcpy(data + 5000, memcpy(got + CB - 4096, data + 1, 4096), 4096);
    ck_assert_int_eq(memcmp(got, data, CB - 4096), 0);
}
END_TEST

START_TEST(a_large_overwrite_takes_a_new_slot_and_gives_the_old_one_back)
{
    uint64_t used;

    rig_open(&rig);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, CB, true), 0);
    used = target_stat().used_bytes;
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 100000, data, 300000, false), 0);
    ck_assert_uint_eq(target_stat().used_bytes, 2 * used);
    ck_assert_int_eq(rig_commit(&rig, 5), 0);
    ck_assert_uint_eq(target_stat().used_bytes, used);
    ck_assert_int_eq(rig_read(&rig, 5, 0, 0, 0, got, CB), 0);
    ck_assert_int_eq(memcmp(got, data, 100000), 0);
    ck_assert_int_eq(memcmp(got + 100000, data, 300000), 0);
    ck_assert_int_eq(memcmp(got + 400000, data + 400000, CB - 400000), 0);
}
END_TEST

START_TEST(the_log_is_folded_and_stays_within_its_bound)
{
    rig.options.log_bytes = 256 * KIB;
    rig_open(&rig);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, CB, true), 0);
    for (uint32_t i = 0; i < 1000; i++) {
        ck_assert_int_eq(rig_write(&rig, 5, 0, 0, i * 7919 % 255 * 4096 + 7, data + i, 100, i % 2),
                         0);
        memmove(data + i * 7919 % 255 * 4096 + 7, data + i, 100);
        ck_assert_uint_le(target_stat().log_bytes, 256 * KIB);
    }
    ck_assert_int_eq(rig_read(&rig, 5, 0, 0, 0, got, CB), 0);
    ck_assert_int_eq(memcmp(got, data, CB), 0);
}
END_TEST

START_TEST(the_log_is_a_small_part_of_its_target)
{
    rig.options.capacity_bytes = 64 * MIB;
    rig_open(&rig);
    ck_assert_uint_eq(target_stat().log_max_bytes, 8 * MIB);
    rig.options.capacity_bytes = 2 * GIB;
    rig_reopen(&rig);
    ck_assert_uint_eq(target_stat().log_max_bytes, 16 * MIB);
    rig.options.capacity_bytes = 64 * GIB;
    rig_reopen(&rig);
    ck_assert_uint_eq(target_stat().log_max_bytes, 32 * MIB);
}
END_TEST

START_TEST(a_full_target_says_so_early_and_overwriting_and_deleting_still_work)
{
    uint64_t n = 0;
    int rc;

    rig.options.capacity_bytes = 16 * MIB;
    rig_open(&rig);
    while (!(rc = rig_write(&rig, 5, n, 0, 0, data, CB, false)))
        n++;
    ck_assert_int_eq(rc, -ENOSPC);
    ck_assert_uint_ge(n, 13);
    ck_assert_int_eq(rig_commit(&rig, 0), 0);
    for (uint64_t c = 0; c < n; c++) {
        ck_assert_int_eq(rig_read(&rig, 5, c, 0, 0, got, CB), 0);
        ck_assert_int_eq(memcmp(got, data, CB), 0);
    }
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 4096, data, 4096, true), 0);
    ck_assert_int_eq(rig_truncate(&rig, 5, 1, CB, 2 * CB), 0);
    for (uint64_t c = 2; c < n; c++)
        ck_assert_int_eq(rig_write(&rig, 5, c, 1, 0, data, CB, false), 0);
    ck_assert_int_eq(rig_destroy_ino(&rig, 5), 0);
    ck_assert_uint_eq(target_stat().used_bytes, 0);
}
END_TEST

START_TEST(a_full_file_system_is_met_before_the_index_runs_out_of_room)
{
    uint64_t n = 0, seed = 1;
    int rc;

    if (!tmp_mount(rig.dir, "size=96m")) {
        printf("no right to mount: not tested\n");
        return;
    }
    rig.options.capacity_bytes = 0;
    rig_open(&rig);
    while (!(rc = rig_write(&rig, 5, n, 0, 0, data, 300000, n % 5 == 0)))
        n++;
    ck_assert_int_eq(rc, -ENOSPC);
    ck_assert_uint_ge(n, 25);
    ck_assert_int_eq(rig_commit(&rig, 0), 0);
    for (uint32_t i = 0; i < 30000; i++) { /* the index still takes what it must */
        uint64_t r = rig_rand(&seed);

        ck_assert_int_eq(
            rig_write(&rig, 5, r % n, 0, (uint32_t)(r % 73) * 4096, data + i, 100, true), 0);
    }
    rig_reopen(&rig);
    ck_assert_int_eq(rig_destroy_ino(&rig, 5), 0);
    for (uint64_t c = 0; c < n / 2; c++) /* the index has grown meanwhile */
        ck_assert_int_eq(rig_write(&rig, 6, c, 0, 0, data, 300000, false), 0);
    rig_close(&rig);
    umount(rig.dir);
}
END_TEST

START_TEST(a_truncate_is_applied_once_and_older_requests_are_refused)
{
    rig_open(&rig);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, 10000, false), 0);
    ck_assert_int_eq(rig_truncate(&rig, 5, 1, CB, 100), 0);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, 10, false), -AIFS_ESTALE_TRUNC);
    ck_assert_int_eq(rig_read(&rig, 5, 0, 0, 0, got, 4096), -AIFS_ESTALE_TRUNC);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 1, 5000, data, 100, false), 0);
    ck_assert_int_eq(rig_truncate(&rig, 5, 1, CB, 100), 0); /* sent again: nothing happens */
    ck_assert_int_eq(rig_read(&rig, 5, 0, 1, 0, got, 8192), 0);
    ck_assert_int_eq(memcmp(got, data, 100), 0);
    ck_assert_uint_eq(got[100] | got[4999], 0);
    ck_assert_int_eq(memcmp(got + 5000, data, 100), 0);
    rig_reopen(&rig);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, 10, false), -AIFS_ESTALE_TRUNC);
    ck_assert_int_eq(rig_truncate(&rig, 5, 1, CB, 0), 0);
    ck_assert_int_eq(rig_read(&rig, 5, 0, 1, 5000, got, 100), 0);
    ck_assert_int_eq(memcmp(got, data, 100), 0);
}
END_TEST

START_TEST(a_destroyed_inode_stays_dead_over_a_restart)
{
    rig_open(&rig);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, CB, true), 0);
    ck_assert_int_eq(rig_write(&rig, 5, 3, 0, 0, data, CB, false), 0);
    ck_assert_int_eq(rig_write(&rig, 6, 0, 0, 0, data, 5000, false), 0);
    ck_assert_int_eq(rig_destroy_ino(&rig, 5), 0);
    ck_assert_int_eq(rig_destroy_ino(&rig, 5), 0);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, 10, false), -ENOENT);
    rig_reopen(&rig);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, 10, false), -ENOENT);
    ck_assert_int_eq(rig_read(&rig, 5, 0, 0, 0, got, 4096), -ENOENT);
    ck_assert_int_eq(rig_read(&rig, 6, 0, 0, 0, got, 5000), 0);
    ck_assert_int_eq(memcmp(got, data, 5000), 0);
    ck_assert_uint_eq(target_stat().chunks, 1);
    ck_assert_uint_eq(target_stat().used_bytes, 64 * KIB);
}
END_TEST

START_TEST(a_tombstone_is_forgotten_after_its_time)
{
    rig_open(&rig);
    ck_assert_int_eq(rig_destroy_ino(&rig, 5), 0);
    rig_close(&rig);
    rig.options.tombstone_ns = 1;
    rig_open(&rig);
    ck_assert_int_eq(rig_read(&rig, 5, 0, 0, 0, got, 4096), 0);
}
END_TEST

START_TEST(a_seal_commits_and_reports_how_far_the_data_reaches)
{
    uint64_t high;

    rig_open(&rig);
    ck_assert_int_eq(rig_seal(&rig, 5, 0, CB, &high), 0);
    ck_assert_uint_eq(high, 0);
    ck_assert_int_eq(rig_write(&rig, 5, 7, 0, 1000, data, 234, false), 0);
    ck_assert_int_eq(rig_seal(&rig, 5, 0, CB, &high), 0);
    ck_assert_uint_eq(high, 7ull * CB + 1234);
    ck_assert_uint_eq(target_stat().dirty_bytes, 0);
    ck_assert_int_eq(rig_seal(&rig, 5, 1, CB, &high),
                     0); /* that truncate has not come: old data does not count */
    ck_assert_uint_eq(high, 0);
    ck_assert_int_eq(rig_truncate(&rig, 5, 2, CB, 7ull * CB + 5), 0);
    ck_assert_int_eq(rig_seal(&rig, 5, 2, CB, &high), 0);
    ck_assert_uint_eq(high, 7ull * CB + 5);
    ck_assert_int_eq(rig_seal(&rig, 5, 1, CB, &high), -AIFS_ESTALE_TRUNC);
}
END_TEST

START_TEST(the_verifier_changes_with_every_start)
{
    uint64_t first;

    rig_open(&rig);
    first = chunk_store_verifier(rig.store);
    rig_reopen(&rig);
    ck_assert_uint_ne(chunk_store_verifier(rig.store), first);
}
END_TEST

START_TEST(a_failed_sync_fails_the_store_and_reads_go_on)
{
    rig_open(&rig);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, 10000, true), 0);
    ck_assert_int_eq(fault_arm("chunk.commit.sync=error"), 0);
    ck_assert_int_ne(rig_write(&rig, 5, 1, 0, 0, data, 10000, true), 0);
    fault_disarm_all();
    ck_assert_int_eq(rig_write(&rig, 5, 2, 0, 0, data, 10000, false), -EIO);
    ck_assert_int_ne(rig_commit(&rig, 5), 0);
    ck_assert_int_eq(rig_read(&rig, 5, 0, 0, 0, got, 10000), 0);
    ck_assert_int_eq(memcmp(got, data, 10000), 0);
    ck_assert(target_stat().failed);
    rig_reopen(&rig);
    ck_assert_int_eq(rig_read(&rig, 5, 0, 0, 0, got, 10000), 0);
    ck_assert_int_eq(rig_write(&rig, 5, 2, 0, 0, data, 10000, true), 0);
}
END_TEST

START_TEST(a_failed_write_is_an_error_and_the_old_data_stays)
{
    rig_open(&rig);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, CB, true), 0);
    ck_assert_int_eq(fault_arm("chunk.write=error@1"), 0);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data + 1, 500000, true), -EIO);
    fault_disarm_all();
    ck_assert_int_eq(rig_read(&rig, 5, 0, 0, 0, got, CB), 0);
    ck_assert_int_eq(memcmp(got, data, CB), 0);
    ck_assert_uint_eq(target_stat().used_bytes, CB);
}
END_TEST

static void edit_super(const char *from, const char *to)
{
    char path[300], text[1024] = "", *at;
    FILE *f;

    snprintf(path, sizeof path, "%s/target", rig.dir);
    f = fopen(path, "r+");
    ck_assert_uint_gt(fread(text, 1, sizeof text - 1, f), 0);
    at = strstr(text, from);
    ck_assert_ptr_nonnull(at);
    memcpy(at, to, strlen(to));
    rewind(f);
    fputs(text, f);
    fclose(f);
}

START_TEST(a_format_from_the_future_is_refused)
{
    rig_open(&rig);
    rig_close(&rig);
    edit_super("aifs-target 1", "aifs-target 2");
    ck_assert_int_eq(rig_try_open(&rig), -AIFS_EFORMAT);
    edit_super("aifs-target 2", "aifs-target 1");
    rig_open(&rig);
}
END_TEST

START_TEST(a_damaged_superblock_is_refused)
{
    rig_open(&rig);
    rig_close(&rig);
    edit_super("pool default", "pool defauXt");
    ck_assert_int_eq(rig_try_open(&rig), -AIFS_ECORRUPT);
}
END_TEST

START_TEST(a_target_of_another_cluster_or_open_elsewhere_is_refused)
{
    struct rig second = rig;

    rig_open(&rig);
    second.options = rig.options;
    ck_assert_int_eq(chunk_store_open(&second.options, &second.store), -EBUSY);
    rig_close(&rig);
    ck_assert_int_eq(uuid_random(&rig.options.cluster), 0);
    ck_assert_int_eq(rig_try_open(&rig), -AIFS_ECLUSTER);
}
END_TEST

START_TEST(a_directory_with_something_in_it_is_not_formatted)
{
    struct uuid none = {{0}};
    char path[300], err[200];

    snprintf(path, sizeof path, "%s/precious", rig.dir);
    ck_assert_int_eq(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
    ck_assert_int_eq(super_format(rig.dir, &none, &none, "default", err, sizeof err), -ENOTEMPTY);
    unlink(path);
    ck_assert_int_eq(super_format(rig.dir, &none, &none, "default", err, sizeof err), 0);
    ck_assert_int_eq(super_format(rig.dir, &none, &none, "default", err, sizeof err), -EEXIST);
}
END_TEST

START_TEST(chunks_are_listed_in_order_and_in_pages)
{
    struct chunk_list_item items[4];

    rig_open(&rig);
    for (uint64_t ino = 2; ino < 5; ino++)
        for (uint64_t c = 0; c < 2; c++)
            ck_assert_int_eq(rig_write(&rig, ino, c, 0, 0, data, 100 + (uint32_t)c, true), 0);
    ck_assert_int_eq(chunk_store_list(rig.store, true, 0, 0, 0, items, 4), 4);
    ck_assert(items[0].ino == 2 && items[3].ino == 3 && items[3].chunk == 1 && items[3].len == 101);
    ck_assert_int_eq(chunk_store_list(rig.store, false, 3, 1, 0, items, 4), 2);
    ck_assert_uint_eq(items[0].ino, 4);
    ck_assert_int_eq(chunk_store_list(rig.store, true, 0, 0, 3, items, 4), 2);
    ck_assert_uint_eq(items[1].ino, 3);
    ck_assert_int_eq(chunk_store_list(rig.store, false, 3, 0, 3, items, 4), 1);
    ck_assert_int_eq(chunk_store_list(rig.store, false, 4, 1, 0, items, 4), 0);
}
END_TEST

START_TEST(many_stable_writes_share_a_commit)
{
    static struct rig_op ops[64];
    uint64_t before;

    rig_open(&rig);
    before = target_stat().commits;
    for (unsigned i = 0; i < 64; i++) {
        ops[i] = (struct rig_op){
            .op = {.kind = CHUNK_WRITE, .ino = 5 + i, .len = 4096, .data = data, .stable = true}};
        rig_submit(&rig, &ops[i]);
    }
    for (unsigned i = 0; i < 64; i++) {
        rig_wait(&rig, &ops[i].done);
        ck_assert_int_eq(ops[i].status, 0);
    }
    ck_assert_uint_le(target_stat().commits - before, 2);
}
END_TEST

START_TEST(a_long_queue_behind_a_truncate_is_served_without_deep_recursion)
{
    static struct rig_op ops[20000];
    struct rig_op cut = {
        .op = {
            .kind = CHUNK_TRUNCATE, .ino = 5, .truncate_gen = 1, .chunk_bytes = CB, .start = 99}};

    rig_open(&rig);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, 10000, false), 0);
    rig_submit(&rig, &cut);
    for (unsigned i = 0; i < ARRAY_LEN(ops); i++) {
        ops[i].op = (struct chunk_op){.kind = i % 2 ? CHUNK_WRITE : CHUNK_READ,
                                      .ino = 5,
                                      .truncate_gen = 1,
                                      .offset = 4096,
                                      .len = 4096,
                                      .data = i % 2 ? data : got};
        rig_submit(&rig, &ops[i]);
    }
    ck_assert(!ops[0].done);
    for (unsigned i = 0; i < ARRAY_LEN(ops); i++) {
        rig_wait(&rig, &ops[i].done);
        ck_assert_int_eq(ops[i].status, 0);
    }
    ck_assert(cut.done && !cut.status);
}
END_TEST

START_TEST(unstable_data_is_committed_in_the_background)
{
    rig.options.commit_interval_ns = 5 * NS_PER_MS;
    rig_open(&rig);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, 10000, false), 0);
    ck_assert_uint_eq(target_stat().dirty_bytes, 10000);
    while (target_stat().dirty_bytes)
        reactor_run_once(rig.reactor, NS_PER_S);
    ck_assert_uint_eq(target_stat().chunks, 1);
}
END_TEST

START_TEST(requests_out_of_bounds_are_refused)
{
    struct rig_op o = {.op = {.kind = CHUNK_READ, .ino = 5, .offset = 1, .len = 4096, .data = got}};

    rig_open(&rig);
    ck_assert_int_eq(rig_run(&rig, &o), -EINVAL);
    o.op = (struct chunk_op){
        .kind = CHUNK_WRITE, .ino = 5, .offset = CHUNK_MAX_BYTES - 1, .len = 2, .data = data};
    ck_assert_int_eq(rig_run(&rig, &o), -EINVAL);
    o.op = (struct chunk_op){.kind = CHUNK_WRITE, .ino = 0, .len = 2, .data = data};
    ck_assert_int_eq(rig_run(&rig, &o), -EINVAL);
    ck_assert_int_eq(rig_truncate(&rig, 5, 1, 12345, 0), -EINVAL);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, CHUNK_MAX_BYTES - 10, data, 10, true),
                     -ENOSPC); /* a slot of 64 MiB */
}
END_TEST

/* ---- what is looked for in the index ---- */

static void write_chunks(uint64_t ino, uint64_t from, uint64_t to)
{
    for (uint64_t k = from; k < to; k++)
        ck_assert_int_eq(rig_write(&rig, ino, k, 0, 0, data + k * 4096, 64 * KIB, true), 0);
}

static void expect_chunks(uint64_t ino, uint64_t from, uint64_t to)
{
    for (uint64_t k = from; k < to; k++) {
        ck_assert_int_eq(rig_read(&rig, ino, k, 0, 0, got, 64 * KIB), 0);
        ck_assert_mem_eq(got, data + k * 4096, 64 * KIB);
    }
}

START_TEST(chunks_of_a_file_that_is_written_are_not_looked_for_one_by_one)
{
    uint64_t before;

    rig_open(&rig);
    write_chunks(6, 0, 4);
    before = target_stat().index_reads;
    write_chunks(5, 0, 32);
    ck_assert_uint_eq(target_stat().index_reads - before, 2);
    expect_chunks(5, 0, 32);
    ck_assert_uint_eq(target_stat().index_reads - before, 2);
    rig_reopen(&rig);
    expect_chunks(5, 0, 32);
    expect_chunks(6, 0, 4);
}
END_TEST

/* The inode stays, for the sake of a chunk that is not committed. */
START_TEST(a_chunk_that_left_memory_is_looked_for_again)
{
    rig.options.cache_bytes = 4 * KIB;
    rig_open(&rig);
    write_chunks(5, 0, 3);
    ck_assert_int_eq(rig_write(&rig, 5, 9, 0, 0, data, 4096, false), 0);
    write_chunks(6, 0, 24);
    ck_assert_int_eq(rig_write(&rig, 5, 1, 0, 4096, data, 10, false), 0);
    ck_assert_int_eq(rig_read(&rig, 5, 1, 0, 4106, got, 60000), 0);
    ck_assert_mem_eq(got, data + 4096 + 4106, 60000);
    expect_chunks(5, 0, 1);
    expect_chunks(5, 2, 3);
}
END_TEST

START_TEST(chunks_from_before_a_restart_are_looked_for)
{
    for (uint64_t k = 0; k < 4; k++) { /* behind one or two that are not there */
        rig_open(&rig);
        write_chunks(5 + k, k, k + 1 + k % 2);
        rig_reopen(&rig);
        ck_assert_int_eq(rig_write(&rig, 5 + k, 20, 0, 0, data, 4096, false), 0);
        if (k % 2)
            ck_assert_int_eq(rig_write(&rig, 5 + k, 21, 0, 0, data, 4096, false), 0);
        ck_assert_int_eq(rig_write(&rig, 5 + k, k, 0, 60 * KIB, data, 10, false), 0);
        ck_assert_int_eq(rig_read(&rig, 5 + k, k, 0, 0, got, 60 * KIB), 0);
        ck_assert_mem_eq(got, data + k * 4096, 60 * KIB);
        expect_chunks(5 + k, k + 1, k + 1 + k % 2);
        rig_close(&rig);
    }
    rig_open(&rig);
}
END_TEST

SUITE_MAIN(
    "chunk store", setup, target_teardown, a_damaged_block_is_an_error_and_its_neighbours_are_not,
    a_damaged_block_is_never_merged_into_a_new_one,
    a_damaged_block_does_not_keep_a_truncate_from_happening, data_that_arrived_damaged_is_refused,
    a_small_overwrite_costs_a_log_record_and_not_a_chunk,
    a_large_overwrite_takes_a_new_slot_and_gives_the_old_one_back,
    the_log_is_folded_and_stays_within_its_bound, the_log_is_a_small_part_of_its_target,
    a_full_target_says_so_early_and_overwriting_and_deleting_still_work,
    a_full_file_system_is_met_before_the_index_runs_out_of_room,
    a_truncate_is_applied_once_and_older_requests_are_refused,
    a_destroyed_inode_stays_dead_over_a_restart, a_tombstone_is_forgotten_after_its_time,
    a_seal_commits_and_reports_how_far_the_data_reaches, the_verifier_changes_with_every_start,
    a_failed_sync_fails_the_store_and_reads_go_on,
    a_failed_write_is_an_error_and_the_old_data_stays, a_format_from_the_future_is_refused,
    a_damaged_superblock_is_refused, a_target_of_another_cluster_or_open_elsewhere_is_refused,
    a_directory_with_something_in_it_is_not_formatted, chunks_are_listed_in_order_and_in_pages,
    many_stable_writes_share_a_commit,
    a_long_queue_behind_a_truncate_is_served_without_deep_recursion,
    unstable_data_is_committed_in_the_background, requests_out_of_bounds_are_refused,
    chunks_of_a_file_that_is_written_are_not_looked_for_one_by_one,
    a_chunk_that_left_memory_is_looked_for_again, chunks_from_before_a_restart_are_looked_for)
