/* SPDX-License-Identifier: Apache-2.0 */
/* What the metadata server says of the cluster, map and live figures together. */
#ifndef AIFS_TOOLS_ADMIN_CLUSTER_H
#define AIFS_TOOLS_ADMIN_CLUSTER_H

#include "tools/admin/admin.h"

#define CLUSTER_LATE_NS   (3 * NS_PER_S)     /* not heard of for so long: shown as unreachable */
#define CLUSTER_MISSED_NS (1500 * NS_PER_MS) /* heartbeats come every second: a warning */

#define CLUSTER_FULL_PERCENT   99u /* no room for a chunk more, or soon */
#define CLUSTER_FILLED_PERCENT 90u /* a warning */

struct cluster {
    struct cluster_map *map;             /* counted */
    const struct msg_status_rep *status; /* valid until the next call */
};

int cluster_get(struct admin *a, struct cluster *ret_cluster); /* enum admin_exit */
void cluster_put(struct cluster *c);
/* Its name, and its number where another one is called the same. */
const char *cluster_node_name(const struct cluster_map *map, const struct map_node *n,
                              char buf[96]);
const struct msg_node_live *cluster_node_live(const struct cluster *c, uint32_t node);
/* Heard of lately, and over a connection that is still open; live may be NULL. */
bool cluster_node_up(const struct msg_node_live *live);
/* NULL when its server has not reported it; ret_node, if it has: that server. */
const struct msg_target_stat *cluster_target_live(const struct cluster *c, uint32_t target,
                                                  const struct msg_node_live **ret_node);
/* As df(1) says it: of what is used and what can be. */
unsigned cluster_use_percent(const struct msg_target_stat *live);
/* Its server offers a directory in its place, or it was given up and is offered itself. */
bool cluster_target_refused(const struct cluster *c, const struct map_target *t);
/* A warning when that is so, or when it is simply not there. */
void cluster_target_missing(struct out *o, const struct cluster *c, const struct map_target *t);
/* What `status` warns of: servers that have missed a heartbeat, before it is long enough to count,
 * targets that are not in use, full or waited for. */
void cluster_warn(struct out *o, const struct cluster *c);
/* "missing": its server is there and does not have it; "unreachable": its server is not. */
const char *cluster_target_state(const struct cluster *c, const struct map_target *t);
/* What a session is: connected, or why it is of no use now. */
const char *cluster_session_state(const struct cluster *c, const struct msg_session_info *s);

#endif
