/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks of files (docs/protocols.md 10): LOCK, LOCK_TEST, LOCK_CANCEL, LOCK_LIST, and who waits.
 * What is held is durable (exec.h), the line of those who wait is in memory (queue.h). Threads: the
 * server's reactor.
 */
#ifndef AIFS_MDS_LOCKS_LOCKS_H
#define AIFS_MDS_LOCKS_LOCKS_H

#include "mds/locks/exec.h"
#include "mds/mds.h"

extern const struct mds_module mds_locks_module;

/* The session asks for nothing any more: its waits are over. What it holds stays until freed. */
void locks_session_end(struct mds *m, uint64_t session);
/* These locks are committed as freed: who waited may go on. */
void locks_freed(struct mds *m, const struct locks_freed *freed);

/* For WAITS: those who wait for a lock, the oldest first. */
void locks_waits(struct mds *m, struct mds_waits *out);

#endif
