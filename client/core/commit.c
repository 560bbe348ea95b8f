/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making unstable writes durable, target by target.
 *
 * Happy path: acknowledged unstable pieces of a block are in block.unc and the block hangs on the
 * inode_target of (inode, target). One COMMIT per target is under way at a time and takes every
 * inode that wants one by then, so that many callers share it; while it runs the pieces are in
 * block.committing; its answer clears them.
 *
 * Failure: an answer with another verifier means that the target may have forgotten: everything
 * uncommitted there is dirty again and will be sent again, unless the write lease is gone, when it
 * is an error of the file. A COMMIT that fails for good is an error of each file in it.
 */
#include "client/core/core_int.h"

#define COMMIT_AHEAD_MIN (2u * MIB)
#define COMMIT_AHEAD_MAX (16u * MIB)
/* Who has written so much since the last is a stream. */
#define COMMIT_AHEAD_PART CORE_LARGE_BYTES

static void commit_run(struct oss_target *t);

static struct inode_target *it_find(struct core_inode *i, const struct oss_target *t)
{
    struct list *l;

    list_for_each (l, &i->targets) {
        struct inode_target *it = list_entry(l, struct inode_target, by_inode);

        if (it->target == t)
            return it;
    }
    return NULL;
}

static struct inode_target *it_get(struct core_inode *i, struct oss_target *t)
{
    struct inode_target *it = it_find(i, t);

    if (it)
        return it;
    it = core_no_memory() ? NULL : mem_zalloc(sizeof *it);
    if (!it)
        return NULL;
    it->inode = inode_ref(i);
    it->target = t;
    it->created = i->core->commit_clock;
    list_init(&it->queue);
    list_init(&it->ahead);
    list_init(&it->replay);
    list_init(&it->blocks);
    list_push_back(&i->targets, &it->by_inode);
    return it;
}

static void ahead_leave(struct inode_target *it)
{
    if (!list_empty(&it->ahead))
        it->target->ahead_bytes -= it->new_bytes;
    list_remove(&it->ahead);
    it->new_bytes = 0;
}

static void ahead_note(struct inode_target *it, uint32_t bytes)
{
    struct oss_target *t = it->target;

    it->new_bytes += bytes;
    if (!list_empty(&it->ahead)) {
        t->ahead_bytes += bytes;
    } else if (it->new_bytes >= COMMIT_AHEAD_PART) {
        list_push_back(&t->ahead, &it->ahead);
        t->ahead_bytes += it->new_bytes;
    }
}

/* Nothing uncommitted left and no COMMIT under way: it is gone. */
static void it_settle(struct inode_target *it)
{
    struct core_inode *i = it->inode;

    if (!list_empty(&it->blocks) || it->in_flight)
        return;
    ahead_leave(it);
    list_remove(&it->by_inode);
    list_remove(&it->queue);
    list_remove(&it->replay);
    mem_free(it);
    inode_put(i);
}

static uint32_t unc_bytes(const struct block *b)
{
    return extents_bytes(&b->unc) + extents_bytes(&b->committing);
}

static void block_leave(struct block *b)
{
    struct inode_target *it = b->unc_in;

    b->unc_in = NULL;
    list_remove(&b->unc_link);
    if (it)
        it_settle(it);
}

void commit_forget_block(struct block *b)
{
    if (!b->unc_in)
        return;
    b->inode->core->uncommitted_bytes -= unc_bytes(b);
    extents_clear(&b->unc);
    extents_clear(&b->committing);
    block_leave(b);
}

void commit_cut_block(struct block *b, uint32_t at)
{
    uint32_t before = unc_bytes(b);

    extents_cut(&b->unc, at);
    extents_cut(&b->committing, at);
    b->inode->core->uncommitted_bytes -= before - unc_bytes(b);
    if (!unc_bytes(b))
        block_leave(b);
}

static void it_queue(struct inode_target *it)
{
    if (!list_empty(&it->queue) || it->in_flight)
        return;
    list_push_back(&it->target->commit_queue, &it->queue);
}

/* The memory of streams comes back with the answer of a COMMIT, behind what is queued for the
 * target by then: it is asked for long before the memory is spent, by all of them together. */
static void commit_ahead(const struct core_inode *i, struct oss_target *t)
{
    uint64_t share = mem_stream_bytes(i->core) / 4 / MAX(i->layout.stripe_count, 1u);
    struct list *l;

    if (t->ahead_bytes < MIN(MAX(share, COMMIT_AHEAD_MIN), COMMIT_AHEAD_MAX))
        return;
    list_for_each (l, &t->ahead)
        it_queue(list_entry(l, struct inode_target, ahead));
    commit_run(t);
}

void commit_note_written(struct oss_io *io)
{
    struct block *b = io->block;
    struct core *c = io->core;
    struct inode_target *it = it_get(io->inode, io->target);
    uint32_t before = unc_bytes(b);

    if (!it || (b->unc_in && b->unc_in != it) ||
        extents_add(&b->unc, io->start, io->start + io->len)) {
        /* no place to remember it: write it once more, durably */
        if (it)
            it_settle(it);
        if (block_set_dirty(b, io->start, io->start + io->len))
            block_dirty_valid(b);
        flush_unsent(io->inode);
        block_send(b, true);
        return;
    }
    if (!b->unc_in) {
        b->unc_in = it;
        list_push_back(&it->blocks, &b->unc_link);
    }
    c->uncommitted_bytes += unc_bytes(b) - before;
    inode_mark_dirty(io->inode);
    ahead_note(it, io->len);
    commit_ahead(io->inode, io->target);
}

void commit_request(struct core_inode *i)
{
    struct list *l, *tmp;

    list_for_each_safe (l, tmp, &i->targets) {
        struct inode_target *it = list_entry(l, struct inode_target, by_inode);

        it->again = it->in_flight;
        it_queue(it);
    }
    list_for_each_safe (l, tmp, &i->targets) {
        commit_run(list_entry(l, struct inode_target, by_inode)->target);
    }
}

/* Has everything that was written before the ticket was drawn been committed? */
bool commit_reached(const struct core_inode *i, uint64_t ticket)
{
    struct list *l;

    list_for_each (l, &i->targets) {
        const struct inode_target *it = list_entry(l, struct inode_target, by_inode);

        if (it->created < ticket && it->ticket < ticket)
            return false;
    }
    return true;
}

static void blocks_to_committing(struct inode_target *it)
{
    struct list *l;

    it->partial = false;
    ahead_leave(it);
    list_for_each (l, &it->blocks) {
        struct block *b = list_entry(l, struct block, unc_link);
        struct extent e;
        uint32_t at = 0;

        while (extents_next(&b->unc, at, &e)) {
            if (extents_add(&b->committing, e.start, e.end))
                break; /* too many pieces: the rest goes with the next one */
            at = e.end;
        }
        it->partial |= extents_next(&b->unc, at, &e);
        extents_drop_before(&b->unc, at);
    }
}

/* Blocks that belong to no target any more. What waits for one goes on, and may free others. */
static void settle_all(struct list *blocks)
{
    struct list *l;

    while ((l = list_pop_front(blocks)) != NULL)
        block_settle(list_entry(l, struct block, unc_link));
}

/* May free it. */
static void committed(struct inode_target *it, uint64_t ticket)
{
    struct core *c = it->inode->core;
    struct list *l, *tmp, done;
    bool rest = false;

    it->in_flight = false;
    list_init(&done);
    list_for_each_safe (l, tmp, &it->blocks) {
        struct block *b = list_entry(l, struct block, unc_link);

        c->uncommitted_bytes -= extents_bytes(&b->committing);
        extents_clear(&b->committing);
        scatter_tidy(b);
        if (!extents_empty(&b->unc)) {
            rest = true;
            continue;
        }
        b->unc_in = NULL;
        list_remove(&b->unc_link);
        list_push_back(&done, &b->unc_link);
    }
    if (!it->partial)
        it->ticket = ticket;
    if (rest && (it->again || it->partial))
        it_queue(it);
    it->again = false;
    it_settle(it);
    settle_all(&done);
}

/* What was not committed is dirty again. */
static void block_replay(struct block *b)
{
    struct core *c = b->inode->core;
    struct extents both = b->unc;
    struct extent e;
    uint32_t at = 0;

    while (extents_next(&b->committing, at, &e)) {
        if (extents_add(&both, e.start, e.end))
            both = b->valid; /* a superset */
        at = e.end;
    }
    c->uncommitted_bytes -= unc_bytes(b);
    extents_clear(&b->unc);
    extents_clear(&b->committing);
    if (b->inode->lease != MSG_LEASE_WRITE) {
        inode_set_error_at(b->inode, -EIO, "replay without a lease", b->unc_in->target);
        return;
    }
    for (at = 0; extents_next(&both, at, &e); at = e.end) {
        if (block_set_dirty(b, e.start, e.end)) { /* too scattered beside what is dirty already */
            block_dirty_valid(b);
            break;
        }
    }
    c->stats.replays++;
}

static void it_replay(struct inode_target *it)
{
    struct core_inode *i = inode_ref(it->inode);
    struct list done, *l;

    LOG_INFO("client", "target %u has restarted: writing uncommitted data of inode %llu again",
             it->target->id, (unsigned long long)i->ino);
    list_init(&done);
    while ((l = list_pop_front(&it->blocks)) != NULL) {
        struct block *b = list_entry(l, struct block, unc_link);

        block_replay(b);
        b->unc_in = NULL;
        list_push_back(&done, l);
    }
    it_settle(it);
    settle_all(&done);
    flush_replayed(i);
    inode_put(i);
}

void commit_verifier(struct oss_target *t, uint64_t verifier)
{
    struct core *c = t->core;
    struct list *l, replays;
    bool changed = t->verifier && t->verifier != verifier;

    t->verifier = verifier;
    if (!changed)
        return;
    t->grant = 0;
    list_init(&replays);
    list_for_each (l, &c->dirty_inodes) {
        struct inode_target *it = it_find(list_entry(l, struct core_inode, dirty_link), t);

        if (it) {
            list_remove(&it->replay);
            list_push_back(&replays, &it->replay);
        }
    }
    while ((l = list_pop_front(&replays)) != NULL)
        it_replay(list_entry(l, struct inode_target, replay));
}

/* Nobody knows what the target has: who reads it here is to see that. What it has taken since lies
 * over it, and goes with the next one. False: there is nothing of it here any more. It went with
 * its session, which has been noted, or is dirty again. */
static bool forget_uncommitted(struct inode_target *it)
{
    bool any = false;
    struct list *l;

    list_for_each (l, &it->blocks) {
        struct block *b = list_entry(l, struct block, unc_link);
        struct extents lost = b->committing;
        struct extent e;
        uint32_t at;

        any |= !extents_empty(&lost);
        for (at = 0; extents_next(&b->unc, at, &e); at = e.end)
            if (extents_remove(&lost, e.start, e.end))
                break; /* too scattered to note: of the rest too */
        for (at = 0; extents_next(&lost, at, &e); at = e.end)
            block_not_stored(b, e.start, e.end);
    }
    return any;
}

static void commit_over(struct oss_target *t, int status)
{
    struct core *c = t->core;
    struct list *l;

    while ((l = list_pop_front(&t->committing)) != NULL) {
        struct inode_target *it = list_entry(l, struct inode_target, queue);
        struct core_inode *i = inode_ref(it->inode);

        if (status && forget_uncommitted(it))
            inode_set_error_at(i, c->forced ? -EIO : status, "commit", t);
        committed(it, t->commit_ticket);
        flush_step(i);
        inode_put(i);
    }
    t->commit_busy = false;
    c->commits_busy--;
    core_kick(c);
    if (!status)
        mem_freed(c);
    commit_run(t);
}

static void commit_failed(struct oss_target *t, int status)
{
    struct core *c = t->core;
    struct retry r =
        retry_oss_write(status == -AIFS_ECANCELLED ? -AIFS_ECONN : status, t->commit_attempt);

    if (r.action != RETRY_FAIL && !c->forced &&
        !(c->o.soft && reactor_now_ns(c->reactor) - t->commit_sent_ns > c->o.timeo_ns)) {
        t->commit_attempt++;
        if (r.action == RETRY_MAP)
            cmap_refresh(c);
        reactor_timer_start(c->reactor, &t->commit_timer, reactor_now_ns(c->reactor) + r.delay_ns);
        return;
    }
    commit_over(t, r.status);
}

static void commit_called(struct rpc_call *call, int status)
{
    struct oss_target *t = call->arg;
    const struct msg_commit_rep *rep = call->rep;

    if (session_is_over(status))
        session_lost(t->core, t->commit_epoch, status);
    if (status) {
        commit_failed(t, status);
        return;
    }
    commit_verifier(
        t,
        rep->verifier); /* replays empty the lists of blocks: nothing is taken as committed below */
    commit_over(t, 0);
}

static void commit_send(struct oss_target *t)
{
    struct oss_node *o = t->core->forced ? NULL : oss_node_of(t->core, t->id);

    if (oss_given_up(t->core, t->id)) {
        commit_failed(t, -AIFS_ELOST);
        return;
    }
    if (!o) {
        commit_failed(t, -AIFS_EDOWN); /* forced: for good; nobody would call it back */
        return;
    }
    rpc_call_fini(&t->commit_call);
    rpc_call_init(&t->commit_call, RPC_OP_OSS_COMMIT, &t->commit_req, commit_called, t);
    oss_call_header(t->core, &t->commit_call, o);
    t->commit_call.flags |= RPC_CALL_URGENT; /* of what is answered; not behind what is not sent */
    t->commit_node = o;
    t->commit_epoch = t->core->session.epoch;
    rpc_peer_call(o->peer, &t->commit_call);
}

static void commit_timer(struct reactor_timer *timer)
{
    commit_send(container_of(timer, struct oss_target, commit_timer));
}

static void commit_run(struct oss_target *t)
{
    struct list *l;
    uint32_t n = 0;

    if (t->commit_busy || list_empty(&t->commit_queue))
        return;
    if (!t->commit_timer.fn) {
        reactor_timer_init(&t->commit_timer, commit_timer);
        rpc_call_init(&t->commit_call, RPC_OP_OSS_COMMIT, &t->commit_req, commit_called, t);
    }
    t->commit_ticket = ++t->core->commit_clock;
    while (n < ARRAY_LEN(t->commit_inos) && (l = list_pop_front(&t->commit_queue)) != NULL) {
        struct inode_target *it = list_entry(l, struct inode_target, queue);

        it->in_flight = true;
        blocks_to_committing(it);
        list_push_back(&t->committing, &it->queue);
        t->commit_inos[n++] = it->inode->ino;
    }
    t->commit_req = (struct msg_commit_req){.target = t->id, .n_inos = n, .inos = t->commit_inos};
    t->commit_attempt = 0;
    t->commit_busy = true;
    t->core->commits_busy++;
    t->commit_sent_ns = reactor_now_ns(t->core->reactor);
    if (oss_given_up(t->core, t->id)) /* nothing fails inside commit_request() */
        reactor_timer_start(t->core->reactor, &t->commit_timer, 0);
    else
        commit_send(t);
}

void commit_new_link(struct core *c, const struct oss_node *o)
{
    struct hmap_node *h, *next;
    size_t pos;

    hmap_for_each (h, next, pos, &c->oss_targets) {
        struct oss_target *t = container_of(h, struct oss_target, node);

        if (t->commit_busy && t->commit_node == o)
            t->commit_call.incarnation = o->incarnation;
    }
}

void commit_new_map(struct core *c)
{
    struct hmap_node *h, *next;
    size_t pos;

    hmap_for_each (h, next, pos, &c->oss_targets) {
        struct oss_target *t = container_of(h, struct oss_target, node);

        if (t->commit_busy && !reactor_timer_running(&t->commit_timer) && oss_given_up(c, t->id))
            rpc_call_cancel(&t->commit_call); /* the next try finds that it is lost */
    }
}

void commit_cancel_all(struct core *c)
{
    struct hmap_node *h, *next;
    size_t pos;

    hmap_for_each (h, next, pos, &c->oss_targets) {
        struct oss_target *t = container_of(h, struct oss_target, node);

        if (!t->commit_busy)
            continue;
        if (reactor_timer_running(&t->commit_timer))
            reactor_timer_start(c->reactor, &t->commit_timer, 0);
        else
            rpc_call_cancel(&t->commit_call);
    }
}

void commit_target_fini(struct oss_target *t)
{
    if (!t->commit_timer.fn)
        return;
    reactor_timer_cancel(t->core->reactor, &t->commit_timer);
    rpc_call_fini(&t->commit_call);
}
