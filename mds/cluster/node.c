// SPDX-License-Identifier: Apache-2.0
/*
 * Object storage servers: registration, heartbeats, and who is up.
 *
 * Happy path: an OSS registers (its targets get their ids, are online, and their chains exist when
 * the answer leaves), then sends a heartbeat every second. Silent for CLUSTER_OFFLINE_NS it is
 * offline: its targets are marked so in the map, and nobody waits for it any more. Failure modes: a
 * change of the map that fails is tried again until the map says it or the server is back. A
 * heartbeat of somebody unknown, restarted or declared offline is told to register again, which
 * gives it the fences it may have missed. A server that was up when the last metadata server ended
 * gets the same time to come back to this one.
 */
#include <string.h>

#include "mds/cluster/cluster_int.h"
#include "proto/layout.h"

/* After a start servers have to notice and connect first. */
#define FIRST_CONTACT_NS (CLUSTER_OFFLINE_NS + 2 * NS_PER_S)
#define SAY_AGAIN_NS     NS_PER_S
#define NODES_MAX        4096u
#define TARGETS_MAX      1024u /* of one server */

struct cluster_node *cluster_node(struct cluster *c, uint32_t id)
{
    for (struct hmap_node *h = hmap_first(&c->nodes, hash_u64(id)); h; h = hmap_next(h)) {
        struct cluster_node *n = container_of(h, struct cluster_node, by_id);

        if (n->id == id)
            return n;
    }
    return NULL;
}

int cluster_node_add(struct cluster *c, uint32_t id, struct cluster_node **ret_node)
{
    struct cluster_node *n = cluster_node(c, id);

    if (!n) {
        n = mem_zalloc(sizeof *n);
        if (!n)
            return -ENOMEM;
        n->c = c;
        n->id = id;
        n->seen_ns = cluster_now_ns(c);
        hmap_insert(&c->nodes, &n->by_id, hash_u64(id));
        list_push_back(&c->node_list, &n->all);
    }
    *ret_node = n;
    return 0;
}

int cluster_nodes_load(struct cluster *c)
{
    const struct cluster_map *m = c->map;

    for (uint32_t i = 0; i < m->n_nodes; i++) {
        struct cluster_node *n;
        int rc;

        if (m->nodes[i].type != MAP_NODE_OSS)
            continue;
        rc = cluster_node_add(c, m->nodes[i].id, &n);
        if (rc < 0)
            return rc;
        for (uint32_t k = 0; k < m->n_targets; k++)
            n->waited_for |=
                m->targets[k].node == n->id && m->targets[k].state == MAP_TARGET_ONLINE;
    }
    return 0;
}

static void node_free(struct cluster_node *n)
{
    hmap_remove(&n->c->nodes, &n->by_id); /* first: calls that end with the peer look for it */
    if (n->peer)
        rpc_peer_destroy(n->peer);
    if (n->link)
        rpc_link_unref(n->link);
    mem_free(n->targets);
    mem_free(n);
}

void cluster_nodes_fini(struct cluster *c)
{
    struct list *l;

    while ((l = list_pop_front(&c->node_list)))
        node_free(list_entry(l, struct cluster_node, all));
}

void cluster_node_forget(struct cluster *c, uint32_t id)
{
    struct cluster_node *n = cluster_node(c, id);

    if (!n)
        return;
    list_remove(&n->all);
    node_free(n);
    cluster_fence_check(c); /* those that only it had not confirmed */
}

static void heard_over(struct cluster_node *n, struct rpc_link *l)
{
    n->seen_ns = cluster_now_ns(n->c);
    if (n->link == l)
        return;
    if (n->link)
        rpc_link_unref(n->link);
    n->link = rpc_link_ref(l);
}

/* ---- what a server says about its targets ---- */

static struct msg_bytes keep_text(char *to, size_t size, struct msg_bytes from)
{
    uint32_t n = MIN(from.len, (uint32_t)size - 1u);

    if (n)
        memcpy(to, from.data, n);
    to[n] = '\0';
    return (struct msg_bytes){to, n};
}

static void node_stats(struct cluster_node *n, uint32_t n_targets,
                       const struct msg_target_stat *stats)
{
    struct cluster_target *t = n->targets;

    if (n_targets > TARGETS_MAX)
        n_targets = TARGETS_MAX;
    if (n_targets != n->n_targets) {
        t = mem_array(n_targets + 1u, sizeof *t);
        if (!t)
            return; /* the figures of the last time */
        mem_free(n->targets);
        n->targets = t;
        n->n_targets = n_targets;
    }
    for (uint32_t i = 0; i < n_targets; i++) {
        t[i].stat = stats[i];
        t[i].stat.id = change_serving_id(n->c->map, n->id, &stats[i].uuid);
        t[i].stat.path = keep_text(t[i].path, sizeof t[i].path, stats[i].path);
        t[i].stat.pool = keep_text(t[i].pool, sizeof t[i].pool, stats[i].pool);
    }
}

/* ---- NODE_REGISTER ---- */

/* Not the same server again: one that is restarted has closed its connection, and one that hangs is
 * offline soon. */
static bool is_elsewhere(const struct rpc_req *req, const struct uuid *boot,
                         const struct rpc_link *link)
{
    const struct msg_register_req *msg = req->msg;

    return !uuid_equal(boot, &msg->boot) && link && link != req->from && rpc_link_alive(link);
}

/* The node of this identity, or of this name and address, when that is there, or comes with a
 * change before this one, and is not the one that asks: a copy of its disks, or it runs twice. 0:
 * none. */
static uint32_t another(const struct map_change *change, const struct cluster_map *m)
{
    struct cluster *c = change->c;
    uint32_t id = change_known_as(m, change->req->msg);
    const struct cluster_node *n = cluster_node(c, id);
    struct list *l;

    if (n && n->up && is_elsewhere(change->req, &n->boot, n->link))
        return id;
    list_for_each (l, &c->committing) {
        const struct map_change *e = list_entry(l, struct map_change, link);
        const struct msg_register_req *msg;

        if (e == change)
            break;
        if (!id || e->ops != change->ops || e->status != 0)
            continue;
        msg = e->req->msg;
        if (change_node_id(m, &msg->node) == id &&
            is_elsewhere(change->req, &msg->boot, e->req->from))
            return id;
    }
    return 0;
}

static int registration_apply(struct map_change *change, struct cluster_map *m)
{
    change->node = another(change, m);
    return change->node ? -EEXIST : change_register(m, change->req->msg);
}

/* *ret_node: NULL when nothing of it was taken. */
static int registration_node(struct map_change *r, struct cluster_node **ret_node)
{
    const struct msg_register_req *msg = r->req->msg;
    uint32_t id = change_node_id(r->c->map, &msg->node);
    int rc = 0;

    *ret_node = NULL;
    if (id)
        rc = cluster_node_add(r->c, id, ret_node);
    if (rc == 0 && *ret_node) {
        struct cluster_node *n = *ret_node;

        stat_gauge_add(&r->c->stats.nodes_up, !n->up);
        n->up = true;
        n->waited_for = false;
        n->say_again_ns = 0;
        n->boot = msg->boot;
        heard_over(n, r->req->from);
        n->acked = 0; /* until its next heartbeat: it may have lost this answer */
        node_stats(n, msg->n_targets, msg->targets);
    }
    return rc;
}

static int registration_reply(struct map_change *r, const struct cluster_node *n,
                              struct msg_register_rep *rep)
{
    const struct msg_register_req *msg = r->req->msg;
    struct cluster *c = r->c;
    uint32_t *ids = arena_alloc(&r->req->arena, (msg->n_targets + 1u) * sizeof *ids);
    uint32_t *instead_of = arena_alloc(&r->req->arena, (msg->n_targets + 1u) * sizeof *ids);

    if (!ids || !instead_of)
        return -ENOMEM;
    for (uint32_t i = 0; i < msg->n_targets; i++) {
        ids[i] = n ? change_serving_id(c->map, n->id, &msg->targets[i].uuid) : 0;
        instead_of[i] = change_instead_of(c->map, msg, i);
    }
    *rep = (struct msg_register_rep){.node_id = n ? n->id : 0,
                                     .n_targets = msg->n_targets,
                                     .target_ids = ids,
                                     .n_instead_of = msg->n_targets,
                                     .instead_of = instead_of,
                                     .map_epoch = c->map->epoch};
    rep->n_fences = fence_list_after(&c->fences, 0, MSG_ITEMS_MAX, &rep->fences, &rep->fence_seq);
    return 0;
}

static void say_another(const struct map_change *r)
{
    const struct cluster_node *n = cluster_node(r->c, r->node);

    LOG_WARN("cluster", "%s may not register: node %u is connected, as %s",
             rpc_link_describe(r->req->from), r->node,
             n && n->link ? rpc_link_describe(n->link) : "another one");
}

static void registration_done(struct map_change *r, int status)
{
    const struct msg_register_req *msg = r->req->msg;
    struct cluster *c = r->c;
    struct msg_register_rep rep;
    struct cluster_node *n;

    if (status == 0)
        status = registration_node(r, &n);
    if (status == 0)
        status = registration_reply(r, n, &rep);
    if (status == 0)
        cluster_refused_note(c, msg);
    if (status == 0 && n) {
        stat_inc(&c->stats.registered);
        LOG_INFO("cluster", "%s registers as node %u with %u targets",
                 rpc_link_describe(r->req->from), n->id, msg->n_targets);
    } else if (status == -EEXIST && r->node) {
        say_another(r);
    } else if (status < 0) {
        LOG_WARN("cluster", "%s may not register: %s", rpc_link_describe(r->req->from),
                 status == -ENOENT ? "there is no such pool" : err_text(status));
    }
    rpc_reply(r->req, status, status ? NULL : &rep);
    if (status == 0 && c->mds->gc_ops && !c->stopping)
        c->mds->gc_ops->target_up(c->mds);
}

static const struct map_change_ops registration = {registration_apply, registration_done};

void cluster_serve_register(struct rpc_req *req)
{
    struct cluster *c = cluster_of(req->handler_arg);
    const struct msg_register_req *msg = req->msg;
    bool too_many = msg->n_targets > TARGETS_MAX ||
                    (c->nodes.count >= NODES_MAX && change_known_as(c->map, msg) == 0);

    cluster_change_asked(req, too_many ? -AIFS_EBUSY_SERVER : 0, false, &registration);
}

/* ---- HEARTBEAT ---- */

/* Something that was refused would be taken by now. */
static bool has_new_target(const struct cluster *c, const struct cluster_node *n,
                           const struct msg_heartbeat_req *msg)
{
    const struct map_node *mn = map_node(c->map, n->id);
    struct msg_bytes addresses[MAP_ADDRS];
    struct msg_register_req as = {
        .addresses = addresses, .n_targets = msg->n_targets, .targets = msg->targets};

    if (!mn)
        return false;
    as.node = mn->uuid;
    for (; as.n_addresses < mn->n_addresses; as.n_addresses++) {
        const char *text = mn->addresses[as.n_addresses];

        addresses[as.n_addresses] = (struct msg_bytes){text, (uint32_t)strlen(text)};
    }
    for (uint32_t i = 0; i < msg->n_targets; i++) {
        if (!change_target_id(c->map, &msg->targets[i].uuid) &&
            !change_instead_of(c->map, &as, i) && change_pool_exists(c->map, &msg->targets[i]))
            return true;
    }
    return false;
}

void cluster_serve_heartbeat(struct rpc_req *req)
{
    struct mds *m = req->handler_arg;
    struct cluster *c = cluster_of(m);
    const struct msg_heartbeat_req *msg = req->msg;
    struct cluster_node *n = cluster_node(c, msg->node_id);
    struct msg_heartbeat_rep rep = {.map_epoch = c->map->epoch};

    if (!n || !n->up || !uuid_equal(&n->boot, &msg->boot)) {
        rep.register_again = true;
    } else {
        heard_over(n, req->from);
        if (msg->fence_seq <= fence_list_last(&c->fences))
            cluster_fence_acked(n, msg->fence_seq);
        node_stats(n, msg->n_targets, msg->targets);
        rep.register_again = has_new_target(c, n, msg);
        rep.n_fences = fence_list_after(&c->fences, msg->fence_seq, MSG_ITEMS_MAX, &rep.fences,
                                        &rep.fence_seq);
    }
    rpc_reply(req, 0, &rep);
}

/* ---- silence ---- */

/* Already, or with a change before this one. */
static bool is_back(const struct map_change *change, const struct cluster_map *m)
{
    const struct cluster_node *n = cluster_node(change->c, change->node);
    struct list *l;

    if (n && n->up)
        return true;
    list_for_each (l, &change->c->committing) {
        const struct map_change *e = list_entry(l, struct map_change, link);
        const struct msg_register_req *msg;

        if (e == change)
            break;
        if (e->ops != &registration || e->status != 0)
            continue;
        msg = e->req->msg;
        if (change_node_id(m, &msg->node) == change->node)
            return true;
    }
    return false;
}

static int offline_apply(struct map_change *change, struct cluster_map *m)
{
    return is_back(change, m) ? CHANGE_NONE : change_offline(m, change->node);
}

static void offline_done(struct map_change *change, int status)
{
    struct cluster_node *n = cluster_node(change->c, change->node);

    if (status == 0 || !n || n->up)
        return;
    LOG_WARN("cluster", "node %u is offline, but the map does not say so yet: %s", change->node,
             err_name(status));
    n->say_again_ns = cluster_now_ns(change->c) + SAY_AGAIN_NS;
}

static const struct map_change_ops offline = {offline_apply, offline_done};

static void node_offline(struct cluster *c, struct cluster_node *n)
{
    const struct map_node *mn = map_node(c->map, n->id);
    struct map_change *change = cluster_change_new(c, &offline);

    if (!change)
        return; /* the tick comes again */
    if (!n->say_again_ns) {
        LOG_WARN("cluster", "node %u (%s) is silent: offline", n->id, mn ? mn->alias : "?");
        stat_inc(&c->stats.offline);
    }
    stat_gauge_add(&c->stats.nodes_up, -(int64_t)n->up);
    n->up = false;
    n->waited_for = false;
    n->say_again_ns = 0;
    change->node = n->id;
    cluster_change(change);
    cluster_fence_check(c);
}

static bool is_due(const struct cluster_node *n, uint64_t now_ns)
{
    uint64_t limit_ns = n->up ? CLUSTER_OFFLINE_NS : FIRST_CONTACT_NS;

    if (n->up || n->waited_for)
        return now_ns > n->seen_ns + limit_ns;
    return n->say_again_ns && now_ns >= n->say_again_ns;
}

void cluster_node_tick(struct cluster *c, uint64_t now_ns)
{
    struct list *l;

    list_for_each (l, &c->node_list) {
        struct cluster_node *n = list_entry(l, struct cluster_node, all);

        if (is_due(n, now_ns))
            node_offline(c, n);
        else if (n->up && !n->pushing)
            cluster_fence_send(n);
    }
}

bool cluster_target_fenced(struct mds *m, uint32_t target, uint64_t fence)
{
    struct cluster *c = cluster_of(m);
    const struct map_target *t = map_target(c->map, target);
    const struct cluster_node *n = t ? cluster_node(c, t->node) : NULL;

    return cluster_target_up(m, target) && n->acked >= fence;
}

bool cluster_target_up(struct mds *m, uint32_t target)
{
    struct cluster *c = cluster_of(m);
    const struct map_target *t = map_target(c->map, target);
    const struct cluster_node *n = t ? cluster_node(c, t->node) : NULL;

    return n && n->up && t->state == MAP_TARGET_ONLINE;
}

bool cluster_server_up(struct mds *m, uint32_t node)
{
    const struct cluster_node *n = cluster_node(cluster_of(m), node);

    return n && n->up;
}

bool cluster_layout_up(struct mds *m, const struct msg_layout *l)
{
    const struct cluster_map *map = cluster_of(m)->map;

    if (l->table_len == 0 || layout_check(l) < 0)
        return true; /* it cannot have any */
    for (uint32_t i = 0; i < l->stripe_count; i++) {
        const struct map_chain *c = layout_chain(l, map, i);

        for (uint32_t k = 0; c && k < c->n_targets; k++)
            if (!map_target(map, c->targets[k])->given_up && !cluster_target_up(m, c->targets[k]))
                return false;
    }
    return true;
}
