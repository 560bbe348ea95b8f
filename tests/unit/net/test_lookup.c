// SPDX-License-Identifier: Apache-2.0
/*
 * Looking up beside the reactor: what is told and when, and what is cancelled in each of its
 * states. The name service is ours.
 */
#include <check.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/net/net.h"
#include "tests/support/name_service.h"
#include "tests/support/suite.h"

#define MANY 12u

static struct reactor *r;
static struct outcome {
    struct net_lookup *lookup;
    unsigned times;
    int status;
    struct net_addr addr;
    char why[200];
} outcomes[MANY];

static void start(void)
{
    struct reactor_options ro = {.name = "lookup"};

    ck_assert_int_eq(reactor_create(&ro, &r), 0);
    memset(outcomes, 0, sizeof outcomes);
    name_service_init();
    name_service_set("known.test", "10.1.2.3");
}

static void stop(void)
{
    reactor_destroy(r); /* asserts that nothing is left on it */
    name_service_hold(false);
}

static void told(void *arg, int status, const struct net_addr *addr, const char *why)
{
    struct outcome *o = arg;

    o->times++;
    o->status = status;
    ck_assert_int_eq(addr == NULL, status != 0);
    if (addr)
        o->addr = *addr;
    snprintf(o->why, sizeof o->why, "%s", why);
}

static void look(unsigned i, const char *name)
{
    ck_assert_int_eq(net_lookup_start(r, name, 7000, told, &outcomes[i], &outcomes[i].lookup), 0);
}

static void wait_told(unsigned i)
{
    while (!outcomes[i].times)
        reactor_run_once(r, 100 * NS_PER_MS);
}

static void wait_asking(unsigned n)
{
    while (name_service_asking() < n)
        reactor_run_once(r, NS_PER_MS);
}

START_TEST(a_known_name_has_its_address_and_an_unknown_one_a_reason)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)outcomes[0].addr.places[0].sockaddr;

    look(0, "known.test:80");
    look(1, "nobody.test");
    wait_told(0);
    wait_told(1);
    ck_assert_int_eq(outcomes[0].status, 0);
    ck_assert_uint_eq(outcomes[0].addr.n_places, 1);
    ck_assert_int_eq(in->sin_port, htons(80));
    ck_assert_uint_eq(in->sin_addr.s_addr, htonl(0x0a010203));
    ck_assert_str_eq(outcomes[0].addr.text, "known.test:80");
    ck_assert_int_eq(outcomes[1].status, -EHOSTUNREACH);
    ck_assert_ptr_nonnull(strstr(outcomes[1].why, "nobody.test"));
}
END_TEST

START_TEST(few_are_asked_for_at_a_time_and_all_in_the_end)
{
    name_service_hold(true);
    for (unsigned i = 0; i < MANY; i++)
        look(i, "known.test");
    wait_asking(4);
    for (unsigned turn = 0; turn < 20; turn++)
        reactor_run_once(r, NS_PER_MS);
    ck_assert_uint_eq(name_service_asking(), 4);
    name_service_hold(false);
    for (unsigned i = 0; i < MANY; i++)
        wait_told(i);
    for (unsigned i = 0; i < MANY; i++)
        ck_assert_uint_eq(outcomes[i].times, 1);
    ck_assert_uint_eq(name_service_asked(), MANY);
}
END_TEST

START_TEST(what_is_cancelled_is_not_told)
{
    name_service_hold(true);
    for (unsigned i = 0; i < MANY; i++)
        look(i, "known.test");
    wait_asking(4);
    for (unsigned i = 0; i < MANY; i++) /* four under way, the others not yet */
        if (i != MANY - 1)
            net_lookup_cancel(outcomes[i].lookup);
    name_service_hold(false);
    wait_told(MANY - 1);
    for (unsigned i = 0; i < MANY; i++)
        ck_assert_uint_eq(outcomes[i].times, i == MANY - 1);
    ck_assert_uint_eq(name_service_asked(), 5); /* what was cancelled in time is not even asked */
}
END_TEST

START_TEST(one_that_is_done_can_still_be_cancelled)
{
    look(0, "known.test");
    while (name_service_asked() < 1 || name_service_asking())
        ; /* not a turn of the reactor */
    net_lookup_cancel(outcomes[0].lookup);
    look(1, "known.test");
    wait_told(1);
    ck_assert_uint_eq(outcomes[0].times, 0);
}
END_TEST

START_TEST(numbers_are_no_names)
{
    static const char *const numbers[] = {"10.0.0.1:5", "[fe80::1]:5", "::1", "*:5", "loop:x"};
    struct net_addr a;
    char err[200];

    for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        ck_assert_int_eq(net_addr_parse(numbers[i], 7000, &a, err, sizeof err), 0);
    ck_assert_int_eq(net_addr_parse("known.test:5", 7000, &a, err, sizeof err), -EAGAIN);
    ck_assert_str_eq(a.text, "known.test:5");
    ck_assert_uint_eq(a.n_places, 0);
    ck_assert_int_eq(net_addr_parse("known.test:x", 7000, &a, err, sizeof err), -EINVAL);
    ck_assert_uint_eq(name_service_asked(), 0);
}
END_TEST

SUITE_MAIN("lookup", start, stop, a_known_name_has_its_address_and_an_unknown_one_a_reason,
           few_are_asked_for_at_a_time_and_all_in_the_end, what_is_cancelled_is_not_told,
           one_that_is_done_can_still_be_cancelled, numbers_are_no_names)
