/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removals that a client has answered ahead (ADR 0017). Until the server has executed one, the end
 * of its session, or of its client, may take it back: then the name is there again. In the history
 * that is an operation of the same client, RESTORE, which happens before its session has ended, or
 * never. Nobody else may look there meanwhile, so it does not matter when. So it is with creations
 * (ADR 0018): what may be taken back is UNMAKE; and of what was set on a directory so, UNSET; and
 * with renames (ADR 0020): UNMOVE.
 */
#include <fcntl.h>
#include <string.h>

#include "tests/sim/known.h"
#include "tests/sim/scene.h"
#include "tests/sim/states.h"
#include "tests/sim/work_int.h"

#define REMOVALS_MAX 64u
#define MAKES_FIRST  9u
#define STEPS        (2 * SIM_NAMES + 7)

struct removal {
    unsigned client;
    uint64_t dir, ino;
    uint64_t which, replaced; /* a rename, and over what */
    uint8_t name, name2;
    bool is_dir;
    bool made;       /* a creation */
    bool set;        /* a mode, of this directory */
    uint32_t mode;   /* the one before */
    uint32_t number; /* in the sequence of the history, behind its answer */
};

static struct removal removals[REMOVALS_MAX];
static unsigned n_removals;
/* Creations of clients that have crashed or lost their session: they may still arrive. */
static uint64_t on_their_way[REMOVALS_MAX];
static unsigned n_on_their_way;

/* A process that removes one name after the other: it makes some, lists, and takes them away, at
 * once or after a while, and then their directory. In these seeds the other clients seldom look. */
static struct {
    bool inner;          /* it is being made in the one before */
    bool renames;        /* some of them, too */
    unsigned renamed;    /* 1 + the name that one has got last; 0: not lately */
    bool on, makes;      /* makes: files, again and again, and seldom takes them away */
    uint64_t outer, dir; /* the one in the other, if they were made for this */
    unsigned name;       /* there */
    unsigned names;      /* makes: that should be there, bits */
    unsigned sets;       /* modes that it still gets */
    unsigned step, per_thousand;
    const struct proc *looker; /* of another client: looks there now */
} remover;

void work_removals_start(void)
{
    n_removals = n_on_their_way = 0;
    memset(&remover, 0, sizeof remover);
    if (scene.kind != SCENE_ALL && scene.kind != SCENE_NAMES)
        return;
    remover.on = sim_chance(500);
    remover.per_thousand = 500 + sim_below(500);
    remover.makes = sim_chance(600);
    remover.renames = sim_chance(600);
}

/* Made for it, if there is room for one more; else one that others know of. */
static void begin(struct proc *p, uint64_t dir)
{
    remover.name = sim_below(SIM_NAMES);
    if (work_may_make(OP_MKDIR))
        work_call_name_in(p, OP_MKDIR, dir, remover.name);
    else
        work_call_object(p, OP_READDIR, dir);
}

static bool look(struct proc *p)
{
    unsigned what = sim_below(4);
    uint64_t dir = work_known(p, remover.dir);

    remover.looker = NULL;
    if (what == 0)
        work_call_object(p, OP_READDIR, dir);
    else if (what == 1)
        work_call_object(p, OP_GETATTR, known_draw_link() ? known_draw_link() : dir);
    else
        work_call_name_in(p, what == 2 ? OP_LOOKUP : OP_UNLINK, dir, sim_below(SIM_NAMES));
    return true;
}

/* What is done with the file that it has open; false: there is none. */
static bool use_made(struct proc *p, struct fd *fd)
{
    unsigned what = remover.step < MAKES_FIRST ? 9 : sim_below(10);

    if (!fd->file)
        return false;
    if (what < 5 && (fd->flags & O_ACCMODE) == O_RDWR)
        work_call_data(p,
                       what > 3               ? OP_READ
                       : fd->flags & O_APPEND ? OP_APPEND
                                              : OP_WRITE,
                       fd, sim_below(what == 3 ? SIM_CELLS : 2));
    else if (what == 5)
        work_call_setattr(p, OP_CHMOD, core_file_ino(fd->file), NULL);
    else
        work_close_fd(p, fd);
    return true;
}

static unsigned draw_name(unsigned among)
{
    unsigned name = sim_below(SIM_NAMES);

    while (!(among >> name & 1))
        name = (name + 1) % SIM_NAMES;
    return name;
}

/* More often than not the one that was renamed last, or made: several are under way then. */
static void rename_one(struct proc *p)
{
    unsigned name = remover.renamed && sim_chance(500) ? remover.renamed - 1
                                                       : draw_name(remover.names),
             name2 = sim_below(SIM_NAMES);

    remover.renamed = name2 + 1;
    remover.names = (remover.names & ~(1u << name)) | 1u << name2;
    work_call_rename(p, remover.dir, name, name2);
}

/* Into which files are made. false: it is there. */
static bool make_dir(struct proc *p)
{
    if (remover.step == 1 && !remover.dir)
        remover.dir = known_last_dir();
    if (remover.inner && !remover.dir)
        remover.dir = known_last_dir();
    remover.inner = false;
    if (remover.dir)
        return false;
    remover.dir = sim.history.root;
    if (!work_may_make(OP_MKDIR))
        return false;
    remover.dir = 0;
    remover.names = 0;
    remover.step = 1;
    work_call_name_in(p, OP_MKDIR, sim.history.root, sim_below(SIM_NAMES));
    return true;
}

/* Files in one directory, one after the other: written to, or not, and closed; some are taken away
 * again, or it goes on in another directory. The first ones and a list tell the client that it is
 * alone there. */
static void make_files(struct proc *p)
{
    const unsigned all = (1u << SIM_NAMES) - 1;
    unsigned what = sim_below(20), name;

    if (work_removals_unsure(remover.dir))
        remover.dir = remover.step = 0;
    if (make_dir(p))
        return;
    p->on = &p->fd[0];
    remover.step++;
    if (use_made(p, p->on))
        return;
    if (remover.sets && sim_chance(500)) { /* of one that may be here only */
        remover.sets--;
        work_call_setattr(p, OP_CHMOD, remover.dir, NULL);
        return;
    }
    if (remover.step < MAKES_FIRST)
        what = remover.names == (remover.names | 3) ? 17 : 0;
    if (remover.names == all)
        what = what < 3 ? 19 : 15;
    if (remover.renames && remover.names && remover.step >= MAKES_FIRST && sim_chance(500)) {
        rename_one(p);
    } else if (what > 9 && what < 14 && work_may_make(OP_MKDIR)) { /* and on in that one */
        name = draw_name(all & ~remover.names);
        work_call_name_in(p, OP_MKDIR, remover.dir, name);
        remover.inner = true;
        remover.sets = sim_below(4);
        remover.dir = 0;
        remover.names = 0;
    } else if (what < 14 && work_may_make(OP_CREATE)) {
        name = draw_name(all & ~remover.names);
        remover.names |= 1u << name;
        remover.renamed = name + 1;
        work_call_name_in(p, OP_CREATE, remover.dir, name);
    } else if (what < 17 && remover.names) {
        name = draw_name(remover.names);
        remover.names &= ~(1u << name);
        work_call_name_in(p, OP_UNLINK, remover.dir, name);
    } else if (what < 18) {
        work_call_object(p, OP_READDIR, remover.dir);
    } else {
        work_call_name_in(p, OP_LOOKUP, remover.dir, sim_below(SIM_NAMES));
        remover.dir = what < 19 ? remover.dir : 0;
        remover.step = remover.dir ? remover.step : 0;
    }
}

bool work_removals_makes(void)
{
    return remover.makes;
}

bool work_removals_call(struct proc *p)
{
    unsigned step = remover.step;

    if (remover.on && p == remover.looker)
        return look(p);
    if (!remover.on || p->index || !sim_chance(remover.per_thousand))
        return false;
    if (remover.makes) {
        make_files(p);
        return true;
    }
    if (remover.renames && step > SIM_NAMES + 4 && step < 2 * SIM_NAMES + 3 && sim_chance(600)) {
        work_call_rename(p, remover.dir, sim_below(SIM_NAMES), sim_below(SIM_NAMES));
        return true;
    }
    remover.step = step < STEPS - 1 ? step + 1 : sim_below(4);
    if (step == 1)
        remover.outer = sim_chance(100) ? work_draw_dir(p) : known_last_dir();
    if (step == 2)
        remover.dir = sim_chance(100) ? work_draw_dir(p) : known_last_dir();
    if (step <= 1)
        begin(p, step ? remover.outer : sim.history.root);
    else if (step <= SIM_NAMES + 1 && work_may_make(OP_SYMLINK))
        work_call_name_in(p, OP_SYMLINK, remover.dir, step - 2);
    else if (step <= SIM_NAMES + 2)
        work_call_object(p, OP_READDIR, remover.dir);
    else if (step == SIM_NAMES + 3)
        work_call_object(p, OP_GETATTR, remover.dir); /* as the kernel does: is it allowed? */
    else if (step <= 2 * SIM_NAMES + 3)
        work_call_name_in(p, OP_UNLINK, remover.dir, step - SIM_NAMES - 4);
    else if (step < STEPS - 1)
        work_call_object(p, step == STEPS - 3 ? OP_READDIR : OP_GETATTR, remover.outer);
    else
        work_call_name_in(p, OP_RMDIR, remover.outer, remover.name);
    return true;
}

uint64_t work_removals_rest(const struct proc *p, uint64_t think_ns)
{
    if (!remover.on || p->index == 1)
        return think_ns;
    return p->index ? think_ns + NS_PER_S * sim_below(4) : think_ns / 32;
}

void work_removals_set(const struct proc *p, const struct op *o)
{
    if (!states_sets(p->client->core, o->ino))
        return;
    SIM_CHECK(n_removals < REMOVALS_MAX);
    removals[n_removals++] = (struct removal){.client = p->client->index,
                                              .dir = o->ino,
                                              .set = true,
                                              .mode = o->flags,
                                              .number = sim.history.next++};
    sim_hit(SIM_DIR_SET_AHEAD);
}

static void renamed(const struct proc *p, const struct op *o)
{
    struct removal r = {
        .client = p->client->index, .dir = o->ino, .name = o->name, .name2 = o->name2};

    if (o->ino2 != o->ino)
        return;
    r.which = states_rename(p->client->core, o->ino, p->name, p->name2, 0, &r.ino, &r.replaced);
    for (unsigned i = 0; i < n_removals; i++)
        if (removals[i].client == r.client && removals[i].which == r.which)
            return; /* an earlier one */
    if (!r.which)
        return;
    SIM_CHECK(n_removals < REMOVALS_MAX);
    r.number = sim.history.next++;
    removals[n_removals++] = r;
    sim_hit(r.replaced ? SIM_REPLACED_AHEAD : SIM_RENAMED_AHEAD);
}

void work_removals_answered(const struct proc *p, const struct op *o)
{
    bool made = o->kind == OP_CREATE || o->kind == OP_MKDIR;
    uint64_t ino = states_removal(p->client->core, made, o->ino, (char)('a' + o->name));
    struct proc *other;

    if (o->kind == OP_RENAME)
        renamed(p, o);
    if (!ino || o->kind == OP_RENAME)
        return;
    SIM_CHECK(n_removals < REMOVALS_MAX);
    removals[n_removals++] = (struct removal){.client = p->client->index,
                                              .dir = o->ino,
                                              .ino = ino,
                                              .name = o->name,
                                              .is_dir = o->kind == OP_RMDIR || o->kind == OP_MKDIR,
                                              .made = made,
                                              .number = sim.history.next++};
    sim_hit(o->kind == OP_MKDIR   ? SIM_DIR_CREATED_AHEAD
            : made                ? SIM_CREATED_AHEAD
            : o->kind == OP_RMDIR ? SIM_DIR_REMOVED_AHEAD
                                  : SIM_REMOVED_AHEAD);
    if (!remover.on || remover.looker || p->index || !sim_chance(60))
        return;
    other = work_proc(SIM_PROCS + sim_below((SIM_CLIENTS - 1) * SIM_PROCS));
    remover.looker = other;
    other->next_ns = MIN(other->next_ns, sim_now() + sim_below(3) * 100 * NS_PER_US);
}

bool work_removals_unsure(uint64_t ino)
{
    for (unsigned i = 0; i < MIN(n_on_their_way, REMOVALS_MAX); i++)
        if (on_their_way[i] == ino)
            return !sim_is_there(ino);
    return false;
}

static void forget(unsigned i)
{
    removals[i] = removals[--n_removals];
}

static bool is_under_way(const struct core *c, const struct removal *r)
{
    uint64_t ino;

    if (r->which)
        return states_rename(c, r->dir, (char)('a' + r->name), (char)('a' + r->name2), r->which,
                             &ino, &ino) != 0;
    return r->set ? states_sets(c, r->dir)
                  : states_removal(c, r->made, r->dir, (char)('a' + r->name)) != 0;
}

void work_removals_tick(unsigned client)
{
    const struct core *c = sim_client(client)->core;

    for (unsigned i = n_removals; i-- > 0;) {
        const struct removal *r = &removals[i];

        if (r->client == client && !is_under_way(c, r))
            forget(i);
    }
}

void work_removals_lost(unsigned client)
{
    for (unsigned i = n_removals; i-- > 0;) {
        const struct removal *r = &removals[i];
        struct op *o;

        if (r->client != client)
            continue;
        if (r->made)
            on_their_way[n_on_their_way++ % REMOVALS_MAX] = r->ino;
        o = work_record(client, r->which  ? OP_UNMOVE
                                : r->set  ? OP_UNSET
                                : r->made ? OP_UNMAKE
                                          : OP_RESTORE);
        o->call = r->number;
        o->ino = r->dir;
        o->ino2 = r->ino;
        o->ret_dir = r->is_dir;
        o->name = r->name;
        o->name2 = r->name2;
        o->ret_ino = r->replaced;
        o->value = r->mode;
        o->unknown = true;
        sim_hit(r->which  ? SIM_RENAME_LOST
                : r->set  ? SIM_SETTING_LOST
                : r->made ? SIM_CREATION_LOST
                          : SIM_REMOVAL_LOST);
        forget(i);
    }
}
