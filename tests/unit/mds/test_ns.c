/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of the name space, case by case in tables. */
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/compiler.h"
#include "common/base/err.h"
#include "mds/ns/ns.h"
#include "tests/support/suite.h"

static const uint32_t extra[] = {300, 400};
static const struct msg_cred root = {0}, owner = {.uid = 10, .gid = 20},
                             member = {.uid = 11, .gid = 21, .n_groups = 2, .groups = extra},
                             other = {.uid = 12, .gid = 22};

/* Not root, with capabilities: over everything, or as root of a user name space that knows the user
 * 10 and the group 20, or neither. */
static const uint32_t user_10[] = {7, 2, 10, 1}, group_20[] = {20, 1}, others[] = {100, 1000};
static const struct msg_cred may_all = {.uid = 12, .gid = 22, .caps = MSG_CAP_ALL},
                             looks = {.uid = 12, .gid = 22, .caps = MSG_CAP_DAC_READ_SEARCH},
                             inner = {.uid = 12,
                                      .gid = 22,
                                      .caps = MSG_CAP_ALL,
                                      .mapped = true,
                                      .n_uids = 4,
                                      .uids = user_10,
                                      .n_gids = 2,
                                      .gids = group_20},
                             user_only = {.uid = 12,
                                          .gid = 22,
                                          .caps = MSG_CAP_ALL,
                                          .mapped = true,
                                          .n_uids = 4,
                                          .uids = user_10,
                                          .n_gids = 2,
                                          .gids = others},
                             stranger = {.uid = 12,
                                         .gid = 22,
                                         .caps = MSG_CAP_ALL,
                                         .mapped = true,
                                         .n_uids = 2,
                                         .uids = others},
                             nowhere = {.uid = 12, .gid = 22, .caps = MSG_CAP_ALL, .mapped = true};

static struct mds_inode inode(uint32_t mode, uint32_t uid, uint32_t gid)
{
    return (struct mds_inode){.ino = 99, .mode = mode, .uid = uid, .gid = gid, .nlink = 1};
}

static struct msg_bytes bytes(const char *s)
{
    return (struct msg_bytes){.data = s, .len = (uint32_t)strlen(s)};
}

static const struct {
    uint32_t mode, gid;
    const struct msg_cred *cred;
    unsigned want;
    int rc;
} access_cases[] = {
    {0700, 20, &owner, NS_READ | NS_WRITE | NS_EXEC, 0},
    {0700, 20, &other, NS_READ, -EACCES},
    {0070, 20, &owner, NS_READ, -EACCES}, /* the owner's bits alone count for the owner */
    {0070, 300, &member, NS_WRITE, 0},
    {0070, 400, &member, NS_WRITE, 0},
    {0007, 400, &member, NS_WRITE, -EACCES}, /* and the group's for its members */
    {0007, 20, &other, NS_EXEC, 0},
    {0004, 20, &other, NS_READ | NS_WRITE, -EACCES},
    {0000, 20, &root, NS_READ | NS_WRITE, 0},
    {0666, 20, &root, NS_EXEC, -EACCES},
    {0676, 20, &root, NS_EXEC, 0},
    {0000, 20, &may_all, NS_READ | NS_WRITE, 0},
    {0666, 20, &may_all, NS_EXEC, -EACCES},
    {0100, 20, &may_all, NS_EXEC, 0},
    {0000, 20, &looks, NS_READ, 0},
    {0000, 20, &looks, NS_WRITE, -EACCES},
    {0000, 20, &looks, NS_READ | NS_WRITE, -EACCES},
    {0100, 20, &looks, NS_EXEC, -EACCES},
    {0000, 20, &inner, NS_READ | NS_WRITE, 0},
    {0000, 21, &inner, NS_READ, -EACCES}, /* a group that it does not know */
    {0000, 20, &user_only, NS_READ, -EACCES},
    {0000, 20, &stranger, NS_READ, -EACCES},
    {0000, 20, &nowhere, NS_READ, -EACCES},
};

START_TEST(mode_bits_decide)
{
    struct mds_inode in = inode(S_IFREG | access_cases[_i].mode, owner.uid, access_cases[_i].gid);

    ck_assert_int_eq(ns_access(&in, access_cases[_i].cred, access_cases[_i].want),
                     access_cases[_i].rc);
}
END_TEST

START_TEST(root_searches_every_directory)
{
    struct mds_inode d = inode(S_IFDIR, 1, 1);

    ck_assert_int_eq(ns_access(&d, &root, NS_EXEC), 0);
}
END_TEST

START_TEST(who_may_look_searches_every_directory_and_changes_none)
{
    struct mds_inode d = inode(S_IFDIR, 10, 20);

    ck_assert_int_eq(ns_access(&d, &looks, NS_READ | NS_EXEC), 0);
    ck_assert_int_eq(ns_access(&d, &looks, NS_WRITE | NS_EXEC), -EACCES);
    ck_assert_int_eq(ns_access(&d, &inner, NS_WRITE | NS_EXEC), 0);
    ck_assert_int_eq(ns_access(&d, &nowhere, NS_EXEC), -EACCES);
}
END_TEST

static const struct {
    uint32_t dir_mode, dir_uid, victim_uid;
    const struct msg_cred *cred;
    int rc;
} delete_cases[] = {
    {0777, 1, 1, &other, 0},         {01777, 1, 1, &other, -EPERM},
    {01777, 1, 12, &other, 0}, /* his own file */
    {01777, 12, 1, &other, 0}, /* his own directory */
    {01777, 1, 1, &root, 0},         {0755, 1, 12, &other, -EACCES},
    {0666, 12, 12, &other, -EACCES}, /* writable, not searchable */
    {01777, 1, 1, &may_all, 0},      {01777, 1, 1, &inner, -EPERM},
    {01777, 1, 10, &inner, -EPERM}, /* of group 1 */
};

START_TEST(the_sticky_bit)
{
    struct mds_inode d = inode(S_IFDIR | delete_cases[_i].dir_mode, delete_cases[_i].dir_uid, 1);
    struct mds_inode v = inode(S_IFREG | 0644, delete_cases[_i].victim_uid, 1);

    ck_assert_int_eq(ns_may_delete(&d, &v, delete_cases[_i].cred), delete_cases[_i].rc);
}
END_TEST

static const struct {
    const char *name;
    int rc;
} name_cases[] = {
    {"a", 0},       {"...", 0},      {".a", 0},        {"a b\n\xff", 0}, {"", -EINVAL},
    {".", -EINVAL}, {"..", -EINVAL}, {"a/b", -EINVAL}, {"/", -EINVAL},
};

START_TEST(names)
{
    struct msg_bytes n = bytes(name_cases[_i].name);

    ck_assert_int_eq(ns_name_check(&n), name_cases[_i].rc);
}
END_TEST

START_TEST(name_lengths_and_nuls)
{
    char big[300];
    struct msg_bytes n = {.data = big, .len = 255};

    memset(big, 'x', sizeof(big));
    ck_assert_int_eq(ns_name_check(&n), 0);
    n.len = 256;
    ck_assert_int_eq(ns_name_check(&n), -ENAMETOOLONG);
    big[3] = '\0';
    n.len = 10;
    ck_assert_int_eq(ns_name_check(&n), -EINVAL);
}
END_TEST

static const struct {
    uint32_t dir_mode, mode;
    const struct msg_cred *cred;
    uint32_t want_mode, want_gid, want_nlink;
} inherit_cases[] = {
    {S_IFDIR | 0755, S_IFREG | 0644, &owner, S_IFREG | 0644, 20, 1},
    {S_IFDIR | 02755, S_IFREG | 0644, &owner, S_IFREG | 0644, 500, 1},
    {S_IFDIR | 02755, S_IFDIR | 0755, &owner, S_IFDIR | 02755, 500, 2},
    {S_IFDIR | 02755, S_IFREG | 02755, &owner, S_IFREG | 0755, 500, 1},
    {S_IFDIR | 02755, S_IFREG | 02744, &owner, S_IFREG | 02744, 500,
     1}, /* no program for the group */
    {S_IFDIR | 02755, S_IFREG | 02755, &root, S_IFREG | 02755, 500, 1},
    {S_IFDIR | 0755, S_IFREG | 06755, &owner, S_IFREG | 06755, 20, 1},
};

START_TEST(what_new_inodes_inherit)
{
    struct mds_inode d = inode(inherit_cases[_i].dir_mode, 1, 500), in = {.ino = 5};

    d.stripe.stripe_count = 3;
    ns_new_inode(&in, &d, inherit_cases[_i].cred, inherit_cases[_i].mode, (struct msg_time){7, 8});
    ck_assert_uint_eq(in.mode, inherit_cases[_i].want_mode);
    ck_assert_uint_eq(in.gid, inherit_cases[_i].want_gid);
    ck_assert_uint_eq(in.nlink, inherit_cases[_i].want_nlink);
    ck_assert_int_eq(in.btime.sec, 7);
    ck_assert_uint_eq(in.stripe.stripe_count, S_ISDIR(in.mode) ? 3 : 0);
}
END_TEST

static const struct {
    const struct msg_cred *cred;
    uint32_t set, mode, uid, gid;
    uint64_t open_id;
    int rc;
} setattr_cases[] = {
    {&owner, MSG_SET_MODE, 0600, 0, 0, 0, 0},
    {&other, MSG_SET_MODE, 0600, 0, 0, 0, -EPERM},
    {&root, MSG_SET_MODE, 0600, 0, 0, 0, 0},
    {&owner, MSG_SET_UID, 0, 11, 0, 0, -EPERM},
    {&owner, MSG_SET_UID, 0, 10, 0, 0, 0}, /* to himself: nothing happens */
    {&other, MSG_SET_UID, 0, 10, 0, 0, -EPERM},
    {&owner, MSG_SET_GID, 0, 0, 20, 0, 0},
    {&owner, MSG_SET_GID, 0, 0, 999, 0, -EPERM},
    {&root, MSG_SET_UID | MSG_SET_GID, 0, 1, 2, 0, 0},
    {&owner, MSG_SET_ATIME | MSG_SET_MTIME, 0, 0, 0, 0, 0},
    {&other, MSG_SET_MTIME, 0, 0, 0, 0, -EPERM},
    {&other, MSG_SET_MTIME_NOW, 0, 0, 0, 0, -EACCES},
    {&member, MSG_SET_MTIME_NOW | MSG_SET_ATIME_NOW, 0, 0, 0, 0, 0}, /* may write */
    {&member, MSG_SET_MTIME, 0, 0, 0, 0, -EPERM},
    {&member, MSG_SET_SIZE, 0, 0, 0, 0, 0},
    {&other, MSG_SET_SIZE, 0, 0, 0, 0, -EACCES},
    {&other, MSG_SET_SIZE, 0, 0, 0, 7, 0}, /* ftruncate: asked at open */
    {&may_all, MSG_SET_UID | MSG_SET_GID, 0, 1, 2, 0, 0},
    {&may_all, MSG_SET_MODE | MSG_SET_ATIME, 0600, 0, 0, 0, 0},
    {&looks, MSG_SET_MODE, 0600, 0, 0, 0, -EPERM},
    {&inner, MSG_SET_MODE | MSG_SET_MTIME, 0600, 0, 0, 0,
     0}, /* its group does not matter for these */
    {&inner, MSG_SET_UID, 0, 11, 0, 0, -EPERM},
    {&nowhere, MSG_SET_MODE, 0600, 0, 0, 0, -EPERM},
    {&nowhere, MSG_SET_MTIME, 0, 0, 0, 0, -EPERM},
};

START_TEST(who_may_set_what)
{
    struct mds_inode in = inode(S_IFREG | 0664, 10, 300);
    struct msg_setattr_req req = {.cred = *setattr_cases[_i].cred,
                                  .set = setattr_cases[_i].set,
                                  .mode = setattr_cases[_i].mode,
                                  .uid = setattr_cases[_i].uid,
                                  .gid = setattr_cases[_i].gid,
                                  .open_id = setattr_cases[_i].open_id};

    ck_assert_int_eq(ns_setattr_check(&in, &req), setattr_cases[_i].rc);
}
END_TEST

START_TEST(sizes_are_for_files)
{
    struct msg_setattr_req req = {.set = MSG_SET_SIZE, .size = 1};
    struct mds_inode d = inode(S_IFDIR | 0755, 0, 0), p = inode(S_IFIFO | 0644, 0, 0),
                     f = inode(S_IFREG | 0644, 0, 0);

    ck_assert_int_eq(ns_setattr_check(&d, &req), -EISDIR);
    ck_assert_int_eq(ns_setattr_check(&p, &req), -EINVAL);
    ck_assert_int_eq(ns_setattr_check(&f, &req), 0);
    req.size = NS_SIZE_MAX + 1;
    ck_assert_int_eq(ns_setattr_check(&f, &req), -EFBIG);
    req.set = MSG_SET_MTIME;
    req.mtime.nsec = 1000000000;
    ck_assert_int_eq(ns_setattr_check(&f, &req), -EINVAL);
}
END_TEST

static const struct {
    const struct msg_cred *cred;
    uint32_t set, mode, before, after;
} priv_cases[] = {
    {&root, MSG_SET_UID, 0, 06755, 0755},
    {&owner, MSG_SET_GID, 0, 06755, 0755},
    {&owner, MSG_SET_GID, 0, 02744, 02744}, /* mandatory locking, not a program */
    {&owner, MSG_SET_SIZE, 0, 06755, 0755},
    {&root, MSG_SET_SIZE, 0, 06755, 06755},
    {&root, MSG_SET_KILL_PRIV, 0, 06755, 0755},
    {&owner, MSG_SET_MODE, 02755, 0755, 0755}, /* not in the file's group */
    {&root, MSG_SET_MODE, 02755, 0755, 02755},
    {&owner, MSG_SET_MTIME, 0, 06755, 06755},
};

START_TEST(what_clears_set_user_id)
{
    struct mds_inode in = inode(S_IFREG | priv_cases[_i].before, 10, 999);
    struct msg_setattr_req req = {.cred = *priv_cases[_i].cred,
                                  .set = priv_cases[_i].set,
                                  .mode = priv_cases[_i].mode,
                                  .uid = 10,
                                  .gid = 20};

    ns_setattr_apply(&in, &req, (struct msg_time){1, 2});
    ck_assert_uint_eq(in.mode & 07777, priv_cases[_i].after);
    ck_assert_uint_eq(in.change, 1);
}
END_TEST

START_TEST(directories_keep_set_group_id_over_chown)
{
    struct mds_inode in = inode(S_IFDIR | 02755, 10, 20);
    struct msg_setattr_req req = {.set = MSG_SET_UID, .uid = 5};

    ns_setattr_apply(&in, &req, (struct msg_time){1, 2});
    ck_assert_uint_eq(in.mode & 07777, 02755);
}
END_TEST

START_TEST(times_compare_and_clamp)
{
    struct msg_time a = {5, 10}, b = {5, 11}, c = {6, 0}, neg = {-1, 999999999};

    ck_assert_int_lt(ns_time_compare(a, b), 0);
    ck_assert_int_lt(ns_time_compare(b, c), 0);
    ck_assert_int_lt(ns_time_compare(neg, a), 0);
    ck_assert_int_eq(ns_time_compare(a, a), 0);
    ck_assert_int_eq(ns_clamp(c, a).sec, 5);
    ck_assert_int_eq(ns_clamp(a, c).sec, 5);
}
END_TEST

static const struct {
    uint32_t mode, flags;
    const struct msg_cred *cred;
    int rc;
} open_cases[] = {
    {S_IFREG | 0644, O_RDONLY, &other, 0},
    {S_IFREG | 0644, O_WRONLY, &other, -EACCES},
    {S_IFREG | 0644, O_RDONLY | O_TRUNC, &other, -EACCES},
    {S_IFREG | 0611, O_RDONLY, &other, 0}, /* to run it */
    {S_IFREG | 0611, O_RDWR, &other, -EACCES},
    {S_IFDIR | 0755, O_RDONLY, &other, 0},
    {S_IFDIR | 0711, O_RDONLY, &other, -EACCES},
    {S_IFDIR | 0777, O_WRONLY, &root, -EISDIR},
    {S_IFLNK | 0777, O_RDONLY, &root, -ELOOP},
    {S_IFREG | 0644, O_ACCMODE, &root, -EINVAL},
};

START_TEST(opening)
{
    struct mds_inode in = inode(open_cases[_i].mode, 10, 20);

    ck_assert_int_eq(ns_may_open(&in, open_cases[_i].cred, open_cases[_i].flags),
                     open_cases[_i].rc);
}
END_TEST

/* f: file, d: empty directory, D: directory with entries, -: nothing; l: the same inode as the
 * source */
static const struct {
    char src, dst;
    uint32_t flags;
    bool src_above, dst_above;
    int rc;
} rename_cases[] = {
    {'f', '-', 0, false, false, 0},
    {'f', 'f', 0, false, false, 0},
    {'f', 'l', 0, false, false, 1},
    {'f', 'd', 0, false, false, -EISDIR},
    {'d', 'f', 0, false, false, -ENOTDIR},
    {'d', 'd', 0, false, false, 0},
    {'d', 'D', 0, false, false, -ENOTEMPTY},
    {'D', '-', 0, false, false, 0},
    {'D', '-', 0, true, false, -EINVAL},
    {'f', 'D', 0, false, true, -ENOTEMPTY},
    {'f', 'D', RENAME_EXCHANGE, false, true, -EINVAL},
    {'f', 'D', RENAME_EXCHANGE, false, false, 0},
    {'D', 'D', RENAME_EXCHANGE, false, false, 0},
    {'f', '-', RENAME_EXCHANGE, false, false, -ENOENT},
    {'f', 'f', RENAME_NOREPLACE, false, false, -EEXIST},
    {'f', 'l', RENAME_NOREPLACE, false, false, -EEXIST},
    {'f', '-', RENAME_NOREPLACE, false, false, 0},
    {'f', '-', RENAME_NOREPLACE | RENAME_EXCHANGE, false, false, -EINVAL},
    {'f', '-', 4 /* RENAME_WHITEOUT */, false, false, -EINVAL},
};

static struct mds_inode kind(char c, uint64_t ino)
{
    struct mds_inode in = inode(c == 'f' || c == 'l' ? S_IFREG | 0644 : S_IFDIR | 0755, 10, 20);

    in.ino = ino;
    in.entries = c == 'D' ? 3 : 0;
    return in;
}

START_TEST(renames)
{
    struct mds_inode dir = kind('D', 1), new_dir = kind('D', 2),
                     src = kind(rename_cases[_i].src, 3);
    struct mds_inode dst = kind(rename_cases[_i].dst, rename_cases[_i].dst == 'l' ? 3 : 4);
    struct ns_rename r = {.cred = &owner,
                          .flags = rename_cases[_i].flags,
                          .dir = &dir,
                          .new_dir = &new_dir,
                          .src = &src,
                          .dst = rename_cases[_i].dst == '-' ? NULL : &dst,
                          .src_above_new_dir = rename_cases[_i].src_above,
                          .dst_above_dir = rename_cases[_i].dst_above};

    ck_assert_int_eq(ns_rename_check(&r), rename_cases[_i].rc);
    r.cred = &other;
    if (rename_cases[_i].rc == 0)
        ck_assert_int_eq(ns_rename_check(&r), -EACCES);
}
END_TEST

static const struct {
    const char *name;
    uint32_t mode;
    const struct msg_cred *cred;
    bool write;
    int rc;
} xattr_cases[] = {
    {"user.a", S_IFREG | 0644, &other, false, 0},
    {"user.a", S_IFREG | 0644, &other, true, -EACCES},
    {"user.a", S_IFREG | 0600, &other, false, -EACCES},
    {"user.a", S_IFLNK | 0777, &root, true, -EPERM},
    {"user.a", S_IFLNK | 0777, &root, false, -ENODATA},
    {"user.a", S_IFDIR | 01777, &other, true, -EPERM},
    {"user.a", S_IFDIR | 01777, &owner, true, 0},
    {"user.", S_IFREG | 0644, &owner, true, -EOPNOTSUPP},
    {"trusted.a", S_IFREG | 0644, &root, true, 0},
    {"trusted.a", S_IFREG | 0644, &owner, true, -EPERM},
    {"trusted.a", S_IFREG | 0644, &owner, false, -ENODATA},
    {"security.capability", S_IFREG | 0644, &owner, false, 0},
    {"security.capability", S_IFREG | 0644, &owner, true, -EPERM},
    {"security.capability", S_IFREG | 0644, &inner, true, 0},
    {"security.capability", S_IFREG | 0644, &user_only, true, -EPERM},
    {"security.other", S_IFREG | 0644, &inner, true, -EPERM},
    {"security.other", S_IFREG | 0644, &may_all, true, 0},
    {"trusted.a", S_IFREG | 0644, &may_all, true, 0},
    {"trusted.a", S_IFREG | 0644, &inner, true, -EPERM},
    {"user.a", S_IFDIR | 01777, &inner, true, 0},
    {"system.posix_acl_access", S_IFREG | 0644, &inner, true, 0},
    {"system.posix_acl_access", S_IFREG | 0644, &nowhere, true, -EPERM},
    {"system.posix_acl_access", S_IFREG | 0644, &owner, false, -ENODATA},
    {"system.posix_acl_access", S_IFREG | 0644, &owner, true, 0},
    {"system.posix_acl_access", S_IFREG | 0644, &root, true, 0},
    {"system.posix_acl_access", S_IFREG | 0666, &other, true, -EPERM},
    {"system.posix_acl_access", S_IFLNK | 0777, &root, true, -EOPNOTSUPP},
    {"system.posix_acl_access", S_IFLNK | 0777, &root, false, -EOPNOTSUPP},
    {"system.posix_acl_default", S_IFDIR | 0755, &owner, true, 0},
    {"system.posix_acl_default", S_IFDIR | 0755, &other, false, -ENODATA},
    {"system.posix_acl_other", S_IFREG | 0644, &root, true, -EOPNOTSUPP},
    {"aifs.layout", S_IFDIR | 0755, &other, false, 0},
    {"aifs.layout", S_IFDIR | 0755, &other, true, -EPERM},
    {"aifs.layout", S_IFDIR | 0755, &owner, true, 0},
    {"aifs.layout", S_IFIFO | 0644, &owner, false, -ENODATA},
    {"aifs.fid", S_IFREG | 0644, &other, false, 0},
    {"aifs.fid", S_IFREG | 0644, &root, true, -EPERM},
    {"aifs.fs", S_IFDIR | 0755, &other, false, 0},
    {"aifs.fs", S_IFDIR | 0755, &root, true, -EPERM},
    {"aifs.data", S_IFREG | 0644, &other, false, 0},
    {"aifs.data", S_IFREG | 0644, &root, true, -EPERM},
    {"aifs.data", S_IFDIR | 0755, &root, false, -ENODATA},
    {"something", S_IFREG | 0644, &root, true, -EOPNOTSUPP},
    {"", S_IFREG | 0644, &root, true, -EINVAL},
};

START_TEST(extended_attributes)
{
    struct mds_inode in = inode(xattr_cases[_i].mode, 10, 20);
    struct msg_bytes n = bytes(xattr_cases[_i].name);
    enum ns_xattr k;

    ck_assert_int_eq(ns_xattr_check(&in, xattr_cases[_i].cred, &n, xattr_cases[_i].write, &k),
                     xattr_cases[_i].rc);
}
END_TEST

#define LOOP(t, fn, cases) tcase_add_loop_test(t, fn, 0, (int)ARRAY_LEN(cases))

int main(void)
{
    TCase *t = tcase_create("ns");

    tcase_set_timeout(t, 60);
    LOOP(t, mode_bits_decide, access_cases);
    tcase_add_test(t, root_searches_every_directory);
    tcase_add_test(t, who_may_look_searches_every_directory_and_changes_none);
    LOOP(t, the_sticky_bit, delete_cases);
    LOOP(t, names, name_cases);
    tcase_add_test(t, name_lengths_and_nuls);
    LOOP(t, what_new_inodes_inherit, inherit_cases);
    LOOP(t, who_may_set_what, setattr_cases);
    tcase_add_test(t, sizes_are_for_files);
    LOOP(t, what_clears_set_user_id, priv_cases);
    tcase_add_test(t, directories_keep_set_group_id_over_chown);
    tcase_add_test(t, times_compare_and_clamp);
    LOOP(t, opening, open_cases);
    LOOP(t, renames, rename_cases);
    LOOP(t, extended_attributes, xattr_cases);
    return suite_run_case("ns", t);
}
