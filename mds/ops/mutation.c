/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a mutation on the leader: resolve, prepare, append, finish, reply.
 *
 * Happy path: what the request touches is read from the committed view; the session module freezes
 * it and recalls what conflicts; the entry goes to the writer; when it is committed, opens are
 * registered, the workers behind the queues are woken, and the reply that was committed with the
 * change is sent. Failure modes: execution finds another state than was resolved and says RETRY:
 * from the start, a bounded number of times. A cut that is still on its way to the targets is
 * waited for. A repeated request gets its kept reply; an open in it that a restart has lost is
 * registered again. A failed commit leaves the outcome open: the link is closed without an answer,
 * and the client asks again; so it is when there is no memory to look at the open in a reply.
 */
#include <string.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "mds/dispatch.h"
#include "mds/ops/op.h"
#include "proto/codec.h"

#define PUNCH_REPLY_WAIT_NS (1 * NS_PER_S)  /* a truncate's reply waits so long for the targets */
#define PUNCH_GROW_WAIT_NS  (30 * NS_PER_S) /* and growing again so long */

static void mutate_try(struct mds_op *o);

struct mds_touch *op_touch(struct mds_op *o, uint64_t ino, enum mds_access access, int place)
{
    struct mds_prepare *p = &o->prepare;
    struct mds_touch *t = &p->touch[p->n_touch];

    for (unsigned i = 0; i < p->n_touch; i++) {
        if (ino && p->touch[i].ino == ino) /* two names of one file: one freeze */
            return &p->touch[i];
    }
    ASSERT(p->n_touch < SHARD_RESOLVED_MAX);
    *t = (struct mds_touch){.ino = ino, .access = access};
    o->place_of[p->n_touch] = place;
    if (access == MDS_ACCESS_OPEN)
        o->open_touch = (int)p->n_touch;
    p->n_touch++;
    return t;
}

void op_change(struct mds_op *o, uint64_t ino, const struct msg_bytes *name)
{
    struct mds_prepare *p = &o->prepare;

    if (!ino)
        return;
    ASSERT(p->n_changes < MDS_CHANGES_MAX);
    p->changes[p->n_changes++] =
        (struct mds_change){.ino = ino, .name = name ? *name : (struct msg_bytes){0}};
}

void op_cut(struct mds_op *o, uint64_t ino)
{
    if (!ino) /* op_change() adds none: there is no such file */
        return;
    op_change(o, ino, NULL);
    o->prepare.changes[o->prepare.n_changes - 1].cuts = true;
}

/* An outcome for the session module; out->lease may come back lower. */
static void mutate_finish(struct mds_op *o, struct mds_outcome *out)
{
    if (o->prepare.n_touch || o->prepare.n_changes)
        o->mds->session_ops->finish(o->mds, &o->prepare, out);
}

static void mutate_refuse(struct mds_op *o, int status)
{
    struct mds_outcome out = {.status = status};

    mutate_finish(o, &out);
    op_reply(o, status, NULL);
}

/* The kept reply of an opening operation, decoded; NULL: it is none. -ENOMEM. */
static int mutate_open_reply(struct mds_op *o, struct msg_inode_rep **ret_rep)
{
    struct shard_entry *e = &o->entry;
    void *rep = NULL;
    int rc = 0;

    if (e->status == 0 && (e->op == RPC_OP_CREATE || e->op == RPC_OP_OPEN))
        rc = codec_decode(e->op, true, e->reply, e->reply_len, &o->req->arena, &rep);
    if (rc == 0)
        *ret_rep = rep;
    return rc;
}

static void mutate_reply(struct mds_op *o, const struct msg_inode_rep *patched)
{
    struct rpc_req *req = o->req;
    struct shard_entry *e = &o->entry;

    if (patched) {
        op_reply(o, 0, patched);
        return;
    }
    /* the entry goes with the request's memory, its arena after the reply was copied from it */
    struct arena arena = e->arena;

    o->entry_used = false;
    op_end(o);
    rpc_reply_encoded(req, e->status, e->reply, e->reply_len);
    arena_reset(&arena);
}

static void punch_reply(struct mds_punch_wait *w, int status)
{
    struct mds_op *o = container_of(w, struct mds_op, punch);
    void *rep;

    if (status == 0 && codec_decode(o->entry.op, true, o->entry.reply, o->entry.reply_len,
                                    &o->req->arena, &rep) == 0) {
        ((struct msg_inode_rep *)rep)->inode.attr.flags &= ~MSG_ATTR_PUNCH_PENDING;
        mutate_reply(o, rep);
        return;
    }
    mutate_reply(o, NULL);
}

void op_kick(struct mds *m, uint32_t result, uint64_t ino)
{
    if (result & SHARD_R_DUPLICATE)
        return;
    if (result & SHARD_R_DESTROY)
        m->gc_ops->kick(m, KEY_DESTROY, ino);
    if (result & SHARD_R_PUNCH)
        m->gc_ops->kick(m, KEY_PUNCH, ino);
    if (result & SHARD_R_RECOVER)
        m->gc_ops->kick(m, KEY_RECOVER, 0);
}

/* The reply tells of the state that the change has left, so its caller may go on believing it. */
static void mutate_keep(struct mds_op *o)
{
    const void *msg = o->req->msg;

    switch (o->req->header.op) {
    case RPC_OP_CREATE:
    case RPC_OP_MKDIR:
    case RPC_OP_MKNOD:
    case RPC_OP_SYMLINK:
        if (!(((const struct msg_create_req *)msg)->flags & MSG_CREATE_UNNAMED))
            op_keep_dir(o, ((const struct msg_create_req *)msg)->parent, RPC_FLAG_KEPT_DIR);
        op_keep(o, o->entry.result_ino, RPC_FLAG_KEPT_INODE, NULL);
        if (op_made_alone(o, o->op, msg, o->entry.result_ino))
            o->req->reply_flags |= RPC_FLAG_ALONE;
        break;
    case RPC_OP_UNLINK:
    case RPC_OP_RMDIR:
        op_keep_dir(o, ((const struct msg_name_req *)msg)->parent, RPC_FLAG_KEPT_DIR);
        break;
    case RPC_OP_RENAME:
        op_keep_dir(o, ((const struct msg_rename_req *)msg)->parent, RPC_FLAG_KEPT_DIR);
        op_keep_dir(o, ((const struct msg_rename_req *)msg)->new_parent, RPC_FLAG_KEPT_DIR2);
        break;
    case RPC_OP_LINK:
        op_keep_dir(o, ((const struct msg_link_req *)msg)->new_parent, RPC_FLAG_KEPT_DIR);
        op_keep(o, ((const struct msg_link_req *)msg)->ino, RPC_FLAG_KEPT_INODE, NULL);
        break;
    case RPC_OP_SETATTR:
        if (!(o->entry.result & SHARD_R_PUNCH))
            op_keep(o, ((const struct msg_setattr_req *)msg)->ino, RPC_FLAG_KEPT_INODE, NULL);
        else
            op_keep_size(o, ((const struct msg_setattr_req *)msg)->ino);
        break;
    case RPC_OP_SIZE:
        op_keep_size(o, ((const struct msg_size_req *)msg)->ino);
        break;
    case RPC_OP_OPEN:
        op_keep(o, ((const struct msg_open_req *)msg)->ino, RPC_FLAG_KEPT_INODE, NULL);
        break;
    default:
        break;
    }
}

/* The kept answer names an open that went with the server, and its file is gone since: otherwise it
 * would have been taken up again. */
static bool mutate_lost_open(struct mds_op *o, const struct msg_inode_rep *rep)
{
    return o->open_touch < 0 && rep && rep->open_id &&
           !o->mds->session_ops->has_open(o->mds, o->req->header.session, rep->inode.attr.ino,
                                          rep->open_id);
}

/* What the answer promises of an open and its lease cannot be looked at for want of memory, so it
 * is not sent: the client asks again. */
static void mutate_unseen(struct mds_op *o)
{
    struct shard_entry *e = &o->entry;
    struct mds_outcome out = {.status = e->status, .result = e->result, .ino = e->result_ino};

    LOG_WARN("mds", "no memory to look at the answer of an %s", rpc_op_name(e->op));
    if (e->result & SHARD_R_DUPLICATE)
        out.status = -AIFS_EDOWN; /* which open it names is not known */
    mutate_finish(o, &out);
    op_kick(o->mds, e->result, e->result_ino);
    rpc_link_close(o->req->from, -AIFS_EDOWN);
    op_reply(o, -AIFS_EDOWN, NULL);
}

static void mutate_answer(struct mds_op *o)
{
    struct shard_entry *e = &o->entry;
    struct mds_outcome out = {.status = e->status, .result = e->result, .ino = e->result_ino};
    struct msg_inode_rep *rep = NULL;
    enum msg_lease promised = MSG_LEASE_NONE;

    if ((o->open_touch >= 0 || (e->result & SHARD_R_DUPLICATE)) && mutate_open_reply(o, &rep) < 0) {
        mutate_unseen(o);
        return;
    }
    if (mutate_lost_open(o, rep)) {
        mutate_refuse(o, -ESTALE);
        return;
    }
    if (o->open_touch < 0)
        rep = NULL; /* as it was kept */
    if (rep && rep->open_id) {
        out.open_id = rep->open_id;
        out.open_ino = rep->inode.attr.ino;
        out.lease_seq = rep->inode.lease_seq;
        out.lease = promised = rep->inode.lease;
    }
    mutate_finish(o, &out);
    op_kick(o->mds, e->result, e->result_ino);
    if (rep && rep->open_id && !out.open_id) { /* the file is there, but not open */
        op_reply(o, -ENOMEM, NULL);
        return;
    }
    if (e->status == 0 && !(e->result & SHARD_R_DUPLICATE))
        mutate_keep(o);
    if (rep && ((o->local && op_open_data(o, rep) == 0) || out.lease != promised ||
                out.lease_seq != rep->inode.lease_seq)) {
        rep->inode.lease = out.lease;
        rep->inode.lease_seq = out.lease_seq;
    } else {
        rep = NULL;
    }
    if (e->status == 0 && (e->result & SHARD_R_PUNCH) && !rep) {
        o->punch = (struct mds_punch_wait){
            .ino = e->result_ino, .timeout_ns = PUNCH_REPLY_WAIT_NS, .done = punch_reply};
        o->mds->gc_ops->punch_wait(o->mds, &o->punch);
        return;
    }
    mutate_reply(o, rep);
}

/* A server that stops has told those who waited that they should not: nobody would tell these. */
static bool mutate_again(struct mds_op *o, int status)
{
    return status == -AIFS_ERETRY && !o->mds->dispatch->stopping && ++o->tries < MDS_RETRY_MAX;
}

static void mutate_done(struct shard_entry *e)
{
    struct mds_op *o = container_of(e, struct mds_op, entry);

    if (e->result & SHARD_R_UNKNOWN) {
        rpc_link_close(o->req->from, -AIFS_EDOWN);
        mutate_refuse(o, -AIFS_EDOWN);
        return;
    }
    if (mutate_again(o, e->status)) {
        struct mds_outcome out = {.status = -AIFS_ERETRY};

        mutate_finish(o, &out);
        mutate_try(o);
        return;
    }
    mutate_answer(o);
}

static void mutate_local(struct mds_op *o)
{
    struct msg_inode_rep rep = {0};
    int rc = op_open_reply(o, &rep);
    struct mds_outcome out = {.status = rc};

    if (rc == 0 && rep.open_id) {
        out.open_id = rep.open_id;
        out.open_ino = rep.inode.attr.ino;
        out.lease_seq = rep.inode.lease_seq;
        out.lease = rep.inode.lease;
    }
    mutate_finish(o, &out);
    if (mutate_again(o, rc)) {
        mutate_try(o);
        return;
    }
    rep.inode.lease = out.lease;
    rep.inode.lease_seq = out.lease_seq;
    if (rc == 0)
        op_keep(o, rep.inode.attr.ino, RPC_FLAG_KEPT_INODE, NULL);
    op_reply(o, rc, rc == 0 ? &rep : NULL);
}

static void mutate_append(struct mds_op *o)
{
    struct shard_entry *e = &o->entry;
    const struct rpc_req *req = o->req;
    int rc;

    for (unsigned i = 0; i < o->prepare.n_touch; i++) {
        const struct mds_touch *t = &o->prepare.touch[i];

        if (o->place_of[i] >= 0)
            e->is_open[o->place_of[i]] = t->is_open;
        e->holds_write |= t->holds_write;
    }
    if (o->open_touch >= 0) {
        const struct mds_touch *t = &o->prepare.touch[o->open_touch];

        e->open_id = t->open_id;
        e->lease = t->lease;
        e->lease_seq = t->lease_seq;
        e->marks_writer = t->marks_writer;
    }
    e->session = req->header.session;
    e->generation = req->header.generation;
    e->slot = req->header.slot;
    e->sequence = req->header.slot_sequence;
    e->body = req->body;
    e->body_len = req->header.body_len;
    if (req->bulk) {
        e->bulk = req->bulk->data;
        e->bulk_len = req->header.bulk_len;
    }
    rc = shard_submit(o->shard, e);
    if (rc < 0)
        mutate_refuse(o, rc);
}

static void mutate_ready(struct mds_prepare *p, int status)
{
    struct mds_op *o = container_of(p, struct mds_op, prepare);

    if (status < 0) {
        op_reply(o, status, NULL);
        return;
    }
    if (o->local && !(o->open_touch >= 0 && p->touch[o->open_touch].marks_writer))
        mutate_local(o);
    else
        mutate_append(o);
}

static void punch_retry(struct mds_punch_wait *w, int status)
{
    struct mds_op *o = container_of(w, struct mds_op, punch);

    if (status == 0 && o->mds->dispatch->stopping) /* see mutate_again() */
        status = -AIFS_ERETRY;
    if (status < 0) /* a target is away: whether to wait for it is the client's choice */
        op_reply(o, status == -AIFS_ETIMEOUT ? -AIFS_ERETRY : status, NULL);
    else
        mutate_try(o);
}

static uint64_t mutate_time_left(const struct mds_op *o, uint64_t most_ns)
{
    uint64_t now = reactor_now_ns(o->mds->reactor), deadline = o->req->deadline_ns;

    if (!deadline)
        return most_ns;
    return deadline > now ? MIN(most_ns, deadline - now) : 1;
}

static void mutate_try(struct mds_op *o)
{
    struct shard_entry *e = &o->entry;
    uint64_t wait_for;
    struct view v;

    if (o->entry_used)
        shard_entry_fini(e);
    shard_entry_init(e, o->req->header.op, o->req->msg, o->mds->reactor, mutate_done);
    e->flags = o->entry_flags;
    e->inline_max = o->mds->conf.inline_max;
    o->entry_used = true;
    o->prepare = (struct mds_prepare){.mds = o->mds,
                                      .session = o->req->header.session,
                                      .slot = o->req->header.slot,
                                      .sequence = o->req->header.slot_sequence,
                                      .deadline_ns = o->req->deadline_ns,
                                      .ready = mutate_ready};
    list_init(&o->prepare.link);
    o->open_touch = -1;
    o->local = false;
    view_begin(o->shard, &v);
    wait_for = o->resolve(o, &v);
    view_end(&v);
    if (wait_for) {
        o->punch = (struct mds_punch_wait){.ino = wait_for,
                                           .timeout_ns = mutate_time_left(o, PUNCH_GROW_WAIT_NS),
                                           .done = punch_retry};
        o->mds->gc_ops->punch_wait(o->mds, &o->punch);
    } else if (o->prepare.n_touch || o->prepare.n_changes) {
        o->mds->session_ops->prepare(o->mds, &o->prepare);
    } else {
        mutate_ready(&o->prepare, 0);
    }
}

void mds_mutate(struct rpc_req *req, struct mds *m, uint64_t ino, mds_resolve_fn *resolve,
                uint32_t entry_flags)
{
    struct mds_op *o;

    if (req->header.slot == 0 || req->header.slot > m->conf.slots) {
        rpc_reply(req, -AIFS_EPROTO, NULL);
        return;
    }
    o = op_begin_at(m, req, ino);
    if (!o)
        return;
    o->resolve = resolve;
    o->entry_flags = entry_flags;
    mutate_try(o);
}
