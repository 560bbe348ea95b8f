/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the calls of libaifs have in common with system calls, against real daemons: appends that
 * have one place each, names with a slash behind them, directories that stay open, and arguments
 * that make no sense.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "client/lib/aifs.h"
#include "common/base/compiler.h"
#include "tests/support/cluster.h"

#define APPEND_BYTES (3 * MIB + 4321)
#define APPENDS      6u /* of each writer */
#define WRITERS      2u

static struct cluster cluster;
static struct aifs *fs;

static void setup(void)
{
    memset(&cluster, 0, sizeof cluster);
    ck_assert(cluster_start(&cluster, 2));
    ck_assert_msg(aifs_mount(cluster.source, cluster.options, &fs) == 0, "%s", aifs_mount_error());
}

static void teardown(void)
{
    ck_assert_int_eq(aifs_unmount(fs), 0);
    cluster_stop(&cluster);
}

static void make(const char *path, const char *text)
{
    struct aifs_file *f = aifs_open(fs, path, O_WRONLY | O_CREAT, 0644);

    ck_assert_msg(f != NULL, "%s: %s", path, strerror(errno));
    ck_assert_int_eq(aifs_pwrite(f, text, strlen(text), 0), (ssize_t)strlen(text));
    ck_assert_int_eq(aifs_close(f), 0);
}

/* ---- appends ---- */

struct writer {
    struct aifs *fs;
    uint8_t letter;
    const char *path;
};

static void *append_all(void *arg)
{
    const struct writer *w = arg;
    struct aifs_file *f = aifs_open(w->fs, w->path, O_WRONLY | O_APPEND, 0);
    uint8_t *block = malloc(APPEND_BYTES);

    ck_assert(f && block);
    for (unsigned k = 0; k < APPENDS; k++) {
        memset(block, w->letter + (int)k, APPEND_BYTES);
        ck_assert_int_eq(aifs_pwrite(f, block, APPEND_BYTES, 0), APPEND_BYTES);
    }
    ck_assert_int_eq(aifs_close(f), 0);
    free(block);
    return NULL;
}

/* Whole blocks of one letter each, so many. */
static void check_blocks(const char *path, unsigned n)
{
    struct aifs_file *f = aifs_open(fs, path, O_RDONLY, 0);
    uint8_t *block = malloc(APPEND_BYTES);
    struct stat st;

    ck_assert(f && block);
    ck_assert_int_eq(aifs_fstat(f, &st), 0);
    ck_assert_int_eq(st.st_size, (off_t)n * APPEND_BYTES);
    for (unsigned k = 0; k < n; k++) {
        ck_assert_int_eq(aifs_pread(f, block, APPEND_BYTES, (off_t)k * APPEND_BYTES), APPEND_BYTES);
        ck_assert_msg(memcmp(block, block + 1, APPEND_BYTES - 1) == 0, "block %u is torn", k);
    }
    ck_assert_int_eq(aifs_close(f), 0);
    free(block);
}

static void append_by_two(struct aifs *second, const char *path)
{
    struct writer w[WRITERS] = {{fs, 'A', path}, {second, 'a', path}};
    pthread_t threads[WRITERS];

    make(path, "");
    for (unsigned k = 0; k < WRITERS; k++)
        ck_assert_int_eq(pthread_create(&threads[k], NULL, append_all, &w[k]), 0);
    for (unsigned k = 0; k < WRITERS; k++)
        pthread_join(threads[k], NULL);
    check_blocks(path, WRITERS * APPENDS);
}

START_TEST(large_appends_of_two_mounts_are_not_mixed)
{
    struct aifs *other;

    ck_assert_int_eq(aifs_mount(cluster.source, cluster.options, &other), 0);
    append_by_two(other, "/two-mounts");
    ck_assert_int_eq(aifs_unmount(other), 0);
}
END_TEST

START_TEST(large_appends_that_are_under_way_together_are_not_mixed)
{
    struct aifs_queue *q = aifs_queue_create(fs);
    struct aifs_io ios[4], *request[4], *done[4];
    struct aifs_file *f;

    make("/queue", "");
    f = aifs_open(fs, "/queue", O_WRONLY | O_APPEND, 0);
    ck_assert(q && f);
    for (unsigned k = 0; k < 4; k++) {
        ios[k] = (struct aifs_io){
            .file = f, .op = AIFS_WRITE, .buf = malloc(APPEND_BYTES), .len = APPEND_BYTES};
        ck_assert_ptr_nonnull(ios[k].buf);
        memset(ios[k].buf, 'a' + (int)k, APPEND_BYTES);
        request[k] = &ios[k];
    }
    ck_assert_int_eq(aifs_submit(q, request, 4), 0);
    ck_assert_int_eq(aifs_wait(q, done, 4, 4, -1), 4);
    for (unsigned k = 0; k < 4; k++) {
        ck_assert_int_eq(ios[k].result, APPEND_BYTES);
        free(ios[k].buf);
    }
    ck_assert_int_eq(aifs_close(f), 0);
    ck_assert_int_eq(aifs_queue_destroy(q), 0);
    check_blocks("/queue", 4);
}
END_TEST

START_TEST(an_append_longer_than_one_place_is_whole_when_nobody_else_writes)
{
    size_t len = 64 * MIB + 5 * MIB + 3;
    uint8_t *data = malloc(len), *back = malloc(len);
    struct iovec iov[3];
    struct aifs_file *f;
    struct stat st;

    ck_assert(data && back);
    for (size_t k = 0; k < len; k++)
        data[k] = (uint8_t)(k * 2654435761u >> 11);
    make("/long", "begin");
    f = aifs_open(fs, "/long", O_RDWR | O_APPEND, 0);
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(aifs_pwrite(f, data, len, INT64_MAX), (ssize_t)len);
    ck_assert_int_eq(aifs_pread(f, back, len, 5), (ssize_t)len);
    ck_assert_int_eq(memcmp(data, back, len), 0);
    iov[0] = (struct iovec){data, 2 * MIB};
    iov[1] = (struct iovec){NULL, 0};
    iov[2] = (struct iovec){data + 2 * MIB, 77};
    ck_assert_int_eq(aifs_pwritev(f, iov, 3, 0), 2 * MIB + 77);
    ck_assert_int_eq(aifs_fstat(f, &st), 0);
    ck_assert_int_eq(st.st_size, (off_t)(5 + len + 2 * MIB + 77));
    ck_assert_int_eq(aifs_pread(f, back, 3 * MIB, (off_t)(5 + len)), 2 * MIB + 77);
    ck_assert_int_eq(memcmp(data, back, 2 * MIB + 77), 0);
    ck_assert_int_eq(aifs_close(f), 0);
    free(data);
    free(back);
}
END_TEST

/* ---- slashes ---- */

#define REFUSED(call, error)                                                                       \
    do {                                                                                           \
        errno = 0;                                                                                 \
        ck_assert_msg((call) == -1, #call " is not refused");                                      \
        ck_assert_msg(errno == (error), #call ": %s", strerror(errno));                            \
    } while (0)
#define NOT_OPENED(call, error)                                                                    \
    do {                                                                                           \
        errno = 0;                                                                                 \
        ck_assert_msg((call) == NULL, #call " is not refused");                                    \
        ck_assert_msg(errno == (error), #call ": %s", strerror(errno));                            \
    } while (0)

static void make_some(void)
{
    make("/file", "text");
    ck_assert_int_eq(aifs_mkdir(fs, "/dir/", 0755), 0);
    ck_assert_int_eq(aifs_symlink(fs, "file", "/to-file"), 0);
    ck_assert_int_eq(aifs_symlink(fs, "dir", "/to-dir"), 0);
}

static void check_some(void)
{
    struct stat st;

    ck_assert_int_eq(aifs_lstat(fs, "/file", &st), 0);
    ck_assert(S_ISREG(st.st_mode) && st.st_size == 4);
    ck_assert_int_eq(aifs_lstat(fs, "/dir", &st), 0);
    ck_assert(S_ISDIR(st.st_mode));
    ck_assert_int_eq(aifs_lstat(fs, "/to-file", &st), 0);
    ck_assert(S_ISLNK(st.st_mode));
    ck_assert_int_eq(aifs_lstat(fs, "/to-dir", &st), 0);
    ck_assert(S_ISLNK(st.st_mode));
}

START_TEST(a_slash_behind_a_name_wants_a_directory)
{
    struct stat st;
    char text[8];

    make_some();
    REFUSED(aifs_stat(fs, "/file/", &st), ENOTDIR);
    REFUSED(aifs_lstat(fs, "/file/", &st), ENOTDIR);
    REFUSED(aifs_stat(fs, "/to-file/", &st), ENOTDIR);
    REFUSED(aifs_lstat(fs, "/to-file//", &st), ENOTDIR);
    REFUSED(aifs_truncate(fs, "/file/", 0), ENOTDIR);
    REFUSED(aifs_truncate(fs, "/to-file/", 0), ENOTDIR);
    REFUSED(aifs_chmod(fs, "/to-file/", 0), ENOTDIR);
    REFUSED(aifs_getxattr(fs, "/file/", "user.x", NULL, 0), ENOTDIR);
    REFUSED(aifs_readlink(fs, "/to-dir/", text, sizeof text), EINVAL);
    NOT_OPENED(aifs_opendir(fs, "/file/"), ENOTDIR);
    NOT_OPENED(aifs_open(fs, "/file/", O_RDONLY, 0), ENOTDIR);
    NOT_OPENED(aifs_open(fs, "/to-file/", O_RDWR, 0), ENOTDIR);
    NOT_OPENED(aifs_open(fs, "/file/", O_RDWR | O_CREAT, 0644), EISDIR);
    NOT_OPENED(aifs_open(fs, "/new/", O_RDWR | O_CREAT, 0644), EISDIR);
    NOT_OPENED(aifs_open(fs, "/new/", O_RDWR | O_CREAT | O_EXCL, 0644), EISDIR);
    NOT_OPENED(aifs_open(fs, "/none/new/", O_RDWR | O_CREAT, 0644), ENOENT);
    ck_assert_int_eq(aifs_stat(fs, "/dir/", &st), 0);
    ck_assert_int_eq(aifs_lstat(fs, "/to-dir/", &st), 0);
    ck_assert(S_ISDIR(st.st_mode));
    check_some();
}
END_TEST

/* ---- opening by way of a link ---- */

static void link_to(const char *target)
{
    (void)aifs_unlink(fs, "/link");
    ck_assert_int_eq(aifs_symlink(fs, target, "/link"), 0);
}

/* Opened and made by way of the link, the file is there under its own name, and is the same. */
static void expect_made(const char *path, int flags)
{
    struct aifs_file *f = aifs_open(fs, "/link", O_RDWR | O_CREAT | flags, 0640);
    struct stat st, opened;

    ck_assert_msg(f != NULL, "%s: %s", path, strerror(errno));
    ck_assert_int_eq(aifs_pwrite(f, "made", 4, 0), 4);
    ck_assert_int_eq(aifs_fstat(f, &opened), 0);
    ck_assert_int_eq(aifs_close(f), 0);
    ck_assert_int_eq(aifs_lstat(fs, path, &st), 0);
    ck_assert(S_ISREG(st.st_mode) && st.st_ino == opened.st_ino && st.st_size == 4);
    ck_assert_uint_eq(st.st_mode & 07777, 0640);
    ck_assert_int_eq(aifs_lstat(fs, "/link", &st), 0);
    ck_assert(S_ISLNK(st.st_mode));
}

START_TEST(a_file_is_made_where_a_link_leads)
{
    make_some();
    ck_assert_int_eq(aifs_symlink(fs, "dir/../dir/./deep", "/to-link"), 0);
    link_to("new");
    expect_made("/new", 0);
    expect_made("/new", O_TRUNC); /* which is there now */
    link_to("/to-dir/new");
    expect_made("/dir/new", 0);
    link_to("to-link");
    expect_made("/dir/deep", O_APPEND);
    check_some();
}
END_TEST

static void *remove_all_the_time(void *arg)
{
    struct aifs *other;

    ck_assert_int_eq(aifs_mount(cluster.source, cluster.options, &other), 0);
    while (!*(atomic_bool *)arg)
        (void)aifs_unlink(other, "/new");
    ck_assert_int_eq(aifs_unmount(other), 0);
    return NULL;
}

START_TEST(a_file_that_others_remove_is_made_again_where_a_link_leads)
{
    atomic_bool over = false;
    pthread_t thread;

    link_to("new");
    ck_assert_int_eq(pthread_create(&thread, NULL, remove_all_the_time, &over), 0);
    for (unsigned k = 0; k < 100; k++) {
        struct aifs_file *f = aifs_open(fs, "/link", O_RDWR | O_CREAT, 0640);

        ck_assert_msg(f != NULL, "%u: %s", k, strerror(errno));
        (void)aifs_close(f);
    }
    over = true;
    pthread_join(thread, NULL);
}
END_TEST

START_TEST(nothing_is_made_where_a_link_leads_when_that_is_not_asked_for)
{
    struct stat st;

    make_some();
    link_to("new");
    NOT_OPENED(aifs_open(fs, "/link", O_RDWR, 0), ENOENT);
    NOT_OPENED(aifs_open(fs, "/link", O_RDWR | O_CREAT | O_EXCL, 0644), EEXIST);
    NOT_OPENED(aifs_open(fs, "/link", O_RDWR | O_CREAT | O_NOFOLLOW, 0644), ELOOP);
    NOT_OPENED(aifs_open(fs, "/link/", O_RDWR | O_CREAT, 0644), EISDIR);
    NOT_OPENED(aifs_create_striped(fs, "/link", O_RDWR, 0644, 0, 1, NULL), EEXIST);
    link_to("new/");
    NOT_OPENED(aifs_open(fs, "/link", O_RDWR | O_CREAT, 0644), EISDIR);
    link_to("none/new");
    NOT_OPENED(aifs_open(fs, "/link", O_RDWR | O_CREAT, 0644), ENOENT);
    link_to("file/new");
    NOT_OPENED(aifs_open(fs, "/link", O_RDWR | O_CREAT, 0644), ENOTDIR);
    link_to("dir");
    NOT_OPENED(aifs_open(fs, "/link", O_RDWR | O_CREAT, 0644), EISDIR);
    link_to("link");
    NOT_OPENED(aifs_open(fs, "/link", O_RDWR | O_CREAT, 0644), ELOOP);
    REFUSED(aifs_lstat(fs, "/new", &st), ENOENT);
    check_some();
}
END_TEST

START_TEST(a_slash_behind_a_name_that_is_removed_or_made_is_as_linux_takes_it)
{
    struct stat st;

    make_some();
    REFUSED(aifs_unlink(fs, "/file/"), ENOTDIR);
    REFUSED(aifs_unlink(fs, "/to-file/"), ENOTDIR);
    REFUSED(aifs_unlink(fs, "/to-dir/"), ENOTDIR);
    REFUSED(aifs_unlink(fs, "/dir/"), EISDIR);
    REFUSED(aifs_unlink(fs, "/none/"), ENOENT);
    REFUSED(aifs_unlink(fs, "/dir/."), EISDIR);
    REFUSED(aifs_rmdir(fs, "/file/"), ENOTDIR);
    REFUSED(aifs_rmdir(fs, "/to-dir/"), ENOTDIR);
    REFUSED(aifs_rmdir(fs, "/dir/."), EINVAL);
    REFUSED(aifs_rmdir(fs, "/dir/.."), ENOTEMPTY);
    REFUSED(aifs_rmdir(fs, "/"), EBUSY);
    REFUSED(aifs_mkdir(fs, "/file/", 0755), EEXIST);
    REFUSED(aifs_mkdir(fs, "/dir/", 0755), EEXIST);
    REFUSED(aifs_mkdir(fs, "/dir/..", 0755), EEXIST);
    REFUSED(aifs_symlink(fs, "x", "/new/"), ENOENT);
    REFUSED(aifs_symlink(fs, "x", "/dir/"), EEXIST);
    REFUSED(aifs_symlink(fs, "x", "/dir/."), EEXIST);
    REFUSED(aifs_link(fs, "/file/", "/new"), ENOTDIR);
    REFUSED(aifs_link(fs, "/file", "/new/"), ENOENT);
    REFUSED(aifs_link(fs, "/file", "/to-dir/"), EEXIST);
    REFUSED(aifs_link(fs, "/to-dir/", "/new"), EPERM);
    check_some();
    REFUSED(aifs_lstat(fs, "/new", &st), ENOENT);
    ck_assert_int_eq(aifs_mkdir(fs, "/new//", 0755), 0);
    ck_assert_int_eq(aifs_rmdir(fs, "/new/"), 0);
}
END_TEST

START_TEST(a_slash_behind_a_name_that_is_renamed_wants_a_directory)
{
    make_some();
    REFUSED(aifs_rename(fs, "/file/", "/new"), ENOTDIR);
    REFUSED(aifs_rename(fs, "/file", "/new/"), ENOTDIR);
    REFUSED(aifs_rename(fs, "/to-dir/", "/new"), ENOTDIR);
    REFUSED(aifs_rename(fs, "/to-dir", "/new/"), ENOTDIR);
    REFUSED(aifs_rename(fs, "/none/", "/new"), ENOENT);
    REFUSED(aifs_rename(fs, "/dir", "/dir/.."), EBUSY);
    REFUSED(aifs_renameat2(fs, "/dir", "/file/", RENAME_EXCHANGE), ENOTDIR);
    check_some();
    ck_assert_int_eq(aifs_rename(fs, "/dir", "/new/"), 0);
    ck_assert_int_eq(aifs_rename(fs, "/new/", "/dir"), 0);
    ck_assert_int_eq(aifs_renameat2(fs, "/file", "/dir/", RENAME_EXCHANGE), 0);
    ck_assert_int_eq(aifs_renameat2(fs, "/file/", "/dir", RENAME_EXCHANGE), 0);
    check_some();
}
END_TEST

START_TEST(a_batch_takes_slashes_as_single_calls_do)
{
    struct aifs_name names[] = {
        {.op = AIFS_NAME_STAT, .path = "/to-file/"}, {.op = AIFS_NAME_LSTAT, .path = "/file/"},
        {.op = AIFS_NAME_CREATE, .path = "/new/"},   {.op = AIFS_NAME_UNLINK, .path = "/file/"},
        {.op = AIFS_NAME_MKDIR, .path = "/."},       {.op = AIFS_NAME_RMDIR, .path = "/to-dir/"},
        {.op = AIFS_NAME_MKDIR, .path = "/made/"},   {.op = AIFS_NAME_UNLINK, .path = NULL},
    };
    static const int results[] = {ENOTDIR, ENOTDIR, EISDIR, ENOTDIR, EEXIST, ENOTDIR, 0, EFAULT};
    struct aifs_batch *b;

    make_some();
    b = aifs_batch_submit(fs, names, ARRAY_LEN(names));
    ck_assert_ptr_nonnull(b);
    ck_assert_int_eq(aifs_batch_wait(b, -1), 0);
    for (unsigned k = 0; k < ARRAY_LEN(names); k++)
        ck_assert_msg(names[k].result == -results[k], "%u: %s", k, strerror(-names[k].result));
    check_some();
}
END_TEST

/* ---- open directories ---- */

START_TEST(a_directory_that_is_open_is_listed_to_its_end_whatever_its_mode)
{
    enum { FILES = 1500 }; /* more than a page */
    static struct aifs_name names[FILES];
    static char paths[FILES][16];
    const struct aifs_dirent *e;
    struct aifs *other;
    struct aifs_dir *d;
    unsigned n = 0;

    if (geteuid()) /* to root no mode matters, and nobody else becomes somebody else */
        return;
    ck_assert_int_eq(aifs_chmod(fs, "/", 0777), 0);
    ck_assert_int_eq(chmod(cluster.tmp.dir, 0711), 0);
    ck_assert_int_eq(chown(cluster.key, 65534, 65534), 0);
    ck_assert_int_eq(setegid(65534), 0);
    ck_assert_int_eq(seteuid(65534), 0);
    ck_assert_msg(aifs_mount(cluster.source, cluster.options, &other) == 0, "%s",
                  aifs_mount_error());
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(setegid(0), 0);
    ck_assert_int_eq(aifs_mkdir(other, "/d", 0755), 0);
    for (unsigned k = 0; k < FILES; k++) {
        snprintf(paths[k], sizeof paths[k], "/d/%u", k);
        names[k] = (struct aifs_name){.op = AIFS_NAME_CREATE, .mode = 0644, .path = paths[k]};
    }
    ck_assert_int_eq(aifs_batch_wait(aifs_batch_submit(other, names, FILES), -1), 0);
    d = aifs_opendir(other, "/d");
    ck_assert_ptr_nonnull(d);
    ck_assert_int_eq(aifs_chmod(other, "/d", 0), 0);
    NOT_OPENED(aifs_opendir(other, "/d"), EACCES);
    for (unsigned round = 1; round <= 2; round++) {
        errno = 0;
        while ((e = aifs_readdir(d)) != NULL)
            n++;
        ck_assert_msg(errno == 0, "round %u: %s", round, strerror(errno));
        ck_assert_uint_eq(n, round * (FILES + 2));
        aifs_rewinddir(d);
    }
    ck_assert_int_eq(aifs_closedir(d), 0);
    ck_assert_int_eq(aifs_unmount(other), 0);
}
END_TEST

/* ---- arguments ---- */

START_TEST(a_copy_of_more_than_there_is_ends_at_the_end)
{
    struct aifs_file *f, *g;
    char back[16];

    make("/from", "0123456789");
    make("/to", "");
    f = aifs_open(fs, "/from", O_RDWR, 0);
    g = aifs_open(fs, "/to", O_RDWR, 0);
    ck_assert(f && g);
    ck_assert_int_eq(aifs_copy_file_range(f, 3, g, 0, SSIZE_MAX), 7);
    ck_assert_int_eq(aifs_copy_file_range(f, 0, g, 6, SIZE_MAX), 10);
    ck_assert_int_eq(aifs_pread(g, back, sizeof back, 0), 16);
    ck_assert_mem_eq(back, "3456780123456789", 16);
    ck_assert_int_eq(aifs_copy_file_range(f, 99, g, 0, SSIZE_MAX), 0);
    ck_assert_int_eq(aifs_copy_file_range(f, 2, f, 10, SSIZE_MAX), 8); /* behind the end */
    REFUSED(aifs_copy_file_range(f, 2, f, 10, SSIZE_MAX), EINVAL);     /* which is there now */
    REFUSED(aifs_copy_file_range(f, 0, g, INT64_MAX, 100), EFBIG);
    ck_assert_int_eq(aifs_close(f), 0);
    ck_assert_int_eq(aifs_close(g), 0);
}
END_TEST

START_TEST(arguments_of_files_that_make_no_sense_are_refused)
{
    struct aifs_file *r, *w;
    struct flock lock = {.l_type = F_WRLCK, .l_start = 10, .l_len = INT64_MAX - 9};
    struct iovec none = {NULL, 5};
    struct aifs *other = NULL;
    char text[8];

    make("/file", "text");
    REFUSED(aifs_mount(NULL, NULL, &other), EFAULT);
    NOT_OPENED(aifs_open(fs, NULL, O_RDONLY, 0), EFAULT);
    NOT_OPENED(aifs_open(fs, "", O_RDONLY, 0), ENOENT);
    NOT_OPENED(aifs_open(fs, "/file", O_ACCMODE, 0), EINVAL);
    NOT_OPENED(aifs_open(fs, "/file", O_RDONLY | O_DIRECTORY, 0), ENOTDIR);
    r = aifs_open(fs, "/file", O_RDONLY, 0);
    w = aifs_open(fs, "/file", O_WRONLY, 0);
    ck_assert(r && w);
    REFUSED(aifs_pread(w, text, 0, 0), EBADF);
    REFUSED(aifs_pread(w, text, 1, 0), EBADF);
    REFUSED(aifs_pwrite(r, text, 0, 0), EBADF);
    REFUSED(aifs_pread(r, text, (size_t)SSIZE_MAX + 1, 0), EINVAL);
    REFUSED(aifs_pread(r, text, 1, -1), EINVAL);
    REFUSED(aifs_pread(r, NULL, 1, 0), EFAULT);
    ck_assert_int_eq(aifs_pread(r, text, sizeof text, INT64_MAX), 0);
    ck_assert_int_eq(aifs_pread(r, NULL, 0, 0), 0);
    REFUSED(aifs_pwrite(w, NULL, 1, 0), EFAULT);
    REFUSED(aifs_pwrite(w, "x", 1, -1), EINVAL);
    REFUSED(aifs_pwrite(w, "x", 1, INT64_MAX), EFBIG);
    REFUSED(aifs_pwritev(w, &none, 1, 0), EFAULT);
    REFUSED(aifs_pwritev(w, NULL, 1, 0), EFAULT);
    REFUSED(aifs_pwritev(w, &none, -1, 0), EINVAL);
    REFUSED(aifs_ftruncate(w, -1), EINVAL);
    REFUSED(aifs_ftruncate(r, 1), EINVAL);
    REFUSED(aifs_fallocate(w, 0, 1, INT64_MAX), EFBIG);
    REFUSED(aifs_fallocate(w, 0, 0, 0), EINVAL);
    REFUSED(aifs_fallocate(r, 0, 0, 1), EBADF);
    REFUSED(aifs_flock(w, 77), EINVAL);
    REFUSED(aifs_lock(w, 77, &lock), EINVAL);
    REFUSED(aifs_lock(w, F_SETLK, NULL), EFAULT);
    REFUSED(aifs_fstat(w, NULL), EFAULT);
    ck_assert_int_eq(aifs_lock(w, F_SETLK, &lock), 0); /* up to the last byte there may be */
    ck_assert_int_eq(aifs_close(r), 0);
    ck_assert_int_eq(aifs_close(w), 0);
}
END_TEST

START_TEST(arguments_of_names_that_make_no_sense_are_refused)
{
    struct stat st;
    char text[8];

    make_some();
    REFUSED(aifs_stat(fs, "/file", NULL), EFAULT);
    REFUSED(aifs_stat(fs, NULL, &st), EFAULT);
    REFUSED(aifs_statvfs(fs, NULL), EFAULT);
    REFUSED(aifs_symlink(fs, NULL, "/new"), EFAULT);
    REFUSED(aifs_symlink(fs, "", "/new"), ENOENT);
    REFUSED(aifs_readlink(fs, "/to-file", text, 0), EINVAL);
    REFUSED(aifs_readlink(fs, "/to-file", NULL, 1), EFAULT);
    REFUSED(aifs_rename(fs, "/file", NULL), EFAULT);
    REFUSED(aifs_renameat2(fs, "/file", "/new", 0x80), EINVAL);
    REFUSED(aifs_renameat2(fs, "/file", "/new", RENAME_WHITEOUT), EINVAL);
    REFUSED(aifs_renameat2(fs, "/file", "/dir", RENAME_NOREPLACE | RENAME_EXCHANGE), EINVAL);
    REFUSED(aifs_setxattr(fs, "/file", "user.x", "y", 1, 0x80), EINVAL);
    REFUSED(aifs_setxattr(fs, "/file", "user.x", NULL, 1, 0), EFAULT);
    REFUSED(aifs_setxattr(fs, "/file", NULL, "y", 1, 0), EFAULT);
    REFUSED(aifs_getxattr(fs, "/file", NULL, text, sizeof text), EFAULT);
    REFUSED(aifs_getxattr(fs, "/file", "user.x", NULL, 1), EFAULT);
    REFUSED(aifs_removexattr(fs, "/file", NULL), EFAULT);
    REFUSED(aifs_truncate(fs, "/file", -1), EINVAL);
    REFUSED(aifs_truncate(fs, "/dir", 1), EISDIR);
    ck_assert_int_eq(aifs_mkdir(fs, "/odd", (mode_t)~0u), 0);
    ck_assert_int_eq(aifs_stat(fs, "/odd", &st), 0);
    ck_assert_uint_eq(st.st_mode, S_IFDIR | 01777);
    check_some();
}
END_TEST

CLUSTER_SUITE_MAIN("libaifs: rules", setup, teardown, large_appends_of_two_mounts_are_not_mixed,
                   large_appends_that_are_under_way_together_are_not_mixed,
                   an_append_longer_than_one_place_is_whole_when_nobody_else_writes,
                   a_slash_behind_a_name_wants_a_directory, a_file_is_made_where_a_link_leads,
                   a_file_that_others_remove_is_made_again_where_a_link_leads,
                   nothing_is_made_where_a_link_leads_when_that_is_not_asked_for,
                   a_slash_behind_a_name_that_is_removed_or_made_is_as_linux_takes_it,
                   a_slash_behind_a_name_that_is_renamed_wants_a_directory,
                   a_batch_takes_slashes_as_single_calls_do,
                   a_directory_that_is_open_is_listed_to_its_end_whatever_its_mode,
                   a_copy_of_more_than_there_is_ends_at_the_end,
                   arguments_of_files_that_make_no_sense_are_refused,
                   arguments_of_names_that_make_no_sense_are_refused)
