/* SPDX-License-Identifier: Apache-2.0 */
/* What the lock module has the shard execute. LOCK comes from the wire and is one of them. */
#ifndef AIFS_MDS_LOCKS_EXEC_H
#define AIFS_MDS_LOCKS_EXEC_H

#include "mds/shard/shard.h"

/* SHARD_OP_LOCKS_FREE: all that an evicted session holds, but for those of some files. Its client
 * believes in nothing any more, and the session's record says so. Reply: struct locks_freed */
struct locks_free {
    uint64_t session;
    uint32_t n_kept;
    const uint64_t *kept; /* inodes, in order */
};

struct locks_freed {
    uint32_t n_inos;
    const uint64_t *inos; /* whose locks have changed */
    bool left;            /* it has some of kept files */
};

/* RPC_OP_LOCK: never waits; not granted is an outcome, not an error. -ENOENT, -ENOLCK. */
int exec_lock(struct txn *t, struct shard_entry *e, const void **ret_rep);
int exec_locks_free(struct txn *t, struct shard_entry *e, const void **ret_rep);
/* The same, as a step of others. */
int txn_locks_free(struct txn *t, const struct locks_free *msg,
                   struct locks_freed *ret_freed) MUST_USE;

#endif
