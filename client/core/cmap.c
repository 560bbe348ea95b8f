/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster map at the client: fetched after mounting and whenever a reply or a failed transfer
 * says that ours is old. Nodes of object storage get a peer when the first transfer needs them;
 * when a node's addresses change its peer is replaced, which sends its unanswered transfers again
 * through the new one. What waits for a target that a new map says is given up, fails.
 */
#include "client/core/core_int.h"

static bool same_addresses(const struct oss_node *o, const struct map_node *n)
{
    uint32_t i;

    if (o->n_addresses != n->n_addresses)
        return false;
    for (i = 0; i < n->n_addresses; i++)
        if (strcmp(o->addresses[i], n->addresses[i]) != 0)
            return false;
    return true;
}

/* A new connection: servers finish or drop what came by older ones before they serve this. */
static void node_up(struct rpc_peer *p, struct rpc_link *l, bool rebooted, void *arg)
{
    struct oss_node *o = arg;

    (void)l;
    (void)rebooted;
    o->incarnation++;
    oss_new_link(o->core, o);
    commit_new_link(o->core, o);
    rpc_peer_ready(p);
}

static int node_connect(struct core *c, struct oss_node *o, const struct map_node *n)
{
    static const struct rpc_peer_events events = {.up = node_up};
    const char *addresses[MAP_ADDRS];
    uint32_t i;
    int err;

    o->n_addresses = MIN(n->n_addresses, MAP_ADDRS);
    memcpy(o->addresses, n->addresses, sizeof o->addresses);
    memcpy(o->alias, n->alias, sizeof o->alias);
    for (i = 0; i < o->n_addresses; i++)
        addresses[i] = o->addresses[i];
    if (!i)
        return -AIFS_EDOWN;
    err = rpc_peer_create(c->node, addresses, i, &events, o, &o->peer);
    if (!err)
        rpc_peer_set_rails(o->peer, c->o.net.rails);
    return err;
}

static struct oss_node *node_find(struct core *c, uint32_t id)
{
    struct hmap_node *n;

    for (n = hmap_first(&c->oss_nodes, hash_u64(id)); n; n = hmap_next(n)) {
        struct oss_node *o = container_of(n, struct oss_node, node);

        if (o->id == id)
            return o;
    }
    return NULL;
}

struct oss_node *oss_node_of(struct core *c, uint32_t target)
{
    const struct map_target *t = c->map ? map_target(c->map, target) : NULL;
    const struct map_node *n = t ? map_node(c->map, t->node) : NULL;
    struct oss_node *o;
    int err;

    if (!n)
        return NULL;
    o = node_find(c, n->id);
    if (!o) {
        o = mem_zalloc(sizeof *o);
        if (!o)
            return NULL;
        o->id = n->id;
        o->core = c;
        hmap_insert(&c->oss_nodes, &o->node, hash_u64(o->id));
    }
    if (!o->peer) {
        err = node_connect(c, o, n);
        if (err) {
            LOG_WARN("client", "object storage server %s: %s", n->alias, err_text(err));
            return NULL;
        }
    }
    return o;
}

bool oss_given_up(const struct core *c, uint32_t target)
{
    const struct map_target *t = c->map ? map_target(c->map, target) : NULL;

    return t && t->given_up;
}

bool oss_io_is_lost(const struct oss_io *io)
{
    const struct msg_layout *l = &io->inode->layout;
    const struct cluster_map *m = io->core->map;
    const struct map_chain *chain = m && l->table_len ? layout_chain(l, m, io->range.chunk) : NULL;

    return chain && oss_given_up(io->core, chain->targets[0]);
}

static void follow_addresses(struct core *c)
{
    struct hmap_node *h, *next;
    size_t pos;

    hmap_for_each (h, next, pos, &c->oss_nodes) {
        struct oss_node *o = container_of(h, struct oss_node, node);
        const struct map_node *n = map_node(c->map, o->id);
        struct rpc_peer *old = o->peer;

        if (!old || (n && same_addresses(o, n)))
            continue;
        if (n)
            LOG_INFO("client", "object storage server %s has moved", n->alias);
        else
            LOG_INFO("client", "object storage server %u was removed", o->id);
        o->peer = NULL; /* the next transfer connects to the new place */
        rpc_peer_destroy(old);
    }
}

static void follow_given_up(struct core *c)
{
    struct list *l;

    list_for_each (l, &c->ios) {
        struct oss_io *io = list_entry(l, struct oss_io, all);

        if (io->sent && oss_given_up(c, io->target->id))
            rpc_call_cancel(oss_io_call(io)); /* it is tried again, and fails for good */
    }
    commit_new_map(c);
}

static void fetch_again(struct reactor_timer *t)
{
    cmap_refresh(container_of(t, struct core, map_timer));
}

static void fetched(struct mds_op *op, int status)
{
    struct core *c = op->core;
    const struct msg_map_rep *rep = op->call.rep;
    struct cluster_map *map;

    c->map_op = NULL;
    if (!status && !rep->unchanged) {
        status = rep->map ? map_check(rep->map) : -AIFS_EPROTO;
        if (!status && (!c->map || rep->map->epoch > c->map->epoch)) {
            map = map_copy(rep->map);
            if (map) {
                if (c->map)
                    map_put(c->map);
                c->map = map;
                LOG_DEBUG("client", "cluster map %llu", (unsigned long long)map->epoch);
                follow_addresses(c);
                follow_given_up(c);
            } else {
                status = -ENOMEM;
            }
        }
    }
    if (status && !c->forced && c->state != CORE_ENDED && c->state != CORE_UNMOUNTING) {
        LOG_WARN("client", "cannot fetch the cluster map: %s", err_text(status));
        reactor_timer_start(c->reactor, &c->map_timer, reactor_now_ns(c->reactor) + NS_PER_S);
    }
    if (c->map)
        core_mount_step(c);
}

void cmap_refresh(struct core *c)
{
    struct mds_op *op;

    if (!c->map_timer.fn)
        reactor_timer_init(&c->map_timer, fetch_again);
    if (c->map_op || c->forced || c->state == CORE_ENDED)
        return;
    op = mds_op_new(c, RPC_OP_MAP_GET, NULL, fetched);
    if (!op) {
        reactor_timer_start(c->reactor, &c->map_timer, reactor_now_ns(c->reactor) + NS_PER_S);
        return;
    }
    op->msg.map.epoch = c->map ? c->map->epoch : 0;
    c->map_op = op;
    mds_op_start(op);
}

void cmap_fini(struct core *c)
{
    struct hmap_node *h, *next;
    size_t pos;

    if (c->map_timer.fn)
        reactor_timer_cancel(c->reactor, &c->map_timer);
    hmap_for_each (h, next, pos, &c->oss_nodes) {
        struct oss_node *o = container_of(h, struct oss_node, node);

        hmap_remove(&c->oss_nodes, h);
        if (o->peer)
            rpc_peer_destroy(o->peer);
        mem_free(o);
    }
    if (c->map)
        map_put(c->map);
    c->map = NULL;
}
