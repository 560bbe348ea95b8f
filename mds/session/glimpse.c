// SPDX-License-Identifier: Apache-2.0
/*
 * Size and mtime of a file, asked from the session that writes it.
 *
 * Happy path: GLIMPSE to the holder of the write lease, its answer for all who wait. One call per
 * file: who comes while it is under way waits for the next one, because the holder may have
 * answered before that asker asked.
 *
 * Failure modes: the holder does not answer. What it has been writing is acknowledged to its
 * programs and not recorded here, so what is recorded is no answer: a stat stays until the holder
 * has answered (it is asked again with each tick, and with its next connection), has given its
 * lease back, or is evicted and its size recovered; one of a file that a session from before a
 * restart may have been writing, until that one has reclaimed or is evicted. A look-up, behind
 * which others may wait for the directory, is told that it does not know the size.
 */
#include "mds/session/session_int.h"

#define GLIMPSE_TIMEOUT_NS NS_PER_S

struct session_glimpse {
    struct list all; /* mod->glimpses */
    struct session_call call;
    struct session_module *mod;
    struct session_file *file;
    struct rpc_link *link;
    struct msg_ino_req req;
    struct list asked, next; /* struct mds_glimpse */
    uint32_t n;              /* of next */
    bool busy, due;
};

/* May its session know of a larger size than is recorded? */
static bool glimpse_concerns(const struct session_use *u)
{
    bool alone = u->told.kind == MSG_LEASE_WRITE;

    switch (u->s->phase) {
    case PHASE_LIVE:
        return alone || (u->s->reclaiming && u->mark_unclaimed);
    case PHASE_CLOSING:
        return false;
    case PHASE_ENTRY: /* what it holds is known with the commit */
        return alone || u->mark != MARK_NONE;
    default:
        return u->held == KEY_RECOVER;
    }
}

static struct session_use *glimpse_writer(const struct session_file *f, uint64_t session)
{
    struct list *l;

    list_for_each (l, &f->uses) {
        struct session_use *u = list_entry(l, struct session_use, of_file);

        if (u->s->id != session && glimpse_concerns(u))
            return u;
    }
    return NULL;
}

static struct session_use *glimpse_holder(const struct session_file *f)
{
    struct list *l;

    list_for_each (l, &f->uses) {
        struct session_use *u = list_entry(l, struct session_use, of_file);

        if (u->s->phase == PHASE_LIVE && u->told.kind == MSG_LEASE_WRITE && u->s->link &&
            rpc_link_alive(u->s->link))
            return u;
    }
    return NULL;
}

/* rep: NULL, what is recorded is right by now. */
static void glimpse_answer(struct list *asked, int status, const struct msg_glimpse_rep *rep)
{
    struct list *l;

    while ((l = list_pop_front(asked))) {
        struct mds_glimpse *g = list_entry(l, struct mds_glimpse, link);

        g->fresh = rep && rep->held;
        if (g->fresh) {
            g->size = rep->size;
            g->mtime = rep->mtime;
        }
        g->done(g, status);
    }
}

/* Nobody has said it: those who can wait stay, those who cannot are told so. */
static void glimpse_unanswered(struct session_glimpse *q)
{
    struct list hasty, *l, *next;

    list_init(&hasty);
    list_splice(&q->asked, &q->next); /* in the order they came */
    list_splice(&q->next, &q->asked);
    q->n = 0;
    list_for_each_safe (l, next, &q->next) {
        struct mds_glimpse *g = list_entry(l, struct mds_glimpse, link);

        if (g->patient) {
            q->n++;
            continue;
        }
        g->unsure = true;
        list_remove(l);
        list_push_back(&hasty, l);
    }
    glimpse_answer(&hasty, 0, NULL);
}

static void glimpse_end(struct session_glimpse *q)
{
    struct session_file *f = q->file;

    f->glimpse = NULL;
    list_remove(&q->all);
    glimpse_answer(&q->next, 0, NULL);
    session_file_put(q->mod, f);
    mem_free(q);
}

static void glimpse_done(struct rpc_call *c, int status);

static void glimpse_send(struct session_glimpse *q, struct session_use *u)
{
    list_splice(&q->asked, &q->next);
    q->n = 0;
    q->busy = true;
    q->link = rpc_link_ref(u->s->link);
    q->req = (struct msg_ino_req){.ino = q->file->ino};
    rpc_call_init(&q->call.rpc, RPC_OP_GLIMPSE, &q->req, glimpse_done, q);
    q->call.rpc.timeout_ns = MIN(GLIMPSE_TIMEOUT_NS, q->mod->mds->conf.lease_ns / 2);
    stat_inc(&q->mod->stats.glimpses);
    session_call(q->mod, u->s, q->link, &q->call);
}

/* Asks, if there is somebody to be asked; ends, if nobody is to be waited for. */
static void glimpse_step(struct session_glimpse *q)
{
    struct session_use *u = glimpse_holder(q->file);

    if (q->busy)
        return;
    if (list_empty(&q->next) || !glimpse_writer(q->file, 0))
        glimpse_end(q);
    else if (u && !q->mod->stopping)
        glimpse_send(q, u);
}

static void glimpse_done(struct rpc_call *c, int status)
{
    struct session_glimpse *q = container_of(c, struct session_glimpse, call.rpc);
    struct session_module *mod = q->mod;

    q->busy = false;
    if (status == 0)
        glimpse_answer(&q->asked, 0, c->rep);
    rpc_link_unref(q->link);
    session_call_end(mod, &q->call);
    if (status < 0) {
        glimpse_unanswered(q);
        stat_inc(&mod->stats.glimpse_waits);
    }
    if (status == 0 || list_empty(&q->next)) /* else with the next tick or connection */
        glimpse_step(q);
}

bool session_is_writing(struct mds *m, uint64_t session, uint64_t ino)
{
    struct session_file *f = session_file_find(session_module(m), ino);

    return f && glimpse_writer(f, session);
}

static struct session_glimpse *glimpse_new(struct session_module *mod, struct session_file *f)
{
    struct session_glimpse *q = mem_zalloc(sizeof *q);

    if (!q)
        return NULL;
    q->mod = mod;
    q->file = f;
    list_init(&q->asked);
    list_init(&q->next);
    list_push_back(&mod->glimpses, &q->all);
    f->glimpse = q;
    return q;
}

int session_glimpse(struct mds *m, struct mds_glimpse *g)
{
    struct session_module *mod = session_module(m);
    struct session_file *f = session_file_find(mod, g->ino);
    struct session_use *holder;

    g->fresh = g->unsure = false;
    if (!f || !glimpse_writer(f, g->session))
        return 0;
    if (mod->stopping)
        return -AIFS_EBUSY_SERVER;
    holder = glimpse_holder(f);
    if (!holder && !g->patient) {
        g->unsure = true;
        return 0;
    }
    if ((!f->glimpse && !glimpse_new(mod, f)) || f->glimpse->n >= GLIMPSES_MAX)
        return -AIFS_EBUSY_SERVER;
    g->since_ns = session_now_ns(mod);
    f->glimpse->n++;
    list_push_back(&f->glimpse->next, &g->link);
    if (!holder)
        stat_inc(&mod->stats.glimpse_waits);
    glimpse_step(f->glimpse);
    return 1;
}

/* ---- those who wait ---- */

static void glimpse_run(struct reactor_work *work)
{
    struct session_module *mod = container_of(work, struct session_module, glimpse_run);
    struct list *l, *next;

    mod->glimpse_run_queued = false;
    list_for_each_safe (l, next, &mod->glimpses) {
        struct session_glimpse *q = list_entry(l, struct session_glimpse, all);

        if (q->due) {
            q->due = false;
            glimpse_step(q);
        }
    }
    session_end(mod);
}

void session_glimpse_wake(struct session_module *mod, struct session_file *f)
{
    if (!f->glimpse)
        return;
    f->glimpse->due = true;
    if (mod->glimpse_run_queued)
        return;
    session_begin(mod);
    mod->glimpse_run_queued = true;
    mod->glimpse_run.fn = glimpse_run;
    reactor_defer(mod->mds->reactor, &mod->glimpse_run);
}

void session_glimpse_connected(struct session *s)
{
    struct list *l;

    list_for_each (l, &s->uses)
        session_glimpse_wake(s->mod, list_entry(l, struct session_use, of_session)->f);
}

void session_glimpse_tick(struct session_module *mod, uint64_t now_ns)
{
    struct list *l, *next, late;

    list_init(&late);
    list_for_each (l, &mod->glimpses) {
        struct session_glimpse *q = list_entry(l, struct session_glimpse, all);
        struct list *w;

        list_for_each_safe (w, next, &q->next) {
            struct mds_glimpse *g = list_entry(w, struct mds_glimpse, link);

            if (!g->deadline_ns || now_ns < g->deadline_ns)
                continue;
            list_remove(w);
            list_push_back(&late, w);
            q->n--;
        }
        session_glimpse_wake(mod, q->file);
    }
    glimpse_answer(&late, -AIFS_ETIMEOUT, NULL);
}

void session_glimpse_fail(struct session_module *mod, int status)
{
    struct list *l, all;

    list_init(&all);
    list_for_each (l, &mod->glimpses) {
        struct session_glimpse *q = list_entry(l, struct session_glimpse, all);

        list_splice(&all, &q->asked);
        list_splice(&all, &q->next);
        q->n = 0;
        session_glimpse_wake(mod, q->file); /* nobody waits: it ends */
    }
    glimpse_answer(&all, status, NULL);
}

void session_glimpse_waits(struct session_module *mod, struct mds_waits *out)
{
    struct list *l, *w;

    list_for_each (l, &mod->glimpses) {
        const struct session_glimpse *q = list_entry(l, struct session_glimpse, all);
        const struct session_use *u = glimpse_writer(q->file, 0);

        list_for_each (w, &q->next) {
            const struct mds_glimpse *g = list_entry(w, struct mds_glimpse, link);
            const struct msg_wait wait = {.kind = MSG_WAIT_DATA, .ino = g->ino};

            if (out->more)
                return;
            session_waits_add(mod, out, &wait, g->session, g->since_ns, u ? u->s->id : 0);
        }
    }
}
