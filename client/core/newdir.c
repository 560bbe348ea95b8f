/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories that are made before the server has heard of them; see creating.c and ADR 0018.
 *
 * Happy path: nobody else can know of a new directory, so files and directories in it are made
 * ahead as well. They leave when the server has it: messages may overtake each other. Its answer
 * says that we are alone with it, and then it is a directory like any other.
 *
 * Failure: the answer does not say so. Then nothing more is made ahead there, and it counts as
 * under way in the directory around it until what is in it has been answered: who asks for that one
 * would see it next. It is refused: so is all that is in it.
 */
#include "client/core/core_int.h"

#define DIR_SIZE 4096u /* as the server says of each */

void newdir_fill(struct core_inode *i, const struct core_inode *around)
{
    struct core *c = i->core;

    i->attr.mode = (i->attr.mode & 07777) | S_IFDIR | (around->attr.mode & S_ISGID);
    i->attr.nlink = 2;
    i->attr.size = DIR_SIZE;
    i->attr.flags &= ~(uint32_t)MSG_ATTR_INLINE;
    i->in_line = false;
    i->complete = true;
    i->behind.own = i->behind.rules_known = i->behind.coming = i->behind.born = true;
    i->behind.term = ++c->behind.terms;
    c->behind.coming++;
}

bool newdir_holds(struct mds_op *op, struct core_inode *dir)
{
    if (!dir->behind.coming)
        return false;
    (void)creating_gathers(op);
    list_push_back(&dir->behind.inside, &op->wait);
    return true;
}

void newdir_end_all(struct core *c)
{
    struct list *l;

    if (!c->behind.coming)
        return;
    list_for_each (l, &c->ops) { /* what was answered ahead is in front */
        const struct mds_op *op = list_entry(l, const struct mds_op, link);

        if (!op->ahead)
            return;
        if (op->call.op == RPC_OP_MKDIR)
            behind_end(inode_find(c, op->n1));
    }
}

/* What is in it leaves, or is refused as it was. */
static void let_go(struct core_inode *i, int status)
{
    struct core *c = i->core;
    struct list now, *l;

    list_init(&now);
    list_splice(&now, &i->behind.inside);
    while ((l = list_pop_front(&now)) != NULL) {
        struct mds_op *op = list_entry(l, struct mds_op, wait);

        if (status)
            mds_op_end(op, status);
        else
            mds_op_go(op);
    }
    if (c->behind.urge_coming)
        behind_urge(c);
    c->behind.urge_coming = c->behind.urge_coming && c->behind.coming;
}

/* Its names and attributes are asked for again. */
static void doubt(struct core_inode *i)
{
    behind_end(i);
    inode_expire(i->core, i->ino);
    i->complete = false;
    invalidate_doubt_dir(i->core, i);
}

void newdir_answered(const struct mds_op *op, struct core_inode *around, struct core_inode *i,
                     int status)
{
    struct answer a = answer_of(op);

    i->behind.coming = false;
    i->core->behind.coming--;
    behind_end(i);
    if (!status && (a.kept & RPC_FLAG_ALONE))
        behind_told_dir(i, &a);
    if (status || !(a.kept & RPC_FLAG_KEPT_INODE))
        doubt(i);
    let_go(i, status);
    if (!i->behind.n || i->behind.own) {
        creating_over(around, i);
        return;
    }
    i->behind.draining = true;
    around->behind.opens++;
    i->behind.opens++;
    setdir_step(i); /* there may have been nothing else in it */
}

void newdir_step(struct core_inode *i)
{
    struct core_inode *around;

    if (!i->behind.draining || i->behind.n || i->behind.opens > 1)
        return;
    around = inode_find(i->core, i->behind.around);
    i->behind.draining = false;
    i->behind.opens--;
    around->behind.opens--;
    creating_over(around, i);
}
