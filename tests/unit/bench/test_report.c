// SPDX-License-Identifier: Apache-2.0
/* Medians, numbers for people, plots, and what rows are held against. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite.h"
#include "tools/bench/bars.h"
#include "tools/bench/report.h"

static char *text;
static size_t text_len;
static FILE *out;

static void setup(void)
{
    out = open_memstream(&text, &text_len);
    ck_assert_ptr_nonnull(out);
}

static void teardown(void)
{
    fclose(out);
    free(text);
}

static const char *written(void)
{
    fflush(out);
    return text;
}

static struct report_row row(const char *name, const char *unit, double value, double limit)
{
    struct report_row r = {.n = 1, .values = {value}, .limits = {limit}};

    snprintf(r.name, sizeof r.name, "%s", name);
    snprintf(r.unit, sizeof r.unit, "%s", unit);
    return r;
}

START_TEST(the_median_is_the_middle_or_between_the_two)
{
    ck_assert_double_eq(report_median((double[]){3}, 1), 3);
    ck_assert_double_eq(report_median((double[]){9, 1, 5}, 3), 5);
    ck_assert_double_eq(report_median((double[]){9, 1, 5, 7}, 4), 6);
}
END_TEST

START_TEST(an_axis_ends_at_a_round_number_that_is_not_below)
{
    ck_assert_double_eq(plot_ceiling(0), 1);
    ck_assert_double_eq(plot_ceiling(1), 1);
    ck_assert_double_eq(plot_ceiling(2.1), 5);
    ck_assert_double_eq(plot_ceiling(800), 1000);
    for (double v = 1e-3; v < 1e9; v *= 1.37) {
        ck_assert_double_ge(plot_ceiling(v), v);
        ck_assert_double_le(plot_ceiling(v), v * 2.5 * (1 + 1e-9));
    }
}
END_TEST

START_TEST(numbers_have_three_digits_or_more)
{
    char buf[32];

    ck_assert_str_eq(plot_number(0, buf, sizeof buf), "0");
    ck_assert_str_eq(plot_number(1.234, buf, sizeof buf), "1.23");
    ck_assert_str_eq(plot_number(12.34, buf, sizeof buf), "12.3");
    ck_assert_str_eq(plot_number(12345.6, buf, sizeof buf), "12346");
}
END_TEST

START_TEST(text_cannot_end_its_element)
{
    html_text(out, "a<b> & \"c\"");
    ck_assert_str_eq(written(), "a&lt;b&gt; &amp; &quot;c&quot;");
}
END_TEST

START_TEST(a_bar_is_as_long_as_its_part_of_the_axis)
{
    struct report_row rows[] = {row("half", "MB/s", 500, 1000), row("other", "op/s", 9, 0)};
    struct report_group g = {.n_rows = 2, .rows = rows};

    plot_bars(out, &g, "MB/s");
    ck_assert_ptr_nonnull(strstr(written(), "width=210.0"));
    ck_assert_ptr_nonnull(strstr(written(), "x1=670.0"));
    ck_assert_ptr_nonnull(strstr(written(), "50 %"));
    ck_assert_ptr_null(strstr(written(), "other"));
}
END_TEST

START_TEST(nothing_is_plotted_of_nothing)
{
    struct report_group g = {0};

    plot_bars(out, &g, "MB/s");
    plot_scaling(out, &g, "lib", "read");
    ck_assert_str_eq(written(), "");
}
END_TEST

START_TEST(a_line_of_scaling_goes_through_its_points_only)
{
    struct report_row rows[] = {row("scale.lib.read.s1.c1", "MB/s", 100, 100),
                                row("scale.lib.read.s2.c1", "MB/s", 150, 200),
                                row("scale.lib.read.s2.c1.spread", "%", 3, 0),
                                row("scale.lib.write.s2.c1", "MB/s", 7, 200)};
    struct report_group g = {.n_rows = 4, .rows = rows};

    plot_scaling(out, &g, "lib", "read");
    ck_assert_ptr_nonnull(strstr(written(), "points=\"202.0,130.0 352.0,80.0\""));
    ck_assert_ptr_nonnull(strstr(written(), "1 client<"));
}
END_TEST

START_TEST(a_bar_holds_from_its_figure_on)
{
    const struct bar *share = bar_of("bar.lib.read"), *most = bar_of("bar.overwrite"),
                     *least = bar_of("scale.lib.read.factor.s8.c1");

    ck_assert(bar_holds(share, 70, 100) && !bar_holds(share, 69, 100) && !bar_holds(share, 1, 0));
    ck_assert(bar_holds(most, 3, 0) && !bar_holds(most, 3.1, 0));
    ck_assert(bar_holds(least, 7.6, 8) && !bar_holds(least, 7.5, 8));
    ck_assert_ptr_null(bar_of("io.read.1Mi.x1"));
    ck_assert_ptr_eq(bar_of("train.unet3d.h100.x4.au"), bar_of("train.unet3d.b200.x1.au"));
}
END_TEST

START_TEST(a_figure_is_written_as_its_bar_is)
{
    char buf[32];

    bar_text(bar_of("bar.ckpt"), 0.815, buf, sizeof buf);
    ck_assert_str_eq(buf, "82 %");
    bar_text(bar_of("bar.overwrite"), 2.5, buf, sizeof buf);
    ck_assert_str_eq(buf, "2.50 x");
    bar_text(bar_of("train.resnet50.h100.x1.au"), 97, buf, sizeof buf);
    ck_assert_str_eq(buf, "97.0 %");
}
END_TEST

SUITE_MAIN("bench-report", setup, teardown, the_median_is_the_middle_or_between_the_two,
           an_axis_ends_at_a_round_number_that_is_not_below, numbers_have_three_digits_or_more,
           text_cannot_end_its_element, a_bar_is_as_long_as_its_part_of_the_axis,
           nothing_is_plotted_of_nothing, a_line_of_scaling_goes_through_its_points_only,
           a_bar_holds_from_its_figure_on, a_figure_is_written_as_its_bar_is)
