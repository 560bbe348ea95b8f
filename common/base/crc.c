// SPDX-License-Identifier: Apache-2.0
/*
 * CRC-32C over ISA-L. ISA-L's crc32_iscsi() is the bare shift register: it neither starts from all
 * ones nor inverts the result, and it takes an int length; both are done here. Nothing can fail.
 */
#include "common/base/crc.h"

#include <isa-l/crc.h>

#include "common/base/compiler.h"

#define STEP_BYTES ((size_t)1 << 30)
#define LINE_BYTES 64u

uint32_t crc32c_more(uint32_t crc, const void *data, size_t len)
{
    const unsigned char *p = data;
    unsigned int reg = ~crc;

    while (len) {
        size_t n = MIN(len, STEP_BYTES);

        /* The library takes a pointer to non-const and only reads. */
        reg = crc32_iscsi((unsigned char *)(uintptr_t)p, (int)n, reg);
        p += n;
        len -= n;
    }
    return ~reg;
}

uint32_t crc32c(const void *data, size_t len)
{
    return crc32c_more(0, data, len);
}

/* A sum reads three places of its block at a time, which processors do not foresee as they do one:
 * from memory that is in no cache of its own a core sums twice as fast when it is told. */
static void ask_ahead(const unsigned char *p, size_t len)
{
    size_t at;

    for (at = 0; at < len; at += LINE_BYTES)
        __builtin_prefetch(p + at);
}

size_t crc32c_blocks(uint64_t offset, const void *data, size_t len, uint32_t *ret_crcs)
{
    const unsigned char *p = data;
    size_t pieces = 0;

    while (len) {
        size_t n = MIN(len, (size_t)(CRC_BLOCK_BYTES - offset % CRC_BLOCK_BYTES));

        ask_ahead(p + n, MIN(len - n, (size_t)CRC_BLOCK_BYTES));
        ret_crcs[pieces++] = crc32c(p, n);
        p += n;
        offset += n;
        len -= n;
    }
    return pieces;
}
