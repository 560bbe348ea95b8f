/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shard from outside: open, submit, close, figures.
 *
 * Happy path: open checks the format and starts the writer; submit stamps the entry under the
 * queue's lock and wakes the writer if it sleeps. Failure modes: a full queue, a stalling store, a
 * full disk and a failed shard refuse before anything has happened.
 */
#include "mds/shard/shard.h"

#include <string.h>

#include "common/base/log.h"
#include "common/rt/thread.h"
#include "mds/shard/shard_int.h"

#define QUEUE_DEFAULT   4096u
#define BATCH_DEFAULT   1024u
#define CACHE_DEFAULT   (64ull * MIB)
#define RESERVE_DEFAULT (64ull * MIB)

static void shard_defaults(struct shard *s, const struct shard_options *o)
{
    s->o = *o;
    s->o.clock = o->clock ? o->clock : clock_real();
    s->o.queue_max = o->queue_max ? o->queue_max : QUEUE_DEFAULT;
    s->o.batch_max = o->batch_max ? o->batch_max : BATCH_DEFAULT;
    s->o.overlay_bytes = o->overlay_bytes ? o->overlay_bytes : CACHE_DEFAULT;
    s->o.view_bytes = o->view_bytes ? o->view_bytes : CACHE_DEFAULT;
    s->o.reserve_bytes = o->reserve_bytes ? o->reserve_bytes : RESERVE_DEFAULT;
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->writing, NULL);
    pthread_cond_init(&s->wake, NULL);
    s->kick.fn = shard_kick;
    list_init(&s->queue);
}

static int shard_read_format(struct shard *s)
{
    struct store_value value = {0};
    uint32_t version;
    struct key k;
    int rc;

    key_single(&k, KEY_FORMAT);
    rc = store_get(s->store, NULL, k.b, k.len, &value);
    if (rc == -ENOENT) {
        LOG_ERROR("shard", "%s: not a metadata store of aifs (it has no format record)", s->o.dir);
        return -AIFS_ECORRUPT;
    }
    if (rc < 0)
        return rc;
    if (value.len >= 12 && memcmp(value.data, FORMAT_MAGIC, 8) == 0) {
        version = le32_load((const uint8_t *)value.data + 8);
        if (version != FORMAT_VERSION) {
            LOG_ERROR("shard", "%s: has format version %u, this program knows %u", s->o.dir,
                      version, FORMAT_VERSION);
            rc = -AIFS_EFORMAT;
        } else if (value.len != sizeof(s->format)) {
            rc = -AIFS_ECORRUPT;
        } else {
            memcpy(&s->format, value.data, sizeof(s->format));
            s->format.shard = le32toh(s->format.shard);
            s->format.fs_name[sizeof(s->format.fs_name) - 1] = '\0';
        }
    } else {
        rc = -AIFS_ECORRUPT;
    }
    if (rc == -AIFS_ECORRUPT || (rc == 0 && s->format.shard != s->o.id)) {
        LOG_ERROR("shard", "%s: the format record is damaged or of another shard", s->o.dir);
        rc = -AIFS_ECORRUPT;
    }
    store_value_release(&value);
    return rc;
}

static int shard_read_applied(struct shard *s)
{
    struct store_value value = {0};
    struct key k;
    int rc;

    key_single(&k, KEY_APPLIED);
    rc = store_get(s->store, NULL, k.b, k.len, &value);
    if (rc == -ENOENT)
        return 0;
    if (rc == 0 && value.len == sizeof(uint64_t))
        s->index = le64_load(value.data);
    else if (rc == 0)
        rc = -AIFS_ECORRUPT;
    store_value_release(&value);
    return rc;
}

int shard_open(const struct shard_options *o, struct shard **ret_shard)
{
    struct shard *s = mem_zalloc(sizeof(*s));
    int rc;

    if (!s)
        return -ENOMEM;
    shard_defaults(s, o);
    rc = store_open(o->dir, &o->store, &s->store);
    if (rc < 0)
        goto err_free;
    if (!o->store.create)
        rc = shard_read_format(s);
    if (rc == 0)
        rc = shard_read_applied(s);
    if (rc == 0)
        rc = store_batch_create(s->store, &s->batch);
    if (rc < 0)
        goto err_store;
    rc = overlay_init(&s->overlay, s->store, s->o.overlay_bytes);
    if (rc < 0)
        goto err_batch;
    rc = view_cache_init(&s->view, s->store, s->o.view_bytes);
    if (rc < 0)
        goto err_overlay;
    shard_check_space(s);
    s->waiting = s->o.on_reactor;
    rc = s->o.on_reactor ? 0 : thread_start(&s->thread, "mds-writer", shard_writer, s);
    if (rc < 0)
        goto err_view;
    *ret_shard = s;
    return 0;
err_view:
    view_cache_fini(&s->view);
err_overlay:
    overlay_fini(&s->overlay);
err_batch:
    store_batch_destroy(s->batch);
err_store:
    store_close(s->store);
err_free:
    mem_free(s);
    return rc;
}

void shard_close(struct shard *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    if (s->o.on_reactor)
        shard_write_here(s);
    else
        pthread_join(s->thread, NULL);
    view_cache_fini(&s->view);
    overlay_fini(&s->overlay);
    store_batch_destroy(s->batch);
    store_close(s->store);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->writing);
    mem_free(s);
}

static int shard_refuse(struct shard *s, const struct shard_entry *e)
{
    uint32_t limit = s->o.queue_max;

    if (atomic_load(&s->failed))
        return -EIO;
    if (s->closing)
        return -AIFS_ECANCELLED;
    if (atomic_load(&s->flow) == STORE_STOPPED)
        limit = 0;
    else if (atomic_load(&s->flow) == STORE_SLOW)
        limit /= 8;
    if (s->queued >= limit)
        return -AIFS_EBUSY_SERVER;
    if (atomic_load(&s->disk_low) && !(e->flags & SHARD_E_FREES))
        return -ENOSPC;
    return 0;
}

/* A reactor wakes the writer when its turn ends: until then the batch grows. */
static void submit_wake(struct shard *s, struct reactor *r)
{
    if (!s->waiting || s->kicked)
        return;
    if (r && reactor_is_current(r)) {
        s->kicked = true;
        reactor_defer(r, &s->kick);
    } else if (!s->o.on_reactor) {
        s->waiting = false; /* one signal is enough for many entries */
        pthread_cond_signal(&s->wake);
    }
}

int shard_submit(struct shard *s, struct shard_entry *e)
{
    int64_t now = clock_wall_ns(s->o.clock);
    int rc;

    if (atomic_load(&s->flow) != STORE_FLOWING || atomic_load(&s->disk_low))
        shard_check_space(s);
    e->submitted_ns = clock_mono_ns(s->o.clock);
    pthread_mutex_lock(&s->lock);
    rc = shard_refuse(s, e);
    if (rc == 0) {
        s->last_now_ns = MAX(s->last_now_ns, now);
        e->now_ns = s->last_now_ns;
        list_push_back(&s->queue, &e->link);
        s->queued += shard_weight(e);
        submit_wake(s, e->reactor);
    }
    pthread_mutex_unlock(&s->lock);
    if (rc < 0)
        atomic_fetch_add_explicit(&s->n_refused, 1, memory_order_relaxed);
    return rc;
}

void shard_entry_init(struct shard_entry *e, unsigned op, const void *msg, struct reactor *r,
                      void (*done)(struct shard_entry *e))
{
    memset(e, 0, offsetof(struct shard_entry, arena));
    e->submitted_ns = 0;
    e->op = (uint16_t)op;
    e->msg = msg;
    e->reactor = r;
    e->done = done;
    list_init(&e->link);
    arena_init(&e->arena, 0);
}

void shard_entry_fini(struct shard_entry *e)
{
    arena_reset(&e->arena);
}

struct run_wait {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool done;
};

static void run_done(struct shard_entry *e)
{
    struct run_wait *w = e->wait;

    pthread_mutex_lock(&w->lock);
    w->done = true;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->lock);
}

int shard_run(struct shard *s, struct shard_entry *e)
{
    struct run_wait w = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
    int rc;

    e->reactor = NULL;
    e->done = run_done;
    e->wait = &w;
    rc = shard_submit(s, e);
    if (rc < 0)
        return rc;
    if (s->o.on_reactor)
        shard_write_here(s);
    pthread_mutex_lock(&w.lock);
    while (!w.done)
        pthread_cond_wait(&w.cond, &w.lock);
    pthread_mutex_unlock(&w.lock);
    return e->status;
}

bool shard_is_tight(struct shard *s)
{
    return atomic_load_explicit(&s->disk_tight, memory_order_relaxed);
}

struct store *shard_store(struct shard *s)
{
    return s->store;
}

const struct format_rec *shard_format(const struct shard *s)
{
    return &s->format;
}

void shard_get_stats(struct shard *s, struct shard_stats *r)
{
    *r = (struct shard_stats){.entries = s->n_entries,
                              .commits = s->n_commits,
                              .duplicates = s->n_duplicates,
                              .retries = s->n_retries,
                              .refused = s->n_refused,
                              .rolled = s->n_rolled,
                              .exec_ns = s->exec_ns,
                              .commit_ns = s->commit_ns,
                              .view_hits = s->view.hits,
                              .view_misses = s->view.misses};
    pthread_mutex_lock(&s->lock);
    r->queued = s->queued;
    pthread_mutex_unlock(&s->lock);
}

bool shard_is_idle(struct shard *s)
{
    bool idle;

    pthread_mutex_lock(&s->writing);
    pthread_mutex_lock(&s->lock);
    idle = s->queued == 0;
    pthread_mutex_unlock(&s->lock);
    pthread_mutex_unlock(&s->writing);
    return idle;
}
