/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer's thread: everything that waits is one batch, one commit, one sync.
 *
 * Happy path: take the queue, execute in order, flush the overlay into a write batch, commit,
 * publish to readers, answer all. While it commits, the next batch gathers. Failure modes: a failed
 * commit leaves it unknown what is on the disk: the batch, the queue and everything later is
 * answered -EIO with SHARD_R_UNKNOWN, and the owner is told to end the process.
 */
#include "common/base/log.h"
#include "common/fault/fault.h"
#include "mds/shard/shard_int.h"

#define CHECK_INTERVAL_NS (50 * NS_PER_MS)

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
static bool writer_take(struct shard *s, struct list *batch)
{
    uint32_t n = 0;

    pthread_mutex_lock(&s->lock);
    while (list_empty(&s->queue) && !s->closing) {
        s->waiting = true;
        pthread_cond_wait(&s->wake, &s->lock);
        s->waiting = false;
    }
    if (s->queued <= s->o.batch_max) {
        n = s->queued;
        list_splice(batch, &s->queue);
    } else {
        for (; n < s->o.batch_max; n++)
            list_push_back(batch, list_pop_front(&s->queue));
    }
    s->queued -= n;
    pthread_mutex_unlock(&s->lock);
    atomic_fetch_add_explicit(&s->n_entries, n, memory_order_relaxed);
    return n > 0;
}

void shard_check_space(struct shard *s)
{
    enum store_flow flow = store_flow(s->store);
    const bool low = store_free_bytes(s->store) < s->o.reserve_bytes;

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

void *shard_writer(void *arg)
{
    struct shard *s = arg;
    const struct clock *clock = clock_real(); /* only for figures: execution reads no clock */
    struct list batch, *l;

    list_init(&batch);
    while (writer_take(s, &batch)) {
        uint64_t t0 = clock_mono_ns(clock), t1, t2;
        int rc;

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
            break;
        if (t2 - s->checked_ns > CHECK_INTERVAL_NS) {
            s->checked_ns = t2;
            shard_check_space(s);
        }
    }
    return NULL;
}
