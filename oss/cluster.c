// SPDX-License-Identifier: Apache-2.0
/*
 * The server's place in the cluster: it registers with the metadata server (name, addresses,
 * targets), takes the numbers of its targets and the fence list, and only then serves clients; a
 * heartbeat every second carries the targets' figures and the number of the last fence behind which
 * nothing is under way any more, and brings back the map's epoch and new fences.
 *
 * link up -> empty directories formatted -> NODE_REGISTER -> fences durable, target numbers stored
 * -> ready -> HEARTBEAT ... The metadata server may ask for a new registration at any time. While
 * it is away nothing changes: clients go on. A server that the cluster has never taken and whose
 * directories are all away does not register: it would be a second one, without targets.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "oss/oss.h"
#include "proto/map.h"

#define HEARTBEAT_NS (1 * NS_PER_S)
#define CALL_TIMEOUT (5 * NS_PER_S)
#define MDS_MAX      8u

struct oss_cluster {
    struct oss *oss;
    struct rpc_peer *mds;
    struct reactor_timer timer;
    struct rpc_call call; /* one at a time: registration or heartbeat */
    bool calling, want_register, registered;
    uint32_t node_id;
    char *addresses; /* text that mds_list points into */
    char advertise[MAP_ADDRS][MAP_ADDR_BYTES];
    struct msg_bytes advertise_bytes[MAP_ADDRS];
    unsigned n_advertise;
    struct msg_target_stat stats[OSS_TARGETS_MAX];
    uint32_t told[OSS_TARGETS_MAX]; /* number of the target of each of stats */
    uint32_t registered_of;         /* how many targets there were at the registration */
    struct msg_register_req reg;
    struct msg_heartbeat_req beat;
    uint64_t epoch;
};

/* It was refused because another server has it. Whenever that one was down the next registration,
 * for whatever reason, would have it served here. */
static bool is_anothers(const struct oss_target *t)
{
    return t->not_taken && chunk_store_super(t->store)->target_id;
}

/* Of those that are away, or another server's, nothing is told: the former count as missing. */
static uint32_t cluster_stats(struct oss_cluster *c)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->oss->n_targets; i++) {
        if (c->oss->targets[i].away || is_anothers(&c->oss->targets[i]))
            continue;
        oss_target_stat(&c->oss->targets[i], &c->stats[n]);
        c->told[n++] = i;
    }
    return n;
}

static void cluster_epoch(struct oss_cluster *c, uint64_t epoch)
{
    if (epoch <= c->epoch)
        return;
    c->epoch = epoch;
    rpc_node_set_map_epoch(c->oss->rpc, epoch);
}

static void cluster_turn(struct oss_cluster *c, uint64_t in_ns)
{
    struct reactor *r = c->oss->reactor;

    if (!c->oss->stopping)
        reactor_timer_start(r, &c->timer, reactor_now_ns(r) + in_ns);
}

static void cluster_retry(struct oss_cluster *c)
{
    cluster_turn(c, HEARTBEAT_NS);
}

/* ---- registration ---- */

/* It is not served. Said once: a server that has nothing else asks once a second. */
static void target_refused(struct oss_target *t, uint32_t instead_of)
{
    if (instead_of && instead_of != t->instead_of &&
        instead_of == chunk_store_super(t->store)->target_id)
        LOG_ERROR(
            "oss",
            "%s: this is target %u, which was given up: it is not served again. What is on it "
            "belongs to nothing any more; an empty directory becomes a new target when this server "
            "starts again",
            chunk_store_path(t->store), instead_of);
    else if (instead_of && instead_of != t->instead_of)
        LOG_ERROR(
            "oss",
            "%s: target %u lived here and is not there: a new one in its place is refused. Is "
            "its disk mounted? Mount it and start this server again; if it is lost: "
            "aifs-admin target replace %u",
            chunk_store_path(t->store), instead_of, instead_of);
    t->instead_of = instead_of;
}

/* One that has a number from before is another server's now: it was copied, or that one is not
 * known to have lost it. */
static void target_not_taken(struct oss_target *t, bool refused)
{
    bool not_taken = !t->id && !refused;
    uint32_t was = chunk_store_super(t->store)->target_id;

    if (not_taken && !t->not_taken && was)
        LOG_ERROR(
            "oss",
            "%s: another server serves target %u: it is not served here. Is this a copy of "
            "it? If it was moved here: start this server again when the other one is down, or "
            "does not have it any more",
            chunk_store_path(t->store), was);
    else if (not_taken && !t->not_taken)
        LOG_ERROR("oss",
                  "%s: the metadata server does not take it: is there a pool %s (aifs-admin pool "
                  "list)?",
                  chunk_store_path(t->store), t->pool);
    t->not_taken = not_taken;
}

static int register_targets(struct oss_cluster *c, const struct msg_register_rep *rep)
{
    struct oss *o = c->oss;
    int rc;

    if (rep->n_targets != c->reg.n_targets) {
        LOG_ERROR("oss", "the metadata server answered for %u targets, not %u", rep->n_targets,
                  c->reg.n_targets);
        return -AIFS_EPROTO;
    }
    for (uint32_t i = 0; i < rep->n_targets; i++) {
        struct oss_target *t = &o->targets[c->told[i]];
        uint32_t id = rep->target_ids[i];

        rc = id ? chunk_store_set_id(t->store, id) : 0;
        if (rc)
            return rc;
        t->id = id;
        target_refused(t, i < rep->n_instead_of ? rep->instead_of[i] : 0);
        target_not_taken(t, t->instead_of != 0);
    }
    return 0;
}

static void register_fenced(void *arg, int status)
{
    struct oss_cluster *c = arg;
    struct oss *o = c->oss;

    c->calling = false;
    if (status) {
        LOG_ERROR("oss", "the fence list cannot be stored: %s", err_text(status));
        cluster_retry(c);
        return;
    }
    c->registered = c->node_id != 0; /* else nothing of this server was taken */
    if (c->registered && !o->ready)
        LOG_INFO("oss", "registered as node %u with %u targets", c->node_id, c->reg.n_targets);
    o->ready = c->registered;
    if (c->registered_of != o->n_targets) /* one was added meanwhile */
        c->want_register = true;
    if (c->want_register && c->registered)
        cluster_turn(c, 0); /* not within the answer to this one */
    else
        cluster_retry(c);
}

static void register_done(struct rpc_call *call, int status)
{
    struct oss_cluster *c = call->arg;
    const struct msg_register_rep *rep = call->rep;

    if (!status)
        status = register_targets(c, rep);
    if (status) {
        if (status != -AIFS_ECANCELLED)
            LOG_WARN("oss", "registration with the metadata server: %s",
                     status == -EOPNOTSUPP ? "who answers is none: see oss.mds"
                     : status == -EEXIST
                         ? "another server with this one's identity, or name and address, is "
                           "connected: does it run twice, or are its targets copies?"
                         : err_text(status));
        rpc_call_fini(call);
        c->calling = false;
        c->want_register = true;
        cluster_retry(c);
        return;
    }
    c->node_id = rep->node_id;
    cluster_epoch(c, rep->map_epoch);
    oss_fences_take(c->oss, rep->fences, rep->n_fences, rep->fence_seq, register_fenced, c);
    rpc_call_fini(call); /* the fences have been copied */
}

static void cluster_register(struct oss_cluster *c)
{
    struct oss *o = c->oss;

    c->want_register = false;
    c->calling = true;
    c->registered_of = o->n_targets;
    c->reg = (struct msg_register_req){
        .node = o->node,
        .boot = o->boot,
        .alias = {o->name, (uint32_t)strlen(o->name)},
        .version = {AIFS_VERSION, sizeof AIFS_VERSION - 1},
        .n_addresses = c->n_advertise,
        .addresses = c->advertise_bytes,
        .n_targets = cluster_stats(c),
        .targets = c->stats,
    };
    rpc_call_init(&c->call, RPC_OP_NODE_REGISTER, &c->reg, register_done, c);
    c->call.timeout_ns = CALL_TIMEOUT;
    c->call.flags = RPC_CALL_ONCE;
    rpc_peer_call(c->mds, &c->call);
}

/* ---- heartbeats ---- */

static void beat_fenced(void *arg, int status)
{
    struct oss_cluster *c = arg;

    (void)status; /* not stored: they come again with the next one */
    c->calling = false;
    cluster_retry(c);
}

static void beat_done(struct rpc_call *call, int status)
{
    struct oss_cluster *c = call->arg;
    const struct msg_heartbeat_rep *rep = call->rep;

    if (status) {
        if (status != -AIFS_ECANCELLED)
            LOG_DEBUG("oss", "heartbeat: %s", err_text(status));
        rpc_call_fini(call);
        c->calling = false;
        cluster_retry(c);
        return;
    }
    cluster_epoch(c, rep->map_epoch);
    if (rep->register_again)
        c->want_register = true;
    if (oss_fences_drain(c->oss, rep->fence_seq))
        beat_fenced(c, 0); /* the same again: they are not acknowledged yet */
    else
        oss_fences_take(c->oss, rep->fences, rep->n_fences, rep->fence_seq, beat_fenced, c);
    rpc_call_fini(call);
}

static void cluster_beat(struct oss_cluster *c)
{
    struct oss *o = c->oss;

    c->calling = true;
    c->beat = (struct msg_heartbeat_req){
        .node_id = c->node_id,
        .boot = o->boot,
        .fence_seq = o->fence_seq,
        .n_targets = cluster_stats(c),
        .targets = c->stats,
    };
    rpc_call_init(&c->call, RPC_OP_HEARTBEAT, &c->beat, beat_done, c);
    c->call.timeout_ns = CALL_TIMEOUT;
    c->call.flags = RPC_CALL_ONCE;
    rpc_peer_call(c->mds, &c->call);
}

/* The cluster does not know it, and it has nothing to tell of itself: what it had in the place of
 * its targets was refused and is away, most likely because a disk was mounted over it. Who it is
 * stands on that disk and is read at the next start; until then it would be another server. */
static bool is_nobody(const struct oss_cluster *c)
{
    bool all_away = c->oss->n_targets > 0;

    for (uint32_t i = 0; i < c->oss->n_targets; i++)
        all_away = all_away && c->oss->targets[i].away;
    return all_away && !c->node_id;
}

static void cluster_next(struct oss_cluster *c)
{
    if (c->calling || c->oss->stopping)
        return;
    if (!rpc_peer_is_up(c->mds))
        cluster_retry(c);
    else if (oss_targets_format_next(c->oss))
        cluster_turn(c, 0); /* each takes its time */
    else if (is_nobody(c))
        cluster_retry(c);
    else if (c->want_register || !c->registered)
        cluster_register(c);
    else
        cluster_beat(c);
}

static void cluster_tick(struct reactor_timer *t)
{
    struct oss_cluster *c = container_of(t, struct oss_cluster, timer);

    oss_sessions_tick(c->oss);
    oss_targets_look(c->oss);
    cluster_next(c);
}

void oss_cluster_register(struct oss *o)
{
    if (!o->cluster)
        return;
    o->cluster->want_register = true;
    cluster_next(o->cluster);
}

/* ---- the link ---- */

static void mds_up(struct rpc_peer *p, struct rpc_link *l, bool rebooted, void *arg)
{
    struct oss_cluster *c = arg;

    (void)rebooted;
    LOG_INFO("oss", "connected to the metadata server: %s", rpc_link_describe(l));
    c->want_register = true;
    rpc_peer_ready(p);
    cluster_next(c);
}

static void mds_down(struct rpc_peer *p, int status, void *arg)
{
    struct oss_cluster *c = arg;

    (void)p;
    LOG_WARN("oss", "no connection to the metadata server: %s", err_text(status));
    if (!c->oss->stopping && !c->calling)
        cluster_retry(c);
}

static int advertise_one(struct oss_cluster *c, const char *host, unsigned port)
{
    const char *colon = strrchr(host, ':');
    bool has_port = colon && host[strlen(host) - 1] != ']';
    char *text = c->advertise[c->n_advertise];
    int n = has_port ? snprintf(text, MAP_ADDR_BYTES, "%s", host)
                     : snprintf(text, MAP_ADDR_BYTES, "%s:%u", host, port);

    if (n >= (int)MAP_ADDR_BYTES) {
        LOG_ERROR("oss", "oss.advertise: \"%s\" is longer than %u bytes", host, MAP_ADDR_BYTES - 1);
        return -AIFS_ECONFIG;
    }
    c->advertise_bytes[c->n_advertise++] = (struct msg_bytes){text, (uint32_t)n};
    LOG_INFO("oss", "advertised as %s", text);
    return 0;
}

static int advertise_list(struct oss_cluster *c, const char *want)
{
    AUTO_FREE char *list = mem_strdup(want);
    char *save = NULL;
    int rc = list ? 0 : -ENOMEM;

    for (char *t = list ? strtok_r(list, ", ", &save) : NULL; t && rc == 0;
         t = strtok_r(NULL, ", ", &save)) {
        if (c->n_advertise == MAP_ADDRS) {
            LOG_ERROR("oss", "oss.advertise: more than %u addresses", MAP_ADDRS);
            return -AIFS_ECONFIG;
        }
        rc = advertise_one(c, t, c->oss->port);
    }
    return rc;
}

/* Where others find us: as configured, else the listening host, else this machine's name. */
static int cluster_advertise(struct oss_cluster *c)
{
    struct oss *o = c->oss;
    const char *want = conf_str(o->conf, "oss.advertise"),
               *listen = conf_str(o->conf, "oss.listen");
    const char *colon = strrchr(listen, ':');
    char host[NET_ADDR_BYTES] = "";
    int rc = want ? advertise_list(c, want) : 0;

    if (rc || c->n_advertise)
        return rc;
    snprintf(host, sizeof host, "%.*s", colon ? (int)(colon - listen) : 0, listen);
    if (!*host || !strcmp(host, "0.0.0.0") || !strcmp(host, "[::]"))
        gethostname(host, sizeof host - 1);
    return advertise_one(c, host, o->port);
}

int oss_cluster_start(struct oss *o)
{
    static const struct rpc_peer_events events = {mds_up, mds_down};
    struct oss_cluster *c = mem_zalloc(sizeof *c);
    const char *list[MDS_MAX];
    char *save = NULL;
    unsigned n = 0;
    int rc;

    if (!c)
        return -ENOMEM;
    c->oss = o;
    o->cluster = c;
    reactor_timer_init(&c->timer, cluster_tick);
    rc = cluster_advertise(c);
    if (rc)
        return rc;
    c->addresses = mem_strdup(conf_str(o->conf, "oss.mds"));
    if (!c->addresses)
        return -ENOMEM;
    for (char *t = strtok_r(c->addresses, ", ", &save); t && n < MDS_MAX;
         t = strtok_r(NULL, ", ", &save))
        list[n++] = t;
    if (!n)
        return -AIFS_ECONFIG;
    return rpc_peer_create(o->rpc, list, n, &events, c, &c->mds);
}

void oss_cluster_stop(struct oss *o)
{
    struct oss_cluster *c = o->cluster;

    if (!c)
        return;
    reactor_timer_cancel(o->reactor, &c->timer);
    if (c->mds)
        rpc_peer_destroy(c->mds);
    c->mds = NULL;
}

void oss_cluster_free(struct oss *o)
{
    if (!o->cluster)
        return;
    reactor_timer_cancel(o->reactor, &o->cluster->timer);
    mem_free(o->cluster->addresses);
    mem_free(o->cluster);
    o->cluster = NULL;
}
