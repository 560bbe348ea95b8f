/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named threads, and a pool of workers for work that blocks (RocksDB, fsync, path resolution). A
 * job runs on a worker, then its done() on the reactor that submitted it. A pool without threads
 * runs its jobs on that reactor too, in a later turn: for tests that are one thread.
 */
#ifndef AIFS_COMMON_RT_THREAD_H
#define AIFS_COMMON_RT_THREAD_H

#include <pthread.h>
#include <signal.h>

#include "common/rt/reactor.h"

int thread_start(pthread_t *ret_thread, const char *name, void *(*fn)(void *arg),
                 void *arg) MUST_USE; /* blocks all signals in it */
/* All but those that a thread raises itself by a fault: a crash must stay readable. */
void thread_block_signals(sigset_t *ret_old);

struct worker_job {
    struct reactor_work work; /* first member; used by the pool */
    struct reactor *reactor;
    void (*run)(struct worker_job *j);  /* on a worker: may block */
    void (*done)(struct worker_job *j); /* on the reactor, exactly once */
};

struct worker_pool;
int worker_pool_create(const char *name, unsigned threads, struct worker_pool **ret_pool) MUST_USE;
void worker_pool_destroy(struct worker_pool *p); /* runs what is queued, then joins; done() may
                                                    still be pending on reactors */
void worker_pool_submit(struct worker_pool *p, struct reactor *reactor, struct worker_job *j);
/* No job waits or runs: every done() so far has been posted. For tests on a virtual clock. */
bool worker_pool_is_idle(struct worker_pool *p);

#endif
