// SPDX-License-Identifier: Apache-2.0
/* Cluster maps: growing them, sharing them, checking them, and the way through the codec. */
#include <check.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/mem.h"
#include "proto/codec.h"
#include "proto/ops.h"
#include "tests/support/suite.h"
#include "tests/unit/proto/example_map.h"

static struct cluster_map *m;

static void start(void)
{
    m = example_map(3, 2);
}

static void stop(void)
{
    map_put(m);
}

START_TEST(what_is_in_a_map_is_found)
{
    ck_assert_int_eq(map_check(m), 0);
    ck_assert_uint_eq(m->n_nodes, 4);
    ck_assert_uint_eq(m->n_targets, 6);
    ck_assert_uint_eq(map_node(m, 4)->id, 4);
    ck_assert_ptr_null(map_node(m, 5));
    ck_assert_ptr_null(map_node(m, 0));
    ck_assert_uint_eq(map_target(m, 6)->node, 4);
    ck_assert_ptr_null(map_target(m, 7));
    ck_assert_str_eq(map_pool(m, 1)->name, "default");
    ck_assert_ptr_eq(map_pool_by_name(m, "default", 7), map_pool(m, 1));
    ck_assert_ptr_null(map_pool_by_name(m, "defaul", 6));
    ck_assert_ptr_null(map_table(m, 1, 2));
}
END_TEST

/* Neighbours in a table are on different servers: 1 3 5 on nodes 2 3 4, then 2 4 6. */
START_TEST(tables_take_targets_from_each_server_in_turn)
{
    static const uint32_t expect[] = {1, 3, 5, 2, 4, 6};
    const struct map_table *t = map_table(m, 1, 1);

    ck_assert_uint_eq(t->n_chains, 6);
    for (unsigned i = 0; i < 6; i++)
        ck_assert_uint_eq(map_chain(m, t->chains[i])->targets[0], expect[i]);
}
END_TEST

START_TEST(growing_only_appends)
{
    struct map_target x = {
        .id = 90, .node = 2, .pool = 1, .uuid.b = {90}, .state = MAP_TARGET_ONLINE};
    uint32_t before[6];
    const struct map_table *t = map_table(m, 1, 1);

    memcpy(before, t->chains, sizeof before);
    ck_assert_int_eq(map_add_target(m, &x), 0);
    ck_assert_int_eq(map_grow_tables(m, 1), 0);
    ck_assert_int_eq(map_grow_tables(m, 1), 0); /* nothing more to do */
    t = map_table(m, 1, 1);
    ck_assert_uint_eq(t->n_chains, 7);
    ck_assert_mem_eq(before, t->chains, sizeof before);
    ck_assert_uint_eq(map_chain(m, t->chains[6])->targets[0], 90);
    ck_assert_uint_eq(map_target(m, 90)->id, 90); /* sparse ids are found too */
    ck_assert_int_eq(map_check(m), 0);
    ck_assert_int_eq(map_grow_tables(m, 9), -ENOENT);
}
END_TEST

START_TEST(additions_are_refused_when_they_clash)
{
    struct map_node n = {.id = 3, .type = MAP_NODE_OSS, .uuid.b = {77}};
    struct map_target x = {.id = 6, .node = 2, .pool = 1, .uuid.b = {78}};
    uint32_t id = 0;

    ck_assert_int_eq(map_add_node(m, &n), -EEXIST);
    n.id = 30;
    n.uuid = m->nodes[0].uuid;
    ck_assert_int_eq(map_add_node(m, &n), -EEXIST);
    ck_assert_int_eq(map_add_target(m, &x), -EEXIST);
    x.id = 7;
    x.node = 99;
    ck_assert_int_eq(map_add_target(m, &x), -ENOENT);
    x.node = 2;
    x.pool = 99;
    ck_assert_int_eq(map_add_target(m, &x), -ENOENT);
    ck_assert_int_eq(map_add_pool(m, "default", &id), -EEXIST);
    ck_assert_int_eq(map_add_pool(m, "", &id), -EINVAL);
    ck_assert_int_eq(map_add_pool(m, "fast", &id), 0);
    ck_assert_uint_eq(id, 2);
}
END_TEST

START_TEST(a_copy_is_deep_and_counted)
{
    struct cluster_map *c = map_copy(m);

    ck_assert_uint_eq(atomic_load(&c->refs), 1);
    ck_assert_ptr_eq(map_get(c), c);
    map_put(c);
    c->tables[0].chains[0] = 999;
    ck_assert_int_eq(map_check(c), -AIFS_EPROTO);
    ck_assert_int_eq(map_check(m), 0);
    map_put(c);
    map_put(NULL);
}
END_TEST

static void broken(void (*harm)(struct cluster_map *c))
{
    struct cluster_map *c = map_copy(m);

    harm(c);
    ck_assert_int_eq(map_check(c), -AIFS_EPROTO);
    map_put(c);
}

static void harm_order(struct cluster_map *c)
{
    c->targets[0].id = 2;
}
static void harm_zero(struct cluster_map *c)
{
    c->nodes[0].id = 0;
}
static void harm_target_node(struct cluster_map *c)
{
    c->targets[0].node = 1; /* a metadata server */
}
static void harm_target_pool(struct cluster_map *c)
{
    c->targets[0].pool = 8;
}
static void harm_chain(struct cluster_map *c)
{
    c->chains[0].targets[0] = 60;
}
static void harm_chain_empty(struct cluster_map *c)
{
    c->chains[0].n_targets = 0;
}
static void harm_chain_pool(struct cluster_map *c)
{
    c->targets[0].pool = 0;
}
static void harm_chain_length(struct cluster_map *c)
{
    c->chains[0].n_targets = 2;
    c->chains[0].targets[1] = 2;
}
static void harm_table(struct cluster_map *c)
{
    c->tables[0].copies = 0;
}
static void harm_first(struct cluster_map *c)
{
    c->tables[0].first = 1; /* and nothing live, but five more chains */
}
static void harm_live(struct cluster_map *c)
{
    c->tables[0].first = 2;
    c->tables[0].live = 0x80000003; /* twice that is 6 again, in 32 bits */
}
static void harm_shard(struct cluster_map *c)
{
    c->shards[0].node = 2; /* an object storage server */
}

START_TEST(references_that_lead_nowhere_are_found)
{
    broken(harm_order);
    broken(harm_zero);
    broken(harm_target_node);
    broken(harm_target_pool);
    broken(harm_chain);
    broken(harm_chain_empty);
    broken(harm_chain_pool);
    broken(harm_chain_length);
    broken(harm_table);
    broken(harm_first);
    broken(harm_live);
    broken(harm_shard);
}
END_TEST

START_TEST(a_map_survives_the_codec)
{
    struct msg_map_rep rep = {.map = m};
    const struct msg_map_rep *back_rep;
    struct cluster_map *back;
    const void *data, *again;
    uint32_t len, len_again;
    struct arena a;
    void *msg;

    arena_init(&a, 0);
    ck_assert_int_eq(codec_map_encode(m, &a, &data, &len), 0);
    ck_assert_int_eq(codec_map_decode(data, len, &a, &back), 0);
    ck_assert_uint_eq(back->epoch, m->epoch);
    ck_assert_str_eq(back->fs_name, "example");
    ck_assert_str_eq(back->nodes[1].addresses[0], "10.0.0.2:7600");
    ck_assert_uint_eq(atomic_load(&back->refs), 0);
    ck_assert_int_eq(codec_map_encode(back, &a, &again, &len_again), 0);
    ck_assert(len == len_again && memcmp(data, again, len) == 0);
    ck_assert_int_eq(codec_encode(RPC_OP_MAP_GET, true, &rep, &a, &data, &len), 0);
    ck_assert_int_eq(codec_decode(RPC_OP_MAP_GET, true, data, len, &a, &msg), 0);
    back_rep = msg;
    ck_assert_uint_eq(back_rep->map->n_targets, 6);
    m->chains[2].targets[0] = 77;
    ck_assert_int_eq(codec_map_encode(m, &a, &data, &len), 0);
    ck_assert_int_eq(codec_map_decode(data, len, &a, &back), -AIFS_EPROTO);
    arena_reset(&a);
}
END_TEST

START_TEST(a_map_with_a_target_given_up_survives_the_codec)
{
    const struct map_table *t;
    struct cluster_map *back;
    const void *data;
    struct arena a;
    uint32_t len;

    arena_init(&a, 0);
    ck_assert_int_eq(map_give_up(m, 4), 0);
    ck_assert_int_eq(map_give_up(m, 9), -ENOENT);
    ck_assert_int_eq(map_check(m), 0);
    ck_assert_int_eq(codec_map_encode(m, &a, &data, &len), 0);
    ck_assert_int_eq(codec_map_decode(data, len, &a, &back), 0);
    ck_assert(map_target(back, 4)->given_up && !map_target(back, 5)->given_up);
    t = map_table(back, 1, 1);
    ck_assert_uint_eq(t->first, 6);
    ck_assert_uint_eq(map_table_live(t), 5);
    ck_assert_uint_eq(t->n_chains, 6 + 5 + 4);
    arena_reset(&a);
}
END_TEST

START_TEST(a_table_has_an_end)
{
    int rc = 0;
    unsigned n = 0;

    map_put(m);
    m = example_map(3, 4); /* with fewer targets it takes longer, and copies more each time */
    for (uint32_t id = 91; rc == 0; id++, n++) { /* one new target for each that is given up */
        struct map_target x = {
            .id = id, .node = 2, .pool = 1, .uuid.b = {99, (uint8_t)id, (uint8_t)(id >> 8)}};

        x.state = MAP_TARGET_ONLINE;
        ck_assert_int_eq(map_add_target(m, &x), 0);
        rc = map_grow_tables(m, 1);
        if (rc == 0)
            rc = map_give_up(m, id);
    }
    ck_assert_int_eq(rc, -ENOSPC);
    ck_assert_uint_gt(n, 1000);
}
END_TEST

START_TEST(a_large_cluster_fits_a_message)
{
    struct cluster_map *big = example_map(500, 16);
    struct cluster_map *back;
    struct arena a;
    const void *data;
    uint32_t len;

    arena_init(&a, 32u << 20);
    ck_assert_int_eq(codec_map_encode(big, &a, &data, &len), 0);
    ck_assert_int_eq(codec_map_decode(data, len, &a, &back), 0);
    ck_assert_uint_eq(back->n_chains, 8000);
    arena_reset(&a);
    map_put(big);
}
END_TEST

SUITE_MAIN("map", start, stop, what_is_in_a_map_is_found,
           tables_take_targets_from_each_server_in_turn, growing_only_appends,
           additions_are_refused_when_they_clash, a_copy_is_deep_and_counted,
           references_that_lead_nowhere_are_found, a_map_survives_the_codec,
           a_map_with_a_target_given_up_survives_the_codec, a_table_has_an_end,
           a_large_cluster_fits_a_message)
