/* SPDX-License-Identifier: Apache-2.0 */
/* What an administrator asks of the metadata server: one call at a time, from the machine of a
 * storage server. */
#ifndef AIFS_TESTS_SIM_ADMIN_H
#define AIFS_TESTS_SIM_ADMIN_H

#include "tests/sim/sim.h"

void admin_replace(struct sim_node *at, uint32_t target); /* TARGET_REPLACE */
bool admin_is_answered(int *ret_status);
void admin_end(void); /* answered or not */

#endif
