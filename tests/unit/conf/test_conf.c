// SPDX-License-Identifier: Apache-2.0
/* Options from code, environment and command line: values, precedence, messages, help. */
#include <errno.h>

#include "common/base/err.h"
#include "common/fault/fault.h"
#include "tests/unit/conf/fixture.h"

static int load_args(int *argc, char **argv)
{
    return conf_load_args(c, argc, argv, err, sizeof err);
}

START_TEST(defaults_are_there_from_the_start)
{
    ck_assert_uint_eq(conf_u64(c, "test.number"), 5);
    ck_assert_uint_eq(conf_u64(c, "test.size"), 4096);
    ck_assert_uint_eq(conf_u64(c, "test.time"), NS_PER_S);
    ck_assert(!conf_bool(c, "test.flag"));
    ck_assert_int_eq(conf_enum(c, "test.colour"), 0);
    ck_assert_ptr_null(conf_str(c, "test.text"));
    ck_assert_str_eq(conf_str(c, "test.size"), "4Ki");
    ck_assert_str_eq(conf_source(c, "test.number"), "default");
    ck_assert(!conf_is_set(c, "test.number"));
}
END_TEST

START_TEST(the_common_options_have_their_defaults)
{
    ck_assert_uint_eq(conf_u64(c, "net.ping_interval"), NS_PER_S);
    ck_assert_uint_eq(conf_u64(c, "net.ping_timeout"), 5 * NS_PER_S);
    ck_assert_uint_eq(conf_u64(c, "net.connect_timeout"), 3 * NS_PER_S);
    ck_assert_uint_eq(conf_u64(c, "net.rndv_threshold"), 64 * KIB);
    ck_assert_uint_eq(conf_u64(c, "reactor.spin"), 0);
    ck_assert_str_eq(conf_str(c, "net.transport"), "auto");
    ck_assert_str_eq(conf_str(c, "metrics.address"), "127.0.0.1:0");
    ck_assert_str_eq(conf_str(c, "log.level"), "info");
    for (const struct conf_option *o = conf_common_options; o->name; o++)
        ck_assert_ptr_nonnull(o->help);
}
END_TEST

START_TEST(the_command_line_beats_the_environment_beats_the_file_in_any_order)
{
    char *argv[] = {"prog", "--test.number=4", NULL};
    int argc = 2;

    ck_assert_int_eq(setenv("AIFS_TEST_NUMBER", "3", 1), 0);
    ck_assert_int_eq(setenv("AIFS_TEST_SIZE", "2Ki", 1), 0);
    ck_assert_int_eq(load_args(&argc, argv), 0);
    ck_assert_int_eq(conf_load_env(c, err, sizeof err), 0);
    tmp_write(&tmp, "x.conf", "[test]\nnumber = 2\nsize = 1Ki\ntime = 9s\n");
    ck_assert_int_eq(conf_load_file(c, tmp.path, err, sizeof err), 0);
    ck_assert_uint_eq(conf_u64(c, "test.number"), 4);
    ck_assert_uint_eq(conf_u64(c, "test.size"), 2048);
    ck_assert_uint_eq(conf_u64(c, "test.time"), 9 * NS_PER_S);
    ck_assert_str_eq(conf_source(c, "test.number"), "command line");
    ck_assert_str_eq(conf_source(c, "test.size"), "environment AIFS_TEST_SIZE");
    ck_assert_ptr_nonnull(strstr(conf_source(c, "test.time"), "x.conf:4"));
    ck_assert(conf_is_set(c, "test.time"));
    ck_assert(!conf_is_set(c, "test.flag"));
}
END_TEST

START_TEST(a_loser_is_checked_all_the_same)
{
    char *argv[] = {"prog", "--test.number=4", NULL};
    int argc = 2;

    ck_assert_int_eq(load_args(&argc, argv), 0);
    ck_assert_int_eq(setenv("AIFS_TEST_NUMBER", "many", 1), 0);
    ck_assert_int_eq(conf_load_env(c, err, sizeof err), -AIFS_ECONFIG);
    expect_err("environment AIFS_TEST_NUMBER: test.number = \"many\": expected a whole number");
}
END_TEST

START_TEST(known_options_are_taken_from_the_command_line_and_the_rest_keeps_its_order)
{
    char *argv[] = {"prog",           "one", "--test.number", "7",  "--help",
                    "--test.flag",    "two", "--other=yes",   "-v", "--",
                    "--test.size=1M", NULL};
    const char *const left[] = {"prog",        "one", "--help", "two",
                                "--other=yes", "-v",  "--",     "--test.size=1M"};
    int argc = 11;

    ck_assert_int_eq(load_args(&argc, argv), 0);
    ck_assert_int_eq(argc, 8);
    for (int i = 0; i < argc; i++)
        ck_assert_str_eq(argv[i], left[i]);
    ck_assert_ptr_null(argv[argc]);
    ck_assert_uint_eq(conf_u64(c, "test.number"), 7);
    ck_assert(conf_bool(c, "test.flag"));
    ck_assert(!conf_is_set(c, "test.size"));
}
END_TEST

START_TEST(a_dash_may_stand_for_an_underscore)
{
    char *argv[] = {"prog", "--net.ping-interval=2s", "--test.flag=off", NULL};
    int argc = 3;

    ck_assert_int_eq(load_args(&argc, argv), 0);
    ck_assert_uint_eq(conf_u64(c, "net.ping_interval"), 2 * NS_PER_S);
    ck_assert(!conf_bool(c, "test.flag"));
    ck_assert(conf_is_set(c, "test.flag"));
}
END_TEST

START_TEST(an_option_at_the_end_needs_its_value)
{
    char *argv[] = {"prog", "--test.number", NULL};
    int argc = 2;

    ck_assert_int_eq(load_args(&argc, argv), -AIFS_ECONFIG);
    expect_err("command line: --test.number needs a value");
}
END_TEST

START_TEST(what_is_left_is_checked_with_a_suggestion)
{
    char *known[] = {"prog", "word", "-", "--", "--anything", NULL};
    char *typo[] = {"prog", "--net.ping_intervall=3s", NULL};
    char *letter[] = {"prog", "-q", NULL};

    ck_assert_int_eq(conf_check_rest(c, 5, known, err, sizeof err), 0);
    ck_assert_int_eq(conf_check_rest(c, 2, typo, err, sizeof err), -AIFS_ECONFIG);
    expect_err(
        "command line: unknown option \"net.ping_intervall\"; did you mean \"net.ping_interval\"?");
    ck_assert_int_eq(conf_check_rest(c, 2, letter, err, sizeof err), -AIFS_ECONFIG);
    expect_err("command line: unknown option \"-q\"");
}
END_TEST

START_TEST(a_slip_in_a_variable_is_an_error_and_a_strange_one_is_not)
{
    ck_assert_int_eq(setenv("AIFS_SOMETHING_ELSE", "1", 1), 0);
    ck_assert_int_eq(conf_load_env(c, err, sizeof err), 0);
    ck_assert_int_eq(setenv("AIFS_TEST_NUMBR", "1", 1), 0);
    ck_assert_int_eq(conf_load_env(c, err, sizeof err), -AIFS_ECONFIG);
    expect_err("environment: unknown variable AIFS_TEST_NUMBR; did you mean AIFS_TEST_NUMBER?");
}
END_TEST

START_TEST(every_bad_value_says_what_would_have_been_right)
{
    static const struct {
        const char *name, *value, *message;
    } cases[] = {
        {"test.number", "", "expected a whole number"},
        {"test.number", "1", "out of range, 2 to 10"},
        {"test.number", "11", "out of range, 2 to 10"},
        {"test.number", "99999999999999999999", "far too large"},
        {"test.size", "4MB", "expected a size, such as 4096, 256Ki or 1GiB"},
        {"test.size", "1", "out of range, at least 1KiB"},
        {"test.time", "2min", "out of range, 0ns to 1min"},
        {"test.time", "soon", "expected a duration, such as 250ms, 3s or 2min"},
        {"test.flag", "maybe", "expected yes or no"},
        {"test.colour", "mauve", "expected one of red, green, blue"},
        {"test.colour", "gren", "expected one of red, green, blue; did you mean \"green\"?"},
    };
    char expected[256];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        ck_assert_int_eq(conf_set(c, cases[i].name, cases[i].value, "here", err, sizeof err),
                         -AIFS_ECONFIG);
        snprintf(expected, sizeof expected, "here: %s = \"%s\": %s", cases[i].name, cases[i].value,
                 cases[i].message);
        expect_err(expected);
        ck_assert(!conf_is_set(c, cases[i].name));
    }
}
END_TEST

START_TEST(an_unknown_name_is_an_error)
{
    ck_assert_int_eq(conf_set(c, "test.nubmer", "5", "mount option", err, sizeof err),
                     -AIFS_ECONFIG);
    expect_err("mount option: unknown option \"test.nubmer\"; did you mean \"test.number\"?");
    ck_assert_int_eq(conf_set(c, "zzzzzzzzzzzz", "5", "mount option", err, sizeof err),
                     -AIFS_ECONFIG);
    expect_err("mount option: unknown option \"zzzzzzzzzzzz\"");
}
END_TEST

START_TEST(a_message_too_long_for_its_buffer_shows_that)
{
    char small[24];

    ck_assert_int_eq(conf_set(c, "test.number", "x", "somewhere", small, sizeof small),
                     -AIFS_ECONFIG);
    ck_assert_str_eq(small, "somewhere: test.numb...");
}
END_TEST

START_TEST(a_required_option_must_be_given_and_not_empty)
{
    ck_assert_int_eq(conf_freeze(c, err, sizeof err), -AIFS_ECONFIG);
    expect_err("option \"test.must_have\" is missing: Must be there.");
    ck_assert_int_eq(conf_set(c, "test.must_have", "", "here", err, sizeof err), 0);
    ck_assert_int_eq(conf_freeze(c, err, sizeof err), -AIFS_ECONFIG);
    ck_assert_int_eq(conf_set(c, "test.must_have", "x", "here", err, sizeof err), 0);
    ck_assert_int_eq(conf_freeze(c, err, sizeof err), 0);
}
END_TEST

START_TEST(help_names_every_option_with_its_default_and_bounds)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    conf_print_help(c, f);
    fclose(f);
    for (const struct conf_option *o = conf_common_options; o->name; o++)
        ck_assert_msg(strstr(text, o->name) != NULL, "%s", o->name);
    ck_assert_ptr_nonnull(
        strstr(text, "  --test.number=N\n        A number.\n        (default \"5\"; 2 to 10)\n"));
    ck_assert_ptr_nonnull(strstr(text, "  --test.colour=red|green|blue\n"));
    ck_assert_ptr_nonnull(strstr(text, "(default \"4Ki\"; bytes; at least 1KiB)"));
    ck_assert_ptr_nonnull(
        strstr(text, "--test.must_have=TEXT\n        Must be there.\n        (required)\n"));
    free(text);
}
END_TEST

START_TEST(failing_any_one_allocation_is_survived)
{
    char spec[64];
    int n, rc;

    for (n = 1; n < 1000; n++) {
        struct conf *other = NULL;

        snprintf(spec, sizeof spec, "mem.alloc=error@%d", n);
        ck_assert_int_eq(fault_arm(spec), 0);
        rc = conf_create(tables, &other);
        if (!rc)
            rc = conf_set(other, "test.text", "x", "here", err, sizeof err);
        fault_disarm_all();
        conf_destroy(other);
        if (!rc)
            break;
        ck_assert_int_eq(rc, -ENOMEM);
    }
    ck_assert_int_gt(n, 10);
    ck_assert_int_lt(n, 1000);
}
END_TEST

SUITE_MAIN("conf", setup, teardown, defaults_are_there_from_the_start,
           the_common_options_have_their_defaults,
           the_command_line_beats_the_environment_beats_the_file_in_any_order,
           a_loser_is_checked_all_the_same,
           known_options_are_taken_from_the_command_line_and_the_rest_keeps_its_order,
           a_dash_may_stand_for_an_underscore, an_option_at_the_end_needs_its_value,
           what_is_left_is_checked_with_a_suggestion,
           a_slip_in_a_variable_is_an_error_and_a_strange_one_is_not,
           every_bad_value_says_what_would_have_been_right, an_unknown_name_is_an_error,
           a_message_too_long_for_its_buffer_shows_that,
           a_required_option_must_be_given_and_not_empty,
           help_names_every_option_with_its_default_and_bounds,
           failing_any_one_allocation_is_survived)
