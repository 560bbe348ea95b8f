/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A name service for tests: getaddrinfo() of the program that this is linked to. Names that end
 * with ".test" are of its table, all others of the system's. One thread, the reactor's, may not
 * ask: the program ends there.
 */
#ifndef AIFS_TESTS_NAME_SERVICE_H
#define AIFS_TESTS_NAME_SERVICE_H

#include <stdbool.h>

void name_service_init(void); /* forgets all; who calls is the thread that may not ask */
/* address: of numbers; NULL: the name service answers that it has none at the moment (EAI_AGAIN).
 */
void name_service_set(const char *name, const char *address);
void name_service_hold(bool hold);  /* no answers while it is held */
unsigned name_service_asked(void);  /* how often, so far */
unsigned name_service_asking(void); /* how many wait for an answer now */

#endif
