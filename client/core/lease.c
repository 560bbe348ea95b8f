/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data leases at the client: what the server grants with its replies, and what it asks back.
 *
 * Happy path of a recall: answered at once; the kernel drops its pages (reads and writes go on
 * under the lease until it has); the gate closes and the last requests drain; what is dirty is
 * written and committed; LEASE_RELEASE tells size and mtime; the cache is dropped, the gate opens
 * and work goes on without a lease. One that nobody has used goes at once: see reopen.c.
 *
 * Failure: a recall may overtake the reply that grants the lease: it is remembered and the grant
 * counts as taken back; and so may all of a recall and its release. The reply may also come when
 * its session is lost: then it grants nothing. A release that fails, or for which there is no
 * memory, is made again; what it gives back is dropped here at once. If data cannot be written in
 * time, or the server does not hear of a release, it evicts this client, which ends in
 * lease_lost().
 */
#include "client/core/core_int.h"

#define RELEASE_TRIES_MAX 32u
#define RELEASE_PACE_NS   (400 * NS_PER_MS)

static bool recalled_early(struct core *c, uint64_t ino, uint64_t seq)
{
    unsigned k;

    for (k = 0; k < CORE_EARLY_RECALLS; k++)
        if (c->early[k].ino == ino && c->early[k].seq == seq)
            return true;
    return false;
}

/* What is on its way back was granted anew meanwhile, to another open: that goes back instead. */
static void regranted(struct core_inode *i, uint64_t seq)
{
    i->lease_seq = MAX(i->lease_seq, seq);
}

void lease_reply(struct core_inode *i, const struct mds_op *op, const struct msg_inode *m)
{
    enum msg_lease was = i->lease, now = m->lease;

    if (!mds_op_is_current(op))
        return;
    if (i->recalling && now != MSG_LEASE_NONE)
        regranted(i, m->lease_seq);
    if (now != MSG_LEASE_NONE && recalled_early(i->core, i->ino, m->lease_seq))
        now = MSG_LEASE_NONE;
    if (i->given_seq == m->lease_seq)
        now = MIN(now, i->given_keep); /* this answer was overtaken by all of a recall */
    if (!list_empty(&i->release.link) && i->release.seq == m->lease_seq)
        now = MIN(now, i->release.keep); /* the server is about to hear of it */
    /* A better one goes back with the first; but it is held until then, and who is inside the gate
     * has to write under it: the server takes nothing else from its holder. */
    if (i->recalling && (now <= was || m->lease_seq != i->lease_seq))
        return;
    if (was == MSG_LEASE_WRITE && now != MSG_LEASE_WRITE &&
        (i->dirty_bytes || !list_empty(&i->ios) || !list_empty(&i->targets) ||
         !list_empty(&i->straight) || i->meta_seq != i->meta_done || i->giving_up))
        return; /* the server asks for it with a recall; until then there is something to write */
    if (was == MSG_LEASE_NONE && i->data_change != m->attr.change)
        blocks_drop_all(i, true);
    i->lease = now;
    i->lease_seq = m->lease_seq;
    if (now == MSG_LEASE_NONE) {
        blocks_drop_all(i, true);
        i->data_change = 0;
        return;
    }
    i->data_change = m->attr.change;
    if (was != MSG_LEASE_WRITE && now == MSG_LEASE_WRITE) {
        if (i->meta_seq == i->meta_done)
            i->wrote_at = i->attr.mtime; /* others may have changed it */
        else
            i->attr.mtime = i->wrote_at; /* a write without a lease, to be reported */
    }
    if (was == MSG_LEASE_NONE) {
        i->acked_size = i->known_size = i->attr.size;
        i->server_has_inline = i->in_line && i->attr.size > 0;
    }
}

/* ---- giving back ---- */

/* The server has not heard that this lease was dropped: it will. */
static void release_later(struct core_inode *i, uint64_t seq, enum msg_lease keep)
{
    struct core *c = i->core;

    if (c->forced || !c->session.id || c->session.closing)
        return;
    if (list_empty(&i->release.link)) {
        inode_ref(i);
        list_push_back(&c->releases, &i->release.link);
    }
    i->release.seq = seq;
    i->release.keep = keep;
    i->release.epoch = c->session.epoch;
    i->release.tries = 0;
    i->release.at_ns = reactor_now_ns(c->reactor) + RELEASE_PACE_NS;
}

static void release_forget(struct core_inode *i)
{
    if (list_empty(&i->release.link))
        return;
    list_remove(&i->release.link);
    inode_put(i);
}

/* From here on work goes on with what is kept. */
static void lease_lower(struct core_inode *i, enum msg_lease keep)
{
    i->lease = MIN(i->lease, keep);
    i->given_seq = i->lease_seq;
    i->given_keep = i->lease;
    i->lease_temporary = false;
    if (i->lease == MSG_LEASE_NONE) {
        blocks_drop_all(i, true);
        i->data_change = 0;
    }
    inode_expire(i->core, i->ino);
}

/* Our side of it. */
static void release_here(struct core_inode *i)
{
    lease_lower(i, i->recall_keep);
    i->recalling = i->recall_gated = false;
    gate_open(i);
    inode_settle(i);
    inode_put(i);
}

static void recall_flushed(struct flush_wait *w);

static void released(struct mds_op *op, int status)
{
    struct core_inode *i = op->inode;

    if (status)
        LOG_WARN("client", "release of the lease of inode %llu: %s", (unsigned long long)i->ino,
                 err_text(status));
    if (!i->recalling || op->only_epoch != i->core->session.epoch)
        return; /* the session was lost meanwhile, and what goes back now is of the next */
    if (!session_is_over(status) && op->msg.lease.lease_seq != i->lease_seq) {
        recall_flushed(&i->recall_wait); /* nothing was written since: the gate is closed */
        return;
    }
    if (status && !session_is_over(status))
        release_later(i, op->msg.lease.lease_seq, op->msg.lease.lease);
    release_here(i);
}

static struct mds_op *release_op(struct core *c, uint64_t ino, uint64_t seq, enum msg_lease keep,
                                 void (*done)(struct mds_op *op, int status))
{
    struct mds_op *op =
        FAULT("client.release.memory") ? NULL : mds_op_new(c, RPC_OP_LEASE_RELEASE, NULL, done);

    if (op) {
        op->only_epoch = c->session.epoch;
        op->msg.lease = (struct msg_lease_req){.ino = ino, .lease = keep, .lease_seq = seq};
    }
    return op;
}

static void recall_flushed(struct flush_wait *w)
{
    struct core_inode *i = container_of(w, struct core_inode, recall_wait);
    struct mds_op *op;

    if (!i->recalling)
        return;
    op = release_op(i->core, i->ino, i->lease_seq, i->recall_keep, released);
    if (!op) { /* size and mtime went with the flush */
        release_later(i, i->lease_seq, i->recall_keep);
        release_here(i);
        return;
    }
    op->inode = inode_ref(i);
    if (i->lease == MSG_LEASE_WRITE) {
        op->msg.lease.has_size = true;
        op->msg.lease.size = i->attr.size;
        op->msg.lease.mtime = i->meta_seq ? i->wrote_at : i->attr.mtime;
        op->msg.lease.truncate_gen = i->attr.truncate_gen;
    }
    mds_op_start(op);
}

static void recall_drained(struct gate_waiter *w)
{
    struct core_inode *i = container_of(w, struct core_inode, recall_gate);

    if (!i->recalling)
        return;
    i->recall_wait.q = NULL;
    flush_start(i, &i->recall_wait, true, recall_flushed);
}

/* One notification of an inode at a time: what is asked for meanwhile may have come too late for it
 * and goes after it. */
static void kernel_drops(struct core_inode *i, bool data)
{
    struct core *c = i->core;

    if (i->inval_busy) {
        i->inval_again_data = data || (i->inval_again && i->inval_again_data);
        i->inval_again = true;
        return;
    }
    inode_ref(i);
    i->inval_busy = true;
    i->inval.ino = i->ino;
    i->inval.data = data;
    if (c->o.events.inval_inode && (!i->lease_temporary || !list_empty(&i->inval_waits))) {
        gate_growth_over(i); /* reads: they may hold the kernel's pages */
        c->o.events.inval_inode(c->o.events.arg, &i->inval);
    } else {
        core_inval_done(c, &i->inval);
    }
}

void lease_kernel_drops(struct core_inode *i)
{
    if (!list_empty(&i->files))
        kernel_drops(i, true);
}

void lease_kernel_drops_then(struct core_inode *i, struct inval_wait *w)
{
    w->turns = i->inval_busy ? 2 : 1;
    list_push_back(&i->inval_waits, &w->link);
    kernel_drops(i, true);
}

/* One notification is over: those who have waited for it go to over. */
static void inval_turn(struct core_inode *i, struct list *over)
{
    struct list *l, *tmp;

    list_init(over);
    list_for_each_safe (l, tmp, &i->inval_waits) {
        if (--list_entry(l, struct inval_wait, link)->turns == 0) {
            list_remove(l);
            list_push_back(over, l);
        }
    }
}

void core_inval_done(struct core *c, struct core_inval *v)
{
    struct core_inode *i = container_of(v, struct core_inode, inval);
    struct list over, *l;

    (void)c;
    if (!i->inval_busy)
        return;
    i->inval_busy = false;
    inval_turn(i, &over);
    if (i->inval_again) {
        i->inval_again = false;
        kernel_drops(i, i->inval_again_data);
    } else if (i->recalling && !i->recall_gated) {
        i->recall_gated = true;
        gate_close(i);
        gate_when_drained(i, &i->recall_gate, recall_drained);
    }
    while ((l = list_pop_front(&over)) != NULL) {
        struct inval_wait *w = list_entry(l, struct inval_wait, link);

        w->fn(w);
    }
    inode_put(i);
}

bool lease_only_to_grow(const struct core_inode *i)
{
    return i->lease == MSG_LEASE_WRITE && i->lease_temporary;
}

void lease_give_up(struct core_inode *i, enum msg_lease keep)
{
    if (i->recalling) {
        i->recall_keep = MIN(i->recall_keep, keep);
        return;
    }
    inode_ref(i);
    i->recalling = true;
    i->recall_keep = keep;
    kernel_drops(i, keep == MSG_LEASE_NONE);
}

void lease_lost(struct core_inode *i)
{
    struct list *l;
    bool had = i->dirty_bytes || !list_empty(&i->targets) || !list_empty(&i->ios) ||
               i->meta_seq != i->meta_done;

    inode_ref(i);
    release_forget(i);
    i->lease = MSG_LEASE_NONE;
    i->lease_temporary = false;
    i->lease_unused = true;
    i->data_change = 0;
    inode_expire(i->core, i->ino);
    inode_doubt_size(i);
    if (had)
        inode_set_error(i, -EIO, "write-back of a lost session");
    flush_meta_over(i, i->meta_seq);
    i->need_grow = i->ctime_due = i->mtime_due = false;
    i->giving_up = 0;
    i->in_line = (i->attr.flags & MSG_ATTR_INLINE) != 0;
    blocks_drop_all(i, true);
    list_for_each (l, &i->ios) {
        oss_io_cancel(list_entry(l, struct oss_io, by_inode));
    }
    straight_lost(i);
    if (i->recalling) {
        i->recalling = false;
        list_remove(&i->recall_gate.link);
        flush_cancel(&i->recall_wait);
        if (i->recall_gated)
            gate_open(i);
        i->recall_gated = false;
        inode_put(i);
    }
    if (!i->core->forced)
        lease_kernel_drops(i);
    gate_growth_over(i);
    flush_step(i);
    inode_put(i);
}

/* ---- once more ---- */

static void released_again(struct mds_op *op, int status)
{
    struct core_inode *i = op->inode;

    i->release.busy = false;
    if (op->msg.lease.lease_seq != i->release.seq || list_empty(&i->release.link))
        return; /* another one is due by now, or none */
    if (status && !session_is_over(status) && i->release.tries < RELEASE_TRIES_MAX)
        return; /* the tick comes again */
    if (status)
        LOG_ERROR("client", "the lease of inode %llu cannot be released: %s",
                  (unsigned long long)i->ino, err_text(status));
    release_forget(i);
}

static void release_again(struct core_inode *i, uint64_t now)
{
    struct mds_op *op =
        release_op(i->core, i->ino, i->release.seq, i->release.keep, released_again);

    i->release.at_ns = now + RELEASE_PACE_NS;
    if (!op)
        return;
    op->inode = inode_ref(i);
    i->release.tries++;
    i->release.busy = true;
    mds_op_start(op);
}

void lease_tick(struct core *c, uint64_t now)
{
    struct list due, *l;

    list_init(&due);
    list_splice(&due, &c->releases);
    while ((l = list_pop_front(&due)) != NULL) {
        struct core_inode *i = list_entry(l, struct core_inode, release.link);

        list_push_back(&c->releases, l);
        if (i->release.epoch != c->session.epoch || c->forced)
            release_forget(i);
        else if (!i->release.busy && now >= i->release.at_ns)
            release_again(i, now);
    }
}

/* ---- from the server ---- */

static void released_unknown(struct mds_op *op, int status)
{
    struct core_inode *i = status && !session_is_over(status) ? op->inode : NULL;

    if (i && i->lease_seq <= op->msg.lease.lease_seq)
        release_later(i, op->msg.lease.lease_seq, op->msg.lease.lease);
}

static void recall_not_held(struct core *c, struct mds_op *op)
{
    c->early[c->early_next].ino = op->msg.lease.ino;
    c->early[c->early_next].seq = op->msg.lease.lease_seq;
    c->early_next = (c->early_next + 1) % CORE_EARLY_RECALLS;
    op->inode = inode_get(c, op->msg.lease.ino);
    mds_op_start(op);
    file_send_closes(c);
}

/* It has come with a file that is opened again, others of the inode are still to be (reopen.c), and
 * the server knows all there is: no request has used it, and the kernel has nothing under it. */
static bool is_unused(const struct core_inode *i)
{
    return i->lease_unused && i->n_closed && !i->recalling && i->meta_seq == i->meta_done &&
           !i->meta_busy && !i->ctime_due && !i->mtime_due && !i->giving_up;
}

/* NULL: unknown here. A lease that nobody has used is none any more. */
static struct core_inode *recalled_inode(struct core *c, const struct msg_recall_req *m)
{
    struct core_inode *i = inode_find(c, m->ino);

    if (i && i->lease > m->keep && m->lease_seq >= i->lease_seq && is_unused(i))
        lease_lower(i, m->keep);
    return i;
}

static void handle_recall(struct rpc_req *req)
{
    struct core *c = req->handler_arg;
    struct msg_recall_req m = *(const struct msg_recall_req *)req->msg;
    struct core_inode *i = recalled_inode(c, &m);
    bool history = i && i->lease != MSG_LEASE_NONE && m.lease_seq < i->lease_seq;
    bool held = i && i->lease > m.keep && m.lease_seq == i->lease_seq;
    bool newer = i && i->lease > m.keep && m.lease_seq > i->lease_seq;
    struct mds_op *op = NULL;

    c->stats.recalls++;
    if (m.keep > MSG_LEASE_WRITE || history || newer || (!held && i && i->recalling)) {
        if (!history && m.keep <= MSG_LEASE_WRITE && m.lease_seq > i->lease_seq) {
            regranted(i, m.lease_seq); /* the answer that says so is to come */
            lease_give_up(i, m.keep);
        }
        rpc_reply(req, 0, &(struct msg_empty){0});
    } else if (held) {
        rpc_reply(req, 0, &(struct msg_empty){0});
        lease_give_up(i, m.keep);
    } else {
        op = release_op(c, m.ino, m.lease_seq, m.keep, released_unknown);
        rpc_reply(req, op ? 0 : -AIFS_ELEASE, &(struct msg_empty){0});
        if (op)
            recall_not_held(c, op);
    }
}

static void handle_glimpse(struct rpc_req *req)
{
    struct core *c = req->handler_arg;
    const struct msg_ino_req *m = req->msg;
    const struct core_inode *i = inode_find(c, m->ino);
    struct msg_glimpse_rep rep = {0};

    c->stats.glimpses++;
    /* A write that lets a file grow under a lease of its own is shown when the server knows it:
     * readers without a lease see no more than that, nor do those here (gate.h). */
    if (i && i->lease == MSG_LEASE_WRITE && !i->lease_temporary)
        rep = (struct msg_glimpse_rep){.held = true, .size = i->attr.size, .mtime = i->attr.mtime};
    rpc_reply(req, 0, &rep);
}

static void handle_map_changed(struct rpc_req *req)
{
    struct core *c = req->handler_arg;

    rpc_reply(req, 0, &(struct msg_empty){0});
    cmap_refresh(c);
}

void lease_handlers(struct core *c)
{
    rpc_node_handle(c->node, RPC_OP_RECALL, handle_recall, c);
    rpc_node_handle(c->node, RPC_OP_GLIMPSE, handle_glimpse, c);
    rpc_node_handle(c->node, RPC_OP_MAP_CHANGED, handle_map_changed, c);
}
