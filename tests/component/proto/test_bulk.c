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

SUITE_MAIN("bulk", start, stop,
           a_cancelled_read_gives_its_buffer_back_only_when_the_payload_has_landed,
           reads_of_a_lost_link_are_sent_again_and_come_whole,
           a_peer_destroyed_with_payloads_on_their_way_takes_nothing_with_it)
