/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See losses.h. A target is given up as an operator does it: its server is dead, and by and by the
 * metadata server takes his word for it. Later the server comes back with what nobody wants any
 * more.
 */
#include "tests/sim/losses.h"

#include <string.h>

#include "oss/oss.h"
#include "tests/sim/admin.h"
#include "tests/sim/faults.h"
#include "tests/sim/known.h"
#include "tests/sim/mem_space.h"
#include "tests/sim/states.h"

#define OFFLINE_NS  (3200 * NS_PER_MS)
#define AGAIN_NS    (300 * NS_PER_MS)
#define PATIENCE_NS (4 * NS_PER_S)

enum step { STEP_NONE, STEP_DIES, STEP_TOLD, STEP_ANSWERED };

static struct {
    uint64_t fill_ns; /* when the next disk changes */
    bool sly;         /* both at once, when somebody has something to write */
    enum step step;   /* the next one */
    uint64_t step_ns; /* when, at the earliest; ANSWERED: at the latest */
    struct sim_node *victim, *other;
    uint32_t target;
    unsigned patience; /* so often it waits until somebody has something to write */
} losses;

void losses_start(void)
{
    memset(&losses, 0, sizeof losses);
    if (losses_fill())
        losses.fill_ns = sim_now() + sim_between(0, NS_PER_S);
    if (!losses_give_up())
        return;
    losses.victim = sim_oss(sim_below(SIM_OSS));
    losses.other = sim_oss(losses.victim == sim_oss(0));
    losses.step = STEP_DIES;
    losses.patience = sim_chance(600) ? 3000 : 0;
    losses.step_ns = sim_now() + sim_between(0, 2 * NS_PER_S);
}

/* ---- disks that fill ---- */

/* Has anybody something for a target? Then others come to the file. */
static struct sim_node *who_is_dirty(void)
{
    for (unsigned i = 0; i < SIM_CLIENTS; i++) {
        struct sim_node *n = sim_client(i);
        uint64_t ino = n->up && n->core ? states_dirty_chunks(n->core) : 0;

        if (!ino)
            continue;
        known_draw_more(ino);
        return n;
    }
    return NULL;
}

static void fill_all(void)
{
    for (unsigned i = 0; i < SIM_OSS; i++)
        if (sim_oss(i)->up)
            mem_space_bound(sim_oss(i)->oss->targets[0].store, SPACE_NONE, 0);
    sim_hit(SIM_FAULT_FILLED);
    sim_say("others have filled the disks");
    losses.sly = false;
    losses.fill_ns = sim_now() + sim_between(100 * NS_PER_MS, 2500 * NS_PER_MS);
}

static void change_a_disk(void)
{
    const struct sim_node *n = sim_oss(sim_below(SIM_OSS));
    unsigned what = sim_below(10);
    enum space_bound bound = what < 4 ? SPACE_LITTLE : what < 5 ? SPACE_NONE : SPACE_ENOUGH;
    unsigned spare = sim_chance(500) ? sim_below(3) : 16 + sim_below(32);

    losses.fill_ns = sim_now() + sim_between(0, 1500 * NS_PER_MS);
    losses.sly = sim_chance(700);
    if (!n->up)
        return;
    if (bound != SPACE_ENOUGH)
        sim_hit(bound == SPACE_NONE ? SIM_FAULT_FILLED : SIM_FAULT_FULL);
    sim_say("%s: room of kind %u, %u slots", n->name, bound, spare);
    mem_space_bound(n->oss->targets[0].store, bound, spare);
}

/* ---- a target that is given up ---- */

static void next_step(enum step step, uint64_t in_ns)
{
    losses.step = step;
    losses.step_ns = sim_now() + in_ns;
}

/* With it, now and then, who has written to it: what he has left there is asked for in vain. */
static void kill_the_victim(void)
{
    struct sim_node *writer;

    if (!losses.victim->up || !losses.victim->oss->ready || !losses.other->up) {
        next_step(STEP_DIES, AGAIN_NS);
        return;
    }
    writer = who_is_dirty();
    if (losses.patience && !writer) {
        losses.patience--;
        next_step(STEP_DIES, NS_PER_MS);
        return;
    }
    losses.target = losses.victim->oss->targets[0].id;
    sim_fault_crash(losses.victim);
    if (writer && sim_chance(400))
        sim_fault_crash(writer);
    losses.victim->restart_ns = sim_now() + sim_between(5 * NS_PER_S, 30 * NS_PER_S);
    next_step(STEP_TOLD, OFFLINE_NS);
}

static void give_up(void)
{
    if (losses.victim->up) { /* too late: it is back, and keeps what it has */
        next_step(STEP_DIES, AGAIN_NS);
    } else if (!losses.other->up || !sim_mds()->up) {
        next_step(STEP_TOLD, AGAIN_NS);
    } else {
        admin_replace(losses.other, losses.target);
        next_step(STEP_ANSWERED, PATIENCE_NS);
    }
}

static void hear(void)
{
    int status;

    if (!admin_is_answered(&status) && sim_now() < losses.step_ns)
        return;
    admin_end();
    if (status) {
        next_step(STEP_TOLD, AGAIN_NS);
        return;
    }
    losses.step = STEP_NONE;
    sim_hit(SIM_FAULT_GIVEN_UP);
    sim_say("target %u is given up", losses.target);
}

void losses_tick(void)
{
    if (losses.sly && who_is_dirty())
        fill_all();
    else if (losses.fill_ns && losses.fill_ns <= sim_now())
        change_a_disk();
    if (losses.step == STEP_ANSWERED)
        hear();
    else if (losses.step == STEP_DIES && losses.step_ns <= sim_now())
        kill_the_victim();
    else if (losses.step == STEP_TOLD && losses.step_ns <= sim_now())
        give_up();
}

uint64_t losses_due(void)
{
    uint64_t due = losses.fill_ns ? losses.fill_ns : UINT64_MAX;

    return losses.step ? MIN(due, losses.step_ns) : due;
}

void losses_end(void)
{
    if (losses.step == STEP_ANSWERED)
        admin_end();
    memset(&losses, 0, sizeof losses);
    sim_chunks_enough();
}
