/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting: refused, cancelled, without an answer, to a name of several places; and listening on
 * one. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/net/net_int.h"
#include "tests/component/net/harness.h"
#include "tests/support/suite.h"

static struct net_options tcp(void)
{
    struct net_options o;

    net_options_default(&o);
    o.want = NET_WANT_TCP;
    return o;
}

static int answers;
static int answer;

static void on_answer(void *arg, struct net_conn *c, int status)
{
    struct net_conn **ret = arg;

    answers++;
    answer = status;
    *ret = c;
}

static uint16_t port_of_nobody(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    close(fd);
    return ntohs(a.sin_port);
}

START_TEST(a_refused_connection_is_told_once_and_later)
{
    struct reactor_options ro = {.name = "test"};
    struct net_options o = tcp();
    struct net_connecting *n;
    struct net_conn *c = NULL;
    struct net_addr a;
    struct reactor *r;
    char text[32];

    ck_assert_int_eq(reactor_create(&ro, &r), 0);
    snprintf(text, sizeof text, "127.0.0.1:%u", port_of_nobody());
    a = addr_of(text);
    ck_assert_int_eq(net_connect(r, &a, &o, on_answer, &c, &n), 0);
    ck_assert_int_eq(answers, 0);
    while (answers == 0)
        reactor_run_once(r, NS_PER_S);
    ck_assert_int_eq(answer, -ECONNREFUSED);
    ck_assert_int_eq(net_connect(r, &a, &o, on_answer, &c, &n), 0);
    net_connect_cancel(n);
    reactor_run_once(r, 0);
    ck_assert_int_eq(answers, 1);
    reactor_destroy(r);
}
END_TEST

/* A listener that answers nobody any more: its queue of one is full. */
struct mute {
    int fd, fill[8];
    uint16_t port;
};

static struct mute mute_open(void)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct mute m = {.fd = socket(AF_INET, SOCK_STREAM, 0)};
    socklen_t len = sizeof sa;

    ck_assert_int_eq(bind(m.fd, (struct sockaddr *)&sa, sizeof sa), 0);
    ck_assert_int_eq(listen(m.fd, 0), 0);
    ck_assert_int_eq(getsockname(m.fd, (struct sockaddr *)&sa, &len), 0);
    for (int i = 0; i < 8; i++) {
        m.fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(m.fill[i], (struct sockaddr *)&sa, sizeof sa);
    }
    m.port = ntohs(sa.sin_port);
    return m;
}

static void mute_close(struct mute *m)
{
    for (int i = 0; i < 8; i++)
        close(m->fill[i]);
    close(m->fd);
}

static struct net_addr local_port(uint16_t port)
{
    char text[32];

    snprintf(text, sizeof text, "127.0.0.1:%u", port);
    return addr_of(text);
}

START_TEST(connecting_to_who_does_not_answer_ends_at_the_time_limit)
{
    struct reactor_options ro = {.name = "test"};
    struct net_options o = tcp();
    struct net_connecting *n;
    struct net_conn *c = NULL;
    struct mute m = mute_open();
    struct net_addr a = local_port(m.port);
    struct reactor *r;

    ck_assert_int_eq(reactor_create(&ro, &r), 0);
    o.connect_timeout_ns = 50 * NS_PER_MS;
    ck_assert_int_eq(net_connect(r, &a, &o, on_answer, &c, &n), 0);
    while (answers == 0)
        reactor_run_once(r, NS_PER_S);
    ck_assert_int_eq(answer, -AIFS_ETIMEOUT);
    reactor_destroy(r);
    mute_close(&m);
}
END_TEST

/* An address of several places, as a name has that stands for several. */
static struct net_addr places(uint16_t first, uint16_t second, uint16_t third)
{
    struct net_addr a = local_port(first);

    a.places[1] = local_port(second).places[0];
    a.places[2] = local_port(third).places[0];
    a.n_places = 3;
    return a;
}

static void accept_nobody(void *arg UNUSED, struct net_conn *c)
{
    net_conn_close(c, 0);
    net_conn_free(c);
}

/* The clock stands still but where the test moves it. */
START_TEST(of_the_places_of_a_name_the_first_that_takes_us_is_used)
{
    struct clock_virtual clock;
    struct reactor_options ro = {.name = "test", .clock = &clock.clock};
    struct net_options o = tcp();
    struct net_addr any = addr_of("127.0.0.1:0"), a;
    struct net_listener *l;
    struct net_connecting *n;
    struct net_conn *c = NULL;
    struct mute m = mute_open();
    struct reactor *r;

    clock_virtual_init(&clock, NS_PER_S, 0);
    ck_assert_int_eq(reactor_create(&ro, &r), 0);
    ck_assert_int_eq(net_listen(r, &any, &o, accept_nobody, NULL, &l), 0);
    o.connect_timeout_ns = 3 * NS_PER_S;

    a = places(port_of_nobody(), m.port, net_listener_port(l));
    ck_assert_int_eq(net_connect(r, &a, &o, on_answer, &c, &n), 0);
    while (n->next < 2)
        reactor_run_once(r, 0);                  /* until it is refused */
    clock_virtual_advance(&clock, 2 * NS_PER_S); /* past half of the time, and not all */
    while (answers == 0)
        reactor_run_once(r, 0);
    ck_assert_int_eq(answer, 0);
    ck_assert_ptr_nonnull(c);
    net_conn_close(c, 0);
    net_conn_free(c);

    a = places(port_of_nobody(), m.port, m.port);
    ck_assert_int_eq(net_connect(r, &a, &o, on_answer, &c, &n), 0);
    while (n->next < 2)
        reactor_run_once(r, 0);
    clock_virtual_advance(&clock, 2 * NS_PER_S);
    while (n->next < 3)
        reactor_run_once(r, 0);
    ck_assert_int_eq(answers, 1);
    clock_virtual_advance(&clock, NS_PER_S);
    while (answers == 1)
        reactor_run_once(r, 0);
    ck_assert_int_eq(answer, -ECONNREFUSED); /* of the first */
    net_listener_close(l);
    while (reactor_run_once(r, 0))
        ;
    reactor_destroy(r);
    mute_close(&m);
}
END_TEST

START_TEST(a_name_of_several_places_is_listened_on_at_the_first_that_this_machine_has)
{
    struct reactor_options ro = {.name = "test"};
    struct net_options o = tcp();
    struct net_addr a = addr_of("192.0.2.1:0"); /* nobody's: RFC 5737 */
    struct net_listener *l;
    struct net_connecting *n;
    struct net_conn *c = NULL;
    struct reactor *r;

    ck_assert_int_eq(reactor_create(&ro, &r), 0);
    a.places[a.n_places++] = addr_of("127.0.0.1:0").places[0];
    ck_assert_int_eq(net_listen(r, &a, &o, accept_nobody, NULL, &l), 0);
    a = local_port(net_listener_port(l));
    ck_assert_int_eq(net_connect(r, &a, &o, on_answer, &c, &n), 0);
    while (answers == 0)
        reactor_run_once(r, NS_PER_S);
    ck_assert_int_eq(answer, 0);
    net_conn_close(c, 0);
    net_conn_free(c);
    net_listener_close(l);
    while (reactor_run_once(r, 0))
        ;
    reactor_destroy(r);
}
END_TEST

SUITE_MAIN("net-connect", NULL, NULL, a_refused_connection_is_told_once_and_later,
           connecting_to_who_does_not_answer_ends_at_the_time_limit,
           of_the_places_of_a_name_the_first_that_takes_us_is_used,
           a_name_of_several_places_is_listened_on_at_the_first_that_this_machine_has)
