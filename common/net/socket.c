/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket transport: frames (frame_fmt.h) over a non-blocking stream socket.
 *
 * Sending: net_send() queues; flush gathers as many queued messages as fit into one sendmsg(),
 * later in the turn, or behind the first of several that came. What the kernel does not take waits
 * for EPOLLOUT. Receiving: a read-ahead buffer collects prefixes and heads, so that small messages
 * cost one read for many; bulk is read straight into the owner's iov, with the read-ahead buffer
 * behind it for what follows. Only what was read ahead is copied. A long head has its own memory.
 *
 * Failure: end of file, an error or a frame that is none of ours closes this connection with one
 * log line. While the owner has no room (stalled) nothing is read; the kernel still tells us when
 * the peer goes away.
 */
#include "common/net/net_int.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"

#define READ_AHEAD_BYTES (16 * KIB)
#define READS_PER_EVENT  8u /* then other connections get their turn */
#define SENDS_PER_FLUSH  8u
#define SEND_IOVS        256u
#define SEND_SOON_BYTES  MIB
#define DRAINS           8
#define N_CONTROLS       (FRAME_TYPE_END - FRAME_PING)

enum rx_state { RX_PREFIX, RX_HEAD, RX_BULK, RX_DISCARD };

struct net_sock {
    struct net_conn *conn;
    int fd;
    struct reactor_watch watch;
    struct list tx_queue;
    uint64_t tx_bytes; /* of what is queued */
    struct net_tx controls[N_CONTROLS];
    bool control_queued[N_CONTROLS];
    bool want_out;

    enum rx_state rx_state;
    struct frame frame;
    uint8_t prefix[FRAME_BYTES];
    struct net_rx rx;
    unsigned rx_iov;    /* first iov not full */
    size_t rx_off;      /* within it */
    uint32_t bulk_left; /* RX_BULK, RX_DISCARD */
    uint8_t *big;       /* a head longer than the read-ahead buffer */
    uint32_t big_have;
    uint32_t begin, end; /* of what the buffer holds */
    uint8_t buffer[READ_AHEAD_BYTES];
};

/* ---- events wanted ---- */

static void update_events(struct net_conn *c)
{
    struct net_sock *s = c->sock;
    uint32_t events = EPOLLRDHUP | (c->stalled ? 0u : EPOLLIN) | (s->want_out ? EPOLLOUT : 0u);
    int rc;

    if (!s->watch.added || events == s->watch.events)
        return;
    rc = reactor_watch_modify(c->reactor, &s->watch, events);
    if (rc < 0)
        net_conn_close(c, rc);
}

/* ---- sending ---- */

static unsigned gather_one(const struct net_tx *tx, struct iovec *v, unsigned room)
{
    uint64_t skip = tx->sent_bytes;
    unsigned n = 0;

    for (unsigned i = 0; i < 2 + tx->n_iov && n < room; i++) {
        struct iovec part = i == 0   ? (struct iovec){(void *)tx->prefix, FRAME_BYTES}
                            : i == 1 ? (struct iovec){(void *)tx->head, tx->head_len}
                                     : tx->iov[i - 2];

        if (skip >= part.iov_len) {
            skip -= part.iov_len;
            continue;
        }
        v[n++] = (struct iovec){(uint8_t *)part.iov_base + skip, part.iov_len - skip};
        skip = 0;
    }
    return n;
}

static unsigned gather(struct net_sock *s, struct iovec v[SEND_IOVS])
{
    struct list *e;
    unsigned n = 0;

    list_for_each (e, &s->tx_queue) {
        if (n == SEND_IOVS)
            break;
        n += gather_one(list_entry(e, struct net_tx, link), v + n, SEND_IOVS - n);
    }
    return n;
}

static uint64_t tx_left(const struct net_tx *tx)
{
    return FRAME_BYTES + tx->head_len + tx_bulk_bytes(tx) - tx->sent_bytes;
}

static void finish_tx(struct net_conn *c, struct net_tx *tx, int status)
{
    c->sock->tx_bytes -= tx_left(tx);
    list_remove(&tx->link);
    if (tx->done)
        conn_tx_done(c, tx, status);
    else
        c->sock->control_queued[tx - c->sock->controls] = false;
}

/* Counts first and tells afterwards: who is told that his message has left may send the next one,
 * ahead of what has left with it. */
static void took(struct net_conn *c, uint64_t bytes)
{
    struct net_sock *s = c->sock;
    struct list gone, *e;

    c->takes++;
    list_init(&gone);
    while (bytes > 0) {
        struct net_tx *tx = list_entry(s->tx_queue.next, struct net_tx, link);
        uint64_t n = MIN(bytes, tx_left(tx));

        tx->sent_bytes += n;
        s->tx_bytes -= n;
        bytes -= n;
        if (tx_left(tx) > 0)
            break;
        list_remove(&tx->link);
        list_push_back(&gone, &tx->link);
    }
    while ((e = list_pop_front(&gone)) != NULL)
        finish_tx(c, list_entry(e, struct net_tx, link), 0);
}

static void flush_socket(struct net_conn *c)
{
    struct net_sock *s = c->sock;
    struct iovec v[SEND_IOVS];
    ssize_t n = 0;

    for (unsigned round = 0; round < SENDS_PER_FLUSH && !list_empty(&s->tx_queue) && conn_alive(c);
         round++) {
        struct msghdr m = {.msg_iov = v, .msg_iovlen = gather(s, v)};

        n = sendmsg(s->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0)
            break;
        took(c, (uint64_t)n);
    }
    if (!conn_alive(c))
        return;
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        LOG_DEBUG("net", "%s: send: %m", c->describe);
        net_conn_close(c, -AIFS_ECONN);
        return;
    }
    s->want_out = !list_empty(&s->tx_queue);
    update_events(c);
}

static void sock_flush(struct net_conn *c)
{
    if (!c->sock->want_out)
        flush_socket(c);
    if (conn_alive(c))
        ucx_flush(c);
}

static void queue(struct net_conn *c, struct net_tx *tx, enum frame_type type, bool urgent)
{
    struct net_sock *s = c->sock;
    struct list *first = s->tx_queue.next;
    bool started = first != &s->tx_queue && list_entry(first, struct net_tx, link)->sent_bytes > 0;

    frame_encode(tx->prefix, type, tx->head, tx->head_len, (uint32_t)tx_bulk_bytes(tx));
    s->tx_bytes += tx_left(tx);
    if (!urgent)
        list_push_back(&s->tx_queue, &tx->link);
    else if (started)
        list_push_front(first, &tx->link); /* behind the one that is half sent */
    else
        list_push_front(&s->tx_queue, &tx->link);
    if (!s->want_out)
        conn_kick(c, KICK_FLUSH);
}

static void sock_send(struct net_conn *c, struct net_tx *tx)
{
    if (c->kind == NET_UCX)
        ucx_send(c, tx);
    else
        queue(c, tx, FRAME_MESSAGE, tx->urgent);
}

void sock_control_data(struct net_conn *c, enum frame_type type, const void *data, uint32_t len)
{
    struct net_sock *s = c->sock;
    unsigned i = (unsigned)(type - FRAME_PING);

    if (s->control_queued[i] || c->state >= CONN_CLOSING)
        return;
    s->control_queued[i] = true;
    s->controls[i] = (struct net_tx){.head = data, .head_len = len};
    queue(c, &s->controls[i], type, type == FRAME_PING || type == FRAME_PONG);
}

void sock_control(struct net_conn *c, enum frame_type type)
{
    sock_control_data(c, type, NULL, 0);
}

void sock_control_either(struct net_conn *c, enum frame_type type, enum frame_type opposite)
{
    struct net_sock *s = c->sock;
    unsigned i = (unsigned)(opposite - FRAME_PING);

    if (s->control_queued[i] && s->controls[i].sent_bytes == 0)
        finish_tx(c, &s->controls[i], 0);
    else
        sock_control(c, type);
}

int sock_descriptor(const struct net_conn *c)
{
    return c->sock->fd;
}

/* ---- receiving ---- */

static void garbage(struct net_conn *c, const char *what)
{
    LOG_WARN("net", "%s: %s: not an aifs peer, or a damaged frame; closing the connection",
             c->describe, what);
    stat_inc(&net_counters.garbage);
    net_conn_close(c, -AIFS_EPROTO);
}

static void on_control(struct net_conn *c, const struct frame *f, const uint8_t *head)
{
    if (f->type == FRAME_PING)
        sock_control(c, FRAME_PONG);
    else if (f->type != FRAME_PONG)
        ucx_control(c, (enum frame_type)f->type, head, f->head_len);
}

static void finish_message(struct net_conn *c, int status)
{
    struct net_sock *s = c->sock;
    void *token = s->rx.token;

    s->rx_state = RX_PREFIX;
    c->ops->received(c, token, status);
}

/* n bytes have been filled; afterwards the current iov has room, if anything is left to come. */
static void advance_iov(struct net_sock *s, size_t n)
{
    s->bulk_left -= (uint32_t)n;
    s->rx_off += n;
    while (s->bulk_left > 0 && s->rx_off >= s->rx.iov[s->rx_iov].iov_len)
        s->rx_off -= s->rx.iov[s->rx_iov++].iov_len;
}

/* The head is complete: checks it and offers it. False: stop reading for now. */
static bool take_head(struct net_conn *c, const uint8_t *head)
{
    struct net_sock *s = c->sock;

    if (frame_crc(s->prefix, head, s->frame.head_len) != s->frame.crc) {
        garbage(c, "checksum of a head is wrong");
        return false;
    }
    if (s->frame.type != FRAME_MESSAGE) {
        s->rx_state = RX_PREFIX;
        on_control(c, &s->frame, head);
        return true;
    }
    switch (conn_offer_head(c, head, s->frame.head_len, s->frame.bulk_len, &s->rx)) {
    case OFFERED_TAKEN:
        break;
    case OFFERED_STALLED:
        c->stalled = true;
        update_events(c);
        return false;
    case OFFERED_CLOSED:
        return false;
    }
    s->rx_iov = 0;
    s->rx_off = 0;
    s->bulk_left = s->frame.bulk_len;
    s->rx_state = s->rx.n_iov ? RX_BULK : RX_DISCARD;
    if (s->rx_state == RX_BULK)
        advance_iov(s, 0); /* past empty ones */
    if (s->bulk_left == 0)
        finish_message(c, 0);
    return true;
}

static bool parse_prefix(struct net_conn *c)
{
    struct net_sock *s = c->sock;

    if (s->end - s->begin < FRAME_BYTES)
        return false;
    memcpy(s->prefix, s->buffer + s->begin, FRAME_BYTES);
    if (!frame_decode(s->prefix, c->max_head, NET_BULK_MAX, &s->frame)) {
        garbage(c, "no frame");
        return false;
    }
    s->begin += FRAME_BYTES;
    if (s->frame.head_len > READ_AHEAD_BYTES) {
        s->big = mem_alloc(s->frame.head_len);
        if (!s->big) {
            LOG_ERROR("net", "%s: no memory for a head of %u bytes", c->describe,
                      s->frame.head_len);
            net_conn_close(c, -ENOMEM);
            return false;
        }
        s->big_have = 0;
    }
    s->rx_state = RX_HEAD;
    return true;
}

static void drop_big(struct net_sock *s)
{
    mem_free(s->big);
    s->big = NULL;
}

static bool parse_head(struct net_conn *c)
{
    struct net_sock *s = c->sock;
    uint32_t have = s->end - s->begin;
    uint32_t n;
    bool more;

    if (!s->big) {
        if (have < s->frame.head_len)
            return false;
        more = take_head(c, s->buffer + s->begin);
        if (s->rx_state != RX_HEAD)
            s->begin += s->frame.head_len;
        return more;
    }
    n = MIN(have, s->frame.head_len - s->big_have);
    memcpy(s->big + s->big_have, s->buffer + s->begin, n);
    s->big_have += n;
    s->begin += n;
    if (s->big_have < s->frame.head_len)
        return false;
    more = take_head(c, s->big);
    if (s->rx_state != RX_HEAD)
        drop_big(s);
    return more;
}

/* Copies what was read ahead of a bulk. */
static bool parse_bulk(struct net_conn *c)
{
    struct net_sock *s = c->sock;

    while (s->bulk_left > 0 && s->begin < s->end) {
        size_t n = MIN(s->bulk_left, s->end - s->begin);

        if (s->rx_state == RX_DISCARD) {
            s->bulk_left -= (uint32_t)n;
        } else {
            const struct iovec *v = &s->rx.iov[s->rx_iov];

            n = MIN(n, v->iov_len - s->rx_off);
            memcpy((uint8_t *)v->iov_base + s->rx_off, s->buffer + s->begin, n);
            advance_iov(s, n);
        }
        s->begin += (uint32_t)n;
    }
    if (s->bulk_left > 0)
        return false;
    finish_message(c, 0);
    return true;
}

/*
 * Many messages that came together are answered together, but not all of them: the first answer
 * leaves before the next message is looked at, so that the peer, which sleeps, wakes up meanwhile.
 * Else both ends take turns, and each waits for the other to wake up.
 */
static void parse(struct net_conn *c)
{
    struct net_sock *s = c->sock;
    bool more = true;
    uint64_t enough = 1;

    while (more && conn_alive(c) && !c->stalled) {
        if (s->rx_state == RX_PREFIX && s->tx_bytes >= enough && !s->want_out) {
            enough = SEND_SOON_BYTES;
            flush_socket(c);
            continue;
        }
        switch (c->sock->rx_state) {
        case RX_PREFIX:
            more = parse_prefix(c);
            break;
        case RX_HEAD:
            more = parse_head(c);
            break;
        case RX_BULK:
        case RX_DISCARD:
            more = parse_bulk(c);
            break;
        }
    }
}

static ssize_t fill(struct net_sock *s, size_t *ret_asked)
{
    struct iovec v[NET_IOV_MAX + 1];
    unsigned n = 0;
    size_t direct = 0;
    ssize_t got;

    if (s->begin > 0) {
        memmove(s->buffer, s->buffer + s->begin, s->end - s->begin);
        s->end -= s->begin;
        s->begin = 0;
    }
    if (s->rx_state == RX_HEAD && s->big) {
        v[n++] = (struct iovec){s->big + s->big_have, s->frame.head_len - s->big_have};
        direct = v[0].iov_len;
    } else if (s->rx_state == RX_BULK) {
        size_t off = s->rx_off;

        for (unsigned i = s->rx_iov; direct < s->bulk_left; i++, off = 0) {
            size_t len = MIN(s->rx.iov[i].iov_len - off, s->bulk_left - direct);

            if (len > 0)
                v[n++] = (struct iovec){(uint8_t *)s->rx.iov[i].iov_base + off, len};
            direct += len;
        }
    }
    v[n++] = (struct iovec){s->buffer + s->end, READ_AHEAD_BYTES - s->end};
    *ret_asked = direct + v[n - 1].iov_len;
    got = readv(s->fd, v, (int)n);
    if (got <= 0)
        return got < 0 ? -errno : 0;
    direct = MIN((size_t)got, direct);
    if (s->rx_state == RX_BULK)
        advance_iov(s, direct);
    else
        s->big_have += (uint32_t)direct;
    s->end += (uint32_t)((size_t)got - direct);
    return got;
}

static void on_readable(struct net_conn *c)
{
    for (unsigned round = 0; round < READS_PER_EVENT && conn_alive(c) && !c->stalled; round++) {
        size_t asked;
        ssize_t n = fill(c->sock, &asked);

        if (n == -EAGAIN || n == -EINTR)
            return;
        if (n <= 0) {
            if (n < 0)
                LOG_DEBUG("net", "%s: read: %s", c->describe, err_text((int)n));
            net_conn_close(c, -AIFS_ECONN);
            return;
        }
        conn_heard(c);
        parse(c);
        if ((size_t)n < asked)
            return; /* drained; level-triggered, so nothing is lost if not */
    }
}

static void on_event(struct reactor_watch *w, uint32_t events)
{
    struct net_sock *s = container_of(w, struct net_sock, watch);
    struct net_conn *c = s->conn;

    if (!conn_alive(c))
        return;
    if (events & EPOLLIN)
        on_readable(c);
    if (conn_alive(c) && (events & EPOLLOUT))
        flush_socket(c);
    /* Stalled, so we shall not read up to the end of file; or an error without anything to read. */
    if (conn_alive(c) && (events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) &&
        (!(events & EPOLLIN) || c->stalled))
        net_conn_close(c, -AIFS_ECONN);
}

static void sock_resume(struct net_conn *c)
{
    if (c->stalled) {
        c->stalled = false;
        parse(c);
        if (conn_alive(c))
            update_events(c);
    }
    if (conn_alive(c))
        ucx_resume(c);
}

/* ---- life ---- */

static void sock_start(struct net_conn *c)
{
    int rc = reactor_watch_add(c->reactor, &c->sock->watch);

    if (rc < 0) {
        LOG_ERROR("net", "%s: watch: %s", c->describe, err_text(rc));
        net_conn_close(c, rc);
    } else if (!list_empty(&c->sock->tx_queue)) {
        conn_kick(c, KICK_FLUSH);
    }
}

/* The peer hears why we part: our offer, or that it cannot be. What does not leave at once is
 * lost. */
static void say_why(struct net_conn *c)
{
    struct iovec v[SEND_IOVS];
    struct msghdr m = {.msg_iov = v, .msg_iovlen = gather(c->sock, v)};

    if (m.msg_iovlen > 0 && sendmsg(c->sock->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        LOG_DEBUG("net", "%s: send: %m", c->describe);
}

static void sock_abort(struct net_conn *c)
{
    struct net_sock *s = c->sock;

    if (s->watch.added)
        reactor_watch_remove(c->reactor, &s->watch);
    if (c->status == -ENOTSUP)
        say_why(c);
    for (int i = 0; i < DRAINS && recv(s->fd, NULL, MIB, MSG_TRUNC | MSG_DONTWAIT) > 0; i++)
        ; /* closing with something unread would reset the connection and lose what we sent last */
    close(s->fd); /* first: the peer sees it before anything we do next */
    s->fd = -1;
    ucx_abort(c);
    if (s->rx_state == RX_BULK || s->rx_state == RX_DISCARD)
        finish_message(c, -AIFS_ECONN);
    while (!list_empty(&s->tx_queue))
        finish_tx(c, list_entry(s->tx_queue.next, struct net_tx, link), -AIFS_ECONN);
    drop_big(s);
}

static void sock_release(struct net_conn *c)
{
    ucx_release(c);
    mem_free(c->sock);
}

const struct net_transport sock_transport = {
    .start = sock_start,
    .send = sock_send,
    .flush = sock_flush,
    .resume = sock_resume,
    .ping = sock_control,
    .abort = sock_abort,
    .release = sock_release,
};

int sock_conn_create(struct reactor *r, const struct net_options *o, int fd, const char *peer,
                     struct net_conn **ret_conn)
{
    struct net_sock *s = mem_alloc(sizeof *s);
    struct net_conn *c = conn_create(r, o, &sock_transport, NET_SOCKET, peer);

    if (!s || !c) {
        mem_free(s);
        mem_free(c);
        return -ENOMEM;
    }
    memset(s, 0, offsetof(struct net_sock, buffer));
    s->conn = c;
    s->fd = fd;
    s->watch = (struct reactor_watch){.fd = fd, .events = EPOLLIN | EPOLLRDHUP, .fn = on_event};
    list_init(&s->tx_queue);
    c->sock = s;
    *ret_conn = c;
    return 0;
}
