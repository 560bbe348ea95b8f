// SPDX-License-Identifier: Apache-2.0
/* Text for people: numbers, sizes, durations, suggestions, growing buffers, JSON strings. */
#include "common/base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/suite.h"

struct sample {
    const char *text;
    int rc;
    uint64_t value;
};

static void check(int (*parse)(const char *, uint64_t *), const struct sample *s)
{
    for (; s->text; s++) {
        uint64_t v = 12345;
        int rc = parse(s->text, &v);

        ck_assert_msg(rc == s->rc, "\"%s\": %d, not %d", s->text, rc, s->rc);
        ck_assert_msg(v == (rc ? 12345 : s->value), "\"%s\": %llu", s->text, (unsigned long long)v);
    }
}

START_TEST(numbers)
{
    static const struct sample samples[] = {{"0", 0, 0},
                                            {"42", 0, 42},
                                            {"0x1F", 0, 31},
                                            {"18446744073709551615", 0, UINT64_MAX},
                                            {"18446744073709551616", -ERANGE, 0},
                                            {"0xffffffffffffffff", 0, UINT64_MAX},
                                            {"0x10000000000000000", -ERANGE, 0},
                                            {"", -EINVAL, 0},
                                            {"0x", -EINVAL, 0},
                                            {"-1", -EINVAL, 0},
                                            {"+1", -EINVAL, 0},
                                            {" 1", -EINVAL, 0},
                                            {"1 ", -EINVAL, 0},
                                            {"1a", -EINVAL, 0},
                                            {NULL, 0, 0}};

    check(text_parse_u64, samples);
}
END_TEST

START_TEST(sizes)
{
    static const struct sample samples[] = {{"0", 0, 0},
                                            {"17", 0, 17},
                                            {"17B", 0, 17},
                                            {"4M", 0, 4194304},
                                            {"4Mi", 0, 4194304},
                                            {"4MiB", 0, 4194304},
                                            {"4m", 0, 4194304},
                                            {"256Ki", 0, 262144},
                                            {"1.5K", 0, 1536},
                                            {"0.25GiB", 0, 268435456},
                                            {"15E", 0, 15ull << 60},
                                            {"16E", -ERANGE, 0},
                                            {"99999999999999999999", -ERANGE, 0},
                                            {"4MB", -EINVAL, 0},
                                            {"4X", -EINVAL, 0},
                                            {"4 M", -EINVAL, 0},
                                            {"1.", -EINVAL, 0},
                                            {".5M", -EINVAL, 0},
                                            {"1.0000000000M", -EINVAL, 0},
                                            {"M", -EINVAL, 0},
                                            {"-1M", -EINVAL, 0},
                                            {"", -EINVAL, 0},
                                            {NULL, 0, 0}};

    check(text_parse_size, samples);
}
END_TEST

START_TEST(durations)
{
    static const struct sample samples[] = {{"3", 0, 3000000000},
                                            {"3s", 0, 3000000000},
                                            {"250ms", 0, 250000000},
                                            {"7us", 0, 7000},
                                            {"9ns", 0, 9},
                                            {"2min", 0, 120000000000},
                                            {"2m", 0, 120000000000},
                                            {"1h", 0, 3600000000000},
                                            {"1d", 0, 86400000000000},
                                            {"99999999999d", -ERANGE, 0},
                                            {"3 s", -EINVAL, 0},
                                            {"s", -EINVAL, 0},
                                            {"3S", -EINVAL, 0},
                                            {NULL, 0, 0}};

    check(text_parse_duration, samples);
}
END_TEST

START_TEST(truth)
{
    const char *const yes[] = {"yes", "true", "on", "1", "YES"}, *const no[] = {"no", "false",
                                                                                "off", "0", "Off"};
    bool b;

    for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
        ck_assert(text_parse_bool(yes[i], &b) == 0 && b);
        ck_assert(text_parse_bool(no[i], &b) == 0 && !b);
    }
    ck_assert_int_eq(text_parse_bool("maybe", &b), -EINVAL);
    ck_assert_int_eq(text_parse_bool("", &b), -EINVAL);
}
END_TEST

START_TEST(sizes_are_printed_short)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } samples[] = {{0, "0B"},
                   {17, "17B"},
                   {1023, "1023B"},
                   {1024, "1.0KiB"},
                   {1536, "1.5KiB"},
                   {1048575, "1.0MiB"},
                   {851864780, "812.4MiB"},
                   {14388140000, "13.4GiB"},
                   {UINT64_MAX, "16.0EiB"}};
    char out[16];

    for (size_t i = 0; i < ARRAY_LEN(samples); i++)
        ck_assert_str_eq(text_format_size(samples[i].bytes, out, sizeof out), samples[i].text);
}
END_TEST

START_TEST(distances)
{
    char longer[200];

    ck_assert_uint_eq(text_distance("", ""), 0);
    ck_assert_uint_eq(text_distance("abc", ""), 3);
    ck_assert_uint_eq(text_distance("", "abc"), 3);
    ck_assert_uint_eq(text_distance("kitten", "sitting"), 3);
    ck_assert_uint_eq(text_distance("level", "elvel"), 1);
    ck_assert_uint_eq(text_distance("abcd", "badc"), 2);
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    ck_assert_uint_eq(text_distance(longer, "x"), 63);
    ck_assert_uint_eq(text_distance(longer, longer), 0);
}
END_TEST

START_TEST(suggestions_are_near_or_none)
{
    const char *const words[] = {"net.ping_interval", "net.ping_timeout", "log.level"};
    const char *const verbs[] = {"top", "list", "status"};

    ck_assert_str_eq(text_nearest("net.ping_intervall", words, 3), "net.ping_interval");
    ck_assert_str_eq(text_nearest("ping_interval", words, 3), "net.ping_interval");
    ck_assert_str_eq(text_nearest("loglevel", words, 3), "log.level");
    ck_assert_str_eq(text_nearest("lgo.levl", words, 3), "log.level");
    ck_assert_ptr_null(text_nearest("colour", words, 3));
    ck_assert_ptr_null(text_nearest("logleve1s", words, 3)); /* three slips */
    ck_assert_ptr_null(text_nearest("interval", words, 3));
    ck_assert_ptr_null(text_nearest("", words, 3));
    ck_assert_ptr_null(text_nearest("x", words, 0));
    ck_assert_ptr_null(text_nearest("to", verbs, 3)); /* half of it is another */
    ck_assert_ptr_null(text_nearest("lsit-all", verbs, 3));
    ck_assert_ptr_null(text_nearest("stat", verbs, 3));
    ck_assert_str_eq(text_nearest("lst", verbs, 3), "list");
    ck_assert_str_eq(text_nearest("statu", verbs, 3), "status");
}
END_TEST

static void check_printable(const char *in, const char *keep, const char *out)
{
    char text[64];

    snprintf(text, sizeof text, "%s", in);
    text_make_printable(text, keep);
    ck_assert_str_eq(text, out);
}

START_TEST(what_a_terminal_would_obey_is_not_printed)
{
    check_printable("", "", "");
    check_printable("a b~", "", "a b~");
    check_printable("a\x1b[31m\n\t\x7f", "", "a?[31m???");
    check_printable("a\x1b[31m\n\t\x7f", "\n\t", "a?[31m\n\t?");
    check_printable("gr\xc3\xbc\xc3\x9f", "", "gr\xc3\xbc\xc3\x9f");
    check_printable("\xc2\x9b"
                    "31m\xc2\xa0\xc2",
                    "",
                    "??31m\xc2\xa0\xc2"); /* CSI in one character; a space that does not break */
}
END_TEST

START_TEST(characters_are_counted_not_bytes)
{
    ck_assert_uint_eq(text_width(""), 0);
    ck_assert_uint_eq(text_width("abc"), 3);
    ck_assert_uint_eq(text_width("gr\xc3\xbc\xc3\x9f"), 4);
    ck_assert_uint_eq(text_width("\xf0\x9f\x98\x80"), 1);
}
END_TEST

static void check_unescaped(const char *in, const char *out)
{
    char text[64];

    snprintf(text, sizeof text, "%s", in);
    text_unescape_octal(text);
    ck_assert_str_eq(text, out);
}

START_TEST(paths_of_the_kernels_tables_are_read)
{
    check_unescaped("/a\\040b\\011\\012\\134c", "/a b\t\n\\c");
    check_unescaped("/a\\", "/a\\");
    check_unescaped("/a\\04", "/a\\04");
    check_unescaped("/a\\400", "/a\\400");
    check_unescaped("\\303\\274", "\xc3\xbc");
}
END_TEST

START_TEST(a_buffer_grows_and_stays_terminated)
{
    struct strbuf b;

    strbuf_init(&b);
    for (int i = 0; i < 1000; i++)
        strbuf_printf(&b, "%d,", i);
    strbuf_append(&b, "\0x", 2);
    ck_assert_uint_eq(b.len, 3892);
    ck_assert_uint_eq(strlen(b.data), 3890);
    ck_assert_int_eq(memcmp(b.data, "0,1,2,", 6), 0);
    ck_assert(!strbuf_failed(&b));
    strbuf_fini(&b);
}
END_TEST

SUITE_MAIN("text", NULL, NULL, numbers, sizes, durations, truth, sizes_are_printed_short, distances,
           suggestions_are_near_or_none, what_a_terminal_would_obey_is_not_printed,
           characters_are_counted_not_bytes, paths_of_the_kernels_tables_are_read,
           a_buffer_grows_and_stays_terminated)
