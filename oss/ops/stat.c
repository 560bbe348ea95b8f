// SPDX-License-Identifier: Apache-2.0
/* OSS_STAT: figures of one target, or of all (target 0). MAP_CHANGED: the map has a new epoch. */
#include <string.h>

#include "common/base/err.h"
#include "oss/oss.h"

void oss_op_stat(struct oss_request *r)
{
    const struct msg_target_req *m = r->msg;
    struct oss *o = r->oss;
    struct msg_target_stat *stats;
    struct msg_node_live *live;
    struct msg_status_rep *rep;
    uint32_t n = 0;

    if (m->target && !oss_request_target(r, m->target))
        return;
    if (!(stats = oss_alloc(r, OSS_TARGETS_MAX * sizeof *stats)) ||
        !(live = oss_alloc(r, sizeof *live)) || !(rep = oss_alloc(r, sizeof *rep)))
        return;
    for (uint32_t i = 0; i < o->n_targets; i++)
        if (!m->target || &o->targets[i] == r->target)
            oss_target_stat(&o->targets[i], &stats[n++]);
    *live = (struct msg_node_live){.n_targets = n, .targets = stats};
    rep->version = (struct msg_bytes){AIFS_VERSION, sizeof AIFS_VERSION - 1};
    rep->fs = o->key.cluster;
    rep->uptime_ns = clock_mono_ns(reactor_clock(o->reactor)) - o->started_ns;
    rep->n_nodes = 1;
    rep->nodes = live;
    oss_reply(r, 0, rep);
}

void oss_op_map_changed(struct oss_request *r)
{
    const struct msg_map_req *m = r->msg;

    rpc_node_set_map_epoch(r->oss->rpc, m->epoch);
    oss_reply(r, 0, NULL);
}
