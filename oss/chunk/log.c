// SPDX-License-Identifier: Apache-2.0
/*
 * Logged blocks of a chunk: whole blocks that replace those in the slot, kept in memory and, once
 * committed, in the index, until they are folded into the slot or dropped. At most
 * options.log_bytes of them per target; their memory is kept for the next ones. A write reserves
 * what it will need before it changes anything: then -ENOMEM is no failure of chunk_log_put().
 */
#include <string.h>

#include "common/base/assert.h"
#include "common/base/err.h"
#include "common/base/mem.h"
#include "oss/chunk/store_int.h"

/* First entry whose block is not below. */
static uint32_t log_lower(const struct chunk *c, uint32_t block)
{
    uint32_t lo = 0, hi = c->n_logs;

    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;

        if (c->logs[mid].block < block)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

struct chunk_log *chunk_log_find(struct chunk *c, uint32_t block)
{
    if (block >= c->cap_blocks || !CHUNK_BIT(c->logged, block))
        return NULL;
    return &c->logs[log_lower(c, block)];
}

bool chunk_log_has_room(const struct chunk_store *s, uint32_t blocks)
{
    return s->log_blocks + s->log_promised + blocks <= s->log_blocks_max;
}

/* Memory that is promised is for chunk_log_put_reserved(). */
static uint8_t *log_block_get(struct chunk_store *s)
{
    struct list *e = s->log_spare > s->log_promised ? list_pop_front(&s->log_free) : NULL;
    uint8_t *data = e ? (uint8_t *)e : mem_alloc(CHUNK_BLOCK);

    s->log_spare -= e != NULL;
    if (data)
        s->log_blocks++;
    return data;
}

static void log_block_spare(struct chunk_store *s, uint8_t *data)
{
    s->log_spare++;
    list_push_front(&s->log_free, (struct list *)(void *)data);
}

static void log_block_put(struct chunk_store *s, uint8_t *data)
{
    if (!data)
        return;
    s->log_blocks--;
    log_block_spare(s, data);
}

void chunk_log_release_pool(struct chunk_store *s)
{
    struct list *e;

    while ((e = list_pop_front(&s->log_free)))
        mem_free(e);
}

static int log_grow(struct chunk *c, uint32_t n)
{
    uint32_t cap = MAX(c->cap_logs, 4u);
    struct chunk_log *logs;

    if (n <= c->cap_logs)
        return 0;
    while (cap < n)
        cap *= 2;
    logs = mem_realloc(c->logs, cap * sizeof *logs);
    if (!logs)
        return -ENOMEM;
    c->logs = logs;
    c->cap_logs = cap;
    return 0;
}

int chunk_log_reserve(struct chunk_store *s, struct chunk *c, uint32_t n)
{
    while (s->log_spare < s->log_promised + n) {
        uint8_t *data = mem_alloc(CHUNK_BLOCK);

        if (!data)
            return -ENOMEM;
        log_block_spare(s, data);
    }
    if (log_grow(c, c->n_logs + c->log_promised + n))
        return -ENOMEM;
    c->log_promised += n;
    s->log_promised += n;
    return 0;
}

void chunk_log_unreserve(struct chunk_store *s, struct chunk *c, uint32_t n)
{
    ASSERT(c->log_promised >= n && s->log_promised >= n);
    c->log_promised -= n;
    s->log_promised -= n;
}

static int log_insert(struct chunk *c, uint32_t at, uint32_t block)
{
    int rc = log_grow(c, c->n_logs + 1);

    if (rc)
        return rc;
    memmove(c->logs + at + 1, c->logs + at, (c->n_logs - at) * sizeof *c->logs);
    c->n_logs++;
    c->logs[at] = (struct chunk_log){.block = block};
    return 0;
}

/* The entry of a block, with memory for its data. */
static int log_entry(struct chunk_store *s, struct chunk *c, uint32_t block,
                     struct chunk_log **ret_log)
{
    uint32_t at = log_lower(c, block);
    uint8_t *data = NULL;
    int rc;

    if (at == c->n_logs || c->logs[at].block != block || !c->logs[at].data) {
        data = log_block_get(s);
        if (!data)
            return -ENOMEM;
    }
    if (at == c->n_logs || c->logs[at].block != block) {
        rc = log_insert(c, at, block);
        if (rc) {
            log_block_put(s, data);
            return rc;
        }
    }
    if (data)
        c->logs[at].data = data;
    if (list_empty(&c->fold_link))
        list_push_back(&s->fold, &c->fold_link);
    CHUNK_SET(c->logged, block);
    *ret_log = &c->logs[at];
    return 0;
}

int chunk_log_put(struct chunk_store *s, struct chunk *c, uint32_t block, const uint8_t *data,
                  uint32_t crc)
{
    struct chunk_log *l;
    int rc = log_entry(s, c, block, &l);

    if (rc)
        return rc;
    memcpy(l->data, data, CHUNK_BLOCK);
    l->crc = crc;
    l->flags |= CHUNK_LOG_DIRTY;
    c->logs_dirty = true;
    stat_inc(&s->n_logged);
    return 0;
}

void chunk_log_put_reserved(struct chunk_store *s, struct chunk *c, uint32_t block,
                            const uint8_t *data, uint32_t crc)
{
    int rc;

    chunk_log_unreserve(s, c, 1);
    rc = chunk_log_put(s, c, block, data, crc);
    ASSERT(rc == 0);
}

void chunk_log_drop(struct chunk_store *s, struct chunk *c, uint32_t from, uint32_t to)
{
    uint32_t out = log_lower(c, from);

    for (uint32_t at = out; at < c->n_logs; at++) {
        struct chunk_log *l = &c->logs[at];

        if (l->block < to) {
            log_block_put(s, l->data);
            l->data = NULL;
            l->flags &= ~CHUNK_LOG_DIRTY;
            CHUNK_CLEAR(c->logged, l->block);
            if (!(l->flags & CHUNK_LOG_ON_DISK))
                continue;
            c->logs_dirty = true; /* to be deleted */
        }
        c->logs[out++] = *l;
    }
    c->n_logs = out;
    if (!out)
        list_remove(&c->fold_link);
}

int chunk_log_attach(struct chunk_store *s, struct chunk *c, uint32_t block,
                     const struct log_record *r)
{
    struct chunk_log *l;
    int rc;

    if (block >= chunk_blocks(c->len))
        return -AIFS_ECORRUPT;
    rc = log_entry(s, c, block, &l);
    if (rc)
        return rc;
    memcpy(l->data, r->data, CHUNK_BLOCK);
    l->crc = r->block_crc;
    l->flags = CHUNK_LOG_ON_DISK;
    c->crcs[block] = r->block_crc;
    CHUNK_SET(c->present, block);
    CHUNK_CLEAR(c->locked, block);
    c->version = MAX(c->version, r->write_version);
    chunk_note_op(c, r->op_id);
    c->truncate_gen = MAX(c->truncate_gen, r->truncate_gen);
    return 0;
}

int chunk_log_lose(struct chunk_store *s, struct chunk *c, uint32_t block)
{
    uint32_t at = log_lower(c, block);
    int rc = block < chunk_blocks(c->len) ? log_insert(c, at, block) : -AIFS_ECORRUPT;

    if (rc)
        return rc;
    c->logs[at].flags = CHUNK_LOG_ON_DISK; /* without data: it is deleted */
    c->crcs[block] = ~c->crcs[block];
    CHUNK_SET(c->present, block);
    c->logs_dirty = c->record_dirty = true;
    chunk_mark_dirty(s, c, 0);
    return 0;
}

void chunk_log_free_all(struct chunk_store *s, struct chunk *c)
{
    for (uint32_t i = 0; i < c->n_logs; i++)
        log_block_put(s, c->logs[i].data);
    c->n_logs = 0;
    list_remove(&c->fold_link);
}
