/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous reads and writes: a batch is one hand-over to the reactor, finished ones gather in
 * the queue's list, and waiting collects them. What ends in one turn of the reactor is handed over
 * together: one lock, and one wake-up, which costs more than most requests, and which is spared
 * where the thread that waits turns the reactor itself. Callers wait under the queue's lock;
 * nothing else is done under it.
 */
#include "client/lib/lib_int.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"

struct aifs_queue {
    struct aifs *fs;
    pthread_mutex_t lock;
    pthread_cond_t some;
    struct list done; /* struct lib_io */
    unsigned n_done, in_flight;
    /* the reactor's alone: ended in this turn */
    struct list fresh;
    unsigned n_fresh;
    struct reactor_work hand_over;
    _Atomic unsigned generation;
    int event_fd; /* readable while n_done is not 0; -1: nobody has asked for it */
};

struct batch {
    struct reactor_work work;
    unsigned n;
    struct lib_io *ios[];
};

static void hand_over(struct reactor_work *w)
{
    struct aifs_queue *q = container_of(w, struct aifs_queue, hand_over);
    unsigned n = q->n_fresh;

    q->n_fresh = 0;
    pthread_mutex_lock(&q->lock);
    if (!q->n_done && q->event_fd >= 0)
        (void)eventfd_write(q->event_fd, 1);
    list_splice(&q->done, &q->fresh);
    q->n_done += n;
    q->in_flight -= n;
    pthread_cond_broadcast(&q->some);
    pthread_mutex_unlock(&q->lock);
}

/* The generation last: with it the queue is this process's. */
static void queue_init(struct aifs_queue *q)
{
    pthread_condattr_t attr;

    list_init(&q->done);
    list_init(&q->fresh);
    q->n_done = q->in_flight = q->n_fresh = 0;
    q->hand_over.fn = hand_over;
    pthread_mutex_init(&q->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&q->some, &attr);
    pthread_condattr_destroy(&attr);
    q->generation = lib_generation();
}

struct aifs_queue *aifs_queue_create(struct aifs *fs)
{
    struct aifs_queue *q = mem_zalloc(sizeof *q);

    if (!q) {
        errno = ENOMEM;
        return NULL;
    }
    q->fs = fs;
    q->event_fd = -1;
    queue_init(q);
    return q;
}

/* In a child the queue begins empty: what the parent has submitted is the parent's, and so is the
 * descriptor behind event_fd. */
static int queue_usable(struct aifs_queue *q)
{
    int err = lib_usable(q->fs), fd, cancel_state;

    if (err || q->generation == lib_generation())
        return err;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* not with the lock */
    pthread_mutex_lock(&q->fs->reviving);
    if (q->generation != lib_generation()) {
        if (q->event_fd >= 0) {
            fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
            err = fd < 0 || dup3(fd, q->event_fd, O_CLOEXEC) < 0 ? -errno : 0;
            if (fd >= 0)
                close(fd);
        }
        if (!err)
            queue_init(q);
    }
    pthread_mutex_unlock(&q->fs->reviving);
    pthread_setcancelstate(cancel_state, NULL);
    return err;
}

int aifs_queue_fd(struct aifs_queue *q)
{
    int err = queue_usable(q), fd;

    if (err)
        return lib_errno(err);
    pthread_mutex_lock(&q->lock);
    if (q->event_fd < 0)
        q->event_fd = eventfd(q->n_done != 0, EFD_CLOEXEC | EFD_NONBLOCK);
    fd = q->event_fd;
    pthread_mutex_unlock(&q->lock);
    lib_drive_shy(q->fs); /* the program waits elsewhere */
    return fd;
}

int aifs_queue_destroy(struct aifs_queue *q)
{
    bool busy;

    if (q->generation == lib_generation()) { /* else the parent's, and never used here */
        pthread_mutex_lock(&q->lock);
        busy = q->n_done || q->in_flight;
        pthread_mutex_unlock(&q->lock);
        if (busy)
            return lib_errno(-EBUSY);
        pthread_cond_destroy(&q->some);
        pthread_mutex_destroy(&q->lock);
    }
    if (q->event_fd >= 0)
        close(q->event_fd);
    mem_free(q);
    return 0;
}

static void io_over(struct lib_io *io)
{
    struct aifs_queue *q = io->queue;

    atomic_fetch_sub_explicit(&q->fs->drive.flying, io->len, memory_order_relaxed);
    list_push_back(&q->fresh, &io->link);
    if (!q->n_fresh++)
        reactor_defer(q->fs->reactor, &q->hand_over);
}

static void batch_begin(struct reactor_work *w)
{
    struct batch *b = container_of(w, struct batch, work);
    unsigned k;

    for (k = 0; k < b->n; k++)
        lib_io_start(b->ios[k]);
    mem_free(b);
}

static int batch_fill(struct aifs_queue *q, struct batch *b, struct aifs_io *const *ios, unsigned n)
{
    for (b->n = 0; b->n < n; b->n++) {
        struct aifs_io *r = ios[b->n];
        struct lib_io *io;
        int err;

        if ((r->op != AIFS_READ && r->op != AIFS_WRITE) || r->offset < 0 || r->file->fs != q->fs ||
            r->len > SSIZE_MAX)
            return -EINVAL;
        if (r->memory != AIFS_MEMORY_HOST)
            return -EOPNOTSUPP;
        if (r->len && !r->buf)
            return -EFAULT;
        err = lib_file_usable(r->file);
        if (err)
            return err;
        io = lib_io_new(r->file, r->op, r->buf, r->len, (uint64_t)r->offset);
        if (!io)
            return -ENOMEM;
        io->over = io_over;
        io->many = true;
        io->request = r;
        io->queue = q;
        list_init(&io->link);
        b->ios[b->n] = io;
    }
    return 0;
}

int aifs_submit(struct aifs_queue *q, struct aifs_io *const *ios, unsigned n)
{
    int err = queue_usable(q);
    struct aifs *fs = q->fs;
    uint64_t bytes = 0;
    struct batch *b;

    if (err || !n)
        return lib_errno(err);
    b = mem_alloc(sizeof *b + n * sizeof b->ios[0]);
    if (!b)
        return lib_errno(-ENOMEM);
    err = batch_fill(q, b, ios, n);
    if (err) {
        while (b->n)
            mem_free(b->ios[--b->n]);
        mem_free(b);
        return lib_errno(err);
    }
    pthread_mutex_lock(&q->lock);
    q->in_flight += n;
    pthread_mutex_unlock(&q->lock);
    for (unsigned k = 0; k < n; k++)
        bytes += ios[k]->len;
    atomic_fetch_add_explicit(&fs->drive.flying, bytes, memory_order_relaxed);
    b->work.fn = batch_begin;
    if (!lib_drive_begin(fs)) {
        lib_post(fs, &b->work);
        return 0;
    }
    reactor_post(fs->reactor, &b->work);
    lib_drive_turn(fs, 0);
    lib_drive_end(fs);
    return 0;
}

static uint64_t now_ns(void)
{
    return clock_mono_ns(clock_real());
}

/* Or all that can be: another thread may have taken some. Under the lock. */
static bool is_enough(const struct aifs_queue *q, unsigned min)
{
    return q->n_done >= min || !q->in_flight;
}

static bool look(struct aifs_queue *q, unsigned min)
{
    AUTO_LOCK(&q->lock);

    return is_enough(q, min);
}

/* Until there are min, or it is late; at least one turn. */
static void wait_driving(struct aifs_queue *q, unsigned min, uint64_t until_ns)
{
    bool late, enough = look(q, min);

    do {
        uint64_t now = until_ns == UINT64_MAX ? 0 : now_ns();

        late = now >= until_ns;
        lib_drive_turn(q->fs, late || enough ? 0 : MIN(until_ns - now, NS_PER_S));
        enough = look(q, min);
    } while (!enough && !late);
}

static void wait_for_driver(struct aifs_queue *q, unsigned min, uint64_t until_ns)
{
    struct timespec until = {(time_t)(until_ns / NS_PER_S), (long)(until_ns % NS_PER_S)};
    int cancel_state = lib_wait_begin(q->fs);

    pthread_mutex_lock(&q->lock);
    while (!is_enough(q, min)) {
        if (until_ns == UINT64_MAX)
            pthread_cond_wait(&q->some, &q->lock);
        else if (pthread_cond_timedwait(&q->some, &q->lock, &until))
            break;
    }
    pthread_mutex_unlock(&q->lock);
    lib_wait_end(q->fs, cancel_state);
}

static void wait_for(struct aifs_queue *q, unsigned min, int timeout_ms)
{
    uint64_t until_ns = timeout_ms < 0    ? UINT64_MAX
                        : timeout_ms == 0 ? 0
                                          : now_ns() + (uint64_t)timeout_ms * NS_PER_MS;

    if (lib_drive_begin(q->fs)) {
        wait_driving(q, min, until_ns);
        lib_drive_end(q->fs);
    } else if (until_ns) {
        wait_for_driver(q, min, until_ns);
    }
}

/* Under the lock, with which no thread may end. */
static void event_over(struct aifs_queue *q)
{
    int cancel_state;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    (void)eventfd_read(q->event_fd, &(eventfd_t){0});
    pthread_setcancelstate(cancel_state, NULL);
}

int aifs_wait(struct aifs_queue *q, struct aifs_io **done, unsigned min, unsigned max,
              int timeout_ms)
{
    unsigned n = 0;
    bool none;
    int err;

    if (min > max || max > INT_MAX)
        return lib_errno(-EINVAL);
    err = queue_usable(q);
    if (err)
        return lib_errno(err);
    pthread_mutex_lock(&q->lock);
    min = MIN(min, q->n_done + q->in_flight);
    none = !q->n_done && q->in_flight;
    if (none || q->n_done < min) {
        pthread_mutex_unlock(&q->lock);
        wait_for(q, min, min ? timeout_ms : 0);
        pthread_mutex_lock(&q->lock);
    }
    while (n < max && q->n_done) {
        struct lib_io *io = list_entry(list_pop_front(&q->done), struct lib_io, link);
        ssize_t r = lib_io_result(io);

        q->n_done--;
        done[n] = io->request;
        done[n++]->result = r < 0 ? -err_to_errno((int)r) : r;
        mem_free(io);
    }
    if (n && !q->n_done && q->event_fd >= 0)
        event_over(q);
    if (n && !q->in_flight)
        pthread_cond_broadcast(&q->some); /* for others there is nothing to wait for */
    pthread_mutex_unlock(&q->lock);
    return (int)n;
}
