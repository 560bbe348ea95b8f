// SPDX-License-Identifier: Apache-2.0
/*
 * Chunks and inodes in memory: found by hash, loaded from the index when first asked for, kept in a
 * bounded least-recently-used cache while clean. An inode stays as long as one of its chunks or an
 * operation does. Loading fails with EIO, AIFS_ECORRUPT or ENOMEM.
 */
#include <string.h>

#include "common/base/assert.h"
#include "common/base/bytes.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "oss/chunk/store_int.h"

#define WHOLE_RECORDS 8u /* looked at to see that all of an inode is in memory */

static uint64_t chunk_hash(uint64_t ino, uint64_t index)
{
    return hash_u64(hash_u64(ino) ^ index);
}

static int inode_load(struct chunk_store *s, struct chunk_inode *i)
{
    uint8_t key[CHUNK_KEY_MAX];
    size_t key_len = chunk_key_inode(key, i->ino), len;
    struct inode_record r;
    char *value;
    int rc = index_get(&s->index, key, key_len, &value, &len);

    if (rc)
        return rc == -ENOENT ? 0 : rc;
    rc = inode_record_decode(key, key_len, value, len, &r);
    index_value_free(value);
    if (rc == -AIFS_ECORRUPT) { /* it can be removed: whoever wants more of it is told */
        LOG_ERROR(s->tag, "inode %llu: its record is damaged", (unsigned long long)i->ino);
        stat_inc(&s->n_errors);
        i->damaged = true;
        return 0;
    }
    if (rc)
        return rc;
    i->gen = i->gen_done = r.truncate_gen;
    i->tombstone = r.tombstone;
    return 0;
}

int chunk_inode_get(struct chunk_store *s, uint64_t ino, struct chunk_inode **ret_inode)
{
    struct chunk_inode *i;
    int rc;

    for (struct hmap_node *n = hmap_first(&s->inodes, hash_near(ino, 0)); n; n = hmap_next(n)) {
        i = container_of(n, struct chunk_inode, node);
        if (i->ino == ino) {
            i->refs++;
            *ret_inode = i;
            return 0;
        }
    }
    i = mem_zalloc(sizeof *i);
    if (!i)
        return -ENOMEM;
    i->ino = ino;
    i->refs = 1;
    list_init(&i->waiting);
    list_init(&i->chunks);
    rc = inode_load(s, i);
    if (rc) {
        mem_free(i);
        return rc;
    }
    hmap_insert(&s->inodes, &i->node, hash_near(ino, 0));
    *ret_inode = i;
    return 0;
}

void chunk_inode_put(struct chunk_store *s, struct chunk_inode *i)
{
    ASSERT(i->refs);
    if (--i->refs)
        return;
    ASSERT(list_empty(&i->chunks) && list_empty(&i->waiting) && !i->shared && !i->exclusive);
    hmap_remove(&s->inodes, &i->node);
    mem_free(i);
}

static size_t arrays_bytes(uint32_t cap)
{
    return (size_t)cap * 4 + 4 * (size_t)(cap / 64) * 8;
}

int chunk_reserve(struct chunk_store *s, struct chunk *c, uint32_t blocks)
{
    uint32_t cap = MAX(c->cap_blocks, 64u), words = c->cap_blocks / 64;
    struct chunk n;
    uint8_t *mem;

    if (blocks <= c->cap_blocks)
        return 0;
    while (cap < blocks)
        cap *= 2;
    mem = mem_zalloc(arrays_bytes(cap));
    if (!mem)
        return -ENOMEM;
    n.present = (uint64_t *)(void *)mem;
    n.locked = n.present + cap / 64;
    n.logged = n.locked + cap / 64;
    n.next_locked = n.logged + cap / 64;
    n.crcs = (uint32_t *)(void *)(n.next_locked + cap / 64);
    if (c->cap_blocks) {
        memcpy(n.present, c->present, words * 8);
        memcpy(n.locked, c->locked, words * 8);
        memcpy(n.logged, c->logged, words * 8);
        memcpy(n.next_locked, c->next_locked, words * 8);
        memcpy(n.crcs, c->crcs, (size_t)c->cap_blocks * 4);
        mem_free(c->present);
    }
    s->cached_bytes += arrays_bytes(cap) - (c->cap_blocks ? arrays_bytes(c->cap_blocks) : 0);
    c->present = n.present;
    c->locked = n.locked;
    c->logged = n.logged;
    c->next_locked = n.next_locked;
    c->crcs = n.crcs;
    c->cap_blocks = cap;
    return 0;
}

static int chunk_fill(struct chunk_store *s, struct chunk *c, const struct chunk_record *r)
{
    uint32_t blocks = chunk_blocks(r->len);
    int rc = chunk_reserve(s, c, blocks);

    if (rc)
        return rc;
    for (uint32_t b = 0; b < blocks; b++) {
        c->crcs[b] = le32_load(r->crcs + (size_t)b * 4);
        if (chunk_record_present(r, b)) {
            CHUNK_SET(c->present, b);
            CHUNK_SET(c->locked, b);
        }
    }
    c->slot = c->disk_slot = r->slot;
    c->len = r->len;
    c->version = r->write_version;
    c->truncate_gen = r->truncate_gen;
    memcpy(c->op_ids, r->op_ids, sizeof c->op_ids);
    c->on_disk = true;
    return 0;
}

/* A file that is being written: has it anything but what is in memory? Then its next chunks need
 * not be looked for one by one. c is not loaded yet. */
static int inode_look(struct chunk_store *s, const struct chunk *c)
{
    struct chunk_inode *i = c->inode;
    uint8_t from[CHUNK_KEY_MAX], to[CHUNK_KEY_MAX];
    size_t from_len = chunk_key_chunk(from, i->ino, 0);
    size_t to_len = chunk_key_chunk(to, i->ino, UINT64_MAX);
    struct index_scan scan;
    struct chunk_key k;
    bool all = true;
    unsigned n = 0;
    int rc;

    i->looked = true;
    stat_inc(&s->n_loads);
    index_scan_start_range(&s->index, &scan, from, from_len, to, to_len);
    for (; all && index_scan_valid(&scan); index_scan_next(&scan))
        all = n++ < WHOLE_RECORDS && chunk_key_parse(scan.key, scan.key_len, &k) == 0 &&
              k.chunk != c->index && chunk_find(s, i->ino, k.chunk);
    rc = index_scan_end(&s->index, &scan);
    i->whole = all && !rc;
    return rc;
}

static int chunk_load(struct chunk_store *s, struct chunk *c)
{
    uint8_t key[CHUNK_KEY_MAX];
    size_t key_len = chunk_key_chunk(key, c->inode->ino, c->index), len;
    struct chunk_record r;
    char *value;
    int rc = c->inode->missed && !c->inode->looked ? inode_look(s, c) : 0;

    if (rc || c->inode->whole)
        return rc;
    stat_inc(&s->n_loads);
    rc = index_get(&s->index, key, key_len, &value, &len);
    c->inode->missed |= rc == -ENOENT;
    if (rc)
        return rc == -ENOENT ? 0 : rc;
    rc = chunk_record_decode(key, key_len, value, len, &r);
    if (!rc)
        rc = chunk_fill(s, c, &r);
    else
        chunk_report_corrupt(s, c->inode->ino, c->index, 0, "its index record is damaged");
    index_value_free(value);
    return rc;
}

struct chunk *chunk_find(struct chunk_store *s, uint64_t ino, uint64_t index)
{
    struct hmap_node *n = hmap_first(&s->chunks, chunk_hash(ino, index));

    for (; n; n = hmap_next(n)) {
        struct chunk *c = container_of(n, struct chunk, node);

        if (c->inode->ino == ino && c->index == index)
            return c;
    }
    return NULL;
}

static struct chunk *chunk_new(uint64_t index)
{
    struct chunk *c = mem_zalloc(sizeof *c);

    if (!c)
        return NULL;
    c->index = index;
    list_init(&c->inode_link);
    list_init(&c->lru_link);
    list_init(&c->dirty_link);
    list_init(&c->wanted_link);
    list_init(&c->batch_link);
    list_init(&c->fold_link);
    list_init(&c->waiting);
    list_init(&c->holds);
    list_init(&c->hold_queue);
    return c;
}

int chunk_get(struct chunk_store *s, struct chunk_inode *i, uint64_t index,
              struct chunk **ret_chunk)
{
    struct chunk *c = chunk_find(s, i->ino, index);
    int rc;

    if (!c) {
        c = chunk_new(index);
        if (!c)
            return -ENOMEM;
        s->cached_bytes += sizeof *c;
        c->inode = i;
        i->refs++;
        list_push_back(&i->chunks, &c->inode_link);
        hmap_insert(&s->chunks, &c->node, chunk_hash(i->ino, index));
        rc = chunk_load(s, c);
        if (rc) {
            c->slot = c->disk_slot = (struct chunk_slot){0};
            chunk_drop(s, c);
            return rc;
        }
        chunk_cache_shrink(s, s->options.cache_bytes);
    }
    c->refs++;
    list_remove(&c->lru_link);
    *ret_chunk = c;
    return 0;
}

/* What a failed store could not make durable is nowhere else. */
static bool chunk_is_idle(const struct chunk *c)
{
    return !c->refs && !c->dirty && !c->committing && !c->n_logs && !c->wanted &&
           c->durable_seq == c->seq;
}

void chunk_put(struct chunk_store *s, struct chunk *c)
{
    ASSERT(c->refs);
    c->refs--;
    if (chunk_is_idle(c) && list_empty(&c->lru_link))
        list_push_back(&s->lru, &c->lru_link);
}

void chunk_drop(struct chunk_store *s, struct chunk *c)
{
    struct chunk_inode *i = c->inode;

    ASSERT(!c->refs && !c->committing && list_empty(&c->holds) && list_empty(&c->waiting));
    i->whole &= !c->on_disk && !s->failed;
    s->cached_bytes -= sizeof *c + (c->cap_blocks ? arrays_bytes(c->cap_blocks) : 0);
    s->dirty_bytes -= c->dirty_bytes;
    if (c->slot.class && !slot_equal(c->slot, c->disk_slot))
        slots_free(&s->slots, c->slot);
    chunk_log_free_all(s, c);
    list_remove(&c->lru_link);
    list_remove(&c->dirty_link);
    list_remove(&c->wanted_link);
    list_remove(&c->fold_link);
    list_remove(&c->inode_link);
    hmap_remove(&s->chunks, &c->node);
    mem_free(c->present);
    mem_free(c->logs);
    mem_free(c);
    chunk_inode_put(s, i);
}

void chunk_cache_shrink(struct chunk_store *s, uint64_t to_bytes)
{
    while (s->cached_bytes > to_bytes && !list_empty(&s->lru))
        chunk_drop(s, list_entry(s->lru.next, struct chunk, lru_link));
}

void chunk_mark_dirty(struct chunk_store *s, struct chunk *c, uint64_t bytes)
{
    c->seq = ++s->seq;
    c->dirty_bytes += bytes;
    s->dirty_bytes += bytes;
    list_remove(&c->lru_link);
    if (c->dirty)
        return;
    if (list_empty(&s->dirty) && !reactor_timer_running(&s->commit_timer))
        reactor_timer_start(s->reactor, &s->commit_timer,
                            reactor_now_ns(s->reactor) + s->options.commit_interval_ns);
    c->dirty = true;
    list_push_back(&s->dirty, &c->dirty_link);
}

void chunk_set_slot(struct chunk_store *s, struct chunk *c, struct chunk_slot slot)
{
    struct chunk_slot old = c->slot;
    size_t words = c->cap_blocks / 64;

    c->slot = slot;
    if (words) {
        memset(c->locked, 0, words * 8);
        memset(c->next_locked, 0, words * 8);
    }
    if (!old.class || (c->on_disk && slot_equal(old, c->disk_slot)) ||
        (c->committing && slot_equal(old, c->posted_slot)))
        return;
    slots_free(&s->slots, old);
}
