/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of names that a client begins at one moment go to the server in one message. Where few
 * names are (SCENE_NAMES) they meet what a batch may get wrong: the file is open somewhere, or
 * somebody of another client changes one of the names back meanwhile, and when that is answered
 * the first client looks.
 */
#include "tests/sim/scene.h"
#include "tests/sim/work_int.h"

static struct {
    enum { RIVAL_NONE, RIVAL_COMES, RIVAL_CALLS, RIVAL_DONE } step;
    const struct proc *who;
    unsigned client; /* whose names they are */
    enum op_kind kind;
    uint64_t dir;
    unsigned name;
} rival;

void work_together_start(void)
{
    rival.step = RIVAL_NONE;
}

/* The name of a file that is open somewhere, as it was made. */
static const struct fd *draw_made(void)
{
    unsigned from = sim_below(SIM_CLIENTS * SIM_PROCS);

    for (unsigned i = 0; i < SIM_CLIENTS * SIM_PROCS; i++) {
        const struct proc *p = work_proc((from + i) % (SIM_CLIENTS * SIM_PROCS));

        for (unsigned k = 0; k < FDS; k++)
            if (p->fd[k].file && p->fd[k].made_in)
                return &p->fd[k];
    }
    return NULL;
}

static void rival_begin(const struct proc *of)
{
    struct proc *who = work_proc(sim_below(SIM_CLIENTS * SIM_PROCS));

    if (!of->op || rival.step == RIVAL_CALLS || who->client == of->client || !work_is_ready(who) ||
        !sim_chance(600))
        return;
    rival.step = RIVAL_COMES;
    rival.who = who;
    rival.client = of->client->index;
    rival.kind = of->op->kind == OP_MKDIR ? OP_RMDIR : sim_chance(500) ? OP_SYMLINK : OP_LINK;
    rival.dir = of->op->ino;
    rival.name = of->op->name;
    who->next_ns = sim_now() + sim_below(4) * 100 * NS_PER_US;
}

void work_together(const struct proc *p)
{
    struct proc *other = work_proc(p->index ^ 1);
    enum op_kind kind = p->op ? p->op->kind : OP_LOOKUP;
    const struct fd *made = NULL;

    if ((kind != OP_UNLINK && kind != OP_RMDIR && kind != OP_MKDIR) || !work_is_left() ||
        !work_is_ready(other) || !sim_chance(scene.together_per_thousand))
        return;
    if (kind == OP_MKDIR && !work_may_make(kind))
        return;
    if (kind != OP_MKDIR)
        kind = sim_chance(700) ? OP_UNLINK : OP_RMDIR;
    work_count_one();
    if (scene.kind == SCENE_NAMES && kind == OP_UNLINK && sim_chance(500))
        made = draw_made();
    if (made)
        work_call_name_in(other, kind, work_known(other, made->made_in), made->made_as);
    else
        work_call_name(other, kind);
    if (scene.kind == SCENE_NAMES)
        rival_begin(sim_chance(500) || !other->op ? p : other);
}

bool work_together_call(struct proc *p)
{
    if (rival.step == RIVAL_COMES && p == rival.who) {
        rival.step = RIVAL_CALLS;
        if (rival.kind == OP_SYMLINK && !work_may_make(OP_SYMLINK))
            rival.kind = OP_LINK;
        work_call_name_in(p, rival.kind, work_known(p, rival.dir), rival.name);
        return true;
    }
    if (rival.step != RIVAL_DONE || p->client->index != rival.client)
        return false;
    rival.step = RIVAL_NONE;
    work_call_name_in(p, OP_LOOKUP, rival.dir, rival.name);
    return true;
}

void work_together_answered(const struct proc *p)
{
    if (rival.step != RIVAL_CALLS || p != rival.who)
        return;
    rival.step = RIVAL_DONE;
    for (unsigned i = 0; i < SIM_PROCS; i++)
        work_proc(rival.client * SIM_PROCS + i)->next_ns = sim_now();
}
