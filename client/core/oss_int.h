/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Object storage as the client sees it: nodes, targets, transfers (oss.c) and what is written and
 * not yet committed (commit.c). Included by core_int.h.
 */
#ifndef AIFS_CLIENT_CORE_OSS_INT_H
#define AIFS_CLIENT_CORE_OSS_INT_H

#include "client/core/connect.h"
#include "client/core/core.h"
#include "common/base/crc.h"
#include "common/base/hmap.h"
#include "proto/map.h"
#include "proto/rpc.h"

#define CORE_TARGET_INFLIGHT 16u /* transfers to one target at once; more wait in its queue */
#define CORE_LARGE_BYTES     MSG_BULK_MAX
#define OSS_FLIGHT_MIN       2u /* of these, however little memory there is for writes */

/* Transfers that share a call: how many, how large each, how large together. */
#define OSS_SHARE_MAX      64u
#define OSS_SHARE_IO_BYTES (64u * KIB)
#define OSS_SHARE_BYTES    (256u * KIB)

struct core_inode;
struct block;
struct mds_op;
struct oss_share;

struct oss_node {
    struct hmap_node node;
    uint32_t id;
    struct core *core;
    struct rpc_peer *peer;
    uint32_t incarnation; /* of its connection */
    uint32_t n_addresses;
    char addresses[MAP_ADDRS][MAP_ADDR_BYTES];
    char alias[MAP_NAME_BYTES];
};

struct oss_target {
    struct hmap_node node;
    struct core *core;
    uint32_t id;
    struct list queue;        /* struct oss_io: waiting for its turn */
    struct reactor_work pump; /* due: sends what is small and was queued in this turn */
    bool pump_due;
    uint32_t in_flight;
    uint64_t missing_ns; /* its server did not have it: asked again at this time; 0: it is there */
    uint64_t verifier;   /* 0: not yet known */
    uint64_t grant, granted_ns; /* bytes of slots that the server promises us; since */
    uint64_t unsent;            /* of them, for what is dirty in our cache */
    uint64_t leaving;           /* of them, for what has left it and is not answered */
    uint64_t flying;            /* unstable bytes sent and not yet answered */
    uint64_t under_way;         /* of blocks: queued or sent, and not yet answered */
    bool told;    /* of a large write whether it was durable with its answer unasked: */
    bool at_once; /* the last was */
    /* commit */
    struct list commit_queue; /* struct inode_target */
    struct list committing;
    struct list ahead;    /* struct inode_target: of streams, of which much is new; */
    uint64_t ahead_bytes; /* so much together */
    struct rpc_call commit_call;
    struct msg_commit_req commit_req;
    uint64_t commit_inos[MSG_RANGES_MAX];
    struct reactor_timer commit_timer;
    unsigned commit_attempt;
    struct oss_node *commit_node;
    uint64_t commit_ticket, commit_sent_ns;
    uint32_t commit_epoch; /* of the session it was sent in */
    bool commit_busy;
};

enum oss_kind { OSS_IO_READ, OSS_IO_WRITE, OSS_IO_PUNCH, OSS_IO_SEEK };

/* One transfer of at most 1 MiB of one chunk; or a PUNCH or SEEK of a file's range on the target of
 * one chunk (span.c). Owned by oss.c from oss_io_submit() until done(). */
struct oss_io {
    struct list link;     /* target queue, or free list */
    struct list all;      /* core.ios */
    struct list by_inode; /* writes: core_inode.ios, in order of seq */
    struct core *core;
    enum oss_kind kind;
    struct core_inode *inode;     /* referenced */
    struct block *block;          /* NULL: direct */
    struct oss_target *of_target; /* that counts it in under_way, and in leaving: */
    uint64_t charge;
    struct core_req *q; /* direct: whom it works for */
    struct buf *buf;    /* referenced while the transfer lasts, or NULL */
    struct oss_target *target;
    struct oss_node *node;   /* sent to */
    struct oss_share *share; /* the call it shares while it is sent; NULL: its own */
    struct rpc_call call;
    union {
        struct msg_read_req read;
        struct msg_write_req write;
        struct msg_cut_req punch;
        struct msg_seek_req seek;
    } msg;
    struct msg_range range;
    uint32_t start, len; /* in the block (cached), or in the request (direct) */
    struct iovec iov[CORE_IOV_MAX];
    unsigned n_iov;
    uint32_t crcs[CORE_LARGE_BYTES / CRC_BLOCK_BYTES + 2];
    uint64_t seq, started_ns;
    struct mds_op *attr_op; /* brings the attributes it waits for */
    struct reactor_timer timer;
    unsigned attempt;
    uint32_t session_epoch; /* in which it was begun, then of the one it was sent in */
    bool stable, sent, cancelled, queued, hung_logged, ahead;
    bool alone;  /* not in a shared call: one has failed */
    bool fickle; /* its memory may change while it is sent: a wrong sum goes to who asked */
    bool once;   /* without a lease: what the target has of it is not done again */
    uint64_t once_id;
    bool placed; /* an append: its place in the file is of this truncate generation */
    uint64_t placed_gen;
    uint32_t got;      /* bytes that exist, of a read; the rest of iov has been zeroed */
    uint64_t from, to; /* PUNCH, SEEK: in the file. A seek's answer moves from */
    bool hole, found;  /* SEEK */
    void (*done)(struct oss_io *io, int status);
};

struct oss_io *oss_io_new(struct core *c, enum oss_kind kind, struct core_inode *i);
void oss_io_drop(struct oss_io *io); /* never submitted */
/* done() runs later, from the reactor, never inside these two: lists of transfers can be walked
 * with them. */
void oss_io_submit(struct oss_io *io);
void oss_io_cancel(struct oss_io *io);
struct oss_target *oss_target_of(struct core *c, const struct msg_layout *l,
                                 uint64_t chunk);               /* NULL: map too old */
struct oss_target *oss_target_get(struct core *c, uint32_t id); /* NULL: no memory */
struct oss_node *oss_node_of(struct core *c,
                             uint32_t target); /* with a peer; NULL: not in the map */
bool oss_given_up(const struct core *c, uint32_t target);
bool oss_io_is_lost(const struct oss_io *io); /* its target is given up */
/* What has waited for long, for SESSION_RENEW: so many of out[MSG_SERVER_WAITS_MAX]. */
uint32_t oss_waits(struct core *c, struct msg_server_wait *out);
void oss_io_gave_up(const struct oss_io *io, int status); /* to the log */
void oss_tick(struct core *c, uint64_t now);
void oss_fail_all(struct core *c);
void oss_fini(struct core *c);
void oss_call_header(struct core *c, struct rpc_call *call, const struct oss_node *o);

/* ---- once.c ---- */
uint64_t once_id(struct oss_io *io); /* 0: it may be done as often as it comes */
void once_forget(struct oss_io *io);
bool once_is_late(const struct oss_io *io); /* it changes a file, in a session that is over */

/* ---- oss_message.c ---- */
unsigned oss_message_op(enum oss_kind kind);
void oss_message_fill(struct oss_io *io);          /* for its target */
int oss_message_noted(struct oss_io *io) MUST_USE; /* what is wrong with the answer */
/* Its memory begins with the len bytes that exist: are they right? Zeroes the rest. */
int oss_read_check(struct oss_io *io, uint32_t len, const uint32_t *crcs) MUST_USE;
/* May a write of so much only be stable? */
bool oss_write_stable(struct oss_target *t, const struct core_inode *i, uint32_t len, bool stable);
uint64_t oss_want_grant(const struct core *c);

/* ---- between oss.c and share.c ---- */

void oss_io_go(struct oss_io *io);               /* sends it, or puts it into a queue */
void oss_io_over(struct oss_io *io, int status); /* what its call brought: again, or done() */
void oss_write_noted(struct oss_target *t, const struct msg_write_rep *rep);
void oss_target_pump(struct oss_target *t); /* sends from its queue */
struct rpc_call *oss_io_call(struct oss_io *io);
bool oss_io_shares(const struct oss_io *io); /* small, and allowed to */
/* Sends first and what the queue has for the same call; false: there is no company. */
bool share_send(struct oss_io *first, struct oss_node *o);
void share_fini(struct core *c);

void oss_new_link(struct core *c,
                  const struct oss_node *o); /* unanswered calls carry the new incarnation */
void commit_new_link(struct core *c, const struct oss_node *o);

/* What an inode has written to a target and not yet committed. */
struct inode_target {
    struct list by_inode, queue;
    struct list ahead;        /* oss_target.ahead: a stream */
    struct list replay;       /* of commit_verifier() */
    struct core_inode *inode; /* referenced */
    struct oss_target *target;
    struct list blocks; /* struct block.unc_link */
    uint64_t ticket;    /* of the last finished commit */
    uint64_t created;
    uint64_t new_bytes; /* acknowledged since the last COMMIT was sent */
    bool in_flight, partial;
    bool again; /* again: more was asked for while one was under way */
};

void commit_note_written(struct oss_io *io); /* an unstable write was acknowledged */
void commit_request(struct core_inode *i);   /* commit everything of i, in the background */
bool commit_reached(const struct core_inode *i, uint64_t ticket);
void commit_forget_block(struct block *b); /* its uncommitted data is of no interest any more */
void commit_cut_block(struct block *b, uint32_t at); /* nor is what lies behind at */
void commit_verifier(struct oss_target *t,
                     uint64_t verifier); /* seen in a reply: replays when it is new */
void commit_new_map(struct core *c);
void commit_cancel_all(struct core *c);
void commit_target_fini(struct oss_target *t);

#endif
