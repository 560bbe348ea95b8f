// SPDX-License-Identifier: Apache-2.0
/*
 * Who waits for whom. The world of these tests: files 1 to 4 with what is held of them in arrays,
 * owners named by numbers, whole files locked unless said otherwise.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mds/locks/queue.h"
#include "tests/support/suite.h"

#define FILES 5u
#define R     MSG_LOCK_READ
#define W     MSG_LOCK_WRITE

static struct lock held[FILES][16];
static uint32_t n_held[FILES];
static struct lock_queue q;
static uint64_t ids;

static uint32_t holders(void *arg, uint64_t ino, const struct lock **ret_list)
{
    (void)arg;
    *ret_list = held[ino];
    return n_held[ino];
}

static struct lock lock_make(uint64_t owner, unsigned type)
{
    return (struct lock){.end = MSG_LOCK_END, .session = 1, .owner = owner, .type = (uint8_t)type};
}

static void hold(uint64_t ino, uint64_t owner, unsigned type)
{
    held[ino][n_held[ino]++] = lock_make(owner, type);
}

static struct lock_wait *queue(uint64_t ino, uint64_t owner, unsigned type)
{
    struct lock want = lock_make(owner, type);
    struct lock_wait *w;

    ck_assert_int_eq(lock_wait_add(&q, ino, &want, ++ids, &w), 0);
    return w;
}

static bool circle(uint64_t ino, uint64_t owner, unsigned type)
{
    struct lock want = lock_make(owner, type);

    return lock_deadlocks(&q, ino, &want);
}

static bool behind(uint64_t ino, uint64_t owner, unsigned type, bool waits)
{
    struct lock want = lock_make(owner, type);
    struct lock_file *f = lock_file_find(&q, ino);

    return f && lock_wait_ahead(&q, f, &want, NULL, waits);
}

static struct lock_wait *next(uint64_t ino)
{
    return lock_wait_next(&q, lock_file_find(&q, ino));
}

static void setup(void)
{
    memset(n_held, 0, sizeof n_held);
    ids = 0;
    q = (struct lock_queue){.holders = holders};
    ck_assert_int_eq(lock_queue_init(&q), 0);
}

static void teardown(void)
{
    lock_queue_fini(&q);
}

START_TEST(two_owners_that_wait_for_each_other_are_a_circle)
{
    hold(1, 10, W);
    hold(2, 20, W);
    ck_assert(!circle(2, 10, W));
    queue(2, 10, W);
    ck_assert(circle(1, 20, R));
    ck_assert(!circle(1, 30, R)); /* somebody else just waits */
}
END_TEST

START_TEST(a_circle_of_many_is_found_and_a_chain_is_none)
{
    for (uint64_t o = 0; o < 4; o++)
        hold(1 + o, 10 + o, W);
    for (uint64_t o = 0; o < 3; o++) {
        ck_assert(!circle(2 + o, 10 + o, W));
        queue(2 + o, 10 + o, W);
    }
    ck_assert(circle(1, 13, W));
}
END_TEST

START_TEST(two_readers_that_both_want_to_write_are_a_circle)
{
    hold(1, 10, R);
    hold(1, 20, R);
    ck_assert(!circle(1, 10, W));
    queue(1, 10, W);
    ck_assert(circle(1, 20, W));
}
END_TEST

START_TEST(flocks_are_never_a_circle)
{
    struct lock want = lock_make(20, W);

    hold(1, 10, W);
    hold(2, 20, W);
    held[1][0].kind = held[2][0].kind = want.kind = MSG_LOCK_FLOCK;
    queue(2, 10, W)->want.kind = MSG_LOCK_FLOCK;
    ck_assert(!lock_deadlocks(&q, 1, &want));
}
END_TEST

START_TEST(owners_of_different_sessions_are_different)
{
    hold(1, 10, W);
    hold(2, 10, W);
    held[2][0].session = 2;
    queue(2, 10, W);
    ck_assert(!circle(1, 30, W));
    struct lock other = lock_make(10, W);

    other.session = 2;
    ck_assert(lock_deadlocks(&q, 1, &other));
}
END_TEST

START_TEST(waits_are_served_in_the_order_they_came)
{
    struct lock_wait *a, *b;

    hold(1, 10, W);
    a = queue(1, 20, W);
    b = queue(1, 30, W);
    ck_assert_ptr_null(next(1));
    n_held[1] = 0;
    ck_assert_ptr_eq(next(1), a);
    a->state = LOCK_OFFERED;
    ck_assert_ptr_null(next(1));
    lock_wait_remove(&q, a);
    ck_assert_ptr_eq(next(1), b);
}
END_TEST

START_TEST(readers_do_not_pass_a_writer_that_came_first)
{
    hold(1, 10, R);
    queue(1, 20, W);
    ck_assert(behind(1, 30, R, true));
    ck_assert(!behind(1, 30, R, false)); /* who does not wait may */
}
END_TEST

START_TEST(readers_are_served_together)
{
    struct lock_wait *a = queue(1, 20, R), *b = queue(1, 30, R);

    ck_assert_ptr_eq(next(1), a);
    a->state = LOCK_OFFERED;
    ck_assert_ptr_eq(next(1), b);
}
END_TEST

START_TEST(a_reader_that_keeps_a_writer_out_may_read_more)
{
    hold(1, 10, R);
    queue(1, 20, W);
    ck_assert(!behind(1, 10, R, true));
    ck_assert(!behind(1, 10, W, true));
}
END_TEST

START_TEST(nor_is_it_kept_out_by_one_that_waits_for_it_elsewhere)
{
    hold(1, 10, R); /* 10 keeps 20 out, who holds what 30 waits for */
    hold(2, 20, W);
    queue(1, 20, W);
    hold(3, 40, R);
    held[3][0].session = 7;
    hold(3, 30, R);
    queue(3, 20, W); /* 20 waits for 30 and 40 in file 3 */
    queue(2, 30, W);
    ck_assert(!behind(3, 30, R, true));
    ck_assert(behind(3, 50, R, true));
}
END_TEST

START_TEST(what_is_offered_is_kept_for_its_wait)
{
    struct lock_wait *a = queue(1, 20, W);

    a->state = LOCK_OFFERED;
    ck_assert(behind(1, 30, R, false));
    ck_assert(behind(1, 30, R, true));
    ck_assert(!behind(1, 20, R, false));
    a->state = LOCK_LAPSED;
    ck_assert(!behind(1, 30, R, true));
}
END_TEST

START_TEST(a_wait_is_found_by_session_and_name)
{
    struct lock_wait *a = queue(1, 20, W);

    ck_assert_ptr_eq(lock_wait_find(&q, 1, a->id), a);
    ck_assert_ptr_null(lock_wait_find(&q, 2, a->id));
    lock_wait_remove(&q, a);
    ck_assert_ptr_null(lock_wait_find(&q, 1, 1));
    ck_assert_ptr_null(lock_file_find(&q, 1)); /* nobody is left */
}
END_TEST

static bool waits(uint64_t owner)
{
    for (unsigned id = 1; id <= ids; id++) {
        struct lock_wait *w = lock_wait_find(&q, 1, id);

        if (w && w->want.owner == owner)
            return true;
    }
    return false;
}

static void take(uint64_t ino, const struct lock *change)
{
    struct lock out[16];

    n_held[ino] = lock_list_apply(held[ino], n_held[ino], change, out);
    memcpy(held[ino], out, n_held[ino] * sizeof *out);
}

/* One thing that an owner who does not wait may try. */
static void random_step(void)
{
    uint64_t ino = 1 + (unsigned)rand() % 4, owner = 10 + (unsigned)rand() % 4;
    struct lock want = lock_make(owner, rand() % 2 ? W : R);
    struct lock_file *f = lock_file_find(&q, ino);

    if (waits(owner))
        return;
    if (lock_list_conflict(held[ino], n_held[ino], &want)) {
        if (!lock_deadlocks(&q, ino, &want))
            queue(ino, owner, want.type);
    } else if (f && lock_wait_ahead(&q, f, &want, NULL, true)) {
        queue(ino, owner, want.type);
    } else {
        take(ino, &want);
    }
}

/* Who does not wait releases all it has; who can be served is. */
static void everybody_goes_on(void)
{
    for (uint64_t owner = 10; owner < 14; owner++) {
        struct lock all = lock_make(owner, MSG_LOCK_UNLOCK);

        for (uint64_t ino = 1; !waits(owner) && ino < FILES; ino++)
            take(ino, &all);
    }
    for (uint64_t ino = 1; ino < FILES; ino++) {
        struct lock_file *f = lock_file_find(&q, ino);
        struct lock_wait *w = f ? lock_wait_next(&q, f) : NULL;

        if (w) {
            take(ino, &w->want);
            lock_wait_remove(&q, w);
        }
    }
}

/* Whenever a wait would close a circle it is refused, and nobody is kept in line by somebody it
 * keeps out: so somebody can always go on. */
START_TEST(with_circles_refused_everybody_is_served)
{
    srand(7);
    for (unsigned round = 0; round < 2000; round++) {
        teardown();
        setup();
        for (unsigned step = 0; step < 30; step++)
            random_step();
        for (unsigned turn = 0; q.waits.count && turn < 100; turn++)
            everybody_goes_on();
        ck_assert_msg(q.waits.count == 0, "round %u: %zu wait for ever", round, q.waits.count);
    }
}
END_TEST

SUITE_MAIN("mds-lock-queue", setup, teardown, two_owners_that_wait_for_each_other_are_a_circle,
           a_circle_of_many_is_found_and_a_chain_is_none,
           two_readers_that_both_want_to_write_are_a_circle, flocks_are_never_a_circle,
           owners_of_different_sessions_are_different, waits_are_served_in_the_order_they_came,
           readers_do_not_pass_a_writer_that_came_first, readers_are_served_together,
           a_reader_that_keeps_a_writer_out_may_read_more,
           nor_is_it_kept_out_by_one_that_waits_for_it_elsewhere,
           what_is_offered_is_kept_for_its_wait, a_wait_is_found_by_session_and_name,
           with_circles_refused_everybody_is_served)
