// SPDX-License-Identifier: Apache-2.0
/* Counters, the error bound of histograms, and the Prometheus text. */
#include "common/stat/stat.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/suite.h"

static struct strbuf text;

static void setup(void)
{
    strbuf_init(&text);
}

static void teardown(void)
{
    strbuf_fini(&text);
}

static const char *print(void)
{
    strbuf_fini(&text);
    strbuf_append(&text, "", 0);
    stat_print_prometheus(&text);
    ck_assert(!strbuf_failed(&text));
    return text.data;
}

START_TEST(a_bucket_is_at_most_an_eighth_wide)
{
    for (uint64_t v = 1; v < 1ull << 40; v += 1 + v / 100) {
        uint64_t upper = stat_bucket_upper(stat_bucket_of(v));

        ck_assert_uint_ge(upper, v);
        ck_assert_uint_le((upper - v) * 8, v);
    }
}
END_TEST

START_TEST(buckets_touch_and_are_in_order)
{
    for (unsigned b = 0; b + 1 < STAT_HIST_BUCKETS; b++) {
        uint64_t upper = stat_bucket_upper(b);

        ck_assert_uint_eq(stat_bucket_of(upper), b);
        ck_assert_uint_eq(stat_bucket_of(upper + 1), b + 1);
    }
    ck_assert_uint_eq(stat_bucket_of(0), 0);
    ck_assert_uint_eq(stat_bucket_of(UINT64_MAX), STAT_HIST_BUCKETS - 1);
    ck_assert_uint_ge(stat_bucket_upper(STAT_HIST_BUCKETS - 1), 1ull << 40);
}
END_TEST

START_TEST(percentiles_are_within_the_error_bound)
{
    static struct stat_histogram h;
    static const double parts[] = {0.01, 0.5, 0.9, 0.99, 0.999, 1};

    for (uint64_t i = 1; i <= 10000; i++)
        stat_record(&h, i * 1000);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        double exact = parts[i] * 10000 * 1000, got = (double)stat_percentile(&h, parts[i]);

        ck_assert_msg(got >= exact && got <= exact * 1.125, "p%g: %g, exactly %g", parts[i], got,
                      exact);
    }
}
END_TEST

START_TEST(percentiles_of_nothing_one_and_nonsense)
{
    static struct stat_histogram h;

    ck_assert_uint_eq(stat_percentile(&h, 0.5), 0);
    stat_record(&h, 5);
    ck_assert_uint_eq(stat_percentile(&h, 0), 5);
    ck_assert_uint_eq(stat_percentile(&h, 1), 5);
    ck_assert_uint_eq(stat_percentile(&h, 17), 5);
    ck_assert_uint_eq(stat_percentile(&h, -1), 5);
}
END_TEST

START_TEST(histograms_of_two_processes_add_up_bucket_by_bucket)
{
    static struct stat_histogram a, b, both;

    for (uint64_t i = 0; i < 1000; i++) {
        stat_record(i % 3 ? &a : &b, i * i);
        stat_record(&both, i * i);
    }
    for (unsigned i = 0; i < STAT_HIST_BUCKETS; i++)
        ck_assert_uint_eq(a.buckets[i] + b.buckets[i], both.buckets[i]);
}
END_TEST

static struct stat_counter shared;

static void *add_many(void *arg)
{
    for (int i = 0; i < 100000; i++)
        stat_inc(&shared);
    return arg;
}

START_TEST(no_count_is_lost_between_threads)
{
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, add_many, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(stat_value(&shared), 400000);
}
END_TEST

static int64_t answer(void *arg)
{
    return *(int *)arg;
}

START_TEST(series_of_one_name_stand_together_under_one_head)
{
    static struct stat_counter a, b, other;
    static struct stat_gauge g;
    static struct stat_callback c;
    int value = -42;

    stat_counter_register(&a, "aifs_x_total", "op=\"a\"", "Things done.");
    stat_counter_register(&other, "aifs_y_total", NULL, "Other things.");
    stat_counter_register(&b, "aifs_x_total", "op=\"b\"", "Things done.");
    stat_gauge_register(&g, "aifs_g", NULL, "Level.");
    stat_callback_register(&c, "aifs_c", NULL, "Computed.", answer, &value);
    stat_add(&a, 3);
    stat_inc(&b);
    stat_gauge_set(&g, 5);
    stat_gauge_add(&g, -7);
    ck_assert_str_eq(print(), "# HELP aifs_x_total Things done.\n"
                              "# TYPE aifs_x_total counter\n"
                              "aifs_x_total{op=\"a\"} 3\n"
                              "aifs_x_total{op=\"b\"} 1\n"
                              "# HELP aifs_y_total Other things.\n"
                              "# TYPE aifs_y_total counter\n"
                              "aifs_y_total 0\n"
                              "# HELP aifs_g Level.\n"
                              "# TYPE aifs_g gauge\n"
                              "aifs_g -2\n"
                              "# HELP aifs_c Computed.\n"
                              "# TYPE aifs_c gauge\n"
                              "aifs_c -42\n");
    stat_unregister(&a.stat);
    stat_unregister(&a.stat);
    stat_unregister(&other.stat);
    stat_unregister(&g.stat);
    stat_unregister(&c.stat);
    ck_assert_str_eq(print(), "# HELP aifs_x_total Things done.\n"
                              "# TYPE aifs_x_total counter\n"
                              "aifs_x_total{op=\"b\"} 1\n");
    stat_unregister(&b.stat);
    ck_assert_str_eq(print(), "");
}
END_TEST

/* Value of the bucket line with this bound, or -1. */
static long bucket(const char *all, const char *le)
{
    char start[128];
    const char *line;
    long value = -1;

    snprintf(start, sizeof start, "{op=\"r\",le=\"%s\"} ", le);
    line = strstr(all, start);
    if (line)
        ck_assert_int_eq(sscanf(line + strlen(start), "%ld", &value), 1);
    return value;
}

START_TEST(a_time_histogram_is_printed_in_seconds_and_cumulative)
{
    static struct stat_histogram h;
    const char *all;

    stat_histogram_register(&h, "aifs_op_seconds", "op=\"r\"", "Time.");
    stat_record(&h, 500);           /* below the first bound */
    stat_record(&h, 1500);          /* 1.5 us */
    stat_record(&h, 3000000000);    /* 3 s */
    stat_record(&h, 1000000000000); /* beyond the last bound */
    all = print();
    ck_assert_int_eq(bucket(all, "1.023e-06"), 1);
    ck_assert_int_eq(bucket(all, "1.535e-06"), 2);
    ck_assert_int_eq(bucket(all, "2.147483647"), 2);
    ck_assert_int_eq(bucket(all, "3.221225471"), 3);
    ck_assert_int_eq(bucket(all, "+Inf"), 4);
    ck_assert_ptr_nonnull(strstr(all, "# TYPE aifs_op_seconds histogram\n"));
    ck_assert_ptr_nonnull(strstr(all, "aifs_op_seconds_sum{op=\"r\"} 1003.000002\n"));
    ck_assert_ptr_nonnull(strstr(all, "aifs_op_seconds_count{op=\"r\"} 4\n"));
    stat_unregister(&h.stat);
}
END_TEST

START_TEST(another_histogram_keeps_its_unit)
{
    static struct stat_histogram h;
    const char *all;

    stat_histogram_register(&h, "aifs_batch_size", "op=\"r\"", "Entries.");
    stat_record(&h, 7);
    stat_record(&h, 100);
    all = print();
    ck_assert_int_eq(bucket(all, "7"), 1);
    ck_assert_int_eq(bucket(all, "95"), 1);
    ck_assert_int_eq(bucket(all, "127"), 2);
    ck_assert_ptr_nonnull(strstr(all, "aifs_batch_size_sum{op=\"r\"} 107\n"));
    stat_unregister(&h.stat);
}
END_TEST

SUITE_MAIN("stat", setup, teardown, a_bucket_is_at_most_an_eighth_wide,
           buckets_touch_and_are_in_order, percentiles_are_within_the_error_bound,
           percentiles_of_nothing_one_and_nonsense,
           histograms_of_two_processes_add_up_bucket_by_bucket, no_count_is_lost_between_threads,
           series_of_one_name_stand_together_under_one_head,
           a_time_histogram_is_printed_in_seconds_and_cumulative, another_histogram_keeps_its_unit)
