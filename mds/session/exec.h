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

/* That a session may be writing a file: KEY_WRITER. */
struct session_mark {
    uint64_t session, ino, id;
    bool if_inline; /* to go only if the file is inline: without a write lease it can not grow */
};

/* SHARD_OP_SESSION_UNMARK: marks go, unless a later open has renewed them. */
struct session_unmark {
    uint32_t n;
    const struct session_mark *marks;
};

/*
 * SHARD_OP_SESSION_EVICT; reply: struct session_evicted. Of the files that it may have been writing
 * (its marks, but for those that the leader knows better: spared), those with chunks are queued for
 * recovery of their size; inline ones may have been growing: what a growth left behind is queued to
 * be cut. Evicting an evicted session changes nothing.
 */
struct session_evict {
    uint64_t session;
    bool safe; /* SESSION_REC_SAFE */
    struct session_unmark spared;
};

/* From then on its client believes in nothing any more: SESSION_REC_SAFE. */
int txn_session_safe(struct txn *t, uint64_t session) MUST_USE;

struct session_evicted {
    uint64_t fence;
    uint32_t generation;
    uint32_t n_recover, n_punch; /* queued in KEY_RECOVER, KEY_PUNCH */
    const uint64_t *recover, *punch;
};

/* SHARD_OP_SESSION_REMOVE: record, slots, marks, numbers and locks; an absent one is no error.
 * Reply: struct locks_freed. */
struct session_remove {
    uint64_t session;
};

/* SHARD_OP_SESSION_ALONE: it may have answered removals ahead, or cannot have. -ENOENT: it is gone;
 * of an evicted one nothing changes. */
struct session_set_alone {
    uint64_t session;
    bool alone;
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
int exec_session_alone(struct txn *t, struct shard_entry *e, const void **ret_rep);
int exec_session_unmark(struct txn *t, struct shard_entry *e, const void **ret_rep);

/* A step of opening operations: if the leader says so, the session may be writing ino. */
int exec_mark_writer(struct txn *t, const struct shard_entry *e, uint64_t ino) MUST_USE;

/* A step of what makes files under given numbers: the caller's session has used this one up.
 * -AIFS_EPROTO: it is not the session's (in a directory of that shard), or it has been used, or it
 * is so far behind others that nobody knows. */
int exec_given_number(struct txn *t, const struct shard_entry *e, uint64_t dir,
                      uint64_t ino) MUST_USE;

#endif
