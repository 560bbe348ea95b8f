/* SPDX-License-Identifier: Apache-2.0 */
/* Removals that are answered before the server has them: where that is allowed, what waits behind
 * them, and what others are told. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "tests/support/removing_bed.h"
#include "tests/support/suite.h"

START_TEST(who_removes_names_is_answered_before_the_server_has_the_removal)
{
    rm_begin();
    rm.bed.cluster.hold_removals = true;
    for (unsigned k = 2; k < RM_FILES; k++)
        ck_assert(rm_at_once(k));
    ck_assert_uint_eq(rm_stats().removals_under_way, RM_FILES - 2);
    ck_assert_int_eq(rm_lookup(rm_name(5)), -ENOENT); /* nobody is asked */
    rm_let_pass();
    ck_assert_ptr_nonnull(rm_file(2));
    fake_release_removals(&rm.bed.cluster);
    rm_let_pass();
    ck_assert_uint_eq(rm_stats().removals_under_way, 0);
    ck_assert_uint_eq(rm.bed.cluster.executed[RPC_OP_UNLINK], RM_FILES);
    ck_assert_uint_ge(rm.bed.cluster.executed[RPC_OP_BATCH], 1);
    for (unsigned k = 0; k < RM_FILES; k++)
        ck_assert_ptr_null(rm_file(k));
    ck_assert_uint_eq(rm_list(RM_DIR), 0);
    ck_assert_int_eq(rm_fsync(), 0);
}
END_TEST

START_TEST(without_a_listing_pages_in_the_background_tell_where_it_is_allowed)
{
    unsigned n = 0;

    ck_assert_int_eq(rm_getattr(RM_DIR), 0);
    for (unsigned k = 0; k < RM_FILES; k++) {
        ck_assert_int_eq(rm_lookup(rm_name(k)), 0);
        n += rm_at_once(k);
        bed_spin(&rm.bed, NS_PER_MS);
    }
    ck_assert_uint_ge(n, RM_FILES / 2);
    ck_assert_uint_le(rm.bed.cluster.wishes, 4);
}
END_TEST

/* A directory with the files "x" and "y". */
static uint64_t other_dir(const char *name)
{
    uint64_t dir = rm_make(1, name, S_IFDIR | 0755);

    rm_make(dir, "x", S_IFREG | 0644);
    rm_make(dir, "y", S_IFREG | 0644);
    ck_assert_int_eq(rm_getattr(dir), 0);
    return dir;
}

/* As rm_at_once(); then time for a page. */
static bool other_at_once(uint64_t dir, const char *name)
{
    struct bed_op op;
    bool done;

    bed_op_init(&op);
    op.q.ahead = true;
    core_unlink(rm.c, &op.q, dir, name, 1);
    done = op.done;
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    rm_let_pass();
    return done;
}

static void remove_all(void)
{
    ck_assert_int_eq(rm_getattr(RM_DIR), 0);
    for (unsigned k = 0; k < RM_FILES; k++) {
        (void)rm_at_once(k);
        bed_spin(&rm.bed, NS_PER_MS);
    }
}

START_TEST(while_such_pages_are_used_the_next_directory_has_one_after_one_removal)
{
    uint64_t dir;
    unsigned wishes;

    remove_all();
    dir = other_dir("other");
    wishes = rm.bed.cluster.wishes;
    ck_assert(!other_at_once(dir, "x"));
    ck_assert_uint_eq(rm.bed.cluster.wishes, wishes + 1);
    ck_assert(other_at_once(dir, "y"));
}
END_TEST

START_TEST(pages_that_nobody_uses_are_soon_not_asked_for_any_more)
{
    unsigned wishes;
    char name[16];

    remove_all();
    wishes = rm.bed.cluster.wishes;
    for (unsigned k = 0; k < 30; k++) {
        snprintf(name, sizeof name, "other%u", k);
        ck_assert(!other_at_once(other_dir(name), "x"));
    }
    ck_assert_uint_ge(rm.bed.cluster.wishes, wishes + 1);
    ck_assert_uint_le(rm.bed.cluster.wishes, wishes + RM_FILES / 4);
}
END_TEST

START_TEST(a_removal_waits_as_ever_where_somebody_could_tell)
{
    struct bed_op op;
    struct core_file *f;

    fake_find(&rm.bed.cluster, RM_DIR, &(struct msg_bytes){"f5", 2})->attr.nlink = 2;
    fake_find(&rm.bed.cluster, RM_DIR, &(struct msg_bytes){"f6", 2})->not_alone = true;
    rm_begin();
    ck_assert(rm_at_once(2));
    ck_assert(!rm_at_once(5)); /* it has another name */
    ck_assert(!rm_at_once(6)); /* others look at it */
    bed_op_init(&op);
    core_open(rm.c, &op.q, rm_file(7)->attr.ino, O_RDONLY);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    f = op.q.out.opened.file;
    ck_assert(!rm_at_once(7)); /* open here */
    core_release(rm.c, f);
    rm_start(&op, rm_name(8));
    ck_assert(op.done);
    bed_op_init(&op); /* who does not want it */
    core_unlink(rm.c, &op.q, RM_DIR, rm_name(9), 2);
    ck_assert(!op.done);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    bed_op_init(&op); /* somebody else, who has removed nothing yet */
    op.q.ahead = true;
    op.q.cred.uid = 77;
    core_unlink(rm.c, &op.q, RM_DIR, rm_name(10), 3);
    ck_assert(!op.done);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
}
END_TEST

START_TEST(who_may_not_remove_names_there_asks_the_server)
{
    struct bed_op op;

    rm.bed.cluster.inodes[RM_DIR].attr.mode = S_IFDIR | 01777;
    rm.bed.cluster.inodes[RM_DIR].attr.uid = 5;
    fake_find(&rm.bed.cluster, RM_DIR, &(struct msg_bytes){"f6", 2})->attr.uid = 77;
    rm_begin();
    for (unsigned k = 3; k < 7; k++) { /* of f6 it is the owner */
        bed_op_init(&op);
        op.q.ahead = true;
        op.q.cred.uid = 77;
        core_unlink(rm.c, &op.q, RM_DIR, rm_name(k), 2);
        ck_assert_int_eq(op.done, k == 6);
        ck_assert_int_eq(bed_wait(&rm.bed, &op), 0); /* this server allows everything */
    }
}
END_TEST

START_TEST(it_can_be_switched_off)
{
    struct core_options o;

    bed_unmount(&rm.bed, rm.c, false, 0);
    core_options_default(&o);
    o.ahead = false;
    rm.c = bed_mount(&rm.bed, &o);
    ck_assert_int_eq(rm_getattr(RM_DIR), 0);
    for (unsigned k = 0; k < RM_FILES; k++)
        ck_assert(!rm_at_once(k));
    ck_assert_uint_eq(rm.bed.cluster.wishes, 0);
}
END_TEST

START_TEST(with_too_many_under_way_the_next_one_waits_for_room)
{
    struct bed_op ops[6];

    rm_begin();
    rm.bed.cluster.hold_removals = true;
    rm.c->behind.max = 4;
    for (unsigned k = 0; k < 6; k++) {
        rm_start(&ops[k], rm_name(10 + k));
        ck_assert_int_eq(ops[k].done, k < 4);
    }
    core_cancel(&ops[5].q);
    bed_spin(&rm.bed, 2 * NS_PER_S); /* killed */
    ck_assert(ops[5].done && ops[5].status == -EINTR);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(bed_wait(&rm.bed, &ops[4]), 0);
    ck_assert_int_eq(rm_fsync(), 0);
    ck_assert_ptr_null(rm_file(14));
    ck_assert_ptr_nonnull(rm_file(15));
}
END_TEST

/* ---- what comes after ---- */

static void start_all(struct bed_op ops[8], uint64_t victim)
{
    struct msg_setattr_req set = {.ino = RM_DIR, .set = MSG_SET_MODE, .mode = 0700};

    for (unsigned k = 0; k < 8; k++)
        bed_op_init(&ops[k]);
    inode_expire(rm.c, RM_DIR); /* what was foreseen is in doubt */
    core_getattr(rm.c, &ops[0].q, RM_DIR);
    core_fsync_ino(rm.c, &ops[1].q, RM_DIR);
    core_setattr(rm.c, &ops[2].q, &set, NULL);
    core_mkdir(rm.c, &ops[3].q, RM_DIR, "f3", 2, 0755, NULL);
    core_readdir(rm.c, &ops[4].q, RM_DIR, 0, 4096, true);
    core_rename(rm.c, &ops[5].q, RM_DIR, "f20", 3, 1, "moved", 5, 0);
    core_getattr(rm.c, &ops[6].q, victim);
    core_rmdir(rm.c, &ops[7].q, 1, "dir", 3);
}

START_TEST(what_names_the_same_inodes_comes_after)
{
    static const int expect[8] = {[6] = -ENOENT, [7] = -ENOTEMPTY};
    struct core_dirent e;
    struct bed_op ops[8];
    uint64_t victim;

    rm_begin();
    victim = rm_file(3)->attr.ino;
    rm.bed.cluster.hold_removals = true;
    ck_assert(rm_at_once(2));
    ck_assert(rm_at_once(3));
    start_all(ops, victim);
    rm_let_pass();
    for (unsigned k = 0; k < 8; k++)
        ck_assert_msg(!ops[k].done, "%u", k);
    ck_assert_uint_eq(rm_stats().removal_waits, 8);
    ck_assert_int_eq(rm_getattr(1), 0); /* another directory */
    fake_inode(&rm.bed.cluster, "dir")->attr.size = 4711;
    fake_release_removals(&rm.bed.cluster);
    fake_find(&rm.bed.cluster, 1, &(struct msg_bytes){"dir", 3}); /* still there */
    for (unsigned k = 0; k < 8; k++) {
        (void)bed_wait(&rm.bed, &ops[k]);
        if (k == 6) /* this server forgets no inode */
            ck_assert_uint_eq(ops[k].q.entry.attr.nlink, 0);
        else
            ck_assert_int_eq(ops[k].status, expect[k]);
    }
    ck_assert_uint_eq(ops[0].q.entry.attr.size, 4711);
    while (core_dirent_next(&ops[4].q, &e) > 0)
        ck_assert(e.ino != victim);
    core_readdir_done(&ops[4].q);
}
END_TEST

START_TEST(the_directory_is_at_once_as_the_server_will_have_it)
{
    struct msg_attr *there;
    struct msg_time now;
    struct bed_op op;

    rm_begin();
    there = &fake_inode(&rm.bed.cluster, "dir")->attr;
    rm.bed.cluster.hold_removals = true;
    bed_spin(&rm.bed, NS_PER_S / 10);
    ck_assert(rm_at_once(2));
    now = core_now(rm.c);
    bed_op_init(&op);
    core_getattr(rm.c, &op.q, RM_DIR);
    ck_assert(op.done && op.status == 0);
    ck_assert(now.sec || now.nsec);
    ck_assert(op.q.entry.attr.mtime.sec == now.sec && op.q.entry.attr.mtime.nsec == now.nsec);
    ck_assert_uint_gt(op.q.entry.attr_valid_ns, 0);
    there->mtime.sec = 4711; /* nobody has told the client, who believes in its own */
    bed_op_init(&op);
    core_getattr(rm.c, &op.q, RM_DIR);
    ck_assert(op.done && op.q.entry.attr.mtime.sec != 4711);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(rm_fsync(), 0);
}
END_TEST

START_TEST(names_that_stay_do_not_wait)
{
    struct bed_op op;

    rm_begin();
    rm.bed.cluster.hold_removals = true;
    ck_assert(rm_at_once(2));
    inode_expire(rm.c, rm_file(30)->attr.ino); /* the server has to be asked */
    ck_assert_int_eq(rm_lookup(rm_name(30)), 0);
    ck_assert_uint_eq(rm_stats().removal_waits, 0);
    names_drop(rm.c, RM_DIR, "f2", 2, false); /* it is not known any more that it is gone */
    bed_op_init(&op);
    core_lookup(rm.c, &op.q, RM_DIR, "f2", 2);
    rm_let_pass();
    ck_assert(!op.done);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), -ENOENT);
}
END_TEST

static unsigned n_attr;

static void inval_attr(void *arg, uint64_t ino)
{
    (void)arg;
    n_attr += ino == RM_DIR;
}

START_TEST(the_kernel_hears_of_times_that_were_not_as_foreseen)
{
    struct core_options o;

    bed_unmount(&rm.bed, rm.c, false, 0);
    core_options_default(&o);
    o.events.inval_attr = inval_attr;
    rm.c = bed_mount(&rm.bed, &o);
    rm_begin();
    ck_assert(rm_at_once(2));
    ck_assert_uint_eq(n_attr, 0);
    ck_assert_int_eq(rm_fsync(), 0);
    ck_assert_uint_eq(n_attr, 1); /* this server sets no times */
    ck_assert_int_eq(rm_getattr(RM_DIR), 0);
}
END_TEST

START_TEST(a_process_that_is_killed_does_not_wait_for_removals_of_others)
{
    struct bed_op op;

    rm_begin();
    rm.bed.cluster.hold_removals = true;
    ck_assert(rm_at_once(2));
    bed_op_init(&op);
    core_fsync_ino(rm.c, &op.q, RM_DIR);
    rm_let_pass();
    core_cancel(&op.q);
    bed_spin(&rm.bed, 2 * NS_PER_S);
    ck_assert(op.done);
    ck_assert_int_eq(op.status, -EINTR);
    ck_assert_uint_eq(rm_stats().removals_under_way, 1);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(rm_fsync(), 0);
}
END_TEST

START_TEST(who_waits_is_not_kept_waiting_by_removals_that_come_later)
{
    struct bed_op sync, removal;

    rm_begin();
    rm.bed.cluster.hold_removals = true;
    ck_assert(rm_at_once(2));
    bed_op_init(&sync);
    core_fsync_ino(rm.c, &sync.q, RM_DIR);
    rm_start(&removal, rm_name(3));
    ck_assert(!removal.done && !sync.done);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(bed_wait(&rm.bed, &sync), 0);
    ck_assert_int_eq(bed_wait(&rm.bed, &removal), 0);
}
END_TEST

START_TEST(who_waits_for_all_is_not_kept_waiting_by_removals_that_come_later)
{
    struct bed_op rename, removal;

    rm_begin();
    rm_make(1, "a", S_IFREG | 0644);
    rm.bed.cluster.hold_removals = true;
    ck_assert(rm_at_once(2));
    bed_op_init(&rename);
    core_rename(rm.c, &rename.q, 1, "a", 1, 1, "b", 1, 0); /* of which nothing is known here */
    rm_let_pass();
    ck_assert(!rename.done);
    rm_start(&removal, rm_name(3));
    ck_assert(!removal.done);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(bed_wait(&rm.bed, &rename), 0);
    ck_assert_int_eq(bed_wait(&rm.bed, &removal), 0);
    ck_assert(rm_at_once(4));
}
END_TEST

START_TEST(an_answer_that_was_overtaken_is_asked_for_again)
{
    struct bed_op op;
    uint64_t ino;

    rm_begin();
    ino = rm_file(2)->attr.ino;
    inode_expire(rm.c, ino); /* as after a change of its own */
    bed_op_init(&op);
    core_getattr(rm.c, &op.q, ino);
    ck_assert(!op.done);
    inode_find(rm.c, ino)->attr_kept = true;
    rm.bed.cluster.hold_removals = true;
    ck_assert(rm_at_once(2) || op.done);
    rm_let_pass();
    ck_assert(!op.done);
    fake_release_removals(&rm.bed.cluster);
    (void)bed_wait(&rm.bed, &op);
    ck_assert_uint_eq(op.q.entry.attr.nlink, 0);
}
END_TEST

/* ---- others ---- */

static void an_invalidate_waits(uint64_t ino)
{
    bool answered, other;
    struct bed_op op;

    rm.bed.cluster.hold_removals = true;
    ck_assert(rm_at_once(2));
    fake_invalidate(&rm.bed.cluster, ino, "", &answered);
    fake_invalidate(&rm.bed.cluster, 1, "", &other);
    bed_spin(&rm.bed, NS_PER_S); /* longer than the kernel is waited for */
    ck_assert(!answered && other);
    if (ino == RM_DIR) {
        rm_start(&op, rm_name(4));
        ck_assert(!op.done); /* we are not alone any more */
    }
    fake_release_removals(&rm.bed.cluster);
    fake_run_until(&rm.bed.cluster, &answered);
    ck_assert_ptr_null(rm_file(2));
    if (ino == RM_DIR)
        ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
}

START_TEST(an_invalidate_of_the_directory_is_answered_when_its_removals_are)
{
    rm_begin();
    an_invalidate_waits(RM_DIR);
}
END_TEST

START_TEST(an_invalidate_of_a_file_is_answered_when_its_removal_is)
{
    rm_begin();
    an_invalidate_waits(rm_file(2)->attr.ino);
}
END_TEST

START_TEST(an_invalidate_waits_for_removals_also_without_memory)
{
    bool answered;

    rm_begin();
    rm.bed.cluster.hold_removals = true;
    ck_assert(rm_at_once(2));
    ck_assert_int_eq(fault_arm("client.invalidate.memory=error@1"), 0);
    fake_invalidate(&rm.bed.cluster, RM_DIR, "f7", &answered);
    bed_spin(&rm.bed, NS_PER_S);
    fault_disarm_all();
    ck_assert(!answered);
    fake_release_removals(&rm.bed.cluster);
    fake_run_until(&rm.bed.cluster, &answered);
    ck_assert_ptr_null(rm_file(2));
}
END_TEST

START_TEST(after_an_invalidate_removals_wait_until_a_page_says_otherwise)
{
    bool answered;

    rm_begin();
    ck_assert(rm_at_once(2));
    fake_invalidate(&rm.bed.cluster, RM_DIR, "", &answered);
    fake_run_until(&rm.bed.cluster, &answered);
    ck_assert(!rm_at_once(3));
    rm_file(8)->not_alone = true;
    fake_invalidate(&rm.bed.cluster, rm_file(5)->attr.ino, "", &answered);
    fake_run_until(&rm.bed.cluster, &answered);
    rm_let_pass();
    ck_assert_uint_eq(rm_list(RM_DIR), RM_FILES - 4);
    ck_assert_int_eq(rm_getattr(RM_DIR), 0);
    ck_assert(rm_at_once(4));
    ck_assert(rm_at_once(5));
    ck_assert(!rm_at_once(8)); /* what was said of it has ended with the directory's */
}
END_TEST

SUITE_MAIN("client-behind", rm_setup, rm_teardown,
           who_removes_names_is_answered_before_the_server_has_the_removal,
           without_a_listing_pages_in_the_background_tell_where_it_is_allowed,
           while_such_pages_are_used_the_next_directory_has_one_after_one_removal,
           pages_that_nobody_uses_are_soon_not_asked_for_any_more,
           a_removal_waits_as_ever_where_somebody_could_tell,
           who_may_not_remove_names_there_asks_the_server, it_can_be_switched_off,
           with_too_many_under_way_the_next_one_waits_for_room,
           what_names_the_same_inodes_comes_after,
           the_directory_is_at_once_as_the_server_will_have_it, names_that_stay_do_not_wait,
           the_kernel_hears_of_times_that_were_not_as_foreseen,
           a_process_that_is_killed_does_not_wait_for_removals_of_others,
           who_waits_is_not_kept_waiting_by_removals_that_come_later,
           who_waits_for_all_is_not_kept_waiting_by_removals_that_come_later,
           an_answer_that_was_overtaken_is_asked_for_again,
           an_invalidate_of_the_directory_is_answered_when_its_removals_are,
           an_invalidate_of_a_file_is_answered_when_its_removal_is,
           an_invalidate_waits_for_removals_also_without_memory,
           after_an_invalidate_removals_wait_until_a_page_says_otherwise)
