/* SPDX-License-Identifier: Apache-2.0 */
/* Many calls on names at once, through libaifs, on real daemons. */
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/lib/aifs.h"
#include "common/base/compiler.h"
#include "tests/support/cluster.h"

#define MANY 3000u

static struct cluster cluster;
static struct aifs *fs;
static struct aifs_name names[MANY];
static char paths[MANY][32];

/* Until the server has registered: before that a file has nowhere to go. */
static void wait_for_a_target(void)
{
    struct statvfs st = {0};

    for (unsigned i = 0; i < 3000 && st.f_blocks == 0; i++) {
        ck_assert_int_eq(aifs_statvfs(fs, &st), 0);
        if (st.f_blocks == 0)
            poll(NULL, 0, 10);
    }
    ck_assert_uint_ne(st.f_blocks, 0);
}

static void setup(void)
{
    memset(&cluster, 0, sizeof cluster);
    ck_assert(cluster_start(&cluster, 1));
    ck_assert_msg(aifs_mount(cluster.source, cluster.options, &fs) == 0, "%s", aifs_mount_error());
    wait_for_a_target();
    ck_assert_int_eq(aifs_mkdir(fs, "/d", 0755), 0);
    for (unsigned i = 0; i < MANY; i++)
        snprintf(paths[i], sizeof paths[i], "/d/f%u", i);
}

static void teardown(void)
{
    if (fs)
        ck_assert_int_eq(aifs_unmount(fs), 0);
    cluster_stop(&cluster);
}

static void begin(int op, mode_t mode)
{
    for (unsigned i = 0; i < MANY; i++)
        names[i] = (struct aifs_name){.op = op, .mode = mode, .path = paths[i], .result = 77};
}

static void run(struct aifs_name *all, unsigned n)
{
    struct aifs_batch *b = aifs_batch_submit(fs, all, n);

    ck_assert_msg(b != NULL, "%s", strerror(errno));
    ck_assert_int_eq(aifs_batch_wait(b, -1), 0);
}

static void all_give(int result)
{
    run(names, MANY);
    for (unsigned i = 0; i < MANY; i++)
        ck_assert_msg(names[i].result == result, "%s: %s", paths[i], strerror(-names[i].result));
}

static unsigned listed_of(const char *path, unsigned max)
{
    struct aifs_dir *d = aifs_opendir(fs, path);
    unsigned n = 0;

    ck_assert_ptr_nonnull(d);
    while (n < max + 2 && aifs_readdir(d))
        n++;
    ck_assert_int_eq(aifs_closedir(d), 0);
    return n - 2; /* "." and ".." */
}

static unsigned listed(const char *path)
{
    return listed_of(path, 2 * MANY);
}

START_TEST(thousands_of_files_are_made_seen_and_removed)
{
    begin(AIFS_NAME_CREATE, 0640);
    all_give(0);
    for (unsigned i = 0; i < MANY; i++) {
        ck_assert(S_ISREG(names[i].st.st_mode) && (names[i].st.st_mode & 07777) == 0640);
        names[i].user = (void *)(uintptr_t)names[i].st.st_ino;
    }
    ck_assert_uint_eq(listed("/d"), MANY);
    all_give(-EEXIST);
    for (unsigned i = 0; i < MANY; i++)
        names[i].op = i & 1 ? AIFS_NAME_STAT : AIFS_NAME_LSTAT;
    all_give(0);
    for (unsigned i = 0; i < MANY; i++)
        ck_assert(names[i].st.st_ino == (uintptr_t)names[i].user);
    begin(AIFS_NAME_UNLINK, 0);
    all_give(0);
    all_give(-ENOENT);
    ck_assert_uint_eq(listed("/d"), 0);
}
END_TEST

/* More than one turn begins of what is known here, while answers come to what is not. */
START_TEST(names_that_are_known_and_others_mix)
{
    static char others[64][32];
    struct aifs *other;

    begin(AIFS_NAME_CREATE, 0600);
    all_give(0);
    ck_assert_int_eq(aifs_mount(cluster.source, cluster.options, &other), 0);
    ck_assert_int_eq(aifs_mkdir(other, "/e", 0755), 0); /* not known whole to the first */
    for (unsigned round = 0; round < 20; round++) {
        begin(AIFS_NAME_STAT, 0);
        for (unsigned i = 0; i < ARRAY_LEN(others); i++) {
            unsigned at = i < 60 ? i : MANY - 1 - i; /* all calls wait at first but four */

            snprintf(others[i], sizeof others[i], "/e/%u-%u", round, i);
            names[at].path = others[i];
        }
        run(names, MANY);
        for (unsigned i = 0; i < MANY; i++)
            ck_assert_int_eq(names[i].result, names[i].path[1] == 'e' ? -ENOENT : 0);
    }
    ck_assert_int_eq(aifs_unmount(other), 0);
}
END_TEST

START_TEST(directories_come_and_go_too)
{
    begin(AIFS_NAME_MKDIR, 0700);
    all_give(0);
    ck_assert(S_ISDIR(names[MANY - 1].st.st_mode));
    begin(AIFS_NAME_RMDIR, 0);
    all_give(0);
    ck_assert_uint_eq(listed("/d"), 0);
}
END_TEST

START_TEST(each_call_has_its_own_result)
{
    static char long_name[400], long_path[5000];
    struct aifs_name n[] = {
        {.op = AIFS_NAME_CREATE, .mode = 0644, .path = "/d/new"},
        {.op = AIFS_NAME_STAT, .path = "/none"},
        {.op = AIFS_NAME_MKDIR, .mode = 0755, .path = "/"},
        {.op = AIFS_NAME_UNLINK, .path = "/d"},
        {.op = AIFS_NAME_RMDIR, .path = "/d/.."},
        {.op = AIFS_NAME_STAT, .path = "/"},
        {.op = AIFS_NAME_LSTAT, .path = "/link"},
        {.op = AIFS_NAME_STAT, .path = "/link"},
        {.op = AIFS_NAME_CREATE, .mode = 0644, .path = long_name},
        {.op = AIFS_NAME_CREATE, .mode = 0644, .path = long_path},
        {.op = AIFS_NAME_STAT, .path = ""},
        {.op = AIFS_NAME_STAT, .path = NULL},
    };
    static const int want[] = {0, -ENOENT, -EEXIST,       -EISDIR,       -ENOTEMPTY, 0,
                               0, 0,       -ENAMETOOLONG, -ENAMETOOLONG, -ENOENT,    -EFAULT};

    memset(long_name, 'x', sizeof long_name - 1);
    memset(long_path, '/', sizeof long_path - 1);
    ck_assert_int_eq(aifs_symlink(fs, "d", "/link"), 0);
    run(n, ARRAY_LEN(n));
    for (unsigned i = 0; i < ARRAY_LEN(n); i++)
        ck_assert_msg(n[i].result == want[i], "%u: %s", i, strerror(-n[i].result));
    ck_assert(S_ISLNK(n[6].st.st_mode) && S_ISDIR(n[7].st.st_mode));
}
END_TEST

START_TEST(what_is_no_batch_is_refused_and_nothing_begins)
{
    struct aifs_name n[] = {{.op = AIFS_NAME_CREATE, .path = "/d/a"}, {.op = 99, .path = "/d/b"}};
    struct stat st;

    ck_assert_ptr_null(aifs_batch_submit(fs, n, 0));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(aifs_batch_submit(fs, n, 2));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(aifs_stat(fs, "/d/a", &st), -1);
}
END_TEST

START_TEST(a_batch_goes_on_while_nobody_waits_and_over_a_restart_of_the_server)
{
    struct aifs_batch *b;
    int status;

    ck_assert_int_eq(kill(cluster.mds, SIGSTOP), 0); /* so that it surely has not ended */
    ck_assert_int_eq(waitpid(cluster.mds, &status, WUNTRACED), cluster.mds);
    begin(AIFS_NAME_CREATE, 0644);
    b = aifs_batch_submit(fs, names, MANY);
    ck_assert_ptr_nonnull(b);
    ck_assert_int_eq(aifs_batch_wait(b, 0), -1);
    ck_assert_int_eq(errno, ETIMEDOUT);
    cluster_kill_mds(&cluster, SIGKILL);
    cluster_start_mds(&cluster);
    ck_assert_int_eq(aifs_batch_wait(b, -1), 0);
    for (unsigned i = 0; i < MANY; i++)
        ck_assert_int_eq(names[i].result, 0);
    ck_assert_uint_eq(listed("/d"), MANY);
}
END_TEST

START_TEST(a_child_leaves_the_batch_to_its_parent)
{
    struct aifs_batch *b;
    int status;
    pid_t child;

    begin(AIFS_NAME_CREATE, 0644);
    b = aifs_batch_submit(fs, names, MANY);
    ck_assert_ptr_nonnull(b);
    child = fork();
    if (child == 0)
        _exit(aifs_batch_wait(b, -1) == -1 && errno == ENOTCONN ? 0 : 1);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(aifs_batch_wait(b, -1), 0);
    for (unsigned i = 0; i < MANY; i++)
        ck_assert_msg(names[i].result == 0, "%u: %s", i, strerror(-names[i].result));
    ck_assert_uint_eq(listed("/d"), MANY);
}
END_TEST

/* A listing of a directory of which nothing was known takes its names in without looking for each
 * first: none may be there twice, wherever it was left, and whatever else is learned meanwhile. */
START_TEST(what_was_listed_in_pieces_and_removed_is_gone)
{
    struct stat st;

    begin(AIFS_NAME_CREATE, 0640);
    all_give(0);
    ck_assert_int_eq(aifs_unmount(fs), 0);
    ck_assert_int_eq(aifs_mount(cluster.source, cluster.options, &fs), 0);
    ck_assert_uint_eq(listed_of("/d", MANY / 2), MANY / 2);
    for (unsigned i = 0; i < MANY; i += MANY / 10)
        ck_assert_int_eq(aifs_lstat(fs, paths[i], &st), 0);
    ck_assert_uint_eq(listed_of("/d", MANY / 3), MANY / 3);
    ck_assert_int_eq(aifs_unlink(fs, paths[0]), 0);
    ck_assert_uint_eq(listed("/d"), MANY - 1);
    run(names, 1); /* made again */
    begin(AIFS_NAME_UNLINK, 0);
    all_give(0);
    begin(AIFS_NAME_LSTAT, 0);
    all_give(-ENOENT);
    ck_assert_uint_eq(listed("/d"), 0);
}
END_TEST

CLUSTER_SUITE_MAIN("libaifs-batch", setup, teardown, thousands_of_files_are_made_seen_and_removed,
                   names_that_are_known_and_others_mix, directories_come_and_go_too,
                   each_call_has_its_own_result, what_is_no_batch_is_refused_and_nothing_begins,
                   a_batch_goes_on_while_nobody_waits_and_over_a_restart_of_the_server,
                   what_was_listed_in_pieces_and_removed_is_gone,
                   a_child_leaves_the_batch_to_its_parent)
