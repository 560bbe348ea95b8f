/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/cover.h"

#include <inttypes.h>

static const char *const texts[] = {
#define SIM_COVER_TEXT(name, text) text,
    SIM_COVER(SIM_COVER_TEXT)
#undef SIM_COVER_TEXT
};

static uint64_t hits[SIM_COVER_LIMIT];

void sim_hit(enum sim_cover what)
{
    hits[what]++;
}

void sim_hits(enum sim_cover what, uint64_t n)
{
    hits[what] += n;
}

unsigned sim_cover_print(FILE *to)
{
    unsigned zeros = 0;

    for (unsigned i = 0; i < SIM_COVER_LIMIT; i++) {
        fprintf(to, "%12" PRIu64 "  %s\n", hits[i], texts[i]);
        zeros += hits[i] == 0;
    }
    return zeros;
}
