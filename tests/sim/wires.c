/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens to messages: each seed draws how eager each kind of fault is; they are lost, late,
 * twice or overtaken one by one, and where a wire is cut none passes. A loss ends the connection,
 * as it does with the real transports: within one that lives nothing is lost.
 */
#include <string.h>

#include "common/net/net.h"
#include "tests/sim/losses.h"
#include "tests/sim/wires.h"

struct rates { /* per million messages */
    uint32_t lose, sever, twice, reorder, late;
};

static struct {
    bool strained;
    struct rates rates;
    uint64_t cut_until_ns[SIM_NODES][SIM_NODES]; /* from, to */
} wires;

static unsigned node_of(const struct reactor *r)
{
    unsigned i = 0;

    while (i < SIM_NODES && sim.node[i].reactor != r)
        i++;
    SIM_CHECK(i < SIM_NODES);
    return i;
}

static bool strikes(uint32_t per_million)
{
    return per_million && sim_below(1000000) < per_million;
}

static void message_fate(struct net_loop_fate *f)
{
    const struct rates *r = &wires.rates;

    if (strikes(r->lose)) {
        f->lose = f->sever = true;
        sim_hit(SIM_FAULT_LOSS);
    } else if (strikes(r->sever)) {
        f->sever = true;
        sim_hit(SIM_FAULT_SEVER);
    } else if (strikes(r->twice)) {
        f->twice = true;
        sim_hit(SIM_FAULT_TWICE);
    } else if (strikes(r->reorder)) {
        f->reorder = true;
        sim_hit(SIM_FAULT_REORDER);
    } else if (strikes(r->late)) {
        f->delay_ns += sim_between(NS_PER_MS, 1500 * NS_PER_MS);
        sim_hit(SIM_FAULT_DELAY);
    }
}

/* A short cut may only delay, as the protocols below us would; what is lost ends its connection. */
static void cut_fate(struct net_loop_fate *f, uint64_t left_ns, enum net_loop_parcel kind)
{
    if (kind != NET_LOOP_CONNECT && left_ns < NS_PER_S && sim_chance(500)) {
        f->delay_ns += left_ns;
        return;
    }
    f->lose = true;
    f->sever = kind != NET_LOOP_CONNECT;
    f->delay_ns += left_ns;
}

static void fate(void *arg, const struct reactor *from, const struct reactor *to,
                 enum net_loop_parcel kind, struct net_loop_fate *f)
{
    unsigned a = node_of(from), b = node_of(to);

    (void)arg;
    f->delay_ns = sim_between(20 * NS_PER_US, 200 * NS_PER_US);
    if (sim.node[a].dead || sim.node[b].dead)
        f->lose = kind != NET_LOOP_CLOSED || sim.node[a].silent || sim.node[b].silent;
    else if (wires.cut_until_ns[a][b] > sim_now())
        cut_fate(f, wires.cut_until_ns[a][b] - sim_now(), kind);
    else if (wires.strained && kind == NET_LOOP_MESSAGE)
        message_fate(f);
    sim_trace((uint64_t)kind << 8 | f->lose << 2 | f->sever << 1 | f->twice);
}

void wires_start(void)
{
    memset(&wires, 0, sizeof wires);
    net_loop_set_policy(fate, NULL);
}

void wires_strain(void)
{
    wires.strained = true;
    if (sim_chance(600))
        wires.rates = (struct rates){.lose = sim_below(2) * sim_below(10000),
                                     .sever = sim_below(2) * sim_below(10000),
                                     .twice = sim_below(2) * sim_below(10000),
                                     .reorder = sim_below(2) * sim_below(20000),
                                     .late = sim_below(2) * sim_below(5000)};
    if (losses_fill()) /* refused once and stored once is not what a connection does */
        wires.rates.twice = 0;
}

void wires_cut(unsigned from, unsigned to, uint64_t until_ns)
{
    wires.cut_until_ns[from][to] = until_ns;
}

void wires_mend(void)
{
    memset(&wires, 0, sizeof wires);
}
