// SPDX-License-Identifier: Apache-2.0
/*
 * Eviction, step by step (docs/protocols.md section 7):
 *
 *   ENTRY   the record says evicted, with a fence; files it may have been writing are queued for
 *           recovery of their size. From here on every request of the session is refused.
 *   FENCE   every OSS that is up has acknowledged the fence. One that is not gets it before it is
 *           asked for sizes; until then files with chunks there stay held.
 *   SAFE    its client's own count of the lease time is over: it does not serve from its caches
 *           any more. Nothing to wait for when the client is known to be gone.
 *   SEAL    locks, opens and leases are free, but for files whose size is still being recovered:
 *           those become free one by one (mds/gc), the locks of each with it.
 *   REMOVE  the record goes.
 *
 * Failure modes: after a restart the steps begin again at FENCE, from the record and the recovery
 * queue; each of them can be repeated. An OSS that stays away delays only the files it has chunks
 * of.
 */
#include <stdlib.h>

#include "common/fault/fault.h"
#include "mds/session/session_int.h"

static void evict_advance(struct session_module *mod, struct session *s);

void session_answer_close(struct session *s, int status)
{
    struct rpc_req *req = s->closing;

    s->closing = NULL;
    if (req)
        rpc_reply(req, status, NULL);
}

/* ---- REMOVE ---- */

static void removed(struct mds_submit *submit)
{
    struct session *s = container_of(submit, struct session, submit);
    struct session_module *mod = s->mod;
    int rc = submit->entry.status;

    if (rc == 0)
        locks_freed(mod->mds, submit->entry.reply);
    mds_submit_fini(submit);
    session_answer_close(s, rc);
    if (rc < 0) {
        LOG_ERROR("session", "%llu: its record is still there: %s", (unsigned long long)s->id,
                  err_name(rc));
        s->remove_failed = true;
    } else {
        while (!list_empty(&s->uses)) /* opened in the last moment before it closed */
            session_use_drop(mod, list_entry(s->uses.next, struct session_use, of_session));
        session_watch_drop(mod, s);
        session_free(mod, s);
    }
    session_end(mod);
}

void session_remove(struct session_module *mod, struct session *s)
{
    s->remove_failed = false;
    s->msg.remove = (struct session_remove){.session = s->id};
    session_begin(mod);
    mds_submit(mod->mds, &s->submit, mod->mds->shards[0], SHARD_OP_SESSION_REMOVE, &s->msg.remove,
               SHARD_E_FREES, removed);
}

/* ---- SEAL ---- */

struct evict_locks {
    struct mds_submit submit;
    struct locks_free msg;
    struct session_module *mod;
    uint64_t kept[];
};

static void evict_locks(struct session_module *mod, struct session *s);

static void locks_are_free(struct mds_submit *submit)
{
    struct evict_locks *l = container_of(submit, struct evict_locks, submit);
    const struct locks_freed *rep = submit->entry.reply;
    struct session_module *mod = l->mod;
    struct session *s = session_find(mod, l->msg.session);

    if (submit->entry.status == 0)
        locks_freed(mod->mds, rep);
    else
        LOG_ERROR("session", "%llu: its locks stay until its record goes: %s",
                  (unsigned long long)l->msg.session, err_name(submit->entry.status));
    if (s)
        s->locks_busy = false;
    if (s && submit->entry.status == 0) {
        s->locks_left = rep->left;
        if (rep->left && s->phase == PHASE_SEAL && s->n_held < l->msg.n_kept)
            evict_locks(mod, s);
    }
    mds_submit_fini(submit);
    mem_free(l);
    session_end(mod);
}

static int compare_inos(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Not of files that are still held: a target that is away has no fence yet, and may take what its
 * holder has sent. One at a time: what has changed meanwhile is seen when it ends. */
static void evict_locks(struct session_module *mod, struct session *s)
{
    struct evict_locks *l;
    struct list *i;

    if (s->locks_busy)
        return;
    l = mem_zalloc(sizeof *l + s->n_held * sizeof l->kept[0]);
    if (!l || mod->stopping) { /* they go with the record */
        mem_free(l);
        return;
    }
    s->locks_busy = true;
    l->mod = mod;
    l->msg.session = s->id;
    l->msg.kept = l->kept;
    list_for_each (i, &s->uses) {
        const struct session_use *u = list_entry(i, struct session_use, of_session);

        if (u->held && l->msg.n_kept < s->n_held)
            l->kept[l->msg.n_kept++] = u->f->ino;
    }
    qsort(l->kept, l->msg.n_kept, sizeof l->kept[0], compare_inos);
    session_begin(mod);
    mds_submit(mod->mds, &l->submit, mod->mds->shards[0], SHARD_OP_LOCKS_FREE, &l->msg,
               SHARD_E_FREES, locks_are_free);
}

static void evict_release(struct session_module *mod, struct session *s)
{
    struct list *l, *next;

    s->phase = PHASE_SEAL;
    evict_locks(mod, s);
    session_watch_drop(mod, s);
    list_for_each_safe (l, next, &s->uses) {
        struct session_use *u = list_entry(l, struct session_use, of_session);

        if (!u->held)
            session_use_drop(mod, u);
    }
    s->reclaiming = false;
    session_grace_check(mod);
    evict_advance(mod, s);
}

void session_item_done(struct mds *m, enum key_type queue, uint64_t ino)
{
    struct session_module *mod = session_module(m);
    struct session_file *f = session_file_find(mod, ino);
    struct list *l, *next;

    if (!f)
        return;
    f->n_woken++; /* keeps it while its uses go */
    list_for_each_safe (l, next, &f->uses) {
        struct session_use *u = list_entry(l, struct session_use, of_file);
        struct session *s = u->s;

        if (u->held != queue)
            continue;
        u->held = 0;
        s->n_held--;
        if (s->phase == PHASE_SEAL) {
            session_use_drop(mod, u);
            if (s->locks_left && s->n_held)
                evict_locks(mod, s);
            evict_advance(mod, s);
        }
    }
    f->n_woken--;
    session_glimpse_wake(mod, f);
    session_wake_queue(mod, f);
    session_file_put(mod, f);
}

/* ---- SAFE ---- */

static bool evict_expired(struct session_module *mod, const struct session *s, uint64_t now_ns)
{
    uint64_t lease_ns = mod->mds->conf.lease_ns;

    return now_ns > s->renewed_ns + lease_ns ||
           (s->reclaiming && now_ns > mod->started_ns + 2 * lease_ns);
}

void session_evict_tick(struct session_module *mod, struct session *s, uint64_t now_ns)
{
    uint64_t lease_ns = mod->mds->conf.lease_ns;

    if (s->phase == PHASE_LIVE && s->evict_due)
        session_evict(mod, s, s->evict_due, s->evict_safe);
    else if (s->phase == PHASE_LIVE && now_ns > s->renewed_ns + lease_ns)
        session_evict(mod, s, "was not renewed in time", true);
    else if (s->phase == PHASE_LIVE && evict_expired(mod, s, now_ns))
        session_evict(mod, s, "did not reclaim in time", false);
    else if (s->phase == PHASE_SAFE && now_ns > s->renewed_ns + lease_ns)
        evict_release(mod, s);
    else if (s->fence_failed)
        session_evict_resume(mod, s);
    else if (s->remove_failed)
        session_remove(mod, s);
}

uint64_t session_fence(struct mds *m, uint64_t session)
{
    struct session *s = session_find(session_module(m), session);

    if (!s)
        return 0;
    return s->phase >= PHASE_FENCE ? s->fence : UINT64_MAX;
}

/* ---- FENCE ---- */

static void evict_fenced(struct cluster_fence_wait *w)
{
    struct session *s = container_of(w, struct session, fenced);
    struct session_module *mod = s->mod;

    FAULT_CRASH("mds.evict.after_fence");
    s->phase = PHASE_SAFE;
    if (s->n_held && mod->mds->gc_ops)
        mod->mds->gc_ops->kick(mod->mds, KEY_RECOVER, 0);
    session_evict_tick(mod, s, session_now_ns(mod));
}

void session_evict_resume(struct session_module *mod, struct session *s)
{
    s->phase = PHASE_FENCE;
    s->fenced = (struct cluster_fence_wait){.fence = s->fence, .done = evict_fenced};
    s->fence_failed = cluster_fence_push(mod->mds, s->id, s->generation, &s->fenced) < 0;
}

static void evict_advance(struct session_module *mod, struct session *s)
{
    if (s->phase != PHASE_SEAL || s->n_held || mod->stopping)
        return;
    LOG_INFO("session", "%llu: evicted", (unsigned long long)s->id);
    s->phase = PHASE_REMOVE;
    session_remove(mod, s);
}

/* ---- ENTRY ---- */

void session_use_hold(struct session_use *u, enum key_type queue)
{
    u->s->n_held += !u->held;
    u->held = queue;
}

static void evict_hold(struct session_module *mod, struct session *s, enum key_type queue,
                       uint32_t n, const uint64_t *inos)
{
    for (uint32_t i = 0; i < n; i++) {
        struct session_use *u = session_use_find(mod, s, inos[i]);

        if (u)
            session_use_hold(u, queue);
    }
}

/* Nothing has happened: it is due again when its time has passed, and who waits for its leases asks
 * for them again. */
static void evict_failed(struct session_module *mod, struct session *s, int status)
{
    struct list *l, *next;

    LOG_ERROR("session", "%llu: eviction failed: %s", (unsigned long long)s->id, err_name(status));
    s->phase = PHASE_LIVE;
    s->renewed_ns = session_now_ns(mod);
    list_for_each_safe (l, next, &s->uses) {
        struct session_use *u = list_entry(l, struct session_use, of_session);

        session_wake_blocked(mod, u->f);
        session_use_put(mod, u);
    }
}

/* A file that was created before the eviction and comes to be known while that is under way: its
 * mark is there, so it will be cut; nobody has it before. */
void session_evict_created(struct session_module *mod, struct session *s, uint64_t ino)
{
    struct session_use *u;
    int rc;

    if (s->phase != PHASE_ENTRY)
        return;
    rc = session_use_get(mod, s, ino, &u);
    if (rc == 0)
        session_use_hold(u, KEY_PUNCH);
    else
        LOG_WARN("session", "inode %llu: not held for its eviction: %s", (unsigned long long)ino,
                 err_name(rc));
}

/* What was held until it is known what the entry says. */
static void evict_unhold(struct session *s)
{
    struct list *l;

    list_for_each (l, &s->uses)
        list_entry(l, struct session_use, of_session)->held = 0;
    s->n_held = 0;
}

static void evict_committed(struct mds_submit *submit)
{
    struct session *s = container_of(submit, struct session, submit);
    struct session_module *mod = s->mod;
    const struct session_evicted *rep = submit->entry.reply;
    struct uuid client = s->client;
    int rc = submit->entry.status;
    bool punch = false;

    evict_unhold(s);
    if (rc == 0) {
        FAULT_CRASH("mds.evict.after_entry");
        s->fence = rep->fence;
        punch = rep->n_punch > 0;
        evict_hold(mod, s, KEY_RECOVER, rep->n_recover, rep->recover);
        evict_hold(mod, s, KEY_PUNCH, rep->n_punch, rep->punch);
    }
    mds_submit_fini(submit);
    mem_free(s->spared);
    s->spared = NULL;
    session_answer_close(s, rc);
    if (rc < 0) {
        evict_failed(mod, s, rc);
        session_refuse_opening(mod, &client);
    } else {
        stat_inc(&mod->stats.evicted);
        session_evict_resume(mod, s);
        if (punch && mod->mds->gc_ops)
            mod->mds->gc_ops->kick(mod->mds, KEY_PUNCH, 0);
        session_serve_opening(mod, &client);
    }
    session_end(mod);
}

/* Marks that say too much: the others are of files that it may have been writing. */
static int evict_collect(struct session *s, struct session_unmark *ret_spared)
{
    uint32_t n = 0;
    bool if_inline;
    struct list *l;

    list_for_each (l, &s->uses)
        n += session_mark_spared(list_entry(l, struct session_use, of_session), &if_inline);
    s->spared = mem_array(n + 1u, sizeof *s->spared);
    if (!s->spared)
        return -ENOMEM;
    n = 0;
    list_for_each (l, &s->uses) {
        const struct session_use *u = list_entry(l, struct session_use, of_session);

        if (session_mark_spared(u, &if_inline))
            s->spared[n++] = (struct session_mark){s->id, u->f->ino, u->mark_id, if_inline};
    }
    *ret_spared = (struct session_unmark){.n = n, .marks = s->spared};
    return 0;
}

/* Has anybody else still to say what it has from before the restart? Until then nobody knows who
 * had a file alone. Bounded: who has not said it in two lease times is evicted itself. */
static bool evict_too_early(struct session_module *mod, const struct session *s)
{
    uint64_t now_ns = session_now_ns(mod);
    struct hmap_node *n, *next;
    size_t pos;

    if (!s->reclaiming)
        return false;
    hmap_for_each (n, next, pos, &mod->sessions) {
        const struct session *x = container_of(n, struct session, by_id);

        if (x != s && x->reclaiming && x->phase == PHASE_LIVE && !x->evict_due &&
            !evict_expired(mod, x, now_ns))
            return true;
    }
    return false;
}

/* safe: its client can not be serving from caches under its leases any more. */
void session_evict(struct session_module *mod, struct session *s, const char *why, bool safe)
{
    struct session_evict msg = {.session = s->id, .safe = safe};
    struct list *l;

    if (s->phase != PHASE_LIVE || mod->stopping)
        return;
    if (evict_too_early(mod, s)) {
        s->evict_due = why;
        s->evict_safe |= safe;
        return;
    }
    if (evict_collect(s, &msg.spared) < 0) {
        LOG_WARN("session", "%llu: out of memory, evicted later", (unsigned long long)s->id);
        return;
    }
    LOG_WARN("session", "%llu (%s, pid %u) %s: evicting it", (unsigned long long)s->id, s->host,
             s->pid, why);
    s->phase = PHASE_ENTRY;
    s->why = why;
    if (safe)
        s->renewed_ns = 0;
    list_for_each (l, &s->uses)
        session_recall_end(list_entry(l, struct session_use, of_session));
    session_fail_waits(mod, s->id, -AIFS_ESESSION);
    locks_session_end(mod->mds, s->id);
    session_watch_fail(mod, s->id, -AIFS_ESESSION);
    s->msg.evict = msg;
    session_begin(mod);
    mds_submit(mod->mds, &s->submit, mod->mds->shards[0], SHARD_OP_SESSION_EVICT, &s->msg.evict,
               SHARD_E_FREES, evict_committed);
}
