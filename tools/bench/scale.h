/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many machines on one: a network in name spaces. The whole network lives in a process of its own,
 * the first of new process, mount and network name spaces; every machine is a child of it in a
 * network name space of its own, joined to a bridge by a veth pair whose speed is bounded in both
 * directions. Nothing has a name outside, and when that first process ends, however it ends (it
 * ends with the one that started it), the kernel takes everything down: processes, networks,
 * mounts, data.
 */
#ifndef AIFS_TOOLS_BENCH_SCALE_H
#define AIFS_TOOLS_BENCH_SCALE_H

#include <limits.h>
#include <sys/types.h>

#include "tools/bench/bench.h"

#define SCALE_SERVERS_MAX 32u
#define SCALE_CLIENTS_MAX 16u

/* Calls fn in such a process, whose rows and notes are added to b. fn's result, or 1 after
 * printing. Needs root. */
int scale_world_run(struct bench *b, int (*fn)(struct bench *b, void *arg), void *arg);
/* Inside: where data goes, in memory, empty at first. */
const char *scale_world_dir(void);
/* Inside: a machine at 10.77.0.<number>, 2 to 250; bytes_per_s 0: no bound. fn runs in it and its
 * result is the exit status. The pid, or 0 after printing. */
pid_t scale_machine_start(unsigned number, uint64_t bytes_per_s, int (*fn)(void *arg), void *arg);
/* Inside: ends every process but the caller. */
void scale_machines_stop(void);

/* ---- the cluster in it ---- */

struct scale_cluster {
    unsigned n_servers;
    uint64_t link_bytes_per_s; /* of each server, in each direction */
    char dir[64];
};
/* 0, or 1 after printing. */
int scale_cluster_start(struct scale_cluster *c) MUST_USE;

enum scale_access { SCALE_LIB, SCALE_MOUNT };

struct scale_load {
    const struct scale_cluster *cluster;
    enum scale_access access;
    unsigned n_clients;
    uint64_t bytes; /* of all clients together */
};
struct scale_outcome {
    double seconds; /* from the first start to the last end */
    uint64_t bytes;
    double slowest, fastest; /* of the clients, MB/s */
    double cpu_seconds;      /* of the clients */
};
/* All clients write at once, then all read, cold. 0, or 1 after printing. */
int scale_load_run(const struct scale_load *l, struct scale_outcome *ret_write,
                   struct scale_outcome *ret_read) MUST_USE;

/* A client on a machine of its own, with a new mount: fn's result, or 1 after printing. What fn
 * adds to b is there afterwards. */
int scale_client_run(const struct scale_cluster *c, struct bench *b,
                     int (*fn)(struct bench *b, const char *mountpoint, void *arg),
                     void *arg) MUST_USE;

#endif
