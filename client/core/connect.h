/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting to the storage servers while mounting: connect.c. */
#ifndef AIFS_CLIENT_CORE_CONNECT_H
#define AIFS_CLIENT_CORE_CONNECT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/rt/reactor.h"

struct core;

struct core_connect {
    struct reactor_timer timer;
    uint64_t until_ns; /* it waits no longer */
};

void connect_ahead(struct core *c);      /* the map is known */
bool connect_waits(struct core *c);      /* is any server still to be connected to? */
void connect_look_again(struct core *c); /* core.connect.timer comes */

#endif
