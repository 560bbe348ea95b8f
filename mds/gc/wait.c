// SPDX-License-Identifier: Apache-2.0
/*
 * Those who wait until a cut has reached every target. What is recorded of the inode says whether
 * it has; it is looked at when a punch is done, and time-outs by the timer.
 */
#include "mds/gc/gc_int.h"

static bool punch_pending(struct gc *gc, uint64_t ino)
{
    struct shard *shard = mds_shard_of(gc->mds, ino);
    struct mds_inode in;
    struct view v;
    int rc;

    if (!shard)
        return false;
    view_begin(shard, &v);
    rc = view_inode(&v, ino, &in);
    view_end(&v);
    return rc == 0 ? in.flags & INODE_PUNCH_PENDING : rc != -ENOENT; /* if nobody knows: yes */
}

static void wait_run(struct reactor_work *work)
{
    struct gc *gc = container_of(work, struct gc, wait_work);
    uint64_t now_ns = reactor_now_ns(gc->mds->reactor);
    struct list *l, looked_at;

    gc->wait_queued = false;
    list_init(&looked_at);
    list_splice(&looked_at, &gc->waits);
    while ((l = list_pop_front(&looked_at))) {
        struct mds_punch_wait *w = list_entry(l, struct mds_punch_wait, link);

        if (!punch_pending(gc, w->ino))
            w->done(w, 0);
        else if (now_ns >= w->timeout_ns)
            w->done(w, -AIFS_ETIMEOUT);
        else
            list_push_back(&gc->waits, l);
    }
    gc_end(gc);
}

void gc_wait_check(struct gc *gc)
{
    if (gc->wait_queued || list_empty(&gc->waits))
        return;
    gc->wait_queued = true;
    gc->wait_work.fn = wait_run;
    gc_begin(gc);
    reactor_defer(gc->mds->reactor, &gc->wait_work);
}

void gc_punch_wait(struct mds *m, struct mds_punch_wait *w)
{
    struct gc *gc = gc_of(m);

    w->timeout_ns = gc->stopping ? 0 : reactor_now_ns(m->reactor) + w->timeout_ns;
    list_push_back(&gc->waits, &w->link);
    if (!gc->stopping && gc->timer.deadline_ns > w->timeout_ns)
        reactor_timer_start(m->reactor, &gc->timer, w->timeout_ns);
    gc_wait_check(gc);
}

void gc_waits_fail(struct gc *gc)
{
    struct list *l;

    list_for_each (l, &gc->waits)
        list_entry(l, struct mds_punch_wait, link)->timeout_ns = 0;
    gc_wait_check(gc);
}
