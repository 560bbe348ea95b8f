/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the rig. */
#ifndef AIFS_TESTS_COMPONENT_MDS_SERVER_RIG_INT_H
#define AIFS_TESTS_COMPONENT_MDS_SERVER_RIG_INT_H

#include "tests/component/mds_server/rig.h"

void rig_node(struct rig *r, const struct crypto_key *key, const char *name,
              const struct uuid *node, struct rpc_node **ret);
void rig_listen(struct rpc_node *node, const char *text);
void rig_close_node(struct rig *r, struct rpc_node *node);
void rig_oss_init(struct rig *r, unsigned i);
void rig_oss_fini(struct rig_oss *o);
void rig_oss_tick(struct rig_oss *o);
void rig_client_init(struct rig *r, unsigned i);
void rig_client_fini(struct rig_client *c);
void rig_client_tick(struct rig_client *c);

#endif
