/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers without pattern, the same at each run (Marsaglia, "Xorshift RNGs", 2003). */
#include <string.h>

#include "tools/bench/bench.h"

uint64_t bench_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

void bench_fill(void *buf, size_t len, uint64_t seed)
{
    uint64_t state = seed * 0x9E3779B97F4A7C15ull | 1;
    uint8_t *p = buf;

    for (size_t i = 0; i + 8 <= len; i += 8) {
        uint64_t v = bench_random(&state);

        memcpy(p + i, &v, 8);
    }
}
