/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of a target: RocksDB in index/, keys and values as in chunk_fmt.h. WAL on, no
 * compression, one write batch and one sync per commit.
 *
 * Threads: index_write() by the committer, all else by the reactor; RocksDB itself takes any.
 * Point reads and short scans are done on the reactor: they cost microseconds while the blocks are
 * cached, and chunks in use never come here.
 */
#ifndef AIFS_OSS_CHUNK_INDEX_H
#define AIFS_OSS_CHUNK_INDEX_H

#include <rocksdb/c.h>
#include <stdbool.h>
#include <stdint.h>

#include "oss/chunk/chunk_fmt.h"

struct index_options {
    uint64_t memtable_bytes;
    uint64_t block_cache_bytes;
};

struct index {
    const char *tag; /* for logs; borrowed */
    rocksdb_t *db;
    rocksdb_options_t *options;
    rocksdb_block_based_table_options_t *table;
    rocksdb_cache_t *cache;
    rocksdb_readoptions_t *ro, *ro_scan, *ro_range;
    rocksdb_writeoptions_t *wo;
};

bool index_is_there(const char *dir); /* true also when nobody can tell */
/* dir: where its files are, or will be; target: what the log calls that. */
int index_open(struct index *x, const char *dir, const char *target, const char *tag,
               const struct index_options *o) MUST_USE;
void index_close(struct index *x);
/* The value, freed by index_value_free(); -ENOENT, -EIO. */
int index_get(struct index *x, const uint8_t *key, size_t key_len, char **ret_value,
              size_t *ret_len) MUST_USE;
void index_value_free(char *value);
/* Durable when it returns 0. */
int index_write(struct index *x, rocksdb_writebatch_t *batch) MUST_USE;

/* A scan: for (index_scan_start(); index_scan_valid(); index_scan_next()). */
struct index_scan {
    rocksdb_iterator_t *it;
    const uint8_t *key, *value;
    size_t key_len, value_len;
};
void index_scan_start(struct index *x, struct index_scan *s, const uint8_t *key, size_t key_len);
/* Ends before the key end, without a look at what is there; both keys stay where they are. */
void index_scan_start_range(struct index *x, struct index_scan *s, const uint8_t *key,
                            size_t key_len, const uint8_t *end, size_t end_len);
/* From the last key that is not above key, backwards with index_scan_prev(). */
void index_scan_start_back(struct index *x, struct index_scan *s, const uint8_t *key,
                           size_t key_len);
bool index_scan_valid(struct index_scan *s); /* fills key and value */
void index_scan_next(struct index_scan *s);
void index_scan_prev(struct index_scan *s);
int index_scan_end(struct index *x,
                   struct index_scan *s) MUST_USE; /* 0 or -EIO: the scan is not whole */

#endif
