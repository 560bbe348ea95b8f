// SPDX-License-Identifier: Apache-2.0
/* Object storage servers that the test plays: see rig.h. */
#include <stdio.h>

#include "tests/component/mds_server/rig_int.h"

static struct rig_note *note(struct rig_oss *o, unsigned op)
{
    struct rig_note *n = &o->notes[o->n_notes % RIG_NOTES];

    o->n_notes++;
    *n = (struct rig_note){.op = (uint16_t)op};
    return n;
}

static bool holds(struct rig_oss *o, struct rpc_req *req)
{
    if (!o->mute)
        return false;
    list_push_back(&o->held, &req->link);
    return true;
}

static void on_fence(struct rpc_req *req)
{
    struct rig_oss *o = req->handler_arg;
    const struct msg_fence_req *m = req->msg;
    struct rig_note *n = note(o, RPC_OP_OSS_FENCE);

    n->seq = m->fence_seq;
    n->n = m->n_fences;
    n->ino = m->n_fences ? m->fences[m->n_fences - 1].session : 0;
    if (holds(o, req))
        return;
    if (!o->fail)
        o->fence_seq = MAX(o->fence_seq, m->fence_seq);
    rpc_reply(req, o->fail, NULL);
}

static void on_cut(struct rpc_req *req)
{
    struct rig_oss *o = req->handler_arg;
    const struct msg_cut_req *m = req->msg;
    struct rig_note *n = note(o, RPC_OP_OSS_TRUNCATE);

    n->target = m->target;
    n->ino = m->ino;
    n->seq = m->truncate_gen;
    n->size = m->start;
    if (!holds(o, req))
        rpc_reply(req, o->fail, NULL);
}

static void on_destroy(struct rpc_req *req)
{
    struct rig_oss *o = req->handler_arg;
    const struct msg_destroy_req *m = req->msg;

    for (uint32_t i = 0; i < m->n_inos; i++) {
        struct rig_note *n = note(o, RPC_OP_OSS_DESTROY);

        n->target = m->target;
        n->ino = m->inos[i];
        n->n = m->n_inos;
    }
    if (!holds(o, req))
        rpc_reply(req, o->fail, NULL);
}

static void on_seal(struct rpc_req *req)
{
    struct rig_oss *o = req->handler_arg;
    const struct msg_seal_req *m = req->msg;
    struct msg_seal_rep rep = {.high_water = o->high_water};
    struct rig_note *n = note(o, RPC_OP_OSS_SEAL);

    n->target = m->target;
    n->ino = m->ino;
    n->seq = m->truncate_gen;
    if (!holds(o, req))
        rpc_reply(req, o->fail, o->fail ? NULL : &rep);
}

void rig_oss_init(struct rig *r, unsigned i)
{
    struct rig_oss *o = &r->oss[i];
    const char *mds[] = {"loop:mds"};
    char name[16];

    *o = (struct rig_oss){.rig = r, .index = i};
    list_init(&o->held);
    o->node.b[0] = (uint8_t)(10 + i);
    o->boot.b[0] = 1;
    snprintf(name, sizeof name, "oss%u", i + 1);
    rig_node(r, &r->key, name, &o->node, &o->rpc);
    rpc_node_handle(o->rpc, RPC_OP_OSS_FENCE, on_fence, o);
    rpc_node_handle(o->rpc, RPC_OP_OSS_TRUNCATE, on_cut, o);
    rpc_node_handle(o->rpc, RPC_OP_OSS_DESTROY, on_destroy, o);
    rpc_node_handle(o->rpc, RPC_OP_OSS_SEAL, on_seal, o);
    snprintf(name, sizeof name, "loop:oss%u", i + 1);
    rig_listen(o->rpc, name);
    ck_ok(rpc_peer_create(o->rpc, mds, 1, NULL, NULL, &o->mds));
}

void rig_oss_fini(struct rig_oss *o)
{
    rpc_peer_destroy(o->mds);
    rig_close_node(o->rig, o->rpc);
}

void rig_oss_release(struct rig *r, unsigned i)
{
    struct list *l;

    while ((l = list_pop_front(&r->oss[i].held))) {
        struct rpc_req *req = list_entry(l, struct rpc_req, link);
        struct msg_seal_rep seal = {.high_water = r->oss[i].high_water};

        rpc_reply(req, 0, req->header.op == RPC_OP_OSS_SEAL ? &seal : NULL);
    }
}

/* ---- registration and heartbeats ---- */

static void stats_of(struct rig_oss *o, struct msg_target_stat *stats)
{
    uint64_t unit = o->roomy ? GIB : 1;

    for (uint32_t i = 0; i < o->n_targets; i++)
        stats[i] = (struct msg_target_stat){.id = o->target_id[i],
                                            .uuid = o->target[i],
                                            .path = str(o->path ? o->path : "/data"),
                                            .pool = o->pool ? str(o->pool) : str(""),
                                            .total_bytes = 1000 * unit,
                                            .free_bytes = 600 * unit,
                                            .used_bytes = 300 * unit,
                                            .chunks = o->chunks};
}

struct registration {
    struct rig_oss *oss;
    struct msg_target_stat stats[2];
    char alias[16], address[16];
    struct msg_bytes at;
    struct msg_register_req req;
    struct rig_call call;
};

static void register_begin(struct rig_oss *o, uint32_t n_targets, struct registration *g)
{
    unsigned as = o->as ? o->as : o->index + 1;
    unsigned whose = o->copies ? o->copies - 1u : o->index;

    o->n_targets = n_targets;
    o->node.b[1] = o->disks;
    for (uint32_t k = 0; k < n_targets; k++) {
        o->target[k].b[0] = (uint8_t)(100 + whose);
        o->target[k].b[1] = (uint8_t)(k + 1);
        o->target[k].b[2] = o->disks;
    }
    o->alive = false;
    *g = (struct registration){.oss = o,
                               .req = {.node = o->node,
                                       .boot = o->boot,
                                       .n_addresses = 1,
                                       .addresses = &g->at,
                                       .n_targets = o->n_targets,
                                       .targets = g->stats}};
    stats_of(o, g->stats);
    snprintf(g->alias, sizeof g->alias, "oss%u", as);
    snprintf(g->address, sizeof g->address, "loop:oss%u", as);
    g->at = str(g->address);
    g->req.alias = str(g->alias);
    rpc_call_init(&g->call.c, RPC_OP_NODE_REGISTER, &g->req, rig_call_done, &g->call);
    g->call.c.flags = RPC_CALL_WAIT;
    g->call.used = true;
    rpc_peer_call(o->mds, &g->call.c);
}

static int register_end(struct registration *g)
{
    const struct msg_register_rep *rep;
    struct rig_oss *o = g->oss;

    ck_assert(rig_until(o->rig, 5000, rig_is_done, &g->call));
    if (g->call.status == 0) {
        rep = g->call.c.rep;
        ck_assert_uint_eq(rep->n_targets, o->n_targets);
        o->node_id = rep->node_id;
        for (uint32_t i = 0; i < o->n_targets; i++)
            o->target_id[i] = rep->target_ids[i];
        o->fence_seq = rep->fence_seq;
        o->registrations++;
    }
    rig_forget(&g->call);
    o->alive = g->call.status == 0;
    o->beat_ns = o->rig->clock.now_ns;
    return g->call.status;
}

int rig_oss_try(struct rig *r, unsigned i, uint32_t n_targets)
{
    struct registration g;

    register_begin(&r->oss[i], n_targets, &g);
    return register_end(&g);
}

void rig_oss_try_together(struct rig *r, const unsigned *which, unsigned n, int *ret_status)
{
    struct registration g[RIG_OSS];

    for (unsigned i = 0; i < n; i++)
        register_begin(&r->oss[which[i]], 1, &g[i]);
    for (unsigned i = 0; i < n; i++)
        ret_status[i] = register_end(&g[i]);
}

void rig_oss_try_slowly(struct rig *r, const unsigned *which, unsigned n, uint64_t ms,
                        bool (*until)(void *arg), void *arg, int *ret_status)
{
    struct registration g[RIG_OSS];

    for (unsigned i = 0; i < n; i++)
        register_begin(&r->oss[which[i]], 1, &g[i]);
    (void)rig_run(r, until, arg);
    clock_virtual_advance(&r->clock, ms * NS_PER_MS);
    for (unsigned i = 0; i < n; i++)
        ret_status[i] = register_end(&g[i]);
}

void rig_oss_start(struct rig *r, unsigned i, uint32_t n_targets)
{
    ck_ok(rig_oss_try(r, i, n_targets));
}

void rig_oss_restart(struct rig *r, unsigned i)
{
    r->oss[i].boot.b[1]++;
    rig_oss_start(r, i, r->oss[i].n_targets);
}

static void beat_done(struct rpc_call *c, int status)
{
    struct rig_oss *o = c->arg;
    const struct msg_heartbeat_rep *rep = c->rep;
    bool again = status == 0 && rep->register_again;

    if (status == 0 && !again)
        o->fence_seq = MAX(o->fence_seq, rep->fence_seq);
    rpc_call_fini(c);
    o->beating = false;
    if (again)
        o->node_id = 0; /* registers with the next tick */
}

void rig_oss_tick(struct rig_oss *o)
{
    static struct msg_target_stat stats[RIG_OSS][2];
    static struct msg_heartbeat_req req[RIG_OSS];

    if (!o->alive || o->beating || o->rig->clock.now_ns < o->beat_ns + NS_PER_S)
        return;
    if (o->node_id == 0) {
        rig_oss_start(o->rig, o->index, o->n_targets);
        return;
    }
    o->beat_ns = o->rig->clock.now_ns;
    stats_of(o, stats[o->index]);
    req[o->index] = (struct msg_heartbeat_req){.node_id = o->node_id,
                                               .boot = o->boot,
                                               .fence_seq = o->fence_seq,
                                               .n_targets = o->n_targets,
                                               .targets = stats[o->index]};
    rpc_call_init(&o->beat, RPC_OP_HEARTBEAT, &req[o->index], beat_done, o);
    o->beat.flags = RPC_CALL_ONCE;
    o->beating = true;
    rpc_peer_call(o->mds, &o->beat);
}

/* ---- what it was asked ---- */

unsigned rig_oss_count(const struct rig_oss *o, unsigned op, uint64_t ino)
{
    unsigned n = 0;

    for (unsigned i = 0; i < MIN(o->n_notes, (unsigned)RIG_NOTES); i++)
        n += o->notes[i].op == op && (ino == 0 || o->notes[i].ino == ino);
    return n;
}

const struct rig_note *rig_oss_last(const struct rig_oss *o, unsigned op)
{
    for (unsigned i = MIN(o->n_notes, (unsigned)RIG_NOTES); i-- > 0;) {
        if (o->notes[i].op == op)
            return &o->notes[i];
    }
    return NULL;
}

int rig_oss_order(const struct rig_oss *o, unsigned op)
{
    for (unsigned i = 0; i < MIN(o->n_notes, (unsigned)RIG_NOTES); i++) {
        if (o->notes[i].op == op)
            return (int)i;
    }
    return -1;
}
