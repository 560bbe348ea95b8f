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

CLUSTER_SUITE_MAIN("libaifs: rules", setup, teardown, large_appends_of_two_mounts_are_not_mixed,
                   large_appends_that_are_under_way_together_are_not_mixed,
                   an_append_longer_than_one_place_is_whole_when_nobody_else_writes)
