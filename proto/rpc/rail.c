// SPDX-License-Identifier: Apache-2.0
/*
 * Rails: further links to a server that has several addresses, so that the payloads of calls use
 * several network interfaces at once.
 *
 * Happy path: a call with a payload finds the peer's link with much under way, and the link has
 * lasted; the next address that has no link is connected to, says hello, proves to be the same
 * process, and from then on each such call goes over the link with the least under way. Slower
 * interfaces get less by themselves. Calls without a payload stay on the peer's own link, so that
 * their order does. Nothing is connected for a peer that has little to carry.
 *
 * Failure: an address that cannot be reached, or leads to another process, is left alone for a
 * time that doubles. When a rail that was up is lost, the peer's link and all other rails go with
 * it, and the peer connects anew: what the server still does for the old links must not count after
 * what comes by the new ones, and "a new link" is what its users already know to be that border
 * (rpc_peer_events.up). For the same reason they all go when a call that may change something is
 * given up before its answer: on one link what comes later cannot overtake it, by another it can.
 */
#include "common/base/err.h"
#include "common/base/log.h"
#include "proto/rpc/rpc_int.h"

#define RAIL_WANTED_BYTES (1u << 20) /* under way on the peer's own link */
#define RAIL_LASTED_NS    NS_PER_S   /* one that lived less has other worries */
#define RAIL_PAUSE_MIN_NS (5 * NS_PER_S)
#define RAIL_PAUSE_MAX_NS (300 * NS_PER_S)

static bool rail_has(const struct rpc_peer *p, unsigned address)
{
    for (unsigned k = 0; k < p->n_rails; k++)
        if (net_addr_equal(&p->addresses[p->rails[k]->address], &p->addresses[address]))
            return true;
    return net_addr_equal(&p->addresses[p->at], &p->addresses[address]);
}

static void rail_pause(struct rpc_peer *p, unsigned address)
{
    struct rail_address *a = &p->rail_addresses[address];

    a->pause_ns = MIN(MAX(2 * a->pause_ns, RAIL_PAUSE_MIN_NS), RAIL_PAUSE_MAX_NS);
    a->not_before_ns = reactor_now_ns(p->node->reactor) + a->pause_ns;
    address_look_up(p, address);
}

static void rail_connected(void *arg, struct net_conn *c, int status)
{
    struct rpc_peer *p = arg;
    struct rpc_link *l;

    p->rail_connecting = NULL;
    l = status ? NULL : link_create(p->node, c, p);
    if (l) {
        l->is_rail = true;
        l->address = p->rail_next;
        p->rails[p->n_rails++] = l;
        return;
    }
    LOG_DEBUG("rpc", "%s: no rail: %s", p->addresses[p->rail_next].text, err_text(status));
    rail_pause(p, p->rail_next);
    if (c) {
        net_conn_close(c, -ENOMEM);
        net_conn_free(c);
    }
}

/* One more, if there is an address for it; one attempt at a time. */
static void rail_add(struct rpc_peer *p)
{
    uint64_t now = reactor_now_ns(p->node->reactor);
    unsigned at;

    if (p->rail_connecting || p->n_rails + 1 >= p->rails_max || now - p->up_ns < RAIL_LASTED_NS ||
        net_conn_kind(p->via->conn) == NET_UCX || !net_conn_is_settled(p->via->conn) ||
        p->node->shutting)
        return;
    for (unsigned k = 1; k < p->n_addresses; k++) {
        at = (p->at + k) % p->n_addresses;
        if (rail_has(p, at) || now < p->rail_addresses[at].not_before_ns)
            continue;
        if (!address_has_place(p, at)) {
            rail_pause(p, at);
            continue;
        }
        p->rail_next = at;
        if (net_connect(p->node->reactor, &p->addresses[at], &p->node->options.net, rail_connected,
                        p, &p->rail_connecting))
            rail_pause(p, at);
        return;
    }
}

struct rpc_link *rail_pick(struct rpc_peer *p, const struct rpc_call *c)
{
    struct rpc_link *best = p->via;

    if (p->rails_max < 2 || !(c->n_bulk_in || c->n_bulk_out) || best->state != LINK_UP)
        return best;
    if (best->under_way_bytes >= RAIL_WANTED_BYTES)
        rail_add(p);
    for (unsigned k = 0; k < p->n_rails; k++) {
        struct rpc_link *l = p->rails[k];

        if (l->state == LINK_UP && l->under_way_bytes < best->under_way_bytes)
            best = l;
    }
    return best;
}

/* What brings a payload is a read. A rail that is not there yet may come before the server has seen
 * the call. */
void rail_call_given_up(const struct rpc_call *c)
{
    struct rpc_peer *p = c->peer;

    if (!p || p->destroyed || c->n_bulk_in || !p->via || p->via->state != LINK_UP)
        return;
    if (!p->n_rails &&
        (p->rails_max < 2 || p->n_addresses < 2 || net_conn_kind(p->via->conn) == NET_UCX))
        return;
    LOG_INFO("rpc", "%s: %s was given up: connecting anew", rpc_link_describe(p->via),
             rpc_op_name(c->op));
    link_fail(p->via, -AIFS_ECONN);
}

void rail_link_up(struct rpc_peer *p, struct rpc_link *l)
{
    if (!uuid_equal(&p->boot, &l->identity.boot)) {
        LOG_WARN("rpc", "%s: leads to another process than %s: not used",
                 p->addresses[l->address].text, p->addresses[p->at].text);
        link_fail(l, -AIFS_ECONN);
        return;
    }
    p->rail_addresses[l->address].pause_ns = 0;
    l->is_used = true;
    LOG_INFO("rpc", "%s: used beside %s", rpc_link_describe(l), p->addresses[p->at].text);
}

void rail_link_lost(struct rpc_peer *p, struct rpc_link *l, int status)
{
    for (unsigned k = 0; k < p->n_rails; k++) {
        if (p->rails[k] == l) {
            p->rails[k] = p->rails[--p->n_rails];
            break;
        }
    }
    rail_pause(p, l->address);
    if (l->is_used && p->via)
        link_fail(p->via, status);
    peer_free_if_over(p);
}

void rails_drop(struct rpc_peer *p, int status)
{
    if (p->rail_connecting)
        net_connect_cancel(p->rail_connecting);
    p->rail_connecting = NULL;
    for (unsigned k = 0; k < p->n_rails; k++)
        link_fail(p->rails[k], status);
}

void rpc_peer_set_rails(struct rpc_peer *p, unsigned max)
{
    p->rails_max = MIN(max, NET_RAILS_MAX);
}

unsigned rpc_peer_rails(const struct rpc_peer *p)
{
    unsigned n = p->up;

    for (unsigned k = 0; k < p->n_rails; k++)
        n += p->rails[k]->is_used && p->rails[k]->state == LINK_UP;
    return n;
}
