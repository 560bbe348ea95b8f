/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream of writes: what is stored is committed before anybody waits for memory, and what is
 * under way to targets that do not answer is a part of the memory only.
 */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/client_bed.h"
#include "tests/support/suite.h"

#define TARGETS 3u
#define FIRST   (TARGETS * MIB)
#define ROOM    (16u * MIB)
#define AHEAD   (2u * MIB) /* of 96 MiB: stored on a target, then committed */
#define FLIGHT  3u         /* of 96 MiB: writes of 1 MiB that a target may have at once */

static struct bed bed;
static struct core *c;
static struct core_file *f;
static uint8_t *data;

static void setup(void)
{
    bed_setup(&bed, TARGETS);
    c = bed_mount(&bed, NULL);
    data = malloc(ROOM);
    bed_pattern(data, ROOM, 0, 1);
    f = bed_create(&bed, c, "stream");
    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, FIRST), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0); /* striped, and the targets have promised room */
}

static void teardown(void)
{
    core_release(c, f);
    bed_unmount(&bed, c, false, 0);
    free(data);
    bed_teardown(&bed);
}

static void stream(uint32_t from, uint32_t to)
{
    for (uint32_t at = from; at < to; at += MIB)
        ck_assert_int_eq(bed_write(&bed, c, f, at, data + at, MIB), 0);
}

static void expect_durable(uint32_t len)
{
    struct fake_inode *i = fake_inode(&bed.cluster, "stream");
    uint8_t *back = malloc(len);

    ck_assert_uint_eq(i->attr.size, len);
    fake_contents(&bed.cluster, i, 0, back, len, true);
    ck_assert_int_eq(memcmp(back, data, len), 0);
    free(back);
}

START_TEST(what_is_stored_is_committed_long_before_memory_is_spent)
{
    unsigned before[TARGETS];
    struct core_stats stats;

    for (unsigned k = 0; k < TARGETS; k++)
        before[k] = bed.cluster.oss[k].commits;
    stream(FIRST, FIRST + TARGETS * AHEAD);
    bed_spin(&bed, 10 * NS_PER_MS); /* much less than the age at which anything is committed */
    core_get_stats(c, &stats);
    ck_assert_uint_eq(stats.dirty_bytes, 0);
    ck_assert_uint_eq(stats.uncommitted_bytes, 0);
    for (unsigned k = 0; k < TARGETS; k++)
        ck_assert_uint_gt(bed.cluster.oss[k].commits, before[k]);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    expect_durable(FIRST + TARGETS * AHEAD);
}
END_TEST

START_TEST(targets_that_do_not_answer_have_a_part_of_the_memory)
{
    for (unsigned k = 0; k < TARGETS; k++)
        bed.cluster.oss[k].hold = true;
    stream(FIRST, ROOM);
    bed_spin(&bed, 10 * NS_PER_MS);
    for (unsigned k = 0; k < TARGETS; k++)
        ck_assert_uint_eq(bed.cluster.oss[k].held_now, FLIGHT);
    for (unsigned k = 0; k < TARGETS; k++)
        fake_oss_release(&bed.cluster.oss[k]);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    expect_durable(ROOM);
}
END_TEST

SUITE_MAIN("client-stream", setup, teardown,
           what_is_stored_is_committed_long_before_memory_is_spent,
           targets_that_do_not_answer_have_a_part_of_the_memory)
