/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a scenario works: a new directory of its own in a directory of any file system, or of an
 * aifs reached through libaifs. And whole files there, written and read in pieces.
 */
#ifndef AIFS_TOOLS_BENCH_PLACE_H
#define AIFS_TOOLS_BENCH_PLACE_H

#include "tools/bench/io.h"

#define PLACE_PATH_BYTES 4096

struct place {
    const struct io_backend *backend;
    void *fs;
    const char *root; /* what was asked for; borrowed from the backend */
    char dir[3600];   /* new, within root: "bench-<scenario>.PID.N" */
};

/* where: a directory, or "aifs:" and a source; options: of aifs_mount(), may be NULL; both borrowed
 * until place_close(). 0, or 1 after printing. */
int place_open(struct place *p, const char *scenario, const char *where,
               const char *options) MUST_USE;
/* Removes the directory, which must be empty by then, unless keep. */
void place_close(struct place *p, bool keep);

/* A file, moved in pieces of the size that a program would use. */
struct place_file {
    const char *path;
    uint64_t len;
    uint32_t piece;
    uint64_t seed;   /* of the bytes that tell their place, with verify */
    bool verify;     /* write such bytes; check what is read */
    bool sync;       /* fsync at the end of writing */
    bool direct;     /* O_DIRECT */
    uint8_t *memory; /* piece bytes, page aligned */
};
/* Creates or overwrites. -errno. */
int place_write(const struct place *p, const struct place_file *f) MUST_USE;
/* Open, read all, close. -errno; -EIO also for wrong bytes. */
int place_read(const struct place *p, const struct place_file *f) MUST_USE;
/* One operation, waited for. -errno. */
int place_io(const struct place *p, struct io_file *f, bool write, void *buf, uint32_t len,
             uint64_t offset) MUST_USE;
/* Memory for n jobs, page aligned, filled with bytes that do not compress; NULL after printing.
 * Goes with place_memory_free(). */
uint8_t *place_memory(const char *scenario, size_t bytes);
void place_memory_free(uint8_t *memory, size_t bytes);
/* Ends a job with the error and where it was. */
void place_failed(struct bench_job *j, int status, const char *path);

#endif
