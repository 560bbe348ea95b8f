// SPDX-License-Identifier: Apache-2.0
/*
 * Opening, closing and looking at a store. Opening takes the lock, checks the superblock, opens
 * index and segments, and scans the index once (scan.c). Closing commits everything, then joins the
 * committer.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "oss/chunk/store_int.h"

#define SPACE_INTERVAL_NS (2 * NS_PER_S)
#define EDGE_BUFFERS      64u
#define COPY_BUFFERS      4u
#define LOG_PART          128u         /* of a target is its log at most, */
#define LOG_SMALL_BYTES   (8ull * MIB) /* or so much: the rest of the index has to fit in, too */
/* What is left alone on a file system, and what of it the log and a memtable may be at most: what
 * RocksDB has not put together yet, and while it does that once more, took up to four logs and five
 * memtables. */
#define RESERVE_PART      32u
#define RESERVE_MIN_BYTES (24ull * MIB)
#define RESERVE_MAX_BYTES (256ull * MIB)
#define RESERVE_LOG       8u
#define RESERVE_MEMTABLE  16u

void chunk_store_options_default(struct chunk_store_options *o)
{
    *o = (struct chunk_store_options){
        .engine = "auto",
        .cache_bytes = 64ull * MIB,
        .log_bytes = 32ull * MIB,
        .dirty_bytes = 256ull * MIB,
        .commit_interval_ns = NS_PER_S / 2,
        .memtable_bytes = 16ull * MIB,
        .block_cache_bytes = 32ull * MIB,
        .tombstone_ns = 3600 * NS_PER_S,
        .mapped_bytes = 512ull * MIB,
    };
}

/* ---- space ---- */

/* What data leaves alone of a file system, for the index to grow into. */
static uint64_t fs_reserve(const struct statvfs *v)
{
    uint64_t total = (uint64_t)v->f_blocks * v->f_frsize;

    return MIN(MAX(total / RESERVE_PART, RESERVE_MIN_BYTES), RESERVE_MAX_BYTES);
}

/* What the file system still has, the configured limit, and a part that is left alone. */
static void space_update(struct chunk_store *s)
{
    struct statvfs v;
    uint64_t avail, room;

    if (fstatvfs(s->dir_fd, &v) < 0)
        return;
    avail = (uint64_t)v.f_bavail * v.f_frsize;
    s->seg.fs_reserve_bytes = fs_reserve(&v);
    room = s->slots.backed_bytes +
           (avail > s->seg.fs_reserve_bytes ? avail - s->seg.fs_reserve_bytes : 0);
    if (s->options.capacity_bytes)
        room = MIN(room, s->options.capacity_bytes);
    s->slots.capacity_bytes = room;
    s->slots.reserve_bytes = MIN(room / 32, 1ull * GIB);
}

static void space_timer(struct reactor_timer *t)
{
    struct chunk_store *s = container_of(t, struct chunk_store, space_timer);

    space_update(s);
    chunk_ready_turn(s);
    chunk_metrics_update(s);
    chunk_fold_all(s);
    reactor_timer_start(s->reactor, t, reactor_now_ns(s->reactor) + SPACE_INTERVAL_NS);
}

void chunk_store_promise(struct chunk_store *s, uint64_t *promise, uint64_t more_bytes)
{
    *promise += more_bytes;
    s->slots.promised_bytes += more_bytes;
}

void chunk_store_unpromise(struct chunk_store *s, uint64_t *promise)
{
    ASSERT(*promise <= s->slots.promised_bytes);
    s->slots.promised_bytes -= *promise;
    *promise = 0;
}

/* Space of files that no record names goes back; groups in use are whole again. */
static void store_settle_space(struct chunk_store *s)
{
    for (unsigned class = CHUNK_CLASS_MIN; class <= CHUNK_CLASS_MAX; class ++) {
        struct slots_class *c = &s->slots.classes[class - CHUNK_CLASS_MIN];

        slots_unback_rest(&s->slots, class, seg_slots_on_disk(&s->seg, class));
        for (uint32_t g = 0; g < c->n_groups; g++)
            if (c->groups[g].backed && c->groups[g].used < c->group_slots)
                (void)!seg_slots_ops.back(&s->seg, class, g * c->group_slots, c->group_slots);
    }
}

/* ---- open and close ---- */

static int store_pool(struct chunk_store *s, const char *name, uint32_t size, uint32_t n,
                      struct buf_pool **ret_pool)
{
    int rc = buf_pool_create(name, size, n, ret_pool);

    if (!rc)
        fio_memory_add(s->fio, buf_pool_memory(*ret_pool));
    return rc;
}

static void store_pool_free(struct chunk_store *s, struct buf_pool *p)
{
    if (!p)
        return;
    fio_memory_remove(s->fio, buf_pool_memory(p));
    buf_pool_destroy(p);
}

static int store_pools(struct chunk_store *s)
{
    int rc = store_pool(s, "chunk-edges", 2 * CHUNK_BLOCK, EDGE_BUFFERS, &s->edges);

    return rc ? rc
              : store_pool(s, "chunk-copies", CHUNK_IO_MAX + 2 * CHUNK_BLOCK, COPY_BUFFERS,
                           &s->copies);
}

/* The parts of the index that can be bounded, for a target of so much. */
static void store_size_index(struct chunk_store *s, uint64_t capacity, const struct statvfs *v)
{
    uint64_t log_bytes = MIN(s->options.log_bytes, MAX(capacity / LOG_PART, LOG_SMALL_BYTES));
    uint64_t reserve = fs_reserve(v);

    s->log_blocks_max = MAX(MIN(log_bytes, reserve / RESERVE_LOG) / CHUNK_BLOCK, 16u);
    s->options.memtable_bytes = MIN(s->options.memtable_bytes, reserve / RESERVE_MEMTABLE);
}

static int store_init(struct chunk_store *s, const struct chunk_store_options *o)
{
    static const uint8_t zero[CHUNK_BLOCK];
    uint64_t seed_capacity = o->capacity_bytes;
    struct statvfs v;
    int rc;

    s->reactor = o->reactor;
    s->fio = o->fio;
    s->zero_crc = crc32c(zero, sizeof zero);
    list_init(&s->lru);
    list_init(&s->dirty);
    list_init(&s->wanted);
    list_init(&s->fold);
    list_init(&s->log_free);
    list_init(&s->batch_ops);
    s->build_work.fn = chunk_commit_build;
    reactor_timer_init(&s->commit_timer, chunk_commit_timer);
    reactor_timer_init(&s->space_timer, space_timer);
    chunk_ready_init(s);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->wake, NULL);
    s->seg.dir = s->path;
    s->seg.fio = s->fio;
    s->seg.engine = o->engine;
    s->seg.tag = s->tag;
    if (statvfs(s->path, &v) < 0)
        v = (struct statvfs){.f_blocks = GIB, .f_frsize = 1};
    if (!seed_capacity)
        seed_capacity = (uint64_t)v.f_blocks * v.f_frsize;
    store_size_index(s, seed_capacity, &v);
    s->encode = mem_alloc(chunk_record_max(CHUNK_MAX_BYTES));
    if (!s->encode || hmap_init(&s->inodes, 1024) || hmap_init(&s->chunks, 4096))
        return -ENOMEM;
    rc = slots_init(&s->slots, seed_capacity, 0, &chunk_place_slots_ops, &s->seg);
    return rc ? rc : store_pools(s);
}

static int store_check_super(struct chunk_store *s, const struct uuid *cluster)
{
    char err[512], id[UUID_TEXT_BYTES];
    int rc = super_load(s->path, &s->super, err, sizeof err);

    if (rc) {
        LOG_ERROR("target", "%s", err);
        return rc;
    }
    uuid_format(&s->super.target, id);
    if (s->super.target_id)
        snprintf(s->tag, sizeof s->tag, "target %u", s->super.target_id);
    else
        snprintf(s->tag, sizeof s->tag, "target %.8s", id);
    if (!uuid_is_zero(cluster) && !uuid_equal(cluster, &s->super.cluster)) {
        LOG_ERROR(s->tag, "%s belongs to another cluster", s->path);
        return -AIFS_ECLUSTER;
    }
    return 0;
}

static void store_free(struct chunk_store *s)
{
    struct hmap_node *n, *next;
    size_t pos;

    reactor_timer_cancel(s->reactor, &s->commit_timer); /* the scan may have started it */
    chunk_ready_stop(s);
    chunk_ready_fini(s);
    chunk_metrics_stop(s);
    chunk_commit_stop(s);
    if (s->chunks.buckets)
        hmap_for_each (n, next, pos, &s->chunks)
            chunk_drop(s, container_of(n, struct chunk, node));
    index_close(&s->index);
    chunk_places_free(s);
    seg_close(&s->seg);
    slots_fini(&s->slots);
    chunk_log_release_pool(s);
    hmap_fini(&s->chunks);
    hmap_fini(&s->inodes);
    store_pool_free(s, s->edges);
    store_pool_free(s, s->copies);
    if (s->lock_fd >= 0)
        close(s->lock_fd);
    if (s->dir_fd >= 0)
        close(s->dir_fd);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    mem_free(s->encode);
    mem_free(s->at);
    mem_free(s->path);
    mem_free(s);
}

static int store_find_dir(struct chunk_store *s)
{
    struct stat st;
    int rc;

    s->dir_fd = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    rc = s->dir_fd < 0 || fstat(s->dir_fd, &st) < 0 ? -errno : 0;
    if (rc) {
        LOG_ERROR(s->tag, "%s: %s", s->path, err_text(rc));
        return rc;
    }
    s->dir_dev = st.st_dev;
    s->dir_ino = st.st_ino;
    s->at = mem_printf("/proc/self/fd/%d", s->dir_fd);
    if (s->at && access(s->at, F_OK) < 0) { /* no /proc here */
        mem_free(s->at);
        s->at = mem_strdup(s->path);
    }
    s->seg.at = s->at;
    return s->at ? 0 : -ENOMEM;
}

bool chunk_store_is_away(const struct chunk_store *s)
{
    struct stat st;

    if (stat(s->path, &st) < 0) /* a disk that fails is there */
        return errno == ENOENT || errno == ENOTDIR;
    return st.st_dev != s->dir_dev || st.st_ino != s->dir_ino;
}

/* A target has an index since it was first opened, and segment files since data came: without an
 * index nothing would be known of them, and all of them be given back. */
static int store_open_files(struct chunk_store *s, uint64_t block_cache_bytes)
{
    const struct index_options io = {s->options.memtable_bytes, block_cache_bytes};
    char path[4096];
    int rc = seg_open(&s->seg);

    if (rc)
        return rc;
    snprintf(path, sizeof path, "%s/index", s->at);
    if (s->seg.n_open && !index_is_there(path)) {
        LOG_ERROR(s->tag, "%s/index is gone, or empty: nothing says what is in %s/seg", s->path,
                  s->path);
        return -ENOENT;
    }
    return index_open(&s->index, path, s->path, s->tag, &io);
}

/* Nor is it good to make new ones where a disk is not mounted. */
static int store_has_segments(const struct chunk_store *s)
{
    if (s->seg.n_open || !s->slots.used_bytes)
        return 0;
    LOG_ERROR(s->tag, "%s/seg is empty: what %s/index names is not there", s->path, s->path);
    return -ENOENT;
}

static int store_open(struct chunk_store *s, const struct chunk_store_options *o)
{
    int rc = store_init(s, o);

    if (!rc)
        rc = super_lock(s->path, &s->lock_fd);
    if (!rc)
        rc = store_check_super(s, &o->cluster);
    if (rc)
        return rc;
    rc = store_find_dir(s);
    if (rc)
        return rc;
    rc = store_open_files(s, o->block_cache_bytes);
    if (!rc)
        rc = chunk_scan(s);
    if (!rc)
        rc = store_has_segments(s);
    if (!rc)
        rc = chunk_commit_start(s);
    if (rc)
        return rc;
    store_settle_space(s);
    space_update(s);
    do {
        if (getrandom(&s->verifier, sizeof s->verifier, 0) < 0)
            return -errno;
    } while (!s->verifier);
    chunk_ready_turn(s);
    return 0;
}

int chunk_store_open(const struct chunk_store_options *o, struct chunk_store **ret_store)
{
    struct chunk_store *s = mem_zalloc(sizeof *s);
    int rc;

    if (!s)
        return -ENOMEM;
    s->options = *o;
    s->lock_fd = s->dir_fd = -1;
    s->path = mem_strdup(o->path);
    if (!s->path) {
        mem_free(s);
        return -ENOMEM;
    }
    rc = store_open(s, o);
    if (rc) {
        store_free(s);
        return rc;
    }
    chunk_metrics_start(s);
    reactor_timer_start(s->reactor, &s->space_timer,
                        reactor_now_ns(s->reactor) + SPACE_INTERVAL_NS);
    LOG_INFO(s->tag, "%s: %llu chunks, %llu MiB used of %llu", s->path,
             (unsigned long long)s->n_records, (unsigned long long)(s->slots.used_bytes / MIB),
             (unsigned long long)(s->slots.capacity_bytes / MIB));
    *ret_store = s;
    return 0;
}

static void close_last(struct chunk_store *s)
{
    void (*done)(void *arg, int status) = s->closed;
    void *arg = s->closed_arg;
    int status = s->failed;

    store_free(s);
    done(arg, status);
}

static void close_end(struct reactor_work *w)
{
    struct chunk_store *s = container_of(w, struct chunk_store, build_work);

    if (!chunk_ready_wait(s, close_last))
        close_last(s);
}

static void close_committed(struct chunk_op *op, int status)
{
    struct chunk_store *s = op->arg;

    (void)status;
    if (s->folding) { /* its own end is near: once more */
        memset(op, 0, sizeof *op);
        op->kind = CHUNK_COMMIT;
        op->done = close_committed;
        op->arg = s;
        s->close_waits_fold = true;
        return;
    }
    reactor_timer_cancel(s->reactor, &s->commit_timer);
    ASSERT(!s->batch_posted || s->failed);
    s->build_work.fn = close_end;
    if (!s->build_pending)
        reactor_defer(s->reactor, &s->build_work);
}

void chunk_store_close(struct chunk_store *s, void (*done)(void *arg, int status), void *arg)
{
    s->closed = done;
    s->closed_arg = arg;
    s->closing = true;
    reactor_timer_cancel(s->reactor, &s->space_timer);
    chunk_ready_stop(s);
    s->close_op = (struct chunk_op){.kind = CHUNK_COMMIT, .done = close_committed, .arg = s};
    chunk_store_submit(s, &s->close_op);
}

/* ---- looking at it ---- */

const struct super *chunk_store_super(const struct chunk_store *s)
{
    return &s->super;
}

const char *chunk_store_path(const struct chunk_store *s)
{
    return s->path;
}

uint64_t chunk_store_verifier(const struct chunk_store *s)
{
    return s->verifier;
}

int chunk_store_set_id(struct chunk_store *s, uint32_t id)
{
    struct super super = s->super;
    int rc;

    if (super.target_id == id)
        return 0;
    super.target_id = id;
    rc = super_save_at(s->dir_fd, s->path, &super); /* its path may lead elsewhere by now */
    if (rc)
        return rc;
    s->super = super;
    snprintf(s->tag, sizeof s->tag, "target %u", id);
    chunk_ready_turn(s);
    return 0;
}

void chunk_store_fences(struct chunk_store *s,
                        void (*fn)(void *arg, uint64_t session, uint32_t generation), void *arg)
{
    uint8_t key[CHUNK_KEY_MAX];
    struct index_scan x;
    struct chunk_key k;
    uint32_t generation;

    index_scan_start(&s->index, &x, key, chunk_key_fence(key, 0));
    for (; index_scan_valid(&x); index_scan_next(&x)) {
        if (chunk_key_parse(x.key, x.key_len, &k) || k.type != CHUNK_KEY_FENCE)
            break;
        if (!fence_record_decode(x.key, x.key_len, x.value, x.value_len, &generation))
            fn(arg, k.ino, generation);
    }
    if (index_scan_end(&s->index, &x))
        LOG_ERROR(s->tag, "its fences cannot be read");
}

void chunk_store_stat(struct chunk_store *s, struct chunk_stat *ret_stat)
{
    *ret_stat = (struct chunk_stat){
        .total_bytes = s->slots.capacity_bytes,
        .used_bytes = s->slots.used_bytes,
        .free_bytes = s->failed ? 0 : slots_free_bytes(&s->slots),
        .promised_bytes = s->slots.promised_bytes,
        .chunks = s->n_records,
        .dirty_bytes = s->dirty_bytes,
        .log_bytes = s->log_blocks * CHUNK_BLOCK,
        .log_max_bytes = (uint64_t)s->log_blocks_max * CHUNK_BLOCK,
        .cached_chunks = s->chunks.count,
        .errors = stat_value(&s->n_errors),
        .commits = stat_value(&s->n_commits),
        .syncs = stat_value(&s->n_syncs),
        .mapped_writes = stat_value(&s->n_mapped),
        .mapped_looks = stat_value(&s->n_map_looks),
        .index_reads = stat_value(&s->n_loads),
        .mapped_bytes = s->mapped_bytes,
        .failed = s->failed != 0,
    };
}

int chunk_store_list(struct chunk_store *s, bool first, uint64_t ino, uint64_t chunk,
                     uint64_t only_ino, struct chunk_list_item *out, uint32_t max)
{
    uint8_t key[CHUNK_KEY_MAX];
    struct chunk_record r;
    struct index_scan x;
    struct chunk_key k;
    uint32_t n = 0;
    int rc = 0, end;

    if (only_ino && (first || ino < only_ino)) {
        ino = only_ino;
        chunk = 0;
        first = true;
    }
    index_scan_start(&s->index, &x, key,
                     chunk_key_chunk(key, first && !only_ino ? 0 : ino, first ? 0 : chunk));
    for (; !rc && n < max && index_scan_valid(&x); index_scan_next(&x)) {
        rc = chunk_key_parse(x.key, x.key_len, &k);
        if (rc || k.type != CHUNK_KEY_CHUNK || (only_ino && k.ino != only_ino))
            break;
        if (!first && k.ino == ino && k.chunk == chunk)
            continue;
        if (chunk_record_decode(x.key, x.key_len, x.value, x.value_len, &r))
            r = (struct chunk_record){0};
        out[n++] = (struct chunk_list_item){
            .ino = k.ino, .chunk = k.chunk, .len = r.len, .truncate_gen = r.truncate_gen};
    }
    end = index_scan_end(&s->index, &x);
    return end ? end : rc ? rc : (int)n;
}
