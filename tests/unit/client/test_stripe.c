/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting file ranges into cache blocks. */
#include "client/core/stripe.h"
#include "tests/support/suite.h"

static void check_cover(uint32_t chunk_bytes, uint64_t offset, uint64_t end)
{
    struct msg_layout l = {
        .copies = 1, .table_len = 4, .chunk_bytes = chunk_bytes, .stripe_count = 4};
    uint32_t unit = stripe_block_bytes(&l);
    uint64_t at = offset;

    while (at < end) {
        struct stripe_piece p = stripe_cut(&l, at, end);

        ck_assert_uint_eq(p.block * unit + p.start, at);
        ck_assert_uint_gt(p.len, 0);
        ck_assert_uint_le(p.start + p.len, unit);
        ck_assert_uint_eq(p.chunk, at / chunk_bytes);
        ck_assert_uint_eq((at + p.len - 1) / chunk_bytes, p.chunk); /* one chunk only */
        ck_assert_uint_eq(p.chunk * chunk_bytes + p.chunk_offset, p.block * unit);
        at += p.len;
    }
    ck_assert_uint_eq(at, end);
}

START_TEST(every_piece_lies_in_one_block_and_one_chunk)
{
    check_cover(64 * KIB, 1, 300000);
    check_cover(MIB, 0, 5 * MIB);
    check_cover(MIB, MIB - 1, MIB + 1);
    check_cover(4 * MIB, 3 * MIB + 17, 9 * MIB);
    check_cover(64 * MIB, 63 * MIB + 5, 65 * MIB);
}
END_TEST

START_TEST(a_block_fits_one_transfer)
{
    struct msg_layout l = {.chunk_bytes = 64 * MIB};

    ck_assert_uint_eq(stripe_block_bytes(&l), MSG_BULK_MAX);
    l.chunk_bytes = 64 * KIB;
    ck_assert_uint_eq(stripe_block_bytes(&l), 64 * KIB);
}
END_TEST

SUITE_MAIN("client-stripe", NULL, NULL, every_piece_lies_in_one_block_and_one_chunk,
           a_block_fits_one_transfer)
