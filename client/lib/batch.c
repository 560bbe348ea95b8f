/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many calls on names at once: the whole batch is one hand-over to the reactor, which keeps up to
 * RUNS_MAX of them going; those of one turn share messages (client/core/batch.c), and the server
 * commits together what arrives together. What the caches know costs no message.
 *
 * On the reactor: pump() starts calls while there is room; a call that ends makes room. Calls end
 * inside pump() when a cache answers, so it is a loop and not a recursion, and it gives others a
 * turn now and then. Failure: each call has its own result; without memory for the batch nothing is
 * begun.
 */
#include "client/lib/lib_int.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#define RUNS_MAX 512u /* calls under way: full messages, while others are being answered */
#define TURN_MAX 1024 /* calls begun before others have their turn */

struct run {
    struct list link; /* batch.idle */
    struct aifs_batch *batch;
    struct aifs_name *name;
    struct core_req q;
    struct lib_walk *walk;
};

struct aifs_batch {
    struct aifs *fs;
    struct reactor_work work;
    pid_t process;
    struct aifs_name *names;
    unsigned n, next, n_ended;
    bool pumping;
    bool deferred; /* work is queued, and begins what is left */
    struct list idle;
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool done; /* under the lock */
    unsigned n_runs;
    struct run runs[];
};

static void pump(struct aifs_batch *b);

/* The last call has ended: the batch is its waiter's from here on. */
static void batch_done(struct aifs_batch *b)
{
    pthread_mutex_lock(&b->lock);
    b->done = true;
    pthread_cond_signal(&b->over);
    pthread_mutex_unlock(&b->lock);
}

static void run_over(struct run *r, int status)
{
    struct aifs_batch *b = r->batch;

    r->name->result = status ? -err_to_errno(status) : 0;
    list_push_front(&b->idle, &r->link); /* its memory is warm */
    b->n_ended++;
    if (!b->pumping && !b->deferred)
        pump(b);
}

static void run_changed(struct core_req *q, int status)
{
    struct run *r = container_of(q, struct run, q);

    if (!status && (r->name->op == AIFS_NAME_CREATE || r->name->op == AIFS_NAME_MKDIR))
        lib_stat_fill(&r->name->st, &q->entry.attr);
    run_over(r, status);
}

static void run_walked(struct lib_walk *w, int status)
{
    struct run *r = w->q.arg;
    struct aifs_name *n = r->name;
    struct core *c = r->batch->fs->core;

    if (!status && (n->op == AIFS_NAME_STAT || n->op == AIFS_NAME_LSTAT))
        lib_stat_fill(&n->st, &w->entry.attr);
    else if (!status) {
        lib_req(r->batch->fs, &r->q, run_changed, r);
        if (n->op == AIFS_NAME_CREATE)
            core_mknod(c, &r->q, w->parent, w->name, w->name_len, (n->mode & 07777) | S_IFREG, 0,
                       NULL);
        else if (n->op == AIFS_NAME_MKDIR)
            core_mkdir(c, &r->q, w->parent, w->name, w->name_len, n->mode & LIB_MKDIR_BITS, NULL);
        else if (n->op == AIFS_NAME_UNLINK)
            core_unlink(c, &r->q, w->parent, w->name, w->name_len);
        else
            core_rmdir(c, &r->q, w->parent, w->name, w->name_len);
        return;
    }
    run_over(r, status);
}

static unsigned walk_flags(const struct aifs_name *n)
{
    static const unsigned flags[] = {
        [AIFS_NAME_STAT] = LIB_FOLLOW,
        [AIFS_NAME_LSTAT] = 0,
        [AIFS_NAME_CREATE] = LIB_PARENT | LIB_CREATE,
        [AIFS_NAME_MKDIR] = LIB_PARENT | LIB_MKDIR,
        [AIFS_NAME_UNLINK] = LIB_PARENT | LIB_UNLINK,
        [AIFS_NAME_RMDIR] = LIB_PARENT | LIB_RMDIR,
    };

    return flags[n->op];
}

static void run_start(struct run *r, struct aifs_name *n)
{
    int err;

    r->name = n;
    if (!r->walk)
        r->walk = lib_walk_alloc(r->batch->fs);
    err = r->walk ? lib_walk_set(r->walk, n->path, walk_flags(n)) : -ENOMEM;
    if (err) {
        run_over(r, err);
        return;
    }
    r->walk->q.arg = r;
    lib_walk_start(r->walk, run_walked);
}

static void pump(struct aifs_batch *b)
{
    unsigned left = TURN_MAX;

    b->pumping = true;
    while (b->next < b->n && !list_empty(&b->idle) && left--) {
        struct list *l = list_pop_front(&b->idle);

        run_start(list_entry(l, struct run, link), &b->names[b->next++]);
    }
    b->pumping = false;
    if (b->n_ended == b->n)
        batch_done(b);
    else if (b->next < b->n && !list_empty(&b->idle)) {
        b->deferred = true;
        reactor_defer(b->fs->reactor, &b->work);
    }
}

static void batch_begin(struct reactor_work *w)
{
    struct aifs_batch *b = container_of(w, struct aifs_batch, work);

    b->deferred = false;
    pump(b);
}

/* ---- the caller's side ---- */

static void batch_free(struct aifs_batch *b)
{
    while (b->n_runs)
        mem_free(b->runs[--b->n_runs].walk);
    pthread_cond_destroy(&b->over);
    pthread_mutex_destroy(&b->lock);
    mem_free(b);
}

static int batch_new(struct aifs *fs, struct aifs_name *names, unsigned n,
                     struct aifs_batch **ret_batch)
{
    unsigned runs = MIN(n, RUNS_MAX);
    struct aifs_batch *b = mem_alloc(sizeof *b + runs * sizeof b->runs[0]);
    pthread_condattr_t attr;

    if (!b)
        return -ENOMEM;
    memset(b, 0, sizeof *b);
    b->fs = fs;
    b->process = getpid();
    b->names = names;
    b->n = n;
    b->work.fn = batch_begin;
    b->deferred = true; /* until the reactor has it */
    list_init(&b->idle);
    pthread_mutex_init(&b->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&b->over, &attr);
    pthread_condattr_destroy(&attr);
    for (; b->n_runs < runs; b->n_runs++) {
        struct run *r = &b->runs[b->n_runs];

        r->batch = b;
        r->walk = NULL; /* until it is needed: what the caches know needs one */
        list_push_back(&b->idle, &r->link);
    }
    *ret_batch = b;
    return 0;
}

static int names_check(const struct aifs_name *names, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (names[i].op < AIFS_NAME_STAT || names[i].op > AIFS_NAME_RMDIR)
            return -EINVAL;
    }
    return n ? 0 : -EINVAL;
}

struct aifs_batch *aifs_batch_submit(struct aifs *fs, struct aifs_name *names, unsigned n)
{
    struct aifs_batch *b = NULL;
    int err = lib_usable(fs);

    if (!err)
        err = names_check(names, n);
    if (!err)
        err = batch_new(fs, names, n, &b);
    if (err) {
        (void)lib_errno(err);
        return NULL;
    }
    lib_post(fs, &b->work);
    return b;
}

static struct timespec after(int timeout_ms)
{
    struct timespec t;
    int64_t ns;

    clock_gettime(CLOCK_MONOTONIC, &t);
    ns = t.tv_nsec + (int64_t)timeout_ms * 1000000;
    t.tv_sec += ns / 1000000000;
    t.tv_nsec = ns % 1000000000;
    return t;
}

int aifs_batch_wait(struct aifs_batch *b, int timeout_ms)
{
    struct timespec until = after(MAX(timeout_ms, 0));
    int cancel_state;
    bool done;

    if (getpid() != b->process) /* what was begun before fork(2) ends in the parent */
        return lib_errno(-ENOTCONN);
    cancel_state = lib_wait_begin(b->fs);
    pthread_mutex_lock(&b->lock);
    while (!b->done && timeout_ms != 0) {
        if (timeout_ms < 0)
            pthread_cond_wait(&b->over, &b->lock);
        else if (pthread_cond_timedwait(&b->over, &b->lock, &until))
            break;
    }
    done = b->done;
    pthread_mutex_unlock(&b->lock);
    lib_wait_end(b->fs, cancel_state);
    if (!done)
        return lib_errno(-ETIMEDOUT);
    batch_free(b);
    return 0;
}
