// SPDX-License-Identifier: Apache-2.0
/* Clients that the test plays: see rig.h. */
#include <stdio.h>

#include "mds/store/key_fmt.h"
#include "tests/component/mds_server/rig_int.h"

static struct rig_note *note(struct rig_client *c, unsigned op)
{
    struct rig_note *n = &c->notes[c->n_notes % RIG_NOTES];

    c->n_notes++;
    *n = (struct rig_note){.op = (uint16_t)op};
    return n;
}

static void given(struct rpc_call *call, int status)
{
    struct rig_give *g = call->arg;

    (void)status;
    rpc_call_fini(call);
    g->busy = false;
}

void rig_give(struct rig *r, unsigned i, uint64_t ino, enum msg_lease keep, uint64_t seq,
              uint64_t size)
{
    struct rig_client *c = &r->client[i];
    struct rig_give *g = c->gives;

    while (g->busy)
        ck_assert(++g < c->gives + RIG_GIVES);
    g->busy = true;
    g->req = (struct msg_lease_req){.ino = ino,
                                    .lease = keep,
                                    .lease_seq = seq,
                                    .has_size = size != 0,
                                    .size = size,
                                    .mtime = {.sec = 1600000000}};
    rpc_call_init(&g->call, RPC_OP_LEASE_RELEASE, &g->req, given, g);
    g->call.session = c->session;
    g->call.generation = c->generation;
    rpc_peer_call(c->mds, &g->call);
}

static void on_recall(struct rpc_req *req)
{
    struct rig_client *c = req->handler_arg;
    const struct msg_recall_req *m = req->msg;
    struct rig_note *n = note(c, RPC_OP_RECALL);
    uint64_t ino = m->ino, seq = m->lease_seq;
    enum msg_lease keep = m->keep;

    n->ino = ino;
    n->seq = seq;
    n->n = keep;
    rpc_reply(req, 0, NULL);
    if (c->release)
        rig_give(c->rig, c->index, ino, keep, seq, c->release_size);
}

static void on_invalidate(struct rpc_req *req)
{
    struct rig_client *c = req->handler_arg;
    const struct msg_invalidate_req *m = req->msg;
    struct rig_note *n = note(c, RPC_OP_INVALIDATE);

    n->ino = m->ino;
    n->n = m->whole;
    n->size = m->name.len;
    n->owner = m->owner;
    if (c->mute)
        list_push_back(&c->held, &req->link);
    else
        rpc_reply(req, 0, NULL);
}

void rig_client_answer(struct rig *r, unsigned i)
{
    struct rig_client *c = &r->client[i];
    struct list *l;

    c->mute = c->glimpse_mute = false;
    while ((l = list_pop_front(&c->held))) {
        struct rpc_req *req = list_entry(l, struct rpc_req, link);

        rpc_reply(req, 0, req->header.op == RPC_OP_GLIMPSE ? &(struct msg_glimpse_rep){0} : NULL);
    }
}

static void on_glimpse(struct rpc_req *req)
{
    struct rig_client *c = req->handler_arg;
    const struct msg_ino_req *m = req->msg;
    struct msg_glimpse_rep rep = {
        .held = true, .size = c->glimpse_size, .mtime = {.sec = 1650000000}};

    note(c, RPC_OP_GLIMPSE)->ino = m->ino;
    if (c->glimpse_mute)
        list_push_back(&c->held, &req->link);
    else
        rpc_reply(req, 0, &rep);
}

static void on_map(struct rpc_req *req)
{
    struct rig_client *c = req->handler_arg;
    const struct msg_map_req *m = req->msg;

    note(c, RPC_OP_MAP_CHANGED);
    c->map_epoch = m->epoch;
    rpc_reply(req, 0, NULL);
}

static void on_lock_wake(struct rpc_req *req)
{
    struct rig_client *c = req->handler_arg;
    const struct msg_lock_wait *m = req->msg;
    struct rig_note *n = note(c, RPC_OP_LOCK_WAKE);

    n->ino = m->ino;
    n->seq = m->wait;
    rpc_reply(req, 0, NULL);
}

void rig_client_init(struct rig *r, unsigned i)
{
    struct rig_client *c = &r->client[i];

    *c = (struct rig_client){.rig = r, .index = i};
    list_init(&c->held);
    c->id.b[0] = (uint8_t)(50 + i);
    c->node.b[0] = (uint8_t)(60 + i);
}

void rig_client_connect(struct rig *r, unsigned i)
{
    struct rig_client *c = &r->client[i];
    const char *mds[] = {"loop:mds"};
    char name[16];

    if (c->rpc)
        return;
    snprintf(name, sizeof name, "gpu%u", i + 1);
    rig_node(r, &r->client_key, name, &c->node, &c->rpc);
    rpc_node_handle(c->rpc, RPC_OP_RECALL, on_recall, c);
    rpc_node_handle(c->rpc, RPC_OP_GLIMPSE, on_glimpse, c);
    rpc_node_handle(c->rpc, RPC_OP_INVALIDATE, on_invalidate, c);
    rpc_node_handle(c->rpc, RPC_OP_MAP_CHANGED, on_map, c);
    rpc_node_handle(c->rpc, RPC_OP_LOCK_WAKE, on_lock_wake, c);
    ck_ok(rpc_peer_create(c->rpc, mds, 1, NULL, NULL, &c->mds));
}

void rig_client_fini(struct rig_client *c)
{
    if (!c->rpc)
        return;
    rig_client_answer(c->rig, c->index);
    rpc_peer_destroy(c->mds);
    rig_close_node(c->rig, c->rpc);
    c->rpc = NULL;
    c->mds = NULL;
}

void rig_client_open(struct rig *r, unsigned i)
{
    struct rig_client *c = &r->client[i];
    struct msg_session_open_req req = {.client = c->id, .host = str("host"), .pid = 100 + i};
    const struct msg_session_open_rep *rep;
    const void *any;

    rig_client_connect(r, i);
    c->session = 0;
    ck_ok(rig_do(r, i, RPC_OP_SESSION_OPEN, &req, &any));
    rep = any;
    c->session = rep->session;
    c->generation = rep->generation;
    c->alive = true;
    c->release = true;
    c->renew_ns = r->clock.now_ns;
    memset(c->sequence, 0, sizeof c->sequence);
}

void rig_client_forget(struct rig *r, unsigned i)
{
    r->client[i].alive = false;
    r->client[i].release = false;
}

static void renewed(struct rpc_call *call, int status)
{
    struct rig_client *c = call->arg;

    if (status == -AIFS_ESESSION)
        c->alive = false;
    rpc_call_fini(call);
    c->renewing = false;
}

void rig_client_tick(struct rig_client *c)
{
    if (!c->alive || c->renewing || c->rig->clock.now_ns < c->renew_ns + RIG_LEASE / 4)
        return;
    c->renew_ns = c->rig->clock.now_ns;
    rpc_call_init(&c->renewal, RPC_OP_SESSION_RENEW, &c->renew, renewed, c);
    c->renewal.session = c->session;
    c->renewal.generation = c->generation;
    c->renewing = true;
    rpc_peer_call(c->mds, &c->renewal);
}

const struct rig_note *rig_client_first(const struct rig_client *c, unsigned op)
{
    for (unsigned i = 0; i < MIN(c->n_notes, (unsigned)RIG_NOTES); i++) {
        if (c->notes[i].op == op)
            return &c->notes[i];
    }
    return NULL;
}

unsigned rig_client_count(const struct rig_client *c, unsigned op, uint64_t ino)
{
    unsigned n = 0;

    for (unsigned i = 0; i < MIN(c->n_notes, (unsigned)RIG_NOTES); i++)
        n += c->notes[i].op == op && (ino == 0 || c->notes[i].ino == ino);
    return n;
}

/* ---- calls ---- */

bool rig_is_done(void *arg)
{
    return ((struct rig_call *)arg)->done;
}

void rig_call_done(struct rpc_call *c, int status)
{
    struct rig_call *call = c->arg;

    call->status = status;
    call->done = true;
}

void rig_forget(struct rig_call *call)
{
    if (call->used)
        rpc_call_fini(&call->c);
    call->used = false;
}

void rig_send_again(struct rig *r, unsigned client, unsigned slot, struct rig_call *call,
                    unsigned op, const void *req)
{
    struct rig_client *c = &r->client[client];

    rig_forget(call);
    call->done = false;
    call->used = true;
    rpc_call_init(&call->c, op, req, rig_call_done, call);
    call->c.session = c->session;
    call->c.generation = c->generation;
    call->c.slot = slot;
    call->c.slot_sequence = c->sequence[slot];
    call->c.flags = RPC_CALL_WAIT;
    call->c.bulk_out = r->bulk_out;
    call->c.n_bulk_out = r->bulk_out ? 1 : 0;
    r->bulk_out = NULL;
    r->bulk_in = (struct iovec){r->bulk, sizeof r->bulk};
    call->c.bulk_in = rpc_op_flags(op) & OP_BULK_OUT ? &r->bulk_in : NULL;
    call->c.n_bulk_in = call->c.bulk_in ? 1 : 0;
    rpc_peer_call(c->mds, &call->c);
}

void rig_send(struct rig *r, unsigned client, unsigned slot, struct rig_call *call, unsigned op,
              const void *req)
{
    r->client[client].sequence[slot] += slot != 0;
    rig_send_again(r, client, slot, call, op, req);
}

int rig_do(struct rig *r, unsigned client, unsigned op, const void *req, const void **ret_rep)
{
    unsigned slot = rpc_op_flags(op) & OP_SLOT ? 1 : 0;

    rig_send(r, client, slot, &r->call, op, req);
    ck_assert_msg(rig_until(r, 60000, rig_is_done, &r->call), "%s is not answered",
                  rpc_op_name(op));
    r->bulk_len = r->call.c.bulk_in_len;
    if (ret_rep)
        *ret_rep = r->call.c.rep;
    return r->call.status;
}

const struct msg_inode_rep *rig_create(struct rig *r, unsigned client, const char *name,
                                       uint32_t open_flags)
{
    struct msg_create_req req = {.parent = KEY_ROOT_INO,
                                 .name = str(name),
                                 .mode = 0100666,
                                 .flags = MSG_CREATE_OPEN,
                                 .open_flags = open_flags};
    const void *rep;

    ck_ok(rig_do(r, client, RPC_OP_CREATE, &req, &rep));
    return rep;
}

uint64_t rig_make(struct rig *r, unsigned client, const char *name)
{
    const struct msg_inode_rep *rep = rig_create(r, client, name, O_RDWR);
    uint64_t ino = rep->inode.attr.ino;

    rig_close_file(r, client, ino, rep->open_id);
    return ino;
}

const struct msg_inode_rep *rig_open_file(struct rig *r, unsigned client, uint64_t ino,
                                          uint32_t flags)
{
    struct msg_open_req req = {.ino = ino, .flags = flags};
    const void *rep;

    ck_ok(rig_do(r, client, RPC_OP_OPEN, &req, &rep));
    return rep;
}

void rig_close_file(struct rig *r, unsigned client, uint64_t ino, uint64_t open_id)
{
    struct msg_close_item item = {.ino = ino, .open_id = open_id};
    struct msg_close_req req = {.n_items = 1, .items = &item};

    ck_ok(rig_do(r, client, RPC_OP_CLOSE, &req, NULL));
}

void rig_grow(struct rig *r, unsigned client, uint64_t ino, uint64_t open_id, uint64_t size)
{
    struct msg_size_req req = {.ino = ino, .open_id = open_id, .size = size};
    struct mds_inode in;

    ck_ok(rig_inode(r, ino, &in));
    req.layout_generation = in.layout.generation;
    req.truncate_gen = in.truncate_gen;
    req.mtime = in.mtime;
    ck_ok(rig_do(r, client, RPC_OP_GROW, &req, NULL));
}

int rig_unlink(struct rig *r, unsigned client, const char *name)
{
    struct msg_name_req req = {.parent = KEY_ROOT_INO, .name = str(name)};

    return rig_do(r, client, RPC_OP_UNLINK, &req, NULL);
}

/* A server's key may do what an administrator's may. */
int rig_admin(struct rig *r, unsigned op, const void *req, const void **ret_rep)
{
    struct iovec in = {r->bulk, sizeof r->bulk};

    rig_forget(&r->call);
    r->call.done = false;
    r->call.used = true;
    rpc_call_init(&r->call.c, op, req, rig_call_done, &r->call);
    r->call.c.flags = RPC_CALL_WAIT;
    r->call.c.bulk_in = &in;
    r->call.c.n_bulk_in = 1;
    rpc_peer_call(r->oss[0].mds, &r->call.c);
    ck_assert_msg(rig_until(r, 20000, rig_is_done, &r->call), "%s is not answered",
                  rpc_op_name(op));
    r->bulk_len = r->call.c.bulk_in_len;
    if (ret_rep)
        *ret_rep = r->call.c.rep;
    return r->call.status;
}

int rig_reclaim(struct rig *r, unsigned i, uint64_t ino, uint64_t open_id, uint32_t flags,
                enum msg_lease lease, uint64_t seq)
{
    struct msg_reclaim_item item = {ino, open_id, flags, lease, seq};
    struct msg_reclaim_req req = {.n_items = ino ? 1 : 0, .items = &item, .last = true};

    return rig_do(r, i, RPC_OP_RECLAIM, &req, NULL);
}
