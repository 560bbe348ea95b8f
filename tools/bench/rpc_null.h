/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of the null file system, behind raw RPC: what a FUSE read or write costs at least when
 * its bytes come from another process, with nothing else done. The server answers from memory.
 */
#ifndef AIFS_TOOLS_BENCH_RPC_NULL_H
#define AIFS_TOOLS_BENCH_RPC_NULL_H

#include "client/fuse/null_fs.h"
#include "common/crypto/crypto.h"

struct rpc_null;

/* Nothing of a transport exists until the file system starts, in a process forked in between, which
 * ends without giving anything back. */
int rpc_null_create(unsigned want, const struct crypto_key *key, uint16_t port,
                    struct null_fs_remote *ret_remote, struct rpc_null **ret_null) MUST_USE;
void rpc_null_free(struct rpc_null *null); /* where it was created; may be NULL */

#endif
