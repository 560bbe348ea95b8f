/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records in memory, and their conversion from and to bytes (rec_fmt.h). Pure. Decoding returns 0,
 * -AIFS_EFORMAT (a version this program does not know) or -AIFS_ECORRUPT.
 */
#ifndef AIFS_MDS_STORE_REC_H
#define AIFS_MDS_STORE_REC_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/compiler.h"
#include "mds/store/rec_fmt.h"
#include "proto/msg.h"

/* flags of an inode. The first five are MSG_ATTR_* and travel to clients. */
#define INODE_INLINE        MSG_ATTR_INLINE        /* data, if any, is in KEY_INLINE */
#define INODE_PUNCH_PENDING MSG_ATTR_PUNCH_PENDING /* KEY_PUNCH exists */
#define INODE_SIZE_UNSURE   MSG_ATTR_SIZE_UNSURE   /* KEY_RECOVER exists */
#define INODE_ACL           MSG_ATTR_ACL           /* has an access list, in KEY_XATTR */
#define INODE_DEFAULT_ACL   MSG_ATTR_DEFAULT_ACL   /* a directory that has a default list */
#define INODE_ORPHAN        0x100u                 /* KEY_ORPHAN exists: no name, open somewhere */
#define INODE_STRAY_CHUNKS                                                                         \
    0x200u /* inline, but a growth may have left chunks behind: clear before the next one */
#define INODE_LINKABLE 0x400u /* an orphan that was made without a name: LINK may give it one */
#define INODE_WIRE_FLAGS                                                                           \
    (INODE_INLINE | INODE_PUNCH_PENDING | INODE_SIZE_UNSURE | INODE_ACL | INODE_DEFAULT_ACL)
/* What clients are told. */
#define INODE_FLAGS_TOLD(in)                                                                       \
    (((in)->flags & INODE_WIRE_FLAGS) | ((in)->n_xattrs ? 0 : MSG_ATTR_NO_XATTRS))

struct mds_stripe { /* of a directory: struct stripe_rec */
    uint32_t flags; /* STRIPE_REC_* */
    uint32_t pool, chunk_bytes, stripe_count, copies, start;
};

struct mds_inode {
    uint64_t ino; /* from the key */
    uint32_t mode, nlink, uid, gid, rdev, flags, n_xattrs;
    uint64_t size, change, truncate_gen;
    struct msg_time atime, mtime, ctime, btime;
    struct msg_layout layout;
    /* directories */
    uint64_t entries;
    struct mds_stripe stripe;
    uint64_t run_next;
    uint32_t run_left, run_size;
    /* In memory only: the access list of an inode with INODE_ACL, where it was loaded for the rules
     * (exec_acl(), op_acl()). Borrowed from whoever loaded it. */
    struct msg_bytes acl;
};

struct mds_dirent {
    uint64_t ino;
    uint16_t ordinal;
    uint8_t type; /* DT_* */
    uint8_t flags;
};

struct mds_queue_item {
    struct msg_layout layout;
    uint64_t size, truncate_gen, session, index;
};

struct mds_trash_tree { /* of a tree that is being removed */
    int64_t started_ns;
    uint64_t directories, objects, removed;
    uint32_t name_len;
    char name[MSG_NAME_MAX];
};
#define REC_TRASH_TREE_MAX (sizeof(struct trash_tree_rec) + MSG_NAME_MAX)

void rec_inode_encode(const struct mds_inode *in, struct inode_rec *ret_rec);
int rec_inode_decode(uint64_t ino, const void *data, size_t len,
                     struct mds_inode *ret_inode) MUST_USE;
void rec_dirent_encode(const struct mds_dirent *d, struct dirent_rec *ret_rec);
int rec_dirent_decode(const void *data, size_t len, struct mds_dirent *ret_dirent) MUST_USE;
void rec_queue_encode(const struct mds_queue_item *q, struct queue_rec *ret_rec);
int rec_queue_decode(const void *data, size_t len, struct mds_queue_item *ret_item) MUST_USE;
void rec_trash_encode(uint64_t tree, struct trash_rec *ret_rec);
int rec_trash_decode(const void *data, size_t len, uint64_t *ret_tree) MUST_USE;
/* Returns the length: at most REC_TRASH_TREE_MAX. */
uint32_t rec_trash_tree_encode(const struct mds_trash_tree *t, void *out);
int rec_trash_tree_decode(const void *data, size_t len, struct mds_trash_tree *ret_tree) MUST_USE;
/* What clients see. */
void rec_inode_attr(const struct mds_inode *in, struct msg_attr *ret_attr);
static inline uint64_t rec_dirent_cookie(uint64_t name_hash, uint16_t ordinal)
{
    return name_hash << 16 | ordinal;
}

#endif
