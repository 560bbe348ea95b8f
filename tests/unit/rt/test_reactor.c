/* SPDX-License-Identifier: Apache-2.0 */
/* Watches, sources, deferred work and the sleep of the reactor, on the test's own thread. */
#include <check.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/rt/reactor.h"
#include "tests/support/suite.h"

static struct clock_virtual clk;
static struct reactor *r;

static void setup(void)
{
    struct reactor_options options = {.name = "test", .clock = &clk.clock};

    clock_virtual_init(&clk, 1000, 0);
    ck_assert_int_eq(reactor_create(&options, &r), 0);
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

/* ---- watches ---- */

struct eye {
    struct reactor_watch watch;
    unsigned calls;
    uint32_t seen;
    struct eye *victim; /* removed, closed and freed by the callback */
    bool freed;
    struct eye *deaf; /* its events are changed to none */
};

static void eye_close(struct eye *e)
{
    reactor_watch_remove(r, &e->watch);
    close(e->watch.fd);
    e->watch.fd = -1;
}

static void eye_event(struct reactor_watch *w, uint32_t events)
{
    struct eye *e = container_of(w, struct eye, watch);

    e->calls++;
    e->seen = events;
    if (e->victim && e->victim->watch.fd >= 0)
        eye_close(e->victim);
    if (e->deaf)
        ck_assert_int_eq(reactor_watch_modify(r, &e->deaf->watch, 0), 0);
}

static void eye_open(struct eye *e, unsigned value)
{
    *e = (struct eye){
        .watch = {.fd = eventfd(value, EFD_CLOEXEC), .events = EPOLLIN, .fn = eye_event}};
    ck_assert_int_eq(reactor_watch_add(r, &e->watch), 0);
}

START_TEST(a_watch_is_called_as_long_as_its_descriptor_is_ready)
{
    struct eye e;
    uint64_t v;

    eye_open(&e, 0);
    ck_assert(!reactor_run_once(r, 0));
    ck_assert_int_eq(eventfd_write(e.watch.fd, 1), 0);
    ck_assert(reactor_run_once(r, 0));
    ck_assert(reactor_run_once(r, 0));
    ck_assert_uint_eq(e.calls, 2);
    ck_assert_uint_eq(e.seen, EPOLLIN);
    ck_assert_int_eq(eventfd_read(e.watch.fd, &v), 0);
    ck_assert(!reactor_run_once(r, 0));
    ck_assert_int_eq(reactor_watch_modify(r, &e.watch, EPOLLOUT), 0);
    ck_assert(reactor_run_once(r, 0));
    ck_assert_uint_eq(e.seen, EPOLLOUT);
    eye_close(&e);
    reactor_watch_remove(r, &e.watch); /* a no-op */
}
END_TEST

START_TEST(a_watch_removed_by_another_of_the_same_batch_is_not_called)
{
    struct eye e[8];

    for (int i = 0; i < 8; i++)
        eye_open(&e[i], 1);
    for (int i = 0; i < 8; i++)
        e[i].victim = &e[i ^ 1]; /* whichever of a pair comes first removes the other */
    ck_assert(reactor_run_once(r, 0));
    for (int i = 0; i < 8; i += 2) {
        ck_assert_uint_eq(e[i].calls + e[i + 1].calls, 1);
        eye_close(e[i].calls ? &e[i] : &e[i + 1]);
    }
}
END_TEST

START_TEST(a_watch_removed_and_added_again_in_a_batch_sees_no_old_event)
{
    struct eye a, b;
    struct eye *first, *second;

    eye_open(&a, 1);
    eye_open(&b, 1);
    a.victim = &b;
    b.victim = &a;
    ck_assert(reactor_run_once(r, 0));
    first = a.calls ? &a : &b;
    second = a.calls ? &b : &a;
    first->victim = NULL;
    eye_open(second, 0); /* same memory, another descriptor, likely the same number */
    ck_assert(reactor_run_once(r, 0));
    ck_assert_uint_eq(second->calls, 0);
    ck_assert_uint_eq(first->calls, 2);
    eye_close(&a);
    eye_close(&b);
}
END_TEST

START_TEST(a_watch_may_remove_itself)
{
    struct eye e;

    eye_open(&e, 1);
    e.victim = &e;
    drain();
    ck_assert_uint_eq(e.calls, 1);
}
END_TEST

START_TEST(an_event_no_longer_wanted_is_not_delivered)
{
    struct eye a, b;

    eye_open(&a, 1);
    eye_open(&b, 1);
    a.deaf = &b;
    b.deaf = &a;
    ck_assert(reactor_run_once(r, 0));
    ck_assert_uint_eq(a.calls + b.calls, 1);
    eye_close(&a);
    eye_close(&b);
}
END_TEST

START_TEST(adding_a_bad_descriptor_is_an_error)
{
    struct reactor_watch w = {.fd = -1, .events = EPOLLIN, .fn = eye_event};

    ck_assert_int_eq(reactor_watch_add(r, &w), -EBADF);
    ck_assert(!w.added);
}
END_TEST

/* ---- work ---- */

struct job {
    struct reactor_work work;
    unsigned *sequence;
    unsigned ran_as;
    unsigned again;
};

static void job_run(struct reactor_work *w)
{
    struct job *j = container_of(w, struct job, work);

    j->ran_as = ++*j->sequence;
    if (j->again) {
        j->again--;
        reactor_defer(r, w);
    }
}

START_TEST(deferred_work_runs_in_order_and_can_defer_itself_again)
{
    unsigned sequence = 0;
    struct job a = {.work.fn = job_run, .sequence = &sequence, .again = 3};
    struct job b = {.work.fn = job_run, .sequence = &sequence};
    unsigned turns = 0;

    reactor_defer(r, &a.work);
    reactor_defer(r, &b.work);
    ck_assert(reactor_run_once(r, 0));
    ck_assert_uint_eq(a.ran_as, 1);
    ck_assert_uint_eq(b.ran_as, 2);
    while (reactor_run_once(r, 0))
        turns++;
    ck_assert_uint_eq(turns, 3); /* once a turn: what defers itself for ever starves nobody */
    ck_assert_uint_eq(a.ran_as, 5);
}
END_TEST

START_TEST(busy_work_does_not_starve_watches)
{
    unsigned sequence = 0, turns = 0;
    struct job j = {.work.fn = job_run, .sequence = &sequence, .again = 1000};
    struct eye e;

    eye_open(&e, 1);
    reactor_defer(r, &j.work);
    while (!e.calls && turns++ < 1000)
        reactor_run_once(r, 0);
    ck_assert_uint_lt(turns, 32);
    j.again = 0;
    eye_close(&e);
    drain();
}
END_TEST

/* ---- sources ---- */

struct spring {
    struct reactor_source source;
    unsigned left, polls, arms;
    bool has_more, busy;
    struct spring *victim;
};

static int spring_progress(struct reactor_source *s)
{
    struct spring *p = container_of(s, struct spring, source);

    p->polls++;
    if (p->victim)
        reactor_source_remove(r, &p->victim->source);
    if (!p->left)
        return 0;
    p->left--;
    return 1;
}

static bool spring_arm(struct reactor_source *s)
{
    struct spring *p = container_of(s, struct spring, source);

    p->arms++;
    if (!p->has_more)
        return true;
    p->has_more = false;
    p->left = 1;
    return false;
}

static bool spring_busy(struct reactor_source *s)
{
    return container_of(s, struct spring, source)->busy;
}

static const struct reactor_source spring_ops = {
    .progress = spring_progress, .arm = spring_arm, .busy = spring_busy};

START_TEST(a_source_is_drained_and_then_armed_before_a_sleep)
{
    struct spring p = {.source = spring_ops, .left = 3};
    struct reactor_stats stats;

    reactor_source_add(r, &p.source);
    for (int i = 0; i < 3; i++)
        ck_assert(reactor_run_once(r, NS_PER_MS));
    ck_assert_uint_eq(p.arms, 0);
    ck_assert(!reactor_run_once(r, NS_PER_MS)); /* sleeps the millisecond */
    ck_assert_uint_eq(p.arms, 1);
    reactor_get_stats(r, &stats);
    ck_assert_uint_eq(stats.sleeps, 1);
    reactor_source_remove(r, &p.source);
}
END_TEST

START_TEST(a_source_that_cannot_be_armed_keeps_the_reactor_awake)
{
    struct spring p = {.source = spring_ops, .has_more = true};
    struct reactor_stats stats;

    reactor_source_add(r, &p.source);
    ck_assert(reactor_run_once(r, 3600 * NS_PER_S));
    reactor_get_stats(r, &stats);
    ck_assert_uint_eq(stats.sleeps, 0);
    reactor_source_remove(r, &p.source);
}
END_TEST

START_TEST(sources_may_remove_themselves_and_others_while_polled)
{
    struct spring a = {.source = spring_ops}, b = {.source = spring_ops},
                  c = {.source = spring_ops};

    reactor_source_add(r, &a.source);
    reactor_source_add(r, &b.source);
    reactor_source_add(r, &c.source);
    a.victim = &b; /* the next of the walk */
    c.victim = &c;
    ck_assert(!reactor_run_once(r, 0));
    ck_assert_uint_eq(b.polls, 0);
    ck_assert_uint_eq(c.polls, 1);
    ck_assert_uint_ge(a.polls, 1);
    reactor_source_remove(r, &a.source);
}
END_TEST

START_TEST(spinning_needs_requests_in_flight_and_ends)
{
    struct reactor_options options = {.name = "spin", .clock = &clk.clock, .spin_ns = 1000};
    struct spring p = {.source = spring_ops, .busy = true};
    struct reactor_stats stats;
    struct reactor *outer = r;

    ck_assert_int_eq(reactor_create(&options, &r), 0);
    reactor_source_add(r, &p.source);
    for (int i = 0; i < 5; i++)
        ck_assert(!reactor_run_once(r, 3600 * NS_PER_S)); /* would hang if it slept */
    reactor_get_stats(r, &stats);
    ck_assert_uint_eq(stats.spins, 5);
    ck_assert_uint_eq(stats.sleeps, 0);
    clock_virtual_advance(&clk, 1001);
    ck_assert(!reactor_run_once(r, NS_PER_MS));
    p.busy = false;
    ck_assert(!reactor_run_once(r, NS_PER_MS));
    reactor_get_stats(r, &stats);
    ck_assert_uint_eq(stats.spins, 5);
    ck_assert_uint_eq(stats.sleeps, 2);
    reactor_source_remove(r, &p.source);
    reactor_destroy(r);
    r = outer;
}
END_TEST

/* The descriptor of a source stays readable until it is armed, which a spin does not do. */
START_TEST(a_descriptor_that_tells_of_a_source_keeps_no_spin_going)
{
    struct reactor_options options = {.name = "spin", .clock = &clk.clock, .spin_ns = 1000};
    struct spring p = {.source = spring_ops, .busy = true};
    struct reactor_stats stats;
    struct reactor *outer = r;
    struct eye e;

    ck_assert_int_eq(reactor_create(&options, &r), 0);
    reactor_source_add(r, &p.source);
    eye_open(&e, 1);
    e.watch.of_source = true;
    for (int i = 0; i < 4; i++) {
        ck_assert(!reactor_run_once(r, NS_PER_S));
        clock_virtual_advance(&clk, 600);
    }
    reactor_get_stats(r, &stats);
    ck_assert_uint_eq(e.calls, 4);
    ck_assert_uint_eq(stats.spins, 2);
    ck_assert_uint_eq(stats.sleeps, 2);
    eye_close(&e);
    reactor_source_remove(r, &p.source);
    reactor_destroy(r);
    r = outer;
}
END_TEST

static void add_watch_tests(TCase *tc)
{
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_watch_is_called_as_long_as_its_descriptor_is_ready);
    tcase_add_test(tc, a_watch_removed_by_another_of_the_same_batch_is_not_called);
    tcase_add_test(tc, a_watch_removed_and_added_again_in_a_batch_sees_no_old_event);
    tcase_add_test(tc, a_watch_may_remove_itself);
    tcase_add_test(tc, an_event_no_longer_wanted_is_not_delivered);
    tcase_add_test(tc, adding_a_bad_descriptor_is_an_error);
}

int main(void)
{
    TCase *tc = tcase_create("reactor");

    tcase_add_checked_fixture(tc, setup, teardown);
    add_watch_tests(tc);
    tcase_add_test(tc, deferred_work_runs_in_order_and_can_defer_itself_again);
    tcase_add_test(tc, busy_work_does_not_starve_watches);
    tcase_add_test(tc, a_source_is_drained_and_then_armed_before_a_sleep);
    tcase_add_test(tc, a_source_that_cannot_be_armed_keeps_the_reactor_awake);
    tcase_add_test(tc, sources_may_remove_themselves_and_others_while_polled);
    tcase_add_test(tc, spinning_needs_requests_in_flight_and_ends);
    tcase_add_test(tc, a_descriptor_that_tells_of_a_source_keeps_no_spin_going);
    return suite_run_case("reactor", tc);
}
