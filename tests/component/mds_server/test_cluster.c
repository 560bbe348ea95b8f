// SPDX-License-Identifier: Apache-2.0
/* The cluster map, pools, status and dump, over the wire. */
#include <stdio.h>

#include "common/base/log.h"
#include "mds/store/dump_fmt.h"
#include "tests/component/mds_server/rig_int.h"

static struct rig rig;

static void setup(void)
{
    rig_open(&rig, NULL);
}

static void teardown(void)
{
    rig_end(&rig);
}

static const struct cluster_map *get_map(uint64_t have)
{
    struct msg_map_req req = {.epoch = have};
    const void *any;

    ck_ok(rig_admin(&rig, RPC_OP_MAP_GET, &req, &any));
    return ((const struct msg_map_rep *)any)->unchanged ? NULL
                                                        : ((const struct msg_map_rep *)any)->map;
}

START_TEST(servers_get_ids_and_keep_them_over_restarts_of_everybody)
{
    const struct cluster_map *m;
    uint32_t node, target;
    uint64_t epoch;

    rig_oss_start(&rig, 0, 2);
    rig_oss_start(&rig, 1, 1);
    node = rig.oss[1].node_id;
    target = rig.oss[1].target_id[0];
    ck_assert_uint_ne(node, rig.oss[0].node_id);
    m = get_map(0);
    ck_assert_uint_eq(m->n_targets, 3);
    ck_assert_uint_eq(map_table(m, 1, 1)->n_chains, 3);
    epoch = m->epoch;
    ck_assert_ptr_null(get_map(epoch));
    rig_mds_stop(&rig);
    rig_mds_start(&rig);
    rig_oss_restart(&rig, 1);
    ck_assert_uint_eq(rig.oss[1].node_id, node);
    ck_assert_uint_eq(rig.oss[1].target_id[0], target);
    ck_assert_ptr_null(get_map(epoch)); /* nothing has changed */
}
END_TEST

START_TEST(a_silent_server_is_offline_and_must_register_when_it_is_back)
{
    const struct cluster_map *m;

    rig_oss_start(&rig, 0, 1);
    rig_oss_start(&rig, 1, 1);
    rig_pass(&rig, 5000);
    ck_assert_int_eq(map_target(get_map(0), 2)->state, MAP_TARGET_ONLINE);
    rig.oss[1].alive = false;
    rig_pass(&rig, 4000);
    m = get_map(0);
    ck_assert_int_eq(map_target(m, 1)->state, MAP_TARGET_ONLINE);
    ck_assert_int_eq(map_target(m, 2)->state, MAP_TARGET_OFFLINE);
    rig.oss[1].alive = true; /* the same process, it was only cut off */
    rig_pass(&rig, 2500);
    ck_assert_uint_eq(rig.oss[1].registrations, 2);
    ck_assert_int_eq(map_target(get_map(0), 2)->state, MAP_TARGET_ONLINE);
}
END_TEST

START_TEST(a_copy_of_a_server_is_refused_while_that_is_there)
{
    char address[MAP_ADDR_BYTES];

    rig_oss_start(&rig, 0, 1);
    snprintf(address, sizeof address, "%s", map_node(get_map(0), rig.oss[0].node_id)->addresses[0]);
    rig.oss[1].node = rig.oss[0].node;
    rig.oss[1].boot.b[0]++;
    ck_assert_int_eq(rig_oss_try(&rig, 1, 1), -EEXIST);
    ck_assert_str_eq(map_node(get_map(0), rig.oss[0].node_id)->addresses[0], address);
    ck_assert_int_eq(map_target(get_map(0), 1)->state, MAP_TARGET_ONLINE);
    rig_oss_restart(&rig, 0); /* itself */
    rig.oss[0].alive = false; /* it hangs, or is cut off */
    rig_pass(&rig, 4000);
    rig_oss_start(&rig, 1, 1);
    ck_assert_uint_eq(rig.oss[1].node_id, rig.oss[0].node_id);
}
END_TEST

/* Two would serve different states of the same files, in turns. */
START_TEST(a_copy_of_a_target_is_not_served_while_that_is_there)
{
    uint32_t node;

    rig_oss_start(&rig, 0, 1);
    node = rig.oss[0].node_id;
    rig.oss[1].copies = 1;
    rig_oss_start(&rig, 1, 1);
    ck_assert_uint_ne(rig.oss[1].node_id, node);
    ck_assert_uint_eq(rig.oss[1].target_id[0], 0);
    ck_assert_uint_eq(map_target(get_map(0), 1)->node, node);
    rig_pass(&rig, 5000);
    ck_assert_uint_eq(rig.oss[1].registrations, 1);
    rig.oss[0].alive = false; /* a copy does not serve in its place */
    rig_pass(&rig, 6000);
    ck_assert_uint_eq(rig.oss[1].registrations, 1);
    ck_assert_uint_eq(map_target(get_map(0), 1)->node, node);
    ck_assert_int_eq(map_target(get_map(0), 1)->state, MAP_TARGET_OFFLINE);
    rig_oss_restart(&rig, 1); /* its disk has been moved here */
    ck_assert_uint_eq(rig.oss[1].target_id[0], 1);
    ck_assert_uint_eq(map_target(get_map(0), 1)->node, rig.oss[1].node_id);
    ck_assert_int_eq(map_target(get_map(0), 1)->state, MAP_TARGET_ONLINE);
    rig_oss_restart(&rig, 0);
    ck_assert_uint_eq(rig.oss[0].target_id[0], 0);
}
END_TEST

START_TEST(a_server_with_the_name_and_address_of_one_that_is_there_is_refused)
{
    rig_oss_start(&rig, 0, 1);
    rig.oss[1].as = 1;
    rig.oss[1].path = "/other";
    rig.oss[1].boot.b[0]++;
    ck_assert_int_eq(rig_oss_try(&rig, 1, 1), -EEXIST);
    ck_assert_int_eq(map_target(get_map(0), 1)->state, MAP_TARGET_ONLINE);
    rig.oss[0].alive = false; /* its disk is lost, and it comes with another one */
    rig_pass(&rig, 4000);
    rig_oss_start(&rig, 1, 1);
    ck_assert_uint_eq(rig.oss[1].node_id, rig.oss[0].node_id);
    ck_assert_int_eq(map_target(get_map(0), 1)->state, MAP_TARGET_OFFLINE);
    ck_assert_int_eq(map_target(get_map(0), 2)->state, MAP_TARGET_ONLINE);
}
END_TEST

/* While a change of the map is under way the next ones wait, and are made in one. */
START_TEST(of_two_servers_that_come_together_under_one_name_and_address_one_is_refused)
{
    static const unsigned alone[] = {0, 1}, behind[] = {2, 0, 1};
    int status[3];

    rig.oss[1].as = 1;
    rig.oss[1].path = "/other";
    rig.oss[1].boot.b[0]++;
    rig_oss_try_together(&rig, behind, 3, status);
    ck_ok(status[0]);
    ck_ok(status[1]);
    ck_assert_int_eq(status[2], -EEXIST);
    ck_assert_uint_eq(get_map(0)->n_targets, 2);
    rig.oss[0].alive = false;
    rig_pass(&rig, 4000);
    rig_oss_try_together(&rig, alone, 2, status);
    ck_ok(status[0]);
    ck_assert_int_eq(status[1], -EEXIST);
    ck_assert_uint_eq(get_map(0)->n_targets, 2);
    rig_pass(&rig, 4000);
    ck_assert_int_eq(map_target(get_map(0), rig.oss[0].target_id[0])->state, MAP_TARGET_ONLINE);
}
END_TEST

START_TEST(servers_from_before_a_restart_have_time_to_come_back)
{
    rig_oss_start(&rig, 0, 1);
    rig_oss_start(&rig, 1, 1);
    rig.oss[1].alive = false;
    rig_mds_stop(&rig);
    rig_mds_start(&rig);
    rig_pass(&rig, 4000);
    ck_assert_int_eq(map_target(get_map(0), 2)->state, MAP_TARGET_ONLINE);
    rig_pass(&rig, 2000);
    ck_assert_int_eq(map_target(get_map(0), 2)->state, MAP_TARGET_OFFLINE);
    ck_assert_int_eq(map_target(get_map(0), 1)->state, MAP_TARGET_ONLINE);
}
END_TEST

START_TEST(sessions_are_told_of_a_new_map)
{
    rig_oss_start(&rig, 0, 1);
    rig_client_open(&rig, 0);
    rig_oss_start(&rig, 1, 1);
    rig_settle(&rig);
    ck_assert_uint_eq(rig.client[0].map_epoch, get_map(0)->epoch);
}
END_TEST

START_TEST(pools_are_made_and_filled_with_new_targets_only)
{
    struct msg_pool_req req = {.name = str("fast")};
    const void *any;
    uint32_t id;

    rig_oss_start(&rig, 0, 1);
    req.dry_run = true;
    ck_ok(rig_admin(&rig, RPC_OP_POOL_CREATE, &req, &any));
    ck_assert_uint_eq(get_map(0)->n_pools, 1);
    req.dry_run = false;
    ck_ok(rig_admin(&rig, RPC_OP_POOL_CREATE, &req, &any));
    ck_assert_int_eq(rig_admin(&rig, RPC_OP_POOL_CREATE, &req, NULL), -EEXIST);
    ck_assert_uint_eq(get_map(0)->n_pools, 2);
    id = rig.oss[0].target_id[0];
    req.n_targets = 1;
    req.targets = &id;
    ck_assert_int_eq(rig_admin(&rig, RPC_OP_POOL_ADD, &req, NULL), -EBUSY);
    rig.oss[1].pool = "slow";
    ck_assert_int_eq(rig_oss_try(&rig, 1, 1), -ENOENT);
    rig.oss[1].pool = "fast";
    rig_oss_start(&rig, 1, 1);
    ck_assert_uint_eq(map_table(get_map(0), 2, 1)->n_chains, 1);
    req.name = str("bad name");
    ck_assert_int_eq(rig_admin(&rig, RPC_OP_POOL_CREATE, &req, NULL), -EINVAL);
}
END_TEST

START_TEST(status_and_statfs_say_what_there_is)
{
    const struct msg_status_rep *s;
    struct msg_ino_req root = {.ino = KEY_ROOT_INO};
    const struct msg_statfs_rep *fs;
    const void *any;

    rig_oss_start(&rig, 0, 2);
    rig_client_open(&rig, 0);
    rig_create(&rig, 0, "f", O_RDWR);
    rig_create(&rig, 0, "g", O_RDONLY);
    ck_ok(rig_unlink(&rig, 0, "g"));
    ck_ok(rig_admin(&rig, RPC_OP_STATUS, NULL, &any));
    s = any;
    ck_assert_uint_eq(s->inodes, 3);
    ck_assert_uint_eq(s->orphans, 1);
    ck_assert_uint_eq(s->n_nodes, 1);
    ck_assert_uint_eq(s->nodes[0].n_targets, 2);
    ck_assert_uint_eq(s->nodes[0].targets[1].id, rig.oss[0].target_id[1]);
    ck_assert_uint_eq(s->n_sessions, 1);
    ck_assert_uint_eq(s->sessions[0].opens, 2);
    ck_assert_uint_eq(s->sessions[0].leases, 2);
    ck_assert_uint_eq(s->sessions[0].pid, 100);
    ck_assert_int_eq(memcmp(s->fs_name.data, "test", 4), 0);
    ck_ok(rig_do(&rig, 0, RPC_OP_STATFS, &root, &any));
    fs = any;
    ck_assert_uint_eq(fs->total_bytes, 2000);
    ck_assert_uint_eq(fs->avail_bytes, 1200);
    ck_assert_uint_eq(fs->total_bytes - fs->free_bytes, 2 * 300); /* what targets say is used */
}
END_TEST

START_TEST(a_new_target_where_one_lived_is_refused_until_that_is_given_up)
{
    const struct msg_status_rep *s;
    struct msg_pool_req lost = {.n_targets = 1, .dry_run = true};
    const void *any;
    uint32_t id;

    rig_oss_start(&rig, 0, 1);
    rig_oss_start(&rig, 1, 1);
    id = rig.oss[1].target_id[0];
    lost.targets = &id;
    ck_assert_int_eq(rig_admin(&rig, RPC_OP_TARGET_REPLACE, &lost, NULL), -EBUSY);
    rig_mds_stop(&rig); /* it is in the map, not only remembered */
    rig_mds_start(&rig);
    rig_oss_restart(&rig, 0);
    rig.oss[1].disks = 1; /* the mount point of its only disk, so it does not know who it was */
    rig_oss_start(&rig, 1, 1);
    ck_assert_uint_eq(rig.oss[1].node_id, 0);
    ck_assert_uint_eq(rig.oss[1].target_id[0], 0);
    ck_assert_uint_eq(get_map(0)->n_targets, 2);
    ck_assert_uint_eq(get_map(0)->n_nodes, 3);
    ck_ok(rig_admin(&rig, RPC_OP_STATUS, NULL, &any));
    s = any;
    ck_assert_uint_eq(s->n_refused, 1);
    ck_assert_uint_eq(s->refused[0].instead_of, id);
    ck_assert_int_eq(memcmp(s->refused[0].path.data, "/data", 5), 0);
    rig_pass(&rig, 6000); /* it goes on asking */
    ck_assert_uint_eq(rig.oss[1].node_id, 0);
    ck_ok(rig_admin(&rig, RPC_OP_STATUS, NULL, &any));
    ck_assert_uint_le(((const struct msg_status_rep *)any)->refused[0].seen_ns_ago, 2 * NS_PER_S);
    ck_ok(rig_admin(&rig, RPC_OP_TARGET_REPLACE, &lost, &any));
    rig_pass(&rig, 2000);
    ck_assert_uint_eq(get_map(0)->n_targets, 2);
    lost.dry_run = false;
    ck_ok(rig_admin(&rig, RPC_OP_TARGET_REPLACE, &lost, &any));
    rig_pass(&rig, 2000);
    ck_assert_uint_ne(rig.oss[1].node_id, 0);
    ck_assert_uint_eq(rig.oss[1].target_id[0], 3);
    ck_ok(rig_admin(&rig, RPC_OP_STATUS, NULL, &any));
    ck_assert_uint_eq(((const struct msg_status_rep *)any)->n_refused, 0);
    id = 9;
    ck_assert_int_eq(rig_admin(&rig, RPC_OP_TARGET_REPLACE, &lost, NULL), -ENOENT);
    lost.n_targets = 0;
    ck_assert_int_eq(rig_admin(&rig, RPC_OP_TARGET_REPLACE, &lost, NULL), -EINVAL);
}
END_TEST

START_TEST(a_server_that_is_gone_is_removed_and_its_lost_targets_stay)
{
    struct msg_node_req node = {.dry_run = true};
    struct msg_pool_req lost = {.n_targets = 1};
    const void *any;

    rig_oss_start(&rig, 0, 1);
    rig_oss_start(&rig, 1, 1);
    rig_client_open(&rig, 0);
    node.node = rig.oss[1].node_id;
    lost.targets = &rig.oss[1].target_id[0];
    ck_assert_int_eq(rig_admin(&rig, RPC_OP_NODE_REMOVE, &node, NULL), -EBUSY); /* it is there */
    rig.oss[1].alive = false;
    rig_pass(&rig, 6000);
    ck_assert_int_eq(rig_admin(&rig, RPC_OP_NODE_REMOVE, &node, NULL), -EBUSY); /* its target */
    ck_ok(rig_admin(&rig, RPC_OP_TARGET_REPLACE, &lost, &any));
    ck_ok(rig_admin(&rig, RPC_OP_NODE_REMOVE, &node, &any));
    ck_assert_uint_eq(get_map(0)->n_nodes, 3); /* it was only asked */
    node.dry_run = false;
    ck_ok(rig_admin(&rig, RPC_OP_NODE_REMOVE, &node, &any));
    ck_assert_uint_eq(get_map(0)->n_nodes, 2);
    ck_assert_uint_eq(get_map(0)->n_targets, 2);
    ck_assert_int_eq(rig_admin(&rig, RPC_OP_NODE_REMOVE, &node, NULL), -ENOENT);
    ck_ok(rig_admin(&rig, RPC_OP_STATUS, NULL, &any));
    ck_assert_uint_eq(((const struct msg_status_rep *)any)->n_nodes, 1);
    rig_mds_stop(&rig);
    rig_mds_start(&rig);
    rig_oss_restart(&rig, 0);
    rig_oss_start(&rig, 1, 1); /* with the disk that was given up */
    ck_assert_uint_eq(rig.oss[1].node_id, 0);
    ck_assert_uint_eq(get_map(0)->n_nodes, 2);
    node.node = 1;
    ck_assert_int_eq(rig_admin(&rig, RPC_OP_NODE_REMOVE, &node, NULL), -EBUSY);
}
END_TEST

START_TEST(what_is_refused_is_said_once_though_its_server_asks_every_second)
{
    char path[160];
    const void *any;

    rig_oss_start(&rig, 0, 1);
    snprintf(path, sizeof path, "%s/log", rig.root);
    ck_ok(log_open_file(path));
    rig.oss[0].disks = 1; /* so soon that the one that lived there still counts as online */
    rig_oss_start(&rig, 0, 1);
    rig_pass(&rig, 8000);
    ck_assert_uint_eq(rig_lines_with(path, "refused. Is its disk mounted?"), 1);
    ck_ok(rig_admin(&rig, RPC_OP_STATUS, NULL, &any));
    ck_assert_uint_eq(((const struct msg_status_rep *)any)->n_refused, 1);
}
END_TEST

START_TEST(what_was_refused_is_forgotten_when_the_target_is_there_again)
{
    const void *any;

    rig_oss_start(&rig, 0, 1);
    rig.oss[0].disks = 1;
    rig_oss_start(&rig, 0, 1);
    ck_assert_uint_eq(rig.oss[0].target_id[0], 0);
    rig.oss[0].disks = 0;
    rig_oss_start(&rig, 0, 1);
    ck_assert_uint_eq(rig.oss[0].target_id[0], 1);
    ck_ok(rig_admin(&rig, RPC_OP_STATUS, NULL, &any));
    ck_assert_uint_eq(((const struct msg_status_rep *)any)->n_refused, 0);
}
END_TEST

START_TEST(a_given_up_target_is_forgotten_when_a_new_one_is_in_its_place)
{
    struct msg_pool_req lost = {.n_targets = 1, .targets = (uint32_t[]){1}};
    const void *any;

    rig_oss_start(&rig, 0, 1);
    rig.oss[0].alive = false;
    rig_pass(&rig, 6000);
    ck_ok(rig_admin(&rig, RPC_OP_TARGET_REPLACE, &lost, &any));
    rig_oss_start(&rig, 0, 1); /* its disk after all */
    ck_assert_uint_eq(rig.oss[0].target_id[0], 0);
    ck_ok(rig_admin(&rig, RPC_OP_STATUS, NULL, &any));
    ck_assert_uint_eq(((const struct msg_status_rep *)any)->n_refused, 1);
    rig.oss[0].disks = 1; /* emptied: it does not know who it was */
    rig_oss_start(&rig, 0, 1);
    ck_assert_uint_eq(rig.oss[0].target_id[0], 2);
    ck_ok(rig_admin(&rig, RPC_OP_STATUS, NULL, &any));
    ck_assert_uint_eq(((const struct msg_status_rep *)any)->n_refused, 0);
}
END_TEST

static const struct msg_status_rep *status(void)
{
    const void *any;

    ck_ok(rig_admin(&rig, RPC_OP_STATUS, NULL, &any));
    return any;
}

START_TEST(status_says_at_once_whose_connection_is_closed)
{
    rig_oss_start(&rig, 1, 1);
    rig_client_open(&rig, 0);
    ck_assert_uint_eq(status()->lease_ns, RIG_LEASE);
    ck_assert(!status()->nodes[0].disconnected);
    ck_assert(!status()->sessions[0].disconnected);
    ck_assert_uint_eq(status()->sessions[0].state, MSG_SESSION_LIVE);
    rig.oss[1].alive = rig.client[0].alive = false;
    rig_oss_fini(&rig.oss[1]);
    rig_client_fini(&rig.client[0]);
    rig_settle(&rig);
    ck_assert(status()->nodes[0].disconnected);
    ck_assert(status()->sessions[0].disconnected);
    rig_oss_init(&rig, 1);
    rig_oss_start(&rig, 1, 1);
    ck_assert(!status()->nodes[0].disconnected);
}
END_TEST

static bool fence_arrived(void *session)
{
    return rig_oss_count(&rig.oss[0], RPC_OP_OSS_FENCE, *(uint64_t *)session) > 0;
}

START_TEST(a_session_that_is_being_evicted_says_so)
{
    rig_oss_start(&rig, 0, 1);
    rig_client_open(&rig, 0);
    rig.oss[0].mute = true; /* the fence is not acknowledged */
    rig_client_forget(&rig, 0);
    ck_assert(rig_until(&rig, 10000, fence_arrived, &rig.client[0].session));
    ck_assert_uint_eq(status()->n_sessions, 1);
    ck_assert_uint_eq(status()->sessions[0].state, MSG_SESSION_EVICTED);
}
END_TEST

/* ---- dump ---- */

static unsigned parse_page(unsigned *n_inodes, uint8_t *key, uint32_t *key_len)
{
    uint32_t at = 0;
    unsigned n = 0;

    while (at < rig.bulk_len) {
        struct dump_item item;

        ck_ok(dump_parse(rig.bulk + at, rig.bulk_len - at, &item));
        if (*key_len) {
            int order = memcmp(key, item.key, MIN(*key_len, item.key_len));

            ck_assert(order < 0 || (order == 0 && *key_len < item.key_len));
        }
        memcpy(key, item.key, item.key_len);
        *key_len = item.key_len;
        *n_inodes += key[0] == KEY_INODE;
        at += (uint32_t)item.size;
        n++;
    }
    return n;
}

START_TEST(a_dump_is_one_moment_whatever_happens_meanwhile)
{
    struct msg_write_inline_req write = {.replace = true};
    struct msg_dump_req req = {0};
    uint8_t key[KEY_MAX_BYTES], data[4000] = {1};
    struct iovec iov = {data, sizeof data};
    unsigned inodes = 0, records = 0, pages = 0;
    struct msg_dump_rep rep;
    uint32_t key_len = 0;
    const void *any;
    char name[16];

    rig_oss_start(&rig, 0, 1);
    rig_client_open(&rig, 0);
    for (unsigned i = 0; i < 400; i++) { /* more than one page */
        const struct msg_inode_rep *made;

        snprintf(name, sizeof name, "f%u", i);
        made = rig_create(&rig, 0, name, O_RDWR);
        write.ino = made->inode.attr.ino;
        write.open_id = made->open_id;
        write.layout_generation = made->inode.layout.generation;
        rig.bulk_out = &iov;
        ck_ok(rig_do(&rig, 0, RPC_OP_WRITE_INLINE, &write, NULL));
    }
    do {
        ck_ok(rig_admin(&rig, RPC_OP_DUMP, &req, &any));
        rep = *(const struct msg_dump_rep *)any;
        ck_assert_uint_eq(parse_page(&inodes, key, &key_len), rep.records);
        records += (unsigned)rep.records;
        snprintf(name, sizeof name, "f%u", pages++);
        ck_ok(rig_unlink(&rig, 0, name)); /* does not show */
        req.dump = rep.dump;
        req.after = (struct msg_bytes){key, key_len};
    } while (!rep.eof);
    ck_assert_uint_eq(inodes, 401);
    ck_assert_uint_gt(records, 1200);
    ck_assert_uint_gt(pages, 1);
    req.end = true;
    ck_ok(rig_admin(&rig, RPC_OP_DUMP, &req, NULL));
    req.end = false;
    ck_assert_int_eq(rig_admin(&rig, RPC_OP_DUMP, &req, NULL), -ENOENT);
}
END_TEST

START_TEST(dumps_are_bounded_and_given_back_when_their_caller_is_gone)
{
    struct msg_dump_req begin = {0};

    rig_oss_start(&rig, 0, 1);
    for (unsigned i = 0; i < 4; i++)
        ck_ok(rig_admin(&rig, RPC_OP_DUMP, &begin, NULL));
    ck_assert_int_eq(rig_admin(&rig, RPC_OP_DUMP, &begin, NULL), -AIFS_EBUSY_SERVER);
    for (unsigned i = 0; i < 61; i++)
        rig_pass(&rig, 1000);
    ck_ok(rig_admin(&rig, RPC_OP_DUMP, &begin, NULL));
}
END_TEST

/* Of the link with this session. */
static struct msg_load load_of(uint64_t session)
{
    const struct msg_load_rep *rep;
    const void *any;

    ck_ok(rig_admin(&rig, RPC_OP_LOAD, NULL, &any));
    rep = any;
    for (uint32_t i = 0; i < rep->n_links; i++)
        if (rep->links[i].session == session)
            return rep->links[i];
    ck_abort_msg("no such session");
}

START_TEST(the_load_is_told_by_session_and_what_waits_with_it)
{
    const struct msg_inode_rep *rep;
    struct msg_ino_req root = {.ino = KEY_ROOT_INO};
    struct msg_open_req open = {.flags = O_RDWR};
    struct rig_call call = {0};
    struct msg_load was, is;
    uint64_t seq;

    rig_oss_start(&rig, 0, 1);
    rig_client_open(&rig, 0);
    rig_client_open(&rig, 1);
    rep = rig_create(&rig, 0, "f", O_RDWR);
    open.ino = rep->inode.attr.ino;
    seq = rep->inode.lease_seq;
    rig_pass(&rig, 10000); /* renewals are no load */
    was = load_of(rig.client[0].session);
    ck_ok(rig_do(&rig, 0, RPC_OP_GETATTR, &root, NULL));
    ck_ok(rig_do(&rig, 0, RPC_OP_GETATTR, &root, NULL));
    rig_pass(&rig, 10000);
    is = load_of(rig.client[0].session);
    ck_assert_uint_eq(is.operations, was.operations + 2);
    ck_assert_uint_eq(is.waiting, 0);
    ck_assert_uint_eq(is.role, CRYPTO_ROLE_CLIENT);

    rig.client[0].release = false;
    rig_send(&rig, 1, 1, &call, RPC_OP_OPEN, &open);
    rig_pass(&rig, 300);
    is = load_of(rig.client[1].session);
    ck_assert_uint_eq(is.waiting, 1);
    ck_assert_uint_eq(is.oldest_op, RPC_OP_OPEN);
    ck_assert_uint_ge(is.oldest_ns, 200 * NS_PER_MS);
    rig_give(&rig, 0, open.ino, MSG_LEASE_NONE, seq, 0);
    ck_assert(rig_until(&rig, 1000, rig_is_done, &call));
    ck_ok(call.status);
    rig_forget(&call);
    is = load_of(rig.client[1].session);
    ck_assert_uint_eq(is.waiting, 0);
    ck_assert_uint_ge(is.busy_ns, 200 * NS_PER_MS);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, servers_get_ids_and_keep_them_over_restarts_of_everybody);
    tcase_add_test(t, a_silent_server_is_offline_and_must_register_when_it_is_back);
    tcase_add_test(t, a_copy_of_a_server_is_refused_while_that_is_there);
    tcase_add_test(t, a_copy_of_a_target_is_not_served_while_that_is_there);
    tcase_add_test(t, a_server_with_the_name_and_address_of_one_that_is_there_is_refused);
    tcase_add_test(t, of_two_servers_that_come_together_under_one_name_and_address_one_is_refused);
    tcase_add_test(t, servers_from_before_a_restart_have_time_to_come_back);
    tcase_add_test(t, sessions_are_told_of_a_new_map);
    tcase_add_test(t, pools_are_made_and_filled_with_new_targets_only);
    tcase_add_test(t, status_and_statfs_say_what_there_is);
    tcase_add_test(t, a_new_target_where_one_lived_is_refused_until_that_is_given_up);
    tcase_add_test(t, a_server_that_is_gone_is_removed_and_its_lost_targets_stay);
    tcase_add_test(t, what_is_refused_is_said_once_though_its_server_asks_every_second);
    tcase_add_test(t, what_was_refused_is_forgotten_when_the_target_is_there_again);
    tcase_add_test(t, a_given_up_target_is_forgotten_when_a_new_one_is_in_its_place);
    tcase_add_test(t, status_says_at_once_whose_connection_is_closed);
    tcase_add_test(t, a_session_that_is_being_evicted_says_so);
    tcase_add_test(t, the_load_is_told_by_session_and_what_waits_with_it);
    tcase_add_test(t, a_dump_is_one_moment_whatever_happens_meanwhile);
    tcase_add_test(t, dumps_are_bounded_and_given_back_when_their_caller_is_gone);
}

int main(void)
{
    return rig_main("mds-cluster", add);
}
