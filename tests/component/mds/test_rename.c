/* SPDX-License-Identifier: Apache-2.0 */
/* Renames: what may become what, loops, exchange, and what is left behind. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "tests/component/mds/bed.h"
#include "tests/support/suite.h"

static struct bed bed;
#define ROOT KEY_ROOT_INO

static void setup(void)
{
    bed_open(&bed);
}

static void teardown(void)
{
    bed_check_tree(&bed);
    bed_close(&bed);
}

START_TEST(a_file_moves_with_its_inode)
{
    uint64_t a = bed_dir(&bed, ROOT, "a"), b = bed_dir(&bed, ROOT, "b"), f = bed_file(&bed, a, "f");

    ck_ok(bed_rename(&bed, a, "f", b, "g", 0));
    ck_assert_uint_eq(bed_lookup(&bed, a, "f"), 0);
    ck_assert_uint_eq(bed_lookup(&bed, b, "g"), f);
    ck_assert_int_eq(bed_rename(&bed, a, "f", b, "h", 0), -ENOENT);
}
END_TEST

START_TEST(a_replaced_file_is_gone_or_an_orphan_when_open)
{
    uint64_t f = bed_file(&bed, ROOT, "f"), g = bed_file(&bed, ROOT, "g"), h;
    struct mds_inode in;

    ck_ok(bed_rename(&bed, ROOT, "f", ROOT, "g", 0));
    ck_assert_uint_eq(bed_lookup(&bed, ROOT, "g"), f);
    ck_assert_int_eq(bed_inode(&bed, g, &in), -ENOENT);
    h = bed_file(&bed, ROOT, "h");
    bed.is_open[1] = true;
    ck_ok(bed_rename(&bed, ROOT, "g", ROOT, "h", 0));
    ck_assert(bed.e.result & SHARD_R_ORPHANED);
    ck_assert_uint_eq(bed.e.result_ino, h);
    ck_assert(bed_has(&bed, KEY_ORPHAN, h));
}
END_TEST

START_TEST(kinds_must_match)
{
    uint64_t d = bed_dir(&bed, ROOT, "d");

    bed_file(&bed, ROOT, "f");
    bed_dir(&bed, ROOT, "e");
    bed_file(&bed, d, "x");
    ck_assert_int_eq(bed_rename(&bed, ROOT, "f", ROOT, "d", 0), -EISDIR);
    ck_assert_int_eq(bed_rename(&bed, ROOT, "d", ROOT, "f", 0), -ENOTDIR);
    ck_assert_int_eq(bed_rename(&bed, ROOT, "e", ROOT, "d", 0), -ENOTEMPTY);
    ck_ok(bed_rename(&bed, ROOT, "d", ROOT, "e", 0));
    ck_assert_uint_eq(bed_lookup(&bed, ROOT, "e"), d);
}
END_TEST

START_TEST(two_names_of_one_file_stay)
{
    uint64_t f = bed_file(&bed, ROOT, "f");

    ck_ok(bed_link(&bed, f, ROOT, "g"));
    ck_ok(bed_rename(&bed, ROOT, "f", ROOT, "g", 0));
    ck_assert_uint_eq(bed_lookup(&bed, ROOT, "f"), f);
    ck_assert_uint_eq(bed_lookup(&bed, ROOT, "g"), f);
    ck_ok(bed_rename(&bed, ROOT, "f", ROOT, "f", 0));
    ck_assert_int_eq(bed_rename(&bed, ROOT, "f", ROOT, "f", RENAME_NOREPLACE), -EEXIST);
}
END_TEST

START_TEST(noreplace_and_flags)
{
    bed_file(&bed, ROOT, "f");
    bed_file(&bed, ROOT, "g");
    ck_assert_int_eq(bed_rename(&bed, ROOT, "f", ROOT, "g", RENAME_NOREPLACE), -EEXIST);
    ck_ok(bed_rename(&bed, ROOT, "f", ROOT, "h", RENAME_NOREPLACE));
    ck_assert_int_eq(bed_rename(&bed, ROOT, "g", ROOT, "h", RENAME_NOREPLACE | RENAME_EXCHANGE),
                     -EINVAL);
    ck_assert_int_eq(bed_rename(&bed, ROOT, "g", ROOT, "i", RENAME_EXCHANGE), -ENOENT);
    ck_assert_int_eq(bed_rename(&bed, ROOT, "g", ROOT, "i", 64), -EINVAL);
}
END_TEST

START_TEST(exchange_of_a_file_and_a_directory_of_different_parents)
{
    uint64_t a = bed_dir(&bed, ROOT, "a"), b = bed_dir(&bed, ROOT, "b"), d = bed_dir(&bed, a, "d");
    uint64_t f = bed_file(&bed, b, "f");
    struct mds_inode in;

    bed_file(&bed, d, "kept");
    ck_ok(bed_rename(&bed, a, "d", b, "f", RENAME_EXCHANGE));
    ck_assert_uint_eq(bed_lookup(&bed, a, "d"), f);
    ck_assert_uint_eq(bed_lookup(&bed, b, "f"), d);
    ck_ok(bed_inode(&bed, a, &in));
    ck_assert_uint_eq(in.nlink, 2);
    ck_ok(bed_inode(&bed, b, &in));
    ck_assert_uint_eq(in.nlink, 3);
}
END_TEST

START_TEST(a_directory_never_moves_below_itself)
{
    uint64_t a = bed_dir(&bed, ROOT, "a"), b = bed_dir(&bed, a, "b"), c = bed_dir(&bed, b, "c");

    ck_assert_int_eq(bed_rename(&bed, ROOT, "a", a, "x", 0), -EINVAL);
    ck_assert_int_eq(bed_rename(&bed, ROOT, "a", c, "x", 0), -EINVAL);
    ck_assert_int_eq(bed_rename(&bed, ROOT, "a", b, "c", 0), -EINVAL);
    ck_assert_int_eq(bed_rename(&bed, b, "c", ROOT, "a", 0), -ENOTEMPTY);
    ck_assert_int_eq(bed_rename(&bed, b, "c", ROOT, "a", RENAME_EXCHANGE), -EINVAL);
    /* what is no loop goes: c up, then the rest below it */
    ck_ok(bed_rename(&bed, b, "c", ROOT, "c", 0));
    ck_ok(bed_rename(&bed, ROOT, "a", c, "a", 0));
    ck_assert_int_eq(bed_rename(&bed, ROOT, "c", b, "c", 0), -EINVAL);
    ck_assert_uint_eq(bed_lookup(&bed, c, "a"), a);
}
END_TEST

START_TEST(moving_a_directory_needs_the_right_to_change_it)
{
    uint64_t a, b;

    bed.cred = (struct msg_cred){.uid = 5, .gid = 5};
    a = bed_dir(&bed, ROOT, "a");
    b = bed_dir(&bed, ROOT, "b");
    bed.cred.uid = 0;
    bed_dir(&bed, a, "d");
    bed_file(&bed, a, "f");
    bed.cred.uid = 5;
    ck_assert_int_eq(bed_rename(&bed, a, "d", b, "d", 0), -EACCES);
    ck_ok(bed_rename(&bed, a, "d", a, "e", 0));
    ck_ok(bed_rename(&bed, a, "f", b, "f", 0));
    bed.cred.uid = 6;
    ck_assert_int_eq(bed_rename(&bed, b, "f", b, "g", 0), -EACCES);
}
END_TEST

/* Many renames of directories among each other, and never a loop: from every directory up is the
 * root. */
START_TEST(a_thousand_random_renames_leave_a_tree)
{
    enum { N = 24 };
    uint64_t dir[N];
    unsigned seed = 4711, done = 0;
    char names[N][8];

    dir[0] = ROOT;
    for (unsigned i = 1; i < N; i++) {
        snprintf(names[i], sizeof(names[i]), "d%u", i);
        dir[i] = bed_dir(&bed, dir[(unsigned)rand_r(&seed) % i], names[i]);
    }
    for (unsigned n = 0; n < 1000; n++) {
        unsigned i = 1 + (unsigned)rand_r(&seed) % (N - 1), to = (unsigned)rand_r(&seed) % N;
        struct view v;
        uint64_t parent;
        int rc;

        view_begin(bed.shard, &v);
        ck_ok(view_parent(&v, dir[i], &parent));
        view_end(&v);
        rc = bed_rename(&bed, parent, names[i], dir[to], names[i], 0);
        ck_assert_msg(rc == 0 || rc == -EINVAL, "rename: %s", err_name(rc));
        done += rc == 0;
    }
    ck_assert_uint_gt(done, 100);
    for (unsigned i = 1; i < N; i++) {
        uint64_t at = dir[i];
        unsigned depth = 0;
        struct view v;

        view_begin(bed.shard, &v);
        while (at != ROOT && depth++ <= N)
            ck_ok(view_parent(&v, at, &at));
        view_end(&v);
        ck_assert_uint_eq(at, ROOT);
    }
}
END_TEST

SUITE_MAIN("rename", setup, teardown, a_file_moves_with_its_inode,
           a_replaced_file_is_gone_or_an_orphan_when_open, kinds_must_match,
           two_names_of_one_file_stay, noreplace_and_flags,
           exchange_of_a_file_and_a_directory_of_different_parents,
           a_directory_never_moves_below_itself, moving_a_directory_needs_the_right_to_change_it,
           a_thousand_random_renames_leave_a_tree)
