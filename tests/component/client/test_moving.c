/* SPDX-License-Identifier: Apache-2.0 */
/* Renames in one directory that are answered before the server has them: where that is allowed,
 * in which order they go, and what becomes of them. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "tests/support/creating_bed.h"
#include "tests/support/suite_cases.h"

static void start_rename(struct bed_op *op, const char *from, const char *to, unsigned flags)
{
    bed_op_init(op);
    op->q.ahead = true;
    core_rename(rm.c, &op->q, RM_DIR, from, (uint32_t)strlen(from), RM_DIR, to,
                (uint32_t)strlen(to), flags);
}

/* Was it over before anything could have been sent? */
static bool at_once(const char *from, const char *to)
{
    uint64_t before = rm_stats().renamed_ahead;
    struct bed_op op;
    bool done;

    start_rename(&op, from, to, 0);
    done = op.done;
    ck_assert_uint_eq(rm_stats().renamed_ahead - before, done);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    return done;
}

/* rm_begin(), and a name that is certainly not there. */
static void begin(void)
{
    rm_begin();
    ck_assert_int_eq(rm_lookup("g"), -ENOENT);
}

static bool stored(const char *name, uint64_t ino)
{
    const struct fake_inode *i =
        fake_find(&rm.bed.cluster, RM_DIR, &(struct msg_bytes){name, (uint32_t)strlen(name)});

    return i && i->attr.ino == ino;
}

START_TEST(who_renames_is_answered_before_the_server_has_it)
{
    struct bed_op op;
    uint64_t ino;
    char to[16];

    begin();
    ino = rm_file(5)->attr.ino;
    rm.bed.cluster.hold_removals = true;
    for (unsigned k = 2; k < RM_FILES; k++) {
        snprintf(to, sizeof to, "g%u", k);
        ck_assert(at_once(rm_name(k), to));
    }
    ck_assert_int_eq(rm_lookup("f5"), -ENOENT); /* nobody is asked */
    bed_op_init(&op);
    core_lookup(rm.c, &op.q, RM_DIR, "g5", 2);
    ck_assert(op.done && op.status == 0);
    ck_assert_uint_eq(op.q.entry.ino, ino);
    ck_assert_uint_gt(op.q.entry.attr_valid_ns, 0);
    rm_let_pass();
    ck_assert(stored("f5", ino));
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(rm_fsync(), 0);
    ck_assert(stored("g5", ino));
    ck_assert_uint_eq(rm.bed.cluster.executed[RPC_OP_RENAME], RM_FILES - 2);
    ck_assert_uint_ge(rm.bed.cluster.executed[RPC_OP_BATCH], 1);
    ck_assert_uint_eq(rm_list(RM_DIR), RM_FILES - 2);
}
END_TEST

START_TEST(renames_of_one_file_go_one_after_the_other)
{
    uint64_t ino;

    begin();
    ino = rm_file(5)->attr.ino;
    rm.bed.cluster.hold_removals = true;
    ck_assert(at_once("f5", "g"));
    ck_assert(at_once("g", "f5"));
    ck_assert(at_once("f5", "h"));
    rm_let_pass();
    ck_assert_int_eq(rm_lookup("g"), -ENOENT);
    ck_assert_int_eq(rm_lookup("f5"), -ENOENT);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(rm_fsync(), 0);
    ck_assert_uint_eq(rm.bed.cluster.executed[RPC_OP_RENAME], 3);
    ck_assert(stored("h", ino));
    ck_assert_int_eq(rm_lookup("h"), 0);
    ck_assert_int_eq(rm_lookup("f5"), -ENOENT);
    ck_assert_uint_eq(rm_stats().renames_refused, 0);
}
END_TEST

START_TEST(a_name_that_another_file_is_giving_up_is_waited_for)
{
    struct bed_op op;
    uint64_t ino;

    begin();
    ino = rm_file(6)->attr.ino;
    rm.bed.cluster.hold_removals = true;
    ck_assert(at_once("f5", "g"));
    start_rename(&op, "f6", "f5", 0); /* could overtake */
    rm_let_pass();
    ck_assert(!op.done);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    ck_assert_int_eq(rm_fsync(), 0);
    ck_assert(stored("f5", ino));
}
END_TEST

START_TEST(a_name_that_was_forgotten_meanwhile_is_looked_up_behind_the_rename)
{
    struct bed_op op;

    begin();
    rm.bed.cluster.hold_removals = true;
    ck_assert(at_once("f5", "g"));
    names_drop(rm.c, RM_DIR, "g", 1, false);
    bed_op_init(&op);
    core_lookup(rm.c, &op.q, RM_DIR, "g", 1);
    rm_let_pass();
    ck_assert(!op.done);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
}
END_TEST

START_TEST(what_nobody_knew_of_is_not_replaced)
{
    uint64_t other;

    begin();
    other = rm_make(RM_DIR, "g", S_IFREG | 0644); /* as by a client that is wrong */
    ck_assert(at_once("f5", "g"));
    ck_assert_int_eq(rm_fsync(), -EEXIST);
    ck_assert(stored("g", other));
    ck_assert_int_eq(rm_lookup("f5"), 0);
}
END_TEST

START_TEST(a_file_that_nobody_has_open_is_replaced)
{
    uint64_t ino, victim;
    struct bed_op op;

    begin();
    ino = rm_file(5)->attr.ino;
    victim = rm_file(6)->attr.ino;
    rm.bed.cluster.hold_removals = true;
    start_rename(&op, "f5", "f6", RENAME_NOREPLACE);
    ck_assert(!op.done);
    rm_let_pass();
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), -EEXIST);
    ck_assert_int_eq(rm_lookup("f5"), 0);
    ck_assert_int_eq(rm_lookup("f6"), 0);
    rm.bed.cluster.hold_removals = true;
    ck_assert(at_once("f5", "f6"));
    rm_let_pass();
    ck_assert(stored("f6", victim));
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(rm_fsync(), 0);
    ck_assert(stored("f6", ino));
    ck_assert_uint_eq(fake_by_ino(&rm.bed.cluster, victim)->attr.nlink, 0);
    ck_assert_uint_eq(rm_list(RM_DIR), RM_FILES - 3);
}
END_TEST

START_TEST(a_rename_waits_as_ever_where_somebody_could_tell)
{
    struct bed_op op;
    struct core_file *f;

    rm_file(5)->attr.nlink = 2;
    rm_file(6)->not_alone = true;
    begin();
    ck_assert(!at_once("f5", "g1")); /* it has another name */
    ck_assert(!at_once("f6", "g2")); /* others look at it */
    bed_op_init(&op);
    core_open(rm.c, &op.q, rm_file(8)->attr.ino, O_RDONLY);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    f = op.q.out.opened.file;
    ck_assert(!at_once("f9", "f8")); /* what is replaced is open here */
    core_release(rm.c, f);
    bed_op_init(&op); /* who does not want it */
    core_rename(rm.c, &op.q, RM_DIR, "f10", 3, RM_DIR, "g", 1, 0);
    ck_assert(!op.done);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    bed_op_init(&op); /* out of the directory */
    op.q.ahead = true;
    core_rename(rm.c, &op.q, RM_DIR, "f11", 3, 1, "f11", 3, 0);
    ck_assert(!op.done);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    bed_op_init(&op); /* somebody else, who has changed nothing yet */
    op.q.ahead = true;
    op.q.cred.uid = 77;
    core_rename(rm.c, &op.q, RM_DIR, "f12", 3, RM_DIR, "g12", 3, 0);
    ck_assert(!op.done);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    ck_assert(at_once("f13", "g13"));
}
END_TEST

START_TEST(others_are_told_when_the_rename_has_been_executed)
{
    bool answered;

    begin();
    rm.bed.cluster.hold_removals = true;
    ck_assert(at_once("f5", "g"));
    ck_assert(at_once("g", "h")); /* not sent yet */
    fake_invalidate(&rm.bed.cluster, RM_DIR, "", &answered);
    rm_let_pass();
    ck_assert(!answered);
    fake_release_removals(&rm.bed.cluster);
    rm_let_pass();
    ck_assert(answered);
    ck_assert_uint_eq(rm.bed.cluster.executed[RPC_OP_RENAME], 2);
    ck_assert(!at_once("h", "g"));
}
END_TEST

START_TEST(a_page_in_the_background_comes_behind_renames)
{
    begin();
    ck_assert(at_once("f5", "g"));
    rm.c->behind.callers[0].removed = 2;
    rm.bed.cluster.hold_removals = true;
    ck_assert(at_once("f6", "g1"));
    rm.c->behind.paid = 8;
    prelist_removed(inode_find(rm.c, RM_DIR), &(struct msg_cred){0}, false);
    rm_let_pass();
    ck_assert_int_eq(rm_lookup("f6"), -ENOENT); /* the page would have told it */
    fake_release_removals(&rm.bed.cluster);
    rm_let_pass();
    ck_assert_int_eq(rm_lookup("f6"), -ENOENT);
    ck_assert_int_eq(rm_lookup("g1"), 0);
}
END_TEST

START_TEST(a_rename_that_is_refused_fails_the_next_fsync_of_the_directory)
{
    begin();
    rm.bed.cluster.hold_removals = true;
    ck_assert(at_once("f5", "g"));
    ck_assert(at_once("g", "h"));
    rm.bed.cluster.fail_removals = -ENOSPC;
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(rm_fsync(), -ENOSPC);
    ck_assert_int_eq(rm_fsync(), 0); /* once */
    rm.bed.cluster.fail_removals = 0;
    ck_assert_uint_eq(rm.bed.cluster.executed[RPC_OP_RENAME], 1); /* nothing to rename again */
    ck_assert_uint_eq(rm_stats().renames_refused, 2);
    ck_assert_int_eq(rm_lookup("f5"), 0);
    ck_assert_int_eq(rm_lookup("h"), -ENOENT);
    ck_assert(!at_once("f5", "g"));
}
END_TEST

static struct core_opened open_ino(uint64_t ino, int flags)
{
    struct bed_op op;

    bed_op_init(&op);
    core_open(rm.c, &op.q, ino, flags);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    return op.q.out.opened;
}

static void write_to(uint64_t ino, const char *text)
{
    struct core_file *f = open_ino(ino, O_RDWR).file;

    ck_assert_int_eq(bed_write(&rm.bed, rm.c, f, 0, text, (uint32_t)strlen(text)), 0);
    ck_assert_int_eq(bed_fsync(&rm.bed, rm.c, f), 0);
    core_release(rm.c, f);
    rm_let_pass();
}

/* f5, with contents, is renamed twice, and was not after all. */
static uint64_t refused_twice(void)
{
    uint64_t ino;

    begin();
    ino = rm_file(5)->attr.ino;
    write_to(ino, "contents");
    rm.bed.cluster.hold_removals = true;
    ck_assert(at_once("f5", "g"));
    ck_assert(at_once("g", "h"));
    rm.bed.cluster.fail_removals = -ENOSPC;
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(rm_fsync(), -ENOSPC);
    rm.bed.cluster.fail_removals = 0;
    ck_assert_int_eq(rm_lookup("f5"), 0);
    return ino;
}

/* What the server says of it then is not from before renames that it has refused. */
START_TEST(a_file_that_was_not_renamed_after_all_is_written_as_before)
{
    write_to(refused_twice(), "x");
}
END_TEST

/* Nor is what others change taken for what is known. */
START_TEST(a_file_that_was_not_renamed_after_all_is_read_anew_when_it_has_changed)
{
    struct core_opened o = open_ino(refused_twice(), O_RDONLY);

    core_release(rm.c, o.file);
    rm_let_pass();
    o = open_ino(rm_file(5)->attr.ino, O_RDONLY);
    ck_assert(o.keep_cache);
    core_release(rm.c, o.file);
    rm_let_pass();
    rm_file(5)->attr.change++;
    o = open_ino(rm_file(5)->attr.ino, O_RDONLY);
    ck_assert(!o.keep_cache);
    core_release(rm.c, o.file);
}
END_TEST

START_TEST(renames_survive_a_broken_connection_and_a_restart)
{
    uint64_t ino;

    begin();
    ino = rm_file(5)->attr.ino;
    rm.bed.cluster.drop_replies = true;
    ck_assert(at_once("f5", "g"));
    ck_assert(at_once("g", "h"));
    ck_assert(at_once("f6", "g6"));
    fake_mds_break_links(&rm.bed.cluster);
    ck_assert_int_eq(rm_fsync(), 0);
    ck_assert(stored("h", ino));
    ck_assert_uint_eq(rm.bed.cluster.executed[RPC_OP_RENAME], 3);
    rm.bed.cluster.hold_removals = true;
    ck_assert(at_once("f7", "g7"));
    rm_let_pass();
    fake_mds_restart(&rm.bed.cluster);
    bed_spin(&rm.bed, 5 * NS_PER_S);
    ck_assert_uint_eq(rm.bed.cluster.unsettled, 1);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(rm_fsync(), 0);
    ck_assert_ptr_null(rm_file(7));
    ck_assert_uint_eq(rm_stats().renames_refused, 0);
}
END_TEST

START_TEST(what_the_server_leaves_out_of_a_batch_goes_by_itself)
{
    begin();
    rm.bed.cluster.hold_removals = true;
    for (unsigned k = 2; k < 12; k++)
        ck_assert(at_once(rm_name(k), rm_name(k + 100)));
    rm.bed.cluster.retry_members = 5;
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(rm_fsync(), 0);
    ck_assert_ptr_nonnull(rm_file(103));
    ck_assert_uint_eq(rm.bed.cluster.executed[RPC_OP_RENAME], 10);
}
END_TEST

START_TEST(renames_of_a_lost_session_are_not_carried_into_the_next)
{
    begin();
    rm.bed.cluster.hold_removals = true;
    ck_assert(at_once("f5", "g"));
    ck_assert(at_once("g", "h"));
    rm_let_pass();
    fake_mds_forget_sessions(&rm.bed.cluster);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(rm_fsync(), -EIO);
    rm_let_pass();
    ck_assert_ptr_nonnull(rm_file(5));
    ck_assert_uint_eq(rm_stats().renames_refused, 2);
}
END_TEST

START_TEST(a_forced_unmount_ends_what_has_not_been_sent)
{
    struct core_options o;

    begin();
    rm.bed.cluster.hold_removals = true;
    ck_assert(at_once("f5", "g"));
    ck_assert(at_once("g", "h"));
    ck_assert(at_once("h", "g"));
    rm_let_pass();
    bed_unmount(&rm.bed, rm.c, true, -EIO);
    fake_release_removals(&rm.bed.cluster);
    core_options_default(&o);
    rm.c = bed_mount(&rm.bed, &o);
}
END_TEST

/* ---- behind creations ---- */

START_TEST(a_file_is_saved_under_another_name_and_renamed_at_once)
{
    struct core_file *f;
    char name[16];
    bool once;

    cr_begin();
    rm.bed.cluster.hold_removals = true;
    for (unsigned k = 0; k < 8; k++) { /* each over the one before, but the first */
        f = cr_make(cr_name(50 + k), &once);
        ck_assert(once);
        cr_put(f);
        ck_assert_int_eq(bed_flush(&rm.bed, rm.c, f), 0);
        core_release(rm.c, f);
        snprintf(name, sizeof name, "saved%u", k);
        ck_assert(at_once(cr_name(50 + k), name));
    }
    rm_let_pass();
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(rm_fsync(), 0);
    cr_expect_whole("saved0");
    cr_expect_whole("saved7");
    ck_assert_ptr_null(cr_stored(cr_name(53)));
    ck_assert_int_eq(rm_lookup("saved3"), 0);
    ck_assert_int_eq(rm_lookup(cr_name(53)), -ENOENT);
    ck_assert_uint_eq(rm_stats().renames_refused, 0);
}
END_TEST

START_TEST(a_file_of_a_name_that_is_being_given_up_waits)
{
    struct bed_op op;

    cr_begin();
    rm.bed.cluster.hold_removals = true;
    ck_assert(at_once("f5", "saved"));
    core_release(rm.c, cr_make_ahead("other")); /* that of another one does not */
    bed_op_init(&op);
    op.q.ahead = true;
    core_create_file(rm.c, &op.q, RM_DIR, "f5", 2, 0644, O_RDWR | O_CREAT | O_EXCL, NULL);
    rm_let_pass();
    ck_assert(!op.done);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    core_release(rm.c, op.q.out.opened.file);
    ck_assert_int_eq(rm_fsync(), 0);
    ck_assert_ptr_nonnull(cr_stored("f5"));
    ck_assert_ptr_nonnull(cr_stored("saved"));
}
END_TEST

START_TEST(a_rename_of_a_file_that_could_not_be_made_is_not_sent)
{
    cr_begin();
    rm.bed.cluster.fail_creations = -ENOSPC;
    cr_whole(50, 52); /* in one message */
    ck_assert(at_once(cr_name(50), "saved"));
    ck_assert_int_eq(rm_fsync(), -ENOSPC);
    rm.bed.cluster.fail_creations = 0;
    ck_assert_uint_eq(rm.bed.cluster.executed[RPC_OP_RENAME], 0);
    ck_assert_int_eq(rm_lookup("saved"), -ENOENT);
    ck_assert_uint_eq(rm_stats().renames_refused, 1);
}
END_TEST

START_TEST(fsync_of_a_file_waits_for_its_renames)
{
    struct core_file *f;
    struct bed_op op;

    cr_begin();
    f = cr_make_ahead("made");
    cr_put(f);
    rm.bed.cluster.hold_removals = true;
    ck_assert(at_once("made", "saved"));
    bed_op_init(&op);
    core_fsync(rm.c, &op.q, f, false);
    rm_let_pass();
    ck_assert(!op.done);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    ck_assert_uint_eq(rm.bed.cluster.executed[RPC_OP_RENAME], 1);
    cr_expect_whole("saved");
    core_release(rm.c, f);
}
END_TEST

START_TEST(fsync_of_a_file_tells_that_it_was_not_renamed)
{
    struct core_file *f;

    begin();
    f = open_ino(rm_file(5)->attr.ino, O_RDWR).file;
    rm.bed.cluster.hold_removals = true;
    ck_assert(at_once("f5", "g"));
    rm.bed.cluster.fail_removals = -ENOSPC;
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(bed_fsync(&rm.bed, rm.c, f), -ENOSPC);
    ck_assert_int_eq(bed_fsync(&rm.bed, rm.c, f), 0); /* once */
    rm.bed.cluster.fail_removals = 0;
    ck_assert_int_eq(rm_fsync(), -ENOSPC); /* and the directory's */
    core_release(rm.c, f);
}
END_TEST

static void setup_older(void)
{
    cr_setup_with(RPC_FEATURE_RENAMES, NULL);
}

START_TEST(an_older_server_has_each_rename_by_itself)
{
    cr_begin();
    cr_whole(50, 51);
    ck_assert(!at_once(cr_name(50), "saved"));
    ck_assert_int_eq(rm_fsync(), 0);
    cr_expect_whole("saved");
}
END_TEST

int main(void)
{
    TCase *const cases[] = {
        SUITE_CASE(
            "renamed", cr_setup, rm_teardown, who_renames_is_answered_before_the_server_has_it,
            renames_of_one_file_go_one_after_the_other,
            a_name_that_another_file_is_giving_up_is_waited_for,
            a_name_that_was_forgotten_meanwhile_is_looked_up_behind_the_rename,
            what_nobody_knew_of_is_not_replaced, a_file_that_nobody_has_open_is_replaced,
            a_rename_waits_as_ever_where_somebody_could_tell,
            others_are_told_when_the_rename_has_been_executed,
            a_page_in_the_background_comes_behind_renames,
            a_rename_that_is_refused_fails_the_next_fsync_of_the_directory,
            a_file_that_was_not_renamed_after_all_is_written_as_before,
            a_file_that_was_not_renamed_after_all_is_read_anew_when_it_has_changed,
            renames_survive_a_broken_connection_and_a_restart,
            what_the_server_leaves_out_of_a_batch_goes_by_itself,
            renames_of_a_lost_session_are_not_carried_into_the_next,
            a_forced_unmount_ends_what_has_not_been_sent,
            a_file_is_saved_under_another_name_and_renamed_at_once,
            a_file_of_a_name_that_is_being_given_up_waits,
            a_rename_of_a_file_that_could_not_be_made_is_not_sent,
            fsync_of_a_file_waits_for_its_renames, fsync_of_a_file_tells_that_it_was_not_renamed),
        SUITE_CASE("older", setup_older, rm_teardown, an_older_server_has_each_rename_by_itself),
    };

    return suite_run_cases("client-moving", cases, sizeof cases / sizeof cases[0]);
}
