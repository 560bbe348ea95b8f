// SPDX-License-Identifier: Apache-2.0
/*
 * Being alone with a directory and with inodes in it: what lets a session answer removals before
 * they are executed (docs/adr/0017-removals-answered-ahead.md).
 *
 * Happy path: a page of a directory is asked for with the wish, nobody else watches or uses what is
 * in it, and the session is marked in the store by then; it is told that it is alone. It removes
 * what is there, and an empty directory goes with the rest. When another session wants to read or
 * change anything that this one is alone with, its request is parked, the session gets an
 * INVALIDATE of the directory, and with its answer, or with the end of its leases, it is not alone
 * any more and the request is served.
 *
 * After a restart nobody is known to be alone with anything, but a marked session may have answered
 * removals that are still to come: requests of others are parked until it has said that it is
 * settled, or is gone.
 *
 * Failure modes: without memory, or while the mark is being committed, nobody is alone. A parked
 * request ends with its deadline, its session or this server.
 */
#include "mds/session/session_int.h"

#define ALONE_KEEP_NS (60 * NS_PER_S) /* the mark, and what nobody has asked for since */

#define SETTLE_LEASES  4u   /* that others wait for who is not settled */
#define ALONE_IDLE_MAX 256u /* asked at once to end it */

/* In the request's arena. */
struct parked {
    struct list all; /* mod->parked */
    struct list at;  /* watch_file.parked, mod->parked_unsettled, mod->park_runnable */
    struct rpc_req *req;
    void (*again)(struct rpc_req *req);
    uint64_t dir, since_ns; /* 0: until sessions from before a restart are settled */
};

/* ---- parked requests ---- */

static void unpark_run(struct reactor_work *work)
{
    struct session_module *mod = container_of(work, struct session_module, park_run);
    struct list *l;

    mod->park_run_queued = false;
    while ((l = list_pop_front(&mod->park_runnable))) {
        struct parked *p = list_entry(l, struct parked, at);

        list_remove(&p->all);
        mod->n_parked--;
        p->again(p->req);
    }
    session_end(mod);
}

/* They go on from the reactor, not from inside whoever has noticed. */
static void unpark(struct session_module *mod, struct list *parked)
{
    if (list_empty(parked))
        return;
    list_splice(&mod->park_runnable, parked);
    if (mod->park_run_queued)
        return;
    session_begin(mod);
    mod->park_run_queued = true;
    mod->park_run.fn = unpark_run;
    reactor_defer(mod->mds->reactor, &mod->park_run);
}

static void park(struct session_module *mod, struct parked *p, struct list *where)
{
    p->since_ns = session_now_ns(mod);
    list_push_back(&mod->parked, &p->all);
    list_push_back(where, &p->at);
    mod->n_parked++;
    stat_inc(&mod->stats.parked);
}

static void parked_fail(struct session_module *mod, struct parked *p, int status)
{
    struct rpc_req *req = p->req;

    list_remove(&p->all);
    list_remove(&p->at);
    mod->n_parked--;
    rpc_reply(req, status, NULL);
}

void session_parked_fail(struct session_module *mod, uint64_t session, int status)
{
    struct list *l, *next;

    list_for_each_safe (l, next, &mod->parked) {
        struct parked *p = list_entry(l, struct parked, all);

        if (session == 0 || p->req->header.session == session)
            parked_fail(mod, p, status);
    }
}

/* ---- who is alone ---- */

void session_alone_over(struct session_module *mod, struct watch_file *dir)
{
    struct session *s = dir->alone;

    if (!s)
        return;
    dir->alone = NULL;
    list_remove(&dir->of_alone);
    s->n_alone--;
    mod->n_alone--;
    unpark(mod, &dir->parked);
}

/* The directory with which f is alone with the session that is: itself, or the one whose page has
 * said so. NULL: nobody is. */
static struct watch_file *alone_dir(struct session_module *mod, const struct watch_file *f)
{
    struct watch_file *dir;

    if (f->alone_id == 0)
        return NULL;
    dir = f->alone_in == f->ino ? session_watch_file(mod, f->ino)
                                : session_watch_file(mod, f->alone_in);
    return dir && dir->alone && dir->alone_id == f->alone_id ? dir : NULL;
}

static struct watch_file *alone_elsewhere(struct session_module *mod, uint64_t session,
                                          uint64_t ino)
{
    const struct watch_file *f = mod->n_alone ? session_watch_file(mod, ino) : NULL;
    struct watch_file *dir = f ? alone_dir(mod, f) : NULL;

    return dir && dir->alone->id != session ? dir : NULL;
}

static bool unsettled_elsewhere(const struct session_module *mod, const struct session *s)
{
    return mod->n_unsettled > (s && s->unsettled ? 1u : 0u);
}

bool session_alone_elsewhere(struct mds *m, uint64_t session, uint64_t ino)
{
    struct session_module *mod = session_module(m);

    return alone_elsewhere(mod, session, ino) ||
           unsettled_elsewhere(mod, session_find(mod, session));
}

/* Its session is told, unless it is being told of a change already: any answer will do. */
static int alone_end(struct session_module *mod, struct watch_file *dir)
{
    struct session_watch *w = session_watch_find(mod, dir->alone, dir->ino);

    dir->heat_ns = session_now_ns(mod);
    return list_empty(&w->invals) ? session_inval_new(mod, w, false, NULL, NULL) : 0;
}

/* Answered ahead before a restart: its session was alone there, so nobody else was. Two that are
 * not settled would wait for each other. */
static bool settles(const struct session *s, const struct rpc_req *req)
{
    if (!s->unsettled)
        return false;
    switch (req->header.op) {
    case RPC_OP_UNLINK:
    case RPC_OP_RMDIR:
        return ((const struct msg_name_req *)req->msg)->when_ns != 0;
    case RPC_OP_MKNOD:
    case RPC_OP_MKDIR:
        return ((const struct msg_create_req *)req->msg)->when_ns != 0;
    case RPC_OP_RENAME:
        return ((const struct msg_rename_req *)req->msg)->when_ns != 0;
    case RPC_OP_SETATTR:
        return ((const struct msg_setattr_req *)req->msg)->when_ns != 0;
    default:
        return false;
    }
}

bool session_park(struct mds *m, struct rpc_req *req, uint64_t ino,
                  void (*again)(struct rpc_req *req))
{
    struct session_module *mod = session_module(m);
    struct session *s;
    struct watch_file *dir;
    struct parked *p;

    if (mod->n_alone + mod->n_unsettled == 0)
        return false;
    s = session_find(mod, req->header.session);
    dir = alone_elsewhere(mod, req->header.session, ino);
    if (!s || s->phase != PHASE_LIVE || (!dir && (settles(s, req) || !unsettled_elsewhere(mod, s))))
        return false;
    p = mod->n_parked < WAITS_MAX && !mod->stopping ? arena_alloc(&req->arena, sizeof *p) : NULL;
    if (!p || (dir && alone_end(mod, dir) < 0)) {
        stat_inc(&mod->stats.refused);
        rpc_reply(req, -AIFS_EBUSY_SERVER, NULL);
        return true;
    }
    *p = (struct parked){.req = req, .again = again, .dir = dir ? dir->ino : 0};
    park(mod, p, dir ? &dir->parked : &mod->parked_unsettled);
    return true;
}

/* ---- granting ---- */

static bool used_by_others(struct session_module *mod, const struct session *s, uint64_t ino)
{
    const struct session_file *f = session_file_find(mod, ino);
    const struct list *l;

    if (!f)
        return false;
    list_for_each (l, &f->uses) {
        if (list_entry(l, const struct session_use, of_file)->s != s)
            return true;
    }
    return false;
}

/* The session watches it, nobody else does or may have it open, and nobody has wanted it lately. */
static bool may_be_alone(struct session_module *mod, const struct session *s,
                         const struct watch_file *f)
{
    const struct session_watch *w =
        f && !list_empty(&f->watches)
            ? list_entry(f->watches.next, const struct session_watch, of_file)
            : NULL;

    return w && w->s == s && w->of_file.next == &f->watches && list_empty(&w->invals) &&
           (f->changing == 0 || f->changer == s->id) && !f->shared_until_ns &&
           (f->heat_ns == 0 || session_now_ns(mod) - f->heat_ns > SHARED_NS) &&
           !used_by_others(mod, s, f->ino);
}

static void mark(struct session_module *mod, struct session *s, bool on);

/* When there is no room soon, nothing is made ahead: who makes a file hears of it. */
static bool is_tight(struct session_module *mod, uint64_t ino)
{
    return shard_is_tight(mds_shard_of(mod->mds, ino));
}

/* Not while its own removals, from before a restart or new ones, may have to wait for others. */
bool session_alone_dir(struct mds *m, uint64_t session, uint64_t ino)
{
    struct session_module *mod = session_module(m);
    struct session *s = session_find(mod, session);
    struct watch_file *f = session_watch_file(mod, ino);

    if (!s || s->phase != PHASE_LIVE || s->reclaiming || mod->stopping)
        return false;
    s->alone_ns = session_now_ns(mod);
    if (s->alone_mark == ALONE_UNMARKED)
        mark(mod, s, true);
    if (s->alone_mark != ALONE_MARKED || s->unsettled || mod->grace || is_tight(mod, ino) ||
        !may_be_alone(mod, s, f))
        return false;
    list_remove(&f->of_alone);
    list_push_back(&s->alone_dirs, &f->of_alone);
    f->alone_ns = s->alone_ns;
    if (f->alone)
        return true;
    f->alone = s;
    f->alone_id = ++mod->alone_ids;
    f->alone_in = ino;
    s->n_alone++;
    mod->n_alone++;
    stat_inc(&mod->stats.alone);
    return true;
}

bool session_alone_entry(struct mds *m, uint64_t session, uint64_t dir, uint64_t ino)
{
    struct session_module *mod = session_module(m);
    struct watch_file *d = session_watch_file(mod, dir), *f = session_watch_file(mod, ino);

    if (!d || !d->alone || d->alone->id != session || f == d || !may_be_alone(mod, d->alone, f))
        return false;
    if (f->alone) /* a directory that it is alone with for its own sake */
        return false;
    f->alone_in = dir;
    f->alone_id = d->alone_id;
    return true;
}

/* ---- the mark ---- */

struct marking {
    struct mds_submit submit;
    struct session_module *mod;
    struct session_set_alone msg;
};

static void marked(struct mds_submit *submit)
{
    struct marking *d = container_of(submit, struct marking, submit);
    struct session_module *mod = d->mod;
    struct session *s = session_find(mod, d->msg.session);
    int rc = submit->entry.status;

    if (rc < 0 && rc != -ENOENT)
        LOG_WARN("session", "%llu: its mark as alone stays as it was: %s",
                 (unsigned long long)d->msg.session, err_name(rc));
    if (s) /* not known to be taken away: it may be there */
        s->alone_mark = d->msg.alone == (rc == 0) ? ALONE_MARKED : ALONE_UNMARKED;
    mds_submit_fini(submit);
    mem_free(d);
    session_end(mod);
}

static void mark(struct session_module *mod, struct session *s, bool on)
{
    struct marking *d = mem_zalloc(sizeof *d);

    if (!d)
        return;
    d->mod = mod;
    d->msg = (struct session_set_alone){.session = s->id, .alone = on};
    s->alone_mark = ALONE_MARKING;
    session_begin(mod);
    mds_submit(mod->mds, &d->submit, mod->mds->shards[0], SHARD_OP_SESSION_ALONE, &d->msg,
               SHARD_E_FREES, marked);
}

void session_alone_load(struct session_module *mod, struct session *s)
{
    s->unsettled = true;
    s->alone_mark = ALONE_MARKED;
    s->alone_ns = session_now_ns(mod);
    mod->n_unsettled++;
}

void session_settled(struct session_module *mod, struct session *s)
{
    if (!s->unsettled)
        return;
    s->unsettled = false;
    mod->n_unsettled--;
    unpark(mod, &mod->parked_unsettled); /* who has to wait for another one is parked again */
}

/* ---- time ---- */

/* What it has not removed anything of for a while costs others a question, and keeps its mark. */
static void alone_idle(struct session_module *mod, struct session *s, uint64_t now_ns)
{
    unsigned n = 0;
    struct list *l;

    list_for_each (l, &s->alone_dirs) {
        struct watch_file *dir = list_entry(l, struct watch_file, of_alone);

        if (n++ == ALONE_IDLE_MAX || now_ns < dir->alone_ns + ALONE_KEEP_NS ||
            alone_end(mod, dir) < 0)
            return;
    }
}

/* The latest first: that is where it makes more. */
static void alone_end_tight(struct session_module *mod, struct session *s)
{
    unsigned n = 0;

    for (struct list *l = s->alone_dirs.prev; l != &s->alone_dirs; l = l->prev) {
        struct watch_file *dir = list_entry(l, struct watch_file, of_alone);

        if (n++ == ALONE_IDLE_MAX || (is_tight(mod, dir->ino) && alone_end(mod, dir) < 0))
            return;
    }
}

/* What it had removed ahead it has been able to send since everybody has reclaimed. */
static void unsettled_tick(struct session_module *mod, struct session *s, uint64_t now_ns)
{
    if (s->reclaiming || mod->grace)
        return;
    if (s->settle_ns == 0)
        s->settle_ns = now_ns + SETTLE_LEASES * mod->mds->conf.lease_ns;
    else if (now_ns >= s->settle_ns)
        session_evict(mod, s, "did not say in time that its removals are over", false);
}

void session_alone_tick(struct session_module *mod, struct session *s, uint64_t now_ns)
{
    if (s->phase != PHASE_LIVE || mod->stopping)
        return;
    if (s->unsettled)
        unsettled_tick(mod, s, now_ns);
    else if (s->alone_mark == ALONE_MARKED && s->n_alone) {
        alone_end_tight(mod, s);
        alone_idle(mod, s, now_ns);
    } else if (s->alone_mark == ALONE_MARKED && now_ns >= s->alone_ns + ALONE_KEEP_NS)
        mark(mod, s, false);
}

void session_parked_tick(struct session_module *mod, uint64_t now_ns)
{
    struct list *l, *next;

    list_for_each_safe (l, next, &mod->parked) {
        struct parked *p = list_entry(l, struct parked, all);

        if (p->req->deadline_ns && now_ns >= p->req->deadline_ns)
            parked_fail(mod, p, -AIFS_ETIMEOUT);
    }
}

/* ---- for people ---- */

void session_parked_waits(struct session_module *mod, struct mds_waits *out)
{
    struct list *l;

    list_for_each (l, &mod->parked) {
        const struct parked *p = list_entry(l, struct parked, all);
        const struct watch_file *dir = p->dir ? session_watch_file(mod, p->dir) : NULL;

        if (out->more)
            return;
        session_waits_add(mod, out, &(struct msg_wait){.kind = MSG_WAIT_CACHE, .ino = p->dir},
                          p->req->header.session, p->since_ns,
                          dir && dir->alone ? dir->alone->id : 0);
    }
}
