/* SPDX-License-Identifier: Apache-2.0 */
/* Directories that are removed before the server has the removal: when that is allowed, that it
 * comes after the removals in them, and what becomes of it when something goes wrong. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "tests/support/removing_bed.h"
#include "tests/support/suite.h"

#define FILES 6u

static uint64_t tree, sub[2]; /* tree/s0, tree/s1: each with f0 to f5 */

static const char *sub_name(unsigned k)
{
    return k ? "s1" : "s0";
}

static struct fake_inode *there(uint64_t parent, const char *name)
{
    return fake_find(&rm.bed.cluster, parent, &(struct msg_bytes){name, (uint32_t)strlen(name)});
}

/* All of it is listed: the client knows it, and that it is alone. */
static void begin(void)
{
    rm_begin();
    tree = rm_make(1, "tree", S_IFDIR | 0755);
    for (unsigned k = 0; k < 2; k++) {
        sub[k] = rm_make(tree, sub_name(k), S_IFDIR | 0755);
        for (unsigned f = 0; f < FILES; f++)
            rm_make(sub[k], rm_name(f), S_IFREG | 0644);
    }
    rm_list(1);
    ck_assert_uint_eq(rm_list(tree), 2);
    for (unsigned k = 0; k < 2; k++)
        ck_assert_uint_eq(rm_list(sub[k]), FILES);
    ck_assert_int_eq(rm_getattr(1), 0);
}

/* Removes it: was that over before anything could have been sent? */
static bool file_at_once(uint64_t dir, unsigned k)
{
    struct bed_op op;
    bool done;

    bed_op_init(&op);
    op.q.ahead = true;
    core_unlink(rm.c, &op.q, dir, rm_name(k), (uint32_t)strlen(rm_name(k)));
    done = op.done;
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    return done;
}

static void files_at_once(uint64_t dir)
{
    for (unsigned k = 0; k < FILES; k++)
        ck_assert(file_at_once(dir, k));
}

static void rmdir_start(struct bed_op *op, uint64_t parent, const char *name)
{
    bed_op_init(op);
    op->q.ahead = true;
    core_rmdir(rm.c, &op->q, parent, name, (uint32_t)strlen(name));
}

static bool dir_at_once(uint64_t parent, const char *name)
{
    struct bed_op op;

    rmdir_start(&op, parent, name);
    return op.done && op.status == 0;
}

/* Not at once; what came of it. */
static int dir_later(uint64_t parent, const char *name)
{
    struct bed_op op;

    rmdir_start(&op, parent, name);
    ck_assert(!op.done);
    return bed_wait(&rm.bed, &op);
}

static int fsync_dir(uint64_t ino)
{
    struct bed_op op;

    bed_op_init(&op);
    core_fsync_ino(rm.c, &op.q, ino);
    return bed_wait(&rm.bed, &op);
}

static void make_dir(uint64_t parent, const char *name)
{
    struct bed_op op;

    bed_op_init(&op);
    core_mkdir(rm.c, &op.q, parent, name, (uint32_t)strlen(name), 0755, NULL);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    ck_assert_int_eq(rm_getattr(parent), 0); /* as the kernel asks */
}

START_TEST(a_directory_that_we_have_made_is_known_to_be_ours_alone)
{
    begin();
    make_dir(tree, "new");
    ck_assert(dir_at_once(tree, "new"));
    rm_let_pass();
    ck_assert_ptr_null(there(tree, "new"));
    rm.bed.cluster.alone = false; /* the server knows better */
    make_dir(tree, "new");
    ck_assert_int_eq(dir_later(tree, "new"), 0);
}
END_TEST

START_TEST(a_whole_tree_goes_before_the_server_has_any_of_it)
{
    begin();
    rm.bed.cluster.hold_removals = true;
    for (unsigned k = 0; k < 2; k++) {
        files_at_once(sub[k]);
        ck_assert(dir_at_once(tree, sub_name(k)));
    }
    ck_assert(dir_at_once(1, "tree"));
    ck_assert_uint_eq(rm_stats().removals_under_way, 2 * FILES + 3);
    rm_let_pass();
    ck_assert_ptr_nonnull(there(1, "tree"));
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(fsync_dir(1), 0); /* with what is behind in all of it */
    ck_assert_ptr_null(there(1, "tree"));
    ck_assert_ptr_null(there(tree, "s0"));
    ck_assert_uint_eq(rm_stats().removals_under_way, 0);
    ck_assert_uint_eq(rm_stats().removals_refused, 0);
    ck_assert_uint_eq(rm.bed.cluster.executed[RPC_OP_RMDIR], 3); /* each after what was in it */
}
END_TEST

/* Each of the three levels is sent when the one below is answered, and nothing is gathered then. */
START_TEST(who_waits_for_a_tree_waits_for_answers_only)
{
    uint64_t before_ns;

    begin();
    for (unsigned k = 0; k < 2; k++) {
        files_at_once(sub[k]);
        ck_assert(dir_at_once(tree, sub_name(k)));
    }
    ck_assert(dir_at_once(1, "tree"));
    before_ns = reactor_now_ns(rm.c->reactor);
    ck_assert_int_eq(fsync_dir(1), 0);
    ck_assert_uint_lt(reactor_now_ns(rm.c->reactor) - before_ns, 4 * NS_PER_MS);
    ck_assert_ptr_null(there(1, "tree"));
}
END_TEST

START_TEST(a_directory_that_was_empty_goes_at_once_too)
{
    begin();
    rm_make(tree, "empty", S_IFDIR | 0755);
    ck_assert_uint_eq(rm_list(tree), 3);
    ck_assert_uint_eq(rm_list(there(tree, "empty")->attr.ino), 0);
    ck_assert(dir_at_once(tree, "empty"));
    ck_assert_int_eq(fsync_dir(tree), 0);
    ck_assert_ptr_null(there(tree, "empty"));
}
END_TEST

START_TEST(what_is_not_known_to_be_empty_waits_for_the_server)
{
    struct bed_op op;

    begin();
    ck_assert_int_eq(dir_later(tree, "s0"), -ENOTEMPTY); /* it is not */
    files_at_once(sub[1]);
    names_drop(rm.c, sub[1], "f3", 2, false); /* all that is known of it is not all there is */
    ck_assert_int_eq(dir_later(tree, "s1"), 0);
    for (unsigned k = 0; k + 1 < FILES; k++)
        ck_assert(file_at_once(sub[0], k));
    ck_assert_int_eq(dir_later(tree, "s0"), -ENOTEMPTY);
    ck_assert(file_at_once(sub[0], FILES - 1));
    bed_op_init(&op); /* a name that is being made there */
    core_mkdir(rm.c, &op.q, sub[0], "new", 3, 0755, NULL);
    ck_assert_int_eq(dir_later(tree, "s0"), -ENOTEMPTY);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
}
END_TEST

START_TEST(where_somebody_could_tell_it_waits_for_the_server)
{
    struct bed_op op;
    bool answered;

    begin();
    files_at_once(sub[0]);
    files_at_once(sub[1]);
    fake_invalidate(&rm.bed.cluster, sub[0], "", &answered);
    fake_run_until(&rm.bed.cluster, &answered);
    ck_assert_int_eq(rm_getattr(sub[0]), 0);
    ck_assert_int_eq(dir_later(tree, "s0"), 0);
    bed_op_init(&op); /* who does not want it */
    core_rmdir(rm.c, &op.q, tree, "s1", 2);
    ck_assert(!op.done);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    fake_invalidate(&rm.bed.cluster, 1, "", &answered);
    fake_run_until(&rm.bed.cluster, &answered);
    ck_assert_int_eq(dir_later(1, "tree"), 0);
}
END_TEST

/* For the sake of the page around it the client is alone with it; but who reads it then has that
 * one given back, where nothing is under way. */
START_TEST(in_a_directory_whose_own_page_has_not_said_so_it_waits_for_the_server)
{
    uint64_t around, inner;
    struct bed_op op;

    begin();
    around = rm_make(1, "around", S_IFDIR | 0755);
    inner = rm_make(around, "inner", S_IFDIR | 0755);
    rm_list(1);
    rm_list(1); /* mode and owner, known to be right */
    rm.bed.cluster.alone = false;
    bed_op_init(&op);
    core_lookup(rm.c, &op.q, around, "inner", 5);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    rm_let_pass(); /* a page in advance */
    rm.bed.cluster.alone = true;
    ck_assert_uint_eq(rm_list(inner), 0);
    ck_assert_int_eq(dir_later(around, "inner"), 0);
}
END_TEST

START_TEST(the_directory_around_it_is_at_once_as_the_server_will_have_it)
{
    uint32_t links;
    struct bed_op op;

    begin();
    inode_find(rm.c, tree)->attr.nlink = 4; /* this server counts no directories */
    links = inode_find(rm.c, tree)->attr.nlink;
    files_at_once(sub[0]);
    ck_assert(dir_at_once(tree, "s0"));
    bed_op_init(&op);
    core_getattr(rm.c, &op.q, tree);
    ck_assert(op.done && op.status == 0);
    ck_assert_uint_eq(op.q.entry.attr.nlink, links - 1);
    ck_assert_int_eq(fsync_dir(tree), 0);
}
END_TEST

START_TEST(what_names_the_directory_comes_after)
{
    struct bed_op ops[3];

    begin();
    rm.bed.cluster.hold_removals = true;
    files_at_once(sub[0]);
    ck_assert(dir_at_once(tree, "s0"));
    for (unsigned k = 0; k < 3; k++)
        bed_op_init(&ops[k]);
    core_getattr(rm.c, &ops[0].q, sub[0]);
    core_mkdir(rm.c, &ops[1].q, tree, "s0", 2, 0755, NULL);
    core_readdir(rm.c, &ops[2].q, tree, 0, 4096, true);
    rm_let_pass();
    for (unsigned k = 0; k < 3; k++)
        ck_assert(!ops[k].done);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(bed_wait(&rm.bed, &ops[0]), 0);
    ck_assert_uint_eq(ops[0].q.entry.attr.nlink, 0); /* this server forgets no inode */
    ck_assert_int_eq(bed_wait(&rm.bed, &ops[1]), 0);
    ck_assert_uint_ne(ops[1].q.entry.ino, sub[0]);
    ck_assert_int_eq(bed_wait(&rm.bed, &ops[2]), 0);
    core_readdir_done(&ops[2].q);
}
END_TEST

static void an_invalidate_waits(uint64_t ino)
{
    bool answered;

    rm.bed.cluster.hold_removals = true;
    files_at_once(sub[0]);
    ck_assert(dir_at_once(tree, "s0"));
    fake_invalidate(&rm.bed.cluster, ino, "", &answered);
    bed_spin(&rm.bed, NS_PER_S);
    ck_assert(!answered);
    fake_release_removals(&rm.bed.cluster);
    fake_run_until(&rm.bed.cluster, &answered);
    ck_assert_ptr_null(there(tree, "s0"));
}

START_TEST(an_invalidate_of_the_directory_is_answered_when_it_is_gone)
{
    begin();
    an_invalidate_waits(sub[0]);
}
END_TEST

START_TEST(an_invalidate_of_the_directory_around_it_is_answered_when_it_is_gone)
{
    begin();
    an_invalidate_waits(tree);
}
END_TEST

START_TEST(a_directory_that_is_not_empty_after_all_is_seen_again)
{
    begin();
    files_at_once(sub[0]);
    rm_make(sub[0], "hidden", S_IFREG | 0644); /* of which nobody has told */
    ck_assert(dir_at_once(tree, "s0"));
    ck_assert_int_eq(fsync_dir(tree), -ENOTEMPTY);
    ck_assert_int_eq(fsync_dir(tree), 0); /* once */
    ck_assert_uint_eq(rm_stats().removals_refused, 1);
    ck_assert_uint_eq(rm_list(tree), 2);
    ck_assert_uint_eq(rm_list(sub[0]), 1);
}
END_TEST

START_TEST(a_refused_file_keeps_its_directory)
{
    begin();
    rm.bed.cluster.hold_removals = true;
    files_at_once(sub[0]);
    ck_assert(dir_at_once(tree, "s0"));
    rm.bed.cluster.fail_removals = -ENOSPC;
    rm.bed.cluster.fail_removals_n = 1;
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(fsync_dir(tree), -ENOTEMPTY);
    ck_assert_int_eq(fsync_dir(sub[0]), -ENOSPC);
    ck_assert_uint_eq(rm_list(tree), 2);
    ck_assert_uint_eq(rm_list(sub[0]), 1);
}
END_TEST

START_TEST(it_survives_a_broken_connection)
{
    begin();
    rm.bed.cluster.drop_replies = true;
    files_at_once(sub[0]);
    ck_assert(dir_at_once(tree, "s0"));
    fake_mds_break_links(&rm.bed.cluster);
    ck_assert_int_eq(fsync_dir(tree), 0);
    ck_assert_ptr_null(there(tree, "s0"));
    ck_assert_uint_eq(rm_stats().removals_refused, 0);
}
END_TEST

START_TEST(a_restarted_server_hears_when_it_is_over)
{
    begin();
    rm.bed.cluster.hold_removals = true;
    files_at_once(sub[0]);
    ck_assert(dir_at_once(tree, "s0"));
    rm_let_pass();
    fake_mds_restart(&rm.bed.cluster);
    bed_spin(&rm.bed, 5 * NS_PER_S);
    ck_assert_uint_eq(rm.bed.cluster.unsettled, 1);
    ck_assert_uint_eq(rm.bed.cluster.reclaims, 1);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(fsync_dir(tree), 0);
    rm_let_pass();
    ck_assert_uint_eq(rm.bed.cluster.reclaims, 2);
    ck_assert_ptr_null(there(tree, "s0"));
}
END_TEST

START_TEST(it_is_not_carried_into_another_session)
{
    begin();
    rm.bed.cluster.hold_removals = true;
    files_at_once(sub[0]);
    ck_assert(dir_at_once(tree, "s0"));
    rm_let_pass();
    fake_mds_forget_sessions(&rm.bed.cluster);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(fsync_dir(tree), -EIO);
    ck_assert_uint_eq(rm_stats().removals_under_way, 0);
    ck_assert_ptr_nonnull(there(tree, "s0"));
    ck_assert_uint_eq(rm_list(tree), 2);
    ck_assert_uint_eq(rm_list(sub[0]), FILES);
    ck_assert_int_eq(fsync_dir(sub[0]), -EIO);
}
END_TEST

START_TEST(a_forced_unmount_waits_for_none_of_it)
{
    begin();
    rm.bed.cluster.hold_removals = true;
    files_at_once(sub[0]);
    ck_assert(dir_at_once(tree, "s0"));
    bed_unmount(&rm.bed, rm.c, true, -EIO);
    fake_release_removals(&rm.bed.cluster);
    rm.c = bed_mount(&rm.bed, NULL);
}
END_TEST

START_TEST(an_unmount_waits_for_all_of_it)
{
    begin();
    files_at_once(sub[0]);
    ck_assert(dir_at_once(tree, "s0"));
    bed_unmount(&rm.bed, rm.c, false, 0);
    ck_assert_ptr_null(there(tree, "s0"));
    rm.c = bed_mount(&rm.bed, NULL);
}
END_TEST

static int fsync_of(uint64_t dir)
{
    struct bed_op op;

    bed_op_init(&op);
    core_fsync_ino(rm.c, &op.q, dir);
    return bed_wait(&rm.bed, &op);
}

START_TEST(what_was_refused_in_a_directory_is_over_when_that_is_removed)
{
    struct bed_op op;

    begin();
    rm.bed.cluster.fail_removals = -ENOSPC;
    ck_assert(file_at_once(sub[0], 0));
    rm_let_pass();
    rm.bed.cluster.fail_removals = 0;
    ck_assert_uint_eq(rm_stats().removals_refused, 1);
    for (unsigned k = 0; k < FILES; k++)
        (void)file_at_once(sub[0], k);
    rmdir_start(&op, tree, sub_name(0));
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    bed_unmount(&rm.bed, rm.c, false, 0);
    rm.c = bed_mount(&rm.bed, NULL);
}
END_TEST

START_TEST(of_too_many_errors_the_oldest_is_left_to_unmounting)
{
    begin();
    rm.c->behind.max_errors = 1;
    rm.bed.cluster.fail_removals = -ENOSPC;
    ck_assert(file_at_once(sub[0], 0));
    ck_assert(file_at_once(sub[1], 0));
    rm_let_pass();
    rm.bed.cluster.fail_removals = 0;
    ck_assert_uint_eq(rm_stats().removals_refused, 2);
    ck_assert_int_eq(fsync_of(sub[0]) + fsync_of(sub[1]), -ENOSPC); /* one of them */
    bed_unmount(&rm.bed, rm.c, false, -EIO);
    rm.c = bed_mount(&rm.bed, NULL);
}
END_TEST

SUITE_MAIN("client-behind-dirs", rm_setup, rm_teardown,
           a_directory_that_we_have_made_is_known_to_be_ours_alone,
           a_whole_tree_goes_before_the_server_has_any_of_it,
           who_waits_for_a_tree_waits_for_answers_only, a_directory_that_was_empty_goes_at_once_too,
           what_is_not_known_to_be_empty_waits_for_the_server,
           where_somebody_could_tell_it_waits_for_the_server,
           in_a_directory_whose_own_page_has_not_said_so_it_waits_for_the_server,
           the_directory_around_it_is_at_once_as_the_server_will_have_it,
           what_names_the_directory_comes_after,
           an_invalidate_of_the_directory_is_answered_when_it_is_gone,
           an_invalidate_of_the_directory_around_it_is_answered_when_it_is_gone,
           a_directory_that_is_not_empty_after_all_is_seen_again,
           a_refused_file_keeps_its_directory, it_survives_a_broken_connection,
           a_restarted_server_hears_when_it_is_over, it_is_not_carried_into_another_session,
           a_forced_unmount_waits_for_none_of_it, an_unmount_waits_for_all_of_it,
           what_was_refused_in_a_directory_is_over_when_that_is_removed,
           of_too_many_errors_the_oldest_is_left_to_unmounting)
