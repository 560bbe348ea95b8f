/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets that lose data for good: in some seeds disks fill up, in some one target is given up.
 * Which seeds these are does not hang on what is drawn, so all others are the runs that they were.
 */
#ifndef AIFS_TESTS_SIM_LOSSES_H
#define AIFS_TESTS_SIM_LOSSES_H

#include "tests/sim/sim.h"

static inline bool losses_fill(void) /* disks */
{
    return sim.faults && sim.seed % 5 == 1;
}

static inline bool losses_give_up(void) /* a target */
{
    return sim.faults && sim.seed % 7 == 5;
}

static inline bool losses_any(void)
{
    return losses_fill() || losses_give_up();
}

void losses_start(void);
void losses_tick(void);
uint64_t losses_due(void);
void losses_end(void); /* there is room again; what was given up stays so */

#endif
