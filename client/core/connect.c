/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting to the storage servers while a mount begins, so that the first transfers find their
 * links and need not go over a socket that is about to be left: a connection over shared memory
 * takes some milliseconds of both ends (docs/adr/0013-copies-and-wake-ups.md).
 *
 * Happy path: the map is there → every server that has a target online gets a peer, if they are few
 * → the mount's other calls go on → it ends when all are connected and on their final transport. A
 * server that does not answer keeps a mount for WAIT_NS at most, and is none of its failures: as
 * ever, who needs it waits for it.
 */
#include "client/core/core_int.h"

#define WAIT_NS (100 * NS_PER_MS)
#define LOOK_NS (200 * NS_PER_US) /* there is no event for the end of moving over */

static uint32_t storage_nodes(const struct cluster_map *m)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < m->n_nodes; k++)
        n += m->nodes[k].type == MAP_NODE_OSS;
    return n;
}

void connect_ahead(struct core *c)
{
    if (!c->o.connect_max || storage_nodes(c->map) > c->o.connect_max)
        return;
    for (uint32_t k = 0; k < c->map->n_targets; k++) {
        const struct map_target *t = &c->map->targets[k];

        if (t->state == MAP_TARGET_ONLINE && !t->given_up)
            (void)oss_node_of(c, t->id); /* it has been logged */
    }
    c->connect.until_ns = reactor_now_ns(c->reactor) + WAIT_NS;
}

static bool is_waited_for(const struct oss_node *o)
{
    return o->peer && !rpc_peer_is_settled(o->peer) && !rpc_peer_last_error(o->peer);
}

bool connect_waits(struct core *c)
{
    struct hmap_node *h, *next;
    size_t pos;

    if (reactor_now_ns(c->reactor) >= c->connect.until_ns)
        return false;
    hmap_for_each (h, next, pos, &c->oss_nodes) {
        if (is_waited_for(container_of(h, struct oss_node, node)))
            return true;
    }
    return false;
}

void connect_look_again(struct core *c)
{
    reactor_timer_start(c->reactor, &c->connect.timer, reactor_now_ns(c->reactor) + LOOK_NS);
}
