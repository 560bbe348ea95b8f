/* SPDX-License-Identifier: Apache-2.0 */
/* The socket: bytes that come in pieces, garbage, killed peers, IPv6. */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/net/frame_fmt.h"
#include "tests/component/net/harness.h"
#include "tests/support/suite.h"

#define HEAD 24u

static struct net_options tcp(void)
{
    struct net_options o;

    net_options_default(&o);
    o.want = NET_WANT_TCP;
    return o;
}

static struct child echo_child(void)
{
    struct child_options co = {
        .mode = END_ECHO, .want = NET_WANT_TCP, .n_bufs = 8, .buf_bytes = 65536};

    return child_start(&co);
}

/* ---- a peer that speaks by hand ---- */

static int raw_connect(uint16_t port)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval tv = {.tv_sec = 5};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;

    ck_assert_int_ge(fd, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
    setsockopt(fd, IPPROTO_TCP, 1 /* TCP_NODELAY */, &one, sizeof one);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

static void read_all(int fd, void *p, size_t len)
{
    if (len > 0) /* recv(2) of nothing waits for something */
        ck_assert_int_eq(recv(fd, p, len, MSG_WAITALL), (ssize_t)len);
}

/* The next message, past pings; its bulk goes to bulk. */
static struct frame raw_receive(int fd, uint8_t *head, uint8_t *bulk)
{
    uint8_t p[FRAME_BYTES];
    struct frame f;

    do {
        read_all(fd, p, sizeof p);
        ck_assert(frame_decode(p, NET_HEAD_MAX, NET_BULK_MAX, &f));
        read_all(fd, head, f.head_len);
        read_all(fd, bulk, f.bulk_len);
        ck_assert_uint_eq(frame_crc(p, head, f.head_len), f.crc);
    } while (f.type != FRAME_MESSAGE);
    return f;
}

static size_t raw_message(uint8_t *out, uint32_t bulk_len)
{
    uint8_t *head = out + FRAME_BYTES;

    memset(head, 0, HEAD);
    le64_store(head, 77);
    memset(head + HEAD, 0x5a, bulk_len);
    frame_encode(out, FRAME_MESSAGE, head, HEAD, bulk_len);
    return FRAME_BYTES + HEAD + bulk_len;
}

static bool ends_with_eof(int fd)
{
    uint8_t buf[4096];
    ssize_t n;

    while ((n = recv(fd, buf, sizeof buf, 0)) > 0)
        ;
    return n == 0 || errno == ECONNRESET;
}

START_TEST(a_message_may_come_byte_by_byte)
{
    struct child c = echo_child();
    int fd = raw_connect(c.port);
    static uint8_t out[4096];
    static uint8_t head[65536];
    static uint8_t bulk[65536];
    size_t len = raw_message(out, 700);
    struct frame f;

    raw_receive(fd, head, bulk); /* its hello */
    for (size_t i = 0; i < len; i++)
        ck_assert_int_eq(send(fd, out + i, 1, MSG_NOSIGNAL), 1);
    f = raw_receive(fd, head, bulk);
    ck_assert_uint_eq(f.head_len, HEAD);
    ck_assert_uint_eq(f.bulk_len, 700);
    ck_assert_mem_eq(head, out + FRAME_BYTES, HEAD);
    ck_assert_mem_eq(bulk, out + FRAME_BYTES + HEAD, 700);
    close(fd);
    child_kill(&c);
}
END_TEST

START_TEST(many_messages_may_come_in_one_piece)
{
    enum { N = 50 };
    struct child c = echo_child();
    int fd = raw_connect(c.port);
    static uint8_t out[N * 1024];
    static uint8_t head[65536];
    static uint8_t bulk[65536];
    size_t len = 0;

    for (int i = 0; i < N; i++)
        len += raw_message(out + len, 900);
    raw_receive(fd, head, bulk);
    ck_assert_int_eq(send(fd, out, len, MSG_NOSIGNAL), (ssize_t)len);
    for (int i = 0; i < N; i++)
        ck_assert_uint_eq(raw_receive(fd, head, bulk).bulk_len, 900);
    close(fd);
    child_kill(&c);
}
END_TEST

START_TEST(a_ping_is_answered)
{
    struct child c = echo_child();
    int fd = raw_connect(c.port);
    static uint8_t head[65536];
    static uint8_t bulk[65536];
    uint8_t p[FRAME_BYTES];
    struct frame f;

    raw_receive(fd, head, bulk);
    frame_encode(p, FRAME_PING, NULL, 0, 0);
    ck_assert_int_eq(send(fd, p, sizeof p, MSG_NOSIGNAL), FRAME_BYTES);
    read_all(fd, p, sizeof p);
    ck_assert(frame_decode(p, 0, 0, &f));
    ck_assert_uint_eq(f.type, FRAME_PONG);
    close(fd);
    child_kill(&c);
}
END_TEST

/* Each is sent on a connection of its own. */
static size_t garbage(int i, uint8_t *out)
{
    size_t len = raw_message(out, 100);

    switch (i) {
    case 0: /* another protocol */
        memcpy(out, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 28);
        return 28;
    case 1: /* a damaged head */
        out[FRAME_BYTES + 3] ^= 1;
        return len;
    case 2: /* a head too long */
        le32_store(out + 4, NET_HEAD_MAX + 1);
        return len;
    case 3: /* a bulk too long */
        le32_store(out + 8, NET_BULK_MAX + 1);
        return len;
    case 4: /* a type there is not */
        out[2] = FRAME_TYPE_END;
        return len;
    case 5: /* a control frame with a head */
        out[2] = FRAME_PING;
        return len;
    case 6: /* a part of the upgrade that nobody began */
        frame_encode(out, FRAME_SWITCH, NULL, 0, 0);
        return FRAME_BYTES;
    case 7: /* a head that the owner refuses */
        frame_encode(out, FRAME_MESSAGE, out + FRAME_BYTES, 3, 0);
        return FRAME_BYTES + 3;
    default:
        for (size_t k = 0; k < 4096; k++)
            out[k] = (uint8_t)(k * 37 + (size_t)i);
        return 4096;
    }
}

START_TEST(garbage_ends_its_connection_and_no_other)
{
    struct child c = echo_child();
    struct net_options o = tcp();
    static uint8_t out[8192];
    struct end e;

    end_init(&e, &o, END_LOAD, 65536, 80);
    end_connect_over(&e, c.port);
    end_echo(&e, 50);
    for (int i = 0; i < 12; i++) {
        int fd = raw_connect(c.port);
        size_t len = garbage(i, out);

        ck_assert_int_eq(send(fd, out, len, MSG_NOSIGNAL), (ssize_t)len);
        if (i != 6) /* a SWITCH out of place may be ignored; it must do no harm */
            ck_assert(ends_with_eof(fd));
        close(fd);
    }
    end_echo(&e, 50);
    end_hang_up(&e);
    end_fini(&e);
    child_kill(&c);
}
END_TEST

/* ---- the order of what is sent ---- */

#define ORDERED 3u

struct ordered {
    struct net_tx tx[ORDERED]; /* 0 and 1 leave together; the urgent 2 is sent when 0 has left */
    uint8_t heads[ORDERED][HEAD];
    unsigned done[ORDERED];
    struct net_conn *conn;
    bool closed;
};

static struct ordered ordered;

static void ordered_send(unsigned i)
{
    memset(ordered.heads[i], 'a' + (int)i, HEAD);
    net_send(ordered.conn, &ordered.tx[i]);
}

static void ordered_done(struct net_tx *tx, int status)
{
    unsigned i = (unsigned)(tx - ordered.tx);

    ck_assert_int_eq(status, 0);
    ordered.done[i]++;
    if (i == 0)
        ordered_send(2);
}

static void ordered_closed(struct net_conn *c, int status UNUSED)
{
    ordered.closed = true;
    net_conn_free(c);
}

static void ordered_connected(void *arg UNUSED, struct net_conn *c, int status)
{
    static const struct net_conn_ops ops = {.closed = ordered_closed};

    ck_assert_int_eq(status, 0);
    ordered.conn = c;
    net_conn_start(c, &ops, NULL);
    for (unsigned i = 0; i < ORDERED; i++)
        ordered.tx[i] = (struct net_tx){
            .head = ordered.heads[i], .head_len = HEAD, .urgent = i == 2, .done = ordered_done};
    ordered_send(0);
    ordered_send(1);
}

START_TEST(an_urgent_message_sent_when_another_has_left_leaves_and_takes_no_place_of_one_that_has)
{
    struct reactor_options ro = {.name = "test"};
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof sa;
    struct net_options o = tcp();
    struct net_connecting *n;
    struct net_addr a;
    struct reactor *r;
    char text[32];
    uint8_t head[HEAD], none[1];
    int fd, at = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(bind(at, (struct sockaddr *)&sa, sizeof sa), 0);
    ck_assert_int_eq(listen(at, 1), 0);
    ck_assert_int_eq(getsockname(at, (struct sockaddr *)&sa, &len), 0);
    snprintf(text, sizeof text, "127.0.0.1:%u", ntohs(sa.sin_port));
    a = addr_of(text);
    ck_assert_int_eq(reactor_create(&ro, &r), 0);
    ck_assert_int_eq(net_connect(r, &a, &o, ordered_connected, NULL, &n), 0);
    fd = accept(at, NULL, NULL);
    while (!ordered.done[0] || !ordered.done[1] || !ordered.done[2])
        reactor_run_once(r, NS_PER_S);
    for (unsigned i = 0; i < ORDERED; i++) {
        ck_assert_uint_eq(raw_receive(fd, head, none).head_len, HEAD);
        ck_assert_mem_eq(head, ordered.heads[i], HEAD);
        ck_assert_uint_eq(ordered.done[i], 1);
    }
    net_conn_close(ordered.conn, 0);
    while (!ordered.closed)
        reactor_run_once(r, NS_PER_S);
    reactor_destroy(r);
    close(fd);
    close(at);
}
END_TEST

/* ---- death ---- */

static bool has_turned(struct end *e)
{
    return e->closed || e->received > 50;
}

START_TEST(a_killed_peer_gives_everything_back)
{
    struct child_options co = {
        .want = NET_WANT_TCP, .buf_bytes = 1u << 20, .n_bufs = 12, .load = true};
    struct net_options o = tcp();
    struct end e;

    end_init(&e, &o, END_LOAD, 1u << 20, 130);
    e.to_send = UINT64_MAX;
    e.depth = 64;
    e.fixed_bulk = e.max_bulk = 1u << 20;
    for (int i = 0; i < 5; i++) {
        struct child c = child_start(&co);

        end_connect_over(&e, c.port);
        end_pump(&e);
        ck_assert(end_turn_until(&e, has_turned, END_SOON_MS));
        child_kill(&c);
        ck_assert(end_turn_until(&e, end_is_closed, END_SOON_MS));
        ck_assert_int_eq(e.closed_status, -AIFS_ECONN);
        ck_assert_uint_eq(e.done_ok + e.done_failed, e.sent);
        ck_assert_uint_eq(e.head_calls, e.received_calls);
        e.received = 0;
    }
    end_fini(&e);
}
END_TEST

/* ---- listening ---- */

START_TEST(ipv6_works)
{
    struct child_options co = {
        .mode = END_ECHO, .want = NET_WANT_TCP, .n_bufs = 8, .buf_bytes = 65536, .ipv6 = true};
    struct net_options o = tcp();
    struct child c;
    struct end e;
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};

    if (fd < 0 || bind(fd, (struct sockaddr *)&a6, sizeof a6) < 0) {
        printf("no IPv6 here: not tested\n");
        return;
    }
    close(fd);
    c = child_start(&co);
    end_init(&e, &o, END_LOAD, 65536, 80);
    e.ipv6 = true;
    end_connect_over(&e, c.port);
    ck_assert_int_eq(strncmp(net_conn_describe(e.conn), "[::1]:", 6), 0);
    end_echo(&e, 20);
    end_hang_up(&e);
    end_fini(&e);
    child_kill(&c);
}
END_TEST

static int n_accepted;

static void on_accepted(void *arg, struct net_conn *c)
{
    (void)arg;
    n_accepted++;
    net_conn_close(c, 0);
    net_conn_free(c);
}

START_TEST(running_out_of_descriptors_costs_a_caller_not_the_listener)
{
    struct reactor_options ro = {.name = "test"};
    struct net_addr a = addr_of("127.0.0.1:0");
    struct net_options o = tcp();
    struct net_listener *l;
    struct rlimit old;
    struct rlimit tight;
    struct reactor *r;
    int callers[3];
    int top;

    log_set_level(LOG_LEVEL_ERROR);
    ck_assert_int_eq(reactor_create(&ro, &r), 0);
    ck_assert_int_eq(net_listen(r, &a, &o, on_accepted, NULL, &l), 0);
    for (int i = 0; i < 3; i++)
        callers[i] = raw_connect(net_listener_port(l));
    getrlimit(RLIMIT_NOFILE, &old);
    top = dup(0);
    close(top);
    tight = (struct rlimit){(rlim_t)top, old.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &tight), 0);
    for (int i = 0; i < 3; i++)
        reactor_run_once(r, 0);
    ck_assert_int_eq(n_accepted, 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    for (int i = 0; i < 3; i++) {
        ck_assert(ends_with_eof(callers[i]));
        close(callers[i]);
    }
    callers[0] = raw_connect(net_listener_port(l));
    while (n_accepted == 0)
        reactor_run_once(r, NS_PER_S);
    close(callers[0]);
    net_listener_close(l);
    reactor_destroy(r);
}
END_TEST

/* The spare descriptor, too, is taken by somebody who was quicker. */
START_TEST(without_any_descriptor_callers_wait_and_the_listener_does_not_spin)
{
    struct reactor_options ro = {.name = "test"};
    struct net_addr a = addr_of("127.0.0.1:0");
    struct net_options o = tcp();
    struct net_listener *l;
    struct rlimit old, tight;
    struct reactor *r;
    uint64_t end;
    unsigned turns = 0;
    int caller, top;

    log_set_level(LOG_LEVEL_ERROR);
    ck_assert_int_eq(reactor_create(&ro, &r), 0);
    getrlimit(RLIMIT_NOFILE, &old);
    top = dup(0);
    close(top);
    tight = (struct rlimit){(rlim_t)top + 1, old.rlim_max}; /* for what listens, and nothing else */
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &tight), 0);
    ck_assert_int_eq(net_listen(r, &a, &o, on_accepted, NULL, &l), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    caller = raw_connect(net_listener_port(l));
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &tight), 0);
    end = clock_mono_ns(clock_real()) + NS_PER_S;
    for (; clock_mono_ns(clock_real()) < end; turns++)
        reactor_run_once(r, 50 * NS_PER_MS);
    ck_assert_int_eq(n_accepted, 0);
    ck_assert_uint_le(turns, 100);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    while (n_accepted == 0)
        reactor_run_once(r, NS_PER_S);
    close(caller);
    net_listener_close(l);
    reactor_destroy(r);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *t = tcase_create("net-socket");

    if (child_main(argc, argv) >= 0)
        return 0;
    log_set_level(LOG_LEVEL_ERROR);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_message_may_come_byte_by_byte);
    tcase_add_test(t, many_messages_may_come_in_one_piece);
    tcase_add_test(t, a_ping_is_answered);
    tcase_add_test(t, garbage_ends_its_connection_and_no_other);
    tcase_add_test(
        t, an_urgent_message_sent_when_another_has_left_leaves_and_takes_no_place_of_one_that_has);
    tcase_add_test(t, a_killed_peer_gives_everything_back);
    tcase_add_test(t, ipv6_works);
    tcase_add_test(t, running_out_of_descriptors_costs_a_caller_not_the_listener);
    tcase_add_test(t, without_any_descriptor_callers_wait_and_the_listener_does_not_spin);
    return suite_run_case("net-socket", t);
}
