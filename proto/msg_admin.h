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
};

struct msg_session_info {
    uint64_t session;
    uint32_t generation;
    struct msg_bytes host, mount, job, address;
    uint32_t pid;
    uint64_t seen_ns_ago;
    uint32_t opens, leases;
};

struct msg_status_rep {
    struct uuid fs;
    struct msg_bytes fs_name, version;
    uint64_t uptime_ns, inodes, map_epoch, commits, operations;
    uint64_t destroy_queue, punch_queue, recovery_queue, orphans, trash_queue;
    uint32_t n_nodes, n_sessions, n_trees;
    const struct msg_node_live *nodes;
    const struct msg_session_info *sessions;
    const struct msg_trash_tree *trees; /* the oldest, at most MSG_TREES_MAX */
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
