/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of one operation, whatever the engine; and the plain engine.
 *
 * Happy path: begin, one piece that transfers everything, over. Short transfers move the iovec on
 * and go round again.
 *
 * Failure modes: the kernel's errors end the operation; interruptions are tried again, FIO_TRIES
 * times without progress; the end of the file ends a read with -ENODATA. Under O_DIRECT a count
 * that is not a multiple of the alignment is the end of the file in a read, and in a write is
 * rounded down, so that what follows stays aligned.
 */
#include "common/uring/fio_int.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/fault/fault.h"

#define FIO_TRIES 100

static bool fio_op_aligned(const struct fio_op *op)
{
    uint64_t bits = op->offset;

    for (unsigned i = 0; i < op->n_iov; i++)
        bits |= (uintptr_t)op->iov[i].iov_base | op->iov[i].iov_len;
    return (bits & (op->file->align_bytes - 1)) == 0;
}

static bool fio_op_faulty(const struct fio_op *op)
{
    switch (op->kind) {
    case FIO_READ:
        return FAULT("fio.read");
    case FIO_WRITE:
        return FAULT("fio.write");
    case FIO_DATASYNC:
        return FAULT("fio.sync");
    }
    return false;
}

bool fio_op_begin(struct fio_op *op)
{
    op->left = 0;
    op->at = op->offset;
    op->next_iov = 0;
    op->tries = 0;
    op->status = 0;
    if (fio_op_faulty(op)) {
        op->status = -EIO;
        return false;
    }
    if (op->kind == FIO_DATASYNC)
        return true;
    if (op->file->direct && !fio_op_aligned(op)) {
        op->status = -EINVAL;
        return false;
    }
    for (unsigned i = 0; i < op->n_iov; i++) {
        if (op->iov[i].iov_len > (uint64_t)INT64_MAX - op->left) {
            op->status = -EINVAL;
            return false;
        }
        op->left += op->iov[i].iov_len;
    }
    if (op->at > (uint64_t)INT64_MAX - op->left)
        op->status = -EINVAL;
    return op->left > 0 && op->status == 0;
}

const struct iovec *fio_op_piece(struct fio_op *op, unsigned *ret_n)
{
    struct iovec *iov;

    while (op->iov[op->next_iov].iov_len == 0)
        op->next_iov++; /* left > 0: there is one that is not empty */
    iov = &op->iov[op->next_iov];
    if (FAULT("fio.short") && iov->iov_len > op->file->align_bytes) {
        op->piece = (struct iovec){iov->iov_base, op->file->align_bytes};
        *ret_n = 1;
        return &op->piece;
    }
    *ret_n = MIN(op->n_iov - op->next_iov, (unsigned)IOV_MAX);
    return iov;
}

static void fio_op_advance(struct fio_op *op, uint64_t n)
{
    ASSERT(n <= op->left);
    op->left -= n;
    op->at += n;
    while (n > 0) {
        struct iovec *iov = &op->iov[op->next_iov];
        size_t step = MIN(iov->iov_len, n);

        iov->iov_base = (char *)iov->iov_base + step;
        iov->iov_len -= step;
        n -= step;
        if (iov->iov_len == 0)
            op->next_iov++;
    }
}

static bool fio_op_over(struct fio_op *op, int status)
{
    op->status = status;
    return true;
}

static bool fio_op_again(struct fio_op *op, int64_t result, struct fio_stats *stats)
{
    stats->tried_again++;
    return ++op->tries > FIO_TRIES && fio_op_over(op, (int)result);
}

bool fio_op_step(struct fio_op *op, int64_t result, struct fio_stats *stats)
{
    uint64_t n;

    if (result == -EINTR || result == -EAGAIN)
        return fio_op_again(op, result, stats);
    if (result < 0)
        return fio_op_over(op, (int)result);
    if (op->kind == FIO_DATASYNC)
        return fio_op_over(op, 0);
    if (result == 0)
        return fio_op_over(op, op->kind == FIO_READ ? -ENODATA : -EIO);
    n = (uint64_t)result;
    if (op->file->direct && n < op->left && n % op->file->align_bytes) {
        if (op->kind == FIO_READ)
            return fio_op_over(op, -ENODATA);
        n -= n % op->file->align_bytes;
        if (n == 0)
            return fio_op_again(op, -EIO, stats);
    }
    op->tries = 0;
    fio_op_advance(op, n);
    if (op->left == 0)
        return fio_op_over(op, 0);
    stats->continued++;
    return false;
}

static int64_t fio_plain_once(struct fio_op *op)
{
    const struct iovec *iov;
    unsigned n;
    ssize_t got;

    if (FAULT("fio.again"))
        return -EINTR;
    if (op->kind == FIO_DATASYNC)
        return fdatasync(op->file->fd) < 0 ? -errno : 0;
    iov = fio_op_piece(op, &n);
    if (op->kind == FIO_READ)
        got = preadv(op->file->fd, iov, (int)n, (off_t)op->at);
    else
        got = pwritev(op->file->fd, iov, (int)n, (off_t)op->at);
    return got < 0 ? -errno : got;
}

void fio_plain_run(struct fio_op *op, struct fio_stats *stats)
{
    if (fio_op_begin(op))
        while (!fio_op_step(op, fio_plain_once(op), stats))
            ;
    op->done(op, op->status);
}
