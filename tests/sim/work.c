/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workload: each client runs a few processes, each makes one operation after the other, drawn
 * from a small name space so that they meet, and writes both ends of it into the history. At the
 * end one client reads all there is.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <string.h>

#include "client/core/core.h"
#include "common/base/err.h"
#include "tests/sim/known.h"
#include "tests/sim/model.h"
#include "tests/sim/resent.h"
#include "tests/sim/scene.h"
#include "tests/sim/sim.h"
#include "tests/sim/states.h"
#include "tests/sim/work_int.h"

static struct {
    struct proc proc[SIM_CLIENTS * SIM_PROCS];
    unsigned n_all, n_left, n_creates, n_dirs;
    bool up[SIM_CLIENTS];
    uint64_t lost[SIM_CLIENTS];         /* sessions, as the core counts them */
    uint64_t batched[SIM_CLIENTS];      /* changes of names, the same */
    uint32_t session_from[SIM_CLIENTS]; /* in the sequence of the history */
    bool believed[SIM_CLIENTS];         /* the session, by its client */
    bool sweeping;
    unsigned sweep_at, sweep_step;
} work;

/* ---- the history ---- */

struct op *work_record(unsigned client, enum op_kind kind)
{
    struct history *h = &sim.history;
    struct op *o = &h->ops[h->n++];

    SIM_CHECK(h->n <= SIM_OPS_MAX);
    *o = (struct op){
        .kind = kind, .client = (uint8_t)client, .call = h->next++, .call_ns = sim_now()};
    return o;
}

static void record_answer(struct op *o, int status)
{
    o->answer = sim.history.next++;
    o->answer_ns = sim_now();
    o->status = status;
    sim_trace(o->answer ^ (uint64_t)(unsigned)status << 32 ^ o->ret_ino);
    if (sim.verbose) {
        sim_say("answer %u:", (unsigned)(o - sim.history.ops));
        op_print(o, stdout);
    }
}

/* A session has ended, at the latest now; that of a client that crashes later, unless it had ended
 * before without its knowing. */
static void record_loss(unsigned client, bool crashed)
{
    struct op *o = work_record(client, OP_LOSE);

    o->end = o->call;
    if (!crashed || !work.believed[client])
        o->call = work.session_from[client];
    if (crashed)
        return;
    o->end = o->answer = sim.history.next++;
    o->answer_ns = o->call_ns;
    sim_say("client%u has lost its session", client + 1);
}

/*
 * The call of a loss that was noticed belongs to where its session began; there is no free number
 * there, so every session keeps one.
 */
static void session_begins(unsigned client)
{
    work.session_from[client] = sim.history.next++;
}

/* ---- answers ---- */

static uint64_t think(void)
{
    static const uint64_t longest_ms[] = {0, 1, 20, 300, 2000};
    unsigned k = sim_below(10);

    return sim_between(0, longest_ms[k < 4   ? 0
                                     : k < 6 ? 1
                                     : k < 8 ? 2
                                     : k < 9 ? 3
                                             : 4] *
                              NS_PER_MS * scene.patience_ms / 100);
}

/* Without a lease an append takes its place before its bytes are there, and a write's bytes are
 * there before its size is. When the file is cut meanwhile it is made again, and who has looked in
 * between has seen the first one (an append's as zeros): as one more of its kind. */
static void record_ghost(const struct proc *p, enum op_kind kind, uint32_t call, unsigned cell)
{
    struct op *g = work_record(p->client->index, kind);

    g->call = call;
    g->call_ns = p->op->call_ns;
    g->ino = p->op->ino;
    g->cell = (uint8_t)cell;
    g->value = p->op->value;
    g->unknown = g->ends = true;
    g->answer = sim.history.next++;
    g->answer_ns = sim_now();
}

/* The bytes of an append come behind its place, and what was written there meanwhile goes. */
static void record_bytes(const struct proc *p)
{
    for (unsigned k = 0; k < SIM_CELLS; k++)
        if (history_cell_offset(k) == p->op->ret_size)
            record_ghost(p, OP_WRITE, p->ghost + 1, k);
}

unsigned work_oss_starts(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < SIM_OSS; i++)
        n += sim_oss(i)->starts;
    return n;
}

/* Sent again to a server that has restarted and has made two others since, it may be made once
 * more (docs/posix.md). */
static bool is_forgotten(const struct proc *p)
{
    unsigned n = 0;

    if (p->oss_starts == work_oss_starts())
        return false;
    for (unsigned i = 0; i < sim.history.n; i++) {
        const struct op *o = &sim.history.ops[i];

        n += o != p->op && (o->kind == OP_WRITE || o->kind == OP_APPEND) && o->ino == p->op->ino &&
             (!o->answer || o->answer > p->op->call);
    }
    return n > 1;
}

/* Another client's hole at the same place, made while it was under way, may be behind its bytes and
 * before its size: nobody could see the bytes, and they are gone. */
static void record_hole(const struct proc *p)
{
    const struct op *o = p->op;
    bool overtaken = false;

    for (unsigned i = 0; i < sim.history.n; i++) {
        const struct op *h = &sim.history.ops[i];

        overtaken |= h->kind == OP_ALLOCATE && h->flags & FALLOC_FL_PUNCH_HOLE &&
                     h->ino == o->ino && h->cell == o->cell && h->client != o->client &&
                     (!h->answer || h->answer > o->call);
    }
    if (!overtaken)
        return;
    record_ghost(p, OP_ALLOCATE, p->ghost + 1, o->cell);
    sim.history.ops[sim.history.n - 1].flags = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
}

void work_finish(struct core_req *q, int status)
{
    struct proc *p = q->arg;
    struct op *o = p->op;

    if (status == 0)
        work_take(p);
    else if (o->kind == OP_LINK)
        o->held &= p->on && p->on->unnamed;
    if (op_is_lock(o->kind))
        work_locks_take(p, status);
    work_locks_used(p, status);
    work_spoils_synced(p, status);
    o->unknown = !work_says_outcome(o, status);
    o->ends |= o->unknown && work_is_over(status);
    if (o->kind == OP_WRITE && status == -ENOSPC)
        sim_hit(SIM_WRITE_NO_ROOM);
    if (o->kind == OP_READ && status == -AIFS_ELOST && !p->client->dead) {
        SIM_CHECK(states_is_lost(p->client->core, o->ino, history_cell_offset(o->cell)));
        sim_hit(SIM_LOST_READ);
    }
    if ((o->kind == OP_APPEND || o->kind == OP_WRITE) &&
        (p->again || q->p.stale || is_forgotten(p)))
        record_ghost(p, o->kind, p->ghost, o->cell);
    if (o->kind == OP_APPEND && status == 0)
        record_bytes(p);
    if (o->kind == OP_WRITE)
        record_hole(p);
    if (o->kind == OP_READ || o->kind == OP_GETATTR)
        o->sealing |= sim_is_sealing(o->ino);
    if (o->kind == OP_GETATTR)
        o->own_change |= work_is_changing(p, o->ino);
    if (o->kind == OP_LOOKUP)
        o->own_change |= work_is_naming(p);
    record_answer(o, status);
    work_together_answered(p);
    if ((o->kind == OP_UNLINK || o->kind == OP_RMDIR || o->kind == OP_CREATE ||
         o->kind == OP_MKDIR || o->kind == OP_RENAME) &&
        status == 0)
        work_removals_answered(p, o);
    if (o->kind == OP_CHMOD && status == 0 && !p->client->dead)
        work_removals_set(p, o);
    if (p->closing ||
        (status && (o->kind == OP_CREATE || o->kind == OP_TMPFILE || o->kind == OP_OPEN))) {
        if (p->on->file && !p->client->dead)
            core_release(p->client->core, p->on->file);
        if (!p->client->dead)
            p->on->file = NULL;
    }
    p->closing = p->busy = false;
    p->op = NULL;
    p->next_ns = sim_now() + (work.sweeping || p->gave_up ? 0 : work_removals_rest(p, think()));
}

/* ---- what next ---- */

static int draw_open_flags(void)
{
    return (sim_chance(60) ? O_TRUNC : 0) | (sim_chance(150) ? O_APPEND : 0);
}

static void call_on_file(struct proc *p)
{
    struct fd *fd = &p->fd[sim_below(scene.n_fds)];
    unsigned what = sim_below(100), cell = scene_cell();
    bool writes = (fd->flags & O_ACCMODE) == O_RDWR && !work_knows_lost(p, fd->ino);
    uint64_t ino = work_draw(p, false);

    if (!fd->file && !known_is_dir(ino) && sim_chance(850))
        work_call_open(p, fd, ino,
                       sim_chance(scene.write_per_thousand) ? O_RDWR | draw_open_flags()
                                                            : O_RDONLY);
    else if (!fd->file)
        work_call_object(p, OP_GETATTR, ino);
    else if (sim_chance(scene.close_per_thousand))
        work_close_fd(p, fd);
    else if (sim_chance(scene.locks_per_thousand))
        work_locks_call(p, fd);
    else if (what < 33 && writes)
        work_call_data(p, fd->flags & O_APPEND ? OP_APPEND : OP_WRITE, fd, cell);
    else if (what < 36 && writes)
        work_call_data(p, OP_ALLOCATE, fd, cell);
    else if (what < 70)
        work_call_data(p, OP_READ, fd, cell);
    else if (what < 80)
        work_call_data(p, OP_FSYNC, fd, 0);
    else if (what < 84)
        work_call_object(p, OP_GETATTR, fd->ino);
    else if (what < 84 + scene.cut_percent && writes)
        work_call_setattr(p, OP_TRUNCATE, fd->ino, fd->file);
    else
        work_close_fd(p, fd);
}

static bool opens(enum op_kind k)
{
    return k == OP_CREATE || k == OP_TMPFILE;
}

static bool makes(enum op_kind k)
{
    return opens(k) || k == OP_MKDIR || k == OP_SYMLINK;
}

bool work_may_make(enum op_kind kind)
{
    if (work.n_creates + 1 >= MODEL_INODES || (kind == OP_MKDIR && work.n_dirs + 1 >= MODEL_DIRS))
        return false;
    work.n_creates++;
    work.n_dirs += kind == OP_MKDIR;
    return true;
}

static void call_on_name(struct proc *p)
{
    static const enum op_kind kinds[] = {OP_LOOKUP, OP_LOOKUP, OP_CREATE, OP_CREATE,  OP_MKDIR,
                                         OP_UNLINK, OP_UNLINK, OP_RMDIR,  OP_RENAME,  OP_RENAME,
                                         OP_RENAME, OP_LINK,   OP_LINK,   OP_SYMLINK, OP_TMPFILE};
    static const enum op_kind few[] = {OP_CREATE, OP_CREATE, OP_CREATE, OP_LOOKUP,
                                       OP_MKDIR,  OP_LINK,   OP_UNLINK, OP_UNLINK,
                                       OP_UNLINK, OP_RMDIR,  OP_RENAME};
    enum op_kind kind = scene.kind == SCENE_NAMES ? few[sim_below(ARRAY_LEN(few))]
                                                  : kinds[sim_below(ARRAY_LEN(kinds))];

    p->on = !p->fd[0].file ? &p->fd[0] : &p->fd[1];
    if ((opens(kind) && p->on->file) || (makes(kind) && !work_may_make(kind)))
        kind = OP_LOOKUP;
    work_call_name(p, kind);
}

static void call_on_object(struct proc *p)
{
    unsigned what = sim_below(100);
    uint64_t ino = work_draw(p, false);

    if (what < 30)
        work_call_object(p, OP_GETATTR, work_draw(p, true));
    else if (what < 50)
        work_call_object(p, OP_READDIR, work_draw_dir(p));
    else if (what < 65)
        work_call_setattr(p, OP_CHMOD, work_draw(p, true), NULL);
    else if (what < 68 && known_draw_link())
        work_call_object(p, OP_READLINK, known_draw_link());
    else if (what < 75 && !known_is_dir(ino))
        work_call_setattr(p, OP_TRUNCATE, ino, NULL);
    else
        work_call_object(p, what < 87 ? OP_SETXATTR : OP_GETXATTR, work_draw(p, true));
}

/* Reads everything known, a step at a time. False: that was all. */
static bool sweep(struct proc *p)
{
    const struct known *k = known_at(work.sweep_at);
    struct fd *fd = &p->fd[0];
    unsigned last_step = 2 + SIM_CELLS + (scene.locks_per_thousand ? 2 : 0);

    if (!k)
        return false;
    if (work.sweep_step == 0 && fd->file) {
        work_close_fd(p, fd);
        return true;
    }
    if (work.sweep_step++ == 0) {
        work_call_object(p, k->kind == KNOWN_DIR ? OP_READDIR : OP_GETATTR, k->ino);
    } else if (k->kind == KNOWN_LINK && work.sweep_step == 2) {
        work_call_object(p, OP_READLINK, k->ino);
    } else if (k->kind != KNOWN_FILE || (work.sweep_step > 2 && !fd->file) ||
               work.sweep_step > last_step) {
        work.sweep_at++;
        work.sweep_step = 0;
        return sweep(p);
    } else if (work.sweep_step == 2) {
        work_call_open(p, fd, k->ino, O_RDONLY);
    } else if (work.sweep_step > 2 + SIM_CELLS) {
        work_locks_call_last(p, fd, work.sweep_step == last_step);
    } else {
        work_call_data(p, OP_READ, fd, work.sweep_step - 3);
    }
    return true;
}

static void next(struct proc *p)
{
    unsigned what = sim_below(100);

    if (--work.n_left < work.n_all / 2)
        scene_enter_others();
    if (work_locks_call_again(p))
        return;
    if (work_spoils_call(p) || work_together_call(p) || work_removals_call(p))
        return;
    if (!known_at(2) || what < scene.names_percent)
        call_on_name(p);
    else if (what < scene.names_percent + scene.objects_percent)
        call_on_object(p);
    else
        call_on_file(p);
}

bool work_is_ready(const struct proc *p)
{
    return work.up[p->client->index] && !p->client->resume_ns && !p->busy && !p->unread &&
           (work.sweeping || !work.n_left || scene_takes(p->client->index));
}

bool work_is_left(void)
{
    return work.n_left;
}

void work_count_one(void)
{
    work.n_left--;
}

struct proc *work_proc(unsigned i)
{
    return &work.proc[i];
}

bool work_session_holds(const struct sim_node *client)
{
    struct core_stats st;

    if (!work.up[client->index] || client->dead)
        return false;
    core_get_stats(client->core, &st);
    return st.sessions_lost == work.lost[client->index] && states_believes(client->core);
}

static void forget_session(unsigned client)
{
    for (unsigned i = client * SIM_PROCS; i < (client + 1) * SIM_PROCS; i++) {
        work_locks_session_lost(&work.proc[i]);
        for (unsigned k = 0; k < FDS; k++)
            work.proc[i].fd[k].unnamed = false;
    }
}

/* All is done: nobody must wait for the locks of those who do nothing any more. */
static struct fd *locked(struct proc *p)
{
    for (unsigned k = 0; k < FDS && !work.n_left && !work.sweeping; k++)
        if (p->fd[k].file && p->fd[k].asked)
            return &p->fd[k];
    return NULL;
}

static void look_at_client(unsigned client)
{
    struct core_stats st;

    if (!work.up[client])
        return;
    work.believed[client] = states_believes(sim_client(client)->core);
    work_spoils_tick(client);
    core_get_stats(sim_client(client)->core, &st);
    sim_hits(SIM_BATCHED, st.mds_batched - work.batched[client]);
    work.batched[client] = st.mds_batched;
    if (st.sessions_lost == work.lost[client]) {
        work_removals_tick(client);
        return;
    }
    work.lost[client] = st.sessions_lost;
    work_removals_lost(client);
    forget_session(client);
    record_loss(client, false);
    session_begins(client);
}

void sim_work_tick(void)
{
    for (unsigned i = 0; i < SIM_CLIENTS; i++)
        look_at_client(i);
    for (unsigned i = 0; i < ARRAY_LEN(work.proc); i++) {
        struct proc *p = &work.proc[i];

        p->again |= p->busy && p->q.p.stale;
        if (p->unread && !p->client->resume_ns) {
            p->unread = false;
            core_read_done(&p->q);
        }
        if (work.up[p->client->index] && !p->client->resume_ns)
            work_locks_tick(p);
        if (work_is_ready(p) && locked(p))
            work_close_fd(p, locked(p));
        if (!work_is_ready(p) || p->next_ns > sim_now())
            continue;
        if (work.sweeping && i == 0 && !sweep(p)) {
            work.sweeping = false;
        } else if (!work.sweeping && work.n_left && !resent_call(p)) {
            next(p);
            work_together(p);
        }
    }
}

uint64_t sim_work_due(void)
{
    uint64_t due = UINT64_MAX;

    for (unsigned i = 0; i < ARRAY_LEN(work.proc); i++) {
        struct proc *p = &work.proc[i];

        if (work_is_ready(p) && (work.n_left || locked(p) || (work.sweeping && i == 0)))
            due = MIN(due, MAX(p->next_ns, sim_now()));
        if (p->busy && p->cancel_ns && !p->client->resume_ns)
            due = MIN(due, MAX(p->cancel_ns, sim_now()));
    }
    return due;
}

bool sim_work_done(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < ARRAY_LEN(work.proc); i++)
        if (work.proc[i].busy || work.proc[i].unread || locked(&work.proc[i]))
            return false;
    return !work.n_left && !work.sweeping;
}

void sim_work_end(void)
{
    for (unsigned i = 0; i < SIM_CLIENTS; i++)
        if (work.up[i] && !work.believed[i]) {
            work_removals_lost(i);
            record_loss(i, true);
        }
}

void sim_work_sweep(void)
{
    work.sweeping = true;
    work.proc[0].next_ns = 0;
}

void sim_work_start(unsigned n_ops)
{
    memset(&work, 0, sizeof work);
    scene_draw();
    known_forget();
    work_calls_start();
    work_locks_start();
    work_removals_start();
    work_spoils_start();
    work_together_start();
    sim.history.n = 0;
    sim.history.next = 1;
    work.n_left = work.n_all = n_ops;
    for (unsigned i = 0; i < ARRAY_LEN(work.proc); i++)
        work.proc[i] = (struct proc){.client = sim_client(i / SIM_PROCS), .index = i};
}

void sim_work_client_up(struct sim_node *n)
{
    sim.history.root = core_root(n->core);
    known_learn(sim.history.root, KNOWN_DIR);
    work.up[n->index] = true;
    work.lost[n->index] = work.batched[n->index] = 0;
    work_spoils_client(n->index);
    session_begins(n->index);
}

void sim_work_client_down(struct sim_node *n)
{
    work.up[n->index] = false;
    for (unsigned i = 0; i < ARRAY_LEN(work.proc); i++) {
        struct proc *p = &work.proc[i];

        if (p->client != n)
            continue;
        SIM_CHECK(!p->busy);
        if (p->unread)
            core_read_done(&p->q);
        p->unread = false;
        p->gave_up = NULL;
        for (unsigned k = 0; k < FDS; k++) {
            if (p->fd[k].file)
                core_release(n->core, p->fd[k].file);
            p->fd[k].file = NULL;
            p->fd[k].held = (struct held){0};
        }
    }
    work_removals_lost(n->index);
    record_loss(n->index, true);
}
