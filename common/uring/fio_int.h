/* SPDX-License-Identifier: Apache-2.0 */
/* What both engines do with an operation: cut the next piece of it, and digest its result. */
#ifndef AIFS_COMMON_URING_FIO_INT_H
#define AIFS_COMMON_URING_FIO_INT_H

#include "common/uring/fio.h"

/* Checks op and sets up its private part. True: go on; false: it is over, with op->status. */
bool fio_op_begin(struct fio_op *op) MUST_USE;
/* What to transfer next, for preadv and the like. */
const struct iovec *fio_op_piece(struct fio_op *op, unsigned *ret_n);
/* Digests what the kernel said (a count or -errno). True: it is over, with op->status. */
bool fio_op_step(struct fio_op *op, int64_t result, struct fio_stats *stats) MUST_USE;
/* The plain engine: the whole operation, now. */
void fio_plain_run(struct fio_op *op, struct fio_stats *stats);

#endif
