/* SPDX-License-Identifier: Apache-2.0 */
/* What the cluster module has the shard execute. */
#ifndef AIFS_MDS_CLUSTER_EXEC_H
#define AIFS_MDS_CLUSTER_EXEC_H

#include "mds/shard/shard.h"

/* SHARD_OP_MAP_SET: the whole map, as codec_map_encode() wrote it. */
struct cluster_map_set {
    const void *data;
    uint32_t len;
};

int exec_map_set(struct txn *t, struct shard_entry *e, const void **ret_rep);

#endif
