/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes from the network below proto: a stream of frames on a socket, active messages of UCX,
 * transport offers. Undamaged input must arrive whole and in order however it is cut; damaged input
 * must end the connection or do nothing; every head taken gets its received() once.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/net/ucx_int.h"
#include "tests/fuzz/fuzz.h"

#define STREAM_MAX (256u * 1024u)
#define BULK_MAX   5000u
#define AM_MAX     40u

static struct reactor *reactor;

/* ---- the owner of a connection ---- */

struct owner {
    struct rng *g;
    struct net_conn *conn;
    uint32_t n_heads, n_received, expect; /* expect: number of the next message */
    bool sane;                            /* the input is undamaged: everything must be right */
    bool closed;
    uint32_t number, bulk_len;
    uint8_t bulk[BULK_MAX];
};

static uint8_t bulk_byte(uint32_t number, uint32_t i)
{
    return (uint8_t)(number * 7 + i);
}

static int on_head(struct net_conn *c, const void *head, uint32_t head_len, uint32_t bulk_len,
                   struct net_rx *rx)
{
    struct owner *o = net_conn_arg(c);
    uint32_t cut;

    if (rng_below(o->g, 8) == 0)
        return -EAGAIN;
    if (head_len < 4 || bulk_len > BULK_MAX) {
        FUZZ_CHECK(!o->sane);
        return -AIFS_EPROTO;
    }
    o->number = le32_load(head);
    o->bulk_len = bulk_len;
    FUZZ_CHECK(!o->sane || o->number == o->expect);
    o->n_heads++;
    rx->token = o;
    memset(o->bulk, 0xee, sizeof o->bulk);
    if (bulk_len == 0 || (!o->sane && rng_below(o->g, 4) == 0))
        return 0; /* no bulk, or thrown away */
    cut = rng_below(o->g, bulk_len + 1);
    rx->iov[0] = (struct iovec){o->bulk, cut};
    rx->iov[1] = (struct iovec){o->bulk + cut, bulk_len - cut};
    rx->n_iov = 2;
    return 0;
}

static void on_received(struct net_conn *c, void *token, int status)
{
    struct owner *o = token;

    FUZZ_CHECK(o == net_conn_arg(c));
    o->n_received++;
    o->expect++;
    if (!o->sane)
        return;
    FUZZ_CHECK(status == 0);
    for (uint32_t i = 0; i < o->bulk_len; i++)
        FUZZ_CHECK(o->bulk[i] == bulk_byte(o->number, i));
}

static void on_closed(struct net_conn *c, int status)
{
    struct owner *o = net_conn_arg(c);

    FUZZ_CHECK(status < 0 || !o->sane);
    FUZZ_CHECK(o->n_heads == o->n_received);
    o->closed = true;
    net_conn_free(c);
}

static const struct net_conn_ops ops = {on_head, on_received, on_closed};

static int owner_open(struct owner *o, struct rng *g)
{
    struct net_options options;
    int sv[2];

    memset(o, 0, sizeof *o);
    o->g = g;
    net_options_default(&options);
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sv) == 0);
    FUZZ_CHECK(sock_conn_create(reactor, &options, sv[0], "fuzz", &o->conn) == 0);
    net_conn_start(o->conn, &ops, o);
    return sv[1];
}

static void turn(struct owner *o)
{
    for (int i = 0; i < 64; i++) {
        if (!o->closed)
            net_conn_resume(o->conn);
        if (!reactor_run_once(reactor, 0))
            break;
    }
}

static void owner_close(struct owner *o, int fd)
{
    close(fd);
    o->sane = false;
    if (!o->closed)
        net_conn_close(o->conn, -EINTR);
    while (!o->closed)
        reactor_run_once(reactor, 0);
    reactor_run_once(reactor, 0);
}

/* ---- frames on a socket ---- */

static size_t add_message(struct rng *g, uint8_t *out, uint32_t number)
{
    uint32_t head_len = 4 + (rng_below(g, 20) == 0 ? rng_below(g, 40000) : rng_below(g, 200));
    uint32_t bulk_len = rng_below(g, 3) ? rng_below(g, BULK_MAX + 1) : 0;
    uint8_t *head = out + FRAME_BYTES;

    memset(head, 0x33, head_len);
    le32_store(head, number);
    for (uint32_t i = 0; i < bulk_len; i++)
        head[head_len + i] = bulk_byte(number, i);
    frame_encode(out, FRAME_MESSAGE, head, head_len, bulk_len);
    return FRAME_BYTES + head_len + bulk_len;
}

static size_t add_control(struct rng *g, uint8_t *out, bool sane)
{
    enum frame_type type =
        sane ? (rng_below(g, 2) ? FRAME_PING : FRAME_PONG)
             : (enum frame_type)(FRAME_PING + rng_below(g, FRAME_TYPE_END - FRAME_PING));
    uint32_t len = type == FRAME_ADDRESS ? rng_below(g, 300) : 0;

    memset(out + FRAME_BYTES, 0x44, len);
    frame_encode(out, type, out + FRAME_BYTES, len, 0);
    return FRAME_BYTES + len;
}

static void fuzz_stream(struct rng *g)
{
    static uint8_t stream[STREAM_MAX];
    static uint8_t scratch[65536];
    struct owner o;
    int fd = owner_open(&o, g);
    uint32_t n = 1 + rng_below(g, 12);
    uint32_t messages = 0;
    size_t len = 0;
    size_t at = 0;

    o.sane = rng_below(g, 2);
    for (uint32_t i = 0; i < n; i++)
        len += rng_below(g, 4) ? add_message(g, stream + len, messages++)
                               : add_control(g, stream + len, o.sane);
    if (!o.sane)
        len = fuzz_mutate(g, stream, len);
    while (at < len && !o.closed) {
        size_t want = 1 + (rng_below(g, 2) ? rng_below(g, 64) : rng_below(g, 30000));
        ssize_t k = send(fd, stream + at, MIN(want, len - at), MSG_NOSIGNAL);

        if (k > 0)
            at += (size_t)k;
        turn(&o);
        while (read(fd, scratch, sizeof scratch) > 0)
            ; /* pongs */
    }
    turn(&o);
    FUZZ_CHECK(!o.sane || (!o.closed && o.n_received == messages));
    owner_close(&o, fd);
}

/* ---- active messages ---- */

static size_t make_refs(struct rng *g, uint8_t *out, uint32_t bulk_len, uint32_t number)
{
    static uint8_t sources[AM_MAX][BULK_MAX]; /* one each: a message may be held and read later */
    uint8_t *source = sources[number % AM_MAX];
    uint32_t cut = rng_below(g, bulk_len + 1);

    for (uint32_t i = 0; i < bulk_len; i++)
        source[i] = bulk_byte(number, i);
    le64_store(out, (uintptr_t)source);
    le64_store(out + 8, cut);
    le64_store(out + 16, (uintptr_t)source + cut);
    le64_store(out + 24, bulk_len - cut);
    return 32;
}

static void send_am(struct rng *g, struct owner *o, uint32_t number)
{
    static uint8_t data[65536];
    uint8_t header[UCX_HEADER_BYTES];
    uint32_t head_len = 4 + rng_below(g, 200);
    uint32_t bulk_len = 1 + rng_below(g, BULK_MAX);
    size_t len = head_len;
    size_t header_len = sizeof header;
    ucp_am_recv_param_t param = {0};
    enum ucx_type type = rng_below(g, 2) ? UCX_MESSAGE : UCX_REF;
    uint8_t *exact;

    memset(data, 0x33, head_len);
    le32_store(data, number);
    if (type == UCX_REF)
        len += make_refs(g, data + head_len, bulk_len, number);
    for (uint32_t i = 0; type == UCX_MESSAGE && i < bulk_len; i++, len++)
        data[len] = bulk_byte(number, i);
    if (!o->sane && rng_below(g, 6) == 0)
        type = (enum ucx_type)rng_below(g, 8);
    ucx_header_encode(header, type, head_len, bulk_len, number);
    if (!o->sane && rng_below(g, 2))
        len = fuzz_mutate(g, data, len);
    if (!o->sane && rng_below(g, 3) == 0)
        header_len = fuzz_mutate(g, header, header_len);
    exact = malloc(len ? len : 1); /* so that a sanitizer sees every byte too many */
    memcpy(exact, data, len);
    ucx_on_am(o->conn->ucx, header, header_len, exact, len, &param);
    free(exact);
}

static void fuzz_am(struct rng *g)
{
    uint8_t offer[NET_OFFER_BYTES];
    uint32_t offer_len = sizeof offer;
    struct owner o;
    int fd = owner_open(&o, g);
    uint32_t n = 1 + rng_below(g, AM_MAX);
    struct net_ucx *u;

    o.sane = rng_below(g, 2);
    FUZZ_CHECK(net_conn_offer(o.conn, offer, &offer_len) == 0);
    u = o.conn->ucx;
    u->theirs.pid = (uint32_t)getpid();
    u->choice = o.sane || rng_below(g, 2) ? CHOICE_SHM : CHOICE_RDMA;
    u->receiving = rng_below(g, 2);
    for (uint32_t i = 0; i < n && !o.closed; i++) {
        send_am(g, &o, i);
        if (rng_below(g, 4) == 0)
            turn(&o);
        if (!o.closed && rng_below(g, 8) == 0) {
            u->receiving = true;
            ucx_take_held(u);
        }
    }
    if (!o.closed) {
        u->receiving = true;
        ucx_take_held(u);
    }
    for (int i = 0; i < 200 && !o.closed && o.n_received < n; i++)
        turn(&o);
    FUZZ_CHECK(!o.sane || (!o.closed && o.n_received == n));
    owner_close(&o, fd);
}

/* ---- offers ---- */

static void fuzz_offer(struct rng *g)
{
    struct offer a;
    struct offer b;
    uint8_t wire[OFFER_BYTES];
    uint8_t *exact;
    size_t len;

    FUZZ_CHECK(offer_of_this_process(&a) == 0);
    a.want = (uint8_t)rng_below(g, NET_WANT_RDMA + 1);
    a.flags = (uint16_t)rng_below(g, 4);
    offer_encode(&a, wire);
    len = fuzz_mutate(g, wire, sizeof wire);
    exact = malloc(len ? len : 1);
    memcpy(exact, wire, len);
    if (offer_decode(exact, (uint32_t)len, &b) == 0) {
        FUZZ_CHECK(offer_choose(&a, &b).choice == offer_choose(&b, &a).choice);
        FUZZ_CHECK(offer_choose(&a, &b).refused == offer_choose(&b, &a).refused);
    }
    free(exact);
}

int main(int argc, char **argv)
{
    static const struct fuzz_case cases[] = {
        {"stream", fuzz_stream}, {"am", fuzz_am}, {"offer", fuzz_offer}};
    struct reactor_options options = {.name = "fuzz"};
    int rc;

    log_set_level(LOG_LEVEL_ERROR);
    if (reactor_create(&options, &reactor) < 0)
        return 1;
    rc = fuzz_main(argc, argv, cases, ARRAY_LEN(cases));
    reactor_destroy(reactor);
    return rc;
}
