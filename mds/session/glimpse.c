// SPDX-License-Identifier: Apache-2.0
/*
 * Size and mtime of a file, asked from the session that writes it.
 *
 * Happy path: GLIMPSE to the holder of the write lease, its answer for all who wait. One call per
 * file: who comes while it is under way waits for the next one, because the holder may have
 * answered before that asker asked. Failure modes: no connection, no answer in time, lease just
 * given back: done() with fresh == false, the recorded attributes have to do.
 */
#include "mds/session/session_int.h"

#define GLIMPSE_TIMEOUT_NS NS_PER_S

struct session_glimpse {
    struct session_call call;
    struct session_module *mod;
    struct session_file *file;
    struct rpc_link *link;
    struct msg_ino_req req;
    struct list asked, next; /* struct mds_glimpse */
    uint32_t n;
};

static struct session_use *glimpse_holder(struct session_file *f, uint64_t session)
{
    struct list *l;

    list_for_each (l, &f->uses) {
        struct session_use *u = list_entry(l, struct session_use, of_file);

        if (u->told.kind == MSG_LEASE_WRITE && u->s->id != session && u->s->phase == PHASE_LIVE)
            return u;
    }
    return NULL;
}

static void glimpse_answer(struct list *asked, const struct msg_glimpse_rep *rep)
{
    struct list *l;

    while ((l = list_pop_front(asked))) {
        struct mds_glimpse *g = list_entry(l, struct mds_glimpse, link);

        g->fresh = rep && rep->held;
        if (g->fresh) {
            g->size = rep->size;
            g->mtime = rep->mtime;
        }
        g->done(g);
    }
}

static bool glimpse_send(struct session_glimpse *q);

static void glimpse_done(struct rpc_call *c, int status)
{
    struct session_glimpse *q = container_of(c, struct session_glimpse, call.rpc);
    struct session_module *mod = q->mod;
    struct session_file *f = q->file;
    struct list asked;
    bool again;

    list_init(&asked);
    list_splice(&asked, &q->asked);
    glimpse_answer(&asked, status == 0 ? c->rep : NULL);
    rpc_link_unref(q->link);
    session_call_end(mod, &q->call);
    list_splice(&q->asked, &q->next);
    q->n = 0;
    again = !list_empty(&q->asked) && glimpse_send(q);
    if (!again) {
        f->glimpse = NULL;
        glimpse_answer(&q->asked, NULL);
        mem_free(q);
        session_file_put(mod, f);
    }
}

static bool glimpse_send(struct session_glimpse *q)
{
    struct session_use *u = glimpse_holder(q->file, 0);

    if (!u || !u->s->link || !rpc_link_alive(u->s->link) || q->mod->stopping)
        return false;
    q->link = rpc_link_ref(u->s->link);
    q->req = (struct msg_ino_req){.ino = q->file->ino};
    rpc_call_init(&q->call.rpc, RPC_OP_GLIMPSE, &q->req, glimpse_done, q);
    q->call.rpc.timeout_ns = MIN(GLIMPSE_TIMEOUT_NS, q->mod->mds->conf.lease_ns / 2);
    stat_inc(&q->mod->stats.glimpses);
    session_call(q->mod, u->s, q->link, &q->call);
    return true;
}

bool session_is_writing(struct mds *m, uint64_t session, uint64_t ino)
{
    struct session_file *f = session_file_find(session_module(m), ino);

    return f && glimpse_holder(f, session);
}

bool session_glimpse(struct mds *m, struct mds_glimpse *g)
{
    struct session_module *mod = session_module(m);
    struct session_file *f = session_file_find(mod, g->ino);
    struct session_glimpse *q;

    g->fresh = false;
    if (!f || !glimpse_holder(f, g->session) || mod->stopping)
        return false;
    q = f->glimpse;
    if (q) {
        if (q->n >= GLIMPSES_MAX)
            return false;
        q->n++;
        list_push_back(&q->next, &g->link);
        return true;
    }
    q = mem_zalloc(sizeof *q);
    if (!q)
        return false;
    q->mod = mod;
    q->file = f;
    list_init(&q->asked);
    list_init(&q->next);
    if (!glimpse_send(q)) {
        mem_free(q);
        return false;
    }
    list_push_back(&q->asked, &g->link);
    f->glimpse = q;
    return true;
}
