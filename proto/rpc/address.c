// SPDX-License-Identifier: Apache-2.0
/*
 * Where a peer is: its addresses, and the names among them, which may stand for another place
 * tomorrow (a server that was started again elsewhere).
 *
 * Happy path: numbers are read at once. A name is looked up beside the reactor when the peer is
 * made, and again when an attempt to reach the server has failed or a link was lost, at most once
 * in a part of the time that the server has been away. What is found goes to the peer
 * (peer_address_found()), which does not wait for it: until then it tries the places it knows.
 *
 * Failure: a name that cannot be looked up keeps the places it had, and one line says so.
 */
#include "common/base/err.h"
#include "common/base/log.h"
#include "proto/rpc/rpc_int.h"

static void looked_up(void *arg, int status, const struct net_addr *addr, const char *why)
{
    struct peer_name *name = arg;
    struct rpc_peer *p = name->peer;
    unsigned at = (unsigned)(name - p->names);
    struct net_addr *a = &p->addresses[at];

    name->lookup = NULL;
    if (status && status != name->error)
        LOG_WARN("rpc", "%s: %s%s", a->text, why,
                 a->n_places ? "; trying where it was" : "; trying again");
    name->error = status;
    if (status) {
        peer_address_found(p, at, false);
        return;
    }
    if (net_addr_same_places(a, addr))
        return;
    if (a->n_places)
        LOG_INFO("rpc", "%s: the name stands for another address now", a->text);
    *a = *addr;
    p->rail_addresses[at] = (struct rail_address){0};
    peer_address_found(p, at, true);
}

void address_look_up(struct rpc_peer *p, unsigned at)
{
    struct peer_name *name = &p->names[at];
    uint64_t now = reactor_now_ns(p->node->reactor);
    int rc;

    if (!name->peer || name->lookup || now < name->not_before_ns || p->destroyed ||
        p->node->shutting)
        return;
    name->not_before_ns =
        now + MIN(MAX((now - p->away_ns) / RPC_BACKOFF_PART, RPC_LOOK_UP_MIN), RPC_LOOK_UP_MAX);
    rc = net_lookup_start(p->node->reactor, p->addresses[at].text, RPC_PORT_DEFAULT, looked_up,
                          name, &name->lookup);
    if (rc && rc != name->error)
        LOG_WARN("rpc", "%s: cannot look it up: %s; trying again", p->addresses[at].text,
                 err_text(rc));
    if (rc)
        name->error = rc;
}

void addresses_look_up(struct rpc_peer *p)
{
    for (unsigned i = 0; i < p->n_addresses; i++)
        address_look_up(p, i);
}

bool address_has_place(const struct rpc_peer *p, unsigned at)
{
    return p->addresses[at].loop || p->addresses[at].n_places > 0;
}

bool addresses_have_place(const struct rpc_peer *p)
{
    for (unsigned i = 0; i < p->n_addresses; i++)
        if (address_has_place(p, i))
            return true;
    return false;
}

bool addresses_are_looked_up(const struct rpc_peer *p)
{
    for (unsigned i = 0; i < p->n_addresses; i++)
        if (p->names[i].lookup)
            return true;
    return false;
}

int addresses_read(struct rpc_peer *p, const char *const *texts, unsigned n)
{
    char err[256];

    for (unsigned i = 0; i < n; i++) {
        unsigned at = p->n_addresses;
        int rc = net_addr_parse(texts[i], RPC_PORT_DEFAULT, &p->addresses[at], err, sizeof err);

        if (rc && rc != -EAGAIN) {
            LOG_WARN("rpc", "address %s: %s", texts[i], err);
            continue;
        }
        p->names[at].peer = rc ? p : NULL;
        p->n_addresses++;
    }
    return p->n_addresses ? 0 : -EINVAL;
}

void addresses_forget(struct rpc_peer *p)
{
    for (unsigned i = 0; i < p->n_addresses; i++) {
        net_lookup_cancel(p->names[i].lookup);
        p->names[i].lookup = NULL;
    }
}
