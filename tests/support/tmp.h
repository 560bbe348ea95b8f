/* SPDX-License-Identifier: Apache-2.0 */
/* A directory of its own for a test, and small files in it. Everything here fails the test when it
 * fails. */
#ifndef AIFS_TESTS_SUPPORT_TMP_H
#define AIFS_TESTS_SUPPORT_TMP_H

#include <check.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

struct tmp {
    char dir[PATH_MAX / 2];
    char path[PATH_MAX]; /* of the last tmp_path() */
};

static inline void tmp_make(struct tmp *t)
{
    const char *base = getenv("TMPDIR");

    snprintf(t->dir, sizeof t->dir, "%s/aifs-test-XXXXXX", base && *base ? base : "/tmp");
    ck_assert_msg(mkdtemp(t->dir) != NULL, "mkdtemp %s", t->dir);
}

static inline int tmp_remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static inline void tmp_remove(struct tmp *t)
{
    ck_assert_int_eq(nftw(t->dir, tmp_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* A small disk of its own over dir, in a mount name space of this process; false: this
 * process may not mount. options: of tmpfs, "size=16k". */
static inline bool tmp_mount(const char *dir, const char *options)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", dir, "tmpfs", 0, options) == 0;
}

/* Valid until the next call. */
static inline const char *tmp_path(struct tmp *t, const char *name)
{
    snprintf(t->path, sizeof t->path, "%s/%s", t->dir, name);
    return t->path;
}

static inline const char *tmp_write_bytes(struct tmp *t, const char *name, const void *bytes,
                                          size_t len, mode_t mode)
{
    const char *path = tmp_path(t, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, len), (ssize_t)len);
    ck_assert_int_eq(fchmod(fd, mode), 0);
    close(fd);
    return path;
}

static inline const char *tmp_write(struct tmp *t, const char *name, const char *text)
{
    return tmp_write_bytes(t, name, text, strlen(text), 0600);
}

#endif
