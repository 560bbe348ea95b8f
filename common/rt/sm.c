/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declared state machines.
 *
 * Happy path: every move is looked up in the table and traced. Failure mode: a move that the table
 * does not allow is logged with both names and stops the process.
 */
#include "common/rt/sm.h"

#include <inttypes.h>

#include "common/base/assert.h"
#include "common/base/log.h"

static const struct sm_state *sm_conf_state(const struct sm_conf *conf, unsigned state)
{
    ASSERT(state < conf->n_states);
    return &conf->states[state];
}

void sm_init(struct sm *m, const struct sm_conf *conf, unsigned state)
{
    ASSERT(conf->n_states > 0 && conf->n_states <= 32);
    ASSERT(state < conf->n_states);
    m->conf = conf;
    m->state = (uint8_t)state;
    m->id = 0;
}

void sm_move(struct sm *m, unsigned state)
{
    const struct sm_state *from = sm_conf_state(m->conf, m->state);
    const struct sm_state *to = sm_conf_state(m->conf, state);

    if (UNLIKELY(!(from->allowed & SM_BIT(state))))
        LOG_ERROR(m->conf->name, "%" PRIu64 ": no way from %s to %s", m->id, from->name, to->name);
    ASSERT(from->allowed & SM_BIT(state));
    LOG_TRACE(m->conf->name, "%" PRIu64 ": %s -> %s", m->id, from->name, to->name);
    m->state = (uint8_t)state;
}

void sm_fini(struct sm *m)
{
    const struct sm_state *s = sm_conf_state(m->conf, m->state);

    if (UNLIKELY(!s->final))
        LOG_ERROR(m->conf->name, "%" PRIu64 ": ends in %s, which is not final", m->id, s->name);
    ASSERT(s->final);
}

const char *sm_state_name(const struct sm *m)
{
    return sm_conf_state(m->conf, m->state)->name;
}
