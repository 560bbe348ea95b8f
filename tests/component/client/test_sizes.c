/* SPDX-License-Identifier: Apache-2.0 */
/* Files that become large are not made ahead where nearly all have become so. */
#include <check.h>
#include <fcntl.h>
#include <string.h>

#include "tests/support/creating_bed.h"
#include "tests/support/suite.h"

#define LARGE (48u * 1024)
#define MANY  20u

static uint8_t bytes[LARGE];

/* How many of them were there at once. */
static unsigned files_in(uint64_t in, unsigned from, unsigned n, uint32_t len)
{
    unsigned ahead = 0;

    for (unsigned k = from; k < from + n; k++)
        ahead += cr_file_in(in, cr_name(k), bytes, len);
    rm_let_pass();
    return ahead;
}

static void begin(void)
{
    bed_pattern(bytes, sizeof bytes, 0, 3);
    cr_begin();
}

START_TEST(large_files_cost_an_open_each_until_it_is_known_that_they_are_large)
{
    const unsigned *calls = rm.bed.cluster.calls;
    unsigned opens, creates, others;

    begin();
    opens = calls[RPC_OP_OPEN];
    creates = calls[RPC_OP_CREATE];
    ck_assert_uint_eq(files_in(RM_DIR, 2, MANY, LARGE), 7);
    ck_assert_uint_eq(calls[RPC_OP_OPEN] - opens, 7);
    ck_assert_uint_eq(calls[RPC_OP_CREATE] - creates, MANY - 7);
    ck_assert_uint_eq(rm_stats().created_large, MANY - 7);
    others = calls[RPC_OP_OPEN] + calls[RPC_OP_MKNOD] + calls[RPC_OP_BATCH];
    ck_assert_uint_eq(files_in(RM_DIR, 2 + MANY, MANY, LARGE), 0);
    ck_assert_uint_eq(calls[RPC_OP_CREATE] - creates, 2 * MANY - 7);
    ck_assert_uint_eq(calls[RPC_OP_OPEN] + calls[RPC_OP_MKNOD] + calls[RPC_OP_BATCH], others);
}
END_TEST

START_TEST(small_ones_are_noticed_without_asking_anybody)
{
    const unsigned *calls = rm.bed.cluster.calls;
    unsigned creates;

    begin();
    (void)files_in(RM_DIR, 2, MANY, LARGE);
    creates = calls[RPC_OP_CREATE];
    ck_assert(!cr_file_in(RM_DIR, "small", bytes, CR_LEN));
    ck_assert(!cr_file_in(RM_DIR, "too", bytes, CR_LEN));
    ck_assert_uint_eq(files_in(RM_DIR, 100, MANY, CR_LEN), MANY);
    ck_assert_uint_eq(calls[RPC_OP_CREATE] - creates, 2);
    ck_assert_uint_eq(calls[RPC_OP_OPEN], 7); /* of the large ones */
}
END_TEST

START_TEST(a_few_small_files_among_large_ones_keep_all_ahead)
{
    begin();
    for (unsigned k = 0; k < MANY; k++) {
        ck_assert_uint_eq(files_in(RM_DIR, 100 + 4 * k, 3, LARGE), 3);
        ck_assert_uint_eq(files_in(RM_DIR, 103 + 4 * k, 1, CR_LEN), 1);
    }
    ck_assert_uint_eq(rm_stats().created_large, 0);
}
END_TEST

START_TEST(directories_beside_each_other_learn_from_each_other)
{
    uint64_t first, second, inner;
    bool at_once;

    begin();
    first = cr_dir_in(RM_DIR, "first", &at_once);
    ck_assert_uint_eq(files_in(first, 0, MANY, LARGE), 7);
    second = cr_dir_in(RM_DIR, "second", &at_once);
    ck_assert_uint_eq(files_in(second, 0, MANY, LARGE), 0);
    inner = cr_dir_in(second, "inner", &at_once);
    ck_assert_uint_eq(files_in(inner, 0, 2, CR_LEN), 0);
    ck_assert_uint_eq(files_in(inner, 2, MANY, CR_LEN), MANY);
    ck_assert_uint_eq(files_in(first, MANY, MANY, LARGE), 0); /* it knows by itself */
}
END_TEST

SUITE_MAIN("client-sizes", cr_setup, rm_teardown,
           large_files_cost_an_open_each_until_it_is_known_that_they_are_large,
           small_ones_are_noticed_without_asking_anybody,
           a_few_small_files_among_large_ones_keep_all_ahead,
           directories_beside_each_other_learn_from_each_other)
