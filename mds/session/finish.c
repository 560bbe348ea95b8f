// SPDX-License-Identifier: Apache-2.0
/*
 * After a change: what it has opened is confirmed or given back, its files are left, and what has
 * lost its last name while open is remembered.
 *
 * Happy path: the open that prepare() made becomes known to its client with this answer. From then
 * on its lease can only be ended by a recall; before, it is simply lowered, here at the latest.
 */
#include "mds/session/session_int.h"

struct orphan_release {
    struct mds_submit submit;
    struct shard_ino msg;
    struct session_module *mod;
};

/* Its items have gone with it: no eviction has to wait for them. */
static void file_destroyed(struct mds *m, uint64_t ino)
{
    session_item_done(m, KEY_RECOVER, ino);
    session_item_done(m, KEY_PUNCH, ino);
}

static void orphan_released(struct mds_submit *s)
{
    struct orphan_release *r = container_of(s, struct orphan_release, submit);
    struct session_module *mod = r->mod;
    struct session_file *f = session_file_find(mod, r->msg.ino);

    if (s->entry.status == 0 && s->entry.result & SHARD_R_DESTROY && mod->mds->gc_ops)
        mod->mds->gc_ops->kick(mod->mds, KEY_DESTROY, r->msg.ino);
    if (f) {
        f->releasing = false;
        f->inside.breaks--;
        session_wake_queue(mod, f);
        session_file_put(mod, f);
    }
    if (s->entry.status == 0 && s->entry.result & SHARD_R_DESTROY)
        file_destroyed(mod->mds, r->msg.ino);
    mds_submit_fini(s);
    mem_free(r);
    if (--mod->n_releasing == 0)
        session_orphans_continue(mod);
    session_end(mod);
}

/* It has no name, and nobody has it open or is about to: it may go. Nobody opens it meanwhile. */
void session_orphan_check(struct session_module *mod, struct session_file *f)
{
    struct orphan_release *r;

    if (!f->orphan || f->n_open_uses || f->inside.take || f->inside.sole || f->releasing ||
        mod->grace || mod->stopping)
        return;
    r = mem_zalloc(sizeof *r);
    if (!r) {
        LOG_WARN("session", "inode %llu: out of memory, its chunks stay until the next start",
                 (unsigned long long)f->ino);
        return;
    }
    f->orphan = false;
    f->releasing = true;
    f->inside.breaks++;
    r->mod = mod;
    r->msg.ino = f->ino;
    mod->n_releasing++;
    session_begin(mod);
    mds_submit(mod->mds, &r->submit, mds_shard_of(mod->mds, f->ino), SHARD_OP_ORPHAN_RELEASE,
               &r->msg, SHARD_E_FREES, orphan_released);
}

/* What the answer says about the lease: never more than the session has, never less than it has
 * been told before. */
static void tell_lease(struct session_use *u, struct mds_outcome *o)
{
    struct session_grant offer = {o->lease, o->lease_seq};

    if (offer.kind >= u->lease.kind)
        offer = u->lease;
    if (u->told.kind >= offer.kind)
        offer = u->told;
    else
        session_lease_told(u, offer);
    o->lease = offer.kind;
    o->lease_seq = offer.seq;
}

static void no_lease(struct mds_outcome *o)
{
    o->lease = MSG_LEASE_NONE;
    o->lease_seq = 0;
}

/* ---- files that are being created ---- */

bool session_born_creating(struct session_module *mod, const struct session_file *f,
                           struct msg_time born)
{
    const struct session_open *first;

    if (list_empty(&mod->creating) || (f && f->n_open_uses))
        return false;
    first = list_entry(mod->creating.next, struct session_open, of_use);
    return born.sec * (int64_t)NS_PER_S + born.nsec >= first->create_wall_ns;
}

bool session_may_be_creating(struct session_module *mod, const struct session_file *f, uint64_t ino)
{
    struct shard *shard = mds_shard_of(mod->mds, ino);
    struct mds_inode in;
    struct view v;
    int rc;

    if (list_empty(&mod->creating) || (f && f->n_open_uses) || !shard)
        return false;
    view_begin(shard, &v);
    rc = view_inode(&v, ino, &in);
    view_end(&v);
    if (rc < 0)
        return rc != -ENOENT; /* nobody knows */
    return session_born_creating(mod, f, in.btime);
}

/* A created file gets its number. Normally nobody else has it open: see
 * session_may_be_creating(). */
static int attach_created(struct session_module *mod, struct session *s, struct session_open *o,
                          uint64_t ino)
{
    struct session_use *u;
    bool alone;
    int rc = session_use_get(mod, s, ino, &u);

    if (rc < 0)
        return rc;
    alone = u->f->n_open_uses == (u->n_opens != 0);
    list_remove(&o->of_use);
    session_open_attach(o, u);
    if (alone && u->lease.kind == MSG_LEASE_NONE)
        session_lease_set(mod, u, lease_writes(o->flags) ? MSG_LEASE_WRITE : MSG_LEASE_READ,
                          o->lease_seq);
    else
        (void)session_recall_conflicts(mod, u->f, s->id, MDS_ACCESS_OPEN, o->flags);
    return 0;
}

/* The kept answer of an earlier sending names an open; a restart may have lost it. One for writing
 * is believed as long as its mark is there: the store must know. */
static void finish_duplicate(struct session_module *mod, struct session *s, struct mds_prepare *p,
                             struct mds_outcome *o, uint32_t flags)
{
    struct session_open *old = session_open_find(mod, o->open_id);
    struct session_use *u;

    if (old && old->use && old->session == p->session) {
        old->confirmed = true;
        tell_lease(old->use, o);
        return;
    }
    no_lease(o);
    if (old || !s || session_use_get(mod, s, o->open_ino, &u) < 0)
        return;
    if (!session_mark_needed(u, flags))
        old = session_open_new(mod, s, o->open_id, flags);
    if (old) {
        old->confirmed = true;
        session_open_attach(old, u);
    }
    session_use_put(mod, u);
}

static void finish_open(struct session_module *mod, struct session *s, struct mds_prepare *p,
                        struct mds_touch *t, struct mds_outcome *out)
{
    struct session_open *o = t->hook;
    bool duplicate = out->status == 0 && (out->result & SHARD_R_DUPLICATE) && out->open_id != 0;
    bool ours = out->status == 0 && (!duplicate || out->open_id == o->id);

    t->hook = NULL;
    o->users--;
    if (ours && s && !o->use && !list_empty(&o->of_use) &&
        attach_created(mod, s, o, out->ino) < 0) {
        LOG_WARN("session", "inode %llu: it was created, but there is no memory to keep it open",
                 (unsigned long long)out->ino);
        out->open_id = 0;
    }
    if (ours && o->use) {
        if (t->marks_writer)
            session_mark_set(mod, o->use, o->id);
        o->confirmed = true;
        tell_lease(o->use, out);
    } else if (ours) {
        no_lease(out);
    }
    if (o->users == 0 && !o->confirmed)
        session_open_close(mod, o);
    else if (o->users == 0 && !o->use)
        session_open_free(mod, o);
    if (duplicate && !ours)
        finish_duplicate(mod, s, p, out, t->open_flags);
    session_wake_creates(mod);
}

/* The session that got a lease to let a file grow has reported: it is taken back. */
static void finish_report(struct session_module *mod, struct session *s, const struct mds_touch *t)
{
    struct session_use *u = s ? session_use_find(mod, s, t->ino) : NULL;

    if (u && u->growth && u->told.kind == MSG_LEASE_WRITE)
        session_recall(mod, u, MSG_LEASE_NONE);
}

/* Created in its last moment: nobody but its eviction touches the file yet. */
static void finish_evicted(struct session_module *mod, struct session *s,
                           const struct mds_prepare *p, const struct mds_outcome *o)
{
    for (unsigned i = 0; i < p->n_touch; i++) {
        if (p->touch[i].access == MDS_ACCESS_OPEN && p->touch[i].marks_writer)
            session_evict_created(mod, s, o->ino);
    }
}

/* The cut has taken the file out of the recovery queue: its size is known. What a dead session had
 * of it is held until every target has the cut, and so refuses what that may still have sent. */
static void finish_cut(struct session_module *mod, uint64_t ino)
{
    struct session_file *f = session_file_find(mod, ino);
    struct list *l;

    if (!f)
        return;
    list_for_each (l, &f->uses) {
        struct session_use *u = list_entry(l, struct session_use, of_file);

        if (u->held == KEY_RECOVER)
            session_use_hold(u, KEY_PUNCH);
    }
}

void session_finish(struct mds *m, struct mds_prepare *p, struct mds_outcome *o)
{
    struct session_module *mod = session_module(m);
    struct session *s = session_find(mod, p->session);
    struct session_wait *w = p->hook;
    struct session_file *f;

    if (s && s->phase != PHASE_LIVE) { /* what it had open goes with it */
        if (o->status == 0 && (o->result & SHARD_R_CREATED) && !(o->result & SHARD_R_DUPLICATE))
            finish_evicted(mod, s, p, o);
        s = NULL;
    }
    for (unsigned i = 0; i < p->n_touch; i++) {
        struct mds_touch *t = &p->touch[i];

        if (t->access == MDS_ACCESS_OPEN && t->hook)
            finish_open(mod, s, p, t, o);
        else if (t->access == MDS_ACCESS_REPORT && o->status == 0)
            finish_report(mod, s, t);
    }
    if (o->status == 0 && (o->result & SHARD_R_PUNCH) && !(o->result & SHARD_R_DUPLICATE))
        finish_cut(mod, o->ino);
    if (o->status == 0 && (o->result & SHARD_R_DESTROY))
        file_destroyed(m, o->ino);
    if (o->status == 0 && (o->result & SHARD_R_ORPHANED) &&
        session_file_get(mod, o->ino, &f) == 0) {
        f->orphan = true;
        session_orphan_check(mod, f);
        session_file_put(mod, f);
    }
    session_watch_leave(mod, p);
    if (w) {
        p->hook = NULL;
        session_leave(mod, w);
        mem_free(w);
    }
}
