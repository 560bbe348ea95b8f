/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes, small files, sizes, truncation and its queue, extended attributes. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "common/base/err.h"
#include "common/fault/fault.h"
#include "mds/ns/ns.h"
#include "tests/component/mds/bed.h"
#include "tests/support/suite.h"

static struct bed bed;
static uint64_t file;
#define ROOT KEY_ROOT_INO

static void setup(void)
{
    bed_open(&bed);
    file = bed_file(&bed, ROOT, "f");
}

static void teardown(void)
{
    bed_check_tree(&bed);
    bed_close(&bed);
}

static struct mds_inode inode(void)
{
    struct mds_inode in;

    ck_ok(bed_inode(&bed, file, &in));
    return in;
}

/* The content as a reader sees it. */
static const char *content(void)
{
    static char text[256];
    static struct arena a;
    const void *value;
    uint32_t len = 0;
    struct view v;
    struct key k;

    memset(text, 0, sizeof(text));
    arena_init(&a, 0);
    key_number(&k, KEY_INLINE, file);
    view_pin(bed.shard, &v);
    if (view_record(&v, &k, &a, &value, &len) == 0)
        memcpy(text, value, MIN(len, sizeof(text) - 1));
    view_unpin(&v);
    arena_reset(&a);
    return text;
}

static int set_size(uint64_t size)
{
    struct msg_setattr_req req = {.cred = bed.cred, .ino = file, .set = MSG_SET_SIZE, .size = size};

    return bed_call(&bed, RPC_OP_SETATTR, &req);
}

static int grow(uint64_t size)
{
    struct mds_inode in = inode();
    struct msg_size_req req = {.ino = file,
                               .size = size,
                               .truncate_gen = in.truncate_gen,
                               .layout_generation = in.layout.generation};

    return bed_call(&bed, RPC_OP_GROW, &req);
}

static int report(uint64_t size)
{
    struct mds_inode in = inode();
    struct msg_size_req req = {.ino = file,
                               .size = size,
                               .truncate_gen = in.truncate_gen,
                               .layout_generation = in.layout.generation};

    return bed_call(&bed, RPC_OP_SIZE, &req);
}

static struct mds_queue_item cut_item(void)
{
    const void *value;
    struct mds_queue_item item;
    struct arena a;
    struct view v;
    uint32_t len;
    struct key k;

    arena_init(&a, 0);
    key_number(&k, KEY_PUNCH, file);
    view_pin(bed.shard, &v);
    ck_ok(view_record(&v, &k, &a, &value, &len));
    ck_ok(rec_queue_decode(value, len, &item));
    view_unpin(&v);
    arena_reset(&a);
    return item;
}

static int punched(void)
{
    struct shard_queue_done done = {.queue = KEY_PUNCH, .ino = file, .index = cut_item().index};

    return bed_call(&bed, SHARD_OP_QUEUE_DONE, &done);
}

START_TEST(inline_writes_are_merged)
{
    ck_ok(bed_write(&bed, file, 0, "hello", 5, 0));
    ck_assert_str_eq(content(), "hello");
    ck_ok(bed_write(&bed, file, 3, "p!", 2, 0));
    ck_assert_str_eq(content(), "help!");
    ck_ok(bed_write(&bed, file, 0, " me", 3, BED_APPEND));
    ck_assert_str_eq(content(), "help! me");
    ck_assert_uint_eq(inode().size, 8);
    ck_ok(bed_write(&bed, file, 0, "new", 3, BED_REPLACE));
    ck_assert_str_eq(content(), "new");
    ck_assert_uint_eq(inode().size, 3);
    ck_ok(bed_write(&bed, file, 6, "x", 1, 0));
    ck_assert_uint_eq(inode().size, 7);
    ck_assert_int_eq(memcmp(content(), "new\0\0\0x", 7), 0);
    ck_ok(bed_write(&bed, file, 0, NULL, 0, BED_REPLACE));
    ck_assert_uint_eq(inode().size, 0);
    ck_assert_uint_eq(bed_count(&bed, KEY_INLINE), 0);
}
END_TEST

START_TEST(an_inline_file_has_a_limit)
{
    static char big[MSG_INLINE_MAX + 1];

    ck_ok(bed_write(&bed, file, 0, big, MSG_INLINE_MAX, BED_REPLACE));
    ck_assert_int_eq(bed_write(&bed, file, 0, "x", 1, BED_APPEND), -AIFS_EINLINE_FULL);
    ck_assert_int_eq(bed_write(&bed, file, UINT64_MAX, "x", 1, 0), -AIFS_EINLINE_FULL);
    ck_assert_uint_eq(inode().size, MSG_INLINE_MAX);
}
END_TEST

START_TEST(writers_with_old_ideas_are_told)
{
    struct msg_write_inline_req w = {.ino = file, .truncate_gen = 0, .layout_generation = 1};
    struct msg_size_req s = {.ino = file, .size = 9, .truncate_gen = 0, .layout_generation = 1};

    ck_assert_int_eq(bed_call(&bed, RPC_OP_SIZE, &s), -AIFS_ESTALE_LAYOUT);
    ck_ok(bed_write(&bed, file, 0, "hello", 5, 0));
    ck_ok(set_size(2));
    ck_assert_int_eq(bed_call(&bed, RPC_OP_WRITE_INLINE, &w), -AIFS_ESTALE_TRUNC);
    ck_ok(grow(100000));
    ck_assert_int_eq(bed_call(&bed, RPC_OP_WRITE_INLINE, &w), -AIFS_ESTALE_LAYOUT);
    s.layout_generation = 2;
    ck_assert_int_eq(bed_call(&bed, RPC_OP_SIZE, &s), -AIFS_ESTALE_TRUNC);
}
END_TEST

START_TEST(truncate_of_an_inline_file_cuts_its_bytes)
{
    ck_ok(bed_write(&bed, file, 0, "hello", 5, 0));
    ck_ok(set_size(2));
    ck_assert_str_eq(content(), "he");
    ck_ok(set_size(10));
    ck_assert_uint_eq(inode().size, 10);
    ck_assert_str_eq(content(), "he");
    ck_ok(bed_write(&bed, file, 0, "!", 1, BED_APPEND));
    ck_assert_uint_eq(inode().size, 11);
    ck_assert_int_eq(memcmp(content(), "he\0\0\0\0\0\0\0\0!", 11), 0);
    ck_ok(set_size(0));
    ck_assert_uint_eq(bed_count(&bed, KEY_INLINE), 0);
    ck_assert_uint_eq(bed_count(&bed, KEY_PUNCH), 0);
}
END_TEST

START_TEST(a_file_grows_once_and_its_generation_tells)
{
    struct mds_inode in;

    ck_ok(bed_write(&bed, file, 0, "hello", 5, 0));
    ck_ok(grow(100000));
    in = inode();
    ck_assert(!(in.flags & INODE_INLINE));
    ck_assert_uint_eq(in.size, 100000);
    ck_assert_uint_eq(in.layout.generation, 2);
    ck_assert_uint_eq(bed_count(&bed, KEY_INLINE), 0);
    ck_assert_int_eq(grow(100000), -AIFS_ESTALE_LAYOUT);
    ck_ok(report(50000));
    ck_assert_uint_eq(inode().size, 100000);
    ck_ok(report(200000));
    ck_assert_uint_eq(inode().size, 200000);
    ck_ok(bed_name(&bed, RPC_OP_UNLINK, ROOT, "f"));
    ck_assert(bed.e.result & SHARD_R_DESTROY);
    ck_assert(bed_has(&bed, KEY_DESTROY, file));
}
END_TEST

START_TEST(the_store_is_not_asked_for_what_cannot_be_there)
{
    uint64_t small = bed_file(&bed, ROOT, "small");

    ck_ok(fault_arm("mds.store.get=error"));
    ck_ok(grow(100000));
    ck_ok(bed_write(&bed, small, 0, "hello", 5, 0));
    ck_ok(bed_name(&bed, RPC_OP_UNLINK, ROOT, "f"));
    fault_disarm_all();
    ck_assert(bed_has(&bed, KEY_DESTROY, file));
    ck_assert(bed_has(&bed, KEY_INLINE, small));
}
END_TEST

START_TEST(a_cut_of_chunks_is_pending_until_the_targets_have_it)
{
    ck_ok(grow(100000));
    ck_ok(set_size(5000));
    ck_assert(bed.e.result & SHARD_R_PUNCH);
    ck_assert(bed.rep->inode.attr.flags & MSG_ATTR_PUNCH_PENDING);
    ck_assert_uint_eq(inode().truncate_gen, 1);
    ck_assert_int_eq(set_size(6000), -AIFS_ERETRY);
    ck_assert_int_eq(report(6000), -AIFS_ERETRY);
    ck_ok(report(4000));
    ck_ok(set_size(1000)); /* further down goes at once */
    ck_assert_uint_eq(inode().truncate_gen, 2);
    ck_ok(punched());
    ck_assert(!(inode().flags & INODE_PUNCH_PENDING));
    ck_ok(set_size(6000));
    ck_assert_uint_eq(inode().size, 6000);
}
END_TEST

/* Nor does a writer's death: the next cut would be of another place. */
START_TEST(a_cut_that_is_under_way_is_replaced_by_no_later_place)
{
    struct shard_size dead = {.ino = file, .session = 3};

    ck_ok(grow(100000));
    ck_ok(set_size(5000));
    ck_ok(bed_call(&bed, SHARD_OP_SIZE_UNSURE, &dead));
    ck_assert_int_eq(set_size(6000), -AIFS_ERETRY);
    ck_assert_uint_eq(inode().size, 5000);
    ck_ok(set_size(4000));
    ck_assert_uint_eq(inode().size, 4000);
    ck_ok(punched());
    ck_ok(set_size(6000));
}
END_TEST

/* In nanoseconds; by who has a write lease, or not. */
static int64_t told(struct msg_time t)
{
    return t.sec * (int64_t)NS_PER_S + t.nsec;
}

static int64_t mtime_after(struct msg_time mtime, bool holds_write)
{
    struct mds_inode in = inode();
    struct msg_size_req size = {.ino = file,
                                .mtime = mtime,
                                .truncate_gen = in.truncate_gen,
                                .layout_generation = in.layout.generation};
    struct msg_write_inline_req piece = {.ino = file,
                                         .mtime = mtime,
                                         .truncate_gen = in.truncate_gen,
                                         .layout_generation = in.layout.generation};

    bed.holds_write = holds_write;
    ck_ok(in.flags & INODE_INLINE ? bed_call(&bed, RPC_OP_WRITE_INLINE, &piece)
                                  : bed_call(&bed, RPC_OP_SIZE, &size));
    bed.holds_write = false;
    in = inode();
    ck_assert_int_ge(told(in.ctime), told(in.mtime));
    return told(in.mtime);
}

static void set_mtime(struct msg_time mtime)
{
    struct msg_setattr_req set = {.ino = file, .set = MSG_SET_MTIME, .mtime = mtime};

    ck_ok(bed_call(&bed, RPC_OP_SETATTR, &set));
}

/* A kernel elsewhere knows by it that its pages are old. Whose clock is behind tells a time that
 * somebody else has told, or that is before it. */
START_TEST(each_write_without_a_lease_has_an_mtime_that_no_other_had)
{
    static const struct msg_time long_ago = {.sec = 1000};
    struct msg_time same, before;
    int64_t last;

    ck_ok(bed_write(&bed, file, 0, "hello", 5, 0));
    for (int striped = 0; striped < 2; striped++) {
        if (striped)
            ck_ok(grow(100000));
        same = inode().ctime;
        before = (struct msg_time){.sec = same.sec - 1};
        last = told(inode().mtime);
        for (unsigned k = 0; k < 4; k++) {
            int64_t now = mtime_after(k == 2 ? before : same, false);

            ck_assert_int_gt(now, last);
            last = now;
        }
        set_mtime(long_ago); /* what is told of a write behind it is that time still */
        ck_assert_int_eq(mtime_after(long_ago, false), told(long_ago));
        ck_assert_int_gt(mtime_after(before, false), told(long_ago));
    }
}
END_TEST

START_TEST(who_has_the_lease_may_tell_the_same_mtime_again)
{
    struct msg_time at;

    ck_ok(bed_write(&bed, file, 0, "hello", 5, 0));
    ck_ok(grow(100000));
    at = inode().mtime;
    ck_assert_int_eq(mtime_after(at, true), told(at));
    ck_assert_int_eq(mtime_after(at, true), told(at));
}
END_TEST

static int give_up(bool holds_write)
{
    struct mds_inode in = inode();
    struct msg_size_req req = {.ino = file,
                               .truncate_gen = in.truncate_gen,
                               .layout_generation = in.layout.generation,
                               .give_up = true};

    bed.holds_write = holds_write;
    return bed_call(&bed, RPC_OP_SIZE, &req);
}

/* A restart knows by it that the file is held until every target has the cut. */
START_TEST(a_cut_that_takes_the_place_of_a_recovery_is_of_the_same_dead_session)
{
    struct shard_size dead = {.ino = file, .session = 3};

    ck_ok(grow(100000));
    ck_ok(bed_call(&bed, SHARD_OP_SIZE_UNSURE, &dead));
    ck_ok(set_size(5000));
    ck_assert(!bed_has(&bed, KEY_RECOVER, file));
    ck_assert_uint_eq(cut_item().session, 3);
    ck_ok(set_size(4000));
    ck_assert_uint_eq(cut_item().session, 3);
    ck_ok(punched());
    ck_ok(set_size(1000));
    ck_assert_uint_eq(cut_item().session, 0);
}
END_TEST

START_TEST(a_growth_that_is_given_up_is_cut_off_the_targets)
{
    ck_ok(bed_write(&bed, file, 0, "hello", 5, 0));
    ck_assert_int_eq(give_up(false), -AIFS_ELEASE); /* somebody else may be growing it by now */
    ck_assert_uint_eq(inode().truncate_gen, 0);
    ck_ok(give_up(true));
    ck_assert(bed.e.result & SHARD_R_PUNCH);
    ck_assert_uint_eq(bed.rep->inode.attr.truncate_gen, 1);
    ck_assert(bed.rep->inode.attr.flags & MSG_ATTR_PUNCH_PENDING);
    ck_assert_uint_eq(inode().size, 5);
    ck_assert_str_eq(content(), "hello");
    ck_assert_int_eq(grow(100000), -EIO); /* it was written ahead of the cut */
    ck_ok(set_size(10));                  /* small files need not wait for it */
    ck_ok(punched());
    ck_assert(inode().flags & INODE_STRAY_CHUNKS); /* its removal looks for what is left */
    ck_ok(grow(100000));
    ck_assert_int_eq(give_up(true), -AIFS_ESTALE_LAYOUT);
}
END_TEST

START_TEST(an_old_confirmation_does_not_remove_a_newer_cut)
{
    struct shard_queue_done old = {.queue = KEY_PUNCH, .ino = file, .index = 1};

    ck_ok(grow(100000));
    ck_ok(set_size(5000));
    old.index = bed.e.index;
    ck_ok(set_size(1000));
    ck_ok(bed_call(&bed, SHARD_OP_QUEUE_DONE, &old));
    ck_assert(inode().flags & INODE_PUNCH_PENDING);
    ck_ok(punched());
    ck_assert(!(inode().flags & INODE_PUNCH_PENDING));
    ck_ok(bed_call(&bed, SHARD_OP_QUEUE_DONE, &old));
}
END_TEST

START_TEST(the_size_of_a_dead_writers_file_is_found_again)
{
    struct shard_size s = {.ino = file, .session = 3};

    ck_ok(bed_call(&bed, SHARD_OP_SIZE_UNSURE, &s));
    ck_assert(inode().flags & INODE_STRAY_CHUNKS);
    ck_ok(grow(100));
    ck_assert(!(inode().flags & INODE_STRAY_CHUNKS));
    ck_ok(bed_call(&bed, SHARD_OP_SIZE_UNSURE, &s));
    ck_assert(inode().flags & INODE_SIZE_UNSURE);
    ck_assert(bed_has(&bed, KEY_RECOVER, file));
    s.size = 7777;
    s.index = bed.e.index - 1; /* of an item that a newer one has replaced */
    ck_ok(bed_call(&bed, SHARD_OP_SIZE_RECOVERED, &s));
    ck_assert_uint_eq(inode().size, 100);
    ck_assert(bed_has(&bed, KEY_RECOVER, file));
    s.index++;
    ck_ok(bed_call(&bed, SHARD_OP_SIZE_RECOVERED, &s));
    ck_assert_uint_eq(inode().size, 7777);
    ck_assert(!bed_has(&bed, KEY_RECOVER, file));
    ck_ok(bed_call(&bed, SHARD_OP_SIZE_RECOVERED, &s));
    /* a truncate meanwhile is stronger */
    ck_ok(bed_call(&bed, SHARD_OP_SIZE_UNSURE, &s));
    ck_ok(set_size(10));
    ck_assert(!bed_has(&bed, KEY_RECOVER, file));
    ck_ok(bed_call(&bed, SHARD_OP_SIZE_RECOVERED, &s));
    ck_assert_uint_eq(inode().size, 10);
}
END_TEST

START_TEST(appends_without_a_lease_get_ranges_of_their_own)
{
    struct msg_append_req req = {.ino = file, .len = 100};
    void *rep;

    ck_assert_int_eq(bed_call(&bed, RPC_OP_APPEND_RANGE, &req), -AIFS_ESTALE_LAYOUT);
    ck_ok(grow(50));
    for (unsigned i = 0; i < 3; i++) {
        ck_ok(bed_call(&bed, RPC_OP_APPEND_RANGE, &req));
        ck_ok(codec_decode(RPC_OP_APPEND_RANGE, true, bed.e.reply, bed.e.reply_len, &bed.arena,
                           &rep));
        ck_assert_uint_eq(((struct msg_append_rep *)rep)->offset, 50 + i * 100);
    }
    ck_assert_uint_eq(inode().size, 350);
    req.len = UINT64_MAX;
    ck_assert_int_eq(bed_call(&bed, RPC_OP_APPEND_RANGE, &req), -EFBIG);
}
END_TEST

START_TEST(times_never_run_backwards_and_explicit_ones_pass)
{
    struct msg_setattr_req req = {
        .ino = file, .set = MSG_SET_MTIME | MSG_SET_ATIME, .mtime = {12, 34}, .atime = {56, 78}};
    struct mds_inode before = inode(), in;

    ck_ok(bed_call(&bed, RPC_OP_SETATTR, &req));
    in = inode();
    ck_assert_int_eq(in.mtime.sec, 12);
    ck_assert_uint_eq(in.atime.nsec, 78);
    ck_assert_int_ge(ns_time_compare(in.ctime, before.ctime), 0);
    ck_assert_uint_gt(in.change, before.change);
    bed.clock.wall_base_ns -= 3600 * (int64_t)NS_PER_S; /* the machine's clock is set back */
    req.set = MSG_SET_MODE;
    req.mode = 0600;
    before = in;
    ck_ok(bed_call(&bed, RPC_OP_SETATTR, &req));
    in = inode();
    ck_assert_int_ge(ns_time_compare(in.ctime, before.ctime), 0);
}
END_TEST

START_TEST(open_with_truncate_and_its_permissions)
{
    struct msg_open_req req = {.ino = file, .flags = O_RDWR | O_TRUNC};

    ck_ok(bed_write(&bed, file, 0, "hello", 5, 0));
    req.cred = (struct msg_cred){.uid = 9, .gid = 9};
    ck_assert_int_eq(bed_call(&bed, RPC_OP_OPEN, &req), -EACCES);
    ck_assert_uint_eq(inode().size, 5);
    req.cred.uid = 0;
    ck_ok(bed_call(&bed, RPC_OP_OPEN, &req));
    ck_assert_uint_eq(inode().size, 0);
}
END_TEST

static int xattr(unsigned op, const char *name, const char *value, uint32_t flags)
{
    struct msg_xattr_req req = {
        .cred = bed.cred, .ino = file, .name = str(name), .value = str(value), .flags = flags};

    return bed_call(&bed, op, &req);
}

START_TEST(extended_attributes)
{
    ck_ok(xattr(RPC_OP_XATTR_SET, "user.a", "1", XATTR_CREATE));
    ck_assert_int_eq(xattr(RPC_OP_XATTR_SET, "user.a", "2", XATTR_CREATE), -EEXIST);
    ck_ok(xattr(RPC_OP_XATTR_SET, "user.a", "", XATTR_REPLACE));
    ck_assert_int_eq(xattr(RPC_OP_XATTR_SET, "user.b", "2", XATTR_REPLACE), -ENODATA);
    ck_assert_int_eq(xattr(RPC_OP_XATTR_SET, "user.b", "2", 7), -EINVAL);
    ck_ok(xattr(RPC_OP_XATTR_SET, "trusted.t", "2", 0));
    ck_ok(xattr(RPC_OP_XATTR_SET, "security.capability", "2", 0));
    ck_assert_uint_eq(inode().n_xattrs, 3);
    ck_assert_int_eq(xattr(RPC_OP_XATTR_SET, "system.posix_acl_access", "x", 0), -EINVAL);
    ck_assert_int_eq(xattr(RPC_OP_XATTR_SET, "other", "x", 0), -EOPNOTSUPP);
    ck_assert_int_eq(xattr(RPC_OP_XATTR_SET, "aifs.fid", "x", 0), -EPERM);
    bed.cred = (struct msg_cred){.uid = 9, .gid = 9};
    ck_assert_int_eq(xattr(RPC_OP_XATTR_SET, "user.c", "1", 0), -EACCES);
    ck_assert_int_eq(xattr(RPC_OP_XATTR_SET, "trusted.c", "1", 0), -EPERM);
    ck_assert_int_eq(xattr(RPC_OP_XATTR_SET, "aifs.layout", "count=1", 0), -EPERM);
    bed.cred.uid = 0;
    ck_assert_int_eq(xattr(RPC_OP_XATTR_REMOVE, "user.z", "", 0), -ENODATA);
    ck_ok(xattr(RPC_OP_XATTR_REMOVE, "user.a", "", 0));
    ck_assert_uint_eq(inode().n_xattrs, 2);
    ck_assert_uint_eq(bed_count(&bed, KEY_XATTR), 2);
}
END_TEST

START_TEST(a_layout_is_for_files_without_content)
{
    ck_ok(xattr(RPC_OP_XATTR_SET, "aifs.layout", "count=1", 0));
    ck_assert_uint_eq(inode().layout.generation, 2);
    ck_ok(bed_write(&bed, file, 0, "hello", 5, 0));
    ck_assert_int_eq(xattr(RPC_OP_XATTR_SET, "aifs.layout", "count=1", 0), -ENOTEMPTY);
}
END_TEST

SUITE_MAIN("data", setup, teardown, inline_writes_are_merged, an_inline_file_has_a_limit,
           writers_with_old_ideas_are_told, truncate_of_an_inline_file_cuts_its_bytes,
           a_file_grows_once_and_its_generation_tells,
           the_store_is_not_asked_for_what_cannot_be_there,
           a_cut_of_chunks_is_pending_until_the_targets_have_it,
           a_cut_that_is_under_way_is_replaced_by_no_later_place,
           a_cut_that_takes_the_place_of_a_recovery_is_of_the_same_dead_session,
           a_growth_that_is_given_up_is_cut_off_the_targets,
           an_old_confirmation_does_not_remove_a_newer_cut,
           the_size_of_a_dead_writers_file_is_found_again,
           appends_without_a_lease_get_ranges_of_their_own,
           times_never_run_backwards_and_explicit_ones_pass,
           each_write_without_a_lease_has_an_mtime_that_no_other_had,
           who_has_the_lease_may_tell_the_same_mtime_again, open_with_truncate_and_its_permissions,
           extended_attributes, a_layout_is_for_files_without_content)
