/* SPDX-License-Identifier: Apache-2.0 */
/* What the session module has the shard execute. */
#ifndef AIFS_MDS_SESSION_EXEC_H
#define AIFS_MDS_SESSION_EXEC_H

#include "common/base/ids.h"
#include "mds/shard/shard.h"

/* SHARD_OP_SESSION_CREATE; reply: struct session_created */
struct session_create {
    struct uuid client, node;
    uint32_t generation, pid;
    bool read_only;
    struct msg_bytes host, mount, job; /* cut to what the record holds */
};

struct session_created {
    uint64_t session;
};

/*
 * SHARD_OP_SESSION_EVICT; reply: struct session_evicted. inos: files it may have been writing:
 * those with chunks are queued for recovery of their size; inline ones may have been growing: what
 * a growth left behind is queued to be cut. Evicting an evicted session changes nothing.
 */
struct session_evict {
    uint64_t session;
    uint32_t n_inos;
    const uint64_t *inos;
};

struct session_evicted {
    uint64_t fence;
    uint32_t generation;
    uint32_t n_recover, n_punch; /* queued in KEY_RECOVER, KEY_PUNCH */
    const uint64_t *recover, *punch;
};

/* SHARD_OP_SESSION_REMOVE: record, slots and locks; an absent one is no error. Reply: struct
 * locks_freed. */
struct session_remove {
    uint64_t session;
};

/* SHARD_OP_FENCE_FORGET */
struct session_fence_forget {
    uint32_t n;
    const uint64_t *fences;
};

/* SHARD_OP_BOOT has no msg; reply: struct session_booted */
struct session_booted {
    uint64_t boot; /* from 1 */
};

int exec_session_create(struct txn *t, struct shard_entry *e, const void **ret_rep);
int exec_session_evict(struct txn *t, struct shard_entry *e, const void **ret_rep);
int exec_session_remove(struct txn *t, struct shard_entry *e, const void **ret_rep);
int exec_fence_forget(struct txn *t, struct shard_entry *e, const void **ret_rep);
int exec_boot(struct txn *t, struct shard_entry *e, const void **ret_rep);

#endif
