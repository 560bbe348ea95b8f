// SPDX-License-Identifier: Apache-2.0
/*
 * What comes from the network: headers, every message, hello before authentication, requests and
 * replies after it. Nothing may crash, leak or cost more than its bound; what decodes must encode
 * to something that decodes to the same; without the key no link comes up.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "proto/codec.h"
#include "proto/ops.h"
#include "proto/rpc/rpc_int.h"
#include "tests/fuzz/fuzz.h"

#define WIRE_MAX 65536u

/* ---- headers ---- */

static void fuzz_header(struct rng *g)
{
    struct rpc_header h = {.op = (uint16_t)rng_below(g, 128),
                           .kind = 1,
                           .version = 1,
                           .body_len = rng_below(g, 64),
                           .bulk_len = 8},
                      back;
    uint8_t wire[256] = {0}, again[sizeof wire];
    size_t len = sizeof(struct rpc_header_wire) + h.body_len;
    uint8_t *exact;

    h.kind = (uint8_t)(1 + rng_below(g, 2));
    h.request_id = rng_next(g);
    header_encode(&h, wire);
    len = rng_below(g, 4) ? fuzz_mutate(g, wire, len) : len;
    exact = malloc(len ? len : 1);
    memcpy(exact, wire, len);
    if (header_decode(exact, (uint32_t)len, 8, &back) == 0) {
        FUZZ_CHECK(back.header_len + back.body_len == len);
        header_encode(&back, again);
        FUZZ_CHECK(memcmp(again + 16, wire + 16, 64) == 0);
    }
    free(exact);
}

/* ---- messages ---- */

static void fuzz_codec(struct rng *g)
{
    static const size_t limit = 4u << 20;
    unsigned op = rng_below(g, RPC_OP_LIMIT);
    bool reply = rng_below(g, 2);
    const void *first, *second;
    uint32_t len, first_len, second_len;
    uint8_t *exact;
    struct arena a;
    void *msg;

    if (!rpc_op_flags(op))
        return;
    arena_init(&a, 0);
    first = random_msg(codec_find(op, reply), g, 8, &a, &len);
    exact = malloc(len ? len : 1);
    memcpy(exact, first, len);
    len = (uint32_t)fuzz_mutate(g, exact, len);
    exact = realloc(exact, len ? len : 1);
    arena_reset(&a);
    a.limit_bytes = limit;
    if (codec_decode(op, reply, exact, len, &a, &msg) == 0) {
        a.limit_bytes = 0;
        FUZZ_CHECK(codec_encode(op, reply, msg, &a, &first, &first_len) == 0);
        FUZZ_CHECK(codec_decode(op, reply, first, first_len, &a, &msg) == 0);
        FUZZ_CHECK(codec_encode(op, reply, msg, &a, &second, &second_len) == 0);
        FUZZ_CHECK(first_len == second_len && memcmp(first, second, first_len) == 0);
    } else {
        FUZZ_CHECK(a.used_bytes <= limit);
    }
    arena_reset(&a);
    free(exact);
}

/* ---- a server, and somebody who sends it things ---- */

struct server {
    struct clock_virtual clock;
    struct reactor *reactor;
    struct crypto_key key;
    struct rpc_node *node;
    struct net_addr address;
    struct buf_pool *pool;
    unsigned ups, requests;
};

static struct server
    srv; /* one for all iterations: what an attacker leaves behind must not hurt the next */

static void on_request(struct rpc_req *req)
{
    srv.requests++;
    rpc_reply(req, -ENOENT, NULL);
}

static void on_up(struct rpc_link *l UNUSED, void *arg UNUSED)
{
    srv.ups++;
}

static void settle(uint64_t ns)
{
    while (reactor_run_once(srv.reactor, 0))
        ;
    clock_virtual_advance(&srv.clock, ns);
    while (reactor_run_once(srv.reactor, 0))
        ;
}

static void identity(struct rpc_identity *id, enum crypto_role role)
{
    *id = (struct rpc_identity){.role = role, .name = "fuzz", .version = "1"};
    FUZZ_CHECK(uuid_random(&id->node) == 0 && uuid_random(&id->boot) == 0);
}

static void server_up(void)
{
    struct reactor_options ro = {.name = "fuzz", .clock = &srv.clock.clock};
    struct rpc_node_options o = {0};
    char err[64];
    uint16_t port;

    if (srv.node)
        return;
    clock_virtual_init(&srv.clock, NS_PER_S, 0);
    FUZZ_CHECK(reactor_create(&ro, &srv.reactor) == 0);
    FUZZ_CHECK(crypto_key_create(&srv.key) == 0);
    FUZZ_CHECK(buf_pool_create("fuzz", MSG_BULK_MAX, 2, &srv.pool) == 0);
    o.key = srv.key;
    o.bulk_pool = srv.pool;
    identity(&o.self, CRYPTO_ROLE_SERVER);
    net_options_default(&o.net);
    FUZZ_CHECK(rpc_node_create(srv.reactor, &o, &srv.node) == 0);
    for (unsigned op = 0; op < RPC_OP_LIMIT; op++) {
        if (rpc_op_flags(op))
            rpc_node_handle(srv.node, op, on_request, NULL);
    }
    rpc_node_on_link(srv.node, on_up, NULL, NULL);
    FUZZ_CHECK(net_addr_resolve("loop:fuzz", 0, &srv.address, err, sizeof err) == 0);
    FUZZ_CHECK(rpc_node_listen(srv.node, &srv.address, &port) == 0);
}

struct sender {
    struct net_conn *conn;
    bool closed;
    uint8_t wire[WIRE_MAX], bulk[4096];
    struct iovec iov;
    struct net_tx tx;
    bool sent;
};

static int sender_head(struct net_conn *c UNUSED, const void *head UNUSED, uint32_t head_len UNUSED,
                       uint32_t bulk_len UNUSED, struct net_rx *rx UNUSED)
{
    return 0;
}

static void sender_received(struct net_conn *c UNUSED, void *token UNUSED, int status UNUSED)
{
}

static void sender_closed(struct net_conn *c, int status UNUSED)
{
    struct sender *s = net_conn_arg(c);

    s->closed = true;
    net_conn_free(c);
}

static const struct net_conn_ops sender_ops = {sender_head, sender_received, sender_closed};

static void sender_connected(void *arg, struct net_conn *c, int status)
{
    struct sender *s = arg;

    FUZZ_CHECK(status == 0);
    s->conn = c;
    net_conn_start(c, &sender_ops, s);
}

static void sender_sent(struct net_tx *tx, int status UNUSED)
{
    container_of(tx, struct sender, tx)->sent = true;
}

/* A message of op, right in form, then damaged or not. */
static void make(struct sender *s, struct rng *g, unsigned op, unsigned kind, uint32_t damage)
{
    struct rpc_header h = {.op = (uint16_t)op,
                           .kind = (uint8_t)kind,
                           .version = 1,
                           .request_id = 1 + rng_below(g, 8),
                           .session = 1,
                           .slot = 1};
    struct arena a;
    const void *body;
    size_t len;

    arena_init(&a, 0);
    body = random_msg(codec_find(op, kind == RPC_REPLY), g, 6, &a, &h.body_len);
    FUZZ_CHECK(h.body_len + sizeof(struct rpc_header_wire) <= sizeof s->wire);
    h.bulk_len = rng_below(g, 4) == 0 ? 1 + rng_below(g, sizeof s->bulk) : 0;
    s->iov = (struct iovec){s->bulk, h.bulk_len};
    memcpy(s->wire + sizeof(struct rpc_header_wire), body, h.body_len);
    len = sizeof(struct rpc_header_wire) + h.body_len;
    if (damage == 1) { /* the body only, lengths right, so that it gets past the header */
        h.body_len = (uint32_t)fuzz_mutate(g, s->wire + sizeof(struct rpc_header_wire), h.body_len);
        len = sizeof(struct rpc_header_wire) + h.body_len;
    }
    header_encode(&h, s->wire);
    if (damage == 2)
        len = fuzz_mutate(g, s->wire, len);
    s->tx = (struct net_tx){.head = s->wire,
                            .head_len = (uint32_t)len,
                            .iov = &s->iov,
                            .n_iov = h.bulk_len ? 1 : 0,
                            .done = sender_sent};
    s->sent = false;
    arena_reset(&a);
}

/* Nobody gets in without the key. */
static void fuzz_hello(struct rng *g)
{
    static struct sender s;
    struct net_connecting *connecting;
    struct net_options o;

    server_up();
    srv.ups = srv.requests = 0;
    s.closed = false;
    s.conn = NULL;
    net_options_default(&o);
    FUZZ_CHECK(net_connect(srv.reactor, &srv.address, &o, sender_connected, &s, &connecting) == 0);
    settle(1);
    for (unsigned i = 0; i < 4 && !s.closed; i++) {
        unsigned op = i == 0 ? RPC_OP_HELLO : i == 1 ? RPC_OP_AUTH : RPC_OP_GETATTR;
        bool fits = i == 0 && rng_below(g, 2);

        make(&s, g, op, RPC_REQUEST, rng_below(g, 3));
        if (fits) { /* a hello that is answered, so that AUTH is looked at */
            struct msg_hello_req m = {.cluster = srv.key.cluster,
                                      .role = rng_below(g, 3),
                                      .wire_oldest = 1,
                                      .wire_newest = 1 + rng_below(g, 2),
                                      .nonce = {s.bulk, RPC_NONCE_BYTES}};
            struct rpc_header h = {.op = RPC_OP_HELLO, .kind = RPC_REQUEST, .version = 1};
            struct arena a;
            const void *body;

            arena_init(&a, 0);
            FUZZ_CHECK(codec_encode(RPC_OP_HELLO, false, &m, &a, &body, &h.body_len) == 0);
            header_encode(&h, s.wire);
            memcpy(s.wire + sizeof(struct rpc_header_wire), body, h.body_len);
            s.tx.head_len = (uint32_t)sizeof(struct rpc_header_wire) + h.body_len;
            s.tx.n_iov = 0;
            arena_reset(&a);
        }
        net_send(s.conn, &s.tx);
        settle(NS_PER_MS);
        FUZZ_CHECK(s.sent);
    }
    FUZZ_CHECK(srv.ups == 0 && srv.requests == 0);
    if (!s.closed)
        net_conn_close(s.conn, -ECANCELED);
    settle(RPC_HELLO_TIMEOUT);
    FUZZ_CHECK(s.closed && srv.node->n_hellos == 0 && list_empty(&srv.node->links));
}

static void set_flag(void *arg)
{
    *(bool *)arg = true;
}

static void call_over(struct rpc_call *c, int status UNUSED)
{
    *(unsigned *)c->arg += 1;
}

/* Somebody who has the key, and sends rubbish in both directions while calls are in flight. */
static void fuzz_link(struct rng *g)
{
    static struct sender s;
    static struct rpc_call calls[4];
    static uint8_t back[4096];
    struct iovec in = {back, sizeof back};
    struct msg_ino_req ino = {.ino = 1};
    struct rpc_node_options o = {0};
    struct rpc_node *node;
    struct rpc_peer *peer;
    const char *address = "loop:fuzz";
    unsigned over = 0;
    bool down = false;

    server_up();
    srv.ups = 0;
    FUZZ_CHECK(crypto_key_derive(&srv.key, CRYPTO_ROLE_CLIENT, &o.key) == 0);
    identity(&o.self, CRYPTO_ROLE_CLIENT);
    net_options_default(&o.net);
    FUZZ_CHECK(rpc_node_create(srv.reactor, &o, &node) == 0);
    FUZZ_CHECK(rpc_peer_create(node, &address, 1, NULL, NULL, &peer) == 0);
    settle(NS_PER_MS);
    FUZZ_CHECK(srv.ups == 1 && rpc_peer_is_up(peer));
    for (unsigned i = 0; i < ARRAY_LEN(calls); i++) {
        rpc_call_init(&calls[i], RPC_OP_GETATTR, &ino, call_over, &over);
        calls[i].session = 1;
        calls[i].timeout_ns = 10 * NS_PER_S;
        calls[i].flags = RPC_CALL_ONCE;
        calls[i].bulk_in = &in;
        calls[i].n_bulk_in = 1;
        rpc_peer_call(peer, &calls[i]);
    }
    for (unsigned i = 0; i < 6; i++) {
        struct rpc_link *to =
            rng_below(g, 2) ? rpc_peer_link(peer) : NULL; /* our own end sends: the server hears */
        unsigned op = rng_below(g, RPC_OP_LIMIT);

        if (!to && !list_empty(&srv.node->links))
            to = list_entry(srv.node->links.next, struct rpc_link,
                            link); /* the server's end: the client hears */
        if (!to || !to->conn || !rpc_op_flags(op))
            continue;
        make(&s, g, rng_below(g, 2) ? RPC_OP_GETATTR : op, 1 + rng_below(g, 2), rng_below(g, 3));
        net_send(to->conn, &s.tx);
        settle(NS_PER_MS);
        FUZZ_CHECK(s.sent);
    }
    rpc_peer_destroy(peer);
    settle(NS_PER_MS);
    FUZZ_CHECK(over == ARRAY_LEN(calls));
    for (unsigned i = 0; i < ARRAY_LEN(calls); i++)
        rpc_call_fini(&calls[i]);
    rpc_node_shutdown(node, set_flag, &down);
    settle(NS_PER_MS);
    FUZZ_CHECK(down);
    rpc_node_destroy(node);
    settle(NS_PER_S);
    FUZZ_CHECK(list_empty(&srv.node->links) && srv.node->n_requests == 0);
}

int main(int argc, char **argv)
{
    static const struct fuzz_case cases[] = {
        {"header", fuzz_header}, {"codec", fuzz_codec}, {"hello", fuzz_hello}, {"link", fuzz_link}};

    log_set_level(LOG_LEVEL_ERROR);
    return fuzz_main(argc, argv, cases, ARRAY_LEN(cases));
}
