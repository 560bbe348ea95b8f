// SPDX-License-Identifier: Apache-2.0
/*
 * Keeping a link to a server: one address after the other, then a pause that grows with the time
 * the server has been away, for ever. Calls wait here while there is no link and while too many are
 * in flight.
 *
 * Happy path: peer_connect() -> peer_connected() -> hello -> peer_link_up() -> the user's up() ->
 * rpc_peer_ready() -> what waits is sent. Failure: peer_attempt_failed() goes to the next address;
 * when all have failed the peer is down and calls that do not want to wait fail with -AIFS_EDOWN. A
 * lost link puts its calls back here (call.c), and they are sent again with their ids on the next.
 * Names are looked up beside all this (address.c); only where there is nothing else to try does a
 * peer wait for them, as long as for a connection.
 */
#include <string.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "proto/rpc/rpc_int.h"

#define PEER_STABLE_NS NS_PER_S /* a link that lived less is not replaced at once */

static void peer_connect(struct rpc_peer *p);

void peer_free_if_over(struct rpc_peer *p)
{
    if (!p->destroyed || p->via || p->n_rails || p->n_calls)
        return;
    mem_free(p->addresses);
    mem_free(p);
}

/* ---- calls ---- */

/* Sends what may be sent, oldest first. */
static void peer_pump(struct rpc_peer *p)
{
    while (p->ready && p->n_sent < p->node->options.max_calls && !list_empty(&p->waiting)) {
        struct rpc_call *c = list_entry(list_pop_front(&p->waiting), struct rpc_call, link);

        call_send(c, rail_pick(p, c));
    }
}

static void peer_pump_urgent(struct rpc_peer *p)
{
    struct list *e, *next;

    list_for_each_safe (e, next, &p->waiting) {
        struct rpc_call *c = list_entry(e, struct rpc_call, link);

        if (!(rpc_op_flags(c->op) & OP_URGENT))
            continue;
        list_remove(e);
        call_send(c, p->via);
    }
}

void peer_call_over(struct rpc_peer *p, bool was_sent)
{
    p->n_calls--;
    if (was_sent)
        p->n_sent--;
    if (p->destroyed)
        peer_free_if_over(p);
    else
        peer_pump(p);
}

/* Ends waiting calls: all of them, or those that do not want to wait for a peer that is down. */
static void peer_end_waiting(struct rpc_peer *p, bool all, int status)
{
    struct list *e, *next;

    list_for_each_safe (e, next, &p->waiting) {
        struct rpc_call *c = list_entry(e, struct rpc_call, link);

        if (all || !(c->flags & RPC_CALL_WAIT))
            call_end(c, status);
    }
}

void rpc_peer_call(struct rpc_peer *p, struct rpc_call *c)
{
    bool urgent = (rpc_op_flags(c->op) & OP_URGENT) != 0;

    call_prepare(c, p->node);
    c->peer = p;
    c->state = CALL_WAITING;
    p->n_calls++;
    if (p->destroyed || p->node->shutting) {
        call_end(c, -AIFS_ECANCELLED);
    } else if (p->ready &&
               (urgent || (p->n_sent < p->node->options.max_calls && list_empty(&p->waiting)))) {
        call_send(c, rail_pick(p, c));
    } else {
        list_push_back(&p->waiting, &c->link);
        if (p->failed && !(c->flags & RPC_CALL_WAIT))
            call_end(c, -AIFS_EDOWN);
    }
}

/* ---- connecting ---- */

static bool refused(int status)
{
    return status == -AIFS_EAUTH || status == -AIFS_ECLUSTER || status == -AIFS_EVERSION ||
           status == -AIFS_EROLE || status == -ENOTSUP;
}

/* A server that is back soon is found soon, and waiting costs no more than a part of what its
 * absence did. Less up to a quarter, different in each process, lest all come at the same time. */
static void peer_pause(struct rpc_peer *p)
{
    uint64_t now = reactor_now_ns(p->node->reactor), ns, less;

    ns = MIN(MAX((now - p->away_ns) / RPC_BACKOFF_PART, RPC_BACKOFF_MIN), RPC_BACKOFF_MAX);
    if (refused(p->last_error))
        ns = RPC_BACKOFF_MAX;
    less =
        hash_bytes(&p->node->options.self.boot, sizeof p->node->options.self.boot, ++p->attempts) %
        (ns / 4);
    reactor_timer_start(p->node->reactor, &p->timer, now + ns - less);
}

/* All addresses were tried in vain. */
static void peer_is_away(struct rpc_peer *p)
{
    p->failed = true;
    peer_end_waiting(p, false, -AIFS_EDOWN);
    peer_pause(p);
}

/* No name has an address, or says so in time. */
static void peer_no_place(struct rpc_peer *p, int status)
{
    p->looking = false;
    p->last_error = status;
    p->tried = 0;
    peer_is_away(p);
}

static void peer_retry(struct reactor_timer *t)
{
    struct rpc_peer *p = container_of(t, struct rpc_peer, timer);

    if (p->looking) { /* for too long */
        peer_no_place(p, -AIFS_ETIMEOUT);
        return;
    }
    p->tried = 0;
    peer_connect(p);
}

/* One line when the reason changes, not one per attempt. Hello has its own lines, except for who
 * says nothing. */
static void peer_log_failure(struct rpc_peer *p, int status, bool in_hello)
{
    if (in_hello && status == -AIFS_ECONN && status != p->logged_error)
        LOG_WARN(
            "rpc",
            "%s: it takes our connection and closes it before the end of hello: it is starting "
            "or stopping, is no aifs server, or its log says why; trying again",
            p->addresses[p->at].text);
    else if (!in_hello && status != p->logged_error)
        LOG_WARN("rpc", "%s: cannot connect: %s; trying again", p->addresses[p->at].text,
                 err_text(status));
    else
        LOG_DEBUG("rpc", "%s: cannot connect: %s", p->addresses[p->at].text, err_text(status));
    p->logged_error = status;
}

static void peer_attempt_failed(struct rpc_peer *p, int status, bool in_hello)
{
    p->last_error = status;
    peer_log_failure(p, status, in_hello);
    p->at = (p->at + 1) % p->n_addresses;
    p->tried++;
    addresses_look_up(p);
    peer_connect(p);
}

static void peer_connected(void *arg, struct net_conn *c, int status)
{
    struct rpc_peer *p = arg;

    p->connecting = NULL;
    if (status == 0) {
        p->via = link_create(p->node, c, p);
        if (p->via)
            return;
        net_conn_close(c, -ENOMEM);
        net_conn_free(c);
        status = p->node->shutting ? -AIFS_ECANCELLED : -ENOMEM;
    }
    peer_attempt_failed(p, status, false);
}

/* There is no place to try yet. */
static void peer_look(struct rpc_peer *p)
{
    struct reactor *r = p->node->reactor;

    addresses_look_up(p);
    if (!addresses_are_looked_up(p)) {
        peer_no_place(p, -EHOSTUNREACH);
        return;
    }
    p->looking = true;
    reactor_timer_start(r, &p->timer, reactor_now_ns(r) + p->node->options.net.connect_timeout_ns);
}

/* What is tried at the old place, or waits, begins anew at the new one. */
void peer_address_found(struct rpc_peer *p, unsigned at, bool moved)
{
    bool waits = reactor_timer_running(&p->timer);

    if (p->looking && !moved && !addresses_are_looked_up(p)) {
        peer_no_place(p, -EHOSTUNREACH);
    } else if (moved && (waits || (p->connecting && p->at == at))) {
        if (p->connecting)
            net_connect_cancel(p->connecting);
        p->connecting = NULL;
        p->looking = false;
        p->at = at;
        p->tried = 0;
        reactor_timer_start(p->node->reactor, &p->timer, reactor_now_ns(p->node->reactor));
    }
}

static void peer_connect(struct rpc_peer *p)
{
    struct rpc_node *n = p->node;
    int rc;

    if (p->destroyed)
        return;
    if (n->shutting) {
        p->failed = true;
        peer_end_waiting(p, true, -AIFS_ECANCELLED);
        return;
    }
    if (!addresses_have_place(p)) {
        peer_look(p);
        return;
    }
    for (; p->tried < p->n_addresses && !address_has_place(p, p->at); p->tried++)
        p->at = (p->at + 1) % p->n_addresses;
    if (p->tried >= p->n_addresses) {
        peer_is_away(p);
        return;
    }
    rc = net_connect(n->reactor, &p->addresses[p->at], &n->options.net, peer_connected, p,
                     &p->connecting);
    if (rc)
        peer_attempt_failed(p, rc, false); /* at most n_addresses deep */
}

void peer_link_up(struct rpc_peer *p, struct rpc_link *l)
{
    bool rebooted = p->ever_up && !uuid_equal(&p->boot, &l->identity.boot);

    p->up = p->ever_up = true;
    p->failed = false;
    p->tried = 0;
    p->last_error = p->logged_error = 0;
    p->boot = l->identity.boot;
    p->up_ns = reactor_now_ns(p->node->reactor);
    if (p->events.up)
        p->events.up(p, l, rebooted, p->arg);
    else
        rpc_peer_ready(p);
}

void peer_link_lost(struct rpc_peer *p, int status)
{
    uint64_t now = reactor_now_ns(p->node->reactor);
    bool was_up = p->up, lasted = was_up && now - p->up_ns >= PEER_STABLE_NS;

    p->via = NULL;
    p->up = p->ready = false;
    rails_drop(p, status);
    if (p->destroyed) {
        peer_free_if_over(p);
        return;
    }
    if (!was_up) {
        peer_attempt_failed(p, status, true);
        return;
    }
    LOG_WARN("rpc", "%s: link lost: %s", p->addresses[p->at].text, err_text(status));
    p->last_error = status;
    p->tried = 0;
    if (lasted)
        p->away_ns = now;
    addresses_look_up(p);
    if (lasted) {
        reactor_timer_start(p->node->reactor, &p->timer, now);
    } else {
        peer_pause(p);
    }
    if (p->events.down)
        p->events.down(p, status, p->arg); /* may destroy it */
}

/* ---- public ---- */

int rpc_peer_create(struct rpc_node *n, const char *const *addresses, unsigned n_addresses,
                    const struct rpc_peer_events *events, void *arg, struct rpc_peer **ret_peer)
{
    struct rpc_peer *p;
    int rc;

    if (n_addresses == 0 || n_addresses > RPC_ADDRESSES_MAX)
        return -EINVAL;
    p = mem_zalloc(sizeof *p);
    if (!p)
        return -ENOMEM;
    p->addresses = mem_array(n_addresses, sizeof *p->addresses);
    if (!p->addresses) {
        mem_free(p);
        return -ENOMEM;
    }
    rc = addresses_read(p, addresses, n_addresses);
    if (rc) {
        mem_free(p->addresses);
        mem_free(p);
        return rc;
    }
    p->node = n;
    p->arg = arg;
    if (events)
        p->events = *events;
    p->away_ns = reactor_now_ns(n->reactor);
    list_init(&p->waiting);
    reactor_timer_init(&p->timer, peer_retry);
    list_push_back(&n->peers, &p->link);
    addresses_look_up(p);
    reactor_timer_start(n->reactor, &p->timer,
                        reactor_now_ns(n->reactor)); /* not inside this call */
    *ret_peer = p;
    return 0;
}

static void peer_end_sent(struct rpc_peer *p, struct rpc_link *l)
{
    struct list *e, *next;

    list_for_each_safe (e, next, &l->calls) {
        struct rpc_call *c = list_entry(e, struct rpc_call, link);

        if (c->peer == p)
            call_end(c, -AIFS_ECANCELLED);
    }
}

void rpc_peer_destroy(struct rpc_peer *p)
{
    if (!p)
        return;
    p->destroyed = true;
    p->ready = false;
    list_remove(&p->link);
    reactor_timer_cancel(p->node->reactor, &p->timer);
    if (p->connecting)
        net_connect_cancel(p->connecting);
    p->connecting = NULL;
    addresses_forget(p);
    peer_end_waiting(p, true, -AIFS_ECANCELLED);
    for (unsigned k = 0; k < p->n_rails; k++)
        peer_end_sent(p, p->rails[k]);
    rails_drop(p, -AIFS_ECANCELLED);
    if (p->via) {
        peer_end_sent(p, p->via);
        link_fail(p->via, -AIFS_ECANCELLED);
    }
    peer_free_if_over(p);
}

void rpc_peer_ready(struct rpc_peer *p)
{
    if (!p->up || p->ready || p->destroyed)
        return;
    p->ready = true;
    peer_pump_urgent(p);
    peer_pump(p);
}

bool rpc_peer_is_up(const struct rpc_peer *p)
{
    return p->up;
}

bool rpc_peer_is_unknown(const struct rpc_peer *p)
{
    return p->failed && p->last_error == -EHOSTUNREACH && !addresses_have_place(p);
}

int rpc_peer_last_error(const struct rpc_peer *p)
{
    return p->last_error;
}

const char *rpc_peer_last_why(const struct rpc_peer *p)
{
    return p->last_why;
}

struct rpc_link *rpc_peer_link(struct rpc_peer *p)
{
    return p->up ? p->via : NULL;
}

bool rpc_peer_is_settled(const struct rpc_peer *p)
{
    return p->up && net_conn_is_settled(p->via->conn);
}
