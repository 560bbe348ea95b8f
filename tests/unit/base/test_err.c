// SPDX-License-Identifier: Apache-2.0
/* The error table: numbers that travel, names, texts, parents. */
#include "common/base/err.h"

#include <limits.h>
#include <string.h>

#include "tests/support/suite.h"

START_TEST(every_error_of_ours_survives_the_wire_and_has_a_parent)
{
#define CHECK_ROW(name, number, parent, text)                                                      \
    ck_assert_uint_eq(err_to_wire(-name), number);                                                 \
    ck_assert_int_eq(err_from_wire(number), -name);                                                \
    ck_assert_int_eq(err_to_errno(-name), parent);                                                 \
    ck_assert_str_eq(err_name(-name), #name);                                                      \
    ck_assert_str_eq(err_text(-name), text);
    AIFS_ERR_TABLE(CHECK_ROW)
#undef CHECK_ROW
}
END_TEST

START_TEST(every_errno_of_the_host_survives_the_wire)
{
    int known = 0;

    for (int e = 1; e < 200; e++) {
        if (strerrorname_np(e)) {
            ck_assert_int_eq(err_from_wire(err_to_wire(-e)), -e);
            ck_assert_int_eq(err_to_errno(-e), e);
            ck_assert_str_eq(err_name(-e), strerrorname_np(e));
            known++;
        }
    }
    ck_assert_int_gt(known, 120);
}
END_TEST

START_TEST(wire_numbers_are_the_generic_ones_of_linux)
{
    ck_assert_uint_eq(err_to_wire(-ENOENT), 2);
    ck_assert_uint_eq(err_to_wire(-EDEADLK), 35);
    ck_assert_uint_eq(err_to_wire(-ENAMETOOLONG), 36);
    ck_assert_uint_eq(err_to_wire(-ENOTEMPTY), 39);
    ck_assert_uint_eq(err_to_wire(-EOPNOTSUPP), 95);
    ck_assert_uint_eq(err_to_wire(-ETIMEDOUT), 110);
    ck_assert_uint_eq(err_to_wire(-ESTALE), 116);
    ck_assert_uint_eq(err_to_wire(-EDQUOT), 122);
}
END_TEST

START_TEST(unknown_numbers_become_eunknown_and_never_success)
{
    ck_assert_int_eq(err_from_wire(1500), -AIFS_EUNKNOWN);
    ck_assert_int_eq(err_from_wire(UINT32_MAX), -AIFS_EUNKNOWN);
    ck_assert_int_eq(err_from_wire((uint32_t)INT_MAX + 1), -AIFS_EUNKNOWN);
    ck_assert_uint_eq(err_to_wire(-1500), AIFS_EUNKNOWN);
    ck_assert_uint_eq(err_to_wire(INT_MIN), AIFS_EUNKNOWN);
    ck_assert_int_eq(err_to_errno(INT_MIN), EIO);
    ck_assert_str_eq(err_text(-1500), "unknown error");
    ck_assert_str_eq(err_name(INT_MIN), "EUNKNOWN");
}
END_TEST

START_TEST(zero_is_success_everywhere)
{
    ck_assert_uint_eq(err_to_wire(0), 0);
    ck_assert_int_eq(err_from_wire(0), 0);
    ck_assert_int_eq(err_to_errno(0), 0);
    ck_assert_str_eq(err_text(0), "success");
}
END_TEST

START_TEST(the_sign_does_not_matter_to_texts)
{
    ck_assert_str_eq(err_text(ENOENT), err_text(-ENOENT));
    ck_assert_str_eq(err_name(ENOENT), "ENOENT");
}
END_TEST

SUITE_MAIN("err", NULL, NULL, every_error_of_ours_survives_the_wire_and_has_a_parent,
           every_errno_of_the_host_survives_the_wire, wire_numbers_are_the_generic_ones_of_linux,
           unknown_numbers_become_eunknown_and_never_success, zero_is_success_everywhere,
           the_sign_does_not_matter_to_texts)
