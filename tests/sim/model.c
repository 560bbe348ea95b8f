/* SPDX-License-Identifier: Apache-2.0 */
/* See model.h. Each operation decides its status as the server would, then compares. What is done
 * to the contents of files: model_contents.c. */
#include "tests/sim/model_int.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>

#include "common/base/compiler.h"

/* ---- finding things ---- */

void model_init(struct model *m, uint64_t root)
{
    memset(m, 0, sizeof *m);
    m->inode[0] = (struct model_inode){
        .ino = root, .used = 1, .is_dir = 1, .nlink = 2, .mode = 0777, .size = past_of(0)};
}

struct model_inode *model_by_ino(struct model *m, uint64_t ino)
{
    for (unsigned i = 0; ino && i < MODEL_INODES; i++) /* 0: none, or not known yet */
        if (m->inode[i].used && m->inode[i].ino == ino)
            return &m->inode[i];
    return NULL;
}

static struct model_inode *dir_by_ino(struct model *m, uint64_t ino, int *ret_status)
{
    struct model_inode *d = model_by_ino(m, ino);

    *ret_status = !d || !d->nlink ? -ENOENT : d->is_dir ? 0 : -ENOTDIR;
    return d;
}

static struct model_inode *entry(struct model *m, const struct model_inode *d, unsigned name)
{
    unsigned place = m->names[d->dir][name];

    return place ? &m->inode[place - 1] : NULL;
}

static void set_entry(struct model *m, const struct model_inode *d, unsigned name,
                      const struct model_inode *to)
{
    m->names[d->dir][name] = to ? (uint8_t)(to - m->inode + 1) : 0;
}

static bool is_empty(const struct model *m, const struct model_inode *d)
{
    for (unsigned i = 0; i < SIM_NAMES; i++)
        if (m->names[d->dir][i])
            return false;
    return true;
}

static bool is_above(const struct model *m, const struct model_inode *a,
                     const struct model_inode *d)
{
    while (d != a && d != &m->inode[0])
        d = &m->inode[d->parent];
    return d == a;
}

/* The answer names this inode: whose number is not known gets it. */
static bool is_same(struct model *m, struct model_inode *i, uint64_t ino)
{
    if (i->ino == 0 && ino && !model_by_ino(m, ino))
        i->ino = ino;
    return i->ino == ino;
}

/* ---- names ---- */

bool model_status_is(const struct op *o, int status)
{
    return o->unknown || o->status == status;
}

static bool do_lookup(struct model *m, const struct op *o)
{
    int status;
    struct model_inode *d = dir_by_ino(m, o->ino, &status), *i = NULL;

    if (o->own_change && (o->status == -ENOENT || model_by_ino(m, o->ret_ino)))
        return true; /* maybe from before; a number that is new tells which file it is */
    if (!status && !(i = entry(m, d, o->name)))
        status = -ENOENT;
    return model_status_is(o, status) && (status || is_same(m, i, o->ret_ino));
}

static struct model_inode *make(struct model *m, const struct op *o, unsigned place, unsigned dir)
{
    struct model_inode *i = &m->inode[place];

    memset(i, 0, sizeof *i);
    i->ino = o->unknown ? 0 : o->ret_ino;
    i->used = 1;
    i->is_dir = o->kind == OP_MKDIR;
    i->is_link = o->kind == OP_SYMLINK;
    i->dir = (uint8_t)dir;
    i->nlink = i->is_dir ? 2 : 1;
    i->mode = i->is_link ? 0777 : o->value;
    i->xattr = i->is_link ? o->value : 0;
    i->size = past_of(i->is_link ? LINK_BYTES : 0);
    for (unsigned k = 0; k < SIM_CELLS; k++)
        i->cell[k] = past_of(0);
    return i;
}

static bool do_make(struct model *m, const struct op *o, unsigned place, unsigned dir)
{
    int status;
    struct model_inode *d = dir_by_ino(m, o->ino, &status), *i;

    i = status ? NULL : entry(m, d, o->name);
    if (i && (o->kind != OP_CREATE || o->flags & O_EXCL || i->is_link))
        status = -EEXIST;
    else if (i && i->is_dir)
        status = -EISDIR;
    else if (i) /* an open */
        return model_status_is(o, 0) && (o->unknown || is_same(m, i, o->ret_ino));
    if (!model_status_is(o, status))
        return false;
    if (status)
        return true;
    if (!o->unknown && model_by_ino(m, o->ret_ino))
        return false; /* a number is never used again */
    i = make(m, o, place, dir);
    i->parent = (uint8_t)(d - m->inode);
    set_entry(m, d, o->name, i);
    d->nlink = (uint8_t)(d->nlink + i->is_dir);
    return true;
}

/* Nobody finds it but who has made it; when the answer was lost, nobody at all. */
static bool do_make_unnamed(struct model *m, const struct op *o, unsigned place)
{
    int status;
    struct model_inode *i;

    (void)dir_by_ino(m, o->ino, &status);
    if (o->unknown || status)
        return model_status_is(o, status);
    if (o->status || model_by_ino(m, o->ret_ino))
        return false;
    i = make(m, o, place, 0);
    i->nlink = 0;
    i->linkable = !(o->flags & O_EXCL);
    return true;
}

static bool do_remove(struct model *m, const struct op *o)
{
    int status;
    struct model_inode *d = dir_by_ino(m, o->ino, &status), *i = NULL;

    if (!status && !(i = entry(m, d, o->name)))
        status = -ENOENT;
    if (i && o->kind == OP_UNLINK && i->is_dir)
        status = -EISDIR;
    if (i && o->kind == OP_RMDIR)
        status = !i->is_dir ? -ENOTDIR : is_empty(m, i) ? 0 : -ENOTEMPTY;
    if (!model_status_is(o, status) || status)
        return model_status_is(o, status);
    set_entry(m, d, o->name, NULL);
    i->nlink = i->is_dir ? 0 : (uint8_t)(i->nlink - 1);
    d->nlink = (uint8_t)(d->nlink - i->is_dir);
    return true;
}

/* Nobody else has been there since; its number may not have been told to anybody yet. */
static bool do_restore(struct model *m, const struct op *o)
{
    int status;
    struct model_inode *d = dir_by_ino(m, o->ino, &status), *i = model_by_ino(m, o->ino2);

    for (unsigned k = 0; !i && k < MODEL_INODES; k++)
        if (m->inode[k].used && !m->inode[k].ino && m->inode[k].is_dir == o->ret_dir &&
            !m->inode[k].nlink)
            i = &m->inode[k];
    if (status || !i || i->nlink || entry(m, d, o->name))
        return false;
    set_entry(m, d, o->name, i);
    i->nlink = i->is_dir ? 2 : (uint8_t)(i->nlink + 1);
    d->nlink = (uint8_t)(d->nlink + i->is_dir);
    return true;
}

/* It has had no other name: whatever gives it one waits until it is made. */
static bool do_unmake(struct model *m, const struct op *o)
{
    int status;
    struct model_inode *d = dir_by_ino(m, o->ino, &status), *i = model_by_ino(m, o->ino2);

    if (status || !i || i->nlink != 1 + i->is_dir || entry(m, d, o->name) != i ||
        (i->is_dir && !is_empty(m, i)))
        return false;
    set_entry(m, d, o->name, NULL);
    i->nlink = 0;
    d->nlink = (uint8_t)(d->nlink - i->is_dir);
    return true;
}

/* Its number, and that of what it has replaced, may not have been told to anybody yet. */
static bool do_unmove(struct model *m, const struct op *o)
{
    int status;
    struct model_inode *d = dir_by_ino(m, o->ino, &status), *i, *was = NULL;

    i = status ? NULL : entry(m, d, o->name2);
    if (!i || (i->ino && i->ino != o->ino2) || entry(m, d, o->name))
        return false;
    if (o->ret_ino)
        was = model_by_ino(m, o->ret_ino);
    for (unsigned k = 0; o->ret_ino && !was && k < MODEL_INODES; k++)
        if (m->inode[k].used && !m->inode[k].ino && !m->inode[k].is_dir && !m->inode[k].nlink)
            was = &m->inode[k];
    if (o->ret_ino && (!was || was->nlink))
        return false;
    set_entry(m, d, o->name, i);
    set_entry(m, d, o->name2, was);
    if (was)
        was->nlink = 1;
    return true;
}

static bool do_unset(struct model *m, const struct op *o)
{
    struct model_inode *i = model_by_ino(m, o->ino);

    if (!i || !i->nlink)
        return false;
    i->mode = o->value;
    return true;
}

static int rename_status(const struct model *m, const struct op *o, const struct model_inode *from,
                         const struct model_inode *to, const struct model_inode *d2)
{
    if (!from)
        return -ENOENT;
    if (o->flags & RENAME_EXCHANGE && !to)
        return -ENOENT;
    if (o->flags & RENAME_NOREPLACE && to)
        return -EEXIST;
    if (from->is_dir && is_above(m, from, d2))
        return -EINVAL;
    if (!to || to == from)
        return 0;
    if (to->is_dir && is_above(m, to, &m->inode[0])) /* the root has no name */
        return -EINVAL;
    if (o->flags & RENAME_EXCHANGE)
        return 0;
    if (from->is_dir && !to->is_dir)
        return -ENOTDIR;
    if (!from->is_dir && to->is_dir)
        return -EISDIR;
    return to->is_dir && !is_empty(m, to) ? -ENOTEMPTY : 0;
}

static void reparent(struct model *m, struct model_inode *i, struct model_inode *from,
                     struct model_inode *to)
{
    if (!i->is_dir)
        return;
    from->nlink--;
    to->nlink++;
    i->parent = (uint8_t)(to - m->inode);
}

/* More than one reason to refuse: any of them may be told. */
static bool rename_refused(const struct op *o, int status, const struct model_inode *from,
                           const struct model_inode *to)
{
    if (o->unknown || o->status == status)
        return true;
    if (o->status >= 0)
        return false;
    if (o->status == -EINVAL || o->status == -ENOTEMPTY)
        return status == -EINVAL || status == -ENOTEMPTY || status == -EISDIR || status == -EEXIST;
    return from && to && (status == -EINVAL || status == -ENOTEMPTY) &&
           (o->status == -EISDIR || o->status == -ENOTDIR || o->status == -EEXIST);
}

static bool do_rename(struct model *m, const struct op *o)
{
    int status, status2;
    struct model_inode *d = dir_by_ino(m, o->ino, &status);
    struct model_inode *d2 = dir_by_ino(m, o->ino2, &status2);
    struct model_inode *from, *to;

    if (status || status2)
        return model_status_is(o, status ? status : status2);
    from = entry(m, d, o->name);
    to = entry(m, d2, o->name2);
    status = rename_status(m, o, from, to, d2);
    if (!status && o->flags & RENAME_EXCHANGE && to->is_dir && is_above(m, to, d))
        status = -EINVAL;
    if (status)
        return rename_refused(o, status, from, to);
    if (!model_status_is(o, 0) || from == to)
        return model_status_is(o, 0);
    set_entry(m, d2, o->name2, from);
    set_entry(m, d, o->name, o->flags & RENAME_EXCHANGE ? to : NULL);
    reparent(m, from, d, d2);
    if (to && o->flags & RENAME_EXCHANGE) {
        reparent(m, to, d2, d);
    } else if (to) {
        d2->nlink = (uint8_t)(d2->nlink - to->is_dir);
        to->nlink = to->is_dir ? 0 : (uint8_t)(to->nlink - 1);
    }
    return true;
}

static bool do_link(struct model *m, const struct op *o)
{
    int status;
    struct model_inode *d = dir_by_ino(m, o->ino, &status), *i = model_by_ino(m, o->ino2);
    bool gone = !i || !i->nlink;

    if (o->unknown && (status || (gone && !(i && i->linkable)) || (i && i->is_dir)))
        return true;
    if (gone && i && i->linkable && o->status != -ENOENT)
        gone = false; /* as long as somebody has it open */
    if (gone && i && i->linkable && o->held && !status)
        return false;
    if (gone)
        return o->status == -ENOENT || (status && o->status == status) ||
               (!status && entry(m, d, o->name) && o->status == -EEXIST);
    if (i->is_dir)
        return o->status < 0;
    if (!status && entry(m, d, o->name))
        status = -EEXIST;
    if (!model_status_is(o, status) || status)
        return model_status_is(o, status);
    set_entry(m, d, o->name, i);
    i->nlink++;
    i->linkable = 0;
    return true;
}

static bool do_readdir(struct model *m, const struct op *o)
{
    int status;
    struct model_inode *d = dir_by_ino(m, o->ino, &status);

    if (d && !d->nlink) /* removed: empty, or not there */
        status = o->status == 0 ? 0 : -ENOENT;
    if (status || o->unknown)
        return model_status_is(o, status);
    if (o->status)
        return false;
    for (unsigned k = 0; k < SIM_NAMES; k++) {
        struct model_inode *i = entry(m, d, k);

        if (!i != !o->ret_names[k] || (i && !is_same(m, i, o->ret_names[k])))
            return false;
    }
    return true;
}

/* ---- objects ---- */

static bool see_size(struct model_inode *i, const struct op *o)
{
    if (i->is_dir || (!i->size.unsure && past_now(&i->size) == o->ret_size))
        return true; /* a glimpse makes nothing durable */
    return i->size.unsure && past_see(&i->size, o->ret_size, o->client);
}

static bool do_getattr(struct model *m, const struct op *o)
{
    struct model_inode *i = model_by_ino(m, o->ino);

    if (o->unknown)
        return true;
    if (!i || !i->nlink) {
        if (o->status == -ENOENT)
            return true;
        if (!i)
            return false;
        if (i->is_dir)
            return o->status == 0; /* who has it open sees it as he last saw it */
    }
    if (o->own_change && o->status == 0)
        return true;
    return o->status == 0 && i->is_dir == o->ret_dir && i->mode == o->ret_mode &&
           (i->is_dir || i->nlink == o->ret_nlink) && see_size(i, o);
}

static void cut(struct model_inode *i, uint32_t size)
{
    for (unsigned k = 0; k < SIM_CELLS; k++)
        if (history_cell_offset(k) >= size)
            i->cell[k] = past_of(0);
    i->size = past_of(size);
}

static bool do_setattr(struct model *m, const struct op *o)
{
    struct model_inode *i = model_by_ino(m, o->ino);
    bool gone = !i || !i->nlink;

    if (!i)
        return o->unknown || o->status == -ENOENT || (o->kind == OP_GETXATTR && o->status < 0);
    if (gone && o->status == -ENOENT && !o->unknown)
        return true;
    if (o->kind == OP_GETXATTR) {
        if (o->unknown)
            return true;
        return i->xattr ? o->status == 0 && o->ret_value == i->xattr : o->status == -ENODATA;
    }
    if (!model_status_is(o, 0))
        return false;
    if (o->kind == OP_CHMOD)
        i->mode = o->value;
    else if (o->kind == OP_SETXATTR)
        i->xattr = o->value;
    else
        cut(i, o->value);
    return true;
}

static bool do_readlink(struct model *m, const struct op *o)
{
    struct model_inode *i = model_by_ino(m, o->ino); /* none, if none was drawn */

    if (i && o->status == 0) /* a removed one, too, by a client that has looked it up */
        return o->ret_value == i->xattr;
    return o->unknown || ((!i || !i->nlink) && o->status == -ENOENT);
}

static bool do_open(struct model *m, const struct op *o)
{
    struct model_inode *i = model_by_ino(m, o->ino);

    if (!i || (!i->nlink && o->status && !o->unknown))
        return o->unknown || o->status == -ENOENT;
    if (!model_status_is(o, 0)) /* one without a name that somebody has open is cut, too */
        return false;
    if (o->flags & O_TRUNC)
        cut(i, 0);
    return true;
}

/* ---- all ---- */

static bool do_lose(struct model *m, const struct op *o)
{
    for (unsigned i = 0; i < MODEL_INODES; i++) {
        past_lose(&m->inode[i].size, o->client);
        for (unsigned k = 0; k < SIM_CELLS; k++)
            past_lose(&m->inode[i].cell[k], o->client);
    }
    return true;
}

static bool do_spoil(struct model *m, const struct op *o)
{
    struct model_inode *i = model_by_ino(m, o->ino);

    if (!i)
        return true;
    for (unsigned k = 0; k <= SIM_CELLS; k++) {
        struct past *p = k < SIM_CELLS ? &i->cell[k] : &i->size;

        if (o->flags)
            past_told(p, o->client);
        else
            past_spoil(p, o->client);
    }
    return true;
}

bool model_do(struct model *m, const struct op *o, unsigned place, unsigned dir)
{
    switch (o->kind) {
    case OP_LOOKUP:
        return do_lookup(m, o);
    case OP_CREATE:
    case OP_MKDIR:
    case OP_SYMLINK:
        return do_make(m, o, place, dir);
    case OP_TMPFILE:
        return do_make_unnamed(m, o, place);
    case OP_UNLINK:
    case OP_RMDIR:
        return do_remove(m, o);
    case OP_RENAME:
        return do_rename(m, o);
    case OP_LINK:
        return do_link(m, o);
    case OP_READDIR:
        return do_readdir(m, o);
    case OP_GETATTR:
        return do_getattr(m, o);
    case OP_CHMOD:
    case OP_TRUNCATE:
    case OP_SETXATTR:
    case OP_GETXATTR:
        return do_setattr(m, o);
    case OP_READLINK:
        return do_readlink(m, o);
    case OP_OPEN:
        return do_open(m, o);
    case OP_RESTORE:
        return do_restore(m, o);
    case OP_UNMAKE:
        return do_unmake(m, o);
    case OP_UNSET:
        return do_unset(m, o);
    case OP_UNMOVE:
        return do_unmove(m, o);
    case OP_LOSE:
        return do_lose(m, o);
    case OP_SPOIL:
        return do_spoil(m, o);
    default:
        return model_do_contents(m, o);
    }
}
