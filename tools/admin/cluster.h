/* SPDX-License-Identifier: Apache-2.0 */
/* What the metadata server says of the cluster, map and live figures together. */
#ifndef AIFS_TOOLS_ADMIN_CLUSTER_H
#define AIFS_TOOLS_ADMIN_CLUSTER_H

#include "tools/admin/admin.h"

#define CLUSTER_LATE_NS   (3 * NS_PER_S)     /* not heard of for so long: shown as unreachable */
#define CLUSTER_MISSED_NS (1500 * NS_PER_MS) /* heartbeats come every second: a warning */

struct cluster {
    struct cluster_map *map;             /* counted */
    const struct msg_status_rep *status; /* valid until the next call */
};

int cluster_get(struct admin *a, struct cluster *ret_cluster); /* enum admin_exit */
void cluster_put(struct cluster *c);
const struct msg_node_live *cluster_node_live(const struct cluster *c, uint32_t node);
/* NULL when its server has not reported it. */
const struct msg_target_stat *cluster_target_live(const struct cluster *c, uint32_t target,
                                                  uint64_t *ret_seen_ns_ago);
/* A warning when its server has found another directory where it lived. */
void cluster_target_missing(struct out *o, const struct cluster *c, const struct map_target *t);
const char *cluster_target_state(const struct map_target *t, const struct msg_target_stat *live,
                                 uint64_t seen_ns_ago);

#endif
