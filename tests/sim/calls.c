/* SPDX-License-Identifier: Apache-2.0 */
/* One call of each kind: its arguments are drawn, written into the history and given to the core.
 */
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>

#include "tests/sim/known.h"
#include "tests/sim/scene.h"
#include "tests/sim/states.h"
#include "tests/sim/work_int.h"

static uint32_t n_values; /* written so far, each its own */

void work_calls_start(void)
{
    n_values = 0;
}

void work_begin(struct proc *p, enum op_kind kind, uint64_t ino)
{
    p->op = work_record(p->client->index, kind);
    p->ghost = sim.history.next;
    sim.history.next += kind == OP_APPEND || kind == OP_WRITE ? 2 : 0;
    p->op->ino = ino;
    p->starts = sim_mds()->starts;
    p->oss_starts = work_oss_starts();
    p->was_lost = p->again = false;
    p->busy = true;
    memset(&p->q, 0, sizeof p->q);
    p->q.done = work_finish;
    p->q.arg = p;
}

void work_say_call(const struct proc *p)
{
    if (!sim.verbose)
        return;
    sim_say("call %u:", (unsigned)(p->op - sim.history.ops));
    op_print(p->op, stdout);
}

/* The number of what is made ahead reaches others with its name only, so not before it is there. */
uint64_t work_known(const struct proc *p, uint64_t ino)
{
    for (unsigned i = 0; i < SIM_CLIENTS; i++) {
        const struct sim_node *n = sim_client(i);

        if (n != p->client && n->up && n->core && states_makes(n->core, ino))
            return sim.history.root;
    }
    return work_removals_unsure(ino) ? sim.history.root : ino;
}

uint64_t work_draw(const struct proc *p, bool any)
{
    return work_known(p, known_draw(false, any));
}

uint64_t work_draw_dir(const struct proc *p)
{
    return work_known(p, known_draw_dir());
}

/* A file without a name gets one from who has made it, more often than not. */
static void draw_linked(struct proc *p, struct op *o)
{
    uint64_t link = sim_chance(150) ? known_draw_link() : 0;

    o->ino2 = link ? link : work_draw(p, sim_chance(100));
    for (unsigned k = 0; k < FDS; k++) {
        if (!p->fd[k].file || !p->fd[k].unnamed || sim_chance(200))
            continue;
        p->on = &p->fd[k];
        o->ino2 = p->fd[k].ino;
        o->held = true;
    }
}

void work_call_name_in(struct proc *p, enum op_kind kind, uint64_t dir, unsigned name)
{
    static const struct msg_stripe stripe = {.chunk_bytes = SIM_CHUNK};
    struct core *c = p->client->core;
    struct op *o;

    work_begin(p, kind, dir);
    o = p->op;
    o->name = (uint8_t)name;
    o->name2 = (uint8_t)scene_name();
    p->name = (char)('a' + o->name);
    p->name2 = (char)('a' + o->name2);
    if (kind == OP_CREATE) {
        o->value = 0600 + sim_below(64);
        o->flags = sim_chance(500) ? O_EXCL : 0;
    } else if (kind == OP_MKDIR) {
        o->value = 0700 + sim_below(64);
    } else if (kind == OP_RENAME) {
        o->ino2 = sim_chance(500) ? o->ino : work_draw_dir(p);
        o->flags = sim_chance(700) ? 0 : 1 + sim_below(2);
    } else if (kind == OP_SYMLINK) {
        o->value = ++n_values;
        snprintf(p->target, sizeof p->target, "%0*x", (int)LINK_BYTES, o->value);
    } else if (kind == OP_TMPFILE) {
        o->value = 0600 + sim_below(64);
        o->flags = sim_chance(150) ? O_EXCL : 0;
    } else if (kind == OP_LINK) {
        draw_linked(p, o);
    }
    p->q.ahead = !sim_chance(100) && (kind == OP_UNLINK || kind == OP_RMDIR || kind == OP_RENAME ||
                                      ((kind == OP_CREATE || kind == OP_MKDIR) &&
                                       work_removals_makes() && o->ino != sim.history.root));
    o->own_change = kind == OP_LOOKUP && work_is_naming(p);
    work_say_call(p);
    if (kind == OP_LOOKUP)
        core_lookup(c, &p->q, o->ino, &p->name, 1);
    else if (kind == OP_CREATE)
        core_create_file(c, &p->q, o->ino, &p->name, 1, o->value, O_RDWR | O_CREAT | (int)o->flags,
                         p->q.ahead ? NULL : &stripe);
    else if (kind == OP_TMPFILE)
        core_create_file(c, &p->q, o->ino, "-", 1, o->value, O_RDWR | O_TMPFILE | (int)o->flags,
                         &stripe);
    else if (kind == OP_SYMLINK)
        core_symlink(c, &p->q, o->ino, &p->name, 1, p->target, LINK_BYTES);
    else if (kind == OP_MKDIR)
        core_mkdir(c, &p->q, o->ino, &p->name, 1, o->value,
                   work_removals_makes() && !p->q.ahead
                       ? &stripe /* what is made there inherits it */
                       : NULL);
    else if (kind == OP_UNLINK)
        core_unlink(c, &p->q, o->ino, &p->name, 1);
    else if (kind == OP_RMDIR)
        core_rmdir(c, &p->q, o->ino, &p->name, 1);
    else if (kind == OP_LINK)
        core_link(c, &p->q, o->ino2, o->ino, &p->name, 1);
    else
        core_rename(c, &p->q, o->ino, &p->name, 1, o->ino2, &p->name2, 1, o->flags);
}

void work_call_rename(struct proc *p, uint64_t dir, unsigned name, unsigned name2)
{
    struct op *o;

    work_begin(p, OP_RENAME, dir);
    o = p->op;
    o->ino2 = dir;
    o->name = (uint8_t)name;
    o->name2 = (uint8_t)name2;
    o->flags = sim_chance(150) ? RENAME_NOREPLACE : 0;
    p->name = (char)('a' + name);
    p->name2 = (char)('a' + name2);
    p->q.ahead = true;
    work_say_call(p);
    core_rename(p->client->core, &p->q, dir, &p->name, 1, dir, &p->name2, 1, o->flags);
}

void work_call_name(struct proc *p, enum op_kind kind)
{
    work_call_name_in(p, kind, work_draw_dir(p), scene_name());
}

static uint32_t draw_size(void)
{
    return history_cell_offset(scene_cell()) + (sim_chance(500) ? SIM_CELL_BYTES : 0);
}

static void call_set(struct proc *p, enum op_kind kind, uint64_t ino, uint32_t value,
                     struct core_file *f)
{
    struct msg_setattr_req set = {.ino = ino};

    work_begin(p, kind, ino);
    p->op->value = value;
    set.set = kind == OP_CHMOD ? MSG_SET_MODE : MSG_SET_SIZE;
    set.mode = kind == OP_CHMOD ? p->op->value : 0;
    set.size = kind == OP_CHMOD ? 0 : p->op->value;
    p->op->flags = kind == OP_CHMOD ? states_mode(p->client->core, ino) : 0;
    work_say_call(p);
    core_setattr(p->client->core, &p->q, &set, f);
}

void work_call_setattr(struct proc *p, enum op_kind kind, uint64_t ino, struct core_file *f)
{
    call_set(p, kind, ino, kind == OP_CHMOD ? 0600 + sim_below(64) : draw_size(), f);
}

void work_call_cut(struct proc *p, struct fd *fd)
{
    call_set(p, OP_TRUNCATE, fd->ino, history_cell_offset(scene.first_cell), fd->file);
}

void work_call_object(struct proc *p, enum op_kind kind, uint64_t ino)
{
    struct core *c = p->client->core;

    work_begin(p, kind, ino);
    if (kind == OP_SETXATTR) {
        p->op->value = ++n_values;
        memcpy(p->xattr, &p->op->value, sizeof p->op->value);
    }
    p->op->sealing = kind == OP_GETATTR && sim_is_sealing(ino);
    p->op->own_change = kind == OP_GETATTR && work_is_changing(p, ino);
    work_say_call(p);
    if (kind == OP_GETATTR)
        core_getattr(c, &p->q, ino);
    else if (kind == OP_SETXATTR)
        core_setxattr(c, &p->q, ino, "user.x", 6, p->xattr, sizeof p->op->value, 0);
    else if (kind == OP_READLINK)
        core_readlink(c, &p->q, ino);
    else if (kind == OP_GETXATTR)
        core_getxattr(c, &p->q, ino, "user.x", 6);
    else
        core_readdir(c, &p->q, ino, 0, 32768, sim_chance(500));
}

void work_call_open(struct proc *p, struct fd *fd, uint64_t ino, int flags)
{
    work_begin(p, OP_OPEN, ino);
    p->op->flags = (uint32_t)flags;
    p->on = fd;
    work_say_call(p);
    core_open(p->client->core, &p->q, ino, flags);
}

void work_call_data(struct proc *p, enum op_kind kind, struct fd *fd, unsigned cell)
{
    static const uint32_t ranges[] = {FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                      FALLOC_FL_ZERO_RANGE, 0};
    struct core *c = p->client->core;

    work_begin(p, kind, fd->ino);
    p->on = fd;
    p->was_lost = fd->lost;
    p->op->cell = (uint8_t)cell;
    p->op->sealing = kind == OP_READ && sim_is_sealing(fd->ino);
    if (kind == OP_ALLOCATE)
        p->op->flags = ranges[sim_below(ARRAY_LEN(ranges))];
    if (kind == OP_WRITE || kind == OP_APPEND) {
        p->op->value = ++n_values;
        for (unsigned k = 0; k < SIM_CELL_BYTES; k += 4)
            memcpy(p->data + k, &p->op->value, 4);
        p->iov = (struct iovec){p->data, sizeof p->data};
        p->q.direct = sim_commits_at_once() && n_values % 4;
    }
    work_say_call(p);
    if (kind == OP_ALLOCATE)
        core_fallocate(c, &p->q, fd->file, (int)p->op->flags, history_cell_offset(cell),
                       SIM_CELL_BYTES);
    else if (kind == OP_WRITE || kind == OP_APPEND)
        core_write(c, &p->q, fd->file, history_cell_offset(cell), &p->iov, 1, SIM_CELL_BYTES);
    else if (kind == OP_READ)
        core_read(c, &p->q, fd->file, history_cell_offset(cell), SIM_CELL_BYTES, NULL);
    else if (kind == OP_FSYNC)
        core_fsync(c, &p->q, fd->file, false);
    else
        core_flush(c, &p->q, fd->file);
}

void work_close_fd(struct proc *p, struct fd *fd)
{
    p->closing = true;
    work_call_data(p, OP_FLUSH, fd, 0);
}
