/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a target's index holds, byte by byte (docs/on-disk-oss.md). Keys are a type byte and
 * big-endian numbers, so that an inode's records are one range; values are little-endian and end
 * in, or carry, a CRC-32C over key and value, so that a record that strayed to another key is
 * noticed.
 *
 *   'c' ino chunk        struct chunk_record_fmt, presence bitmap, block sums
 *   'i' ino              struct inode_record_fmt
 *   'l' ino chunk block  struct log_record_fmt, the whole block: a small overwrite, not yet folded
 *   'f' session          struct fence_record_fmt
 *
 * Decoders take hostile input: they check every length and number before use and allocate nothing.
 * Pure; any thread.
 */
#ifndef AIFS_OSS_CHUNK_FMT_H
#define AIFS_OSS_CHUNK_FMT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/compiler.h"
#include "common/base/crc.h"

#define CHUNK_FMT_VERSION 1u

#define CHUNK_KEY_CHUNK 'c'
#define CHUNK_KEY_INODE 'i'
#define CHUNK_KEY_LOG   'l'
#define CHUNK_KEY_FENCE 'f'
#define CHUNK_KEY_MAX   24u

#define CHUNK_BLOCK       CRC_BLOCK_BYTES
#define CHUNK_BLOCK_SHIFT 12u
#define CHUNK_MAX_BYTES   (64u * MIB)
#define CHUNK_MAX_BLOCKS  (CHUNK_MAX_BYTES / CHUNK_BLOCK)

/* Slot classes: log2 of the slot's bytes. 0: no slot (a chunk that is all hole). */
#define CHUNK_CLASS_MIN 16u
#define CHUNK_CLASS_MAX 26u

struct chunk_slot {
    uint32_t number; /* within its class */
    uint8_t class;   /* 0: none */
};

#define CHUNK_RECORD_BITMAP 0x0001u /* a presence bitmap follows: some blocks are holes */

struct chunk_record_fmt {
    uint8_t version; /* CHUNK_FMT_VERSION */
    uint8_t slot_class;
    uint16_t flags;
    uint32_t slot_number;
    uint32_t len;           /* committed bytes */
    uint32_t chain_version; /* reserved: redundancy */
    uint64_t write_version; /* +1 with every commit of the chunk */
    uint64_t truncate_gen;  /* of the newest write */
    uint64_t op_ids[2];     /* newest writers' operations */
    uint64_t reserved[1];
    uint32_t reserved2;
    uint32_t crc; /* over key and record, with this field as zero */
    /* ceil(blocks / 8) bytes of bitmap when flagged; le32 per block, blocks = ceil(len / 4096) */
};
static_assert(sizeof(struct chunk_record_fmt) == 64, "on disk");
static_assert(offsetof(struct chunk_record_fmt, crc) == 60, "on disk");

#define INODE_RECORD_TOMBSTONE 0x1u

struct inode_record_fmt {
    uint8_t version;
    uint8_t flags;
    uint16_t reserved;
    uint32_t crc;
    uint64_t truncate_gen; /* of the last truncate applied here */
    uint64_t destroyed_ns; /* wall clock, for a tombstone */
};
static_assert(sizeof(struct inode_record_fmt) == 24, "on disk");

struct log_record_fmt {
    uint8_t version;
    uint8_t reserved[3];
    uint32_t crc;           /* over key and record, with this field as zero */
    uint32_t block_crc;     /* of the block that follows */
    uint32_t chain_version; /* reserved: redundancy */
    uint64_t write_version;
    uint64_t truncate_gen;
    uint64_t op_id;
    /* CHUNK_BLOCK bytes */
};
static_assert(sizeof(struct log_record_fmt) == 40, "on disk");

struct fence_record_fmt {
    uint8_t version;
    uint8_t reserved[3];
    uint32_t generation;
    uint32_t crc;
    uint32_t reserved2;
};
static_assert(sizeof(struct fence_record_fmt) == 16, "on disk");

/* ---- keys: each writes into out[CHUNK_KEY_MAX] and returns the length ---- */
size_t chunk_key_chunk(uint8_t *out, uint64_t ino, uint64_t chunk);
size_t chunk_key_inode(uint8_t *out, uint64_t ino);
size_t chunk_key_log(uint8_t *out, uint64_t ino, uint64_t chunk, uint32_t block);
size_t chunk_key_fence(uint8_t *out, uint64_t session);

struct chunk_key {
    uint8_t type;
    uint64_t ino;   /* or the session */
    uint64_t chunk; /* 'c', 'l' */
    uint32_t block; /* 'l' */
};
int chunk_key_parse(const void *key, size_t len, struct chunk_key *ret_key) MUST_USE;

/* ---- values ---- */

/* A chunk record decoded, but for bitmap and sums, which stay where they are. */
struct chunk_record {
    struct chunk_slot slot;
    uint32_t len;
    uint64_t write_version, truncate_gen;
    uint64_t op_ids[2];
    const uint8_t *bitmap; /* NULL: every block is present */
    const uint8_t *crcs;   /* le32 each, unaligned */
};

struct inode_record {
    uint64_t truncate_gen;
    bool tombstone;
    uint64_t destroyed_ns;
};

struct log_record {
    uint32_t block_crc;
    uint64_t write_version, truncate_gen, op_id;
    const uint8_t *data; /* CHUNK_BLOCK bytes */
};

static inline uint32_t chunk_blocks(uint32_t len)
{
    return (uint32_t)(((uint64_t)len + CHUNK_BLOCK - 1) >> CHUNK_BLOCK_SHIFT);
}
size_t chunk_record_max(uint32_t len); /* most bytes a record of that length needs */
/* present: bitmap of the blocks; crcs: host order. Writes to out[chunk_record_max(r->len)]. */
size_t chunk_record_encode(const uint8_t *key, size_t key_len, const struct chunk_record *r,
                           const uint8_t *present, const uint32_t *crcs, uint8_t *out);
/* -AIFS_EFORMAT for a version this program does not know, -AIFS_ECORRUPT for anything wrong. */
int chunk_record_decode(const uint8_t *key, size_t key_len, const void *value, size_t len,
                        struct chunk_record *ret_record) MUST_USE;
bool chunk_record_present(const struct chunk_record *r, uint32_t block);

size_t inode_record_encode(const uint8_t *key, size_t key_len, const struct inode_record *r,
                           uint8_t out[sizeof(struct inode_record_fmt)]);
int inode_record_decode(const uint8_t *key, size_t key_len, const void *value, size_t len,
                        struct inode_record *ret_record) MUST_USE;

#define LOG_RECORD_BYTES (sizeof(struct log_record_fmt) + CHUNK_BLOCK)
size_t log_record_encode(const uint8_t *key, size_t key_len, const struct log_record *r,
                         uint8_t out[LOG_RECORD_BYTES]);
int log_record_decode(const uint8_t *key, size_t key_len, const void *value, size_t len,
                      struct log_record *ret_record) MUST_USE;

size_t fence_record_encode(const uint8_t *key, size_t key_len, uint32_t generation,
                           uint8_t out[sizeof(struct fence_record_fmt)]);
int fence_record_decode(const uint8_t *key, size_t key_len, const void *value, size_t len,
                        uint32_t *ret_generation) MUST_USE;

#endif
