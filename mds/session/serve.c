// SPDX-License-Identifier: Apache-2.0
/*
 * The life of a session: SESSION_OPEN, SESSION_RENEW, SESSION_CLOSE.
 *
 * Happy path: one entry makes the session, the answer carries everything a client needs to begin.
 * A client that opens again is a client that has lost its old session: that one is evicted first,
 * and the new one exists as soon as the eviction is committed (what the old one held stays held
 * until the eviction is complete).
 */
#include <string.h>

#include "mds/session/session_int.h"

#define SESSION_GENERATION 1u

struct opening {
    struct list link;
    struct session_module *mod;
    struct rpc_req *req;
    bool submitted;
    struct mds_submit submit;
    struct session_create msg;
};

static void opening_end(struct opening *o, int status, const struct msg_session_open_rep *rep)
{
    struct session_module *mod = o->mod;
    struct uuid client = o->msg.client;

    list_remove(&o->link);
    mod->n_openings--;
    rpc_reply(o->req, status, status ? NULL : rep);
    mem_free(o);
    session_serve_opening(mod, &client);
    session_end(mod);
}

static int opening_load(struct opening *o, uint64_t id, struct session **ret_session)
{
    struct mds *m = o->mod->mds;
    const void *rec;
    struct view v;
    struct key k;
    uint32_t len;
    int rc;

    key_number(&k, KEY_SESSION, id);
    view_begin(m->shards[0], &v);
    rc = view_record(&v, &k, &o->req->arena, &rec, &len);
    view_end(&v);
    return rc < 0 ? rc : session_add(o->mod, id, rec, len, ret_session);
}

static void opening_reply(struct opening *o, struct session *s)
{
    struct mds *m = o->mod->mds;
    struct msg_session_open_rep rep = {.session = s->id,
                                       .generation = s->generation,
                                       .slots = m->conf.slots,
                                       .lease_ns = m->conf.lease_ns,
                                       .wall_ns = clock_wall_ns(reactor_clock(m->reactor)),
                                       .root = KEY_ROOT_INO,
                                       .map_epoch = m->cluster_ops->map(m)->epoch,
                                       .inline_max = m->conf.inline_max,
                                       .fs = m->fs};

    rep.fs_name = (struct msg_bytes){m->conf.fs_name, (uint32_t)strlen(m->conf.fs_name)};
    stat_inc(&o->mod->stats.opened);
    LOG_INFO("session", "%llu: %s, pid %u, %s", (unsigned long long)s->id, s->host, s->pid,
             rpc_link_describe(o->req->from));
    opening_end(o, 0, &rep);
}

static void opening_created(struct mds_submit *submit)
{
    struct opening *o = container_of(submit, struct opening, submit);
    const struct session_created *rep = submit->entry.reply;
    struct session *s = NULL;
    int rc = submit->entry.status;

    if (rc == 0)
        rc = opening_load(o, rep->session, &s);
    mds_submit_fini(submit);
    if (rc < 0) {
        opening_end(o, rc, NULL);
        return;
    }
    session_bind(s, o->req->from, o->req->header.incarnation);
    opening_reply(o, s);
}

/* Is an earlier request of this client under way? It will be evicted by this one. */
static bool opening_behind(const struct opening *o)
{
    struct list *l;

    list_for_each (l, &o->mod->openings) {
        const struct opening *x = list_entry(l, struct opening, link);

        if (x != o && x->submitted && uuid_equal(&x->msg.client, &o->msg.client))
            return true;
    }
    return false;
}

static void opening_step(struct opening *o)
{
    struct session_module *mod = o->mod;
    struct session *old = session_find_client(mod, &o->msg.client);

    if (o->submitted || opening_behind(o))
        return;
    if (old && old->phase == PHASE_LIVE)
        session_evict(mod, old, "its client has opened a new one", true);
    if (old && old->phase == PHASE_LIVE && !old->evict_due) {
        opening_end(o, -AIFS_EBUSY_SERVER, NULL); /* it could not be begun */
        return;
    }
    if (old && (old->phase == PHASE_LIVE || old->phase == PHASE_ENTRY))
        return; /* session_serve_opening() or session_refuse_opening() follows */
    o->submitted = true;
    mds_submit(mod->mds, &o->submit, mod->mds->shards[0], SHARD_OP_SESSION_CREATE, &o->msg,
               SHARD_E_FREES, opening_created);
}

void session_serve_opening(struct session_module *mod, const struct uuid *client)
{
    struct list *l;

    list_for_each (l, &mod->openings) {
        struct opening *o = list_entry(l, struct opening, link);

        if (!o->submitted && uuid_equal(&o->msg.client, client)) {
            opening_step(o);
            return;
        }
    }
}

void session_refuse_opening(struct session_module *mod, const struct uuid *client)
{
    struct list *l;

    list_for_each (l, &mod->openings) {
        struct opening *o = list_entry(l, struct opening, link);

        if (!o->submitted && uuid_equal(&o->msg.client, client)) {
            opening_end(o, -AIFS_EBUSY_SERVER, NULL); /* the next one tries again */
            return;
        }
    }
}

static void serve_open(struct rpc_req *req)
{
    struct mds *m = req->handler_arg;
    struct session_module *mod = session_module(m);
    const struct msg_session_open_req *msg = req->msg;
    struct opening *o = NULL;

    if (mod->stopping || mod->sessions.count >= SESSIONS_MAX || mod->n_openings >= OPENINGS_MAX)
        stat_inc(&mod->stats.refused);
    else
        o = mem_zalloc(sizeof *o);
    if (!o || uuid_is_zero(&msg->client)) {
        rpc_reply(req, o ? -EINVAL : -AIFS_EBUSY_SERVER, NULL);
        mem_free(o);
        return;
    }
    o->mod = mod;
    o->req = req;
    o->msg = (struct session_create){.client = msg->client,
                                     .node = rpc_link_peer(req->from)->node,
                                     .generation = SESSION_GENERATION,
                                     .pid = msg->pid,
                                     .read_only = msg->read_only,
                                     .host = msg->host,
                                     .mount = msg->mount,
                                     .job = msg->job};
    list_push_back(&mod->openings, &o->link);
    mod->n_openings++;
    session_begin(mod);
    opening_step(o);
}

static void serve_renew(struct rpc_req *req)
{
    struct mds *m = req->handler_arg;
    int rc = session_check(m, req);
    struct session *s = rc < 0 ? NULL : session_find(session_module(m), req->header.session);
    struct msg_renew_rep rep = {.lease_ns = m->conf.lease_ns,
                                .wall_ns = clock_wall_ns(reactor_clock(m->reactor)),
                                .map_epoch = m->cluster_ops->map(m)->epoch};

    if (s)
        session_waits_note(s, req->msg);
    rpc_reply(req, rc, rc ? NULL : &rep);
}

/* Nothing open, no lease; and since a restart it has said so. */
static bool has_given_back(const struct session *s)
{
    return s->n_opens == 0 && s->n_leases == 0 && (!s->reclaiming || list_empty(&s->uses));
}

/* With everything given back the record is simply removed; else the session is evicted, so that
 * nothing it has under way can arrive later. */
static void serve_session_close(struct rpc_req *req)
{
    struct mds *m = req->handler_arg;
    struct session_module *mod = session_module(m);
    struct session *s = session_find(mod, req->header.session);
    int rc = session_check(m, req);

    if (rc < 0) {
        rpc_reply(req, rc, NULL);
        return;
    }
    if (s->closing) { /* waits until others have reclaimed */
        rpc_reply(req, -AIFS_EBUSY_SERVER, NULL);
        return;
    }
    s->closing = req;
    if (has_given_back(s)) {
        s->phase = PHASE_CLOSING;
        s->reclaiming = false;
        session_fail_waits(mod, s->id, -AIFS_ESESSION);
        locks_session_end(m, s->id);
        session_watch_fail(mod, s->id, -AIFS_ESESSION);
        session_remove(mod, s);
        session_grace_check(mod);
        return;
    }
    session_evict(mod, s, "its client has left without closing its files", true);
    if (s->phase == PHASE_LIVE && !s->evict_due)
        session_answer_close(s, -AIFS_EBUSY_SERVER);
}

void session_serve_start(struct session_module *mod)
{
    struct rpc_node *n = mod->mds->node;

    rpc_node_handle(n, RPC_OP_SESSION_OPEN, serve_open, mod->mds);
    rpc_node_handle(n, RPC_OP_SESSION_RENEW, serve_renew, mod->mds);
    rpc_node_handle(n, RPC_OP_SESSION_CLOSE, serve_session_close, mod->mds);
    rpc_node_handle(n, RPC_OP_RECLAIM, session_reclaim, mod->mds);
}

void session_serve_stop(struct session_module *mod)
{
    struct list *l, *next;

    list_for_each_safe (l, next, &mod->openings) {
        struct opening *o = list_entry(l, struct opening, link);

        if (!o->submitted) {
            o->submitted = true; /* not taken up again */
            opening_end(o, -AIFS_ECANCELLED, NULL);
        }
    }
}
