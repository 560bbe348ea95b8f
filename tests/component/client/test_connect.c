/* SPDX-License-Identifier: Apache-2.0 */
/* A mount that connects to the storage servers before anything is asked of them. */
#include <check.h>
#include <string.h>

#include "tests/support/client_bed.h"
#include "tests/support/suite.h"

#define SERVERS 3u

static struct bed bed;

static void setup(void)
{
    bed_setup(&bed, SERVERS);
}

static void teardown(void)
{
    bed_teardown(&bed);
}

static unsigned connected(void)
{
    unsigned n = 0;

    for (unsigned k = 0; k < SERVERS; k++)
        n += bed.cluster.oss[k].links[0] != NULL;
    return n;
}

static struct core *mount_with(unsigned connect_max)
{
    struct core_options o;

    core_options_default(&o);
    o.connect_max = connect_max;
    return bed_mount(&bed, &o);
}

START_TEST(a_mount_ends_when_all_servers_are_connected)
{
    struct core *c = mount_with(SERVERS);

    ck_assert_uint_eq(connected(), SERVERS);
    bed_unmount(&bed, c, false, 0);
}
END_TEST

START_TEST(too_many_servers_are_connected_to_when_they_are_needed)
{
    struct core *c = mount_with(SERVERS - 1);

    bed_spin(&bed, 10 * NS_PER_MS);
    ck_assert_uint_eq(connected(), 0);
    bed_unmount(&bed, c, false, 0);
}
END_TEST

START_TEST(a_server_that_is_away_keeps_no_mount)
{
    struct core *c;

    strcpy(bed.cluster.map->nodes[1].addresses[0], "loop:nobody-is-here");
    strcpy(bed.cluster.map->nodes[2].addresses[0], "loop:nor-here");
    c = mount_with(SERVERS);
    ck_assert_uint_ge(connected(), 1);
    bed_unmount(&bed, c, false, 0);
}
END_TEST

START_TEST(a_target_that_is_offline_is_not_asked_for)
{
    struct core *c;

    for (unsigned k = 0; k < bed.cluster.map->n_targets; k++)
        bed.cluster.map->targets[k].state = MAP_TARGET_OFFLINE;
    c = mount_with(SERVERS);
    ck_assert_uint_eq(connected(), 0);
    bed_unmount(&bed, c, false, 0);
}
END_TEST

SUITE_MAIN("client-connect", setup, teardown, a_mount_ends_when_all_servers_are_connected,
           too_many_servers_are_connected_to_when_they_are_needed,
           a_server_that_is_away_keeps_no_mount, a_target_that_is_offline_is_not_asked_for)
