/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the network code that need no connection: buffer pools, addresses, frames, offers
 * and the choice of a transport, reading memory. */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/net/device.h"
#include "common/net/buf.h"
#include "common/net/cma.h"
#include "common/net/frame_fmt.h"
#include "common/net/offer.h"
#include "tests/support/suite.h"

/* ---- buffers ---- */

static struct buf *given[8];
static unsigned n_given;

static void take(struct buf_waiter *w, struct buf *b)
{
    (void)w;
    given[n_given++] = b;
}

static void take_and_put(struct buf_waiter *w, struct buf *b)
{
    take(w, b);
    buf_put(b);
}

START_TEST(a_pool_hands_out_the_buffer_that_came_back_last)
{
    struct buf_pool *p;
    struct buf *a;
    struct buf *b;

    ck_assert_int_eq(buf_pool_create("t", 8192, 3, &p), 0);
    a = buf_get(p);
    b = buf_get(p);
    ck_assert_uint_eq((uintptr_t)a->data % 4096, 0);
    ck_assert_uint_eq(a->size_bytes, 8192);
    buf_put(a);
    buf_put(b);
    ck_assert_ptr_eq(buf_get(p), b);
    buf_put(b);
    buf_put(NULL);
    buf_pool_destroy(p);
}
END_TEST

START_TEST(a_large_pool_begins_where_a_huge_page_does)
{
    struct buf *b[5];
    struct buf_pool *p;

    ck_assert_int_eq(buf_pool_create("t", MIB, 5, &p), 0);
    for (int i = 0; i < 5; i++) {
        b[i] = buf_get(p);
        ck_assert_ptr_nonnull(b[i]);
        memset(b[i]->data, 0x11 * i, MIB);
    }
    ck_assert_uint_eq((uintptr_t)b[0]->data % (2 * MIB), 0);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(b[i]->data[0], 0x11 * i);
        ck_assert_int_eq(b[i]->data[MIB - 1], 0x11 * i);
        buf_put(b[i]);
    }
    buf_pool_destroy(p);
}
END_TEST

START_TEST(a_cold_pool_is_one_like_others_once_it_is_touched)
{
    struct buf_pool_stats s;
    struct buf_pool *p;
    struct buf *b;

    ck_assert_int_eq(buf_pool_create_cold("t", MIB, 2, &p), 0);
    buf_pool_get_stats(p, &s);
    ck_assert_uint_eq(s.total, 2);
    buf_pool_touch(p);
    b = buf_get(p);
    ck_assert_uint_eq(b->size_bytes, MIB);
    b->data[MIB - 1] = 1;
    buf_put(b);
    buf_pool_destroy(p);
}
END_TEST

START_TEST(a_second_owner_keeps_a_buffer)
{
    struct buf_pool_stats s;
    struct buf_pool *p;
    struct buf *b;

    ck_assert_int_eq(buf_pool_create("t", 4096, 1, &p), 0);
    b = buf_get(p);
    buf_ref(b);
    buf_put(b);
    ck_assert_ptr_null(buf_get(p));
    buf_put(b);
    buf_pool_get_stats(p, &s);
    ck_assert_uint_eq(s.in_use, 0);
    ck_assert_uint_eq(s.high_water, 1);
    ck_assert_uint_eq(s.empties, 1);
    buf_pool_destroy(p);
}
END_TEST

START_TEST(waiters_are_served_in_order_and_before_newcomers)
{
    struct buf_waiter w[3] = {{.fn = take}, {.fn = take}, {.fn = take}};
    struct buf_pool_stats s;
    struct buf_pool *p;
    struct buf *b;

    n_given = 0;
    ck_assert_int_eq(buf_pool_create("t", 4096, 1, &p), 0);
    b = buf_get(p);
    for (int i = 0; i < 3; i++)
        buf_wait(p, &w[i]);
    buf_pool_get_stats(p, &s);
    ck_assert_uint_eq(s.waiters, 3);
    buf_wait_cancel(&w[1]);
    ck_assert_ptr_null(buf_get(p));
    buf_put(b);
    ck_assert_uint_eq(n_given, 1);
    buf_put(given[0]);
    ck_assert_uint_eq(n_given, 2);
    buf_put(given[1]);
    buf_wait(p, &w[1]); /* there is one: at once */
    ck_assert_uint_eq(n_given, 3);
    buf_put(given[2]);
    buf_pool_destroy(p);
}
END_TEST

START_TEST(waiters_that_put_at_once_do_not_pile_up_on_the_stack)
{
    struct buf_waiter w[8];
    struct buf_pool *p;
    struct buf *b;

    n_given = 0;
    ck_assert_int_eq(buf_pool_create("t", 4096, 1, &p), 0);
    b = buf_get(p);
    for (int i = 0; i < 8; i++) {
        w[i].fn = take_and_put;
        buf_wait(p, &w[i]);
    }
    buf_put(b);
    ck_assert_uint_eq(n_given, 8);
    buf_pool_destroy(p);
}
END_TEST

/* ---- addresses ---- */

static int port_of(const struct net_addr *a)
{
    const struct sockaddr *sa = (const struct sockaddr *)a->places[0].sockaddr;

    return ntohs(sa->sa_family == AF_INET6 ? ((const struct sockaddr_in6 *)sa)->sin6_port
                                           : ((const struct sockaddr_in *)sa)->sin_port);
}

START_TEST(addresses_are_read)
{
    static const struct {
        const char *text;
        int family, port;
    } good[] = {{"127.0.0.1:80", AF_INET, 80}, {"127.0.0.1", AF_INET, 7000},
                {"[::1]:81", AF_INET6, 81},    {"[::1]", AF_INET6, 7000},
                {"::1", AF_INET6, 7000},       {"0.0.0.0:0", AF_INET, 0}};
    struct net_addr a;
    char err[200];

    for (unsigned i = 0; i < ARRAY_LEN(good); i++) {
        ck_assert_int_eq(net_addr_resolve(good[i].text, 7000, &a, err, sizeof err), 0);
        ck_assert_int_eq(((struct sockaddr *)a.places[0].sockaddr)->sa_family, good[i].family);
        ck_assert_int_eq(port_of(&a), good[i].port);
        ck_assert_str_eq(a.text, good[i].text);
    }
    ck_assert_int_eq(net_addr_resolve("*:5", 0, &a, err, sizeof err), 0);
    ck_assert_int_eq(port_of(&a), 5);
    ck_assert_int_eq(net_addr_resolve("localhost:5", 0, &a, err, sizeof err), 0);
    ck_assert_uint_ge(a.n_places, 1); /* each once */
    for (unsigned k = 1; k < a.n_places; k++)
        ck_assert_mem_ne(&a.places[k - 1], &a.places[k], sizeof a.places[k]);
    ck_assert_int_eq(net_addr_resolve("loop:x", 0, &a, err, sizeof err), 0);
    ck_assert(a.loop);
}
END_TEST

START_TEST(bad_addresses_are_refused_with_a_reason)
{
    static const char *const bad[] = {
        "",     ":80",    "host:", "127.0.0.1:x",  "127.0.0.1:65536", "127.0.0.1:-1",
        "[::1", "[::1]x", "loop:", "127.0.0.1: 80"};
    struct net_addr a;
    char err[200];

    for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
        err[0] = '\0';
        ck_assert_msg(net_addr_resolve(bad[i], 7000, &a, err, sizeof err) < 0, "%s", bad[i]);
        ck_assert_str_ne(err, "");
    }
    ck_assert(net_addr_resolve("127.0.0.1:99999", 7000, &a, err, sizeof err) < 0);
    ck_assert_ptr_nonnull(strstr(err, "out of range"));
    ck_assert_ptr_nonnull(strstr(err, "127.0.0.1:99999"));
    ck_assert(net_addr_resolve("127.0.0.1:x", 7000, &a, err, sizeof err) < 0);
    ck_assert_ptr_nonnull(strstr(err, "not an address"));
}
END_TEST

START_TEST(an_address_is_named_with_the_port_that_is_meant)
{
    static const struct {
        const char *text, *name;
    } cases[] = {{"host", "host:7600"},  {"host:1", "host:1"},
                 {"::1", "[::1]:7600"},  {"[::1]", "[::1]:7600"},
                 {"[::1]:2", "[::1]:2"}, {"loop:x", "loop:x"},
                 {"[::1", "[::1"},       {"", ""},
                 {"host:", "host:"}};
    char name[NET_ADDR_NAME_BYTES];

    for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
        net_addr_name(cases[i].text, 7600, name, sizeof name);
        ck_assert_str_eq(name, cases[i].name);
    }
}
END_TEST

/* ---- frames ---- */

START_TEST(a_frame_is_what_was_encoded_and_nothing_else_is_a_frame)
{
    static const uint8_t head[] = "some head";
    uint8_t p[FRAME_BYTES];
    struct frame f;

    frame_encode(p, FRAME_MESSAGE, head, sizeof head, 4096);
    ck_assert(frame_decode(p, NET_HEAD_MAX, NET_BULK_MAX, &f));
    ck_assert_uint_eq(f.head_len, sizeof head);
    ck_assert_uint_eq(f.bulk_len, 4096);
    ck_assert_uint_eq(frame_crc(p, head, sizeof head), f.crc);
    for (unsigned bit = 0; bit < FRAME_BYTES * 8; bit++) {
        uint8_t q[FRAME_BYTES];

        memcpy(q, p, sizeof q);
        q[bit / 8] ^= (uint8_t)(1u << bit % 8);
        ck_assert(!frame_decode(q, NET_HEAD_MAX, NET_BULK_MAX, &f) ||
                  frame_crc(q, head, sizeof head) != f.crc);
    }
}
END_TEST

/* ---- offers ---- */

static struct offer here(enum net_want want, unsigned flags)
{
    struct offer o;

    ck_assert_int_eq(offer_of_this_process(&o), 0);
    o.want = (uint8_t)want;
    o.flags = (uint16_t)flags;
    return o;
}

static struct choice both_ways(const struct offer *a, const struct offer *b)
{
    struct choice x = offer_choose(a, b);
    struct choice y = offer_choose(b, a);

    ck_assert_int_eq(x.choice, y.choice);
    ck_assert_int_eq(x.refused, y.refused);
    ck_assert_str_eq(x.why, y.why);
    return x;
}

START_TEST(an_offer_survives_the_wire_and_a_short_one_is_refused)
{
    struct offer a = here(NET_WANT_SHM, OFFER_SHM);
    struct offer b;
    uint8_t wire[OFFER_BYTES];

    a.cookie_at = 0x1234567890;
    a.share = (struct share){0x7000, 0x200000, 17, 5};
    a.socket = 0;
    memcpy(a.cookie, "0123456789abcdef", 16);
    offer_encode(&a, wire);
    ck_assert_int_eq(offer_decode(wire, sizeof wire, &b), 0);
    ck_assert_uint_eq(a.pid, b.pid);
    ck_assert_uint_eq(a.cookie_at, b.cookie_at);
    ck_assert_mem_eq(a.cookie, b.cookie, 16);
    ck_assert_mem_eq(a.boot_id, b.boot_id, 16);
    ck_assert_uint_eq(b.share.base, 0x7000);
    ck_assert_uint_eq(b.share.bytes, 0x200000);
    ck_assert_uint_eq(b.share.ino, 17);
    ck_assert_int_eq(b.share.fd, 5);
    ck_assert_int_eq(b.socket, 0);
    for (uint32_t len = 0; len < sizeof wire; len++) {
        ck_assert_int_eq(offer_decode(wire, len, &b), len < OFFER_BYTES_MIN ? -AIFS_EPROTO : 0);
        if (len < OFFER_BYTES_MIN)
            continue;
        ck_assert_uint_eq(b.share.bytes, 0); /* of a version that has none */
        ck_assert_int_eq(b.socket, -1);
    }
    memset(wire + 100, 0, 4); /* of a version that does not tell it */
    ck_assert_int_eq(offer_decode(wire, sizeof wire, &b), 0);
    ck_assert_int_eq(b.socket, -1);
    wire[1] = 99;
    ck_assert_int_eq(offer_decode(wire, sizeof wire, &b), -AIFS_EPROTO);
}
END_TEST

START_TEST(the_best_transport_that_both_can_use_is_chosen)
{
    struct offer a = here(NET_WANT_AUTO, OFFER_SHM | OFFER_RDMA);
    struct offer b = a;

    ck_assert_int_eq(both_ways(&a, &b).choice, CHOICE_SHM);
    b.uid++;
    ck_assert_int_eq(both_ways(&a, &b).choice, CHOICE_RDMA);
    b.flags = OFFER_SHM;
    ck_assert_int_eq(both_ways(&a, &b).choice, CHOICE_SOCKET);
    b = a;
    b.flags = a.flags = OFFER_SHM;
    b.pid_ns++;
    ck_assert_int_eq(both_ways(&a, &b).choice, CHOICE_SOCKET);
    b = a;
    b.user_ns++;
    ck_assert_int_eq(both_ways(&a, &b).choice, CHOICE_SOCKET);
    b = a;
    b.boot_id[3] ^= 1;
    ck_assert_int_eq(both_ways(&a, &b).choice, CHOICE_SOCKET);
    ck_assert(!both_ways(&a, &b).refused);
}
END_TEST

START_TEST(an_end_that_insists_gets_it_or_a_clear_refusal)
{
    struct offer a = here(NET_WANT_TCP, 0);
    struct offer b = here(NET_WANT_AUTO, OFFER_SHM);

    ck_assert_int_eq(both_ways(&a, &b).choice, CHOICE_SOCKET);
    ck_assert(!both_ways(&a, &b).refused);
    a = here(NET_WANT_SHM, OFFER_SHM);
    ck_assert_int_eq(both_ways(&a, &b).choice, CHOICE_SHM);
    b.boot_id[0] ^= 1;
    ck_assert(both_ways(&a, &b).refused);
    b = here(NET_WANT_TCP, 0);
    ck_assert(both_ways(&a, &b).refused);
    a = here(NET_WANT_RDMA, OFFER_SHM);
    b = here(NET_WANT_AUTO, OFFER_SHM);
    ck_assert(both_ways(&a, &b).refused);
    a.flags = b.flags = OFFER_RDMA;
    ck_assert_int_eq(both_ways(&a, &b).choice, CHOICE_RDMA);
}
END_TEST

START_TEST(who_makes_a_few_calls_is_served_over_tcp_by_an_end_that_insists)
{
    static const enum net_want wants[] = {NET_WANT_AUTO, NET_WANT_TCP, NET_WANT_SHM, NET_WANT_RDMA};
    struct offer tool = here(NET_WANT_TCP, OFFER_CALLS);

    for (unsigned k = 0; k < ARRAY_LEN(wants); k++) {
        struct offer server = here(wants[k], OFFER_SHM | OFFER_RDMA);

        ck_assert_int_eq(both_ways(&tool, &server).choice, CHOICE_SOCKET);
        ck_assert(!both_ways(&tool, &server).refused);
    }
}
END_TEST

/* ---- reading memory ---- */

START_TEST(memory_is_read_across_uneven_pieces_and_a_bad_address_is_an_error)
{
    static uint8_t from[10000];
    static uint8_t to[10000];
    struct iovec remote[3] = {{from, 1}, {from + 1, 6000}, {from + 6001, 3999}};
    struct iovec local[2] = {{to, 4097}, {to + 4097, 5903}};

    for (unsigned i = 0; i < sizeof from; i++)
        from[i] = (uint8_t)(i * 7);
    ck_assert_int_eq(cma_read(getpid(), local, 2, remote, 3, 0, sizeof from), 0);
    ck_assert_mem_eq(from, to, sizeof from);
    memset(to, 0, sizeof to);
    ck_assert_int_eq(cma_read(getpid(), local, 2, remote, 3, 0, 5000), 0);
    ck_assert_mem_eq(from, to, 5000);
    ck_assert_uint_eq(to[5000], 0);
    ck_assert_int_eq(cma_read(getpid(), local, 2, remote, 3, 4000, 5000), 0);
    ck_assert_mem_eq(from + 4000, to, 5000);
    ck_assert_uint_eq(to[5000], 0);
    remote[1].iov_base = (void *)16;
    ck_assert_int_eq(cma_read(getpid(), local, 2, remote, 3, 0, sizeof from), -EFAULT);
    ck_assert_int_eq(cma_read(0x3fffffff, local, 2, remote, 3, 0, 10), -ESRCH);
}
END_TEST

START_TEST(the_rate_of_a_port_is_lanes_times_speed)
{
    ck_assert_uint_eq(net_device_rate(2, 1), 10000000000);    /* 4x SDR */
    ck_assert_uint_eq(net_device_rate(2, 64), 212500000000);  /* 4x HDR */
    ck_assert_uint_eq(net_device_rate(2, 128), 425000000000); /* 4x NDR */
    ck_assert_uint_eq(net_device_rate(8, 4), 120000000000);
    ck_assert_uint_eq(net_device_rate(2, 3), 0);
    ck_assert_uint_eq(net_device_rate(0, 4), 0);
}
END_TEST

SUITE_MAIN("net-parts", NULL, NULL, a_pool_hands_out_the_buffer_that_came_back_last,
           a_large_pool_begins_where_a_huge_page_does,
           a_cold_pool_is_one_like_others_once_it_is_touched, a_second_owner_keeps_a_buffer,
           waiters_are_served_in_order_and_before_newcomers,
           waiters_that_put_at_once_do_not_pile_up_on_the_stack, addresses_are_read,
           bad_addresses_are_refused_with_a_reason, an_address_is_named_with_the_port_that_is_meant,
           a_frame_is_what_was_encoded_and_nothing_else_is_a_frame,
           an_offer_survives_the_wire_and_a_short_one_is_refused,
           the_best_transport_that_both_can_use_is_chosen,
           who_makes_a_few_calls_is_served_over_tcp_by_an_end_that_insists,
           the_rate_of_a_port_is_lanes_times_speed, an_end_that_insists_gets_it_or_a_clear_refusal,
           memory_is_read_across_uneven_pieces_and_a_bad_address_is_an_error)
