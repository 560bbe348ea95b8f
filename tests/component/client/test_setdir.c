/* SPDX-License-Identifier: Apache-2.0 */
/* What is set on a directory that was made ahead: it follows what is in it, and nobody waits. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "tests/support/creating_bed.h"
#include "tests/support/suite.h"

#define OLD    ((struct msg_time){1000000000, 7})
#define TIMES  ((struct msg_setattr_req){.set = MSG_SET_MTIME, .mtime = OLD})
#define OWNER  ((struct msg_setattr_req){.set = MSG_SET_UID | MSG_SET_GID, .uid = 5, .gid = 6})
#define MODE   ((struct msg_setattr_req){.set = MSG_SET_MODE, .mode = 0750})
#define SET_ID ((struct msg_setattr_req){.set = MSG_SET_MODE, .mode = 02750})

static uint64_t dir_ahead(const char *name)
{
    struct bed_op op;

    bed_op_init(&op);
    op.q.ahead = true;
    core_mkdir(rm.c, &op.q, RM_DIR, name, (uint32_t)strlen(name), 0700, NULL);
    ck_assert(op.done);
    ck_assert_int_eq(op.status, 0);
    return op.q.entry.ino;
}

/* The first of a test. */
static uint64_t begin_ahead(void)
{
    cr_begin();
    return dir_ahead("d");
}

static void file_start(struct bed_op *op, uint64_t in, const char *name)
{
    bed_op_init(op);
    op->q.ahead = true;
    core_create_file(rm.c, &op->q, in, name, (uint32_t)strlen(name), 0644, O_RDWR | O_CREAT, NULL);
}

static void file_in(uint64_t in, const char *name)
{
    struct bed_op op;

    file_start(&op, in, name);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    cr_put(op.q.out.opened.file);
    core_release(rm.c, op.q.out.opened.file);
}

static void set_start(struct bed_op *op, uint64_t ino, struct msg_setattr_req m,
                      const struct msg_cred *cred)
{
    bed_op_init(op);
    if (cred)
        op->q.cred = *cred;
    m.ino = ino;
    core_setattr(rm.c, &op->q, &m, NULL);
}

static void set_ahead(uint64_t ino, struct msg_setattr_req m)
{
    struct bed_op op;

    set_start(&op, ino, m, NULL);
    ck_assert(op.done);
    ck_assert_int_eq(op.status, 0);
}

static int sync_dir(uint64_t ino)
{
    struct bed_op op;

    bed_op_init(&op);
    core_fsync_ino(rm.c, &op.q, ino);
    return bed_wait(&rm.bed, &op);
}

static uint64_t begin_stored(void)
{
    uint64_t d = begin_ahead();

    ck_assert_int_eq(sync_dir(d), 0);
    return d;
}

static struct msg_attr attr_of(uint64_t ino)
{
    struct bed_op op;

    bed_op_init(&op);
    core_getattr(rm.c, &op.q, ino);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    return op.q.entry.attr;
}

static void expect_set(const struct msg_attr *a)
{
    ck_assert_uint_eq(a->mode, S_IFDIR | 0750);
    ck_assert_uint_eq(a->uid, 5);
    ck_assert_uint_eq(a->gid, 6);
    ck_assert_int_eq(a->mtime.sec, OLD.sec);
    ck_assert_uint_eq(a->mtime.nsec, OLD.nsec);
}

static void set_all(uint64_t d)
{
    set_ahead(d, TIMES);
    set_ahead(d, OWNER);
    set_ahead(d, MODE);
}

static unsigned sets(void)
{
    return rm.bed.cluster.calls[RPC_OP_SETATTR];
}

START_TEST(what_tar_sets_follows_what_is_in_it)
{
    struct msg_attr told;
    uint64_t d = begin_ahead();

    for (unsigned k = 0; k < 5; k++)
        file_in(d, cr_name(k));
    rm.bed.cluster.hold_removals = true;
    set_all(d);
    told = attr_of(d);
    expect_set(&told);
    rm_let_pass();
    ck_assert_uint_eq(sets(), 0);
    ck_assert(core_is_ahead(rm.c));
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(sync_dir(d), 0);
    expect_set(&cr_stored("d")->attr);
    ck_assert_int_eq(cr_stored("d")->attr.ctime.sec, told.ctime.sec);
    ck_assert_uint_eq(cr_stored("d")->attr.ctime.nsec, told.ctime.nsec);
    ck_assert_uint_eq(sets(), 1);
    ck_assert_uint_eq(rm_stats().set_ahead, 3);
    told = attr_of(d);
    expect_set(&told);
    set_all(d); /* it is still ours alone */
    ck_assert_int_eq(sync_dir(d), 0);
    ck_assert_uint_eq(sets(), 2);
}
END_TEST

START_TEST(cp_sets_a_mode_and_no_list_to_inherit)
{
    static const char access[] = "system.posix_acl_access",
                      inherited[] = "system.posix_acl_default";
    static const uint8_t plain[] = {2,   0,   0, 0, 1,   0,   7,    0,    255,  255,
                                    255, 255, 4, 0, 5,   0,   0xff, 0xff, 0xff, 0xff,
                                    32,  0,   0, 0, 255, 255, 255,  255};
    struct bed_op op;
    uint64_t d = begin_ahead();

    set_ahead(d, TIMES);
    set_ahead(d, OWNER);
    bed_op_init(&op);
    core_setxattr(rm.c, &op.q, d, access, sizeof access - 1, plain, sizeof plain, 0);
    ck_assert(op.done);
    bed_op_init(&op);
    core_removexattr(rm.c, &op.q, d, inherited, sizeof inherited - 1);
    ck_assert(op.done);
    ck_assert_int_eq(op.status, 0);
    ck_assert_int_eq(sync_dir(d), 0);
    expect_set(&cr_stored("d")->attr);
    ck_assert_uint_eq(sets(), 1);
}
END_TEST

START_TEST(what_comes_later_waits_for_it)
{
    struct bed_op look, make;
    uint64_t d = begin_ahead();

    file_in(d, "one");
    rm.bed.cluster.hold_sets = true;
    set_all(d);
    rm_let_pass();
    ck_assert_uint_eq(sets(), 1);
    names_drop(rm.c, d, "one", 3, false);
    bed_op_init(&look);
    core_lookup(rm.c, &look.q, d, "one", 3); /* whether he may is about to change */
    file_start(&make, d, "two");
    rm_let_pass();
    ck_assert(!look.done);
    ck_assert(!make.done);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(bed_wait(&rm.bed, &look), 0);
    ck_assert_int_eq(bed_wait(&rm.bed, &make), 0);
    core_release(rm.c, make.q.out.opened.file);
    ck_assert_int_eq(sync_dir(d), 0);
}
END_TEST

START_TEST(what_is_set_while_it_is_under_way_waits)
{
    struct bed_op op;
    uint64_t d = begin_ahead();

    rm.bed.cluster.hold_sets = true;
    set_ahead(d, MODE);
    rm_let_pass();
    set_start(&op, d, TIMES, NULL);
    rm_let_pass();
    ck_assert(!op.done);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    ck_assert_uint_eq(rm.bed.cluster.executed[RPC_OP_SETATTR], 2);
    ck_assert_int_eq(cr_stored("d")->attr.mtime.sec, OLD.sec);
}
END_TEST

START_TEST(who_asks_for_it_is_answered_behind_it)
{
    struct bed_op op;
    bool answered;
    uint64_t d = begin_stored();

    rm.bed.cluster.hold_sets = true;
    set_all(d);
    fake_invalidate(&rm.bed.cluster, d, "", &answered);
    rm_let_pass();
    ck_assert_uint_eq(sets(), 1);
    ck_assert(!answered);
    fake_release_removals(&rm.bed.cluster);
    fake_run_until(&rm.bed.cluster, &answered);
    expect_set(&cr_stored("d")->attr);
    set_start(&op, d, MODE, NULL); /* it is not ours alone any more */
    ck_assert(!op.done);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
}
END_TEST

START_TEST(what_may_be_refused_waits)
{
    const struct msg_cred other = {.uid = 8, .gid = 7};
    struct bed_op op;
    uint64_t d = begin_ahead();

    set_start(&op, d, SET_ID, NULL);
    ck_assert(!op.done);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    d = dir_ahead("e");
    rm.bed.cluster.fail_setattr = -EPERM;
    set_start(&op, d, MODE, &other);
    ck_assert(!op.done);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), -EPERM);
    rm.bed.cluster.fail_setattr = 0;
    set_start(&op, RM_DIR, MODE, NULL); /* not made here */
    ck_assert(!op.done);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    ck_assert_uint_eq(rm_stats().set_ahead, 0);
}
END_TEST

START_TEST(who_syncs_it_hears_of_a_refusal_once)
{
    uint64_t d = begin_stored();

    rm.bed.cluster.fail_setattr = -ENOSPC;
    set_all(d);
    ck_assert_int_eq(sync_dir(d), -ENOSPC);
    ck_assert_int_eq(sync_dir(d), 0);
    rm.bed.cluster.fail_setattr = 0;
    ck_assert_uint_eq(attr_of(d).mode, S_IFDIR | 0700);
    ck_assert_uint_eq(rm_stats().sets_refused, 1);
}
END_TEST

START_TEST(it_outlives_a_connection_and_is_done_once)
{
    uint64_t d = begin_stored();

    rm.bed.cluster.drop_replies = true;
    set_all(d);
    ck_assert_int_eq(sync_dir(d), 0);
    ck_assert_uint_eq(rm.bed.cluster.executed[RPC_OP_SETATTR], 1);
    expect_set(&cr_stored("d")->attr);
}
END_TEST

START_TEST(it_is_not_carried_into_another_session)
{
    uint64_t d = begin_stored();

    rm.bed.cluster.hold_sets = true;
    set_all(d);
    rm_let_pass();
    fake_mds_forget_sessions(&rm.bed.cluster);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(sync_dir(d), -EIO);
    ck_assert_uint_eq(cr_stored("d")->attr.mode, S_IFDIR | 0700);
}
END_TEST

START_TEST(a_directory_that_is_refused_takes_it_along)
{
    uint64_t d;

    cr_begin();
    rm.bed.cluster.fail_creations = -ENOMEM; /* as of a server without memory, to the end */
    d = dir_ahead("d");
    (void)dir_ahead("beside");
    file_in(d, "one");
    set_all(d);
    ck_assert_int_eq(rm_fsync(), -ENOMEM);
    ck_assert_int_eq(sync_dir(d), -ENOMEM);
    ck_assert_int_eq(rm_lookup("d"), -ENOENT);
    ck_assert_uint_eq(rm_stats().creations_under_way, 0);
    ck_assert_uint_eq(rm.bed.cluster.calls[RPC_OP_MKNOD], 0); /* what is in it never left */
    rm.bed.cluster.fail_creations = 0;
}
END_TEST

/* There is nothing in it that would be over behind it. */
START_TEST(an_empty_directory_that_is_refused_takes_it_along)
{
    uint64_t d;

    cr_begin();
    rm.bed.cluster.hold_removals = true;
    d = dir_ahead("d");
    set_all(d);
    rm_let_pass();
    fake_mds_forget_sessions(&rm.bed.cluster);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(rm_fsync(), -EIO);
    ck_assert_int_eq(sync_dir(d), -EIO);
    ck_assert_int_eq(rm_lookup("d"), -ENOENT);
    ck_assert_uint_eq(rm_stats().creations_under_way, 0);
}
END_TEST

START_TEST(it_follows_an_empty_directory_that_we_are_not_alone_with)
{
    uint64_t d;

    cr_begin();
    rm.bed.cluster.hold_removals = rm.bed.cluster.dirs_not_alone = true;
    d = dir_ahead("d");
    set_all(d);
    rm_let_pass();
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(sync_dir(d), 0);
    ck_assert_int_eq(rm_fsync(), 0);
    expect_set(&cr_stored("d")->attr);
    ck_assert_uint_eq(rm_stats().creations_under_way, 0);
}
END_TEST

START_TEST(a_forced_unmount_does_not_wait_for_what_is_held)
{
    struct core_file *f;
    uint64_t d;

    cr_begin();
    f = cr_make_ahead("open");
    d = dir_ahead("d");
    file_in(d, "one");
    set_all(d);
    rm.bed.cluster.hold_removals = true;
    core_release(rm.c, f);
    bed_unmount(&rm.bed, rm.c, true, -EIO);
    rm.c = bed_mount(&rm.bed, NULL);
    fake_release_removals(&rm.bed.cluster);
}
END_TEST

/* What is gathered leaves whole also where nothing goes together. */
START_TEST(a_file_in_a_new_directory_leaves_by_itself)
{
    const struct fake_inode *i;
    struct core_options o;
    uint64_t d;

    bed_unmount(&rm.bed, rm.c, false, 0);
    fake_mds_features &= ~(uint64_t)RPC_FEATURE_BATCH;
    fake_mds_restart(&rm.bed.cluster);
    core_options_default(&o);
    o.create_ahead = true;
    rm.c = bed_mount(&rm.bed, &o);
    cr_begin();
    rm.bed.cluster.hold_removals = true;
    d = dir_ahead("d");
    file_in(d, "one");
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(sync_dir(d), 0);
    i = fake_find(&rm.bed.cluster, d, &(struct msg_bytes){"one", 3});
    ck_assert_ptr_nonnull(i);
    ck_assert_uint_eq(i->attr.size, CR_LEN);
    ck_assert_uint_eq(rm.bed.cluster.calls[RPC_OP_OPEN], 0);
    ck_assert_uint_eq(rm.bed.cluster.calls[RPC_OP_BATCH], 0);
}
END_TEST

SUITE_MAIN("client-setdir", cr_setup, rm_teardown, what_tar_sets_follows_what_is_in_it,
           cp_sets_a_mode_and_no_list_to_inherit, what_comes_later_waits_for_it,
           what_is_set_while_it_is_under_way_waits, who_asks_for_it_is_answered_behind_it,
           what_may_be_refused_waits, who_syncs_it_hears_of_a_refusal_once,
           it_outlives_a_connection_and_is_done_once, it_is_not_carried_into_another_session,
           a_directory_that_is_refused_takes_it_along,
           an_empty_directory_that_is_refused_takes_it_along,
           it_follows_an_empty_directory_that_we_are_not_alone_with,
           a_forced_unmount_does_not_wait_for_what_is_held,
           a_file_in_a_new_directory_leaves_by_itself)
