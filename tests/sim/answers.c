/* SPDX-License-Identifier: Apache-2.0 */
/* What an answer says goes into the history, and what it has opened or named is known from now on.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/compiler.h"
#include "common/base/err.h"
#include "tests/sim/known.h"
#include "tests/sim/losses.h"
#include "tests/sim/work_int.h"

static void take_read(struct proc *p)
{
    uint8_t got[SIM_CELL_BYTES] = {0};
    uint32_t n = 0;

    for (unsigned k = 0; k < p->q.out.read.n_iov; k++) {
        size_t len = p->q.out.read.iov[k].iov_len;

        SIM_CHECK(n + len <= sizeof got);
        memcpy(got + n, p->q.out.read.iov[k].iov_base, len);
        n += (uint32_t)len;
    }
    p->op->ret_size = n;
    memcpy(&p->op->ret_value, got, 4);
    for (unsigned k = 4; k < n; k += 4)
        if (memcmp(got, got + k, 4) != 0)
            p->op->ret_value = UINT32_MAX; /* torn: nobody ever wrote that */
}

static void take_readdir(struct proc *p)
{
    struct core_dirent e;
    int rc;

    while ((rc = core_dirent_next(&p->q, &e)) == 1) {
        SIM_CHECK(e.name_len == 1 && (unsigned)(e.name[0] - 'a') < SIM_NAMES);
        SIM_CHECK(!p->op->ret_names[e.name[0] - 'a']);
        p->op->ret_names[e.name[0] - 'a'] = e.ino;
    }
    SIM_CHECK(rc == 0 && p->q.out.dir.eof);
    core_readdir_done(&p->q);
}

static void take_fd(struct proc *p, int flags)
{
    p->on->file = p->q.out.opened.file;
    p->on->ino = core_file_ino(p->on->file);
    p->on->flags = flags;
    p->on->unnamed = p->on->told = false;
    p->on->owed_from = 0;
    p->on->made_in = p->op->kind == OP_CREATE ? p->op->ino : 0;
    p->on->made_as = p->op->name;
    work_locks_opened(p->on);
}

static void take_link(struct proc *p)
{
    char text[LINK_BYTES + 1] = {0};

    SIM_CHECK(p->q.out.bytes.len == LINK_BYTES);
    memcpy(text, p->q.out.bytes.data, LINK_BYTES);
    p->op->ret_value = (uint32_t)strtoul(text, NULL, 16);
}

static enum known_kind kind_of(uint32_t mode)
{
    return (mode & S_IFMT) == S_IFDIR   ? KNOWN_DIR
           : (mode & S_IFMT) == S_IFLNK ? KNOWN_LINK
                                        : KNOWN_FILE;
}

void work_take(struct proc *p)
{
    const struct core_entry *e = &p->q.entry;
    struct op *o = p->op;

    switch (o->kind) {
    case OP_CREATE:
        take_fd(p, O_RDWR);
        o->ret_ino = p->on->ino;
        known_learn(o->ret_ino, KNOWN_FILE);
        break;
    case OP_TMPFILE:
        take_fd(p, O_RDWR);
        p->on->unnamed = sim_mds()->starts == p->starts; /* docs/posix.md, O_TMPFILE */
        o->ret_ino = p->on->ino;
        known_learn(o->ret_ino, KNOWN_FILE);
        break;
    case OP_OPEN:
        take_fd(p, (int)o->flags);
        break;
    case OP_LOOKUP:
    case OP_MKDIR:
    case OP_SYMLINK:
        o->ret_ino = e->ino;
        known_learn(e->ino, kind_of(e->attr.mode));
        break;
    case OP_READLINK:
        take_link(p);
        sim_hit(SIM_READLINK);
        break;
    case OP_LINK:
        o->held &= p->on && p->on->unnamed;
        if (o->held)
            sim_hit(SIM_LINK_UNNAMED);
        break;
    case OP_GETATTR:
        o->ret_size = (uint32_t)e->attr.size;
        o->ret_mode = e->attr.mode & 07777;
        o->ret_nlink = e->attr.nlink;
        o->ret_dir = (e->attr.mode & S_IFMT) == S_IFDIR;
        break;
    case OP_READDIR:
        take_readdir(p);
        break;
    case OP_GETXATTR:
        SIM_CHECK(p->q.out.bytes.len == sizeof o->ret_value);
        memcpy(&o->ret_value, p->q.out.bytes.data, sizeof o->ret_value);
        break;
    case OP_APPEND:
        o->ret_size = (uint32_t)p->q.out.write.offset;
        break;
    case OP_READ:
        take_read(p);
        p->unread = true;
        break;
    default:
        break;
    }
}

static bool is_definite(int status)
{
    static const int errors[] = {0,      ENOENT, EEXIST,  ENOTDIR, EISDIR, ENOTEMPTY,
                                 EINVAL, EPERM,  ENODATA, ESTALE,  EAGAIN, EDEADLK};

    for (unsigned i = 0; i < ARRAY_LEN(errors); i++)
        if (status == -errors[i])
            return true;
    return false;
}

/* A write that finds no room has done nothing; but the place of an append is given before it is
 * known whether there is room for it, and may stay (docs/posix.md), and an allocation may have been
 * made when it tells of what else could not be stored. */
bool work_says_outcome(const struct op *o, int status)
{
    if (status == -ENOSPC && losses_fill())
        return o->kind == OP_WRITE;
    if (status == -ESTALE && (o->kind == OP_CREATE || o->kind == OP_TMPFILE))
        return false; /* made before a restart of the metadata server, and gone since */
    return is_definite(status);
}

/* Once more tells nothing new, and each may be there, or not, for as long as its session. */
bool work_knows_lost(const struct proc *p, uint64_t ino)
{
    unsigned n = 0;

    for (unsigned i = 0; i < sim.history.n; i++) {
        const struct op *o = &sim.history.ops[i];

        n += o->client == p->client->index && o->ino == ino && o->status == -AIFS_ELOST &&
             o->kind >= OP_WRITE && o->kind <= OP_ALLOCATE;
    }
    return n > 0;
}

/* What fails because its target was given up may be there later: its size, or place, is the
 * metadata server's to tell. */
bool work_is_over(int status)
{
    return status == -ENOSPC || status == -ESTALE;
}

/* ---- what the same client changes meanwhile ---- */

/* Names that change are not looked at one by one: any may be a name of the file. */
static bool changes(const struct op *o, uint64_t ino)
{
    switch (o->kind) {
    case OP_UNLINK:
    case OP_RENAME:
        return true;
    case OP_LINK:
        return o->ino2 == ino;
    case OP_CHMOD:
        return o->ino == ino;
    default:
        return false;
    }
}

bool work_is_changing(const struct proc *by, uint64_t ino)
{
    for (unsigned i = 0; i < SIM_CLIENTS * SIM_PROCS; i++) {
        const struct proc *p = work_proc(i);

        if (p != by && p->client == by->client && p->busy && changes(p->op, ino))
            return true;
    }
    return false;
}

static bool names(const struct op *o, uint64_t dir, uint8_t name)
{
    bool makes_or_goes = o->kind != OP_LOOKUP && o->kind <= OP_LINK && o->kind != OP_TMPFILE;

    return makes_or_goes && ((o->ino == dir && o->name == name) ||
                             (o->kind == OP_RENAME && o->ino2 == dir && o->name2 == name));
}

bool work_is_naming(const struct proc *by)
{
    for (unsigned i = 0; i < SIM_CLIENTS * SIM_PROCS; i++) {
        const struct proc *p = work_proc(i);

        if (p != by && p->client == by->client && p->busy &&
            names(p->op, by->op->ino, by->op->name))
            return true;
    }
    return false;
}
