/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer: everything that waits is one batch, one commit, one sync.
 *
 * Happy path: take the queue, execute in order, flush the overlay into a write batch, commit,
 * publish to readers, answer all. While it commits, the next batch gathers. That is a thread's
 * work; where commits take microseconds (the log is in memory that keeps, or there is no sync) the
 * reactor does small batches itself at the end of its turn, and one slow batch sends the work back
 * to the thread. Failure modes: a failed commit leaves it unknown what is on the disk: the batch,
 * the queue and everything later is answered -EIO with SHARD_R_UNKNOWN, and the owner is told to
 * end the process.
 */
#include <sys/resource.h>

#include "common/base/log.h"
#include "common/fault/fault.h"
#include "mds/shard/shard_int.h"

#define CHECK_INTERVAL_NS (50 * NS_PER_MS)
#define KICK_BATCH_MAX    8u /* entries that a reactor executes and commits itself */
#define SLOW_BATCH_NS     (150 * NS_PER_US)
#define SLOW_MIN_NS       (100 * NS_PER_MS)
#define SLOW_MAX_NS       (5 * NS_PER_S)

static void answer_work(struct reactor_work *w)
{
    struct shard_entry *e = container_of(w, struct shard_entry, work);

    e->done(e);
}

void shard_answer(struct shard_entry *e)
{
    if (!e->reactor) {
        e->done(e);
        return;
    }
    e->work.fn = answer_work;
    reactor_post(e->reactor, &e->work);
}

static void answer_all(struct list *batch)
{
    struct list *l;

    while ((l = list_pop_front(batch)))
        shard_answer(list_entry(l, struct shard_entry, link));
}

/* Waits for work; false: closing, and nothing is left to do. */
static bool writer_wait(struct shard *s)
{
    bool more;

    pthread_mutex_lock(&s->lock);
    while (list_empty(&s->queue) && !s->closing) {
        s->waiting = true;
        pthread_cond_wait(&s->wake, &s->lock);
        s->waiting = false;
    }
    more = !list_empty(&s->queue);
    pthread_mutex_unlock(&s->lock);
    return more;
}

/* What waits, into the batch; there may be nothing. */
static void writer_take(struct shard *s, struct list *batch)
{
    uint32_t weight = 0, n = 0;

    pthread_mutex_lock(&s->lock);
    for (; !list_empty(&s->queue) && weight < s->o.batch_max; n++) {
        struct list *l = list_pop_front(&s->queue);

        weight += shard_weight(list_entry(l, struct shard_entry, link));
        list_push_back(batch, l);
    }
    s->queued -= weight;
    pthread_mutex_unlock(&s->lock);
    atomic_fetch_add_explicit(&s->n_entries, n, memory_order_relaxed);
}

void shard_check_space(struct shard *s)
{
    enum store_flow flow = store_flow(s->store);
    const uint64_t free_bytes = store_free_bytes(s->store);
    const bool low = free_bytes < s->o.reserve_bytes;

    atomic_store(&s->disk_tight, free_bytes / SHARD_TIGHT < s->o.reserve_bytes);
    if (low && !atomic_exchange(&s->disk_low, true))
        LOG_WARN("shard", "%s: less than %llu MiB free: only deletions are accepted", s->o.dir,
                 (unsigned long long)(s->o.reserve_bytes / MIB));
    else if (!low)
        atomic_store(&s->disk_low, false);
    if (flow == STORE_STOPPED && atomic_exchange(&s->flow, (int)flow) != (int)flow)
        LOG_WARN("shard", "%s: the store has stopped accepting writes, compaction is behind",
                 s->o.dir);
    atomic_store(&s->flow, flow);
}

static int writer_commit(struct shard *s)
{
    struct key k;
    uint8_t applied[8];
    int rc;

    overlay_pause(&s->overlay);
    if (list_empty(&s->overlay.dirty))
        return 0;
    overlay_flush(&s->overlay, s->batch);
    key_single(&k, KEY_APPLIED);
    le64_store(applied, s->index);
    store_batch_put(s->batch, k.b, k.len, applied, sizeof(applied));
    FAULT_CRASH("mds.commit.before");
    rc = store_commit(s->store, s->batch, s->o.sync);
    FAULT_CRASH("mds.commit.after");
    if (rc == 0)
        rc = view_cache_publish(&s->view, &s->overlay);
    if (rc < 0)
        return rc;
    overlay_settle(&s->overlay);
    atomic_fetch_add_explicit(&s->n_commits, 1, memory_order_relaxed);
    return 0;
}

static void writer_fail(struct shard *s, struct list *batch, int rc)
{
    struct list *l;

    LOG_ERROR("shard", "%s: commit failed (%s): the shard stops", s->o.dir, err_text(rc));
    pthread_mutex_lock(&s->lock);
    atomic_store(&s->failed, true);
    list_splice(batch, &s->queue);
    s->queued = 0;
    pthread_mutex_unlock(&s->lock);
    list_for_each (l, batch) {
        struct shard_entry *e = list_entry(l, struct shard_entry, link);

        e->status = -EIO;
        e->result = SHARD_R_UNKNOWN;
        e->reply = NULL;
        e->reply_len = 0;
    }
    if (s->o.failed)
        s->o.failed(s->o.arg);
}

/* How often this thread has slept; what only lost its core to others has not. */
static long sleeps(void)
{
    struct rusage u;

    return getrusage(RUSAGE_THREAD, &u) == 0 ? u.ru_nvcsw : 0;
}

/* A commit that makes its thread sleep keeps the work off the reactors for a while, doubling. */
static void writer_took(struct shard *s, uint64_t now_ns, uint64_t took_ns, bool slept)
{
    if (took_ns > SLOW_BATCH_NS && slept) {
        s->slow_ns = s->slow_ns ? MIN(s->slow_ns * 2, SLOW_MAX_NS) : SLOW_MIN_NS;
        s->slow_until_ns = now_ns + s->slow_ns;
    } else if (now_ns > s->slow_until_ns + s->slow_ns) {
        s->slow_ns = 0;
    }
}

/* One batch, s->writing held: answers go out in the order of the commits. False: failed. */
static bool writer_batch(struct shard *s)
{
    const struct clock *clock = clock_real(); /* only for figures: execution reads no clock */
    uint64_t t0 = clock_mono_ns(clock), t1, t2;
    long slept = sleeps();
    struct list batch, *l;
    int rc;

    list_init(&batch);
    writer_take(s, &batch);
    if (list_empty(&batch))
        return !atomic_load(&s->failed);
    list_for_each (l, &batch)
        shard_execute(s, list_entry(l, struct shard_entry, link));
    t1 = clock_mono_ns(clock);
    rc = writer_commit(s);
    t2 = clock_mono_ns(clock);
    atomic_fetch_add_explicit(&s->exec_ns, t1 - t0, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->commit_ns, t2 - t1, memory_order_relaxed);
    if (rc < 0)
        writer_fail(s, &batch, rc);
    answer_all(&batch);
    if (rc < 0)
        return false;
    writer_took(s, t2, t2 - t0, t2 - t0 > SLOW_BATCH_NS && sleeps() != slept);
    if (t2 - s->checked_ns > CHECK_INTERVAL_NS) {
        s->checked_ns = t2;
        shard_check_space(s);
        mem_heap_grown();
    }
    return true;
}

void *shard_writer(void *arg)
{
    struct shard *s = arg;
    bool good = true;

    while (good && writer_wait(s)) {
        pthread_mutex_lock(&s->writing);
        good = writer_batch(s);
        pthread_mutex_unlock(&s->writing);
    }
    return NULL;
}

void shard_write_here(struct shard *s)
{
    bool good = true;

    pthread_mutex_lock(&s->writing);
    while (good && !list_empty(&s->queue))
        good = writer_batch(s);
    pthread_mutex_unlock(&s->writing);
}

/* Two hand-overs between threads cost more than a small batch on a store that does not make one
 * wait. */
static bool kick_serves(struct shard *s, uint32_t queued)
{
    bool served = false;

    if (queued > KICK_BATCH_MAX || atomic_load(&s->flow) != STORE_FLOWING ||
        pthread_mutex_trylock(&s->writing) != 0)
        return false;
    if (clock_mono_ns(clock_real()) >= s->slow_until_ns) {
        writer_batch(s);
        served = true;
    }
    pthread_mutex_unlock(&s->writing);
    return served;
}

void shard_kick(struct reactor_work *w)
{
    struct shard *s = container_of(w, struct shard, kick);

    uint32_t queued;

    pthread_mutex_lock(&s->lock);
    s->kicked = false;
    queued = s->queued;
    pthread_mutex_unlock(&s->lock);
    if (s->o.on_reactor) {
        shard_write_here(s);
        return;
    }
    if (kick_serves(s, queued))
        return;
    pthread_mutex_lock(&s->lock);
    s->waiting = false;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
}
