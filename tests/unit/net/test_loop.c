/* SPDX-License-Identifier: Apache-2.0 */
/* The in-process transport on a virtual clock: order, faults by seed, partition, back-pressure,
 * death. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/net/net.h"
#include "tests/support/suite.h"

#define N_MAX 400

struct side {
    struct net_conn *conn;
    uint32_t got[4 * N_MAX]; /* numbers of the messages, as they came */
    unsigned n_got;
    uint32_t bulk[64];
    unsigned refuse; /* so many heads get -EAGAIN */
    bool closed;
    int status;
};

struct sent {
    struct net_tx tx;
    uint32_t number;
    uint32_t payload[64];
    struct iovec iov;
    int status;
    unsigned done;
};

static struct clock_virtual clk;
static struct reactor *r;
static struct net_options options;
static struct net_listener *listener;
static struct side client, server;
static struct sent sents[N_MAX];
static unsigned n_answers;
static int answer;

static int on_head(struct net_conn *c, const void *head, uint32_t head_len, uint32_t bulk_len,
                   struct net_rx *rx)
{
    struct side *s = net_conn_arg(c);

    ck_assert_uint_eq(head_len, sizeof(uint32_t));
    if (s->refuse > 0) {
        s->refuse--;
        return -EAGAIN;
    }
    memcpy(&s->got[s->n_got], head, sizeof(uint32_t));
    if (bulk_len) {
        rx->iov[0] = (struct iovec){s->bulk, bulk_len};
        rx->n_iov = 1;
    }
    rx->token = s;
    return 0;
}

static void on_received(struct net_conn *c, void *token, int status)
{
    struct side *s = token;

    ck_assert_ptr_eq(s, net_conn_arg(c));
    ck_assert_int_eq(status, 0);
    s->n_got++;
}

static void on_closed(struct net_conn *c, int status)
{
    struct side *s = net_conn_arg(c);

    ck_assert(!s->closed);
    s->closed = true;
    s->status = status;
    s->conn = NULL;
    net_conn_free(c);
}

static const struct net_conn_ops ops = {on_head, on_received, on_closed};

static void on_accepted(void *arg, struct net_conn *c)
{
    struct side *s = arg;

    memset(s, 0, sizeof *s);
    s->conn = c;
    net_conn_start(c, &ops, s);
}

static void on_connected(void *arg, struct net_conn *c, int status)
{
    struct side *s = arg;

    n_answers++;
    answer = status;
    if (status < 0)
        return;
    memset(s, 0, sizeof *s);
    s->conn = c;
    net_conn_start(c, &ops, s);
}

static void turn(void)
{
    while (reactor_run_once(r, 0))
        ;
}

static void pass(uint64_t ns)
{
    for (uint64_t step = 10 * NS_PER_MS; ns > 0; ns -= MIN(ns, step)) {
        clock_virtual_advance(&clk, MIN(ns, step));
        turn();
    }
}

static struct net_connecting *begin(const char *text)
{
    struct net_connecting *n;
    struct net_addr a;
    char err[100];

    ck_assert_int_eq(net_addr_resolve(text, 0, &a, err, sizeof err), 0);
    ck_assert(a.loop);
    ck_assert_int_eq(net_connect(r, &a, &options, on_connected, &client, &n), 0);
    return n;
}

static void setup(void)
{
    struct reactor_options ro = {.name = "test", .clock = &clk.clock};
    struct net_addr a;
    char err[100];

    log_set_level(LOG_LEVEL_ERROR);
    clock_virtual_init(&clk, NS_PER_S, 0);
    net_options_default(&options);
    net_loop_set_faults(NULL);
    ck_assert_int_eq(reactor_create(&ro, &r), 0);
    ck_assert_int_eq(net_addr_resolve("loop:server", 0, &a, err, sizeof err), 0);
    ck_assert_int_eq(net_listen(r, &a, &options, on_accepted, &server, &listener), 0);
    n_answers = 0;
    memset(sents, 0, sizeof sents);
    begin("loop:server");
    ck_assert_uint_eq(n_answers, 0);
    turn();
    ck_assert_uint_eq(n_answers, 1);
    ck_assert_int_eq(answer, 0);
}

static void teardown(void)
{
    net_loop_partition("server", false);
    if (client.conn)
        net_conn_close(client.conn, 0);
    if (server.conn)
        net_conn_close(server.conn, 0);
    turn();
    ck_assert(client.closed && server.closed);
    net_listener_close(listener);
    turn();
    reactor_destroy(r);
}

static void on_done(struct net_tx *tx, int status)
{
    struct sent *s = container_of(tx, struct sent, tx);

    s->done++;
    s->status = status;
}

static void send_from(struct side *s, uint32_t first, uint32_t n, bool bulk)
{
    for (uint32_t i = first; i < first + n; i++) {
        struct sent *m = &sents[i];

        m->number = i;
        for (unsigned k = 0; k < ARRAY_LEN(m->payload); k++)
            m->payload[k] = i * 1000 + k;
        m->iov = (struct iovec){m->payload, sizeof m->payload};
        m->tx = (struct net_tx){.head = &m->number, .head_len = 4, .done = on_done};
        if (bulk) {
            m->tx.iov = &m->iov;
            m->tx.n_iov = 1;
        }
        net_send(s->conn, &m->tx);
        ck_assert_uint_eq(m->done, 0);
    }
}

static bool all_done_once(unsigned n, int status)
{
    for (unsigned i = 0; i < n; i++)
        if (sents[i].done != 1 || sents[i].status != status)
            return false;
    return true;
}

static bool in_order(const struct side *s)
{
    for (unsigned i = 1; i < s->n_got; i++)
        if (s->got[i] < s->got[i - 1])
            return false;
    return true;
}

START_TEST(messages_arrive_in_order_with_their_bulk)
{
    send_from(&client, 0, 100, true);
    turn();
    ck_assert_uint_eq(server.n_got, 100);
    ck_assert(in_order(&server));
    ck_assert_uint_eq(server.bulk[63], 99 * 1000 + 63);
    ck_assert(all_done_once(100, 0));
    ck_assert_int_eq(net_conn_kind(client.conn), NET_LOOP);
    ck_assert_str_eq(net_conn_describe(client.conn), "loop:server loop");
}
END_TEST

static void on_urgent_done(struct net_tx *tx, int status)
{
    ck_assert(tx->urgent);
    ck_assert_int_eq(status, 0);
}

START_TEST(what_is_urgent_goes_ahead_of_what_waits)
{
    static uint32_t number = 77;
    struct net_tx urgent = {.head = &number, .head_len = 4, .urgent = true, .done = on_urgent_done};

    send_from(&client, 0, 10, true);
    net_send(client.conn, &urgent);
    turn();
    ck_assert_uint_eq(server.n_got, 11);
    ck_assert_uint_eq(server.got[0], 77);
    server.got[0] = 0;
    ck_assert(in_order(&server));
    ck_assert(all_done_once(10, 0));
}
END_TEST

START_TEST(a_delay_takes_its_time_and_keeps_the_order)
{
    struct net_loop_faults f = {
        .min_delay_ns = 10 * NS_PER_MS, .max_delay_ns = 100 * NS_PER_MS, .seed = 1};

    net_loop_set_faults(&f);
    send_from(&client, 0, 100, false);
    turn();
    ck_assert_uint_eq(server.n_got, 0);
    pass(9 * NS_PER_MS);
    ck_assert_uint_eq(server.n_got, 0);
    pass(200 * NS_PER_MS);
    ck_assert_uint_eq(server.n_got, 100);
    ck_assert(in_order(&server));
}
END_TEST

/* The third message goes twice, the fifth is lost and the connection with it. */
static void five(void *arg, const struct reactor *from, const struct reactor *to,
                 enum net_loop_parcel kind, struct net_loop_fate *ret_fate)
{
    unsigned *n = arg;

    ck_assert_ptr_eq(from, r);
    ck_assert_ptr_eq(to, r);
    if (kind != NET_LOOP_MESSAGE)
        return;
    ++*n;
    ret_fate->twice = *n == 3;
    ret_fate->lose = ret_fate->sever = *n == 6; /* the copy has been asked for too */
}

START_TEST(a_policy_decides_about_every_message_and_ends_the_connection)
{
    unsigned n = 0;

    net_loop_set_policy(five, &n);
    send_from(&client, 0, 7, false);
    pass(10 * NS_PER_MS);
    net_loop_set_policy(NULL, NULL);
    ck_assert_uint_eq(server.n_got, 5);
    ck_assert_uint_eq(server.got[2], 2);
    ck_assert_uint_eq(server.got[3], 2);
    ck_assert_uint_eq(server.got[4], 3);
    ck_assert(client.closed && server.closed);
}
END_TEST

/* What came of 300 messages under faults. */
static unsigned run_with(const struct net_loop_faults *f, uint32_t out[4 * N_MAX])
{
    server.n_got = 0;
    memset(sents, 0, sizeof sents);
    net_loop_set_faults(f);
    send_from(&client, 0, 300, false);
    pass(300 * NS_PER_MS);
    net_loop_set_faults(NULL);
    memcpy(out, server.got, sizeof server.got);
    return server.n_got;
}

START_TEST(the_same_seed_gives_the_same_faults)
{
    struct net_loop_faults f = {.drop = 6554,
                                .duplicate = 6554,
                                .reorder = 6554,
                                .min_delay_ns = 0,
                                .max_delay_ns = 50 * NS_PER_MS,
                                .seed = 42};
    static uint32_t a[4 * N_MAX];
    static uint32_t b[4 * N_MAX];
    static uint32_t c[4 * N_MAX];
    unsigned n = run_with(&f, a);

    ck_assert_uint_eq(run_with(&f, b), n);
    ck_assert_mem_eq(a, b, n * sizeof a[0]);
    f.seed = 43;
    ck_assert(run_with(&f, c) != n || memcmp(a, c, n * sizeof a[0]) != 0);
}
END_TEST

START_TEST(dropped_messages_are_done_and_do_not_arrive)
{
    struct net_loop_faults f = {.drop = 32768, .seed = 7};
    static uint32_t got[4 * N_MAX];
    unsigned n = run_with(&f, got);

    ck_assert_uint_gt(n, 100);
    ck_assert_uint_lt(n, 200);
    ck_assert(all_done_once(300, 0));
}
END_TEST

START_TEST(duplicated_messages_arrive_twice)
{
    struct net_loop_faults f = {.duplicate = 65536, .seed = 7};
    static uint32_t got[4 * N_MAX];

    ck_assert_uint_eq(run_with(&f, got), 600);
    ck_assert_uint_eq(got[0], got[1]);
}
END_TEST

START_TEST(reordered_messages_arrive_later_than_the_next)
{
    struct net_loop_faults f = {.reorder = 6554, .seed = 7};
    static uint32_t got[4 * N_MAX];

    ck_assert_uint_eq(run_with(&f, got), 300);
    ck_assert(!in_order(&server));
}
END_TEST

START_TEST(a_short_partition_loses_messages_and_not_the_connection)
{
    net_loop_partition("server", true);
    send_from(&client, 0, 10, false);
    pass(3 * NS_PER_S);
    net_loop_partition("server", false);
    pass(3 * NS_PER_S);
    send_from(&client, 10, 10, false);
    turn();
    ck_assert(!client.closed && !server.closed);
    ck_assert_uint_eq(server.n_got, 10);
    ck_assert_uint_eq(server.got[0], 10);
}
END_TEST

START_TEST(a_long_partition_is_found_by_ping_at_both_ends)
{
    net_loop_partition("server", true);
    pass(4 * NS_PER_S);
    ck_assert(!client.closed && !server.closed);
    pass(2 * NS_PER_S);
    ck_assert(client.closed && server.closed);
    ck_assert_int_eq(client.status, -AIFS_ECONN);
}
END_TEST

START_TEST(an_idle_connection_lives_for_ever)
{
    pass(600 * NS_PER_S);
    ck_assert(!client.closed && !server.closed);
}
END_TEST

/* The answer to a ping takes 40 ms. */
START_TEST(an_idle_connection_lives_with_a_time_out_that_is_no_longer_than_the_interval)
{
    static const struct net_loop_faults slow = {.min_delay_ns = 20 * NS_PER_MS,
                                                .max_delay_ns = 20 * NS_PER_MS};

    net_conn_close(client.conn, 0);
    turn();
    ck_assert(client.closed && server.closed);
    options.ping_timeout_ns = 500 * NS_PER_MS;
    begin("loop:server");
    turn();
    net_loop_set_faults(&slow);
    pass(60 * NS_PER_S);
    ck_assert(!client.closed && !server.closed);
    net_loop_partition("server", true);
    pass(800 * NS_PER_MS);
    ck_assert(client.closed);
}
END_TEST

START_TEST(a_process_that_was_stopped_itself_does_not_blame_its_peer)
{
    pass(NS_PER_S + NS_PER_MS);
    clock_virtual_advance(&clk, 3600 * NS_PER_S);
    turn();
    pass(10 * NS_PER_S);
    ck_assert(!client.closed && !server.closed);
}
END_TEST

START_TEST(a_closed_end_closes_the_other)
{
    send_from(&client, 0, 5, false);
    net_conn_close(client.conn, -EINTR);
    ck_assert(!client.closed);
    turn();
    ck_assert(client.closed && server.closed);
    ck_assert_int_eq(client.status, -EINTR);
    ck_assert_int_eq(server.status, -AIFS_ECONN);
    ck_assert(all_done_once(5, -AIFS_ECONN));
}
END_TEST

START_TEST(sending_on_a_dying_connection_fails_later)
{
    net_conn_close(client.conn, 0);
    send_from(&client, 0, 3, true);
    ck_assert(!net_conn_writable(client.conn));
    turn();
    ck_assert(all_done_once(3, -AIFS_ECONN));
}
END_TEST

START_TEST(a_refused_head_waits_for_resume_and_keeps_its_place)
{
    server.refuse = 1;
    send_from(&client, 0, 20, true);
    turn();
    ck_assert_uint_eq(server.n_got, 0);
    pass(60 * NS_PER_S); /* nobody takes it for dead */
    ck_assert(!client.closed && !server.closed);
    net_conn_resume(server.conn);
    turn();
    ck_assert_uint_eq(server.n_got, 20);
    ck_assert(in_order(&server));
}
END_TEST

START_TEST(connecting_to_nobody_is_refused)
{
    begin("loop:nobody");
    turn();
    ck_assert_uint_eq(n_answers, 2);
    ck_assert_int_eq(answer, -ECONNREFUSED);
}
END_TEST

START_TEST(connecting_through_a_partition_times_out)
{
    net_loop_partition("server", true);
    begin("loop:server");
    pass(4 * NS_PER_S);
    ck_assert_uint_eq(n_answers, 1);
    pass(2 * NS_PER_S);
    ck_assert_uint_eq(n_answers, 2);
    ck_assert_int_eq(answer, -AIFS_ETIMEOUT);
    net_loop_partition("server", false);
    while (!client.closed) /* the first connection did not survive it either */
        pass(NS_PER_S);
}
END_TEST

START_TEST(a_cancelled_connect_tells_nobody)
{
    struct net_connecting *n;

    net_conn_close(client.conn, 0);
    turn();
    n = begin("loop:server");
    net_connect_cancel(n);
    turn();
    ck_assert_uint_eq(n_answers, 1);
    ck_assert(server.closed); /* accepted, and closed again */
}
END_TEST

static void window_is_bounded(void)
{
    struct net_connecting *n UNUSED;

    net_conn_close(client.conn, 0);
    turn();
    options.max_pending_bytes = 3000;
    n = begin("loop:server");
    turn();
}

START_TEST(a_receiver_that_takes_nothing_stops_the_sender)
{
    window_is_bounded();
    server.refuse = 1;
    send_from(&client, 0, 100, true);
    turn();
    ck_assert(!net_conn_writable(client.conn));
    ck_assert_uint_eq(sents[99].done, 0);
    net_conn_resume(server.conn);
    turn();
    ck_assert_uint_eq(server.n_got, 100);
    ck_assert(net_conn_writable(client.conn));
    ck_assert(all_done_once(100, 0));
}
END_TEST

SUITE_MAIN("net-loop", setup, teardown, messages_arrive_in_order_with_their_bulk,
           what_is_urgent_goes_ahead_of_what_waits, a_delay_takes_its_time_and_keeps_the_order,
           a_policy_decides_about_every_message_and_ends_the_connection,
           the_same_seed_gives_the_same_faults, dropped_messages_are_done_and_do_not_arrive,
           duplicated_messages_arrive_twice, reordered_messages_arrive_later_than_the_next,
           a_short_partition_loses_messages_and_not_the_connection,
           a_long_partition_is_found_by_ping_at_both_ends,
           an_idle_connection_lives_with_a_time_out_that_is_no_longer_than_the_interval,
           an_idle_connection_lives_for_ever,
           a_process_that_was_stopped_itself_does_not_blame_its_peer, a_closed_end_closes_the_other,
           sending_on_a_dying_connection_fails_later,
           a_refused_head_waits_for_resume_and_keeps_its_place, connecting_to_nobody_is_refused,
           connecting_through_a_partition_times_out, a_cancelled_connect_tells_nobody,
           a_receiver_that_takes_nothing_stops_the_sender)
