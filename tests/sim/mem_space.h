/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Space on a simulated disk: a slot for each chunk, promises to sessions, and a bound that comes
 * and goes (losses.c). Accounts are kept as by oss/chunk/slots.c. A disk that others fill too
 * breaks its promises, and may refuse what would lie in a slot already.
 */
#ifndef AIFS_TESTS_SIM_MEM_SPACE_H
#define AIFS_TESTS_SIM_MEM_SPACE_H

#include <stdbool.h>
#include <stdint.h>

struct chunk_op;
struct chunk_store;

enum space_bound {
    SPACE_ENOUGH,
    SPACE_LITTLE, /* what is promised, and a few slots */
    SPACE_NONE,   /* others have filled it */
};

struct mem_space {
    enum space_bound bound;
    uint64_t slots;          /* at most; of SPACE_LITTLE */
    uint64_t promised_bytes; /* by the store that is open */
};

/* For a write to a chunk that has this data; NULL: to a new one. 0 or -ENOSPC, as slots_alloc() and
 * slots_alloc_owed() say it; what has been stored before, and its answer was lost, is not refused.
 * used: slots, by all chunks so far. */
int mem_space_take(struct mem_space *s, uint64_t used, const struct chunk_op *op,
                   const uint8_t *data);
void mem_space_bound(struct chunk_store *s, enum space_bound bound, uint64_t spare_slots);

/* ---- mem_chunks.c ---- */
void sim_chunks_enough(
    void); /* there is room on all of them, whether their stores are open or not */
struct mem_space *sim_chunks_space(struct chunk_store *s, uint64_t *ret_used_slots);

#endif
