// SPDX-License-Identifier: Apache-2.0
/* Striping arithmetic: the vectors of docs/placement.md, and what a new file's layout is made
 * of. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "common/base/err.h"
#include "proto/layout.h"
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

/* docs/placement.md, "Test vectors", 1 */
START_TEST(chunks_lie_where_the_documentation_says)
{
    static const struct {
        struct msg_layout l;
        uint64_t offset, chunk;
        uint32_t within, index;
    } v[] = {
        {{1, 1, 6, 1u << 20, 6, 4, 0}, 0, 0, 0, 4},
        {{1, 1, 6, 1u << 20, 6, 4, 0}, 1048575, 0, 1048575, 4},
        {{1, 1, 6, 1u << 20, 6, 4, 0}, 1048576, 1, 0, 5},
        {{1, 1, 6, 1u << 20, 6, 4, 0}, 2097152, 2, 0, 0},
        {{1, 1, 6, 1u << 20, 6, 4, 0}, 7340033, 7, 1, 5},
        {{1, 1, 6, 1u << 20, 2, 5, 0}, 3145728, 3, 0, 0},
        {{1, 1, 6, 1u << 20, 2, 5, 0}, 4194304, 4, 0, 5},
        {{1, 1, 6, 65536, 1, 3, 0}, 1099511627776, 16777216, 0, 3},
        {{1, 1, 1, 1u << 26, 1, 0, 0}, UINT64_MAX, 274877906943, 67108863, 0},
        {{1, 1, 65536, 65536, 65536, 65535, 0}, UINT64_MAX, 281474976710655, 65535, 65534},
    };

    for (size_t i = 0; i < ARRAY_LEN(v); i++) {
        ck_assert_int_eq(layout_check(&v[i].l), 0);
        ck_assert_uint_eq(layout_chunk(&v[i].l, v[i].offset), v[i].chunk);
        ck_assert_uint_eq(layout_chunk_offset(&v[i].l, v[i].offset), v[i].within);
        ck_assert_uint_eq(layout_table_index(&v[i].l, v[i].chunk), v[i].index);
    }
}
END_TEST

/* docs/placement.md, "Test vectors", 2 */
START_TEST(the_start_comes_from_the_inode_number)
{
    static const struct {
        uint64_t ino;
        uint32_t start;
    } v[] = {
        {1u, 5},         {2u, 4}, {3u, 3}, {4u, 4}, {1000u, 4}, {4503599627370497u, 5},
        {UINT64_MAX, 2}, {0u, 1},
    };
    struct msg_layout l;

    for (size_t i = 0; i < ARRAY_LEN(v); i++) {
        ck_assert_int_eq(layout_make(m, NULL, NULL, v[i].ino, &l), 0);
        ck_assert_uint_eq(l.start, v[i].start);
    }
}
END_TEST

START_TEST(starts_are_spread_evenly)
{
    unsigned seen[6] = {0};
    struct msg_layout l;

    for (uint64_t ino = 1; ino <= 6000; ino++) {
        ck_assert_int_eq(layout_make(m, NULL, NULL, ino, &l), 0);
        seen[l.start]++;
    }
    for (unsigned i = 0; i < 6; i++)
        ck_assert(seen[i] > 850 && seen[i] < 1150);
}
END_TEST

START_TEST(a_file_is_spread_over_all_chains_by_default)
{
    struct msg_layout l;

    ck_assert_int_eq(layout_make(m, NULL, NULL, 5, &l), 0);
    ck_assert_uint_eq(l.pool, 1);
    ck_assert_uint_eq(l.copies, 1);
    ck_assert_uint_eq(l.table_len, 6);
    ck_assert_uint_eq(l.stripe_count, 6);
    ck_assert_uint_eq(l.chunk_bytes, 1u << 20);
    ck_assert_uint_eq(layout_chain(&l, m, 0)->id, layout_chain(&l, m, 6)->id);
    ck_assert_uint_ne(layout_chain(&l, m, 0)->id, layout_chain(&l, m, 1)->id);
}
END_TEST

START_TEST(what_is_asked_comes_before_what_is_inherited)
{
    struct msg_stripe asked = {.stripe_count = 2},
                      inherited = {.stripe_count = 4, .chunk_bytes = 1u << 22};
    struct msg_layout l;

    ck_assert_int_eq(layout_make(m, &asked, &inherited, 1, &l), 0);
    ck_assert_uint_eq(l.stripe_count, 2);
    ck_assert_uint_eq(l.chunk_bytes, 1u << 22);
    asked.all = true;
    ck_assert_int_eq(layout_make(m, &asked, &inherited, 1, &l), 0);
    ck_assert_uint_eq(l.stripe_count, 6);
    asked.inherit = true;
    ck_assert_int_eq(layout_make(m, &asked, &inherited, 1, &l), 0);
    ck_assert_uint_eq(l.stripe_count, 4);
    asked = (struct msg_stripe){.stripe_count = 100, .has_start = true, .start = 5};
    ck_assert_int_eq(layout_make(m, &asked, NULL, 1, &l), 0);
    ck_assert_uint_eq(l.stripe_count, 6); /* as many as there are */
    ck_assert_uint_eq(l.start, 5);
    inherited = (struct msg_stripe){.has_start = true, .start = 8};
    ck_assert_int_eq(layout_make(m, NULL, &inherited, 1, &l), 0);
    ck_assert_uint_eq(l.start, 2);
}
END_TEST

START_TEST(impossible_layouts_are_refused)
{
    struct msg_stripe s = {.pool = {"fast", 4}};
    struct msg_layout l = {.pool = 77};
    uint32_t id = 0;

    ck_assert_int_eq(layout_make(m, &s, NULL, 1, &l), -ENOENT);
    ck_assert_int_eq(map_add_pool(m, "fast", &id), 0);
    ck_assert_int_eq(layout_make(m, &s, NULL, 1, &l), -ENOSPC);
    s = (struct msg_stripe){.chunk_bytes = 100000};
    ck_assert_int_eq(layout_make(m, &s, NULL, 1, &l), -EINVAL);
    s = (struct msg_stripe){.chunk_bytes = 1u << 27};
    ck_assert_int_eq(layout_make(m, &s, NULL, 1, &l), -EINVAL);
    s = (struct msg_stripe){.copies = 2};
    ck_assert_int_eq(layout_make(m, &s, NULL, 1, &l), -EINVAL);
    s = (struct msg_stripe){.has_start = true, .start = 6};
    ck_assert_int_eq(layout_make(m, &s, NULL, 1, &l), -EINVAL);
    ck_assert_uint_eq(l.pool, 77); /* untouched */
}
END_TEST

START_TEST(an_old_map_has_no_chain_for_a_new_layout)
{
    struct msg_layout l = {1, 1, 7, 1u << 20, 7, 0, 0};

    ck_assert_ptr_null(layout_chain(&l, m, 0));
    l.pool = 9;
    ck_assert_ptr_null(layout_chain(&l, m, 0));
}
END_TEST

SUITE_MAIN("layout", start, stop, chunks_lie_where_the_documentation_says,
           the_start_comes_from_the_inode_number, starts_are_spread_evenly,
           a_file_is_spread_over_all_chains_by_default,
           what_is_asked_comes_before_what_is_inherited, impossible_layouts_are_refused,
           an_old_map_has_no_chain_for_a_new_layout)
