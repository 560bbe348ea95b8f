/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who writes beside others, without a lease, is kept from the answer. Somebody sees what it has
 * written and writes over it, or cuts it off; then it is sent again, to a server that may have
 * restarted. Meanwhile nobody else does anything, so that what comes of it is seen.
 */
#ifndef AIFS_TESTS_SIM_RESENT_H
#define AIFS_TESTS_SIM_RESENT_H

#include <stdbool.h>
#include <stdint.h>

struct proc;

void resent_start(void);
void resent_expect(void); /* the next one that writes so */
void resent_tick(void);
bool resent_call(struct proc *p); /* false: it does something else */

#endif
