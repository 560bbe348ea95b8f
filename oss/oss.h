/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The object storage server: targets, who may talk to them, and the way of a request.
 *
 *   main       configuration, start and stop
 *   target     the list of open targets
 *   look       whether their directories are still there
 *   session    fences, incarnations, grants: whether a request may run, and when
 *   dispatch   from rpc to an operation and back, with counters
 *   fan        one request over many chunks
 *   ops/       one file per operation
 *   cluster    registration and heartbeats with the metadata server
 *
 * Everything runs on the one reactor, but for the calls that look at directories.
 */
#ifndef AIFS_OSS_OSS_H
#define AIFS_OSS_OSS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/hmap.h"
#include "common/base/list.h"
#include "common/conf/conf.h"
#include "common/net/buf.h"
#include "common/rt/thread.h"
#include "common/stat/stat.h"
#include "common/uring/fio.h"
#include "oss/chunk/store.h"
#include "proto/rpc.h"

#define OSS_TARGETS_MAX 64u

/* The last look at a target's directory, or the one that is under way (look.c). */
struct oss_look {
    struct worker_job job;
    bool busy;
    _Atomic bool begun; /* a thread has taken it up: until then it waits for others */
    uint64_t since_ns;  /* when that was seen; 0: not yet */
    bool hung;          /* that is so long ago that the log says so */
    bool away;          /* as of the last one that has ended */
    bool found_away;    /* of the thread that looks, while busy */
};

struct oss_target {
    struct oss *oss;
    struct chunk_store *store;
    uint32_t id;         /* 0: the cluster has not numbered it yet, or has refused it */
    uint32_t instead_of; /* refused: the target that lived here; 0: not refused */
    bool not_taken;      /* and nobody lived here: no such pool, or another server has it */
    bool away;           /* its directory is not where it was: not served */
    bool returns;        /* away, and there again: being given the fences it lacks */
    struct oss_look look;
    char pool[SUPER_POOL_BYTES];
};

struct oss_cluster;
struct oss_dispatch;

struct oss {
    struct conf *conf;
    struct reactor *reactor;
    struct fio *fio;
    struct rpc_node *rpc;
    struct buf_pool *in;  /* payloads of requests */
    struct buf_pool *out; /* payloads of replies */
    struct crypto_key key;
    struct uuid node, boot;
    char name[64];
    const char *run_dir;
    uint16_t port;
    uint64_t started_ns;
    struct oss_target targets[OSS_TARGETS_MAX];
    uint32_t n_targets;
    char *blank[OSS_TARGETS_MAX]; /* dir:pool of those that are to be formatted */
    uint32_t n_blank;
    struct hmap sessions;        /* struct oss_session */
    struct list idle;            /* those without a request, least recently used first */
    struct list promised;        /* those that were promised space, by their last write */
    uint64_t fence_seq;          /* known up to here, and nothing of them is in flight any more */
    struct list fencing;         /* fences that wait for the end of what is in flight */
    struct worker_pool *lookers; /* NULL: nobody looks whether targets are there */
    struct look_end *look_end;   /* while it stops to look */
    bool left_open;     /* stopping: a target was not closed, for its directory does not answer */
    _Atomic bool ready; /* registered: the fences are known, clients are served */
    bool stopping;
    struct stat_counter repeated; /* writes and punches that were done before */
    uint32_t fan_width; /* of the store's operations of one request at a time; 0: OSS_FAN_WIDTH */
    struct oss_cluster *cluster;
    struct oss_dispatch *dispatch;
};

/* ---- target.c ---- */

/* Opens every target of the configuration, and those added since; an empty directory is noted
 * (o->blank), one that is not there left out. Blocks. err gets a sentence. */
int oss_targets_open(struct oss *o, char *err, size_t err_len) MUST_USE;
/* For when the metadata server is known to be of this cluster: formats and opens the next one of
 * o->blank, which is told then; false: there is none. Blocks. */
bool oss_targets_format_next(struct oss *o);
/* "dir" or "dir:pool". Formats it when it is empty; -EEXIST when it is open already; -ENOENT when
 * there is no such directory. */
int oss_target_add(struct oss *o, const char *spec, char *err, size_t err_len) MUST_USE;
int oss_targets_remember(struct oss *o) MUST_USE; /* those that the configuration does not name */
/* Looks under way are waited for, but not long: where one does not end, its target is not closed
 * (what is committed is safe), and o->left_open tells that threads still know it. */
void oss_targets_close(struct oss *o, void (*done)(void *arg), void *arg);
struct oss_target *oss_target_find(struct oss *o, uint32_t id); /* NULL; also while it is away */
/* Its figures, for the metadata server; strings are borrowed from the target. */
void oss_target_stat(struct oss_target *t, struct msg_target_stat *ret_stat);

/* ---- look.c ---- */

int oss_targets_look_start(struct oss *o) MUST_USE;
/* No more are begun by now: done() when none is under way, or has not ended in time. */
void oss_targets_look_stop(struct oss *o, void (*done)(void *arg), void *arg);
/* Are the directories still where they were? What it finds out it acts on. */
void oss_targets_look(struct oss *o);

/* ---- session.c ---- */

/* Writes and punches that are not done again when they are sent again: the latest of a session. */
#define OSS_ONCE_KEPT 512u
struct oss_once {
    uint32_t next;
    uint64_t ids[OSS_ONCE_KEPT]; /* 0: none yet */
};

struct oss_session {
    struct hmap_node node;
    uint64_t id;
    uint32_t fenced; /* generations up to this one are refused */
    bool is_fenced;
    uint32_t incarnation;
    uint32_t in_flight, older; /* older: of them, those of an earlier incarnation */
    struct list waiting;       /* oss_request.link: until older is 0 */
    struct list idle_link;
    struct list promised_link; /* oss.promised: those that have grants, the last writer last */
    uint64_t promised_ns;
    uint64_t grants[OSS_TARGETS_MAX]; /* chunk_store_promise() */
    struct oss_once *once;            /* NULL: none, or no memory for it */
};

struct oss_request;
int oss_sessions_init(struct oss *o) MUST_USE;
void oss_sessions_fini(struct oss *o);
/* Runs r now or when requests of older connections are done; or says why not. Requests without a
 * session run at once. */
int oss_session_enter(struct oss_request *r) MUST_USE;
void oss_session_leave(struct oss_request *r);
/* From now on refused; remembered by the caller. Done when nothing of them is in flight
 * (oss_session_drained()). */
int oss_session_fence(struct oss *o, uint64_t session, uint32_t generation) MUST_USE;
void oss_sessions_tick(struct oss *o); /* now and then: promises to those who went away end */
bool oss_session_drained(struct oss *o, uint64_t session);
/* Those that are fenced: how many there are; the first max of them. */
uint32_t oss_sessions_fenced(const struct oss *o, struct chunk_fence *ret_fences, uint32_t max);
/* Are they all done already, by requests of an earlier connection: n numbers from id? id 0: no.
 * They are now, and durable. */
bool oss_session_did(const struct oss_request *r, uint64_t id, uint32_t n);
void oss_session_done(struct oss_request *r, uint64_t id, uint32_t n);
/* Space promised to r's session on target t, for writes to name; NULL: it has no session. */
uint64_t *oss_session_promise(struct oss_request *r, struct oss_target *t);
/* Up to want of it is promised anew, for a minute. What it has then. */
uint64_t oss_session_grant(struct oss_request *r, struct oss_target *t, uint64_t want);

/* ---- dispatch.c ---- */

typedef void oss_op_fn(struct oss_request *r);
typedef bool oss_place_fn(struct oss *o, struct rpc_req *req); /* see rpc_place_fn */

struct oss_request { /* in the arena of its rpc_req */
    struct list link;
    struct oss *oss;
    struct rpc_req *rpc;
    const struct oss_op *op;
    struct oss_session *session;
    struct oss_target *target;
    const void *msg;
    uint64_t started_ns;
    bool entered; /* counted in session->in_flight */
    void *state;  /* of the operation */
};

#define OSS_OP_DATA                                                                                \
    0x1u /* of clients: only when registered, not fenced, in order of incarnations */

struct oss_op {
    uint16_t number;
    uint8_t flags;
    oss_op_fn *run;
    oss_place_fn *place; /* NULL: payloads land in buffers */
};

int oss_dispatch_start(struct oss *o) MUST_USE; /* registers all handlers */
void oss_dispatch_stop(struct oss *o);
void *oss_alloc(struct oss_request *r,
                size_t size); /* zeroed, until the reply; NULL: it has been answered */
void oss_reply(struct oss_request *r, int status, const void *msg);
void oss_reply_bulk(struct oss_request *r, const void *msg, const struct iovec *iov, unsigned n_iov,
                    void (*released)(void *arg), void *arg);
/* The target a request names; NULL: it has been answered. */
struct oss_target *oss_request_target(struct oss_request *r, uint32_t id);

/* ---- fan.c ---- */

#define OSS_FAN_WIDTH 64u

struct oss_fan_slot {
    struct chunk_op op;
    struct oss_fan *fan;
    uint32_t i;
    bool busy;
};

/* n chunk operations, a few at a time; the first failure stops the rest. Lives in the request's
 * arena. */
struct oss_fan {
    struct oss_request *request;
    struct chunk_store *store;
    uint32_t n, next, running;
    int status;
    bool pumping;
    void (*fill)(struct oss_fan *f, uint32_t i, struct chunk_op *op); /* op is zeroed */
    void (*each)(struct oss_fan *f, uint32_t i,
                 struct chunk_op *op); /* it succeeded; may be NULL */
    void (*done)(struct oss_request *r, int status);
    uint32_t n_slots;
    struct oss_fan_slot slots[];
};

/* In r->state's stead: NULL when the request has been answered for lack of memory. */
struct oss_fan *oss_fan_create(struct oss_request *r, uint32_t n);
void oss_fan_run(struct oss_fan *f);

/* ---- ops/ ---- */

oss_op_fn oss_op_read, oss_op_write, oss_op_commit, oss_op_truncate, oss_op_punch, oss_op_destroy,
    oss_op_seal, oss_op_seek, oss_op_fence, oss_op_chunk_list, oss_op_stat, oss_op_target_add,
    oss_op_map_changed;
bool oss_place_write(struct oss *o, struct rpc_req *req);
/* Takes fences that came with a registration or heartbeat: in force at once, durable when stored()
 * runs. fence_seq rises to seq then, or later: when no request of these sessions is in flight. */
void oss_fences_take(struct oss *o, const struct msg_fence *fences, uint32_t n, uint64_t seq,
                     void (*stored)(void *arg, int status), void *arg);
bool oss_fences_drain(const struct oss *o, uint64_t seq); /* those up to seq wait for that end */
void oss_fence_poll(struct oss *o);                       /* something in flight has ended */
/* Every fence in force, durable on t when stored() runs, which it may within. Nothing is stored on
 * a target whose store has failed: it goes on as one that has. */
void oss_fences_restore(struct oss_target *t, void (*stored)(void *arg, int status));

/* ---- cluster.c ---- */

int oss_cluster_start(struct oss *o) MUST_USE;
void oss_cluster_stop(struct oss *o);
void oss_cluster_free(struct oss *o);     /* after its last call has ended */
void oss_cluster_register(struct oss *o); /* again, and now: there is a new target */

#endif
