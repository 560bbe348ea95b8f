// SPDX-License-Identifier: Apache-2.0
/*
 * The allocator: malloc() behind the fault point "mem.alloc", and arenas. Failure is NULL and
 * nothing else; who asked decides what it means. An arena serves from the 1024 bytes inside itself
 * first, then from blocks that double up to BLOCK_MAX_BYTES.
 */
#include "common/base/mem.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/fault/fault.h"

#define ARENA_ALIGN     16u
#define BLOCK_MIN_BYTES ((size_t)4096)
#define BLOCK_MAX_BYTES ((size_t)256 * KIB)

struct arena_block {
    struct arena_block *next;
    size_t used, cap;
    unsigned char data[] __attribute__((aligned(16)));
};

static _Atomic uintptr_t heap_seen; /* up to here; 0: not asked to look */

static uintptr_t heap_end(void)
{
    return (uintptr_t)sbrk(0) & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

void mem_heap_huge(void)
{
    atomic_store(&heap_seen, heap_end());
}

void mem_heap_grown(void)
{
    uintptr_t seen = atomic_load(&heap_seen), end;

    if (!seen || (uintptr_t)sbrk(0) == seen)
        return;
    end = heap_end();
    /* It may have shrunk. A refusal is a kernel without huge pages. */
    if (atomic_compare_exchange_strong(&heap_seen, &seen, end) && end > seen)
        (void)madvise((void *)seen, end - seen, MADV_HUGEPAGE);
}

void *mem_alloc(size_t size)
{
    return FAULT("mem.alloc") ? NULL : malloc(size ? size : 1);
}

void *mem_zalloc(size_t size)
{
    return FAULT("mem.alloc") ? NULL : calloc(1, size ? size : 1);
}

void *mem_realloc(void *ptr, size_t size)
{
    return FAULT("mem.alloc") ? NULL : realloc(ptr, size ? size : 1);
}

void *mem_array(size_t n, size_t size)
{
    size_t total;

    if (__builtin_mul_overflow(n, size, &total))
        return NULL;
    return mem_zalloc(total);
}

void *mem_dup(const void *ptr, size_t size)
{
    void *copy = mem_alloc(size);

    if (copy && size)
        memcpy(copy, ptr, size);
    return copy;
}

char *mem_strdup(const char *s)
{
    return mem_dup(s, strlen(s) + 1);
}

char *mem_printf(const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    int n;

    if (FAULT("mem.alloc"))
        return NULL;
    va_start(ap, fmt);
    n = vasprintf(&text, fmt, ap);
    va_end(ap);
    return n < 0 ? NULL : text;
}

void mem_free(void *ptr)
{
    free(ptr);
}

void arena_init(struct arena *a, size_t limit_bytes)
{
    a->head = NULL;
    a->used_bytes = 0;
    a->limit_bytes = limit_bytes;
    a->starved = false;
    a->first_used = 0;
}

/* A new head block with room for size; NULL when out of memory. */
static struct arena_block *arena_grow(struct arena *a, size_t size)
{
    size_t cap = a->head ? MIN(a->head->cap * 2, BLOCK_MAX_BYTES) : BLOCK_MIN_BYTES;
    struct arena_block *b;

    cap = MAX(cap, size);
    if (cap > SIZE_MAX - sizeof *b)
        return NULL;
    b = mem_alloc(sizeof *b + cap);
    if (!b) {
        a->starved = true;
        return NULL;
    }
    b->next = a->head;
    b->used = 0;
    b->cap = cap;
    a->head = b;
    return b;
}

void *arena_alloc(struct arena *a, size_t size)
{
    struct arena_block *b = a->head;
    void *p;

    size = size ? size : 1;
    if (size > SIZE_MAX - (ARENA_ALIGN - 1))
        return NULL;
    size = (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    if (a->limit_bytes && size > a->limit_bytes - a->used_bytes)
        return NULL;
    if (size <= sizeof a->first - a->first_used) {
        p = a->first + a->first_used;
        a->first_used += size;
    } else {
        if (!b || size > b->cap - b->used)
            b = arena_grow(a, size);
        if (!b)
            return NULL;
        p = b->data + b->used;
        b->used += size;
    }
    a->used_bytes += size;
    return p;
}

void *arena_zalloc(struct arena *a, size_t size)
{
    void *p = arena_alloc(a, size);

    if (p)
        memset(p, 0, size);
    return p;
}

void *arena_dup(struct arena *a, const void *ptr, size_t size)
{
    void *p = arena_alloc(a, size);

    if (p && size)
        memcpy(p, ptr, size);
    return p;
}

void arena_reset(struct arena *a)
{
    while (a->head) {
        struct arena_block *b = a->head;

        a->head = b->next;
        mem_free(b);
    }
    arena_init(a, a->limit_bytes);
}

void arena_recycle(struct arena *a)
{
    struct arena_block *kept = NULL;

    while (a->head) {
        struct arena_block *b = a->head;

        a->head = b->next;
        if (b->cap == BLOCK_MIN_BYTES && !kept)
            kept = b;
        else
            mem_free(b);
    }
    arena_init(a, a->limit_bytes);
    if (!kept)
        return;
    kept->next = NULL;
    kept->used = 0;
    a->head = kept;
}
