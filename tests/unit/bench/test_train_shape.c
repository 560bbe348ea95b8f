// SPDX-License-Identifier: Apache-2.0
/* The shapes of emulated training and the arithmetic of accelerator utilisation. */
#include <math.h>

#include "tests/support/suite.h"
#include "tools/bench/train.h"

static void setup(void)
{
}

static void teardown(void)
{
}

START_TEST(an_accelerator_that_never_waits_is_used_fully)
{
    struct train_times t = {.steps = 11, .compute_s = 0.5, .first_s = 3, .total_s = 8};

    ck_assert_double_eq_tol(train_utilisation(&t), 100, 1e-9);
    ck_assert_double_eq_tol(train_wait_seconds(&t), 0, 1e-9);
    ck_assert_double_eq_tol(train_samples_per_second(&t, 7), 14, 1e-9);
}
END_TEST

START_TEST(waiting_as_long_as_computing_is_half)
{
    struct train_times t = {.steps = 11, .compute_s = 0.5, .first_s = 1, .total_s = 11};

    ck_assert_double_eq_tol(train_utilisation(&t), 50, 1e-9);
    ck_assert_double_eq_tol(train_wait_seconds(&t), 5, 1e-9);
    ck_assert_double_eq_tol(train_samples_per_second(&t, 400), 400, 1e-9);
}
END_TEST

START_TEST(a_run_of_one_step_has_no_utilisation)
{
    struct train_times t = {.steps = 1, .compute_s = 0.5, .first_s = 1, .total_s = 1};

    ck_assert_double_eq_tol(train_utilisation(&t), 0, 1e-9);
    ck_assert_double_eq_tol(train_samples_per_second(&t, 7), 0, 1e-9);
    ck_assert_double_eq_tol(train_wait_seconds(&t), 0, 1e-9);
}
END_TEST

START_TEST(sizes_of_records_are_the_same_each_time_and_spread_as_asked)
{
    const struct train_shape *s = train_shape_named("unet3d");
    double sum = 0, squares = 0;
    const unsigned n = 20000;

    for (uint64_t i = 0; i < n; i++) {
        double v = (double)train_record_bytes(s, i, 1);

        ck_assert_double_eq(v, (double)train_record_bytes(s, i, 1));
        sum += v;
        squares += v * v;
    }
    ck_assert_double_eq_tol(sum / n / s->record_bytes, 1, 0.02);
    ck_assert_double_eq_tol(sqrt(squares / n - sum / n * sum / n) / s->record_stdev, 1, 0.04);
}
END_TEST

START_TEST(a_scale_makes_records_so_many_times_as_small_down_to_a_block)
{
    const struct train_shape *s = train_shape_named("cosmoflow");

    for (uint64_t i = 0; i < 100; i++) {
        double whole = (double)train_record_bytes(s, i, 1);

        ck_assert_double_eq_tol((double)train_record_bytes(s, i, 8), whole / 8, 8);
    }
    ck_assert_uint_eq(train_record_bytes(s, 0, 1000000), 4096);
}
END_TEST

START_TEST(a_file_of_records_has_all_of_them_with_their_frames)
{
    const struct train_shape *s = train_shape_named("resnet50");

    ck_assert_uint_eq(train_record_bytes(s, 5, 1), 114656);
    ck_assert_uint_eq(train_file_bytes(s, 5, 1), 1251u * (114656 + 16));
}
END_TEST

START_TEST(what_is_unknown_is_not_found)
{
    ck_assert_ptr_null(train_shape_named("dlrm"));
    ck_assert_int_eq(train_accelerator_named("h200"), -1);
    ck_assert_int_eq(train_accelerator_named("b200"), TRAIN_B200);
}
END_TEST

START_TEST(a_shuffled_order_has_every_number_once)
{
    for (uint64_t n = 1; n < 700; n = n * 3 / 2 + 1) {
        bool seen[1100] = {false};

        for (uint64_t i = 0; i < n; i++) {
            uint64_t x = io_shuffled(i, n, n);

            ck_assert_uint_lt(x, n);
            ck_assert(!seen[x]);
            seen[x] = true;
        }
    }
}
END_TEST

START_TEST(a_wrong_byte_of_a_pattern_is_found_where_it_is)
{
    uint8_t buf[4096];

    io_pattern_fill(buf, sizeof buf, 3, 8192);
    ck_assert_uint_eq(io_pattern_check(buf, sizeof buf, 3, 8192), sizeof buf);
    ck_assert_uint_eq(io_pattern_check(buf, sizeof buf, 3, 0), 0);
    buf[1601] ^= 1;
    ck_assert_uint_eq(io_pattern_check(buf, sizeof buf, 3, 8192), 1600);
}
END_TEST

START_TEST(what_an_accelerator_asks_for_is_its_samples_in_the_time_of_a_step)
{
    const struct train_shape *r = train_shape_named("resnet50"), *u = train_shape_named("unet3d");
    double all = 0;

    /* 400 samples in 0.224 s, frames included */
    ck_assert_double_eq_tol(train_bytes_per_second(r, 8, 1, 400, 0.224),
                            400 * (double)train_file_bytes(r, 0, 1) / 1251 / 0.224, 1);
    for (uint64_t i = 0; i < 70; i++) /* their sizes differ: of these very files */
        all += (double)train_file_bytes(u, i, 16);
    ck_assert_double_eq_tol(train_bytes_per_second(u, 70, 16, 7, 0.323), 7 * all / 70 / 0.323, 1);
}
END_TEST

SUITE_MAIN("bench", setup, teardown, an_accelerator_that_never_waits_is_used_fully,
           waiting_as_long_as_computing_is_half, a_run_of_one_step_has_no_utilisation,
           sizes_of_records_are_the_same_each_time_and_spread_as_asked,
           a_scale_makes_records_so_many_times_as_small_down_to_a_block,
           a_file_of_records_has_all_of_them_with_their_frames, what_is_unknown_is_not_found,
           what_an_accelerator_asks_for_is_its_samples_in_the_time_of_a_step,
           a_shuffled_order_has_every_number_once, a_wrong_byte_of_a_pattern_is_found_where_it_is)
