/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One transfer between this client and one target.
 *
 * Happy path: the chain of the chunk names the target; the transfer waits for one of the target's
 * places, is sent, is answered (oss_message.c), and done() runs.
 *
 * Failure: retry.c decides. A transfer is sent again with a fresh map, fresh attributes or after a
 * back-off; whoever waits for it may cancel it, and done(-EINTR) then comes as soon as the
 * transport has let go of its memory.
 */
#include "client/core/core_int.h"
#include "client/core/room.h"

#define FREE_IOS_MAX 64u

static void io_timer(struct reactor_timer *t)
{
    oss_io_go(container_of(t, struct oss_io, timer));
}

struct oss_io *oss_io_new(struct core *c, enum oss_kind kind, struct core_inode *i)
{
    struct oss_io *io;

    if (core_no_memory())
        return NULL;
    if (!list_empty(&c->free_ios)) {
        io = list_entry(list_pop_front(&c->free_ios), struct oss_io, link);
        c->n_free_ios--;
    } else {
        io = mem_alloc(sizeof *io);
    }
    if (!io)
        return NULL;
    memset(io, 0, offsetof(struct oss_io, call));
    memset(&io->msg, 0, offsetof(struct oss_io, iov) - offsetof(struct oss_io, msg));
    memset(&io->n_iov, 0, sizeof *io - offsetof(struct oss_io, n_iov));
    list_init(&io->link);
    list_init(&io->all);
    list_init(&io->by_inode);
    io->core = c;
    io->kind = kind;
    io->inode = inode_ref(i);
    io->session_epoch = c->session.epoch;
    rpc_call_init(&io->call, oss_message_op(kind), &io->msg, NULL, io);
    reactor_timer_init(&io->timer, io_timer);
    return io;
}

static void io_free(struct oss_io *io)
{
    struct core *c = io->core;

    list_remove(&io->link);
    list_remove(&io->all);
    list_remove(&io->by_inode);
    reactor_timer_cancel(c->reactor, &io->timer);
    rpc_call_fini(&io->call);
    if (io->buf)
        mem_put(c, io->buf);
    inode_put(io->inode);
    if (c->n_free_ios < FREE_IOS_MAX) {
        c->n_free_ios++;
        list_push_front(&c->free_ios, &io->link);
    } else {
        mem_free(io);
    }
    core_kick(c);
}

void oss_io_drop(struct oss_io *io)
{
    io_free(io);
}

static void io_finish(struct oss_io *io, int status)
{
    list_remove(&io->by_inode);
    io->done(io, status);
    io_free(io);
}

static struct oss_target *target_find(struct core *c, uint32_t id)
{
    struct hmap_node *n;

    for (n = hmap_first(&c->oss_targets, hash_u64(id)); n; n = hmap_next(n)) {
        struct oss_target *t = container_of(n, struct oss_target, node);

        if (t->id == id)
            return t;
    }
    return NULL;
}

static void pump_later(struct reactor_work *w)
{
    struct oss_target *t = container_of(w, struct oss_target, pump);

    t->pump_due = false;
    oss_target_pump(t);
}

struct oss_target *oss_target_get(struct core *c, uint32_t id)
{
    struct oss_target *t = target_find(c, id);

    if (t)
        return t;
    t = core_no_memory() ? NULL : mem_zalloc(sizeof *t);
    if (!t)
        return NULL;
    t->core = c;
    t->id = id;
    t->pump.fn = pump_later;
    list_init(&t->queue);
    list_init(&t->commit_queue);
    list_init(&t->ahead);
    list_init(&t->committing);
    hmap_insert(&c->oss_targets, &t->node, hash_u64(id));
    return t;
}

void oss_new_link(struct core *c, const struct oss_node *o)
{
    struct list *l;

    list_for_each (l, &c->ios) {
        struct oss_io *io = list_entry(l, struct oss_io, all);

        if (io->sent && io->node == o)
            oss_io_call(io)->incarnation = o->incarnation;
    }
}

struct oss_target *oss_target_of(struct core *c, const struct msg_layout *l, uint64_t chunk)
{
    const struct map_chain *chain = c->map && l->table_len ? layout_chain(l, c->map, chunk) : NULL;

    return chain && chain->n_targets ? oss_target_get(c, chain->targets[0]) : NULL;
}

void oss_call_header(struct core *c, struct rpc_call *call, const struct oss_node *o)
{
    call->flags = RPC_CALL_WAIT;
    call->session = c->session.id;
    call->generation = c->session.generation;
    call->incarnation = o->incarnation;
    call->job = c->job;
    call->map_epoch = c->map ? c->map->epoch : 0;
    c->stats.oss_calls++;
}

/* ---- answers ---- */

static void refreshed(struct mds_op *op, int status)
{
    struct oss_io *io = (struct oss_io *)(uintptr_t)op->n1;
    const struct msg_inode_rep *rep = op->call.rep;

    if (!io)
        return; /* it was cancelled */
    io->attr_op = NULL;
    if (!status) {
        inode_merge(io->inode, &rep->inode, true);
        oss_io_go(io);
        return;
    }
    io_finish(io, status == -AIFS_ECANCELLED ? -EIO : status);
}

static void io_refresh(struct oss_io *io)
{
    struct mds_op *op = mds_op_new(io->core, RPC_OP_GETATTR, NULL, refreshed);

    if (!op) {
        reactor_timer_start(io->core->reactor, &io->timer,
                            reactor_now_ns(io->core->reactor) + 10 * NS_PER_MS);
        return;
    }
    op->msg.ino.ino = io->inode->ino;
    op->n1 = (uint64_t)(uintptr_t)io;
    io->attr_op = op;
    mds_op_start(op);
}

static void io_failed(struct oss_io *io, int status)
{
    struct core *c = io->core;
    struct retry r = io->kind == OSS_IO_READ || io->kind == OSS_IO_SEEK
                         ? retry_oss_read(status, io->attempt)
                         : retry_oss_write(status, io->attempt);

    if (io->cancelled || c->forced) {
        io_finish(io, c->forced ? -EIO : -EINTR);
        return;
    }
    if (session_is_over(status))
        session_lost(c, io->session_epoch, status);
    if ((io->placed && status == -AIFS_ESTALE_TRUNC) || /* so is its place */
        (io->fickle && status == -AIFS_ECHECKSUM))
        r = (struct retry){.action = RETRY_FAIL, .status = status};
    if (r.action == RETRY_FAIL) {
        if (r.gave_up)
            oss_io_gave_up(io, status);
        io_finish(io, r.status);
        return;
    }
    c->stats.retries++;
    io->attempt++;
    if (status == -AIFS_ENOTARGET)
        io->target->missing_ns = reactor_now_ns(c->reactor) + r.delay_ns;
    if (r.action == RETRY_ATTR) {
        once_forget(io);
        io_refresh(io);
        return;
    }
    if (r.action == RETRY_MAP)
        cmap_refresh(c);
    reactor_timer_start(c->reactor, &io->timer, reactor_now_ns(c->reactor) + r.delay_ns);
}

void oss_io_over(struct oss_io *io, int status)
{
    if (status == -AIFS_ECANCELLED && !io->cancelled)
        status = -AIFS_ECONN; /* the peer was replaced */
    if (status) {
        io_failed(io, status);
        return;
    }
    io->target->missing_ns = 0;
    io_finish(io, 0);
}

static void io_called(struct rpc_call *call, int status)
{
    struct oss_io *io = call->arg;
    struct oss_target *t = io->target;

    io->sent = false;
    t->in_flight--;
    if (io->kind == OSS_IO_WRITE && !io->stable)
        t->flying -= MIN(t->flying, io->len);
    if (!status)
        status = oss_message_noted(io);
    oss_io_over(io, status);
    oss_target_pump(t);
}

/* ---- sending ---- */

static void io_send(struct oss_io *io, struct oss_node *o)
{
    struct core *c = io->core;

    rpc_call_fini(&io->call);
    rpc_call_init(&io->call, oss_message_op(io->kind), &io->msg, io_called, io);
    oss_call_header(c, &io->call, o);
    io->node = o;
    oss_message_fill(io);
    io->sent = true;
    io->session_epoch = c->session.epoch;
    io->target->in_flight++;
    rpc_peer_call(o->peer, &io->call);
}

/* One transfer asks whether a target is there again, once a second; the data of the others is not
 * sent in vain. */
static bool io_awaits(struct oss_io *io)
{
    struct oss_target *t = io->target;
    uint64_t now_ns = reactor_now_ns(io->core->reactor);
    bool awaits = now_ns < t->missing_ns;

    if (awaits)
        reactor_timer_start(io->core->reactor, &io->timer, t->missing_ns);
    else if (t->missing_ns)
        t->missing_ns = now_ns + NS_PER_S;
    return awaits;
}

/* Where it goes now; NULL: nowhere, and that has been dealt with. */
static struct oss_node *io_route(struct oss_io *io)
{
    struct core *c = io->core;
    struct oss_node *node;

    if (io->cancelled || c->forced) {
        io_finish(io, c->forced ? -EIO : -EINTR);
        return NULL;
    }
    if (once_is_late(io)) {
        io_failed(io, -AIFS_ESESSION);
        return NULL;
    }
    io->target = oss_target_of(c, &io->inode->layout, io->range.chunk);
    if (oss_io_is_lost(io)) {
        io_failed(io, -AIFS_ELOST);
        return NULL;
    }
    node = io->target ? oss_node_of(c, io->target->id) : NULL;
    if (!node)
        io_failed(io, io->target ? -AIFS_EDOWN : -AIFS_ESTALE_MAP);
    return node;
}

static void io_queue(struct oss_io *io)
{
    io->queued = true;
    list_push_back(&io->target->queue, &io->link);
}

/* All writes under way take no more than a quarter of the memory for blocks: the rest is for what
 * is stored and waits to be committed, while the links are kept busy. */
static bool target_full(const struct oss_target *t, const struct oss_io *io)
{
    const struct core *c = t->core;
    uint64_t share = c->max_dirty / 2 / MAX(c->oss_targets.count, (size_t)1);

    if (io->kind == OSS_IO_WRITE && t->in_flight >= OSS_FLIGHT_MIN && t->flying >= share)
        return true;
    return t->in_flight >= CORE_TARGET_INFLIGHT;
}

void oss_target_pump(struct oss_target *t)
{
    while (!list_empty(&t->queue)) {
        struct oss_io *io = list_entry(t->queue.next, struct oss_io, link);
        struct oss_node *node;

        if (target_full(t, io))
            return;
        list_remove(&io->link);
        io->queued = false;
        node = io_route(io);
        if (node && !share_send(io, node))
            io_send(io, node);
    }
}

void oss_io_go(struct oss_io *io)
{
    struct oss_node *node = io_route(io);
    struct oss_target *t;

    if (!node || io_awaits(io))
        return;
    t = io->target;
    if (oss_io_shares(io)) { /* with what else this turn brings */
        io_queue(io);
        if (!t->pump_due)
            reactor_defer(io->core->reactor, &t->pump);
        t->pump_due = true;
    } else if (target_full(t, io)) {
        io_queue(io);
    } else {
        io_send(io, node);
    }
}

void oss_io_submit(struct oss_io *io)
{
    io->started_ns = reactor_now_ns(io->core->reactor);
    list_push_back(&io->core->ios, &io->all);
    if (io->core->forced || !io->core->map || oss_io_is_lost(io))
        reactor_timer_start(io->core->reactor, &io->timer, 0); /* done() never runs inside submit */
    else
        oss_io_go(io);
}

void oss_io_cancel(struct oss_io *io)
{
    io->cancelled = true;
    if (io->sent) {
        rpc_call_cancel(oss_io_call(io));
    } else if (io->queued || reactor_timer_running(&io->timer)) {
        list_remove(&io->link);
        io->queued = false;
        reactor_timer_start(io->core->reactor, &io->timer, 0);
    } else if (io->attr_op) { /* they may never come */
        io->attr_op->n1 = 0;
        io->attr_op = NULL;
        reactor_timer_start(io->core->reactor, &io->timer, 0);
    }
}

/* ---- the end ---- */

void oss_fail_all(struct core *c)
{
    struct list *l;

    list_for_each (l, &c->ios) {
        oss_io_cancel(list_entry(l, struct oss_io, all));
    }
}

void oss_fini(struct core *c)
{
    struct hmap_node *h, *next;
    struct list *l;
    size_t pos;

    while ((l = list_pop_front(&c->free_ios)) != NULL)
        mem_free(list_entry(l, struct oss_io, link));
    c->n_free_ios = 0;
    share_fini(c);
    hmap_for_each (h, next, pos, &c->oss_targets) {
        struct oss_target *t = container_of(h, struct oss_target, node);

        hmap_remove(&c->oss_targets, h);
        commit_target_fini(t);
        mem_free(t);
    }
}
