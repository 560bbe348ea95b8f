/* SPDX-License-Identifier: Apache-2.0 */
/* What operations do to the contents of files; see model.h. */
#include "tests/sim/model_int.h"

#include <errno.h>
#include <linux/falloc.h>

#include "common/base/compiler.h"

static void extend(struct model_inode *i, uint32_t end, uint8_t who)
{
    struct past *p = &i->size;

    if (p->unsure) {
        bool grew = false;

        for (unsigned k = 0; k < p->n; k++) {
            grew |= p->v[k] < end;
            p->v[k] = MAX(p->v[k], end);
        }
        p->wild |= grew;
        p->owner = grew ? who : p->owner;
    } else if (past_now(p) < end) {
        past_push(p, end, who);
    } else if (p->v[0] < end) {
        /* it may be stored when what has made the file longer still is lost */
        past_insert(p, end, who);
    }
}

static bool do_write(struct model *m, const struct op *o)
{
    struct model_inode *i = model_by_ino(m, o->ino);

    if (!i)
        return o->unknown || o->status < 0;
    if (!i->nlink && o->status < 0 && !o->unknown)
        return true;
    if (o->status == -ENOSPC && !o->unknown)
        return true; /* it is told so, and nothing has changed */
    if (!model_status_is(o, 0))
        return false;
    past_push(&i->cell[o->cell], o->value, o->client);
    extend(i, history_cell_offset(o->cell) + SIM_CELL_BYTES, o->client);
    return true;
}

static void forget_cell(struct model_inode *i, unsigned cell)
{
    i->cell[cell] = (struct past){.n = 1, .unsure = 1, .wild = PAST_ANY};
}

/* At the end of the file as it is then. Without a lease its place is taken before its bytes are
 * there, so these are not looked at. Where it went when nobody knows is not known either. */
static bool do_append(struct model *m, const struct op *o)
{
    struct model_inode *i = model_by_ino(m, o->ino);
    uint32_t at;

    if (!i)
        return o->unknown || o->status < 0;
    if (!i->nlink && o->status < 0 && !o->unknown)
        return true;
    if (!model_status_is(o, 0))
        return false;
    at = o->unknown ? past_now(&i->size) : o->ret_size;
    if (!o->unknown && !past_see(&i->size, at, o->client))
        return false;
    for (unsigned k = 0; k < SIM_CELLS; k++)
        if (i->size.unsure || history_cell_offset(k) == at)
            forget_cell(i, k);
    if (i->size.unsure)
        i->size.wild = 1;
    else
        extend(i, at + SIM_CELL_BYTES, o->client);
    return true;
}

static bool do_allocate(struct model *m, const struct op *o)
{
    struct model_inode *i = model_by_ino(m, o->ino);

    if (!i)
        return o->unknown || o->status < 0;
    if (!i->nlink && o->status < 0 && !o->unknown)
        return true;
    if (!model_status_is(o, 0))
        return false;
    if (o->flags & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
        past_push(&i->cell[o->cell], 0, o->client);
    if (!(o->flags & FALLOC_FL_KEEP_SIZE))
        extend(i, history_cell_offset(o->cell) + SIM_CELL_BYTES, o->client);
    return true;
}

static bool size_allows(struct past *p, const struct op *o)
{
    uint32_t from = history_cell_offset(o->cell);
    unsigned n = 0;

    if (!p->unsure)
        return o->ret_size ? past_now(p) >= from + SIM_CELL_BYTES : past_now(p) <= from;
    if (p->wild || past_is_own(p, o->client))
        return true;
    for (unsigned k = 0; k < p->n; k++)
        if (o->ret_size ? p->v[k] >= from + SIM_CELL_BYTES : p->v[k] <= from)
            p->v[n++] = p->v[k];
    for (unsigned k = n; k < p->n; k++)
        p->v[k] = 0;
    p->n = (uint8_t)n;
    return n > 0;
}

static bool do_read(struct model *m, const struct op *o)
{
    struct model_inode *i = model_by_ino(m, o->ino);

    if (o->unknown)
        return true;
    if (!i)
        return o->status < 0;
    if (!i->nlink && o->status < 0)
        return true;
    if (o->status || (o->ret_size && o->ret_size != SIM_CELL_BYTES))
        return false;
    if (o->sealing && o->ret_size == 0)
        return true;
    if (!size_allows(&i->size, o))
        return false;
    return o->ret_size == 0 || past_see(&i->cell[o->cell], o->ret_value, o->client);
}

static bool do_sync(struct model *m, const struct op *o)
{
    struct model_inode *i = model_by_ino(m, o->ino);

    if (o->unknown || !i || !i->nlink)
        return true;
    if (o->status)
        return false;
    if (o->kind == OP_FLUSH)
        return true;
    past_sync(&i->size);
    for (unsigned k = 0; k < SIM_CELLS; k++)
        past_sync(&i->cell[k]);
    return true;
}

bool model_do_contents(struct model *m, const struct op *o)
{
    switch (o->kind) {
    case OP_READ:
        return do_read(m, o);
    case OP_WRITE:
        return do_write(m, o);
    case OP_APPEND:
        return do_append(m, o);
    case OP_ALLOCATE:
        return do_allocate(m, o);
    case OP_FLUSH:
    case OP_FSYNC:
        return do_sync(m, o);
    default:
        return false;
    }
}
