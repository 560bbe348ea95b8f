/* SPDX-License-Identifier: Apache-2.0 */
/* See resent.h. */
#include "tests/sim/resent.h"

#include <fcntl.h>
#include <string.h>

#include "oss/oss.h"
#include "tests/sim/faults.h"
#include "tests/sim/known.h"
#include "tests/sim/states.h"
#include "tests/sim/wires.h"
#include "tests/sim/work_int.h"

#define REST_NS (20 * NS_PER_MS)
#define SOON_NS NS_PER_MS
#define TRIES   6u

enum step { STEP_SEE, STEP_CHANGE, STEP_REST };

static struct {
    bool expected;
    const struct op *op;   /* the write; NULL: there is none */
    const struct op *seen; /* the latest read of the other one */
    unsigned tries;        /* left, until it sees the write */
    const struct proc *writer, *other;
    struct sim_node *oss;
    enum step step;
    bool dies; /* the server, when its other write is answered */
} resent;

void resent_start(void)
{
    memset(&resent, 0, sizeof resent);
}

void resent_expect(void)
{
    resent.expected = true;
}

static struct sim_node *server_of(uint32_t target)
{
    for (unsigned i = 0; i < SIM_OSS; i++)
        if (sim_oss(i)->up && sim_oss(i)->oss->targets[0].id == target)
            return sim_oss(i);
    return NULL;
}

/* One that can write to the file, too. */
static bool is_other(const struct proc *p)
{
    const struct fd *fd = &p->fd[0];

    return p->client != resent.writer->client && fd->file && fd->ino == resent.op->ino &&
           (fd->flags & O_ACCMODE) == O_RDWR && !(fd->flags & O_APPEND);
}

/* The write is on its way and arrives; only the way back is cut, so that the connection goes when
 * the answer does. */
static void keep_from_answer(const struct proc *writer, struct sim_node *oss)
{
    uint64_t until = sim_now() + sim_between(1100 * NS_PER_MS, 2500 * NS_PER_MS);

    resent.expected = false;
    resent.op = writer->op;
    resent.writer = writer;
    resent.other = NULL;
    resent.oss = oss;
    resent.step = STEP_SEE;
    resent.tries = TRIES;
    resent.dies = sim_chance(400);
    wires_cut((unsigned)(oss - sim.node), (unsigned)(writer->client - sim.node), until);
    known_draw_more(resent.op->ino);
    for (unsigned i = 0; i < SIM_CLIENTS * SIM_PROCS; i++)
        if (is_other(work_proc(i)))
            work_proc(i)->next_ns = sim_now();
    sim_hit(SIM_FAULT_CUT_STORING);
    sim_say("%s is kept from the answer to a write", writer->client->name);
}

static void look(struct sim_node *n)
{
    uint32_t target = 0;
    const struct core_req *q =
        n->up && !n->resume_ns && n->core ? states_stores(n->core, &target) : NULL;
    struct sim_node *oss = q ? server_of(target) : NULL;

    if (oss && ((const struct proc *)q->arg)->op)
        keep_from_answer(q->arg, oss);
}

void resent_tick(void)
{
    for (unsigned i = 0; i < SIM_CLIENTS && resent.expected && !resent.op; i++)
        look(sim_client(i));
    if (resent.step != STEP_REST || !resent.dies || resent.other->busy)
        return;
    resent.dies = false;
    sim_fault_crash(resent.oss);
}

static void see(struct proc *p)
{
    resent.tries--;
    resent.seen = &sim.history.ops[sim.history.n]; /* it may be answered at once */
    work_call_data(p, OP_READ, &p->fd[0], resent.op->cell);
}

/* Over what it has seen; or none of that is there any more. What makes the file longer is not seen
 * before its size is told. */
static void change(struct proc *p)
{
    bool is_seen = resent.seen->ret_value == resent.op->value;

    resent.step = STEP_REST;
    if (sim_chance(is_seen ? 700 : 200))
        work_call_data(p, OP_WRITE, &p->fd[0], resent.op->cell);
    else
        work_call_cut(p, &p->fd[0]);
}

static bool over(void)
{
    resent.op = NULL;
    return false;
}

bool resent_call(struct proc *p)
{
    bool is_answered = resent.op && resent.op->answer;

    if (!resent.op)
        return false;
    if (resent.step == STEP_SEE && (is_answered || !is_other(p)))
        return is_answered && over();
    if (resent.step == STEP_SEE) {
        resent.other = p;
        resent.step = STEP_CHANGE;
        see(p);
    } else if (resent.step == STEP_CHANGE && p == resent.other) {
        if (!is_other(p))
            return over();
        if (resent.seen->ret_value == resent.op->value || !resent.tries)
            change(p);
        else if (sim_now() < resent.seen->answer_ns + SOON_NS)
            p->next_ns = resent.seen->answer_ns + SOON_NS;
        else
            see(p);
    } else if (!is_answered) {
        p->next_ns = sim_now() + REST_NS;
    } else {
        if (!p->fd[0].file || p->fd[0].ino != resent.op->ino)
            return over();
        work_call_data(p, OP_READ, &p->fd[0], resent.op->cell);
        resent.op = NULL;
    }
    return true;
}
