// SPDX-License-Identifier: Apache-2.0
/*
 * The session module as a whole: start, the tick that watches every time-out, stop, and what other
 * modules ask.
 *
 * Failure modes: a tick that comes far too late means that this process was stopped: renewals are
 * waiting unread in the sockets, so nobody is held to have missed its time.
 */
#include <string.h>

#include "mds/session/session_int.h"

#define TICK_MIN_NS     (20 * NS_PER_MS)
#define TICK_MAX_NS     (500 * NS_PER_MS)
#define PUSH_TIMEOUT_NS (5 * NS_PER_S)

void session_begin(struct session_module *mod)
{
    mod->outstanding++;
}

static void stop_check(struct session_module *mod);

void session_end(struct session_module *mod)
{
    mod->outstanding--;
    stop_check(mod);
}

void session_call(struct session_module *mod, struct session *s, struct rpc_link *l,
                  struct session_call *c)
{
    c->rpc.session = s->id;
    c->rpc.generation = s->generation;
    list_push_back(&mod->calls, &c->all);
    session_begin(mod);
    rpc_link_call(l, &c->rpc);
}

void session_call_end(struct session_module *mod, struct session_call *c)
{
    rpc_call_fini(&c->rpc);
    list_remove(&c->all);
    session_end(mod);
}

/* ---- the cluster map to everybody ---- */

struct map_push {
    struct session_call call;
    struct session_module *mod;
    struct rpc_link *link;
    uint64_t session;
    struct msg_map_req req;
};

static void push_map(struct session_module *mod, struct session *s, uint64_t epoch);

static void map_pushed(struct rpc_call *c, int status)
{
    struct map_push *p = container_of(c, struct map_push, call.rpc);
    struct session_module *mod = p->mod;
    struct session *s = session_find(mod, p->session);
    uint64_t epoch = p->req.epoch;

    rpc_link_unref(p->link);
    session_call_end(mod, &p->call);
    mem_free(p);
    if (!s)
        return;
    s->pushing = false;
    if (status == 0 && s->pushed_epoch > epoch) /* else it learns of it by its renewal */
        push_map(mod, s, s->pushed_epoch);
}

static void push_map(struct session_module *mod, struct session *s, uint64_t epoch)
{
    struct map_push *p;

    s->pushed_epoch = epoch;
    if (s->pushing || s->phase != PHASE_LIVE || !s->link || !rpc_link_alive(s->link) ||
        mod->stopping)
        return;
    p = mem_zalloc(sizeof *p);
    if (!p)
        return;
    p->mod = mod;
    p->session = s->id;
    p->link = rpc_link_ref(s->link);
    p->req.epoch = epoch;
    rpc_call_init(&p->call.rpc, RPC_OP_MAP_CHANGED, &p->req, map_pushed, p);
    p->call.rpc.timeout_ns = PUSH_TIMEOUT_NS;
    s->pushing = true;
    session_call(mod, s, p->link, &p->call);
}

void session_push_map(struct mds *m, uint64_t epoch)
{
    struct session_module *mod = session_module(m);
    struct hmap_node *n, *next;
    size_t pos;

    if (!mod)
        return;
    hmap_for_each (n, next, pos, &mod->sessions)
        push_map(mod, container_of(n, struct session, by_id), epoch);
}

/* ---- STATUS ---- */

static struct msg_bytes info_text(struct arena *a, const char *text)
{
    uint32_t len = (uint32_t)strlen(text);
    const char *copy = arena_dup(a, text, len + 1u);

    return copy ? (struct msg_bytes){copy, len} : (struct msg_bytes){0};
}

static uint32_t state_of(const struct session *s)
{
    if (s->phase == PHASE_LIVE)
        return s->reclaiming ? MSG_SESSION_RECLAIMS : MSG_SESSION_LIVE;
    return s->phase == PHASE_CLOSING ? MSG_SESSION_CLOSING : MSG_SESSION_EVICTED;
}

int session_list(struct mds *m, struct arena *a, const struct msg_session_info **ret_sessions,
                 uint32_t *ret_n)
{
    struct session_module *mod = session_module(m);
    struct hmap_node *node, *next;
    struct msg_session_info *list;
    uint32_t n = 0;
    size_t pos;

    list = arena_alloc(a, (mod->sessions.count + 1) * sizeof *list);
    if (!list)
        return -ENOMEM;
    hmap_for_each (node, next, pos, &mod->sessions) {
        const struct session *s = container_of(node, struct session, by_id);
        uint64_t now_ns = session_now_ns(mod);

        if (n == MSG_ITEMS_MAX)
            break;
        list[n++] = (struct msg_session_info){
            .session = s->id,
            .generation = s->generation,
            .host = info_text(a, s->host),
            .mount = info_text(a, s->mount),
            .job = info_text(a, s->job),
            .address = info_text(a, s->link ? rpc_link_describe(s->link) : ""),
            .pid = s->pid,
            .seen_ns_ago = s->renewed_ns ? now_ns - MIN(s->renewed_ns, now_ns) : now_ns,
            .opens = s->n_opens,
            .leases = s->n_leases,
            .state = state_of(s),
            .disconnected = !s->link || !rpc_link_alive(s->link)};
        session_waits_sum(s, &list[n - 1]);
    }
    *ret_sessions = list;
    *ret_n = n;
    return 0;
}

/* ---- the tick ---- */

static void tick(struct reactor_timer *t)
{
    struct session_module *mod = container_of(t, struct session_module, tick);
    uint64_t now_ns = session_now_ns(mod), late_ns = now_ns - mod->last_tick_ns;
    bool stalled = late_ns > mod->mds->conf.lease_ns / 3 + mod->tick_ns;
    struct hmap_node *n, *next;
    size_t pos;

    mod->last_tick_ns = now_ns;
    if (stalled)
        mod->started_ns = now_ns;
    hmap_for_each (n, next, pos, &mod->sessions) {
        struct session *s = container_of(n, struct session, by_id);

        if (stalled && s->phase == PHASE_LIVE)
            s->renewed_ns = now_ns;
        session_alone_tick(mod, s, now_ns);
        session_evict_tick(mod, s, now_ns);
    }
    session_recall_tick(mod, now_ns);
    session_glimpse_tick(mod, now_ns);
    session_mark_tick(mod, now_ns);
    session_watch_tick(mod, now_ns);
    session_timeout_waits(mod, now_ns);
    reactor_timer_start(mod->mds->reactor, &mod->tick, now_ns + mod->tick_ns);
}

/* ---- start and stop ---- */

static void session_cancel(struct mds *m)
{
    /* Reads have no slot: these are asked again. */
    session_parked_fail(session_module(m), 0, -AIFS_EBUSY_SERVER);
    session_glimpse_fail(session_module(m), -AIFS_EBUSY_SERVER);
    session_fail_waits(session_module(m), 0, -AIFS_ECANCELLED);
    session_watch_fail(session_module(m), 0, -AIFS_ECANCELLED);
}

static const struct mds_session_ops session_ops = {.check = session_check,
                                                   .prepare = session_prepare,
                                                   .finish = session_finish,
                                                   .cancel = session_cancel,
                                                   .glimpse = session_glimpse,
                                                   .watch = session_watch,
                                                   .told_of_cuts = session_told_of_cuts,
                                                   .is_writing = session_is_writing,
                                                   .alone_dir = session_alone_dir,
                                                   .alone_entry = session_alone_entry,
                                                   .alone_elsewhere = session_alone_elsewhere,
                                                   .park = session_park,
                                                   .has_open = session_has_open};

static void stats_register(struct session_stats *s)
{
    stat_counter_register(&s->opened, "aifs_mds_sessions_opened_total", NULL, "sessions opened");
    stat_counter_register(&s->evicted, "aifs_mds_sessions_evicted_total", NULL, "sessions evicted");
    stat_counter_register(&s->recalls, "aifs_mds_recalls_total", NULL, "leases recalled");
    stat_counter_register(&s->recalls_late, "aifs_mds_recalls_late_total", NULL,
                          "leases not given back in time");
    stat_counter_register(&s->recalls_prolonged, "aifs_mds_recalls_prolonged_total", NULL,
                          "times that a holder got longer, because a storage server is away");
    stat_counter_register(&s->glimpses, "aifs_mds_glimpses_total", NULL,
                          "sizes asked from writers");
    stat_counter_register(&s->glimpse_waits, "aifs_mds_glimpse_waits_total", NULL,
                          "waits for the size of a file whose writer does not answer");
    stat_counter_register(&s->waits, "aifs_mds_prepare_waits_total", NULL,
                          "changes that waited for a file");
    stat_counter_register(&s->refused, "aifs_mds_session_refused_total", NULL,
                          "requests refused because a table was full");
    stat_counter_register(&s->reclaimed, "aifs_mds_opens_reclaimed_total", NULL,
                          "opens reclaimed after a restart");
    stat_counter_register(&s->invalidations, "aifs_mds_invalidations_total", NULL,
                          "clients told that an inode or a name changes");
    stat_counter_register(&s->watch_waits, "aifs_mds_watch_waits_total", NULL,
                          "changes that waited until other clients were told");
    stat_counter_register(&s->shared, "aifs_mds_shared_total", NULL,
                          "times an inode or directory went to shared mode");
    stat_counter_register(&s->alone, "aifs_mds_alone_total", NULL,
                          "times a session was told to be alone with a directory");
    stat_counter_register(&s->parked, "aifs_mds_parked_total", NULL,
                          "requests that waited because another session was alone there");
    stat_gauge_register(&s->watches, "aifs_mds_watches", NULL, "leases on attributes and names");
    stat_gauge_register(&s->sessions, "aifs_mds_sessions", NULL, "sessions");
    stat_gauge_register(&s->opens, "aifs_mds_opens", NULL, "open files");
    stat_gauge_register(&s->files, "aifs_mds_open_inodes", NULL, "files open or frozen");
}

static void stats_unregister(struct session_stats *s)
{
    struct stat_item *all[] = {&s->opened.stat,
                               &s->evicted.stat,
                               &s->recalls.stat,
                               &s->recalls_late.stat,
                               &s->recalls_prolonged.stat,
                               &s->glimpses.stat,
                               &s->glimpse_waits.stat,
                               &s->waits.stat,
                               &s->refused.stat,
                               &s->reclaimed.stat,
                               &s->sessions.stat,
                               &s->opens.stat,
                               &s->files.stat,
                               &s->invalidations.stat,
                               &s->watch_waits.stat,
                               &s->shared.stat,
                               &s->alone.stat,
                               &s->parked.stat,
                               &s->watches.stat};

    for (unsigned i = 0; i < ARRAY_LEN(all); i++)
        stat_unregister(all[i]);
}

static void resume_evictions(struct session_module *mod)
{
    struct hmap_node *n, *next;
    size_t pos;

    hmap_for_each (n, next, pos, &mod->sessions) {
        struct session *s = container_of(n, struct session, by_id);

        if (s->phase == PHASE_FENCE)
            session_evict_resume(mod, s);
    }
}

static int session_start(struct mds *m)
{
    struct session_module *mod = mem_zalloc(sizeof *mod);
    int rc;

    if (!mod)
        return -ENOMEM;
    mod->mds = m;
    stats_register(&mod->stats);
    rc = session_watch_init(mod);
    if (rc < 0)
        goto err_free;
    rc = session_tables_init(mod);
    if (rc < 0)
        goto err_watch;
    rc = session_load(mod);
    if (rc < 0)
        goto err_tables;
    m->session = mod;
    m->session_ops = &session_ops;
    session_serve_start(mod);
    session_data_start(mod);
    session_close_start(mod);
    reactor_timer_init(&mod->tick, tick);
    mod->tick_ns = MAX(TICK_MIN_NS, MIN(TICK_MAX_NS, m->conf.lease_ns / 16));
    mod->last_tick_ns = mod->started_ns = session_now_ns(mod);
    reactor_timer_start(m->reactor, &mod->tick, mod->last_tick_ns + mod->tick_ns);
    session_grace_start(mod);
    resume_evictions(mod);
    return 0;
err_tables:
    session_tables_fini(mod);
err_watch:
    session_watch_fini(mod);
err_free:
    stats_unregister(&mod->stats);
    mem_free(mod);
    return rc;
}

static void stop_check(struct session_module *mod)
{
    void (*stopped)(void *arg) = mod->stopped;

    if (mod->outstanding || !stopped)
        return;
    mod->stopped = NULL;
    stopped(mod->stopped_arg);
}

static void stop_run(struct reactor_work *work)
{
    session_end(container_of(work, struct session_module, stop));
}

/* Changes that are inside files are finished by their owners, who stop first. */
static void session_stop(struct mds *m, void (*stopped)(void *arg), void *arg)
{
    struct session_module *mod = session_module(m);
    struct hmap_node *n, *next;
    struct list *l, *tmp;
    size_t pos;

    session_begin(mod); /* until stop_run() */
    mod->stopping = true;
    mod->stopped = stopped;
    mod->stopped_arg = arg;
    reactor_timer_cancel(m->reactor, &mod->tick);
    hmap_for_each (n, next, pos, &mod->sessions) {
        struct session *s = container_of(n, struct session, by_id);

        cluster_fence_cancel(m, &s->fenced);
        if (s->phase == PHASE_LIVE)
            session_answer_close(s, -AIFS_ECANCELLED);
    }
    session_cancel(m);
    list_for_each_safe (l, tmp, &mod->calls)
        rpc_call_cancel(&list_entry(l, struct session_call, all)->rpc);
    session_serve_stop(mod);
    mod->stop.fn = stop_run;
    reactor_defer(m->reactor, &mod->stop);
}

static void session_free_module(struct mds *m)
{
    struct session_module *mod = session_module(m);

    if (!mod)
        return;
    m->session = NULL;
    m->session_ops = NULL;
    mem_free(mod->orphans);
    session_watch_fini(mod);
    session_tables_fini(mod);
    stats_unregister(&mod->stats);
    mem_free(mod);
}

const struct mds_module mds_session_module = {
    .name = "session", .start = session_start, .stop = session_stop, .free = session_free_module};
