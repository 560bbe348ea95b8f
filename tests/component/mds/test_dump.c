// SPDX-License-Identifier: Apache-2.0
/* What a dump holds and a load makes of it, and what a load leaves that fails. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/crc.h"
#include "common/base/err.h"
#include "common/base/file.h"
#include "common/base/mem.h"
#include "mds/store/dump_fmt.h"
#include "mds/store/store.h"
#include "proto/msg.h"
#include "tests/support/suite.h"

static char root[128], dump[160], dir[160], shard[192];
static uint8_t *page, *value;
static size_t len;

static void setup(void)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(root, sizeof root, "%s/aifs-dump-XXXXXX", tmp ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(root));
    snprintf(dump, sizeof dump, "%s/dump", root);
    snprintf(dir, sizeof dir, "%s/dir", root);
    snprintf(shard, sizeof shard, "%s/shard0", dir);
    page = calloc(1, MSG_BULK_MAX);
    value = calloc(1, MSG_BULK_MAX);
    len = 0;
}

static void teardown(void)
{
    char command[256];

    snprintf(command, sizeof command, "rm -r %s", root);
    ck_assert_int_eq(system(command), 0);
    free(page);
    free(value);
}

/* A whole dump of what is in the page, or only its first bytes. */
static int load(uint64_t records, size_t cut)
{
    struct dump_header h = {.magic = DUMP_MAGIC, .version = htole32(DUMP_VERSION)};
    uint8_t t[sizeof(struct dump_trailer)];
    int fd = open(dump, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), rc;
    uint64_t loaded = 0;
    char err[256];

    ck_assert_int_ge(fd, 0);
    h.crc = htole32(crc32c(&h, sizeof h));
    le32_store(t, DUMP_END);
    le64_store(t + 8, records);
    le32_store(t + 4, crc32c(t + 8, 8));
    ck_assert_int_eq(file_write_all(fd, &h, sizeof h), 0);
    ck_assert_int_eq(file_write_all(fd, page, len), 0);
    ck_assert_int_eq(file_write_all(fd, t, sizeof t), 0);
    if (cut)
        ck_assert_int_eq(ftruncate(fd, (off_t)cut), 0);
    ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
    rc = dump_load(fd, dir, &loaded, err, sizeof err);
    close(fd);
    if (rc == 0)
        ck_assert_uint_eq(loaded, records);
    return rc;
}

/* As large as a message may be with a map in it (proto/codec). */
START_TEST(the_largest_map_goes_through_a_dump)
{
    const uint32_t n = (1u << 20) - 256;
    struct store_options o = {.read_only = true};
    struct store_value found = {0};
    struct store *s;
    struct key k;

    for (uint32_t i = 0; i < n; i++)
        value[i] = (uint8_t)(i * 7 + (i >> 8));
    key_single(&k, KEY_MAP);
    ck_assert_int_eq(dump_append(page, MSG_BULK_MAX, &len, k.b, k.len, value, n), 0);
    ck_assert_int_eq(load(1, 0), 0);
    ck_assert_int_eq(store_open(shard, &o, &s), 0);
    ck_assert_int_eq(store_get(s, NULL, k.b, k.len, &found), 0);
    ck_assert(found.len == n && memcmp(found.data, value, n) == 0);
    store_value_release(&found);
    store_close(s);
}
END_TEST

static void records(uint32_t n)
{
    for (uint32_t i = 1; i <= n; i++) {
        struct key k;

        key_number(&k, KEY_ORPHAN, i);
        ck_assert_int_eq(dump_append(page, MSG_BULK_MAX, &len, k.b, k.len, "", 0), 0);
    }
}

START_TEST(a_dump_that_was_cut_short_leaves_no_directory)
{
    const size_t cuts[] = {10, sizeof(struct dump_header), sizeof(struct dump_header) + 30, 0};

    records(100);
    for (unsigned i = 0; i < ARRAY_LEN(cuts); i++) {
        size_t cut = cuts[i] ? cuts[i] : sizeof(struct dump_header) + len + 3;

        ck_assert_int_eq(load(100, cut), -AIFS_ECORRUPT);
        ck_assert_int_eq(access(dir, F_OK), -1);
    }
    ck_assert_int_eq(load(99, 0), -AIFS_ECORRUPT); /* another number than there are */
    ck_assert_int_eq(access(dir, F_OK), -1);
    ck_assert_int_eq(load(100, 0), 0);
}
END_TEST

START_TEST(a_directory_that_was_there_stays_and_is_empty)
{
    records(100);
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    ck_assert_int_eq(load(100, sizeof(struct dump_header) + 30), -AIFS_ECORRUPT);
    ck_assert_int_eq(access(dir, F_OK), 0);
    ck_assert_int_eq(access(shard, F_OK), -1);
    ck_assert_int_eq(load(100, 0), 0);
    ck_assert_int_eq(load(100, 0), -EEXIST);
}
END_TEST

SUITE_MAIN("mds-dump", setup, teardown, the_largest_map_goes_through_a_dump,
           a_dump_that_was_cut_short_leaves_no_directory,
           a_directory_that_was_there_stays_and_is_empty)
