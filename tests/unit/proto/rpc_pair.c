// SPDX-License-Identifier: Apache-2.0
/* See rpc_pair.h. */
#include "tests/unit/proto/rpc_pair.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "common/base/crc.h"
#include "common/base/err.h"

static void note(struct pair *p, const struct rpc_req *req)
{
    if (p->n_notes < PAIR_NOTES)
        p->notes[p->n_notes] =
            (struct pair_note){req->header.op, req->header.request_id, req->header.flags};
    p->n_notes++;
}

static void on_ping(struct rpc_req *req)
{
    struct pair *p = req->handler_arg;

    note(p, req);
    if (p->hold)
        list_push_back(&p->held, &req->link);
    else
        rpc_reply(req, 0, NULL);
}

static void count_release(void *arg)
{
    ((struct pair *)arg)->released++;
}

static void on_read(struct rpc_req *req)
{
    struct pair *p = req->handler_arg;
    const struct msg_read_req *m = req->msg;
    struct iovec iov = {p->data, m->n_ranges ? m->ranges[0].len : 0};
    uint32_t crc = crc32c(p->data, iov.iov_len);
    struct msg_read_rep rep = {.n_crcs = 1, .crcs = &crc};

    note(p, req);
    rpc_reply_bulk(req, 0, &rep, &iov, 1, count_release, p);
}

static void on_write(struct rpc_req *req)
{
    struct pair *p = req->handler_arg;
    struct msg_write_rep rep = {.verifier = 7};

    note(p, req);
    p->got_crc = crc32c(req->bulk ? req->bulk->data : req->placed.data, req->header.bulk_len);
    if (p->hold)
        list_push_back(&p->held, &req->link);
    else
        rpc_reply(req, 0, &rep);
}

static void on_lookup(struct rpc_req *req)
{
    const struct msg_name_req *m = req->msg;
    struct msg_inode_rep rep = {.inode.attr = {.ino = m->parent + m->name.len, .mode = 0100644}};

    note(req->handler_arg, req);
    rpc_reply(req, 0, &rep);
}

static void link_up(struct rpc_link *l, void *arg)
{
    struct pair *p = arg;

    p->ups++;
    p->server_link = l;
}

static void link_down(struct rpc_link *l, void *arg)
{
    struct pair *p = arg;

    p->downs++;
    if (p->server_link == l)
        p->server_link = NULL;
}

/* Never the same twice, and the same in every run: how long a peer pauses depends on it. */
static struct uuid next_boot(void)
{
    static uint32_t n;
    struct uuid boot = {{0}};

    n++;
    memcpy(boot.b, &n, sizeof n);
    return boot;
}

static void options_init(struct rpc_node_options *o, const struct crypto_key *key, const char *name)
{
    memset(o, 0, sizeof *o);
    o->key = *key;
    o->self.role = key->role;
    snprintf(o->self.name, sizeof o->self.name, "%s", name);
    snprintf(o->self.version, sizeof o->self.version, "0.1");
    ck_assert_int_eq(uuid_random(&o->self.node), 0);
    o->self.boot = next_boot();
    net_options_default(&o->net);
    o->net.want = NET_WANT_TCP;
}

void pair_init(struct pair *p, bool tcp)
{
    static unsigned serial;
    struct reactor_options ro = {.name = "pair"};
    struct crypto_key client_key;

    memset(p, 0, sizeof *p);
    p->tcp = tcp;
    clock_virtual_init(&p->clock, NS_PER_S, 0);
    ro.clock = tcp ? NULL : &p->clock.clock;
    ck_assert_int_eq(reactor_create(&ro, &p->reactor), 0);
    ck_assert_int_eq(crypto_key_create(&p->key), 0);
    ck_assert_int_eq(crypto_key_derive(&p->key, CRYPTO_ROLE_CLIENT, &client_key), 0);
    options_init(&p->server_options, &p->key, "oss1");
    options_init(&p->client_options, &client_key, "gpu1");
    ck_assert_int_eq(buf_pool_create("pair", PAIR_BULK, 8, &p->pool), 0);
    p->server_options.bulk_pool = p->pool;
    p->data = mem_alloc(PAIR_BULK);
    for (size_t i = 0; i < PAIR_BULK; i++)
        p->data[i] = (uint8_t)(i * 7 + i / 4096);
    list_init(&p->held);
    snprintf(p->address, sizeof p->address, tcp ? "127.0.0.1:0" : "loop:pair%u", serial++);
}

void pair_serve(struct pair *p)
{
    struct net_addr addr;
    char err[128];

    p->server_options.self.boot = next_boot();
    ck_assert_int_eq(rpc_node_create(p->reactor, &p->server_options, &p->server), 0);
    rpc_node_handle(p->server, RPC_OP_PING, on_ping, p);
    rpc_node_handle(p->server, RPC_OP_LOOKUP, on_lookup, p);
    rpc_node_handle(p->server, RPC_OP_OSS_READ, on_read, p);
    rpc_node_handle(p->server, RPC_OP_OSS_WRITE, on_write, p);
    rpc_node_handle(p->server, RPC_OP_OSS_SEAL, on_ping, p);
    rpc_node_handle(p->server, RPC_OP_CREATE, on_ping, p);
    rpc_node_on_link(p->server, link_up, link_down, p);
    ck_assert_int_eq(net_addr_resolve(p->address, 0, &addr, err, sizeof err), 0);
    ck_assert_int_eq(rpc_node_listen(p->server, &addr, &p->port), 0);
    if (p->tcp)
        snprintf(p->address, sizeof p->address, "127.0.0.1:%u", p->port);
}

void pair_start(struct pair *p)
{
    pair_serve(p);
    ck_assert_int_eq(rpc_node_create(p->reactor, &p->client_options, &p->client), 0);
}

void pair_connect(struct pair *p, const struct rpc_peer_events *events, void *arg)
{
    const char *address = p->address;

    ck_assert_int_eq(rpc_peer_create(p->client, &address, 1, events, arg, &p->peer), 0);
}

static void set_flag(void *arg)
{
    *(bool *)arg = true;
}

void pair_kill_server(struct pair *p)
{
    bool down = false;

    p->hold = false;
    rpc_node_shutdown(p->server, set_flag, &down);
    while (!list_empty(&p->held))
        pair_release(p, 0);
    ck_assert(pair_wait(p, &down, 30000));
    rpc_node_destroy(p->server);
    p->server = NULL;
}

void pair_stop(struct pair *p)
{
    bool down = false;
    struct buf_pool_stats stats;

    rpc_peer_destroy(p->peer);
    if (p->server)
        pair_kill_server(p);
    rpc_node_shutdown(p->client, set_flag, &down);
    ck_assert(pair_wait(p, &down, 30000));
    rpc_node_destroy(p->client);
    pair_turn(p);
    buf_pool_get_stats(p->pool, &stats);
    ck_assert_uint_eq(stats.in_use, 0);
    buf_pool_destroy(p->pool);
    while (reactor_run_once(p->reactor, 0))
        ;
    reactor_destroy(p->reactor);
    mem_free(p->data);
}

void pair_turn(struct pair *p)
{
    if (p->tcp) {
        reactor_run_once(p->reactor, NS_PER_MS);
        return;
    }
    while (reactor_run_once(p->reactor, 0))
        ;
    clock_virtual_advance(&p->clock, NS_PER_MS);
}

static uint64_t now_ns(struct pair *p)
{
    return p->tcp ? clock_mono_ns(clock_real()) : p->clock.now_ns;
}

bool pair_wait(struct pair *p, const bool *flag, uint64_t ms)
{
    uint64_t end = now_ns(p) + ms * NS_PER_MS;

    while (!*flag && now_ns(p) < end)
        pair_turn(p);
    return *flag;
}

bool pair_wait_count(struct pair *p, const unsigned *count, unsigned at_least, uint64_t ms)
{
    uint64_t end = now_ns(p) + ms * NS_PER_MS;

    while (*count < at_least && now_ns(p) < end)
        pair_turn(p);
    return *count >= at_least;
}

void pair_pass(struct pair *p, uint64_t ms)
{
    while (ms-- > 0)
        pair_turn(p);
}

static void call_done(struct rpc_call *call, int status)
{
    struct pair_call *c = container_of(call, struct pair_call, call);

    c->done = true;
    c->status = status;
    c->times++;
}

void pair_call_init(struct pair_call *c, unsigned op, const void *req)
{
    c->done = false;
    c->status = 1;
    c->times = 0;
    rpc_call_init(&c->call, op, req, call_done, NULL);
    c->call.session = 1;
    c->call.timeout_ns = 5 * NS_PER_S;
}

void pair_release(struct pair *p, int status)
{
    struct list *e = list_pop_front(&p->held);

    ck_assert(e != NULL);
    rpc_reply(list_entry(e, struct rpc_req, link), status, NULL);
}
