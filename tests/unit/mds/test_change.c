// SPDX-License-Identifier: Apache-2.0
/* Changes of the cluster map. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "common/base/err.h"
#include "mds/cluster/change.h"
#include "proto/layout.h"
#include "tests/support/suite.h"

static struct cluster_map *map;
static struct msg_target_stat targets[4];
static struct msg_bytes address;
static struct msg_register_req req;

static struct msg_bytes text(const char *s)
{
    return (struct msg_bytes){s, (uint32_t)strlen(s)};
}

static struct uuid id(uint8_t a, uint8_t b)
{
    return (struct uuid){.b = {a, b}};
}

static void server(uint8_t n, const char *alias, uint32_t n_targets)
{
    memset(targets, 0, sizeof targets);
    for (uint32_t i = 0; i < n_targets; i++)
        targets[i].uuid = id(n, (uint8_t)(i + 1));
    address = text("10.0.0.1:7601");
    req = (struct msg_register_req){.node = id(n, 0),
                                    .alias = text(alias),
                                    .n_addresses = 1,
                                    .addresses = &address,
                                    .n_targets = n_targets,
                                    .targets = targets};
}

static void setup(void)
{
    struct cluster_map empty = {.fs = id(9, 9)};
    struct change_self self = {.uuid = id(1, 0), .alias = "mds1", .address = "10.0.0.9:7600"};

    map = map_copy(&empty);
    ck_assert_ptr_nonnull(map);
    ck_assert_int_eq(change_self(map, &self), 0);
    ck_assert_int_eq(change_self(map, &self), CHANGE_NONE);
}

static void teardown(void)
{
    ck_assert_int_eq(map_check(map), 0);
    map_put(map);
}

START_TEST(a_new_map_has_this_server_a_shard_and_the_default_pool)
{
    struct change_self moved = {.uuid = id(1, 0), .alias = "mds1", .address = "10.0.0.8:7600"};

    ck_assert_uint_eq(map->n_nodes, 1);
    ck_assert_uint_eq(map->n_shards, 1);
    ck_assert_str_eq(map->pools[0].name, CHANGE_DEFAULT_POOL);
    ck_assert_int_eq(change_self(map, &moved), 0);
    ck_assert_str_eq(map->nodes[0].addresses[0], "10.0.0.8:7600");
    ck_assert_uint_eq(map->n_nodes, 1);
}
END_TEST

START_TEST(a_new_server_gets_ids_and_its_targets_get_chains)
{
    server(2, "oss1", 2);
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_uint_eq(change_node_id(map, &req.node), 2);
    ck_assert_uint_eq(change_target_id(map, &targets[1].uuid), 2);
    ck_assert_str_eq(map_target(map, 2)->alias, "oss1-2");
    ck_assert_uint_eq(map_table(map, 1, 1)->n_chains, 2);
    ck_assert_int_eq(change_register(map, &req), CHANGE_NONE);
}
END_TEST

START_TEST(silence_and_return_change_states_and_nothing_else)
{
    server(2, "oss1", 2);
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_int_eq(change_offline(map, 2), 0);
    ck_assert_int_eq(change_offline(map, 2), CHANGE_NONE);
    ck_assert_int_eq(map_target(map, 1)->state, MAP_TARGET_OFFLINE);
    req.n_targets = 1; /* the other disk is gone */
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_int_eq(map_target(map, 1)->state, MAP_TARGET_ONLINE);
    ck_assert_int_eq(map_target(map, 2)->state, MAP_TARGET_OFFLINE);
    ck_assert_uint_eq(map_table(map, 1, 1)->n_chains, 2);
}
END_TEST

START_TEST(a_target_that_is_found_in_another_server_keeps_its_id_and_chain)
{
    server(2, "oss1", 1);
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_int_eq(change_offline(map, 2), 0);
    server(3, "oss2", 1);
    targets[0].uuid = id(2, 1);
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_uint_eq(map->n_targets, 1);
    ck_assert_uint_eq(map_target(map, 1)->node, 3);
    ck_assert_uint_eq(map->n_chains, 1);
}
END_TEST

START_TEST(a_target_that_another_server_has_stays_there)
{
    server(2, "oss1", 1);
    ck_assert_int_eq(change_register(map, &req), 0);
    server(3, "oss2", 2);
    targets[0].uuid = id(2, 1); /* a copy */
    targets[0].path = text("/copy");
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_uint_eq(map->n_targets, 2);
    ck_assert_uint_eq(map_target(map, 1)->node, 2);
    ck_assert_str_eq(map_target(map, 1)->path, "");
    ck_assert_uint_eq(change_serving_id(map, 3, &targets[0].uuid), 0);
    ck_assert_uint_eq(change_serving_id(map, 2, &targets[0].uuid), 1);
    ck_assert_uint_eq(change_serving_id(map, 3, &targets[1].uuid), 2);
    ck_assert_uint_eq(change_instead_of(map, &req, 0), 0);
    ck_assert_int_eq(change_register(map, &req), CHANGE_NONE);
    ck_assert_int_eq(change_offline(map, 3), 0);
    ck_assert_int_eq(map_target(map, 1)->state, MAP_TARGET_ONLINE);
    ck_assert_int_eq(change_offline(map, 2), 0);
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_uint_eq(map_target(map, 1)->node, 3);
    ck_assert_uint_eq(change_serving_id(map, 3, &targets[0].uuid), 1);
}
END_TEST

START_TEST(a_new_target_where_a_missing_one_lived_is_left_out)
{
    server(2, "oss1", 2);
    targets[0].path = text("/disk1");
    targets[1].path = text("/disk2");
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_str_eq(map_target(map, 2)->path, "/disk2");
    targets[1].uuid = id(7, 1);
    ck_assert_uint_eq(change_instead_of(map, &req, 0), 0);
    ck_assert_uint_eq(change_instead_of(map, &req, 1), 2);
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_uint_eq(map->n_targets, 2);
    ck_assert_int_eq(map_target(map, 1)->state, MAP_TARGET_ONLINE);
    ck_assert_int_eq(map_target(map, 2)->state, MAP_TARGET_OFFLINE);
    ck_assert_int_eq(change_register(map, &req), CHANGE_NONE);
    ck_assert_int_eq(change_replace(map, 1), -EBUSY);
    ck_assert_int_eq(change_replace(map, 2), 0);
    ck_assert_int_eq(change_replace(map, 2), CHANGE_NONE);
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_uint_eq(change_target_id(map, &targets[1].uuid), 3);
}
END_TEST

START_TEST(disks_may_change_places_and_a_new_one_be_where_one_was)
{
    server(2, "oss1", 2);
    targets[0].path = text("/disk1");
    targets[1].path = text("/disk2");
    ck_assert_int_eq(change_register(map, &req), 0);
    targets[0].path = text("/disk2");
    targets[1].path = text("/disk1");
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_str_eq(map_target(map, 1)->path, "/disk2");
    req.n_targets = 3;
    targets[0].path = text("/disk3");
    targets[2].uuid = id(7, 1);
    targets[2].path = text("/disk2");
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_uint_eq(map->n_targets, 3);
}
END_TEST

START_TEST(one_path_on_several_servers_is_several_places)
{
    struct msg_bytes there = text("10.0.0.2:7601");
    char longest[MAP_PATH_BYTES];

    memset(longest, 'x', sizeof longest);
    server(2, "oss", 1);
    targets[0].path = text("/disk");
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_int_eq(change_offline(map, 2), 0);
    server(3, "oss", 1);
    targets[0].path = text("/disk");
    req.addresses = &there;
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_uint_eq(map->n_targets, 2);
    server(4, "oss", 1); /* in the place of the first one, and nothing else to offer */
    targets[0].path = text("/disk");
    ck_assert_uint_eq(change_instead_of(map, &req, 0), 1);
    ck_assert_int_eq(change_register(map, &req), CHANGE_NONE);
    ck_assert_uint_eq(map->n_nodes, 3);
    targets[0].path = (struct msg_bytes){longest, sizeof longest};
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_str_eq(map_target(map, 3)->path, "");
}
END_TEST

/* The target that chunk n of a file with this layout is on. */
static uint32_t place(const struct msg_layout *l, uint64_t chunk)
{
    const struct map_chain *c = layout_chain(l, map, chunk);

    ck_assert_ptr_nonnull(c);
    return c->targets[0];
}

START_TEST(new_files_do_not_use_a_target_that_is_given_up_and_old_ones_stay_where_they_are)
{
    struct msg_stripe two = {.stripe_count = 2};
    struct msg_layout old, l;
    unsigned used[6] = {0};

    server(2, "oss1", 4);
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_int_eq(layout_make(map, NULL, NULL, 0, &old), 0);
    ck_assert_int_eq(change_replace(map, 3), -EBUSY);
    ck_assert_int_eq(change_offline(map, 2), 0);
    ck_assert_int_eq(change_replace(map, 3), 0);
    ck_assert_int_eq(change_replace(map, 3), CHANGE_NONE);
    for (uint64_t turn = 0; turn < 6; turn++) { /* wherever it begins */
        ck_assert_int_eq(layout_make(map, NULL, NULL, 0, &l), 0);
        layout_turn(map, turn, &l);
        ck_assert_uint_eq(l.stripe_count, 3);
        for (uint64_t i = 0; i < 9; i++)
            used[place(&l, i)]++;
        ck_assert_int_eq(layout_make(map, &two, NULL, 0, &l), 0);
        layout_turn(map, turn, &l);
        ck_assert_uint_ne(place(&l, 0), place(&l, 1));
    }
    ck_assert_uint_eq(used[3], 0);
    ck_assert(used[1] == 18 && used[2] == 18 && used[4] == 18);
    server(2, "oss1", 4); /* the others are back, and a new one */
    targets[2].uuid = id(2, 50);
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_int_eq(layout_make(map, NULL, NULL, 0, &l), 0);
    ck_assert_uint_eq(l.stripe_count, 4);
    memset(used, 0, sizeof used);
    for (uint64_t i = 0; i < 4; i++)
        used[place(&l, i)]++;
    ck_assert(used[1] == 1 && used[2] == 1 && used[4] == 1 && used[5] == 1);
    ck_assert_uint_eq(old.stripe_count, 4);
    memset(used, 0, sizeof used);
    for (uint64_t i = 0; i < 4; i++)
        used[place(&old, i)]++;
    ck_assert(used[1] == 1 && used[2] == 1 && used[3] == 1 && used[4] == 1);
}
END_TEST

START_TEST(a_start_counts_among_the_chains_that_new_files_use)
{
    struct msg_stripe asked = {.stripe_count = 1, .has_start = true, .start = 1};
    struct msg_layout l;

    server(2, "oss1", 3);
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_int_eq(change_offline(map, 2), 0);
    ck_assert_int_eq(change_replace(map, 1), 0);
    ck_assert_int_eq(layout_make(map, &asked, NULL, 0, &l), 0);
    ck_assert_uint_eq(place(&l, 0), 3);
    asked.start = 2;
    ck_assert_int_eq(layout_make(map, &asked, NULL, 0, &l), -EINVAL);
    ck_assert_int_eq(layout_make(map, NULL, &asked, 0, &l), 0); /* a directory's: wherever */
    ck_assert_uint_eq(place(&l, 0), 2);
}
END_TEST

START_TEST(a_pool_that_has_lost_everything_has_no_room_until_it_gets_a_target)
{
    struct msg_layout l;

    server(2, "oss1", 1);
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_int_eq(change_offline(map, 2), 0);
    ck_assert_int_eq(change_replace(map, 1), 0);
    ck_assert_int_eq(layout_make(map, NULL, NULL, 0, &l), -ENOSPC);
    targets[0].uuid = id(2, 50);
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_int_eq(layout_make(map, NULL, NULL, 0, &l), 0);
    ck_assert_uint_eq(place(&l, 7), 2);
}
END_TEST

START_TEST(a_target_that_was_given_up_never_serves_again)
{
    server(2, "oss1", 2);
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_int_eq(change_offline(map, 2), 0);
    ck_assert_int_eq(change_replace(map, 2), 0);
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_int_eq(map_target(map, 1)->state, MAP_TARGET_ONLINE);
    ck_assert_int_eq(map_target(map, 2)->state, MAP_TARGET_OFFLINE);
    ck_assert_uint_eq(change_instead_of(map, &req, 0), 0);
    ck_assert_uint_eq(change_instead_of(map, &req, 1), 2);
    ck_assert_uint_eq(change_serving_id(map, 2, &targets[1].uuid), 0);
    server(3, "oss2", 1); /* nor in a server that has nothing else */
    targets[0].uuid = id(2, 2);
    ck_assert_int_eq(change_register(map, &req), CHANGE_NONE);
    ck_assert_uint_eq(map->n_nodes, 2);
}
END_TEST

START_TEST(a_target_that_asks_for_a_pool_that_is_none_does_not_keep_the_others_away)
{
    server(2, "oss1", 2);
    targets[1].pool = text("fats");
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_uint_eq(map->n_targets, 1);
    ck_assert_uint_eq(change_serving_id(map, 2, &targets[1].uuid), 0);
    ck_assert(change_pool_exists(map, &targets[0]) && !change_pool_exists(map, &targets[1]));
    ck_assert_int_eq(change_register(map, &req), CHANGE_NONE);
    ck_assert_int_eq(change_pool_create(map, "fats", NULL, 0), 0);
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_uint_eq(change_serving_id(map, 2, &targets[1].uuid), 2);
    server(3, "oss2", 1); /* a server that has nothing else hears why */
    targets[0].pool = text("nope");
    ck_assert_int_eq(change_register(map, &req), -ENOENT);
}
END_TEST

START_TEST(a_server_is_removed_when_all_its_targets_are_given_up_and_its_number_stays_theirs)
{
    server(2, "oss1", 1);
    ck_assert_int_eq(change_register(map, &req), 0);
    server(3, "oss2", 2);
    address = text("10.0.0.3:7601");
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_int_eq(change_remove_node(map, 1), -EBUSY); /* the metadata server */
    ck_assert_int_eq(change_remove_node(map, 9), -ENOENT);
    ck_assert_int_eq(change_offline(map, 3), 0);
    ck_assert_int_eq(change_replace(map, 2), 0);
    ck_assert_int_eq(change_remove_node(map, 3), -EBUSY); /* one of two */
    ck_assert_int_eq(change_replace(map, 3), 0);
    ck_assert_int_eq(change_remove_node(map, 3), 0);
    ck_assert_int_eq(change_remove_node(map, 3), -ENOENT);
    ck_assert_int_eq(map_check(map), 0);
    ck_assert_uint_eq(map->n_nodes, 2);
    ck_assert(map_target(map, 2)->given_up && map_target(map, 3)->given_up);
    ck_assert_int_eq(change_register(map, &req), CHANGE_NONE); /* it is back with these */
    server(4, "oss2", 1);
    address = text("10.0.0.3:7601");
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_uint_eq(map->n_nodes, 3);
    ck_assert_uint_eq(map_target(map, 4)->node, 4);
    ck_assert_int_eq(map_check(map), 0);
    map->targets[3].node = 77; /* only what is given up may be of nobody */
    ck_assert_int_eq(map_check(map), -AIFS_EPROTO);
    map->targets[3].node = 4;
}
END_TEST

START_TEST(a_server_that_has_lost_all_its_targets_comes_back_as_itself)
{
    server(2, "oss1", 2);
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_int_eq(change_offline(map, 2), 0);
    ck_assert_int_eq(change_replace(map, 1), 0);
    server(3, "oss2", 1); /* one of two is not given up: it may still be there */
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_uint_eq(map->n_nodes, 3);
    ck_assert_int_eq(change_offline(map, 3), 0);
    ck_assert_int_eq(change_replace(map, 2), 0);
    ck_assert_int_eq(change_replace(map, 3), 0);
    server(4, "oss1", 1);
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_uint_eq(map->n_nodes, 3);
    ck_assert_uint_eq(map_target(map, 4)->node, 2);
    server(5, "oss1", 1);
    address = text("10.0.0.2:7601");
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_uint_eq(map->n_nodes, 4);
}
END_TEST

START_TEST(a_server_that_comes_with_another_disk_is_known_by_name_and_address)
{
    server(2, "oss1", 1);
    targets[0].path = text("/disk1");
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_int_eq(change_offline(map, 2), 0);
    server(3, "oss1", 1);
    targets[0].path = text("/disk2");
    ck_assert_uint_eq(change_known_as(map, &req), 2);
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_uint_eq(map->n_nodes, 2);
    ck_assert_uint_eq(change_node_id(map, &req.node), 2);
    ck_assert_uint_eq(map_target(map, 1)->node, 2);
    ck_assert_uint_eq(map_target(map, 2)->node, 2);
    ck_assert_int_eq(map_target(map, 1)->state, MAP_TARGET_OFFLINE);
    ck_assert_int_eq(map_target(map, 2)->state, MAP_TARGET_ONLINE);
    server(2, "oss1", 1); /* its first disk, instead of the other one */
    targets[0].path = text("/disk1");
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_uint_eq(map->n_nodes, 2);
    ck_assert_int_eq(map_target(map, 1)->state, MAP_TARGET_ONLINE);
    ck_assert_int_eq(map_target(map, 2)->state, MAP_TARGET_OFFLINE);
    server(4, "oss1", 1);
    address = text("10.0.0.2:7601"); /* another machine of the same name */
    ck_assert_uint_eq(change_known_as(map, &req), 0);
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_uint_eq(map->n_nodes, 3);
    server(5, "oss5", 1); /* an address that another has now, while that one may be elsewhere */
    ck_assert_uint_eq(change_known_as(map, &req), 0);
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_uint_eq(map->n_nodes, 4);
}
END_TEST

START_TEST(a_server_whose_lost_targets_are_given_up_one_by_one_stays_one_server)
{
    server(2, "oss1", 2);
    targets[0].path = text("/disk1");
    targets[1].path = text("/disk2");
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_int_eq(change_offline(map, 2), 0);
    req.node = id(7, 0);
    targets[0].uuid = id(7, 1);
    targets[1].uuid = id(7, 2);
    ck_assert_int_eq(change_register(map, &req), CHANGE_NONE);
    ck_assert_int_eq(change_replace(map, 2), 0);
    ck_assert_int_eq(change_register(map, &req), 0); /* the other is refused still */
    ck_assert_uint_eq(change_target_id(map, &targets[1].uuid), 3);
    ck_assert_uint_eq(change_instead_of(map, &req, 0), 1);
    ck_assert_uint_eq(change_node_id(map, &req.node), 2);
    ck_assert_uint_eq(map->n_nodes, 2);
    ck_assert_int_eq(change_replace(map, 1), 0);
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_uint_eq(change_target_id(map, &targets[0].uuid), 4);
    ck_assert_uint_eq(map->n_nodes, 2);
}
END_TEST

START_TEST(an_unknown_pool_is_refused)
{
    server(2, "oss1", 1);
    targets[0].pool = text("fast");
    ck_assert_int_eq(change_register(map, &req), -ENOENT);
}
END_TEST

START_TEST(nonsense_from_a_server_is_refused)
{
    char name[100];

    memset(name, 'x', sizeof name);
    server(2, "oss1", 1);
    req.alias = (struct msg_bytes){name, sizeof name};
    ck_assert_int_eq(change_register(map, &req), -EINVAL);
    req.alias = (struct msg_bytes){"a\0b", 3};
    ck_assert_int_eq(change_register(map, &req), -EINVAL);
    req.alias = text("oss1");
    req.n_addresses = 0;
    ck_assert_int_eq(change_register(map, &req), -EINVAL);
    req.n_addresses = 1;
    req.node = id(1, 0); /* the metadata server's */
    ck_assert_int_eq(change_register(map, &req), -EEXIST);
}
END_TEST

START_TEST(a_new_pool_gets_the_targets_that_ask_for_it)
{
    ck_assert_int_eq(change_pool_create(map, "fast", NULL, 0), 0);
    ck_assert_int_eq(change_pool_create(map, "fast", NULL, 0), -EEXIST);
    server(2, "oss1", 2);
    targets[1].pool = text("fast");
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_uint_eq(map_table(map, 1, 1)->n_chains, 1);
    ck_assert_uint_eq(map_table(map, 2, 1)->n_chains, 1);
}
END_TEST

START_TEST(a_target_that_files_could_name_does_not_move)
{
    uint32_t one = 1, nine = 9;

    server(2, "oss1", 1);
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_int_eq(change_pool_create(map, "fast", NULL, 0), 0);
    ck_assert_int_eq(change_pool_add(map, "fast", &one, 1), -EBUSY);
    ck_assert_int_eq(change_pool_add(map, "fast", &nine, 1), -ENOENT);
    ck_assert_int_eq(change_pool_add(map, "slow", &one, 1), -ENOENT);
    ck_assert_int_eq(change_pool_add(map, CHANGE_DEFAULT_POOL, &one, 1), CHANGE_NONE);
    ck_assert_int_eq(change_pool_remove(map, "fast", &one, 1), -ENOENT);
    ck_assert_int_eq(change_pool_remove(map, "default", &one, 1), -EBUSY);
}
END_TEST

START_TEST(a_target_in_no_pool_can_be_taken)
{
    struct map_target t = {.id = 1, .node = 2, .uuid = id(2, 9), .state = MAP_TARGET_ONLINE};
    uint32_t one = 1;

    server(2, "oss1", 0);
    ck_assert_int_eq(change_register(map, &req), 0);
    ck_assert_int_eq(map_add_target(map, &t), 0);
    ck_assert_int_eq(change_pool_create(map, "fast", &one, 1), 0);
    ck_assert_uint_eq(map_target(map, 1)->pool, 2);
    ck_assert_uint_eq(map_table(map, 2, 1)->n_chains, 1);
}
END_TEST

SUITE_MAIN("mds-change", setup, teardown, a_new_map_has_this_server_a_shard_and_the_default_pool,
           a_new_server_gets_ids_and_its_targets_get_chains,
           silence_and_return_change_states_and_nothing_else,
           a_target_that_is_found_in_another_server_keeps_its_id_and_chain,
           a_target_that_another_server_has_stays_there,
           a_new_target_where_a_missing_one_lived_is_left_out,
           disks_may_change_places_and_a_new_one_be_where_one_was,
           one_path_on_several_servers_is_several_places,
           new_files_do_not_use_a_target_that_is_given_up_and_old_ones_stay_where_they_are,
           a_start_counts_among_the_chains_that_new_files_use,
           a_pool_that_has_lost_everything_has_no_room_until_it_gets_a_target,
           a_target_that_was_given_up_never_serves_again,
           a_target_that_asks_for_a_pool_that_is_none_does_not_keep_the_others_away,
           a_server_is_removed_when_all_its_targets_are_given_up_and_its_number_stays_theirs,
           a_server_that_has_lost_all_its_targets_comes_back_as_itself,
           a_server_that_comes_with_another_disk_is_known_by_name_and_address,
           a_server_whose_lost_targets_are_given_up_one_by_one_stays_one_server,
           an_unknown_pool_is_refused, nonsense_from_a_server_is_refused,
           a_new_pool_gets_the_targets_that_ask_for_it,
           a_target_that_files_could_name_does_not_move, a_target_in_no_pool_can_be_taken)
