// SPDX-License-Identifier: Apache-2.0
/*
 * One connection: it says hello, then carries requests and replies in both directions until it
 * dies.
 *
 * Happy path: link_head() decodes the header of a message and gives it to the call it answers, or
 * makes a request of it; link_received() hands over when the payload has landed. Failure: anything
 * malformed closes the connection; link_closed() runs when the transport has let go of everything,
 * tells calls, peer and user, and frees the connection. The link itself lives as long as somebody
 * holds a reference (requests being served do).
 */
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "proto/rpc/rpc_int.h"

static int link_head(struct net_conn *c, const void *head, uint32_t head_len, uint32_t bulk_len,
                     struct net_rx *rx)
{
    struct rpc_link *l = net_conn_arg(c);
    const uint8_t *body;
    struct rpc_header h;
    int rc = header_decode(head, head_len, bulk_len, &h);

    if (rc) {
        LOG_WARN("rpc", "%s: malformed message header", l->describe);
        return rc;
    }
    body = (const uint8_t *)head + h.header_len;
    if (l->state == LINK_HELLO || l->state == LINK_AUTH)
        return hello_head(l, &h, body, rx);
    if (l->state != LINK_UP)
        return 0; /* on its way out: nothing counts any more */
    if (h.version != l->version) {
        LOG_WARN("rpc", "%s: message of wire version %u, but %u was agreed on", l->describe,
                 h.version, l->version);
        return -AIFS_EPROTO;
    }
    return h.kind == RPC_REPLY ? call_head(l, &h, body, rx) : req_head(l, &h, body, rx);
}

static void link_received(struct net_conn *c, void *token, int status)
{
    uintptr_t kind = (uintptr_t)token & 3;
    void *object = (void *)((uintptr_t)token & ~(uintptr_t)3);

    if (kind == RX_HELLO) {
        if (status == 0)
            hello_received(net_conn_arg(c));
    } else if (!object) {
        return; /* thrown away */
    } else if (kind == RX_CALL) {
        call_received(object, status);
    } else {
        req_received(object, status);
    }
}

static void link_closed(struct net_conn *c, int status)
{
    struct rpc_link *l = net_conn_arg(c);
    struct rpc_node *n = l->node;
    struct rpc_peer *p = l->peer;

    if (!l->status)
        l->status = status;
    LOG_DEBUG("rpc", "%s: link closed: %s", l->describe, err_text(l->status));
    if (!l->was_up && l->accepted)
        n->n_hellos--;
    l->state = LINK_DEAD;
    reactor_timer_cancel(n->reactor, &l->timer);
    if (l->waiting)
        buf_wait_cancel(&l->waiter);
    buf_put(l->spare);
    l->waiting = false;
    l->spare = NULL;
    hello_free(l);
    if (p)
        p->last_why = net_conn_why(c);
    net_conn_free(c);
    l->conn = NULL;
    l->peer = NULL;
    list_remove(&l->link);
    list_remove(&l->hello_link);
    calls_link_lost(l);
    if (l->was_up && n->link_down)
        n->link_down(l, n->link_arg);
    if (p && l->is_rail)
        rail_link_lost(p, l, l->status);
    else if (p)
        peer_link_lost(p, l->status);
    node_check_shutdown(n);
    rpc_link_unref(l);
}

static const struct net_conn_ops link_ops = {link_head, link_received, link_closed};

static void link_hello_late(struct reactor_timer *t)
{
    struct rpc_link *l = container_of(t, struct rpc_link, timer);

    if (l->state < LINK_CLOSING)
        LOG_WARN("rpc", "%s: no complete hello within %llu s: closing", l->describe,
                 RPC_HELLO_TIMEOUT / NS_PER_S);
    link_fail(l, -AIFS_ETIMEOUT);
}

static void link_buf_there(struct buf_waiter *w, struct buf *b)
{
    struct rpc_link *l = container_of(w, struct rpc_link, waiter);

    l->waiting = false;
    l->spare = b;
    net_conn_resume(l->conn);
}

struct rpc_link *link_create(struct rpc_node *n, struct net_conn *c, struct rpc_peer *p)
{
    struct rpc_link *l = n->shutting ? NULL : mem_zalloc(sizeof *l);

    if (!l)
        return NULL;
    l->node = n;
    l->conn = c;
    l->peer = p;
    l->accepted = p == NULL;
    l->state = LINK_HELLO;
    l->refs = 1;
    l->waiter.fn = link_buf_there;
    list_init(&l->waiter.link);
    list_init(&l->hello_link);
    list_init(&l->calls);
    list_init(&l->load.serving);
    l->load.id = ++n->next_link;
    reactor_timer_init(&l->timer, link_hello_late);
    snprintf(l->describe, sizeof l->describe, "%s", net_conn_describe(c));
    if (p && hello_start(l)) {
        hello_free(l);
        mem_free(l);
        return NULL;
    }
    list_push_back(&n->links, &l->link);
    if (l->accepted)
        list_push_back(&n->hellos, &l->hello_link);
    n->n_hellos += l->accepted;
    reactor_timer_start(n->reactor, &l->timer, reactor_now_ns(n->reactor) + RPC_HELLO_TIMEOUT);
    net_conn_set_max_head(c, RPC_HEADER_MAX + RPC_HELLO_BODY_MAX);
    net_conn_start(c, &link_ops, l);
    return l;
}

/* Refusing who comes would let anybody keep all others out by connecting and saying nothing. Who
 * has a key needs two exchanges; the oldest has had the most time for them. */
void link_make_room(struct rpc_node *n)
{
    struct list *e;
    struct rpc_link *l;

    if (n->n_hellos < RPC_MAX_HELLOS)
        return;
    e = list_pop_front(&n->hellos);
    if (!e)
        return; /* all of them are closing */
    l = list_entry(e, struct rpc_link, hello_link);
    LOG_WARN("rpc", "%s: closing, for another: %u connections have not authenticated yet",
             l->describe, n->n_hellos);
    link_fail(l, -AIFS_EBUSY_SERVER);
}

/* Hello has succeeded. */
void link_is_up(struct rpc_link *l)
{
    struct rpc_node *n = l->node;

    l->state = LINK_UP;
    l->was_up = true;
    net_conn_set_max_head(l->conn, NET_HEAD_MAX);
    n->n_hellos -= l->accepted;
    list_remove(&l->hello_link);
    reactor_timer_cancel(n->reactor, &l->timer);
    link_describe(l);
    LOG_INFO("rpc", "%s: connected (version %s)", l->describe, l->identity.version);
    rpc_link_ref(l); /* the callbacks may close it */
    if (n->link_up)
        n->link_up(l, n->link_arg);
    if (l->peer && l->state == LINK_UP && l->is_rail)
        rail_link_up(l->peer, l);
    else if (l->peer && l->state == LINK_UP)
        peer_link_up(l->peer, l);
    rpc_link_unref(l);
}

void link_fail(struct rpc_link *l, int status)
{
    if (l->state == LINK_DEAD)
        return;
    l->state = LINK_CLOSING;
    if (!l->status)
        l->status = status;
    net_conn_close(l->conn, l->status);
}

void link_describe(struct rpc_link *l)
{
    snprintf(l->describe, sizeof l->describe, "%s %s %s", crypto_role_name(l->identity.role),
             l->identity.name, net_conn_describe(l->conn));
}

/* ---- public ---- */

const struct rpc_identity *rpc_link_peer(const struct rpc_link *l)
{
    return &l->identity;
}

unsigned rpc_link_wire_version(const struct rpc_link *l)
{
    return l->version;
}

const char *rpc_link_describe(const struct rpc_link *l)
{
    if (l->state == LINK_UP) /* the transport is chosen after hello */
        link_describe((struct rpc_link *)l);
    return l->describe;
}

struct rpc_link *rpc_link_ref(struct rpc_link *l)
{
    l->refs++;
    return l;
}

void rpc_link_unref(struct rpc_link *l)
{
    if (!l)
        return;
    ASSERT(l->refs > 0);
    if (--l->refs == 0)
        mem_free(l);
}

bool rpc_link_alive(const struct rpc_link *l)
{
    return l->state == LINK_UP;
}

uint64_t rpc_link_features(const struct rpc_link *l)
{
    return l->features;
}

void rpc_link_close(struct rpc_link *l, int status)
{
    link_fail(l, status);
}
