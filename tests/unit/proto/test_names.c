// SPDX-License-Identifier: Apache-2.0
/*
 * Servers that have a name: the reactor does not wait for it, and a server that comes back at
 * another address is found there. Over TCP on the loopback's addresses; the name service is ours.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "tests/support/name_service.h"
#include "tests/support/suite.h"
#include "tests/unit/proto/rpc_pair.h"

static struct pair p;
static unsigned ups;
static char name[64];

static void on_up(struct rpc_peer *peer, struct rpc_link *l UNUSED, bool rebooted UNUSED,
                  void *arg UNUSED)
{
    ups++;
    rpc_peer_ready(peer);
}

static const struct rpc_peer_events events = {.up = on_up};

static void start(void)
{
    name_service_init();
    ups = 0;
    pair_init(&p, true);
    pair_start(&p);
    snprintf(name, sizeof name, "server.test:%u", p.port);
    name_service_set("server.test", "127.0.0.1");
}

static void stop(void)
{
    pair_stop(&p);
    name_service_hold(false);
}

static void connect_by_name(void)
{
    const char *address = name;

    ck_assert_int_eq(rpc_peer_create(p.client, &address, 1, &events, NULL, &p.peer), 0);
}

static void ping(unsigned flags, int status)
{
    struct pair_call c;

    pair_call_init(&c, RPC_OP_PING, NULL);
    c.call.flags = (uint16_t)flags;
    rpc_peer_call(p.peer, &c.call);
    ck_assert(pair_wait(&p, &c.done, 20000));
    ck_assert_int_eq(c.status, status);
    rpc_call_fini(&c.call);
}

START_TEST(a_name_service_that_does_not_answer_keeps_nobody_waiting)
{
    struct rpc_peer *by_name;

    name_service_hold(true);
    connect_by_name();
    by_name = p.peer;
    pair_connect(&p, NULL, NULL);
    ping(RPC_CALL_WAIT, 0); /* by number, on the same reactor */
    rpc_peer_destroy(p.peer);
    p.peer = by_name;
    while (!name_service_asking())
        pair_turn(&p);
    ck_assert_uint_eq(ups, 0);
    name_service_hold(false);
    ping(RPC_CALL_WAIT, 0);
    ck_assert_uint_eq(ups, 1);
}
END_TEST

START_TEST(a_server_that_comes_back_at_another_address_is_found)
{
    connect_by_name();
    ping(RPC_CALL_WAIT, 0);
    pair_kill_server(&p);
    snprintf(p.address, sizeof p.address, "127.0.0.2:%u", p.port);
    pair_serve(&p);
    name_service_set("server.test", "127.0.0.2");
    ping(RPC_CALL_WAIT, 0);
    ck_assert_uint_eq(ups, 2);
}
END_TEST

static void hold_names(struct rpc_peer *peer, struct rpc_link *l UNUSED, bool rebooted UNUSED,
                       void *arg UNUSED)
{
    name_service_hold(true);
    ups++;
    rpc_peer_ready(peer);
}

START_TEST(the_last_address_is_good_while_the_name_service_does_not_answer)
{
    static const struct rpc_peer_events holding = {.up = hold_names};
    const char *address = name;

    ck_assert_int_eq(rpc_peer_create(p.client, &address, 1, &holding, NULL, &p.peer), 0);
    ping(RPC_CALL_WAIT, 0);
    pair_kill_server(&p);
    while (!name_service_asking())
        pair_turn(&p);
    pair_serve(&p);
    ping(RPC_CALL_WAIT, 0);
    ck_assert_uint_eq(ups, 2);
    /* and the peer goes without waiting for an answer: stop() */
}
END_TEST

static void unknown_names(struct rpc_peer *peer, struct rpc_link *l UNUSED, bool rebooted UNUSED,
                          void *arg UNUSED)
{
    name_service_set("server.test", NULL);
    ups++;
    rpc_peer_ready(peer);
}

START_TEST(the_last_address_is_good_while_the_name_service_knows_nothing)
{
    static const struct rpc_peer_events forgetting = {.up = unknown_names};
    const char *address = name;

    ck_assert_int_eq(rpc_peer_create(p.client, &address, 1, &forgetting, NULL, &p.peer), 0);
    ping(RPC_CALL_WAIT, 0);
    pair_kill_server(&p);
    while (name_service_asked() < 3 || name_service_asking())
        pair_turn(&p);
    pair_serve(&p);
    ping(RPC_CALL_WAIT, 0);
    ck_assert_uint_eq(ups, 2);
}
END_TEST

START_TEST(a_name_that_nobody_knows_fails_who_does_not_wait_and_is_asked_for_again)
{
    name_service_set("server.test", NULL);
    connect_by_name();
    ping(0, -AIFS_EDOWN);
    ck_assert_int_eq(rpc_peer_last_error(p.peer), -EHOSTUNREACH);
    ck_assert(rpc_peer_is_unknown(p.peer));
    name_service_set("server.test", "127.0.0.1");
    ping(RPC_CALL_WAIT, 0);
    ck_assert(!rpc_peer_is_unknown(p.peer));
}
END_TEST

START_TEST(a_name_beside_a_number_keeps_nobody_waiting)
{
    const char *addresses[2] = {name, p.address};

    name_service_hold(true);
    ck_assert_int_eq(rpc_peer_create(p.client, addresses, 2, &events, NULL, &p.peer), 0);
    ping(RPC_CALL_WAIT, 0);
}
END_TEST

START_TEST(an_address_that_is_none_is_refused_at_once)
{
    const char *address = "server.test:x";

    ck_assert_int_eq(rpc_peer_create(p.client, &address, 1, NULL, NULL, &p.peer), -EINVAL);
    connect_by_name();
    ping(RPC_CALL_WAIT, 0);
}
END_TEST

/* On the virtual clock. Once a second at first, then in an eighth of the time, then every 15 s. */
START_TEST(a_name_is_asked_for_less_often_the_longer_the_server_is_away)
{
    struct pair v;
    const char *address = name;
    unsigned end, seconds = 0;

    pair_connect(&p, NULL, NULL);
    pair_kill_server(&p);
    pair_init(&v, false);
    pair_start(&v);
    ck_assert_int_eq(rpc_peer_create(v.client, &address, 1, NULL, NULL, &v.peer), 0);
    for (end = name_service_asked() + 40; name_service_asked() < end; seconds++) {
        clock_virtual_advance(&v.clock, NS_PER_S);
        pair_turn(&v);
    }
    ck_assert_uint_ge(seconds, 200);
    pair_stop(&v);
}
END_TEST

SUITE_MAIN("names", start, stop, a_name_service_that_does_not_answer_keeps_nobody_waiting,
           a_server_that_comes_back_at_another_address_is_found,
           the_last_address_is_good_while_the_name_service_does_not_answer,
           the_last_address_is_good_while_the_name_service_knows_nothing,
           a_name_that_nobody_knows_fails_who_does_not_wait_and_is_asked_for_again,
           a_name_beside_a_number_keeps_nobody_waiting, an_address_that_is_none_is_refused_at_once,
           a_name_is_asked_for_less_often_the_longer_the_server_is_away)
