/* SPDX-License-Identifier: Apache-2.0 */
/* The memory budget: mem.c. Included by core_int.h. */
#ifndef AIFS_CLIENT_CORE_MEM_INT_H
#define AIFS_CLIENT_CORE_MEM_INT_H

#include "client/core/core.h"
#include "common/base/list.h"
#include "common/net/buf.h"
#include "common/rt/reactor.h"
#include "common/rt/thread.h"

#define MEM_SLABS_MAX 516u
#define MEM_CLASSES   4u          /* the first for small files, the last for streams */
#define MEM_SCATTERED MEM_CLASSES /* where blocks of pages rest */

struct mem_class {
    uint32_t buf_bytes, first_bytes; /* of a buffer, of the first slab */
    struct buf_pool *slabs[MEM_SLABS_MAX];
    uint32_t n_slabs;
    uint64_t bytes, max_bytes, eager_bytes; /* eager: it grows to these without asking */
};

/* How much may be done to get a buffer. Of a class that is not for streams more is taken always. */
enum mem_how {
    MEM_SPARE,  /* of streams only what is there: it is about to come back */
    MEM_REUSE,  /* only what is there, and little more */
    MEM_BESIDE, /* more is taken for streams, beside the reactor: NULL meanwhile */
    MEM_GROW,   /* more is taken at once, by the reactor */
};

struct core_mem {
    struct mem_class cls[MEM_CLASSES];
    struct mem_class pages;              /* of scattered blocks */
    uint32_t used_pages, pages_to_flush; /* to_flush: so many, and what is dirty is written back */
    uint32_t rooms;                      /* given by core_write_room() and not back */
    uint32_t copies, copies_max;         /* pieces that copies hold; so many at once */
    struct list copiers;                 /* struct core_req.p.wait: copies without one, and */
    struct reactor_work copy_next;       /* what gives them one */
    bool copy_next_due;
    struct list waiters; /* struct core_req.p.wait */
    struct reactor_work wake, commit;
    bool waking, commit_asked;
    uint64_t empties;
    uint64_t grow_at_ns; /* no sooner for a write */
    struct reactor_timer grow_timer;
    struct worker_pool *helper; /* NULL until it is needed */
    struct worker_job touch;
    struct iovec shared;      /* what is left of it (common/net/share.h) */
    struct buf_pool *growing; /* for streams, being touched */
    uint64_t grow_begun_ns;
};

int mem_budget_init(struct core *c) MUST_USE;
void mem_warm(struct core *c); /* touches in advance what core_options.warm_bytes says */
void mem_budget_fini(struct core *c);
struct buf *mem_get(struct core *c, uint32_t bytes, enum mem_how how); /* NULL: none now */
struct buf *mem_page_get(struct core *c); /* for scattered blocks; NULL: none now */
void mem_put(struct core *c, struct buf *b);
unsigned mem_class_of(uint32_t bytes); /* whose buffers hold so many */
void mem_wait(struct core *c, struct core_req *q, void (*resume)(struct core_req *q));
/* q waits for memory that is about to be free, or for the time to take more; resume tries again. */
void mem_pace(struct core *c, struct core_req *q, void (*resume)(struct core_req *q));
bool mem_may_grow(const struct core *c);
bool mem_is_growing(const struct core *c);       /* more is being touched for streams */
uint64_t mem_stream_bytes(const struct core *c); /* taken so far for streams */
void mem_freed(struct core *c); /* something became free or evictable: waiters try again */
uint64_t mem_used(const struct core *c);

#endif
