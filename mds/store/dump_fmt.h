/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dump of a metadata shard: all records of one consistent snapshot, in key order. The same record
 * form is used in the pages of the DUMP operation and in the file that `aifs-admin mds dump` makes
 * of them: file = header, records, trailer. Little-endian. Every record carries its own CRC32C, so
 * damage is found where it is; the trailer tells a whole dump from one that was cut short.
 */
#ifndef AIFS_MDS_STORE_DUMP_FMT_H
#define AIFS_MDS_STORE_DUMP_FMT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/compiler.h"

#define DUMP_MAGIC     "AIFSDUMP"
#define DUMP_VERSION   1u
#define DUMP_KEY_MAX   1024u
#define DUMP_VALUE_MAX (1u << 20)  /* as much as one message: the cluster map */
#define DUMP_END       0xffffffffu /* key_len of the trailer */

struct dump_header {
    char magic[8];
    uint32_t version;
    uint32_t crc; /* of the header with this field 0 */
    uint8_t fs[16];
    int64_t created_ns;
    uint64_t reserved[3];
};
static_assert(sizeof(struct dump_header) == 64, "dump header");

struct dump_record { /* key and value follow */
    uint32_t key_len;
    uint32_t value_len;
    uint32_t crc; /* of key_len, value_len, key, value */
};
static_assert(sizeof(struct dump_record) == 12, "dump record");

struct dump_trailer {
    uint32_t key_len; /* DUMP_END */
    uint32_t crc;     /* of records */
    uint64_t records;
};
static_assert(sizeof(struct dump_trailer) == 16, "dump trailer");

/* One record seen in memory. */
struct dump_item {
    const void *key, *value; /* into the buffer */
    uint32_t key_len, value_len;
    size_t size; /* whole record */
};

/* Appends to buf; -ENOSPC when it does not fit any more, -EFBIG when it never will. */
int dump_append(void *buf, size_t cap, size_t *len, const void *key, size_t key_len,
                const void *value, size_t value_len) MUST_USE;
/* The record at the start of buf. 0; -EAGAIN: more bytes needed; -AIFS_ECORRUPT. */
int dump_parse(const void *buf, size_t len, struct dump_item *ret_item) MUST_USE;

/*
 * Loads the dump that fd delivers into a new store in dir (which must be absent or empty: -EEXIST).
 * -AIFS_ECORRUPT with a sentence in err. What fails leaves things as they were: no directory, or
 * the empty one that was there.
 */
int dump_load(int fd, const char *dir, uint64_t *ret_records, char *err, size_t err_len) MUST_USE;

#endif
