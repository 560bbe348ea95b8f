/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time and order. Whatever is due is done, one turn of one reactor after the other, in an order
 * that is drawn; when nothing is due the clock jumps to the next deadline of anybody.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "tests/sim/sim.h"
#include "tests/sim/states.h"

struct sim sim;

uint64_t sim_now(void)
{
    return sim.clock.now_ns;
}

void sim_trace(uint64_t x)
{
    sim.trace = (sim.trace ^ x) * 0x100000001b3ull;
    sim.trace ^= sim.trace >> 29;
}

void sim_die(const char *what, const char *file, int line)
{
    fprintf(stderr, "sim: seed %" PRIu64 " at %llu ms: %s (%s:%d)\n", sim.seed,
            (unsigned long long)(sim_now() / NS_PER_MS), what, file, line);
    fprintf(stderr, "sim: repeat with: sim --seed %" PRIu64 " --verbose\n", sim.seed);
    abort();
}

void sim_say(const char *format, ...)
{
    va_list args;

    if (!sim.verbose)
        return;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

static uint64_t node_due(const struct sim_node *n)
{
    uint64_t due = reactor_due_ns(n->reactor);

    return MAX(due, n->resume_ns);
}

static void look_at(const struct sim_node *n)
{
    if (n->mds)
        states_look_at_mds(n->mds);
    if (n->oss)
        states_look_at_oss(n->oss);
    if (n->core)
        states_look_at_client(n->core);
}

/* One turn of a node that is due, if there is one. */
static bool turn(void)
{
    struct sim_node *due[SIM_NODES], *n;
    unsigned n_due = 0;

    for (unsigned i = 0; i < SIM_NODES; i++)
        if (node_due(&sim.node[i]) <= sim_now())
            due[n_due++] = &sim.node[i];
    if (!n_due)
        return false;
    n = due[n_due == 1 ? 0 : sim_below(n_due)];
    n->resume_ns = 0;
    sim_trace((uint64_t)(n - sim.node) + sim_now());
    sim.steps++;
    reactor_run_once(n->reactor, 0);
    look_at(n);
    return true;
}

static uint64_t next_due(void)
{
    uint64_t due = MIN(sim_faults_due(), sim_work_due());

    for (unsigned i = 0; i < SIM_NODES; i++)
        due = MIN(due, node_due(&sim.node[i]));
    return due;
}

bool sim_run_until(bool (*until)(void *arg), void *arg, uint64_t max_ns)
{
    uint64_t end = sim_now() + max_ns, due;

    while (!until(arg)) {
        sim_faults_tick();
        sim_work_tick();
        if (turn())
            continue;
        due = next_due();
        if (due > end)
            return until(arg);
        if (due > sim_now())
            clock_virtual_advance(&sim.clock, due - sim_now());
    }
    return true;
}

bool sim_run_alone(struct sim_node *n, bool (*until)(void *arg), void *arg)
{
    while (!until(arg)) {
        if (reactor_due_ns(n->reactor) > sim_now())
            return false;
        sim.steps++;
        reactor_run_once(n->reactor, 0);
    }
    return true;
}
