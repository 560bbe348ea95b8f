// SPDX-License-Identifier: Apache-2.0
/* A record of a target's index that is damaged: it costs its chunk, and nothing else. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "oss/chunk/index.h"
#include "tests/component/oss/target_bed.h"
#include "tests/support/suite.h"

static void setup(void)
{
    log_set_level(LOG_LEVEL_ERROR);
    target_setup();
}

/* Of a store that is closed. */
static void damage(const uint8_t *key, size_t key_len)
{
    const struct index_options options = {MIB, MIB};
    rocksdb_writebatch_t *wb = rocksdb_writebatch_create();
    struct index x;
    size_t len;
    char path[300], *value;

    snprintf(path, sizeof path, "%s/index", rig.dir);
    ck_assert_int_eq(index_open(&x, path, path, "test", &options), 0);
    ck_assert_int_eq(index_get(&x, key, key_len, &value, &len), 0);
    value[len / 2] ^= 1;
    rocksdb_writebatch_put(wb, (char *)key, key_len, value, len);
    ck_assert_int_eq(index_write(&x, wb), 0);
    index_value_free(value);
    rocksdb_writebatch_destroy(wb);
    index_close(&x);
}

/* Chunk 1 has a logged block and a damaged record. */
static void open_damaged(void)
{
    uint8_t key[CHUNK_KEY_MAX];

    rig_open(&rig);
    for (uint64_t c = 0; c < 3; c++)
        ck_assert_int_eq(rig_write(&rig, 5, c, 0, 0, data, CB, true), 0);
    ck_assert_int_eq(rig_write(&rig, 5, 1, 0, 8192, data, 4096, true), 0);
    ck_assert_uint_eq(target_stat().log_bytes, 4096);
    rig_close(&rig);
    damage(key, chunk_key_chunk(key, 5, 1));
    rig_open(&rig);
    ck_assert_int_eq(rig_read(&rig, 5, 1, 0, 8192, got, 4096), -AIFS_ECORRUPT);
    ck_assert_int_eq(rig_read(&rig, 5, 2, 0, 0, got, CB), 0);
    ck_assert_int_eq(memcmp(got, data, CB), 0);
}

START_TEST(a_damaged_record_costs_its_chunk_though_a_block_of_it_is_logged)
{
    open_damaged();
    ck_assert_int_eq(rig_destroy_ino(&rig, 5), 0);
    rig_reopen(&rig); /* nothing of it is left that has no chunk */
    ck_assert_uint_eq(target_stat().chunks, 0);
    ck_assert_uint_eq(target_stat().used_bytes, 0);
    ck_assert_uint_eq(target_stat().log_bytes, 0);
}
END_TEST

START_TEST(a_damaged_record_does_not_keep_a_truncate_from_happening)
{
    open_damaged();
    ck_assert_int_eq(rig_truncate(&rig, 5, 1, CB, CB + 10000), 0);
    ck_assert_int_eq(rig_read(&rig, 5, 1, 1, 0, got, 4096), -AIFS_ECORRUPT);
    ck_assert_int_eq(rig_read(&rig, 5, 2, 1, 0, got, 4096), 0);
    ck_assert_uint_eq(got[0] | got[4095], 0);
    ck_assert_int_eq(rig_truncate(&rig, 5, 2, CB, CB), 0);
    ck_assert_int_eq(rig_write(&rig, 5, 1, 2, 100, data, 100, true), 0);
    rig_reopen(&rig);
    ck_assert_int_eq(rig_read(&rig, 5, 1, 2, 0, got, 200), 0);
    ck_assert_uint_eq(got[0] | got[99], 0);
    ck_assert_int_eq(memcmp(got + 100, data, 100), 0);
}
END_TEST

START_TEST(a_damaged_record_does_not_keep_a_seal_from_ending)
{
    uint64_t high;

    open_damaged();
    ck_assert_int_eq(rig_seal(&rig, 5, 0, CB, &high), 0);
    ck_assert_uint_eq(high, 3 * CB);
    ck_assert_int_eq(rig_truncate(&rig, 5, 1, CB, 2 * CB), 0);
    ck_assert_int_eq(rig_seal(&rig, 5, 1, CB, &high), 0);
    ck_assert_uint_eq(high, 2 * CB);
}
END_TEST

START_TEST(a_damaged_inode_record_costs_its_inode_which_can_be_destroyed)
{
    uint8_t key[CHUNK_KEY_MAX];
    uint64_t high;

    rig_open(&rig);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, CB, true), 0);
    ck_assert_int_eq(rig_write(&rig, 6, 0, 0, 0, data, CB, true), 0);
    ck_assert_int_eq(rig_truncate(&rig, 5, 1, CB, CB / 2), 0);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 1, 8192, data, 4096, true), 0); /* logged */
    rig_close(&rig);
    damage(key, chunk_key_inode(key, 5));
    rig_open(&rig);
    target_expect(6, data, CB);
    ck_assert_int_eq(rig_read(&rig, 5, 0, 1, 0, got, 4096), -AIFS_ECORRUPT);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 1, 0, data, 100, true), -AIFS_ECORRUPT);
    ck_assert_int_eq(rig_truncate(&rig, 5, 2, CB, 0), -AIFS_ECORRUPT);
    ck_assert_int_eq(rig_seal(&rig, 5, 2, CB, &high), -AIFS_ECORRUPT);
    ck_assert_int_eq(rig_destroy_ino(&rig, 5), 0);
    ck_assert_int_eq(rig_read(&rig, 5, 0, 1, 0, got, 4096), -ENOENT);
    rig_reopen(&rig);
    ck_assert_int_eq(rig_read(&rig, 5, 0, 1, 0, got, 4096), -ENOENT);
    ck_assert_uint_eq(target_stat().chunks, 1);
    ck_assert_uint_eq(target_stat().used_bytes, CB);
    ck_assert_uint_eq(target_stat().log_bytes, 0);
}
END_TEST

/* Block 2 is logged, and its home is older. */
static void open_damaged_log(void)
{
    uint8_t key[CHUNK_KEY_MAX];

    rig_open(&rig);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, CB, true), 0);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 4096, data + 1, 8192, true), 0);
    rig_close(&rig);
    damage(key, chunk_key_log(key, 5, 0, 2));
    rig_open(&rig);
}

static void expect_damaged_block(void)
{
    ck_assert_int_eq(rig_read(&rig, 5, 0, 0, 8192, got, 4096), -AIFS_ECORRUPT);
    ck_assert_int_eq(rig_read(&rig, 5, 0, 0, 4096, got, 4096), 0);
    ck_assert_int_eq(memcmp(got, data + 1, 4096), 0);
    ck_assert_int_eq(rig_read(&rig, 5, 0, 0, 12288, got, CB - 12288), 0);
    ck_assert_int_eq(memcmp(got, data + 12288, CB - 12288), 0);
}

START_TEST(a_damaged_logged_block_is_an_error_until_it_is_overwritten)
{
    open_damaged_log();
    for (unsigned i = 0; i < 3; i++) { /* and never what its home has */
        expect_damaged_block();
        rig_reopen(&rig);
    }
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 8192, data, 100, true), -AIFS_ECORRUPT);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 8192, data + 2, 4096, true), 0);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(rig_read(&rig, 5, 0, 0, 0, got, 16384), 0);
        ck_assert_int_eq(memcmp(got + 4096, data + 1, 4096), 0);
        ck_assert_int_eq(memcmp(got + 8192, data + 2, 4096), 0);
        rig_reopen(&rig);
    }
}
END_TEST

START_TEST(a_damaged_logged_block_goes_with_its_chunk)
{
    open_damaged_log();
    ck_assert_int_eq(rig_destroy_ino(&rig, 5), 0);
    rig_reopen(&rig);
    ck_assert_uint_eq(target_stat().chunks, 0);
    ck_assert_uint_eq(target_stat().used_bytes, 0);
    ck_assert_uint_eq(target_stat().log_bytes, 0);
}
END_TEST

static void move(const char *from, const char *to)
{
    char a[300], b[300];

    snprintf(a, sizeof a, "%s/%s", rig.dir, from);
    snprintf(b, sizeof b, "%s/%s", rig.dir, to);
    ck_assert_int_eq(rename(a, b), 0);
}

/* An index that names nothing: all slots would be free, and all files zeros. No segment files: new
 * ones would be made, perhaps where a disk is not mounted. */
START_TEST(a_target_that_has_lost_its_index_or_its_segments_is_refused_and_left_alone)
{
    static const struct {
        const char *lost, *kept;
        bool empty; /* a directory is there, as where a disk is not mounted */
    } cases[] = {{"index", "kept", false},
                 {"index", "kept", true},
                 {"index/CURRENT", "index/kept", false},
                 {"seg", "kept", false},
                 {"seg", "kept", true}};

    rig_open(&rig);
    for (uint64_t c = 0; c < 3; c++)
        ck_assert_int_eq(rig_write(&rig, 5, c, 0, 0, data, CB, true), 0);
    rig_close(&rig);
    for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
        char path[300];

        move(cases[i].lost, cases[i].kept);
        snprintf(path, sizeof path, "%s/%s", rig.dir, cases[i].lost);
        ck_assert(!cases[i].empty || mkdir(path, 0755) == 0);
        ck_assert_int_eq(rig_try_open(&rig), -ENOENT);
        move(cases[i].kept, cases[i].lost); /* nothing was made there */
        rig_open(&rig);
        for (uint64_t c = 0; c < 3; c++) {
            ck_assert_int_eq(rig_read(&rig, 5, c, 0, 0, got, CB), 0);
            ck_assert_int_eq(memcmp(got, data, CB), 0);
        }
        rig_close(&rig);
    }
    rig_open(&rig);
}
END_TEST

SUITE_MAIN("chunk-damage", setup, target_teardown,
           a_damaged_record_costs_its_chunk_though_a_block_of_it_is_logged,
           a_damaged_record_does_not_keep_a_truncate_from_happening,
           a_damaged_record_does_not_keep_a_seal_from_ending,
           a_damaged_inode_record_costs_its_inode_which_can_be_destroyed,
           a_damaged_logged_block_is_an_error_until_it_is_overwritten,
           a_damaged_logged_block_goes_with_its_chunk,
           a_target_that_has_lost_its_index_or_its_segments_is_refused_and_left_alone)
