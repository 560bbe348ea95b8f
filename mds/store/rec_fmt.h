/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of a metadata shard with a fixed form, little-endian. Each begins with its own version; a
 * reader refuses what it does not know (-AIFS_EFORMAT) and what cannot be (-AIFS_ECORRUPT). The
 * structs here are bytes on disk and nothing else: memory forms are in rec.h.
 */
#ifndef AIFS_MDS_STORE_REC_FMT_H
#define AIFS_MDS_STORE_REC_FMT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define FORMAT_MAGIC   "AIFSMDS\n"
#define FORMAT_VERSION 1u
#define REC_VERSION    1u

struct format_rec { /* KEY_FORMAT */
    char magic[8];
    uint32_t version; /* of everything in this store */
    uint32_t shard;
    uint8_t fs[16]; /* uuid of the file system */
    char fs_name[64];
    int64_t created_ns;
    uint64_t reserved[4];
};
static_assert(sizeof(struct format_rec) == 136, "format record");

struct layout_rec {
    uint32_t pool, copies, table_len, chunk_bytes, stripe_count, start, generation;
};
static_assert(sizeof(struct layout_rec) == 28, "layout record");

/* What a directory says about the layout of new files below it. */
#define STRIPE_REC_SET       0x1u /* has wishes of its own (else all 0: nothing wished) */
#define STRIPE_REC_ALL       0x2u
#define STRIPE_REC_HAS_START 0x4u
struct stripe_rec {
    uint32_t flags;
    uint32_t pool; /* id; 0: not said */
    uint32_t chunk_bytes, stripe_count, copies, start;
};
static_assert(sizeof(struct stripe_rec) == 24, "stripe record");

struct time_rec {
    int64_t sec;
    uint32_t nsec;
} __attribute__((packed));

struct inode_rec { /* KEY_INODE */
    uint16_t version;
    uint16_t zero;
    uint32_t mode, nlink, uid, gid, rdev;
    uint32_t flags; /* INODE_* of rec.h */
    uint32_t n_xattrs;
    uint64_t size;
    uint64_t change, truncate_gen;
    struct time_rec atime, mtime, ctime, btime;
    struct layout_rec layout; /* regular files */
    uint32_t run_left;        /* directories: unused numbers of the current run of inode numbers */
    uint64_t run_next;        /* the first of them */
    uint64_t entries;         /* directories: names in it */
    struct stripe_rec stripe; /* directories */
    uint32_t run_size;        /* of the current run; the next one is twice as long */
    uint32_t reserved[5];
} __attribute__((packed));
static_assert(sizeof(struct inode_rec) == 200, "inode record");
static_assert(offsetof(struct inode_rec, size) == 32, "inode record");
static_assert(offsetof(struct inode_rec, layout) == 104, "inode record");
static_assert(offsetof(struct inode_rec, stripe) == 152, "inode record");

#define DIRENT_REC_PREPARED                                                                        \
    0x1u            /* a change over several shards is undecided: not used with one shard */
struct dirent_rec { /* KEY_DIRENT */
    uint8_t version;
    uint8_t type; /* DT_* */
    uint8_t flags;
    uint8_t zero;
    uint16_t ordinal; /* among the names of the directory with the same hash, from 1: low bits of
                         the cookie */
    uint16_t zero2;
    uint64_t ino;
};
static_assert(sizeof(struct dirent_rec) == 16, "dirent record");

struct parent_rec { /* KEY_PARENT; the name follows */
    uint64_t parent;
};

enum session_state {
    SESSION_OPEN = 1,
    SESSION_EVICTED = 2
}; /* byte 0 of a session's record: what the exactly-once check looks at */

struct slot_rec { /* KEY_SLOT; the encoded reply follows */
    uint16_t version;
    uint16_t op;
    uint32_t sequence;
    uint32_t status; /* err_to_wire() */
    uint32_t result; /* SHARD_R_* */
    uint64_t ino;    /* the inode the operation was about */
};
static_assert(sizeof(struct slot_rec) == 24, "slot record");

struct queue_rec { /* KEY_DESTROY, KEY_PUNCH, KEY_RECOVER */
    uint16_t version;
    uint16_t zero;
    struct layout_rec layout;
    uint64_t size; /* punch: the cut; destroy: size of the file; recover: recorded size */
    uint64_t truncate_gen;
    uint64_t session; /* recover: of whom; destroy: the removed tree it was part of, or 0 */
    uint64_t index; /* of the entry that queued it: an item queued again meanwhile is not removed by
                       the confirmation of the old one */
};
static_assert(sizeof(struct queue_rec) == 64, "queue record");

struct trash_rec { /* KEY_TRASH: a directory without a name, whose content is being removed */
    uint16_t version;
    uint16_t zero[3];
    uint64_t tree; /* KEY_TRASH_TREE */
};
static_assert(sizeof(struct trash_rec) == 16, "trash record");

struct trash_tree_rec { /* KEY_TRASH_TREE; the name that the tree had follows */
    uint16_t version;
    uint16_t zero[3];
    int64_t started_ns;
    uint64_t directories; /* in KEY_TRASH */
    uint64_t objects;     /* in KEY_DESTROY */
    uint64_t removed;     /* names, since the start */
};
static_assert(sizeof(struct trash_tree_rec) == 40, "record of a removed tree");

#endif
