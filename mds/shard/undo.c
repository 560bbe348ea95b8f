/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of one operation, and taking them back.
 *
 * Happy path: the first change of an object within an operation saves its former state; keep frees
 * what was saved. Failure: undo restores in reverse order; objects stay dirty if an earlier
 * operation of the batch made them so, and a clean object that is restored is written once more
 * with what the store already has, which is harmless.
 */
#include <string.h>

#include "common/base/err.h"
#include "mds/shard/overlay.h"

struct overlay_undo {
    struct overlay_undo *prev;
    struct obj *obj;
    union {
        struct {
            struct mds_inode in;
            bool exists;
        } inode;
        struct {
            struct obj_name *name;
            struct mds_dirent d;
            bool exists;
        } name;
        struct {
            void *value; /* owned by the undo record */
            uint32_t len;
            bool exists;
        } record;
    } u;
};

static struct overlay_undo *undo_push(struct overlay *v, struct obj *o)
{
    struct overlay_undo *u = arena_alloc(&v->undo_arena, sizeof(*u));

    if (!u)
        return NULL;
    u->obj = o;
    u->prev = v->undo;
    v->undo = u;
    if (!o->dirty) {
        o->dirty = true;
        list_remove(&o->link);
        list_push_back(&v->dirty, &o->link);
    }
    return u;
}

int overlay_touch_inode(struct overlay *v, struct obj_inode *i)
{
    struct overlay_undo *u;

    if (i->saved_at == v->op)
        return 0;
    u = undo_push(v, &i->o);
    if (!u)
        return -ENOMEM;
    i->saved_at = v->op;
    u->u.inode.in = i->in;
    u->u.inode.exists = i->exists;
    return 0;
}

int overlay_touch_name(struct overlay *v, struct obj_group *g, struct obj_name *n)
{
    struct overlay_undo *u = undo_push(v, &g->o);

    if (!u)
        return -ENOMEM;
    u->u.name.name = n;
    u->u.name.d = n->d;
    u->u.name.exists = n->exists;
    overlay_dir_changes(v, g->dir);
    n->dirty = true;
    return 0;
}

int overlay_set_record(struct overlay *v, struct obj_record *r, bool exists, const void *value,
                       uint32_t len)
{
    void *copy = NULL;
    struct overlay_undo *u;

    if (exists && len > 0) {
        copy = mem_dup(value, len);
        if (!copy)
            return -ENOMEM;
    }
    u = undo_push(v, &r->o);
    if (!u) {
        mem_free(copy);
        return -ENOMEM;
    }
    u->u.record.value = r->value;
    u->u.record.len = r->len;
    u->u.record.exists = r->exists;
    v->bytes = v->bytes - r->len + (exists ? len : 0);
    r->o.bytes = r->o.bytes - r->len + (exists ? len : 0);
    r->value = copy;
    r->len = exists ? len : 0;
    r->exists = exists;
    return 0;
}

void overlay_op_begin(struct overlay *v)
{
    v->op++;
}

void overlay_op_keep(struct overlay *v)
{
    for (struct overlay_undo *u = v->undo; u; u = u->prev) {
        if (u->obj->kind == OBJ_RECORD)
            mem_free(u->u.record.value);
    }
    v->undo = NULL;
    arena_reset(&v->undo_arena);
}

static void undo_record(struct overlay *v, struct overlay_undo *u)
{
    struct obj_record *r = container_of(u->obj, struct obj_record, o);

    mem_free(r->value);
    v->bytes = v->bytes - r->len + u->u.record.len;
    r->o.bytes = r->o.bytes - r->len + u->u.record.len;
    r->value = u->u.record.value;
    r->len = u->u.record.len;
    r->exists = u->u.record.exists;
}

struct overlay_undo *overlay_op_next(struct overlay *v)
{
    v->op++;
    return v->undo;
}

void overlay_op_undo_to(struct overlay *v, struct overlay_undo *before)
{
    for (struct overlay_undo *u = v->undo; u != before; u = u->prev) {
        struct obj_inode *i = container_of(u->obj, struct obj_inode, o);

        switch (u->obj->kind) {
        case OBJ_INODE:
            i->in = u->u.inode.in;
            i->exists = u->u.inode.exists;
            i->saved_at = 0;
            break;
        case OBJ_GROUP:
            u->u.name.name->d = u->u.name.d;
            overlay_name_exists(container_of(u->obj, struct obj_group, o), u->u.name.name,
                                u->u.name.exists);
            break;
        case OBJ_RECORD:
            undo_record(v, u);
            break;
        }
    }
    v->undo = before;
}

void overlay_op_undo(struct overlay *v)
{
    overlay_op_undo_to(v, NULL);
    arena_reset(&v->undo_arena);
}
