/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_file_range(2) through this client: read a piece, write it from the buffers it lies in, and
 * so on. Both go through the cache and the checksums like any other read and write.
 *
 * A piece is kept in memory until there is some that it can be written to. So no more copies go on
 * at a time than leave enough of it (core_mem.copies_max), piece by piece in turn; the others wait
 * without one.
 *
 * Failure: what was copied before an error or an interrupt counts; with nothing copied it is the
 * result. A copy is at most COPY_MAX long, so that it never keeps a file for long.
 */
#include "client/core/core_int.h"

#define COPY_MAX (64u * MIB)

struct copy {
    struct core_req *q;
    struct core_req part;
    struct core_req store;
    struct core_file *from, *to;
    uint64_t from_offset, to_offset, left, done;
    int status;
    bool reading;
};

static void copy_turn(struct copy *y);

/* Not from here: pieces that are cached are copied at once, and would be one call inside of the
 * other. */
static void copy_wake(struct core *c)
{
    if (list_empty(&c->mem.copiers) || c->mem.copy_next_due)
        return;
    c->mem.copy_next_due = true;
    reactor_defer(c->reactor, &c->mem.copy_next);
}

/* Its piece is copied, or was not to be had. */
static void copy_rests(struct copy *y)
{
    y->q->p.core->mem.copies--;
    copy_wake(y->q->p.core);
}

static void copy_over(struct copy *y)
{
    struct core_req *q = y->q;
    int status = y->done ? 0 : y->status;

    file_idle(y->from);
    file_idle(y->to);
    q->out.copied = y->done;
    mem_free(y);
    req_end(q, status);
}

static void copy_written(struct core_req *part, int status)
{
    struct copy *y = part->arg;
    uint32_t bytes = status ? 0 : part->out.write.bytes;

    core_read_done(&y->part);
    y->status = status;
    y->done += bytes;
    y->left -= bytes;
    y->from_offset += bytes;
    y->to_offset += bytes;
    copy_rests(y);
    if (status || !y->left || y->q->p.cancelled)
        copy_over(y);
    else
        copy_turn(y);
}

static void copy_was_read(struct core_req *part, int status)
{
    struct copy *y = part->arg;

    y->status = status;
    if (!status && y->q->p.cancelled) {
        core_read_done(part);
        y->status = -EINTR;
    } else if (!status && part->out.read.bytes) {
        y->reading = false;
        y->store.cred = y->q->cred;
        y->store.in_place = y->store.at_end = false;
        y->store.done = copy_written;
        y->store.arg = y;
        core_write(y->q->p.core, &y->store, y->to, y->to_offset, part->out.read.iov,
                   part->out.read.n_iov, part->out.read.bytes);
        return;
    } else if (!status) {
        core_read_done(part); /* the end of the file */
    }
    copy_rests(y);
    copy_over(y);
}

static void copy_read(struct copy *y)
{
    uint32_t to_border = CORE_IO_MAX - (uint32_t)(y->from_offset % CORE_IO_MAX);

    y->reading = true;
    y->part.cred = y->q->cred;
    y->part.done = copy_was_read;
    y->part.arg = y;
    core_read(y->q->p.core, &y->part, y->from, y->from_offset, (uint32_t)MIN(y->left, to_border),
              NULL);
}

/* The piece under way ends, soon and by itself where transfers must let go of memory first, and
 * with it the copy. */
static void cancel_copy(struct core_req *q, int status)
{
    struct copy *y = (struct copy *)(uintptr_t)q->p.n1;
    struct core_req *part = y->reading ? &y->part : &y->store;

    q->p.cancel = NULL; /* once is enough: the piece is in flight itself, and may be called back */
    q->p.cancelled = true;
    if (part->p.cancel)
        part->p.cancel(part, status);
}

static void cancel_turn(struct core_req *q, int status)
{
    struct copy *y = (struct copy *)(uintptr_t)q->p.n1;

    list_remove(&q->p.wait);
    y->status = status;
    copy_over(y);
}

/* The time-out of a soft mount counts from here: what it waited for was no server of its own, and
 * each piece that is copied shows that servers answer. */
static void copy_go(struct core_req *q)
{
    q->p.core->mem.copies++;
    q->p.patient = false;
    q->p.timed_ns = reactor_now_ns(q->p.core->reactor);
    req_wait(q, "copies", cancel_copy);
    copy_read((struct copy *)(uintptr_t)q->p.n1);
}

void copy_next(struct reactor_work *w)
{
    struct core_mem *m = container_of(w, struct core_mem, copy_next);

    m->copy_next_due = false;
    for (uint32_t n = m->copies_max; n && m->copies < m->copies_max && !list_empty(&m->copiers);
         n--)
        copy_go(list_entry(list_pop_front(&m->copiers), struct core_req, p.wait));
}

static void copy_turn(struct copy *y)
{
    struct core_req *q = y->q;
    struct core_mem *m = &q->p.core->mem;

    if (m->copies < m->copies_max && list_empty(&m->copiers)) {
        copy_go(q);
        return;
    }
    q->p.patient = true;
    req_wait(q, "waits for other copies", cancel_turn);
    list_push_back(&m->copiers, &q->p.wait);
    copy_wake(q->p.core);
}

static bool overlaps(const struct copy *y)
{
    return y->from->inode == y->to->inode && y->from_offset < y->to_offset + y->left &&
           y->to_offset < y->from_offset + y->left;
}

static int copy_check(const struct core *c, const struct copy *y, uint64_t len)
{
    if (c->o.read_only)
        return -EROFS;
    if ((y->from->flags & O_ACCMODE) == O_WRONLY || (y->to->flags & O_ACCMODE) == O_RDONLY ||
        y->to->flags & O_APPEND)
        return -EBADF;
    if (y->from_offset > CORE_SIZE_MAX || len > CORE_SIZE_MAX - y->from_offset)
        return -EINVAL;
    if (y->to_offset > CORE_SIZE_MAX || len > CORE_SIZE_MAX - y->to_offset)
        return -EFBIG;
    return overlaps(y) ? -EINVAL : 0;
}

void core_copy(struct core *c, struct core_req *q, struct core_file *from, uint64_t from_offset,
               struct core_file *to, uint64_t to_offset, uint64_t len)
{
    struct copy *y;
    int rc;

    req_begin(c, q, "copy", to->inode->ino);
    q->out.copied = 0;
    if (!core_usable(c, q))
        return;
    y = core_no_memory() ? NULL : mem_zalloc(sizeof *y);
    if (!y) {
        req_end(q, -ENOMEM);
        return;
    }
    *y = (struct copy){.q = q,
                       .from = from,
                       .to = to,
                       .from_offset = from_offset,
                       .to_offset = to_offset,
                       .left = len};
    rc = copy_check(c, y, len);
    if (rc || !len) {
        mem_free(y);
        req_end(q, rc);
        return;
    }
    y->left = MIN(len, (uint64_t)COPY_MAX);
    from->busy++;
    to->busy++;
    q->p.n1 = (uint64_t)(uintptr_t)y;
    copy_turn(y);
}
