/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client has taken and could not store, because a target has no room or is given up: when it
 * finds that out the history says that the bytes may be gone from then on, and every file that is
 * open has to be told of it by its next fsync, and by each close before that. What is lost and not
 * found out is what nothing explains.
 *
 * Only in seeds of losses.h: elsewhere data is lost with sessions, which the history knows.
 */
#include <string.h>

#include "tests/sim/losses.h"
#include "tests/sim/states.h"
#include "tests/sim/work_int.h"

#define INODES_MAX 128u

struct seen {
    uint64_t ino;
    uint32_t errors;
    bool untold;
};

static struct {
    struct seen seen[SIM_CLIENTS][INODES_MAX];
    unsigned n[SIM_CLIENTS];
    uint64_t lost_of;             /* the latest loss: of a file, */
    unsigned client, cell, looks; /* by this client, perhaps there; so often it looks */
    uint32_t from[SIM_CLIENTS],
        next; /* in the sequence of the history: the last time it was looked */
} spoils;

void work_spoils_start(void)
{
    memset(&spoils, 0, sizeof spoils);
}

void work_spoils_client(unsigned client)
{
    spoils.n[client] = 0;
}

static void owe(unsigned client, uint64_t ino)
{
    for (unsigned i = client * SIM_PROCS; i < (client + 1) * SIM_PROCS; i++) {
        struct proc *p = work_proc(i);

        for (unsigned k = 0; k < FDS; k++)
            if (p->fd[k].file && p->fd[k].ino == ino && !p->fd[k].told)
                p->fd[k].owed_from = sim.history.next;
    }
}

/* It goes on with what it has written last. */
static void look_again(unsigned client, uint64_t ino)
{
    for (unsigned i = sim.history.n; i-- > 0;) {
        const struct op *o = &sim.history.ops[i];

        if (o->kind != OP_WRITE || o->ino != ino || o->client != client)
            continue;
        spoils.lost_of = ino;
        spoils.client = client;
        spoils.cell = o->cell;
        spoils.looks = sim_below(4);
        return;
    }
}

bool work_spoils_call(struct proc *p)
{
    if (!spoils.looks || p->client->index != spoils.client)
        return false;
    for (unsigned k = 0; k < FDS; k++) {
        if (!p->fd[k].file || p->fd[k].ino != spoils.lost_of)
            continue;
        spoils.looks--;
        work_call_data(p, OP_READ, &p->fd[k], spoils.cell);
        return true;
    }
    return false;
}

static void spoil(unsigned client, uint64_t ino)
{
    struct op *o = work_record(client, OP_SPOIL);

    o->call = spoils.from[client];
    o->ino = ino;
    o->unknown = o->ends = true;
    o->answer = sim.history.next++;
    o->answer_ns = o->call_ns;
    spoils.from[client] = sim.history.next++;
    sim_hit(SIM_LOSS);
    sim_say("client%u has lost something of %llx", client + 1, (unsigned long long)ino);
    owe(client, ino);
    look_again(client, ino);
}

static void look_at_inode(void *arg, uint64_t ino, uint32_t errors)
{
    unsigned client = *(const unsigned *)arg, k = 0;
    struct seen *seen = spoils.seen[client];

    while (k < spoils.n[client] && seen[k].ino != ino)
        k++;
    if (k == spoils.n[client]) {
        SIM_CHECK(k < INODES_MAX);
        seen[spoils.n[client]++] = (struct seen){.ino = ino};
    }
    if (errors > seen[k].errors)
        spoil(client, ino);
    seen[k].untold |= errors > seen[k].errors;
    seen[k].errors = errors;
}

/* Who has been told reads himself what is there. */
static void told(unsigned client, uint64_t ino)
{
    struct op *o;
    unsigned k = 0;

    while (k < spoils.n[client] && spoils.seen[client][k].ino != ino)
        k++;
    if (k == spoils.n[client] || !spoils.seen[client][k].untold)
        return;
    spoils.seen[client][k].untold = false;
    o = work_record(client, OP_SPOIL);
    o->ino = ino;
    o->flags = 1;
    o->answer = sim.history.next++;
    o->answer_ns = o->call_ns;
}

static void tell(unsigned client)
{
    for (unsigned i = client * SIM_PROCS; i < (client + 1) * SIM_PROCS; i++)
        for (unsigned k = 0; k < FDS; k++) {
            struct fd *fd = &work_proc(i)->fd[k];

            if (fd->heard)
                told(client, fd->ino);
            fd->told = fd->heard = false;
        }
}

void work_spoils_tick(unsigned client)
{
    if (!losses_any())
        return;
    states_each_error(sim_client(client)->core, look_at_inode, &client);
    tell(client);
    if (spoils.next == sim.history.next)
        return;
    for (unsigned i = 0; i < SIM_CLIENTS; i++)
        spoils.from[i] = sim.history.next++;
    spoils.next = sim.history.next;
}

void work_spoils_synced(const struct proc *p, int status)
{
    struct fd *fd = p->on;
    bool is_fsync = p->op->kind == OP_FSYNC, owed;

    if (!is_fsync && p->op->kind != OP_FLUSH)
        return;
    owed = fd->owed_from && p->op->call >= fd->owed_from && !p->client->dead;
    SIM_CHECK(status || !owed); /* a loss that nobody is told of */
    if (owed)
        sim_hit(SIM_LOSS_TOLD);
    fd->heard |= status != 0;
    if (status && is_fsync) {
        fd->told = true;
        fd->owed_from = 0;
    }
}
