/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of names that are begun in one turn, and a server that does not take them together. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/client_bed.h"
#include "tests/support/suite.h"

#define NAMES 5u

static struct bed bed;
static struct core *c;

static void setup(void)
{
    fake_mds_offers_batch = true;
    bed_setup(&bed, 3);
    c = bed_mount(&bed, NULL);
}

static void teardown(void)
{
    bed_unmount(&bed, c, false, 0);
    bed_teardown(&bed);
}

START_TEST(what_an_older_server_does_not_take_together_goes_alone)
{
    struct bed_op ops[NAMES];
    struct core_stats stats;
    char name[16];
    unsigned k;

    for (k = 0; k < NAMES; k++) {
        snprintf(name, sizeof name, "d%u", k);
        bed_op_init(&ops[k]);
        core_mkdir(c, &ops[k].q, 1, name, (uint32_t)strlen(name), 0755, NULL);
    }
    for (k = 0; k < NAMES; k++)
        ck_assert_int_eq(bed_wait(&bed, &ops[k]), 0);
    core_get_stats(c, &stats);
    ck_assert_uint_eq(stats.mds_batched, NAMES);
    ck_assert_uint_eq(bed.cluster.executed[RPC_OP_MKDIR], NAMES);
}
END_TEST

SUITE_MAIN("client-names", setup, teardown, what_an_older_server_does_not_take_together_goes_alone)
