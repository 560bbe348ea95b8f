/* SPDX-License-Identifier: Apache-2.0 */
/* What both engines do with an operation: cut the next piece of it, and digest its result; and the
 * memory that is registered with a ring. */
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

struct io_uring;

/* Memory that is registered, or will be with the first operation; gaps have no iov_base. */
struct fio_fixed {
    struct iovec memory[FIO_MEMORIES_MAX];
    unsigned n;
    bool started, there; /* asked for; the kernel has a table */
    uint8_t *files;      /* of FIO_FILES_MAX: is the place taken? NULL: no table yet, or none */
    unsigned n_files;    /* places of the table */
    bool files_started;
};
void fio_fixed_start(struct fio_fixed *x, struct io_uring *ring);
void fio_fixed_add(struct fio_fixed *x, struct io_uring *ring, struct iovec memory);
void fio_fixed_remove(struct fio_fixed *x, struct io_uring *ring, struct iovec memory);
void fio_fixed_file_add(struct fio_fixed *x, struct io_uring *ring, struct fio_file *file);
void fio_fixed_file_remove(struct fio_fixed *x, struct io_uring *ring, struct fio_file *file);
void fio_fixed_free(struct fio_fixed *x);
/* The place in the table of the memory that all of iov lies in; -1: it does not in any. */
int fio_fixed_find(const struct fio_fixed *x, const struct iovec *iov);

#endif
