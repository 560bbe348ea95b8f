/* SPDX-License-Identifier: Apache-2.0 */
/* Targets that are full: who is told, and what is read of a write that they did not take. */
#include <check.h>
#include <fcntl.h>
#include <string.h>

#include "common/base/err.h"
#include "tests/support/file_bed.h"
#include "tests/support/suite.h"

#define ROOM (8u * MIB)

static void setup(void)
{
    file_bed_setup(3, ROOM);
}

START_TEST(a_full_target_is_reported_and_by_one_call_only)
{
    struct core_file *f = bed_create(&bed, c, "full");
    int err;

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 4 * MIB), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    fake_targets_fail_writes(&bed.cluster, -ENOSPC);
    err = bed_write(&bed, c, f, 4 * MIB, data, 4 * MIB);
    if (!err)
        err = bed_fsync(&bed, c, f);
    ck_assert_int_eq(err, -ENOSPC);
    fake_targets_fail_writes(&bed.cluster, 0);
    (void)bed_fsync(&bed, c, f);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, ROOM), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "full", data, ROOM);
    core_release(c, f);
}
END_TEST

START_TEST(what_no_target_has_taken_is_not_read)
{
    struct core_file *f = bed_create(&bed, c, "refused");
    unsigned k;

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 3 * MIB), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    for (k = 0; k < 3; k++)
        bed.cluster.oss[k].grant = 0;
    fake_targets_fail_writes(&bed.cluster, -ENOSPC);
    memset(back, 0xaa, MIB);
    (void)bed_write(&bed, c, f, MIB / 2, back, MIB); /* the first one may be told later */
    (void)bed_fsync(&bed, c, f);
    fake_targets_fail_writes(&bed.cluster, 0);
    expect_read(f, 0, data, 3 * MIB);
    ck_assert_int_eq(bed_write(&bed, c, f, MIB / 2, data, MIB), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "refused", data, 3 * MIB);
    core_release(c, f);
}
END_TEST

START_TEST(without_a_grant_enospc_reaches_write)
{
    struct core_file *f = bed_create(&bed, c, "nogrant");
    unsigned k;

    for (k = 0; k < 3; k++)
        bed.cluster.oss[k].grant = 0;
    fake_targets_fail_writes(&bed.cluster, -ENOSPC);
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 200000), -ENOSPC);
    for (k = 0; k < 3; k++)
        ck_assert_uint_eq(bed.cluster.oss[k].unstable, 0);
    fake_targets_fail_writes(&bed.cluster, 0);
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, 200000), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "nogrant", data, 200000);
    core_release(c, f);
}
END_TEST

SUITE_MAIN("client-full", setup, file_bed_teardown, a_full_target_is_reported_and_by_one_call_only,
           what_no_target_has_taken_is_not_read, without_a_grant_enospc_reaches_write)
