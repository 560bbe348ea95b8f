/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes that pass the cache by: random reads, and everything without a data lease.
 *
 * Happy path of a read: each block's part of the range is one transfer, aligned to checksum blocks,
 * into the reader's own memory where that is aligned too, else into a buffer; all at once. Of a
 * write: stable transfers straight from the caller's memory, all at once, or where the file grows
 * or no room is promised one after the other, then SIZE when it has grown. An append is given its
 * place by the metadata server first. That cannot be taken back, so it is asked for only where
 * targets have promised room; else the append is made under a lease that lasts as long (through.c).
 *
 * Failure: the first error counts; the request ends when the last transfer has let go of the
 * memory. What was stored of a write whose transfers go one after the other before one was refused
 * is written.
 */
#include "client/core/core_int.h"
#include "client/core/room.h"

#define WRITE_IN_TURN   0x80u /* its transfers go one after the other */
#define LEASES_TO_WRITE 4u    /* asked for by an append, before it does without */

void direct_cancel(struct core_req *q, int status)
{
    struct list *l, *tmp;

    q->p.cancel = NULL;
    if (!q->p.error)
        q->p.error = status;
    list_for_each_safe (l, tmp, &q->p.core->ios) {
        struct oss_io *io = list_entry(l, struct oss_io, all);

        if (io->q == q)
            oss_io_cancel(io);
    }
}

static int io_status(const struct core_req *q, int status)
{
    return q->p.error ? q->p.error : status;
}

/* ---- reading ---- */

/* The file may have been cut while we read: what is behind its end now was never there. Whether
 * there is a lease now says nothing about when the read began. */
static void read_trim(struct core_req *q)
{
    uint64_t size = q->p.inode->attr.size;
    uint32_t left = q->p.offset < size ? (uint32_t)MIN(size - q->p.offset, q->out.read.bytes) : 0;
    unsigned k;

    q->out.read.bytes = left;
    for (k = 0; k < q->out.read.n_iov; k++) {
        q->out.read.iov[k].iov_len = MIN(q->out.read.iov[k].iov_len, left);
        left -= (uint32_t)q->out.read.iov[k].iov_len;
    }
}

static void read_called(struct oss_io *io, int status)
{
    struct core_req *q = io->q;

    q->p.error = io_status(q, status == -EINTR ? -AIFS_ETIMEOUT : status);
    if (--q->p.pending)
        return;
    q->p.cancel = NULL;
    if (q->p.error) {
        q->p.end(q, q->p.error);
        return;
    }
    read_trim(q);
    read_ready(q);
}

static struct oss_io *piece_read(struct core_req *q, const struct stripe_piece *p, uint64_t done)
{
    struct core *c = q->p.core;
    uint32_t from = p->start / CRC_BLOCK_BYTES * CRC_BLOCK_BYTES;
    uint32_t to = (p->start + p->len + CRC_BLOCK_BYTES - 1) / CRC_BLOCK_BYTES * CRC_BLOCK_BYTES;
    struct oss_io *io = oss_io_new(c, OSS_IO_READ, q->p.inode);
    struct buf *b;

    if (!io)
        return NULL;
    if (q->p.dst && from == p->start && to == p->start + p->len) {
        io->iov[0] = (struct iovec){(uint8_t *)q->p.dst + done, p->len};
        q->out.read.iov[q->out.read.n_iov++] = io->iov[0];
        q->out.read.bytes += p->len;
    } else {
        b = mem_get(c, to - from, MEM_GROW);
        if (!b) {
            oss_io_drop(io);
            return NULL;
        }
        io->buf = b; /* the transfer's reference; read_pin() takes the reader's */
        io->iov[0] = (struct iovec){b->data, to - from};
        read_pin(q, b, p->start - from, p->len);
    }
    io->n_iov = 1;
    io->q = q;
    io->range = (struct msg_range){p->chunk, p->chunk_offset + from, to - from};
    io->done = read_called;
    return io;
}

void direct_read(struct core_req *q)
{
    struct core_inode *i = q->p.inode;
    uint64_t at = q->p.offset, end = MIN(at + q->p.len, i->attr.size);
    struct oss_io *ios[CORE_IOV_MAX];
    unsigned n = 0, k;

    while (at < end) {
        struct stripe_piece p = stripe_cut(&i->layout, at, end);

        ios[n] = piece_read(q, &p, at - q->p.offset);
        if (!ios[n]) {
            while (n)
                oss_io_drop(ios[--n]);
            core_read_done(q);
            q->out.read.n_iov = q->out.read.bytes = 0;
            req_wait(q, "waits for memory", req_finish);
            mem_wait(q->p.core, q, read_run);
            return;
        }
        n++;
        at += p.len;
    }
    q->p.pending = n;
    req_wait(q, "waits for OSS_READ", direct_cancel);
    for (k = 0; k < n; k++)
        oss_io_submit(ios[k]);
}

/* ---- writing ---- */

/* From its beginning. */
static void outdated(struct core_req *q, int status)
{
    q->p.progress = 0;
    req_outdated(q, status, write_run);
}

static void size_called(struct mds_op *op, int status)
{
    struct core_req *q = op->q;

    if (!status)
        inode_answered(op);
    if (!q)
        return;
    q->p.op = NULL;
    q->p.cancel = NULL;
    /* Cut since we knew of it, maybe before we began: nobody could see behind the end, so it is
     * written afresh. Or grown, and only its attributes are known here. */
    if (status == -AIFS_ESTALE_TRUNC || status == -AIFS_ESTALE_LAYOUT)
        outdated(q, status);
    else if (status)
        q->p.end(q, status);
    else
        write_done(q);
}

static void written(struct core_req *q)
{
    struct core_inode *i = q->p.inode;
    uint64_t end = q->p.offset + q->p.len;
    struct mds_op *op;

    blocks_drop_all(i, false);
    if (write_appends(q)) { /* it has its place since the server gave it; a cut came after that */
        inode_touch_data(i, 0);
        write_done(q);
        return;
    }
    if (q->p.n1 != i->attr.truncate_gen) { /* cut meanwhile: it may be gone, to be written afresh */
        outdated(q, -AIFS_ESTALE_TRUNC);
        return;
    }
    /* A target that has not heard of a cut may have taken what is behind it: unless nothing can
     * have been cut that we were not told of, the server has to say so. */
    if (end <= i->attr.size && i->cuts_told) { /* mtime is reported by close or fsync */
        inode_touch_data(i, 0);
        write_done(q);
        return;
    }
    if (!file_is_current(q->p.file)) { /* it is written, and nobody may hear how far */
        q->p.end(q, -EIO);
        return;
    }
    op = mds_op_new(q->p.core, RPC_OP_SIZE, q, size_called);
    if (op) {
        op->inode = inode_ref(i);
        op->msg.size = (struct msg_size_req){
            .ino = i->ino,
            .open_id = q->p.file->open_id,
            .size = end,
            .mtime = atime_write_time(q->p.inode),
            .truncate_gen = i->attr.truncate_gen,
            .layout_generation = i->layout.generation,
        };
    }
    req_call(q, op, "waits for the metadata server: SIZE");
}

static void write_pieces(struct core_req *q, uint64_t gen);

/* A transfer is over, and its request is not, unless it was the last. */
static void stored(struct core_req *q, uint32_t len)
{
    if (q->p.error)
        q->p.len = q->p.progress; /* so much of it is written */
    else if (q->p.flags & WRITE_IN_TURN)
        write_moved(q, len);
    if (q->p.flags & WRITE_IN_TURN && q->p.progress < q->p.len)
        write_pieces(q, q->p.n1);
    else
        written(q);
}

static void write_called(struct oss_io *io, int status)
{
    struct core_req *q = io->q;

    q->p.error = io_status(q, status == -EINTR ? -AIFS_ETIMEOUT : status);
    if (!status && !io->stable)
        q->p.flags |= WRITE_COPIED;
    if (--q->p.pending)
        return;
    q->p.cancel = NULL;
    if (straight_over(q))
        return;
    if (q->p.error == -AIFS_ESTALE_TRUNC) /* an append, cut before it was there: at the new end */
        outdated(q, q->p.error);
    else if (q->p.error && !q->p.progress)
        q->p.end(q, q->p.error);
    else
        stored(q, io->len);
}

bool direct_slice(struct oss_io *io, const struct core_req *q, uint32_t skip, uint32_t len)
{
    unsigned k;

    for (k = 0; k < q->p.n_iov && len; k++) {
        uint32_t have = (uint32_t)q->p.iov[k].iov_len, take;

        if (skip >= have) {
            skip -= have;
            continue;
        }
        take = MIN(have - skip, len);
        if (io->n_iov == CORE_IOV_MAX)
            return false;
        io->iov[io->n_iov++] = (struct iovec){(uint8_t *)q->p.iov[k].iov_base + skip, take};
        len -= take;
        skip = 0;
    }
    return len == 0;
}

/* What follows a part that finds no room must not be stored. Inside the file it may fill a hole:
 * then all go at once only where there is room for them. */
static bool may_be_refused(const struct core_req *q, uint64_t at, uint64_t end)
{
    const struct core_inode *i = q->p.inode;

    return write_appends(q) || end > i->attr.size || !room_to_append(i, at, (uint32_t)(end - at));
}

/* gen: of the file as it was when the place was chosen. */
static void write_pieces(struct core_req *q, uint64_t gen)
{
    struct core_inode *i = q->p.inode;
    uint64_t at = q->p.offset + q->p.progress, end = q->p.offset + q->p.len;
    bool in_turn = !(q->p.flags & WRITE_STRAIGHT) && may_be_refused(q, at, end);
    struct oss_io *ios[CORE_IOV_MAX];
    unsigned n = 0, k;
    int err = 0;

    q->p.flags = in_turn ? q->p.flags | WRITE_IN_TURN : q->p.flags & ~WRITE_IN_TURN;
    while (at < end && !err && !(n && in_turn)) {
        struct stripe_piece p = stripe_cut(&i->layout, at, end);
        struct oss_io *io = oss_io_new(q->p.core, OSS_IO_WRITE, i);

        if (!io) {
            err = -ENOMEM;
            break;
        }
        ios[n++] = io;
        if (!direct_slice(io, q, (uint32_t)(at - q->p.offset), p.len))
            err = -EINVAL; /* more pieces than a transfer takes */
        io->q = q;
        io->len = p.len;
        io->stable = !(q->p.flags & WRITE_STRAIGHT);
        io->once = io->stable;
        io->placed = write_appends(q);
        io->placed_gen = gen;
        io->fickle = q->p.flags & WRITE_STRAIGHT;
        io->alone = io->placed || io->fickle;
        io->range = (struct msg_range){p.chunk, p.chunk_offset + p.start, p.len};
        io->done = write_called;
        at += p.len;
    }
    if (err) {
        while (n)
            oss_io_drop(ios[--n]);
        q->p.end(q, err);
        return;
    }
    q->p.pending = n;
    q->p.n1 = gen; /* of the oldest that it may be sent with */
    req_wait(q, "waits for OSS_WRITE", direct_cancel);
    for (k = 0; k < n; k++)
        oss_io_submit(ios[k]);
}

static void appended(struct mds_op *op, int status)
{
    struct core_req *q = op->q;
    const struct msg_append_rep *rep = op->call.rep;

    if (!status)
        inode_merge_attr(op->inode, &rep->attr);
    if (!q)
        return;
    q->p.op = NULL;
    q->p.cancel = NULL;
    if (status == -AIFS_ESTALE_LAYOUT || status == -AIFS_ESTALE_TRUNC) {
        outdated(q, status);
        return;
    }
    if (status) {
        q->p.end(q, status);
        return;
    }
    q->p.offset = rep->offset;
    write_pieces(q, rep->attr.truncate_gen);
}

void direct_write(struct core_req *q)
{
    struct mds_op *op;

    if (!write_appends(q)) {
        write_pieces(q, q->p.inode->attr.truncate_gen);
        return;
    }
    if (q->p.stale < LEASES_TO_WRITE &&
        !room_to_append(q->p.inode, q->p.inode->attr.size, q->p.len)) {
        inline_lease(q, write_run);
        return;
    }
    op = mds_op_new(q->p.core, RPC_OP_APPEND_RANGE, q, appended);
    if (op) {
        op->inode = inode_ref(q->p.inode);
        op->msg.append = (struct msg_append_req){
            .ino = q->p.inode->ino,
            .open_id = q->p.file->open_id,
            .len = q->p.len,
            .truncate_gen = q->p.inode->attr.truncate_gen,
        };
    }
    req_call(q, op, "waits for the metadata server: APPEND_RANGE");
}
