/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `io` measures is written against this: files that take reads and writes, through the kernel
 * (io_path.c) or through libaifs (io_aifs.c). One job uses one file object; begin() may complete at
 * once, finish() hands back completed ones in any order.
 */
#ifndef AIFS_TOOLS_BENCH_IO_H
#define AIFS_TOOLS_BENCH_IO_H

#include "tools/bench/bench.h"

#define IO_DEPTH_MAX 256u

struct io_op {
    uint64_t offset;
    uint32_t len;
    bool write;
    uint8_t *buf; /* page aligned */
    int status;   /* 0 or -errno, once finished; a short read is -EIO */
    uint64_t begun_ns;
};

struct io_file;

struct io_backend {
    const char *name;
    bool async; /* more than one operation in flight per file */
    /* where and options as the user gave them, borrowed until stop(); *ret_dir: where in it the
     * files go. -errno after printing */
    int (*start)(const char *where, const char *options, void **ret_fs, const char **ret_dir);
    void (*stop)(void *fs);
    int (*drop_caches)(void *fs); /* -errno after printing */
    int (*mkdir)(void *fs, const char *path);
    int (*rmdir)(void *fs, const char *path);
    int (*unlink)(void *fs, const char *path);
    int (*rename)(void *fs, const char *from, const char *to);
    /* flags: O_ACCMODE, O_CREAT, O_DIRECT */
    int (*open)(void *fs, const char *path, int flags, unsigned depth, struct io_file **ret_file);
    int (*begin)(struct io_file *f, struct io_op *op);
    struct io_op *(*finish)(struct io_file *f); /* of those begun; never NULL */
    int (*sync)(struct io_file *f);
    int (*close)(struct io_file *f);
};
extern const struct io_backend io_path_backend, io_aifs_backend;

struct io_options {
    const char *rw; /* "write,read,randread,randwrite,mixed" */
    const char *files;
    const char *options; /* of aifs_mount() */
    uint64_t bs, size;
    unsigned jobs, depth;
    double seconds;
    bool direct, fsync, cold, verify, keep;
    int (*before)(void *arg, bool reads); /* called before each row; -errno ends it. May be NULL */
    void *before_arg;
};
#define IO_OPTIONS_DEFAULT                                                                         \
    (struct io_options)                                                                            \
    {                                                                                              \
        .rw = "write,read,randread", .files = "own", .bs = 1u << 20, .size = 256u << 20,           \
        .jobs = 1, .depth = 1                                                                      \
    }

/* Rows "<prefix>.<rw>.<bs>.x<jobs>". 0, 1 failed, 2 wrong options; printed. */
int io_measure(struct bench *b, const struct io_options *o, const char *prefix, const char *where);

/* Bytes that tell their place: any piece of a file can be checked by itself. len, offset: multiples
 * of 8. */
void io_pattern_fill(void *buf, size_t len, uint64_t seed, uint64_t offset);
/* The offset in buf of the first wrong byte's word; len if none. */
size_t io_pattern_check(const void *buf, size_t len, uint64_t seed, uint64_t offset);
/* The i-th of n numbers below n in an order without pattern; each comes once per n. */
uint64_t io_shuffled(uint64_t i, uint64_t n, uint64_t seed);

#endif
