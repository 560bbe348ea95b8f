// SPDX-License-Identifier: Apache-2.0
/*
 * A server with several addresses, on the virtual clock: which calls go over which link, what
 * happens when one is lost, and addresses that are of no use.
 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "tests/support/suite.h"
#include "tests/unit/proto/rpc_pair.h"

#define READS 16u

static struct pair p;
static char second[96];
static struct pair_call reads[READS];
static struct iovec into[READS];
static struct msg_range range = {.len = PAIR_BULK};
static struct msg_read_req request = {.n_ranges = 1, .ranges = &range};

/* What the server saw of reads. */
static struct {
    struct rpc_link *links[4];
    unsigned n[4], n_links;
    bool hold;
    struct list held;
} seen;

/* What the caller was told. */
static unsigned ups, downs;

static void answer(struct rpc_req *req)
{
    struct iovec iov = {p.data, PAIR_BULK};
    struct msg_read_rep rep = {0};

    rpc_reply_bulk(req, 0, &rep, &iov, 1, NULL, NULL);
}

static void on_read(struct rpc_req *req)
{
    unsigned k = 0;

    while (k < seen.n_links && seen.links[k] != req->from)
        k++;
    if (k == seen.n_links) {
        ck_assert_uint_lt(k, 4);
        seen.links[seen.n_links++] = req->from;
    }
    seen.n[k]++;
    if (seen.hold)
        list_push_back(&seen.held, &req->link);
    else
        answer(req);
}

static void on_up(struct rpc_peer *peer, struct rpc_link *l UNUSED, bool rebooted, void *arg UNUSED)
{
    ck_assert(!rebooted);
    ups++;
    rpc_peer_ready(peer);
}

static void on_down(struct rpc_peer *peer UNUSED, int status UNUSED, void *arg UNUSED)
{
    downs++;
}

static void set_flag(void *arg)
{
    *(bool *)arg = true;
}

static void listen_at(struct rpc_node *n, const char *address)
{
    struct net_addr addr;
    char err[128];

    ck_assert_int_eq(net_addr_resolve(address, 0, &addr, err, sizeof err), 0);
    ck_assert_int_eq(rpc_node_listen(n, &addr, NULL), 0);
}

static void start(void)
{
    pair_init(&p, false);
    pair_start(&p);
    rpc_node_handle(p.server, RPC_OP_OSS_READ, on_read, NULL);
    snprintf(second, sizeof second, "%s-second", p.address);
    memset(&seen, 0, sizeof seen);
    list_init(&seen.held);
    ups = downs = 0;
    for (unsigned k = 0; k < READS; k++)
        into[k] = (struct iovec){mem_alloc(PAIR_BULK), PAIR_BULK};
}

static void stop(void)
{
    net_loop_set_policy(NULL, NULL);
    pair_stop(&p);
    for (unsigned k = 0; k < READS; k++)
        mem_free(into[k].iov_base);
}

static void connect_both(unsigned rails)
{
    static const struct rpc_peer_events events = {on_up, on_down};
    const char *addresses[2] = {p.address, second};

    ck_assert_int_eq(rpc_peer_create(p.client, addresses, 2, &events, NULL, &p.peer), 0);
    rpc_peer_set_rails(p.peer, rails);
    ck_assert(pair_wait_count(&p, &ups, 1, 1000));
    pair_pass(&p, 1500); /* it has lasted */
}

static void send_reads(void)
{
    for (unsigned k = 0; k < READS; k++) {
        pair_call_init(&reads[k], RPC_OP_OSS_READ, &request);
        reads[k].call.flags = RPC_CALL_WAIT;
        reads[k].call.bulk_in = &into[k];
        reads[k].call.n_bulk_in = 1;
        reads[k].call.timeout_ns = 60 * NS_PER_S;
        memset(into[k].iov_base, 0, PAIR_BULK);
        rpc_peer_call(p.peer, &reads[k].call);
    }
}

static void expect_reads(int status)
{
    for (unsigned k = 0; k < READS; k++) {
        ck_assert(pair_wait(&p, &reads[k].done, 60000));
        ck_assert_int_eq(reads[k].status, status);
        ck_assert_uint_eq(reads[k].times, 1);
        if (status == 0)
            ck_assert_int_eq(memcmp(into[k].iov_base, p.data, PAIR_BULK), 0);
        rpc_call_fini(&reads[k].call);
    }
}

static void read_all(void)
{
    send_reads();
    expect_reads(0);
}

static void release_held(void)
{
    seen.hold = false;
    while (!list_empty(&seen.held))
        answer(list_entry(list_pop_front(&seen.held), struct rpc_req, link));
}

START_TEST(payloads_go_over_both_addresses_once_there_are_many)
{
    struct pair_call ping;

    listen_at(p.server, second);
    connect_both(NET_RAILS_MAX);
    ck_assert_uint_eq(rpc_peer_rails(p.peer), 1); /* nobody has needed another yet */
    read_all();
    ck_assert_uint_eq(rpc_peer_rails(p.peer), 2);
    memset(seen.n, 0, sizeof seen.n);
    read_all();
    ck_assert_uint_eq(seen.n_links, 2);
    ck_assert_uint_eq(seen.n[0], READS / 2);
    ck_assert_uint_eq(seen.n[1], READS / 2);
    pair_call_init(&ping, RPC_OP_PING, NULL);
    seen.hold = true;
    send_reads();
    rpc_peer_call(p.peer, &ping.call);
    ck_assert(pair_wait(&p, &ping.done, 1000));
    release_held();
    expect_reads(0);
    rpc_call_fini(&ping.call);
    ck_assert_uint_eq(ups, 1);
}
END_TEST

START_TEST(one_rail_is_one_connection)
{
    listen_at(p.server, second);
    connect_both(1);
    read_all();
    read_all();
    ck_assert_uint_eq(rpc_peer_rails(p.peer), 1);
    ck_assert_uint_eq(p.ups, 1);
    ck_assert_uint_eq(seen.n_links, 1);
}
END_TEST

static void lose(unsigned which)
{
    listen_at(p.server, second);
    connect_both(NET_RAILS_MAX);
    read_all();
    seen.hold = true;
    send_reads();
    ck_assert(pair_wait_count(&p, &seen.n[1], READS / 2, 1000));
    rpc_link_close(seen.links[which], -AIFS_ECONN);
    ck_assert(pair_wait_count(&p, &downs, 1, 10000));
    ck_assert_uint_le(rpc_peer_rails(p.peer), 1);
    seen.n_links = 0;
    release_held(); /* of the dead links: the replies go nowhere */
    expect_reads(0);
    ck_assert_uint_eq(ups, 2);
    ck_assert_uint_eq(downs, 1);
    pair_pass(&p, 20000); /* and the lost one is used again some time later */
    read_all();
    ck_assert_uint_eq(rpc_peer_rails(p.peer), 2);
}

START_TEST(a_lost_rail_takes_the_link_along_and_each_call_ends_once)
{
    lose(1);
}
END_TEST

START_TEST(a_lost_link_takes_the_rail_along_and_each_call_ends_once)
{
    lose(0);
}
END_TEST

START_TEST(an_address_that_is_named_twice_is_one)
{
    listen_at(p.server, second);
    snprintf(second, sizeof second, "%s", p.address);
    connect_both(NET_RAILS_MAX);
    read_all();
    read_all();
    ck_assert_uint_eq(rpc_peer_rails(p.peer), 1);
    ck_assert_uint_eq(p.ups, 1);
}
END_TEST

START_TEST(a_peer_with_rails_can_go_in_the_middle_of_all)
{
    listen_at(p.server, second);
    connect_both(NET_RAILS_MAX);
    read_all();
    seen.hold = true;
    send_reads();
    ck_assert(pair_wait_count(&p, &seen.n[1], READS / 2, 1000));
    rpc_peer_destroy(p.peer);
    p.peer = NULL;
    expect_reads(-AIFS_ECANCELLED);
    release_held();
}
END_TEST

/* Gives up one of two writes, of which each has a link of its own. It may still be on its way to
 * the server, and must not come after what follows by the other link. */
static void give_up(unsigned which)
{
    struct msg_write_req write = {.target = 1};
    struct iovec out = {p.data, PAIR_BULK};
    struct pair_call w[2];

    listen_at(p.server, second);
    connect_both(NET_RAILS_MAX);
    read_all();
    ck_assert_uint_eq(rpc_peer_rails(p.peer), 2);
    p.hold = true;
    for (unsigned k = 0; k < 2; k++) {
        pair_call_init(&w[k], RPC_OP_OSS_WRITE, &write);
        w[k].call.flags = RPC_CALL_WAIT;
        w[k].call.bulk_out = &out;
        w[k].call.n_bulk_out = 1;
        rpc_peer_call(p.peer, &w[k].call);
    }
    ck_assert(pair_wait_count(&p, &p.n_notes, 2, 1000));
    p.hold = false;
    rpc_call_cancel(&w[which].call);
    for (unsigned k = 0; k < 2; k++) {
        ck_assert(pair_wait(&p, &w[k].done, 4000));
        ck_assert_int_eq(w[k].status, k == which ? -AIFS_ECANCELLED : 0);
        ck_assert_uint_eq(w[k].times, 1);
        rpc_call_fini(&w[k].call);
        pair_release(&p, -EIO); /* of the dead links: the replies go nowhere */
    }
    ck_assert_uint_eq(ups, 2);
    ck_assert_uint_eq(downs, 1);
}

START_TEST(a_write_on_the_link_that_is_given_up_ends_all_links)
{
    give_up(0);
}
END_TEST

START_TEST(a_write_on_a_rail_that_is_given_up_ends_all_links)
{
    give_up(1);
}
END_TEST

START_TEST(a_read_that_is_given_up_ends_no_link)
{
    listen_at(p.server, second);
    connect_both(NET_RAILS_MAX);
    read_all();
    seen.hold = true;
    send_reads();
    for (unsigned k = 0; k < READS; k++)
        rpc_call_cancel(&reads[k].call);
    expect_reads(-AIFS_ECANCELLED);
    release_held();
    ck_assert_uint_eq(rpc_peer_rails(p.peer), 2);
    ck_assert_uint_eq(downs, 0);
}
END_TEST

START_TEST(an_address_of_another_process_is_not_used)
{
    struct rpc_node *other;
    bool down = false;

    ck_assert_int_eq(uuid_random(&p.server_options.self.boot), 0);
    ck_assert_int_eq(rpc_node_create(p.reactor, &p.server_options, &other), 0);
    rpc_node_handle(other, RPC_OP_OSS_READ, on_read, NULL);
    listen_at(other, second);
    connect_both(NET_RAILS_MAX);
    for (unsigned k = 0; k < 3; k++)
        read_all();
    ck_assert_uint_eq(rpc_peer_rails(p.peer), 1);
    ck_assert_uint_eq(seen.n_links, 1);
    ck_assert_uint_eq(downs, 0);
    rpc_node_shutdown(other, set_flag, &down);
    ck_assert(pair_wait(&p, &down, 1000));
    rpc_node_destroy(other);
}
END_TEST

static void lose_connects(void *arg, const struct reactor *from UNUSED,
                          const struct reactor *to UNUSED, enum net_loop_parcel kind,
                          struct net_loop_fate *ret_fate)
{
    *(unsigned *)arg += kind == NET_LOOP_CONNECT;
    ret_fate->lose = kind == NET_LOOP_CONNECT;
}

START_TEST(an_address_that_does_not_answer_is_left_alone_for_longer_each_time)
{
    unsigned connects = 0, before;

    listen_at(p.server, second);
    connect_both(NET_RAILS_MAX);
    net_loop_set_policy(lose_connects, &connects);
    read_all();
    read_all();
    ck_assert_uint_eq(connects, 1);
    pair_pass(&p, 60000);
    before = connects;
    for (unsigned s = 0; s < 60; s++) {
        read_all();
        pair_pass(&p, 1000);
    }
    ck_assert_uint_gt(connects, before);
    ck_assert_uint_le(connects, before + 4);
    ck_assert_uint_eq(downs, 0);
    net_loop_set_policy(NULL, NULL);
    pair_pass(&p, 300000);
    read_all();
    ck_assert_uint_eq(rpc_peer_rails(p.peer), 2);
}
END_TEST

SUITE_MAIN("rails", start, stop, payloads_go_over_both_addresses_once_there_are_many,
           one_rail_is_one_connection, a_lost_rail_takes_the_link_along_and_each_call_ends_once,
           a_lost_link_takes_the_rail_along_and_each_call_ends_once,
           an_address_that_is_named_twice_is_one, a_peer_with_rails_can_go_in_the_middle_of_all,
           a_write_on_the_link_that_is_given_up_ends_all_links,
           a_write_on_a_rail_that_is_given_up_ends_all_links, a_read_that_is_given_up_ends_no_link,
           an_address_of_another_process_is_not_used,
           an_address_that_does_not_answer_is_left_alone_for_longer_each_time)
