// SPDX-License-Identifier: Apache-2.0
/*
 * What the operations on a whole inode share: they enter its gate alone, wait for its commits, list
 * its chunks from the index (bounded steps, so that a large file does not hold up the reactor),
 * zero a part of a chunk, and remove chunks in one batch with the inode's record.
 */
#include <string.h>

#include "common/base/assert.h"
#include "common/base/err.h"
#include "common/base/mem.h"
#include "oss/chunk/store_int.h"

#define SCAN_STEP 1024u

#define C_ALL (SM_BIT(C_END))
static const struct sm_state states[] = {
    [C_START] = {"start", SM_BIT(C_GATE) | C_ALL, false},
    [C_GATE] = {"gate", SM_BIT(C_FLUSH) | C_ALL, false},
    [C_FLUSH] = {"flush", SM_BIT(C_SCAN) | SM_BIT(C_FLUSH) | C_ALL, false},
    [C_SCAN] = {"scan", SM_BIT(C_FLUSH) | SM_BIT(C_BUFFER) | SM_BIT(C_COMMIT) | C_ALL, false},
    [C_BUFFER] = {"buffer", SM_BIT(C_HEAD) | C_ALL, false},
    [C_HEAD] = {"head", SM_BIT(C_TAIL) | C_ALL, false},
    [C_TAIL] = {"tail", SM_BIT(C_BUFFER) | SM_BIT(C_COMMIT) | C_ALL, false},
    [C_COMMIT] = {"commit", SM_BIT(C_COMMIT) | SM_BIT(C_SCAN) | C_ALL, false},
    [C_END] = {"end", 0, true},
};
const struct sm_conf op_truncate_sm = {"chunk.truncate", states, ARRAY_LEN(states)};
const struct sm_conf op_punch_sm = {"chunk.punch", states, ARRAY_LEN(states)};
const struct sm_conf op_destroy_sm = {"chunk.destroy", states, ARRAY_LEN(states)};
const struct sm_conf op_seal_sm = {"chunk.seal", states, ARRAY_LEN(states)};
const struct sm_conf op_seek_sm = {"chunk.seek", states, ARRAY_LEN(states)};

int cut_start(struct chunk_op *op)
{
    op->cut = mem_zalloc(sizeof *op->cut);
    if (!op->cut)
        return cut_end(op, -ENOMEM);
    op->cut->op = op;
    sm_move(&op->sm, C_GATE);
    chunk_gate_enter(op, true);
    return STEP_WAIT;
}

int cut_end(struct chunk_op *op, int status)
{
    sm_move(&op->sm, C_END);
    return status;
}

void cut_put_block(struct chunk_op *op)
{
    buf_put(op->cut->block);
    op->cut->block = NULL;
}

void op_cut_fini(struct chunk_op *op)
{
    cut_put_block(op);
    mem_free(op->cut->victims);
    mem_free(op->cut);
    op->cut = NULL;
}

bool cut_flush(struct chunk_op *op, bool dirty)
{
    struct chunk *c;
    struct list *l;

    if (dirty)
        list_for_each (l, &op->inode->chunks)
            chunk_commit_want(op->store, list_entry(l, struct chunk, inode_link));
    list_for_each (l, &op->inode->chunks) {
        c = list_entry(l, struct chunk, inode_link);
        if (c->committing || (dirty && c->dirty))
            if (chunk_commit_wait(op, c, dirty ? c->seq : c->posted_seq))
                return true;
    }
    return false;
}

/* ---- listing ---- */

static int scan_add(struct chunk_cut *cut, const struct chunk_victim *victim)
{
    if (cut->n_victims == cut->cap_victims) {
        uint32_t cap = MAX(16u, cut->cap_victims * 2);
        struct chunk_victim *v = mem_realloc(cut->victims, cap * sizeof *v);

        if (!v)
            return -ENOMEM;
        cut->victims = v;
        cut->cap_victims = cap;
    }
    cut->victims[cut->n_victims++] = *victim;
    return 0;
}

/* One step of the scan: 0 at its end, 1 when there is more. */
static int scan_step(struct chunk_op *op)
{
    struct chunk_store *s = op->store;
    struct chunk_cut *cut = op->cut;
    uint8_t key[CHUNK_KEY_MAX];
    struct index_scan scan;
    struct chunk_record r;
    struct chunk_victim v;
    struct chunk_key k;
    int rc = 0, end;

    index_scan_start(&s->index, &scan, key, chunk_key_chunk(key, op->ino, cut->scan_from));
    for (uint32_t n = 0; !rc && index_scan_valid(&scan); n++, index_scan_next(&scan)) {
        rc = chunk_key_parse(scan.key, scan.key_len, &k);
        if (rc || k.type != CHUNK_KEY_CHUNK || k.ino != op->ino || k.chunk > cut->scan_to)
            break;
        cut->scan_from = k.chunk;
        if (n == SCAN_STEP) {
            rc = 1;
            break;
        }
        v = (struct chunk_victim){.chunk = k.chunk};
        rc = chunk_record_decode(scan.key, scan.key_len, scan.value, scan.value_len, &r);
        if (!rc)
            v.slot = r.slot;
        if (rc == -AIFS_ECORRUPT) { /* it can be removed; its slot comes free at a restart */
            chunk_report_corrupt(s, k.ino, k.chunk, 0, "its index record is damaged");
            v.damaged = true;
            rc = 0;
        }
        if (!rc)
            rc = scan_add(cut, &v);
        if (!rc && cut->n_victims == cut->max_victims) {
            cut->more = true;
            cut->scan_from = k.chunk + 1;
            break;
        }
    }
    end = index_scan_end(&s->index, &scan);
    return end ? end : rc;
}

static void scan_work(struct reactor_work *w)
{
    struct chunk_cut *cut = container_of(w, struct chunk_cut, work);
    struct chunk_op *op = cut->op;
    int rc = scan_step(op);

    if (rc == 1)
        reactor_defer(op->store->reactor, &cut->work);
    else
        chunk_op_wake(op, rc);
}

void cut_scan(struct chunk_op *op, uint64_t from, uint64_t to)
{
    op->cut->scan_from = from;
    op->cut->scan_to = to;
    op->cut->taken = op->inode->taken;
    op->cut->work.fn = scan_work;
    scan_work(&op->cut->work);
}

/* ---- zeroing a part of a chunk ---- */

static void zero_buffer(struct buf_waiter *w, struct buf *b)
{
    struct chunk_op *op = container_of(w, struct chunk_op, write.waiter);

    op->cut->block = b;
    chunk_op_wake(op, 0);
}

int cut_zero(struct chunk_op *op, uint32_t lo, uint32_t hi)
{
    struct chunk *c = op->c;
    struct chunk_cut *cut = op->cut;

    cut->lo = MIN(lo, c->len);
    cut->hi = hi >= c->len ? chunk_blocks(c->len) * CHUNK_BLOCK : hi;
    sm_move(&op->sm, C_BUFFER);
    if (cut->block) {
        op->io_status = 0;
        return STEP_AGAIN;
    }
    op->write.waiter.fn = zero_buffer;
    buf_wait(op->store->edges, &op->write.waiter);
    return STEP_WAIT;
}

static bool zero_has_head(const struct chunk_op *op)
{
    const struct chunk_cut *cut = op->cut;

    return cut->lo % CHUNK_BLOCK && cut->lo < cut->hi &&
           CHUNK_BIT(op->c->present, cut->lo / CHUNK_BLOCK);
}

static bool zero_has_tail(const struct chunk_op *op)
{
    const struct chunk_cut *cut = op->cut;
    uint32_t b = cut->hi / CHUNK_BLOCK;

    return cut->hi % CHUNK_BLOCK && cut->lo < cut->hi && CHUNK_BIT(op->c->present, b) &&
           !(b == cut->lo / CHUNK_BLOCK && cut->lo % CHUNK_BLOCK);
}

static int zero_edge(struct chunk_op *op, uint32_t b)
{
    struct chunk_cut *cut = op->cut;
    uint32_t base = b * CHUNK_BLOCK, lo = cut->lo > base ? cut->lo - base : 0;
    uint32_t hi = MIN(cut->hi - base, CHUNK_BLOCK), crc;
    int rc;

    memset(cut->block->data + lo, 0, hi - lo);
    crc = crc32c(cut->block->data, CHUNK_BLOCK);
    rc = chunk_log_put(op->store, op->c, b, cut->block->data, crc);
    if (!rc)
        op->c->crcs[b] = crc;
    return rc;
}

static void zero_middle(struct chunk_op *op)
{
    struct chunk_cut *cut = op->cut;
    struct chunk *c = op->c;
    uint32_t from = chunk_blocks(cut->lo), to = cut->hi / CHUNK_BLOCK;

    for (uint32_t b = from; b < to; b++) {
        CHUNK_CLEAR(c->present, b);
        c->crcs[b] = 0;
    }
    if (from < to)
        chunk_log_drop(op->store, c, from, to);
    c->record_dirty = true;
}

/* A damaged block at the edge stays as it is, an error to whoever reads it: it must not keep the
 * cut from happening. */
static int zero_edge_fetched(struct chunk_op *op, uint32_t b)
{
    if (op->io_status == -AIFS_ECORRUPT)
        return 0;
    return op->io_status ? op->io_status : zero_edge(op, b);
}

int cut_zero_step(struct chunk_op *op, bool *ret_done)
{
    struct chunk_cut *cut = op->cut;
    int rc = 0;

    switch (sm_state(&op->sm)) {
    case C_BUFFER:
        sm_move(&op->sm, C_HEAD);
        if (!zero_has_head(op)) {
            op->io_status = 0;
            return STEP_AGAIN;
        }
        chunk_fetch(op, cut->lo / CHUNK_BLOCK, cut->lo / CHUNK_BLOCK + 1, cut->block->data);
        return STEP_WAIT;
    case C_HEAD:
        if (zero_has_head(op))
            rc = zero_edge_fetched(op, cut->lo / CHUNK_BLOCK);
        if (rc)
            return cut_end(op, rc);
        sm_move(&op->sm, C_TAIL);
        if (!zero_has_tail(op)) {
            op->io_status = 0;
            return STEP_AGAIN;
        }
        chunk_fetch(op, cut->hi / CHUNK_BLOCK, cut->hi / CHUNK_BLOCK + 1, cut->block->data);
        return STEP_WAIT;
    default: /* C_TAIL */
        if (zero_has_tail(op))
            rc = zero_edge_fetched(op, cut->hi / CHUNK_BLOCK);
        if (rc)
            return cut_end(op, rc);
        if (cut->lo < cut->hi)
            zero_middle(op);
        *ret_done = true;
        return STEP_AGAIN;
    }
}

/* ---- removing ---- */

static void kill_cached(struct chunk_op *op, struct chunk *c)
{
    struct chunk_store *s = op->store;
    uint8_t key[CHUNK_KEY_MAX];

    for (uint32_t i = 0; i < c->n_logs; i++) {
        size_t len = chunk_key_log(key, op->ino, c->index, c->logs[i].block);

        if (c->logs[i].flags & CHUNK_LOG_ON_DISK)
            rocksdb_writebatch_delete(s->batch.wb, (char *)key, len);
    }
    chunk_drop(s, c);
}

static void kill_logs(struct chunk_op *op, uint64_t chunk)
{
    uint8_t from[CHUNK_KEY_MAX], to[CHUNK_KEY_MAX];
    size_t from_len = chunk_key_log(from, op->ino, chunk, 0);
    size_t to_len = chunk_key_log(to, op->ino, chunk, UINT32_MAX);

    rocksdb_writebatch_delete_range(op->store->batch.wb, (char *)from, from_len, (char *)to,
                                    to_len);
}

void cut_kill(struct chunk_op *op, uint64_t from)
{
    struct chunk_store *s = op->store;
    struct chunk_cut *cut = op->cut;
    uint8_t key[CHUNK_KEY_MAX];
    struct list *l, *tmp;

    list_for_each_safe (l, tmp, &op->inode->chunks) {
        struct chunk *c = list_entry(l, struct chunk, inode_link);

        if (c->index >= from)
            kill_cached(op, c);
    }
    for (uint32_t i = 0; i < cut->n_victims; i++) {
        struct chunk_victim *v = &cut->victims[i];
        size_t len = chunk_key_chunk(key, op->ino, v->chunk);

        rocksdb_writebatch_delete(s->batch.wb, (char *)key, len);
        chunk_commit_free_slot(s, v->slot);
        if (v->damaged)
            kill_logs(op, v->chunk);
    }
    s->n_records -= cut->n_victims;
}

void cut_put_inode(struct chunk_op *op, const struct inode_record *r)
{
    uint8_t key[CHUNK_KEY_MAX], value[sizeof(struct inode_record_fmt)];
    size_t key_len = chunk_key_inode(key, op->ino);
    size_t len = inode_record_encode(key, key_len, r, value);

    rocksdb_writebatch_put(op->store->batch.wb, (char *)key, key_len, (char *)value, len);
}
