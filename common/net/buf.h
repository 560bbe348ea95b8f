/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bulk buffers: bounded pools of page-aligned memory, touched at start, registered with the
 * transports, recycled last in first out (fresh memory costs more than the network). Running dry is
 * back-pressure: buf_get() returns NULL and the caller waits its turn with buf_wait(); nothing here
 * falls back to malloc.
 *
 * A pool belongs to one reactor. A buffer is owned by whoever got it until buf_put(), and is
 * reference counted: buf_ref() for a second owner.
 */
#ifndef AIFS_COMMON_NET_BUF_H
#define AIFS_COMMON_NET_BUF_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "common/base/compiler.h"
#include "common/base/list.h"

enum buf_memory { BUF_HOST = 0 }; /* other kinds exist in the wire format and are refused */

struct buf_pool;
struct buf {
    struct list link; /* free list; free for the owner's use while owned */
    struct buf_pool *pool;
    uint8_t *data;       /* page aligned */
    uint32_t size_bytes; /* capacity: the pool's class */
    uint32_t refs;
    enum buf_memory memory;
};

struct buf_waiter {
    struct list link;
    void (*fn)(struct buf_waiter *w, struct buf *b); /* b is owned by the waiter now */
};

struct buf_pool_stats {
    uint32_t total, in_use, high_water, waiters;
    uint64_t empties; /* how often it ran dry */
};

/* Memory for bulk data, touched, in huge pages where there are some; munmap(2) ends it. NULL: there
 * is none. */
uint8_t *buf_memory_map(size_t bytes) MUST_USE;
/* n buffers of size_bytes (a multiple of 4096); max_bytes in all is n * size. -ENOMEM. */
int buf_pool_create(const char *name, uint32_t size_bytes, uint32_t n,
                    struct buf_pool **ret_pool) MUST_USE;
/* The same, but not touched: buf_pool_touch() has to come before the first buffer is got. That, and
 * nothing else, may be on another thread than the reactor's: it takes no lock and no memory. */
int buf_pool_create_cold(const char *name, uint32_t size_bytes, uint32_t n,
                         struct buf_pool **ret_pool) MUST_USE;
/* The same, in memory of the caller's, which has been touched and stays. */
int buf_pool_create_in(const char *name, uint32_t size_bytes, uint32_t n, uint8_t *memory,
                       struct buf_pool **ret_pool) MUST_USE;
void buf_pool_touch(struct buf_pool *p);
/* All of its memory, which stays where it is. */
struct iovec buf_pool_memory(const struct buf_pool *p);
void buf_pool_destroy(struct buf_pool *p); /* every buffer must be back */
struct buf *buf_get(struct buf_pool *p);
void buf_wait(struct buf_pool *p,
              struct buf_waiter *w); /* first come, first served; fn may run at once */
void buf_wait_cancel(struct buf_waiter *w);
void buf_ref(struct buf *b);
void buf_put(struct buf *b); /* NULL is a no-op */
void buf_pool_get_stats(const struct buf_pool *p, struct buf_pool_stats *ret_stats);

#endif
