/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of a reactor.
 *
 * Happy path: fio_submit() fills a submission entry; the turn's poll of the source hands all of
 * them to the kernel at once and digests what has completed. Before the reactor sleeps, arming
 * flushes what is left; the ring's descriptor is in epoll, so a completion wakes it.
 *
 * Failure modes: no io_uring (old kernel, seccomp, limits): everything runs plain. The kernel out
 * of resources at submission: the entries stay in the ring and are handed over again with the next
 * completion, or after FIO_RETRY_NS. Each operation's own errors go to its done().
 */
#include "common/uring/fio.h"

#include <errno.h>
#include <liburing.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/base/assert.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/fault/fault.h"
#include "common/rt/mailbox.h"
#include "common/stat/stat.h"
#include "common/uring/fio_int.h"

#define FIO_RETRY_NS NS_PER_MS

struct fio {
    struct reactor *reactor;
    bool has_ring;
    unsigned depth;
    unsigned in_flight; /* have a submission entry, or are in the kernel */
    struct work_queue waiting;
    struct io_uring ring;
    struct reactor_source source;
    struct reactor_watch watch;
    struct reactor_timer retry;
    struct fio_stats stats;
    struct fio_fixed fixed;
    struct stat_counter n_fixed, n_not_fixed;
};

static struct fio_op *fio_op_of(struct reactor_work *w)
{
    return container_of(w, struct fio_op, work);
}

/* ---- to the kernel ---- */

static void fio_prepare_transfer(struct fio *f, struct fio_op *op, struct io_uring_sqe *sqe)
{
    unsigned n;
    const struct iovec *iov = fio_op_piece(op, &n);
    int place = n == 1 ? fio_fixed_find(&f->fixed, iov) : -1;

    stat_inc(place >= 0 ? &f->n_fixed : &f->n_not_fixed);
    if (place >= 0 && op->kind == FIO_READ)
        io_uring_prep_read_fixed(sqe, op->file->fd, iov->iov_base, (unsigned)iov->iov_len, op->at,
                                 place);
    else if (place >= 0)
        io_uring_prep_write_fixed(sqe, op->file->fd, iov->iov_base, (unsigned)iov->iov_len, op->at,
                                  place);
    else if (op->kind == FIO_READ)
        io_uring_prep_readv(sqe, op->file->fd, iov, n, op->at);
    else
        io_uring_prep_writev(sqe, op->file->fd, iov, n, op->at);
}

/* There are never more operations in flight than entries, so there is always one to be had. */
static void fio_prepare(struct fio *f, struct fio_op *op)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&f->ring);

    ASSERT(sqe);
    if (op->kind == FIO_DATASYNC)
        io_uring_prep_fsync(sqe, op->file->fd, IORING_FSYNC_DATASYNC);
    else
        fio_prepare_transfer(f, op, sqe);
    if (op->file->place) {
        sqe->fd = (int)op->file->place - 1;
        sqe->flags |= IOSQE_FIXED_FILE;
        f->stats.fixed_files++;
    }
    io_uring_sqe_set_data(sqe, op);
}

static void fio_flush(struct fio *f)
{
    int rc;

    if (!io_uring_sq_ready(&f->ring))
        return;
    f->stats.enters++;
    rc = FAULT("fio.enter") ? -EAGAIN : io_uring_submit(&f->ring);
    if (rc < 0 && rc != -EINTR && rc != -EAGAIN && rc != -EBUSY)
        LOG_ERROR("fio", "io_uring_submit: %s", err_text(rc));
    if (!io_uring_sq_ready(&f->ring))
        return;
    f->stats.tried_again++;
    if (!reactor_timer_running(&f->retry))
        reactor_timer_start(f->reactor, &f->retry, reactor_now_ns(f->reactor) + FIO_RETRY_NS);
}

/* Only there to wake the reactor: its turn flushes. */
static void fio_retry(struct reactor_timer *t)
{
    (void)t;
}

/* ---- from the kernel ---- */

static void fio_start_waiting(struct fio *f)
{
    struct reactor_work *w;

    while (f->in_flight < f->depth && (w = work_queue_pop(&f->waiting))) {
        f->in_flight++;
        fio_prepare(f, fio_op_of(w));
    }
}

static void fio_complete(struct fio *f, struct fio_op *op, int result)
{
    if (result >= 0 && FAULT("fio.again"))
        result = -EINTR; /* repeating a transfer at the same place is harmless */
    if (!fio_op_step(op, result, &f->stats)) {
        fio_prepare(f, op);
        return;
    }
    f->in_flight--;
    fio_start_waiting(f);
    op->done(op, op->status);
}

static int fio_progress(struct reactor_source *s)
{
    struct fio *f = container_of(s, struct fio, source);
    struct io_uring_cqe *cqe;
    unsigned ready, i;

    if (!f->in_flight)
        return 0;
    fio_flush(f);
    ready = io_uring_cq_ready(&f->ring); /* those that come meanwhile are for the next turn */
    for (i = 0; i < ready && io_uring_peek_cqe(&f->ring, &cqe) == 0; i++) {
        struct fio_op *op = io_uring_cqe_get_data(cqe);
        int result = cqe->res;

        io_uring_cqe_seen(&f->ring, cqe); /* before done(), which may submit */
        fio_complete(f, op, result);
    }
    return (int)i;
}

static bool fio_arm(struct reactor_source *s)
{
    struct fio *f = container_of(s, struct fio, source);

    fio_flush(f);
    return io_uring_cq_ready(&f->ring) == 0;
}

static bool fio_busy(struct reactor_source *s)
{
    return container_of(s, struct fio, source)->in_flight > 0;
}

/* Only there to wake the reactor: its turn polls the source. */
static void fio_event(struct reactor_watch *w, uint32_t events)
{
    (void)w;
    (void)events;
}

/* ---- interface ---- */

/* A result that is known at once is still told from the reactor's loop, as all others. */
static void fio_done_later(struct reactor_work *w)
{
    struct fio_op *op = fio_op_of(w);

    op->done(op, op->status);
}

void fio_submit(struct fio *f, struct fio_op *op)
{
    f->stats.submitted++;
    if (!f->has_ring || op->file->engine == FIO_PLAIN) {
        fio_plain_run(op, &f->stats);
        return;
    }
    if (f->fixed.n && !f->fixed.started)
        fio_fixed_start(&f->fixed, &f->ring);
    if (!fio_op_begin(op)) {
        op->work.fn = fio_done_later;
        reactor_defer(f->reactor, &op->work);
        return;
    }
    if (f->in_flight >= f->depth) {
        f->stats.ring_full++;
        work_queue_push(&f->waiting, &op->work);
        return;
    }
    f->in_flight++;
    fio_prepare(f, op);
}

static int fio_create_ring(struct fio *f)
{
    /* COOP_TASKRUN (5.19): completions do not interrupt the reactor while it computes. */
    unsigned flags = IORING_SETUP_COOP_TASKRUN | IORING_SETUP_SUBMIT_ALL;
    int rc;

    if (FAULT("fio.create"))
        return -ENOSYS;
    rc = io_uring_queue_init(f->depth, &f->ring, flags);
    if (rc == -EINVAL)
        rc = io_uring_queue_init(f->depth, &f->ring, 0);
    if (rc < 0)
        return rc;
    f->watch = (struct reactor_watch){.fd = f->ring.ring_fd, .events = EPOLLIN, .fn = fio_event};
    rc = reactor_watch_add(f->reactor, &f->watch);
    if (rc < 0) {
        io_uring_queue_exit(&f->ring);
        return rc;
    }
    f->source = (struct reactor_source){.progress = fio_progress, .arm = fio_arm, .busy = fio_busy};
    reactor_source_add(f->reactor, &f->source);
    stat_counter_register(&f->n_fixed, "aifs_ring_transfers_total", "memory=\"registered\"",
                          "reads and writes of files by io_uring");
    stat_counter_register(&f->n_not_fixed, "aifs_ring_transfers_total", "memory=\"other\"",
                          "reads and writes of files by io_uring");
    return 0;
}

int fio_create(struct reactor *r, unsigned depth, struct fio **ret_fio)
{
    struct fio *f = mem_zalloc(sizeof(*f));
    int rc;

    if (!f)
        return -ENOMEM;
    f->reactor = r;
    f->depth = MAX(depth, 1u);
    reactor_timer_init(&f->retry, fio_retry);
    rc = fio_create_ring(f);
    f->has_ring = rc == 0;
    if (rc < 0)
        LOG_WARN("fio", "no io_uring (%s): files are read and written on the reactor",
                 err_text(rc));
    *ret_fio = f;
    return 0;
}

void fio_destroy(struct fio *f)
{
    if (!f)
        return;
    ASSERT(f->in_flight == 0 && work_queue_empty(&f->waiting));
    if (f->has_ring) {
        reactor_timer_cancel(f->reactor, &f->retry);
        reactor_source_remove(f->reactor, &f->source);
        reactor_watch_remove(f->reactor, &f->watch);
        io_uring_queue_exit(&f->ring);
        fio_fixed_free(&f->fixed);
        stat_unregister(&f->n_fixed.stat);
        stat_unregister(&f->n_not_fixed.stat);
    }
    mem_free(f);
}

bool fio_has_ring(const struct fio *f)
{
    return f->has_ring;
}

void fio_memory_add(struct fio *f, struct iovec memory)
{
    if (f->has_ring)
        fio_fixed_add(&f->fixed, &f->ring, memory);
}

void fio_memory_remove(struct fio *f, struct iovec memory)
{
    if (f->has_ring)
        fio_fixed_remove(&f->fixed, &f->ring, memory);
}

void fio_file_add(struct fio *f, struct fio_file *file)
{
    if (f->has_ring && file->engine == FIO_URING && !file->place)
        fio_fixed_file_add(&f->fixed, &f->ring, file);
}

void fio_file_remove(struct fio *f, struct fio_file *file)
{
    if (f->has_ring)
        fio_fixed_file_remove(&f->fixed, &f->ring, file);
}

void fio_get_stats(const struct fio *f, struct fio_stats *ret_stats)
{
    *ret_stats = f->stats;
    ret_stats->fixed = stat_value(&f->n_fixed);
    ret_stats->not_fixed = stat_value(&f->n_not_fixed);
}
