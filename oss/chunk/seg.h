/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segment files: where slots live. seg/<class>.<number>, each at most 1 GiB of slots of one class,
 * so that slot n is in file n / (1 GiB / slot) at a multiple of its size. Disk space is allocated
 * (fallocate) in groups when the slot allocator asks, and punched out when it gives a group back.
 *
 * Ordering: a new file and its directory entry are synced when it is made, and the entries of all
 * once more when they are opened: whoever made the last one may have been killed before; data and
 * file size are synced by seg_sync() before the index may name them. Reactor's thread, but
 * seg_sync_fds() which takes plain descriptors.
 */
#ifndef AIFS_OSS_CHUNK_SEG_H
#define AIFS_OSS_CHUNK_SEG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/uring/fio.h"
#include "oss/chunk/slots.h"

#define SEG_BYTES (1ull << 30)

struct seg_file {
    struct fio_file file; /* fd -1: not there */
    bool dirty;           /* written since the last seg_take_dirty() */
    uint8_t *map;         /* the whole of it, SEG_BYTES; NULL: not mapped */
};

struct seg_set {
    const char *dir;    /* the target's, for the log; borrowed */
    const char *at;     /* the same for opening files: wherever it is by now; borrowed */
    const char *engine; /* of fio_open() */
    const char *tag;    /* for logs */
    struct fio *fio;    /* borrowed; files are registered with it */
    struct seg_class {
        struct seg_file **files;
        uint32_t n_files;
    } classes[SLOTS_CLASSES];
    uint64_t fs_reserve_bytes; /* free bytes of the file system that are left alone */
    uint32_t n_open;
    bool in_memory; /* on tmpfs */
};

int seg_open(struct seg_set *s) MUST_USE; /* opens every segment file there is */
void seg_close(struct seg_set *s);
extern const struct slots_ops seg_slots_ops; /* arg: struct seg_set * */
/* Where a slot is; NULL when its file does not exist: the index names space that is not there. */
struct seg_file *seg_of_slot(struct seg_set *s, struct chunk_slot slot, uint64_t *ret_offset);
/*
 * Where a slot of a file on tmpfs is in memory; NULL: its file is elsewhere, or cannot be mapped.
 * Stays valid until seg_close(). Allocated pages may be touched; what is not allocated is SIGBUS
 * when the file system is full.
 */
uint8_t *seg_map(struct seg_set *s, struct chunk_slot slot);
/* The pages of a slot go out of this process, and come back when touched. */
void seg_unmap_slot(struct seg_set *s, struct chunk_slot slot);
/* Slots that the files of a class can hold at their present size. */
uint32_t seg_slots_on_disk(const struct seg_set *s, unsigned class);
/* The descriptors written since the last call: up to max into fds; returns how many. */
unsigned seg_take_dirty(struct seg_set *s, int *fds, unsigned max);

#endif
