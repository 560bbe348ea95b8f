// SPDX-License-Identifier: Apache-2.0
/*
 * Lists of locks against a model that keeps the type of lock of every owner for every byte: after
 * any sequence of changes both say the same about every byte, and about every conflict.
 */
#include <check.h>
#include <string.h>

#include "common/base/err.h"
#include "mds/locks/lock_fmt.h"
#include "tests/support/suite.h"

#define BYTES  12u /* of the model; the last one stands for everything behind it */
#define OWNERS 3u
#define NONE   9u

struct model {
    uint8_t at[OWNERS][BYTES];
};

static uint64_t byte_end(unsigned i)
{
    return i == BYTES - 1 ? MSG_LOCK_END : i;
}

static struct lock lock_make(unsigned owner, unsigned type, unsigned from, unsigned to)
{
    return (struct lock){.start = from,
                         .end = byte_end(to),
                         .session = 1 + owner / 2, /* two owners of one session, one of another */
                         .owner = owner % 2,
                         .type = (uint8_t)type};
}

static bool model_allows(const struct model *m, unsigned owner, unsigned type, unsigned from,
                         unsigned to)
{
    for (unsigned o = 0; type != MSG_LOCK_UNLOCK && o < OWNERS; o++) {
        for (unsigned i = from; o != owner && i <= to; i++) {
            if (m->at[o][i] != NONE && (m->at[o][i] == MSG_LOCK_WRITE || type == MSG_LOCK_WRITE))
                return false;
        }
    }
    return true;
}

static void check_same(const struct model *m, const struct lock *list, uint32_t n)
{
    struct model seen;

    memset(&seen, NONE, sizeof seen);
    for (uint32_t i = 0; i < n; i++) {
        unsigned owner = (unsigned)((list[i].session - 1) * 2 + list[i].owner);

        ck_assert_uint_lt(owner, OWNERS);
        ck_assert(i == 0 || list[i - 1].start <= list[i].start);
        ck_assert(list[i].end == MSG_LOCK_END || list[i].end < BYTES - 1);
        for (uint64_t b = list[i].start; b < BYTES && b <= list[i].end; b++) {
            ck_assert_msg(seen.at[owner][b] == NONE, "two locks of one owner on a byte");
            seen.at[owner][b] = list[i].type;
        }
        for (uint32_t k = 0; k < n; k++) {
            ck_assert_msg(k == i || !lock_same_owner(&list[i], &list[k]) ||
                              list[i].type != list[k].type || list[i].end + 1 != list[k].start,
                          "two locks that touch were not joined");
        }
    }
    ck_assert(memcmp(&seen, m, sizeof seen) == 0);
}

static uint64_t state = 1;

static unsigned below(unsigned n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((state >> 33) % n);
}

START_TEST(a_list_says_of_every_byte_what_the_model_says)
{
    struct lock a[256], b[256], *list = a, *next = b;
    struct model m;
    uint32_t n = 0, most = 0;

    memset(&m, NONE, sizeof m);
    for (unsigned step = 0; step < 5000; step++) {
        unsigned owner = below(OWNERS), type = below(3), from = below(BYTES);
        unsigned to = from + below(BYTES - from);
        struct lock want = lock_make(owner, type, from, to), *swap = list;
        bool may = model_allows(&m, owner, type, from, to);

        ck_assert_int_eq(may, lock_list_conflict(list, n, &want) == NULL);
        if (!may)
            continue;
        n = lock_list_apply(list, n, &want, next);
        list = next;
        next = swap;
        most = n > most ? n : most;
        for (unsigned i = from; i <= to; i++)
            m.at[owner][i] = (uint8_t)(type == MSG_LOCK_UNLOCK ? NONE : type);
        check_same(&m, list, n);
    }
    ck_assert_uint_gt(most, 6);
}
END_TEST

START_TEST(an_unlock_in_the_middle_splits_a_lock_in_two)
{
    struct lock list[3] = {lock_make(0, MSG_LOCK_WRITE, 0, BYTES - 1)}, out[5];
    struct lock hole = lock_make(0, MSG_LOCK_UNLOCK, 4, 6);

    ck_assert_uint_eq(lock_list_apply(list, 1, &hole, out), 2);
    ck_assert_uint_eq(out[0].end, 3);
    ck_assert_uint_eq(out[1].start, 7);
    ck_assert_uint_eq(out[1].end, MSG_LOCK_END);
}
END_TEST

START_TEST(a_lock_up_to_the_last_byte_does_not_wrap)
{
    struct lock last = {.start = MSG_LOCK_END, .end = MSG_LOCK_END, .session = 1}, out[4];
    struct lock first = {.start = 0, .end = 0, .session = 1}, two[4];

    ck_assert_uint_eq(lock_list_apply(&last, 1, &first, out), 2);
    first.end = MSG_LOCK_END - 1;
    ck_assert_uint_eq(lock_list_apply(out, 2, &first, two), 1);
    ck_assert_uint_eq(two[0].start, 0);
    ck_assert_uint_eq(two[0].end, MSG_LOCK_END);
}
END_TEST

START_TEST(flocks_and_record_locks_do_not_see_each_other)
{
    struct msg_lock ask = {
        .kind = MSG_LOCK_FLOCK, .type = MSG_LOCK_WRITE, .start = 7, .end = 8, .owner = 1};
    struct lock flock = lock_of_msg(&ask, 1), record = lock_make(2, MSG_LOCK_WRITE, 0, 9);

    ck_assert_uint_eq(flock.start, 0); /* a flock is of the whole file, whatever was asked */
    ck_assert_uint_eq(flock.end, MSG_LOCK_END);
    ck_assert(!lock_conflicts(&flock, &record));
    record.kind = MSG_LOCK_FLOCK;
    ck_assert(lock_conflicts(&flock, &record));
}
END_TEST

START_TEST(the_locks_of_a_session_can_be_dropped_together)
{
    struct lock list[4] = {lock_make(0, MSG_LOCK_READ, 0, 1), lock_make(2, MSG_LOCK_READ, 0, 1),
                           lock_make(1, MSG_LOCK_READ, 2, 3)};

    ck_assert_uint_eq(lock_list_count(list, 3, 1), 2);
    ck_assert_uint_eq(lock_list_drop_session(list, 3, 1), 1);
    ck_assert_uint_eq(list[0].session, 2);
}
END_TEST

START_TEST(a_record_brings_back_what_was_stored)
{
    struct lock list[3] = {lock_make(0, MSG_LOCK_READ, 0, 1), lock_make(2, MSG_LOCK_WRITE, 4, 11)},
                back[3];
    uint8_t rec[8 + 2 * 48];
    uint32_t n;

    list[1].pid = 77;
    list[1].since_ns = -5;
    lock_rec_encode(list, 2, rec);
    ck_assert_int_eq(lock_rec_count(rec, sizeof rec, &n), 0);
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(lock_rec_decode(rec, sizeof rec, back), 0);
    ck_assert(memcmp(list, back, 2 * sizeof *list) == 0);
}
END_TEST

START_TEST(a_damaged_record_is_refused)
{
    struct lock list[3] = {lock_make(0, MSG_LOCK_READ, 0, 1)}, back[3];
    uint8_t rec[8 + 48], bad[8 + 48];
    uint32_t n;

    lock_rec_encode(list, 1, rec);
    ck_assert_int_eq(lock_rec_count(rec, 7, &n), -AIFS_ECORRUPT);
    ck_assert_int_eq(lock_rec_count(rec, sizeof rec - 1, &n), -AIFS_ECORRUPT);
    memcpy(bad, rec, sizeof bad);
    bad[0] = 2;
    ck_assert_int_eq(lock_rec_count(bad, sizeof bad, &n), -AIFS_EFORMAT);
    memcpy(bad, rec, sizeof bad);
    bad[4] = 200;
    ck_assert_int_eq(lock_rec_count(bad, sizeof bad, &n), -AIFS_ECORRUPT);
    memcpy(bad, rec, sizeof bad);
    bad[8] = 9; /* starts behind its end */
    ck_assert_int_eq(lock_rec_decode(bad, sizeof bad, back), -AIFS_ECORRUPT);
    memcpy(bad, rec, sizeof bad);
    bad[8 + 45] = MSG_LOCK_UNLOCK;
    ck_assert_int_eq(lock_rec_decode(bad, sizeof bad, back), -AIFS_ECORRUPT);
}
END_TEST

SUITE_MAIN("mds-lock-list", NULL, NULL, a_list_says_of_every_byte_what_the_model_says,
           an_unlock_in_the_middle_splits_a_lock_in_two, a_lock_up_to_the_last_byte_does_not_wrap,
           flocks_and_record_locks_do_not_see_each_other,
           the_locks_of_a_session_can_be_dropped_together, a_record_brings_back_what_was_stored,
           a_damaged_record_is_refused)
