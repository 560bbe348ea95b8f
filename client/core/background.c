/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Write-back that nobody waits for: of what is old enough, of everything when memory runs short,
 * and of a small file whose writer seems to have finished. A flush of the inode's own (flush.c),
 * one at a time; what it cannot send or report the next one does.
 */
#include "client/core/core_int.h"
#include "client/core/growth.h"

static void background_done(struct flush_wait *w)
{
    struct core_inode *i = container_of(w, struct core_inode, background);

    i->background_busy = false;
    i->dirty_since_ns = reactor_now_ns(i->core->reactor); /* what came meanwhile has its own time */
    mem_freed(i->core);
}

static void background_step(struct core_inode *i, uint64_t now, bool all)
{
    if (!list_empty(&i->flushers) && !i->meta_busy)
        flush_step(i); /* there may have been no memory to go on */
    if (i->background_busy || list_empty(&i->dirty_link) ||
        (!all && now - i->dirty_since_ns < CORE_FLUSH_AGE_NS))
        return;
    i->background_busy = true;
    i->background.q = NULL;
    flush_start(i, &i->background, true, background_done);
}

/* A flush that ends at once may end others. */
void flush_background(struct core *c, uint64_t now, bool all)
{
    struct list now_dirty, *l;

    list_init(&now_dirty);
    list_splice(&now_dirty, &c->dirty_inodes);
    while ((l = list_pop_front(&now_dirty)) != NULL) {
        struct core_inode *i = inode_ref(list_entry(l, struct core_inode, dirty_link));

        list_push_back(&c->dirty_inodes, l);
        background_step(i, now, all);
        inode_put(i);
    }
}

void flush_ahead(struct core_inode *i)
{
    if (!i->in_line || i->lease != MSG_LEASE_WRITE || i->recalling || i->meta_busy ||
        i->meta_seq == i->meta_done || i->background_busy || !list_empty(&i->flushers) ||
        !list_empty(&i->truncations))
        return;
    i->background_busy = true;
    i->background.q = NULL;
    flush_start(i, &i->background, false, background_done);
}

void flush_growth(struct core_inode *i)
{
    if (i->lease != MSG_LEASE_WRITE || i->recalling || i->meta_busy || i->background_busy ||
        !list_empty(&i->flushers) || !list_empty(&i->truncations))
        return;
    i->background_busy = true;
    i->background.q = NULL;
    flush_start(i, &i->background, true, background_done);
}
