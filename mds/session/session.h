/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions of clients, what they have open, and their data leases. What dispatch uses is struct
 * mds_session_ops (mds/mds.h); this is what the other modules of the server use. Threads: the
 * server's reactor.
 */
#ifndef AIFS_MDS_SESSION_SESSION_H
#define AIFS_MDS_SESSION_SESSION_H

#include "mds/mds.h"

extern const struct mds_module mds_session_module;

/* The fence that a target must have before it is asked about files of this session. UINT64_MAX: it
 * is not evicted (yet); 0: it is gone. */
uint64_t session_fence(struct mds *m, uint64_t session);
/* A file's item in KEY_RECOVER or KEY_PUNCH is done: what held it for a dead writer is free. */
void session_item_done(struct mds *m, enum key_type queue, uint64_t ino);
/* Tells every session that there is a new cluster map. */
void session_push_map(struct mds *m, uint64_t epoch);
/* For STATUS: in the arena. -ENOMEM. */
int session_list(struct mds *m, struct arena *a, const struct msg_session_info **ret_sessions,
                 uint32_t *ret_n) MUST_USE;
/* A hint to its client, if it is connected: sent once. msg is copied, and points nowhere. */
void session_tell(struct mds *m, uint64_t session, unsigned op, const void *msg, size_t msg_bytes);
bool session_has_open(struct mds *m, uint64_t session, uint64_t ino, uint64_t open_id);
/* Borrowed until the session ends. false: there is none. */
bool session_who(struct mds *m, uint64_t session, struct msg_bytes *ret_host,
                 struct msg_bytes *ret_mount);
/* For WAITS: who it is (nothing but its number when it is gone), borrowed likewise; and those who
 * wait for what other sessions have cached. */
void session_describe(struct mds *m, uint64_t session, struct msg_wait_end *ret_end);
void session_waits(struct mds *m, struct mds_waits *out);
void session_server_waits(struct mds *m, struct mds_waits *out); /* for object storage servers */
/* Has the time after a restart passed in which sessions reclaim what they had? */
bool session_grace_over(struct mds *m);

#endif
