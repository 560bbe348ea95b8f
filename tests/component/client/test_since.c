/* SPDX-License-Identifier: Apache-2.0 */
/* What is set on a file while its creation is gathered: it goes along, or waits. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "tests/support/creating_bed.h"
#include "tests/support/suite.h"

#define OLD ((struct msg_time){1000000000, 7})

static struct core_entry told;

static void set_start(struct bed_op *op, uint64_t ino, const struct msg_setattr_req *m,
                      const struct msg_cred *cred)
{
    struct msg_setattr_req set = *m;

    bed_op_init(op);
    if (cred)
        op->q.cred = *cred;
    set.ino = ino;
    core_setattr(rm.c, &op->q, &set, NULL);
}

/* Was it over before anything could have been sent? */
static bool set_as(struct core_file *f, const struct msg_setattr_req *m,
                   const struct msg_cred *cred, int expect)
{
    struct bed_op op;
    bool at_once;

    set_start(&op, core_file_ino(f), m, cred);
    at_once = op.done;
    ck_assert_int_eq(bed_wait(&rm.bed, &op), expect);
    told = op.q.entry;
    return at_once;
}

static bool set(struct core_file *f, const struct msg_setattr_req *m)
{
    return set_as(f, m, NULL, 0);
}

static struct core_file *make_as(const char *name, const struct msg_cred *cred, uint32_t mode,
                                 int flags)
{
    struct bed_op op;

    bed_op_init(&op);
    op.q.ahead = true;
    op.q.cred = *cred;
    core_create_file(rm.c, &op.q, RM_DIR, name, (uint32_t)strlen(name), mode,
                     flags | O_CREAT | O_EXCL, NULL);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    return op.q.out.opened.file;
}

static void expect_time(struct msg_time is, struct msg_time should)
{
    ck_assert_int_eq(is.sec, should.sec);
    ck_assert_uint_eq(is.nsec, should.nsec);
}

START_TEST(what_tar_sets_goes_along)
{
    unsigned opens = rm.bed.cluster.calls[RPC_OP_OPEN];
    const struct fake_inode *i;
    struct core_file *f;

    cr_begin();
    f = cr_make_ahead("tar");
    cr_put(f);
    ck_assert(set(f, &(struct msg_setattr_req){.set = MSG_SET_MTIME, .mtime = OLD}));
    ck_assert(set(f, &(struct msg_setattr_req){.set = MSG_SET_UID | MSG_SET_GID | MSG_SET_KILL_PRIV,
                                               .uid = 5,
                                               .gid = 6}));
    ck_assert(set(f, &(struct msg_setattr_req){.set = MSG_SET_MODE, .mode = 0444}));
    expect_time(told.attr.mtime, OLD);
    ck_assert_uint_eq(told.attr.uid, 5);
    ck_assert_uint_eq(told.attr.mode, S_IFREG | 0444);
    ck_assert_uint_eq(told.attr.size, CR_LEN);
    ck_assert_int_eq(bed_flush(&rm.bed, rm.c, f), 0);
    core_release(rm.c, f);
    ck_assert_int_eq(rm_fsync(), 0);
    cr_expect_whole("tar");
    i = cr_stored("tar");
    ck_assert_uint_eq(i->attr.mode, S_IFREG | 0444);
    ck_assert_uint_eq(i->attr.uid, 5);
    ck_assert_uint_eq(i->attr.gid, 6);
    expect_time(i->attr.mtime, OLD);
    ck_assert_uint_eq(i->since, MSG_SET_MODE | MSG_SET_UID | MSG_SET_GID | MSG_SET_MTIME);
    ck_assert_uint_eq(rm.bed.cluster.calls[RPC_OP_SETATTR], 0);
    ck_assert_uint_eq(rm.bed.cluster.calls[RPC_OP_OPEN], opens);
    ck_assert_uint_eq(rm_stats().set_ahead, 3);
}
END_TEST

START_TEST(a_write_behind_it_has_its_own_time)
{
    struct core_file *f;

    cr_begin();
    f = cr_make_ahead("later");
    ck_assert(set(f, &(struct msg_setattr_req){
                         .set = MSG_SET_ATIME | MSG_SET_MTIME, .atime = OLD, .mtime = OLD}));
    cr_put(f);
    core_release(rm.c, f);
    ck_assert_int_eq(rm_fsync(), 0);
    cr_expect_whole("later");
    ck_assert_uint_eq(cr_stored("later")->since, MSG_SET_ATIME);
    ck_assert_int_gt(cr_stored("later")->attr.mtime.sec, OLD.sec);
    expect_time(cr_stored("later")->attr.atime, OLD);
}
END_TEST

START_TEST(the_time_now_is_that_of_the_client)
{
    struct core_file *f;

    cr_begin();
    f = cr_make_ahead("touched");
    bed_spin(&rm.bed, NS_PER_MS);
    ck_assert(set(f, &(struct msg_setattr_req){.set = MSG_SET_ATIME_NOW | MSG_SET_MTIME_NOW}));
    expect_time(told.attr.mtime, told.attr.ctime);
    expect_time(told.attr.atime, told.attr.ctime);
    core_release(rm.c, f);
    ck_assert_int_eq(rm_fsync(), 0);
    ck_assert_uint_eq(cr_stored("touched")->since, MSG_SET_ATIME | MSG_SET_MTIME);
    expect_time(cr_stored("touched")->attr.mtime, told.attr.mtime);
}
END_TEST

START_TEST(what_has_left_waits)
{
    struct bed_op op;
    struct core_file *f;

    cr_begin();
    rm.bed.cluster.hold_removals = true;
    f = cr_make_ahead("left");
    rm_let_pass();
    set_start(&op, core_file_ino(f), &(struct msg_setattr_req){.set = MSG_SET_MODE, .mode = 0600},
              NULL);
    rm_let_pass();
    ck_assert(!op.done);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    ck_assert_uint_eq(rm.bed.cluster.calls[RPC_OP_SETATTR], 1);
    ck_assert_uint_eq(cr_stored("left")->attr.mode, S_IFREG | 0600);
    ck_assert_uint_eq(cr_stored("left")->since, 0);
    core_release(rm.c, f);
}
END_TEST

START_TEST(set_id_bits_wait)
{
    struct core_file *f;

    cr_begin();
    f = cr_make_ahead("setuid");
    ck_assert(!set(f, &(struct msg_setattr_req){.set = MSG_SET_MODE, .mode = 04755}));
    ck_assert_uint_eq(cr_stored("setuid")->attr.mode, S_IFREG | 04755);
    core_release(rm.c, f);
    f = make_as("was", &(struct msg_cred){0}, 04755, O_RDWR);
    ck_assert(!set(f, &(struct msg_setattr_req){.set = MSG_SET_UID, .uid = 5}));
    core_release(rm.c, f);
    ck_assert_uint_eq(rm_stats().set_ahead, 0);
}
END_TEST

START_TEST(times_that_nobody_has_are_refused)
{
    struct core_file *f;

    cr_begin();
    f = cr_make_ahead("f");
    ck_assert(!set_as(f, &(struct msg_setattr_req){.set = MSG_SET_MTIME, .mtime = {1, NS_PER_S}},
                      NULL, -AIFS_EPROTO));
    core_release(rm.c, f);
}
END_TEST

/* Of a user who owns what he makes. */
START_TEST(an_owner_sets_what_he_may)
{
    const struct msg_cred user = {.uid = 0x1234, .gid = 7}, other = {.uid = 8, .gid = 7};
    const struct msg_setattr_req mode = {.set = MSG_SET_MODE, .mode = 0640};
    struct core_file *f;

    rm.bed.cluster.inodes[RM_DIR].attr.mode = S_IFDIR | 0777;
    cr_begin();
    for (unsigned k = 0; k < 2; k++) /* he is known to make files */
        core_release(rm.c, make_as(cr_name(10 + k), &user, 0600, O_RDWR));
    ck_assert_int_eq(rm_fsync(), 0);
    f = make_as("mine", &user, 0600, O_WRONLY);
    ck_assert_uint_eq(rm_stats().creations_under_way, 1);
    ck_assert(set_as(f, &mode, &user, 0));
    ck_assert(set_as(f, &(struct msg_setattr_req){.set = MSG_SET_GID, .gid = 7}, &user, 0));
    ck_assert(set_as(f, &(struct msg_setattr_req){.set = MSG_SET_MTIME, .mtime = OLD}, &user, 0));
    ck_assert_uint_eq(rm_stats().set_ahead, 3);
    /* somebody else, another owner, a group that the server looks at, a mode that the open is
     * judged by */
    rm.bed.cluster.fail_setattr = -EPERM;
    ck_assert(!set_as(f, &mode, &other, -EPERM));
    core_release(rm.c, f);
    f = make_as("his", &user, 0600, O_WRONLY);
    ck_assert(!set_as(f, &(struct msg_setattr_req){.set = MSG_SET_UID, .uid = 9}, &user, -EPERM));
    core_release(rm.c, f);
    f = make_as("its", &user, 0600, O_WRONLY);
    ck_assert(!set_as(f, &(struct msg_setattr_req){.set = MSG_SET_GID, .gid = 9}, &user, -EPERM));
    core_release(rm.c, f);
    rm.bed.cluster.fail_setattr = 0;
    f = make_as("shut", &user, 0600, O_WRONLY);
    ck_assert(!set_as(f, &(struct msg_setattr_req){.set = MSG_SET_MODE, .mode = 0400}, &user, 0));
    core_release(rm.c, f);
    ck_assert_uint_eq(rm_stats().set_ahead, 3);
}
END_TEST

/* As cp -a sets it on each file, and one with a user and a mask, which is the server's. */
START_TEST(an_access_list_that_is_a_mode_goes_along)
{
    static const char name[] = "system.posix_acl_access";
    static const uint8_t plain[] = {2,   0,   0, 0, 1,   0,   6,    0,    255,  255,
                                    255, 255, 4, 0, 4,   0,   0xff, 0xff, 0xff, 0xff,
                                    32,  0,   0, 0, 255, 255, 255,  255};
    uint8_t damaged[sizeof plain];
    struct core_file *f;
    struct bed_op op;

    memcpy(damaged, plain, sizeof plain);
    damaged[4] = 2;
    cr_begin();
    f = cr_make_ahead("cp");
    bed_op_init(&op);
    core_setxattr(rm.c, &op.q, core_file_ino(f), name, sizeof name - 1, plain, sizeof plain, 0);
    ck_assert(op.done);
    ck_assert_int_eq(op.status, 0);
    bed_op_init(&op);
    core_setxattr(rm.c, &op.q, core_file_ino(f), name, sizeof name - 1, damaged, sizeof plain, 0);
    ck_assert(!op.done);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), -EOPNOTSUPP); /* asked there: no such call */
    core_release(rm.c, f);
    ck_assert_int_eq(rm_fsync(), 0);
    ck_assert_uint_eq(cr_stored("cp")->attr.mode, S_IFREG | 0640);
    ck_assert_uint_eq(cr_stored("cp")->since, MSG_SET_MODE);
}
END_TEST

START_TEST(a_creation_that_is_refused_takes_along_what_was_set)
{
    struct core_file *f;

    cr_begin();
    rm.bed.cluster.fail_creations = -ENOSPC;
    f = cr_make_ahead("refused");
    core_release(rm.c, cr_make_ahead("beside"));
    ck_assert(set(f, &(struct msg_setattr_req){.set = MSG_SET_MODE, .mode = 0600}));
    ck_assert_int_eq(bed_fsync(&rm.bed, rm.c, f), -ENOSPC);
    ck_assert_int_eq(rm_fsync(), -ENOSPC);
    core_release(rm.c, f);
    ck_assert_int_eq(rm_lookup("refused"), -ENOENT);
    rm.bed.cluster.fail_creations = 0;
}
END_TEST

START_TEST(it_is_made_so_by_itself_too)
{
    struct core_file *f;

    cr_begin();
    rm.bed.cluster.retry_members = 1;
    f = cr_make_ahead("alone");
    core_release(rm.c, cr_make_ahead("beside"));
    cr_put(f);
    ck_assert(set(f, &(struct msg_setattr_req){
                         .set = MSG_SET_MODE | MSG_SET_MTIME, .mode = 0600, .mtime = OLD}));
    core_release(rm.c, f);
    ck_assert_int_eq(rm_fsync(), 0);
    cr_expect_whole("alone");
    ck_assert_uint_eq(cr_stored("alone")->attr.mode, S_IFREG | 0600);
    expect_time(cr_stored("alone")->attr.mtime, OLD);
}
END_TEST

/* Nothing was written when it left, and it comes once more. */
START_TEST(a_write_behind_a_creation_that_is_sent_again_has_its_own_time)
{
    struct core_file *f, *beside;

    cr_begin();
    rm.bed.cluster.retry_members = 1;
    rm.bed.cluster.hold_removals = true;
    f = cr_make_ahead("again");
    beside = cr_make_ahead("beside");
    ck_assert(set(f, &(struct msg_setattr_req){
                         .set = MSG_SET_ATIME | MSG_SET_MTIME, .atime = OLD, .mtime = OLD}));
    bed_spin(&rm.bed, 20 * NS_PER_MS);
    cr_put(f);
    fake_release_removals(&rm.bed.cluster);
    bed_spin(&rm.bed, 20 * NS_PER_MS);
    core_release(rm.c, f);
    core_release(rm.c, beside);
    ck_assert_int_eq(rm_fsync(), 0);
    cr_expect_whole("again");
    ck_assert_int_gt(cr_stored("again")->attr.mtime.sec, OLD.sec);
    expect_time(cr_stored("again")->attr.atime, OLD);
}
END_TEST

START_TEST(a_file_that_is_open_leaves_when_it_is_closed_or_old)
{
    struct core_file *f, *g;

    cr_begin();
    f = cr_make_ahead("closed");
    g = cr_make_ahead("open");
    bed_spin(&rm.bed, 2 * NS_PER_MS);
    ck_assert_ptr_null(cr_stored("closed"));
    cr_put(f);
    core_release(rm.c, f);
    bed_spin(&rm.bed, 2 * NS_PER_MS);
    cr_expect_whole("closed");
    ck_assert_ptr_null(cr_stored("open"));
    bed_spin(&rm.bed, 10 * NS_PER_MS);
    ck_assert_ptr_nonnull(cr_stored("open"));
    core_release(rm.c, g);
}
END_TEST

SUITE_MAIN("client-since", cr_setup, rm_teardown, what_tar_sets_goes_along,
           a_write_behind_it_has_its_own_time, the_time_now_is_that_of_the_client,
           what_has_left_waits, set_id_bits_wait, times_that_nobody_has_are_refused,
           an_owner_sets_what_he_may, an_access_list_that_is_a_mode_goes_along,
           a_creation_that_is_refused_takes_along_what_was_set, it_is_made_so_by_itself_too,
           a_write_behind_a_creation_that_is_sent_again_has_its_own_time,
           a_file_that_is_open_leaves_when_it_is_closed_or_old)
