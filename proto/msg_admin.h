/* SPDX-License-Identifier: Apache-2.0 */
/* Messages for administrators: the state of the cluster, trees removed, dumps. Part of msg.h:
 * include that. */
#ifndef AIFS_PROTO_MSG_ADMIN_H
#define AIFS_PROTO_MSG_ADMIN_H

#include "proto/msg.h"

#define MSG_TREES_MAX 64u

struct msg_rmtree_req { /* the directory ino loses its name in parent; what is in it goes later */
    uint64_t parent, ino;
    struct msg_bytes name;
};

struct msg_trash_tree { /* a removed tree that is not wholly gone */
    uint64_t ino;       /* that it had */
    struct msg_bytes name;
    uint64_t started_ns_ago;
    uint64_t directories, objects, removed; /* left; files whose chunks are left; names gone */
};

struct msg_node_live {
    uint32_t id;
    uint64_t seen_ns_ago;
    uint32_t n_targets;
    const struct msg_target_stat *targets;
    bool disconnected; /* the connection that its heartbeats came over is closed */
};

#define MSG_SESSION_LIVE     0u /* or it is not said */
#define MSG_SESSION_RECLAIMS 1u /* has not said yet what it had before the server started again */
#define MSG_SESSION_CLOSING  2u
#define MSG_SESSION_EVICTED  3u /* what it had is being taken care of */

struct msg_session_info {
    uint64_t session;
    uint32_t generation;
    struct msg_bytes host, mount, job, address;
    uint32_t pid;
    uint64_t seen_ns_ago;
    uint32_t opens, leases;
    uint32_t state;    /* MSG_SESSION_* */
    bool disconnected; /* no connection of its client is open */
    uint32_t waiting;  /* transfers that wait for an object storage server, as it says */
    uint32_t waits_target;
    uint64_t waits_ns; /* the oldest of them: for this target, for so long */
};

/* A server offers a new target where one of the map lived that is not there any more. */
struct msg_refused_target {
    uint32_t instead_of;
    struct msg_bytes alias, path; /* of the server */
    uint64_t seen_ns_ago; /* its last registration: once a second while it has nothing else */
};

struct msg_status_rep {
    struct uuid fs;
    struct msg_bytes fs_name, version;
    uint64_t uptime_ns, inodes, map_epoch, commits, operations;
    uint64_t destroy_queue, punch_queue, recovery_queue, orphans, trash_queue;
    uint32_t n_nodes, n_sessions, n_trees, n_refused;
    const struct msg_node_live *nodes;
    const struct msg_session_info *sessions;
    const struct msg_trash_tree *trees; /* the oldest, at most MSG_TREES_MAX */
    const struct msg_refused_target *refused;
    uint64_t lease_ns; /* a session that is silent for so long is evicted; 0: not said */
};

/*
 * LOAD: what came over each connection of a server since it was made. The difference of two answers
 * of one boot is the load in between. A client's connection has one session, and a session one job
 * (of a mount, or a process with libaifs).
 */
struct msg_load {
    uint64_t link;         /* different for each connection of one boot */
    uint64_t session, job; /* of its last request with one; 0: none yet */
    uint32_t role;         /* enum crypto_role */
    struct msg_bytes name; /* server, or host of the client */
    uint64_t operations;   /* answered, but for those that only keep a connection or ask for this */
    uint64_t read_bytes, written_bytes; /* payload; what is in an inode is not */
    uint64_t busy_ns;                   /* from arrival to answer, of all of them together */
    uint32_t waiting, oldest_op;        /* not answered yet; and the first of them */
    uint64_t oldest_ns;
};

struct msg_load_rep {
    struct uuid boot;
    uint64_t now_ns; /* of the server's clock */
    uint32_t n_links;
    const struct msg_load *links; /* at most MSG_ITEMS_MAX */
    bool more;
};

/*
 * WAITS: who waits for another client at the metadata server, and for whom; and who waits for an
 * object storage server, as clients say themselves when they renew their sessions. Not what waits
 * for a disk or its turn: that is in LOAD.
 */
#define MSG_WAITS_MAX 256u

#define MSG_WAIT_RECORD 0u /* a record lock of fcntl(2) */
#define MSG_WAIT_FLOCK  1u
#define MSG_WAIT_DATA                                                                              \
    2u /* data of the file that the other is to write back, and to give up, or its size */
#define MSG_WAIT_CACHE  3u /* a change: the other is told first that what it has cached is over */
#define MSG_WAIT_SERVER 4u /* an object storage server; other.host is its alias */

/* Of MSG_WAIT_SERVER: why. */
#define MSG_SERVER_SLOW    0u /* it is there */
#define MSG_SERVER_DOWN    1u
#define MSG_SERVER_MISSING 2u /* it is there without this target */

struct msg_wait_end {
    uint64_t session; /* 0: the server itself */
    struct msg_bytes host, mount, job;
    uint32_t pid;    /* of the process, as its client names it; 0: not known */
    uint64_t age_ns; /* it waits, or holds what is waited for; 0: not known */
};

struct msg_wait {
    uint32_t kind; /* MSG_WAIT_*, or one of a later version */
    bool write;    /* to write, or change; else to read */
    uint64_t ino;
    uint64_t start, end; /* of a record lock, as in struct msg_lock */
    struct msg_wait_end who, other;
    bool has_other;                          /* false: it comes after others that wait */
    bool other_waits;                        /* it holds nothing yet, but came first */
    uint32_t target, requests, server_state; /* of MSG_WAIT_SERVER */
};

struct msg_waits_rep {
    uint32_t n_waits;
    const struct msg_wait *waits; /* those of a kind by age, the oldest first */
    bool more;                    /* than fit */
};

struct msg_dump_req { /* DUMP: next records of a consistent snapshot, as bulk, in the format of
                         mds/store/dump_fmt.h */
    uint64_t dump;    /* 0: begin */
    bool end;         /* give the snapshot back */
    struct msg_bytes after; /* last key seen */
};

struct msg_dump_rep {
    uint64_t dump;
    uint64_t records;
    bool eof;
};

#endif
