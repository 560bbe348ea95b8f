// SPDX-License-Identifier: Apache-2.0
/* The kernel's table of mounts. */
#include "client/fuse/mountinfo.h"
#include "tests/support/suite.h"

START_TEST(what_is_mounted_is_found_with_its_type)
{
    struct mountinfo info;

    ck_assert_int_eq(mountinfo_find("/proc", &info), 1);
    ck_assert_str_eq(info.type, "proc");
    ck_assert_uint_gt(info.minor, 0);
}
END_TEST

START_TEST(only_the_exact_path_counts)
{
    struct mountinfo info;

    ck_assert_int_eq(mountinfo_find("/proc/self", &info), 0);
    ck_assert_int_eq(mountinfo_find("/pro", &info), 0);
    ck_assert_int_eq(mountinfo_find("", &info), 0);
}
END_TEST

START_TEST(a_device_is_found_wherever_it_is_mounted)
{
    struct mountinfo info;

    ck_assert_int_eq(mountinfo_find("/proc", &info), 1);
    ck_assert_int_eq(mountinfo_has_device(info.major, info.minor), 1);
    ck_assert_int_eq(mountinfo_has_device(4095, 1048575), 0);
}
END_TEST

SUITE_MAIN("mountinfo", NULL, NULL, what_is_mounted_is_found_with_its_type,
           only_the_exact_path_counts, a_device_is_found_wherever_it_is_mounted)
