// SPDX-License-Identifier: Apache-2.0
/* Payloads for which the server has a place of its own: when it is asked, and when it gets it back.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/crc.h"
#include "common/base/err.h"
#include "tests/support/suite.h"
#include "tests/unit/proto/rpc_pair.h"

#define CALLS 3

static struct pair p;
static struct place {
    uint8_t data[PAIR_BULK];
    bool out;
    unsigned given, back;
} place;
static struct msg_write_req write_req = {.target = 1};
static struct iovec out;
static struct pair_call c[CALLS];

static void release(void *arg)
{
    ck_assert_ptr_eq(arg, &place);
    ck_assert(place.out);
    place.out = false;
    place.back++;
}

/* One at a time. */
static bool give(struct rpc_req *req)
{
    ck_assert_ptr_nonnull(req->msg);
    ck_assert_ptr_eq(req->handler_arg, &p);
    ck_assert_uint_eq(req->header.bulk_len, PAIR_BULK);
    if (place.out)
        return false;
    place.out = true;
    place.given++;
    req->placed = (struct rpc_placed){.data = place.data, .release = release, .arg = &place};
    return true;
}

static void start_over(bool tcp)
{
    memset(&place, 0, sizeof place);
    pair_init(&p, tcp);
    pair_start(&p);
    rpc_node_place(p.server, RPC_OP_OSS_WRITE, give);
    pair_connect(&p, NULL, NULL);
    out = (struct iovec){p.data, PAIR_BULK};
    for (unsigned i = 0; i < CALLS; i++) {
        pair_call_init(&c[i], RPC_OP_OSS_WRITE, &write_req);
        c[i].call.bulk_out = &out;
        c[i].call.n_bulk_out = 1;
    }
}

static void start(void)
{
    start_over(false);
}

static void stop(void)
{
    for (unsigned i = 0; i < CALLS; i++)
        rpc_call_fini(&c[i].call);
    pair_stop(&p);
    ck_assert_uint_eq(place.given, place.back);
}

static uint32_t buffers_in_use(void)
{
    struct buf_pool_stats stats;

    buf_pool_get_stats(p.pool, &stats);
    return stats.in_use;
}

START_TEST(a_payload_lands_where_the_server_wants_it)
{
    p.hold = true;
    rpc_peer_call(p.peer, &c[0].call);
    ck_assert(pair_wait_count(&p, &p.n_notes, 1, 1000));
    ck_assert_uint_eq(place.given, 1);
    ck_assert_uint_eq(place.back, 0); /* it is the handler's until the answer */
    ck_assert_uint_eq(buffers_in_use(), 0);
    ck_assert_mem_eq(place.data, p.data, PAIR_BULK);
    pair_release(&p, 0);
    ck_assert_uint_eq(place.back, 1); /* at once, not when the peer has read it */
    ck_assert(pair_wait(&p, &c[0].done, 1000));
    ck_assert_int_eq(c[0].status, 0);
    ck_assert_uint_eq(p.got_crc, crc32c(p.data, PAIR_BULK));
}
END_TEST

START_TEST(without_a_place_it_lands_in_a_buffer)
{
    p.hold = true;
    for (unsigned i = 0; i < CALLS; i++)
        rpc_peer_call(p.peer, &c[i].call);
    ck_assert(pair_wait_count(&p, &p.n_notes, CALLS, 1000));
    ck_assert_uint_eq(place.given, 1);
    ck_assert_uint_eq(buffers_in_use(), CALLS - 1);
    for (unsigned i = 0; i < CALLS; i++)
        pair_release(&p, 0);
    for (unsigned i = 0; i < CALLS; i++) {
        ck_assert(pair_wait(&p, &c[i].done, 1000));
        ck_assert_int_eq(c[i].status, 0);
    }
    ck_assert_uint_eq(buffers_in_use(), 0);
}
END_TEST

START_TEST(a_request_that_is_refused_gets_no_place)
{
    struct msg_name_req lookup = {.name = {"x", 1}};

    c[0].call.op = RPC_OP_LOOKUP;
    c[0].call.req = &lookup;
    rpc_peer_call(p.peer, &c[0].call);
    ck_assert(pair_wait(&p, &c[0].done, 1000));
    ck_assert_int_eq(c[0].status, -AIFS_EPROTO);
    ck_assert_uint_eq(place.given, 0);
}
END_TEST

START_TEST(a_place_comes_back_when_the_link_is_lost)
{
    p.hold = true;
    c[0].call.flags = RPC_CALL_ONCE;
    rpc_peer_call(p.peer, &c[0].call);
    ck_assert(pair_wait_count(&p, &p.n_notes, 1, 1000));
    rpc_link_close(p.server_link, -AIFS_ECONN);
    ck_assert(pair_wait(&p, &c[0].done, 1000));
    ck_assert_int_eq(c[0].status, -AIFS_ECONN);
    ck_assert_uint_eq(place.back, 0); /* the handler works on it */
    pair_release(&p, 0);
    pair_turn(&p);
    ck_assert_uint_eq(place.back, 1);
}
END_TEST

/* Over TCP a payload comes when the peer cares to send it. */
START_TEST(a_payload_that_takes_its_time_gets_a_buffer)
{
    stop();
    start_over(true);
    rpc_peer_call(p.peer, &c[0].call);
    ck_assert(pair_wait(&p, &c[0].done, 30000));
    ck_assert_int_eq(c[0].status, 0);
    ck_assert_uint_eq(p.got_crc, crc32c(p.data, PAIR_BULK));
    ck_assert_uint_eq(place.given, 0);
}
END_TEST

SUITE_MAIN("place", start, stop, a_payload_lands_where_the_server_wants_it,
           without_a_place_it_lands_in_a_buffer, a_request_that_is_refused_gets_no_place,
           a_place_comes_back_when_the_link_is_lost, a_payload_that_takes_its_time_gets_a_buffer)
