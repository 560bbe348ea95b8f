/* SPDX-License-Identifier: Apache-2.0 */
/* The shard itself: making and opening it, what it refuses, what readers see while it writes. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/hmap.h"
#include "mds/ops/exec.h"
#include "mds/shard/format.h"
#include "tests/component/mds/bed.h"

static struct bed bed;
#define ROOT KEY_ROOT_INO

static void setup(void)
{
    bed_open(&bed);
}

static void teardown(void)
{
    bed_check_tree(&bed);
    bed_close(&bed);
}

static char folder[128];
static const struct shard_format fmt = {.fs_name = "x", .root_mode = 0755};

static void folder_make(void)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(folder, sizeof(folder), "%s/aifs-fmt-XXXXXX", tmp ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void folder_remove(void)
{
    char cmd[160];

    snprintf(cmd, sizeof(cmd), "rm -rf '%s'", folder);
    ck_ok(system(cmd));
}

START_TEST(a_file_system_is_made_once_and_in_an_empty_folder)
{
    char path[160];
    struct uuid a, b;
    FILE *f;

    folder_make();
    ck_ok(shard_make(folder, 0, &fmt, mds_exec_table));
    ck_assert_int_eq(shard_make(folder, 0, &fmt, mds_exec_table), -EEXIST);
    ck_ok(shard_dir_node(folder, &a));
    ck_ok(shard_dir_node(folder, &b));
    ck_assert(uuid_equal(&a, &b));
    folder_remove();
    folder_make();
    snprintf(path, sizeof(path), "%s/precious", folder);
    f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fclose(f);
    ck_assert_int_eq(shard_make(folder, 0, &fmt, mds_exec_table), -ENOTEMPTY);
    ck_ok(access(path, F_OK));
    unlink(path);
    /* what an attempt that was cut short leaves is no obstacle */
    snprintf(path, sizeof(path), "%s/shard0.new", folder);
    ck_ok(mkdir(path, 0700));
    ck_ok(shard_make(folder, 0, &fmt, mds_exec_table));
    folder_remove();
}
END_TEST

START_TEST(a_folder_belongs_to_one_process)
{
    int one, two;

    folder_make();
    ck_ok(shard_dir_lock(folder, &one));
    ck_assert_int_eq(shard_dir_lock(folder, &two), -EBUSY);
    close(one);
    ck_ok(shard_dir_lock(folder, &two));
    close(two);
    folder_remove();
}
END_TEST

static void poke_format(size_t offset, uint8_t value)
{
    struct store_options o = {0};
    struct store_value v = {0};
    struct store_batch *b;
    struct store *s;
    uint8_t copy[sizeof(struct format_rec)];
    struct key k;

    if (bed.shard)
        bed_stop(&bed);
    ck_ok(store_open(bed.dir, &o, &s));
    key_single(&k, KEY_FORMAT);
    ck_ok(store_get(s, NULL, k.b, k.len, &v));
    ck_assert_uint_eq(v.len, sizeof(copy));
    memcpy(copy, v.data, sizeof(copy));
    store_value_release(&v);
    copy[offset] = value;
    ck_ok(store_batch_create(s, &b));
    store_batch_put(b, k.b, k.len, copy, sizeof(copy));
    ck_ok(store_commit(s, b, true));
    store_batch_destroy(b);
    store_close(s);
}

START_TEST(an_unknown_format_is_refused)
{
    char missing[sizeof bed.dir + 16];

    snprintf(missing, sizeof missing, "%s/none/shard0", bed.dir);
    poke_format(offsetof(struct format_rec, version), 2);
    ck_assert_int_eq(shard_open(&bed.options, &bed.shard), -AIFS_EFORMAT);
    bed.options.dir = missing;
    ck_assert_int_eq(shard_open(&bed.options, &bed.shard), -ENOENT);
    bed.options.dir = bed.dir;
    poke_format(offsetof(struct format_rec, version), 1);
    bed_start(&bed);
}
END_TEST

START_TEST(a_damaged_format_is_refused)
{
    poke_format(0, 'x');
    ck_assert_int_eq(shard_open(&bed.options, &bed.shard), -AIFS_ECORRUPT);
    poke_format(0, 'A');
    poke_format(offsetof(struct format_rec, shard), 3);
    ck_assert_int_eq(shard_open(&bed.options, &bed.shard), -AIFS_ECORRUPT);
    poke_format(offsetof(struct format_rec, shard), 0);
    bed_start(&bed);
}
END_TEST

static void poke_inode_counter(uint64_t next)
{
    struct store_options o = {0};
    struct store_batch *b;
    struct store *s;
    uint8_t value[8];
    struct key k;

    bed_stop(&bed);
    ck_ok(store_open(bed.dir, &o, &s));
    ck_ok(store_batch_create(s, &b));
    key_counter(&k, COUNTER_INODE);
    le64_store(value, next);
    store_batch_put(b, k.b, k.len, value, sizeof(value));
    ck_ok(store_commit(s, b, true));
    store_batch_destroy(b);
    store_close(s);
    bed_start(&bed);
}

START_TEST(numbers_of_inodes_that_exist_are_not_handed_out_again)
{
    uint64_t d = bed_dir(&bed, KEY_ROOT_INO, "d"), ino;

    poke_inode_counter(d - 1);
    ck_assert_int_eq(bed_make(&bed, RPC_OP_MKNOD, d, "f", 0644, &ino), -AIFS_ECORRUPT);
    poke_inode_counter(d + 1);
    ck_ok(bed_make(&bed, RPC_OP_MKNOD, d, "f", 0644, &ino));
    ck_assert_uint_eq(ino, d + 1);
}
END_TEST

START_TEST(a_full_disk_refuses_all_but_deletions)
{
    struct msg_name_req remove = {.parent = ROOT, .name = str("f")};
    struct msg_create_req create = {.parent = ROOT, .name = str("g"), .mode = 0644};
    struct shard_entry e;

    bed_file(&bed, ROOT, "f");
    bed_stop(&bed);
    bed.options.reserve_bytes = UINT64_MAX;
    bed_start(&bed);
    ck_assert_int_eq(bed_call(&bed, RPC_OP_CREATE, &create), -ENOSPC);
    shard_entry_init(&e, RPC_OP_UNLINK, &remove, NULL, NULL);
    e.flags = SHARD_E_FREES;
    ck_ok(shard_run(bed.shard, &e));
    shard_entry_fini(&e);
    bed_stop(&bed);
    bed.options.reserve_bytes = 1;
    bed_start(&bed);
    ck_ok(bed_call(&bed, RPC_OP_CREATE, &create));
}
END_TEST

/* ---- readers ---- */

static _Atomic bool stop;
static _Atomic unsigned long seen, bad;

static void *watch_exchange(void *arg)
{
    const uint64_t *ino = arg;

    while (!atomic_load(&stop)) {
        struct mds_dirent a = {0}, b = {0};
        bool pinned = seen & 1;
        struct view v;

        if (pinned)
            view_pin(bed.shard, &v);
        else
            view_begin(bed.shard, &v);
        if (view_dirent(&v, ROOT, "a", 1, &a) < 0 || view_dirent(&v, ROOT, "b", 1, &b) < 0 ||
            a.ino == b.ino || a.ino + b.ino != ino[0] + ino[1])
            bad++;
        if (pinned)
            view_unpin(&v);
        else
            view_end(&v);
        seen++;
    }
    return NULL;
}

START_TEST(readers_see_an_exchange_as_a_whole)
{
    uint64_t ino[2] = {bed_file(&bed, ROOT, "a"), bed_file(&bed, ROOT, "b")};
    pthread_t t[2];

    for (unsigned i = 0; i < 2; i++)
        ck_ok(pthread_create(&t[i], NULL, watch_exchange, ino));
    for (unsigned n = 0; n < 600; n++) {
        ck_ok(bed_rename(&bed, ROOT, "a", ROOT, "b", RENAME_EXCHANGE));
        /* visible when it has been answered */
        ck_assert_uint_eq(bed_lookup(&bed, ROOT, "a"), ino[(n + 1) % 2]);
    }
    atomic_store(&stop, true);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    ck_assert_uint_eq(bad, 0);
    ck_assert_uint_gt(seen, 0);
}
END_TEST

START_TEST(a_small_cache_is_only_slower)
{
    char name[16];

    bed_stop(&bed);
    bed.options.view_bytes = bed.options.overlay_bytes = 4096;
    bed_start(&bed);
    for (unsigned i = 0; i < 500; i++) {
        snprintf(name, sizeof(name), "f%u", i);
        bed_file(&bed, ROOT, name);
        snprintf(name, sizeof(name), "f%u", i / 2);
        ck_assert_uint_ne(bed_lookup(&bed, ROOT, name), 0);
    }
    for (unsigned i = 0; i < 500; i += 2) {
        snprintf(name, sizeof(name), "f%u", i);
        ck_ok(bed_name(&bed, RPC_OP_UNLINK, ROOT, name));
        ck_assert_uint_eq(bed_lookup(&bed, ROOT, name), 0);
    }
}
END_TEST

/* ---- what is known of directories ---- */

enum { DIRS = 3, NAMES = 16 };

struct known {
    uint64_t dir[DIRS], ino[DIRS][NAMES]; /* 0: no such name */
    uint64_t seed;
};

static unsigned known_random(struct known *k, unsigned below)
{
    k->seed = hash_u64(k->seed);
    return (unsigned)(k->seed % below);
}

/* Fails when the name has been added already, and is undone. */
static void known_fail(uint64_t dir, const char *name)
{
    struct msg_create_req req = {
        .parent = dir, .name = str(name), .mode = 0644, .flags = MSG_CREATE_EXCL};
    struct shard_entry e;

    shard_entry_init(&e, RPC_OP_CREATE, &req, NULL, NULL);
    e.layout_status = -ENOSPC;
    ck_assert_int_eq(shard_run(bed.shard, &e), -ENOSPC);
    shard_entry_fini(&e);
}

static void known_move(struct known *k, uint64_t *from, uint64_t dir, const char *name)
{
    const unsigned d = known_random(k, DIRS), n = known_random(k, NAMES);
    char to[16];
    int rc;

    snprintf(to, sizeof(to), "n%u", n);
    rc = bed_rename(&bed, dir, name, k->dir[d], to, 0);
    ck_assert_int_eq(rc, *from ? 0 : -ENOENT);
    if (rc < 0 || from == &k->ino[d][n])
        return;
    k->ino[d][n] = *from;
    *from = 0;
}

static void known_step(struct known *k)
{
    const unsigned d = known_random(k, DIRS), n = known_random(k, NAMES);
    uint64_t *ino = &k->ino[d][n];
    char name[16];
    int rc;

    snprintf(name, sizeof(name), "n%u", n);
    switch (known_random(k, 4)) {
    case 0:
        rc = bed_make(&bed, RPC_OP_MKNOD, k->dir[d], name, 0644, *ino ? NULL : ino);
        ck_assert(rc == 0 || (rc == -EEXIST && *ino));
        break;
    case 1:
        rc = bed_name(&bed, RPC_OP_UNLINK, k->dir[d], name);
        ck_assert_int_eq(rc, *ino ? 0 : -ENOENT);
        *ino = 0;
        break;
    case 2:
        known_move(k, ino, k->dir[d], name);
        break;
    default:
        if (!*ino)
            known_fail(k->dir[d], name);
        break;
    }
    ck_assert_uint_eq(bed_lookup(&bed, k->dir[d], name), *ino);
}

START_TEST(names_are_found_whatever_is_known_of_their_directory)
{
    static const uint64_t bytes[] = {1, 4000, 12000, 1u << 20};
    struct known k = {.seed = 1};
    char name[16];

    for (unsigned d = 0; d < DIRS; d++) {
        snprintf(name, sizeof(name), "d%u", d);
        k.dir[d] = bed_dir(&bed, ROOT, name);
    }
    for (unsigned i = 0; i < 2 * ARRAY_LEN(bytes); i++) {
        for (unsigned step = 0; step < 80; step++)
            known_step(&k);
        bed_stop(&bed); /* from now on it has to ask the store */
        bed.options.overlay_bytes = bytes[i % ARRAY_LEN(bytes)];
        bed_start(&bed);
    }
}
END_TEST

/* ---- the queue ---- */

static _Atomic unsigned answered;

static void on_answer(struct shard_entry *e)
{
    (void)e;
    answered++;
}

START_TEST(a_full_queue_refuses_before_anything_happens)
{
    enum { N = 2000 };
    static struct shard_entry e[N];
    struct msg_setattr_req req = {.ino = ROOT, .set = MSG_SET_MODE, .mode = 0777};
    unsigned taken = 0, refused = 0;

    bed_stop(&bed);
    bed.options.queue_max = 4;
    bed_start(&bed);
    for (unsigned i = 0; i < N; i++) {
        int rc;

        shard_entry_init(&e[i], RPC_OP_SETATTR, &req, NULL, on_answer);
        rc = shard_submit(bed.shard, &e[i]);
        ck_assert(rc == 0 || rc == -AIFS_EBUSY_SERVER);
        taken += rc == 0;
        refused += rc != 0;
    }
    shard_close(bed.shard); /* answers what it has taken */
    ck_assert_uint_eq(answered, taken);
    ck_assert_uint_gt(refused, 0);
    for (unsigned i = 0; i < N; i++)
        shard_entry_fini(&e[i]);
    bed_start(&bed);
}
END_TEST

static Suite *shard_suite(void)
{
    Suite *s = suite_create("shard");
    TCase *t = tcase_create("shard"), *f = tcase_create("folder"), *x = tcase_create("refused");

    tcase_set_timeout(t, 60);
    tcase_set_timeout(f, 60);
    tcase_set_timeout(x, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_full_disk_refuses_all_but_deletions);
    tcase_add_test(t, readers_see_an_exchange_as_a_whole);
    tcase_add_test(t, a_small_cache_is_only_slower);
    tcase_add_test(t, names_are_found_whatever_is_known_of_their_directory);
    tcase_add_test(t, a_full_queue_refuses_before_anything_happens);
    suite_add_tcase(s, t);
    tcase_add_test(f, a_file_system_is_made_once_and_in_an_empty_folder);
    tcase_add_test(f, a_folder_belongs_to_one_process);
    suite_add_tcase(s, f);
    tcase_add_checked_fixture(x, setup, teardown);
    tcase_add_test(x, an_unknown_format_is_refused);
    tcase_add_test(x, a_damaged_format_is_refused);
    tcase_add_test(x, numbers_of_inodes_that_exist_are_not_handed_out_again);
    suite_add_tcase(s, x);
    return s;
}

int main(void)
{
    SRunner *r = srunner_create(shard_suite());
    int failed;

    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
