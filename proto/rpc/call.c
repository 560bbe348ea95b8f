// SPDX-License-Identifier: Apache-2.0
/*
 * The life of an outgoing call, as bits in call->state.
 *
 * Happy path: call_send() encodes the request behind its header in the call's arena, hashes the
 * call by its id and gives it to the transport; call_head() finds it again, decodes the reply and
 * says where the payload goes; call_received() runs done().
 *
 * Failure: time-out, cancel and lost links end a call (call_end), but done() waits until the
 * transport has let go of the request (CALL_TX) and of the reply's buffers (CALL_RX). A reply that
 * nobody waits for any more is thrown away.
 */
#include <string.h>

#include "common/base/assert.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "proto/codec.h"
#include "proto/rpc/rpc_int.h"

static uint64_t iov_len(const struct iovec *iov, unsigned n)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < n; i++)
        sum += iov[i].iov_len;
    return sum;
}

struct rpc_node *call_node(const struct rpc_call *c)
{
    return c->peer ? c->peer->node : c->via->node;
}

/* ---- the end ---- */

/* Everything is over: nobody else knows the call any more. Never inside a call of the user. */
static void call_finish(struct rpc_call *c)
{
    struct rpc_peer *p = c->peer;
    bool was_sent = (c->state & CALL_SENT) != 0;

    list_remove(&c->link);
    c->resent = (c->state & CALL_RESENT) != 0;
    c->state = 0;
    c->via = NULL;
    if (p)
        peer_call_over(p, was_sent);
    c->done(c, c->status);
}

static void call_unhash(struct rpc_call *c)
{
    if (c->state & CALL_HASHED)
        hmap_remove(&call_node(c)->calls, &c->by_id);
    c->state &= (uint8_t)~CALL_HASHED;
}

/* While it has a link. */
static void call_not_under_way(struct rpc_call *c)
{
    if (c->under_way_bytes)
        c->via->under_way_bytes -= c->under_way_bytes;
    c->under_way_bytes = 0;
}

static void call_outcome(struct rpc_call *c, int status)
{
    call_not_under_way(c);
    c->status = status;
    c->state |= CALL_ENDED;
    reactor_timer_cancel(call_node(c)->reactor, &c->timer);
    call_unhash(c);
}

void call_end(struct rpc_call *c, int status)
{
    struct rpc_node *n;

    if (c->state == 0 || (c->state & CALL_ENDED))
        return;
    n = call_node(c);
    if (c->state & CALL_SENT)
        rail_call_given_up(c);
    call_outcome(c, status);
    if (c->state & (CALL_TX | CALL_RX))
        return; /* when the transport lets go */
    list_remove(&c->link);
    list_push_back(&n->ended, &c->link);
    c->state = (uint8_t)((c->state & ~CALL_WAITING) | CALL_LISTED);
    node_kick(n);
}

void calls_run_ended(struct rpc_node *n)
{
    struct list now, *e;

    list_init(&now);
    list_splice(&now, &n->ended);
    while (!list_empty(&now)) {
        e = now.next;
        call_finish(list_entry(e, struct rpc_call, link));
    }
}

static void call_timeout(struct reactor_timer *t)
{
    call_end(container_of(t, struct rpc_call, timer), -AIFS_ETIMEOUT);
}

/* ---- sending ---- */

void call_prepare(struct rpc_call *c, struct rpc_node *n)
{
    uint64_t now = reactor_now_ns(n->reactor);

    ASSERT(c->state == 0 && c->done);
    list_init(&c->link);
    c->id = n->next_id++;
    c->sent_ns = now;
    c->deadline_ns = 0;
    if (!c->timeout_ns)
        return;
    c->deadline_ns = now + c->timeout_ns;
    reactor_timer_start(n->reactor, &c->timer, c->deadline_ns);
}

static void call_tx_done(struct net_tx *tx, int status UNUSED)
{
    struct rpc_call *c = container_of(tx, struct rpc_call, tx);

    c->state &= (uint8_t)~CALL_TX;
    if ((c->state & CALL_ENDED) && !(c->state & CALL_RX))
        call_finish(c);
}

static int call_encode(struct rpc_call *c)
{
    void *wire;
    int rc;

    if (c->wire)
        return 0;
    if (c->n_bulk_out > NET_IOV_MAX || c->n_bulk_in > NET_IOV_MAX ||
        iov_len(c->bulk_out, c->n_bulk_out) > MSG_BULK_MAX)
        return -EMSGSIZE;
    rc = codec_encode_room(c->op, false, c->req, sizeof(struct rpc_header_wire), &c->arena, &wire,
                           &c->body_len);
    if (rc == 0)
        c->wire = wire;
    return rc;
}

static uint32_t call_deadline_ms(const struct rpc_call *c, uint64_t now)
{
    if (!c->deadline_ns)
        return 0;
    return c->deadline_ns <= now
               ? 1
               : (uint32_t)MIN((c->deadline_ns - now + NS_PER_MS - 1) / NS_PER_MS, UINT32_MAX);
}

void call_send(struct rpc_call *c, struct rpc_link *l)
{
    struct rpc_node *n = l->node;
    struct rpc_header h;
    int rc = call_encode(c);

    if (rc) {
        c->via = l;
        call_end(c, rc);
        return;
    }
    h = (struct rpc_header){
        .op = c->op,
        .flags = c->state & CALL_RESENT ? RPC_FLAG_RESENT : 0,
        .request_id = c->id,
        .session = c->session,
        .map_epoch = c->map_epoch ? c->map_epoch : n->map_epoch,
        .job = c->job,
        .generation = c->generation,
        .incarnation = c->incarnation,
        .slot = c->slot,
        .slot_sequence = c->slot_sequence,
        .deadline_ms = call_deadline_ms(c, reactor_now_ns(n->reactor)),
        .body_len = c->body_len,
        .bulk_len = (uint32_t)iov_len(c->bulk_out, c->n_bulk_out),
        .kind = RPC_REQUEST,
        .version = l->version,
    };
    header_encode(&h, c->wire);
    c->tx.head = c->wire;
    c->tx.head_len = (uint32_t)sizeof(struct rpc_header_wire) + c->body_len;
    c->tx.iov = c->bulk_out;
    c->tx.n_iov = c->n_bulk_out;
    c->tx.urgent = c->flags & RPC_CALL_URGENT;
    c->tx.done = call_tx_done;
    c->via = l;
    c->under_way_bytes = h.bulk_len + iov_len(c->bulk_in, c->n_bulk_in);
    l->under_way_bytes += c->under_way_bytes;
    c->state = (uint8_t)((c->state & ~CALL_WAITING) | CALL_SENT | CALL_TX | CALL_HASHED);
    if (c->peer)
        c->peer->n_sent++;
    list_push_back(&l->calls, &c->link);
    hmap_insert(&n->calls, &c->by_id, hash_u64(c->id));
    net_send(l->conn, &c->tx);
}

/* ---- the reply ---- */

static struct rpc_call *call_find(struct rpc_link *l, uint64_t id)
{
    struct hmap_node *e;

    for (e = hmap_first(&l->node->calls, hash_u64(id)); e; e = hmap_next(e)) {
        struct rpc_call *c = container_of(e, struct rpc_call, by_id);

        if (c->id == id && c->via == l)
            return c;
    }
    return NULL;
}

static int call_decode(struct rpc_call *c, const struct rpc_header *h, const void *body)
{
    void *rep;
    int rc;

    c->arena.limit_bytes = c->arena.used_bytes + header_arena_limit(h->body_len);
    rc = codec_decode(c->op, true, body, h->body_len, &c->arena, &rep);
    c->arena.limit_bytes = 0;
    if (rc == 0)
        c->rep = rep;
    else
        LOG_WARN("rpc", "%s: reply to %s: %s", c->via->describe, rpc_op_name(c->op), err_text(rc));
    return rc == -ENOMEM ? -AIFS_ECONN : rc; /* an answer that cannot be kept is a lost one */
}

int call_head(struct rpc_link *l, const struct rpc_header *h, const void *body, struct net_rx *rx)
{
    struct rpc_call *c = call_find(l, h->request_id);

    if (!c)
        return 0; /* cancelled, too late, or a duplicate: thrown away, payload and all */
    if (h->op != c->op) {
        LOG_WARN("rpc", "%s: reply to %s with the id of %s", l->describe, rpc_op_name(h->op),
                 rpc_op_name(c->op));
        return -AIFS_EPROTO;
    }
    call_unhash(c);
    c->header = *h;
    c->status = h->status < 0 ? h->status : call_decode(c, h, body);
    c->state |= CALL_RX;
    rx->token = rx_token(c, RX_CALL);
    if (c->status || !h->bulk_len)
        return 0;
    if (iov_len(c->bulk_in, c->n_bulk_in) < h->bulk_len) {
        LOG_WARN("rpc", "%s: %u bytes of payload in reply to %s, more than asked for", l->describe,
                 h->bulk_len, rpc_op_name(c->op));
        c->status = -AIFS_EPROTO;
        return 0;
    }
    rx->n_iov = c->n_bulk_in;
    memcpy(rx->iov, c->bulk_in, c->n_bulk_in * sizeof *rx->iov);
    c->bulk_in_len = h->bulk_len;
    return 0;
}

void call_received(struct rpc_call *c, int status)
{
    c->state &= (uint8_t)~CALL_RX;
    if (!(c->state & CALL_ENDED)) {
        if (status) {
            c->bulk_in_len = 0;
            c->rep = NULL;
            return; /* the link is lost: calls_link_lost() decides */
        }
        call_outcome(c, c->status);
    }
    if (!(c->state & CALL_TX))
        call_finish(c);
}

/* ---- lost links ---- */

void calls_link_lost(struct rpc_link *l)
{
    struct rpc_peer *p = NULL;
    struct list again, *e;

    list_init(&again);
    while ((e = list_pop_front(&l->calls)) != NULL) {
        struct rpc_call *c = list_entry(e, struct rpc_call, link);

        ASSERT(!(c->state & (CALL_TX | CALL_RX)));
        call_unhash(c);
        call_not_under_way(c);
        if (!c->peer || c->peer->destroyed || (c->flags & RPC_CALL_ONCE)) {
            call_end(c, -AIFS_ECONN);
            continue;
        }
        p = c->peer;
        p->n_sent--;
        c->state = CALL_WAITING | CALL_RESENT;
        c->via = NULL;
        list_push_back(&again, &c->link);
    }
    if (p) { /* all of one link are of one peer; they go first, in their order */
        list_splice(&again, &p->waiting);
        list_splice(&p->waiting, &again);
    }
}

/* ---- public ---- */

void rpc_call_init(struct rpc_call *c, unsigned op, const void *req,
                   void (*done)(struct rpc_call *c, int status), void *arg)
{
    memset(c, 0, offsetof(struct rpc_call, arena)); /* the arena's memory needs no zeroes */
    memset((char *)c + offsetof(struct rpc_call, peer), 0,
           sizeof *c - offsetof(struct rpc_call, peer));
    arena_init(&c->arena, 0);
    reactor_timer_init(&c->timer, call_timeout);
    list_init(&c->link);
    c->op = (uint16_t)op;
    c->req = req;
    c->done = done;
    c->arg = arg;
}

void rpc_call_fini(struct rpc_call *c)
{
    ASSERT(c->state == 0);
    arena_reset(&c->arena);
}

void rpc_link_call(struct rpc_link *l, struct rpc_call *c)
{
    call_prepare(c, l->node);
    c->peer = NULL;
    c->via = l;
    c->state = CALL_WAITING;
    if (l->state == LINK_UP)
        call_send(c, l);
    else
        call_end(c, -AIFS_ECONN);
}

void rpc_call_cancel(struct rpc_call *c)
{
    call_end(c, -AIFS_ECANCELLED);
}
