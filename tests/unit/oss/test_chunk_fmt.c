// SPDX-License-Identifier: Apache-2.0
/* Records of the index: what is encoded comes back, and nothing damaged or foreign does. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/err.h"
#include "oss/chunk/chunk_fmt.h"
#include "tests/support/suite.h"

static uint8_t key[CHUNK_KEY_MAX];

static size_t make_record(uint32_t len, bool holes, uint8_t *out)
{
    static uint64_t present[CHUNK_MAX_BLOCKS / 64];
    static uint32_t crcs[CHUNK_MAX_BLOCKS];
    struct chunk_record r = {.slot = {.number = 77, .class = 20},
                             .len = len,
                             .write_version = 5,
                             .truncate_gen = 6,
                             .op_ids = {7, 8}};

    memset(present, 0, sizeof present);
    for (uint32_t b = 0; b < chunk_blocks(len); b++) {
        crcs[b] = b * 31;
        if (!holes || b % 3)
            present[b / 64] |= 1ull << (b % 64);
    }
    return chunk_record_encode(key, chunk_key_chunk(key, 1, 2), &r, (uint8_t *)present, crcs, out);
}

START_TEST(a_chunk_record_comes_back_as_it_was)
{
    static const uint32_t lens[] = {1, 4096, 4097, 100000, 1048576};
    uint8_t *out = malloc(chunk_record_max(1048576));

    for (unsigned i = 0; i < 2 * ARRAY_LEN(lens); i++) {
        uint32_t len = lens[i / 2];
        bool holes = i % 2;
        size_t n = make_record(len, holes, out);
        struct chunk_record r;

        ck_assert_uint_le(n, chunk_record_max(len));
        ck_assert_int_eq(chunk_record_decode(key, 17, out, n, &r), 0);
        ck_assert_uint_eq(r.len, len);
        ck_assert_uint_eq(r.slot.number, 77);
        ck_assert_uint_eq(r.slot.class, 20);
        ck_assert_uint_eq(r.write_version, 5);
        ck_assert_uint_eq(r.truncate_gen, 6);
        ck_assert_uint_eq(r.op_ids[1], 8);
        for (uint32_t b = 0; b < chunk_blocks(len); b++) {
            ck_assert(chunk_record_present(&r, b) == (!holes || b % 3));
            ck_assert_uint_eq(le32_load(r.crcs + b * 4), b * 31);
        }
    }
    free(out);
}
END_TEST

START_TEST(every_flipped_bit_and_every_cut_of_a_record_is_noticed)
{
    uint8_t out[512], copy[512];
    size_t n = make_record(50000, true, out);
    struct chunk_record r;

    for (size_t bit = 0; bit < n * 8; bit++) {
        memcpy(copy, out, n);
        copy[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        ck_assert_int_ne(chunk_record_decode(key, 17, copy, n, &r), 0);
    }
    for (size_t len = 0; len < n; len++)
        ck_assert_int_eq(chunk_record_decode(key, 17, out, len, &r), -AIFS_ECORRUPT);
}
END_TEST

START_TEST(a_record_under_another_key_is_noticed)
{
    uint8_t out[512];
    size_t n = make_record(50000, false, out);
    struct chunk_record r;

    chunk_key_chunk(key, 1, 3);
    ck_assert_int_eq(chunk_record_decode(key, 17, out, n, &r), -AIFS_ECORRUPT);
}
END_TEST

START_TEST(a_version_from_the_future_has_its_own_error)
{
    uint8_t out[512];
    size_t n = make_record(50000, false, out);
    struct chunk_record r;

    out[0] = CHUNK_FMT_VERSION + 1;
    ck_assert_int_eq(chunk_record_decode(key, 17, out, n, &r), -AIFS_EFORMAT);
}
END_TEST

START_TEST(inode_fence_and_log_records_come_back_and_notice_damage)
{
    struct inode_record ir = {.truncate_gen = 9, .tombstone = true, .destroyed_ns = 11}, ir2;
    uint8_t iv[sizeof(struct inode_record_fmt)], fv[sizeof(struct fence_record_fmt)];
    uint8_t lv[LOG_RECORD_BYTES], block[CHUNK_BLOCK];
    struct log_record lr = {.write_version = 3, .truncate_gen = 4, .op_id = 5, .data = block}, lr2;
    size_t k = chunk_key_inode(key, 5), n = inode_record_encode(key, k, &ir, iv);
    uint32_t generation;

    ck_assert_int_eq(inode_record_decode(key, k, iv, n, &ir2), 0);
    ck_assert(ir2.tombstone && ir2.truncate_gen == 9 && ir2.destroyed_ns == 11);
    iv[9] ^= 1;
    ck_assert_int_eq(inode_record_decode(key, k, iv, n, &ir2), -AIFS_ECORRUPT);
    k = chunk_key_fence(key, 55);
    n = fence_record_encode(key, k, 66, fv);
    ck_assert_int_eq(fence_record_decode(key, k, fv, n, &generation), 0);
    ck_assert_uint_eq(generation, 66);
    ck_assert_int_eq(fence_record_decode(key, k, fv, n - 1, &generation), -AIFS_ECORRUPT);
    memset(block, 7, sizeof block);
    lr.block_crc = crc32c(block, sizeof block);
    k = chunk_key_log(key, 5, 6, 7);
    n = log_record_encode(key, k, &lr, lv);
    ck_assert_int_eq(log_record_decode(key, k, lv, n, &lr2), 0);
    ck_assert(lr2.op_id == 5 && !memcmp(lr2.data, block, sizeof block));
    lv[n - 1] ^= 1;
    ck_assert_int_eq(log_record_decode(key, k, lv, n, &lr2), -AIFS_ECORRUPT);
}
END_TEST

START_TEST(keys_sort_by_inode_then_chunk_and_parse_back)
{
    uint8_t a[CHUNK_KEY_MAX], b[CHUNK_KEY_MAX];
    struct chunk_key k;
    size_t n = chunk_key_chunk(a, 1, 0xffffffffffull);

    chunk_key_chunk(b, 2, 0);
    ck_assert_int_lt(memcmp(a, b, n), 0);
    chunk_key_chunk(a, 2, 255);
    chunk_key_chunk(b, 2, 256);
    ck_assert_int_lt(memcmp(a, b, n), 0);
    n = chunk_key_log(a, 3, 4, 5);
    ck_assert_int_eq(chunk_key_parse(a, n, &k), 0);
    ck_assert(k.type == CHUNK_KEY_LOG && k.ino == 3 && k.chunk == 4 && k.block == 5);
    ck_assert_int_eq(chunk_key_parse(a, n - 1, &k), -AIFS_ECORRUPT);
    a[0] = 'x';
    ck_assert_int_eq(chunk_key_parse(a, n, &k), -AIFS_ECORRUPT);
}
END_TEST

SUITE_MAIN("chunk formats", NULL, NULL, a_chunk_record_comes_back_as_it_was,
           every_flipped_bit_and_every_cut_of_a_record_is_noticed,
           a_record_under_another_key_is_noticed, a_version_from_the_future_has_its_own_error,
           inode_fence_and_log_records_come_back_and_notice_damage,
           keys_sort_by_inode_then_chunk_and_parse_back)
