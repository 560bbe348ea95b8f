/* SPDX-License-Identifier: Apache-2.0 */
/* Which RDMA devices may be used: lists, against devices that are not there. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/net/device.h"
#include "tests/support/suite.h"

/* Two adapters, one of them with two ports, and one that may not be opened. */
static const struct net_device_port ports[] = {
    {.device = "mlx5_0", .port = 1, .state = "active", .layer = "infiniband"},
    {.device = "mlx5_1", .port = 1, .state = "down", .layer = "ethernet"},
    {.device = "mlx5_1", .port = 2, .state = "active", .layer = "ethernet"},
    {.device = "bnxt_re0", .port = 0, .state = "not accessible", .layer = "unknown"},
};
static struct net_device_list list;
static char err[300];

static int parse(const char *text)
{
    err[0] = '\0';
    return net_device_list_parse(text, &list, err, sizeof err);
}

static int check(const char *text)
{
    ck_assert_int_eq(parse(text), 0);
    return net_device_list_check(&list, ports, ARRAY_LEN(ports), err, sizeof err);
}

static const char *active(const char *text, unsigned want)
{
    static char said[256];

    ck_assert_int_eq(parse(text), 0);
    ck_assert_uint_eq(net_device_list_active(&list, ports, ARRAY_LEN(ports), said, sizeof said),
                      want);
    return said;
}

START_TEST(a_list_names_devices_and_ports)
{
    ck_assert_int_eq(parse("mlx5_0,mlx5_1:2"), 0);
    ck_assert_uint_eq(list.n, 2);
    ck_assert_str_eq(list.entries[0].device, "mlx5_0");
    ck_assert_uint_eq(list.entries[0].port, 0);
    ck_assert_str_eq(list.entries[1].device, "mlx5_1");
    ck_assert_uint_eq(list.entries[1].port, 2);
    ck_assert_int_eq(parse("mlx5_0+mlx5_1:255"), 0);
    ck_assert_uint_eq(list.n, 2);
    ck_assert_uint_eq(list.entries[1].port, 255);
    ck_assert_int_eq(parse(NULL), 0);
    ck_assert_uint_eq(list.n, 0);
    ck_assert_int_eq(parse(""), 0);
    ck_assert_uint_eq(list.n, 0);
}
END_TEST

START_TEST(a_list_that_is_none_is_refused_with_the_place)
{
    static const struct {
        const char *text, *said;
    } bad[] = {{",", "\"\" is not"},
               {"a,,b", "\"\" is not"},
               {"a,", "nothing behind the last ,"},
               {"a+", "nothing behind the last +"},
               {":1", "\":1\" is not"},
               {"a b", "\"a b\" is not"},
               {"../sys", "\"../sys\" is not"},
               {"a:", "\"a:\": a port"},
               {"a:0", "\"a:0\": a port"},
               {"a:256", "1 to 255"},
               {"a:1x", "\"a:1x\": a port"},
               {"a:-1", "\"a:-1\": a port"},
               {"a:00000000001", "a port"},
               {"a:1:1", "a port"}};
    char text[NET_DEVICE_NAME_BYTES + 1];

    for (unsigned k = 0; k < ARRAY_LEN(bad); k++) {
        list.n = 77;
        ck_assert_msg(parse(bad[k].text) == -EINVAL, "%s", bad[k].text);
        ck_assert_msg(strstr(err, bad[k].said) != NULL, "%s: %s", bad[k].text, err);
        ck_assert_uint_eq(list.n, 77);
    }
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    ck_assert_int_eq(parse(text), -EINVAL);
    text[sizeof text - 2] = '\0';
    ck_assert_int_eq(parse(text), 0);
}
END_TEST

START_TEST(a_list_has_an_end)
{
    char text[NET_DEVICES_MAX * 8 + 16] = "";
    size_t at = 0;

    for (unsigned k = 0; k < NET_DEVICES_MAX; k++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%sd%u", k ? "," : "", k);
    ck_assert_int_eq(parse(text), 0);
    ck_assert_uint_eq(list.n, NET_DEVICES_MAX);
    snprintf(text + at, sizeof text - at, ",one");
    ck_assert_int_eq(parse(text), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err, "more than"));
}
END_TEST

START_TEST(what_a_list_names_must_be_there)
{
    ck_assert_int_eq(check("mlx5_0,mlx5_1:1,mlx5_1:2"), 0);
    ck_assert_int_eq(check("bnxt_re0:1"), 0); /* who may not look cannot tell */
    ck_assert_int_eq(check("mlx5_0:1+mlx5_2"), -ENODEV);
    ck_assert_str_eq(err, "there is no RDMA device mlx5_2 here (there are: mlx5_0:1, mlx5_1:1, "
                          "mlx5_1:2, bnxt_re0:0)");
    ck_assert_int_eq(check("mlx5_0:2"), -ENODEV);
    ck_assert_ptr_nonnull(strstr(err, "no RDMA device mlx5_0:2 here"));
    ck_assert_int_eq(parse("mlx5_0"), 0);
    ck_assert_int_eq(net_device_list_check(&list, ports, 0, err, sizeof err), -ENODEV);
    ck_assert_str_eq(err, "there is no RDMA device mlx5_0 here (there are: none)");
}
END_TEST

static int usable(const char *text, unsigned n)
{
    ck_assert_int_eq(parse(text), 0);
    return net_device_list_usable(&list, ports, n, err, sizeof err);
}

START_TEST(who_insists_on_rdma_is_told_what_is_missing)
{
    ck_assert_int_eq(usable("", ARRAY_LEN(ports)), 0);
    ck_assert_int_eq(usable("mlx5_1:1", ARRAY_LEN(ports)), 0); /* down: it may come up */
    ck_assert_int_eq(usable("bnxt_re0", ARRAY_LEN(ports)), -ENODEV);
    ck_assert_ptr_nonnull(strstr(err, "bnxt_re0 cannot be opened"));
    ck_assert_int_eq(usable("", 0), -ENODEV);
    ck_assert_ptr_nonnull(strstr(err, "there is no RDMA device here"));
}
END_TEST

START_TEST(only_ports_that_are_active_and_named_are_used)
{
    ck_assert_str_eq(active("", 2), "mlx5_0:1,mlx5_1:2");
    ck_assert_str_eq(active("mlx5_1", 1), "mlx5_1:2");
    ck_assert_str_eq(active("mlx5_1:1", 0), "");
    ck_assert_str_eq(active("bnxt_re0", 0), "");
    ck_assert_str_eq(active("mlx5_1:2,mlx5_0", 2), "mlx5_0:1,mlx5_1:2");
}
END_TEST

START_TEST(a_process_is_limited_once)
{
    ck_assert_int_eq(net_limit_devices(NULL, err, sizeof err), 0);
    ck_assert_int_eq(net_limit_devices("", err, sizeof err), 0);
    ck_assert_int_eq(net_limit_devices("a:b", err, sizeof err), -EINVAL);
    ck_assert_int_eq(net_limit_devices("no_such_device", err, sizeof err), -ENODEV);
    ck_assert_ptr_nonnull(strstr(err, "no_such_device"));
}
END_TEST

SUITE_MAIN("net-devices", NULL, NULL, a_list_names_devices_and_ports,
           a_list_that_is_none_is_refused_with_the_place, a_list_has_an_end,
           what_a_list_names_must_be_there, who_insists_on_rdma_is_told_what_is_missing,
           only_ports_that_are_active_and_named_are_used, a_process_is_limited_once)
