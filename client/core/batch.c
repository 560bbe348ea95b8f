/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of names that are begun in one turn of the reactor go to the metadata server in one call
 * (BATCH): one message, one slot, one entry of its log.
 *
 * Happy path: what is about to take a slot is gathered; when the turn ends, those of one caller
 * become the members of a carrier, an mds_op like any other, with its retries and its slot. Its
 * reply is taken apart, and each member goes on as if it had been answered by itself. One that
 * comes alone is sent as ever. Failure: what the server has left out of the batch, because it would
 * have to wait for somebody, is sent by itself at once. When the carrier fails all its members do:
 * its outcome is theirs, also when it is unknown; but those that a server does not take together go
 * alone. Without memory there is no batch. Removals that were answered ahead go by themselves, and
 * are gathered for longer: behind.c.
 */
#include "client/core/core_int.h"

#define BATCH_DATA_MAX (256u * KIB) /* of files that are made ahead */

static bool is_removal(const struct mds_op *op)
{
    return op->call.op == RPC_OP_UNLINK || op->call.op == RPC_OP_RMDIR;
}

static const struct msg_cred *cred_of(const struct mds_op *op)
{
    return is_removal(op)                 ? &op->msg.name.cred
           : op->call.op == RPC_OP_RENAME ? &op->msg.rename.cred
                                          : &op->msg.create.cred;
}

/* A name that the server would refuse must not spoil the message for others. */
static bool name_fits(const struct msg_bytes *name)
{
    return name->len >= 1 && name->len <= MSG_NAME_MAX && !memchr(name->data, '/', name->len) &&
           !memchr(name->data, 0, name->len);
}

static bool shares_renames(const struct core *c)
{
    const struct rpc_link *link = rpc_peer_link(c->session.peer);

    return link && rpc_link_features(link) & RPC_FEATURE_RENAMES;
}

static bool may_share(const struct mds_op *op)
{
    const struct msg_create_req *m = &op->msg.create;

    if (op->alone || op->failed)
        return false;
    switch (op->call.op) {
    case RPC_OP_MKNOD:
    case RPC_OP_MKDIR:
        return !m->has_stripe && name_fits(&m->name);
    case RPC_OP_UNLINK:
    case RPC_OP_RMDIR:
        return name_fits(&op->msg.name.name);
    case RPC_OP_RENAME: /* its names were looked at */
        return op->ahead && shares_renames(op->core);
    default:
        return false;
    }
}

/* Removals by themselves: they are served when there is no room for anything new. */
static bool go_together(const struct mds_op *a, const struct mds_op *b)
{
    const struct msg_cred *x = cred_of(a), *y = cred_of(b);

    return is_removal(a) == is_removal(b) && a->only_epoch == b->only_epoch && cred_is_same(x, y);
}

static void send_alone(struct list *ops)
{
    while (!list_empty(ops)) {
        struct mds_op *op = list_entry(list_pop_front(ops), struct mds_op, wait);

        op->carried = false;
        op->alone = true;
        mds_op_go(op);
    }
}

/* ---- the answer ---- */

/* Of a directory that several have changed only the last tells what has become of it. */
static void spread_dirs(struct list *members, struct msg_batch_item_rep *items, uint32_t n)
{
    const struct msg_attr *dir = NULL;
    struct list *l = members->prev;

    for (; n-- > 0; l = l->prev) {
        const struct mds_op *op = list_entry(l, struct mds_op, wait);
        struct msg_inode_rep *rep = &items[n].rep;

        if (!items[n].has_rep)
            continue;
        if (!rep->has_dir && dir && dir->ino == op->dirs[0]) {
            rep->has_dir = true;
            rep->dir = *dir;
        }
        dir = rep->has_dir ? &rep->dir : NULL;
    }
}

static void member_answered(struct mds_op *op, const struct mds_op *carrier,
                            const struct msg_batch_item_rep *item, uint8_t kept)
{
    int status = err_from_wire(item->status);

    op->call.header = carrier->call.header;
    op->call.header.flags = kept;
    op->call.rep = item->has_rep ? &item->rep : NULL;
    op->generation = carrier->generation;
    op->event = carrier->event;
    if (status == -AIFS_ERETRY || status == -EOPNOTSUPP) { /* an older server, in its place */
        op->alone = true;
        mds_op_go(op);
        return;
    }
    mds_op_outcome(op, status == 0 && !item->has_rep ? -AIFS_EPROTO : status);
}

static struct mds_op *next_member(struct mds_op *carrier)
{
    struct mds_op *op = list_entry(list_pop_front(&carrier->members), struct mds_op, wait);

    op->carried = false;
    return op;
}

static void carried(struct mds_op *carrier, int status)
{
    const struct msg_batch_rep *rep = carrier->call.rep;
    uint32_t n = carrier->msg.batch.n_items;
    struct msg_batch_item_rep *items;

    if (status == -EOPNOTSUPP) { /* another server has come in its place, an older one */
        send_alone(&carrier->members);
        return;
    }
    if (status == 0 && (rep->n_items != n || (rep->kept.len && rep->kept.len != n)))
        status = -AIFS_EPROTO;
    if (status) {
        while (!list_empty(&carrier->members)) {
            struct mds_op *op = next_member(carrier);

            op->in_doubt |= carrier->in_doubt;
            mds_op_outcome(op, status);
        }
        return;
    }
    items = (struct msg_batch_item_rep *)rep->items; /* the call's memory */
    spread_dirs(&carrier->members, items, n);
    for (uint32_t k = 0; k < n; k++)
        member_answered(next_member(carrier), carrier, &items[k],
                        rep->kept.len ? ((const uint8_t *)rep->kept.data)[k] : 0);
}

/* ---- the question ---- */

static void fill_item(const struct mds_op *op, struct msg_batch_item *i)
{
    const struct msg_create_req *m = &op->msg.create;
    const struct msg_rename_req *r = &op->msg.rename;

    if (op->call.op == RPC_OP_RENAME)
        *i = (struct msg_batch_item){.op = op->call.op,
                                     .parent = r->parent,
                                     .name = r->name,
                                     .new_name = r->new_name,
                                     .flags = r->flags,
                                     .when_ns = r->when_ns};
    else if (is_removal(op))
        *i = (struct msg_batch_item){.op = op->call.op,
                                     .parent = op->msg.name.parent,
                                     .name = op->msg.name.name,
                                     .when_ns = op->msg.name.when_ns};
    else
        *i = (struct msg_batch_item){.op = op->call.op,
                                     .parent = m->parent,
                                     .name = m->name,
                                     .mode = m->mode,
                                     .masked = m->masked,
                                     .rdev = m->rdev,
                                     .when_ns = m->when_ns,
                                     .ino = m->ino,
                                     .wrote_ns = m->wrote_ns,
                                     .data = m->data,
                                     .has_since = m->has_since,
                                     .since = m->since,
                                     .alone = m->alone};
}

/* Moves the first, and what may go with it, to the list; how many. */
static uint32_t pick(struct list *from, struct list *picked)
{
    const struct mds_op *first = list_entry(from->next, struct mds_op, wait);
    struct list *l, *next;
    uint32_t n = 0, bytes = 0;

    list_init(picked);
    list_for_each_safe (l, next, from) {
        struct mds_op *op = list_entry(l, struct mds_op, wait);
        bool fits = n < MSG_BATCH_MAX && bytes + creating_bytes(op) <= BATCH_DATA_MAX;

        if (op == first || (fits && go_together(first, op))) {
            bytes += creating_bytes(op);
            creating_load(op);
            list_remove(l);
            list_push_back(picked, l);
            n++;
        }
    }
    return n;
}

static void send_together(struct core *c, struct list *ops, uint32_t n)
{
    const struct mds_op *first = list_entry(ops->next, const struct mds_op, wait);
    struct mds_op *carrier = n > 1 ? mds_op_new(c, RPC_OP_BATCH, NULL, carried) : NULL;
    struct msg_batch_item *items = carrier ? arena_alloc(&carrier->arena, n * sizeof *items) : NULL;
    struct list *l;
    uint32_t k = 0;

    if (!items) {
        if (carrier)
            mds_op_drop(carrier);
        send_alone(ops);
        return;
    }
    list_for_each (l, ops) {
        struct mds_op *op = list_entry(l, struct mds_op, wait);

        fill_item(op, &items[k++]);
        op->carried = true;
    }
    carrier->msg.batch =
        (struct msg_batch_req){.cred = *cred_of(first), .n_items = n, .items = items};
    if (first->ahead)
        behind_carry(carrier, first);
    list_splice(&carrier->members, ops);
    c->stats.mds_batched += n;
    mds_op_start(carrier);
}

static void turn_over(struct reactor_work *w)
{
    struct core *c = container_of(w, struct core, together_work);

    struct list picked;
    uint32_t n;

    c->together_queued = false;
    while (!list_empty(&c->together)) {
        n = pick(&c->together, &picked);
        send_together(c, &picked, n);
    }
    while (behind_due(c)) {
        struct mds_op *first = list_entry(c->behind.together.next, struct mds_op, wait);

        n = pick(&c->behind.together, &picked);
        behind_picked(c, n);
        if (n == 1)
            behind_carry(first, first);
        send_together(c, &picked, n);
    }
    c->behind.urged = false;
}

void batch_turn(struct core *c)
{
    if (!c->together_queued)
        reactor_defer(c->reactor, &c->together_work);
    c->together_queued = true;
}

bool batch_gather(struct mds_op *op)
{
    struct core *c = op->core;
    struct rpc_link *link = rpc_peer_link(c->session.peer);

    if (!link || !(rpc_link_features(link) & RPC_FEATURE_BATCH) || !may_share(op))
        return false;
    if (op->ahead) {
        behind_gather(op);
        return true;
    }
    list_push_back(&c->together, &op->wait);
    batch_turn(c);
    return true;
}

void batch_init(struct core *c)
{
    list_init(&c->together);
    c->together_work.fn = turn_over;
}
