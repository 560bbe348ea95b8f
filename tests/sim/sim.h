/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator: a metadata server, two object storage servers and three clients, the real code of
 * each, on one thread, a virtual clock and the loop transport. One seed is one run: a workload of
 * small operations on few names and files, faults at any moment, then a check that some order of
 * the operations explains every answer (docs/testing.md).
 *
 * Every node has a reactor of its own; run.c turns the one that is due first. Everything random
 * comes from the seed, so the same seed is the same run.
 */
#ifndef AIFS_TESTS_SIM_SIM_H
#define AIFS_TESTS_SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/compiler.h"
#include "common/net/buf.h"
#include "common/rt/reactor.h"
#include "tests/sim/cover.h"
#include "tests/sim/history.h"

#define SIM_OSS     2u
#define SIM_CLIENTS 3u
#define SIM_PROCS   2u /* of a client, one operation at a time each */
#define SIM_NODES   (1u + SIM_OSS + SIM_CLIENTS)
#define SIM_CHUNK   (64u << 10)
#define SIM_INLINE  1024u
#define SIM_LEASE   (4 * NS_PER_S)

enum sim_node_kind { NODE_MDS, NODE_OSS, NODE_CLIENT };

struct chunk_op;
struct core;
struct list;
struct mds;
struct oss;
struct chunk_store;
struct rpc_node;
struct uuid;

struct sim_node {
    enum sim_node_kind kind;
    unsigned index; /* among its kind */
    char name[16];
    struct reactor *reactor;
    bool up;
    bool failed;         /* could not mount */
    bool dead;           /* crashing: nothing leaves, nothing arrives */
    bool silent;         /* crashing: not even the ends of its connections are seen */
    uint64_t resume_ns;  /* paused until then; 0: runs */
    uint64_t restart_ns; /* down until then */
    unsigned starts;
    struct mds *mds;
    struct oss *oss;
    struct core *core;
};

struct sim {
    uint64_t seed;
    bool faults, verbose;
    struct clock_virtual clock;
    struct buf_pool *pool;
    struct sim_node node[SIM_NODES];
    struct history history;
    uint64_t trace; /* hash of everything that happened */
    uint64_t steps;
};

extern struct sim sim;

#define SIM_CHECK(x) ((x) ? (void)0 : sim_die(#x, __FILE__, __LINE__))
void sim_die(const char *what, const char *file, int line) __attribute__((noreturn));
void sim_trace(uint64_t x);
void sim_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- random.c ---- */
void sim_random_seed(uint64_t seed);
uint64_t sim_random(void);
uint32_t sim_below(uint32_t n);
uint64_t sim_between(uint64_t from, uint64_t to);
bool sim_chance(uint32_t per_thousand);

/* ---- mem_store.c, mem_chunks.c, mem_order.c: the disks ---- */
void sim_store_fail(const char *path); /* what is committed from now on is lost */
void sim_store_forget(void);
void sim_chunks_crash(struct chunk_store *s); /* what is under way fails, nothing more is stored */
uint64_t sim_chunks_uncommitted(const struct chunk_store *s); /* of which inode; 0: none */
/* Calls fn with each write that waits for the disk, until it returns false. */
void sim_chunks_each_write(const struct chunk_store *s,
                           bool (*fn)(void *arg, const struct chunk_op *op), void *arg);
struct super *sim_chunks_super(const char *dir);
void sim_chunks_forget(void);
bool sim_chunks_first_time(const struct chunk_op *op, uint64_t op_ids[2]); /* of a write */
struct chunk_op *sim_chunks_draw(struct list *queue); /* off the queue, which is not empty */

/* ---- nodes.c ---- */
static inline struct sim_node *sim_mds(void)
{
    return &sim.node[0];
}

static inline struct sim_node *sim_oss(unsigned i)
{
    return &sim.node[1 + i];
}

static inline struct sim_node *sim_client(unsigned i)
{
    return &sim.node[1 + SIM_OSS + i];
}

void sim_nodes_create(void);
void sim_nodes_destroy(void);
void sim_node_start(struct sim_node *n);
void sim_node_crash(struct sim_node *n, bool silent);
/* A server's end of the network, at this node. */
void sim_rpc_create(struct sim_node *n, const struct uuid *id, const struct uuid *boot,
                    struct rpc_node **ret);
/* What a dead writer has left of it is not known yet, or the metadata server is down. */
bool sim_is_sealing(uint64_t ino);
bool sim_is_there(uint64_t ino); /* in the store of the metadata server */

/* ---- faults.c ---- */
void sim_faults_start(void);
void sim_faults_tick(void);    /* begins and ends faults that are due */
uint64_t sim_faults_due(void); /* when the next one is */
void sim_faults_end(void);     /* none any more; everything is repaired */
uint64_t sim_disk_ns(void);

/* In one of four runs targets commit writes before they answer, as those in memory do, most of the
 * time; and clients send most of theirs from the caller's memory. */
static inline bool sim_commits_at_once(void)
{
    return sim.seed % 4 == 3;
}

/* ---- run.c ---- */
/* Time passes until the condition holds (true), or max_ns are over. */
bool sim_run_until(bool (*until)(void *arg), void *arg, uint64_t max_ns);
/* Only this node's reactor, without time passing. */
bool sim_run_alone(struct sim_node *n, bool (*until)(void *arg), void *arg);
uint64_t sim_now(void);

/* ---- work.c ---- */
void sim_work_start(unsigned n_ops);
void sim_work_client_up(struct sim_node *n);   /* it has a new core */
void sim_work_client_down(struct sim_node *n); /* its core is about to go, nothing is in flight */
bool sim_work_done(void *arg);                 /* all operations are made and answered */
void sim_work_sweep(void);                     /* now read all there is, for the check */
void sim_work_end(void); /* who may have lost its session does not learn of it any more */
uint64_t sim_work_due(void);
/* Does it ask for a lock, and has no answer? It then gives up within this time. 0: no; the file. */
uint64_t sim_work_asks(const struct sim_node *client, uint64_t within_ns);
uint64_t sim_work_locked(
    const struct sim_node *client); /* a file that it has a lock of, or waits for; 0: none */
void sim_work_tick(void);

#endif
