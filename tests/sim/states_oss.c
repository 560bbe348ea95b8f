/* SPDX-License-Identifier: Apache-2.0 */
/* See states.h: a storage server. */
#include "oss/oss.h"
#include "tests/sim/states.h"

void states_look_at_oss(const struct oss *o)
{
    struct hmap_node *n, *next;
    size_t pos;

    hit_if(!o->ready, SIM_OSS_UNREGISTERED);
    hit_if(o->n_targets && o->targets[0].instead_of, SIM_OSS_UNWANTED);
    hit_list(&o->fencing, SIM_OSS_FENCE_DRAINS);
    hit_if(stat_value(&o->repeated), SIM_OSS_REPEATED);
    hmap_for_each (n, next, pos, &o->sessions) {
        const struct oss_session *s = container_of(n, const struct oss_session, node);

        hit_if(s->is_fenced, SIM_OSS_FENCED);
        hit_if(s->is_fenced && s->in_flight, SIM_OSS_FENCED_BUSY);
        hit_if(s->older, SIM_OSS_OLDER);
        hit_list(&s->waiting, SIM_OSS_WAITS_OLDER);
        hit_if(s->promised_ns, SIM_OSS_GRANT);
    }
}
