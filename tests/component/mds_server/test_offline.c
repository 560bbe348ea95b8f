// SPDX-License-Identifier: Apache-2.0
/* Servers that go silent when the cluster map cannot be changed, or come back at that moment. */
#include "common/fault/fault.h"
#include "mds/cluster/cluster_int.h"
#include "tests/component/mds_server/rig.h"

static struct rig rig;

static void setup(void)
{
    rig_open(&rig, NULL);
    rig_oss_start(&rig, 0, 1);
    rig_oss_start(&rig, 1, 1);
}

static void teardown(void)
{
    fault_disarm_all();
    rig_end(&rig);
}

static const struct cluster_map *map(void)
{
    return cluster_of(rig.mds)->map;
}

static int state(void)
{
    return (int)map_target(map(), rig.oss[1].target_id[0])->state;
}

/* Its server is offline, and the map does not say so. */
static void fall_silent(void)
{
    rig.oss[1].alive = false;
    ck_ok(fault_arm("mds.map.entry=error@1"));
    rig_pass(&rig, 3600);
    ck_assert_uint_eq(fault_count("mds.map.entry"), 1);
    fault_disarm_all();
    ck_assert_int_eq(state(), MAP_TARGET_ONLINE);
}

START_TEST(that_a_server_is_offline_comes_to_the_map_though_the_change_fails_at_first)
{
    fall_silent();
    rig_pass(&rig, 2000);
    ck_assert_int_eq(state(), MAP_TARGET_OFFLINE);
    rig_oss_restart(&rig, 1);
    ck_assert_int_eq(state(), MAP_TARGET_ONLINE);
}
END_TEST

START_TEST(that_a_server_is_offline_is_tried_until_the_map_says_it)
{
    rig.oss[1].alive = false;
    ck_ok(fault_arm("mds.map.entry=error@1+"));
    rig_pass(&rig, 10000);
    ck_assert_uint_gt(fault_count("mds.map.entry"), 4);
    ck_assert_uint_lt(fault_count("mds.map.entry"), 10);
    fault_disarm_all();
    rig_pass(&rig, 2000);
    ck_assert_int_eq(state(), MAP_TARGET_OFFLINE);
    ck_assert_uint_eq(stat_value(&cluster_of(rig.mds)->stats.offline), 1);
}
END_TEST

START_TEST(a_server_that_is_back_before_the_map_says_it_was_offline_stays_online)
{
    uint64_t epoch;

    fall_silent();
    epoch = map()->epoch;
    rig_oss_restart(&rig, 1);
    rig_pass(&rig, 5000);
    ck_assert_uint_eq(map()->epoch, epoch);
    ck_assert_int_eq(state(), MAP_TARGET_ONLINE);
}
END_TEST

static bool one_waits_for_the_map(void *arg)
{
    (void)arg;
    return !list_empty(&cluster_of(rig.mds)->waiting);
}

/* It registers while the map is being changed, and counts as silent before its turn has come. */
START_TEST(a_server_that_has_just_asked_to_register_does_not_go_offline_after_it)
{
    static const unsigned which[] = {2, 1};
    int status[2];

    rig_pass(&rig, 2000);
    rig.oss[1].alive = false;
    rig_pass(&rig, 2700);
    rig_oss_try_slowly(&rig, which, 2, 800, one_waits_for_the_map, NULL, status);
    ck_ok(status[0]);
    ck_ok(status[1]);
    rig_pass(&rig, 5000);
    ck_assert_int_eq(state(), MAP_TARGET_ONLINE);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, that_a_server_is_offline_comes_to_the_map_though_the_change_fails_at_first);
    tcase_add_test(t, that_a_server_is_offline_is_tried_until_the_map_says_it);
    tcase_add_test(t, a_server_that_has_just_asked_to_register_does_not_go_offline_after_it);
    tcase_add_test(t, a_server_that_is_back_before_the_map_says_it_was_offline_stays_online);
}

int main(void)
{
    return rig_main("mds-offline", add);
}
