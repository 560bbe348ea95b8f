/* SPDX-License-Identifier: Apache-2.0 */
/* The store by itself: what its reads find, and what they do not walk over. */
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/err.h"
#include "mds/store/key_fmt.h"
#include "mds/store/store.h"
#include "tests/support/suite.h"

#define ck_ok(expr) ck_assert_int_eq((expr), 0)

static char dir[128];
static struct store *store;

static void setup(void)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(dir, sizeof dir, "%s/aifs-store-XXXXXX", tmp ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_ok(store_open(dir, &(struct store_options){.cache_bytes = 1 << 20, .create = true}, &store));
}

static void teardown(void)
{
    char command[160];

    store_close(store);
    snprintf(command, sizeof command, "rm -r '%s'", dir);
    ck_ok(system(command));
}

static struct key inode(uint64_t n)
{
    struct key k;

    key_number(&k, KEY_INODE, n);
    return k;
}

static void change(uint64_t first, uint64_t n, bool there)
{
    struct store_batch *b;

    ck_ok(store_batch_create(store, &b));
    for (uint64_t i = first; i < first + n; i++) {
        struct key k = inode(i);

        if (there)
            store_batch_put(b, k.b, k.len, "x", 1);
        else
            store_batch_delete(b, k.b, k.len);
    }
    ck_ok(store_commit(store, b, false));
    store_batch_destroy(b);
}

static int first_of(uint64_t from, uint64_t to, struct key *ret_key)
{
    const struct key a = inode(from), b = inode(to);

    return store_first(store, &a, &b, ret_key);
}

START_TEST(the_first_key_of_a_range_is_found_and_the_one_behind_its_end_is_not)
{
    const struct key ten = inode(10);
    struct key found = {0};

    ck_assert_int_eq(first_of(0, 100, &found), -ENOENT);
    change(10, 1, true);
    ck_assert_int_eq(first_of(0, 10, &found), -ENOENT);
    ck_assert_int_eq(first_of(11, 100, &found), -ENOENT);
    ck_assert_int_eq(found.len, 0);
    ck_ok(first_of(0, 11, &found));
    ck_assert_int_eq(found.len, ten.len);
    ck_assert_mem_eq(found.b, ten.b, ten.len);
    ck_ok(first_of(10, 11, &found));
    change(10, 1, false);
    ck_assert_int_eq(first_of(0, 11, &found), -ENOENT);
}
END_TEST

START_TEST(what_was_deleted_behind_a_range_is_not_walked_over)
{
    const uint64_t gone = 5000;
    rocksdb_perfcontext_t *counts = rocksdb_perfcontext_create();
    struct key found;

    change(1000, gone, true);
    change(1000, gone, false);
    rocksdb_set_perf_level(rocksdb_enable_count);
    rocksdb_perfcontext_reset(counts);
    ck_assert_int_eq(first_of(0, 1000, &found), -ENOENT);
    ck_assert_uint_eq(rocksdb_perfcontext_metric(counts, rocksdb_internal_delete_skipped_count), 0);
    ck_assert_int_eq(first_of(0, 1000 + gone, &found), -ENOENT);
    ck_assert_uint_ge(rocksdb_perfcontext_metric(counts, rocksdb_internal_delete_skipped_count),
                      gone);
    rocksdb_perfcontext_destroy(counts);
}
END_TEST

SUITE_MAIN("mds-store", setup, teardown,
           the_first_key_of_a_range_is_found_and_the_one_behind_its_end_is_not,
           what_was_deleted_behind_a_range_is_not_walked_over)
