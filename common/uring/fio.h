/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File I/O of a reactor. Two engines behind one interface, chosen per file by what its file system
 * is: io_uring (with O_DIRECT where the file system has it), and plain preadv/pwritev run at once
 * on the caller's thread (tmpfs, where io_uring hands every request to a kernel worker and is four
 * times slower). The plain engine's data sync blocks; on tmpfs it is a no-op.
 *
 * An operation is caller-owned until done() has run, exactly once, on the reactor; with the plain
 * engine done() may run before fio_submit() returns, with io_uring it never does. Operations are
 * not ordered: a data sync covers the writes whose done() ran before it was submitted. Reads and
 * writes are completed whole: short transfers are continued, a read past the end of file fails with
 * -ENODATA. After a failure the transferred part is undefined.
 *
 * Everything here is called on the reactor's thread, but fio_open() and fio_close(), which block
 * and may be called from any. Requests of one turn go to the kernel in one system call. At most
 * depth are in the kernel; the rest waits in the order of submission, bounded by the operations
 * their callers own.
 *
 * Memory named by fio_memory_add() is registered with the ring when that is first used: its pages
 * are looked up once instead of with every transfer, and stay pinned. Where the kernel refuses
 * that, everything works without, and the log says so. So it is with files named by fio_file_add(),
 * of which the kernel then counts no references with every operation.
 *
 * Fault points: fio.create (no io_uring), fio.register (no memory and no file is registered),
 * fio.read, fio.write, fio.sync (-EIO), fio.short (the transfer stops early and is continued),
 * fio.again (interrupted, tried again), fio.enter (the kernel does not take requests now).
 */
#ifndef AIFS_COMMON_URING_FIO_H
#define AIFS_COMMON_URING_FIO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "common/rt/reactor.h"

struct fio; /* one per reactor: the ring */

/* Falls back to plain, with one log line, if io_uring is not to be had; -ENOMEM. */
int fio_create(struct reactor *r, unsigned depth, struct fio **ret_fio) MUST_USE;
/* Nothing in flight, not from within a done(). NULL is a no-op. */
void fio_destroy(struct fio *f);
bool fio_has_ring(const struct fio *f);

struct fio_stats {
    uint64_t submitted;   /* operations */
    uint64_t enters;      /* system calls that hand requests to the kernel */
    uint64_t ring_full;   /* operations that had to wait for a place */
    uint64_t continued;   /* short transfers */
    uint64_t tried_again; /* interrupted, or the kernel was out of resources */
    uint64_t fixed;       /* transfers of the ring from or to registered memory */
    uint64_t not_fixed;   /* the others */
    uint64_t fixed_files; /* operations of the ring on registered files */
};
void fio_get_stats(const struct fio *f, struct fio_stats *ret_stats); /* own thread */

enum fio_engine { FIO_PLAIN, FIO_URING };

struct fio_file {
    int fd;
    enum fio_engine engine;
    bool direct;          /* O_DIRECT: memory, offset and length must be multiples of align_bytes */
    uint32_t align_bytes; /* 1 if not direct */
    unsigned place;       /* private: from 1 in the ring's table of files; 0: not in it */
};

/*
 * Opens a regular file or block device (flags as open(2); O_CLOEXEC is added, O_DIRECT decided
 * here) with the best engine for its file system, or the one forced by want ("auto", "plain",
 * "uring"). -errno of open(2); -EINVAL: another kind of file, or an unknown want.
 */
int fio_open(const char *path, int flags, unsigned mode, const char *want,
             struct fio_file *ret_file) MUST_USE;
void fio_close(struct fio_file *file);                    /* nothing in flight */
const char *fio_engine_name(const struct fio_file *file); /* "plain", "uring", "uring, direct" */

#define FIO_FILES_MAX 4096u

/* Operations on an open file will be many; the first FIO_FILES_MAX are registered. No operation on
 * it may be in flight at either call; it is taken away before it is closed. */
void fio_file_add(struct fio *f, struct fio_file *file);
void fio_file_remove(struct fio *f, struct fio_file *file); /* no-op if it was not added */

#define FIO_MEMORIES_MAX 160u

/* Memory that many transfers will be from or to, such as a pool of buffers; the first
 * GiB of it, of FIO_MEMORIES_MAX at a time. It is there, and stays there and what it is, until
 * fio_memory_remove(), before which nothing of it is in flight. */
void fio_memory_add(struct fio *f, struct iovec memory);
void fio_memory_remove(struct fio *f, struct iovec memory); /* no-op for what was not added */

enum fio_op_kind { FIO_READ, FIO_WRITE, FIO_DATASYNC };

struct fio_op {
    enum fio_op_kind kind;
    struct fio_file *file;
    struct iovec *iov; /* borrowed until done(); the elements may be changed */
    unsigned n_iov;
    uint64_t offset;
    void (*done)(struct fio_op *op, int status); /* 0 or -errno */
    /* private */
    struct reactor_work work;
    uint64_t left, at; /* bytes to go, and where in the file */
    unsigned next_iov;
    unsigned tries; /* without progress */
    int status;
    struct iovec piece;
};

/* Queues when the ring is full. -EINVAL (through done()) when a direct transfer is not aligned. */
void fio_submit(struct fio *f, struct fio_op *op);

#endif
