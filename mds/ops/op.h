/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request being served on the reactor, from its arrival to its reply.
 *
 * Reads answer from a view. Changes go through the life of a mutation (mds/mds.h), driven by
 * mutation.c; what differs between operations is how the request is resolved: which inodes it
 * touches and how, and what the leader must hand to execution. That is one function per operation
 * here; what it does to the state is one function per operation in exec.h. A resolving function
 * never refuses: whether a change is allowed is decided by execution, after the exactly-once check,
 * so that a repeated request gets its first answer.
 *
 * Memory: struct mds_op lives in the request's arena, and is gone once the reply was sent.
 */
#ifndef AIFS_MDS_OPS_OP_H
#define AIFS_MDS_OPS_OP_H

#include "mds/mds.h"
#include "proto/header_fmt.h"

struct mds_op;

/* Fills prepare.touch[] and entry.resolved[]. 0; or the number of an inode whose cut must have
 * reached its targets before this may be tried. */
typedef uint64_t mds_resolve_fn(struct mds_op *o, struct view *v);

struct mds_op {
    struct list link; /* on dispatch.active */
    struct mds *mds;
    struct rpc_req *req;
    uint16_t op; /* what is being resolved: the request, or one of a batch */
    const void *msg;
    mds_resolve_fn *resolve;
    struct mds_batch *batch; /* BATCH (batch.c) */
    struct shard *shard;
    struct mds_prepare prepare;
    int place_of[SHARD_RESOLVED_MAX]; /* which resolved[] place touch[i] stands for; -1: none */
    int open_touch;                   /* which touch[] is an open; -1: none */
    bool local; /* OPEN that does not change the file: answered from the view, without an entry
                   if the open needs not be remembered */
    unsigned tries;
    bool entry_used;
    struct mds_punch_wait punch;
    struct mds_glimpse glimpse;
    struct msg_inode_rep rep; /* of reads */
    /* Of changes; not zeroed before shard_entry_init(): it is half of this. */
    uint32_t entry_flags;
    struct shard_entry entry;
};

/* ---- the life of a mutation (mutation.c) ---- */
void mds_mutate(struct rpc_req *req, struct mds *m, uint64_t ino, mds_resolve_fn *resolve,
                uint32_t entry_flags); /* ino: an inode of the shard that serves it */
/* For resolving functions. */
struct mds_touch *op_touch(struct mds_op *o, uint64_t ino, enum mds_access access, int place);

/* An inode that is about to change; name: the one in it that does, or NULL. */
void op_change(struct mds_op *o, uint64_t ino, const struct msg_bytes *name);
void op_cut(struct mds_op *o, uint64_t ino); /* a file that may become shorter */

/* Wakes the workers of the queues that a change has put something on. */
void op_kick(struct mds *m, uint32_t result, uint64_t ino);

mds_resolve_fn resolve_create, resolve_make, resolve_unlink, resolve_rmdir, resolve_rename,
    resolve_link, resolve_setattr, resolve_open, resolve_xattr, resolve_write_inline, resolve_grow,
    resolve_size, resolve_append_range;

/* BATCH (batch.c) */
void op_batch(struct mds *m, struct rpc_req *req);
/* While one is resolved: the directory in which dir is being made, before it in the same batch;
 * else dir. */
uint64_t op_batch_above(const struct mds_op *o, uint64_t dir);

/* ---- reads, one function each: the request is checked, the session is known ---- */
typedef void mds_read_fn(struct mds *m, struct rpc_req *req);
mds_read_fn op_lookup, op_getattr, op_readlink, op_readdir, op_statfs, op_fsync, op_xattr_get,
    op_xattr_list, op_waits;
/* mds/locks: none waits longer than for a commit */
mds_read_fn op_lock, op_lock_test, op_lock_cancel, op_lock_list;
/* Steps they share. */
void op_fill_inode(const struct mds_inode *in, struct msg_inode *out);
/* A record of the inode as its data; absent: empty. */
int op_fill_data(struct view *v, struct rpc_req *req, enum key_type type,
                 const struct mds_inode *in, struct msg_inode *out) MUST_USE;
/* op_begin_at(), and the inode from a point view. NULL: replied already. */
struct mds_op *op_begin_inode(struct mds *m, struct rpc_req *req, uint64_t ino,
                              struct mds_inode *ret_inode);
/* The lease on an inode that comes with the answer; flag: RPC_FLAG_KEPT_*; born: or NULL. See
 * mds_session_ops.watch. */
void op_keep(struct mds_op *o, uint64_t ino, uint8_t flag, const struct msg_time *born);
/* Of a file that the session has open: RPC_FLAG_CUTS_TOLD. */
void op_keep_size(struct mds_op *o, uint64_t ino);
/* Of a directory that o has changed: what its answer tells may be believed (own). */
void op_keep_dir(struct mds_op *o, uint64_t dir, uint8_t flag);
/* Its session believes what it has made. MKDIR: it is alone with it, as it has asked. What was made
 * ahead, by who is alone with the directory around it, is nobody else's business either. */
bool op_made_alone(struct mds_op *o, unsigned op, const struct msg_create_req *req, uint64_t ino);
/* OPEN without O_TRUNC, when its lease is granted: the reply, or the error. */
int op_open_reply(struct mds_op *o, struct msg_inode_rep *ret_rep) MUST_USE;
/* The access list of an inode that has one, into in->acl. */
int op_acl(struct view *v, struct arena *a, struct mds_inode *in) MUST_USE;
/* The same for an answer that was committed: attributes and content are added. */
int op_open_data(struct mds_op *o, struct msg_inode_rep *rep) MUST_USE;

/* ---- layouts (layout_ask.c) ---- */
/* What a new file in dir gets. */
int op_layout_new(struct mds *m, const struct mds_inode *dir, const struct msg_stripe *asked,
                  struct msg_layout *ret_layout) MUST_USE;
int op_stripe_of(struct mds *m, const struct msg_stripe *asked,
                 struct mds_stripe *ret_stripe) MUST_USE;
/* "pool=P chunk=1048576 count=4 copies=1"; parsing allows any subset, count=all, start=N, and
 * "inherit". */
int op_layout_parse(const struct msg_bytes *text, struct msg_stripe *ret_stripe) MUST_USE;
int op_layout_print(struct mds *m, const struct mds_inode *in, char *out, size_t out_len,
                    uint32_t *ret_len) MUST_USE;

/* ---- the server's list of requests (dispatch.c) ---- */
struct mds_op *op_begin(struct mds *m, struct rpc_req *req); /* NULL: replied already */
/* The same for an operation about this inode, with its shard. */
struct mds_op *op_begin_at(struct mds *m, struct rpc_req *req, uint64_t ino);
void op_end(struct mds_op *o);                                /* before the reply */
void op_reply(struct mds_op *o, int status, const void *msg); /* op_end() and the reply */

#endif
