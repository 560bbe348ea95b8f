/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of the name space as pure functions from values to values: who may do what, what a new
 * inode looks like, what a change does to times and bits. No I/O, no clock, no allocation. They are
 * POSIX.1-2017 and, where it leaves a choice, what Linux does on its local file systems.
 */
#ifndef AIFS_MDS_NS_NS_H
#define AIFS_MDS_NS_NS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/compiler.h"
#include "mds/store/rec.h"
#include "proto/msg.h"

#define NS_READ  4u
#define NS_WRITE 2u
#define NS_EXEC  1u

#define NS_SIZE_MAX   ((uint64_t)INT64_MAX) /* off_t */
#define NS_LINK_MAX   (1u << 30)
#define NS_DEPTH_MAX  65536u /* directories between a new name and the root */
#define NS_DIR_SIZE   4096u  /* what stat says of every directory */
#define NS_XATTRS_MAX 1024u  /* of one inode */
#define NS_RUN_FIRST  16u    /* inode numbers a directory gets at a time: first, at most */
#define NS_RUN_MAX    1024u

/* ---- who may (perm.c) ---- */
bool ns_is_root(const struct msg_cred *c);
/* Root, or who has this capability (MSG_CAP_*) over in, or (ns_can_all) over everything. */
bool ns_can(const struct mds_inode *in, const struct msg_cred *c, uint32_t cap);
bool ns_can_all(const struct msg_cred *c, uint32_t cap);
bool ns_owns(const struct mds_inode *in, const struct msg_cred *c); /* or may do as if */
bool ns_in_group(const struct msg_cred *c, uint32_t gid);
/* All rules that depend on permissions want the access list loaded (struct mds_inode.acl) of an
 * inode that has one. */
int ns_access(const struct mds_inode *in, const struct msg_cred *c,
              unsigned want) MUST_USE; /* -EACCES */
int ns_may_create(const struct mds_inode *dir,
                  const struct msg_cred *c) MUST_USE; /* -ENOTDIR, -EACCES */
/* Removing (or renaming away) victim from dir; dir is searchable and writable, sticky bit. -EACCES,
 * -EPERM. */
int ns_may_delete(const struct mds_inode *dir, const struct mds_inode *victim,
                  const struct msg_cred *c) MUST_USE;
int ns_may_open(const struct mds_inode *in, const struct msg_cred *c,
                uint32_t open_flags) MUST_USE; /* -EACCES, -EISDIR, -ENXIO.. */

/* ---- names (name.c) ---- */
int ns_name_check(const struct msg_bytes *name)
    MUST_USE;                      /* -EINVAL (empty, '/', NUL, "." and ".."), -ENAMETOOLONG */
uint8_t ns_type_of(uint32_t mode); /* DT_* */

/* ---- new inodes (inherit.c) ---- */
/* mode: type and permission bits. in->ino is set already. */
void ns_new_inode(struct mds_inode *in, const struct mds_inode *dir, const struct msg_cred *c,
                  uint32_t mode, struct msg_time now);

/* ---- attributes (setattr.c) ---- */
int ns_setattr_check(const struct mds_inode *in, const struct msg_setattr_req *req) MUST_USE;
/* Everything but the size. */
void ns_setattr_apply(struct mds_inode *in, const struct msg_setattr_req *req, struct msg_time now);
void ns_changed(struct mds_inode *in, struct msg_time now);  /* ctime and change */
void ns_modified(struct mds_inode *in, struct msg_time now); /* mtime too */
/* What a writer reports: its time stamp, or 0: now. Both times become that of the write, not that
 * of the report, so that the writer and all others are told the same; none is later than now. */
void ns_written(struct mds_inode *in, struct msg_time mtime, struct msg_time now);
/* The same by who has no write lease: others write too, and a clock that is behind tells a time
 * that the file has had. A kernel that has seen that would go on with its pages, so it gets a later
 * one, unless it was set by request. */
void ns_written_beside(struct mds_inode *in, struct msg_time mtime, struct msg_time now);
void ns_kill_priv(struct mds_inode *in); /* set-user-id, set-group-id */
struct msg_time ns_clamp(struct msg_time t,
                         struct msg_time now); /* a client's time stamp: never later than now */
int ns_time_compare(struct msg_time a, struct msg_time b);
/* Does a read that a client tells of move atime? Not where that was set to another value since. */
bool ns_read_counts(const struct mds_inode *in, const struct msg_read_item *item,
                    struct msg_time now);

/* ---- rename (rename.c) ---- */
struct ns_rename {
    const struct msg_cred *cred;
    uint32_t flags;
    const struct mds_inode *dir, *new_dir, *src;
    const struct mds_inode *dst; /* NULL: the new name is free */
    bool src_above_new_dir;      /* src is new_dir or an ancestor of it */
    bool dst_above_dir;          /* dst is dir or an ancestor of it */
};
/* 0; 1: nothing to do (both names are the same file); or the error. */
int ns_rename_check(const struct ns_rename *r) MUST_USE;
int ns_rename_flags_check(uint32_t flags) MUST_USE;

/* ---- extended attributes (xattr.c) ---- */
#define NS_XATTR_LAYOUT "aifs.layout" /* virtual: what new files get, or where a file is */
#define NS_XATTR_FID    "aifs.fid"    /* virtual, read-only: inode number and layout generation */
#define NS_XATTR_FS     "aifs.fs"     /* virtual, read-only: the uuid of the file system */
#define NS_XATTR_DATA   "aifs.data"   /* virtual, read-only, of files: "inline" or "striped" */
enum ns_xattr {
    NS_XATTR_PLAIN,
    NS_XATTR_IS_LAYOUT,
    NS_XATTR_IS_FID,
    NS_XATTR_IS_FS,
    NS_XATTR_IS_DATA,
    NS_XATTR_IS_ACL, /* acl.h */
    NS_XATTR_IS_DEFAULT_ACL,
};
/* What a name is, and whether the caller may read (or, with write, change) it. -ENODATA,
 * -EOPNOTSUPP, -EPERM, -EACCES, -ENAMETOOLONG, -EINVAL. */
int ns_xattr_check(const struct mds_inode *in, const struct msg_cred *c,
                   const struct msg_bytes *name, bool write, enum ns_xattr *ret_kind) MUST_USE;
bool ns_xattr_listed(const struct msg_cred *c, const void *name,
                     uint32_t len); /* trusted.* is for root only */

#endif
