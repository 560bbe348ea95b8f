/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metadata server's parts and the seams between them.
 *
 *   dispatch  takes requests from the wire: reads are answered from the committed view, changes are
 *             resolved, prepared, submitted, answered
 *   shard     executes and commits (mds/shard)
 *   session   sessions, opens, data leases, recalls, glimpses, eviction: the leader's memory
 *             (struct mds_session_ops)
 *   cluster   the map, nodes, targets, pools, heartbeats (struct mds_cluster_ops)
 *   locks     locks of files, and who waits for them (mds/locks/locks.h)
 *   gc        workers of the destroy, punch, recovery and trash queues (struct mds_gc_ops)
 *
 * Life of a change: dispatch resolves names in the view → session.prepare() freezes the touched
 * inodes and recalls conflicting leases; ready() → the entry is submitted → done → session.finish()
 * unfreezes and registers what was opened → gc is kicked → reply. On -AIFS_ERETRY from execution,
 * finish() and once more from the start (at most MDS_RETRY_MAX times). Which operation is whose:
 * session serves SESSION_*, RECLAIM, CLOSE, LEASE_GET, LEASE_RELEASE; cluster serves MAP_GET,
 * NODE_REGISTER, HEARTBEAT, STATUS, POOL_*, DUMP; gc serves RMTREE; dispatch the rest of 32..56.
 *
 * Threads: everything here belongs to the server's reactor.
 */
#ifndef AIFS_MDS_MDS_H
#define AIFS_MDS_MDS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"
#include "common/conf/conf.h"
#include "common/rt/reactor.h"
#include "common/rt/thread.h"
#include "mds/shard/shard.h"
#include "mds/shard/view.h"
#include "proto/map.h"
#include "proto/msg.h"
#include "proto/rpc.h"

#define MDS_SHARDS_MAX 4096
#define MDS_RETRY_MAX  16

struct mds;

/* ---- session ---- */

enum mds_access {
    MDS_ACCESS_NAME = 1, /* its name or attributes change, its data does not */
    MDS_ACCESS_TIMES,  /* atime or mtime are set: a writer's own mtime must not come later and undo
                          it */
    MDS_ACCESS_UNLINK, /* loses a name; out: is_open */
    MDS_ACCESS_OPEN,   /* open_flags: O_ACCMODE and O_TRUNC; out: open_id, lease, lease_seq */
    MDS_ACCESS_CUT,    /* size is set: leases of others are recalled */
    MDS_ACCESS_WRITE,  /* WRITE_INLINE, APPEND_RANGE without a lease: leases of others are recalled;
                          open_id must be open for writing (-EBADF) */
    MDS_ACCESS_REPORT, /* SIZE, GROW: never waits for a freeze or a recall; open_id must be open for
                          writing */
};

struct mds_touch {
    uint64_t
        ino; /* 0 with MDS_ACCESS_OPEN: a file that does not exist yet; finish() gets its number */
    enum mds_access access;
    uint32_t open_flags;
    uint64_t open_id;     /* in: WRITE, REPORT, and CUT (0: not by an open file). out: OPEN */
    enum msg_lease lease; /* out */
    uint64_t lease_seq;   /* out */
    bool is_open;         /* out: any session has it open */
    bool marks_writer;    /* out: OPEN for writing: the entry has to put that into the store before
                             the answer; done when finish() is told of its success */
    bool holds_write;     /* out: WRITE, REPORT: the session has a write lease on it by now */
    void *hook;           /* the session module's */
};

#define MDS_CHANGES_MAX 4

/* What others may be told before a change: an inode whose attributes change and, in a directory,
 * the name that does. */
struct mds_change {
    uint64_t ino;
    struct msg_bytes name; /* empty: only attributes. Borrowed from the request */
    bool cuts;             /* a file, that may become shorter: who has it open is told too */
    bool owner;            /* its user, group or sticky bit: what kernels check by themselves */
    bool sets_owner;       /* these, maybe to what they are: not if another change comes before */
    void *hook;            /* the session module's */
};

struct mds_prepare {
    struct list link; /* the session module's until ready() */
    struct mds *mds;
    uint64_t session; /* 0: the server itself; it opens nothing */
    uint32_t slot,
        sequence;         /* a repeated OPEN that changes nothing durable is recognised by them */
    uint64_t deadline_ns; /* reactor clock; 0: none. Past it ready(-AIFS_ETIMEOUT) */
    bool
        at_once; /* ready() before prepare() returns: -AIFS_ERETRY instead of waiting for anybody */
    unsigned n_touch;
    struct mds_touch touch[SHARD_RESOLVED_MAX];
    unsigned n_changes;
    struct mds_change changes[MDS_CHANGES_MAX];
    void *watch_hook;
    /* Once, maybe before prepare() returns. Not 0: nothing is frozen, finish() is not called. */
    void (*ready)(struct mds_prepare *p, int status);
    void *hook;
};

struct mds_outcome {
    int status;
    uint32_t result; /* SHARD_R_* */
    uint64_t ino;    /* result_ino: orphaned, created, ... */
    /*
     * An open in the reply: in: as prepared, or, with SHARD_R_DUPLICATE, as in the kept reply
     * (registered anew if a restart has lost it; what touch[] got is given back). out: lease may be
     * lowered, the reply then says so; open_id 0: there was no memory to keep what was created
     * open, and the reply is an error.
     */
    uint64_t open_id, open_ino, lease_seq;
    enum msg_lease lease;
};

struct mds_glimpse { /* size and mtime of a file that somebody else is writing, or was */
    struct list link;
    uint64_t session, ino;
    bool patient;         /* waits until they are known; else only for an answer to one question */
    uint64_t deadline_ns; /* of its patience; 0: none */
    bool fresh;           /* out: size and mtime are set, as the writer has said; else ... */
    bool unsure;          /* ... out: nobody has said; or (false) what is recorded now is right */
    uint64_t size, since_ns;
    struct msg_time mtime;
    void (*done)(struct mds_glimpse *g, int status);
};

struct mds_session_ops {
    /* May this request be served? Renews the session. 0, -AIFS_ESESSION. Also asked by dispatch for
     * reads. */
    int (*check)(struct mds *m, struct rpc_req *req);
    void (*prepare)(struct mds *m, struct mds_prepare *p);
    void (*finish)(struct mds *m, struct mds_prepare *p, struct mds_outcome *o);
    /* 1: done() comes later, with 0, -AIFS_ETIMEOUT or -AIFS_EBUSY_SERVER. Else it does not: 0, the
     * recorded attributes are right (or g->unsure says that they may not be); or an error. */
    int (*glimpse)(struct mds *m, struct mds_glimpse *g) MUST_USE;
    /*
     * May the session believe what it has just been answered about this inode (its attributes and,
     * in a directory, the names in it) until it is told otherwise? Only with an answer from a view
     * of this very moment. Counts as a lease from here on. born: when it was made; NULL if it is
     * not a file that another session may just be creating. own: a directory that the session has
     * just changed, and the answer tells of that change. Then it may go on believing although more
     * changes of its own are under way in it: their answers come behind this one, in the order of
     * the commits, and of changes by others that enter later it is told.
     */
    bool (*watch)(struct mds *m, uint64_t session, uint64_t ino, const struct msg_time *born,
                  bool own);
    /* The session has the file open, and no change of it is under way: it is told before the file
     * becomes shorter than it is at this moment, whether it watches or not. */
    bool (*told_of_cuts)(struct mds *m, uint64_t session, uint64_t ino);
    /* Another session writes it, or was and has died: what is recorded of size and mtime may be
     * old. */
    bool (*is_writing)(struct mds *m, uint64_t session, uint64_t ino);
    /*
     * Is the session alone with a directory that it watches, and with an inode that a page of that
     * directory tells of and that it watches: nobody else believes anything of them or has them
     * open, and before anybody reads or changes them the session is asked
     * (docs/adr/0017-removals-answered-ahead.md)? Only in the moment of an answer that says so.
     */
    bool (*alone_dir)(struct mds *m, uint64_t session, uint64_t ino);
    bool (*alone_entry)(struct mds *m, uint64_t session, uint64_t dir, uint64_t ino);
    /* Another session is, or may still be since before a restart. */
    bool (*alone_elsewhere)(struct mds *m, uint64_t session, uint64_t ino);
    /* If so: true, and again(req) follows when it is not, or req is answered with an error. */
    bool (*park)(struct mds *m, struct rpc_req *req, uint64_t ino,
                 void (*again)(struct rpc_req *req));
    bool (*has_open)(struct mds *m, uint64_t session, uint64_t ino, uint64_t open_id);
    /* Whatever waits in prepare() is ready, -AIFS_ECANCELLED: for those who stop. */
    void (*cancel)(struct mds *m);
};

/* ---- cluster ---- */

struct mds_cluster_ops {
    struct cluster_map *(*map)(
        struct mds *m); /* borrowed until the reactor's next turn; never NULL */
    void (*statfs)(struct mds *m,
                   struct msg_statfs_rep *ret_rep); /* bytes; dispatch fills in files */
};

/* ---- gc ---- */

struct mds_punch_wait {
    struct list link;
    uint64_t ino;
    uint64_t timeout_ns; /* gives up then: done(-AIFS_ETIMEOUT) */
    void (*done)(struct mds_punch_wait *w, int status);
};

struct mds_gc_ops {
    /* There are new items, of inodes not below ino. */
    void (*kick)(struct mds *m, enum key_type queue, uint64_t ino);
    void (*target_up)(struct mds *m); /* items that rest because of a target are due again */
    void (*punch_wait)(struct mds *m,
                       struct mds_punch_wait *w); /* done() when ino has no punch item any more */
};

/* ---- the server ---- */

struct mds_config {
    const char *dir, *name, *listen, *advertise, *run_dir;
    char fs_name[64];
    uint32_t inline_max;
    uint64_t lease_ns;
    uint32_t slots;
    bool sync;
};

/* A part that is started in order and stopped in reverse; stop() reports through stopped() when
 * nothing of it is outstanding. */
struct mds_module {
    const char *name;
    int (*start)(struct mds *m); /* registers handlers, sets its ops in struct mds */
    void (*stop)(struct mds *m, void (*stopped)(void *arg), void *arg);
    void (*free)(struct mds *m); /* after all have stopped and all links are closed; also if it was
                                    never started. May be NULL */
};

struct mds {
    struct mds_config conf;
    struct reactor *reactor;
    struct rpc_node *node;
    struct worker_pool *workers; /* for what blocks: checkpoints, scans */
    struct shard *shards[MDS_SHARDS_MAX];
    uint32_t n_shards;
    struct uuid fs;
    struct uuid node_id; /* of this server, the same after every start */
    struct uuid boot;
    uint64_t started_ns;
    const struct mds_session_ops *session_ops;
    const struct mds_cluster_ops *cluster_ops;
    const struct mds_gc_ops *gc_ops;
    void *session, *cluster, *gc, *locks; /* each module's own state */
    struct mds_dispatch *dispatch;
};

/* The shard that owns an inode; NULL if it is none of ours. */
static inline struct shard *mds_shard_of(struct mds *m, uint64_t ino)
{
    uint64_t id = ino >> KEY_INODE_BITS;

    return id < m->n_shards ? m->shards[id] : NULL;
}

/* ---- WAITS: each module adds those who wait in it ---- */

struct mds_waits {
    struct msg_wait *list;
    uint32_t n, max;
    bool more; /* than max */
};

/* A new one, empty; NULL: there are too many. */
static inline struct msg_wait *mds_waits_add(struct mds_waits *w)
{
    w->more = w->more || w->n == w->max;
    if (w->more)
        return NULL;
    w->list[w->n] = (struct msg_wait){0};
    return &w->list[w->n++];
}

extern const struct mds_module mds_dispatch_module;

#endif
