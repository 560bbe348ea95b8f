/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that tell their place, and orders without pattern. */
#include <string.h>

#include "tools/bench/io.h"

static inline uint64_t word_at(uint64_t seed, uint64_t offset)
{
    return (offset + 1 + (seed << 48)) * 0x9E3779B97F4A7C15ull;
}

void io_pattern_fill(void *buf, size_t len, uint64_t seed, uint64_t offset)
{
    uint64_t *p = buf;

    for (size_t i = 0; i < len / 8; i++)
        p[i] = word_at(seed, offset + i * 8);
}

size_t io_pattern_check(const void *buf, size_t len, uint64_t seed, uint64_t offset)
{
    const uint64_t *p = buf;
    uint64_t wrong = 0;

    for (size_t i = 0; i < len / 8; i++)
        wrong |= p[i] ^ word_at(seed, offset + i * 8);
    for (size_t i = 0; wrong && i < len / 8; i++)
        if (p[i] != word_at(seed, offset + i * 8))
            return i * 8;
    return len;
}

/*
 * A generator x -> a x + c of full period over the next power of two (Hull and Dobell: c odd, a - 1
 * a multiple of 4), whose values are mixed by a bijection; values of n and more are walked past
 * ("cycle walking"), which takes less than two steps on average.
 */
uint64_t io_shuffled(uint64_t i, uint64_t n, uint64_t seed)
{
    unsigned bits = 1;
    uint64_t mask, x;

    while (bits < 63 && (1ull << bits) < n)
        bits++;
    mask = (1ull << bits) - 1;
    x = i % n;
    do {
        for (unsigned round = 0; round < 3; round++) {
            x = (x * 0xD1342543DE82EF95ull + (seed * 2 + 1)) & mask;
            x ^= x >> (bits / 2 + 1);
        }
    } while (x >= n);
    return x;
}
