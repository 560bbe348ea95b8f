// SPDX-License-Identifier: Apache-2.0
/*
 * How much of a target in memory is mapped and made ready for writes: what gives way at the bound,
 * and what becomes of it when the space is needed. Transfers are played by the test.
 */
#include <check.h>
#include <stdio.h>

#include "common/base/log.h"
#include "tests/component/oss/target_bed.h"
#include "tests/support/suite_cases.h"

START_TEST(what_is_mapped_is_bounded)
{
    rig.options.mapped_bytes = 3 * CB;
    rig.options.commit_interval_ns = 3600 * NS_PER_S; /* a commit would keep the old slots */
    rig_open(&rig);
    target_warm(10);
    for (unsigned round = 0; round < 3; round++)
        for (unsigned i = 0; i < 7; i++) {
            ck_assert_int_eq(target_write_placed(1 + i, data + i * CHUNK_BLOCK, CB), 0);
            target_expect(1 + i, data + i * CHUNK_BLOCK, CB);
        }
    for (unsigned i = 0; i < 7; i++)
        target_expect(1 + i, data + i * CHUNK_BLOCK, CB);
}
END_TEST

/* The oldest are let go, a few at a time; what is left serves reads, and the next writes. */
START_TEST(slots_with_data_are_let_go_in_turn)
{
    rig.options.mapped_bytes = 4 * CB;
    rig_open(&rig);
    target_warm(10);
    for (unsigned i = 0; i < 9; i++) {
        ck_assert_int_eq(target_write_placed(1 + i, data + i * CHUNK_BLOCK, CB), 0);
        ck_assert_uint_le(target_stat().mapped_bytes, 4 * CB);
        ck_assert_uint_ge(target_stat().mapped_bytes, MIN(i + 1, 3) * CB);
    }
    for (unsigned i = 0; i < 9; i++)
        target_expect(1 + i, data + i * CHUNK_BLOCK, CB);
}
END_TEST

/* n slots of 64 KiB that were written and are free. */
static void warm_small(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        ck_assert_int_eq(rig_write(&rig, 9999, i, 0, 0, data, 64 * KIB, false), 0);
    ck_assert_int_eq(rig_destroy_ino(&rig, 9999), 0);
}

/* Whole chunks of inode 100 on, n of them, in mapped slots. */
static void write_mapped(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        ck_assert_int_eq(target_write_placed(100 + i, data, CB), 0);
    ck_assert_uint_eq(target_mapped(), rig.options.mapped_bytes);
}

/* The mapping is full of free slots that are too large: it is not searched for each small write,
 * and it is not lost at once either. */
START_TEST(a_mapping_full_of_free_slots_gives_way_a_part_at_a_time)
{
    enum { N = 200 };
    unsigned n_placed = 0;
    uint64_t before;

    rig.options.mapped_bytes = 8 * CB;
    rig_open(&rig);
    target_warm(10);
    warm_small(600);
    write_mapped(8);
    for (unsigned i = 0; i < 7; i++)
        ck_assert_int_eq(rig_destroy_ino(&rig, 100 + i), 0);
    before = target_stat().mapped_looks;
    for (unsigned i = 0; i < N; i++) {
        struct rig_op o;

        target_write_init(&o, 1000 + i, data + i * CHUNK_BLOCK, 64 * KIB);
        n_placed += rig_place(&rig, &o);
        ck_assert_int_eq(rig_run(&rig, &o), 0);
        ck_assert_uint_ge(target_mapped(), 6 * CB);
        ck_assert_uint_le(target_mapped(), 8 * CB);
    }
    ck_assert_uint_eq(n_placed, N);
    ck_assert_uint_le(target_stat().mapped_looks - before, N);
    for (unsigned i = 0; i < N; i++)
        target_expect(1000 + i, data + i * CHUNK_BLOCK, 64 * KIB);
    target_expect(107, data, CB);
}
END_TEST

START_TEST(a_new_target_that_nobody_asks_has_places_and_all_of_its_space)
{
    struct chunk_place p[5];
    struct chunk_stat st;

    target_open_ready(64 * MIB, 4 * CB);
    chunk_store_stat(rig.store, &st);
    ck_assert_uint_eq(st.used_bytes, 0);
    ck_assert_uint_eq(st.total_bytes, 64 * MIB);
    ck_assert_uint_eq(st.free_bytes, 62 * MIB);
    for (unsigned i = 0; i < 4; i++)
        ck_assert(chunk_store_place(rig.store, 5, i, 0, CB, &p[i]));
    ck_assert(!chunk_store_place(rig.store, 5, 4, 0, CB, &p[4]));
    for (unsigned i = 0; i < 4; i++)
        chunk_store_unplace(&p[i]);
    ck_assert_int_eq(target_write_placed(6, data, CB), 0);
    target_expect(6, data, CB);
}
END_TEST

START_TEST(data_makes_way_in_the_mapping_for_what_is_made_ready)
{
    rig.options.mapped_bytes = 3 * CB;
    rig.options.ready_bytes = 4 * CB; /* a quarter at first */
    rig_open(&rig);
    target_warm(4);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(target_write_placed(1 + i, data + i * CHUNK_BLOCK, CB), 0);
    ck_assert_uint_eq(target_mapped(), 3 * CB);
    ck_assert_int_eq(chunk_store_set_id(rig.store, 1), 0);
    while (target_mapped() != 2 * CB) /* two let go, and a free one filled in */
        reactor_run_once(rig.reactor, NS_PER_S);
    for (unsigned i = 0; i < 3; i++)
        target_expect(1 + i, data + i * CHUNK_BLOCK, CB);
}
END_TEST

/* What streams had to get for themselves is there for the next. */
START_TEST(a_target_makes_more_ready_after_a_stream_that_was_short_of_it)
{
    struct chunk_place p[12];

    target_open_ready(256 * MIB, 4 * CB);
    for (unsigned i = 0; i < 12; i++)
        ck_assert_int_eq(rig_write(&rig, 5, i, 0, 0, data, CB, true), 0);
    ck_assert_uint_eq(target_mapped(), 4 * CB);
    ck_assert_int_eq(chunk_store_set_id(rig.store, 2), 0); /* it looks again */
    target_wait_until_mapped((4 + 12) * CB);
    for (unsigned i = 0; i < 12; i++)
        ck_assert(chunk_store_place(rig.store, 6, i, 0, CB, &p[i]));
    for (unsigned i = 0; i < 12; i++)
        chunk_store_unplace(&p[i]);
    for (unsigned i = 0; i < 12; i++)
        ck_assert_int_eq(rig_verify(&rig, 5, i), 0);
}
END_TEST

START_TEST(a_target_closes_while_it_is_being_made_ready)
{
    rig.options.capacity_bytes = 64 * MIB;
    rig.options.ready_bytes = 8 * CB;
    for (unsigned turns = 0; turns < 12; turns++) {
        rig_open(&rig);
        ck_assert_int_eq(chunk_store_set_id(rig.store, 1), 0);
        for (unsigned k = 0; k < turns; k++)
            reactor_run_once(rig.reactor, NS_PER_MS);
        rig_close(&rig);
    }
}
END_TEST

START_TEST(what_was_made_ready_goes_to_whatever_needs_the_space)
{
    unsigned n = 0;

    target_open_ready(64 * MIB, 8 * CB);
    while (n < 2000 && rig_write(&rig, 100 + n, 0, 0, 0, data, 64 * KIB, false) == 0)
        n++;
    ck_assert_uint_eq(n, 62 * MIB / (64 * KIB));
}
END_TEST

START_TEST(no_more_is_made_ready_than_may_be_mapped)
{
    struct chunk_place p;

    rig.options.mapped_bytes = 2 * CB;
    rig.options.ready_bytes = 8 * CB;
    rig_open(&rig);
    ck_assert_int_eq(chunk_store_set_id(rig.store, 1), 0);
    target_wait_until_mapped(2 * CB);
    ck_assert(chunk_store_place(rig.store, 5, 0, 0, CB, &p));
    chunk_store_unplace(&p);
    ck_assert_int_eq(target_write_placed(6, data, CB), 0);
    target_expect(6, data, CB);
    ck_assert_uint_le(target_mapped(), 2 * CB);
}
END_TEST

int main(void)
{
    TCase *const cases[] = {SUITE_CASE(
        "memory", target_setup, target_teardown, what_is_mapped_is_bounded,
        slots_with_data_are_let_go_in_turn, a_mapping_full_of_free_slots_gives_way_a_part_at_a_time,
        a_new_target_that_nobody_asks_has_places_and_all_of_its_space,
        data_makes_way_in_the_mapping_for_what_is_made_ready,
        a_target_makes_more_ready_after_a_stream_that_was_short_of_it,
        a_target_closes_while_it_is_being_made_ready,
        what_was_made_ready_goes_to_whatever_needs_the_space,
        no_more_is_made_ready_than_may_be_mapped)};
    bool in_memory;

    log_set_level(LOG_LEVEL_WARN);
    rig_make_dir(&rig);
    in_memory = target_in_memory();
    rig_destroy(&rig);
    if (!in_memory) {
        printf("no tmpfs in /dev/shm\n");
        return 77;
    }
    return suite_run_cases("chunk mapping", cases, ARRAY_LEN(cases));
}
