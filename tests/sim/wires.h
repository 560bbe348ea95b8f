/* SPDX-License-Identifier: Apache-2.0 */
/* The network between the nodes of a seed, and what goes wrong in it. */
#ifndef AIFS_TESTS_SIM_WIRES_H
#define AIFS_TESTS_SIM_WIRES_H

#include "tests/sim/sim.h"

void wires_start(void);  /* nothing goes wrong */
void wires_strain(void); /* from now on messages meet with faults, drawn for the seed */
void wires_cut(unsigned from, unsigned to, uint64_t until_ns); /* indices of nodes; one way */
void wires_mend(void);                                         /* no faults any more */

#endif
