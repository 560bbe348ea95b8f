// SPDX-License-Identifier: Apache-2.0
/*
 * Records of a target's index to bytes and back. Encoding cannot fail; decoding checks version,
 * lengths, numbers and the sum before it hands anything out, and fails with AIFS_EFORMAT (a version
 * from the future) or AIFS_ECORRUPT.
 */
#include "oss/chunk/chunk_fmt.h"

#include <string.h>

#include "common/base/bytes.h"
#include "common/base/err.h"

size_t chunk_key_chunk(uint8_t *out, uint64_t ino, uint64_t chunk)
{
    out[0] = CHUNK_KEY_CHUNK;
    be64_store(out + 1, ino);
    be64_store(out + 9, chunk);
    return 17;
}

size_t chunk_key_inode(uint8_t *out, uint64_t ino)
{
    out[0] = CHUNK_KEY_INODE;
    be64_store(out + 1, ino);
    return 9;
}

size_t chunk_key_log(uint8_t *out, uint64_t ino, uint64_t chunk, uint32_t block)
{
    out[0] = CHUNK_KEY_LOG;
    be64_store(out + 1, ino);
    be64_store(out + 9, chunk);
    be32_store(out + 17, block);
    return 21;
}

size_t chunk_key_fence(uint8_t *out, uint64_t session)
{
    out[0] = CHUNK_KEY_FENCE;
    be64_store(out + 1, session);
    return 9;
}

int chunk_key_parse(const void *key, size_t len, struct chunk_key *ret_key)
{
    const uint8_t *k = key;
    struct chunk_key out = {0};
    size_t want;

    if (len < 9)
        return -AIFS_ECORRUPT;
    out.type = k[0];
    out.ino = be64_load(k + 1);
    switch (out.type) {
    case CHUNK_KEY_CHUNK:
        want = 17;
        break;
    case CHUNK_KEY_LOG:
        want = 21;
        break;
    case CHUNK_KEY_INODE:
    case CHUNK_KEY_FENCE:
        want = 9;
        break;
    default:
        return -AIFS_ECORRUPT;
    }
    if (len != want)
        return -AIFS_ECORRUPT;
    if (want >= 17)
        out.chunk = be64_load(k + 9);
    if (want == 21)
        out.block = be32_load(k + 17);
    *ret_key = out;
    return 0;
}

/* The sum of key and value, with the four bytes at crc_at taken as zero. */
static uint32_t record_crc(const uint8_t *key, size_t key_len, const uint8_t *value, size_t len,
                           size_t crc_at)
{
    static const uint8_t zero[4];
    uint32_t crc = crc32c(key, key_len);

    crc = crc32c_more(crc, value, crc_at);
    crc = crc32c_more(crc, zero, sizeof zero);
    return crc32c_more(crc, value + crc_at + 4, len - crc_at - 4);
}

static int record_check(const uint8_t *key, size_t key_len, const uint8_t *value, size_t len,
                        size_t min_len, size_t crc_at)
{
    if (len < min_len)
        return -AIFS_ECORRUPT;
    if (value[0] != CHUNK_FMT_VERSION)
        return value[0] > CHUNK_FMT_VERSION ? -AIFS_EFORMAT : -AIFS_ECORRUPT;
    if (record_crc(key, key_len, value, len, crc_at) != le32_load(value + crc_at))
        return -AIFS_ECORRUPT;
    return 0;
}

size_t chunk_record_max(uint32_t len)
{
    uint32_t blocks = chunk_blocks(len);

    return sizeof(struct chunk_record_fmt) + (blocks + 7) / 8 + (size_t)blocks * 4;
}

static bool all_present(const uint8_t *present, uint32_t blocks)
{
    for (uint32_t i = 0; i < blocks; i++)
        if (!(present[i / 8] & (1u << (i % 8))))
            return false;
    return true;
}

size_t chunk_record_encode(const uint8_t *key, size_t key_len, const struct chunk_record *r,
                           const uint8_t *present, const uint32_t *crcs, uint8_t *out)
{
    uint32_t blocks = chunk_blocks(r->len);
    uint16_t flags = (uint16_t)(all_present(present, blocks) ? 0 : CHUNK_RECORD_BITMAP);
    struct chunk_record_fmt f = {
        .version = CHUNK_FMT_VERSION,
        .slot_class = r->slot.class,
        .flags = htole16(flags),
        .slot_number = htole32(r->slot.number),
        .len = htole32(r->len),
        .write_version = htole64(r->write_version),
        .truncate_gen = htole64(r->truncate_gen),
        .op_ids = {htole64(r->op_ids[0]), htole64(r->op_ids[1])},
    };
    size_t at = sizeof f;

    memcpy(out, &f, sizeof f);
    if (flags & CHUNK_RECORD_BITMAP) {
        size_t bytes = (blocks + 7) / 8;

        memcpy(out + at, present, bytes);
        if (blocks % 8)
            out[at + bytes - 1] = (uint8_t)(out[at + bytes - 1] & ((1u << (blocks % 8)) - 1));
        at += bytes;
    }
    for (uint32_t i = 0; i < blocks; i++, at += 4)
        le32_store(out + at, crcs[i]);
    le32_store(out + offsetof(struct chunk_record_fmt, crc),
               record_crc(key, key_len, out, at, offsetof(struct chunk_record_fmt, crc)));
    return at;
}

int chunk_record_decode(const uint8_t *key, size_t key_len, const void *value, size_t len,
                        struct chunk_record *ret_record)
{
    struct chunk_record_fmt f;
    struct chunk_record r;
    size_t want = sizeof f;
    uint32_t blocks;
    int rc =
        record_check(key, key_len, value, len, sizeof f, offsetof(struct chunk_record_fmt, crc));

    if (rc)
        return rc;
    memcpy(&f, value, sizeof f);
    r = (struct chunk_record){
        .slot = {.number = le32toh(f.slot_number), .class = f.slot_class},
        .len = le32toh(f.len),
        .write_version = le64toh(f.write_version),
        .truncate_gen = le64toh(f.truncate_gen),
        .op_ids = {le64toh(f.op_ids[0]), le64toh(f.op_ids[1])},
    };
    if (r.len > CHUNK_MAX_BYTES)
        return -AIFS_ECORRUPT;
    if (r.slot.class && (r.slot.class < CHUNK_CLASS_MIN || r.slot.class > CHUNK_CLASS_MAX))
        return -AIFS_ECORRUPT;
    if (r.slot.class && r.len > (1u << r.slot.class))
        return -AIFS_ECORRUPT;
    blocks = chunk_blocks(r.len);
    if (le16toh(f.flags) & CHUNK_RECORD_BITMAP) {
        r.bitmap = (const uint8_t *)value + want;
        want += (blocks + 7) / 8;
    } else if (!r.slot.class && blocks) {
        return -AIFS_ECORRUPT;
    }
    if (want + (size_t)blocks * 4 != len)
        return -AIFS_ECORRUPT;
    r.crcs = (const uint8_t *)value + want;
    *ret_record = r;
    return 0;
}

bool chunk_record_present(const struct chunk_record *r, uint32_t block)
{
    return !r->bitmap || (r->bitmap[block / 8] & (1u << (block % 8)));
}

size_t inode_record_encode(const uint8_t *key, size_t key_len, const struct inode_record *r,
                           uint8_t out[sizeof(struct inode_record_fmt)])
{
    struct inode_record_fmt f = {
        .version = CHUNK_FMT_VERSION,
        .flags = r->tombstone ? INODE_RECORD_TOMBSTONE : 0,
        .truncate_gen = htole64(r->truncate_gen),
        .destroyed_ns = htole64(r->destroyed_ns),
    };

    memcpy(out, &f, sizeof f);
    le32_store(out + offsetof(struct inode_record_fmt, crc),
               record_crc(key, key_len, out, sizeof f, offsetof(struct inode_record_fmt, crc)));
    return sizeof f;
}

int inode_record_decode(const uint8_t *key, size_t key_len, const void *value, size_t len,
                        struct inode_record *ret_record)
{
    struct inode_record_fmt f;
    int rc =
        record_check(key, key_len, value, len, sizeof f, offsetof(struct inode_record_fmt, crc));

    if (rc)
        return rc;
    if (len != sizeof f)
        return -AIFS_ECORRUPT;
    memcpy(&f, value, sizeof f);
    *ret_record = (struct inode_record){
        .truncate_gen = le64toh(f.truncate_gen),
        .tombstone = f.flags & INODE_RECORD_TOMBSTONE,
        .destroyed_ns = le64toh(f.destroyed_ns),
    };
    return 0;
}

size_t log_record_encode(const uint8_t *key, size_t key_len, const struct log_record *r,
                         uint8_t out[LOG_RECORD_BYTES])
{
    struct log_record_fmt f = {
        .version = CHUNK_FMT_VERSION,
        .block_crc = htole32(r->block_crc),
        .write_version = htole64(r->write_version),
        .truncate_gen = htole64(r->truncate_gen),
        .op_id = htole64(r->op_id),
    };

    memcpy(out, &f, sizeof f);
    memcpy(out + sizeof f, r->data, CHUNK_BLOCK);
    le32_store(out + offsetof(struct log_record_fmt, crc),
               record_crc(key, key_len, out, sizeof f, offsetof(struct log_record_fmt, crc)));
    return LOG_RECORD_BYTES;
}

int log_record_decode(const uint8_t *key, size_t key_len, const void *value, size_t len,
                      struct log_record *ret_record)
{
    struct log_record_fmt f;
    const uint8_t *v = value;

    if (len != LOG_RECORD_BYTES)
        return -AIFS_ECORRUPT;
    int rc =
        record_check(key, key_len, v, sizeof f, sizeof f, offsetof(struct log_record_fmt, crc));
    if (rc)
        return rc;
    memcpy(&f, v, sizeof f);
    if (crc32c(v + sizeof f, CHUNK_BLOCK) != le32toh(f.block_crc))
        return -AIFS_ECORRUPT;
    *ret_record = (struct log_record){
        .block_crc = le32toh(f.block_crc),
        .write_version = le64toh(f.write_version),
        .truncate_gen = le64toh(f.truncate_gen),
        .op_id = le64toh(f.op_id),
        .data = v + sizeof f,
    };
    return 0;
}

size_t fence_record_encode(const uint8_t *key, size_t key_len, uint32_t generation,
                           uint8_t out[sizeof(struct fence_record_fmt)])
{
    struct fence_record_fmt f = {.version = CHUNK_FMT_VERSION, .generation = htole32(generation)};

    memcpy(out, &f, sizeof f);
    le32_store(out + offsetof(struct fence_record_fmt, crc),
               record_crc(key, key_len, out, sizeof f, offsetof(struct fence_record_fmt, crc)));
    return sizeof f;
}

int fence_record_decode(const uint8_t *key, size_t key_len, const void *value, size_t len,
                        uint32_t *ret_generation)
{
    struct fence_record_fmt f;
    int rc =
        record_check(key, key_len, value, len, sizeof f, offsetof(struct fence_record_fmt, crc));

    if (rc)
        return rc;
    if (len != sizeof f)
        return -AIFS_ECORRUPT;
    memcpy(&f, value, sizeof f);
    *ret_generation = le32toh(f.generation);
    return 0;
}
