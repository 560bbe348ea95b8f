/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is replaced has the old contents or the new ones, nothing beside it, and is synced.
 * fsync(2) is ours here: it tells what was synced, and fails when told to. */
#include "common/base/file.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "tests/support/suite.h"
#include "tests/support/tmp.h"

static struct tmp tmp;
static char synced[8]; /* f: a file, d: a directory */
static unsigned n_synced, failing_sync;
static int sync_error = EIO;

int fsync(int fd)
{
    struct stat st;

    ck_assert_int_eq(fstat(fd, &st), 0);
    synced[n_synced++] = S_ISDIR(st.st_mode) ? 'd' : 'f';
    if (n_synced != failing_sync)
        return (int)syscall(SYS_fsync, fd);
    errno = sync_error;
    return -1;
}

static void setup(void)
{
    tmp_make(&tmp);
    umask(022);
}

static void teardown(void)
{
    tmp_remove(&tmp);
}

static int replace(const char *name, const char *text, mode_t mode)
{
    memset(synced, 0, sizeof synced);
    n_synced = 0;
    return file_replace(tmp_path(&tmp, name), text, strlen(text), mode);
}

static void check(const char *name, const char *text)
{
    char got[256] = "";
    int fd = open(tmp_path(&tmp, name), O_RDONLY);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_ge(read(fd, got, sizeof got - 1), 0);
    close(fd);
    ck_assert_str_eq(got, text);
}

static void check_gone(const char *name)
{
    ck_assert_int_eq(access(tmp_path(&tmp, name), F_OK), -1);
    ck_assert_int_eq(errno, ENOENT);
}

START_TEST(it_is_made_and_replaced_with_all_of_it_synced)
{
    struct stat st;

    ck_assert_int_eq(replace("f", "first and longer\n", 0640), 0);
    check("f", "first and longer\n");
    ck_assert_str_eq(synced, "fd");
    ck_assert_int_eq(replace("f", "second\n", 0666), 0);
    check("f", "second\n");
    check_gone("f.new");
    ck_assert_int_eq(stat(tmp_path(&tmp, "f"), &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0644);
    ck_assert_int_eq(replace("f", "", 0640), 0);
    check("f", "");
}
END_TEST

START_TEST(what_an_interrupted_attempt_left_is_not_in_it)
{
    struct stat st;
    char victim[PATH_MAX];

    tmp_write_bytes(&tmp, "f.new", "half of another one", 19, 0444);
    ck_assert_int_eq(replace("f", "one\n", 0600), 0);
    check("f", "one\n");
    ck_assert_int_eq(stat(tmp_path(&tmp, "f"), &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    strcpy(victim, tmp_write(&tmp, "victim", "of a link"));
    ck_assert_int_eq(symlink(victim, tmp_path(&tmp, "f.new")), 0);
    ck_assert_int_eq(replace("f", "two\n", 0600), 0);
    check("f", "two\n");
    check("victim", "of a link");
}
END_TEST

START_TEST(a_full_disk_leaves_the_old_one_and_nothing_else)
{
    char big[3 * 4096 + 1];

    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    if (!tmp_mount(tmp.dir, "size=16k")) {
        printf("no right to mount: not tested\n");
        return;
    }
    ck_assert_int_eq(replace("f", "old\n", 0600), 0);
    tmp_write_bytes(&tmp, "other", big, 2 * 4096, 0600); /* a page is left: part of it fits */
    ck_assert_int_eq(replace("f", big, 0600), -ENOSPC);
    check("f", "old\n");
    check_gone("f.new");
    tmp_write_bytes(&tmp, "more", big, 4096, 0600); /* none is */
    ck_assert_int_eq(replace("f", "new\n", 0600), -ENOSPC);
    check("f", "old\n");
    check_gone("f.new");
    ck_assert_int_eq(unlink(tmp_path(&tmp, "more")), 0);
    ck_assert_int_eq(replace("f", "new\n", 0600), 0);
    check("f", "new\n");
    ck_assert_int_eq(umount(tmp.dir), 0);
}
END_TEST

START_TEST(a_write_that_is_cut_short_is_gone_on_with)
{
    struct rlimit limit = {.rlim_cur = 10, .rlim_max = RLIM_INFINITY};

    ck_assert_int_eq(replace("f", "old\n", 0600), 0);
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(replace("f", "longer than ten\n", 0600), -EFBIG); /* the rest said why */
    limit.rlim_cur = RLIM_INFINITY;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    check("f", "old\n");
    check_gone("f.new");
}
END_TEST

START_TEST(a_failing_rename_leaves_nothing)
{
    ck_assert_int_eq(mkdir(tmp_path(&tmp, "f"), 0700), 0);
    ck_assert_int_eq(replace("f", "text", 0600), -EISDIR);
    check_gone("f.new");
    ck_assert_int_eq(mkdir(tmp_path(&tmp, "g.new"), 0700), 0);
    ck_assert_int_eq(replace("g", "text", 0600), -EISDIR);
    check_gone("g");
    ck_assert_int_eq(replace("none/f", "text", 0600), -ENOENT);
}
END_TEST

START_TEST(a_failing_sync_is_told)
{
    ck_assert_int_eq(replace("f", "old\n", 0600), 0);
    failing_sync = 1;
    ck_assert_int_eq(replace("f", "new\n", 0600), -EIO);
    check("f", "old\n");
    check_gone("f.new");
    failing_sync = 2; /* of the directory */
    ck_assert_int_eq(replace("f", "new\n", 0600), -EIO);
    ck_assert_str_eq(synced, "fd");
    check_gone("f.new");
}
END_TEST

START_TEST(a_file_system_without_sync_of_directories_will_do)
{
    sync_error = EINVAL;
    failing_sync = 2; /* of the directory */
    ck_assert_int_eq(replace("f", "new\n", 0600), 0);
    ck_assert_str_eq(synced, "fd");
    check("f", "new\n");
    failing_sync = 3;
    ck_assert_int_eq(file_sync_dir(tmp.dir), 0);
    failing_sync = 4;
    ck_assert_int_eq(file_sync_parent(tmp_path(&tmp, "f")), 0);
    ck_assert_str_eq(synced, "fddd");
    failing_sync = 1; /* of a file it is an error like others */
    ck_assert_int_eq(replace("f", "newer\n", 0600), -EINVAL);
    check("f", "new\n");
}
END_TEST

START_TEST(a_directory_is_found_from_a_path)
{
    char name[NAME_MAX + 1];

    ck_assert_int_eq(chdir(tmp.dir), 0);
    ck_assert_int_eq(file_replace("here", "x", 1, 0600), 0);
    check("here", "x");
    ck_assert_int_eq(file_sync_parent("here"), 0);
    ck_assert_int_eq(file_sync_parent("/here"), 0);
    ck_assert_int_eq(file_sync_parent("none/here"), -ENOENT);
    ck_assert_int_eq(file_sync_dir("none"), -ENOENT);
    ck_assert_int_eq(file_sync_dir("here"), -ENOTDIR);
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    ck_assert_int_eq(file_replace(name, "x", 1, 0600), -ENAMETOOLONG);
    ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

START_TEST(a_directory_with_a_name_in_it_is_in_use)
{
    ck_assert_int_eq(file_dir_in_use(tmp.dir), 0);
    ck_assert_int_eq(mkdir(tmp_path(&tmp, "lost+found"), 0700), 0);
    ck_assert_int_eq(file_dir_in_use(tmp.dir), 0);
    ck_assert_int_eq(replace(".f", "x", 0600), 0);
    ck_assert_int_eq(file_dir_in_use(tmp.dir), 1);
    ck_assert_int_eq(file_dir_in_use(tmp_path(&tmp, "none")), -ENOENT);
    ck_assert_int_eq(file_dir_in_use(tmp_path(&tmp, ".f")), -ENOTDIR);
}
END_TEST

SUITE_MAIN("file", setup, teardown, it_is_made_and_replaced_with_all_of_it_synced,
           what_an_interrupted_attempt_left_is_not_in_it,
           a_full_disk_leaves_the_old_one_and_nothing_else,
           a_write_that_is_cut_short_is_gone_on_with, a_failing_rename_leaves_nothing,
           a_failing_sync_is_told, a_file_system_without_sync_of_directories_will_do,
           a_directory_is_found_from_a_path, a_directory_with_a_name_in_it_is_in_use)
