/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster map and the servers in it. What dispatch uses is struct mds_cluster_ops (mds/mds.h);
 * this is what the other modules of the server use. Threads: the server's reactor.
 *
 * An OSS is up from its NODE_REGISTER until it has been silent for CLUSTER_OFFLINE_NS. Once
 * declared offline it must register again, which gives it the fences it has missed.
 */
#ifndef AIFS_MDS_CLUSTER_CLUSTER_H
#define AIFS_MDS_CLUSTER_CLUSTER_H

#include "mds/mds.h"

#define CLUSTER_OFFLINE_NS (3 * NS_PER_S)

extern const struct mds_module mds_cluster_module;

/* ---- fences ---- */

struct cluster_fence_wait {
    struct list link;
    uint64_t fence; /* number, from the eviction's entry */
    void (*done)(struct cluster_fence_wait *w);
};
/*
 * Has every OSS refuse this session. done() once each OSS of the map has acknowledged or is
 * offline; never from inside. The fence is durable already. An OSS that is offline may still be
 * serving clients that reach it: it has the fence when cluster_target_fenced() says so.
 */
int cluster_fence_push(
    struct mds *m, uint64_t session, uint32_t generation,
    struct cluster_fence_wait *w) MUST_USE; /* -ENOMEM: not waiting; again later */
void cluster_fence_cancel(struct mds *m, struct cluster_fence_wait *w); /* no-op if not waiting */

/* ---- calls to object storage servers ---- */

bool cluster_target_up(struct mds *m, uint32_t target);
bool cluster_server_up(struct mds *m, uint32_t node);
/* Of some target that is up less than an eighth, or less than 1 GiB, is free: what removed files
 * have there is wanted soon. */
bool cluster_space_short(struct mds *m);
/* All targets that chunks of such a file are on, but those that are given up. */
bool cluster_layout_up(struct mds *m, const struct msg_layout *l);
/* It is up, and knows every fence up to this one. */
bool cluster_target_fenced(struct mds *m, uint32_t target, uint64_t fence);
/* The call is sent to the OSS of this target, done() as of rpc_peer_call(). -AIFS_EDOWN: it is not
 * up, nothing happens; -ENOMEM. */
int cluster_target_call(struct mds *m, uint32_t target, struct rpc_call *c) MUST_USE;

#endif
