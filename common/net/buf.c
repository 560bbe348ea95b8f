/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bulk buffer pools. One mapping, touched at start; a free list used last in first out, so that the
 * buffer handed out is the one still in the cache; waiters served first come, first served,
 * whenever a buffer comes back. Failure: only at creation (-ENOMEM). A pool that runs dry makes its
 * users wait.
 */
#include "common/net/buf.h"

#include <string.h>
#include <sys/mman.h>

#include "common/base/assert.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"

#define HUGE_PAGE_BYTES  ((size_t)2 * MIB)
#define SMALL_PAGE_BYTES 4096u

struct buf_pool {
    const char *name;
    struct buf *bufs;
    uint8_t *memory;
    size_t memory_bytes;
    bool borrowed; /* memory is the caller's */
    struct list free;
    struct list waiters;
    bool serving; /* inside serve(): buf_put() from a waiter's fn must not recurse */
    uint32_t total;
    uint32_t in_use;
    uint32_t high_water;
    uint64_t empties;
};

/* Memory that starts where a huge page does: the kernel then fills it with huge pages, if it has
 * some and may. One fault instead of 512, and what reads the buffers from another process (cma.h)
 * looks up one page instead of 512. */
static void *map_huge(size_t bytes)
{
    uint8_t *m = mmap(NULL, bytes + HUGE_PAGE_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t before;

    if (m == MAP_FAILED)
        return NULL;
    before = -(uintptr_t)m % HUGE_PAGE_BYTES;
    if (before)
        munmap(m, before);
    munmap(m + before + bytes, HUGE_PAGE_BYTES - before);
    m += before;
    if (madvise(m, bytes, MADV_HUGEPAGE) < 0)
        LOG_DEBUG("buf", "no huge pages: %m"); /* a kernel without them */
    return m;
}

static void *map_small(size_t bytes)
{
    void *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return m == MAP_FAILED ? NULL : m;
}

static uint8_t *map_cold(size_t bytes)
{
    return bytes >= HUGE_PAGE_BYTES ? map_huge(bytes) : map_small(bytes);
}

/* The kernel clears them, and fresh pages cost more than the network. */
static void touch(uint8_t *m, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += SMALL_PAGE_BYTES)
        m[at] = 0;
}

uint8_t *buf_memory_map(size_t bytes)
{
    uint8_t *m = map_cold(bytes);

    if (m)
        touch(m, bytes);
    return m;
}

void buf_pool_touch(struct buf_pool *p)
{
    touch(p->memory, p->memory_bytes);
}

int buf_pool_create(const char *name, uint32_t size_bytes, uint32_t n, struct buf_pool **ret_pool)
{
    int rc = buf_pool_create_cold(name, size_bytes, n, ret_pool);

    if (!rc)
        buf_pool_touch(*ret_pool);
    return rc;
}

int buf_pool_create_cold(const char *name, uint32_t size_bytes, uint32_t n,
                         struct buf_pool **ret_pool)
{
    return buf_pool_create_in(name, size_bytes, n, NULL, ret_pool);
}

int buf_pool_create_in(const char *name, uint32_t size_bytes, uint32_t n, uint8_t *memory,
                       struct buf_pool **ret_pool)
{
    struct buf_pool *p;

    ASSERT(size_bytes > 0 && size_bytes % 4096 == 0 && n > 0);
    p = mem_zalloc(sizeof *p);
    if (!p)
        return -ENOMEM;
    p->name = name;
    p->total = n;
    p->memory_bytes = (size_t)size_bytes * n;
    list_init(&p->free);
    list_init(&p->waiters);
    p->bufs = mem_array(n, sizeof *p->bufs);
    if (!p->bufs)
        goto err_pool;
    p->borrowed = memory != NULL;
    p->memory = memory ? memory : map_cold(p->memory_bytes);
    if (!p->memory)
        goto err_bufs;
    for (uint32_t i = n; i-- > 0;) {
        struct buf *b = &p->bufs[i];

        b->pool = p;
        b->data = p->memory + (size_t)i * size_bytes;
        b->size_bytes = size_bytes;
        b->memory = BUF_HOST;
        list_push_front(&p->free, &b->link);
    }
    *ret_pool = p;
    return 0;

err_bufs:
    mem_free(p->bufs);
err_pool:
    LOG_ERROR("buf", "pool %s: no memory for %u buffers of %u bytes", name, n, size_bytes);
    mem_free(p);
    return -ENOMEM;
}

struct iovec buf_pool_memory(const struct buf_pool *p)
{
    return (struct iovec){p->memory, p->memory_bytes};
}

void buf_pool_destroy(struct buf_pool *p)
{
    if (!p)
        return;
    ASSERT(p->in_use == 0 && list_empty(&p->waiters));
    if (!p->borrowed)
        munmap(p->memory, p->memory_bytes);
    mem_free(p->bufs);
    mem_free(p);
}

static struct buf *take(struct buf_pool *p)
{
    struct list *e = list_pop_front(&p->free);
    struct buf *b;

    if (!e)
        return NULL;
    b = list_entry(e, struct buf, link);
    b->refs = 1;
    p->in_use++;
    p->high_water = MAX(p->high_water, p->in_use);
    return b;
}

struct buf *buf_get(struct buf_pool *p)
{
    struct buf *b = list_empty(&p->waiters) ? take(p) : NULL; /* never past those who wait */

    if (!b)
        p->empties++;
    return b;
}

/* Hands free buffers to waiters, in order. A waiter's fn may put, get and wait again. */
static void serve(struct buf_pool *p)
{
    if (p->serving)
        return;
    p->serving = true;
    while (!list_empty(&p->free) && !list_empty(&p->waiters)) {
        struct buf_waiter *w = list_entry(list_pop_front(&p->waiters), struct buf_waiter, link);

        w->fn(w, take(p));
    }
    p->serving = false;
}

void buf_wait(struct buf_pool *p, struct buf_waiter *w)
{
    if (list_empty(&p->free))
        p->empties++;
    list_push_back(&p->waiters, &w->link);
    serve(p);
}

void buf_wait_cancel(struct buf_waiter *w)
{
    list_remove(&w->link);
}

void buf_ref(struct buf *b)
{
    ASSERT(b->refs > 0);
    b->refs++;
}

void buf_put(struct buf *b)
{
    struct buf_pool *p;

    if (!b)
        return;
    ASSERT(b->refs > 0);
    if (--b->refs > 0)
        return;
    p = b->pool;
    p->in_use--;
    list_push_front(&p->free, &b->link);
    serve(p);
}

void buf_pool_get_stats(const struct buf_pool *p, struct buf_pool_stats *ret_stats)
{
    const struct list *e;
    uint32_t waiters = 0;

    list_for_each (e, &p->waiters)
        waiters++;
    *ret_stats = (struct buf_pool_stats){.total = p->total,
                                         .in_use = p->in_use,
                                         .high_water = p->high_water,
                                         .waiters = waiters,
                                         .empties = p->empties};
}
