// SPDX-License-Identifier: Apache-2.0
/* The hash map: finding among equals, growing, walking with removal, failing to grow. Lists too, as
 * they are as small. */
#include "common/base/hmap.h"

#include <errno.h>
#include <string.h>

#include "common/base/list.h"
#include "common/fault/fault.h"
#include "tests/support/suite.h"

enum { N = 5000 };

struct item {
    struct hmap_node node;
    struct list link;
    unsigned key;
    bool seen;
};

static struct item items[N];

static void fill(struct hmap *m, size_t expected)
{
    ck_assert_int_eq(hmap_init(m, expected), 0);
    for (unsigned i = 0; i < N; i++) {
        items[i].key = i;
        hmap_insert(m, &items[i].node, hash_u64(i));
    }
}

static struct item *find(const struct hmap *m, unsigned key)
{
    struct hmap_node *n;

    for (n = hmap_first(m, hash_u64(key)); n; n = hmap_next(n)) {
        struct item *i = container_of(n, struct item, node);

        if (i->key == key)
            return i;
    }
    return NULL;
}

START_TEST(everything_inserted_is_found_after_growing)
{
    struct hmap m;

    fill(&m, 0);
    ck_assert_uint_eq(m.count, N);
    ck_assert_uint_ge(m.n_buckets, N);
    for (unsigned i = 0; i < N; i++)
        ck_assert_ptr_eq(find(&m, i), &items[i]);
    ck_assert_ptr_null(find(&m, N));
    hmap_fini(&m);
}
END_TEST

START_TEST(equal_hashes_come_one_after_the_other)
{
    struct item same[5];
    struct hmap_node *n;
    struct hmap m;
    unsigned found = 0;

    fill(&m, 0);
    for (unsigned i = 0; i < 5; i++)
        hmap_insert(&m, &same[i].node, 42);
    for (n = hmap_first(&m, 42); n; n = hmap_next(n))
        found++;
    ck_assert_uint_eq(found, 5);
    hmap_fini(&m);
}
END_TEST

START_TEST(a_walk_sees_every_node_once)
{
    struct hmap_node *n, *next;
    struct hmap m;
    size_t pos, seen = 0;

    fill(&m, N);
    hmap_for_each (n, next, pos, &m) {
        struct item *i = container_of(n, struct item, node);

        ck_assert(!i->seen);
        i->seen = true;
        seen++;
    }
    ck_assert_uint_eq(seen, N);
    hmap_fini(&m);
}
END_TEST

START_TEST(a_walk_may_remove_the_node_it_is_at)
{
    struct hmap_node *n, *next;
    struct hmap m;
    size_t pos, seen = 0;

    fill(&m, 0);
    hmap_for_each (n, next, pos, &m) {
        seen++;
        if (container_of(n, struct item, node)->key % 3) {
            hmap_remove(&m, n);
            memset(n, 0xa5, sizeof *n); /* as if freed */
        }
    }
    ck_assert_uint_eq(seen, N);
    ck_assert_uint_eq(m.count, (N + 2) / 3);
    for (unsigned i = 0; i < N; i++)
        ck_assert_ptr_eq(find(&m, i), i % 3 ? NULL : &items[i]);
    hmap_for_each (n, next, pos, &m)
        hmap_remove(&m, n);
    ck_assert_uint_eq(m.count, 0);
    hmap_fini(&m);
}
END_TEST

START_TEST(a_map_that_cannot_grow_gets_slower_not_wrong)
{
    struct hmap m;

    ck_assert_int_eq(hmap_init(&m, 8), 0);
    ck_assert_int_eq(fault_arm("mem.alloc=error"), 0);
    for (unsigned i = 0; i < 500; i++) {
        items[i].key = i;
        hmap_insert(&m, &items[i].node, hash_u64(i));
    }
    ck_assert_uint_eq(m.n_buckets, 8);
    for (unsigned i = 0; i < 500; i++)
        ck_assert_ptr_eq(find(&m, i), &items[i]);
    fault_disarm_all();
    hmap_fini(&m);
}
END_TEST

START_TEST(without_memory_there_is_no_map)
{
    struct hmap m;

    ck_assert_int_eq(fault_arm("mem.alloc=error@1"), 0);
    ck_assert_int_eq(hmap_init(&m, 8), -ENOMEM);
    fault_disarm_all();
}
END_TEST

START_TEST(hashes_depend_on_every_byte_the_length_and_the_seed)
{
    unsigned char data[24] = {0};
    uint64_t plain;

    for (size_t len = 0; len <= sizeof data; len++) {
        plain = hash_bytes(data, len, 1);
        ck_assert(plain != hash_bytes(data, len, 2));
        if (len)
            ck_assert(plain != hash_bytes(data, len - 1, 1));
        for (size_t i = 0; i < len; i++) {
            data[i] = 1;
            ck_assert(plain != hash_bytes(data, len, 1));
            data[i] = 0;
        }
    }
}
END_TEST

START_TEST(low_bits_of_hashes_spread)
{
    unsigned buckets[64] = {0};

    for (uint64_t i = 0; i < 6400; i++)
        buckets[hash_u64(i << 40) % 64]++;
    for (unsigned i = 0; i < 64; i++) {
        ck_assert_uint_gt(buckets[i], 50);
        ck_assert_uint_lt(buckets[i], 160);
    }
}
END_TEST

START_TEST(eight_neighbours_are_side_by_side_and_others_spread)
{
    unsigned lines[64] = {0};

    for (uint64_t i = 0; i < 6400; i++) {
        for (uint64_t k = 0; k < 8; k++)
            ck_assert_uint_eq(hash_near(8 * i + k, 7), hash_near(8 * i, 7) + k);
        lines[hash_near(8 * i, 7) / 8 % 64]++;
    }
    for (unsigned i = 0; i < 64; i++) {
        ck_assert_uint_gt(lines[i], 50);
        ck_assert_uint_lt(lines[i], 160);
    }
    ck_assert(hash_near(8, 7) != hash_near(8, 9));
    ck_assert(hash_near(UINT64_MAX, 0) != hash_near(UINT64_MAX >> 3, 0));
}
END_TEST

START_TEST(lists_keep_order_and_removal_is_idempotent)
{
    struct list a, b, *e, *tmp;
    unsigned expected = 0;

    list_init(&a);
    list_init(&b);
    ck_assert_ptr_null(list_pop_front(&a));
    for (unsigned i = 0; i < 10; i++) {
        items[i].key = i;
        list_push_back(i < 5 ? &a : &b, &items[i].link);
    }
    list_splice(&a, &b);
    ck_assert(list_empty(&b));
    list_remove(&items[3].link);
    list_remove(&items[3].link);
    list_push_front(&a, &items[3].link);
    ck_assert_uint_eq(list_entry(list_pop_front(&a), struct item, link)->key, 3);
    list_for_each_safe (e, tmp, &a) {
        expected += expected == 3;
        ck_assert_uint_eq(list_entry(e, struct item, link)->key, expected++);
        list_remove(e);
    }
    ck_assert(list_empty(&a));
}
END_TEST

SUITE_MAIN("hmap", NULL, NULL, everything_inserted_is_found_after_growing,
           equal_hashes_come_one_after_the_other, a_walk_sees_every_node_once,
           a_walk_may_remove_the_node_it_is_at, a_map_that_cannot_grow_gets_slower_not_wrong,
           without_memory_there_is_no_map, hashes_depend_on_every_byte_the_length_and_the_seed,
           low_bits_of_hashes_spread, eight_neighbours_are_side_by_side_and_others_spread,
           lists_keep_order_and_removal_is_idempotent)
