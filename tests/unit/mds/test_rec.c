/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and records: fixed bytes, and nothing decoded that cannot be. */
#include <check.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "mds/store/key_fmt.h"
#include "mds/store/rec.h"
#include "tests/support/suite.h"

/* On disk for ever: if this fails, the hash has changed and every directory is lost. */
START_TEST(the_hash_of_names_never_changes)
{
    ck_assert_uint_eq(key_name_hash("a", 1), 0x415154ac54dfull);
    ck_assert_uint_eq(key_name_hash("hello.txt", 9), 0x12cc0d424ebdull);
    ck_assert_uint_eq(key_name_hash("", 0), 0x77e80fb05d4cull);
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t h = key_name_hash(&i, sizeof(i));

        ck_assert_uint_ne(h, 0);
        ck_assert_uint_eq(h >> KEY_HASH_BITS, 0);
    }
}
END_TEST

START_TEST(keys_sort_as_their_numbers)
{
    struct key a, b, c;

    key_number(&a, KEY_INODE, 255);
    key_number(&b, KEY_INODE, 256);
    ck_assert_int_lt(memcmp(a.b, b.b, a.len), 0);
    key_dirent_hash(&a, 1, 0xffff);
    key_dirent_hash(&b, 1, 0x10000);
    key_dirent_hash(&c, 2, 1);
    ck_assert_int_lt(memcmp(a.b, b.b, a.len), 0);
    ck_assert_int_lt(memcmp(b.b, c.b, b.len), 0);
    ck_assert_uint_eq(a.len, 15);
    key_dirent(&a, 7, "name", 4);
    ck_assert_uint_eq(a.len, 19);
    ck_assert_uint_eq(key_number_of(a.b), 7);
    key_slot(&a, 5, 6);
    ck_assert_uint_eq(a.len, 13);
}
END_TEST

static struct mds_inode sample(void)
{
    return (struct mds_inode){.ino = 42,
                              .mode = S_IFREG | 0640,
                              .nlink = 3,
                              .uid = 1,
                              .gid = 2,
                              .rdev = 3,
                              .flags = INODE_INLINE,
                              .n_xattrs = 4,
                              .size = 1ull << 40,
                              .change = 5,
                              .truncate_gen = 6,
                              .atime = {-1, 7},
                              .mtime = {8, 9},
                              .ctime = {10, 11},
                              .btime = {12, 13},
                              .layout = {1, 2, 3, 4, 5, 6, 7},
                              .entries = 14,
                              .stripe = {1, 2, 3, 4, 5, 6},
                              .run_next = 15,
                              .run_left = 16,
                              .run_size = 17};
}

START_TEST(an_inode_comes_back_as_it_went)
{
    struct mds_inode in = sample(), out;
    struct inode_rec rec;

    memset(&out, 0xaa, sizeof(out));
    rec_inode_encode(&in, &rec);
    ck_assert_int_eq(rec_inode_decode(42, &rec, sizeof(rec), &out), 0);
    ck_assert_uint_eq(out.size, in.size);
    ck_assert_int_eq(out.atime.sec, -1);
    ck_assert_uint_eq(out.btime.nsec, 13);
    ck_assert_mem_eq(&out.layout, &in.layout, sizeof(in.layout));
    ck_assert_mem_eq(&out.stripe, &in.stripe, sizeof(in.stripe));
    ck_assert_uint_eq(out.entries, 14);
    ck_assert_uint_eq(out.run_size, 17);
    ck_assert_uint_eq(out.n_xattrs, 4);
}
END_TEST

START_TEST(what_cannot_be_is_refused)
{
    struct mds_inode in = sample(), out;
    struct mds_dirent d = {.ino = 1, .ordinal = 1}, e;
    struct mds_queue_item q = {.size = 5}, p;
    struct dirent_rec drec;
    struct queue_rec qrec;
    struct inode_rec rec;

    rec_inode_encode(&in, &rec);
    for (size_t len = 0; len < sizeof(rec); len++)
        ck_assert_int_eq(rec_inode_decode(42, &rec, len, &out), -AIFS_ECORRUPT);
    rec.version = 2;
    ck_assert_int_eq(rec_inode_decode(42, &rec, sizeof(rec), &out), -AIFS_EFORMAT);
    in.mode = 0644;
    rec_inode_encode(&in, &rec);
    ck_assert_int_eq(rec_inode_decode(42, &rec, sizeof(rec), &out), -AIFS_ECORRUPT);
    rec_dirent_encode(&d, &drec);
    ck_assert_int_eq(rec_dirent_decode(&drec, sizeof(drec), &e), 0);
    ck_assert_int_eq(rec_dirent_decode(&drec, sizeof(drec) - 1, &e), -AIFS_ECORRUPT);
    drec.version = 9;
    ck_assert_int_eq(rec_dirent_decode(&drec, sizeof(drec), &e), -AIFS_EFORMAT);
    d.ino = 0;
    rec_dirent_encode(&d, &drec);
    ck_assert_int_eq(rec_dirent_decode(&drec, sizeof(drec), &e), -AIFS_ECORRUPT);
    rec_queue_encode(&q, &qrec);
    ck_assert_int_eq(rec_queue_decode(&qrec, sizeof(qrec), &p), 0);
    ck_assert_uint_eq(p.size, 5);
    ck_assert_int_eq(rec_queue_decode(&qrec, 3, &p), -AIFS_ECORRUPT);
}
END_TEST

START_TEST(clients_see_no_inner_flags)
{
    struct mds_inode in = sample();
    struct msg_attr a;

    in.flags = INODE_INLINE | INODE_ORPHAN | INODE_STRAY_CHUNKS | INODE_PUNCH_PENDING;
    rec_inode_attr(&in, &a);
    ck_assert_uint_eq(a.flags, MSG_ATTR_INLINE | MSG_ATTR_PUNCH_PENDING);
    ck_assert_uint_eq(a.ino, 42);
}
END_TEST

SUITE_MAIN("rec", NULL, NULL, the_hash_of_names_never_changes, keys_sort_as_their_numbers,
           an_inode_comes_back_as_it_went, what_cannot_be_is_refused, clients_see_no_inner_flags)
