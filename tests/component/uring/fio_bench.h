/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work bench of the fio tests: a reactor with a ring, and one file in a fresh directory, for
 * each place and engine. A test loops over the places with its _i.
 */
#ifndef AIFS_TESTS_COMPONENT_URING_FIO_BENCH_H
#define AIFS_TESTS_COMPONENT_URING_FIO_BENCH_H

#include "common/uring/fio.h"

struct fio_place {
    const char *parent; /* directory */
    const char *want;   /* engine */
};
extern const struct fio_place fio_places[];
enum { FIO_PLACES = 4, BENCH_DEPTH = 8, BENCH_ALIGN = 4096 };

struct fio_bench {
    struct reactor *reactor;
    struct fio *fio;
    char dir[64], path[96];
    struct fio_file file;
};

/* Every call fails the test rather than return an error. */
void fio_bench_open(struct fio_bench *b, int place);
void fio_bench_close(struct fio_bench *b);

/* An operation that counts how often it was done. */
struct bench_op {
    struct fio_op op;
    struct iovec iov[1];
    int status;
    unsigned done;
};
void bench_op_init(struct bench_op *o, struct fio_bench *b, enum fio_op_kind kind, void *buf,
                   size_t len, uint64_t offset);
void bench_wait(struct fio_bench *b, const struct bench_op *ops, unsigned n);
/* Submits one operation, waits for it, returns its status. */
int bench_do(struct fio_bench *b, enum fio_op_kind kind, void *buf, size_t len, uint64_t offset);

void *bench_alloc(size_t len); /* aligned; freed with free() */
void bench_fill(void *buf, size_t len, uint32_t seed);
bool bench_is_filled(const void *buf, size_t len, uint32_t seed);

#endif
