/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads on two mounts change and look at names at the same time, through libaifs on real daemons.
 * When they have finished, both mounts must see what a new mount sees, whatever they have cached.
 * A failure prints its seed; AIFS_SEED runs one, AIFS_SEEDS so many, AIFS_ROUNDS rounds each.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "client/lib/aifs.h"
#include "common/base/compiler.h"
#include "tests/support/cluster.h"

#define MOUNTS 2u
#define NAMES  4u
#define DEPTH  3u

struct world {
    struct cluster cluster;
    struct aifs *fs[MOUNTS];
    unsigned seed, step;
};

static void mount_all(struct world *w)
{
    ck_assert(cluster_start(&w->cluster, 1));
    for (unsigned c = 0; c < MOUNTS; c++)
        ck_assert_msg(aifs_mount(w->cluster.source, w->cluster.options, &w->fs[c]) == 0, "%s",
                      aifs_mount_error());
}

static void unmount_all(struct world *w)
{
    for (unsigned c = 0; c < MOUNTS; c++)
        ck_assert_int_eq(aifs_unmount(w->fs[c]), 0);
    cluster_stop(&w->cluster);
    free(w);
}

struct storm {
    pthread_t thread;
    struct aifs *fs;
    unsigned seed, steps;
};

static void any_path(unsigned *seed, char path[16])
{
    unsigned depth = 1 + (unsigned)rand_r(seed) % DEPTH;

    for (unsigned i = 0; i < depth; i++)
        snprintf(path + 2 * i, 16 - 2 * i, "/%c", 'a' + rand_r(seed) % (int)NAMES);
}

static void storm_write(struct aifs *fs, const char *path, int flags, unsigned len)
{
    static const char data[100];
    struct aifs_file *f = aifs_open(fs, path, O_WRONLY | flags, 0644);

    if (!f)
        return;
    (void)!aifs_pwrite(f, data, len % sizeof data, len % 64);
    (void)aifs_close(f);
}

static void storm_list(struct aifs *fs, const char *path)
{
    struct aifs_dir *d = aifs_opendir(fs, path);

    while (d && aifs_readdir(d)) {
    }
    if (d)
        aifs_closedir(d);
}

/* Whether a call succeeds does not matter here. */
static void *storm_run(void *arg)
{
    struct storm *st = arg;
    char one[16], two[16];
    struct stat any;

    while (st->steps--) {
        unsigned k = (unsigned)rand_r(&st->seed);

        any_path(&st->seed, one);
        any_path(&st->seed, two);
        switch (k % 14) {
        case 0:
            (void)aifs_mkdir(st->fs, one, 0755);
            break;
        case 1:
            storm_write(st->fs, one, O_CREAT, k >> 8);
            break;
        case 2:
            storm_write(st->fs, one, k & 256 ? O_TRUNC : 0, k >> 9);
            break;
        case 3:
            (void)aifs_unlink(st->fs, one);
            break;
        case 4:
            (void)aifs_rmdir(st->fs, one);
            break;
        case 5:
            (void)aifs_renameat2(st->fs, one, two, k & 256 ? RENAME_EXCHANGE : 0);
            break;
        case 6:
            (void)aifs_link(st->fs, one, two);
            break;
        case 7:
            (void)aifs_chmod(st->fs, one, 0700 + (k >> 8) % 64);
            break;
        case 8:
            storm_list(st->fs, one);
            break;
        default:
            (void)aifs_lstat(st->fs, one, &any);
        }
    }
    return NULL;
}

/* What has been cached in the storm, and what a mount sees that has nothing cached. */
static void compare(struct world *w, struct aifs *fresh, char path[16], unsigned depth)
{
    struct stat now, st;
    int is = aifs_lstat(fresh, path, &now);

    for (unsigned c = 0; c < MOUNTS; c++) {
        int rc = aifs_lstat(w->fs[c], path, &st);

        ck_assert_msg(rc == is, "round %u: mount %u: %s %s", w->step, c, path,
                      is ? "should not be there" : "is missing");
        ck_assert_msg(is || (st.st_ino == now.st_ino && st.st_mode == now.st_mode &&
                             st.st_nlink == now.st_nlink && st.st_size == now.st_size &&
                             st.st_ctim.tv_sec == now.st_ctim.tv_sec &&
                             st.st_ctim.tv_nsec == now.st_ctim.tv_nsec &&
                             st.st_mtim.tv_nsec == now.st_mtim.tv_nsec),
                      "round %u: mount %u: %s: inode %llu %llu, links %u %u, size %lld %lld, "
                      "mode %o %o",
                      w->step, c, path, (unsigned long long)st.st_ino,
                      (unsigned long long)now.st_ino, (unsigned)st.st_nlink, (unsigned)now.st_nlink,
                      (long long)st.st_size, (long long)now.st_size, st.st_mode, now.st_mode);
    }
    for (unsigned i = 0; depth < DEPTH && i < NAMES; i++) {
        snprintf(path + 2 * depth, 16 - 2 * depth, "/%c", 'a' + i);
        compare(w, fresh, path, depth + 1);
    }
    path[2 * depth] = 0;
}

START_TEST(after_changes_at_the_same_time_both_mounts_see_what_a_new_one_sees)
{
    struct world *w = calloc(1, sizeof *w);
    struct storm storms[2 * MOUNTS];
    char path[16] = "";

    w->seed = cluster_number("AIFS_SEED", (unsigned)_i + 1);
    printf("seed %u\n", w->seed);
    fflush(stdout);
    mount_all(w);
    for (w->step = 0; w->step < cluster_number("AIFS_ROUNDS", 8); w->step++) {
        struct aifs *fresh;

        for (unsigned i = 0; i < ARRAY_LEN(storms); i++) {
            storms[i] = (struct storm){.fs = w->fs[i % MOUNTS],
                                       .seed = (unsigned)rand_r(&w->seed),
                                       .steps = 10 + (unsigned)rand_r(&w->seed) % 100};
            ck_assert_int_eq(pthread_create(&storms[i].thread, NULL, storm_run, &storms[i]), 0);
        }
        for (unsigned i = 0; i < ARRAY_LEN(storms); i++)
            pthread_join(storms[i].thread, NULL);
        ck_assert_int_eq(aifs_mount(w->cluster.source, w->cluster.options, &fresh), 0);
        compare(w, fresh, path, 0);
        ck_assert_int_eq(aifs_unmount(fresh), 0);
    }
    unmount_all(w);
}
END_TEST

static void *replace(void *arg)
{
    struct storm *st = arg;

    while (__atomic_load_n(&st->steps, __ATOMIC_RELAXED)) {
        (void)aifs_symlink(st->fs, "name", "/link2");
        ck_assert_int_eq(aifs_renameat2(st->fs, "/link2", "/link", 0), 0);
        storm_write(st->fs, "/new", O_CREAT, 50);
        ck_assert_int_eq(aifs_renameat2(st->fs, "/new", "/name", 0), 0);
    }
    return NULL;
}

START_TEST(a_name_that_another_replaces_all_the_time_opens_every_time)
{
    struct world *w = calloc(1, sizeof *w);
    struct storm st = {.steps = 1};

    mount_all(w);
    st.fs = w->fs[0];
    storm_write(w->fs[0], "/name", O_CREAT, 50);
    ck_assert_int_eq(aifs_symlink(w->fs[0], "name", "/link"), 0);
    ck_assert_int_eq(pthread_create(&st.thread, NULL, replace, &st), 0);
    for (unsigned i = 0; i < 300; i++) {
        struct aifs_file *f = aifs_open(w->fs[1], i % 2 ? "/link" : "/name", O_RDONLY, 0);

        ck_assert_msg(f, "open %u: %s", i, strerror(errno));
        ck_assert_int_eq(aifs_close(f), 0);
    }
    __atomic_store_n(&st.steps, 0, __ATOMIC_RELAXED);
    pthread_join(st.thread, NULL);
    unmount_all(w);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("libaifs-storm");

    if (!cluster_built())
        return 77;
    tcase_set_timeout(tc, 100);
    tcase_add_loop_test(tc, after_changes_at_the_same_time_both_mounts_see_what_a_new_one_sees, 0,
                        getenv("AIFS_SEED") ? 1 : (int)cluster_number("AIFS_SEEDS", 1));
    tcase_add_test(tc, a_name_that_another_replaces_all_the_time_opens_every_time);
    return suite_run_case("libaifs-storm", tc);
}
