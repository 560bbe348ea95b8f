/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life of a request: begin, wait in one place at a time, end once.
 *
 * A request that waits names a cancel function: it must take the request out of wherever it is and
 * end it. Cancelling comes from core_cancel() (interrupts), from a soft mount's time-out and from a
 * forced unmount.
 */
#include "client/core/core_int.h"

void req_begin(struct core *c, struct core_req *q, const char *what, uint64_t ino)
{
    memset(&q->p, 0, sizeof q->p);
    list_init(&q->p.wait);
    q->p.core = c;
    q->p.what = what;
    q->p.state = "starts";
    q->p.ino = ino;
    q->p.started_ns = q->p.timed_ns = reactor_now_ns(c->reactor);
    list_push_back(&c->in_flight, &q->p.link);
    c->stats.requests++;
    c->stats.in_flight++;
}

void req_end(struct core_req *q, int status)
{
    q->p.core->stats.in_flight--;
    list_remove(&q->p.link);
    list_remove(&q->p.wait);
    q->p.cancel = NULL;
    q->p.op = NULL;
    q->p.state = "done";
    q->done(q, status);
}

void req_wait(struct core_req *q, const char *state, void (*cancel)(struct core_req *q, int status))
{
    q->p.state = state;
    q->p.cancel = cancel;
}

void req_finish(struct core_req *q, int status)
{
    list_remove(&q->p.wait);
    q->p.cancel = NULL;
    if (q->p.end)
        q->p.end(q, status);
    else
        req_end(q, status);
}

void req_resume(struct core_req *q, int status)
{
    q->p.op = NULL;
    q->p.cancel = NULL;
    if (status)
        req_finish(q, status);
    else
        q->p.resume(q);
}

/* Runs every request of the list once; those that wait again queue behind. */
void req_resume_list(struct list *waiters)
{
    struct list now, *l;

    list_init(&now);
    list_splice(&now, waiters);
    while ((l = list_pop_front(&now)) != NULL) {
        struct core_req *q = list_entry(l, struct core_req, p.wait);

        q->p.cancel = NULL;
        q->p.resume(q);
    }
}

bool core_usable(struct core *c, struct core_req *q)
{
    if (c->state == CORE_MOUNTED ||
        (c->state == CORE_MOUNTING && c->session.state == SESSION_READY))
        return true;
    req_end(q, c->state == CORE_ENDED || c->state == CORE_UNMOUNTING ? -EIO : -ENOTCONN);
    return false;
}

static void cancel_call(struct core_req *q, int status)
{
    struct mds_op *op = q->p.op;

    op->q = NULL;
    if (!op->sent && !op->carried && op->slot < 0) { /* waits: for its turn, the session, a slot */
        op->failed = true;
        list_remove(&op->wait);
        reactor_timer_start(op->core->reactor, &op->timer, 0);
    } else if (op->sent && op->slot < 0) {
        rpc_call_cancel(&op->call);
    }
    req_finish(q, status);
}

void req_call(struct core_req *q, struct mds_op *op, const char *state)
{
    if (!op) {
        req_finish(q, -ENOMEM);
        return;
    }
    q->p.op = op;
    req_wait(q, state, cancel_call);
    mds_op_start(op);
}

bool core_servers_up(struct core *c)
{
    struct hmap_node *n, *next;
    size_t pos;

    if (c->session.state != SESSION_READY || !rpc_peer_is_up(c->session.peer))
        return false;
    hmap_for_each (n, next, pos, &c->oss_nodes) {
        struct oss_node *o = container_of(n, struct oss_node, node);

        if (o->peer && !rpc_peer_is_up(o->peer))
            return false;
    }
    return true;
}

static void cancel(struct core_req *q, bool now)
{
    struct core *c = q->p.core;

    if (!c || list_empty(&q->p.link))
        return;
    if (!q->p.cancelled) {
        q->p.cancelled = true;
        q->p.cancel_ns = reactor_now_ns(c->reactor);
    }
    if (q->p.cancel && (now || q->p.patient || c->state == CORE_MOUNTING || !core_servers_up(c)))
        q->p.cancel(q, -EINTR);
}

void core_cancel(struct core_req *q)
{
    cancel(q, false);
}

void core_give_up(struct core_req *q)
{
    cancel(q, true);
}

/* One step: true when a request was ended, so that the list must be looked at afresh. */
static bool tick_one(struct core *c, uint64_t now)
{
    struct list *l;

    list_for_each (l, &c->in_flight) {
        struct core_req *q = list_entry(l, struct core_req, p.link);
        uint64_t age = now - q->p.timed_ns;

        if (!q->p.cancel)
            continue;
        if (c->forced) {
            q->p.cancel(q, -EIO);
            return true;
        }
        if (q->p.cancelled && (now - q->p.cancel_ns >= CORE_INTERRUPT_NS || !core_servers_up(c))) {
            q->p.cancel(q, -EINTR);
            return true;
        }
        if (c->o.soft && !q->p.patient && age >= c->o.timeo_ns) {
            LOG_WARN("client", "%s of inode %llu timed out after %llu s: %s", q->p.what,
                     (unsigned long long)q->p.ino, (unsigned long long)(age / NS_PER_S),
                     q->p.state);
            q->p.cancel(q, -AIFS_ETIMEOUT);
            return true;
        }
    }
    return false;
}

void req_tick(struct core *c, uint64_t now)
{
    while (tick_one(c, now)) {
    }
}

void core_print_requests(struct core *c, struct strbuf *out)
{
    uint64_t now = reactor_now_ns(c->reactor);
    struct list *l;

    list_for_each (l, &c->in_flight) {
        struct core_req *q = list_entry(l, struct core_req, p.link);

        strbuf_printf(out, "%-10s inode %llu age %.3f s: %s\n", q->p.what,
                      (unsigned long long)q->p.ino, (double)(now - q->p.started_ns) / 1e9,
                      q->p.state);
    }
    if (c->node)
        rpc_node_print_calls(c->node, out);
}
