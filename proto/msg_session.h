/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of sessions: opened, renewed, reclaimed. Part of msg.h: include that. */
#ifndef AIFS_PROTO_MSG_SESSION_H
#define AIFS_PROTO_MSG_SESSION_H

#include "proto/msg.h"

struct msg_session_open_req {
    struct uuid client; /* this mount or library instance; opening again with the same one takes the
                           session over */
    struct msg_bytes host, mount, job;
    uint32_t pid;
    bool read_only;
};

struct msg_session_open_rep {
    uint64_t session;
    uint32_t generation;
    uint32_t slots;
    uint64_t lease_ns;
    int64_t wall_ns; /* the server's clock */
    uint64_t root, map_epoch;
    uint32_t inline_max;
    struct uuid fs;
    struct msg_bytes fs_name;
    bool reclaim; /* the server has restarted: RECLAIM before anything else */
};

/* What has been waiting for an object storage server for long, of one inode and one target. */
#define MSG_SERVER_WAITS_MAX 32u

struct msg_server_wait {
    uint32_t target;
    uint64_t ino;
    bool write;        /* to write, or to make durable; else to read */
    uint32_t requests; /* so many transfers */
    uint32_t pid;      /* of a process that waits for them; 0: none is known */
    uint64_t age_ns;   /* of the oldest */
};

struct msg_renew_req { /* SESSION_RENEW; an older client sends an empty one */
    uint32_t n_waits;
    const struct msg_server_wait *waits;
};

struct msg_renew_rep {
    uint64_t lease_ns;
    int64_t wall_ns;
    uint64_t map_epoch;
};

struct msg_reclaim_item {
    uint64_t ino, open_id;
    uint32_t open_flags;
    enum msg_lease lease;
    uint64_t lease_seq;
};

struct msg_reclaim_req {
    uint32_t n_items;
    const struct msg_reclaim_item *items;
    bool last;
    bool unsettled; /* removals that were answered ahead are still to be executed; sent again, with
                       no items, when there are none any more */
};

#endif
