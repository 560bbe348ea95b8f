/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of a metadata shard: one byte of record type, then fixed-width big-endian fields, so that
 * the order of keys is the order of numbers. One RocksDB column family holds them all, so one write
 * batch and one flush are atomic over all of them. See docs/on-disk-mds.md. Type numbers are never
 * reused.
 */
#ifndef AIFS_MDS_STORE_KEY_FMT_H
#define AIFS_MDS_STORE_KEY_FMT_H

#include <stdint.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"

enum key_type {
    KEY_FORMAT = 0x01,  /* -                          struct format_rec: version, identity of the
                           file system and shard */
    KEY_COUNTER = 0x02, /* counter u8                 u64 LE: next number to hand out */
    KEY_APPLIED = 0x03, /* -                          u64 LE: index of the last entry applied */

    KEY_INODE = 0x10,   /* ino u64                    struct inode_rec */
    KEY_DIRENT = 0x11,  /* parent u64, h u48, name    struct dirent_rec */
    KEY_PARENT = 0x12,  /* ino u64 (a directory)      parent u64 LE, name */
    KEY_INLINE = 0x13,  /* ino u64                    the bytes of a small file */
    KEY_SYMLINK = 0x14, /* ino u64                    target */
    KEY_XATTR = 0x15,   /* ino u64, name              value */
    KEY_ORPHAN = 0x16,  /* ino u64                    time of the last unlink, s64 LE */
    KEY_LOCK = 0x17,    /* ino u64                    mds/locks/lock_fmt.h: its locks */

    KEY_SESSION =
        0x20, /* session u64                mds/session/session_fmt.h; byte 0: enum session_state */
    KEY_SLOT = 0x21,         /* session u64, slot u32      struct slot_rec, then the kept reply */
    KEY_FENCE = 0x22,        /* fence number u64           mds/session */
    KEY_LOCK_SESSION = 0x23, /* session u64, ino u64    u32 LE: how many locks it has there */
    KEY_WRITER = 0x24,       /* session u64, ino u64    mds/session: may be writing that file */
    KEY_GIVEN = 0x25,        /* session u64             mds/session: the numbers it has used up */

    KEY_DESTROY = 0x28,    /* ino u64                    struct queue_rec: chunks to remove */
    KEY_PUNCH = 0x29,      /* ino u64                    struct queue_rec: chunks to cut */
    KEY_RECOVER = 0x2a,    /* ino u64                    struct queue_rec: size to be found */
    KEY_TRASH = 0x2b,      /* ino u64 (a directory)      struct trash_rec: its content goes */
    KEY_TRASH_TREE = 0x2c, /* ino u64                 struct trash_tree_rec, name: a removed tree */

    KEY_MAP = 0x30,    /* -                          cluster map, codec_map_encode() */
    KEY_NODE = 0x31,   /* node uuid                  mds/cluster */
    KEY_TARGET = 0x32, /* target uuid                mds/cluster */
};

enum key_counter {
    COUNTER_INODE = 1,   /* without the shard's bits */
    COUNTER_SESSION = 2, /* sessions */
    COUNTER_FENCE = 3,   /* fences */
    COUNTER_BOOT = 4, /* starts of this shard's leader: high bits of open ids and lease sequences */
    COUNTER_INODES = 5, /* not a counter of numbers: inodes that exist */
    COUNTER_NODE = 6,
    COUNTER_TARGET = 7,
};

#define KEY_MAX_BYTES          (1 + 8 + 6 + 255)
#define KEY_HASH_BITS          47 /* of the 48: cookies stay positive as off_t */
#define KEY_LOCK_SESSION_BYTES 17
#define KEY_INODE_BITS         52 /* of a shard: the high 12 bits of an inode number are the shard's */
#define KEY_ROOT_INO           1ull

struct key {
    uint16_t len;
    uint8_t b[KEY_MAX_BYTES];
};

/*
 * The hash of a name in the key of its directory entry: FNV-1a (64 bit), mixed by the finalizer of
 * MurmurHash3, high 47 bits, never 0. On disk and in readdir cookies: never to be changed.
 */
static inline uint64_t key_name_hash(const void *name, uint32_t len)
{
    const uint8_t *p = name;
    uint64_t h = 0xcbf29ce484222325ull;

    for (uint32_t i = 0; i < len; i++)
        h = (h ^ p[i]) * 0x100000001b3ull;
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdull;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53ull;
    h ^= h >> 33;
    h >>= 64 - KEY_HASH_BITS;
    return h ? h : 1;
}

static inline void key_single(struct key *k, enum key_type type)
{
    k->len = 1;
    k->b[0] = (uint8_t)type;
}

static inline void key_counter(struct key *k, enum key_counter c)
{
    k->len = 2;
    k->b[0] = KEY_COUNTER;
    k->b[1] = (uint8_t)c;
}

/* Every type whose key is one number: inode, session, fence, queues. */
static inline void key_number(struct key *k, enum key_type type, uint64_t n)
{
    k->len = 9;
    k->b[0] = (uint8_t)type;
    be64_store(k->b + 1, n);
}

/* All names of a directory with one hash; also where a scan of the directory resumes. */
static inline void key_dirent_hash(struct key *k, uint64_t parent, uint64_t hash)
{
    key_number(k, KEY_DIRENT, parent);
    be16_store(k->b + 9, (uint16_t)(hash >> 32));
    be32_store(k->b + 11, (uint32_t)hash);
    k->len = 15;
}

static inline void key_append(struct key *k, const void *name, uint32_t len)
{
    ASSERT(len <= 255 && k->len + len <= KEY_MAX_BYTES);
    memcpy(k->b + k->len, name, len);
    k->len = (uint16_t)(k->len + len);
}

/* name_len is at most 255: checked by the caller. */
static inline void key_dirent(struct key *k, uint64_t parent, const void *name, uint32_t name_len)
{
    key_dirent_hash(k, parent, key_name_hash(name, name_len));
    key_append(k, name, name_len);
}

static inline void key_xattr(struct key *k, uint64_t ino, const void *name, uint32_t name_len)
{
    key_number(k, KEY_XATTR, ino);
    key_append(k, name, name_len);
}

static inline void key_slot(struct key *k, uint64_t session, uint32_t slot)
{
    key_number(k, KEY_SLOT, session);
    be32_store(k->b + 9, slot);
    k->len = 13;
}

static inline void key_lock_session(struct key *k, uint64_t session, uint64_t ino)
{
    key_number(k, KEY_LOCK_SESSION, session);
    be64_store(k->b + 9, ino);
    k->len = KEY_LOCK_SESSION_BYTES;
}

static inline void key_writer(struct key *k, uint64_t session, uint64_t ino)
{
    key_number(k, KEY_WRITER, session);
    be64_store(k->b + 9, ino);
    k->len = 17;
}

static inline uint64_t key_number_of(const void *key)
{
    return be64_load((const uint8_t *)key + 1);
}

#endif
