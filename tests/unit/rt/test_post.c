/* SPDX-License-Identifier: Apache-2.0 */
/* Posts to and stops of a reactor from other threads. Also prints what a post that wakes costs. */
#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/rt/reactor.h"
#include "common/rt/thread.h"
#include "tests/support/suite.h"

enum { POSTERS = 4, POSTS = 20000 };

static struct reactor *r;

static void setup(void)
{
    struct reactor_options options = {.name = "test-post"};

    ck_assert_int_eq(reactor_create(&options, &r), 0);
}

static void teardown(void)
{
    reactor_destroy(r);
}

static void *reactor_main(void *arg)
{
    reactor_run(arg);
    return NULL;
}

struct letter {
    struct reactor_work work;
    unsigned poster, number;
};

static unsigned next_number[POSTERS];
static unsigned received;

static void letter_arrives(struct reactor_work *w)
{
    struct letter *l = container_of(w, struct letter, work);

    ck_assert(reactor_is_current(r));
    ck_assert_uint_eq(l->number, next_number[l->poster]);
    next_number[l->poster]++;
    if (++received == POSTERS * POSTS)
        reactor_stop(r);
}

static void *poster_main(void *arg)
{
    struct letter *letters = arg;

    ck_assert(!reactor_is_current(r));
    for (unsigned i = 0; i < POSTS; i++)
        reactor_post(r, &letters[i].work);
    return NULL;
}

START_TEST(posts_of_four_threads_all_arrive_in_the_order_of_each)
{
    struct letter *letters = calloc(POSTERS * POSTS, sizeof(*letters));
    pthread_t threads[POSTERS];

    for (unsigned p = 0; p < POSTERS; p++) {
        for (unsigned i = 0; i < POSTS; i++)
            letters[p * POSTS + i] =
                (struct letter){.work.fn = letter_arrives, .poster = p, .number = i};
        ck_assert_int_eq(thread_start(&threads[p], "poster", poster_main, &letters[p * POSTS]), 0);
    }
    reactor_run(r);
    for (unsigned p = 0; p < POSTERS; p++) {
        pthread_join(threads[p], NULL);
        ck_assert_uint_eq(next_number[p], POSTS);
    }
    free(letters);
}
END_TEST

static void *stopper_main(void *arg)
{
    reactor_stop(arg);
    return NULL;
}

START_TEST(another_thread_stops_a_sleeping_reactor)
{
    struct reactor_options options = {.name = "sleeper", .max_sleep_ns = 3600 * NS_PER_S};
    struct reactor *sleeper;
    struct reactor_stats stats = {0};
    pthread_t thread, stopper;

    ck_assert_int_eq(reactor_create(&options, &sleeper), 0);
    ck_assert_int_eq(thread_start(&thread, "sleeper", reactor_main, sleeper), 0);
    while (!stats.sleeps) /* until it is about to sleep */
        reactor_get_stats(sleeper, &stats);
    ck_assert_int_eq(thread_start(&stopper, "stopper", stopper_main, sleeper), 0);
    pthread_join(stopper, NULL);
    pthread_join(thread, NULL);
    reactor_destroy(sleeper);
}
END_TEST

START_TEST(a_stop_before_the_run_is_not_lost)
{
    reactor_stop(r);
    reactor_run(r); /* returns */
    reactor_stop(r);
    reactor_run(r);
}
END_TEST

static void on_signal(int sig)
{
    (void)sig;
    reactor_stop(r);
}

static void raise_signal(struct reactor_work *w)
{
    (void)w;
    raise(SIGUSR1);
}

START_TEST(a_signal_handler_may_stop_the_reactor)
{
    struct sigaction sa = {.sa_handler = on_signal};
    struct reactor_work w = {.fn = raise_signal};

    sigaction(SIGUSR1, &sa, NULL);
    reactor_post(r, &w);
    reactor_run(r);
}
END_TEST

static void nothing(struct reactor_work *w)
{
    (void)w;
}

START_TEST(posts_to_an_awake_reactor_ring_no_bell)
{
    struct reactor_work w[100];
    struct reactor_stats stats;

    for (int i = 0; i < 100; i++) {
        w[i].fn = nothing;
        reactor_post(r, &w[i]);
    }
    while (reactor_run_once(r, 0))
        ;
    reactor_get_stats(r, &stats);
    ck_assert_uint_eq(stats.wakes, 0);
    ck_assert_uint_eq(stats.work_run, 100);
}
END_TEST

/* ---- ping-pong: each post finds its reactor asleep ---- */

struct player {
    struct reactor_work work;
    struct reactor *self, *other;
    struct player *peer;
    unsigned left;
};

static void player_hit(struct reactor_work *w)
{
    struct player *p = container_of(w, struct player, work);

    if (p->left-- == 0) {
        reactor_stop(p->self);
        reactor_stop(p->other);
        return;
    }
    reactor_post(p->other, &p->peer->work);
}

struct driver {
    pthread_mutex_t lock;
    struct reactor_work work;
    struct reactor_timer timer;
    unsigned worked, fired;
};

static void driver_works(struct reactor_work *w)
{
    ck_assert(reactor_is_current(r));
    container_of(w, struct driver, work)->worked++;
}

static void driver_fires(struct reactor_timer *t)
{
    ck_assert(reactor_is_current(r));
    container_of(t, struct driver, timer)->fired++;
}

static void *driver_main(void *arg)
{
    struct driver *d = arg;

    for (unsigned i = 0; i < 1000; i++) {
        pthread_mutex_lock(&d->lock);
        reactor_post(r, &d->work);
        ck_assert_uint_eq(reactor_due_ns(r), 0);
        ck_assert_uint_eq(reactor_rest(r), 0);
        ck_assert(reactor_rest(r) > 0);
        pthread_mutex_unlock(&d->lock);
    }
    return NULL;
}

START_TEST(threads_take_turns_at_a_reactor_and_nobody_has_it_while_it_rests)
{
    struct driver d = {.lock = PTHREAD_MUTEX_INITIALIZER, .work.fn = driver_works};
    struct pollfd p = {.fd = reactor_fd(r), .events = POLLIN};
    pthread_t threads[POSTERS];
    uint64_t rest_ns;

    for (unsigned i = 0; i < POSTERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, driver_main, &d), 0);
    for (unsigned i = 0; i < POSTERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(d.worked, POSTERS * 1000);

    reactor_timer_init(&d.timer, driver_fires);
    reactor_timer_start(r, &d.timer, reactor_now_ns(r) + 3600 * NS_PER_S);
    ck_assert_uint_eq(reactor_rest(r), NS_PER_S); /* the longest sleep */
    reactor_timer_start(r, &d.timer, reactor_now_ns(r) + NS_PER_S / 2);
    rest_ns = reactor_rest(r);
    ck_assert(rest_ns < NS_PER_S && d.fired == (rest_ns == 0));
    reactor_timer_cancel(r, &d.timer);

    ck_assert_int_eq(poll(&p, 1, 0), 0);
    reactor_post(r, &d.work); /* rings no bell: nobody sleeps in there */
    ck_assert_int_eq(poll(&p, 1, 0), 0);
    reactor_ring(r);
    ck_assert_int_eq(poll(&p, 1, -1), 1);
    while (reactor_run_once(r, 0)) {
    }
    ck_assert_uint_eq(d.worked, POSTERS * 1000 + 1);
    ck_assert_int_eq(poll(&p, 1, 0), 0);
}
END_TEST

START_TEST(two_reactors_play_ping_pong)
{
    enum { ROUNDS = 5000 };
    struct reactor_options options = {.name = "pong"};
    struct player ping = {.work.fn = player_hit, .self = r, .left = ROUNDS};
    struct player pong = {.work.fn = player_hit, .other = r, .left = ROUNDS};
    struct reactor_stats a, b;
    pthread_t thread;
    uint64_t start_ns, took_ns;

    ck_assert_int_eq(reactor_create(&options, &pong.self), 0);
    ping.other = pong.self;
    ping.peer = &pong;
    pong.peer = &ping;
    ck_assert_int_eq(thread_start(&thread, "pong", reactor_main, pong.self), 0);
    start_ns = clock_mono_ns(clock_real());
    reactor_post(r, &ping.work);
    reactor_run(r);
    took_ns = clock_mono_ns(clock_real()) - start_ns;
    pthread_join(thread, NULL);
    reactor_get_stats(r, &a);
    reactor_get_stats(pong.self, &b);
    ck_assert_uint_eq(a.work_run + b.work_run, 2 * ROUNDS + 1);
    printf("post that wakes another reactor: %.1f us (%lu of %d posts had to wake)\n",
           (double)took_ns / 2 / ROUNDS / 1000.0, (unsigned long)(a.wakes + b.wakes), 2 * ROUNDS);
    reactor_destroy(pong.self);
}
END_TEST

SUITE_MAIN("post", setup, teardown, posts_of_four_threads_all_arrive_in_the_order_of_each,
           another_thread_stops_a_sleeping_reactor, a_stop_before_the_run_is_not_lost,
           a_signal_handler_may_stop_the_reactor, posts_to_an_awake_reactor_ring_no_bell,
           threads_take_turns_at_a_reactor_and_nobody_has_it_while_it_rests,
           two_reactors_play_ping_pong)
