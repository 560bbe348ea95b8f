/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers behind the durable queues: chunks of removed files are destroyed, cut chunks are cut, the
 * sizes of dead writers' files are asked from the targets, and what was in removed trees goes. What
 * the other modules use is struct mds_gc_ops (mds/mds.h). Threads: the server's reactor.
 *
 * An item stays in the store until every target of the file's layout has confirmed, so that
 * nothing is forgotten, whatever dies; every step can be repeated. Work on a target that is down
 * waits until its server registers again.
 */
#ifndef AIFS_MDS_GC_GC_H
#define AIFS_MDS_GC_GC_H

#include "mds/mds.h"

extern const struct mds_module mds_gc_module;

#endif
