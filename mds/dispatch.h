/* SPDX-License-Identifier: Apache-2.0 */
/* The table of requests that are answered here, those being served, and their figures. */
#ifndef AIFS_MDS_DISPATCH_H
#define AIFS_MDS_DISPATCH_H

#include "common/stat/stat.h"
#include "mds/mds.h"

struct mds_dispatch {
    struct mds *mds;
    struct list active; /* struct mds_op */
    uint64_t n_active;
    uint64_t layout_turn; /* files begin on one chain after the other */
    bool stopping;
    void (*stopped)(void *arg);
    void *stopped_arg;
    struct stat_histogram latency[RPC_OP_LIMIT];
    char labels[RPC_OP_LIMIT][32];
    struct stat_counter failed, batch_items, batch_alone;
    struct stat_callback shard_figures[8];
};

/* Serves a read: its handler, and once more for one that was parked. */
void mds_dispatch_read(struct rpc_req *req);

/* Is a change of this session under way? */
bool mds_dispatch_changes(const struct mds *m, uint64_t session);

#endif
