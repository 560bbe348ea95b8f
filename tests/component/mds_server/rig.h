/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole metadata server (real store, real modules, dispatch) with clients and object storage
 * servers that the test plays, on one reactor with a virtual clock, over the loop transport. Time
 * passes only in rig_pass() and rig_until(): servers that are up send heartbeats, clients that are
 * alive renew their sessions.
 */
#ifndef AIFS_TESTS_COMPONENT_MDS_SERVER_RIG_H
#define AIFS_TESTS_COMPONENT_MDS_SERVER_RIG_H

#include <check.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/err.h"
#include "mds/mds.h"
#include "proto/rpc.h"

#define RIG_OSS     3
#define RIG_CLIENTS 3
#define RIG_NOTES   256
#define RIG_LEASE   (4 * NS_PER_S)
#define RIG_SLOTS   16
#define RIG_GIVES   32

struct rig;

/* What a server or client was asked, in order. */
struct rig_note {
    uint16_t op;
    uint32_t target;
    uint64_t ino, seq; /* seq: lease, fence, truncate generation */
    uint64_t size;
    uint32_t n;
    bool owner; /* INVALIDATE */
};

struct rig_oss {
    struct rig *rig;
    unsigned index;
    struct uuid node, boot, target[2];
    uint32_t node_id, target_id[2], n_targets;
    uint64_t fence_seq, high_water, chunks;
    const char *pool; /* asked for when it registers */
    const char *path; /* of all its targets; NULL: "/data" */
    uint8_t disks;    /* changed: its targets are others, and so is the server itself */
    uint8_t as;       /* goes by name and address of the server with this index and one; 0: own */
    uint8_t copies;   /* its targets are copies of those of the server with this index and one */
    bool alive;       /* sends heartbeats */
    bool roomy;       /* they tell of much free space */
    bool mute;        /* keeps requests without an answer */
    int fail;         /* status of every answer */
    unsigned registrations;
    struct rpc_node *rpc;
    struct rpc_peer *mds;
    struct rpc_call beat, reg;
    bool beating;
    uint64_t beat_ns;
    struct list held; /* struct rpc_req */
    unsigned n_notes;
    struct rig_note notes[RIG_NOTES];
};

struct rig_client {
    struct rig *rig;
    unsigned index;
    struct uuid id, node;
    uint64_t session;
    uint32_t generation, sequence[RIG_SLOTS + 1];
    bool alive;   /* renews its session */
    bool release; /* answers a recall with a release, of release_size if not 0 */
    uint64_t release_size;
    bool mute;        /* keeps INVALIDATE without an answer, in held */
    struct list held; /* struct rpc_req */
    uint64_t glimpse_size;
    bool glimpse_mute;  /* keeps GLIMPSE without an answer, in held */
    uint64_t map_epoch; /* of the last MAP_CHANGED */
    struct rpc_node *rpc;
    struct rpc_peer *mds;
    struct rpc_call renewal;
    struct msg_renew_req renew; /* what it says when it does */
    bool renewing;
    struct rig_give {
        struct rpc_call call;
        struct msg_lease_req req;
        bool busy;
    } gives[RIG_GIVES];
    uint64_t renew_ns;
    unsigned n_notes;
    struct rig_note notes[RIG_NOTES];
};

struct rig_call {
    struct rpc_call c;
    bool used, done;
    int status;
};

struct rig {
    char root[128], dir[160];
    struct clock_virtual clock;
    struct reactor *reactor;
    struct crypto_key key, client_key;
    struct buf_pool *pool;
    struct shard_options shard;
    struct mds *mds;
    struct rig_oss oss[RIG_OSS];
    struct rig_client client[RIG_CLIENTS];
    unsigned starts;
    const struct iovec *bulk_out; /* of the next call */
    struct rig_call call;         /* of rig_do() */
    struct iovec bulk_in;         /* where the payload of an answer goes: bulk */
    uint8_t bulk[MSG_BULK_MAX];
    uint32_t bulk_len;
};

/* A new file system; or again in the directory of an earlier rig (root given). */
void rig_open(struct rig *r, const char *root);
/* A new one with server 0 and sessions of clients 0 to n_clients - 1. */
void rig_begin(struct rig *r, uint32_t n_targets, unsigned n_clients);
void rig_make_root(char *root, size_t size); /* a new directory, for rig_open() */
void rig_mds_stop(struct rig *r);            /* in good order */
void rig_mds_start(struct rig *r);
void rig_restart(struct rig *r);   /* in good order, with server 0 and its two targets */
bool rig_grace_over(void *arg);    /* a struct rig; for rig_until() */
void rig_close(struct rig *r);     /* stops; keeps the directory */
void rig_remove(const char *root); /* the directory */
void rig_end(struct rig *r);       /* both */
unsigned rig_lines_with(const char *path, const char *text); /* of a log */

/* Runs what can run without time passing, until the condition holds; false: there is nothing more
 * to run, here and on the server's threads. */
bool rig_run(struct rig *r, bool (*until)(void *arg), void *arg);
void rig_settle(struct rig *r); /* until there is nothing more to run */
void rig_pass(struct rig *r, uint64_t ms);
/* With time passing, at most max_ms of it. */
bool rig_until(struct rig *r, uint64_t max_ms, bool (*until)(void *arg), void *arg);

/* ---- servers ---- */
void rig_oss_start(struct rig *r, unsigned i, uint32_t n_targets); /* registers */
void rig_oss_restart(struct rig *r, unsigned i);                   /* with a new boot id */
void rig_oss_release(struct rig *r, unsigned i);                   /* answers what it has held */
unsigned rig_oss_count(const struct rig_oss *o, unsigned op, uint64_t ino); /* ino 0: any */
const struct rig_note *rig_oss_last(const struct rig_oss *o, unsigned op);
int rig_oss_order(const struct rig_oss *o, unsigned op); /* place of the first one; -1: none */

/* ---- clients ---- */
void rig_client_connect(struct rig *r, unsigned i);
void rig_client_open(struct rig *r, unsigned i); /* opens a session */
/* The last RECLAIM of a client, of one file; ino 0: of none. */
int rig_reclaim(struct rig *r, unsigned i, uint64_t ino, uint64_t open_id, uint32_t flags,
                enum msg_lease lease, uint64_t seq);
void rig_client_forget(struct rig *r, unsigned i); /* the session goes on without its client */
void rig_client_answer(struct rig *r, unsigned i); /* what it has held, and all from now on */
const struct rig_note *rig_client_first(const struct rig_client *c, unsigned op); /* NULL: none */
unsigned rig_client_count(const struct rig_client *c, unsigned op, uint64_t ino);
void rig_give(struct rig *r, unsigned i, uint64_t ino, enum msg_lease keep, uint64_t seq,
              uint64_t size); /* LEASE_RELEASE, not waited for */

/* Sends; slot 0: an operation without slot. */
void rig_send(struct rig *r, unsigned client, unsigned slot, struct rig_call *call, unsigned op,
              const void *req);
void rig_send_again(struct rig *r, unsigned client, unsigned slot, struct rig_call *call,
                    unsigned op, const void *req);
bool rig_is_done(void *call);
void rig_call_done(struct rpc_call *c, int status);
int rig_oss_try(struct rig *r, unsigned i, uint32_t n_targets); /* may be refused */
/* These, with a target each, at the same moment. */
void rig_oss_try_together(struct rig *r, const unsigned *which, unsigned n, int *ret_status);
/* So, but this time passes at once when the condition holds. */
void rig_oss_try_slowly(struct rig *r, const unsigned *which, unsigned n, uint64_t ms,
                        bool (*until)(void *arg), void *arg, int *ret_status);
void rig_forget(struct rig_call *call);
/* Sends and waits (time passes if it must); the reply is good until the next one. */
int rig_do(struct rig *r, unsigned client, unsigned op, const void *req, const void **ret_rep);
const struct msg_inode_rep *rig_create(struct rig *r, unsigned client, const char *name,
                                       uint32_t open_flags);
uint64_t rig_make(struct rig *r, unsigned client, const char *name); /* and closes it */
const struct msg_inode_rep *rig_open_file(struct rig *r, unsigned client, uint64_t ino,
                                          uint32_t flags);
void rig_close_file(struct rig *r, unsigned client, uint64_t ino, uint64_t open_id);
/* The file has chunks and this size from now on. */
void rig_grow(struct rig *r, unsigned client, uint64_t ino, uint64_t open_id, uint64_t size);
int rig_unlink(struct rig *r, unsigned client, const char *name);
/* Calls as an administrator. */
int rig_admin(struct rig *r, unsigned op, const void *req, const void **ret_rep);

/* ---- what is committed ---- */
int rig_inode(struct rig *r, uint64_t ino, struct mds_inode *ret_inode);
bool rig_has(struct rig *r, enum key_type type, uint64_t n);

static inline struct msg_bytes str(const char *s)
{
    return (struct msg_bytes){.data = s, .len = (uint32_t)strlen(s)};
}

#define ck_ok(expr) ck_assert_int_eq((expr), 0)

int rig_main(const char *name, void (*add)(TCase *t));

/* ---- a page of a directory (rig_list.c) ---- */

struct rig_page {
    bool dir;              /* alone with the directory */
    unsigned n, n_alone;   /* entries; with which it is alone */
    unsigned n_attributes; /* that came with attributes */
};
extern struct rig_page rig_page; /* the last one */
int rig_list(struct rig *r, unsigned client, uint64_t ino, bool alone);

#endif
