/* SPDX-License-Identifier: Apache-2.0 */
/* Names: create, mkdir, mknod, symlink, unlink, rmdir, link, and what they do to directories. */
#include <fcntl.h>
#include <stdio.h>
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

START_TEST(who_removes_a_directory_is_told_which_it_was)
{
    uint64_t dir = bed_dir(&bed, ROOT, "d");

    ck_ok(bed_name(&bed, RPC_OP_RMDIR, ROOT, "d"));
    ck_assert_uint_eq(bed.rep->inode.attr.ino, dir);
    ck_assert_uint_eq(bed.rep->inode.attr.nlink, 0);
    ck_assert_uint_eq(bed.rep->dir.ino, ROOT);
}
END_TEST

START_TEST(a_new_file_is_inline_and_empty_and_its_directory_knows_it)
{
    struct mds_inode before, dir, in;
    uint64_t ino;

    ck_ok(bed_inode(&bed, ROOT, &before));
    bed.cred = (struct msg_cred){.uid = 100, .gid = 200};
    ino = bed_file(&bed, ROOT, "f");
    ck_ok(bed_inode(&bed, ino, &in));
    ck_ok(bed_inode(&bed, ROOT, &dir));
    ck_assert_uint_eq(in.mode, S_IFREG | 0644);
    ck_assert_uint_eq(in.uid, 100);
    ck_assert_uint_eq(in.gid, 200);
    ck_assert_uint_eq(in.nlink, 1);
    ck_assert_uint_eq(in.size, 0);
    ck_assert(in.flags & INODE_INLINE);
    ck_assert_uint_eq(in.layout.stripe_count, 4);
    ck_assert_uint_eq(dir.entries, before.entries + 1);
    ck_assert_uint_gt(dir.change, before.change);
    ck_assert_int_eq(dir.mtime.sec, in.ctime.sec);
    ck_assert_uint_eq(bed_lookup(&bed, ROOT, "f"), ino);
}
END_TEST

START_TEST(names_that_cannot_be)
{
    char name[260];

    memset(name, 'x', sizeof(name));
    name[256] = '\0';
    ck_assert_int_eq(bed_make(&bed, RPC_OP_CREATE, ROOT, "", 0644, NULL), -EINVAL);
    ck_assert_int_eq(bed_make(&bed, RPC_OP_CREATE, ROOT, ".", 0644, NULL), -EINVAL);
    ck_assert_int_eq(bed_make(&bed, RPC_OP_MKDIR, ROOT, "..", 0755, NULL), -EINVAL);
    ck_assert_int_eq(bed_make(&bed, RPC_OP_CREATE, ROOT, "a/b", 0644, NULL), -EINVAL);
    ck_assert_int_eq(bed_make(&bed, RPC_OP_CREATE, ROOT, name, 0644, NULL), -ENAMETOOLONG);
    name[255] = '\0';
    ck_ok(bed_make(&bed, RPC_OP_CREATE, ROOT, name, 0644, NULL));
    ck_assert_uint_ne(bed_lookup(&bed, ROOT, name), 0);
}
END_TEST

START_TEST(a_name_exists_once)
{
    struct msg_create_req req = {.parent = ROOT, .name = str("f"), .mode = 0600};
    uint64_t ino = bed_file(&bed, ROOT, "f");

    ck_assert_int_eq(bed_make(&bed, RPC_OP_CREATE, ROOT, "f", 0644, NULL), -EEXIST);
    ck_assert_int_eq(bed_make(&bed, RPC_OP_MKDIR, ROOT, "f", 0644, NULL), -EEXIST);
    ck_assert_int_eq(bed_make(&bed, RPC_OP_SYMLINK, ROOT, "f", 0644, NULL), -EEXIST);
    ck_assert_int_eq(bed_make(&bed, RPC_OP_MKNOD, ROOT, "f", S_IFIFO | 0644, NULL), -EEXIST);
    ck_assert_int_eq(bed_link(&bed, ino, ROOT, "f"), -EEXIST);
    /* without O_EXCL it is opened */
    ck_ok(bed_call(&bed, RPC_OP_CREATE, &req));
    ck_assert_uint_eq(bed.rep->inode.attr.ino, ino);
    ck_assert(!bed.rep->created);
    bed_dir(&bed, ROOT, "d");
    req.name = str("d");
    ck_assert_int_eq(bed_call(&bed, RPC_OP_CREATE, &req), -EISDIR);
}
END_TEST

START_TEST(create_needs_a_directory_and_the_right_to_write_it)
{
    uint64_t f = bed_file(&bed, ROOT, "f"), d = bed_dir(&bed, ROOT, "d");

    ck_assert_int_eq(bed_make(&bed, RPC_OP_CREATE, f, "x", 0644, NULL), -ENOTDIR);
    ck_assert_int_eq(bed_make(&bed, RPC_OP_CREATE, 999999, "x", 0644, NULL), -ENOENT);
    bed.cred = (struct msg_cred){.uid = 5, .gid = 5};
    ck_assert_int_eq(bed_make(&bed, RPC_OP_CREATE, d, "x", 0644, NULL), -EACCES);
    ck_assert_int_eq(bed_make(&bed, RPC_OP_MKDIR, d, "x", 0644, NULL), -EACCES);
}
END_TEST

START_TEST(devices_are_for_root)
{
    ck_ok(bed_make(&bed, RPC_OP_MKNOD, ROOT, "null", S_IFCHR | 0666, NULL));
    bed.cred = (struct msg_cred){.uid = 5, .gid = 5};
    ck_assert_int_eq(bed_make(&bed, RPC_OP_MKNOD, ROOT, "disk", S_IFBLK | 0666, NULL), -EPERM);
    ck_ok(bed_make(&bed, RPC_OP_MKNOD, ROOT, "whiteout", S_IFCHR | 0666, NULL)); /* number 0 */
    ck_ok(bed_make(&bed, RPC_OP_MKNOD, ROOT, "fifo", S_IFIFO | 0666, NULL));
    ck_ok(bed_make(&bed, RPC_OP_MKNOD, ROOT, "sock", S_IFSOCK | 0666, NULL));
    ck_assert_int_eq(bed_make(&bed, RPC_OP_MKNOD, ROOT, "dir", S_IFDIR | 0777, NULL), -EPERM);
}
END_TEST

START_TEST(unlink_of_the_last_name_removes_the_inode_and_all_that_hangs_on_it)
{
    struct msg_xattr_req x = {.name = str("user.a"), .value = str("1")};
    uint64_t ino = bed_file(&bed, ROOT, "f"), link;

    ck_ok(bed_write(&bed, ino, 0, "hello", 5, BED_REPLACE));
    x.ino = ino;
    ck_ok(bed_call(&bed, RPC_OP_XATTR_SET, &x));
    ck_assert_uint_eq(bed_count(&bed, KEY_INLINE), 1);
    ck_assert_uint_eq(bed_count(&bed, KEY_XATTR), 1);
    ck_ok(bed_link(&bed, ino, ROOT, "g"));
    ck_assert_uint_eq(bed.rep->inode.attr.nlink, 2);
    ck_ok(bed_name(&bed, RPC_OP_UNLINK, ROOT, "f"));
    ck_assert_uint_eq(bed.rep->inode.attr.nlink, 1);
    ck_assert_uint_eq(bed_lookup(&bed, ROOT, "g"), ino);
    ck_ok(bed_name(&bed, RPC_OP_UNLINK, ROOT, "g"));
    ck_assert_uint_eq(bed.rep->inode.attr.nlink, 0);
    ck_assert_int_eq(bed_name(&bed, RPC_OP_UNLINK, ROOT, "g"), -ENOENT);
    ck_assert_uint_eq(bed_count(&bed, KEY_INLINE), 0);
    ck_assert_uint_eq(bed_count(&bed, KEY_XATTR), 0);
    ck_assert_uint_eq(bed_count(&bed, KEY_DESTROY), 0);
    ck_ok(bed_make(&bed, RPC_OP_SYMLINK, ROOT, "l", 0, &link));
    ck_assert_uint_eq(bed_count(&bed, KEY_SYMLINK), 1);
    ck_ok(bed_name(&bed, RPC_OP_UNLINK, ROOT, "l"));
    ck_assert_uint_eq(bed_count(&bed, KEY_SYMLINK), 0);
    ck_assert_uint_eq(bed_count(&bed, KEY_INODE), 1);
}
END_TEST

START_TEST(an_open_file_outlives_its_name_as_an_orphan)
{
    struct shard_ino release = {0};
    struct mds_inode in;
    uint64_t ino = bed_file(&bed, ROOT, "f");

    bed.is_open[0] = true;
    ck_ok(bed_name(&bed, RPC_OP_UNLINK, ROOT, "f"));
    ck_assert(bed.e.result & SHARD_R_ORPHANED);
    ck_assert_uint_eq(bed.e.result_ino, ino);
    ck_ok(bed_inode(&bed, ino, &in));
    ck_assert(in.flags & INODE_ORPHAN);
    ck_assert(bed_has(&bed, KEY_ORPHAN, ino));
    ck_assert_int_eq(bed_link(&bed, ino, ROOT, "again"), -ENOENT);
    release.ino = ino;
    ck_ok(bed_call(&bed, SHARD_OP_ORPHAN_RELEASE, &release));
    ck_assert_int_eq(bed_inode(&bed, ino, &in), -ENOENT);
    ck_assert(!bed_has(&bed, KEY_ORPHAN, ino));
    ck_ok(bed_call(&bed, SHARD_OP_ORPHAN_RELEASE, &release));
}
END_TEST

static int make_unnamed(uint64_t dir, uint32_t flags, uint64_t *ret_ino)
{
    struct msg_create_req req = {.cred = bed.cred,
                                 .parent = dir,
                                 .name = {(const uint8_t *)"x", 1},
                                 .mode = 0640,
                                 .flags = MSG_CREATE_UNNAMED | flags};
    int rc = bed_call(&bed, RPC_OP_CREATE, &req);

    if (rc == 0)
        *ret_ino = bed.rep->inode.attr.ino;
    return rc;
}

START_TEST(a_file_made_without_a_name_gets_one_by_link)
{
    struct mds_inode in, before, after;
    uint64_t ino;

    ck_ok(bed_inode(&bed, ROOT, &before));
    ck_ok(make_unnamed(ROOT, MSG_CREATE_OPEN, &ino));
    ck_assert(bed.e.result & SHARD_R_ORPHANED && bed.e.result & SHARD_R_CREATED);
    ck_assert_uint_eq(bed.rep->inode.attr.nlink, 0);
    ck_assert(bed_has(&bed, KEY_ORPHAN, ino));
    ck_ok(bed_inode(&bed, ROOT, &after));
    ck_assert_uint_eq(after.entries, before.entries);
    ck_assert_uint_eq(after.change, before.change);
    ck_ok(bed_link(&bed, ino, ROOT, "named"));
    ck_assert_uint_eq(bed.rep->inode.attr.nlink, 1);
    ck_assert(!bed_has(&bed, KEY_ORPHAN, ino));
    ck_ok(bed_inode(&bed, ino, &in));
    ck_assert(!(in.flags & (INODE_ORPHAN | INODE_LINKABLE)));
    ck_assert_uint_eq(bed_lookup(&bed, ROOT, "named"), ino);
    bed.is_open[0] = true; /* from here on it is a file like any other */
    ck_ok(bed_name(&bed, RPC_OP_UNLINK, ROOT, "named"));
    ck_assert(bed_has(&bed, KEY_ORPHAN, ino));
    ck_assert_int_eq(bed_link(&bed, ino, ROOT, "again"), -ENOENT);
}
END_TEST

START_TEST(a_file_made_without_a_name_may_stay_without)
{
    struct shard_ino release = {0};
    struct mds_inode in;
    uint64_t ino;

    ck_ok(make_unnamed(ROOT, MSG_CREATE_OPEN | MSG_CREATE_EXCL, &ino));
    ck_assert_int_eq(bed_link(&bed, ino, ROOT, "named"), -ENOENT);
    ck_assert(bed_has(&bed, KEY_ORPHAN, ino));
    release.ino = ino;
    ck_ok(bed_call(&bed, SHARD_OP_ORPHAN_RELEASE, &release));
    ck_assert_int_eq(bed_inode(&bed, ino, &in), -ENOENT);
    ck_assert(!bed_has(&bed, KEY_ORPHAN, ino));
    ck_assert_int_eq(make_unnamed(ROOT, 0, &ino), -EINVAL); /* nobody would have it */
    ck_assert_int_eq(make_unnamed(bed_file(&bed, ROOT, "f"), MSG_CREATE_OPEN, &ino), -ENOTDIR);
}
END_TEST

START_TEST(rmdir_wants_an_empty_directory)
{
    uint64_t d = bed_dir(&bed, ROOT, "d");
    struct mds_inode root;

    bed_file(&bed, d, "x");
    ck_assert_int_eq(bed_name(&bed, RPC_OP_RMDIR, ROOT, "d"), -ENOTEMPTY);
    ck_assert_int_eq(bed_name(&bed, RPC_OP_UNLINK, ROOT, "d"), -EISDIR);
    ck_assert_int_eq(bed_name(&bed, RPC_OP_RMDIR, d, "x"), -ENOTDIR);
    ck_ok(bed_name(&bed, RPC_OP_UNLINK, d, "x"));
    ck_ok(bed_inode(&bed, ROOT, &root));
    ck_assert_uint_eq(root.nlink, 3);
    ck_ok(bed_name(&bed, RPC_OP_RMDIR, ROOT, "d"));
    ck_ok(bed_inode(&bed, ROOT, &root));
    ck_assert_uint_eq(root.nlink, 2);
    ck_assert_int_eq(bed_make(&bed, RPC_OP_CREATE, d, "late", 0644, NULL), -ENOENT);
    ck_assert_uint_eq(bed_count(&bed, KEY_PARENT), 0);
}
END_TEST

START_TEST(the_sticky_bit_protects_names_of_others)
{
    struct msg_setattr_req chmod = {.ino = ROOT, .set = MSG_SET_MODE, .mode = 01777};

    ck_ok(bed_call(&bed, RPC_OP_SETATTR, &chmod));
    bed.cred = (struct msg_cred){.uid = 5, .gid = 5};
    bed_file(&bed, ROOT, "mine");
    bed.cred.uid = 6;
    ck_assert_int_eq(bed_name(&bed, RPC_OP_UNLINK, ROOT, "mine"), -EPERM);
    ck_assert_int_eq(bed_rename(&bed, ROOT, "mine", ROOT, "yours", 0), -EPERM);
    bed.cred.uid = 5;
    ck_ok(bed_name(&bed, RPC_OP_UNLINK, ROOT, "mine"));
}
END_TEST

START_TEST(hard_links_are_not_for_directories)
{
    uint64_t d = bed_dir(&bed, ROOT, "d");

    ck_assert_int_eq(bed_link(&bed, d, ROOT, "e"), -EPERM);
    ck_assert_int_eq(bed_link(&bed, 424242, ROOT, "e"), -ENOENT);
}
END_TEST

START_TEST(what_the_leader_resolved_must_still_be_so)
{
    uint64_t ino = bed_file(&bed, ROOT, "f");
    struct msg_create_req req = {.parent = ROOT, .name = str("f"), .mode = 0644};

    bed.check_resolved = true;
    bed.resolved[0] = 0;
    ck_assert_int_eq(bed_call(&bed, RPC_OP_CREATE, &req), -AIFS_ERETRY);
    bed.check_resolved = true;
    bed.resolved[0] = ino + 1;
    ck_assert_int_eq(bed_name(&bed, RPC_OP_UNLINK, ROOT, "f"), -AIFS_ERETRY);
    bed.check_resolved = true;
    bed.resolved[0] = ino;
    ck_ok(bed_name(&bed, RPC_OP_UNLINK, ROOT, "f"));
}
END_TEST

START_TEST(inode_numbers_of_a_directory_are_neighbours_and_never_come_again)
{
    uint64_t d = bed_dir(&bed, ROOT, "d"), last = 0, ino;
    unsigned jumps = 0;
    char name[32];

    for (unsigned i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "f%u", i);
        ino = bed_file(&bed, d, name);
        ck_assert_uint_gt(ino, last);
        jumps += ino != last + 1;
        last = ino;
        if (i % 3 == 0)
            ck_ok(bed_name(&bed, RPC_OP_UNLINK, d, name));
    }
    ck_assert_uint_le(jumps, 8);
}
END_TEST

SUITE_MAIN("names", setup, teardown, who_removes_a_directory_is_told_which_it_was,
           a_new_file_is_inline_and_empty_and_its_directory_knows_it, names_that_cannot_be,
           a_name_exists_once, create_needs_a_directory_and_the_right_to_write_it,
           devices_are_for_root, unlink_of_the_last_name_removes_the_inode_and_all_that_hangs_on_it,
           an_open_file_outlives_its_name_as_an_orphan, a_file_made_without_a_name_gets_one_by_link,
           a_file_made_without_a_name_may_stay_without, rmdir_wants_an_empty_directory,
           the_sticky_bit_protects_names_of_others, hard_links_are_not_for_directories,
           what_the_leader_resolved_must_still_be_so,
           inode_numbers_of_a_directory_are_neighbours_and_never_come_again)
