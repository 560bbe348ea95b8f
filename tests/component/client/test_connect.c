/* SPDX-License-Identifier: Apache-2.0 */
/* A mount that connects to the storage servers before anything is asked of them, and what is left
 * of one that fails: nothing. */
#include <check.h>
#include <errno.h>
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

/* ---- mounts that fail ---- */

static unsigned sessions(void)
{
    unsigned n = 0;

    for (unsigned k = 0; k < FAKE_SESSIONS; k++)
        n += bed.cluster.sessions[k].id != 0;
    return n;
}

/* Of a directory that is not there. */
static struct core *begin_mount(struct bed_op *op)
{
    struct core_options o;
    struct core *c;
    char address[80];

    core_options_default(&o);
    o.memory_limit = 96 * MIB;
    o.mds[0] = fake_mds_address(&bed.cluster, address);
    o.n_mds = 1;
    o.key = bed.cluster.key;
    o.subdir = "/not/there";
    ck_assert_int_eq(core_create(bed.reactor, &o, &c), 0);
    bed_op_init(op);
    core_mount(c, &op->q);
    return c;
}

START_TEST(a_mount_of_a_directory_that_is_not_there_leaves_no_session)
{
    struct bed_op op;
    struct core *c = begin_mount(&op);

    ck_assert_int_eq(bed_wait(&bed, &op), -ENOENT);
    ck_assert_uint_eq(sessions(), 1);
    bed_unmount(&bed, c, true, 0);
    ck_assert_uint_eq(sessions(), 0);
}
END_TEST

START_TEST(a_mount_that_was_interrupted_leaves_no_session)
{
    struct bed_op op;
    struct core *c = begin_mount(&op);

    while (!bed.cluster.calls[RPC_OP_LOOKUP])
        reactor_run_once(bed.reactor, NS_PER_S);
    core_cancel(&op.q);
    ck_assert_int_eq(bed_wait(&bed, &op), -EINTR);
    bed_unmount(&bed, c, true, 0);
    ck_assert_uint_eq(sessions(), 0);
}
END_TEST

START_TEST(a_mount_that_failed_waits_a_second_at_most_for_a_server_that_is_silent)
{
    struct bed_op op;
    struct core *c = begin_mount(&op);
    uint64_t before;

    ck_assert_int_eq(bed_wait(&bed, &op), -ENOENT);
    bed.cluster.mds_hold = true;
    before = clock_mono_ns(&bed.clock.clock);
    bed_unmount(&bed, c, true, 0);
    ck_assert_uint_le(clock_mono_ns(&bed.clock.clock) - before, NS_PER_S);
    fake_mds_release(&bed.cluster);
}
END_TEST

SUITE_MAIN("client-connect", setup, teardown, a_mount_ends_when_all_servers_are_connected,
           too_many_servers_are_connected_to_when_they_are_needed,
           a_server_that_is_away_keeps_no_mount, a_target_that_is_offline_is_not_asked_for,
           a_mount_of_a_directory_that_is_not_there_leaves_no_session,
           a_mount_that_was_interrupted_leaves_no_session,
           a_mount_that_failed_waits_a_second_at_most_for_a_server_that_is_silent)
