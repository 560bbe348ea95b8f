/* SPDX-License-Identifier: Apache-2.0 */
/* What kinds of faults share. */
#ifndef AIFS_TESTS_SIM_FAULTS_H
#define AIFS_TESTS_SIM_FAULTS_H

#include "tests/sim/sim.h"

void sim_fault_crash(struct sim_node *n); /* of any kind; it starts again after a while */

#endif
