// SPDX-License-Identifier: Apache-2.0
/* CRC-32C against the vectors of RFC 3720 appendix B.4, and against a bitwise reference. */
#include "common/base/crc.h"

#include <string.h>

#include "tests/support/suite.h"

static uint32_t reference(const unsigned char *p, size_t len)
{
    uint32_t reg = 0xffffffff;

    while (len--) {
        reg ^= *p++;
        for (int bit = 0; bit < 8; bit++)
            reg = reg >> 1 ^ (reg & 1 ? 0x82f63b78u : 0);
    }
    return ~reg;
}

START_TEST(known_vectors)
{
    unsigned char block[32];

    ck_assert_uint_eq(crc32c("123456789", 9), 0xe3069283);
    ck_assert_uint_eq(crc32c("", 0), 0);
    memset(block, 0, sizeof block);
    ck_assert_uint_eq(crc32c(block, sizeof block), 0x8a9136aa);
    memset(block, 0xff, sizeof block);
    ck_assert_uint_eq(crc32c(block, sizeof block), 0x62a8ab43);
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (unsigned char)i;
    ck_assert_uint_eq(crc32c(block, sizeof block), 0x46dd794e);
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (unsigned char)(31 - i);
    ck_assert_uint_eq(crc32c(block, sizeof block), 0x113fdb5c);
}
END_TEST

START_TEST(every_length_and_alignment_agrees_with_the_bitwise_reference)
{
    unsigned char data[700];

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 131 + 7);
    for (size_t offset = 0; offset < 17; offset++) {
        for (size_t len = 0; len + offset <= sizeof data; len += 13)
            ck_assert_uint_eq(crc32c(data + offset, len), reference(data + offset, len));
    }
}
END_TEST

START_TEST(continuing_equals_summing_at_once)
{
    const char text[] = "The quick brown fox jumps over the lazy dog";

    for (size_t cut = 0; cut <= strlen(text); cut++)
        ck_assert_uint_eq(crc32c_more(crc32c(text, cut), text + cut, strlen(text) - cut),
                          crc32c(text, strlen(text)));
}
END_TEST

START_TEST(blocks_are_cut_at_multiples_of_the_block_size_in_the_chunk)
{
    static unsigned char data[3 * CRC_BLOCK_BYTES];
    uint32_t crcs[5];

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 7);
    ck_assert_uint_eq(crc32c_blocks(CRC_BLOCK_BYTES - 100, data, 300, crcs), 2);
    ck_assert_uint_eq(crcs[0], crc32c(data, 100));
    ck_assert_uint_eq(crcs[1], crc32c(data + 100, 200));
    ck_assert_uint_eq(crc32c_blocks(0, data, sizeof data, crcs), 3);
    ck_assert_uint_eq(crcs[2], crc32c(data + 2 * CRC_BLOCK_BYTES, CRC_BLOCK_BYTES));
    ck_assert_uint_eq(crc32c_blocks(4095, data, 1, crcs), 1);
    ck_assert_uint_eq(crc32c_blocks(4095, data, 0, crcs), 0);
}
END_TEST

START_TEST(the_number_of_pieces_is_the_one_promised)
{
    static unsigned char data[2 * CRC_BLOCK_BYTES + 2];
    uint32_t crcs[4];
    const uint64_t offsets[] = {0, 1, 4095, 4096, 4097, 1u << 20};
    const size_t lens[] = {0, 1, 2, 4095, 4096, 4097, 8192, 8193};

    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        for (size_t j = 0; j < sizeof lens / sizeof lens[0]; j++)
            ck_assert_uint_eq(crc32c_blocks(offsets[i], data, lens[j], crcs),
                              crc_pieces(offsets[i], lens[j]));
    }
}
END_TEST

SUITE_MAIN("crc", NULL, NULL, known_vectors,
           every_length_and_alignment_agrees_with_the_bitwise_reference,
           continuing_equals_summing_at_once,
           blocks_are_cut_at_multiples_of_the_block_size_in_the_chunk,
           the_number_of_pieces_is_the_one_promised)
