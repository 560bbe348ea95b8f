/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that get another name in their directory before the server has heard of it; see behind.h
 * and ADR 0020.
 *
 * Happy path: the caches here change as after the rename, its request is over, and its op is
 * gathered with others. Several changes of one file, its creation first, are sent one after the
 * other, each when the one before has been answered, since messages may overtake each other; nobody
 * waits for that. All that is under way about one name is about one file, so it is in order, too.
 *
 * What is allowed is decided here, as in behind_rules.c. Failure: as for removals; and the renames
 * of the file that were to follow are not made either.
 */
#include <stdio.h>

#include "client/core/core_int.h"

/* ---- which names ---- */

static uint64_t hash_of(uint64_t dir, const struct msg_bytes *name)
{
    return hash_bytes(name->data, name->len, dir);
}

static bool is_same(const struct msg_bytes *a, const struct msg_bytes *b)
{
    return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

bool moving_concerns(const struct core *c, uint64_t dir, const struct msg_bytes *name, uint64_t but)
{
    struct hmap_node *n = hmap_first(&c->behind.moving, hash_of(dir, name));

    for (; n; n = hmap_next(n)) {
        const struct moving_name *k = container_of(n, struct moving_name, node);

        if (k->op->n1 != but && k->op->msg.rename.parent == dir && is_same(k->name, name))
            return true;
    }
    return false;
}

static void names_enter(struct mds_op *op)
{
    struct msg_rename_req *m = &op->msg.rename;

    for (unsigned k = 0; k < ARRAY_LEN(op->moving); k++) {
        struct moving_name *n = &op->moving[k];

        n->op = op;
        n->name = k ? &m->new_name : &m->name;
        hmap_insert(&op->core->behind.moving, &n->node, hash_of(m->parent, n->name));
    }
}

static void names_leave(struct mds_op *op)
{
    for (unsigned k = 0; k < ARRAY_LEN(op->moving); k++)
        hmap_remove(&op->core->behind.moving, &op->moving[k].node);
}

/* ---- one after the other ---- */

static uint32_t waiting(const struct core_inode *i)
{
    uint32_t n = 0;
    struct list *l;

    list_for_each (l, &i->behind.moves)
        n++;
    return n;
}

void moving_step(struct core_inode *i)
{
    if (list_empty(&i->behind.moves) || i->behind.opens || i->behind.n > waiting(i))
        return;
    mds_op_go(list_entry(list_pop_front(&i->behind.moves), struct mds_op, wait));
    behind_hurry(i->core);
}

void moving_fail(struct core_inode *i, int status)
{
    struct list now, *l;

    list_init(&now);
    list_splice(&now, &i->behind.moves);
    while ((l = list_pop_front(&now)) != NULL)
        mds_op_end(list_entry(l, struct mds_op, wait), status);
}

/* ---- the answer ---- */

/* It has not changed. What the server says of it next must not be taken for older than what is
 * known, nor what was cached since for what it will be after somebody else's change. */
static void unforesee(struct core_inode *i)
{
    if (i->data_change && i->data_change == i->attr.change)
        i->data_change--;
    if (i->attr.change)
        i->attr.change--;
}

/* Nobody knows what it is called, nor when it was changed last. */
static void refused(struct mds_op *op, struct core_inode *dir, struct core_inode *i, int status)
{
    const struct core_events *e = &op->core->o.events;

    behind_end(i);
    unforesee(i);
    inode_expire(op->core, i->ino);
    if (e->inval_attr)
        e->inval_attr(e->arg, i->ino);
    behind_refused(op, dir, status);
    if (!list_empty(&i->files) && !i->grow_trial) /* whose writer is told of the growth only */
        inode_set_error(i, session_is_over(status) ? -EIO : status, "rename");
    moving_fail(i, status);
}

static void took_place(struct mds_op *op, struct core_inode *dir, struct core_inode *i)
{
    const struct msg_rename_req *m = &op->msg.rename;
    const struct msg_inode_rep *rep = op->call.rep;
    struct msg_attr foreseen = i->attr;

    behind_executed(op);
    if (!dir->behind.n) /* else it is known what becomes of it */
        behind_take_dir(op, dir);
    inode_merge_attr(i, &rep->inode.attr);
    if (!i->behind.moved)
        behind_compare(i, &foreseen);
    if (dir->behind.term)
        return;
    names_drop(op->core, dir->ino, m->name.data, m->name.len, false);
    names_drop(op->core, dir->ino, m->new_name.data, m->new_name.len, false);
}

static void replaced(const struct mds_op *op, struct core_inode *victim, int status)
{
    const struct msg_inode_rep *rep = op->call.rep;

    victim->behind.leaving = false;
    inode_expire(op->core, victim->ino);
    if (status)
        behind_end(victim);
    else if (rep->has_victim && rep->victim.ino == victim->ino)
        inode_merge_attr(victim, &rep->victim);
}

static void answered(struct mds_op *op, int status)
{
    struct core *c = op->core;
    struct core_inode *dir = inode_find(c, op->msg.rename.parent), *i = inode_find(c, op->n1);
    struct core_inode *victim = op->n2 ? inode_find(c, op->n2) : NULL;
    const struct msg_inode_rep *rep = op->call.rep;

    if (!status && rep->inode.attr.ino != i->ino) /* nothing has changed */
        status = -AIFS_EPROTO;
    names_leave(op);
    dir->behind.moved--;
    i->behind.moved--;
    behind_answered(dir, i);
    if (victim)
        replaced(op, victim, status);
    if (status)
        refused(op, dir, i, status);
    else
        took_place(op, dir, i);
    if (victim)
        behind_also_over(victim);
    behind_over(c, dir, i);
}

/* ---- one rename ---- */

static void go_ahead(struct mds_op *op, struct core_inode *dir, struct core_inode *i,
                     struct core_inode *victim)
{
    struct core *c = op->core;
    struct core_req *q = op->q;
    struct msg_rename_req *m = &op->msg.rename;
    struct msg_time now = behind_dir_changed(dir);
    const bool follows = behind_busy(i);

    behind_begin(op, dir, i);
    dir->behind.moved++;
    i->behind.moved++;
    if (victim) {
        behind_also(victim);
        victim->behind.leaving = true;
        inode_expire(c, victim->ino);
        op->n2 = victim->ino;
    } else {
        m->flags = RENAME_NOREPLACE; /* rather refused than that something else is lost */
    }
    i->attr.ctime = time_later(i->attr.ctime, now);
    i->attr.change++;
    m->when_ns = (uint64_t)now.sec * NS_PER_S + now.nsec;
    names_enter(op);
    names_set(dir, m->name.data, m->name.len, 0);
    names_set(dir, m->new_name.data, m->new_name.len, i->ino);
    prelist_removed(dir, &m->cred, true);
    c->stats.renamed_ahead++;
    op->done = answered;
    if (follows)
        list_push_back(&i->behind.moves, &op->wait);
    else
        mds_op_go(op);
    if (q)
        req_finish(q, 0);
}

static bool is_known_to_server(const struct core *c)
{
    const struct rpc_link *link = rpc_peer_link(c->session.peer);

    return link && rpc_link_features(link) & RPC_FEATURE_RENAMES;
}

/* One that is here only is nobody else's. */
static bool is_alone(const struct core_inode *dir, const struct core_inode *i)
{
    return behind_alone(dir, i) || i->behind.creating;
}

/* As for creations. */
static bool fits_dir(const struct mds_op *op, const struct core_inode *dir)
{
    const struct core *c = op->core;

    return !c->forced && c->state == CORE_MOUNTED && session_believed(c) && is_known_to_server(c) &&
           c->behind.n < c->behind.max && dir->behind.rules_known && inode_attr_fresh(dir) &&
           dir->attr.nlink && !dir->behind.error && !dir->behind.setting &&
           dir->behind.n == creating_in(dir) + dir->behind.moved &&
           list_empty(&dir->behind.waiters) && list_empty(&c->behind.all) &&
           behind_removes(c, &op->msg.rename.cred);
}

static bool fits_file(const struct mds_op *op, const struct core_inode *dir,
                      const struct core_inode *i)
{
    return (S_ISREG(i->attr.mode) || S_ISLNK(i->attr.mode)) && i->attr.nlink == 1 &&
           inode_attr_fresh(i) && !i->behind.leaving && list_empty(&i->behind.waiters) &&
           list_empty(&i->behind.reqs) &&
           behind_may_delete(&dir->attr, &i->attr, &op->msg.rename.cred) &&
           !behind_changes_now(op, dir->ino, i->ino);
}

static bool fits_victim(const struct mds_op *op, const struct core_inode *dir,
                        const struct core_inode *victim)
{
    const struct msg_rename_req *m = &op->msg.rename;

    return !(m->flags & RENAME_NOREPLACE) && !S_ISDIR(victim->attr.mode) &&
           victim->attr.nlink == 1 && inode_attr_fresh(victim) && !victim->refs &&
           list_empty(&victim->files) && behind_may_delete(&dir->attr, &victim->attr, &m->cred) &&
           !behind_changes_now(op, dir->ino, victim->ino);
}

/* What is under way about the new name is about this file, else nothing is. */
static bool fits_name(const struct mds_op *op, uint64_t ino)
{
    const struct msg_rename_req *m = &op->msg.rename;

    return behind_name_fits(&m->new_name) && !is_same(&m->name, &m->new_name) &&
           !moving_concerns(op->core, m->parent, &m->new_name, ino);
}

bool moving_try(struct mds_op *op)
{
    struct core *c = op->core;
    const struct msg_rename_req *m = &op->msg.rename;
    struct core_inode *dir = inode_find(c, m->parent), *i, *victim;
    const struct name_entry *from, *to;

    if (op->failed)
        return false;
    from = names_get(c, m->parent, m->name.data, m->name.len);
    to = names_get(c, m->parent, m->new_name.data, m->new_name.len);
    i = from && from->ino ? inode_find(c, from->ino) : NULL;
    victim = to && to->ino ? inode_find(c, to->ino) : NULL;
    op->unsure = !dir || !i || !dir->behind.own || !is_alone(dir, i) ||
                 (to ? to->ino && (!victim || !behind_alone(dir, victim)) : !dir->complete);
    if (op->unsure || victim == i || !fits_dir(op, dir) || !fits_file(op, dir, i) ||
        !fits_name(op, i->ino) || (victim && !fits_victim(op, dir, victim)))
        return false;
    go_ahead(op, dir, i, victim);
    return true;
}
