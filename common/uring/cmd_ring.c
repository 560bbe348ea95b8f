/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Happy path: cmd_ring_submit() fills an entry of the ring, cmd_ring_flush() hands it over, the
 * turn's poll of the source digests what has come back.
 *
 * The kernel does a driver's part of a command on the thread that submitted it, whenever that is in
 * the kernel: it interrupts the reactor's sleep for that, so most commands are done when epoll
 * returns, and no descriptor had to be asked. The ring's own descriptor is watched all the same: a
 * command that is done between the last look at the ring and the sleep would wake nobody.
 *
 * Fails: the kernel out of resources at submission: the entries stay in the ring and are handed
 * over with the next turn, or after CMD_RETRY_NS.
 */
#include "common/uring/cmd_ring.h"

#include <errno.h>
#include <liburing.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/base/assert.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"

#define CMD_RETRY_NS NS_PER_MS

struct cmd_ring {
    struct reactor *reactor;
    int fd;
    struct io_uring ring;
    struct reactor_source source;
    struct reactor_watch watch;
    struct reactor_timer retry;
};

void cmd_ring_submit(struct cmd_ring *cr, struct cmd *c, uint32_t op, const struct iovec *iov,
                     unsigned n_iov, const void *bytes, size_t len)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&cr->ring);

    ASSERT(sqe && len <= CMD_BYTES_MAX); /* never more commands than entries */
    memset(sqe, 0, 2 * sizeof(*sqe));
    io_uring_prep_rw(IORING_OP_URING_CMD, sqe, cr->fd, iov, n_iov, 0);
    sqe->cmd_op = op;
    memcpy(sqe->cmd, bytes, len);
    io_uring_sqe_set_data(sqe, c);
}

void cmd_ring_flush(struct cmd_ring *cr)
{
    int rc;

    if (!io_uring_sq_ready(&cr->ring))
        return;
    rc = io_uring_submit(&cr->ring);
    if (rc < 0 && rc != -EINTR && rc != -EAGAIN && rc != -EBUSY)
        LOG_ERROR("uring", "io_uring_submit: %s", err_text(rc));
    if (io_uring_sq_ready(&cr->ring) && !reactor_timer_running(&cr->retry))
        reactor_timer_start(cr->reactor, &cr->retry, reactor_now_ns(cr->reactor) + CMD_RETRY_NS);
}

int cmd_ring_digest(struct cmd_ring *cr)
{
    unsigned ready = io_uring_cq_ready(&cr->ring), i; /* later ones are for the next turn */
    struct io_uring_cqe *cqe;

    for (i = 0; i < ready && io_uring_peek_cqe(&cr->ring, &cqe) == 0; i++) {
        struct cmd *c = io_uring_cqe_get_data(cqe);
        int result = cqe->res;

        io_uring_cqe_seen(&cr->ring, cqe); /* before done(), which may submit */
        c->done(c, result);
    }
    return (int)i;
}

/* Only there to wake the reactor: its turn flushes. */
static void cmd_ring_retry(struct reactor_timer *t UNUSED)
{
}

static int cmd_ring_progress(struct reactor_source *s)
{
    struct cmd_ring *cr = container_of(s, struct cmd_ring, source);
    int n = cmd_ring_digest(cr);

    cmd_ring_flush(cr);
    return n;
}

static bool cmd_ring_arm(struct reactor_source *s)
{
    struct cmd_ring *cr = container_of(s, struct cmd_ring, source);

    cmd_ring_flush(cr);
    return io_uring_cq_ready(&cr->ring) == 0;
}

/* Only there to wake the reactor: its turn polls the source. */
static void cmd_ring_event(struct reactor_watch *w UNUSED, uint32_t events UNUSED)
{
}

int cmd_ring_create(struct reactor *r, int fd, unsigned depth, struct cmd_ring **ret_ring)
{
    unsigned flags = IORING_SETUP_SQE128 | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_SUBMIT_ALL;
    struct cmd_ring *cr = mem_zalloc(sizeof(*cr));
    int rc;

    if (!cr)
        return -ENOMEM;
    cr->reactor = r;
    cr->fd = fd;
    rc = io_uring_queue_init(depth, &cr->ring, flags);
    if (rc < 0)
        goto err_free;
    (void)io_uring_register_ring_fd(&cr->ring); /* saves a look-up for each call, where it works */
    cr->watch =
        (struct reactor_watch){.fd = cr->ring.ring_fd, .events = EPOLLIN, .fn = cmd_ring_event};
    rc = reactor_watch_add(r, &cr->watch);
    if (rc < 0)
        goto err_ring;
    reactor_timer_init(&cr->retry, cmd_ring_retry);
    cr->source = (struct reactor_source){.progress = cmd_ring_progress, .arm = cmd_ring_arm};
    reactor_source_add(r, &cr->source);
    *ret_ring = cr;
    return 0;

err_ring:
    io_uring_queue_exit(&cr->ring);
err_free:
    mem_free(cr);
    return rc;
}

void cmd_ring_destroy(struct cmd_ring *cr)
{
    if (!cr)
        return;
    reactor_timer_cancel(cr->reactor, &cr->retry);
    reactor_source_remove(cr->reactor, &cr->source);
    reactor_watch_remove(cr->reactor, &cr->watch);
    io_uring_queue_exit(&cr->ring);
    mem_free(cr);
}
