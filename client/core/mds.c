/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls to the metadata server.
 *
 * Happy path: an operation waits for the session, takes a slot when it changes something, is sent,
 * is answered, gives the slot back, and its done() reads the reply.
 *
 * Failure: an answer that asks to try again is tried again after a back-off with a new sequence; a
 * call that got no answer keeps its slot and sequence, because the server may have executed it. An
 * operation nobody waits for any more is still carried to its end when it holds a slot.
 */
#include "client/core/core_int.h"

#define FREE_OPS_MAX 256u
#define SLOTS_KEPT   4u

static void op_timer(struct reactor_timer *t)
{
    mds_op_go(container_of(t, struct mds_op, timer));
}

struct mds_op *mds_op_new(struct core *c, unsigned opcode, struct core_req *q,
                          void (*done)(struct mds_op *op, int status))
{
    struct mds_op *op;

    if (core_no_memory())
        return NULL;
    if (!list_empty(&c->free_ops)) {
        op = list_entry(list_pop_front(&c->free_ops), struct mds_op, link);
        c->n_free_ops--;
    } else {
        op = mem_alloc(sizeof *op);
    }
    if (!op)
        return NULL;
    memset(op, 0, offsetof(struct mds_op, call));
    memset(&op->msg, 0, sizeof op->msg);
    list_init(&op->link);
    list_init(&op->wait);
    op->core = c;
    op->q = q;
    rpc_call_init(&op->call, opcode, &op->msg, NULL, op);
    arena_init(&op->arena, 0);
    op->iov = (struct iovec){0};
    op->done = done;
    reactor_timer_init(&op->timer, op_timer);
    op->inode = NULL;
    op->file = NULL;
    op->buf = NULL;
    op->started_ns = reactor_now_ns(c->reactor);
    op->n1 = op->n2 = op->event = 0;
    op->dirs[0] = op->dirs[1] = 0;
    op->generation = 0;
    op->attempt = 0;
    op->slot = -1;
    op->sent = op->failed = op->hung_logged = op->in_doubt = op->writes_back = false;
    op->alone = op->carried = false;
    op->may_ahead = op->ahead = op->for_room = op->flies = op->unsure = op->loaded = false;
    op->held = op->large = false;
    op->only_epoch = 0;
    list_init(&op->members);
    return op;
}

struct msg_bytes mds_op_bytes(struct mds_op *op, const void *data, uint32_t len)
{
    struct msg_bytes b = {core_no_memory() ? NULL : arena_dup(&op->arena, data, len), len};

    if (!b.data) {
        op->failed = true;
        b.len = 0;
    }
    return b;
}

void mds_op_cred(struct mds_op *op, struct msg_cred *dst, const struct msg_cred *src)
{
    size_t bytes = cred_space(src);
    void *space = bytes ? arena_alloc(&op->arena, bytes) : NULL;

    if (bytes && !space)
        op->failed = true;
    else
        cred_copy(dst, src, space);
}

void mds_op_drop(struct mds_op *op)
{
    struct core *c = op->core;

    list_remove(&op->link);
    list_remove(&op->wait);
    reactor_timer_cancel(c->reactor, &op->timer);
    rpc_call_fini(&op->call);
    arena_reset(&op->arena);
    if (op->buf)
        mem_put(c, op->buf);
    if (op->inode)
        inode_put(op->inode);
    if (c->n_free_ops < FREE_OPS_MAX) {
        c->n_free_ops++;
        list_push_front(&c->free_ops, &op->link);
    } else {
        mem_free(op);
    }
    core_kick(c);
}

static bool wants_slot(const struct mds_op *op)
{
    return (rpc_op_flags(op->call.op) & OP_SLOT) != 0;
}

/* The page listed last may tell what this changes. The parts of a BATCH come here by themselves,
 * and a removal ahead has forgotten the page of its directory. */
static void page_doubt(const struct mds_op *op)
{
    const unsigned code = op->call.op;
    const bool removal = code == RPC_OP_UNLINK || code == RPC_OP_RMDIR;

    if (wants_slot(op) && code != RPC_OP_BATCH && !(op->ahead && removal))
        relist_forget(op->core, 0);
}

static void op_finish(struct mds_op *op, int status)
{
    page_doubt(op);
    list_remove(&op->wait);
    reactor_timer_cancel(op->core->reactor, &op->timer);
    if (op->flies)
        behind_landed(op);
    op->done(op, status);
    mds_op_drop(op);
}

/* Requests may wait at the server for a lease of another client, who may wait for one of ours: some
 * slots are left to write-back, so that ours can always be given back. */
static uint32_t slots_for(const struct core_session *s, const struct mds_op *op)
{
    return op->writes_back ? s->n_slots : s->n_slots - MIN(SLOTS_KEPT, s->n_slots / 4);
}

static bool slot_free_for(const struct core_session *s, const struct mds_op *op)
{
    for (uint32_t i = 0; i < slots_for(s, op); i++)
        if (!s->slots[i].busy)
            return true;
    return false;
}

/* answered: the server has said something, so the sequence is used up. */
static void slot_release(struct mds_op *op, bool answered)
{
    struct core_session *s = &op->core->session;
    struct list *l;

    if (op->slot < 0 || op->generation != s->epoch)
        return;
    if (answered)
        s->slots[op->slot].sequence++;
    s->slots[op->slot].busy = false;
    op->slot = -1;
    l = s->slot_waiters.next;
    if (l == &s->slot_waiters || !slot_free_for(s, list_entry(l, struct mds_op, wait)))
        return;
    list_remove(l);
    mds_op_go(list_entry(l, struct mds_op, wait));
}

static bool slot_take(struct mds_op *op)
{
    struct core_session *s = &op->core->session;
    uint32_t i;

    for (i = 0; i < slots_for(s, op); i++) {
        if (!s->slots[i].busy) {
            s->slots[i].busy = true;
            op->slot = (int)i;
            op->generation = s->epoch;
            return true;
        }
    }
    return false;
}

/* It needs nothing of the session that it was meant for. */
static bool is_of_any_session(const struct mds_op *op)
{
    return (rpc_op_flags(op->call.op) & OP_NEXT) &&
           !(op->call.op == RPC_OP_SETATTR && op->msg.setattr.open_id);
}

/* The session was over before the server could execute it, and that is certain: whoever waits for
 * it has lost nothing, and it goes on in the next session. */
static bool outlives_session(const struct mds_op *op)
{
    return op->q && !op->ahead && !op->only_epoch && is_of_any_session(op) &&
           !(wants_slot(op) && op->in_doubt);
}

void mds_op_outcome(struct mds_op *op, int status)
{
    struct core *c = op->core;
    struct retry r = (op->ahead ? retry_ahead : retry_mds)(status, op->attempt);

    if (status == 0 && c->behind.n && behind_overtaken(op))
        return; /* asked again */
    if (session_is_over(status) && !c->forced && outlives_session(op)) {
        op->slot = -1;
        mds_op_go(op);
        return;
    }
    if (status == -AIFS_ECANCELLED && !c->forced && op->slot >= 0)
        r = retry_mds(-AIFS_ECONN, op->attempt);
    if (r.action == RETRY_FAIL || c->forced ||
        (!op->q && op->slot < 0 && status == -AIFS_ECANCELLED)) {
        if (r.gave_up && !c->forced)
            LOG_WARN("client", "%s, metadata server: given up after %u tries: %s",
                     rpc_op_name(op->call.op), op->attempt + 1, err_text(status));
        slot_release(op, false);
        op_finish(op, c->forced && status ? -EIO : r.status);
        return;
    }
    c->stats.retries++;
    op->attempt++;
    reactor_timer_start(c->reactor, &op->timer, reactor_now_ns(c->reactor) + r.delay_ns);
}

static void op_called(struct rpc_call *call, int status)
{
    struct mds_op *op = call->arg;
    bool answered = status != -AIFS_ECONN && status != -AIFS_EDOWN && status != -AIFS_ECANCELLED &&
                    status != -AIFS_ETIMEOUT;

    op->sent = false;
    if (session_is_over(status))
        session_lost(op->core, op->generation, status);
    op->in_doubt = session_is_over(status) ? op->in_doubt || call->resent : !answered;
    if (answered)
        slot_release(op, true);
    mds_op_outcome(op, status);
}

static void op_send(struct mds_op *op)
{
    struct core *c = op->core;
    struct core_session *s = &c->session;
    struct rpc_call *call = &op->call;
    unsigned opcode = call->op;
    const struct iovec *out = call->bulk_out, *in = call->bulk_in;
    unsigned n_out = call->n_bulk_out, n_in = call->n_bulk_in;

    rpc_call_fini(call);
    rpc_call_init(call, opcode, &op->msg, op_called, op);
    call->bulk_out = out;
    call->n_bulk_out = n_out;
    call->bulk_in = in;
    call->n_bulk_in = n_in;
    call->flags = RPC_CALL_WAIT;
    call->session = s->id;
    call->generation = s->generation;
    call->incarnation = s->incarnation;
    call->job = c->job;
    call->map_epoch = c->map ? c->map->epoch : 0;
    op->generation = s->epoch;
    if (op->slot >= 0) {
        call->slot = (uint32_t)op->slot + 1;
        call->slot_sequence = s->slots[op->slot].sequence + 1;
    }
    op->event = c->events_seen;
    op->sent = true;
    c->stats.mds_calls++;
    rpc_peer_call(s->peer, call);
}

void mds_op_go(struct mds_op *op)
{
    struct core *c = op->core;
    struct core_session *s = &c->session;

    if (op->failed || c->forced) {
        int status = c->forced ? -EIO : op->q ? -ENOMEM : -AIFS_ECANCELLED;

        slot_release(op, false);
        op_finish(op, status);
        return;
    }
    if ((op->slot >= 0 && op->generation != s->epoch && !outlives_session(op)) ||
        (op->only_epoch && (op->only_epoch != s->epoch || !s->id))) {
        op->slot = -1; /* its session is gone, its outcome unknown */
        op_finish(op, -AIFS_ESESSION);
        return;
    }
    if (op->slot >= 0 && op->generation != s->epoch)
        op->slot = -1;
    if (s->state != SESSION_READY || (wants_slot(op) && !session_believed(c))) {
        list_push_back(&s->session_waiters, &op->wait);
        return;
    }
    if (op->slot < 0 && wants_slot(op) && batch_gather(op))
        return;
    if (creating_makes(op) && op->slot < 0) /* it has been gathered, and leaves by itself */
        creating_load(op);
    if (wants_slot(op) && op->slot < 0 && !slot_take(op)) {
        if (op->writes_back)
            list_push_front(&s->slot_waiters, &op->wait);
        else
            list_push_back(&s->slot_waiters, &op->wait);
        return;
    }
    op_send(op);
}

struct answer answer_of(const struct mds_op *op)
{
    return (struct answer){.event = op->event,
                           .kept = op->generation == op->core->session.epoch ? op->call.header.flags
                                                                             : 0};
}

bool answer_current(const struct core *c, const struct answer *a)
{
    return c->session.id && a->event >= c->unknown_event;
}

bool mds_op_is_current(const struct mds_op *op)
{
    return op->core->session.id && op->generation == op->core->session.epoch;
}

/* By a file's open, which is its session's. */
static bool is_by_open(const struct mds_op *op)
{
    switch (op->call.op) {
    case RPC_OP_WRITE_INLINE:
    case RPC_OP_GROW:
    case RPC_OP_SIZE:
    case RPC_OP_APPEND_RANGE:
    case RPC_OP_LOCK:
        return true;
    case RPC_OP_SETATTR:
        return op->msg.setattr.set & MSG_SET_SIZE && op->msg.setattr.open_id;
    default:
        return false;
    }
}

void mds_op_start(struct mds_op *op)
{
    bool ends;

    if (op->may_ahead && behind_try(op))
        return;
    if (is_by_open(op))
        op->only_epoch = op->core->session.epoch;
    ends = op->failed || op->core->forced || (op->only_epoch && !op->core->session.id);
    page_doubt(op);
    for (unsigned i = 0; i < ARRAY_LEN(op->dirs); i++)
        if (op->dirs[i])
            invalidate_begin_change(op->core, op->dirs[i]);
    if (op->ahead)
        list_push_front(&op->core->ops, &op->link);
    else
        list_push_back(&op->core->ops, &op->link);
    if (ends) /* done() must not run before the caller is ready */
        reactor_timer_start(op->core->reactor, &op->timer, 0);
    else if (!op->core->behind.n || op->ahead || !behind_holds(op))
        mds_op_go(op);
}

void mds_resume(struct core *c)
{
    struct list now, *l;

    list_init(&now);
    list_splice(&now, &c->session.session_waiters);
    list_splice(&now, &c->session.slot_waiters);
    while ((l = list_pop_front(&now)) != NULL)
        mds_op_go(list_entry(l, struct mds_op, wait));
}

void mds_new_link(struct core *c)
{
    struct list *l;

    list_for_each (l, &c->ops) {
        struct mds_op *op = list_entry(l, struct mds_op, link);

        if (op->sent)
            op->call.incarnation = c->session.incarnation;
    }
}

void mds_op_end(struct mds_op *op, int status)
{
    ASSERT(!op->sent && op->slot < 0);
    op_finish(op, op->core->forced ? -EIO : status);
}

/* Forced unmount: everything ends soon, without waiting for anybody. */
void mds_fail_all(struct core *c)
{
    struct list *l, *tmp;

    list_for_each_safe (l, tmp, &c->ops) {
        struct mds_op *op = list_entry(l, struct mds_op, link);

        if (op->sent) {
            rpc_call_cancel(&op->call);
        } else if (!op->carried) { /* else it ends with its carrier */
            op->held = op->large = false;
            list_remove(&op->wait);
            reactor_timer_start(c->reactor, &op->timer, 0);
        }
    }
}

void mds_tick(struct core *c, uint64_t now)
{
    struct list *l;

    list_for_each (l, &c->ops) {
        struct mds_op *op = list_entry(l, struct mds_op, link);

        if (op->hung_logged || now - op->started_ns < c->o.hung_log_ns ||
            (op->ahead && !op->flies &&
             !op->sent)) /* what carries it, or it waits for, is logged */
            continue;
        op->hung_logged = true;
        c->stats.hung++;
        LOG_WARN("client", "metadata server %s: %s has not been answered for %llu s (%s)",
                 c->o.mds[0], rpc_op_name(op->call.op),
                 (unsigned long long)((now - op->started_ns) / NS_PER_S),
                 op->sent || op->carried ? (rpc_peer_is_up(c->session.peer)
                                                ? "the server is connected"
                                                : err_text(rpc_peer_last_error(c->session.peer)))
                                         : "waits for the session");
    }
}

void mds_fini(struct core *c)
{
    struct list *l;

    while ((l = list_pop_front(&c->free_ops)) != NULL)
        mem_free(list_entry(l, struct mds_op, link));
    c->n_free_ops = 0;
}
