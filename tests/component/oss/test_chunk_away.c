// SPDX-License-Identifier: Apache-2.0
/* A target whose directory was moved, or replaced by another one, while it is open. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/log.h"
#include "tests/component/oss/target_bed.h"
#include "tests/support/suite.h"

static void setup(void)
{
    log_set_level(LOG_LEVEL_ERROR);
    target_setup();
}

START_TEST(its_number_is_written_into_its_own_directory_wherever_that_is)
{
    char away[300], err[300];
    struct super super;

    rig_open(&rig);
    snprintf(away, sizeof away, "%s.away", rig.dir);
    ck_assert_int_eq(rename(rig.dir, away), 0);
    ck_assert_int_eq(mkdir(rig.dir, 0755), 0); /* somebody else's */
    ck_assert_int_eq(chunk_store_set_id(rig.store, 7), 0);
    ck_assert_int_eq(rmdir(rig.dir), 0); /* empty still */
    ck_assert_int_eq(rename(away, rig.dir), 0);
    ck_assert_int_eq(super_load(rig.dir, &super, err, sizeof err), 0);
    ck_assert_uint_eq(super.target_id, 7);
}
END_TEST

/* Names and sizes of all that is in a part of the target's directory. */
static void list_part(const char *part, char *out, size_t len)
{
    char command[512];
    size_t n;
    FILE *f;

    snprintf(command, sizeof command, "cd '%s/%s' && ls -1s --block-size=1", rig.dir, part);
    f = popen(command, "r");
    ck_assert_ptr_nonnull(f);
    n = fread(out, 1, len - 1, f);
    out[n] = 0;
    ck_assert_int_eq(pclose(f), 0);
    ck_assert_uint_gt(n, 0);
}

START_TEST(a_target_that_another_has_taken_the_place_of_leaves_that_alone)
{
    static char index[2][8192], seg[2][8192];
    char away[300], elsewhere[300], command[400];

    snprintf(away, sizeof away, "%s.away", rig.dir);
    snprintf(elsewhere, sizeof elsewhere, "%s.elsewhere", rig.dir);
    rig_open(&rig); /* the disk that is missed soon */
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, 10000, true), 0);
    rig_reopen(&rig);
    rig_close(&rig);
    ck_assert_int_eq(rename(rig.dir, away), 0);
    ck_assert_int_eq(mkdir(rig.dir, 0755), 0);
    rig_open(&rig);                    /* what was below its mount point */
    for (unsigned i = 0; i < 6; i++) { /* later files than those of the disk */
        ck_assert_int_eq(rig_write(&rig, 6, i, 0, 0, data, 10000, true), 0);
        rig_reopen(&rig);
    }
    ck_assert_int_eq(rename(rig.dir, elsewhere), 0);
    ck_assert_int_eq(rename(away, rig.dir), 0);
    list_part("index", index[0], sizeof index[0]);
    list_part("seg", seg[0], sizeof seg[0]);
    ck_assert(chunk_store_is_away(rig.store));
    ck_assert_int_eq(rig_write(&rig, 7, 0, 0, 0, data, 1000000, true), 0); /* a new segment */
    rig_close(&rig);
    list_part("index", index[1], sizeof index[1]);
    list_part("seg", seg[1], sizeof seg[1]);
    ck_assert_str_eq(index[1], index[0]);
    ck_assert_str_eq(seg[1], seg[0]);
    rig_open(&rig);
    ck_assert_int_eq(rig_read(&rig, 5, 0, 0, 0, got, 10000), 0);
    ck_assert_int_eq(memcmp(got, data, 10000), 0);
    rig_close(&rig);
    ck_assert_int_eq(rename(rig.dir, away), 0);
    ck_assert_int_eq(rename(elsewhere, rig.dir), 0);
    rig_open(&rig); /* its own is where it is */
    ck_assert_int_eq(rig_read(&rig, 7, 0, 0, 0, got, 100000), 0);
    ck_assert_int_eq(memcmp(got, data, 100000), 0);
    rig_close(&rig);
    snprintf(command, sizeof command, "rm -r '%s'", away);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

SUITE_MAIN("chunk away", setup, target_teardown,
           its_number_is_written_into_its_own_directory_wherever_that_is,
           a_target_that_another_has_taken_the_place_of_leaves_that_alone)
