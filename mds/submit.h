/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries that the server itself submits: sent again while the shard is out of room, so that their
 * owner sees only an outcome. Embedded in its owner, who keeps it (and what msg points to) until
 * done(). done() runs on the reactor exactly once, never from inside mds_submit(); the outcome is
 * in s->entry. A shard that closes or has failed ends the retries.
 */
#ifndef AIFS_MDS_SUBMIT_H
#define AIFS_MDS_SUBMIT_H

#include "mds/mds.h"

struct mds_submit {
    struct shard_entry entry;
    struct mds *mds;
    struct shard *shard;
    struct reactor_timer timer;
    void (*done)(struct mds_submit *s);
};

/* op: enum shard_op. msg must not be what an earlier use of s left in its arena. */
void mds_submit(struct mds *m, struct mds_submit *s, struct shard *shard, unsigned op,
                const void *msg, uint32_t flags, void (*done)(struct mds_submit *s));
void mds_submit_fini(struct mds_submit *s); /* frees the outcome */

#endif
