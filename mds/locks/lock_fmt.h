/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of locks, little-endian. KEY_LOCK of an inode holds all its locks, in order; it exists
 * only while there are any. KEY_LOCK_SESSION (session, ino) holds how many of them the session has,
 * and (session, 0) how many it has in all: u32 each; neither exists with 0.
 */
#ifndef AIFS_MDS_LOCKS_LOCK_FMT_H
#define AIFS_MDS_LOCKS_LOCK_FMT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/compiler.h"
#include "mds/locks/list.h"

#define LOCK_REC_VERSION 1u

struct lock_head {
    uint32_t version;
    uint32_t count;
};
static_assert(sizeof(struct lock_head) == 8, "head of a lock record");

struct lock_rec {
    uint64_t start, end; /* inclusive */
    uint64_t session, owner;
    int64_t since_ns;
    uint32_t pid;
    uint8_t kind, type;
    uint16_t zero;
};
static_assert(sizeof(struct lock_rec) == 48, "lock record");
static_assert(offsetof(struct lock_rec, kind) == 44, "lock record");

static inline uint32_t lock_rec_bytes(uint32_t n)
{
    return (uint32_t)(sizeof(struct lock_head) + n * sizeof(struct lock_rec));
}

void lock_rec_encode(const struct lock *list, uint32_t n, void *out); /* lock_rec_bytes(n) */
/* How many locks the record has: at most LOCKS_INODE_MAX. -AIFS_EFORMAT, -AIFS_ECORRUPT. */
int lock_rec_count(const void *rec, uint32_t len, uint32_t *ret_n) MUST_USE;
int lock_rec_decode(const void *rec, uint32_t len, struct lock *ret_list) MUST_USE; /* counted */

#endif
