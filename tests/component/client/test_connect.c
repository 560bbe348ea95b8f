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

/* The server answers what is held when the mount has been given up and is being taken down. */
static void give_up_and_answer(unsigned held_op)
{
    bool begun = held_op == RPC_OP_SESSION_OPEN;
    struct bed_op op, down;
    struct core *c = begin_mount(&op);

    bed.cluster.mds_hold = begun;
    while (!begun) {
        reactor_run_once(bed.reactor, 0);
        begun = bed.cluster.mds_hold = bed.cluster.calls[RPC_OP_SESSION_OPEN] > 0;
    }
    bed_spin(&bed, 6 * NS_PER_S); /* a renewal is due */
    ck_assert(!op.done);
    core_cancel(&op.q);
    ck_assert_int_eq(bed_wait(&bed, &op), -EINTR);
    bed_op_init(&down);
    core_unmount(c, &down.q, true);
    bed_spin(&bed, 100 * NS_PER_MS);
    fake_mds_release(&bed.cluster);
    ck_assert_int_eq(bed_wait(&bed, &down), 0);
    core_destroy(c);
    ck_assert_uint_eq(sessions(), 0);
}

START_TEST(a_mount_that_is_given_up_closes_the_session_that_is_being_opened)
{
    give_up_and_answer(RPC_OP_SESSION_OPEN);
}
END_TEST

START_TEST(a_mount_that_is_given_up_closes_the_session_that_is_being_renewed)
{
    give_up_and_answer(RPC_OP_SESSION_RENEW);
    ck_assert_uint_eq(bed.cluster.calls[RPC_OP_SESSION_RENEW], 1);
}
END_TEST

START_TEST(an_unmount_closes_the_session_behind_its_renewal)
{
    struct core *c = mount_with(SERVERS);
    struct bed_op down;

    bed.cluster.mds_hold = true;
    bed_spin(&bed, 6 * NS_PER_S);
    bed_op_init(&down);
    core_unmount(c, &down.q, false);
    bed_spin(&bed, 100 * NS_PER_MS);
    ck_assert_uint_eq(bed.cluster.calls[RPC_OP_SESSION_CLOSE], 0);
    fake_mds_release(&bed.cluster);
    ck_assert_int_eq(bed_wait(&bed, &down), 0);
    core_destroy(c);
    ck_assert_uint_eq(bed.cluster.calls[RPC_OP_SESSION_RENEW], 1);
    ck_assert_uint_eq(sessions(), 0);
}
END_TEST

START_TEST(a_mount_that_is_given_up_waits_a_second_at_most_for_its_session)
{
    struct bed_op op;
    struct core *c = begin_mount(&op);
    uint64_t before;

    bed.cluster.mds_hold = true;
    bed_spin(&bed, NS_PER_S);
    core_cancel(&op.q);
    ck_assert_int_eq(bed_wait(&bed, &op), -EINTR);
    before = clock_mono_ns(&bed.clock.clock);
    bed_unmount(&bed, c, true, 0);
    ck_assert_uint_le(clock_mono_ns(&bed.clock.clock) - before, NS_PER_S + 200 * NS_PER_MS);
    fake_mds_release(&bed.cluster);
}
END_TEST

SUITE_MAIN("client-connect", setup, teardown, a_mount_ends_when_all_servers_are_connected,
           too_many_servers_are_connected_to_when_they_are_needed,
           a_server_that_is_away_keeps_no_mount, a_target_that_is_offline_is_not_asked_for,
           a_mount_of_a_directory_that_is_not_there_leaves_no_session,
           a_mount_that_was_interrupted_leaves_no_session,
           a_mount_that_failed_waits_a_second_at_most_for_a_server_that_is_silent,
           a_mount_that_is_given_up_closes_the_session_that_is_being_opened,
           a_mount_that_is_given_up_closes_the_session_that_is_being_renewed,
           an_unmount_closes_the_session_behind_its_renewal,
           a_mount_that_is_given_up_waits_a_second_at_most_for_its_session)
