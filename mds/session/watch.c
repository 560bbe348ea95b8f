// SPDX-License-Identifier: Apache-2.0
/*
 * Leases on attributes and names: who is told before an inode changes (docs/protocols.md section
 * 3).
 *
 * A session watches an inode from an answer on that said so. A change counts as inside the inodes
 * it touches from before it is appended until it is answered, and nobody begins to watch them
 * meanwhile; whoever does watch, but the session that changes, is sent an INVALIDATE, and the
 * change waits until each has answered. The session goes on watching: it keeps the other names it
 * knows of a directory. What several change again and again is shared mode: nobody but its changer
 * keeps anything, until it has been quiet for a while. Before a cut everybody who has the file open
 * is told as if he watched: without a lease his writes rely on the end of the file, and a target
 * that cannot be reached would still take them behind the cut.
 *
 * Happy path: nobody else watches: nothing is sent and nothing waits. Failure modes: a session
 * without a connection is told when it has one; one that has not answered within the lease time is
 * evicted, and its watches end when its leases do. Bounds: a session that watches too much is told
 * to forget what it has watched longest.
 */
#include <string.h>

#include "mds/session/session_int.h"

/* ---- tables ---- */

struct watch_file *session_watch_file(struct session_module *mod, uint64_t ino)
{
    for (struct hmap_node *n = hmap_first(&mod->watch_files, hash_near(ino, 0)); n;
         n = hmap_next(n)) {
        struct watch_file *f = container_of(n, struct watch_file, by_ino);

        if (f->ino == ino)
            return f;
    }
    return NULL;
}

static struct watch_file *file_get(struct session_module *mod, uint64_t ino)
{
    struct watch_file *f = session_watch_file(mod, ino);

    if (f)
        return f;
    f = mem_zalloc(sizeof *f);
    if (!f)
        return NULL;
    f->ino = ino;
    list_init(&f->watches);
    list_init(&f->shared);
    list_init(&f->of_alone);
    list_init(&f->parked);
    hmap_insert(&mod->watch_files, &f->by_ino, hash_near(ino, 0));
    return f;
}

static void file_put(struct session_module *mod, struct watch_file *f)
{
    if (f->changing || !list_empty(&f->watches) || f->shared_until_ns)
        return;
    hmap_remove(&mod->watch_files, &f->by_ino);
    mem_free(f);
}

static uint64_t watch_hash(const struct session *s, uint64_t ino)
{
    return hash_near(ino, hash_u64(s->id));
}

struct session_watch *session_watch_find(struct session_module *mod, const struct session *s,
                                         uint64_t ino)
{
    struct hmap_node *n = hmap_first(&mod->watches, watch_hash(s, ino));

    for (; n; n = hmap_next(n)) {
        struct session_watch *w = container_of(n, struct session_watch, by_key);

        if (w->s == s && w->f->ino == ino)
            return w;
    }
    return NULL;
}

void session_watch_free(struct session_module *mod, struct session_watch *w)
{
    struct watch_file *f = w->f;

    f->changing++; /* stays while what waits for this watch goes on */
    while (!list_empty(&w->invals))
        session_inval_end(mod, list_entry(w->invals.next, struct watch_inval, of_watch));
    if (f->alone == w->s)
        session_alone_over(mod, f);
    f->changing--;
    hmap_remove(&mod->watches, &w->by_key);
    list_remove(&w->of_file);
    list_remove(&w->of_session);
    w->s->n_watches--;
    mem_free(w);
    stat_gauge_add(&mod->stats.watches, -1);
    file_put(mod, f);
}

void session_watch_drop(struct session_module *mod, struct session *s)
{
    session_settled(mod, s);
    while (!list_empty(&s->watches))
        session_watch_free(mod, list_entry(s->watches.next, struct session_watch, of_session));
}

/* ---- granting ---- */

/* The oldest tenth; nothing waits for their answers but the place they take. */
static void watch_shed(struct session_module *mod, struct session *s)
{
    unsigned n = 0;
    struct list *l;

    list_for_each (l, &s->watches) {
        struct session_watch *w = list_entry(l, struct session_watch, of_session);

        if (n++ == WATCHES_SHED || !list_empty(&w->invals)) /* the rest is being told */
            break;
        if (session_inval_new(mod, w, true, NULL, NULL) < 0)
            break;
    }
}

/* A file that another session writes, or may be about to: what is recorded of it may be old any
 * time. */
static bool written_elsewhere(struct session_module *mod, const struct session *s, uint64_t ino,
                              const struct msg_time *born)
{
    struct session_file *f = session_file_find(mod, ino);
    struct list *l;

    if (born && session_born_creating(mod, f, *born))
        return true;
    if (!f)
        return false;
    list_for_each (l, &f->uses) {
        const struct session_use *u = list_entry(l, struct session_use, of_file);

        if (u->s != s &&
            (u->n_write || u->held || u->mark_unclaimed || u->lease.kind == MSG_LEASE_WRITE))
            return true;
    }
    return false;
}

static struct session_watch *watch_new(struct session_module *mod, struct session *s, uint64_t ino)
{
    struct session_watch *w = mem_zalloc(sizeof *w);
    struct watch_file *f = w ? file_get(mod, ino) : NULL;

    if (!f) {
        mem_free(w);
        return NULL;
    }
    w->s = s;
    w->f = f;
    list_init(&w->invals);
    hmap_insert(&mod->watches, &w->by_key, watch_hash(s, ino));
    list_push_back(&f->watches, &w->of_file);
    list_push_back(&s->watches, &w->of_session);
    s->n_watches++;
    stat_gauge_add(&mod->stats.watches, 1);
    return w;
}

bool session_watch(struct mds *m, uint64_t session, uint64_t ino, const struct msg_time *born,
                   bool own)
{
    struct session_module *mod = session_module(m);
    struct session *s = session_find(mod, session);
    struct session_watch *w;
    struct watch_file *f;

    if (!s || s->phase != PHASE_LIVE || s->reclaiming || mod->stopping)
        return false;
    f = session_watch_file(mod, ino);
    w = session_watch_find(mod, s, ino);
    if (f && f->changing && !(own && w && f->changer == session))
        return false;
    if (written_elsewhere(mod, s, ino, born))
        return false;
    if (w) {
        list_remove(&w->of_session);
        list_push_back(&s->watches, &w->of_session);
        return list_empty(&w->invals);
    }
    if (f && (f->shared_until_ns || session_alone_elsewhere(m, session, ino)))
        return false;
    if (s->n_watches >= SESSION_WATCHES_MAX || mod->watches.count >= WATCHES_MAX) {
        watch_shed(mod, s);
        stat_inc(&mod->stats.refused);
        return false;
    }
    return watch_new(mod, s, ino) != NULL;
}

bool session_told_of_cuts(struct mds *m, uint64_t session, uint64_t ino)
{
    struct session_module *mod = session_module(m);
    struct session *s = session_find(mod, session);
    struct session_use *u = s ? session_use_find(mod, s, ino) : NULL;
    struct watch_file *f = session_watch_file(mod, ino);

    return u && u->n_opens && s->phase == PHASE_LIVE && !s->reclaiming && (!f || !f->changing);
}

/* ---- changes ---- */

/* Counts how often others had to be told; true: they are told to forget all of it. */
static bool file_heat(struct session_module *mod, struct watch_file *f)
{
    uint64_t now = session_now_ns(mod);

    if (now - f->heat_ns > SHARED_NS)
        f->heat = 0;
    f->heat_ns = now;
    if (++f->heat < SHARED_CHANGES)
        return false;
    f->shared_until_ns = now + SHARED_NS;
    if (list_empty(&f->shared)) {
        list_push_back(&mod->shared_files, &f->shared);
        stat_inc(&mod->stats.shared);
    }
    return true;
}

static bool others_watch(const struct watch_file *f, uint64_t session)
{
    struct list *l;

    list_for_each (l, &f->watches) {
        if (list_entry(l, struct session_watch, of_file)->s->id != session)
            return true;
    }
    return false;
}

/* Whoever has the file open watches it from now on, at least until this change is over. */
static int openers_watch(struct session_module *mod, uint64_t ino, uint64_t session)
{
    struct session_file *f = session_file_find(mod, ino);
    struct list *l;

    if (!f)
        return 0;
    list_for_each (l, &f->uses) {
        const struct session_use *u = list_entry(l, struct session_use, of_file);

        if (u->n_opens && u->s->id != session && u->s->phase < PHASE_SEAL &&
            !session_watch_find(mod, u->s, ino) && !watch_new(mod, u->s, ino))
            return -ENOMEM;
    }
    return 0;
}

static int change_enter(struct session_module *mod, struct mds_change *c, uint64_t session,
                        bool *ret_others)
{
    struct watch_file *f = file_get(mod, c->ino);
    int rc;

    if (!f)
        return -ENOMEM;
    rc = c->cuts ? openers_watch(mod, c->ino, session) : 0;
    if (rc < 0) {
        file_put(mod, f);
        return rc;
    }
    c->owner |= c->sets_owner && f->changing; /* one of those may change it first */
    if (f->changing++ == 0)
        f->changer = session;
    else if (f->changer != session)
        f->changer = 0;
    c->hook = f;
    if (f->shared_until_ns)
        f->shared_until_ns = session_now_ns(mod) + SHARED_NS;
    *ret_others |= others_watch(f, session);
    return 0;
}

static int change_tell(struct session_module *mod, struct mds_change *c, uint64_t session,
                       struct watch_wait *ww)
{
    struct watch_file *f = c->hook;
    struct list *l, *next;
    bool whole;
    int rc = 0;

    if (!others_watch(f, session))
        return 0;
    whole = file_heat(mod, f);
    list_for_each_safe (l, next, &f->watches) {
        struct session_watch *w = list_entry(l, struct session_watch, of_file);

        if (w->s->id != session && rc == 0)
            rc = session_inval_new(mod, w, whole, c, ww);
    }
    return rc;
}

void session_watch_leave(struct session_module *mod, struct mds_prepare *p)
{
    for (unsigned i = 0; i < p->n_changes; i++) {
        struct watch_file *f = p->changes[i].hook;

        p->changes[i].hook = NULL;
        if (f) {
            f->changing--;
            file_put(mod, f);
        }
    }
}

static void wait_free(struct session_module *mod, struct watch_wait *ww)
{
    struct list *l;

    if (ww->pending) { /* their answers come, and nobody waits for them */
        list_for_each (l, &mod->invals) {
            struct watch_inval *v = list_entry(l, struct watch_inval, all);

            if (v->wait == ww)
                v->wait = NULL;
        }
    }
    list_remove(&ww->all);
    ww->p->watch_hook = NULL;
    mem_free(ww);
}

static void wait_fail(struct session_module *mod, struct watch_wait *ww, int status)
{
    struct mds_prepare *p = ww->p;

    wait_free(mod, ww);
    session_watch_leave(mod, p);
    p->ready(p, status);
}

static void wait_again(struct session_module *mod, struct mds_prepare *p)
{
    int rc = session_watch_enter(mod, p);

    if (rc == 0)
        session_prepare_files(mod, p);
    else if (rc != -EAGAIN)
        p->ready(p, rc);
}

static void wait_run(struct reactor_work *work)
{
    struct session_module *mod = container_of(work, struct session_module, watch_run);
    struct list *l;

    mod->watch_run_queued = false;
    while ((l = list_pop_front(&mod->watch_runnable))) {
        struct watch_wait *ww = list_entry(l, struct watch_wait, all);
        struct mds_prepare *p = ww->p;
        bool entered = ww->entered;

        wait_free(mod, ww);
        if (entered)
            session_prepare_files(mod, p);
        else
            wait_again(mod, p);
    }
    session_end(mod);
}

/* All have answered: goes on from the reactor, not from inside whoever has noticed. */
void session_watch_told(struct session_module *mod, struct watch_wait *ww)
{
    list_remove(&ww->all);
    list_push_back(&mod->watch_runnable, &ww->all);
    if (mod->watch_run_queued)
        return;
    session_begin(mod);
    mod->watch_run_queued = true;
    mod->watch_run.fn = wait_run;
    reactor_defer(mod->mds->reactor, &mod->watch_run);
}

static struct watch_wait *wait_new(struct session_module *mod, struct mds_prepare *p,
                                   struct list *where)
{
    struct watch_wait *ww = mem_zalloc(sizeof *ww);

    if (!ww)
        return NULL;
    ww->p = p;
    ww->since_ns = session_now_ns(mod);
    p->watch_hook = ww;
    list_init(&ww->all);
    list_push_back(where, &ww->all);
    stat_inc(&mod->stats.watch_waits);
    return ww;
}

static int changes_tell(struct session_module *mod, struct mds_prepare *p)
{
    struct watch_wait *ww = wait_new(mod, p, &mod->watch_waits);
    int rc = ww ? 0 : -ENOMEM;

    if (!ww)
        return rc;
    ww->entered = true;
    ww->pending = 1; /* until all are told */
    for (unsigned i = 0; rc == 0 && i < p->n_changes; i++)
        rc = change_tell(mod, &p->changes[i], p->session, ww);
    if (--ww->pending > 0 && rc == 0)
        return -EAGAIN;
    wait_free(mod, ww);
    return rc;
}

int session_watch_enter(struct session_module *mod, struct mds_prepare *p)
{
    bool others = false;
    int rc = 0;

    p->watch_hook = NULL;
    for (unsigned i = 0; i < p->n_changes; i++)
        p->changes[i].hook = NULL;
    if (p->n_changes && mod->grace) /* nobody knows what the sessions from before believe */
        return p->at_once ? -AIFS_ERETRY : wait_new(mod, p, &mod->watch_grace) ? -EAGAIN : -ENOMEM;
    for (unsigned i = 0; rc == 0 && i < p->n_changes; i++)
        rc = change_enter(mod, &p->changes[i], p->session, &others);
    if (rc == 0 && others)
        rc = p->at_once ? -AIFS_ERETRY : changes_tell(mod, p);
    if (rc < 0 && rc != -EAGAIN)
        session_watch_leave(mod, p);
    return rc;
}

/* The sessions from before the restart have forgotten what they believed, or are gone. */
void session_watch_grace_over(struct session_module *mod)
{
    struct list now, *l;

    list_init(&now);
    list_splice(&now, &mod->watch_grace);
    while ((l = list_pop_front(&now)))
        session_watch_told(mod, list_entry(l, struct watch_wait, all));
}

void session_watch_fail(struct session_module *mod, uint64_t session, int status)
{
    struct list *lists[] = {&mod->watch_waits, &mod->watch_grace, &mod->watch_runnable};
    struct list failed, *l, *next;

    list_init(&failed);
    for (unsigned i = 0; i < ARRAY_LEN(lists); i++) {
        list_for_each_safe (l, next, lists[i]) {
            struct watch_wait *ww = list_entry(l, struct watch_wait, all);

            if (session == 0 || ww->p->session == session) {
                list_remove(&ww->all);
                list_push_back(&failed, &ww->all);
            }
        }
    }
    while ((l = list_pop_front(&failed)))
        wait_fail(mod, list_entry(l, struct watch_wait, all), status);
    session_parked_fail(mod, session, status);
}

static void timeout_waits(struct session_module *mod, struct list *waits, uint64_t now_ns)
{
    struct list *l, *next;

    list_for_each_safe (l, next, waits) {
        struct watch_wait *ww = list_entry(l, struct watch_wait, all);

        if (ww->p->deadline_ns && now_ns >= ww->p->deadline_ns) {
            wait_fail(mod, ww, -AIFS_ETIMEOUT);
            return; /* the list may have changed: the rest with the next tick */
        }
    }
}

static void shared_sweep(struct session_module *mod, uint64_t now_ns)
{
    struct list *l, *next;

    list_for_each_safe (l, next, &mod->shared_files) {
        struct watch_file *f = list_entry(l, struct watch_file, shared);

        if (now_ns < f->shared_until_ns)
            continue;
        f->shared_until_ns = 0;
        f->heat = 0;
        list_remove(&f->shared);
        file_put(mod, f);
    }
}

void session_watch_tick(struct session_module *mod, uint64_t now_ns)
{
    struct list *l, *next;

    shared_sweep(mod, now_ns);

    list_for_each_safe (l, next, &mod->invals) {
        struct watch_inval *v = list_entry(l, struct watch_inval, all);
        struct session *s;

        if (now_ns >= v->deadline_ns && v->w->s->phase == PHASE_LIVE &&
            !session_inval_prolong(mod, v, now_ns)) {
            stat_inc(&mod->stats.recalls_late);
            s = v->w->s;
            session_evict(mod, s, "did not answer an invalidation in time", false);
            if (s->phase != PHASE_LIVE)
                return; /* the list may have changed: the rest with the next tick */
        }
        session_inval_send(mod, v);
    }
    timeout_waits(mod, &mod->watch_waits, now_ns);
    timeout_waits(mod, &mod->watch_grace, now_ns);
    session_parked_tick(mod, now_ns);
}

/* ---- start and stop ---- */

int session_watch_init(struct session_module *mod)
{
    struct list *lists[] = {&mod->watch_waits,      &mod->watch_grace,  &mod->watch_runnable,
                            &mod->invals,           &mod->shared_files, &mod->parked,
                            &mod->parked_unsettled, &mod->park_runnable};

    for (unsigned i = 0; i < ARRAY_LEN(lists); i++)
        list_init(lists[i]);
    if (hmap_init(&mod->watch_files, 1024) < 0)
        return -ENOMEM;
    if (hmap_init(&mod->watches, 1024) < 0) {
        hmap_fini(&mod->watch_files);
        return -ENOMEM;
    }
    return 0;
}

void session_watch_fini(struct session_module *mod)
{
    struct hmap_node *n, *next;
    struct list *l, *tmp;
    size_t pos;

    list_for_each_safe (l, tmp, &mod->invals)
        mem_free(list_entry(l, struct watch_inval, all));
    hmap_for_each (n, next, pos, &mod->watches)
        mem_free(container_of(n, struct session_watch, by_key));
    hmap_for_each (n, next, pos, &mod->watch_files)
        mem_free(container_of(n, struct watch_file, by_ino));
    hmap_fini(&mod->watches);
    hmap_fini(&mod->watch_files);
}
