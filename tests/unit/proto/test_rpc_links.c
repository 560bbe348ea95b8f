// SPDX-License-Identifier: Apache-2.0
/*
 * Links that break, on the virtual clock: reconnecting, sending again with the same id, what fails
 * and what waits, drops, duplicates and delays from seeded faults.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/fault/fault.h"
#include "proto/header_fmt.h"
#include "tests/support/suite.h"
#include "tests/unit/proto/rpc_pair.h"

static struct pair p;

static void start(void)
{
    pair_init(&p, false);
    pair_start(&p);
}

static void stop(void)
{
    net_loop_set_faults(NULL);
    net_loop_partition(p.address, false);
    pair_stop(&p);
}

static void call(struct pair_call *c, uint16_t flags, uint64_t timeout_ns)
{
    pair_call_init(c, RPC_OP_PING, NULL);
    c->call.flags = flags;
    c->call.timeout_ns = timeout_ns;
    rpc_peer_call(p.peer, &c->call);
}

static void expect(struct pair_call *c, int status)
{
    ck_assert(pair_wait(&p, &c->done, 60000));
    ck_assert_int_eq(c->status, status);
    ck_assert_uint_eq(c->times, 1);
    rpc_call_fini(&c->call);
}

START_TEST(an_unanswered_call_is_sent_again_with_its_id)
{
    struct pair_call a, once;

    pair_connect(&p, NULL, NULL);
    p.hold = true;
    call(&a, 0, 0);
    call(&once, RPC_CALL_ONCE, 0);
    ck_assert(pair_wait_count(&p, &p.n_notes, 2, 1000));
    p.hold = false;
    rpc_link_close(p.server_link, -AIFS_ECONN);
    expect(&once, -AIFS_ECONN);
    expect(&a, 0);
    ck_assert_uint_eq(p.n_notes, 3);
    ck_assert_uint_eq(p.notes[2].id, p.notes[0].id);
    ck_assert_uint_eq(p.notes[0].flags & RPC_FLAG_RESENT, 0);
    ck_assert_uint_eq(p.notes[2].flags & RPC_FLAG_RESENT, RPC_FLAG_RESENT);
    while (
        !list_empty(&p.held)) /* requests of the dead link are answered: the replies go nowhere */
        pair_release(&p, 0);
}
END_TEST

START_TEST(a_link_has_the_features_that_both_ends_have)
{
    struct pair_call a;

    pair_connect(&p, NULL, NULL);
    call(&a, RPC_CALL_WAIT, 0);
    expect(&a, 0);
    ck_assert_uint_eq(rpc_link_features(rpc_peer_link(p.peer)), RPC_FEATURES);
    ck_assert_uint_eq(rpc_link_features(p.server_link), RPC_FEATURES);
    pair_kill_server(&p); /* and one of the version before comes instead */
    p.server_options.without = RPC_FEATURE_BATCH;
    pair_serve(&p);
    call(&a, RPC_CALL_WAIT, 0);
    expect(&a, 0);
    ck_assert_uint_eq(rpc_link_features(rpc_peer_link(p.peer)) & RPC_FEATURE_BATCH, 0);
    ck_assert_uint_eq(rpc_link_features(p.server_link) & RPC_FEATURE_BATCH, 0);
}
END_TEST

START_TEST(a_partition_is_noticed_and_healed)
{
    struct pair_call a;

    pair_connect(&p, NULL, NULL);
    ck_assert(pair_wait_count(&p, &p.ups, 1, 1000));
    net_loop_partition(p.address, true);
    call(&a, RPC_CALL_WAIT, 0);
    pair_pass(&p, 8000);
    ck_assert(!a.done);
    ck_assert(!rpc_peer_is_up(p.peer));
    net_loop_partition(p.address, false);
    expect(&a, 0);
    ck_assert_uint_ge(p.ups, 2);
}
END_TEST

START_TEST(while_a_peer_is_down_calls_fail_unless_they_want_to_wait)
{
    struct pair_call early, fails, waits, times_out;

    pair_kill_server(&p);
    pair_connect(&p, NULL, NULL);
    call(&early, 0, 0); /* made before anything is known: fails when the first attempt has */
    expect(&early, -AIFS_EDOWN);
    ck_assert_int_eq(rpc_peer_last_error(p.peer), -ECONNREFUSED);
    call(&fails, 0, 0);
    expect(&fails, -AIFS_EDOWN);
    call(&waits, RPC_CALL_WAIT, 0);
    call(&times_out, RPC_CALL_WAIT, 500 * NS_PER_MS);
    expect(&times_out, -AIFS_ETIMEOUT);
    pair_pass(&p, 3000);
    ck_assert(!waits.done);
    pair_serve(&p);
    expect(&waits, 0);
}
END_TEST

/* How long after its return a server that was away for so long is found. */
static uint64_t found_after_ms(uint64_t away_ms)
{
    struct pair_call a;
    uint64_t from;

    pair_connect(&p, NULL, NULL);
    ck_assert(pair_wait_count(&p, &p.ups, 1, 1000));
    pair_pass(&p, 2000);
    pair_kill_server(&p);
    call(&a, RPC_CALL_WAIT, 0);
    pair_pass(&p, away_ms);
    ck_assert(!a.done);
    pair_serve(&p);
    from = reactor_now_ns(p.reactor);
    expect(&a, 0);
    return (reactor_now_ns(p.reactor) - from) / NS_PER_MS;
}

START_TEST(a_server_that_is_back_is_found_in_a_part_of_the_time_it_was_away)
{
    static const uint64_t away_ms[] = {60, 250, 500, 900, 1500, 2500, 4000, 6100, 20000, 60000};

    for (unsigned i = 0; i < ARRAY_LEN(away_ms); i++) {
        ck_assert_uint_le(found_after_ms(away_ms[i]), MIN(60 + away_ms[i] / 8, 2010));
        stop();
        start();
    }
}
END_TEST

START_TEST(a_server_that_hangs_up_at_once_is_not_asked_all_the_time)
{
    pair_connect(&p, NULL, NULL);
    for (unsigned i = 0; i < 10000; i++) {
        pair_turn(&p);
        if (p.server_link && p.ups > p.downs)
            rpc_link_close(p.server_link, -AIFS_ECONN);
    }
    ck_assert_uint_ge(p.ups, 5);
    ck_assert_uint_le(p.ups, 60);
}
END_TEST

struct events {
    unsigned ups, downs, reboots;
    bool hold_ready;
    struct pair_call session;
};

static void on_up(struct rpc_peer *peer, struct rpc_link *l, bool rebooted, void *arg)
{
    struct events *e = arg;

    e->ups++;
    e->reboots += rebooted;
    pair_call_init(&e->session, RPC_OP_PING, NULL);
    rpc_link_call(l, &e->session.call);
    if (!e->hold_ready)
        rpc_peer_ready(peer);
}

static void on_down(struct rpc_peer *peer, int status, void *arg)
{
    (void)peer;
    ck_assert_int_lt(status, 0);
    ((struct events *)arg)->downs++;
}

static unsigned strangers_gone;

static int stranger_head(struct net_conn *c UNUSED, const void *head UNUSED, uint32_t len UNUSED,
                         uint32_t bulk_len UNUSED, struct net_rx *rx UNUSED)
{
    return 0;
}

static void stranger_received(struct net_conn *c UNUSED, void *token UNUSED, int status UNUSED)
{
}

static void stranger_closed(struct net_conn *c, int status UNUSED)
{
    net_conn_free(c);
    strangers_gone++;
}

static void stranger_connected(void *arg, struct net_conn *c, int status)
{
    static const struct net_conn_ops ops = {stranger_head, stranger_received, stranger_closed};

    ck_assert_int_eq(status, 0);
    net_conn_start(c, &ops, NULL);
    ++*(unsigned *)arg;
}

START_TEST(who_has_a_key_gets_past_any_number_of_connections_that_say_nothing)
{
    struct net_connecting *connecting;
    struct net_addr addr;
    unsigned n = 1100, connected = 0;
    char err[128];

    strangers_gone = 0;
    ck_assert_int_eq(net_addr_resolve(p.address, 0, &addr, err, sizeof err), 0);
    for (unsigned i = 0; i < n; i++)
        ck_assert_int_eq(net_connect(p.reactor, &addr, &p.client_options.net, stranger_connected,
                                     &connected, &connecting),
                         0);
    ck_assert(pair_wait_count(&p, &connected, n, 1000));
    pair_connect(&p, NULL, NULL);
    ck_assert(pair_wait_count(&p, &p.ups, 1, 1000)); /* long before their time is over */
    ck_assert_uint_le(strangers_gone, n - 1024 + 1);
    ck_assert(pair_wait_count(&p, &strangers_gone, n, 10000));
}
END_TEST

START_TEST(waiting_calls_go_only_when_the_user_is_ready)
{
    const struct rpc_peer_events events = {on_up, on_down};
    struct events e = {.hold_ready = true};
    struct pair_call a;

    pair_connect(&p, &events, &e);
    call(&a, 0, 0);
    ck_assert(pair_wait_count(&p, &e.ups, 1, 1000));
    ck_assert(pair_wait(&p, &e.session.done, 1000));
    rpc_call_fini(&e.session.call);
    pair_pass(&p, 50);
    ck_assert(!a.done);
    rpc_peer_ready(p.peer);
    expect(&a, 0);
    ck_assert_uint_lt(p.notes[1].id, p.notes[0].id); /* made first, sent second */
    e.hold_ready = false;
    pair_kill_server(&p);
    ck_assert(pair_wait_count(&p, &e.downs, 1, 10000));
    pair_serve(&p);
    ck_assert(pair_wait_count(&p, &e.ups, 2, 10000));
    ck_assert_uint_eq(e.reboots, 1);
    ck_assert(pair_wait(&p, &e.session.done, 1000));
    rpc_call_fini(&e.session.call);
}
END_TEST

START_TEST(destroying_a_peer_ends_its_calls)
{
    struct pair_call sent, waiting;
    uint8_t back[4096];
    struct iovec in = {back, sizeof back};

    pair_connect(&p, NULL, NULL);
    p.hold = true;
    call(&sent, 0, 0);
    ck_assert(pair_wait_count(&p, &p.n_notes, 1, 1000));
    net_loop_partition(p.address, true);
    pair_call_init(&waiting, RPC_OP_OSS_READ, &(struct msg_read_req){0});
    waiting.call.bulk_in = &in;
    waiting.call.n_bulk_in = 1;
    rpc_peer_call(p.peer, &waiting.call);
    rpc_peer_destroy(p.peer);
    ck_assert(!sent.done && !waiting.done);
    expect(&sent, -AIFS_ECANCELLED);
    expect(&waiting, -AIFS_ECANCELLED);
    p.peer = NULL;
    pair_release(&p, 0);
}
END_TEST

START_TEST(duplicates_are_answered_once)
{
    struct net_loop_faults faults = {.duplicate = 65536, .max_delay_ns = 3 * NS_PER_MS, .seed = 5};
    struct pair_call a;

    pair_connect(&p, NULL, NULL);
    ck_assert(pair_wait_count(&p, &p.ups, 1, 1000));
    pair_pass(&p, 5);
    net_loop_set_faults(&faults);
    call(&a, 0, 0);
    expect(&a, 0);
    pair_pass(&p, 50);
    ck_assert_uint_eq(a.times, 1);
    ck_assert_uint_eq(p.n_notes,
                      2); /* the handler sees the same id twice: that is what slots are for */
    ck_assert_uint_eq(p.notes[0].id, p.notes[1].id);
}
END_TEST

/* Whatever is lost, every call ends once, in time, and nothing leaks. */
static void storm(uint64_t seed)
{
    struct net_loop_faults faults = {.drop = 3000,
                                     .duplicate = 6000,
                                     .reorder = 6000,
                                     .max_delay_ns = 20 * NS_PER_MS,
                                     .seed = seed};
    static struct pair_call calls[64];
    static uint8_t back[64][8192];
    static struct iovec in[64];
    struct msg_range range = {0, 0, 8192};
    struct msg_read_req read = {.target = 1, .n_ranges = 1, .ranges = &range};
    unsigned ok = 0;

    pair_connect(&p, NULL, NULL);
    net_loop_set_faults(&faults);
    for (unsigned i = 0; i < 64; i++) {
        in[i] = (struct iovec){back[i], sizeof back[i]};
        pair_call_init(&calls[i], i & 1 ? RPC_OP_OSS_READ : RPC_OP_PING, &read);
        if (i & 1) {
            calls[i].call.bulk_in = &in[i];
            calls[i].call.n_bulk_in = 1;
        }
        calls[i].call.flags = RPC_CALL_WAIT;
        calls[i].call.timeout_ns = (1 + i % 9) * NS_PER_S;
        rpc_peer_call(p.peer, &calls[i].call);
        pair_pass(&p, 7);
        if (i % 16 == 15 && p.server_link)
            rpc_link_close(p.server_link, -AIFS_ECONN);
        if (i % 10 == 9)
            rpc_call_cancel(&calls[i].call);
    }
    for (unsigned i = 0; i < 64; i++) {
        ck_assert(pair_wait(&p, &calls[i].done, 20000));
        ck_assert_uint_eq(calls[i].times, 1);
        ck_assert(calls[i].status == 0 || calls[i].status == -AIFS_ETIMEOUT ||
                  calls[i].status == -AIFS_ECANCELLED);
        ok += calls[i].status == 0;
        if (calls[i].status == 0 && calls[i].call.bulk_in_len)
            ck_assert_mem_eq(back[i], p.data, 8192);
        rpc_call_fini(&calls[i].call);
    }
    ck_assert_uint_gt(ok, 16);
}

START_TEST(every_call_ends_whatever_the_network_does)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        storm(seed);
        stop();
        start();
    }
}
END_TEST

/* Calls may fail, but end, and what comes after them works. Returns whether the n-th allocation was
 * reached. */
static bool with_failing_allocation(unsigned n)
{
    struct msg_name_req lookup = {.name = {"x", 1}};
    struct msg_range range = {0, 0, 8192};
    struct msg_read_req read = {.target = 1, .n_ranges = 1, .ranges = &range};
    struct msg_write_req write = {.target = 1};
    const void *reqs[4] = {NULL, &lookup, &read, &write};
    const unsigned ops[4] = {RPC_OP_PING, RPC_OP_LOOKUP, RPC_OP_OSS_READ, RPC_OP_OSS_WRITE};
    static uint8_t data[8192];
    struct iovec iov = {data, sizeof data};
    struct pair_call c[4], after;
    char spec[64];
    bool reached;

    pair_connect(&p, NULL, NULL);
    snprintf(spec, sizeof spec, "mem.alloc=error@%u", n);
    ck_assert_int_eq(fault_arm(spec), 0);
    for (unsigned i = 0; i < 4; i++) {
        pair_call_init(&c[i], ops[i], reqs[i]);
        c[i].call.flags = RPC_CALL_WAIT;
        c[i].call.bulk_in = c[i].call.bulk_out = &iov;
        c[i].call.n_bulk_in = ops[i] == RPC_OP_OSS_READ;
        c[i].call.n_bulk_out = ops[i] == RPC_OP_OSS_WRITE;
        rpc_peer_call(p.peer, &c[i].call);
    }
    for (unsigned i = 0; i < 4; i++) {
        ck_assert(pair_wait(&p, &c[i].done, 20000));
        ck_assert_uint_eq(c[i].times, 1);
        rpc_call_fini(&c[i].call);
    }
    reached = fault_count("mem.alloc") >= n;
    fault_disarm_all();
    call(&after, RPC_CALL_WAIT, 30 * NS_PER_S);
    expect(&after, 0);
    return reached;
}

START_TEST(any_allocation_may_fail)
{
    unsigned n = 1;

    while (with_failing_allocation(n)) {
        stop();
        start();
        n++;
    }
    ck_assert_uint_gt(n, 10);
}
END_TEST

SUITE_MAIN("links", start, stop, an_unanswered_call_is_sent_again_with_its_id,
           a_link_has_the_features_that_both_ends_have, a_partition_is_noticed_and_healed,
           a_server_that_is_back_is_found_in_a_part_of_the_time_it_was_away,
           a_server_that_hangs_up_at_once_is_not_asked_all_the_time,
           while_a_peer_is_down_calls_fail_unless_they_want_to_wait,
           who_has_a_key_gets_past_any_number_of_connections_that_say_nothing,
           waiting_calls_go_only_when_the_user_is_ready, destroying_a_peer_ends_its_calls,
           duplicates_are_answered_once, every_call_ends_whatever_the_network_does,
           any_allocation_may_fail)
