// SPDX-License-Identifier: Apache-2.0
/*
 * Blocking calls for tools: a reactor of their own that runs until the one thing waited for has
 * happened. The reply stays in the one call, valid until the next. A server that refuses us, or is
 * not there, is reported at once with its reason, not after the time-out.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "proto/rpc/rpc_int.h"

struct rpc_sync {
    struct reactor *reactor;
    struct rpc_node *node;
    struct rpc_call call;
    bool call_used, done;
    int status;
};

int rpc_sync_create(const struct crypto_key *key, const char *name, struct rpc_sync **ret_sync)
{
    return rpc_sync_create_over(NET_WANT_CALLS, key, name,
                                ret_sync); /* not worth another transport */
}

int rpc_sync_create_over(enum net_want want, const struct crypto_key *key, const char *name,
                         struct rpc_sync **ret_sync)
{
    struct reactor_options ro = {.name = "sync"};
    struct rpc_node_options no = {.key = *key};
    struct rpc_sync *s = mem_zalloc(sizeof *s);
    int rc;

    if (!s)
        return -ENOMEM;
    no.self.role = key->role;
    snprintf(no.self.name, sizeof no.self.name, "%s", name);
    snprintf(no.self.version, sizeof no.self.version, "%s", AIFS_VERSION);
    net_options_default(&no.net);
    no.net.want = want;
    rc = uuid_random(&no.self.node);
    if (rc == 0)
        rc = uuid_random(&no.self.boot);
    if (rc == 0)
        rc = reactor_create(&ro, &s->reactor);
    if (rc)
        goto err_sync;
    rc = rpc_node_create(s->reactor, &no, &s->node);
    if (rc)
        goto err_reactor;
    explicit_bzero(&no.key, sizeof no.key);
    *ret_sync = s;
    return 0;

err_reactor:
    reactor_destroy(s->reactor);
err_sync:
    mem_free(s);
    return rc;
}

static void sync_flag(void *arg)
{
    *(bool *)arg = true;
}

void rpc_sync_destroy(struct rpc_sync *s)
{
    struct list *e, *next;
    bool down = false;

    if (!s)
        return;
    if (s->call_used)
        rpc_call_fini(&s->call);
    list_for_each_safe (e, next, &s->node->peers)
        rpc_peer_destroy(list_entry(e, struct rpc_peer, link));
    rpc_node_shutdown(s->node, sync_flag, &down);
    while (!down)
        reactor_run_once(s->reactor, NS_PER_S);
    rpc_node_destroy(s->node);
    while (reactor_run_once(s->reactor, 0))
        ;
    reactor_destroy(s->reactor);
    mem_free(s);
}

int rpc_sync_connect(struct rpc_sync *s, const char *address, uint64_t timeout_ns,
                     struct rpc_peer **ret_peer)
{
    const struct clock *clock = reactor_clock(s->reactor);
    uint64_t end = clock_mono_ns(clock) + timeout_ns;
    struct rpc_peer *p;
    int rc;

    rc = rpc_peer_create(s->node, &address, 1, NULL, NULL, &p);
    if (rc)
        return rc;
    while (!p->up && !p->failed) {
        uint64_t now = clock_mono_ns(clock);

        if (now >= end)
            break;
        reactor_run_once(s->reactor, end - now);
    }
    if (p->up) {
        *ret_peer = p;
        return 0;
    }
    rc = p->failed && p->last_error ? p->last_error : -AIFS_ETIMEOUT;
    rpc_peer_destroy(p);
    return rc;
}

static void sync_done(struct rpc_call *c, int status)
{
    struct rpc_sync *s = c->arg;

    s->status = status;
    s->done = true;
}

int rpc_sync_call_bulk(struct rpc_sync *s, struct rpc_peer *p, unsigned op, const void *req,
                       void *bulk_in, uint32_t bulk_cap, uint32_t *ret_bulk_len,
                       uint64_t timeout_ns, const void **ret_rep)
{
    struct iovec iov = {bulk_in, bulk_cap};

    if (s->call_used)
        rpc_call_fini(&s->call);
    rpc_call_init(&s->call, op, req, sync_done, s);
    s->call_used = true;
    s->done = false;
    s->call.timeout_ns = timeout_ns;
    if (bulk_in) {
        s->call.bulk_in = &iov;
        s->call.n_bulk_in = 1;
    }
    rpc_peer_call(p, &s->call);
    while (!s->done)
        reactor_run_once(s->reactor, NS_PER_S);
    if (s->status)
        return s->status;
    if (ret_bulk_len)
        *ret_bulk_len = s->call.bulk_in_len;
    if (ret_rep)
        *ret_rep = s->call.rep;
    return 0;
}

int rpc_sync_call(struct rpc_sync *s, struct rpc_peer *p, unsigned op, const void *req,
                  uint64_t timeout_ns, const void **ret_rep)
{
    return rpc_sync_call_bulk(s, p, op, req, NULL, 0, NULL, timeout_ns, ret_rep);
}

/* ---- many at once ---- */

int rpc_sync_peer(struct rpc_sync *s, const char *const *addresses, unsigned n_addresses,
                  struct rpc_peer **ret_peer)
{
    return rpc_peer_create(s->node, addresses, n_addresses, NULL, NULL, ret_peer);
}

static void ask_done(struct rpc_call *c, int status)
{
    struct rpc_sync_ask *a = c->arg;

    a->status = status;
    a->rep = status ? NULL : c->rep;
    --*a->pending;
}

void rpc_sync_ask(struct rpc_sync *s, struct rpc_sync_ask *asks, unsigned n, uint64_t timeout_ns)
{
    unsigned pending = n;

    for (unsigned i = 0; i < n; i++) {
        struct rpc_sync_ask *a = &asks[i];

        rpc_call_init(&a->call, a->op, a->req, ask_done, a);
        a->call.timeout_ns = timeout_ns;
        a->pending = &pending;
        rpc_peer_call(a->peer, &a->call);
    }
    while (pending)
        reactor_run_once(s->reactor, NS_PER_S);
}

void rpc_sync_ask_fini(struct rpc_sync_ask *asks, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        rpc_call_fini(&asks[i].call);
}

void rpc_sync_sleep(struct rpc_sync *s, uint64_t ns)
{
    const struct clock *clock = reactor_clock(s->reactor);
    uint64_t now, end = clock_mono_ns(clock) + ns;

    while ((now = clock_mono_ns(clock)) < end)
        reactor_run_once(s->reactor, end - now);
}
