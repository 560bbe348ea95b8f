/* SPDX-License-Identifier: Apache-2.0 */
/* Raw RPC between two processes of this machine: what proto/rpc and the transport reach alone. */
#ifndef AIFS_TOOLS_BENCH_RPC_LOAD_H
#define AIFS_TOOLS_BENCH_RPC_LOAD_H

#include "tools/bench/bench.h"

enum rpc_load_op { RPC_LOAD_PING, RPC_LOAD_READ, RPC_LOAD_WRITE };

struct rpc_load {
    enum rpc_load_op op;
    unsigned want; /* enum net_want */
    uint32_t bs;   /* payload */
    unsigned depth;
    double seconds;
};

/*
 * Forks the server and the client: this process itself never enters a transport. One row
 * "<prefix>.<op>[.<bs>].qd<depth>.<transport that was used>"; CPU is that of both processes. 0 or 1
 * after printing; *ret_row (may be NULL) borrowed.
 */
int rpc_load_measure(struct bench *b, const struct rpc_load *l, const char *prefix,
                     struct bench_result **ret_row);
int rpc_load_want(const char *name, unsigned *ret_want); /* "auto", "tcp", "shm"; or -EINVAL */

#endif
