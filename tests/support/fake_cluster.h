/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A metadata server and object storage servers in memory, on the test's own reactor, for tests of
 * the client: they follow docs/protocols.md closely enough to notice a client that does not, and
 * have switches for faults. Object storage keeps committed and uncommitted bytes apart, and forgets
 * the latter when it is restarted.
 *
 * Connected by the loop transport, so a test may drop, delay and reorder messages too.
 */
#ifndef AIFS_TESTS_SUPPORT_FAKE_CLUSTER_H
#define AIFS_TESTS_SUPPORT_FAKE_CLUSTER_H

#include "common/fault/fault.h"
#include "common/net/buf.h"
#include "proto/map.h"
#include "proto/number.h"
#include "proto/rpc.h"

#define FAKE_OSS_MAX    4u
#define FAKE_INODES     256u
#define FAKE_HOLDERS    16u
#define FAKE_INLINE_MAX 16384u
#define FAKE_CHUNK      (1u << 20)
#define FAKE_SESSIONS   8u

struct fake_holder {
    uint64_t session, open_id;
    bool writes;
};

struct fake_inode {
    bool used;
    uint64_t parent;
    char name[256];
    struct msg_attr attr;
    struct msg_layout layout;
    uint8_t data[FAKE_INLINE_MAX];
    uint32_t data_len;
    struct fake_holder opens[FAKE_HOLDERS];
    struct {
        uint64_t session, seq;
        enum msg_lease lease;
        bool recalled;
    } leases[FAKE_HOLDERS];
    unsigned calls[128]; /* by operation */
    bool not_alone;      /* whatever the cluster's switch says */
    uint32_t since;      /* MSG_SET_* that came with its creation */
};

struct fake_slot { /* and its last answer */
    uint32_t sequence;
    int status;
    uint64_t ino, open_id;
    bool created;
};

struct fake_session {
    uint64_t id;
    struct rpc_link *link;
    struct uuid client;
    struct fake_slot slots[64];
};

struct fake_chunk {
    struct hmap_node node;
    uint64_t ino, chunk;
    uint8_t *now, *durable; /* FAKE_CHUNK bytes each */
    uint32_t now_len, durable_len;
};

struct fake_oss {
    struct fake_cluster *cluster;
    unsigned index;
    struct rpc_node *node;
    struct buf_pool *pool;
    struct hmap chunks;
    uint64_t verifier, truncate_gen[2 * FAKE_INODES]; /* fake_place() */
    struct rpc_link *links[8];
    struct list held; /* struct rpc_req */
    /* switches */
    int fail_writes;        /* status for writes; 0: none */
    unsigned fail_writes_n; /* how many; UINT_MAX: all */
    int fail_punches, fail_commits;
    unsigned corrupt_reads; /* so many replies carry damaged data */
    unsigned fail_reads;    /* so many reads fail with EIO */
    bool hold;              /* requests wait until it is cleared with fake_oss_release() */
    bool hold_commits;      /* so do these alone */
    bool missing;           /* it runs without its disk */
    uint64_t grant;         /* in write replies */
    bool commits_at_once;   /* every write, and says so */
    /* what it saw */
    unsigned reads, writes, unstable, commits, punches, seeks, held_now; /* calls */
    unsigned refused;                                                    /* it was missing */
    unsigned read_ranges, write_ranges;
    uint64_t bytes_written;
    uint64_t once[2]; /* of the last two writes, the latest first */
};

struct fake_cluster {
    struct reactor *reactor;
    struct clock_virtual *clock; /* the reactor's */
    char name[64];
    struct crypto_key key;
    struct rpc_node *mds;
    struct fake_oss oss[FAKE_OSS_MAX];
    unsigned n_oss;
    struct cluster_map *map;
    struct fake_inode inodes[FAKE_INODES];
    struct fake_session sessions[FAKE_SESSIONS];
    uint64_t next_session, next_open, next_lease, change;
    struct list waiting; /* OPEN, SETATTR that wait for a lease to come back: struct rpc_req */
    unsigned calls[128], executed[128];
    bool drop_replies; /* changes are executed, their answers get lost and the link with them */
    int refuse;        /* status for every request but sessions */
    bool cuts_told;    /* answers promise to tell of cuts: the test does */
    unsigned down;     /* nodes that have shut down */
    uint64_t lease_ns; /* promised to sessions; 0: 15 s */
    bool mds_hold;     /* whatever the metadata server is asked waits for fake_mds_release() */
    struct list mds_held;
    unsigned busy_writes;    /* so many WRITE_INLINE are to be sent again, later */
    int fail_setattr;        /* status for SETATTR; 0: none */
    unsigned stale;          /* so many writes and sizes are of before a truncate */
    int fail_release;        /* status for LEASE_RELEASE; 0: none */
    unsigned fail_release_n; /* how often */
    unsigned open_calls;
    unsigned reads_told;  /* with CLOSE */
    bool locks_refused;   /* somebody else has them all; else they are granted */
    uint64_t avail_bytes; /* told by STATFS */
    /* removals that are answered ahead */
    bool alone;          /* who wishes to know is alone with everything */
    bool batches;        /* UNLINKs and MKNODs that come together are executed so */
    bool hold_removals;  /* they, and creations so, wait for fake_release_removals() */
    bool hold_opens;     /* so does OPEN */
    bool hold_sets;      /* and SETATTR */
    bool no_leases;      /* OPEN brings none */
    bool dirs_not_alone; /* nor says a MKDIR in a batch that one is alone with it */
    bool hold_alone;     /* a MKNOD outside of a batch waits for fake_release_removals() too */
    bool forgets;        /* what was made ahead, has contents and is closed makes room for more */
    uint32_t highest;    /* number of a session that was given to a file */
    int fail_creations;  /* status for a MKNOD in a batch; 0: none */
    struct list removals_held;
    int fail_removals;            /* status for UNLINK; 0: none */
    unsigned fail_removals_n;     /* of so many; 0: of all */
    unsigned retry_members;       /* so many of a batch are to come by themselves */
    unsigned wishes;              /* pages that were asked for with that wish */
    unsigned reclaims, unsettled; /* RECLAIM, and those that said so */
    uint32_t n_waits;             /* what the last renewal of any session said */
    struct msg_server_wait waits[MSG_SERVER_WAITS_MAX];
};

/* Of a file, also of one under a number that a session has given it. */
static inline uint64_t fake_place(uint64_t ino)
{
    return number_is_given(ino) ? FAKE_INODES + ino % FAKE_INODES : ino;
}

extern uint64_t fake_mds_features; /* RPC_FEATURE_* that the metadata server says it has */
void fake_cluster_start(struct fake_cluster *f, struct reactor *r, struct clock_virtual *clock,
                        unsigned n_oss);
void fake_cluster_stop(struct fake_cluster *f);
const char *fake_mds_address(struct fake_cluster *f, char out[80]);
void fake_mds_forget_sessions(struct fake_cluster *f); /* evicts everybody */
void fake_mds_break_links(struct fake_cluster *f);
void fake_mds_release(struct fake_cluster *f); /* what was held is served */
void fake_mds_restart(struct fake_cluster *f); /* sessions and slots survive */
void fake_release_removals(struct fake_cluster *f);
/* Tells the first session; answered is set when it has. */
void fake_invalidate(struct fake_cluster *f, uint64_t ino, const char *name, bool *answered);
void fake_invalidate_owner(struct fake_cluster *f, uint64_t ino, bool *answered);
void fake_give_up(struct fake_cluster *f, unsigned oss); /* its target; clients hear of a new map */
void fake_oss_restart(struct fake_oss *o);               /* uncommitted data is gone */
void fake_oss_release(struct fake_oss *o);               /* what was held is served */
/* The same switch of each server, and the same done to each. */
void fake_targets_hold(struct fake_cluster *f);
void fake_targets_release(struct fake_cluster *f);
void fake_targets_restart(struct fake_cluster *f);
void fake_targets_fail_writes(struct fake_cluster *f, int status); /* every one, until 0 */
/* What they have of the file behind this goes, as with a truncate of the next generation. */
void fake_targets_cut(struct fake_cluster *f, struct fake_inode *i, uint64_t size);
void fake_targets_corrupt_reads(struct fake_cluster *f, unsigned n);
struct fake_inode *fake_inode(struct fake_cluster *f, const char *name);
/* What a reader would find on the targets, or inline: to compare with. */
void fake_contents(struct fake_cluster *f, struct fake_inode *i, uint64_t offset, uint8_t *out,
                   uint32_t len, bool durable);

/* Shared by the two halves. */
/* Armed fault points are the client's, on the one reactor of all: a server works without them. */
static inline int fake_spare(void)
{
    return atomic_exchange(&fault_armed, 0);
}
static inline void fake_unspare(int armed)
{
    atomic_store(&fault_armed, armed);
}
void fake_mds_start(struct fake_cluster *f);
void fake_oss_start(struct fake_cluster *f, unsigned index);
struct fake_session *fake_session_of(struct fake_cluster *f, const struct rpc_req *req);
bool fake_may_write(const struct fake_inode *i, const struct rpc_req *req, uint64_t open_id);
void fake_move_layout(struct fake_cluster *f, struct fake_inode *i); /* one chain further on */
/* XATTR_SET of a layout: whatever it says, the file has another one. */
void fake_set_layout(struct fake_cluster *f, struct rpc_req *req);
bool fake_holds_lease(const struct fake_inode *i, uint64_t session, uint64_t seq);
bool fake_holds_write(const struct fake_inode *i, uint64_t session);
struct fake_inode *fake_make(struct fake_cluster *f, uint64_t parent, const struct msg_bytes *name,
                             uint32_t mode);
struct fake_inode *fake_make_given(struct fake_cluster *f, const struct msg_create_req *m);
void fake_session_seen(struct fake_cluster *f, struct fake_session *s, struct rpc_link *from);
void fake_mds_handle(struct rpc_req *req);
struct fake_inode *fake_by_ino(struct fake_cluster *f, uint64_t ino);
struct fake_inode *fake_find(struct fake_cluster *f, uint64_t parent, const struct msg_bytes *name);
void fake_set(struct fake_cluster *f, struct fake_inode *i, const struct msg_setattr_req *m);
void fake_rename(struct fake_cluster *f, struct rpc_req *req);
void fake_readdir(struct fake_cluster *f, struct rpc_req *req);
void fake_batch(struct fake_cluster *f, struct rpc_req *req, struct fake_session *s);
bool fake_holds_removal(struct fake_cluster *f, struct rpc_req *req);
int fake_refuses_removal(struct fake_cluster *f, unsigned op, const struct fake_inode *i);
/* Time passes, a millisecond at a time, when there is nothing else to do. */
void fake_run_until(struct fake_cluster *f, const bool *flag);
void fake_run_for(struct fake_cluster *f, uint64_t ns);

#endif
