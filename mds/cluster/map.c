// SPDX-License-Identifier: Apache-2.0
/*
 * The cluster module as a whole: MAP_GET, start, tick, stop.
 *
 * Failure modes: a tick that comes far too late means that this process was stopped: heartbeats are
 * waiting unread in the sockets, so nobody is held to have been silent.
 */
#include <string.h>

#include "mds/cluster/cluster_int.h"

#define TICK_NS (250 * NS_PER_MS)

static void stop_check(struct cluster *c);

void cluster_begin(struct cluster *c)
{
    c->outstanding++;
}

void cluster_end(struct cluster *c)
{
    c->outstanding--;
    stop_check(c);
}

static struct cluster_map *current_map(struct mds *m)
{
    return cluster_of(m)->map;
}

static void serve_map_get(struct rpc_req *req)
{
    struct mds *m = req->handler_arg;
    const struct msg_map_req *msg = req->msg;
    const struct cluster_map *map = current_map(m);
    struct msg_map_rep rep = {.unchanged = msg->epoch == map->epoch};

    if (!rep.unchanged)
        rep.map = map;
    rpc_reply(req, 0, &rep);
}

static void tick(struct reactor_timer *t)
{
    struct cluster *c = container_of(t, struct cluster, tick);
    uint64_t now_ns = cluster_now_ns(c);
    struct list *l;

    if (now_ns > c->last_tick_ns + TICK_NS + NS_PER_S) {
        list_for_each (l, &c->node_list)
            list_entry(l, struct cluster_node, all)->seen_ns = now_ns;
    }
    c->last_tick_ns = now_ns;
    cluster_node_tick(c, now_ns);
    cluster_dump_tick(c, now_ns);
    reactor_timer_start(c->mds->reactor, &c->tick, now_ns + TICK_NS);
}

static const struct mds_cluster_ops cluster_ops = {.map = current_map, .statfs = cluster_statfs};

static void stats_register(struct cluster *c)
{
    stat_counter_register(&c->stats.changes, "aifs_mds_map_changes_total", NULL,
                          "cluster maps made");
    stat_counter_register(&c->stats.registered, "aifs_mds_node_registrations_total", NULL,
                          "object storage servers that registered");
    stat_counter_register(&c->stats.offline, "aifs_mds_node_offline_total", NULL,
                          "object storage servers declared offline");
    stat_counter_register(&c->stats.fences, "aifs_mds_fences_sent_total", NULL,
                          "fence lists sent to object storage servers");
    stat_counter_register(&c->stats.fence_retries, "aifs_mds_fence_retries_total", NULL,
                          "fence lists not acknowledged in time");
    stat_counter_register(&c->stats.dumps, "aifs_mds_dumps_total", NULL, "dumps begun");
    stat_gauge_register(&c->stats.epoch, "aifs_mds_map_epoch", NULL, "epoch of the cluster map");
    stat_gauge_register(&c->stats.nodes_up, "aifs_mds_nodes_up", NULL,
                        "object storage servers that are up");
}

static void stats_unregister(struct cluster *c)
{
    struct stat_item *all[] = {&c->stats.changes.stat,       &c->stats.registered.stat,
                               &c->stats.offline.stat,       &c->stats.fences.stat,
                               &c->stats.fence_retries.stat, &c->stats.dumps.stat,
                               &c->stats.epoch.stat,         &c->stats.nodes_up.stat};

    for (unsigned i = 0; i < ARRAY_LEN(all); i++)
        stat_unregister(all[i]);
}

static void serve_start(struct mds *m)
{
    rpc_node_handle(m->node, RPC_OP_MAP_GET, serve_map_get, m);
    rpc_node_handle(m->node, RPC_OP_NODE_REGISTER, cluster_serve_register, m);
    rpc_node_handle(m->node, RPC_OP_HEARTBEAT, cluster_serve_heartbeat, m);
    rpc_node_handle(m->node, RPC_OP_STATUS, cluster_serve_status, m);
    rpc_node_handle(m->node, RPC_OP_POOL_CREATE, cluster_serve_pool, m);
    rpc_node_handle(m->node, RPC_OP_POOL_ADD, cluster_serve_pool, m);
    rpc_node_handle(m->node, RPC_OP_POOL_REMOVE, cluster_serve_pool, m);
    rpc_node_handle(m->node, RPC_OP_TARGET_REPLACE, cluster_serve_replace, m);
    rpc_node_handle(m->node, RPC_OP_NODE_REMOVE, cluster_serve_remove, m);
    rpc_node_handle(m->node, RPC_OP_DUMP, cluster_serve_dump, m);
}

static void cluster_free(struct cluster *c)
{
    if (c->retired)
        map_put(c->retired);
    cluster_nodes_fini(c);
    cluster_fences_fini(c);
    cluster_log_fini(c);
    cluster_refused_fini(c);
    hmap_fini(&c->nodes);
    stats_unregister(c);
    mem_free(c);
}

static int cluster_start(struct mds *m)
{
    struct cluster *c = mem_zalloc(sizeof *c);
    int rc;

    if (!c)
        return -ENOMEM;
    c->mds = m;
    list_init(&c->node_list);
    list_init(&c->waiting);
    list_init(&c->committing);
    list_init(&c->fence_waits);
    list_init(&c->dumps);
    list_init(&c->refused);
    arena_init(&c->encoded, 0);
    stats_register(c);
    rc = hmap_init(&c->nodes, 16);
    if (rc == 0)
        rc = cluster_log_load(c);
    if (rc == 0)
        rc = cluster_nodes_load(c);
    if (rc == 0)
        rc = cluster_fences_load(c);
    if (rc < 0) {
        cluster_free(c);
        return rc;
    }
    m->cluster = c;
    m->cluster_ops = &cluster_ops;
    serve_start(m);
    reactor_timer_init(&c->tick, tick);
    c->last_tick_ns = cluster_now_ns(c);
    reactor_timer_start(m->reactor, &c->tick, c->last_tick_ns + TICK_NS);
    return 0;
}

static void stop_check(struct cluster *c)
{
    void (*stopped)(void *arg) = c->stopped;

    if (c->outstanding || !stopped)
        return;
    c->stopped = NULL;
    stopped(c->stopped_arg);
}

static void stop_run(struct reactor_work *work)
{
    cluster_end(container_of(work, struct cluster, stop));
}

static void cluster_stop(struct mds *m, void (*stopped)(void *arg), void *arg)
{
    struct cluster *c = cluster_of(m);
    struct list *l;

    cluster_begin(c); /* until stop_run() */
    c->stopping = true;
    c->stopped = stopped;
    c->stopped_arg = arg;
    reactor_timer_cancel(m->reactor, &c->tick);
    cluster_dumps_stop(c);
    list_for_each (l, &c->node_list) { /* ends what is in flight there */
        struct cluster_node *n = list_entry(l, struct cluster_node, all);
        struct rpc_peer *peer = n->peer;

        n->peer = NULL;
        if (peer)
            rpc_peer_destroy(peer);
    }
    c->stop.fn = stop_run;
    reactor_defer(m->reactor, &c->stop);
}

static void cluster_free_module(struct mds *m)
{
    struct cluster *c = cluster_of(m);

    if (!c)
        return;
    m->cluster = NULL;
    m->cluster_ops = NULL;
    cluster_free(c);
}

const struct mds_module mds_cluster_module = {
    .name = "cluster", .start = cluster_start, .stop = cluster_stop, .free = cluster_free_module};
