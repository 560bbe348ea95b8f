/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the server in the order of their start. */
#include "mds/cluster/cluster.h"
#include "mds/gc/gc.h"
#include "mds/locks/locks.h"
#include "mds/server.h"
#include "mds/session/session.h"

const struct mds_module *const mds_modules[] = {&mds_cluster_module,  &mds_session_module,
                                                &mds_locks_module,    &mds_gc_module,
                                                &mds_dispatch_module, NULL};
