/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory: the allocator every module uses (so that tests can fail the n-th allocation through the
 * fault point "mem.alloc"), and arenas for memory that is freed in one place.
 *
 * mem_*: any thread. An arena belongs to one thread at a time.
 */
#ifndef AIFS_COMMON_BASE_MEM_H
#define AIFS_COMMON_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/compiler.h"

/* NULL when out of memory (or the fault point says so); caller-owned, freed with mem_free(). */
void *mem_alloc(size_t size) MUST_USE;
void *mem_zalloc(size_t size) MUST_USE;
void *mem_realloc(void *ptr, size_t size) MUST_USE;
void *mem_array(size_t n, size_t size) MUST_USE; /* zeroed; NULL on overflow */
void *mem_dup(const void *ptr, size_t size) MUST_USE;
char *mem_strdup(const char *s) MUST_USE;
char *mem_printf(const char *fmt, ...) MUST_USE PRINTF_LIKE(1, 2);
void mem_free(void *ptr); /* NULL is a no-op */

/*
 * A heap of many small things that are met in no order misses the processor's table of pages at
 * each of them. What malloc(3) takes by brk(2) from mem_heap_huge() on may be in huge pages, where
 * the kernel leaves that to programs (madvise(2), MADV_HUGEPAGE) and as soon as mem_heap_grown()
 * has seen it; so the heap should grow in large steps (mallopt(3), M_TOP_PAD). mem_heap_grown()
 * costs next to nothing, from any thread, and does nothing without mem_heap_huge().
 */
void mem_heap_huge(void);
void mem_heap_grown(void);

/*
 * Arena: bump allocation in blocks, freed as a whole. Up to limit bytes (0: no limit): what a
 * hostile message can make us allocate is bounded by giving its decoder an arena with a limit.
 */
struct arena_block;
struct arena {
    struct arena_block *head;
    size_t used_bytes;  /* handed out */
    size_t limit_bytes; /* 0 = none */
    bool starved;       /* an allocation failed for want of memory, not for the limit */
    unsigned char first[1024] __attribute__((aligned(16))); /* most requests need no more */
    size_t first_used;
};
void arena_init(struct arena *a, size_t limit_bytes);
void *arena_alloc(struct arena *a, size_t size) MUST_USE; /* 16-aligned, uninitialised */
void *arena_zalloc(struct arena *a, size_t size) MUST_USE;
void *arena_dup(struct arena *a, const void *ptr, size_t size) MUST_USE;
void arena_reset(struct arena *a); /* frees everything handed out; the arena can be used again */
/* The same for who uses it again soon: a small block stays, until the arena is reset. */
void arena_recycle(struct arena *a);

#endif
