/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ordered, durable key-value store of one shard: RocksDB behind an interface of our own.
 *
 * Threads: any, but one batch belongs to one thread, and store_commit() is called by one thread at
 * a time (the shard's writer). Everything that touches the disk may block: on a reactor only gets
 * and scans of warm data are acceptable. Errors: -EIO (logged here once with RocksDB's text),
 * -ENOSPC, -AIFS_ECORRUPT, -ENOENT for an absent key. After a failed commit the store refuses all
 * further commits.
 */
#ifndef AIFS_MDS_STORE_STORE_H
#define AIFS_MDS_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/compiler.h"
#include "mds/store/key_fmt.h"

struct store;
struct store_batch;
struct store_snapshot;
struct store_iter;

struct store_options {
    uint64_t cache_bytes;    /* block cache; 0: 64 MiB */
    uint64_t memtable_bytes; /* 0: 32 MiB */
    bool create;             /* make a new store; else an absent one is -ENOENT */
    bool read_only;
};

int store_open(const char *path, const struct store_options *o, struct store **ret_store) MUST_USE;
void store_close(struct store *s); /* all snapshots, iterators and values given back */

/* A value in place: valid until store_value_release(). */
struct store_value {
    const void *data;
    size_t len;
    void *pin;
};
/* snap NULL: newest. -ENOENT. */
int store_get(struct store *s, const struct store_snapshot *snap, const void *key, size_t key_len,
              struct store_value *ret_value) MUST_USE;
void store_value_release(struct store_value *v); /* no-op when empty */
/* n sorted keys at once; values[i].data is NULL where the key is absent. */
int store_multi_get(struct store *s, const struct store_snapshot *snap, size_t n,
                    const struct key *keys, struct store_value *ret_values) MUST_USE;

/* Keys with this prefix, in order, as of snap (NULL: of now). Key and value are valid until the
 * next move. */
int store_iter_create(struct store *s, const struct store_snapshot *snap, const void *prefix,
                      size_t prefix_len, struct store_iter **ret_iter) MUST_USE;
void store_iter_seek(struct store_iter *it, const void *key, size_t key_len); /* first key >= key */
/* To another hash of a directory, as of the same moment; only for prefixes that are one. */
void store_iter_move(struct store_iter *it, const void *prefix, size_t prefix_len);
bool store_iter_valid(struct store_iter *it); /* still within the prefix */
void store_iter_next(struct store_iter *it);
const void *store_iter_key(struct store_iter *it, size_t *ret_len);
const void *store_iter_value(struct store_iter *it, size_t *ret_len);
int store_iter_error(struct store_iter *it) MUST_USE; /* 0, or why it is not valid */
void store_iter_destroy(struct store_iter *it);
/* The first key of [from, to), as of now, without a walk over what was deleted from `to` on.
 * -ENOENT: there is none. */
int store_first(struct store *s, const struct key *from, const struct key *to,
                struct key *ret_key) MUST_USE;

int store_batch_create(struct store *s, struct store_batch **ret_batch) MUST_USE;
void store_batch_destroy(struct store_batch *b);
void store_batch_put(struct store_batch *b, const void *key, size_t key_len, const void *value,
                     size_t value_len);
void store_batch_delete(struct store_batch *b, const void *key, size_t key_len);
size_t store_batch_bytes(const struct store_batch *b);
/* All of it or nothing, also over a crash; with sync it is on the disk when this returns. The batch
 * is empty afterwards. */
int store_commit(struct store *s, struct store_batch *b, bool sync) MUST_USE;

/* A consistent state to read from, reference counted by its users through the shard's view. */
struct store_snapshot *store_snapshot_take(struct store *s);
void store_snapshot_release(struct store *s, struct store_snapshot *snap);

enum store_flow { STORE_FLOWING, STORE_SLOW, STORE_STOPPED };
enum store_flow
store_flow(struct store *s); /* does RocksDB delay or stop writers? Cheap enough for every batch */
uint64_t store_free_bytes(struct store *s); /* of the file system it is on */

#endif
