/* SPDX-License-Identifier: Apache-2.0 */
/* A target in a temporary directory with reactor and I/O of its own, driven by the test: operations
 * as plain calls. */
#ifndef AIFS_TESTS_COMPONENT_OSS_RIG_H
#define AIFS_TESTS_COMPONENT_OSS_RIG_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>

#include "oss/chunk/store.h"

struct rig {
    char dir[256]; /* the target */
    struct reactor *reactor;
    struct fio *fio;
    struct chunk_store *store;
    struct chunk_store_options options;
};

extern bool rig_on_disk; /* directories under $TMPDIR or /tmp instead of /dev/shm */

void rig_make_dir(struct rig *r); /* dir, and default options */
void rig_open(struct rig *r);     /* formats when needed; must work */
int rig_try_open(struct rig *r);  /* the same, and what came of it */
void rig_close(struct rig *r);    /* commits */
void rig_reopen(struct rig *r);
void rig_destroy(struct rig *r);                /* closes and removes the directory */
void rig_wait(struct rig *r, const bool *done); /* runs the reactor until *done */

struct rig_op {
    struct chunk_op op;
    bool done;
    int status;
    uint32_t crcs[260];
    struct chunk_place place;
};
void rig_submit(struct rig *r, struct rig_op *o);
int rig_run(struct rig *r, struct rig_op *o);

/* Before a WRITE is submitted: moves its data into a slot, as if it had landed there, if the store
 * gives one. It goes back when the write is done. */
bool rig_place(struct rig *r, struct rig_op *o);
int rig_write(struct rig *r, uint64_t ino, uint64_t chunk, uint64_t gen, uint32_t offset,
              const void *data, uint32_t len, bool stable);
/* len bytes from offset on, zeros where there is nothing; the sums are checked. */
int rig_read(struct rig *r, uint64_t ino, uint64_t chunk, uint64_t gen, uint32_t offset, void *data,
             uint32_t len);
int rig_commit(struct rig *r, uint64_t ino);
int rig_truncate(struct rig *r, uint64_t ino, uint64_t gen, uint32_t chunk_bytes, uint64_t start);
int rig_punch(struct rig *r, uint64_t ino, uint64_t gen, uint32_t chunk_bytes, uint64_t start,
              uint64_t end);
int rig_destroy_ino(struct rig *r, uint64_t ino);
int rig_seal(struct rig *r, uint64_t ino, uint64_t gen, uint32_t chunk_bytes, uint64_t *ret_high);
/* 1: found, 0: not before *ret_offset, or an error. */
int rig_seek(struct rig *r, uint64_t ino, uint32_t chunk_bytes, uint32_t stride, uint64_t start,
             uint64_t end, bool hole, uint64_t *ret_offset);
int rig_verify(struct rig *r, uint64_t ino, uint64_t chunk);

uint64_t rig_rand(uint64_t *state); /* splitmix64 */
void rig_fill(void *data, size_t len, uint64_t seed);

#endif
