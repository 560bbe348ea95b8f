/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request to the target of each stripe of a range.
 *
 * Happy path: chunks of a stripe lie on one chain, so as many requests as the range has stripes
 * reach all of it; some are under way at a time, and the next goes out when one is answered. A seek
 * asks a stripe again when the answer said only how far there is nothing, unless another stripe has
 * found something before that.
 *
 * Failure: the first error counts; the rest is not sent, and done() comes when those that were have
 * ended.
 */
#include "client/core/span.h"

#define SPAN_WIDTH 64u

static void span_go(struct core_req *q);

static struct span *span_of(struct core_req *q)
{
    static_assert(sizeof(struct span) <= sizeof q->p.flush, "room for a span");
    return (struct span *)q->p.flush;
}

static void span_called(struct oss_io *io, int status);

/* The stripe of a chunk, from an offset in it on. */
static void span_send(struct core_req *q, uint64_t chunk, uint64_t from)
{
    struct span *s = span_of(q);
    struct oss_io *io = oss_io_new(q->p.core, s->kind, q->p.inode);

    if (!io) {
        q->p.error = -ENOMEM;
        return;
    }
    io->q = q;
    io->range.chunk = chunk;
    io->from = from;
    io->to = s->kind == OSS_IO_SEEK ? s->found : s->end;
    io->hole = s->hole;
    io->once = s->kind == OSS_IO_PUNCH;
    io->done = span_called;
    q->p.pending++;
    oss_io_submit(io);
}

static void span_called(struct oss_io *io, int status)
{
    struct core_req *q = io->q;
    struct span *s = span_of(q);

    q->p.pending--;
    if (status && !q->p.error)
        q->p.error = status == -EINTR ? -AIFS_ETIMEOUT : status;
    if (!status && io->found)
        s->found = MIN(s->found, io->from);
    else if (!status && !q->p.error && s->kind == OSS_IO_SEEK && io->from < s->found)
        span_send(q, io->range.chunk, io->from);
    span_go(q);
}

static void span_go(struct core_req *q)
{
    struct span *s = span_of(q);
    uint64_t chunk_bytes = q->p.inode->layout.chunk_bytes;

    if (s->filling)
        return;
    s->filling = true;
    while (!q->p.error && s->next <= s->last && q->p.pending < SPAN_WIDTH) {
        uint64_t chunk = s->next++, base = MAX(s->start, chunk * chunk_bytes);

        if (s->kind == OSS_IO_PUNCH)
            span_send(q, chunk, s->start);
        else if (base < s->found)
            span_send(q, chunk, base);
    }
    s->filling = false;
    if (q->p.pending)
        return;
    q->p.cancel = NULL;
    s->done(q, s);
}

void span_start(struct core_req *q, const struct span *what)
{
    const struct msg_layout *l = &q->p.inode->layout;
    struct span *s = span_of(q);

    *s = *what;
    s->found = s->end;
    s->filling = false;
    s->next = s->start / l->chunk_bytes;
    s->last = MIN((s->end - 1) / l->chunk_bytes, s->next + l->stripe_count - 1);
    q->p.error = 0;
    q->p.pending = 0;
    req_wait(q, s->kind == OSS_IO_PUNCH ? "waits for OSS_PUNCH" : "waits for OSS_SEEK",
             direct_cancel);
    span_go(q);
}
