/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File I/O of a reactor. Two engines behind one interface, chosen per file by what its file system is: io_uring (with O_DIRECT where the file system has it), and plain
 * pread/pwrite run at once on the caller's thread (tmpfs, where io_uring hands every request to a kernel worker and is four times slower).
 *
 * An operation is caller-owned until done() has run, exactly once, on the reactor; with the plain engine done() may run before fio_submit() returns. Reads and writes are
 * completed whole: short transfers are continued, a read past the end of file fails with -ENODATA.
 */
#ifndef AIFS_COMMON_URING_FIO_H
#define AIFS_COMMON_URING_FIO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "common/rt/reactor.h"

struct fio; /* one per reactor: the ring */
int fio_create(struct reactor *r, unsigned depth, struct fio **ret_fio) MUST_USE; /* falls back to plain, with one log line, if io_uring is not to be had */
void fio_destroy(struct fio *f);                                                   /* nothing in flight */

enum fio_engine { FIO_PLAIN, FIO_URING };

struct fio_file {
    int fd;
    enum fio_engine engine;
    bool direct;             /* O_DIRECT: memory, offset and length must be multiples of align_bytes */
    uint32_t align_bytes;    /* 1 if not direct */
};
/* Opens path (flags as open(2), O_CLOEXEC added) with the best engine for its file system, or the one forced by want ("auto", "plain", "uring"). */
int fio_open(const char *path, int flags, unsigned mode, const char *want, struct fio_file *ret_file) MUST_USE;
void fio_close(struct fio_file *file);

enum fio_op_kind { FIO_READ, FIO_WRITE, FIO_DATASYNC };
struct fio_op {
    enum fio_op_kind kind;
    struct fio_file *file;
    struct iovec *iov; /* borrowed until done(), and may be changed */
    unsigned n_iov;
    uint64_t offset;
    void (*done)(struct fio_op *op, int status); /* 0 or -errno */
    /* private */
    struct reactor_work work;
    uint64_t left;
};
void fio_submit(struct fio *f, struct fio_op *op); /* queues when the ring is full */

#endif
