/* SPDX-License-Identifier: Apache-2.0 */
/* Named threads and the worker pool. */
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/rt/thread.h"
#include "tests/support/suite.h"

static struct reactor *r;
static struct worker_pool *pool;

static void setup(void)
{
    struct reactor_options options = {.name = "test"};

    ck_assert_int_eq(reactor_create(&options, &r), 0);
    ck_assert_int_eq(worker_pool_create("worker", 3, &pool), 0);
}

static void teardown(void)
{
    worker_pool_destroy(pool);
    reactor_destroy(r);
}

static void *look_around(void *arg)
{
    char name[16];
    sigset_t mask;

    ck_assert_int_eq(pthread_getname_np(pthread_self(), name, sizeof(name)), 0);
    ck_assert_str_eq(name, "a-name-of-fifte"); /* cut to 15 bytes */
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    ck_assert(sigismember(&mask, SIGTERM) && sigismember(&mask, SIGCHLD));
    ck_assert(!sigismember(&mask, SIGSEGV));
    return arg;
}

START_TEST(a_thread_has_its_name_and_takes_no_signals)
{
    pthread_t thread;
    sigset_t mask;
    void *result;
    int x;

    ck_assert_int_eq(thread_start(&thread, "a-name-of-fifteen-and-more", look_around, &x), 0);
    pthread_join(thread, &result);
    ck_assert_ptr_eq(result, &x);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    ck_assert(!sigismember(&mask, SIGTERM)); /* the starter's own mask is as before */
}
END_TEST

struct task {
    struct worker_job job;
    unsigned ran, done;
    struct task *next; /* submitted by done() */
};

static unsigned tasks_done, tasks_wanted;

static void task_run(struct worker_job *j)
{
    ck_assert(!reactor_is_current(r));
    container_of(j, struct task, job)->ran++;
}

static void task_done(struct worker_job *j)
{
    struct task *t = container_of(j, struct task, job);

    ck_assert(reactor_is_current(r));
    ck_assert_uint_eq(t->ran, 1);
    t->done++;
    if (t->next)
        worker_pool_submit(pool, r, &t->next->job);
    if (++tasks_done == tasks_wanted)
        reactor_stop(r);
}

START_TEST(every_job_runs_once_and_is_done_once_on_its_reactor)
{
    enum { N = 2000 };
    struct task *tasks = calloc(N, sizeof(*tasks));

    tasks_done = 0;
    tasks_wanted = N;
    for (int i = 0; i < N; i++)
        tasks[i].job = (struct worker_job){.run = task_run, .done = task_done};
    for (int i = 0; i < N / 2; i++) {
        tasks[i].next = &tasks[N / 2 + i];
        worker_pool_submit(pool, r, &tasks[i].job);
    }
    reactor_run(r);
    for (int i = 0; i < N; i++)
        ck_assert_uint_eq(tasks[i].done, 1);
    free(tasks);
}
END_TEST

static pthread_barrier_t barrier;

static void task_meet(struct worker_job *j)
{
    pthread_barrier_wait(&barrier); /* passes only if three jobs run at the same time */
    container_of(j, struct task, job)->ran++;
}

START_TEST(jobs_run_on_all_workers_at_once)
{
    struct task tasks[3] = {0};

    tasks_done = 0;
    tasks_wanted = 3;
    pthread_barrier_init(&barrier, NULL, 3);
    for (int i = 0; i < 3; i++) {
        tasks[i].job = (struct worker_job){.run = task_meet, .done = task_done};
        worker_pool_submit(pool, r, &tasks[i].job);
    }
    reactor_run(r);
    pthread_barrier_destroy(&barrier);
}
END_TEST

START_TEST(a_pool_is_idle_only_when_all_jobs_are_posted_back)
{
    struct task tasks[2] = {0};

    tasks_done = 0;
    tasks_wanted = 2;
    pthread_barrier_init(&barrier, NULL, 2);
    for (int i = 0; i < 2; i++)
        tasks[i].job = (struct worker_job){.run = task_meet, .done = task_done};
    worker_pool_submit(pool, r, &tasks[0].job); /* waits for the other one */
    ck_assert(!worker_pool_is_idle(pool));
    worker_pool_submit(pool, r, &tasks[1].job);
    while (!worker_pool_is_idle(pool))
        sched_yield();
    while (reactor_run_once(r, 0))
        ;
    ck_assert_uint_eq(tasks_done, 2);
    pthread_barrier_destroy(&barrier);
}
END_TEST

START_TEST(destroying_a_pool_runs_what_is_queued)
{
    enum { N = 100 };
    struct task tasks[N] = {0};
    struct worker_pool *other;

    tasks_done = 0;
    tasks_wanted = N;
    ck_assert_int_eq(worker_pool_create("other", 1, &other), 0);
    for (int i = 0; i < N; i++) {
        tasks[i].job = (struct worker_job){.run = task_run, .done = task_done};
        worker_pool_submit(other, r, &tasks[i].job);
    }
    worker_pool_destroy(other);
    ck_assert_uint_eq(tasks_done, 0); /* they wait on the reactor */
    reactor_run(r);
    ck_assert_uint_eq(tasks_done, N);
}
END_TEST

static void run_here(struct worker_job *j)
{
    ck_assert(reactor_is_current(r));
    container_of(j, struct task, job)->ran++;
}

START_TEST(a_pool_without_threads_runs_its_jobs_in_a_later_turn_of_the_reactor)
{
    struct task t = {.job = {.run = run_here, .done = task_done}};
    struct worker_pool *other;

    tasks_done = 0;
    tasks_wanted = 1;
    ck_assert_int_eq(worker_pool_create("other", 0, &other), 0);
    ck_assert_uint_eq(reactor_due_ns(r), UINT64_MAX);
    worker_pool_submit(other, r, &t.job);
    ck_assert_uint_eq(t.ran, 0);
    ck_assert_uint_eq(reactor_due_ns(r), 0);
    reactor_run(r); /* task_done() stops it */
    ck_assert_uint_eq(t.ran, 1);
    ck_assert_uint_eq(tasks_done, 1);
    ck_assert(worker_pool_is_idle(other));
    worker_pool_destroy(other);
}
END_TEST

SUITE_MAIN("thread", setup, teardown, a_thread_has_its_name_and_takes_no_signals,
           every_job_runs_once_and_is_done_once_on_its_reactor, jobs_run_on_all_workers_at_once,
           a_pool_is_idle_only_when_all_jobs_are_posted_back, destroying_a_pool_runs_what_is_queued,
           a_pool_without_threads_runs_its_jobs_in_a_later_turn_of_the_reactor)
