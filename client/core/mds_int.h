/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls to the metadata server (mds.c), and many changes of names in one of them (batch.c).
 *
 * An mds_op is one operation from its start to its done(), whatever it takes: waiting for the
 * session and a slot, retries, a batch with others, its carrier.
 */
#ifndef AIFS_CLIENT_CORE_MDS_INT_H
#define AIFS_CLIENT_CORE_MDS_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "client/core/core.h"
#include "common/base/hmap.h"
#include "common/base/mem.h"
#include "proto/msg_lock.h"
#include "proto/rpc.h"

struct core;
struct core_inode;
struct core_file;

struct moving_name { /* moving.c: of a rename that was answered ahead */
    struct hmap_node node;
    struct mds_op *op;
    const struct msg_bytes *name;
};

struct mds_op {
    struct list link; /* core.ops, or the free list */
    struct list wait; /* for the session, a slot */
    struct core *core;
    struct core_req *q; /* NULL: nobody waits any more, or never did */
    struct rpc_call call;
    union {
        struct msg_name_req name;
        struct msg_ino_req ino;
        struct msg_setattr_req setattr;
        struct msg_create_req create;
        struct msg_rename_req rename;
        struct msg_link_req link;
        struct msg_open_req open;
        struct msg_close_req close;
        struct msg_lease_req lease;
        struct msg_write_inline_req write_inline;
        struct msg_size_req size;
        struct msg_append_req append;
        struct msg_readdir_req readdir;
        struct msg_xattr_req xattr;
        struct msg_map_req map;
        struct msg_lock_req lock;
        struct msg_lock_wait lock_wait;
        struct msg_batch_req batch;
        struct msg_empty empty;
    } msg;
    struct arena arena;                          /* what msg points to */
    struct iovec iov;                            /* payload out or in */
    void (*done)(struct mds_op *op, int status); /* once; op is freed after it */
    struct reactor_timer timer;
    struct core_inode *inode; /* referenced, or NULL */
    struct core_file *file;
    struct buf *buf;
    uint64_t started_ns, n1, n2;
    uint64_t event;      /* core.events_seen when it was sent */
    uint64_t dirs[2];    /* whose names it changes; 0: none */
    uint32_t generation; /* of the session it was sent under */
    unsigned attempt;
    int slot; /* -1: none */
    bool sent, failed, hung_logged;
    bool in_doubt;       /* sent and not answered: it may have been executed */
    bool alone;          /* not in a batch */
    bool carried;        /* its carrier is under way, and it is on its list */
    struct list members; /* BATCH: struct mds_op.wait, in the order of its items */
    bool writes_back;    /* others may wait for it: takes a slot before all that may wait itself */
    /* behind.c: may be answered ahead; was (or its members were); waits until there are fewer; is
     * counted as a message of removals under way */
    bool may_ahead, ahead, for_room, flies;
    bool unsure;         /* it is not known whether we are alone with what it removes */
    bool large;          /* not ahead: what it makes will probably become large (sizes.c) */
    bool loaded;         /* creating.c: what was written goes along */
    bool held;           /* gather.c: until its file is closed, or for a moment */
    uint32_t only_epoch; /* of this session alone; 0: of any */
    struct moving_name moving[2];
};

/*
 * What a reply promises. Events (changes by others that the server has told, changes of our own)
 * are counted; an answer to a question from before an event says nothing about what came after it.
 */
struct answer {
    uint64_t event; /* core.events_seen when the question was sent */
    uint8_t kept;   /* RPC_FLAG_KEPT_*, RPC_FLAG_CUTS_TOLD */
};
struct answer answer_of(const struct mds_op *op);
bool mds_op_is_current(const struct mds_op *op); /* sent last in this session, which is not lost */
/* Of this session, and nothing has been told since about inodes not cached here. */
bool answer_current(const struct core *c, const struct answer *a);

/* NULL when out of memory. q: the request it works for, or NULL. */
struct mds_op *mds_op_new(struct core *c, unsigned opcode, struct core_req *q,
                          void (*done)(struct mds_op *op, int status));
struct msg_bytes mds_op_bytes(struct mds_op *op, const void *data,
                              uint32_t len); /* a copy; failure is remembered */
void mds_op_cred(struct mds_op *op, struct msg_cred *dst, const struct msg_cred *src);
void mds_op_start(struct mds_op *op);
void mds_op_drop(struct mds_op *op); /* never started */
void mds_op_go(struct mds_op *op);   /* sends it, or lets it wait for what it needs */
void mds_op_outcome(struct mds_op *op, int status); /* it ends, or is tried again */
void mds_op_end(struct mds_op *op, int status);     /* never sent: it ends */
void mds_resume(struct core *c);                    /* the session is there: send what waited */
void mds_new_link(struct core *c);                  /* unanswered calls carry the new incarnation */
void mds_fail_all(struct core *c);
void mds_tick(struct core *c, uint64_t now);
void mds_fini(struct core *c);

/*
 * Changes of names that are begun in one turn of the reactor share a call, if the server knows
 * BATCH. True: op waits for the end of the turn, or is on its way with others.
 */
bool batch_gather(struct mds_op *op);
void batch_turn(struct core *c); /* looks at what is gathered when the turn ends */
void batch_init(struct core *c);

#endif
