// SPDX-License-Identifier: Apache-2.0
/*
 * Incoming requests and their replies.
 *
 * Happy path: req_head() checks who may call what, copies the encoded body (once) and decodes it
 * into the request's arena and names the buffer for the payload; req_received() calls the handler;
 * a reply is encoded behind its header and sent; when the transport needs it no longer everything
 * goes back.
 *
 * Failure: a request that is not allowed or malformed is answered with an error, its payload thrown
 * away; without a buffer for the payload, with too many requests in service, or with too many bytes
 * of replies that the peer does not take, the link stops reading. Replies on dead links go nowhere,
 * but give everything back all the same.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/fault/fault.h"
#include "proto/codec.h"
#include "proto/rpc/rpc_int.h"

#define PART_BYTES (256u * KIB) /* in a processor's own cache, beside what it is copied to */

/* ---- memory of requests ---- */

static struct req *req_get(struct rpc_link *l)
{
    struct rpc_node *n = l->node;
    struct list *e = list_pop_front(&n->cache);
    struct req *r;

    if (e) {
        n->n_cache--;
        r = list_entry(e, struct req, link);
    } else {
        r = mem_alloc(sizeof *r);
        if (!r)
            return NULL;
        list_init(&r->link);
        arena_init(&r->reply, 0);
        arena_init(&r->pub.arena, 0);
    }
    list_init(&r->serving);
    list_init(&r->pub.link);
    r->pub.from = rpc_link_ref(l);
    r->pub.msg = r->pub.body = NULL;
    r->pub.bulk = r->parts = NULL;
    r->pub.placed = (struct rpc_placed){0};
    r->pub.handler_arg = NULL;
    r->pub.reply_flags = 0;
    r->refused = 0;
    r->released = NULL;
    l->n_requests++;
    n->n_requests++;
    return r;
}

static void req_put_payload(struct req *r)
{
    struct rpc_placed p = r->pub.placed;

    r->pub.placed = (struct rpc_placed){0};
    if (p.release)
        p.release(p.arg);
    buf_put(r->pub.bulk);
    r->pub.bulk = NULL;
}

static void req_free(struct req *r)
{
    arena_reset(&r->pub.arena);
    arena_reset(&r->reply);
    mem_free(r);
}

static void req_put(struct req *r)
{
    struct rpc_link *l = r->pub.from;
    struct rpc_node *n = l->node;

    if (r->released)
        r->released(r->released_arg);
    req_put_payload(r);
    l->n_requests--;
    n->n_requests--;
    if (l->stalled && l->state == LINK_UP) {
        l->stalled = false;
        net_conn_resume(l->conn);
    }
    rpc_link_unref(l);
    if (n->n_cache < RPC_CACHE_MAX) {
        n->n_cache++;
        arena_recycle(&r->pub.arena);
        arena_recycle(&r->reply);
        list_push_front(&n->cache, &r->link);
    } else {
        req_free(r);
    }
    node_check_shutdown(n);
}

void reqs_free_cache(struct rpc_node *n)
{
    struct list *e;

    while ((e = list_pop_front(&n->cache)) != NULL)
        req_free(list_entry(e, struct req, link));
}

/* ---- receiving ---- */

static int req_allowed(const struct rpc_link *l, const struct rpc_header *h)
{
    static const uint32_t roles[] = {[CRYPTO_ROLE_SERVER] = OP_SERVER,
                                     [CRYPTO_ROLE_ADMIN] = OP_ADMIN,
                                     [CRYPTO_ROLE_CLIENT] = OP_CLIENT};
    uint32_t flags = rpc_op_flags(h->op);

    if (!flags || !l->node->handlers[h->op].fn)
        return -EOPNOTSUPP;
    if (!(flags & roles[l->identity.role]))
        return -AIFS_EROLE;
    if ((flags & (OP_SESSION | OP_SLOT)) && !h->session)
        return -AIFS_ESESSION;
    if (((flags & OP_SLOT) && !h->slot) || (h->bulk_len && !(flags & OP_BULK_IN)))
        return -AIFS_EPROTO;
    return 0;
}

/* A buffer for the payload: -EAGAIN when there is none now. */
static int req_buffer(struct rpc_link *l, uint32_t bulk_len, struct buf **ret_buf)
{
    struct buf_pool *pool = l->node->options.bulk_pool;
    struct buf *b = l->spare;

    if (bulk_len > MSG_BULK_MAX || !pool)
        return -AIFS_EPROTO;
    l->spare = NULL;
    if (!b && !l->waiting)
        b = buf_get(pool);
    if (b && b->size_bytes < bulk_len) {
        buf_put(b);
        return -AIFS_EPROTO;
    }
    *ret_buf = b;
    if (b)
        return 0;
    if (!l->waiting) {
        l->waiting = true;
        buf_wait(pool, &l->waiter);
    }
    return -EAGAIN;
}

static int req_decode(struct req *r, const void *body)
{
    struct arena *a = &r->pub.arena;
    uint32_t len = r->pub.header.body_len;
    void *copy, *msg;
    int rc;

    copy = arena_dup(a, body, len);
    if (!copy)
        return -AIFS_EBUSY_SERVER;
    a->limit_bytes = a->used_bytes + header_arena_limit(len);
    rc = codec_decode(r->pub.header.op, false, copy, len, a, &msg);
    a->limit_bytes = 0; /* what the handler needs is not the sender's doing */
    r->pub.body = copy;
    if (rc == 0)
        r->pub.msg = msg;
    return rc == -ENOMEM ? -AIFS_EBUSY_SERVER : rc;
}

/* Where the payload goes. */
static void req_land(struct req *r, struct net_rx *rx)
{
    struct rpc_node *n = r->pub.from->node;
    rpc_place_fn *place = n->handlers[r->pub.header.op].place;
    struct buf *bulk = r->pub.bulk;

    rx->iov[0] = (struct iovec){bulk->data, bulk->size_bytes};
    rx->n_iov = 1;
    r->pub.handler_arg = n->handlers[r->pub.header.op].arg;
    if (!place || !rx->at_once || !place(&r->pub))
        return;
    rx->iov[0] = (struct iovec){r->pub.placed.data, r->pub.header.bulk_len};
    rx->part = r->pub.placed.part;
    rx->part_arg = r->pub.placed.arg;
    rx->part_memory = (struct iovec){bulk->data, MIN(bulk->size_bytes, PART_BYTES)};
    r->pub.bulk = NULL;
    r->parts = bulk;
}

/*
 * Nothing more is read of a link while too much is being served, or its peer does not take answers.
 * The latter only of who has connected to us, and whose answers we read always: two ends that both
 * waited for the other to read would wait for ever. One of its requests is there to wake us up
 * (req_put()).
 */
static bool link_is_full(const struct rpc_link *l)
{
    return l->n_requests >= l->node->options.max_requests ||
           (l->accepted && l->n_requests && !net_conn_writable(l->conn));
}

int req_head(struct rpc_link *l, const struct rpc_header *h, const void *body, struct net_rx *rx)
{
    struct rpc_node *n = l->node;
    struct buf *bulk = NULL;
    struct req *r;
    int refused, rc = 0;

    if (link_is_full(l)) {
        l->stalled = true;
        return -EAGAIN;
    }
    refused = req_allowed(l, h);
    if (!refused && h->bulk_len)
        rc = req_buffer(l, h->bulk_len, &bulk);
    if (rc == -EAGAIN)
        return rc;
    r = req_get(l);
    if (!r) {
        buf_put(bulk);
        return -ENOMEM;
    }
    r->pub.header = *h;
    r->pub.bulk = bulk;
    r->pub.received_ns = reactor_now_ns(n->reactor);
    r->pub.deadline_ns = h->deadline_ms ? r->pub.received_ns + h->deadline_ms * NS_PER_MS : 0;
    r->refused = refused ? refused : rc ? rc : req_decode(r, body);
    rx->token = rx_token(r, RX_REQ);
    if (r->refused)
        LOG_DEBUG("rpc", "%s: %s refused: %s", l->describe, rpc_op_name(h->op),
                  err_text(r->refused));
    else if (bulk)
        req_land(r, rx);
    return 0;
}

/* Fault points of every operation: "rpc.GROW.before" its handler, "rpc.GROW.after", when it has
 * succeeded and nobody knows. */
static void req_fault(const struct req *r, const char *when)
{
    char name[64];

    if (LIKELY(atomic_load_explicit(&fault_armed, memory_order_relaxed) == 0))
        return;
    snprintf(name, sizeof name, "rpc.%s.%s", rpc_op_name(r->pub.header.op), when);
    FAULT_CRASH(name);
}

void req_received(struct req *r, int status)
{
    struct rpc_node *n = r->pub.from->node;
    unsigned op = r->pub.header.op;

    buf_put(r->parts);
    r->parts = NULL;
    if (status) {
        req_put(r);
    } else if (r->refused) {
        rpc_reply(&r->pub, r->refused, NULL);
    } else {
        req_fault(r, "before");
        load_begin(r);
        r->pub.handler_arg = n->handlers[op].arg;
        n->handlers[op].fn(&r->pub);
    }
}

/* ---- replying ---- */

static void req_sent(struct net_tx *tx, int status UNUSED)
{
    req_put(container_of(tx, struct req, tx));
}

void reqs_run_dropped(struct rpc_node *n)
{
    struct list *e;

    while ((e = list_pop_front(&n->dropped)) != NULL)
        req_put(list_entry(e, struct req, link));
}

static void req_drop(struct req *r)
{
    struct rpc_node *n = r->pub.from->node;

    load_end(r);
    list_push_back(&n->dropped, &r->link);
    node_kick(n);
}

/* wire: room for the header, then the body. */
static void req_send(struct req *r, int status, uint8_t *wire, uint32_t body_len,
                     const struct iovec *iov, unsigned n_iov)
{
    struct rpc_link *l = r->pub.from;
    struct rpc_node *n = l->node;
    struct rpc_header h = {
        .op = r->pub.header.op,
        .request_id = r->pub.header.request_id,
        .session = r->pub.header.session,
        .generation = r->pub.header.generation,
        .incarnation = r->pub.header.incarnation,
        .slot = r->pub.header.slot,
        .slot_sequence = r->pub.header.slot_sequence,
        .job = r->pub.header.job,
        .map_epoch = n->map_epoch,
        .status = status,
        .body_len = body_len,
        .kind = RPC_REPLY,
        .flags = r->pub.reply_flags,
        .version = l->version,
    };

    if (status == 0)
        req_fault(r, "after");
    for (unsigned i = 0; i < n_iov; i++)
        h.bulk_len += (uint32_t)iov[i].iov_len;
    load_count(r, h.bulk_len);
    load_end(r);
    h.trace_us[1] = (uint32_t)((reactor_now_ns(n->reactor) - r->pub.received_ns) / NS_PER_US);
    header_encode(&h, wire);
    r->tx = (struct net_tx){.head = wire,
                            .head_len = (uint32_t)sizeof(struct rpc_header_wire) + body_len,
                            .iov = iov,
                            .n_iov = n_iov,
                            .done = req_sent};
    if (!n_iov)
        req_put_payload(r); /* others need it now, whenever this peer cares to read */
    net_send(l->conn, &r->tx);
}

void rpc_reply_bulk(struct rpc_req *req, int status, const void *msg, const struct iovec *iov,
                    unsigned n_iov, void (*released)(void *arg), void *arg)
{
    struct req *r = container_of(req, struct req, pub);
    void *wire, *iovs = NULL;
    uint32_t body_len;
    int rc;

    r->released = released;
    r->released_arg = arg;
    if (req->from->state != LINK_UP) {
        req_drop(r);
        return;
    }
    if (status) {
        rpc_reply_encoded(req, status, NULL, 0);
        return;
    }
    if (n_iov)
        iovs = arena_dup(&r->reply, iov, n_iov * sizeof *iov);
    rc = n_iov && !iovs
             ? -ENOMEM
             : codec_encode_room(req->header.op, true, msg, sizeof(struct rpc_header_wire),
                                 &r->reply, &wire, &body_len);
    if (rc == -ENOMEM) {
        link_fail(req->from, rc); /* it has been executed: the caller has to ask again */
        req_drop(r);
        return;
    }
    if (rc) {
        LOG_ERROR("rpc", "%s: cannot encode the reply to %s: %s", req->from->describe,
                  rpc_op_name(req->header.op), err_text(rc));
        rpc_reply_encoded(req, rc, NULL, 0);
        return;
    }
    req_send(r, status, wire, body_len, iovs, n_iov);
}

void rpc_reply(struct rpc_req *req, int status, const void *msg)
{
    rpc_reply_bulk(req, status, msg, NULL, 0, NULL, NULL);
}

void rpc_reply_encoded(struct rpc_req *req, int status, const void *body, uint32_t body_len)
{
    struct req *r = container_of(req, struct req, pub);
    uint8_t *wire = NULL;

    if (req->from->state == LINK_UP)
        wire = arena_alloc(&r->reply, sizeof(struct rpc_header_wire) + body_len);
    if (!wire) {
        if (req->from->state == LINK_UP)
            link_fail(req->from, -ENOMEM); /* so that the caller asks again */
        req_drop(r);
        return;
    }
    if (body_len)
        memcpy(wire + sizeof(struct rpc_header_wire), body, body_len);
    req_send(r, status, wire, body_len, NULL, 0);
}
