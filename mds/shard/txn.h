/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operation sees while it executes: the shard's state with the changes of all operations
 * before it, as decoded objects. Reads come from the overlay, else from the store; changes stay in
 * the overlay until the batch is committed. If the operation returns an error, everything it
 * changed is undone.
 *
 * Execution is deterministic: it reads the transaction and its entry, nothing else; no clock, no
 * random number, no configuration that can differ between replicas. Threads: the shard's writer
 * only. Pointers returned are valid until the operation returns, unless said otherwise. Errors:
 * -ENOENT (absent), -ENOMEM, -EIO, -AIFS_ECORRUPT, -AIFS_EFORMAT.
 */
#ifndef AIFS_MDS_SHARD_TXN_H
#define AIFS_MDS_SHARD_TXN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/compiler.h"
#include "mds/store/key_fmt.h"
#include "mds/store/rec.h"

struct txn;

/* ---- inodes ---- */
int txn_inode_get(struct txn *t, uint64_t ino, const struct mds_inode **ret_inode) MUST_USE;
/* For change: the caller writes into it; it is stored with the batch. The same pointer as
 * txn_inode_get(). */
int txn_inode_modify(struct txn *t, uint64_t ino, struct mds_inode **ret_inode) MUST_USE;
/* A new one, all zero but for ino; -EEXIST. */
int txn_inode_create(struct txn *t, uint64_t ino, struct mds_inode **ret_inode) MUST_USE;
/* The same with a number that was never handed out before: it is not looked for in the store. */
int txn_inode_new(struct txn *t, uint64_t ino, struct mds_inode **ret_inode) MUST_USE;
/* -AIFS_ECORRUPT: the store has inodes among the n numbers from first on, all to be handed out. */
int txn_inodes_unused(struct txn *t, uint64_t first, uint64_t n) MUST_USE;
int txn_inode_delete(struct txn *t, uint64_t ino) MUST_USE;

/* ---- names; name_len 1..255, checked by the caller ---- */
int txn_dirent_get(struct txn *t, uint64_t parent, const void *name, uint32_t name_len,
                   struct mds_dirent *ret_dirent) MUST_USE;
/* Adds the name, or lets an existing one point elsewhere (it keeps its ordinal and thereby its
 * cookie). -ENOSPC: 65535 names with one hash. */
int txn_dirent_put(struct txn *t, uint64_t parent, const void *name, uint32_t name_len,
                   uint64_t ino, uint8_t type) MUST_USE;
int txn_dirent_delete(struct txn *t, uint64_t parent, const void *name, uint32_t name_len) MUST_USE;

/* ---- any other record, as bytes ---- */
int txn_record_get(struct txn *t, const struct key *k, const void **ret_value,
                   uint32_t *ret_len) MUST_USE;
int txn_record_put(struct txn *t, const struct key *k, const void *value, uint32_t len) MUST_USE;
/* The same where the store has no such record, as of an inode that is new: it is not asked. */
int txn_record_add(struct txn *t, const struct key *k, const void *value, uint32_t len) MUST_USE;
int txn_record_delete(struct txn *t, const struct key *k) MUST_USE; /* an absent one is no error */
/*
 * Every record whose key begins with prefix (not inodes, not dirents), in no particular order: fn
 * returns 0 to go on, 1 to stop, or an error, which is returned. fn may change records.
 */
typedef int txn_scan_fn(void *arg, const struct key *k, const void *value, uint32_t len);
int txn_record_scan(struct txn *t, const struct key *prefix, txn_scan_fn *fn, void *arg) MUST_USE;

/* ---- numbers ---- */
int txn_counter_add(struct txn *t, enum key_counter c, int64_t n,
                    uint64_t *ret_before) MUST_USE; /* the first of n; may be NULL */

/* ---- the surroundings ---- */
int64_t txn_now_ns(const struct txn *t); /* the entry's time stamp */
struct msg_time txn_now(const struct txn *t);
uint64_t txn_index(const struct txn *t); /* of the entry */
uint32_t txn_shard(const struct txn *t);
void *
txn_alloc(struct txn *t,
          size_t size) MUST_USE; /* lives until the entry's done() has returned: for replies */

/* Shared steps of operations, in txn_ops.c. */
/* Queues work on the chunks of a file; ino's older item of the same kind is replaced. */
int txn_queue_put(struct txn *t, enum key_type queue, const struct mds_inode *in,
                  uint64_t session) MUST_USE;
/* A growth of a small file may have left chunks that no size speaks of: a raised truncate
 * generation makes the targets drop all of them and refuse what is still under way. in: of
 * txn_inode_modify(); session: the evicted one, or 0. */
int txn_inode_cut_strays(struct txn *t, struct mds_inode *in, uint64_t session) MUST_USE;
/* The inode and everything that belongs to it is gone; chunks, if any, are queued for destruction.
 * For orphans whose last opener has closed, and unlinked files nobody has open. tree: the removed
 * tree it was part of, which has to wait for these chunks; or 0. */
int txn_inode_destroy(struct txn *t, uint64_t ino, uint64_t tree, bool *ret_queued) MUST_USE;

#endif
