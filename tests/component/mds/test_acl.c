/* SPDX-License-Identifier: Apache-2.0 */
/* Access lists in a shard: set, enforced, inherited, kept over a restart, gone with their inode. */
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <sys/stat.h>

#include "common/base/bytes.h"
#include "common/base/err.h"
#include "mds/ns/acl.h"
#include "tests/component/mds/bed.h"
#include "tests/support/suite.h"

#define ROOT KEY_ROOT_INO
static struct bed bed;
static const struct msg_cred friend = {.uid = 7, .gid = 7}, stranger = {.uid = 8, .gid = 8};

static void setup(void)
{
    bed_open(&bed);
}

static void teardown(void)
{
    bed_check_tree(&bed);
    bed_close(&bed);
}

/* The owner rwx, user 7 perm, the group r-x, the mask, others nothing. No perm or mask: as a mode.
 */
static struct msg_bytes acl(int perm, int mask)
{
    static uint8_t out[2][64];
    static unsigned turn;
    const struct {
        uint16_t tag;
        int perm;
        uint32_t id;
    } e[] = {{ACL_USER_OBJ, 7, (uint32_t)ACL_UNDEFINED_ID},
             {ACL_USER, perm, 7},
             {ACL_GROUP_OBJ, 5, (uint32_t)ACL_UNDEFINED_ID},
             {ACL_MASK, mask, (uint32_t)ACL_UNDEFINED_ID},
             {ACL_OTHER, 0, (uint32_t)ACL_UNDEFINED_ID}};
    uint8_t *p = out[turn++ % 2];
    uint32_t len = 4;

    le32_store(p, 2);
    for (unsigned i = 0; i < ARRAY_LEN(e); i++) {
        if (e[i].perm < 0)
            continue;
        le16_store(p + len, e[i].tag);
        le16_store(p + len + 2, (uint16_t)e[i].perm);
        le32_store(p + len + 4, e[i].id);
        len += 8;
    }
    return (struct msg_bytes){p, len};
}

static int set(uint64_t ino, const char *name, struct msg_bytes value)
{
    struct msg_xattr_req req = {.cred = bed.cred, .ino = ino, .name = str(name), .value = value};

    return bed_call(&bed, value.data ? RPC_OP_XATTR_SET : RPC_OP_XATTR_REMOVE, &req);
}

static struct mds_inode inode(uint64_t ino)
{
    struct mds_inode in;

    ck_ok(bed_inode(&bed, ino, &in));
    return in;
}

static int may_open(uint64_t ino, struct msg_cred cred, uint32_t flags)
{
    struct msg_open_req req = {.cred = cred, .ino = ino, .flags = flags};

    return bed_call(&bed, RPC_OP_OPEN, &req);
}

START_TEST(a_list_is_kept_and_lets_in_whom_it_names)
{
    uint64_t f = bed_file(&bed, ROOT, "f");

    ck_assert_int_eq(may_open(f, friend, O_RDWR), -EACCES);
    ck_ok(set(f, NS_ACL_ACCESS, acl(6, 7)));
    ck_assert_uint_eq(inode(f).mode, S_IFREG | 0770);
    ck_assert_uint_eq(inode(f).n_xattrs, 1);
    ck_assert(inode(f).flags & INODE_ACL);
    ck_ok(may_open(f, friend, O_RDWR));
    ck_assert_int_eq(may_open(f, stranger, O_RDONLY), -EACCES);
    bed_stop(&bed);
    bed_start(&bed);
    ck_ok(may_open(f, friend, O_RDWR));
    ck_assert_int_eq(may_open(f, stranger, O_RDONLY), -EACCES);
}
END_TEST

START_TEST(chmod_changes_the_mask)
{
    struct msg_setattr_req req = {.set = MSG_SET_MODE, .mode = 0740};
    uint64_t f = bed_file(&bed, ROOT, "f");

    ck_ok(set(f, NS_ACL_ACCESS, acl(6, 7)));
    req.ino = f;
    ck_ok(bed_call(&bed, RPC_OP_SETATTR, &req));
    ck_ok(may_open(f, friend, O_RDONLY));
    ck_assert_int_eq(may_open(f, friend, O_RDWR), -EACCES);
    ck_assert_uint_eq(bed_count(&bed, KEY_XATTR), 1);
}
END_TEST

START_TEST(a_list_that_says_no_more_than_a_mode_becomes_one)
{
    uint64_t f = bed_file(&bed, ROOT, "f");

    ck_ok(set(f, NS_ACL_ACCESS, acl(6, 7)));
    ck_ok(set(f, NS_ACL_ACCESS, acl(-1, -1)));
    ck_assert_uint_eq(inode(f).mode, S_IFREG | 0750);
    ck_assert_uint_eq(inode(f).n_xattrs, 0);
    ck_assert(!(inode(f).flags & INODE_ACL));
    ck_assert_uint_eq(bed_count(&bed, KEY_XATTR), 0);
}
END_TEST

START_TEST(removing_a_list_leaves_the_mode)
{
    uint64_t f = bed_file(&bed, ROOT, "f");

    ck_ok(set(f, NS_ACL_ACCESS, acl(6, 6)));
    ck_ok(set(f, NS_ACL_ACCESS, (struct msg_bytes){0}));
    ck_assert_uint_eq(inode(f).mode, S_IFREG | 0760);
    ck_ok(set(f, NS_ACL_ACCESS, (struct msg_bytes){0})); /* there is none: nothing to do */
    ck_assert_uint_eq(inode(f).n_xattrs, 0);
    ck_assert_int_eq(may_open(f, friend, O_RDONLY), -EACCES);
}
END_TEST

START_TEST(what_is_no_list_or_not_for_the_caller_changes_nothing)
{
    uint64_t f = bed_file(&bed, ROOT, "f"), d = bed_dir(&bed, ROOT, "d"), l;

    ck_ok(bed_make(&bed, RPC_OP_SYMLINK, ROOT, "l", 0777, &l));
    ck_assert_int_eq(set(f, NS_ACL_ACCESS, acl(6, -1)), -EINVAL);
    ck_assert_int_eq(set(f, NS_ACL_ACCESS, str("x")), -EINVAL);
    ck_assert_int_eq(set(f, NS_ACL_DEFAULT, acl(6, 7)), -EACCES);
    ck_assert_int_eq(set(l, NS_ACL_ACCESS, acl(6, 7)), -EOPNOTSUPP);
    bed.cred = stranger;
    ck_assert_int_eq(set(f, NS_ACL_ACCESS, acl(6, 7)), -EPERM);
    ck_assert_int_eq(set(d, NS_ACL_DEFAULT, acl(6, 7)), -EPERM);
    bed.cred = (struct msg_cred){0};
    ck_assert_uint_eq(inode(f).mode, S_IFREG | 0644);
    ck_assert_uint_eq(bed_count(&bed, KEY_XATTR), 0);
}
END_TEST

START_TEST(what_is_made_in_a_directory_gets_its_default_list)
{
    uint64_t d = bed_dir(&bed, ROOT, "d"), ino;
    struct msg_create_req req = {.parent = d,
                                 .name = str("f"),
                                 .mode = 0600,
                                 .masked = 066, /* open(..., 0666) with umask 077 */
                                 .flags = MSG_CREATE_EXCL};

    ck_ok(set(d, NS_ACL_DEFAULT, acl(6, 7)));
    ck_assert_uint_eq(inode(d).mode, S_IFDIR | 0755);
    ck_ok(bed_call(&bed, RPC_OP_CREATE, &req));
    ino = bed.rep->inode.attr.ino;
    ck_assert_uint_eq(inode(ino).mode, S_IFREG | 0660);
    ck_assert_uint_eq(inode(ino).flags & (INODE_ACL | INODE_DEFAULT_ACL), INODE_ACL);
    ck_ok(may_open(ino, friend, O_RDWR));
    ck_ok(bed_make(&bed, RPC_OP_MKDIR, d, "d", 0777, &ino));
    ck_assert_uint_eq(inode(ino).mode, S_IFDIR | 0770);
    ck_assert_uint_eq(inode(ino).flags & (INODE_ACL | INODE_DEFAULT_ACL),
                      INODE_ACL | INODE_DEFAULT_ACL);
    ck_assert_uint_eq(inode(ino).n_xattrs, 2);
    ck_ok(bed_make(&bed, RPC_OP_SYMLINK, d, "l", 0777, &ino));
    ck_assert_uint_eq(inode(ino).mode, S_IFLNK | 0777);
    ck_assert_uint_eq(inode(ino).n_xattrs, 0);
    ck_ok(set(d, NS_ACL_DEFAULT, acl(-1, -1))); /* of a default list all are kept */
    req.name = str("g");
    ck_ok(bed_call(&bed, RPC_OP_CREATE, &req));
    ino = bed.rep->inode.attr.ino;
    ck_assert_uint_eq(inode(ino).mode, S_IFREG | 0640);
    ck_assert_uint_eq(inode(ino).n_xattrs, 0);
}
END_TEST

START_TEST(the_list_of_a_directory_decides_what_is_made_moved_and_removed_in_it)
{
    uint64_t d = bed_dir(&bed, ROOT, "d"), e = bed_dir(&bed, ROOT, "e"), sub;

    sub = bed_dir(&bed, d, "sub");
    bed.cred = friend;
    ck_assert_int_eq(bed_make(&bed, RPC_OP_CREATE, d, "f", 0644, NULL), -EACCES);
    bed.cred = (struct msg_cred){0};
    ck_ok(set(d, NS_ACL_ACCESS, acl(7, 7)));
    ck_ok(set(e, NS_ACL_ACCESS, acl(7, 7)));
    bed.cred = stranger;
    ck_assert_int_eq(bed_make(&bed, RPC_OP_CREATE, d, "f", 0644, NULL), -EACCES);
    ck_assert_int_eq(bed_name(&bed, RPC_OP_RMDIR, d, "sub"), -EACCES);
    bed.cred = friend;
    ck_ok(bed_make(&bed, RPC_OP_CREATE, d, "f", 0644, NULL));
    ck_ok(bed_rename(&bed, d, "f", e, "f", 0));
    ck_ok(bed_name(&bed, RPC_OP_UNLINK, e, "f"));
    /* a directory that changes its parent must be writable itself */
    ck_assert_int_eq(bed_rename(&bed, d, "sub", e, "sub", 0), -EACCES);
    bed.cred = (struct msg_cred){0};
    ck_ok(set(sub, NS_ACL_ACCESS, acl(7, 7)));
    bed.cred = friend;
    ck_ok(bed_rename(&bed, d, "sub", e, "sub", 0));
    bed.cred = (struct msg_cred){0};
    ck_ok(bed_name(&bed, RPC_OP_RMDIR, e, "sub"));
    ck_assert_uint_eq(bed_count(&bed, KEY_XATTR), 2);
}
END_TEST

START_TEST(a_write_a_truncate_and_a_chown_take_capabilities_away)
{
    uint64_t f = bed_file(&bed, ROOT, "f");
    struct msg_setattr_req cut = {.ino = f, .set = MSG_SET_SIZE, .size = 1};
    struct msg_setattr_req give = {.ino = f, .set = MSG_SET_UID, .uid = 5};
    struct msg_setattr_req mode = {.ino = f, .set = MSG_SET_MODE, .mode = 0755};

    for (unsigned i = 0; i < 4; i++) {
        ck_ok(set(f, "security.capability", str("caps")));
        ck_ok(set(f, "security.other", str("stays")));
        ck_assert_uint_eq(inode(f).n_xattrs, 2);
        if (i == 0)
            ck_ok(bed_write(&bed, f, 0, "hello", 5, 0));
        else
            ck_ok(bed_call(&bed, RPC_OP_SETATTR, i == 1 ? &cut : i == 2 ? &give : &mode));
        ck_assert_uint_eq(inode(f).n_xattrs, i == 3 ? 2 : 1);
        ck_assert_uint_eq(bed_count(&bed, KEY_XATTR), i == 3 ? 2 : 1);
    }
    ck_ok(bed_name(&bed, RPC_OP_UNLINK, ROOT, "f"));
    ck_assert_uint_eq(bed_count(&bed, KEY_XATTR), 0);
}
END_TEST

/* By who has it open for writing, and gives his lease back. */
START_TEST(a_lease_that_is_given_back_takes_capabilities_away_if_there_was_a_write)
{
    uint64_t f = bed_file(&bed, ROOT, "f");
    struct shard_size times = {.ino = f, .has_mtime = true};
    struct mds_inode before;

    ck_ok(set(f, "security.capability", str("caps")));
    before = inode(f);
    times.mtime = before.mtime;
    times.size = before.size;
    ck_ok(bed_call(&bed, SHARD_OP_TIMES, &times));
    ck_assert_uint_eq(inode(f).n_xattrs, 1);
    ck_assert_uint_eq(inode(f).change, before.change);
    times.mtime.sec -= 5;
    ck_ok(bed_call(&bed, SHARD_OP_TIMES, &times));
    ck_assert_uint_eq(inode(f).n_xattrs, 0);
}
END_TEST

SUITE_MAIN("acl", setup, teardown, a_list_is_kept_and_lets_in_whom_it_names, chmod_changes_the_mask,
           a_list_that_says_no_more_than_a_mode_becomes_one, removing_a_list_leaves_the_mode,
           what_is_no_list_or_not_for_the_caller_changes_nothing,
           what_is_made_in_a_directory_gets_its_default_list,
           the_list_of_a_directory_decides_what_is_made_moved_and_removed_in_it,
           a_write_a_truncate_and_a_chown_take_capabilities_away,
           a_lease_that_is_given_back_takes_capabilities_away_if_there_was_a_write)
