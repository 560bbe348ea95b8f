// SPDX-License-Identifier: Apache-2.0
/* The slot allocator against a fake disk: nothing is handed out twice, space is bounded and comes
 * back. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "oss/chunk/slots.h"
#include "tests/support/suite.h"

struct disk {
    uint64_t backed, limit; /* limit 0: none */
    bool broken;
};

static int disk_back(void *arg, unsigned class, uint32_t first, uint32_t n)
{
    struct disk *d = arg;
    uint64_t bytes = (uint64_t)n << class;

    (void)first;
    if (d->broken)
        return -EIO;
    if (d->limit && d->backed + bytes > d->limit)
        return -ENOSPC;
    d->backed += bytes;
    return 0;
}

static void disk_unback(void *arg, unsigned class, uint32_t first, uint32_t n)
{
    struct disk *d = arg;

    (void)first;
    d->backed -= (uint64_t)n << class;
}

static const struct slots_ops disk_ops = {disk_back, disk_unback};

START_TEST(classes_hold_what_they_say)
{
    ck_assert_uint_eq(slots_class_for(1), 16);
    ck_assert_uint_eq(slots_class_for(65536), 16);
    ck_assert_uint_eq(slots_class_for(65537), 17);
    ck_assert_uint_eq(slots_class_for(1048576), 20);
    ck_assert_uint_eq(slots_class_for(64 * MIB), 26);
}
END_TEST

START_TEST(the_next_slot_is_known_before_it_is_taken)
{
    struct disk d = {0};
    struct chunk_slot next, got, first;
    struct slots s;

    ck_assert_int_eq(slots_init(&s, 512ull * MIB, 0, &disk_ops, &d), 0);
    ck_assert(!slots_next(&s, 20, &next)); /* nothing is backed */
    ck_assert_uint_eq(d.backed, 0);
    ck_assert_int_eq(slots_alloc(&s, 20, SLOTS_NEW, &first), 0);
    for (unsigned i = 1; i < 8; i++) {
        ck_assert(slots_next(&s, 20, &next));
        ck_assert(!slots_is_used(&s, next));
        ck_assert_int_eq(slots_alloc(&s, 20, SLOTS_NEW, &got), 0);
        ck_assert_uint_eq(got.number, next.number);
    }
    ck_assert(!slots_next(&s, 20, &next)); /* the group is full */
    slots_free(&s, first);
    ck_assert(slots_next(&s, 20, &next));
    ck_assert_uint_eq(next.number, first.number); /* what was used last goes first */
    slots_fini(&s);
}
END_TEST

START_TEST(empty_groups_are_given_back_until_few_enough_are_left)
{
    static struct chunk_slot held[64];
    struct disk d = {0};
    struct slots s;

    ck_assert_int_eq(slots_init(&s, 512ull * MIB, 0, &disk_ops, &d), 0);
    for (unsigned i = 0; i < 64; i++)
        ck_assert_int_eq(slots_alloc(&s, 20, SLOTS_NEW, &held[i]), 0);
    for (unsigned i = 1; i < 64; i++)
        slots_free(&s, held[i]);
    ck_assert_uint_eq(s.empty_bytes, 56 * MIB);
    slots_trim(&s, 20, 56 * MIB);
    ck_assert_uint_eq(d.backed, 64 * MIB);
    slots_trim(&s, 20, 20 * MIB);
    ck_assert_uint_eq(s.empty_bytes, 16 * MIB);
    ck_assert_uint_eq(d.backed, 24 * MIB);
    slots_trim(&s, 20, 0);
    ck_assert_uint_eq(d.backed, 8 * MIB); /* a slot of it is in use */
    ck_assert(slots_is_used(&s, held[0]));
    slots_free(&s, held[0]);
    slots_fini(&s);
}
END_TEST

START_TEST(no_slot_is_handed_out_twice_and_all_space_comes_back)
{
    static struct chunk_slot held[4000];
    struct disk d = {0};
    struct slots s;
    uint32_t n = 0;
    unsigned seed = 1;

    ck_assert_int_eq(slots_init(&s, 512ull * MIB, 0, &disk_ops, &d), 0);
    for (unsigned i = 0; i < 20000; i++) {
        struct chunk_slot slot;

        if (n == ARRAY_LEN(held) || (n && rand_r(&seed) % 2)) {
            uint32_t k = (uint32_t)rand_r(&seed) % n;

            slots_free(&s, held[k]);
            ck_assert(!slots_is_used(&s, held[k]));
            held[k] = held[--n];
        } else if (!slots_alloc(&s, 16 + (unsigned)rand_r(&seed) % 6, SLOTS_NEW, &slot)) {
            for (uint32_t k = 0; k < n; k++)
                ck_assert(held[k].class != slot.class || held[k].number != slot.number);
            held[n++] = slot;
        }
        ck_assert_uint_eq(d.backed, s.backed_bytes);
        ck_assert_uint_le(s.backed_bytes, s.capacity_bytes);
    }
    while (n)
        slots_free(&s, held[--n]);
    ck_assert_uint_eq(s.used_bytes, 0);
    ck_assert_uint_le(s.backed_bytes, s.keep_bytes);
    slots_fini(&s);
}
END_TEST

START_TEST(new_data_leaves_the_reserve_to_moves)
{
    struct disk d = {0};
    struct chunk_slot slot;
    struct slots s;
    unsigned n = 0;

    ck_assert_int_eq(slots_init(&s, 16ull * MIB, 2ull * MIB, &disk_ops, &d), 0);
    while (!slots_alloc(&s, 20, SLOTS_NEW, &slot))
        n++;
    ck_assert_uint_eq(n, 14);
    ck_assert_uint_eq(slots_free_bytes(&s), 0);
    ck_assert_int_eq(slots_alloc(&s, 20, SLOTS_MOVE, &slot), 0);
    ck_assert_int_eq(slots_alloc(&s, 20, SLOTS_MOVE, &slot), 0);
    ck_assert_int_eq(slots_alloc(&s, 20, SLOTS_MOVE, &slot), -ENOSPC);
    slots_fini(&s);
}
END_TEST

START_TEST(empty_groups_of_one_class_serve_another_when_space_is_short)
{
    struct chunk_slot held[256], slot;
    struct disk d = {0};
    struct slots s;
    unsigned n = 0;

    ck_assert_int_eq(slots_init(&s, 16ull * MIB, 0, &disk_ops, &d), 0);
    while (n < 256 && !slots_alloc(&s, 16, SLOTS_NEW, &held[n]))
        n++;
    ck_assert_uint_eq(n, 256);
    ck_assert_int_eq(slots_alloc(&s, 22, SLOTS_NEW, &slot), -ENOSPC);
    while (n)
        slots_free(&s, held[--n]);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(slots_alloc(&s, 22, SLOTS_NEW, &slot), 0);
    ck_assert_int_eq(slots_alloc(&s, 16, SLOTS_NEW, &slot), -ENOSPC);
    slots_fini(&s);
}
END_TEST

START_TEST(a_full_or_broken_file_system_is_an_error_and_changes_nothing)
{
    struct disk d = {.limit = 3 * MIB};
    struct chunk_slot slot;
    struct slots s;

    ck_assert_int_eq(slots_init(&s, 1024ull * MIB, 0, &disk_ops, &d), 0);
    ck_assert_int_eq(slots_alloc(&s, 20, SLOTS_NEW, &slot), -ENOSPC);
    ck_assert_uint_eq(s.used_bytes, 0);
    d = (struct disk){.broken = true};
    ck_assert_int_eq(slots_alloc(&s, 20, SLOTS_NEW, &slot), -EIO);
    ck_assert_uint_eq(s.used_bytes + s.backed_bytes, 0);
    slots_fini(&s);
}
END_TEST

START_TEST(a_slot_named_twice_by_the_index_is_noticed)
{
    struct chunk_slot slot = {.number = 900, .class = 18};
    struct disk d = {0};
    struct slots s;

    ck_assert_int_eq(slots_init(&s, 1024ull * MIB, 0, &disk_ops, &d), 0);
    ck_assert_int_eq(slots_mark(&s, slot), 0);
    ck_assert_int_eq(slots_mark(&s, slot), -EEXIST);
    ck_assert_uint_eq(s.used_bytes, 1u << 18);
    slots_fini(&s);
}
END_TEST

START_TEST(groups_can_be_had_before_they_are_needed_but_take_nothing_from_others)
{
    struct disk d = {0};
    struct chunk_slot slot, got;
    struct slots s;

    ck_assert_int_eq(slots_init(&s, 512ull * MIB, 0, &disk_ops, &d), 0);
    ck_assert(!slots_free_from(&s, 20, 0, &slot));
    ck_assert_int_eq(slots_back_ahead(&s, 20), 0);
    ck_assert_int_eq(slots_back_ahead(&s, 20), 0);
    ck_assert_uint_eq(d.backed, 16 * MIB);
    ck_assert_uint_eq(s.empty_bytes, 16 * MIB);
    ck_assert_uint_eq(s.used_bytes, 0);
    ck_assert(slots_free_from(&s, 20, 0, &slot));
    ck_assert_int_eq(slots_alloc(&s, 20, SLOTS_NEW, &got), 0);
    ck_assert_uint_eq(got.number, slot.number); /* what is ready is taken */
    ck_assert(slots_free_from(&s, 20, 0, &slot));
    ck_assert_uint_eq(slot.number, 1);
    ck_assert(slots_free_from(&s, 20, 8, &slot));
    ck_assert_uint_eq(slot.number, 8);
    ck_assert(slots_free_from(&s, 20, 15, &slot));
    ck_assert(!slots_free_from(&s, 20, 16, &slot));
    s.keep_bytes = 512ull * MIB;
    while (d.backed < 512ull * MIB)
        ck_assert_int_eq(slots_back_ahead(&s, 17), 0);
    ck_assert_int_eq(slots_back_ahead(&s, 20), -ENOSPC);
    ck_assert_uint_eq(d.backed, 512ull * MIB);
    ck_assert_int_eq(slots_alloc(&s, 22, SLOTS_NEW, &got), 0); /* data may take it */
    slots_fini(&s);
}
END_TEST

START_TEST(no_more_is_had_before_it_is_needed_than_may_stay_empty)
{
    struct chunk_slot small[256], last;
    struct disk d = {0};
    struct slots s;

    ck_assert_int_eq(slots_init(&s, 512ull * MIB, 0, &disk_ops, &d), 0);
    for (unsigned i = 0; i < 256; i++)
        ck_assert_int_eq(slots_alloc(&s, 16, SLOTS_NEW, &small[i]), 0);
    for (unsigned i = 0; i < 256; i++)
        slots_free(&s, small[i]);
    ck_assert_uint_eq(s.empty_bytes, 16 * MIB);
    for (unsigned i = 0; i < 8; i++) /* what others left empty goes for the last two */
        ck_assert_int_eq(slots_back_ahead(&s, 20), 0);
    ck_assert_uint_eq(s.classes[0].groups[0].backed, false);
    ck_assert_int_eq(slots_back_ahead(&s, 20), -ENOSPC);
    ck_assert_uint_eq(d.backed, 64 * MIB);
    slots_trim(&s, 20, s.keep_bytes);
    ck_assert_uint_eq(d.backed, 64 * MIB); /* what is had ahead stays */
    ck_assert_int_eq(slots_alloc(&s, 20, SLOTS_NEW, &last), 0);
    ck_assert_int_eq(slots_back_ahead(&s, 20), 0); /* it is not empty any more */
    slots_fini(&s);
}
END_TEST

/* Streams write in one class: what smaller files left behind does not push its groups out. */
START_TEST(empty_groups_of_the_class_that_is_wanted_stay_longest)
{
    struct chunk_slot small[128], large[32];
    struct disk d = {0};
    struct slots s;

    ck_assert_int_eq(slots_init(&s, 512ull * MIB, 0, &disk_ops, &d), 0);
    for (unsigned i = 0; i < 128; i++)
        ck_assert_int_eq(slots_alloc(&s, 17, SLOTS_NEW, &small[i]), 0);
    for (unsigned i = 0; i < 32; i++)
        ck_assert_int_eq(slots_alloc(&s, i % 2 ? 20 : 21, SLOTS_NEW, &large[i]), 0);
    ck_assert_uint_eq(d.backed, (16 + 16 + 32) * MIB);
    for (unsigned i = 0; i < 128; i++)
        slots_free(&s, small[i]);
    for (unsigned i = 0; i < 32; i++)
        slots_free(&s, large[i]);
    slots_trim(&s, 20, 24 * MIB);
    ck_assert_uint_eq(d.backed, 24 * MIB);
    for (unsigned g = 0; g < 2; g++)
        ck_assert(s.classes[20 - CHUNK_CLASS_MIN].groups[g].backed);
    slots_trim(&s, 20, 8 * MIB);
    ck_assert(s.classes[20 - CHUNK_CLASS_MIN].groups[0].backed);
    ck_assert_uint_eq(d.backed, 8 * MIB);
    slots_fini(&s);
}
END_TEST

START_TEST(groups_that_come_late_are_counted)
{
    struct disk d = {0};
    struct chunk_slot slot;
    struct slots s;
    const struct slots_class *c = &s.classes[20 - CHUNK_CLASS_MIN];

    ck_assert_int_eq(slots_init(&s, 512ull * MIB, 0, &disk_ops, &d), 0);
    ck_assert_int_eq(slots_back_ahead(&s, 20), 0);
    for (unsigned i = 0; i < 8; i++)
        ck_assert_int_eq(slots_alloc(&s, 20, SLOTS_NEW, &slot), 0);
    ck_assert_uint_eq(c->taken_bytes, 8 * MIB);
    ck_assert_uint_eq(c->late_bytes, 0);
    ck_assert_int_eq(slots_alloc(&s, 20, SLOTS_NEW, &slot), 0);
    ck_assert_uint_eq(c->late_bytes, 8 * MIB);
    slots_free(&s, slot);
    ck_assert_int_eq(slots_alloc(&s, 20, SLOTS_NEW, &slot), 0);
    ck_assert_uint_eq(c->late_bytes, 8 * MIB);
    slots_fini(&s);
}
END_TEST

/* All of a promise, when there is nothing else left. */
static int alloc_own(struct slots *s, unsigned class, uint64_t *own)
{
    struct chunk_slot slot;

    return slots_alloc_owed(s, class, SLOTS_NEW, own, 0, &slot);
}

START_TEST(what_is_promised_is_left_to_whom_it_was_promised)
{
    uint64_t first = 3ull * MIB, second = 2ull * MIB;
    struct disk d = {0};
    struct chunk_slot slot;
    struct slots s;

    ck_assert_int_eq(slots_init(&s, 64ull * MIB, 2ull * MIB, &disk_ops, &d), 0);
    s.promised_bytes = first + second;
    while (!slots_alloc(&s, 20, SLOTS_NEW, &slot))
        continue;
    while (!slots_alloc(&s, 16, SLOTS_NEW, &slot))
        continue;
    ck_assert_uint_ge(s.used_bytes, 50ull * MIB);
    ck_assert_int_eq(slots_alloc(&s, 20, SLOTS_MOVE, &slot), 0); /* the reserve is still there */
    slots_free(&s, slot);
    ck_assert_int_eq(alloc_own(&s, 20, &first), 0);
    ck_assert_int_eq(alloc_own(&s, 18, &first), 0);
    ck_assert_int_eq(alloc_own(&s, 20, &second), 0);
    ck_assert_int_eq(slots_alloc(&s, 20, SLOTS_NEW, &slot), -ENOSPC);
    ck_assert_int_eq(alloc_own(&s, 20, &second), 0);
    ck_assert_int_eq(slots_alloc_owed(&s, 16, SLOTS_NEW, &first, first, &slot), -ENOSPC);
    while (first)
        ck_assert_int_eq(alloc_own(&s, 16, &first), 0);
    ck_assert_uint_eq(s.promised_bytes, 0);
    ck_assert_uint_le(d.backed, 64ull * MIB);
    slots_fini(&s);
}
END_TEST

SUITE_MAIN("slots", NULL, NULL, classes_hold_what_they_say,
           the_next_slot_is_known_before_it_is_taken,
           groups_can_be_had_before_they_are_needed_but_take_nothing_from_others,
           no_more_is_had_before_it_is_needed_than_may_stay_empty,
           empty_groups_are_given_back_until_few_enough_are_left,
           empty_groups_of_the_class_that_is_wanted_stay_longest, groups_that_come_late_are_counted,
           no_slot_is_handed_out_twice_and_all_space_comes_back,
           new_data_leaves_the_reserve_to_moves, what_is_promised_is_left_to_whom_it_was_promised,
           empty_groups_of_one_class_serve_another_when_space_is_short,
           a_full_or_broken_file_system_is_an_error_and_changes_nothing,
           a_slot_named_twice_by_the_index_is_noticed)
