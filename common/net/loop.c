/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The in-process transport, for tests and the simulator: can drop, delay, duplicate, reorder and
 * partition, all from one seeded generator.
 *
 * Happy path: a message is copied into a parcel and posted to the reactor of the other end, which
 * keeps parcels in the order of their due time and delivers them by a timer on its own clock. The
 * two ends may be on one reactor, on several driven by one thread (then everything is
 * deterministic), or on several threads.
 *
 * What two threads share is the link (its mutex), the listeners' registry (lock) and the faults
 * (loop_fate.c).
 * Everything in an end belongs to its reactor.
 *
 * Failures: a parcel for an end that is gone is answered like a TCP reset; a cut link loses
 * everything silently, so that only pings find out.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/cleanup.h"
#include "common/base/err.h"
#include "common/base/mem.h"
#include "common/net/net_int.h"

#define REORDER_HOLD_NS NS_PER_MS

struct loop_listener {
    struct list link; /* registry */
    struct net_listener *listener;
    char name[NET_ADDR_BYTES];
};

struct loop_link {
    pthread_mutex_t mutex; /* ends, connecting */
    _Atomic unsigned refs; /* ends, parcels, the connecting one */
    struct loop_end *end[2];
    struct reactor *reactor[2];
    struct net_connecting *connecting;
    _Atomic uint64_t queued[2]; /* bytes on their way to this side */
    _Atomic bool blocked[2];    /* the sender to this side waits for a FRAME_GO */
    _Atomic bool severed;
    struct net_options options;
    char name[NET_ADDR_BYTES];
};

struct loop_end {
    struct net_conn *conn;
    struct loop_link *link;
    int side;
    struct list tx_queue;
    struct list parcels; /* by due_ns, first come first served among equals */
    struct reactor_timer timer;
    uint64_t last_due_ns;
};

enum parcel_type { PARCEL_FRAME, PARCEL_CONNECT, PARCEL_ACCEPTED, PARCEL_REFUSED, PARCEL_CLOSED };

struct parcel {
    struct reactor_work work;
    struct list link;
    struct loop_link *loop;
    int to;
    enum parcel_type type;
    enum frame_type frame;
    bool reorder;
    uint64_t delay_ns, due_ns;
    uint32_t head_len, bulk_len;
    uint8_t data[]; /* head, bulk */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list listeners = {&listeners, &listeners};

/* ---- links and parcels ---- */

static void link_put(struct loop_link *k)
{
    if (atomic_fetch_sub(&k->refs, 1) > 1)
        return;
    pthread_mutex_destroy(&k->mutex);
    mem_free(k);
}

static void parcel_free(struct parcel *p)
{
    link_put(p->loop);
    free(p);
}

static void on_parcel(struct reactor_work *w);

static struct parcel *parcel_create(struct loop_link *k, int to, enum parcel_type type,
                                    enum frame_type frame, size_t data_bytes)
{
    /* The wire, not a part of either end: allocations that a test lets fail are theirs. */
    struct parcel *p = malloc(sizeof *p + data_bytes);

    if (!p)
        return NULL;
    memset(p, 0, sizeof *p);
    p->work.fn = on_parcel;
    p->loop = k;
    p->to = to;
    p->type = type;
    p->frame = frame;
    atomic_fetch_add(&k->refs, 1);
    return p;
}

static void parcel_send(struct parcel *p)
{
    atomic_fetch_add(&p->loop->queued[p->to], p->head_len + p->bulk_len);
    reactor_post(p->loop->reactor[p->to], &p->work);
}

static enum net_loop_parcel parcel_kind(const struct parcel *p)
{
    if (p->type == PARCEL_FRAME)
        return p->frame == FRAME_MESSAGE ? NET_LOOP_MESSAGE : NET_LOOP_CONTROL;
    return p->type == PARCEL_CLOSED ? NET_LOOP_CLOSED : NET_LOOP_CONNECT;
}

static struct parcel *parcel_copy(const struct parcel *p)
{
    struct parcel *copy =
        parcel_create(p->loop, p->to, p->type, p->frame, p->head_len + p->bulk_len);

    if (!copy)
        return NULL;
    copy->head_len = p->head_len;
    copy->bulk_len = p->bulk_len;
    memcpy(copy->data, p->data, p->head_len + p->bulk_len);
    return copy;
}

/* Both ends are told, behind what is under way to them. */
static void link_sever(struct loop_link *k, uint64_t delay_ns)
{
    if (atomic_exchange(&k->severed, true))
        return;
    for (int to = 0; to < 2; to++) {
        struct parcel *p = parcel_create(k, to, PARCEL_CLOSED, FRAME_PONG, 0);

        if (!p)
            continue;
        p->delay_ns = delay_ns;
        parcel_send(p);
    }
}

static struct net_loop_fate parcel_fate(struct parcel *p)
{
    struct loop_link *k = p->loop;
    struct net_loop_fate fate =
        loop_fate(k->name, k->reactor[!p->to], k->reactor[p->to], parcel_kind(p));

    p->delay_ns = fate.delay_ns;
    p->reorder = fate.reorder && parcel_kind(p) == NET_LOOP_MESSAGE;
    return fate;
}

static void parcel_post(struct parcel *p)
{
    struct loop_link *k = p->loop;
    struct net_loop_fate fate = parcel_fate(p);
    bool dead = atomic_load(&k->severed);
    struct parcel *copy = NULL;

    if (fate.twice && !dead && parcel_kind(p) == NET_LOOP_MESSAGE)
        copy = parcel_copy(p);
    if (fate.lose || dead)
        parcel_free(p);
    else
        parcel_send(p);
    if (copy) {
        parcel_fate(copy);
        parcel_send(copy);
    }
    if (fate.sever)
        link_sever(k, fate.delay_ns);
}

/* Out of memory: a lost parcel, which this transport may have at any time. */
static void post_plain(struct loop_link *k, int to, enum parcel_type type, enum frame_type frame)
{
    struct parcel *p = parcel_create(k, to, type, frame, 0);

    if (p)
        parcel_post(p);
}

static struct parcel *parcel_of_tx(struct loop_link *k, int to, const struct net_tx *tx)
{
    uint32_t bulk_len = (uint32_t)tx_bulk_bytes(tx);
    struct parcel *p = parcel_create(k, to, PARCEL_FRAME, FRAME_MESSAGE, tx->head_len + bulk_len);
    uint8_t *at;

    if (!p)
        return NULL;
    p->head_len = tx->head_len;
    p->bulk_len = bulk_len;
    at = p->data;
    if (tx->head_len)
        memcpy(at, tx->head, tx->head_len);
    at += tx->head_len;
    for (unsigned i = 0; i < tx->n_iov; i++) {
        if (tx->iov[i].iov_len)
            memcpy(at, tx->iov[i].iov_base, tx->iov[i].iov_len);
        at += tx->iov[i].iov_len;
    }
    return p;
}

/* The end no longer holds this parcel. */
static void parcel_consumed(struct parcel *p)
{
    struct loop_link *k = p->loop;
    uint64_t bytes = p->head_len + p->bulk_len;
    uint64_t left = atomic_fetch_sub(&k->queued[p->to], bytes) - bytes;

    if (left < k->options.max_pending_bytes / 2 && atomic_exchange(&k->blocked[p->to], false))
        post_plain(k, !p->to, PARCEL_FRAME, FRAME_GO);
    parcel_free(p);
}

/* ---- an end ---- */

static void schedule(struct loop_end *e)
{
    struct net_conn *c = e->conn;

    if (list_empty(&e->parcels) || !conn_alive(c) || c->stalled) {
        reactor_timer_cancel(c->reactor, &e->timer);
        return;
    }
    reactor_timer_start(c->reactor, &e->timer,
                        list_entry(e->parcels.next, struct parcel, link)->due_ns);
}

static void hold(struct loop_end *e, struct parcel *p)
{
    struct list *at = e->parcels.prev;

    p->due_ns = reactor_now_ns(e->conn->reactor) + p->delay_ns;
    if (p->reorder)
        p->due_ns += REORDER_HOLD_NS;
    else
        e->last_due_ns = p->due_ns = MAX(p->due_ns, e->last_due_ns);
    while (at != &e->parcels && list_entry(at, struct parcel, link)->due_ns > p->due_ns)
        at = at->prev;
    list_push_front(at, &p->link);
    schedule(e);
}

static void land_bulk(const struct parcel *p, const struct net_rx *rx)
{
    const uint8_t *at = p->data + p->head_len;
    size_t left = p->bulk_len;

    for (unsigned i = 0; i < rx->n_iov && left > 0; i++) {
        size_t n = MIN(left, rx->iov[i].iov_len);

        memcpy(rx->iov[i].iov_base, at, n);
        at += n;
        left -= n;
    }
}

/* False: the parcel stays at the front. */
static bool deliver_message(struct net_conn *c, struct parcel *p)
{
    struct net_rx rx;

    rx.at_once = true;
    switch (conn_offer_head(c, p->data, p->head_len, p->bulk_len, &rx)) {
    case OFFERED_TAKEN:
        land_bulk(p, &rx);
        c->ops->received(c, rx.token, 0);
        return true;
    case OFFERED_STALLED:
        c->stalled = true;
        return false;
    case OFFERED_CLOSED:
        break;
    }
    return true;
}

static void deliver_control(struct net_conn *c, const struct parcel *p)
{
    if (p->type == PARCEL_CLOSED)
        net_conn_close(c, -AIFS_ECONN);
    else if (p->frame == FRAME_PING)
        post_plain(p->loop, !p->to, PARCEL_FRAME, FRAME_PONG);
}

static void on_timer(struct reactor_timer *t)
{
    struct loop_end *e = container_of(t, struct loop_end, timer);
    struct net_conn *c = e->conn;
    uint64_t now = reactor_now_ns(c->reactor);

    while (conn_alive(c) && !c->stalled && !list_empty(&e->parcels)) {
        struct parcel *p = list_entry(e->parcels.next, struct parcel, link);

        if (p->due_ns > now)
            break;
        list_remove(&p->link);
        if (!loop_is_cut(e->link->name)) {
            conn_heard(c);
            if (p->type != PARCEL_FRAME || p->frame != FRAME_MESSAGE) {
                deliver_control(c, p);
            } else if (!deliver_message(c, p)) {
                list_push_front(&e->parcels, &p->link);
                break;
            }
        }
        parcel_consumed(p);
    }
    schedule(e);
}

static void send_one(struct net_conn *c, struct net_tx *tx)
{
    struct loop_link *k = c->loop->link;
    int to = !c->loop->side;
    struct parcel *p = parcel_of_tx(k, to, tx);

    if (p)
        parcel_post(p);
    conn_tx_done(c, tx, 0);
}

static void loop_flush(struct net_conn *c)
{
    struct loop_end *e = c->loop;
    struct loop_link *k = e->link;
    int to = !e->side;
    struct list *l;

    while (conn_alive(c) && !list_empty(&e->tx_queue)) {
        if (atomic_load(&k->queued[to]) >= k->options.max_pending_bytes) {
            atomic_store(&k->blocked[to], true);
            if (atomic_load(&k->queued[to]) >= k->options.max_pending_bytes / 2)
                return; /* the other end will say FRAME_GO */
            atomic_store(&k->blocked[to], false);
        }
        l = list_pop_front(&e->tx_queue);
        send_one(c, list_entry(l, struct net_tx, link));
    }
}

static void loop_send(struct net_conn *c, struct net_tx *tx)
{
    tx_queue_add(&c->loop->tx_queue, tx);
    conn_kick(c, KICK_FLUSH);
}

static void loop_start(struct net_conn *c)
{
    schedule(c->loop);
    if (!list_empty(&c->loop->tx_queue))
        conn_kick(c, KICK_FLUSH);
}

static void loop_resume(struct net_conn *c)
{
    c->stalled = false;
    schedule(c->loop);
}

static void loop_ping(struct net_conn *c, enum frame_type type)
{
    post_plain(c->loop->link, !c->loop->side, PARCEL_FRAME, type);
}

static void loop_abort(struct net_conn *c)
{
    struct loop_end *e = c->loop;
    struct loop_link *k = e->link;
    struct list *l;

    pthread_mutex_lock(&k->mutex);
    k->end[e->side] = NULL;
    pthread_mutex_unlock(&k->mutex);
    reactor_timer_cancel(c->reactor, &e->timer);
    post_plain(k, !e->side, PARCEL_CLOSED, FRAME_PONG);
    while ((l = list_pop_front(&e->parcels)) != NULL)
        parcel_consumed(list_entry(l, struct parcel, link));
    while ((l = list_pop_front(&e->tx_queue)) != NULL)
        conn_tx_done(c, list_entry(l, struct net_tx, link), -AIFS_ECONN);
}

static void loop_release(struct net_conn *c)
{
    link_put(c->loop->link);
    mem_free(c->loop);
}

static const struct net_transport loop_transport = {
    .start = loop_start,
    .send = loop_send,
    .flush = loop_flush,
    .resume = loop_resume,
    .ping = loop_ping,
    .abort = loop_abort,
    .release = loop_release,
};

static struct net_conn *end_create(struct loop_link *k, int side, const struct net_options *o)
{
    char peer[NET_ADDR_BYTES];
    struct loop_end *e = mem_zalloc(sizeof *e);
    struct net_conn *c;

    snprintf(peer, sizeof peer, "loop:%.*s", (int)sizeof peer - 6, k->name);
    c = conn_create(k->reactor[side], o, &loop_transport, NET_LOOP, peer);
    if (!e || !c) {
        mem_free(e);
        mem_free(c);
        return NULL;
    }
    e->conn = c;
    e->link = k;
    e->side = side;
    list_init(&e->tx_queue);
    list_init(&e->parcels);
    reactor_timer_init(&e->timer, on_timer);
    atomic_fetch_add(&k->refs, 1);
    c->loop = e;
    pthread_mutex_lock(&k->mutex);
    k->end[side] = e;
    pthread_mutex_unlock(&k->mutex);
    return c;
}

/* ---- connecting: side 0 connects, side 1 listens ---- */

static struct net_listener *find_listener(const char *name)
{
    struct list *e;

    list_for_each (e, &listeners) {
        struct loop_listener *l = list_entry(e, struct loop_listener, link);

        if (strcmp(l->name, name) == 0)
            return l->listener;
    }
    return NULL;
}

/* On the listener's reactor. */
static void on_connect(struct loop_link *k)
{
    struct net_listener *l;
    struct net_conn *c;

    pthread_mutex_lock(&lock);
    l = find_listener(k->name);
    pthread_mutex_unlock(&lock);
    c = l && l->reactor == k->reactor[1] ? end_create(k, 1, &l->options) : NULL;
    post_plain(k, 0, c ? PARCEL_ACCEPTED : PARCEL_REFUSED, FRAME_PONG);
    if (c)
        l->accepted(l->arg, c);
}

/* On the connecting reactor. */
static void on_answer(struct loop_link *k, bool accepted)
{
    struct net_connecting *n;
    struct net_conn *c = NULL;

    pthread_mutex_lock(&k->mutex);
    n = k->connecting;
    k->connecting = NULL;
    pthread_mutex_unlock(&k->mutex);
    if (n && accepted)
        c = end_create(k, 0, &n->options);
    if (accepted && !c)
        post_plain(k, 1, PARCEL_CLOSED, FRAME_PONG);
    if (!n)
        return;
    n->loop = NULL;
    connecting_finish(n, c, c ? 0 : accepted ? -ENOMEM : -ECONNREFUSED);
    link_put(k);
}

static void on_parcel(struct reactor_work *w)
{
    struct parcel *p = container_of(w, struct parcel, work);
    struct loop_link *k = p->loop;
    struct loop_end *e;

    list_init(&p->link);
    if (p->type == PARCEL_CONNECT)
        on_connect(k);
    else if (p->type == PARCEL_ACCEPTED || p->type == PARCEL_REFUSED)
        on_answer(k, p->type == PARCEL_ACCEPTED);
    if (p->type != PARCEL_FRAME && p->type != PARCEL_CLOSED) {
        parcel_free(p);
        return;
    }
    pthread_mutex_lock(&k->mutex);
    e = k->end[p->to];
    pthread_mutex_unlock(&k->mutex);
    if (e && p->type == PARCEL_FRAME && p->frame == FRAME_GO) {
        conn_kick(e->conn, KICK_FLUSH); /* not behind messages: an end that is stalled may send */
    } else if (e) {
        hold(e, p);
        return;
    } else if (p->type == PARCEL_FRAME) {
        post_plain(k, !p->to, PARCEL_CLOSED, FRAME_PONG);
    }
    parcel_consumed(p);
}

int loop_listen(struct reactor *r UNUSED, const struct net_addr *addr,
                const struct net_options *o UNUSED, struct net_listener *l)
{
    struct loop_listener *ll = mem_zalloc(sizeof *ll);
    AUTO_LOCK(&lock);

    if (!ll)
        return -ENOMEM;
    snprintf(ll->name, sizeof ll->name, "%s", addr->text + 5);
    if (find_listener(ll->name)) {
        mem_free(ll);
        return -EADDRINUSE;
    }
    ll->listener = l;
    l->loop = ll;
    list_push_back(&listeners, &ll->link);
    return 0;
}

void loop_listener_close(struct net_listener *l)
{
    AUTO_LOCK(&lock);

    list_remove(&l->loop->link);
    mem_free(l->loop);
    l->loop = NULL;
}

void loop_connect(struct net_connecting *n)
{
    struct loop_link *k = mem_zalloc(sizeof *k);
    struct net_listener *l;

    if (!k)
        return; /* ends by the time-out */
    pthread_mutex_init(&k->mutex, NULL);
    k->refs = 1;
    k->connecting = n;
    k->options = n->options;
    k->reactor[0] = n->reactor;
    snprintf(k->name, sizeof k->name, "%s", n->addr.text + 5);
    n->loop = k;
    if (loop_is_cut(k->name))
        return;
    pthread_mutex_lock(&lock);
    l = find_listener(k->name);
    k->reactor[1] = l ? l->reactor : n->reactor;
    pthread_mutex_unlock(&lock);
    post_plain(k, l ? 1 : 0, l ? PARCEL_CONNECT : PARCEL_REFUSED, FRAME_PONG);
}

void loop_connect_cancel(struct net_connecting *n)
{
    struct loop_link *k = n->loop;

    pthread_mutex_lock(&k->mutex);
    k->connecting = NULL;
    pthread_mutex_unlock(&k->mutex);
    n->loop = NULL;
    link_put(k);
}
