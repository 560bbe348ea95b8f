/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BATCH: many changes of names in one message and one log entry (docs/protocols.md section 2).
 *
 * Happy path: each is resolved in one view and prepared as a change of its own; those that are
 * ready at once go to the writer together; when that is committed each is finished, and one reply
 * tells what became of all. Nothing waits for anybody: what would have to (others believe in a name
 * or hold a lease, a server that has just started) is answered RETRY, and its client sends it by
 * itself, so that nobody is kept waiting by what stands beside it, and two batches never wait for
 * each other. Failure modes: without memory, or refused by the shard, nothing has happened; after a
 * failed commit the link is closed without an answer.
 */
#include <string.h>

#include "common/base/err.h"
#include "mds/dispatch.h"
#include "mds/ops/op.h"
#include "proto/codec.h"

struct batch_part {
    struct mds_prepare prepare;
    uint64_t parent;
    bool ready; /* to be finished */
    int status;
};

struct mds_batch {
    uint32_t n, at; /* the one that is being resolved */
    struct shard_item *items;
    struct batch_part *parts;
};

static mds_resolve_fn *batch_resolver(uint32_t op)
{
    switch (op) {
    case RPC_OP_MKNOD:
    case RPC_OP_MKDIR:
        return resolve_make;
    case RPC_OP_UNLINK:
        return resolve_unlink;
    case RPC_OP_RMDIR:
        return resolve_rmdir;
    case RPC_OP_RENAME:
        return resolve_rename;
    default:
        return NULL;
    }
}

static bool batch_frees(const struct msg_batch_req *req)
{
    for (uint32_t k = 0; k < req->n_items; k++) {
        if (req->items[k].op != RPC_OP_UNLINK && req->items[k].op != RPC_OP_RMDIR)
            return false;
    }
    return true;
}

/* The request as its operation knows it. */
static const void *batch_msg(struct arena *a, const struct msg_cred *cred,
                             const struct msg_batch_item *i)
{
    struct msg_create_req *create;
    struct msg_rename_req *move;
    struct msg_name_req *name;

    if (i->op == RPC_OP_UNLINK || i->op == RPC_OP_RMDIR) {
        name = arena_alloc(a, sizeof(*name));
        if (name)
            *name = (struct msg_name_req){
                .cred = *cred, .parent = i->parent, .name = i->name, .when_ns = i->when_ns};
        return name;
    }
    if (i->op == RPC_OP_RENAME) {
        move = arena_alloc(a, sizeof(*move));
        if (move)
            *move = (struct msg_rename_req){.cred = *cred,
                                            .parent = i->parent,
                                            .new_parent = i->parent,
                                            .name = i->name,
                                            .new_name = i->new_name,
                                            .flags = i->flags,
                                            .when_ns = i->when_ns};
        return move;
    }
    create = arena_alloc(a, sizeof(*create));
    if (create)
        *create = (struct msg_create_req){.cred = *cred,
                                          .parent = i->parent,
                                          .name = i->name,
                                          .mode = i->mode,
                                          .masked = i->masked,
                                          .rdev = i->rdev,
                                          .ino = i->ino,
                                          .when_ns = i->when_ns,
                                          .wrote_ns = i->wrote_ns,
                                          .data = i->data,
                                          .has_since = i->has_since,
                                          .alone = i->alone,
                                          .since = i->since};
    return create;
}

/* What resolving has found, from where every operation's resolving function leaves it. */
static void batch_take(struct mds_op *o, struct shard_item *i, struct batch_part *part)
{
    const struct shard_entry *e = &o->entry;

    part->prepare = o->prepare;
    i->check_resolved = e->check_resolved;
    memcpy(i->resolved, e->resolved, sizeof i->resolved);
    i->has_layout = e->has_layout;
    i->layout_status = e->layout_status;
    i->layout = e->layout;
}

static int batch_resolve_one(struct mds_op *o, struct view *v, const struct msg_batch_item *from,
                             struct shard_item *i, struct batch_part *part)
{
    mds_resolve_fn *resolve = batch_resolver(from->op);
    struct shard_entry *e = &o->entry;

    part->parent = from->parent;
    if (!resolve)
        return -EOPNOTSUPP;
    if (mds_shard_of(o->mds, from->parent) != o->shard)
        return mds_shard_of(o->mds, from->parent) ? -AIFS_ERETRY : -ENOENT;
    if (o->mds->session_ops->alone_elsewhere(o->mds, o->req->header.session, from->parent))
        return -AIFS_ERETRY;
    i->op = o->op = (uint16_t)from->op;
    i->msg = o->msg =
        batch_msg(&o->req->arena, &((const struct msg_batch_req *)o->req->msg)->cred, from);
    if (!i->msg)
        return -ENOMEM;
    o->prepare =
        (struct mds_prepare){.mds = o->mds, .session = o->req->header.session, .at_once = true};
    e->check_resolved = e->has_layout = false;
    e->layout_status = 0;
    if (resolve(o, v))
        return -AIFS_ERETRY;
    batch_take(o, i, part);
    return 0;
}

uint64_t op_batch_above(const struct mds_op *o, uint64_t dir)
{
    const struct msg_batch_req *req = o->req->msg;

    for (uint32_t k = o->batch ? o->batch->at : 0; k-- > 0;) {
        if (req->items[k].op == RPC_OP_MKDIR && req->items[k].ino == dir)
            dir = req->items[k].parent;
    }
    return dir;
}

static void batch_resolve(struct mds_op *o)
{
    const struct msg_batch_req *req = o->req->msg;
    struct mds_batch *b = o->batch;
    struct view v;

    view_begin(o->shard, &v);
    for (uint32_t k = b->at = 0; k < b->n; b->at = ++k)
        b->items[k].status = batch_resolve_one(o, &v, &req->items[k], &b->items[k], &b->parts[k]);
    view_end(&v);
}

static void batch_ready(struct mds_prepare *p, int status)
{
    struct batch_part *part = container_of(p, struct batch_part, prepare);

    part->status = status;
    part->ready = status == 0;
}

static void batch_prepare(struct mds_op *o)
{
    struct mds_batch *b = o->batch;

    for (uint32_t k = 0; k < b->n; k++) {
        struct batch_part *part = &b->parts[k];
        struct shard_item *i = &b->items[k];

        if (i->status != 0)
            continue;
        list_init(&part->prepare.link);
        part->prepare.ready = batch_ready;
        o->mds->session_ops->prepare(o->mds, &part->prepare);
        i->status = part->status;
        for (unsigned t = 0; part->ready && t < part->prepare.n_touch; t++)
            i->is_open |= part->prepare.touch[t].is_open;
    }
}

/* status: of all that were not executed; 0: each has its own. */
static void batch_finish(struct mds_op *o, int status)
{
    struct mds_batch *b = o->batch;

    for (uint32_t k = 0; k < b->n; k++) {
        const struct shard_item *i = &b->items[k];
        struct mds_outcome out = {.status = status};

        if (!b->parts[k].ready)
            continue;
        if (status == 0)
            out = (struct mds_outcome){
                .status = i->status, .result = i->result, .ino = i->result_ino};
        o->mds->session_ops->finish(o->mds, &b->parts[k].prepare, &out);
        if (status == 0)
            op_kick(o->mds, i->result, i->result_ino);
    }
}

static void batch_refuse(struct mds_op *o, int status)
{
    batch_finish(o, status);
    op_reply(o, status, NULL);
}

/* What its client may go on believing: as in the header of an answer of its own. */
static void batch_keep(struct mds_op *o, uint8_t *kept)
{
    const struct mds_session_ops *s = o->mds->session_ops;
    const uint64_t session = o->req->header.session;
    struct mds_batch *b = o->batch;
    uint64_t dir = 0;
    bool dir_kept = false;

    for (uint32_t k = 0; k < b->n; k++) {
        const struct shard_item *i = &b->items[k];

        kept[k] = 0;
        if (i->status != 0)
            continue;
        if (b->parts[k].parent != dir) {
            dir = b->parts[k].parent;
            dir_kept = s->watch(o->mds, session, dir, NULL, true);
        }
        if (dir_kept)
            kept[k] |= RPC_FLAG_KEPT_DIR;
        if ((i->result & SHARD_R_CREATED) &&
            s->watch(o->mds, session, i->result_ino, NULL, false)) {
            kept[k] |= RPC_FLAG_KEPT_INODE;
            kept[k] |= op_made_alone(o, i->op, i->msg, i->result_ino) ? RPC_FLAG_ALONE : 0;
        }
    }
}

/* The reply that was committed, and behind it, as one more field of the same message, what was
 * granted with this sending of it. */
static int batch_body(struct mds_op *o, const void **ret_body, uint32_t *ret_len)
{
    const struct shard_entry *e = &o->entry;
    struct arena *a = &o->req->arena;
    uint8_t kept[MSG_BATCH_MAX], *body;
    struct msg_batch_rep granted = {.kept = {kept, o->batch->n}};
    const void *more;
    uint32_t more_len;
    int rc;

    batch_keep(o, kept);
    rc = codec_encode(RPC_OP_BATCH, true, &granted, a, &more, &more_len);
    body = rc == 0 ? arena_alloc(a, e->reply_len + more_len) : NULL;
    if (!body)
        return -ENOMEM;
    memcpy(body, e->reply, e->reply_len);
    memcpy(body + e->reply_len, more, more_len);
    *ret_body = body;
    *ret_len = e->reply_len + more_len;
    return 0;
}

static void batch_answer(struct mds_op *o)
{
    struct shard_entry *e = &o->entry;
    struct arena arena = e->arena; /* goes when the reply was copied from it */
    struct rpc_req *req = o->req;
    const void *body = e->reply;
    uint32_t len = e->reply_len;
    int status = e->status;

    if (status == 0 && !(e->result & SHARD_R_DUPLICATE))
        (void)!batch_body(o, &body, &len); /* without memory nothing is granted */
    o->entry_used = false;
    op_end(o);
    rpc_reply_encoded(req, status, body, len);
    arena_reset(&arena);
}

static void batch_count(struct mds_op *o)
{
    struct mds_dispatch *d = o->mds->dispatch;

    for (uint32_t k = 0; k < o->batch->n; k++)
        stat_inc(o->batch->items[k].status == -AIFS_ERETRY ? &d->batch_alone : &d->batch_items);
}

static void batch_done(struct shard_entry *e)
{
    struct mds_op *o = container_of(e, struct mds_op, entry);

    if (e->result & SHARD_R_UNKNOWN) {
        rpc_link_close(o->req->from, -AIFS_EDOWN);
        batch_refuse(o, -AIFS_EDOWN);
        return;
    }
    if (e->status == 0 && !(e->result & SHARD_R_DUPLICATE)) {
        batch_finish(o, 0);
        batch_count(o);
    } else {
        batch_finish(o, e->status ? e->status : -AIFS_ERETRY); /* nothing was executed now */
    }
    batch_answer(o);
}

static int batch_begin(struct mds_op *o)
{
    const struct msg_batch_req *req = o->req->msg;
    struct shard_entry *e = &o->entry;
    struct mds_batch *b = arena_zalloc(&o->req->arena, sizeof(*b));

    shard_entry_init(e, RPC_OP_BATCH, req, o->mds->reactor, batch_done);
    o->entry_used = true;
    o->batch = b;
    if (!b)
        return -ENOMEM;
    b->items = arena_zalloc(&o->req->arena, req->n_items * sizeof(*b->items));
    b->parts = arena_zalloc(&o->req->arena, req->n_items * sizeof(*b->parts));
    if (!b->items || !b->parts)
        return -ENOMEM;
    b->n = req->n_items;
    e->items = b->items;
    e->n_items = b->n;
    e->flags = batch_frees(req) ? SHARD_E_FREES : 0;
    e->session = o->req->header.session;
    e->generation = o->req->header.generation;
    e->slot = o->req->header.slot;
    e->sequence = o->req->header.slot_sequence;
    e->body = o->req->body;
    e->body_len = o->req->header.body_len;
    return 0;
}

/* An inode number that no shard has spoils only its own change. */
static struct shard *batch_shard(struct mds *m, const struct msg_batch_req *req)
{
    struct shard *shard = NULL;

    for (uint32_t k = 0; k < req->n_items && !shard; k++)
        shard = mds_shard_of(m, req->items[k].parent);
    return shard;
}

void op_batch(struct mds *m, struct rpc_req *r)
{
    const struct msg_batch_req *req = r->msg;
    struct mds_op *o;
    int rc;

    if (r->header.slot > m->conf.slots || req->n_items == 0) {
        rpc_reply(r, -AIFS_EPROTO, NULL);
        return;
    }
    o = op_begin(m, r);
    if (!o)
        return;
    o->shard = batch_shard(m, req);
    rc = o->shard ? batch_begin(o) : -ENOENT;
    if (rc < 0) {
        op_reply(o, rc, NULL);
        return;
    }
    batch_resolve(o);
    batch_prepare(o);
    rc = shard_submit(o->shard, &o->entry);
    if (rc < 0)
        batch_refuse(o, rc);
}
