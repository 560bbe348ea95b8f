// SPDX-License-Identifier: Apache-2.0
/* fsck: which chunks without a file are lost, and which belong to files that came later; records
 * that cannot be read. */
#include <check.h>
#include <endian.h>
#include <string.h>

#include "common/base/bytes.h"
#include "mds/session/given.h"
#include "mds/store/key_fmt.h"
#include "mds/store/rec.h"
#include "proto/number.h"
#include "tests/support/suite.h"
#include "tools/fsck/fsck.h"

static struct fsck *f;
static const char *found;
static enum fsck_level found_level;

static void report(void *arg, enum fsck_level level, const char *code, uint64_t ino,
                   const char *path, const char *text)
{
    (void)arg;
    (void)ino;
    (void)path;
    (void)text;
    found = code;
    found_level = level;
}

static void setup(void)
{
    static const struct cluster_map map;

    ck_assert_int_eq(fsck_create(&map, report, NULL, &f), 0);
    found = NULL;
}

static void teardown(void)
{
    fsck_destroy(f);
}

static void record(const struct key *k, const void *value, size_t len)
{
    ck_assert_int_eq(fsck_record(f, k->b, k->len, value, len), 0);
}

static void session(uint64_t id, uint32_t next)
{
    struct given_rec rec = {.version = htole16(GIVEN_REC_VERSION)};
    struct key k;

    key_number(&k, KEY_SESSION, id);
    record(&k, "", 0);
    key_number(&k, KEY_GIVEN, id);
    if (next && given_use(&rec, next - 1) == 0) /* those below it are on their way */
        record(&k, &rec, sizeof rec);
}

static enum fsck_level chunk_of(uint64_t ino)
{
    struct msg_chunk_info c = {.ino = ino};

    found = NULL;
    ck_assert_int_eq(fsck_chunk(f, 1, &c), 0);
    ck_assert_ptr_nonnull(found);
    ck_assert_str_eq(found, "chunk-without-inode");
    return found_level;
}

START_TEST(chunks_of_numbers_that_came_later_are_not_damage)
{
    uint8_t sessions[8];
    struct key k;

    key_counter(&k, COUNTER_SESSION);
    le64_store(sessions, 5);
    record(&k, sessions, sizeof sessions);
    session(3, 10);
    session(5, 0);
    session(7, 5000);
    ck_assert_int_eq(chunk_of(number_given(1, 3, 9)), FSCK_DAMAGE);
    ck_assert_int_eq(chunk_of(number_given(1, 3, 10)), FSCK_NOTE);
    ck_assert_int_eq(chunk_of(number_given(1, 3, 8)), FSCK_NOTE); /* it came after a higher one */
    ck_assert_int_eq(chunk_of(number_given(1, 7, 100)), FSCK_DAMAGE); /* too old to be on its way */
    ck_assert_int_eq(chunk_of(number_given(1, 4, 0)), FSCK_DAMAGE);   /* it has ended */
    ck_assert_int_eq(chunk_of(number_given(1, 5, 0)), FSCK_NOTE);
    ck_assert_int_eq(chunk_of(number_given(1, 6, 0)), FSCK_NOTE);
    ck_assert_int_eq(chunk_of(100), FSCK_NOTE); /* the server's own: there is none as high */
}
END_TEST

START_TEST(a_record_of_used_numbers_that_cannot_be_read_is_damage)
{
    struct key k;

    key_number(&k, KEY_GIVEN, 3);
    record(&k, "damaged", 7);
    ck_assert_str_eq(found, "numbers-unreadable");
    ck_assert_int_eq(found_level, FSCK_DAMAGE);
}
END_TEST

START_TEST(an_item_of_a_queue_that_cannot_be_read_is_damage)
{
    static const enum key_type queues[] = {KEY_DESTROY, KEY_PUNCH, KEY_RECOVER};
    struct mds_queue_item item = {.index = 7};
    struct queue_rec rec;

    rec_queue_encode(&item, &rec);
    for (unsigned i = 0; i < ARRAY_LEN(queues); i++) {
        struct key k;

        found = NULL;
        key_number(&k, queues[i], 9);
        record(&k, &rec, sizeof rec);
        ck_assert_ptr_null(found);
        record(&k, &rec, sizeof rec - 1);
        ck_assert_str_eq(found, "queue-unreadable");
        ck_assert_int_eq(found_level, FSCK_DAMAGE);
        found = NULL;
        k.b[k.len++] = 1;
        record(&k, &rec, sizeof rec);
        ck_assert_str_eq(found, "queue-unreadable");
    }
}
END_TEST

SUITE_MAIN("fsck", setup, teardown, chunks_of_numbers_that_came_later_are_not_damage,
           a_record_of_used_numbers_that_cannot_be_read_is_damage,
           an_item_of_a_queue_that_cannot_be_read_is_damage)
