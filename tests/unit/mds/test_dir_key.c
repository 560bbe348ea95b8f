/* SPDX-License-Identifier: Apache-2.0 */
/* With which key a directory was served is noted whole or not at all; what is in the way is told.
 */
#include "mds/dir_key.h"

#include <errno.h>

#include "common/base/log.h"
#include "tests/support/suite.h"
#include "tests/support/tmp.h"

static struct tmp tmp, logs;
static struct crypto_key key, other;

static void make_key(struct crypto_key *k)
{
    ck_assert_int_eq(crypto_key_create(k), 0);
}

static void setup(void)
{
    tmp_make(&tmp);
    tmp_make(&logs);
    make_key(&key);
    make_key(&other);
    ck_assert_int_eq(log_open_file(tmp_path(&logs, "log")), 0);
}

static void teardown(void)
{
    tmp_remove(&tmp);
    tmp_remove(&logs);
}

/* What is logged by a check of this key, until the next call. */
static const char *check(const struct crypto_key *k)
{
    static char text[4096];
    int fd;

    ck_assert_int_eq(truncate(tmp_path(&logs, "log"), 0), 0);
    dir_key_check(tmp.dir, k, "the.key");
    fd = open(tmp_path(&logs, "log"), O_RDONLY);
    memset(text, 0, sizeof text);
    ck_assert_int_ge(read(fd, text, sizeof text - 1), 0);
    close(fd);
    return text;
}

static void check_gone(const char *name)
{
    ck_assert_int_eq(access(tmp_path(&tmp, name), F_OK), -1);
}

START_TEST(the_first_key_is_noted_and_another_told)
{
    ck_assert_str_eq(check(&key), "");
    ck_assert_str_eq(check(&key), "");
    ck_assert_ptr_nonnull(strstr(check(&other), "another key"));
    ck_assert_ptr_nonnull(strstr(check(&other), "another key")); /* and not noted instead */
    dir_key_forget(tmp.dir);
    ck_assert_str_eq(check(&other), "");
    ck_assert_ptr_nonnull(strstr(check(&key), "another key"));
}
END_TEST

START_TEST(a_full_disk_is_told_and_leaves_nothing)
{
    char filler[4096] = {0};

    if (!tmp_mount(tmp.dir, "size=8k")) {
        printf("no right to mount: not tested\n");
        return;
    }
    tmp_write_bytes(&tmp, "one", filler, sizeof filler, 0600);
    tmp_write_bytes(&tmp, "two", filler, sizeof filler, 0600);
    ck_assert_ptr_nonnull(strstr(check(&key), strerror(ENOSPC)));
    check_gone("key.id");
    check_gone("key.id.new");
    ck_assert_int_eq(unlink(tmp_path(&tmp, "two")), 0);
    ck_assert_str_eq(check(&key), "");
    ck_assert_str_eq(check(&key), "");
    ck_assert_int_eq(umount(tmp.dir), 0);
}
END_TEST

START_TEST(what_cannot_be_replaced_is_told)
{
    ck_assert_int_eq(mkdir(tmp_path(&tmp, "key.id"), 0700), 0);
    ck_assert_ptr_nonnull(strstr(check(&key), strerror(EISDIR)));
    tmp_remove(&tmp);
    ck_assert_ptr_nonnull(strstr(check(&key), strerror(ENOENT)));
    ck_assert_int_eq(mkdir(tmp.dir, 0700), 0);
}
END_TEST

SUITE_MAIN("dir-key", setup, teardown, the_first_key_is_noted_and_another_told,
           a_full_disk_is_told_and_leaves_nothing, what_cannot_be_replaced_is_told)
