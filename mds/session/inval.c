// SPDX-License-Identifier: Apache-2.0
/*
 * INVALIDATE: one session is told that an inode it watches is about to change.
 *
 * Happy path: sent at once, answered, and who waits for the answer goes on. Failure modes: without
 * a connection it is sent with the next one; not answered, the tick sends it again until the
 * session's leases have ended (watch.c).
 */
#include <string.h>

#include "mds/dispatch.h"
#include "mds/session/session_int.h"

/* A client answers when what it has removed ahead is executed: that may take this server long. */
#define INVAL_PROLONGED_MAX 3u

void session_inval_end(struct session_module *mod, struct watch_inval *v)
{
    struct watch_wait *ww = v->wait;
    struct session_watch *w = v->w;

    if (w && w->f->alone == w->s) /* what it had answered ahead there is done */
        session_alone_over(mod, w->f);
    list_remove(&v->all);
    list_remove(&v->of_watch);
    v->w = NULL;
    v->wait = NULL;
    if (!v->busy)
        mem_free(v);
    if (ww && --ww->pending == 0)
        session_watch_told(mod, ww);
}

/* A client that does not know the message has not looked at what its replies said either. */
static bool inval_over(int status)
{
    return status == 0 || status == -ENOSYS || status == -EOPNOTSUPP;
}

static void inval_answered(struct rpc_call *c, int status)
{
    struct watch_inval *v = container_of(c, struct watch_inval, call.rpc);
    struct session_module *mod = v->mod;
    struct session_watch *w = v->w;
    bool over = !w || inval_over(status), whole = v->req.whole;

    rpc_link_unref(v->link);
    v->link = NULL;
    if (w && over) {
        session_inval_end(mod, v); /* busy: it stays */
        if (whole)
            session_watch_free(mod, w);
    }
    v->busy = v->sent = false; /* not over: again by the tick, or with the next connection */
    session_call_end(mod, &v->call);
    if (over)
        mem_free(v);
}

void session_inval_send(struct session_module *mod, struct watch_inval *v)
{
    struct session *s = v->w->s;

    if (v->sent || v->busy || s->phase != PHASE_LIVE || !s->link || !rpc_link_alive(s->link) ||
        mod->stopping)
        return;
    v->link = rpc_link_ref(s->link);
    rpc_call_init(&v->call.rpc, RPC_OP_INVALIDATE, &v->req, inval_answered, v);
    v->call.rpc.timeout_ns = mod->mds->conf.lease_ns;
    v->sent = v->busy = true;
    session_call(mod, s, v->link, &v->call);
}

int session_inval_new(struct session_module *mod, struct session_watch *w, bool whole,
                      const struct mds_change *c, struct watch_wait *ww)
{
    uint32_t len = c && !whole ? c->name.len : 0;
    struct watch_inval *v = len <= MSG_NAME_MAX ? mem_zalloc(sizeof *v + len) : NULL;

    if (!v)
        return -ENOMEM;
    v->mod = mod;
    v->w = w;
    v->wait = ww;
    if (len)
        memcpy(v->name, c->name.data, len);
    v->req = (struct msg_invalidate_req){
        .ino = w->f->ino, .whole = whole, .name = {v->name, len}, .owner = c && c->owner};
    v->deadline_ns = session_now_ns(mod) + mod->mds->conf.lease_ns;
    list_push_back(&w->invals, &v->of_watch);
    list_push_back(&mod->invals, &v->all);
    stat_inc(&mod->stats.invalidations);
    if (ww)
        ww->pending++;
    session_inval_send(mod, v);
    return 0;
}

bool session_inval_prolong(struct session_module *mod, struct watch_inval *v, uint64_t now_ns)
{
    const struct session *s = v->w->s;

    if (v->w->f->alone != s || v->prolonged == INVAL_PROLONGED_MAX ||
        !mds_dispatch_changes(mod->mds, s->id))
        return false;
    v->prolonged++;
    v->deadline_ns = now_ns + mod->mds->conf.lease_ns;
    return true;
}

void session_watch_resend(struct session *s)
{
    struct list *l, *k;

    list_for_each (l, &s->watches) {
        struct session_watch *w = list_entry(l, struct session_watch, of_session);

        list_for_each (k, &w->invals)
            session_inval_send(s->mod, list_entry(k, struct watch_inval, of_watch));
    }
}
