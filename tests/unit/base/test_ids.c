// SPDX-License-Identifier: Apache-2.0
/* Identifiers and clocks. */
#include "common/base/ids.h"

#include <errno.h>
#include <string.h>

#include "common/base/clock.h"
#include "tests/support/suite.h"

START_TEST(random_ids_are_version_4_and_differ)
{
    struct uuid a, b;

    ck_assert_int_eq(uuid_random(&a), 0);
    ck_assert_int_eq(uuid_random(&b), 0);
    ck_assert(!uuid_equal(&a, &b));
    ck_assert(!uuid_is_zero(&a));
    ck_assert_uint_eq(a.b[6] >> 4, 4);
    ck_assert_uint_eq(a.b[8] >> 6, 2);
}
END_TEST

START_TEST(text_and_back)
{
    struct uuid a, b;
    char text[UUID_TEXT_BYTES];

    ck_assert_int_eq(uuid_parse("00112233-4455-6677-8899-aabbccddeeff", &a), 0);
    for (unsigned i = 0; i < 16; i++)
        ck_assert_uint_eq(a.b[i], i * 0x11);
    uuid_format(&a, text);
    ck_assert_str_eq(text, "00112233-4455-6677-8899-aabbccddeeff");
    ck_assert_int_eq(uuid_parse("00112233-4455-6677-8899-AABBCCDDEEFF", &b), 0);
    ck_assert(uuid_equal(&a, &b));
}
END_TEST

START_TEST(anything_else_is_no_id)
{
    static const char *const wrong[] = {"",
                                        "0",
                                        "00112233-4455-6677-8899-aabbccddeef",
                                        "00112233-4455-6677-8899-aabbccddeeff0",
                                        "00112233-4455-6677-8899-aabbccddeegg",
                                        "00112233445566778899aabbccddeeff",
                                        "0011223-34455-6677-8899-aabbccddeeff",
                                        "{0112233-4455-6677-8899-aabbccddeeff"};
    struct uuid id = {{7}};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(uuid_parse(wrong[i], &id), -EINVAL);
    ck_assert_uint_eq(id.b[0], 7);
}
END_TEST

START_TEST(a_virtual_clock_moves_only_when_told)
{
    struct clock_virtual v;

    clock_virtual_init(&v, 1000, 5000000);
    ck_assert_uint_eq(clock_mono_ns(&v.clock), 1000);
    ck_assert_int_eq(clock_wall_ns(&v.clock), 5001000);
    clock_virtual_advance(&v, 500);
    ck_assert_uint_eq(clock_mono_ns(&v.clock), 1500);
    ck_assert_int_eq(clock_wall_ns(&v.clock), 5001500);
}
END_TEST

START_TEST(the_real_clock_does_not_go_back)
{
    uint64_t last = clock_mono_ns(clock_real());

    for (int i = 0; i < 1000; i++) {
        uint64_t now = clock_mono_ns(clock_real());

        ck_assert_uint_ge(now, last);
        last = now;
    }
    ck_assert_int_gt(clock_wall_ns(clock_real()), 1700000000ll * 1000000000);
}
END_TEST

SUITE_MAIN("ids", NULL, NULL, random_ids_are_version_4_and_differ, text_and_back,
           anything_else_is_no_id, a_virtual_clock_moves_only_when_told,
           the_real_clock_does_not_go_back)
