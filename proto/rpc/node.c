// SPDX-License-Identifier: Apache-2.0
/*
 * This process on this reactor: listening, handlers, and the one work item that runs what may not
 * run inside a call of the user: done() of calls that ended, release of replies that had nowhere to
 * go.
 *
 * Shutdown: listeners close, links close, and when the last link and the last request are gone,
 * done().
 */
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "proto/rpc/rpc_int.h"

struct rpc_listener {
    struct list link;
    struct net_listener *net;
};

static void node_free(struct rpc_node *n)
{
    reqs_free_cache(n);
    hmap_fini(&n->calls);
    explicit_bzero(&n->options.key, sizeof n->options.key);
    mem_free(n);
}

static void node_work(struct reactor_work *w)
{
    struct rpc_node *n = container_of(w, struct rpc_node, work);

    n->work_queued = false;
    if (n->destroyed) {
        node_free(n);
        return;
    }
    n->work_queued = true; /* what follows need not queue it again, and a destroy in a callback must
                              wait for us */
    calls_run_ended(n);
    reqs_run_dropped(n);
    n->work_queued = false;
    if (n->destroyed) {
        node_free(n);
        return;
    }
    if (!list_empty(&n->ended) || !list_empty(&n->dropped))
        node_kick(n);
    if (n->shutting && list_empty(&n->links) && n->n_requests == 0 && n->shutdown_done) {
        void (*done)(void *) = n->shutdown_done;

        n->shutdown_done = NULL;
        done(n->shutdown_arg); /* may destroy n */
    }
}

void node_kick(struct rpc_node *n)
{
    if (n->work_queued)
        return;
    n->work_queued = true;
    reactor_defer(n->reactor, &n->work);
}

void node_check_shutdown(struct rpc_node *n)
{
    if (n->shutting && n->shutdown_done)
        node_kick(n);
}

static void node_ping(struct rpc_req *req)
{
    rpc_reply(req, 0, NULL);
}

int rpc_node_create(struct reactor *r, const struct rpc_node_options *o, struct rpc_node **ret_node)
{
    struct rpc_node *n = mem_zalloc(sizeof *n);
    int rc;

    if (!n)
        return -ENOMEM;
    n->reactor = r;
    n->options = *o;
    if (!n->options.max_calls)
        n->options.max_calls = RPC_MAX_CALLS;
    if (!n->options.max_requests)
        n->options.max_requests = RPC_MAX_REQUESTS;
    if (!n->options.wire_newest) {
        n->options.wire_oldest = RPC_WIRE_OLDEST;
        n->options.wire_newest = RPC_WIRE_VERSION;
    }
    if (!n->options.net.ping_interval_ns)
        net_options_default(&n->options.net);
    list_init(&n->links);
    list_init(&n->hellos);
    list_init(&n->peers);
    list_init(&n->listeners);
    list_init(&n->ended);
    list_init(&n->dropped);
    list_init(&n->cache);
    n->work.fn = node_work;
    n->next_id = 1;
    rc = hmap_init(&n->calls, 256);
    if (rc) {
        mem_free(n);
        return rc;
    }
    rpc_node_handle(n, RPC_OP_PING, node_ping, NULL);
    rpc_node_handle(n, RPC_OP_LOAD, load_serve, NULL);
    *ret_node = n;
    return 0;
}

void rpc_node_destroy(struct rpc_node *n)
{
    if (!n)
        return;
    ASSERT(list_empty(&n->links) && list_empty(&n->listeners) && list_empty(&n->peers) &&
           n->n_requests == 0);
    n->destroyed = true;
    if (!n->work_queued)
        node_free(n);
}

static void accepted(void *arg, struct net_conn *c)
{
    struct rpc_node *n = arg;

    link_make_room(n);
    if (link_create(n, c, NULL))
        return;
    net_conn_close(c, -AIFS_EBUSY_SERVER);
    net_conn_free(c);
}

int rpc_node_listen(struct rpc_node *n, const struct net_addr *addr, uint16_t *ret_port)
{
    struct rpc_listener *l = mem_zalloc(sizeof *l);
    int rc;

    if (!l)
        return -ENOMEM;
    rc = net_listen(n->reactor, addr, &n->options.net, accepted, n, &l->net);
    if (rc) {
        mem_free(l);
        return rc;
    }
    list_push_back(&n->listeners, &l->link);
    if (ret_port)
        *ret_port = net_listener_port(l->net);
    return 0;
}

void rpc_node_shutdown(struct rpc_node *n, void (*done)(void *arg), void *arg)
{
    struct list *e, *next;

    n->shutting = true;
    n->shutdown_done = done;
    n->shutdown_arg = arg;
    while ((e = list_pop_front(&n->listeners)) != NULL) {
        struct rpc_listener *l = list_entry(e, struct rpc_listener, link);

        net_listener_close(l->net);
        mem_free(l);
    }
    list_for_each_safe (e, next, &n->links)
        link_fail(list_entry(e, struct rpc_link, link), -AIFS_ECANCELLED);
    node_kick(n);
}

void rpc_node_handle(struct rpc_node *n, unsigned op, rpc_handler_fn *fn, void *arg)
{
    ASSERT(op < RPC_OP_LIMIT && rpc_op_flags(op));
    n->handlers[op].fn = fn;
    n->handlers[op].arg = arg;
}

void rpc_node_place(struct rpc_node *n, unsigned op, rpc_place_fn *fn)
{
    ASSERT(op < RPC_OP_LIMIT && rpc_op_flags(op));
    n->handlers[op].place = fn;
}

void rpc_node_on_link(struct rpc_node *n, void (*up)(struct rpc_link *l, void *arg),
                      void (*down)(struct rpc_link *l, void *arg), void *arg)
{
    n->link_up = up;
    n->link_down = down;
    n->link_arg = arg;
}

void rpc_node_set_map_epoch(struct rpc_node *n, uint64_t epoch)
{
    n->map_epoch = epoch;
}

/* ---- in flight, for people ---- */

static void print_call(const struct rpc_node *n, const struct rpc_call *c, const char *to,
                       struct strbuf *out)
{
    const char *state = c->state & CALL_RX        ? "receiving"
                        : c->state & CALL_ENDED   ? "ending"
                        : c->state & CALL_TX      ? "sending"
                        : c->state & CALL_WAITING ? "waiting for the peer"
                                                  : "waiting for the reply";

    strbuf_printf(out, "%s to %s: id %llu, %.3f s, %s%s\n", rpc_op_name(c->op), to,
                  (unsigned long long)c->id,
                  (double)(reactor_now_ns(n->reactor) - c->sent_ns) / (double)NS_PER_S, state,
                  c->state & CALL_RESENT ? ", sent again" : "");
}

void rpc_node_print_calls(struct rpc_node *n, struct strbuf *out)
{
    struct list *e, *f;

    list_for_each (e, &n->links) {
        struct rpc_link *l = list_entry(e, struct rpc_link, link);

        list_for_each (f, &l->calls)
            print_call(n, list_entry(f, struct rpc_call, link), l->describe, out);
    }
    list_for_each (e, &n->peers) {
        struct rpc_peer *p = list_entry(e, struct rpc_peer, link);

        list_for_each (f, &p->waiting)
            print_call(n, list_entry(f, struct rpc_call, link), p->addresses[p->at].text, out);
    }
}
