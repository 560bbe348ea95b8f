/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for the log. The names of a directory are kept by name, not by inode, so they are looked
 * through: for errors only, and no more than NAMES_MAX of each directory.
 */
#include "client/core/where.h"

#include <stdio.h>

#define NAMES_MAX  4096u
#define DEPTH_MAX  64u
#define PATH_BYTES 256u

static const struct name_entry *name_of(const struct core_inode *dir, uint64_t ino)
{
    unsigned n = 0;
    struct list *l;

    list_for_each (l, &dir->names) {
        const struct name_entry *e = list_entry(l, const struct name_entry, of_dir);

        if (e->ino == ino)
            return e;
        if (++n == NAMES_MAX)
            break;
    }
    return NULL;
}

/* Puts "/name" in front of what is at *at; false: no room for all of it. */
static bool put_front(char *path, size_t *at, const struct name_entry *e)
{
    size_t n = MIN((size_t)e->len, *at);

    memcpy(path + *at - n, e->name + e->len - n, n);
    *at -= n;
    if (n < e->len || !*at)
        return false;
    path[--*at] = '/';
    return true;
}

const char *where_inode(const struct core_inode *i, struct where_text *buf)
{
    char path[PATH_BYTES];
    size_t at = sizeof path;
    uint64_t ino = i->ino;
    bool fits = true;

    for (unsigned depth = 0; fits && ino != i->core->root && depth < DEPTH_MAX; depth++) {
        const struct core_inode *dir = i->parent ? inode_find(i->core, i->parent) : NULL;
        const struct name_entry *e = dir ? name_of(dir, ino) : NULL;

        if (!e)
            break;
        fits = put_front(path, &at, e);
        i = dir;
        ino = dir->ino;
    }
    if (at == sizeof path)
        return "";
    snprintf(buf->text, sizeof buf->text, " (%s%.*s)", ino == i->core->root && fits ? "" : "...",
             (int)(sizeof path - at), path + at);
    return buf->text;
}

const char *where_target(const struct oss_target *t, struct where_text *buf)
{
    const struct oss_node *n = t ? oss_node_of(t->core, t->id) : NULL;

    if (!t)
        return "";
    snprintf(buf->text, sizeof buf->text, " on %.200s, target %u", n ? n->alias : "no server",
             t->id);
    return buf->text;
}
