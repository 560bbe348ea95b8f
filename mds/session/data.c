// SPDX-License-Identifier: Apache-2.0
/*
 * Leases asked for and given back by their sessions: LEASE_GET, LEASE_RELEASE.
 *
 * LEASE_GET enters the file like an open and answers with the inode as it is then. LEASE_RELEASE
 * never waits for a freeze: what a write lease knows better (size, mtime) is committed first, then
 * the lease is free. Failure modes: a release of a lease that is no more is no error.
 */
#include <sys/stat.h>

#include "mds/session/session_int.h"

/* ---- LEASE_GET ---- */

struct lease_get {
    struct mds_prepare p;
    struct rpc_req *req;
};

static int read_inode(struct mds *m, uint64_t ino, struct arena *a, struct msg_inode *ret)
{
    struct shard *shard = mds_shard_of(m, ino);
    struct mds_inode in;
    struct view v;
    struct key k;
    int rc;

    if (!shard)
        return -ENOENT;
    view_begin(shard, &v);
    rc = view_inode(&v, ino, &in);
    if (rc == 0) {
        *ret = (struct msg_inode){.layout = in.layout};
        rec_inode_attr(&in, &ret->attr);
    }
    if (rc == 0 && in.flags & INODE_INLINE) {
        key_number(&k, KEY_INLINE, ino);
        rc = view_record(&v, &k, a, &ret->data.data, &ret->data.len);
        ret->has_data = rc == 0 || rc == -ENOENT;
        rc = rc == -ENOENT ? 0 : rc;
    }
    view_end(&v);
    return rc;
}

static void lease_get_ready(struct mds_prepare *p, int status)
{
    struct lease_get *g = container_of(p, struct lease_get, p);
    struct session_module *mod = session_module(p->mds);
    struct session *s = session_find(mod, p->session);
    struct session_use *u = s ? session_use_find(mod, s, p->touch[0].ino) : NULL;
    struct mds_outcome outcome = {.status = status};
    struct msg_inode_rep rep = {0};

    if (status == 0 && (!u || !u->n_opens))
        outcome.status = -EBADF;
    if (outcome.status == 0)
        outcome.status = read_inode(p->mds, p->touch[0].ino, &g->req->arena, &rep.inode);
    if (outcome.status == 0) {
        session_grant(mod, u, LEASE_ACCESS_GET, p->touch[0].open_flags);
        session_lease_told(u, u->lease);
        rep.inode.lease = u->lease.kind;
        rep.inode.lease_seq = u->lease.seq;
    }
    if (status == 0)
        session_finish(p->mds, p, &outcome);
    rpc_reply(g->req, outcome.status, outcome.status ? NULL : &rep);
    mem_free(g);
}

static void serve_lease_get(struct rpc_req *req)
{
    struct mds *m = req->handler_arg;
    struct session_module *mod = session_module(m);
    const struct msg_lease_req *msg = req->msg;
    struct session *s = session_find(mod, req->header.session);
    struct session_use *u;
    struct lease_get *g;
    int rc = session_check(m, req);

    u = rc == 0 ? session_use_find(mod, s, msg->ino) : NULL;
    if (rc == 0 && (!u || !u->n_opens || (msg->lease == MSG_LEASE_WRITE && !u->n_write)))
        rc = -EBADF;
    g = rc == 0 ? mem_zalloc(sizeof *g) : NULL;
    if (!g) {
        rpc_reply(req, rc ? rc : -ENOMEM, NULL);
        return;
    }
    g->req = req;
    g->p.mds = m;
    g->p.session = req->header.session;
    g->p.deadline_ns = req->deadline_ns;
    g->p.n_touch = 1;
    g->p.touch[0].ino = msg->ino;
    g->p.touch[0].access = (enum mds_access)LEASE_ACCESS_GET;
    g->p.touch[0].open_flags = msg->lease;
    g->p.ready = lease_get_ready;
    session_prepare(m, &g->p);
}

/* ---- LEASE_RELEASE ---- */

struct lease_release {
    struct session_module *mod;
    struct rpc_req *req;
    struct mds_submit submit;
    struct shard_size msg;
};

static void release_lease(struct session_module *mod, struct session *s,
                          const struct msg_lease_req *msg)
{
    struct session_use *u = session_use_find(mod, s, msg->ino);

    if (!u || s->phase != PHASE_LIVE)
        return;
    if (u->lease.seq == msg->lease_seq && msg->lease < u->lease.kind)
        session_lease_set(mod, u, msg->lease, msg->lease_seq);
    else if (u->told.seq == msg->lease_seq && msg->lease < u->told.kind) {
        u->told.kind = msg->lease; /* a better one is about to be told */
        session_recall_end(u);
        session_file_changed(mod, u->f);
    }
    session_use_put(mod, u);
}

static void release_committed(struct mds_submit *submit)
{
    struct lease_release *r = container_of(submit, struct lease_release, submit);
    struct session_module *mod = r->mod;
    struct session *s = session_find(mod, r->req->header.session);
    int status = submit->entry.status;

    if (status < 0 && status != -ENOENT)
        LOG_WARN("session", "inode %llu: size given back with a lease: %s",
                 (unsigned long long)r->msg.ino, err_name(status));
    if (status == -ENOENT || status == -AIFS_ESTALE_TRUNC)
        status = 0;
    if (s && status == 0)
        release_lease(mod, s, r->req->msg);
    rpc_reply(r->req, status, NULL);
    mds_submit_fini(submit);
    mem_free(r);
    session_end(mod);
}

static bool release_has_news(const struct session_use *u, const struct msg_lease_req *msg)
{
    return u && msg->has_size && u->told.kind == MSG_LEASE_WRITE && u->told.seq == msg->lease_seq &&
           u->s->phase == PHASE_LIVE;
}

static void serve_lease_release(struct rpc_req *req)
{
    struct mds *m = req->handler_arg;
    struct session_module *mod = session_module(m);
    const struct msg_lease_req *msg = req->msg;
    struct session *s = session_find(mod, req->header.session);
    struct lease_release *r;
    int rc = session_check(m, req);

    if (rc < 0) {
        rpc_reply(req, rc, NULL);
        return;
    }
    if (!release_has_news(session_use_find(mod, s, msg->ino), msg)) {
        release_lease(mod, s, msg);
        rpc_reply(req, 0, NULL);
        return;
    }
    r = mem_zalloc(sizeof *r);
    if (!r) {
        rpc_reply(req, -AIFS_EBUSY_SERVER, NULL);
        return;
    }
    r->mod = mod;
    r->req = req;
    r->msg = (struct shard_size){.ino = msg->ino,
                                 .size = msg->size,
                                 .has_mtime = true,
                                 .mtime = msg->mtime,
                                 .truncate_gen = msg->truncate_gen,
                                 .session = s->id};
    session_begin(mod);
    mds_submit(m, &r->submit, mds_shard_of(m, msg->ino), SHARD_OP_TIMES, &r->msg, SHARD_E_FREES,
               release_committed);
}

void session_data_start(struct session_module *mod)
{
    struct rpc_node *n = mod->mds->node;

    rpc_node_handle(n, RPC_OP_LEASE_GET, serve_lease_get, mod->mds);
    rpc_node_handle(n, RPC_OP_LEASE_RELEASE, serve_lease_release, mod->mds);
}
