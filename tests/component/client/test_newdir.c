/* SPDX-License-Identifier: Apache-2.0 */
/* Directories that are made before the server has them, and what is made in them. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "tests/support/creating_bed.h"
#include "tests/support/suite.h"

static uint64_t dir_ahead(uint64_t in, const char *name)
{
    bool at_once;
    uint64_t ino = cr_dir_in(in, name, &at_once);

    ck_assert(at_once);
    return ino;
}

static bool file_in(uint64_t in, const char *name)
{
    return cr_file_in(in, name, cr_bytes, CR_LEN);
}

static struct fake_inode *stored_in(uint64_t in, const char *name)
{
    return fake_find(&rm.bed.cluster, in, &(struct msg_bytes){name, (uint32_t)strlen(name)});
}

static void expect_file(uint64_t in, const char *name)
{
    const struct fake_inode *i = stored_in(in, name);

    ck_assert_ptr_nonnull(i);
    ck_assert_uint_eq(i->attr.size, CR_LEN);
    ck_assert_mem_eq(i->data, cr_bytes, CR_LEN);
}

static int sync_dir(uint64_t ino)
{
    struct bed_op op;

    bed_op_init(&op);
    core_fsync_ino(rm.c, &op.q, ino);
    return bed_wait(&rm.bed, &op);
}

static void expect_tree(uint64_t d, uint64_t e)
{
    ck_assert_ptr_nonnull(stored_in(RM_DIR, "d"));
    ck_assert_ptr_nonnull(stored_in(d, "e"));
    for (unsigned k = 0; k < 5; k++) {
        expect_file(d, cr_name(k));
        expect_file(e, cr_name(k));
    }
}

static void make_tree(uint64_t *ret_d, uint64_t *ret_e)
{
    uint64_t d = dir_ahead(RM_DIR, "d"), e;

    for (unsigned k = 0; k < 5; k++)
        ck_assert(file_in(d, cr_name(k)));
    e = dir_ahead(d, "e");
    for (unsigned k = 0; k < 5; k++)
        ck_assert(file_in(e, cr_name(k)));
    *ret_d = d;
    *ret_e = e;
}

START_TEST(a_tree_is_made_ahead)
{
    uint64_t d, e;

    cr_begin();
    rm.bed.cluster.hold_removals = true;
    make_tree(&d, &e);
    rm_let_pass();
    ck_assert_ptr_null(stored_in(RM_DIR, "d"));
    ck_assert_uint_eq(rm_stats().creations_under_way, 12);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(sync_dir(e), 0);
    ck_assert_int_eq(sync_dir(d), 0);
    expect_tree(d, e);
    ck_assert_uint_eq(rm_stats().creations_under_way, 0);
    ck_assert_uint_eq(rm_stats().creations_refused, 0);
    ck_assert(file_in(e, "more")); /* it has been told that nobody else is there */
    ck_assert_int_eq(sync_dir(e), 0);
    expect_file(e, "more");
    ck_assert_uint_eq(rm.bed.cluster.calls[RPC_OP_OPEN], 0);
}
END_TEST

START_TEST(who_waits_for_the_innermost_waits_for_all_and_not_for_long)
{
    uint64_t d, e, before;

    cr_begin();
    make_tree(&d, &e);
    before = reactor_now_ns(rm.bed.reactor);
    ck_assert_int_eq(sync_dir(e), 0);
    ck_assert_uint_lt(reactor_now_ns(rm.bed.reactor) - before, 2 * NS_PER_MS);
    expect_tree(d, e);
}
END_TEST

START_TEST(what_the_server_leaves_out_is_made_in_order_all_the_same)
{
    uint64_t d, e;

    cr_begin();
    rm.bed.cluster.retry_members = 3;
    make_tree(&d, &e);
    (void)file_in(RM_DIR, "beside");
    ck_assert_int_eq(sync_dir(e), 0);
    ck_assert_int_eq(sync_dir(d), 0);
    expect_tree(d, e);
    ck_assert_uint_eq(rm_stats().creations_refused, 0);
}
END_TEST

START_TEST(one_that_we_are_not_alone_with_is_under_way_until_what_is_in_it_is_made)
{
    uint64_t d, e;
    bool answered, at_once;

    cr_begin();
    rm.bed.cluster.hold_removals = rm.bed.cluster.dirs_not_alone = true;
    rm.bed.cluster.alone = false;
    make_tree(&d, &e);
    rm_let_pass();
    fake_invalidate(&rm.bed.cluster, RM_DIR, "", &answered);
    rm_let_pass();
    ck_assert(!answered);
    fake_release_removals(&rm.bed.cluster);
    rm.bed.cluster.hold_removals = true; /* "d" is there, and what is in it comes */
    rm_let_pass();
    ck_assert_ptr_nonnull(stored_in(RM_DIR, "d"));
    ck_assert_ptr_null(stored_in(d, cr_name(0)));
    ck_assert(!answered);
    fake_release_removals(&rm.bed.cluster);
    fake_run_until(&rm.bed.cluster, &answered);
    expect_tree(d, e);
    ck_assert(!file_in(d, "later"));
    (void)cr_dir_in(d, "too", &at_once);
    ck_assert(!at_once);
    ck_assert_uint_eq(rm_stats().creations_under_way, 0);
}
END_TEST

START_TEST(an_invalidate_ends_what_was_believed_of_new_directories)
{
    uint64_t d;
    bool answered;

    cr_begin();
    rm.bed.cluster.hold_removals = true;
    d = dir_ahead(RM_DIR, "d");
    ck_assert(file_in(d, "one"));
    rm_let_pass();
    fake_invalidate(&rm.bed.cluster, RM_DIR, "", &answered);
    rm_let_pass();
    ck_assert(!answered);
    fake_release_removals(&rm.bed.cluster);
    fake_run_until(&rm.bed.cluster, &answered);
    ck_assert_int_eq(sync_dir(d), 0);
    expect_file(d, "one");
}
END_TEST

START_TEST(one_that_is_refused_takes_along_what_is_in_it)
{
    uint64_t d;
    struct bed_op op;

    cr_begin();
    rm.bed.cluster.fail_creations = -ENOSPC;
    d = dir_ahead(RM_DIR, "d");
    (void)dir_ahead(RM_DIR, "beside");
    ck_assert(file_in(d, "one"));
    (void)dir_ahead(d, "e");
    ck_assert_int_eq(rm_fsync(), -ENOSPC);
    ck_assert_int_eq(rm_fsync(), 0);
    ck_assert_int_eq(sync_dir(d), -ENOSPC);
    ck_assert_int_eq(rm_lookup("d"), -ENOENT);
    bed_op_init(&op);
    core_lookup(rm.c, &op.q, d, "one", 3);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), -ENOENT);
    ck_assert_uint_eq(rm_stats().creations_refused, 4);
    ck_assert_uint_eq(rm_stats().creations_under_way, 0);
    rm.bed.cluster.fail_creations = 0;
}
END_TEST

START_TEST(directories_of_a_lost_session_are_not_carried_into_the_next)
{
    uint64_t d, e;

    cr_begin();
    rm.bed.cluster.hold_removals = true;
    make_tree(&d, &e);
    rm_let_pass();
    fake_mds_forget_sessions(&rm.bed.cluster);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(rm_fsync(), -EIO);
    ck_assert_int_eq(sync_dir(d), -EIO);
    ck_assert_int_eq(sync_dir(e), -EIO);
    ck_assert_uint_eq(rm_stats().creations_under_way, 0);
    ck_assert_int_eq(rm_lookup("d"), -ENOENT);
}
END_TEST

START_TEST(one_that_is_coming_is_not_removed_ahead)
{
    struct bed_op op;

    cr_begin();
    rm.bed.cluster.hold_removals = true;
    (void)dir_ahead(RM_DIR, "d");
    rm_let_pass();
    bed_op_init(&op);
    op.q.ahead = true;
    core_rmdir(rm.c, &op.q, RM_DIR, "d", 1);
    rm_let_pass();
    ck_assert(!op.done);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    ck_assert_int_eq(rm_fsync(), 0);
    ck_assert_ptr_null(stored_in(RM_DIR, "d"));
}
END_TEST

START_TEST(a_name_in_it_is_known_without_asking)
{
    struct bed_op op;
    uint64_t d;
    unsigned lookups;

    cr_begin();
    rm.bed.cluster.hold_removals = true;
    d = dir_ahead(RM_DIR, "d");
    lookups = rm.bed.cluster.calls[RPC_OP_LOOKUP];
    bed_op_init(&op);
    core_lookup(rm.c, &op.q, d, "x", 1);
    ck_assert(op.done);
    ck_assert_int_eq(op.status, -ENOENT);
    ck_assert_uint_eq(rm.bed.cluster.calls[RPC_OP_LOOKUP], lookups);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(sync_dir(d), 0);
}
END_TEST

/* By another thread, whose removal the server has executed behind it. */
START_TEST(one_that_is_removed_before_its_answer_has_come_takes_nothing)
{
    struct bed_op making, removing, op;
    struct bed_late late;

    cr_begin();
    bed_op_init(&making);
    bed_answer_late(&late, 100 * NS_PER_MS);
    core_mkdir(rm.c, &making.q, RM_DIR, "d", 1, 0755, NULL);
    bed_spin(&rm.bed, 20 * NS_PER_MS);
    net_loop_set_policy(NULL, NULL);
    ck_assert_ptr_nonnull(stored_in(RM_DIR, "d"));
    ck_assert(!making.done);
    bed_op_init(&removing);
    core_rmdir(rm.c, &removing.q, RM_DIR, "d", 1);
    ck_assert_int_eq(bed_wait(&rm.bed, &removing), 0);
    ck_assert(!making.done);
    ck_assert_int_eq(bed_wait(&rm.bed, &making), 0);
    bed_op_init(&op);
    op.q.ahead = true;
    core_mkdir(rm.c, &op.q, making.q.entry.ino, "e", 1, 0755, NULL);
    ck_assert(!op.done);
    (void)bed_wait(&rm.bed, &op);
}
END_TEST

/* It may linger for longer itself. */
START_TEST(a_removal_keeps_no_creation_behind_it)
{
    uint64_t d;

    cr_begin();
    d = dir_ahead(RM_DIR, "d");
    ck_assert(file_in(d, "e"));
    rm_let_pass();
    ck_assert_int_eq(rm_wait(0), 0);
    ck_assert_int_eq(rm_wait(1), 0);
    rm_let_pass(); /* a page in advance */
    ck_assert(rm_at_once(2));
    ck_assert(file_in(d, "f"));
    bed_spin(&rm.bed, 2 * NS_PER_MS);
    expect_file(d, "f");
    ck_assert_ptr_null(rm_file(2));
}
END_TEST

SUITE_MAIN("client-newdir", cr_setup, rm_teardown, a_tree_is_made_ahead,
           who_waits_for_the_innermost_waits_for_all_and_not_for_long,
           what_the_server_leaves_out_is_made_in_order_all_the_same,
           one_that_we_are_not_alone_with_is_under_way_until_what_is_in_it_is_made,
           an_invalidate_ends_what_was_believed_of_new_directories,
           one_that_is_refused_takes_along_what_is_in_it,
           directories_of_a_lost_session_are_not_carried_into_the_next,
           one_that_is_coming_is_not_removed_ahead, a_name_in_it_is_known_without_asking,
           one_that_is_removed_before_its_answer_has_come_takes_nothing,
           a_removal_keeps_no_creation_behind_it)
