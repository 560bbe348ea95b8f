/* SPDX-License-Identifier: Apache-2.0 */
/* Messages about locks of files (docs/protocols.md 10). Part of msg.h: include that. */
#ifndef AIFS_PROTO_MSG_LOCK_H
#define AIFS_PROTO_MSG_LOCK_H

#include "proto/msg.h"

#define MSG_LOCK_RECORD 0u /* fcntl(2): of a process, or of an open file */
#define MSG_LOCK_FLOCK  1u /* flock(2): the whole file; the two kinds do not see each other */

#define MSG_LOCK_READ   0u
#define MSG_LOCK_WRITE  1u
#define MSG_LOCK_UNLOCK 2u

#define MSG_LOCK_END ((uint64_t)INT64_MAX) /* a range to here ends with the file, wherever */

struct msg_lock {
    uint32_t kind, type; /* MSG_LOCK_* */
    uint64_t start, end; /* both inclusive */
    uint64_t owner;      /* as the client names it, unique within its session */
    uint64_t session;    /* in replies */
    uint32_t pid;        /* for people */
};

struct msg_lock_req { /* LOCK, LOCK_TEST */
    uint64_t ino, open_id;
    struct msg_lock lock;
    uint64_t wait; /* 0: do not wait; else the client's name for this wait, unique within its
                      session, and the same when it asks again */
};

struct msg_lock_rep {
    bool granted; /* or released; LOCK_TEST: would be */
    bool queued;  /* LOCK_WAKE comes when it is worth asking again */
    bool has_other;
    struct msg_lock other; /* that is in the way, or not yet served though it came first */
};

struct msg_lock_wait { /* LOCK_CANCEL, LOCK_WAKE */
    uint64_t ino, wait;
};

struct msg_lock_info {
    struct msg_lock lock;
    bool waits;
    uint64_t age_ns; /* since it is held, or waits */
    struct msg_bytes host, mount;
};

struct msg_lock_list_rep {
    uint32_t n_locks;
    const struct msg_lock_info *locks;
    bool more; /* than fit */
};

#endif
