// SPDX-License-Identifier: Apache-2.0
/* Calls over a healthy link: both transports that tests can have, payloads both ways, roles,
 * deadlines, cancelling, back-pressure. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/crc.h"
#include "common/base/err.h"
#include "common/base/text.h"
#include "tests/support/suite.h"
#include "tests/unit/proto/rpc_pair.h"

static struct pair p;

static void start(void)
{
    pair_init(&p, false);
    pair_start(&p);
    pair_connect(&p, NULL, NULL);
}

static void stop(void)
{
    pair_stop(&p);
}

START_TEST(a_call_is_answered)
{
    struct pair_call c;

    pair_call_init(&c, RPC_OP_PING, NULL);
    rpc_peer_call(p.peer, &c.call);
    ck_assert(!c.done); /* never from inside */
    ck_assert(pair_wait(&p, &c.done, 1000));
    ck_assert_int_eq(c.status, 0);
    ck_assert_uint_eq(p.n_notes, 1);
    ck_assert_uint_eq(p.notes[0].id, c.call.id);
    ck_assert(rpc_peer_is_up(p.peer));
    ck_assert_int_eq(rpc_peer_last_error(p.peer), 0);
    ck_assert_str_eq(rpc_link_peer(rpc_peer_link(p.peer))->name, "oss1");
    ck_assert_str_eq(rpc_link_peer(p.server_link)->name, "gpu1");
    ck_assert_int_eq(rpc_link_peer(p.server_link)->role, CRYPTO_ROLE_CLIENT);
    rpc_call_fini(&c.call);
}
END_TEST

START_TEST(requests_and_replies_carry_their_messages)
{
    struct msg_name_req req = {.parent = 100, .name = {"four", 4}};
    struct pair_call c;
    const struct msg_inode_rep *rep;

    rpc_node_set_map_epoch(p.server, 42);
    pair_call_init(&c, RPC_OP_LOOKUP, &req);
    rpc_peer_call(p.peer, &c.call);
    ck_assert(pair_wait(&p, &c.done, 1000));
    ck_assert_int_eq(c.status, 0);
    rep = c.call.rep;
    ck_assert_uint_eq(rep->inode.attr.ino, 104);
    ck_assert_uint_eq(c.call.header.map_epoch, 42);
    ck_assert_uint_eq(c.call.header.session, 1);
    rpc_call_fini(&c.call);
}
END_TEST

START_TEST(payloads_go_both_ways)
{
    struct msg_range range = {0, 0, PAIR_BULK};
    struct msg_read_req read = {.target = 1, .n_ranges = 1, .ranges = &range};
    struct msg_write_req write = {.target = 1};
    uint8_t *back = malloc(PAIR_BULK);
    struct iovec in[2] = {{back, 1000}, {back + 1000, PAIR_BULK - 1000}}, out = {p.data, PAIR_BULK};
    struct pair_call r, w;

    pair_call_init(&r, RPC_OP_OSS_READ, &read);
    r.call.bulk_in = in;
    r.call.n_bulk_in = 2;
    pair_call_init(&w, RPC_OP_OSS_WRITE, &write);
    w.call.bulk_out = &out;
    w.call.n_bulk_out = 1;
    rpc_peer_call(p.peer, &r.call);
    rpc_peer_call(p.peer, &w.call);
    ck_assert(pair_wait(&p, &r.done, 1000));
    ck_assert(pair_wait(&p, &w.done, 1000));
    ck_assert_int_eq(r.status, 0);
    ck_assert_int_eq(w.status, 0);
    ck_assert_uint_eq(r.call.bulk_in_len, PAIR_BULK);
    ck_assert_mem_eq(back, p.data, PAIR_BULK);
    ck_assert_uint_eq(p.got_crc, crc32c(p.data, PAIR_BULK));
    ck_assert_uint_eq(((const struct msg_write_rep *)w.call.rep)->verifier, 7);
    pair_turn(&p);
    ck_assert_uint_eq(p.released, 1);
    rpc_call_fini(&r.call);
    rpc_call_fini(&w.call);
    free(back);
}
END_TEST

START_TEST(a_payload_larger_than_asked_for_fails_the_call)
{
    struct msg_range range = {0, 0, 8192};
    struct msg_read_req read = {.target = 1, .n_ranges = 1, .ranges = &range};
    uint8_t back[4096];
    struct iovec in = {back, sizeof back};
    struct pair_call c;

    pair_call_init(&c, RPC_OP_OSS_READ, &read);
    c.call.bulk_in = &in;
    c.call.n_bulk_in = 1;
    rpc_peer_call(p.peer, &c.call);
    ck_assert(pair_wait(&p, &c.done, 1000));
    ck_assert_int_eq(c.status, -AIFS_EPROTO);
    rpc_call_fini(&c.call);
}
END_TEST

static int outcome(unsigned op, const void *req, uint64_t session, uint32_t slot)
{
    struct pair_call c;

    pair_call_init(&c, op, req);
    c.call.session = session;
    c.call.slot = slot;
    rpc_peer_call(p.peer, &c.call);
    ck_assert(pair_wait(&p, &c.done, 1000));
    rpc_call_fini(&c.call);
    return c.status;
}

START_TEST(who_may_call_what_is_checked)
{
    struct msg_seal_req seal = {.target = 1};
    struct msg_name_req lookup = {.name = {"x", 1}};
    struct msg_create_req create = {.name = {"x", 1}};
    struct msg_name_req bad_name = {.name = {"a/b", 3}};

    ck_assert_int_eq(outcome(RPC_OP_OSS_SEAL, &seal, 1, 0), -AIFS_EROLE);
    ck_assert_int_eq(outcome(RPC_OP_LOOKUP, &lookup, 0, 0), -AIFS_ESESSION);
    ck_assert_int_eq(outcome(RPC_OP_CREATE, &create, 0, 1), -AIFS_ESESSION);
    ck_assert_int_eq(outcome(RPC_OP_CREATE, &create, 1, 0), -AIFS_EPROTO);
    ck_assert_int_eq(outcome(RPC_OP_MKDIR, &create, 1, 1), -EOPNOTSUPP);
    ck_assert_int_eq(outcome(RPC_OP_LOOKUP, &bad_name, 1, 0), -AIFS_EPROTO);
    ck_assert_uint_eq(p.n_notes, 0);
    ck_assert_int_eq(outcome(RPC_OP_PING, NULL, 0, 0), 0); /* the link has survived all that */
}
END_TEST

START_TEST(a_deadline_ends_a_call_and_the_late_reply_is_thrown_away)
{
    struct pair_call c, d;
    uint64_t before = p.clock.now_ns;

    p.hold = true;
    pair_call_init(&c, RPC_OP_PING, NULL);
    c.call.timeout_ns = 300 * NS_PER_MS;
    rpc_peer_call(p.peer, &c.call);
    ck_assert(pair_wait(&p, &c.done, 1000));
    ck_assert_int_eq(c.status, -AIFS_ETIMEOUT);
    ck_assert_uint_ge(p.clock.now_ns - before, 300 * NS_PER_MS);
    ck_assert_uint_le(p.clock.now_ns - before, 310 * NS_PER_MS);
    rpc_call_fini(&c.call);
    pair_release(&p, 0);
    p.hold = false;
    pair_call_init(&d, RPC_OP_PING, NULL);
    rpc_peer_call(p.peer, &d.call);
    ck_assert(pair_wait(&p, &d.done, 1000));
    ck_assert_int_eq(d.status, 0);
    ck_assert_uint_eq(c.times, 1);
    rpc_call_fini(&d.call);
}
END_TEST

START_TEST(a_cancelled_call_ends_once)
{
    struct pair_call c;

    p.hold = true;
    pair_call_init(&c, RPC_OP_PING, NULL);
    rpc_peer_call(p.peer, &c.call);
    ck_assert(pair_wait_count(&p, &p.n_notes, 1, 1000));
    rpc_call_cancel(&c.call);
    rpc_call_cancel(&c.call);
    ck_assert(!c.done);
    ck_assert(pair_wait(&p, &c.done, 1000));
    ck_assert_int_eq(c.status, -AIFS_ECANCELLED);
    rpc_call_cancel(&c.call); /* too late: nothing */
    pair_release(&p, 0);
    pair_pass(&p, 10);
    ck_assert_uint_eq(c.times, 1);
    rpc_call_fini(&c.call);
}
END_TEST

START_TEST(calls_beyond_the_limit_wait_in_order_but_urgent_ones_do_not)
{
    struct msg_write_req write = {.target = 1};
    struct pair_call c[6], urgent;
    struct iovec out;

    pair_stop(&p);
    pair_init(&p, false);
    out = (struct iovec){p.data, 4096};
    p.client_options.max_calls = 2;
    pair_start(&p);
    pair_connect(&p, NULL, NULL);
    p.hold = true;
    for (unsigned i = 0; i < 6; i++) {
        pair_call_init(&c[i], RPC_OP_OSS_WRITE, &write);
        c[i].call.bulk_out = &out;
        c[i].call.n_bulk_out = 1;
        rpc_peer_call(p.peer, &c[i].call);
    }
    ck_assert(pair_wait_count(&p, &p.n_notes, 2, 1000));
    pair_pass(&p, 20);
    ck_assert_uint_eq(p.n_notes, 2);
    p.hold = false;
    pair_call_init(&urgent, RPC_OP_PING, NULL);
    rpc_peer_call(p.peer, &urgent.call);
    ck_assert(pair_wait(&p, &urgent.done, 1000));
    while (!list_empty(&p.held))
        pair_release(&p, 0);
    for (unsigned i = 0; i < 6; i++)
        ck_assert(pair_wait(&p, &c[i].done, 1000));
    for (unsigned i = 4; i < p.n_notes; i++)
        ck_assert_uint_gt(p.notes[i].id, p.notes[i - 1].id);
    for (unsigned i = 0; i < 6; i++)
        rpc_call_fini(&c[i].call);
    rpc_call_fini(&urgent.call);
}
END_TEST

START_TEST(a_link_with_too_many_requests_in_service_stops_reading)
{
    struct pair_call c[8];

    pair_stop(&p);
    pair_init(&p, false);
    p.server_options.max_requests = 3;
    pair_start(&p);
    pair_connect(&p, NULL, NULL);
    p.hold = true;
    for (unsigned i = 0; i < 8; i++) {
        pair_call_init(&c[i], RPC_OP_PING, NULL);
        rpc_peer_call(p.peer, &c[i].call);
    }
    pair_pass(&p, 50);
    ck_assert_uint_eq(p.n_notes, 3);
    pair_release(&p, 0);
    pair_pass(&p, 20);
    ck_assert_uint_eq(p.n_notes, 4);
    p.hold = false;
    while (!list_empty(&p.held))
        pair_release(&p, 0);
    for (unsigned i = 0; i < 8; i++) {
        ck_assert(pair_wait(&p, &c[i].done, 1000));
        ck_assert_int_eq(c[i].status, 0);
        rpc_call_fini(&c[i].call);
    }
}
END_TEST

START_TEST(payloads_wait_for_buffers)
{
    struct msg_write_req write = {.target = 1};
    struct iovec out = {p.data, PAIR_BULK};
    struct buf_pool_stats stats;
    struct pair_call c[12];

    p.hold = true;
    for (unsigned i = 0; i < 12; i++) { /* the pool has 8 */
        pair_call_init(&c[i], RPC_OP_OSS_WRITE, &write);
        c[i].call.bulk_out = &out;
        c[i].call.n_bulk_out = 1;
        rpc_peer_call(p.peer, &c[i].call);
    }
    pair_pass(&p, 50);
    ck_assert_uint_eq(p.n_notes, 8);
    buf_pool_get_stats(p.pool, &stats);
    ck_assert_uint_eq(stats.waiters, 1);
    pair_release(&p, 0);
    buf_pool_get_stats(p.pool, &stats); /* at once: the answer may take as long as the peer likes */
    ck_assert_uint_eq(stats.waiters, 0);
    pair_pass(&p, 20);
    ck_assert_uint_eq(p.n_notes, 9);
    p.hold = false;
    while (!list_empty(&p.held))
        pair_release(&p, 0);
    for (unsigned i = 0; i < 12; i++) {
        ck_assert(pair_wait(&p, &c[i].done, 1000));
        rpc_call_fini(&c[i].call);
    }
}
END_TEST

static void on_recall(struct rpc_req *req)
{
    const struct msg_recall_req *m = req->msg;

    *(uint64_t *)req->handler_arg = m->ino;
    rpc_reply(req, 0, NULL);
}

START_TEST(a_server_can_call_its_client)
{
    struct msg_recall_req recall = {.ino = 4711, .keep = MSG_LEASE_READ};
    struct pair_call c;
    uint64_t recalled = 0;

    rpc_node_handle(p.client, RPC_OP_RECALL, on_recall, &recalled);
    ck_assert(pair_wait_count(&p, &p.ups, 1, 1000));
    pair_call_init(&c, RPC_OP_RECALL, &recall);
    rpc_link_call(p.server_link, &c.call);
    ck_assert(pair_wait(&p, &c.done, 1000));
    ck_assert_int_eq(c.status, 0);
    ck_assert_uint_eq(recalled, 4711);
    rpc_call_fini(&c.call);
}
END_TEST

/* What the client is recalled for, kept until the test answers. */
static void keep_recall(struct rpc_req *req)
{
    list_push_back(req->handler_arg, &req->link);
}

static void answer_recalls(struct list *kept)
{
    while (!list_empty(kept))
        rpc_reply(list_entry(list_pop_front(kept), struct rpc_req, link), 0, NULL);
}

/* A client that reads nothing for as long as it serves a request: its second one waits unread. */
static void start_deaf_client(struct list *kept, struct pair_call recalls[2])
{
    static struct msg_recall_req recall = {.ino = 1, .keep = MSG_LEASE_READ};

    pair_stop(&p);
    pair_init(&p, false);
    p.client_options.max_requests = 1;
    p.server_options.net.max_pending_bytes = p.client_options.net.max_pending_bytes = 256 * KIB;
    pair_start(&p);
    pair_connect(&p, NULL, NULL);
    list_init(kept);
    rpc_node_handle(p.client, RPC_OP_RECALL, keep_recall, kept);
    ck_assert(pair_wait_count(&p, &p.ups, 1, 1000));
    for (unsigned i = 0; i < 2; i++) {
        pair_call_init(&recalls[i], RPC_OP_RECALL, &recall);
        recalls[i].call.timeout_ns = 0;
        rpc_link_call(p.server_link, &recalls[i].call);
    }
    pair_pass(&p, 5);
}

/* Nothing for so long; what it gets in the end is all it has asked for. */
static void ask_much_and_take_nothing(uint64_t ms, bool survives)
{
    struct msg_range range = {0, 0, 64 * KIB};
    struct msg_read_req read = {.target = 1, .n_ranges = 1, .ranges = &range};
    uint8_t *back = malloc(64 * KIB);
    struct iovec in = {back, 64 * KIB};
    struct pair_call c[64], recalls[2];
    struct list kept;

    start_deaf_client(&kept, recalls);
    for (unsigned i = 0; i < 64; i++) {
        pair_call_init(&c[i], RPC_OP_OSS_READ, &read);
        c[i].call.bulk_in = &in;
        c[i].call.n_bulk_in = 1;
        c[i].call.timeout_ns = 0;
        rpc_peer_call(p.peer, &c[i].call);
    }
    pair_pass(&p, ms);
    ck_assert_uint_ge(p.n_notes, 4); /* 256 KiB on their way, and as much that waits for it */
    ck_assert_uint_le(p.n_notes, 10);
    ck_assert_uint_eq(p.downs, !survives);
    answer_recalls(&kept);
    for (unsigned i = 0; i < 64; i++) {
        ck_assert(pair_wait(&p, &c[i].done, 1000));
        ck_assert_int_eq(c[i].status, 0);
        rpc_call_fini(&c[i].call);
        answer_recalls(&kept);
    }
    ck_assert_uint_eq(p.ups, survives ? 1 : 2);
    ck_assert(pair_wait_count(&p, &p.released, p.n_notes, 1000)); /* nothing is kept */
    for (unsigned i = 0; i < 2; i++) {
        ck_assert(pair_wait(&p, &recalls[i].done, 1000));
        rpc_call_fini(&recalls[i].call);
    }
    free(back);
}

START_TEST(a_peer_that_takes_no_answers_is_not_read_from)
{
    ask_much_and_take_nothing(4000, true);
}
END_TEST

START_TEST(a_peer_that_takes_no_answers_for_long_is_dead)
{
    ask_much_and_take_nothing(7500, false);
}
END_TEST

START_TEST(calls_in_flight_can_be_listed)
{
    struct pair_call c;
    struct strbuf out;

    p.hold = true;
    pair_call_init(&c, RPC_OP_PING, NULL);
    rpc_peer_call(p.peer, &c.call);
    ck_assert(pair_wait_count(&p, &p.n_notes, 1, 1000));
    pair_pass(&p, 100);
    strbuf_init(&out);
    rpc_node_print_calls(p.client, &out);
    ck_assert_ptr_nonnull(strstr(out.data, "PING to server oss1 loop:"));
    strbuf_fini(&out);
    pair_release(&p, 0);
    ck_assert(pair_wait(&p, &c.done, 1000));
    rpc_call_fini(&c.call);
}
END_TEST

static const struct msg_load_rep *load(struct pair_call *c)
{
    pair_call_init(c, RPC_OP_LOAD, NULL);
    rpc_peer_call(p.peer, &c->call);
    ck_assert(pair_wait(&p, &c->done, 1000));
    ck_assert_int_eq(c->status, 0);
    return c->call.rep;
}

static void start_as_server(void)
{
    pair_stop(&p);
    pair_init(&p, false);
    p.client_options.key = p.key;
    p.client_options.self.role = CRYPTO_ROLE_SERVER;
    pair_start(&p);
    pair_connect(&p, NULL, NULL);
}

START_TEST(what_came_over_a_link_is_counted)
{
    struct msg_range range = {0, 0, 8192};
    struct msg_read_req read = {.target = 1, .n_ranges = 1, .ranges = &range};
    struct msg_write_req write = {.target = 1};
    uint8_t back[8192];
    struct iovec in = {back, sizeof back}, out = {p.data, 3000};
    const struct msg_load_rep *rep;
    struct pair_call r, w, c;

    start_as_server();
    out.iov_base = p.data;
    rep = load(&c);
    ck_assert_uint_eq(rep->n_links, 0); /* the asking is no load */
    ck_assert(uuid_equal(&rep->boot, &p.server_options.self.boot));
    rpc_call_fini(&c.call);
    pair_call_init(&r, RPC_OP_OSS_READ, &read);
    r.call.session = 12;
    r.call.job = 77;
    r.call.bulk_in = &in;
    r.call.n_bulk_in = 1;
    rpc_peer_call(p.peer, &r.call);
    ck_assert(pair_wait(&p, &r.done, 1000));
    ck_assert_int_eq(r.status, 0);
    p.hold = true;
    pair_call_init(&w, RPC_OP_OSS_WRITE, &write);
    w.call.session = 12;
    w.call.job = 77;
    w.call.bulk_out = &out;
    w.call.n_bulk_out = 1;
    rpc_peer_call(p.peer, &w.call);
    ck_assert(pair_wait_count(&p, &p.n_notes, 2, 1000));
    pair_pass(&p, 100);

    rep = load(&c);
    ck_assert_uint_eq(rep->n_links, 1);
    ck_assert(!rep->more);
    ck_assert_uint_eq(rep->links[0].session, 12);
    ck_assert_uint_eq(rep->links[0].job, 77);
    ck_assert_uint_eq(rep->links[0].role, CRYPTO_ROLE_SERVER);
    ck_assert_uint_eq(rep->links[0].name.len, 4);
    ck_assert_mem_eq(rep->links[0].name.data, "gpu1", 4);
    ck_assert_uint_eq(rep->links[0].operations, 1);
    ck_assert_uint_eq(rep->links[0].read_bytes, 8192);
    ck_assert_uint_eq(rep->links[0].written_bytes, 0);
    ck_assert_uint_eq(rep->links[0].waiting, 1);
    ck_assert_uint_eq(rep->links[0].oldest_op, RPC_OP_OSS_WRITE);
    ck_assert_uint_ge(rep->links[0].oldest_ns, 100 * NS_PER_MS);
    rpc_call_fini(&c.call);

    pair_release(&p, -EIO);
    ck_assert(pair_wait(&p, &w.done, 1000));
    rep = load(&c);
    ck_assert_uint_eq(rep->links[0].operations, 2);
    ck_assert_uint_eq(rep->links[0].written_bytes, 3000);
    ck_assert_uint_ge(rep->links[0].busy_ns, 100 * NS_PER_MS);
    ck_assert_uint_le(rep->links[0].busy_ns, NS_PER_S);
    ck_assert_uint_eq(rep->links[0].waiting, 0);
    ck_assert_uint_eq(rep->links[0].oldest_op, 0);
    rpc_call_fini(&c.call);
    rpc_call_fini(&r.call);
    rpc_call_fini(&w.call);
}
END_TEST

START_TEST(a_client_may_not_ask_for_the_load)
{
    ck_assert_int_eq(outcome(RPC_OP_LOAD, NULL, 1, 0), -AIFS_EROLE);
}
END_TEST

SUITE_MAIN("calls", start, stop, a_call_is_answered, requests_and_replies_carry_their_messages,
           payloads_go_both_ways, a_payload_larger_than_asked_for_fails_the_call,
           who_may_call_what_is_checked, a_deadline_ends_a_call_and_the_late_reply_is_thrown_away,
           a_cancelled_call_ends_once, calls_beyond_the_limit_wait_in_order_but_urgent_ones_do_not,
           a_link_with_too_many_requests_in_service_stops_reading, payloads_wait_for_buffers,
           a_server_can_call_its_client, a_peer_that_takes_no_answers_is_not_read_from,
           a_peer_that_takes_no_answers_for_long_is_dead, calls_in_flight_can_be_listed,
           what_came_over_a_link_is_counted, a_client_may_not_ask_for_the_load)
