/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which slots of a target are free. Slots come in classes, one for each power of two from 64 KiB to
 * 64 MiB; a class is an array of slots numbered from 0, cut into groups that get their disk space
 * all at once. Nothing of this is stored: at start every slot that the index names is marked, and
 * the rest is free.
 *
 * Space: a group is backed (has disk space) or not. Backing one is refused when the sum of backed
 * bytes would pass the capacity; then, or when the file system is full, empty groups of other
 * classes are given back first. A part of the capacity, the reserve, is only for allocations that
 * do not store new data (SLOTS_MOVE), so that overwriting works on a full target. What has been
 * promised to writers is kept from all others, with some groups on top: it may be wanted in any
 * class.
 *
 * Pure but for the two callbacks. One thread.
 */
#ifndef AIFS_OSS_CHUNK_SLOTS_H
#define AIFS_OSS_CHUNK_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "oss/chunk/chunk_fmt.h"

#define SLOTS_CLASSES (CHUNK_CLASS_MAX - CHUNK_CLASS_MIN + 1)

struct slots_ops {
    /* Back n slots from first on; -ENOSPC or another error. */
    int (*back)(void *arg, unsigned class, uint32_t first, uint32_t n);
    /* Give their space back; failure costs space only. */
    void (*unback)(void *arg, unsigned class, uint32_t first, uint32_t n);
};

struct slots_group {
    uint32_t used;
    bool backed;
};

struct slots_class {
    uint64_t *bitmap; /* a bit per slot, set: used */
    struct slots_group *groups;
    uint32_t n_groups, cap_groups;
    uint32_t group_slots;
    uint32_t hint; /* no group before it has a free backed slot */
    /* Counted for who makes space ready: slots handed out, and groups that were backed for it. */
    uint64_t taken_bytes, late_bytes;
};

struct slots {
    struct slots_class classes[SLOTS_CLASSES];
    const struct slots_ops *ops;
    void *arg;
    uint64_t group_bytes;
    uint64_t capacity_bytes; /* of backed groups; may be changed */
    uint64_t reserve_bytes;
    uint64_t keep_bytes; /* empty backed groups kept ready for the next writes */
    uint64_t backed_bytes, used_bytes,
        empty_bytes;         /* empty: in backed groups without a used slot */
    uint64_t promised_bytes; /* to writers: free for nobody else */
};

enum slots_use { SLOTS_NEW, SLOTS_MOVE };

int slots_init(struct slots *s, uint64_t capacity_bytes, uint64_t reserve_bytes,
               const struct slots_ops *ops, void *arg) MUST_USE;
void slots_fini(struct slots *s);
/* At start, before the first allocation: -EEXIST when it is marked already, -ENOMEM. */
int slots_mark(struct slots *s, struct chunk_slot slot) MUST_USE;
int slots_alloc(struct slots *s, unsigned class, enum slots_use use,
                struct chunk_slot *ret_slot) MUST_USE; /* -ENOSPC, -ENOMEM, or what back() said */
/* There is no room for everybody any more: of a promise, all but keep of it. It is less then. */
int slots_alloc_owed(struct slots *s, unsigned class, enum slots_use use, uint64_t *promise,
                     uint64_t keep, struct chunk_slot *ret_slot) MUST_USE;
/* The slot that slots_alloc() would take; false: it would have to back a group first. */
bool slots_next(struct slots *s, unsigned class, struct chunk_slot *ret_slot);
/* Backs one more group before it is needed; -ENOSPC also where the capacity is reached, or where
 * more than keep_bytes would be empty, with empty groups of other classes given back for it: what
 * was given back would be had again, and again. */
int slots_back_ahead(struct slots *s, unsigned class) MUST_USE;
/* The first backed slot from number on that is free. */
bool slots_free_from(struct slots *s, unsigned class, uint32_t from, struct chunk_slot *ret_slot);
void slots_free(struct slots *s, struct chunk_slot slot);
/* Gives empty groups back until no more than keep_bytes of them are left, those of class last. */
void slots_trim(struct slots *s, unsigned class, uint64_t keep_bytes);
bool slots_is_backed(const struct slots *s, struct chunk_slot slot);
bool slots_is_used(const struct slots *s, struct chunk_slot slot);
/* Bytes that new data can still take, were it to come in the largest slots. */
uint64_t slots_free_bytes(const struct slots *s);
/* The smallest class whose slots hold len bytes. */
unsigned slots_class_for(uint32_t len);
/* Walks runs of groups that are not backed below the end of n slots: what a file may still hold. */
void slots_unback_rest(struct slots *s, unsigned class, uint32_t n_slots);

#endif
