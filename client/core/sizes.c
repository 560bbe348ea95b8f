/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How large files become that are made in a directory. One that outgrows what the metadata server
 * keeps is not worth making ahead: it costs a creation and an open where it was one message.
 *
 * Happy path: each file that is made here is looked at when its maker closes it, however it was
 * made, and notes in its directory whether it has outgrown that. Of nearly all of the last eight
 * being so, the next one is made in the ordinary way; two small ones end that. What is not known
 * of a directory is taken from the one around it, in which its outcomes are noted as well: so a
 * tree is learned once. Nothing here can fail.
 */
#include "client/core/core_int.h"

#define MOST 7 /* of the last eight: a small one gains several times of what a large one costs */

static struct core_inode *around(const struct core_inode *i)
{
    return i->parent ? inode_find(i->core, i->parent) : NULL;
}

static void learn(struct core_inode *dir)
{
    const struct core_inode *outer = dir->behind.sized ? NULL : around(dir);

    if (outer && outer->behind.sized) {
        dir->behind.sized = true;
        dir->behind.large = outer->behind.large;
    }
}

static void note(struct core_inode *dir, bool large)
{
    learn(dir);
    dir->behind.sized = true;
    dir->behind.large = (uint8_t)(dir->behind.large << 1 | large);
}

bool sizes_large(struct core_inode *dir)
{
    learn(dir);
    return __builtin_popcount(dir->behind.large) >= MOST;
}

void sizes_closed(struct core_file *f)
{
    const struct core_inode *i = f->inode;
    struct core_inode *dir = f->made ? around(i) : NULL, *outer = dir ? around(dir) : NULL;

    f->made = false;
    if (!dir)
        return;
    note(dir, !i->in_line);
    if (outer && outer != dir)
        note(outer, !i->in_line);
}
