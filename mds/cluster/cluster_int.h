/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the cluster module.
 *
 *   change.c  changes of the map, pure; fence.c the list of fences, pure
 *   log.c     changes become durable, one entry for all that wait
 *   node.c    NODE_REGISTER, HEARTBEAT, who is up; peer.c connections to them
 *   push.c    fences to every OSS
 *   lost.c    targets that are not where they lived, TARGET_REPLACE, NODE_REMOVE
 *   pool.c    POOL_*; status.c STATUS and statfs; dump.c DUMP; map.c MAP_GET, start, stop
 */
#ifndef AIFS_MDS_CLUSTER_CLUSTER_INT_H
#define AIFS_MDS_CLUSTER_CLUSTER_INT_H

#include "common/base/err.h"
#include "common/base/hmap.h"
#include "common/base/list.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/stat/stat.h"
#include "mds/cluster/change.h"
#include "mds/cluster/cluster.h"
#include "mds/cluster/exec.h"
#include "mds/cluster/fence.h"
#include "mds/mds.h"
#include "mds/session/exec.h"
#include "mds/submit.h"

#define CLUSTER_PATH_BYTES  256
#define CLUSTER_FENCES_KEPT 1024u

/* A target as its server last described it. */
struct cluster_target {
    struct msg_target_stat stat; /* texts point to the buffers below */
    char path[CLUSTER_PATH_BYTES], pool[MAP_NAME_BYTES];
};

/* What a server offers where a target lived that is not there; or one that was given up. */
struct cluster_refused {
    struct list link;
    uint32_t instead_of;
    bool itself; /* it is the one that was given up */
    uint64_t seen_ns;
    struct uuid node;
    char alias[MAP_NAME_BYTES], path[CLUSTER_PATH_BYTES];
};

/* An OSS of the map. */
struct cluster_node {
    struct hmap_node by_id;
    struct list all;
    struct cluster *c;
    uint32_t id;
    bool up;         /* registered with this process, heard of since */
    bool waited_for; /* silent since this process started, but online when the last one ended */
    uint64_t say_again_ns; /* not 0: offline, but the change of the map failed: tried again then */
    struct uuid boot;
    uint64_t seen_ns;
    struct rpc_link *link; /* counted: it was heard of over it last; NULL: not yet */
    uint64_t acked;        /* it knows every fence up to this number */
    uint32_t n_targets;
    struct cluster_target *targets;
    struct rpc_peer *peer;
    struct map_node peer_of; /* what the peer was made from */
    struct cluster_fence_call *pushing;
};

struct map_change;

struct map_change_ops {
    int (*apply)(struct map_change *change, struct cluster_map *m); /* as of change.h */
    /* 0 (the map is in force) or an error. Answers the request, if there is one. */
    void (*done)(struct map_change *change, int status);
};

/* From cluster_change_new() to the end of done(). */
struct map_change {
    struct list link;
    const struct map_change_ops *ops;
    struct cluster *c;
    struct rpc_req *req;       /* who asked for it; NULL: nobody */
    uint32_t node;             /* who it is about, or in the way */
    char name[MAP_NAME_BYTES]; /* what apply() keeps for done() */
    bool dry_run;
    int status;
};

struct cluster {
    struct mds *mds;
    struct cluster_map *map, *retired, *next;
    struct hmap nodes;
    struct list node_list;
    /* changes */
    struct list waiting, committing; /* struct map_change */
    bool busy;
    struct mds_submit submit;
    struct cluster_map_set set;
    struct arena encoded;
    struct reactor_work retire;
    bool retiring;
    /* fences */
    struct fence_list fences;
    struct list fence_waits;
    struct reactor_work fence_work;
    bool fence_queued, forgetting;
    struct mds_submit forget_submit;
    struct session_fence_forget forget;
    struct list refused; /* struct cluster_refused; at most one for each target of the map */
    struct list dumps;
    uint32_t n_dumps;
    uint64_t next_dump;
    struct reactor_timer tick;
    uint64_t last_tick_ns;
    uint32_t outstanding;
    bool stopping;
    void (*stopped)(void *arg);
    void *stopped_arg;
    struct reactor_work stop;
    struct {
        struct stat_counter changes, registered, offline, fences, fence_retries, dumps;
        struct stat_gauge epoch, nodes_up;
    } stats;
};

static inline struct cluster *cluster_of(struct mds *m)
{
    return m->cluster;
}

static inline uint64_t cluster_now_ns(struct cluster *c)
{
    return reactor_now_ns(c->mds->reactor);
}

void cluster_begin(struct cluster *c);
void cluster_end(struct cluster *c);

/* log.c */
int cluster_log_load(
    struct cluster *c) MUST_USE; /* reads or makes the map; before the reactor runs */
struct map_change *cluster_change_new(struct cluster *c,
                                      const struct map_change_ops *ops); /* or NULL */
void cluster_change(struct map_change *change);                          /* takes it */
/* What a request asks for. Answered at once if `rc` is an error, or it cannot be tried. */
void cluster_change_asked(struct rpc_req *req, int rc, bool dry_run,
                          const struct map_change_ops *ops);
void cluster_log_fini(struct cluster *c);

/* node.c */
int cluster_nodes_load(struct cluster *c) MUST_USE;
void cluster_nodes_fini(struct cluster *c);
struct cluster_node *cluster_node(struct cluster *c, uint32_t id);
int cluster_node_add(struct cluster *c, uint32_t id, struct cluster_node **ret_node) MUST_USE;
void cluster_node_forget(struct cluster *c, uint32_t id); /* it is not in the map any more */
void cluster_node_tick(struct cluster *c, uint64_t now_ns);
void cluster_serve_register(struct rpc_req *req);
void cluster_serve_heartbeat(struct rpc_req *req);

/* peer.c */
struct rpc_peer *cluster_peer(struct cluster_node *n); /* NULL: not up, or out of memory */

/* push.c */
int cluster_fences_load(struct cluster *c) MUST_USE;
void cluster_fences_fini(struct cluster *c);
void cluster_fence_check(struct cluster *c); /* some server knows more, or is not up any more */
void cluster_fence_acked(struct cluster_node *n, uint64_t fence); /* it knows all up to this */
void cluster_fence_send(struct cluster_node *n);
void cluster_fence_forget(struct cluster *c);

/* lost.c */
void cluster_refused_note(struct cluster *c, const struct msg_register_req *req);
void cluster_refused_fini(struct cluster *c);
int cluster_refused_list(struct cluster *c, struct arena *a,
                         struct msg_status_rep *rep) MUST_USE; /* -ENOMEM */
void cluster_serve_replace(struct rpc_req *req);
void cluster_serve_remove(struct rpc_req *req);

/* pool.c, status.c, dump.c */
void cluster_serve_pool(struct rpc_req *req);
void cluster_serve_status(struct rpc_req *req);
void cluster_statfs(struct mds *m, struct msg_statfs_rep *ret_rep);
void cluster_serve_dump(struct rpc_req *req);
void cluster_dump_tick(struct cluster *c, uint64_t now_ns);
void cluster_dumps_stop(struct cluster *c);

#endif
