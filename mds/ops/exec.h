/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of what a shard can execute (exec_table.c): one function per operation, by number. A
 * module adds its internal operations there, with one line each and a declaration in its own
 * header.
 */
#ifndef AIFS_MDS_OPS_EXEC_H
#define AIFS_MDS_OPS_EXEC_H

#include "mds/shard/shard.h"

extern shard_exec_fn *const mds_exec_table[SHARD_OP_LIMIT];

#endif
