// SPDX-License-Identifier: Apache-2.0
/*
 * Group commit. Chunks that somebody waits for, or that have been dirty for long enough, are
 * wanted; when no batch is posted, everything wanted goes into one: records and logged blocks as
 * they are at that moment. The committer thread then syncs the segment files that were written
 * (data before the index names it), writes the batch with one sync of the WAL, and posts it back;
 * only then do waiters go on and unreferenced slots become free.
 *
 * A chunk with writers at work is taken when they are done: a barrier keeps new ones out until
 * then, because a block that is being overwritten must not be committed with the sum of its old
 * content.
 *
 * On a target in memory (tmpfs) a sync has nothing to wait for, and handing over to the committer
 * and back costs more than the commit: the reactor makes small batches durable itself, and large
 * writes are, before they are answered, so that the writer need not keep them. As in the MDS
 * (docs/adr/0010-small-batches-on-the-reactor.md) a commit that made the reactor sleep keeps them
 * with the committer for a while.
 *
 * A failed sync or write fails the store for good: what the kernel still has of it cannot be known.
 * Records of that batch may be durable all the same: no slot is used again or given back after it.
 */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/fault/fault.h"
#include "common/rt/thread.h"
#include "oss/chunk/store_int.h"

#define BATCH_BYTES_MAX (16u * MIB)
#define AT_ONCE_BYTES   (512u * KIB) /* a write of so much */
#define SMALL_BYTES     (64u * KIB)  /* of a batch that the reactor commits */
#define SLOW_NS         (150 * NS_PER_US)
#define SLOW_MIN_NS     (100 * NS_PER_MS)
#define SLOW_MAX_NS     (5 * NS_PER_S)

void chunk_commit_schedule(struct chunk_store *s)
{
    if (s->build_pending || s->batch_posted)
        return;
    s->build_pending = true;
    reactor_defer(s->reactor, &s->build_work);
}

void chunk_commit_want(struct chunk_store *s, struct chunk *c)
{
    if (!c->dirty || c->wanted)
        return;
    c->wanted = true;
    list_push_back(&s->wanted, &c->wanted_link);
    chunk_commit_schedule(s);
}

void chunk_commit_want_all(struct chunk_store *s)
{
    struct list *l;

    list_for_each (l, &s->dirty)
        chunk_commit_want(s, list_entry(l, struct chunk, dirty_link));
}

bool chunk_commit_wait(struct chunk_op *op, struct chunk *c, uint64_t seq)
{
    struct chunk_store *s = op->store;

    op->wait_seq = MIN(seq, c->seq);
    if (c->durable_seq >= op->wait_seq)
        return false;
    if (s->failed) {
        chunk_op_wake(op, s->failed);
        return true;
    }
    chunk_commit_want(s, c);
    list_push_back(&c->waiting, &op->wait_link);
    return true;
}

void chunk_commit_with(struct chunk_op *op)
{
    struct chunk_store *s = op->store;

    if (s->failed) {
        chunk_op_wake(op, s->failed);
        return;
    }
    list_push_back(&s->batch_ops, &op->wait_link);
    chunk_commit_schedule(s);
}

static void commit_later(struct chunk_store *s)
{
    if (!reactor_timer_running(&s->commit_timer))
        reactor_timer_start(s->reactor, &s->commit_timer,
                            reactor_now_ns(s->reactor) + s->options.commit_interval_ns);
}

void chunk_commit_timer(struct reactor_timer *t)
{
    struct chunk_store *s = container_of(t, struct chunk_store, commit_timer);

    chunk_commit_want_all(s);
    if (!list_empty(&s->wanted) || !list_empty(&s->batch_ops))
        chunk_commit_schedule(s); /* they may have been wanted before, and found no memory */
}

/* ---- building ---- */

void chunk_commit_free_slot(struct chunk_store *s, struct chunk_slot slot)
{
    struct chunk_batch *b = &s->batch;

    if (!slot.class)
        return;
    if (b->n_frees == b->cap_frees) {
        uint32_t cap = MAX(64u, b->cap_frees * 2);
        struct chunk_slot *frees = mem_realloc(b->frees, cap * sizeof *frees);

        if (!frees) {
            LOG_WARN(s->tag, "out of memory: slot %u.%u is free only after a restart", slot.class,
                     slot.number);
            return;
        }
        b->frees = frees;
        b->cap_frees = cap;
    }
    b->frees[b->n_frees++] = slot;
}

static void take_logs(struct chunk_store *s, struct chunk *c)
{
    struct chunk_batch *b = &s->batch;
    uint8_t key[CHUNK_KEY_MAX], value[LOG_RECORD_BYTES];
    uint32_t out = 0;

    for (uint32_t i = 0; i < c->n_logs; i++) {
        struct chunk_log *l = &c->logs[i];
        size_t key_len = chunk_key_log(key, c->inode->ino, c->index, l->block);

        if (!l->data) {
            rocksdb_writebatch_delete(b->wb, (char *)key, key_len);
            continue;
        }
        if (l->flags & CHUNK_LOG_DIRTY) {
            struct log_record r = {.block_crc = l->crc,
                                   .write_version = c->version,
                                   .truncate_gen = c->truncate_gen,
                                   .op_id = c->op_ids[0],
                                   .data = l->data};
            size_t len = log_record_encode(key, key_len, &r, value);

            rocksdb_writebatch_put(b->wb, (char *)key, key_len, (char *)value, len);
            b->bytes += len;
            l->flags = CHUNK_LOG_ON_DISK;
        }
        c->logs[out++] = *l;
    }
    c->n_logs = out;
    if (!out)
        list_remove(&c->fold_link);
    c->logs_dirty = false;
}

static void take_record(struct chunk_store *s, struct chunk *c)
{
    struct chunk_batch *b = &s->batch;
    uint8_t key[CHUNK_KEY_MAX];
    size_t key_len = chunk_key_chunk(key, c->inode->ino, c->index), len;
    struct chunk_record r = {.slot = c->slot,
                             .len = c->len,
                             .write_version = c->version,
                             .truncate_gen = c->truncate_gen,
                             .op_ids = {c->op_ids[0], c->op_ids[1]}};

    c->record_dirty = false;
    c->posted_record = c->len != 0;
    if (!c->len) {
        rocksdb_writebatch_delete(b->wb, (char *)key, key_len);
        return;
    }
    len = chunk_record_encode(key, key_len, &r, (uint8_t *)c->present, c->crcs, s->encode);
    rocksdb_writebatch_put(b->wb, (char *)key, key_len, (char *)s->encode, len);
    b->bytes += len;
}

void chunk_commit_take(struct chunk_store *s, struct chunk *c)
{
    ASSERT(!c->committing && !c->writers);
    c->version++;
    c->posted_record = c->on_disk;
    if (c->record_dirty)
        take_record(s, c);
    if (c->logs_dirty)
        take_logs(s, c);
    for (uint32_t i = 0; i < c->cap_blocks / 64; i++) {
        c->next_locked[i] = c->present[i] & ~c->logged[i];
        c->locked[i] |= c->next_locked[i];
    }
    c->posted_slot = c->slot;
    c->posted_seq = c->seq;
    c->posted_bytes = c->dirty_bytes;
    c->dirty_bytes = 0;
    c->committing = true;
    c->inode->taken++;
    c->dirty = c->wanted = c->barrier = false;
    list_remove(&c->dirty_link);
    list_remove(&c->wanted_link);
    list_remove(&c->lru_link);
    list_push_back(&s->batch.chunks, &c->batch_link);
}

static void build_ops(struct chunk_store *s)
{
    struct chunk_batch *b = &s->batch;
    struct list *e;

    while ((e = list_pop_front(&s->batch_ops))) {
        struct chunk_op *op = list_entry(e, struct chunk_op, wait_link);

        if (op->build)
            op->build(op);
        list_push_back(&b->ops, &op->wait_link);
    }
}

static void build_chunks(struct chunk_store *s)
{
    struct list *l, *tmp;

    list_for_each_safe (l, tmp, &s->wanted) {
        struct chunk *c = list_entry(l, struct chunk, wanted_link);

        if (s->batch.bytes > BATCH_BYTES_MAX)
            break;
        if (c->writers) {
            c->barrier = true;
            continue;
        }
        chunk_commit_take(s, c);
    }
}

/* Writers that the barriers kept out go on, now that their chunks are taken. They may make segment
 * files, for which there is no room: those of the batch have been taken, too. */
static void build_grant(struct chunk_store *s)
{
    struct list *l;

    list_for_each (l, &s->batch.chunks)
        chunk_hold_grant(s, list_entry(l, struct chunk, batch_link));
}

static int batch_commit(struct chunk_store *s, struct chunk_batch *b);

/* How often this thread has slept; what only lost its core to others has not. */
static long sleeps(void)
{
    struct rusage u;

    return getrusage(RUSAGE_THREAD, &u) == 0 ? u.ru_nvcsw : 0;
}

static void commit_here(struct chunk_store *s)
{
    const struct clock *clock = reactor_clock(s->reactor);
    uint64_t begun = clock_mono_ns(clock), now;
    long slept = sleeps();

    s->batch.status = batch_commit(s, &s->batch);
    now = clock_mono_ns(clock);
    if (now - begun > SLOW_NS && sleeps() != slept) {
        s->slow_ns = s->slow_ns ? MIN(s->slow_ns * 2, SLOW_MAX_NS) : SLOW_MIN_NS;
        s->slow_until_ns = now + s->slow_ns;
    } else if (now > s->slow_until_ns + s->slow_ns) {
        s->slow_ns = 0;
    }
    stat_inc(&s->n_here);
    s->batch.work.fn(&s->batch.work);
}

static bool may_commit_here(const struct chunk_store *s)
{
    return s->seg.in_memory && s->batch.bytes <= SMALL_BYTES &&
           clock_mono_ns(reactor_clock(s->reactor)) >= s->slow_until_ns;
}

bool chunk_store_commits_at_once(const struct chunk_store *s, uint32_t len)
{
    return len >= AT_ONCE_BYTES && s->seg.in_memory &&
           clock_mono_ns(reactor_clock(s->reactor)) >= s->slow_until_ns;
}

static void build_post(struct chunk_store *s)
{
    struct chunk_batch *b = &s->batch;

    s->batch_posted = true;
    if (may_commit_here(s)) {
        commit_here(s);
        return;
    }
    pthread_mutex_lock(&s->lock);
    s->posted = b;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

/* Room for every descriptor, taken before anything is changed. */
static int build_reserve_fds(struct chunk_store *s)
{
    struct chunk_batch *b = &s->batch;
    int *fds;

    if (b->cap_fds >= s->seg.n_open)
        return 0;
    fds = mem_realloc(b->fds, (s->seg.n_open + 16) * sizeof *fds);
    if (!fds)
        return -ENOMEM;
    b->fds = fds;
    b->cap_fds = s->seg.n_open + 16;
    return 0;
}

static void commit_fail(struct chunk_store *s, int status)
{
    struct list *l, *e;

    if (!s->failed)
        LOG_ERROR(s->tag, "%s: no more writes to this target until a restart", err_text(status));
    s->failed = status;
    while ((e = list_pop_front(&s->batch_ops)))
        chunk_op_wake(list_entry(e, struct chunk_op, wait_link), status);
    while ((l = list_pop_front(&s->wanted))) {
        struct chunk *c = list_entry(l, struct chunk, wanted_link);

        c->wanted = c->barrier = false;
        c->refs++;
        while ((e = list_pop_front(&c->waiting)))
            chunk_op_wake(list_entry(e, struct chunk_op, wait_link), status);
        chunk_hold_grant(s, c);
        chunk_put(s, c);
    }
}

void chunk_commit_build(struct reactor_work *w)
{
    struct chunk_store *s = container_of(w, struct chunk_store, build_work);
    struct chunk_batch *b = &s->batch;

    s->build_pending = false;
    if (s->batch_posted)
        return;
    if (s->failed) {
        commit_fail(s, s->failed);
        return;
    }
    if (build_reserve_fds(s)) { /* nothing is lost: all wait for the timer's next turn */
        commit_later(s);
        return;
    }
    rocksdb_writebatch_clear(b->wb);
    b->bytes = 0;
    b->n_frees = 0;
    build_ops(s);
    build_chunks(s);
    if (list_empty(&b->ops) && list_empty(&b->chunks))
        return;
    b->n_fds = seg_take_dirty(&s->seg, b->fds, b->cap_fds);
    build_grant(s);
    build_post(s);
}

/* ---- the committer ---- */

static int batch_commit(struct chunk_store *s, struct chunk_batch *b)
{
    int rc;

    FAULT_CRASH("chunk.commit.before_sync");
    for (unsigned i = 0; i < b->n_fds; i++) {
        if (fdatasync(b->fds[i]) < 0 || FAULT("chunk.commit.sync")) {
            rc = errno ? -errno : -EIO;
            LOG_ERROR(s->tag, "segment file: fdatasync: %s", err_text(rc));
            return rc;
        }
        stat_inc(&s->n_syncs);
    }
    FAULT_CRASH("chunk.commit.before_index");
    if (FAULT("chunk.commit.index"))
        return -EIO;
    rc = rocksdb_writebatch_count(b->wb) ? index_write(&s->index, b->wb) : 0;
    FAULT_CRASH("chunk.commit.after_index");
    if (FAULT("chunk.commit.unknown")) /* it is durable, but that is not what was said */
        return -EIO;
    return rc;
}

static void *committer_main(void *arg)
{
    struct chunk_store *s = arg;
    struct chunk_batch *b;

    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->posted && !s->stop)
            pthread_cond_wait(&s->wake, &s->lock);
        b = s->posted;
        s->posted = NULL;
        if (!b)
            break;
        pthread_mutex_unlock(&s->lock);
        b->status = batch_commit(s, b);
        reactor_post(s->reactor, &b->work);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void chunk_committed(struct chunk_store *s, struct chunk *c)
{
    struct list *l, *tmp;
    struct list ready;

    c->committing = false;
    c->durable_seq = c->posted_seq;
    s->dirty_bytes -= c->posted_bytes;
    c->posted_bytes = 0;
    if (c->cap_blocks)
        memcpy(c->locked, c->next_locked, c->cap_blocks / 64 * 8);
    if (c->disk_slot.class && !slot_equal(c->disk_slot, c->posted_slot))
        slots_free(&s->slots, c->disk_slot);
    c->disk_slot = c->posted_slot;
    s->n_records += (uint64_t)c->posted_record - (uint64_t)c->on_disk;
    c->on_disk = c->posted_record;
    list_init(&ready);
    list_for_each_safe (l, tmp, &c->waiting) {
        if (list_entry(l, struct chunk_op, wait_link)->wait_seq > c->durable_seq)
            continue;
        list_remove(l);
        list_push_back(&ready, l);
    }
    while ((l = list_pop_front(&ready)))
        chunk_op_wake(list_entry(l, struct chunk_op, wait_link), 0);
}

static void batch_failed(struct chunk_store *s, struct chunk *c)
{
    struct list *l;

    c->committing = false;
    while ((l = list_pop_front(&c->waiting)))
        chunk_op_wake(list_entry(l, struct chunk_op, wait_link), s->failed);
}

static void batch_done(struct reactor_work *w)
{
    struct chunk_batch *b = container_of(w, struct chunk_batch, work);
    struct chunk_store *s = b->store;
    struct list chunks, ops, *l;

    s->batch_posted = false;
    stat_inc(&s->n_commits);
    list_init(&chunks);
    list_init(&ops);
    list_splice(&chunks, &b->chunks);
    list_splice(&ops, &b->ops);
    if (b->status)
        commit_fail(s, b->status);
    for (uint32_t i = 0; i < b->n_frees && !b->status; i++)
        slots_free(&s->slots, b->frees[i]);
    list_for_each (l, &chunks)
        list_entry(l, struct chunk, batch_link)->refs++;
    while ((l = list_pop_front(&chunks))) {
        struct chunk *c = list_entry(l, struct chunk, batch_link);

        if (b->status)
            batch_failed(s, c);
        else
            chunk_committed(s, c);
        chunk_put(s, c);
    }
    while ((l = list_pop_front(&ops)))
        chunk_op_wake(list_entry(l, struct chunk_op, wait_link), b->status);
    if (!list_empty(&s->wanted) || !list_empty(&s->batch_ops))
        chunk_commit_schedule(s);
    if (!list_empty(&s->dirty) && !s->failed)
        commit_later(s);
}

int chunk_commit_start(struct chunk_store *s)
{
    char name[16];

    s->batch.store = s;
    s->batch.work.fn = batch_done;
    s->batch.wb = rocksdb_writebatch_create();
    list_init(&s->batch.chunks);
    list_init(&s->batch.ops);
    snprintf(name, sizeof name, "commit-%u", s->super.target_id);
    int rc = thread_start(&s->committer, name, committer_main, s);
    s->committer_running = !rc;
    return rc;
}

void chunk_commit_stop(struct chunk_store *s)
{
    if (s->committer_running) {
        pthread_mutex_lock(&s->lock);
        s->stop = true;
        pthread_cond_signal(&s->wake);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->committer, NULL);
    }
    if (s->batch.wb)
        rocksdb_writebatch_destroy(s->batch.wb);
    mem_free(s->batch.frees);
    mem_free(s->batch.fds);
}
