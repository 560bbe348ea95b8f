/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declared state machines: the states of an operation in a table with their allowed successors;
 * every move is checked and traced. A move that the table does not allow is a programmer's error.
 */
#ifndef AIFS_COMMON_RT_SM_H
#define AIFS_COMMON_RT_SM_H

#include <stdbool.h>
#include <stdint.h>

struct sm_state {
    const char *name;
    uint32_t allowed; /* bit set of successors */
    bool final;
};

struct sm_conf {
    const char *name; /* "oss.write" */
    const struct sm_state *states;
    unsigned n_states;
};

struct sm {
    const struct sm_conf *conf;
    uint8_t state;
    uint64_t id; /* for the trace */
};

#define SM_BIT(state) (1u << (state))

/* Sets id to 0. */
void sm_init(struct sm *m, const struct sm_conf *conf, unsigned state);
void sm_move(struct sm *m, unsigned state);
void sm_fini(struct sm *m); /* must be in a final state */
static inline unsigned sm_state(const struct sm *m)
{
    return m->state;
}
const char *sm_state_name(const struct sm *m);

#endif
