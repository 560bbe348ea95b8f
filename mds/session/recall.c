// SPDX-License-Identifier: Apache-2.0
/*
 * Leases taken back.
 *
 * Happy path: RECALL to the holder, who answers at once, writes back and sends LEASE_RELEASE, which
 * wakes whoever waits at the file. A lease that the holder has not been told of yet is lowered
 * without a word. Failure modes: without a connection the recall is sent again when there is one; a
 * holder that has not released within the lease time is evicted; so is, by its silence, a dead one.
 * But one that cannot write back, because a storage server of the file is away, has a lease
 * time from its return: who waits needs that server too, and an eviction would cost what is
 * unwritten.
 */
#include "mds/session/session_int.h"

struct recall {
    struct session_call call;
    struct session_module *mod;
    struct rpc_link *link;
    struct msg_recall_req req;
    uint64_t session;
};

void session_recall_end(struct session_use *u)
{
    list_remove(&u->recalled);
    u->recall_sent = u->recall_prolonged = false;
}

/* The holder does not know the lease: it has lost the answer that gave it, or given it back. */
static bool recall_not_held(int status)
{
    return status == -AIFS_ELEASE || status == -ENOENT || status == -ESTALE;
}

static void recall_done(struct rpc_call *c, int status)
{
    struct recall *r = container_of(c, struct recall, call.rpc);
    struct session_module *mod = r->mod;
    struct session *s = session_find(mod, r->session);
    struct session_use *u = s ? session_use_find(mod, s, r->req.ino) : NULL;

    if (u && !list_empty(&u->recalled) && u->told.seq == r->req.lease_seq) {
        if (recall_not_held(status))
            session_lease_set(mod, u, MIN(u->lease.kind, u->keep), u->lease.seq);
        else if (status < 0)
            u->recall_sent = false; /* again by the tick, or with the next connection */
        session_use_put(mod, u);
    }
    rpc_link_unref(r->link);
    session_call_end(mod, &r->call);
    mem_free(r);
}

static void recall_send(struct session_module *mod, struct session_use *u)
{
    struct session *s = u->s;
    struct recall *r;

    if (u->recall_sent || !s->link || !rpc_link_alive(s->link) || mod->stopping)
        return;
    r = mem_zalloc(sizeof *r);
    if (!r)
        return; /* the tick comes again */
    r->mod = mod;
    r->session = s->id;
    r->link = rpc_link_ref(s->link);
    r->req = (struct msg_recall_req){.ino = u->f->ino, .lease_seq = u->told.seq, .keep = u->keep};
    rpc_call_init(&r->call.rpc, RPC_OP_RECALL, &r->req, recall_done, r);
    r->call.rpc.timeout_ns = mod->mds->conf.lease_ns;
    u->recall_sent = true;
    session_call(mod, s, r->link, &r->call);
}

void session_recall(struct session_module *mod, struct session_use *u, enum msg_lease keep)
{
    if (u->s->phase != PHASE_LIVE || u->told.kind <= keep)
        return;
    if (!list_empty(&u->recalled)) {
        if (keep < u->keep) {
            u->keep = keep;
            u->recall_sent = false;
        }
    } else {
        stat_inc(&mod->stats.recalls);
        u->keep = keep;
        u->recall_sent = false;
        u->recall_deadline_ns = session_now_ns(mod) + mod->mds->conf.lease_ns;
        list_push_back(&mod->recalled, &u->recalled);
    }
    recall_send(mod, u);
}

void session_take_back(struct session_module *mod, struct session_use *u, enum msg_lease keep)
{
    if (u->lease.kind > u->told.kind)
        session_lease_set(mod, u, u->told.kind, u->told.seq);
    session_recall(mod, u, keep);
}

bool session_recall_conflicts(struct session_module *mod, struct session_file *f, uint64_t session,
                              unsigned access, uint32_t open_flags)
{
    struct list *l, *next;
    bool conflict = false;

    list_for_each_safe (l, next, &f->uses) {
        struct session_use *u = list_entry(l, struct session_use, of_file);

        if (u->s->id == session)
            continue;
        if (lease_conflicts(access, open_flags, u->lease.kind) && u->lease.kind > u->told.kind)
            session_lease_set(mod, u, u->told.kind, u->told.seq);
        if (u->held && access != MDS_ACCESS_UNLINK) {
            conflict = true;
        } else if (lease_conflicts(access, open_flags, u->lease.kind)) {
            session_recall(mod, u, MSG_LEASE_NONE);
            conflict = true;
        }
    }
    return conflict;
}

void session_recall_resend(struct session *s)
{
    struct list *l;

    list_for_each (l, &s->uses) {
        struct session_use *u = list_entry(l, struct session_use, of_session);

        if (!list_empty(&u->recalled))
            recall_send(s->mod, u);
    }
}

static bool recall_cannot_end(struct session_module *mod, const struct session_use *u)
{
    struct mds_inode in;
    struct view v;
    int rc;

    if (u->s->phase != PHASE_LIVE || u->lease.kind != MSG_LEASE_WRITE)
        return false;
    view_begin(mds_shard_of(mod->mds, u->f->ino), &v);
    rc = view_inode(&v, u->f->ino, &in);
    view_end(&v);
    /* if nobody knows: its client is not evicted for it */
    return rc == 0 ? !cluster_layout_up(mod->mds, &in.layout) : rc != -ENOENT;
}

/* From then on its time begins again with each tick. */
static void recall_prolong(struct session_module *mod, struct session_use *u, uint64_t now_ns)
{
    if (!u->recall_prolonged) {
        stat_inc(&mod->stats.recalls_prolonged);
        LOG_WARN("session", "inode %llu: session %llu cannot write back: a storage server is away",
                 (unsigned long long)u->f->ino, (unsigned long long)u->s->id);
    }
    u->recall_prolonged = true;
    u->recall_deadline_ns = now_ns + mod->mds->conf.lease_ns;
}

void session_recall_tick(struct session_module *mod, uint64_t now_ns)
{
    struct list *l, *next;

    list_for_each_safe (l, next, &mod->recalled) {
        struct session_use *u = list_entry(l, struct session_use, recalled);
        struct session *s;

        if ((now_ns >= u->recall_deadline_ns || u->recall_prolonged) && recall_cannot_end(mod, u)) {
            recall_prolong(mod, u, now_ns);
        } else if (now_ns >= u->recall_deadline_ns) {
            stat_inc(&mod->stats.recalls_late);
            s = u->s;
            session_evict(mod, s, "did not give a lease back in time", false);
            if (s->phase != PHASE_LIVE)
                return; /* the list has changed: the rest with the next tick */
        }
        recall_send(mod, u);
    }
}
