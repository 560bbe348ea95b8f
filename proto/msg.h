/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages as plain structs: what the rest of the program sees. Their protobuf form (schema/
 * *.proto) exists only inside proto/codec. Decoded messages live in the arena of their request or
 * call; bytes and arrays are borrowed from it. Numbers are checked against the bounds in codec/
 * before any of this is built.
 */
#ifndef AIFS_PROTO_MSG_H
#define AIFS_PROTO_MSG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/ids.h"
#include "proto/cred.h"

#define MSG_NAME_MAX   255u
#define MSG_PATH_MAX   4096u
#define MSG_XATTR_MAX  65536u
#define MSG_RANGES_MAX 256u
#define MSG_ITEMS_MAX  4096u
#define MSG_BULK_MAX   (1u << 20) /* payload of one RPC: larger I/O is split */
#define MSG_INLINE_MAX (64u << 10)
#define MSG_COPIES_MAX 8u

struct msg_bytes {
    const void *data; /* not NUL-terminated */
    uint32_t len;
};

struct msg_time {
    int64_t sec;
    uint32_t nsec;
};

/* ---- inodes ---- */

#define MSG_ATTR_INLINE 0x1u /* data is in the metadata server */
#define MSG_ATTR_PUNCH_PENDING                                                                     \
    0x2u /* a truncate has not reached every target: the file must not grow past its size yet */
#define MSG_ATTR_SIZE_UNSURE                                                                       \
    0x4u /* a writer died: its size is being recovered from the targets                            \
          */

#define MSG_ATTR_KEPT        0x10u /* in a page of a directory: comes with a lease */
#define MSG_ATTR_ALONE       0x80u /* there: and the session is alone with the inode */
#define MSG_ATTR_NO_XATTRS   0x8u  /* no extended attributes are stored with it */
#define MSG_ATTR_ACL         0x20u /* has an access list beside its mode */
#define MSG_ATTR_DEFAULT_ACL 0x40u /* a directory with a default list for what is made in it */

/* Will change without anybody asking for it. */
#define MSG_ATTR_UNSURE (MSG_ATTR_PUNCH_PENDING | MSG_ATTR_SIZE_UNSURE)

struct msg_attr {
    uint64_t ino;
    uint32_t mode, nlink, uid, gid, rdev;
    uint32_t flags; /* MSG_ATTR_* */
    uint64_t size;
    struct msg_time atime, mtime, ctime, btime;
    uint64_t change;       /* larger after every change of the inode */
    uint64_t truncate_gen; /* larger after every truncate to less */
};

struct msg_layout {
    uint32_t pool;         /* id in the cluster map */
    uint32_t copies;       /* which table of the pool */
    uint32_t table_len;    /* chains in that table when the file was created */
    uint32_t chunk_bytes;  /* power of two, 64 KiB to 64 MiB */
    uint32_t stripe_count; /* chains used, 1..table_len */
    uint32_t start;        /* index of the chain of chunk 0 */
    uint32_t generation;   /* larger after inline data has grown into chunks */
};

/* What a user may ask of a layout; 0 or "" = inherit. */
struct msg_stripe {
    struct msg_bytes pool; /* name */
    uint32_t chunk_bytes;
    uint32_t stripe_count;
    bool all; /* stripe over all chains, whatever stripe_count says */
    uint32_t copies;
    bool has_start;
    uint32_t start;
    bool inherit; /* drop what the directory has of its own */
};

/* Data lease of a session on a file. */
enum msg_lease {
    MSG_LEASE_NONE = 0, /* nothing may be cached: reads go to the targets, writes are durable before
                           their reply */
    MSG_LEASE_READ = 1, /* data may be cached */
    MSG_LEASE_WRITE = 2, /* sole user: data may be cached and written back; holds size and mtime */
};

struct msg_inode {
    struct msg_attr attr;
    struct msg_layout layout; /* of regular files */
    bool has_data;            /* data is the whole inline content, or a symlink's target */
    struct msg_bytes data;
    enum msg_lease lease;
    uint64_t lease_seq; /* of this grant: a recall or release names it */
};

struct msg_inode_rep {
    struct msg_inode inode;
    uint64_t open_id; /* 0: not opened */
    bool created;
    /* The directories that the operation changed, afterwards: nobody has to ask for them. RENAME:
     * the old one and, if it is another, the new one. */
    bool has_dir, has_dir2, has_victim;
    struct msg_attr dir, dir2, victim;
};

struct msg_name_req { /* LOOKUP UNLINK RMDIR */
    struct msg_cred cred;
    uint64_t parent;
    struct msg_bytes name;
    uint64_t when_ns; /* UNLINK RMDIR, answered ahead: when, by the server's clock; 0: now */
};

#define MSG_INO_DATA 0x1u /* GETATTR: the reply carries inline data too */

struct msg_ino_req { /* GETATTR READLINK XATTR_LIST FSYNC */
    struct msg_cred cred;
    uint64_t ino;
    uint32_t flags;
    uint64_t open_id; /* MSG_INO_DATA: who has it open needs no permission any more */
};

#define MSG_SET_MODE      0x001u
#define MSG_SET_UID       0x002u
#define MSG_SET_GID       0x004u
#define MSG_SET_SIZE      0x008u
#define MSG_SET_ATIME     0x010u
#define MSG_SET_MTIME     0x020u
#define MSG_SET_ATIME_NOW 0x040u
#define MSG_SET_MTIME_NOW 0x080u
#define MSG_SET_KILL_PRIV                                                                          \
    0x100u /* a write by somebody unprivileged: clear set-user-id and set-group-id */

struct msg_setattr_req {
    struct msg_cred cred;
    uint64_t ino;
    uint32_t set; /* MSG_SET_* */
    uint32_t mode, uid, gid;
    uint64_t size;
    struct msg_time atime, mtime;
    uint64_t open_id; /* ftruncate: permission was checked at open */
    uint64_t when_ns; /* answered ahead: then */
};

#define MSG_CREATE_EXCL  0x1u
#define MSG_CREATE_TRUNC 0x2u
#define MSG_CREATE_OPEN  0x4u /* leave it open; access as in open_flags */
#define MSG_CREATE_UNNAMED                                                                         \
    0x8u /* with OPEN: a file without a name, which lives as long as it is open or until LINK      \
            gives it one (never, with EXCL). name is not looked at */
#define MSG_CREATE_FOUND 0x10u /* opens what is there, and makes nothing: -ENOENT */

struct msg_set_since { /* as in struct msg_setattr_req; MODE, UID, GID, ATIME, MTIME only */
    uint32_t set, mode, uid, gid;
    struct msg_time atime, mtime;
    uint64_t when_ns; /* the last of it */
};

struct msg_create_req { /* CREATE MKDIR MKNOD SYMLINK: the type is in mode */
    struct msg_cred cred;
    uint64_t parent;
    struct msg_bytes name;
    uint32_t mode;   /* umask already applied */
    uint32_t masked; /* what it took away: a directory's default list counts instead of it */
    uint32_t rdev;
    uint32_t flags;          /* MSG_CREATE_* */
    uint32_t open_flags;     /* O_ACCMODE bits */
    struct msg_bytes target; /* SYMLINK */
    bool has_stripe;
    struct msg_stripe stripe;
    /* MKNOD of a regular file and MKDIR, answered ahead: its number (proto/number.h; 0: the server
     * takes one), when, and what has been written since, and when (no data: nothing has been), and
     * what has been set. MKDIR: asks to be told whether the session is alone with it. */
    uint64_t ino, when_ns, wrote_ns;
    struct msg_bytes data;
    bool has_since, alone;
    struct msg_set_since since;
};

/*
 * Many changes of names in one message, with one slot. They are executed in their order, each with
 * an outcome of its own; those that would have to wait for somebody are not executed, and are to be
 * sent by themselves (-AIFS_ERETRY).
 */
#define MSG_BATCH_MAX 128u

struct msg_batch_item {
    uint32_t op; /* RPC_OP_MKNOD, _MKDIR, _UNLINK, _RMDIR, _RENAME */
    uint64_t parent;
    struct msg_bytes name, new_name;    /* new_name: RENAME, in the same directory */
    uint32_t mode, masked, rdev, flags; /* as struct msg_create_req; flags: of RENAME */
    uint64_t when_ns;                   /* as struct msg_name_req */
    uint64_t ino, wrote_ns;             /* as struct msg_create_req */
    struct msg_bytes data;
    bool has_since, alone;
    struct msg_set_since since;
};

struct msg_batch_req {
    struct msg_cred cred;
    uint32_t n_items;
    const struct msg_batch_item *items;
};

struct msg_batch_item_rep {
    uint32_t status; /* err_to_wire() */
    bool has_rep;
    struct msg_inode_rep rep; /* a directory that the next item changes too is told there */
};

struct msg_batch_rep {
    uint32_t n_items;
    const struct msg_batch_item_rep *items;
    struct msg_bytes kept; /* RPC_FLAG_KEPT_* of each; empty: of none */
};

struct msg_rename_req {
    struct msg_cred cred;
    uint64_t parent, new_parent, when_ns; /* when_ns: as in struct msg_name_req */
    struct msg_bytes name, new_name;
    uint32_t flags; /* RENAME_NOREPLACE, RENAME_EXCHANGE */
};

struct msg_link_req {
    struct msg_cred cred;
    uint64_t ino, new_parent;
    struct msg_bytes new_name;
};

struct msg_open_req {
    struct msg_cred cred;
    uint64_t ino;
    uint32_t flags; /* O_ACCMODE, O_TRUNC */
};

struct msg_close_item {
    uint64_t ino, open_id;
};

struct msg_read_item { /* that an inode was read */
    uint64_t ino;
    struct msg_time atime, was; /* was: what its atime had been then */
};
struct msg_close_req {
    uint32_t n_items, n_reads;
    const struct msg_close_item *items;
    const struct msg_read_item *reads;
};

struct msg_lease_req { /* LEASE_GET (want), LEASE_RELEASE (keep, at most what is held) */
    uint64_t ino;
    enum msg_lease lease;
    uint64_t lease_seq;
    bool has_size; /* release of a write lease: what the writer holds */
    uint64_t size;
    struct msg_time mtime;
    uint64_t truncate_gen;
};

struct msg_recall_req { /* server to client: give the lease up down to keep; answered at once,
                           LEASE_RELEASE follows */
    uint64_t ino;
    uint64_t lease_seq;
    enum msg_lease keep;
};

/*
 * Server to client: what is believed of an inode under a lease is about to change. Answered when
 * nobody on that client can see the old any more; the change waits for it.
 */
struct msg_invalidate_req {
    uint64_t ino;
    bool whole;            /* all names in it; else only name, the others go on being kept */
    struct msg_bytes name; /* empty: attributes only */
    bool owner; /* whose it is, or whether it is sticky: kernels look at that before they ask */
};

struct msg_glimpse_rep { /* GLIMPSE, server to client, msg_ino_req: size and mtime as the writer
                            sees them */
    bool held;
    uint64_t size;
    struct msg_time mtime;
};

struct msg_write_inline_req { /* the data is the bulk payload */
    struct msg_cred cred;
    uint64_t ino, open_id;
    uint64_t offset;
    bool append;  /* at the end of file, whatever offset says */
    bool replace; /* the payload is the whole file: cut what is behind it */
    struct msg_time mtime;
    uint64_t truncate_gen;
    uint32_t layout_generation;
};

struct msg_size_req { /* SIZE: what a writer has written; GROW: chunks are written and committed,
                         drop the inline data */
    uint64_t ino, open_id;
    uint64_t size; /* high-water mark: never shrinks a file */
    struct msg_time mtime;
    uint64_t truncate_gen;
    uint32_t layout_generation;
    bool give_up; /* SIZE of a small file: it could not grow, what its targets have of it is void */
};

struct msg_append_req { /* APPEND_RANGE: reserve [size, size+len) at the end of file for a writer
                           without a lease */
    uint64_t ino, open_id;
    uint64_t len;
    uint64_t truncate_gen;
};

struct msg_append_rep {
    uint64_t offset;
    struct msg_attr attr;
};

/* One page of a directory is the bulk payload of the reply, in the format of proto/dirent_fmt.h. */
struct msg_readdir_req {
    struct msg_cred cred;
    uint64_t ino;
    uint64_t cookie; /* 0: from the start; else the cookie of the last entry seen */
    uint32_t max_bytes;
    bool plus;  /* with attributes */
    bool alone; /* plus: asks to be told what the session is alone with (docs/protocols.md 3) */
};

struct msg_readdir_rep {
    uint32_t count;
    bool eof;
    uint64_t parent; /* inode of ".." */
    bool alone;      /* with the directory; the entries say so for themselves (MSG_ATTR_ALONE) */
};

struct msg_xattr_req { /* XATTR_GET _SET _REMOVE */
    struct msg_cred cred;
    uint64_t ino;
    struct msg_bytes name, value;
    uint32_t flags; /* XATTR_CREATE, XATTR_REPLACE */
};

struct msg_bytes_rep { /* XATTR_GET: value; XATTR_LIST: names, each with its NUL; READLINK: target
                        */
    struct msg_bytes value;
};

struct msg_statfs_rep {
    uint64_t total_bytes, free_bytes, avail_bytes, files, files_free;
};

struct msg_empty {
    uint8_t none;
};

/* ---- hello: see docs/wire.md ---- */

struct msg_hello_req { /* the connecting end speaks first */
    struct uuid cluster, node, boot;
    uint32_t role; /* enum crypto_role */
    struct msg_bytes name, version;
    uint32_t wire_oldest, wire_newest;
    uint64_t features;
    struct msg_bytes nonce; /* 32 bytes */
};

struct msg_hello_rep {
    struct uuid cluster, node, boot;
    uint32_t role;
    struct msg_bytes name, version;
    uint32_t wire_version;  /* chosen */
    uint64_t features;      /* common */
    struct msg_bytes nonce; /* 32 bytes */
    struct msg_bytes proof; /* HMAC over both hellos, "server" */
};

struct msg_auth_req {
    struct msg_bytes proof; /* HMAC over both hellos, "client" */
    struct msg_bytes offer; /* net_conn_offer() */
};

struct msg_auth_rep {
    struct msg_bytes offer;
};

/* ---- cluster ---- */

struct msg_target_stat {
    uint32_t id; /* 0: not yet known to the cluster */
    struct uuid uuid;
    struct msg_bytes path, pool; /* pool wanted when new */
    uint64_t total_bytes, free_bytes, used_bytes, chunks;
    uint64_t verifier;
    uint32_t errors; /* checksum and I/O errors seen */
};

struct msg_register_req {
    struct uuid node, boot;
    struct msg_bytes alias, version;
    uint32_t n_addresses, n_targets;
    const struct msg_bytes *addresses;
    const struct msg_target_stat *targets;
};

struct msg_fence {
    uint64_t session;
    uint32_t generation; /* this one and all older are refused */
};

struct msg_register_rep {
    uint32_t node_id;
    uint32_t n_targets;
    const uint32_t *target_ids; /* in the order asked; 0: refused, see instead_of */
    uint32_t n_instead_of;      /* 0, or as many as targets */
    const uint32_t *instead_of; /* the target that lived where the refused one is; 0: not refused */
    uint64_t map_epoch, fence_seq;
    uint32_t n_fences;
    const struct msg_fence *fences;
};

struct msg_heartbeat_req {
    uint32_t node_id;
    struct uuid boot;
    uint64_t fence_seq; /* up to which it knows */
    uint32_t n_targets;
    const struct msg_target_stat *targets;
};

struct msg_heartbeat_rep {
    uint64_t map_epoch, fence_seq;
    bool register_again;
    uint32_t n_fences;
    const struct msg_fence *fences;
};

struct msg_fence_req {
    uint64_t fence_seq;
    uint32_t n_fences;
    const struct msg_fence *fences;
};

struct msg_map_req {
    uint64_t epoch; /* what the caller has */
};

struct cluster_map;
struct msg_map_rep {
    bool unchanged;
    const struct cluster_map *map; /* in the arena; see proto/map.h for a counted copy */
};

struct msg_pool_req { /* POOL_CREATE, POOL_ADD, POOL_REMOVE; TARGET_REPLACE without a name */
    struct msg_bytes name;
    uint32_t n_targets;
    const uint32_t *targets;
    bool dry_run;
};

struct msg_node_req { /* NODE_REMOVE */
    uint32_t node;
    bool dry_run;
};

struct msg_text_rep { /* what was done, or why not, for people; and JSON for the tool */
    struct msg_bytes text;
};

struct msg_target_add_req { /* admin to OSS: format path as a new target */
    struct msg_bytes path, pool, alias;
    bool lived; /* one lived there: -AIFS_ENOTARGET when it is not formatted, and it stays so */
};

struct msg_target_add_rep {
    struct msg_bytes text; /* for people */
    struct uuid uuid;      /* of the target, by which the map knows it when it is taken */
};

/* ---- object storage ---- */

struct msg_range {
    uint64_t chunk;
    uint32_t offset, len; /* within the chunk */
};

struct msg_read_req {
    uint32_t target;
    uint64_t ino, truncate_gen;
    uint32_t n_ranges;
    const struct msg_range *ranges; /* offset and len multiples of CRC_BLOCK_BYTES */
};

/* The bulk payload is the bytes that exist, range after range; lens[i] <= ranges[i].len of them
 * (less at the end of a chunk's data: the rest reads as zeros). */
struct msg_read_rep {
    uint32_t n_lens;
    const uint32_t *lens;
    uint32_t n_crcs; /* one per block read, in order */
    const uint32_t *crcs;
};

struct msg_write_req {
    uint32_t target;
    uint64_t ino, truncate_gen;
    bool stable; /* durable before the reply */
    uint32_t n_ranges;
    const struct msg_range
        *ranges;     /* any alignment; the bulk payload holds their bytes one after the other */
    uint32_t n_crcs; /* crc32c_blocks() of each range, one after the other */
    const uint32_t *crcs;
    uint64_t op_id;      /* of the writer, for retries through another server later */
    uint64_t want_grant; /* bytes of space the writer would like to have promised */
    uint64_t keep_grant; /* of what is promised this write is to leave so much: it is for others */
    uint64_t once; /* sent again it has the same (once.c); of the first range, the others follow */
};

#define MSG_GRANT_NS (40 * NS_PER_S) /* so long a promise of space is relied on */

struct msg_write_rep {
    uint64_t verifier; /* changes when the server may have forgotten unstable writes */
    uint64_t grant; /* bytes of slots promised to the session for MSG_GRANT_NS; 0: write through */
    bool committed; /* durable by now, asked for or not: no COMMIT is needed */
};

struct msg_commit_req {
    uint32_t target;
    uint32_t n_inos;
    const uint64_t *inos;
};

struct msg_commit_rep {
    uint64_t verifier;
};

struct msg_cut_req { /* OSS_TRUNCATE: to start; OSS_PUNCH: [start, end) */
    uint32_t target;
    uint64_t ino, truncate_gen;
    uint32_t chunk_bytes;
    uint64_t start, end; /* in the file */
    uint64_t once;       /* OSS_PUNCH: as of a write */
};

struct msg_destroy_req {
    uint32_t target;
    uint32_t n_inos;
    const uint64_t *inos;
};

struct msg_seal_req {
    uint32_t target;
    uint64_t ino, truncate_gen;
    uint32_t chunk_bytes;
};

struct msg_seal_rep {
    uint64_t high_water; /* end of the last byte this target holds, as an offset in the file */
};

struct msg_chunk_info {
    uint64_t ino, chunk;
    uint32_t len;
    uint64_t truncate_gen;
    bool bad; /* only when verify was asked */
};

struct msg_chunk_list_req {
    uint32_t target;
    uint64_t after_ino, after_chunk; /* exclusive unless first */
    bool first;
    uint64_t only_ino; /* 0: all */
    uint32_t max;
    bool verify; /* read and check the sums */
};

struct msg_chunk_list_rep {
    uint32_t n_chunks;
    const struct msg_chunk_info *chunks;
    bool eof;
};

struct msg_target_req {
    uint32_t target;
};

#include "proto/msg_admin.h"
#include "proto/msg_session.h"
#include "proto/msg_lock.h"
#include "proto/msg_seek.h"

#endif
