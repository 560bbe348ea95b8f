// SPDX-License-Identifier: Apache-2.0
/* Payloads on their way over TCP when something else happens: cancel, a lost link, a client that
 * goes away. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "proto/rpc/rpc_int.h"
#include "tests/support/suite.h"
#include "tests/unit/proto/rpc_pair.h"

#define READS 6

static struct pair p;
static uint8_t *back[READS];
static struct iovec in[READS];
static struct pair_call c[READS];
static struct msg_range range = {0, 0, PAIR_BULK};
static struct msg_read_req read_req = {.target = 1, .n_ranges = 1, .ranges = &range};

static void start(void)
{
    pair_init(&p, true);
    pair_start(&p);
    pair_connect(&p, NULL, NULL);
    ck_assert(pair_wait_count(&p, &p.ups, 1, 30000));
    for (unsigned i = 0; i < READS; i++) {
        back[i] = calloc(1, PAIR_BULK);
        in[i] = (struct iovec){back[i], PAIR_BULK};
        pair_call_init(&c[i], RPC_OP_OSS_READ, &read_req);
        c[i].call.bulk_in = &in[i];
        c[i].call.n_bulk_in = 1;
    }
}

static void stop(void)
{
    for (unsigned i = 0; i < READS; i++) {
        rpc_call_fini(&c[i].call);
        free(back[i]);
    }
    pair_stop(&p);
}

/* Until a payload is half there: its call. */
static struct pair_call *landing(void)
{
    for (unsigned turns = 0; turns < 100000; turns++) {
        for (unsigned i = 0; i < READS; i++) {
            if (c[i].call.state & CALL_RX)
                return &c[i];
        }
        reactor_run_once(p.reactor, 0);
    }
    ck_abort_msg("no payload was ever seen half landed");
}

START_TEST(a_cancelled_read_gives_its_buffer_back_only_when_the_payload_has_landed)
{
    struct pair_call *half;

    for (unsigned i = 0; i < READS; i++)
        rpc_peer_call(p.peer, &c[i].call);
    half = landing();
    rpc_call_cancel(&half->call);
    ck_assert(half->call.state & CALL_RX);
    ck_assert(!half->done);
    for (unsigned i = 0; i < READS; i++) {
        ck_assert(pair_wait(&p, &c[i].done, 30000));
        ck_assert_int_eq(c[i].status, &c[i] == half ? -AIFS_ECANCELLED : 0);
        ck_assert_mem_eq(back[i], p.data, PAIR_BULK);
    }
}
END_TEST

START_TEST(reads_of_a_lost_link_are_sent_again_and_come_whole)
{
    for (unsigned i = 0; i < READS; i++)
        rpc_peer_call(p.peer, &c[i].call);
    (void)landing();
    rpc_link_close(rpc_peer_link(p.peer), -AIFS_ECONN);
    for (unsigned i = 0; i < READS; i++) {
        ck_assert(pair_wait(&p, &c[i].done, 30000));
        ck_assert_int_eq(c[i].status, 0);
        ck_assert_uint_eq(c[i].call.bulk_in_len, PAIR_BULK);
        ck_assert_mem_eq(back[i], p.data, PAIR_BULK);
    }
    ck_assert_uint_gt(p.n_notes, READS); /* some were asked for twice */
    ck_assert(pair_wait_count(&p, &p.released, p.n_notes,
                              5000)); /* and each reply gave its memory back */
}
END_TEST

START_TEST(a_peer_destroyed_with_payloads_on_their_way_takes_nothing_with_it)
{
    for (unsigned i = 0; i < READS; i++)
        rpc_peer_call(p.peer, &c[i].call);
    (void)landing();
    rpc_peer_destroy(p.peer);
    p.peer = NULL;
    for (unsigned i = 0; i < READS; i++) {
        ck_assert(pair_wait(&p, &c[i].done, 30000));
        ck_assert(c[i].status == 0 || c[i].status == -AIFS_ECANCELLED);
        ck_assert_uint_eq(c[i].times, 1);
    }
    ck_assert(pair_wait_count(&p, &p.downs, 1, 30000));
    ck_assert(pair_wait_count(&p, &p.released, p.n_notes, 30000));
}
END_TEST

static void keep_recall(struct rpc_req *req)
{
    list_push_back(req->handler_arg, &req->link);
}

#define DEAF_READS 48 /* more than the kernel keeps for who does not read */

/* A client that serves one recall and reads nothing while another waits, but says that it lives. */
START_TEST(who_reads_no_answers_holds_a_bounded_part_of_them_and_not_for_long)
{
    struct msg_recall_req recall = {.ino = 1, .keep = MSG_LEASE_READ};
    struct pair_call reads[DEAF_READS], recalls[2];
    struct list kept;

    pair_stop(&p);
    pair_init(&p, true);
    p.client_options.max_requests = 1;
    p.server_options.net.max_pending_bytes = 2 * PAIR_BULK;
    p.server_options.net.ping_interval_ns = p.client_options.net.ping_interval_ns = 20 * NS_PER_MS;
    p.server_options.net.ping_timeout_ns = 300 * NS_PER_MS;
    pair_start(&p);
    pair_connect(&p, NULL, NULL);
    ck_assert(pair_wait_count(&p, &p.ups, 1, 30000));
    list_init(&kept);
    rpc_node_handle(p.client, RPC_OP_RECALL, keep_recall, &kept);
    for (unsigned i = 0; i < 2; i++) {
        pair_call_init(&recalls[i], RPC_OP_RECALL, &recall);
        rpc_link_call(p.server_link, &recalls[i].call);
    }
    while (list_empty(&kept))
        pair_turn(&p);
    for (unsigned i = 0; i < DEAF_READS; i++) {
        pair_call_init(&reads[i], RPC_OP_OSS_READ, &read_req);
        reads[i].call.bulk_in = &in[0];
        reads[i].call.n_bulk_in = 1;
        reads[i].call.timeout_ns = 0;
        rpc_peer_call(p.peer, &reads[i].call);
    }
    ck_assert(pair_wait_count(&p, &p.downs, 1, 30000));
    ck_assert_uint_lt(p.n_notes, DEAF_READS); /* the rest was not read */
    ck_assert(pair_wait_count(&p, &p.released, p.n_notes, 30000));
    rpc_reply(list_entry(list_pop_front(&kept), struct rpc_req, link), 0, NULL);
    for (unsigned i = 0; i < DEAF_READS; i++) {
        ck_assert(pair_wait(&p, &reads[i].done, 30000));
        ck_assert_int_eq(reads[i].status, 0);
        rpc_call_fini(&reads[i].call);
    }
    ck_assert_mem_eq(back[0], p.data, PAIR_BULK);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert(pair_wait(&p, &recalls[i].done, 30000));
        rpc_call_fini(&recalls[i].call);
    }
    while (!list_empty(&kept))
        rpc_reply(list_entry(list_pop_front(&kept), struct rpc_req, link), 0, NULL);
}
END_TEST

SUITE_MAIN("bulk", start, stop,
           a_cancelled_read_gives_its_buffer_back_only_when_the_payload_has_landed,
           reads_of_a_lost_link_are_sent_again_and_come_whole,
           a_peer_destroyed_with_payloads_on_their_way_takes_nothing_with_it,
           who_reads_no_answers_holds_a_bounded_part_of_them_and_not_for_long)
