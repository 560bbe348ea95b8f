// SPDX-License-Identifier: Apache-2.0
/*
 * The gc module as a whole: kicks, the timer, calls to the targets, start and stop. At start every
 * queue is looked at once: what the last process left is done before anybody asks.
 */
#include "mds/gc/gc_int.h"

#define TIMER_NS      (500 * NS_PER_MS)
#define TIMER_WAIT_NS (50 * NS_PER_MS) /* while somebody waits */

static void stop_check(struct gc *gc)
{
    void (*stopped)(void *arg) = gc->stopped;

    if (gc->outstanding || !stopped)
        return;
    gc->stopped = NULL;
    stopped(gc->stopped_arg);
}

void gc_begin(struct gc *gc)
{
    gc->outstanding++;
}

void gc_end(struct gc *gc)
{
    gc->outstanding--;
    stop_check(gc);
}

int gc_call(struct gc *gc, uint32_t target, struct gc_call *c)
{
    int rc;

    c->rpc.timeout_ns = GC_CALL_NS;
    rc = gc->stopping ? -AIFS_EDOWN : cluster_target_call(gc->mds, target, &c->rpc);
    if (rc < 0) {
        rpc_call_fini(&c->rpc);
        return rc;
    }
    list_push_back(&gc->calls, &c->all);
    gc_begin(gc);
    return 0;
}

void gc_call_end(struct gc *gc, struct gc_call *c)
{
    list_remove(&c->all);
    rpc_call_fini(&c->rpc);
    gc_end(gc);
}

struct gc_queue *gc_queue(struct gc *gc, enum key_type type)
{
    return type == KEY_DESTROY ? &gc->destroy : type == KEY_PUNCH ? &gc->punch : &gc->recover;
}

static void gather_over(struct gc_queue *q, uint64_t now_ns)
{
    q->kicked_ns = now_ns;
    q->due_ns = 0;
    q->n_gathered = 0;
    gc_scan(q, UINT64_MAX);
}

static void soon_over(struct reactor_timer *t)
{
    struct gc_queue *q = container_of(t, struct gc_queue, soon);
    struct mds *m = q->gc->mds;
    uint64_t now_ns = reactor_now_ns(m->reactor), quiet_ns = q->heard_ns + GC_GATHER_NS;

    if (now_ns >= quiet_ns || now_ns >= q->due_ns || q->n_gathered >= GC_GATHER_MAX ||
        cluster_space_short(m))
        gather_over(q, now_ns);
    else
        reactor_timer_start(m->reactor, t, MIN(quiet_ns, q->due_ns));
}

void gc_destroy_kick(struct gc *gc, uint64_t ino, uint64_t patience_ns)
{
    struct gc_queue *q = &gc->destroy;
    uint64_t now_ns = reactor_now_ns(gc->mds->reactor);

    q->asked = MIN(q->asked, ino);
    if (!q->due_ns && now_ns >= q->kicked_ns + GC_GATHER_NS) {
        gather_over(q, now_ns);
        return;
    }
    q->due_ns = q->due_ns ? MIN(q->due_ns, now_ns + patience_ns) : now_ns + patience_ns;
    q->heard_ns = now_ns;
    q->n_gathered++;
    if (!reactor_timer_running(&q->soon) && !gc->stopping)
        reactor_timer_start(gc->mds->reactor, &q->soon, q->kicked_ns + GC_GATHER_NS);
}

/* Many files go in one call to each target, and their destruction takes the processors from those
 * who remove them: after a first one, the next wait for company and for a pause. */
static void gc_kick(struct mds *m, enum key_type type, uint64_t ino)
{
    if (type == KEY_TRASH)
        gc_trash_kick(&gc_of(m)->trash);
    else if (type == KEY_DESTROY)
        gc_destroy_kick(gc_of(m), ino, GC_PATIENCE_NS);
    else
        gc_scan(gc_queue(gc_of(m), type), ino);
}

static void gc_target_up(struct mds *m)
{
    struct gc *gc = gc_of(m);
    struct gc_queue *all[] = {&gc->destroy, &gc->punch, &gc->recover};

    for (unsigned i = 0; i < ARRAY_LEN(all); i++) {
        gc_items_rested(all[i], UINT64_MAX);
        all[i]->idle_ns = 0;
        gc_scan(all[i], 0);
    }
}

static void timer(struct reactor_timer *t)
{
    struct gc *gc = container_of(t, struct gc, timer);
    struct gc_queue *all[] = {&gc->destroy, &gc->punch, &gc->recover};
    uint64_t now_ns = reactor_now_ns(gc->mds->reactor);

    for (unsigned i = 0; i < ARRAY_LEN(all); i++) {
        gc_items_rested(all[i], now_ns);
        if (all[i]->next_ns && now_ns >= all[i]->next_ns) {
            all[i]->next_ns = 0;
            gc_scan(all[i], 0);
        }
    }
    gc_trash_tick(&gc->trash, now_ns);
    gc_wait_check(gc);
    reactor_timer_start(gc->mds->reactor, &gc->timer,
                        now_ns + (list_empty(&gc->waits) ? TIMER_NS : TIMER_WAIT_NS));
}

static const struct mds_gc_ops gc_ops = {
    .kick = gc_kick, .target_up = gc_target_up, .punch_wait = gc_punch_wait};

static void queue_init(struct gc *gc, struct gc_queue *q, enum key_type type, const char *labels)
{
    q->gc = gc;
    q->type = type;
    q->asked = UINT64_MAX;
    reactor_timer_init(&q->soon, soon_over);
    stat_counter_register(&q->done, "aifs_mds_gc_items_total", labels, "queue items done");
    stat_counter_register(&q->failed, "aifs_mds_gc_failures_total", labels,
                          "queue items that have to be tried again");
    stat_counter_register(&q->unreadable, "aifs_mds_gc_damaged_total", labels,
                          "queue items that cannot be read, each once since the start");
}

static void queue_fini(struct gc_queue *q)
{
    stat_unregister(&q->done.stat);
    stat_unregister(&q->failed.stat);
    stat_unregister(&q->unreadable.stat);
    gc_items_fini(q);
}

static int gc_start(struct mds *m)
{
    struct gc *gc = mem_zalloc(sizeof *gc);
    int rc;

    if (!gc)
        return -ENOMEM;
    gc->mds = m;
    m->gc = gc; /* freed by the module's free(), also when this fails */
    list_init(&gc->waits);
    list_init(&gc->calls);
    reactor_timer_init(&gc->timer, timer);
    queue_init(gc, &gc->destroy, KEY_DESTROY, "queue=\"destroy\"");
    queue_init(gc, &gc->punch, KEY_PUNCH, "queue=\"punch\"");
    queue_init(gc, &gc->recover, KEY_RECOVER, "queue=\"recover\"");
    gc_trash_init(gc);
    rc = hmap_init(&gc->destroy.items, 16);
    if (rc == 0)
        rc = hmap_init(&gc->punch.items, 16);
    if (rc == 0)
        rc = hmap_init(&gc->recover.items, 16);
    if (rc < 0)
        return rc;
    m->gc_ops = &gc_ops;
    reactor_timer_start(m->reactor, &gc->timer, reactor_now_ns(m->reactor) + TIMER_NS);
    gc_scan(&gc->destroy, 0);
    gc_scan(&gc->punch, 0);
    gc_scan(&gc->recover, 0);
    gc_trash_kick(&gc->trash);
    rpc_node_handle(m->node, RPC_OP_RMTREE, gc_serve_rmtree, m);
    return 0;
}

static void stop_run(struct reactor_work *work)
{
    gc_end(container_of(work, struct gc, stop));
}

static void gc_stop(struct mds *m, void (*stopped)(void *arg), void *arg)
{
    struct gc *gc = gc_of(m);
    struct list *l, *next;

    gc_begin(gc); /* until stop_run() */
    gc->stopping = true;
    gc->stopped = stopped;
    gc->stopped_arg = arg;
    reactor_timer_cancel(m->reactor, &gc->timer);
    reactor_timer_cancel(m->reactor, &gc->destroy.soon);
    list_for_each_safe (l, next, &gc->calls)
        rpc_call_cancel(&list_entry(l, struct gc_call, all)->rpc);
    gc_waits_fail(gc);
    m->session_ops->cancel(m);
    gc->stop.fn = stop_run;
    reactor_defer(m->reactor, &gc->stop);
}

static void gc_free(struct mds *m)
{
    struct gc *gc = gc_of(m);

    if (!gc)
        return;
    m->gc = NULL;
    m->gc_ops = NULL;
    reactor_timer_cancel(m->reactor, &gc->timer);
    reactor_timer_cancel(m->reactor, &gc->destroy.soon);
    queue_fini(&gc->destroy);
    queue_fini(&gc->punch);
    queue_fini(&gc->recover);
    gc_trash_fini(gc);
    mem_free(gc);
}

const struct mds_module mds_gc_module = {
    .name = "gc", .start = gc_start, .stop = gc_stop, .free = gc_free};
