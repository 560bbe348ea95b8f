// SPDX-License-Identifier: Apache-2.0
/*
 * Before a change is submitted: its files are entered (lease.h), leases in the way are recalled,
 * and what the change needs to know is decided.
 *
 * Happy path: nobody else uses the files: ready() before session_prepare() returns, without
 * anything allocated but what the files need. Else a session_wait goes from file to file in the
 * order of inode numbers, so that two of them never wait for each other, and starts again at the
 * first file whenever it is woken: what it found there may have changed.
 *
 * Two more reasons to wait: after a restart, until the sessions from before have said what they
 * had; and a file so young that an open CREATE, already committed but not yet finished here, may be
 * the one that made it: its creator has it open.
 *
 * Failure modes: session gone (-AIFS_ESESSION), deadline, bounds (-AIFS_EBUSY_SERVER), an open id
 * that is not open (-EBADF); then nothing is entered.
 */
#include <fcntl.h>

#include "mds/session/session_int.h"

int session_check(struct mds *m, struct rpc_req *req)
{
    struct session_module *mod = session_module(m);
    struct session *s = session_find(mod, req->header.session);

    if (!s || s->phase != PHASE_LIVE || s->generation != req->header.generation ||
        !uuid_equal(&s->node, &rpc_link_peer(req->from)->node))
        return -AIFS_ESESSION;
    s->renewed_ns = session_now_ns(mod);
    session_bind(s, req->from, req->header.incarnation);
    return 0;
}

/* ---- what a touch asks for ---- */

/* The holder of the write lease never waits for those who wait for it: this is how it writes back
 * what it has, before it can give the lease up. Nobody else has a lease meanwhile. */
static bool holds_write(struct session_module *mod, struct session *s, uint64_t ino)
{
    struct session_use *u = session_use_find(mod, s, ino);

    return u && u->told.kind == MSG_LEASE_WRITE;
}

static enum lease_group touch_group(struct session_module *mod, struct session *s,
                                    const struct mds_touch *t)
{
    enum lease_group g = t->ino ? lease_group(t->access, t->open_flags) : LEASE_FREE;

    if (g == LEASE_BREAK && t->access != MDS_ACCESS_UNLINK && holds_write(mod, s, t->ino))
        g = LEASE_FREE;
    return g;
}

/* As what each touch enters its file; a file that is touched twice is entered once. */
static bool touch_groups(struct session_module *mod, struct session *s, const struct mds_prepare *p,
                         enum lease_group *ret_groups)
{
    bool enters = false;

    for (unsigned i = 0; i < p->n_touch; i++) {
        enum lease_group g = touch_group(mod, s, &p->touch[i]);

        for (unsigned j = 0; j < i && g != LEASE_FREE; j++) {
            if (p->touch[j].ino != p->touch[i].ino || ret_groups[j] == LEASE_FREE)
                continue;
            if (ret_groups[j] != g)
                ret_groups[j] = LEASE_SOLE;
            g = LEASE_FREE;
        }
        ret_groups[i] = g;
        enters |= g != LEASE_FREE;
    }
    return enters;
}

static int check_touch(struct session_module *mod, struct session *s, const struct mds_touch *t)
{
    switch ((unsigned)t->access) {
    case MDS_ACCESS_CUT:
        if (t->open_id == 0)
            return s->read_only ? -EROFS : 0;
        /* fall through */
    case MDS_ACCESS_WRITE:
    case MDS_ACCESS_REPORT:
        return session_open_of(mod, t->open_id, s->id, t->ino, true) ? 0 : -EBADF;
    case MDS_ACCESS_OPEN:
        return s->read_only && (lease_writes(t->open_flags) || t->open_flags & O_TRUNC) ? -EROFS
                                                                                        : 0;
    case LEASE_ACCESS_GET:
        return 0;
    default:
        return s && s->read_only ? -EROFS : 0;
    }
}

static int check_touches(struct session_module *mod, struct session *s, const struct mds_prepare *p)
{
    int rc = 0;

    if (p->n_touch > SHARD_RESOLVED_MAX)
        return -EINVAL;
    for (unsigned i = 0; rc == 0 && i < p->n_touch; i++)
        rc = check_touch(mod, s, &p->touch[i]);
    return rc;
}

/* ---- deciding ---- */

void session_users(struct session_use *u, struct lease_users *ret_users)
{
    *ret_users = (struct lease_users){.others = u->f->n_open_uses > (u->n_opens != 0),
                                      .others_write = u->f->n_write_uses > (u->n_write != 0),
                                      .mine_write = u->n_write != 0,
                                      .held = u->lease.kind};
}

void session_grant(struct session_module *mod, struct session_use *u, unsigned access,
                   uint32_t wanted)
{
    struct lease_users users;
    enum msg_lease kind;
    bool growth = false;

    session_users(u, &users);
    if (access == LEASE_ACCESS_GET)
        kind = lease_of_get(&users, (enum msg_lease)wanted, &growth);
    else
        kind = lease_of_open(&users);
    if (kind < u->lease.kind)
        session_take_back(mod, u, kind);
    else if (kind != u->lease.kind)
        session_lease_set(mod, u, kind, mod->next_id++);
    u->growth |= growth;
}

/* The open that an earlier sending of the same request has made. */
static struct session_open *open_of_retry(struct session_module *mod, struct session *s,
                                          const struct mds_prepare *p, const struct mds_touch *t)
{
    struct session_open *o;

    if (!s->slots || p->slot == 0 || p->slot > mod->mds->conf.slots || t->ino == 0 ||
        s->slots[p->slot - 1].sequence != p->sequence)
        return NULL;
    o = session_open_find(mod, s->slots[p->slot - 1].open_id);
    return o && o->use && o->use->s == s && o->use->f->ino == t->ino ? o : NULL;
}

static void remember_slot(struct session_module *mod, struct session *s,
                          const struct mds_prepare *p, struct session_open *o)
{
    if (p->slot == 0 || p->slot > mod->mds->conf.slots)
        return;
    if (!s->slots)
        s->slots = mem_array(mod->mds->conf.slots, sizeof *s->slots);
    if (s->slots) /* without memory a retry makes a second open, which dies with the session */
        s->slots[p->slot - 1] = (struct session_slot){p->sequence, o->id};
    o->slot = p->slot;
    o->sequence = p->sequence;
}

static void creating_begin(struct session_module *mod, struct session_open *o, struct mds_touch *t)
{
    o->create_order = ++mod->create_order;
    o->create_wall_ns = clock_wall_ns(reactor_clock(mod->mds->reactor));
    o->lease_seq = mod->next_id++;
    list_push_back(&mod->creating, &o->of_use);
    t->lease = lease_writes(o->flags) ? MSG_LEASE_WRITE : MSG_LEASE_READ;
    t->lease_seq = o->lease_seq;
}

static int touch_open(struct session_module *mod, struct session *s, struct mds_prepare *p,
                      struct mds_touch *t)
{
    struct session_open *o = open_of_retry(mod, s, p, t);
    struct session_use *u;
    int rc;

    if (!o) {
        o = session_open_new(mod, s, mod->next_id++, t->open_flags);
        if (!o)
            return -AIFS_EBUSY_SERVER;
        if (t->ino == 0) {
            creating_begin(mod, o, t);
        } else {
            rc = session_use_get(mod, s, t->ino, &u);
            if (rc < 0) {
                session_open_free(mod, o);
                return rc;
            }
            session_open_attach(o, u);
            session_grant(mod, u, MDS_ACCESS_OPEN, t->open_flags);
            remember_slot(mod, s, p, o);
        }
    }
    o->users++;
    t->hook = o;
    t->open_id = o->id;
    t->marks_writer = lease_writes(t->open_flags);
    if (o->use) {
        t->lease = o->use->lease.kind;
        t->lease_seq = o->use->lease.seq;
        t->marks_writer = session_mark_needed(o->use, t->open_flags);
    }
    return 0;
}

static void undo_touches(struct session_module *mod, struct mds_prepare *p)
{
    for (unsigned i = 0; i < p->n_touch; i++) {
        struct session_open *o = p->touch[i].hook;

        p->touch[i].hook = NULL;
        if (o && --o->users == 0 && !o->confirmed)
            session_open_close(mod, o);
    }
}

static int decide(struct session_module *mod, struct session *s, struct mds_prepare *p)
{
    int rc = check_touches(mod, s, p);

    for (unsigned i = 0; rc == 0 && i < p->n_touch; i++) {
        struct mds_touch *t = &p->touch[i];
        const struct session_file *f;

        if (t->access == MDS_ACCESS_OPEN) {
            rc = touch_open(mod, s, p, t);
        } else if (t->access == MDS_ACCESS_UNLINK) {
            f = session_file_find(mod, t->ino);
            t->is_open = f && f->n_open_uses;
        } else if (t->access == MDS_ACCESS_WRITE || t->access == MDS_ACCESS_REPORT) {
            t->holds_write = session_open_holds_write(mod, t->open_id);
        }
    }
    if (rc < 0)
        undo_touches(mod, p);
    return rc;
}

/* ---- waiting ---- */

void session_leave(struct session_module *mod, struct session_wait *w)
{
    for (unsigned i = 0; i < w->p->n_touch; i++) {
        struct session_file *f = w->files[i];
        enum lease_group g = w->groups[i];

        if (!w->entered[i])
            continue;
        w->entered[i] = false;
        f->inside.take -= g == LEASE_TAKE;
        f->inside.breaks -= g == LEASE_BREAK;
        f->inside.sole -= g == LEASE_SOLE;
        session_orphan_check(mod, f);
        session_wake_queue(mod, f);
        session_file_put(mod, f);
    }
}

static void wait_over(struct session_module *mod, struct session_wait *w)
{
    list_remove(&w->at);
    if (!list_empty(&w->all)) {
        list_remove(&w->all);
        mod->n_waits--;
    }
}

void session_wait_fail(struct session_module *mod, struct session_wait *w, int status)
{
    struct mds_prepare *p = w->p;

    wait_over(mod, w);
    session_leave(mod, w);
    mem_free(w);
    p->hook = NULL;
    session_watch_leave(mod, p);
    for (unsigned i = 0; i < p->n_touch; i++) { /* it may have been in the way of the next */
        struct session_file *f = session_file_find(mod, p->touch[i].ino);

        if (f) {
            session_wake_queue(mod, f);
            session_file_put(mod, f);
        }
    }
    p->ready(p, status);
}

static void wait_run(struct reactor_work *work)
{
    struct session_module *mod = container_of(work, struct session_module, run);
    struct list *l;

    mod->run_queued = false;
    while ((l = list_pop_front(&mod->runnable))) {
        struct session_wait *w = list_entry(l, struct session_wait, at);
        struct session_file *f = w->woken_from; /* stays while n_woken counts this one */

        if (w->failed) {
            w->woken_from = NULL;
            session_wait_fail(mod, w, w->failed);
        } else {
            session_wait_step(mod, w);
        }
        if (f) {
            f->n_woken--;
            session_wake_queue(mod, f);
            session_file_put(mod, f);
        }
    }
    session_end(mod); /* begun by make_runnable() */
}

static void make_runnable(struct session_module *mod, struct session_wait *w)
{
    list_remove(&w->at);
    list_push_back(&mod->runnable, &w->at);
    if (mod->run_queued)
        return;
    session_begin(mod);
    mod->run_queued = true;
    mod->run.fn = wait_run;
    reactor_defer(mod->mds->reactor, &mod->run);
}

void session_wake_list(struct session_module *mod, struct list *waits)
{
    while (!list_empty(waits))
        make_runnable(mod, list_entry(waits->next, struct session_wait, at));
}

void session_wake_blocked(struct session_module *mod, struct session_file *f)
{
    session_wake_list(mod, &f->blocked);
}

static enum lease_group wait_group_at(const struct session_wait *w, const struct session_file *f)
{
    for (unsigned i = 0; i < w->p->n_touch; i++) {
        if (w->p->touch[i].ino == f->ino && w->groups[i] != LEASE_FREE)
            return w->groups[i];
    }
    return LEASE_FREE;
}

/* The first in the queue, if there is a place; it wakes the next when it has entered. */
void session_wake_queue(struct session_module *mod, struct session_file *f)
{
    struct session_wait *w;

    if (list_empty(&f->queue) || f->n_woken)
        return;
    w = list_entry(f->queue.next, struct session_wait, at);
    if (!lease_may_enter(&f->inside, wait_group_at(w, f)))
        return;
    w->woken_from = f;
    f->n_woken++;
    make_runnable(mod, w);
}

void session_wake_creates(struct session_module *mod)
{
    struct list *l, *next;
    uint64_t first = UINT64_MAX;

    if (!list_empty(&mod->creating))
        first = list_entry(mod->creating.next, struct session_open, of_use)->create_order;
    list_for_each_safe (l, next, &mod->create_waits) {
        struct session_wait *w = list_entry(l, struct session_wait, at);

        if (w->create_order < first)
            make_runnable(mod, w);
    }
}

void session_fail_waits(struct session_module *mod, uint64_t session, int status)
{
    struct list *l;

    list_for_each (l, &mod->waits) {
        struct session_wait *w = list_entry(l, struct session_wait, all);

        if (!w->failed && (!session || w->p->session == session)) {
            w->failed = status;
            make_runnable(mod, w);
        }
    }
}

void session_timeout_waits(struct session_module *mod, uint64_t now_ns)
{
    struct list *l;

    list_for_each (l, &mod->waits) {
        struct session_wait *w = list_entry(l, struct session_wait, all);

        if (!w->failed && w->p->deadline_ns && now_ns >= w->p->deadline_ns) {
            w->failed = -AIFS_ETIMEOUT;
            make_runnable(mod, w);
        }
    }
}

/* 0: inside. -EAGAIN: waits. Else it failed. */
static int wait_enter(struct session_module *mod, struct session_wait *w, unsigned i,
                      enum lease_group g, struct session_file *from)
{
    struct session_file *f;
    int rc = session_file_get(mod, w->p->touch[i].ino, &f);

    if (rc < 0)
        return rc;
    if (!lease_may_enter(&f->inside, g) || (f != from && (!list_empty(&f->queue) || f->n_woken))) {
        if (f == from)
            list_push_front(&f->queue, &w->at);
        else
            list_push_back(&f->queue, &w->at);
        return -EAGAIN;
    }
    f->inside.take += g == LEASE_TAKE;
    f->inside.breaks += g == LEASE_BREAK;
    f->inside.sole += g == LEASE_SOLE;
    w->files[i] = f;
    w->entered[i] = true;
    return 0;
}

static int wait_touch(struct session_module *mod, struct session_wait *w, unsigned i,
                      struct session_file *from)
{
    struct mds_touch *t = &w->p->touch[i];
    enum lease_group g = w->groups[i];
    struct session_file *f = t->ino ? session_file_find(mod, t->ino) : NULL;
    int rc;

    if (g == LEASE_FREE)
        return 0;
    if (!w->entered[i]) {
        if (session_may_be_creating(mod, f, t->ino)) {
            w->create_order = mod->create_order;
            list_push_back(&mod->create_waits, &w->at);
            return -EAGAIN;
        }
        rc = wait_enter(mod, w, i, g, from);
        if (rc < 0)
            return rc;
    }
    f = w->files[i];
    if (session_recall_conflicts(mod, f, w->p->session, t->access, t->open_flags)) {
        list_push_back(&f->blocked, &w->at);
        return -EAGAIN;
    }
    return 0;
}

void session_wait_step(struct session_module *mod, struct session_wait *w)
{
    struct session *s = session_find(mod, w->p->session);
    struct session_file *from = w->woken_from;
    struct mds_prepare *p = w->p;
    int rc = 0;

    w->woken_from = NULL;
    list_remove(&w->at);
    if (!session_may_change(s, p)) {
        session_wait_fail(mod, w, -AIFS_ESESSION);
        return;
    }
    if (mod->grace) {
        list_push_back(&mod->grace_waits, &w->at);
        rc = -EAGAIN;
    }
    for (unsigned k = 0; rc == 0 && k < p->n_touch; k++)
        rc = wait_touch(mod, w, w->order[k], from);
    if (rc == -EAGAIN && !p->at_once) {
        if (list_empty(&w->all)) {
            stat_inc(&mod->stats.waits);
            w->since_ns = session_now_ns(mod);
            list_push_back(&mod->waits, &w->all);
            mod->n_waits++;
        }
        return;
    }
    if (rc == 0)
        rc = decide(mod, s, p);
    if (rc < 0) {
        session_wait_fail(mod, w, rc == -EAGAIN ? -AIFS_ERETRY : rc);
        return;
    }
    wait_over(mod, w);
    p->ready(p, 0);
}

static struct session_wait *wait_new(struct mds_prepare *p, const enum lease_group *groups)
{
    struct session_wait *w = mem_zalloc(sizeof *w);

    if (!w)
        return NULL;
    w->p = p;
    list_init(&w->all);
    list_init(&w->at);
    for (unsigned i = 0; i < p->n_touch; i++) {
        unsigned k = i;

        w->groups[i] = groups[i];
        for (; k > 0 && p->touch[w->order[k - 1]].ino > p->touch[i].ino; k--)
            w->order[k] = w->order[k - 1];
        w->order[k] = i;
    }
    return w;
}

void session_prepare_files(struct session_module *mod, struct mds_prepare *p)
{
    struct session *s = session_find(mod, p->session);
    enum lease_group groups[SHARD_RESOLVED_MAX];
    bool enters = false;
    int rc = session_may_change(s, p) ? check_touches(mod, s, p) : -AIFS_ESESSION;

    for (unsigned i = 0; rc == 0 && i < p->n_touch; i++) {
        p->touch[i].hook = NULL;
        p->touch[i].lease = MSG_LEASE_NONE;
        p->touch[i].lease_seq = 0;
        p->touch[i].is_open = false;
        p->touch[i].marks_writer = false;
    }
    if (rc == 0)
        enters = touch_groups(mod, s, p, groups);
    if (rc == 0 && enters) {
        struct session_wait *w = mod->n_waits < WAITS_MAX ? wait_new(p, groups) : NULL;

        if (w) {
            p->hook = w;
            session_wait_step(mod, w);
            return;
        }
        stat_inc(&mod->stats.refused);
        rc = -AIFS_EBUSY_SERVER;
    } else if (rc == 0) {
        rc = decide(mod, s, p);
    }
    if (rc < 0)
        session_watch_leave(mod, p);
    p->ready(p, rc);
}

void session_prepare(struct mds *m, struct mds_prepare *p)
{
    struct session_module *mod = session_module(m);
    struct session *s = session_find(mod, p->session);
    int rc = 0;

    p->hook = NULL;
    list_init(&p->link);
    if (mod->stopping)
        rc = -AIFS_ECANCELLED;
    else if (!session_may_change(s, p))
        rc = -AIFS_ESESSION;
    if (rc == 0)
        rc = session_watch_enter(mod, p);
    if (rc == 0)
        session_prepare_files(mod, p);
    else if (rc != -EAGAIN)
        p->ready(p, rc);
}
