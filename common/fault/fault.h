/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named fault points: places where a test can make the program fail, stall or die.
 *
 *     if (FAULT("chunk.index.commit"))
 *         return -EIO;
 *     FAULT_CRASH("mds.truncate.after_commit");   // _exit(137) here, as kill -9 would
 *
 * Armed by AIFS_FAULT="name=action[:arg][@nth][,...]" in the environment or fault_arm(); action is
 * error, crash or delay:MS; @n: only the n-th time (from 1), @n+ from then on. When nothing is
 * armed a fault point costs one load. Any thread.
 */
#ifndef AIFS_COMMON_FAULT_FAULT_H
#define AIFS_COMMON_FAULT_FAULT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "common/base/compiler.h"

extern _Atomic int fault_armed; /* number of armed points */

bool fault_hit(const char *name); /* true: fail here. May sleep or not return, if armed so */
int fault_arm(const char *spec) MUST_USE; /* adds; -EINVAL names nothing, arms nothing */
void fault_disarm_all(void);
unsigned fault_count(const char *name); /* how often an armed point was passed */
int fault_arm_from_env(void) MUST_USE;

#define FAULT(name)                                                                                \
    (UNLIKELY(atomic_load_explicit(&fault_armed, memory_order_relaxed) != 0) && fault_hit(name))
#define FAULT_CRASH(name) ((void)FAULT(name))

#endif
