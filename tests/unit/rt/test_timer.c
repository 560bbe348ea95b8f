/* SPDX-License-Identifier: Apache-2.0 */
/* Timers of the reactor, all on a virtual clock: no real time passes. */
#include <check.h>
#include <stdlib.h>

#include "common/rt/reactor.h"
#include "tests/support/suite.h"

static struct clock_virtual clk;
static struct reactor *r;

struct probe {
    struct reactor_timer timer;
    int id;
    struct probe *victim;
    uint64_t restart_ns;
};

static int fired[20000];
static unsigned n_fired;

static void probe_fire(struct reactor_timer *t)
{
    struct probe *p = container_of(t, struct probe, timer);

    ck_assert(!reactor_timer_running(t));
    ck_assert_uint_le(t->deadline_ns, reactor_now_ns(r));
    fired[n_fired++] = p->id;
    if (p->victim)
        reactor_timer_cancel(r, &p->victim->timer);
    if (p->restart_ns)
        reactor_timer_start(r, t, p->restart_ns);
}

static void probe_init(struct probe *p, int id)
{
    *p = (struct probe){.id = id};
    reactor_timer_init(&p->timer, probe_fire);
}

static void setup(void)
{
    struct reactor_options options = {.name = "test", .clock = &clk.clock};

    clock_virtual_init(&clk, 1000, 0);
    ck_assert_int_eq(reactor_create(&options, &r), 0);
    n_fired = 0;
}

static void teardown(void)
{
    reactor_destroy(r);
}

static void drain(void)
{
    while (reactor_run_once(r, 0))
        ;
}

START_TEST(timers_fire_in_the_order_of_deadlines_and_then_of_starting)
{
    struct probe p[5];
    const uint64_t deadline_ns[] = {3000, 2000, 3000, 1500, 2000};
    const int expected[] = {3, 1, 4, 0, 2};

    for (int i = 0; i < 5; i++) {
        probe_init(&p[i], i);
        reactor_timer_start(r, &p[i].timer, deadline_ns[i]);
    }
    drain();
    ck_assert_uint_eq(n_fired, 0);
    clock_virtual_advance(&clk, 2000);
    drain();
    ck_assert_uint_eq(n_fired, 5);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(fired[i], expected[i]);
}
END_TEST

START_TEST(a_virtual_clock_fires_only_what_it_has_reached)
{
    struct probe early, late;

    probe_init(&early, 1);
    probe_init(&late, 2);
    reactor_timer_start(r, &late.timer, 1000 + 3600 * NS_PER_S);
    reactor_timer_start(r, &early.timer, 1000 + NS_PER_S);
    clock_virtual_advance(&clk, NS_PER_S - 1);
    drain();
    ck_assert_uint_eq(n_fired, 0);
    clock_virtual_advance(&clk, 1);
    drain();
    ck_assert_uint_eq(n_fired, 1);
    clock_virtual_advance(&clk, 3599 * NS_PER_S);
    drain();
    ck_assert_uint_eq(n_fired, 2);
    ck_assert_int_eq(fired[1], 2);
}
END_TEST

START_TEST(a_timer_cancelled_by_an_earlier_one_in_the_same_turn_does_not_fire)
{
    struct probe a, b, c;

    probe_init(&a, 1);
    probe_init(&b, 2);
    probe_init(&c, 3);
    a.victim = &b;
    reactor_timer_start(r, &a.timer, 1000);
    reactor_timer_start(r, &b.timer, 1000);
    reactor_timer_start(r, &c.timer, 1000);
    drain();
    ck_assert_uint_eq(n_fired, 2);
    ck_assert_int_eq(fired[0], 1);
    ck_assert_int_eq(fired[1], 3);
    ck_assert(!reactor_timer_running(&b.timer));
    reactor_timer_cancel(r, &b.timer); /* a no-op */
}
END_TEST

START_TEST(starting_a_running_timer_moves_it)
{
    struct probe a, b;

    probe_init(&a, 1);
    probe_init(&b, 2);
    reactor_timer_start(r, &a.timer, 1001);
    reactor_timer_start(r, &b.timer, 1002);
    reactor_timer_start(r, &a.timer, 1003);
    clock_virtual_advance(&clk, 10);
    drain();
    ck_assert_uint_eq(n_fired, 2);
    ck_assert_int_eq(fired[0], 2);
    ck_assert_int_eq(fired[1], 1);
}
END_TEST

START_TEST(a_timer_that_restarts_itself_in_the_past_fires_once_a_turn)
{
    struct probe a;

    probe_init(&a, 1);
    a.restart_ns = 1;
    reactor_timer_start(r, &a.timer, 1);
    for (unsigned i = 1; i < 10; i++) {
        ck_assert(reactor_run_once(r, 0));
        ck_assert_uint_eq(n_fired, i);
    }
    reactor_timer_cancel(r, &a.timer);
}
END_TEST

/* Against a model: random starts, restarts and cancels; what is left fires in sorted order. */
START_TEST(ten_thousand_timers_survive_random_starts_and_cancels)
{
    enum { N = 10000 };
    struct probe *p = calloc(N, sizeof(*p));
    unsigned left = 0;
    uint64_t last_ns = 0;

    srand48(_i + 1);
    for (int i = 0; i < N; i++)
        probe_init(&p[i], i);
    for (int step = 0; step < 5 * N; step++) {
        struct probe *q = &p[lrand48() % N];

        if (lrand48() % 3 == 0)
            reactor_timer_cancel(r, &q->timer);
        else
            reactor_timer_start(r, &q->timer, 2000 + (uint64_t)(lrand48() % 5000));
        if (step % 5000 == 0) {
            clock_virtual_advance(&clk, 300);
            n_fired = 0;
            drain();
        }
    }
    for (int i = 0; i < N; i++)
        left += reactor_timer_running(&p[i].timer);
    n_fired = 0;
    clock_virtual_advance(&clk, 10000);
    drain();
    ck_assert_uint_eq(n_fired, left);
    for (unsigned i = 0; i < n_fired; i++) {
        ck_assert_uint_ge(p[fired[i]].timer.deadline_ns, last_ns);
        last_ns = p[fired[i]].timer.deadline_ns;
    }
    free(p);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("timer");

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, timers_fire_in_the_order_of_deadlines_and_then_of_starting);
    tcase_add_test(tc, a_virtual_clock_fires_only_what_it_has_reached);
    tcase_add_test(tc, a_timer_cancelled_by_an_earlier_one_in_the_same_turn_does_not_fire);
    tcase_add_test(tc, starting_a_running_timer_moves_it);
    tcase_add_test(tc, a_timer_that_restarts_itself_in_the_past_fires_once_a_turn);
    tcase_add_loop_test(tc, ten_thousand_timers_survive_random_starts_and_cancels, 0, 3);
    return suite_run_case("timer", tc);
}
