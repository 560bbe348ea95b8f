/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory budget of cached and dirty data: four classes of buffers (64 KiB for small files and
 * small reads, 128 KiB, 256 KiB, 1 MiB for streams) and pages for scattered writes, taken in slabs
 * as they are needed and never beyond the budget. Fresh memory costs more than the network, so a
 * class that has grown to its eager_bytes, or has blocks that their readers keep a copy of, uses
 * those again before it grows; and when it has to grow all the same, what is uncommitted is
 * committed, so that its buffers come back before more and more new ones are filled. For the same
 * reason all but the buffers for streams begin with a small slab, and each is as large as those
 * before it: who lists a directory on a new mount needs a few, and must not wait for megabytes of
 * all sizes to be touched.
 *
 * Running dry: the least recently used clean block gives its buffer; when there is none the
 * caller's request waits and is tried again, from its beginning, when something was freed or became
 * clean. A request never holds memory while it waits for more.
 *
 * A stream of writes is faster than what takes it, and would go through all of the budget before
 * it uses any of it again. Beyond STREAM_BYTES the buffers of streams become more for a write only
 * when its target is about to have nothing to do (write.c), and then no more than half of the time
 * goes into touching them. That is done beside the reactor, a slab at a time, by a thread that
 * begins with the first: meanwhile writes wait, and the reactor sends, receives and gives back what
 * was committed. Below STREAM_BYTES the next slab is touched while the last buffers are being
 * filled, but not for a target that has enough to do and makes large writes durable at once: its
 * buffers are about to come back. Reads have theirs touched by the reactor, at once.
 */
#include "client/core/core_int.h"
#include "common/net/share.h"

#define SLAB_BYTES       (4u * MIB)
#define SLAB_FIRST_BYTES (512u * KIB)
#define SLAB_FIRST_LARGE (2u * MIB)
#define SLABS_SMALL      4u /* with which a class that begins so comes to SLAB_BYTES, then as above */
#define STREAM_CLASS     (MEM_CLASSES - 1)
#define STREAM_BYTES     (16u * MIB)
/* Listings need the two smallest sizes: the first slabs of these, where so much is taken for
 * streams. */
#define WARM_SMALL      2u
#define WARM_SMALL_FROM (8u * MIB)
#define GROW_PAUSE_NS   (2 * NS_PER_MS)
static_assert(MEM_SLABS_MAX > SLABS_SMALL, "see mem_budget_init()");

/* Requests that wait, for memory too, with their bytes in a buffer for streams. The others have
 * theirs elsewhere, so that there is always some for those who wait. */
#define ROOMS_MAX 4u

/* The same for copies, whose pieces wait for memory to be written to; of each size, of which the
 * smallest mounts have as much. */
#define COPY_SHARE_BYTES SLAB_BYTES

/* For scattered blocks: at most, at once, and how much of it is worth writing back. */
#define PAGES_BYTES       (32u * MIB)
#define PAGES_FLUSH_BYTES (4u * MIB)

static const uint32_t class_bytes[MEM_CLASSES] = {CORE_SMALL_BYTES, 128u * KIB, 256u * KIB,
                                                  CORE_LARGE_BYTES};
static const uint32_t eager_bytes[MEM_CLASSES] = {64u * MIB, 32u * MIB, 32u * MIB, 64u * MIB};

static void wake(struct reactor_work *w)
{
    struct core *c = container_of(w, struct core, mem.wake);

    c->mem.waking = false;
    req_resume_list(&c->mem.waiters);
}

static void grow_timer(struct reactor_timer *t)
{
    mem_freed(container_of(t, struct core, mem.grow_timer));
}

static void commit_all(struct reactor_work *w)
{
    struct core *c = container_of(w, struct core, mem.commit);

    c->mem.commit_asked = false;
    flush_background(c, 0, true);
}

static void ask_commit(struct core *c)
{
    if (c->mem.commit_asked || c->commits_busy || !c->uncommitted_bytes)
        return;
    c->mem.commit_asked = true;
    reactor_defer(c->reactor, &c->mem.commit);
}

/* Of the limit, what is not for data: names and inodes (three sixteenths at most), the program and
 * its libraries, requests, and the transports, which take 1 MiB for each server on this machine. */
static uint64_t not_data(uint64_t limit)
{
    return MIN(MAX(limit / 4, limit / 8 + 48 * MIB), limit / 2);
}

int mem_budget_init(struct core *c)
{
    uint64_t data = c->o.memory_limit - not_data(c->o.memory_limit);
    uint64_t pages = MIN(data / 16, PAGES_BYTES) / MIB * MIB;
    struct core_mem *m = &c->mem;

    list_init(&m->waiters);
    list_init(&m->copiers);
    m->copy_next.fn = copy_next;
    m->copies_max = UINT32_MAX;
    m->wake.fn = wake;
    m->commit.fn = commit_all;
    reactor_timer_init(&m->grow_timer, grow_timer);
    for (unsigned k = 0; k < MEM_CLASSES; k++) {
        bool large = k == MEM_CLASSES - 1;
        uint64_t share = large ? data / 8 * 5 : data / 8;

        if (k == 1)
            share -= pages;
        if (k == 0)
            share = MAX(share, MIN(data / 4, SLAB_BYTES)); /* the smallest mounts have no others */
        share = MIN(share / SLAB_BYTES, MEM_SLABS_MAX - SLABS_SMALL) * SLAB_BYTES;
        m->cls[k] = (struct mem_class){.buf_bytes = class_bytes[k],
                                       .first_bytes = large ? SLAB_FIRST_LARGE : SLAB_FIRST_BYTES,
                                       .max_bytes = share,
                                       .eager_bytes = eager_bytes[k]};
    }
    for (unsigned k = 0; k < MEM_CLASSES; k++)
        if (m->cls[k].max_bytes)
            m->copies_max = (uint32_t)MIN(m->cls[k].max_bytes / COPY_SHARE_BYTES, m->copies_max);
    m->pages = (struct mem_class){
        .buf_bytes = SCATTER_PAGE_BYTES, .first_bytes = SLAB_FIRST_BYTES, .max_bytes = pages};
    m->pages_to_flush = (uint32_t)MIN(pages / 2, PAGES_FLUSH_BYTES) / SCATTER_PAGE_BYTES;
    if (!m->cls[0].max_bytes || !m->cls[MEM_CLASSES - 1].max_bytes)
        return -EINVAL;
    c->max_dirty = m->cls[MEM_CLASSES - 1].max_bytes / 2;
    c->max_ahead = c->max_dirty / 2;
    return 0;
}

static void class_fini(struct mem_class *k)
{
    while (k->n_slabs)
        buf_pool_destroy(k->slabs[--k->n_slabs]);
}

void mem_budget_fini(struct core *c)
{
    ASSERT(!c->mem.growing);
    worker_pool_destroy(c->mem.helper);
    reactor_timer_cancel(c->reactor, &c->mem.grow_timer);
    class_fini(&c->mem.pages);
    for (unsigned k = 0; k < MEM_CLASSES; k++)
        class_fini(&c->mem.cls[k]);
}

static struct buf *class_take(struct mem_class *k)
{
    struct buf *b = NULL;

    for (uint32_t i = 0; i < k->n_slabs && !b; i++)
        b = buf_get(k->slabs[i]);
    return b;
}

static uint64_t clock_ns(const struct core *c)
{
    return clock_mono_ns(reactor_clock(c->reactor));
}

/* 0: there is no room. */
static uint32_t next_slab(const struct mem_class *k)
{
    uint64_t room = k->max_bytes - k->bytes;

    return (uint32_t)MIN(MIN(MAX(k->bytes, k->first_bytes), SLAB_BYTES), room);
}

static void class_add(struct core *c, struct mem_class *k, struct buf_pool *slab, uint64_t begun)
{
    uint64_t now = clock_ns(c);

    if (k == &c->mem.cls[STREAM_CLASS])
        c->mem.grow_at_ns = now + MAX(now - begun, GROW_PAUSE_NS);
    k->slabs[k->n_slabs++] = slab;
}

/* What is left of the memory that servers on this machine map is for streams. */
static int slab_create(struct core *c, struct mem_class *k, uint32_t bytes,
                       struct buf_pool **ret_slab)
{
    struct iovec *s = &c->mem.shared;
    int rc;

    if (k != &c->mem.cls[STREAM_CLASS] || bytes > s->iov_len)
        return buf_pool_create("client-data", k->buf_bytes, bytes / k->buf_bytes, ret_slab);
    rc = buf_pool_create_in("client-shared", k->buf_bytes, bytes / k->buf_bytes, s->iov_base,
                            ret_slab);
    if (!rc)
        *s = (struct iovec){(uint8_t *)s->iov_base + bytes, s->iov_len - bytes};
    return rc;
}

static struct buf *class_grow(struct core *c, struct mem_class *k)
{
    uint32_t bytes = next_slab(k);
    uint64_t begun = clock_ns(c);
    struct buf_pool *slab;

    if (!bytes || slab_create(c, k, bytes, &slab))
        return NULL;
    k->bytes += bytes;
    class_add(c, k, slab, begun);
    return buf_get(slab);
}

/* For the slabs that the class takes until it has so much. */
static struct iovec shared_memory(const struct mem_class *k, uint64_t bytes)
{
    struct mem_class after = *k;
    size_t len;
    uint8_t *m;

    while (next_slab(&after) && after.bytes + next_slab(&after) <= bytes)
        after.bytes += next_slab(&after);
    len = (size_t)(after.bytes - k->bytes);
    m = share_create(len);
    return (struct iovec){m, m ? len : 0};
}

void mem_warm(struct core *c)
{
    struct mem_class *k = &c->mem.cls[STREAM_CLASS];
    uint64_t bytes = MIN(c->o.warm_bytes, c->o.memory_limit / 8);
    struct buf *b;

    c->mem.shared = shared_memory(k, bytes);
    while (k->bytes + next_slab(k) <= bytes && (b = class_grow(c, k)))
        buf_put(b);
    for (unsigned i = 0; i < WARM_SMALL && bytes >= WARM_SMALL_FROM; i++)
        if ((b = class_grow(c, &c->mem.cls[i])))
            buf_put(b);
}

/* ---- more for streams, beside the reactor ---- */

static void touch_run(struct worker_job *j)
{
    buf_pool_touch(container_of(j, struct core, mem.touch)->mem.growing);
}

static void touch_done(struct worker_job *j)
{
    struct core *c = container_of(j, struct core, mem.touch);

    class_add(c, &c->mem.cls[STREAM_CLASS], c->mem.growing, c->mem.grow_begun_ns);
    c->mem.growing = NULL;
    mem_freed(c);
    core_kick(c); /* an unmount waits for it */
}

static bool have_helper(struct core *c)
{
    return c->mem.helper ||
           !worker_pool_create("client-memory", c->o.memory_threads, &c->mem.helper) ||
           !worker_pool_create("client-memory", 0, &c->mem.helper);
}

static void grow_beside(struct core *c)
{
    struct mem_class *k = &c->mem.cls[STREAM_CLASS];
    struct core_mem *m = &c->mem;
    uint32_t bytes = next_slab(k);

    if (m->growing || !bytes || !have_helper(c) ||
        buf_pool_create_cold("client-data", k->buf_bytes, bytes / k->buf_bytes, &m->growing))
        return;
    k->bytes += bytes;
    m->grow_begun_ns = clock_ns(c);
    m->touch = (struct worker_job){.run = touch_run, .done = touch_done};
    worker_pool_submit(m->helper, c->reactor, &m->touch);
}

bool mem_is_growing(const struct core *c)
{
    return c->mem.growing != NULL;
}

static bool all_in_use(const struct mem_class *k)
{
    struct buf_pool_stats s;

    for (uint32_t i = 0; i < k->n_slabs; i++) {
        buf_pool_get_stats(k->slabs[i], &s);
        if (s.in_use < s.total)
            return false;
    }
    return true;
}

static struct buf *stream_get(struct core *c, enum mem_how how)
{
    struct mem_class *k = &c->mem.cls[STREAM_CLASS];
    struct buf *b = class_take(k);

    if (!b && (how == MEM_BESIDE || (how == MEM_REUSE && k->bytes < STREAM_BYTES)))
        grow_beside(c);
    return b;
}

/* Up to STREAM_BYTES the next buffers are touched while the last ones are being filled. */
static void grow_ahead(struct core *c)
{
    const struct mem_class *k = &c->mem.cls[STREAM_CLASS];

    if (k->bytes < STREAM_BYTES && all_in_use(k))
        grow_beside(c);
}

static struct buf *class_get(struct core *c, struct mem_class *k, enum mem_how how)
{
    struct buf *b;

    if (k == &c->mem.cls[STREAM_CLASS] && how != MEM_GROW)
        return stream_get(c, how);
    b = class_take(k);
    return b ? b : class_grow(c, k);
}

unsigned mem_class_of(uint32_t bytes)
{
    unsigned k = 0;

    while (class_bytes[k] < bytes)
        k++;
    return k;
}

/* What the class has, or a block can give, before it grows. */
static struct buf *class_reuse(struct core *c, unsigned k)
{
    struct mem_class *m = &c->mem.cls[k];
    struct buf *b = class_take(m);

    if (b)
        return b;
    if (block_evict_spent(c, k) || (m->bytes >= m->eager_bytes && block_evict_class(c, k)))
        b = class_take(m);
    if (!b && m->bytes >= m->eager_bytes)
        ask_commit(c);
    return b;
}

struct buf *mem_get(struct core *c, uint32_t bytes, enum mem_how how)
{
    struct buf *b;

    ASSERT(bytes <= CORE_LARGE_BYTES);
    if (core_no_memory())
        return NULL;
    do {
        b = class_reuse(c, mem_class_of(bytes));
        for (unsigned k = mem_class_of(bytes); k < MEM_CLASSES && !b; k++)
            b = class_get(c, &c->mem.cls[k], how);
    } while (!b && how != MEM_SPARE && how != MEM_REUSE && !(how == MEM_BESIDE && c->mem.growing) &&
             block_evict_one(c, bytes));
    if (!b)
        c->mem.empties++;
    else if (how != MEM_GROW && how != MEM_SPARE && b->size_bytes == CORE_LARGE_BYTES)
        grow_ahead(c);
    return b;
}

struct buf *core_write_room(struct core *c)
{
    const struct mem_class *k = &c->mem.cls[STREAM_CLASS];
    struct buf *b = NULL;

    if (!core_no_memory() && c->mem.rooms < MIN(ROOMS_MAX, k->max_bytes / k->buf_bytes / 4))
        b = class_reuse(c, STREAM_CLASS);
    c->mem.rooms += b != NULL;
    return b;
}

void core_write_room_put(struct core *c, struct buf *room)
{
    c->mem.rooms--;
    mem_put(c, room);
}

struct buf *mem_page_get(struct core *c)
{
    struct buf *b = core_no_memory() ? NULL : class_get(c, &c->mem.pages, MEM_GROW);

    while (!b && block_evict_class(c, MEM_SCATTERED))
        b = class_take(&c->mem.pages);
    c->mem.empties += !b;
    return b;
}

void mem_put(struct core *c, struct buf *b)
{
    buf_put(b);
    mem_freed(c);
}

void mem_wait(struct core *c, struct core_req *q, void (*resume)(struct core_req *q))
{
    c->stats.memory_waits++;
    q->p.resume = resume;
    list_push_back(&c->mem.waiters, &q->p.wait);
    flush_background(c, 0, true);
}

bool mem_may_grow(const struct core *c)
{
    return !c->mem.growing && reactor_now_ns(c->reactor) >= c->mem.grow_at_ns;
}

void mem_pace(struct core *c, struct core_req *q, void (*resume)(struct core_req *q))
{
    c->stats.paced_writes++;
    q->p.resume = resume;
    list_push_back(&c->mem.waiters, &q->p.wait);
    if (!mem_may_grow(c) && !c->mem.growing && !reactor_timer_running(&c->mem.grow_timer))
        reactor_timer_start(c->reactor, &c->mem.grow_timer, c->mem.grow_at_ns);
}

uint64_t mem_stream_bytes(const struct core *c)
{
    return c->mem.cls[STREAM_CLASS].bytes;
}

void mem_freed(struct core *c)
{
    if (list_empty(&c->mem.waiters) || c->mem.waking)
        return;
    c->mem.waking = true;
    reactor_defer(c->reactor, &c->mem.wake);
}

uint64_t mem_used(const struct core *c)
{
    uint64_t sum = c->mem.pages.bytes;
    unsigned k;

    for (k = 0; k < MEM_CLASSES; k++)
        sum += c->mem.cls[k].bytes;
    return sum + (uint64_t)c->inodes.count * sizeof(struct core_inode) + (uint64_t)c->n_names * 160;
}
