/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that is random comes from one generator: the simulator's own choices, and what the
 * code under test draws from the kernel, whose function is replaced here for the whole program.
 */
#include <sys/random.h>
#include <sys/types.h>

#include "tests/sim/sim.h"

static uint64_t own_state, foreign_state;

/* splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). */
static uint64_t next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

void sim_random_seed(uint64_t seed)
{
    own_state = seed * 0x2545f4914f6cdd1dull + 1;
    foreign_state = ~seed;
}

uint64_t sim_random(void)
{
    return next(&own_state);
}

uint32_t sim_below(uint32_t n)
{
    return (uint32_t)(sim_random() % n);
}

uint64_t sim_between(uint64_t from, uint64_t to)
{
    return from + sim_random() % (to - from + 1);
}

bool sim_chance(uint32_t per_thousand)
{
    return sim_below(1000) < per_thousand;
}

static void fill(uint8_t *out, size_t len)
{
    uint64_t bits = 0;

    for (size_t i = 0; i < len; i++) {
        if (i % 8 == 0)
            bits = next(&foreign_state);
        out[i] = (uint8_t)(bits >> (i % 8 * 8));
    }
}

ssize_t getrandom(void *buf, size_t len, unsigned flags)
{
    (void)flags;
    fill(buf, len);
    return (ssize_t)len;
}
