// SPDX-License-Identifier: Apache-2.0
/* The first argument of mount.aifs. */
#include <string.h>

#include "client/mount/mount.h"
#include "tests/support/suite.h"

static struct mount_source source;
static char err[512];

static int parse(const char *text)
{
    err[0] = '\0';
    return mount_parse_source(text, &source, err, sizeof err);
}

START_TEST(one_server_and_the_root)
{
    ck_assert_int_eq(parse("mds1:/"), 0);
    ck_assert_uint_eq(source.n_servers, 1);
    ck_assert_str_eq(source.servers[0], "mds1");
    ck_assert_str_eq(source.subdir, "/");
}
END_TEST

START_TEST(several_servers_with_ports_and_a_sub_directory)
{
    ck_assert_int_eq(parse("mds1:7000,10.0.0.2,mds-3.lab:7001:/lab0/x"), 0);
    ck_assert_uint_eq(source.n_servers, 3);
    ck_assert_str_eq(source.servers[0], "mds1:7000");
    ck_assert_str_eq(source.servers[1], "10.0.0.2");
    ck_assert_str_eq(source.servers[2], "mds-3.lab:7001");
    ck_assert_str_eq(source.subdir, "/lab0/x");
}
END_TEST

START_TEST(ipv6_addresses_stand_in_brackets)
{
    ck_assert_int_eq(parse("[fe80::1]:7000,[::1]:/a"), 0);
    ck_assert_str_eq(source.servers[0], "[fe80::1]:7000");
    ck_assert_str_eq(source.servers[1], "[::1]");
    ck_assert_int_ne(parse("fe80::1:/a"), 0);
}
END_TEST

START_TEST(a_path_is_made_canonical_and_may_not_climb)
{
    ck_assert_int_eq(parse("h://a/./b//"), 0);
    ck_assert_str_eq(source.subdir, "/a/b");
    ck_assert_int_eq(parse("h:/a..b"), 0);
    ck_assert_str_eq(source.subdir, "/a..b");
    ck_assert_int_ne(parse("h:/a/../b"), 0);
    ck_assert_ptr_nonnull(strstr(err, ".."));
}
END_TEST

START_TEST(a_name_stands_for_the_servers_of_its_file)
{
    ck_assert_int_eq(parse("aifs://lab0/train"), 0);
    ck_assert_str_eq(source.name, "lab0");
    ck_assert_uint_eq(source.n_servers, 0);
    ck_assert_str_eq(source.subdir, "/train");
    ck_assert_int_ne(parse("aifs:///train"), 0);
    ck_assert_int_ne(parse("aifs://../../etc/passwd"), 0);
}
END_TEST

START_TEST(garbage_is_refused_with_its_text)
{
    static const char *const bad[] = {"",       "::::",        "host",        ":/x",  "a,,b:/",
                                      "a b:/",  "host:port:/", "host:7000:x", ",a:/", "a,:/",
                                      "[::1:/", "[]:/",        "host:/../"};

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        ck_assert_msg(parse(bad[i]) != 0, "\"%s\" was accepted", bad[i]);
        ck_assert_ptr_nonnull(strstr(err, "source"));
    }
}
END_TEST

START_TEST(too_many_or_too_long_servers_are_refused)
{
    char text[6000];

    memset(text, 0, sizeof text);
    for (unsigned i = 0; i < CORE_MDS_MAX; i++)
        strcat(text, "h,");
    strcat(text, "h:/");
    ck_assert_int_ne(parse(text), 0);
    memset(text, 'h', 400);
    strcpy(text + 400, ":/");
    ck_assert_int_ne(parse(text), 0);
    strcpy(text, "h:/");
    memset(text + 3, 'p', 5000);
    text[5003] = '\0';
    ck_assert_int_ne(parse(text), 0);
}
END_TEST

SUITE_MAIN("mount-source", NULL, NULL, one_server_and_the_root,
           several_servers_with_ports_and_a_sub_directory, ipv6_addresses_stand_in_brackets,
           a_path_is_made_canonical_and_may_not_climb, a_name_stands_for_the_servers_of_its_file,
           garbage_is_refused_with_its_text, too_many_or_too_long_servers_are_refused)
