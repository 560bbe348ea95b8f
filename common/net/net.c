/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a connection, whatever carries its messages.
 *
 * Happy path: a transport creates it (conn_create), the owner starts it, net_send() queues on the
 * transport and asks for one flush later in the turn, so that many small messages leave in one
 * system call. Every ping interval a timer looks whether the peer was heard.
 *
 * Failure: whoever first sees one calls net_conn_close(); from the reactor, never from inside that
 * call, conn_work() then lets the transport give back all memory (done() and received() with
 * -AIFS_ECONN) and tells the owner by closed(), once.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/net/net_int.h"

void net_options_default(struct net_options *o)
{
    *o = (struct net_options){.want = NET_WANT_AUTO,
                              .ping_interval_ns = NS_PER_S,
                              .ping_timeout_ns = 5 * NS_PER_S,
                              .connect_timeout_ns = 5 * NS_PER_S,
                              .rndv_threshold = 64 * KIB,
                              .rails = 4,
                              .max_pending_bytes = 64 * MIB};
}

uint64_t iov_bytes(const struct iovec *iov, unsigned n)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < n; i++)
        sum += iov[i].iov_len;
    return sum;
}

uint64_t tx_bulk_bytes(const struct net_tx *tx)
{
    return iov_bytes(tx->iov, tx->n_iov);
}

void tx_queue_add(struct list *queue, struct net_tx *tx)
{
    if (tx->urgent)
        list_push_front(queue, &tx->link);
    else
        list_push_back(queue, &tx->link);
}

static uint64_t tx_cost(const struct net_tx *tx)
{
    return FRAME_BYTES + tx->head_len + tx_bulk_bytes(tx);
}

void conn_tx_done(struct net_conn *c, struct net_tx *tx, int status)
{
    c->pending_bytes -= tx_cost(tx);
    c->takes++;
    if (status == 0) {
        stat_inc(&net_counters.sent[c->kind]);
        stat_add(&net_counters.sent_bytes[c->kind], tx->head_len + tx_bulk_bytes(tx));
    } else {
        stat_inc(&net_counters.failed);
    }
    tx->done(tx, status);
}

static void fail_dead(struct net_conn *c)
{
    struct list *e;

    while ((e = list_pop_front(&c->dead)) != NULL) {
        struct net_tx *tx = list_entry(e, struct net_tx, link);

        tx->done(tx, -AIFS_ECONN);
    }
}

static void destroy(struct net_conn *c)
{
    c->transport->release(c);
    mem_free(c);
}

static void finish_close(struct net_conn *c)
{
    reactor_timer_cancel(c->reactor, &c->ping);
    c->work_queued = true; /* what callbacks ask for is done here, and nothing of c stays queued */
    c->transport->abort(c);
    fail_dead(c);
    c->work_queued = false;
    c->kicks = 0;
    c->state = CONN_CLOSED;
    stat_inc(&net_counters.closed);
    LOG_DEBUG("net", "%s: closed: %s", c->describe, err_text(c->status));
    if (c->ops)
        c->ops->closed(c, c->status); /* may free c */
}

static void conn_work(struct reactor_work *w)
{
    struct net_conn *c = container_of(w, struct net_conn, work);
    unsigned kicks = c->kicks;

    c->work_queued = false;
    c->kicks = 0;
    if (c->freed) {
        fail_dead(c);
        destroy(c);
        return;
    }
    if ((kicks & KICK_FLUSH) && conn_alive(c))
        c->transport->flush(c);
    if ((kicks & KICK_RESUME) && conn_alive(c))
        c->transport->resume(c);
    if ((kicks & KICK_DEAD) && c->state == CONN_CLOSED)
        fail_dead(c);
    if (kicks & KICK_CLOSE)
        finish_close(c);
}

void conn_kick(struct net_conn *c, enum conn_kick what)
{
    c->kicks |= what;
    if (c->work_queued)
        return;
    c->work_queued = true;
    reactor_defer(c->reactor, &c->work);
}

void conn_heard(struct net_conn *c)
{
    c->heard_ns = reactor_now_ns(c->reactor);
    c->pinged_ns = 0;
}

/* Stalled because the peer does not take its answers, it is not heard: what it takes tells that it
 * is alive, and nothing for the time of a ping that it is not. */
static bool takes_nothing(struct net_conn *c, uint64_t now)
{
    bool stuck = c->stalled && !net_conn_writable(c);

    if (!stuck || !c->stuck_ns || c->stuck_takes != c->takes) {
        c->stuck_ns = stuck ? now : 0;
        c->stuck_takes = c->takes;
    }
    return stuck && now - c->stuck_ns >= c->options.ping_timeout_ns;
}

static void close_silent(struct net_conn *c, const char *what, uint64_t ns)
{
    stat_inc(&net_counters.silent);
    LOG_WARN("net", "%s: %s for %.1f s: closing the connection", c->describe, what,
             (double)ns / (double)NS_PER_S);
    net_conn_close(c, -AIFS_ECONN);
}

/*
 * Nothing heard for an interval: ping. A ping older than the time-out with nothing heard since:
 * dead. Counting from our own ping, not from what was last heard, keeps a process that was stopped
 * itself from blaming its peers. An end that has stopped reading (stalled) cannot hear, and says
 * that it is alive.
 */
static void on_ping(struct reactor_timer *t)
{
    struct net_conn *c = container_of(t, struct net_conn, ping);
    const struct net_options *o = &c->options;
    uint64_t now = reactor_now_ns(c->reactor);
    uint64_t grace =
        o->ping_timeout_ns > o->ping_interval_ns ? o->ping_timeout_ns - o->ping_interval_ns : 1;
    uint64_t next = now + o->ping_interval_ns;

    if (now > t->deadline_ns + o->ping_interval_ns)
        c->pinged_ns = c->stuck_ns = 0; /* we ourselves did not run */
    if (takes_nothing(c, now)) {
        close_silent(c, "takes no answers", now - c->stuck_ns);
        return;
    }
    if (c->stalled) {
        c->pinged_ns = 0;
        c->transport->ping(c, FRAME_PONG);
    } else if (c->pinged_ns && now - c->pinged_ns >= grace) {
        close_silent(c, "no sign of life", now - c->heard_ns);
        return;
    } else if (c->pinged_ns || now - c->heard_ns >= o->ping_interval_ns) {
        if (!c->pinged_ns)
            c->pinged_ns = now;
        c->transport->ping(c, FRAME_PING);
        next = MIN(next, c->pinged_ns + grace);
    } else {
        next = c->heard_ns + o->ping_interval_ns;
    }
    reactor_timer_start(c->reactor, &c->ping, next);
}

struct net_conn *conn_create(struct reactor *r, const struct net_options *o,
                             const struct net_transport *t, enum net_kind kind, const char *peer)
{
    struct net_conn *c = mem_zalloc(sizeof *c);

    if (!c)
        return NULL;
    c->reactor = r;
    c->transport = t;
    c->kind = kind;
    c->options = *o;
    /* A ping needs time for its answer: half of what may pass in silence at least. */
    c->options.ping_interval_ns = MIN(o->ping_interval_ns, MAX(o->ping_timeout_ns / 2, NS_PER_MS));
    c->work.fn = conn_work;
    list_init(&c->dead);
    reactor_timer_init(&c->ping, on_ping);
    snprintf(c->peer, sizeof c->peer, "%s", peer);
    c->max_head = NET_HEAD_MAX;
    stat_inc(&net_counters.opened);
    conn_set_describe(c, kind == NET_LOOP ? "loop" : "tcp");
    return c;
}

void conn_set_describe(struct net_conn *c, const char *transport)
{
    snprintf(c->describe, sizeof c->describe, "%s %s", c->peer, transport);
}

void net_conn_start(struct net_conn *c, const struct net_conn_ops *ops, void *arg)
{
    ASSERT(ops && !c->ops);
    c->ops = ops;
    c->arg = arg;
    if (c->state != CONN_NEW)
        return; /* broke before it was started: closed() is on its way */
    c->state = CONN_STARTED;
    conn_heard(c);
    reactor_timer_start(c->reactor, &c->ping, c->heard_ns + c->options.ping_interval_ns);
    c->transport->start(c);
}

void net_conn_set_max_head(struct net_conn *c, uint32_t max_bytes)
{
    c->max_head = MIN(max_bytes, NET_HEAD_MAX);
}

void *net_conn_arg(const struct net_conn *c)
{
    return c->arg;
}

void net_send(struct net_conn *c, struct net_tx *tx)
{
    ASSERT(tx->done && tx->head_len <= NET_HEAD_MAX && tx->n_iov <= NET_IOV_MAX &&
           tx_bulk_bytes(tx) <= NET_BULK_MAX);
    list_init(&tx->link);
    tx->sent_bytes = 0;
    tx->transport = NULL;
    if (c->state >= CONN_CLOSING) {
        list_push_back(&c->dead, &tx->link);
        conn_kick(c, KICK_DEAD);
        return;
    }
    c->pending_bytes += tx_cost(tx);
    c->transport->send(c, tx);
}

bool net_conn_writable(const struct net_conn *c)
{
    return c->state < CONN_CLOSING && c->pending_bytes < c->options.max_pending_bytes;
}

void net_conn_resume(struct net_conn *c)
{
    if (conn_alive(c))
        conn_kick(c, KICK_RESUME);
}

void net_conn_close(struct net_conn *c, int status)
{
    if (c->state >= CONN_CLOSING)
        return;
    c->state = CONN_CLOSING;
    c->status = status;
    conn_kick(c, KICK_CLOSE);
}

void net_conn_free(struct net_conn *c)
{
    if (!c)
        return;
    if (c->state != CONN_CLOSED) {
        ASSERT(!c->ops); /* a started connection is freed after closed() */
        c->transport->abort(c);
        c->state = CONN_CLOSED;
        stat_inc(&net_counters.closed);
    }
    if (c->work_queued) {
        c->freed = true; /* conn_work() frees it */
        return;
    }
    fail_dead(c);
    destroy(c);
}

enum net_kind net_conn_kind(const struct net_conn *c)
{
    return c->kind;
}

const char *net_conn_why(const struct net_conn *c)
{
    return ucx_why(c);
}

bool net_conn_is_settled(const struct net_conn *c)
{
    return ucx_is_settled(c);
}

const char *net_conn_describe(const struct net_conn *c)
{
    return c->describe;
}

enum offered conn_offer_head(struct net_conn *c, const void *head, uint32_t head_len,
                             uint32_t bulk_len, struct net_rx *rx)
{
    int rc;

    rx->token = NULL;
    rx->n_iov = 0;
    rx->part = NULL;
    rc = c->ops->head(c, head, head_len, bulk_len, rx);
    if (rc == -EAGAIN)
        stat_inc(&net_counters.stalls);
    if (rc == -EAGAIN)
        return conn_alive(c) ? OFFERED_STALLED : OFFERED_CLOSED;
    if (rc < 0) {
        LOG_WARN("net", "%s: message refused (%s): closing the connection", c->describe,
                 err_text(rc));
        net_conn_close(c, rc);
        return OFFERED_CLOSED;
    }
    ASSERT(rx->n_iov <= NET_IOV_MAX);
    ASSERT(bulk_len == 0 || rx->n_iov == 0 || iov_bytes(rx->iov, rx->n_iov) >= bulk_len);
    stat_inc(&net_counters.received[c->kind]);
    stat_add(&net_counters.received_bytes[c->kind], head_len + bulk_len);
    return OFFERED_TAKEN;
}

int net_conn_offer(struct net_conn *c, void *offer, uint32_t *len)
{
    if (c->kind == NET_LOOP) {
        *len = 0;
        return 0;
    }
    return ucx_offer(c, offer, len);
}

int net_conn_upgrade(struct net_conn *c, const void *peer_offer, uint32_t len)
{
    if (c->state >= CONN_CLOSING)
        return -AIFS_ECONN;
    if (c->kind == NET_LOOP)
        return 0;
    return ucx_upgrade(c, peer_offer, len);
}
