/* SPDX-License-Identifier: Apache-2.0 */
/* Raw RPC between two processes of this machine: what proto/rpc and the transport reach alone. */
#ifndef AIFS_TOOLS_BENCH_RPC_LOAD_H
#define AIFS_TOOLS_BENCH_RPC_LOAD_H

#include <sys/types.h>

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
/* The server alone, in a process of its own that ends with this one, or when *ret_until is closed.
 * The key is what a client needs. 0, or 1 after printing. */
struct crypto_key;
int rpc_server_start(unsigned want, unsigned depth, struct crypto_key *ret_key, uint16_t *ret_port,
                     int *ret_until, pid_t *ret_pid) MUST_USE;
/* A client of it on a reactor that is there already: a peer to call. -errno. */
struct reactor;
struct rpc_node;
struct rpc_peer;
int rpc_client_start(struct reactor *reactor, unsigned want, const struct crypto_key *key,
                     uint16_t port, struct rpc_node **ret_node,
                     struct rpc_peer **ret_peer) MUST_USE;
int rpc_load_want(const char *name, unsigned *ret_want); /* "auto", "tcp", "shm"; or -EINVAL */

#endif
