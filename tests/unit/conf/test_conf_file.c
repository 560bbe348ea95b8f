// SPDX-License-Identifier: Apache-2.0
/* Configuration files: syntax, snippets, and messages that name file and line. */
#include <errno.h>

#include "common/base/err.h"
#include "tests/unit/conf/fixture.h"

static int load(const char *text)
{
    tmp_write(&tmp, "x.conf", text);
    return conf_load_file(c, tmp.path, err, sizeof err);
}

START_TEST(names_sections_comments_and_quotes)
{
    ck_assert_int_eq(load("# first\n"
                          "\n"
                          "test.number=3\n"
                          "  [ test ]  # the rest\n"
                          "\tsize = 8Ki # big\n"
                          "text = \"a # b \"\n"
                          "must_have = /path#1\n"
                          "[]\n"
                          "net.transport = tcp"),
                     0);
    ck_assert_uint_eq(conf_u64(c, "test.number"), 3);
    ck_assert_uint_eq(conf_u64(c, "test.size"), 8192);
    ck_assert_str_eq(conf_str(c, "test.text"), "a # b ");
    ck_assert_str_eq(conf_str(c, "test.must_have"), "/path#1");
    ck_assert_int_eq(conf_enum(c, "net.transport"), 1);
}
END_TEST

START_TEST(an_empty_value_is_an_empty_string)
{
    ck_assert_int_eq(load("metrics.address =\ntest.text = \"\"\n"), 0);
    ck_assert_str_eq(conf_str(c, "metrics.address"), "");
    ck_assert_str_eq(conf_str(c, "test.text"), "");
    ck_assert(conf_is_set(c, "metrics.address"));
}
END_TEST

START_TEST(an_empty_file_is_fine)
{
    ck_assert_int_eq(load(""), 0);
}
END_TEST

START_TEST(every_mistake_names_file_and_line)
{
    static const struct {
        const char *text;
        unsigned line;
        const char *message;
    } cases[] = {
        {"[net]\n\nping_intervall = 3s\n", 3,
         "unknown option \"net.ping_intervall\"; did you mean \"net.ping_interval\"?"},
        {"ping_interval = 3s", 1,
         "unknown option \"ping_interval\"; did you mean \"net.ping_interval\"?"},
        {"\ntest.number = 50\n", 2, "test.number = \"50\": out of range, 2 to 10"},
        {"test.number = 5 6", 1, "test.number = \"5 6\": expected a whole number"},
        {"test.number", 1, "expected \"name = value\""},
        {"= 5", 1, "expected a name before \"=\""},
        {"[test", 1, "a section is written [name]"},
        {"[", 1, "a section is written [name]"},
        {"test.text = \"abc", 1, "quotes do not match"},
        {"test.text = \"abc\" x", 1, "quotes do not match"},
        {"test.text = \"", 1, "quotes do not match"},
        {"test.number = 3\n\n[test]\nnumber = 4", 4, "test.number is already set in line 1"},
    };
    char expected[PATH_MAX + 256];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        ck_assert_int_eq(load(cases[i].text), -AIFS_ECONFIG);
        snprintf(expected, sizeof expected, "%s:%u: %s", tmp.path, cases[i].line, cases[i].message);
        expect_err(expected);
    }
}
END_TEST

START_TEST(a_file_that_cannot_be_read_is_named)
{
    char expected[PATH_MAX + 64];

    ck_assert_int_eq(conf_load_file(c, tmp_path(&tmp, "absent"), err, sizeof err), -ENOENT);
    snprintf(expected, sizeof expected, "%s: No such file or directory", tmp.path);
    expect_err(expected);
    ck_assert_int_eq(conf_load_file(c, tmp.dir, err, sizeof err), -EISDIR);
}
END_TEST

START_TEST(binary_and_endless_lines_are_refused)
{
    static char junk[10000];

    ck_assert_int_eq(
        conf_load_file(c, tmp_write_bytes(&tmp, "x.conf", "a\0b\nc\n", 6, 0600), err, sizeof err),
        -AIFS_ECONFIG);
    ck_assert_ptr_nonnull(strstr(err, ":1: not a text file"));
    ck_assert_int_eq(conf_load_file(c,
                                    tmp_write_bytes(&tmp, "x.conf", "test.number = 3\0b", 17, 0600),
                                    err, sizeof err),
                     -AIFS_ECONFIG);
    ck_assert_ptr_nonnull(strstr(err, ":1: not a text file"));
    memset(junk, 'x', sizeof junk - 1);
    ck_assert_int_eq(load(junk), -AIFS_ECONFIG);
    ck_assert_ptr_nonnull(strstr(err, ":1: line too long"));
}
END_TEST

START_TEST(snippets_are_read_afterwards_in_name_order)
{
    ck_assert_int_eq(mkdir(tmp_path(&tmp, "x.conf.d"), 0700), 0);
    tmp_write(&tmp, "x.conf.d/20-b.conf", "test.number = 4\n");
    tmp_write(&tmp, "x.conf.d/10-a.conf", "test.number = 3\ntest.size = 2Ki\n");
    tmp_write(&tmp, "x.conf.d/30-off.disabled", "nonsense\n");
    tmp_write(&tmp, "x.conf.d/.hidden.conf", "nonsense\n");
    ck_assert_int_eq(load("test.number = 2\ntest.size = 1Ki\n"), 0);
    ck_assert_uint_eq(conf_u64(c, "test.number"), 4);
    ck_assert_uint_eq(conf_u64(c, "test.size"), 2048);
    ck_assert_ptr_nonnull(strstr(conf_source(c, "test.number"), "/x.conf.d/20-b.conf:1"));
}
END_TEST

START_TEST(a_mistake_in_a_snippet_is_found_there)
{
    ck_assert_int_eq(mkdir(tmp_path(&tmp, "x.conf.d"), 0700), 0);
    tmp_write(&tmp, "x.conf.d/10-a.conf", "\nwrong = 3\n");
    tmp_write(&tmp, "x.conf.d/20-b.conf", "test.number = 4\n");
    ck_assert_int_eq(load("test.number = 2\n"), -AIFS_ECONFIG);
    ck_assert_ptr_nonnull(strstr(err, "/x.conf.d/10-a.conf:2: unknown option \"wrong\""));
    ck_assert_uint_eq(conf_u64(c, "test.number"), 2);
}
END_TEST

static int load_daemon(const char *const *args)
{
    char *argv[8] = {(char *)"x"};
    int argc = 1;

    while (args[argc - 1]) {
        argv[argc] = (char *)args[argc - 1];
        argc++;
    }
    tmp_path(&tmp, "default.conf");
    return conf_load_daemon(c, tmp.path, argc, argv, err, sizeof err);
}

START_TEST(a_daemon_says_what_is_wrong_with_its_file)
{
    static const struct {
        const char *args[3], *message;
    } cases[] = {
        {{"--config", "/nope/x.conf"}, "--config /nope/x.conf: No such file or directory"},
        {{"--config=/nope/x.conf"}, "--config /nope/x.conf: No such file or directory"},
        {{"--config"}, "--config needs the name of a file"},
        {{"--config="}, "--config needs the name of a file"},
        {{"--config", "--test.number=3"}, "--config needs the name of a file"},
        {{"--config=/dev/null", "left"}, "left: not an option; see --help"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        ck_assert_int_lt(load_daemon(cases[i].args), 0);
        expect_err(cases[i].message);
    }
}
END_TEST

START_TEST(a_daemon_needs_no_file_and_the_command_line_wins)
{
    const char *const args[] = {"--test.number=3", "--test.must_have=x", NULL};

    ck_assert_int_eq(load_daemon(args), 0);
    ck_assert_uint_eq(conf_u64(c, "test.number"), 3);
    tmp_write(&tmp, "default.conf", "test.number = 4\ntest.size = 2Ki\n");
    conf_destroy(c);
    ck_assert_int_eq(conf_create(tables, &c), 0);
    ck_assert_int_eq(load_daemon(args), 0);
    ck_assert_uint_eq(conf_u64(c, "test.number"), 3);
    ck_assert_uint_eq(conf_u64(c, "test.size"), 2048);
    ck_assert(
        conf_is_asked(3, (char *const[]){(char *)"x", (char *)"-v", (char *)"--help"}, "--help"));
}
END_TEST

SUITE_MAIN("conf-file", setup, teardown, names_sections_comments_and_quotes,
           an_empty_value_is_an_empty_string, an_empty_file_is_fine,
           every_mistake_names_file_and_line, a_file_that_cannot_be_read_is_named,
           binary_and_endless_lines_are_refused, snippets_are_read_afterwards_in_name_order,
           a_mistake_in_a_snippet_is_found_there, a_daemon_says_what_is_wrong_with_its_file,
           a_daemon_needs_no_file_and_the_command_line_wins)
