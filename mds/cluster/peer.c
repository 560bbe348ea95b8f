// SPDX-License-Identifier: Apache-2.0
/*
 * Connections from the metadata server to the OSS: one per server, made when first needed, made
 * anew when its addresses have changed. A server that is not up is not called: who wants something
 * of it tries again when it has registered.
 */
#include <string.h>

#include "mds/cluster/cluster_int.h"

struct rpc_peer *cluster_peer(struct cluster_node *n)
{
    const struct map_node *mn = map_node(n->c->map, n->id);
    const char *addresses[MAP_ADDRS];
    struct rpc_peer *old = n->peer;

    if (!mn || !n->up || n->c->stopping)
        return NULL;
    if (old && n->peer_of.n_addresses == mn->n_addresses &&
        !memcmp(n->peer_of.addresses, mn->addresses, sizeof mn->addresses))
        return old;
    n->peer = NULL;
    if (old)
        rpc_peer_destroy(old);
    n->peer_of = *mn;
    for (uint32_t i = 0; i < mn->n_addresses; i++)
        addresses[i] = n->peer_of.addresses[i];
    if (rpc_peer_create(n->c->mds->node, addresses, mn->n_addresses, NULL, NULL, &n->peer) < 0)
        n->peer = NULL;
    return n->peer;
}

int cluster_target_call(struct mds *m, uint32_t target, struct rpc_call *call)
{
    struct cluster *c = cluster_of(m);
    const struct map_target *t = map_target(c->map, target);
    struct cluster_node *n = t ? cluster_node(c, t->node) : NULL;
    struct rpc_peer *peer;

    if (!n || !n->up)
        return -AIFS_EDOWN;
    peer = cluster_peer(n);
    if (!peer)
        return c->stopping ? -AIFS_EDOWN : -ENOMEM;
    call->flags |= RPC_CALL_WAIT;
    rpc_peer_call(peer, call);
    return 0;
}
