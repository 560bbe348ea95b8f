// SPDX-License-Identifier: Apache-2.0
/* Execution of the cluster module's entries. One leader at a time makes maps, one after the other,
 * so that the newest is simply the last. */
#include "mds/cluster/exec.h"

#include <errno.h>

#include "common/fault/fault.h"

int exec_map_set(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct cluster_map_set *msg = e->msg;
    struct key k;

    (void)ret_rep;
    key_single(&k, KEY_MAP);
    return FAULT("mds.map.entry") ? -ENOMEM : txn_record_put(t, &k, msg->data, msg->len);
}
