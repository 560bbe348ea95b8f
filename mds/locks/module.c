// SPDX-License-Identifier: Apache-2.0
/*
 * The lock module as a whole: what is held, for the queue; offers to those whose turn it is; the
 * end of sessions.
 *
 * Happy path of an offer: LOCK_WAKE to the client, which asks again, gets the lock, and leaves the
 * line. Failure modes: the hint is lost, or the client is slow: after OFFER_NS the lock is offered
 * to the next, and the first is back in its place when it asks by itself. A record that cannot be
 * read is taken for empty by the queue: nobody is refused because of it, and execution decides. Who
 * only asks is told the error.
 */
#include "mds/locks/locks_int.h"

#include "common/base/err.h"
#include "common/base/log.h"

#define OFFER_NS (2 * NS_PER_S)

static int read_holders(struct locks_module *mod, struct shard *shard, uint64_t ino,
                        struct lock **ret_list, uint32_t *ret_n)
{
    const void *rec;
    struct view v;
    struct key k;
    uint32_t len;
    int rc;

    key_number(&k, KEY_LOCK, ino);
    view_begin(shard, &v);
    rc = view_record(&v, &k, &mod->arena, &rec, &len);
    view_end(&v);
    if (rc == 0)
        rc = lock_rec_count(rec, len, ret_n);
    if (rc < 0)
        return rc;
    *ret_list = arena_alloc(&mod->arena, *ret_n * sizeof **ret_list + 1);
    return *ret_list ? lock_rec_decode(rec, len, *ret_list) : -ENOMEM;
}

int locks_held(struct locks_module *mod, uint64_t ino, const struct lock **ret_list,
               uint32_t *ret_n)
{
    struct shard *shard = mds_shard_of(mod->mds, ino);
    struct lock *list = NULL;
    uint32_t n = 0;
    int rc = -ENOENT;

    arena_reset(&mod->arena);
    if (shard)
        rc = read_holders(mod, shard, ino, &list, &n);
    if (rc < 0 && rc != -ENOENT) {
        LOG_ERROR("locks", "inode %llu: its locks: %s", (unsigned long long)ino, err_text(rc));
        return rc;
    }
    *ret_list = rc == 0 ? list : NULL;
    *ret_n = rc == 0 ? n : 0;
    return 0;
}

static uint32_t holders(void *arg, uint64_t ino, const struct lock **ret_list)
{
    uint32_t n = 0;

    *ret_list = NULL;
    return locks_held(arg, ino, ret_list, &n) < 0 ? 0 : n;
}

/* ---- offers ---- */

void locks_kick(struct locks_module *mod, struct lock_file *f)
{
    uint64_t now_ns = reactor_now_ns(mod->mds->reactor);
    struct lock_wait *w;

    while (!list_empty(&f->waits) && (w = lock_wait_next(&mod->queue, f)) != NULL) {
        struct msg_lock_wait msg = {.ino = f->ino, .wait = w->id};

        w->state = LOCK_OFFERED;
        w->offer_end_ns = now_ns + OFFER_NS;
        if (!reactor_timer_running(&mod->offers))
            reactor_timer_start(mod->mds->reactor, &mod->offers, w->offer_end_ns);
        session_tell(mod->mds, w->want.session, RPC_OP_LOCK_WAKE, &msg, sizeof msg);
    }
}

static void kick_all(struct locks_module *mod)
{
    struct hmap_node *n, *next;
    size_t pos;

    hmap_for_each (n, next, pos, &mod->queue.files)
        locks_kick(mod, container_of(n, struct lock_file, by_ino));
}

static void offers_end(struct reactor_timer *t)
{
    struct locks_module *mod = container_of(t, struct locks_module, offers);
    uint64_t now_ns = reactor_now_ns(mod->mds->reactor), first_ns = UINT64_MAX;
    struct hmap_node *n, *next;
    bool lapsed = false;
    size_t pos;

    hmap_for_each (n, next, pos, &mod->queue.waits) {
        struct lock_wait *w = container_of(n, struct lock_wait, by_id);

        if (w->state != LOCK_OFFERED)
            continue;
        if (w->offer_end_ns <= now_ns) {
            w->state = LOCK_LAPSED;
            lapsed = true;
            stat_inc(&mod->lapsed);
        } else {
            first_ns = MIN(first_ns, w->offer_end_ns);
        }
    }
    if (first_ns != UINT64_MAX)
        reactor_timer_start(mod->mds->reactor, &mod->offers, first_ns);
    if (lapsed)
        kick_all(mod);
}

/* ---- sessions ---- */

void locks_session_end(struct mds *m, uint64_t session)
{
    struct locks_module *mod = locks_module(m);
    struct hmap_node *n, *next;
    bool removed = false;
    size_t pos;

    if (!mod)
        return;
    hmap_for_each (n, next, pos, &mod->queue.waits) {
        struct lock_wait *w = container_of(n, struct lock_wait, by_id);

        if (w->want.session == session) {
            lock_wait_remove(&mod->queue, w);
            removed = true;
        }
    }
    if (removed)
        kick_all(mod);
}

void locks_freed(struct mds *m, const struct locks_freed *freed)
{
    struct locks_module *mod = locks_module(m);

    for (uint32_t i = 0; mod && i < freed->n_inos; i++) {
        struct lock_file *f = lock_file_find(&mod->queue, freed->inos[i]);

        if (f)
            locks_kick(mod, f);
    }
}

/* ---- start and stop ---- */

static int64_t figure_waiting(void *arg)
{
    return (int64_t)((struct locks_module *)arg)->queue.waits.count;
}

static int locks_start(struct mds *m)
{
    struct locks_module *mod = mem_zalloc(sizeof *mod);
    int rc;

    if (!mod)
        return -ENOMEM;
    mod->mds = m;
    mod->queue.holders = holders;
    mod->queue.arg = mod;
    rc = lock_queue_init(&mod->queue);
    if (rc < 0) {
        mem_free(mod);
        return rc;
    }
    arena_init(&mod->arena, 0);
    reactor_timer_init(&mod->offers, offers_end);
    stat_counter_register(&mod->granted, "aifs_mds_locks_granted_total", NULL, "locks granted");
    stat_counter_register(&mod->waited, "aifs_mds_lock_waits_total", NULL,
                          "requests that had to wait for a lock");
    stat_counter_register(&mod->deadlocks, "aifs_mds_lock_deadlocks_total", NULL,
                          "requests refused because they would have waited for themselves");
    stat_counter_register(&mod->lapsed, "aifs_mds_lock_offers_lapsed_total", NULL,
                          "locks that were offered to a client and not taken in time");
    stat_callback_register(&mod->waiting, "aifs_mds_lock_waiting", NULL,
                           "requests that wait for a lock", figure_waiting, mod);
    m->locks = mod;
    return 0;
}

static void locks_stop(struct mds *m, void (*stopped)(void *arg), void *arg)
{
    reactor_timer_cancel(m->reactor, &locks_module(m)->offers);
    stopped(arg);
}

static void locks_free_module(struct mds *m)
{
    struct locks_module *mod = locks_module(m);

    if (!mod)
        return;
    m->locks = NULL;
    stat_unregister(&mod->granted.stat);
    stat_unregister(&mod->waited.stat);
    stat_unregister(&mod->deadlocks.stat);
    stat_unregister(&mod->lapsed.stat);
    stat_unregister(&mod->waiting.stat);
    lock_queue_fini(&mod->queue);
    arena_reset(&mod->arena);
    mem_free(mod);
}

const struct mds_module mds_locks_module = {
    .name = "locks", .start = locks_start, .stop = locks_stop, .free = locks_free_module};
