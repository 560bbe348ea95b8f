/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named threads, and the worker pool.
 *
 * Happy path: a job waits in one FIFO queue, a worker runs it and posts it back to its reactor,
 * whose thread calls done(). Failure modes: only creation can fail; the queue is as long as its
 * submitters' jobs, which they own and bound.
 */
#include "common/rt/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "common/base/assert.h"
#include "common/base/cleanup.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/rt/mailbox.h"

struct thread_args {
    void *(*fn)(void *arg);
    void *arg;
    char name[16];
};

static void *thread_main(void *p)
{
    struct thread_args args = *(struct thread_args *)p;

    mem_free(p);
    pthread_setname_np(pthread_self(), args.name);
    return args.fn(args.arg);
}

void thread_block_signals(sigset_t *ret_old)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t blocked;

    sigfillset(&blocked);
    for (unsigned i = 0; i < ARRAY_LEN(faults); i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, ret_old);
}

int thread_start(pthread_t *ret_thread, const char *name, void *(*fn)(void *arg), void *arg)
{
    struct thread_args *args = mem_alloc(sizeof(*args));
    sigset_t old;
    int rc;

    if (!args)
        return -ENOMEM;
    args->fn = fn;
    args->arg = arg;
    snprintf(args->name, sizeof(args->name), "%s", name);
    thread_block_signals(&old);
    rc = pthread_create(ret_thread, NULL, thread_main, args);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc) {
        LOG_ERROR(name, "cannot start a thread: %s", err_text(rc));
        mem_free(args);
    }
    return -rc;
}

/* ---- worker pool ---- */

struct worker_pool {
    char name[16];
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct work_queue queue;
    unsigned idle; /* waiting for more */
    bool closing;
    unsigned n_threads;
    pthread_t threads[];
};

static void worker_job_done(struct reactor_work *w)
{
    struct worker_job *j = container_of(w, struct worker_job, work);

    j->done(j);
}

static struct worker_job *worker_pool_take(struct worker_pool *p)
{
    struct reactor_work *w;

    AUTO_LOCK(&p->lock);
    while (!(w = work_queue_pop(&p->queue))) {
        if (p->closing)
            return NULL;
        p->idle++;
        pthread_cond_wait(&p->more, &p->lock);
        p->idle--;
    }
    return container_of(w, struct worker_job, work);
}

static void *worker_main(void *arg)
{
    struct worker_pool *p = arg;
    struct worker_job *j;

    while ((j = worker_pool_take(p))) {
        j->run(j);
        j->work.fn = worker_job_done;
        reactor_post(j->reactor, &j->work);
    }
    return NULL;
}

/* In the stead of worker_main() where there is no thread. */
static void worker_job_here(struct reactor_work *w)
{
    struct worker_job *j = container_of(w, struct worker_job, work);

    j->run(j);
    j->work.fn = worker_job_done;
    reactor_defer(j->reactor, &j->work);
}

int worker_pool_create(const char *name, unsigned threads, struct worker_pool **ret_pool)
{
    struct worker_pool *p;
    int rc;

    p = mem_zalloc(sizeof(*p) + threads * sizeof(p->threads[0]));
    if (!p)
        return -ENOMEM;
    snprintf(p->name, sizeof(p->name), "%s", name);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->more, NULL);
    for (; p->n_threads < threads; p->n_threads++) {
        rc = thread_start(&p->threads[p->n_threads], p->name, worker_main, p);
        if (rc < 0) {
            worker_pool_destroy(p);
            return rc;
        }
    }
    *ret_pool = p;
    return 0;
}

void worker_pool_destroy(struct worker_pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->closing = true;
    pthread_cond_broadcast(&p->more);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->n_threads; i++)
        pthread_join(p->threads[i], NULL);
    pthread_cond_destroy(&p->more);
    pthread_mutex_destroy(&p->lock);
    mem_free(p);
}

void worker_pool_submit(struct worker_pool *p, struct reactor *reactor, struct worker_job *j)
{
    j->reactor = reactor;
    if (!p->n_threads) {
        j->work.fn = worker_job_here;
        reactor_defer(reactor, &j->work);
        return;
    }
    AUTO_LOCK(&p->lock);
    ASSERT(!p->closing);
    work_queue_push(&p->queue, &j->work);
    if (p->idle)
        pthread_cond_signal(&p->more);
}

bool worker_pool_is_idle(struct worker_pool *p)
{
    AUTO_LOCK(&p->lock);
    return work_queue_empty(&p->queue) && p->idle == p->n_threads;
}
