/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32C (Castagnoli, RFC 3720 appendix B.4), by ISA-L. The one checksum of wire and disk.
 * crc32c("123456789") = 0xe3069283. Any thread.
 */
#ifndef AIFS_COMMON_BASE_CRC_H
#define AIFS_COMMON_BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

#define CRC_BLOCK_BYTES                                                                            \
    4096u /* data is summed per block of this size, at multiples of it in the chunk */

uint32_t crc32c(const void *data, size_t len);
/* Continue: crc32c_more(crc32c(a), b) == crc32c(a || b). */
uint32_t crc32c_more(uint32_t crc, const void *data, size_t len);
/*
 * One sum per piece of data that is cut at multiples of CRC_BLOCK_BYTES, where data starts at
 * offset in its chunk: the first and last piece may be shorter. Writes crc_pieces(offset, len)
 * numbers to ret_crcs and returns how many.
 */
size_t crc32c_blocks(uint64_t offset, const void *data, size_t len, uint32_t *ret_crcs);

static inline size_t crc_pieces(uint64_t offset, size_t len)
{
    return len ? (size_t)((offset + len - 1) / CRC_BLOCK_BYTES - offset / CRC_BLOCK_BYTES + 1) : 0;
}

#endif
