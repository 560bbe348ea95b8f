/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks of files. They are checked by time, which is the same for all here: while one open file
 * surely has a lock, nobody else is granted, or told of, what conflicts with it. It has it surely
 * from the answer that grants it until it begins to release it, or its client does not believe in
 * its session any more, whatever dies meanwhile. And in the end all of them are free: the sweep
 * waits for a lock of each file.
 *
 * The owner of a lock is an open file, for both kinds; ranges are cells. What a request without a
 * certain answer has made of a lock is not known, so it is not counted.
 */
#include <errno.h>
#include <fcntl.h>

#include "tests/sim/known.h"
#include "tests/sim/work_int.h"

#define ALL_CELLS ((1u << SIM_CELLS) - 1)

/* op.flags of a LOCK */
#define LOCK_OP_FLOCK 1u
#define LOCK_OP_WRITE 2u
#define LOCK_OP_WAIT  4u

static struct {
    uint64_t owners;
    uint64_t popular; /* the file that most of them are of; 0: none yet */
} locks;

void work_locks_start(void)
{
    locks.owners = locks.popular = 0;
}

void work_locks_opened(struct fd *fd)
{
    fd->owner = ++locks.owners;
    fd->asked = fd->lost = false;
    fd->held = (struct held){0};
}

/* ---- who has what ---- */

static uint8_t cells_of(const struct op *o)
{
    return (uint8_t)((ALL_CELLS >> (SIM_CELLS - 1 - o->value)) & (ALL_CELLS << o->cell));
}

/* What fd surely has is in the way of o. */
static bool in_the_way(const struct proc *p, const struct fd *fd, const struct op *o)
{
    const struct held *h = &fd->held;
    bool writes = o->flags & LOCK_OP_WRITE;

    if (!fd->file || fd->ino != o->ino || !work_session_holds(p->client))
        return false;
    if (o->flags & LOCK_OP_FLOCK)
        return writes ? h->flock != HELD_NONE : h->flock == HELD_WRITE;
    return ((writes ? h->readers | h->writers : h->writers) & cells_of(o)) != 0;
}

static const struct fd *somebody_in_the_way(const struct proc *by, const struct op *o)
{
    for (unsigned i = 0; i < SIM_CLIENTS * SIM_PROCS; i++) {
        const struct proc *p = work_proc(i);

        for (unsigned k = 0; k < FDS; k++)
            if (&p->fd[k] != by->on && in_the_way(p, &p->fd[k], o))
                return &p->fd[k];
    }
    return NULL;
}

static void forget(struct fd *fd, const struct op *o)
{
    if (o->flags & LOCK_OP_FLOCK) {
        fd->held.flock = HELD_NONE;
        return;
    }
    fd->held.readers &= (uint8_t)~cells_of(o);
    fd->held.writers &= (uint8_t)~cells_of(o);
}

/* Who asks to read what it may write may have let other readers in before it hears so. */
static void let_readers_in(struct fd *fd, const struct op *o)
{
    uint8_t written = fd->held.writers & cells_of(o);

    fd->held.writers &= (uint8_t)~written;
    fd->held.readers |= written;
}

static void note(struct fd *fd, const struct op *o)
{
    bool writes = o->flags & LOCK_OP_WRITE;

    forget(fd, o);
    if (o->flags & LOCK_OP_FLOCK)
        fd->held.flock = writes ? HELD_WRITE : HELD_READ;
    else if (writes)
        fd->held.writers |= cells_of(o);
    else
        fd->held.readers |= cells_of(o);
    fd->held.stamp = ++locks.owners;
    fd->held.starts = sim_mds()->starts;
}

static bool holds(const struct fd *fd)
{
    return fd->held.flock != HELD_NONE || fd->held.readers || fd->held.writers;
}

static void wrong(const struct op *o, const char *what)
{
    history_print(&sim.history, stderr);
    op_print(o, stderr);
    sim_die(what, __FILE__, __LINE__);
}

uint64_t sim_work_locked(const struct sim_node *n)
{
    for (unsigned i = n->index * SIM_PROCS; i < (n->index + 1) * SIM_PROCS; i++) {
        const struct proc *p = work_proc(i);

        for (unsigned k = 0; k < FDS; k++)
            if (holds(&p->fd[k]) ||
                (p->busy && p->on == &p->fd[k] && p->cancel_ns && p->refused_by))
                return p->fd[k].ino;
    }
    return 0;
}

uint64_t sim_work_asks(const struct sim_node *n, uint64_t within_ns)
{
    for (unsigned i = n->index * SIM_PROCS; i < (n->index + 1) * SIM_PROCS; i++) {
        struct proc *p = work_proc(i);

        if (!p->busy || p->op->kind != OP_LOCK || !p->cancel_ns || p->q.p.patient)
            continue;
        p->cancel_ns = sim_now() + sim_between(0, within_ns);
        return p->op->ino;
    }
    return 0;
}

/* ---- calls ---- */

static struct msg_lock wanted(const struct proc *p, const struct op *o)
{
    bool whole = o->flags & LOCK_OP_FLOCK || (o->cell == 0 && o->value == SIM_CELLS - 1);

    return (struct msg_lock){.kind = o->flags & LOCK_OP_FLOCK ? MSG_LOCK_FLOCK : MSG_LOCK_RECORD,
                             .type = o->kind == OP_UNLOCK       ? MSG_LOCK_UNLOCK
                                     : o->flags & LOCK_OP_WRITE ? MSG_LOCK_WRITE
                                                                : MSG_LOCK_READ,
                             .start = whole ? 0 : history_cell_offset(o->cell),
                             .end = whole ? MSG_LOCK_END
                                          : history_cell_offset(o->value) + SIM_CELL_BYTES - 1,
                             .owner = p->on->owner,
                             .pid = p->index + 1};
}

static void draw_range(struct op *o)
{
    o->cell = (uint8_t)sim_below(SIM_CELLS);
    o->value = sim_chance(400) ? o->cell : o->cell + sim_below(SIM_CELLS - o->cell);
    if (o->flags & LOCK_OP_FLOCK || sim_chance(200)) {
        o->cell = 0;
        o->value = SIM_CELLS - 1;
    }
}

static void begin(struct proc *p, enum op_kind kind, struct fd *fd, uint32_t flags)
{
    struct op *o;

    work_begin(p, kind, fd->ino);
    o = p->op;
    p->on = fd;
    o->flags = flags;
    draw_range(o);
}

static void ask(struct proc *p)
{
    struct op *o = p->op;
    const struct fd *other = somebody_in_the_way(p, o);
    struct msg_lock l = wanted(p, o);

    p->refused_by = other ? other->held.stamp : 0;
    if (o->kind == OP_LOCK)
        p->on->asked = true;
    if (o->kind == OP_UNLOCK || o->flags & LOCK_OP_FLOCK) /* one that is converted is given up */
        forget(p->on, o);
    else if (o->kind == OP_LOCK && !(o->flags & LOCK_OP_WRITE))
        let_readers_in(p->on, o);
    work_say_call(p);
    if (o->kind == OP_LOCK_TEST)
        core_lock_test(p->client->core, &p->q, p->on->file, &l);
    else
        core_lock(p->client->core, &p->q, p->on->file, &l, o->flags & LOCK_OP_WAIT);
}

static uint64_t draw_patience(void)
{
    static const uint64_t longest_ms[] = {300, 2000, 2000, 25000};

    return sim_between(0, longest_ms[sim_below(ARRAY_LEN(longest_ms))] * NS_PER_MS);
}

/* As flock(1) with a time-out in a loop does it. */
bool work_locks_call_again(struct proc *p)
{
    struct fd *fd = p->gave_up;
    struct op last = p->last;

    p->gave_up = NULL;
    if (!fd || !fd->file)
        return false;
    begin(p, OP_LOCK, fd, last.flags);
    p->op->cell = last.cell;
    p->op->value = last.value;
    p->cancel_ns = sim_now() + sim_between(0, 25 * NS_PER_S);
    ask(p);
    return true;
}

void work_locks_call(struct proc *p, struct fd *fd)
{
    uint32_t flock = sim_chance(350) ? LOCK_OP_FLOCK : 0;
    uint32_t writes = sim_chance(550) ? LOCK_OP_WRITE : 0;

    if (holds(fd) && sim_chance(350)) {
        begin(p, OP_UNLOCK, fd, flock);
    } else if (!flock && sim_chance(120)) {
        begin(p, OP_LOCK_TEST, fd, writes);
    } else if ((fd->held.readers || fd->held.writers) && sim_chance(400)) {
        begin(p, OP_LOCK, fd, LOCK_OP_WRITE | LOCK_OP_WAIT); /* more than it has */
        p->cancel_ns = sim_now() + sim_between(NS_PER_S, 25 * NS_PER_S);
    } else {
        begin(p, OP_LOCK, fd, flock | writes | (sim_chance(500) ? LOCK_OP_WAIT : 0));
        p->cancel_ns = sim_now() + draw_patience();
    }
    ask(p);
}

void work_locks_call_last(struct proc *p, struct fd *fd, bool flock)
{
    begin(p, OP_LOCK, fd, LOCK_OP_WRITE | LOCK_OP_WAIT | (flock ? LOCK_OP_FLOCK : 0));
    p->op->cell = 0;
    p->op->value = SIM_CELLS - 1;
    ask(p);
}

/* ---- answers ---- */

static bool was_lost_here(const struct op *o)
{
    for (unsigned i = 0; i < SIM_CLIENTS * SIM_PROCS; i++)
        for (unsigned k = 0; k < FDS; k++)
            if (work_proc(i)->fd[k].lost && work_proc(i)->fd[k].ino == o->ino)
                return true;
    return false;
}

static void granted(struct proc *p)
{
    const struct op *o = p->op;

    if (work_session_holds(p->client) && somebody_in_the_way(p, o))
        wrong(o, "a lock is granted that somebody else has");
    sim_hit(p->refused_by ? SIM_LOCK_WAITED : SIM_LOCK_GRANTED);
    if (was_lost_here(o))
        sim_hit(SIM_LOCK_INHERITED);
    note(p->on, o);
    if (!locks.popular && sim_chance(800))
        known_draw_more(locks.popular = o->ino);
}

static void tested(const struct proc *p)
{
    const struct fd *other = somebody_in_the_way(p, p->op);

    if (p->q.out.lock.type == MSG_LOCK_UNLOCK && other && other->held.stamp == p->refused_by)
        wrong(p->op, "nothing is said to be in the way of a lock, and something is");
}

void work_locks_take(struct proc *p, int status)
{
    struct op *o = p->op;

    p->cancel_ns = 0;
    if (o->kind == OP_LOCK_TEST) {
        if (status == 0)
            tested(p);
        return;
    }
    if (o->kind == OP_UNLOCK)
        return;
    if (status == 0) {
        granted(p);
        return;
    }
    if (status == -EAGAIN)
        sim_hit(SIM_LOCK_REFUSED);
    if (status == -EDEADLK)
        sim_hit(SIM_LOCK_DEADLOCK);
    if (status == -EINTR) {
        sim_hit(SIM_LOCK_CANCELLED);
        p->gave_up = sim_chance(600) ? p->on : NULL;
        p->last = *o;
    }
    if (status == -EDEADLK && (o->flags & LOCK_OP_FLOCK || !p->on->asked))
        wrong(o, "a deadlock without a lock");
    if ((status != -EAGAIN && status != -EDEADLK) || o->flags & LOCK_OP_FLOCK)
        forget(p->on, o);
}

void work_locks_session_lost(struct proc *p)
{
    for (unsigned k = 0; k < FDS; k++) {
        struct fd *fd = &p->fd[k];

        if (holds(fd)) {
            fd->lost = true;
            sim_hit(SIM_LOCK_LOST);
        }
        fd->held = (struct held){0};
    }
}

void work_locks_tick(struct proc *p)
{
    for (unsigned k = 0; k < FDS; k++)
        if (holds(&p->fd[k]) && work_session_holds(p->client) &&
            p->fd[k].held.starts < sim_mds()->starts)
            sim_hit(SIM_LOCK_RESTART);
    if (!p->busy || !p->cancel_ns || p->cancel_ns > sim_now())
        return;
    p->cancel_ns = 0;
    core_cancel(&p->q);
}

void work_locks_used(const struct proc *p, int status)
{
    const struct op *o = p->op;

    if (p->was_lost && status == 0 && (o->kind == OP_WRITE || o->kind == OP_APPEND))
        wrong(o, "a file whose locks were lost is written");
}
