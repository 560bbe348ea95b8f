// SPDX-License-Identifier: Apache-2.0
/*
 * WRITE: bytes into a chunk, block by block one of three ways:
 *   in place   the block's home is referred to by no committed record: new blocks, unstable ones
 *   logged     it is, and few are: whole merged blocks, to be committed with the index
 *   new slot   too many for that, or the chunk outgrows its slot: the other blocks are copied
 * along; or the data landed in one (place.c) and replaces all of the chunk
 *
 * check sums (or later, while copying into a new slot that is mapped) -> gate -> hold -> plan ->
 * [merge edges] -> [copy] -> write -> apply -> [commit]. Readers see nothing of it before apply,
 * which is one step. Fails with ENOSPC, AIFS_ECHECKSUM (arrived damaged), AIFS_ECORRUPT (an old
 * block to merge with is damaged), EIO, AIFS_ESTALE_TRUNC, ENOENT.
 */
#include <string.h>

#include "common/base/assert.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "oss/chunk/store_int.h"

#define LOG_BLOCKS_MAX 5u  /* 16 KiB at any alignment */
#define GROW_CLASS_MAX 20u /* a growing chunk skips classes up to 1 MiB */

enum {
    W_START,
    W_GATE,
    W_HOLD,
    W_SPACE,
    W_EDGES,
    W_HEAD,
    W_TAIL,
    W_BUFFER,
    W_COPY_READ,
    W_COPY_WRITE,
    W_DATA,
    W_COMMIT,
    W_END
};

#define W_FAIL SM_BIT(W_END)
static const struct sm_state states[] = {
    [W_START] = {"start", SM_BIT(W_GATE) | W_FAIL, false},
    [W_GATE] = {"gate", SM_BIT(W_HOLD) | W_FAIL, false},
    [W_HOLD] = {"hold",
                SM_BIT(W_HOLD) | SM_BIT(W_SPACE) | SM_BIT(W_EDGES) | SM_BIT(W_BUFFER) |
                    SM_BIT(W_DATA) | W_FAIL,
                false},
    [W_SPACE] = {"space", SM_BIT(W_HOLD) | W_FAIL, false},
    [W_EDGES] = {"edges", SM_BIT(W_HEAD) | W_FAIL, false},
    [W_HEAD] = {"head", SM_BIT(W_TAIL) | W_FAIL, false},
    [W_TAIL] = {"tail", SM_BIT(W_BUFFER) | SM_BIT(W_DATA) | W_FAIL, false},
    [W_BUFFER] = {"buffer", SM_BIT(W_COPY_READ) | SM_BIT(W_DATA) | W_FAIL, false},
    [W_COPY_READ] = {"copy-read", SM_BIT(W_COPY_WRITE) | W_FAIL, false},
    [W_COPY_WRITE] = {"copy-write", SM_BIT(W_COPY_READ) | SM_BIT(W_DATA) | W_FAIL, false},
    [W_DATA] = {"data", SM_BIT(W_DATA) | SM_BIT(W_COMMIT) | W_FAIL, false},
    [W_COMMIT] = {"commit", W_FAIL, false},
    [W_END] = {"end", 0, true},
};
const struct sm_conf op_write_sm = {"chunk.write", states, ARRAY_LEN(states)};

static int write_end(struct chunk_op *op, int status)
{
    sm_move(&op->sm, W_END);
    return status;
}

static void write_put_buffers(struct chunk_op *op)
{
    struct chunk_write *w = &op->write;

    buf_put(w->edges);
    buf_put(w->copy);
    w->edges = w->copy = NULL;
}

void op_write_fini(struct chunk_op *op)
{
    struct chunk_write *w = &op->write;

    if (w->slot.class)
        slots_free(&op->store->slots, w->slot);
    if (w->n_log)
        chunk_log_unreserve(op->store, op->c, w->n_log);
    w->n_log = 0;
    write_put_buffers(op);
}

static uint32_t write_end_offset(const struct chunk_op *op)
{
    return op->offset + op->len;
}

/* Bytes [*lo, *hi) of block b that the write covers. */
static void write_cover(const struct chunk_op *op, uint32_t b, uint32_t *lo, uint32_t *hi)
{
    uint32_t base = b * CHUNK_BLOCK;

    *lo = op->offset > base ? op->offset - base : 0;
    *hi = MIN(write_end_offset(op) - base, CHUNK_BLOCK);
}

/* Whole blocks may land in a new slot that is mapped: then their sums cost next to nothing on the
 * way. Nothing looks at the data before that is known. */
static bool write_checks_later(const struct chunk_op *op)
{
    return op->crcs && !op->place && op->store->seg.in_memory && op->store->mapped_bytes &&
           (op->offset | op->len) % CHUNK_BLOCK == 0;
}

/* ---- plan ---- */

/* Memory for it is taken now: once blocks are written in place, the write must not fail. */
static int plan_log(struct chunk_op *op, uint32_t n)
{
    struct chunk_write *w = &op->write;
    int rc = n ? chunk_log_reserve(op->store, op->c, n) : 0;

    if (!n || rc)
        return rc;
    for (uint32_t b = w->from; b < w->to && b < op->c->cap_blocks; b++)
        if (CHUNK_BIT(op->c->locked, b) || CHUNK_BIT(op->c->logged, b))
            CHUNK_SET(w->log_map, b - w->from);
    w->n_log = n;
    return 0;
}

/* Does the chunk need a new slot for this? If not, so many of its blocks are logged. */
static bool plan_needs_slot(struct chunk_op *op, uint32_t new_len, enum slots_use *ret_use,
                            uint32_t *ret_log)
{
    struct chunk *c = op->c;
    struct chunk_write *w = &op->write;
    uint32_t locked = 0, touched = 0;

    *ret_use = SLOTS_NEW;
    if (!c->slot.class || new_len > (1u << c->slot.class))
        return true;
    for (uint32_t b = w->from; b < w->to; b++) {
        locked += CHUNK_BIT(c->locked, b);
        touched += CHUNK_BIT(c->locked, b) | CHUNK_BIT(c->logged, b);
    }
    if (touched && touched <= LOG_BLOCKS_MAX && chunk_log_has_room(op->store, touched)) {
        *ret_log = touched;
        return false;
    }
    *ret_use = SLOTS_MOVE;
    return locked != 0;
}

static int plan_slot(struct chunk_op *op, uint32_t new_len, enum slots_use use)
{
    struct slots *slots = &op->store->slots;
    unsigned need = slots_class_for(new_len), class = need;
    int rc;

    if (op->c->slot.class && new_len > (1u << op->c->slot.class))
        class = MAX(need, MIN(GROW_CLASS_MAX, op->c->slot.class + 2u));
    rc = slots_alloc(slots, class, use, &op->write.slot);
    if (rc == -ENOSPC && class > need)
        rc = slots_alloc(slots, need, use, &op->write.slot);
    if (rc == -ENOSPC && op->promise)
        rc = slots_alloc_owed(slots, need, use, op->promise, op->keep, &op->write.slot);
    return rc;
}

static void plan_edges(struct chunk_op *op)
{
    struct chunk_write *w = &op->write;
    uint32_t lo, hi;

    write_cover(op, w->from, &lo, &hi);
    w->head = lo != 0 || hi != CHUNK_BLOCK;
    write_cover(op, w->to - 1, &lo, &hi);
    w->tail = w->to - 1 != w->from && hi != CHUNK_BLOCK;
}

static struct chunk_slot write_slot(const struct chunk_op *op)
{
    return op->write.slot.class ? op->write.slot : op->c->slot;
}

/* A direct file takes only aligned memory. */
static bool write_is_misaligned(const struct chunk_op *op)
{
    uint64_t offset;
    struct seg_file *f = seg_of_slot(&op->store->seg, write_slot(op), &offset);
    uintptr_t at = (uintptr_t)op->data - op->offset % CHUNK_BLOCK;

    return f && f->file.direct && at % CHUNK_BLOCK;
}

static bool write_copies(const struct chunk_op *op)
{
    const struct chunk_write *w = &op->write;

    return w->slot.class && (w->from > 0 || w->to < chunk_blocks(op->c->len));
}

static void edges_got(struct buf_waiter *waiter, struct buf *b)
{
    struct chunk_op *op = container_of(waiter, struct chunk_op, write.waiter);

    op->write.edges = b;
    chunk_op_wake(op, 0);
}

static void copy_got(struct buf_waiter *waiter, struct buf *b)
{
    struct chunk_op *op = container_of(waiter, struct chunk_op, write.waiter);

    op->write.copy = b;
    chunk_op_wake(op, 0);
}

static int write_wait_space(struct chunk_op *op)
{
    struct chunk_store *s = op->store;

    op->write.retried = true;
    chunk_hold_release(op);
    chunk_commit_want_all(s);
    sm_move(&op->sm, W_SPACE);
    chunk_commit_with(op);
    return STEP_WAIT;
}

static int write_plan(struct chunk_op *op)
{
    struct chunk *c = op->c;
    struct chunk_write *w = &op->write;
    uint32_t new_len = MAX(c->len, write_end_offset(op)), n_log = 0;
    enum slots_use use = SLOTS_NEW;
    bool placed = chunk_place_fits(op);
    int rc = chunk_reserve(op->store, c, chunk_blocks(new_len));

    if (rc)
        return write_end(op, rc);
    if (placed || plan_needs_slot(op, new_len, &use, &n_log)) {
        if (!w->whole) {
            w->whole = true;
            sm_move(&op->sm, W_HOLD);
            chunk_hold_upgrade(op);
            return STEP_WAIT;
        }
        rc = placed ? chunk_place_take(op) : plan_slot(op, new_len, use);
        if (rc == -ENOSPC && !w->retried && !list_empty(&op->store->dirty))
            return write_wait_space(op);
        if (rc)
            return write_end(op, rc);
        stat_add(&op->store->n_moves, c->slot.class != 0);
    } else {
        rc = plan_log(op, n_log);
        if (rc)
            return write_end(op, rc);
    }
    plan_edges(op);
    if (w->head || w->tail) {
        sm_move(&op->sm, W_EDGES);
        w->waiter.fn = edges_got;
        buf_wait(op->store->edges, &w->waiter);
        return STEP_WAIT;
    }
    return STEP_AGAIN + 1; /* on to the buffer */
}

/* ---- edges ---- */

/* The old content of edge block b into dest; the answer comes by chunk_op_wake(). */
static void edge_fetch(struct chunk_op *op, uint32_t b, uint8_t *dest)
{
    struct chunk *c = op->c;
    uint32_t lo, hi, base = b * CHUNK_BLOCK, valid = c->len > base ? c->len - base : 0;

    write_cover(op, b, &lo, &hi);
    if (!lo && hi >= MIN(valid, CHUNK_BLOCK)) {
        memset(dest, 0, CHUNK_BLOCK);
        chunk_op_wake(op, 0);
        return;
    }
    chunk_fetch(op, b, b + 1, dest);
}

static uint32_t edge_merge(struct chunk_op *op, uint32_t b, uint8_t *dest)
{
    uint32_t lo, hi, base = b * CHUNK_BLOCK;

    write_cover(op, b, &lo, &hi);
    memcpy(dest + lo, (uint8_t *)op->data + (base + lo - op->offset), hi - lo);
    return crc32c(dest, CHUNK_BLOCK);
}

static int write_head(struct chunk_op *op)
{
    sm_move(&op->sm, W_HEAD);
    if (!op->write.head) {
        op->io_status = 0;
        return STEP_AGAIN;
    }
    edge_fetch(op, op->write.from, op->write.edges->data);
    return STEP_WAIT;
}

static int write_tail(struct chunk_op *op)
{
    struct chunk_write *w = &op->write;

    if (op->io_status)
        return write_end(op, op->io_status);
    if (w->head)
        w->head_crc = edge_merge(op, w->from, w->edges->data);
    sm_move(&op->sm, W_TAIL);
    if (!w->tail)
        return STEP_AGAIN;
    edge_fetch(op, w->to - 1, w->edges->data + CHUNK_BLOCK);
    return STEP_WAIT;
}

/* ---- copying along ---- */

/* The next run of blocks outside the write that exist: [w->next, w->next + w->run). */
static bool copy_find(struct chunk_op *op)
{
    struct chunk *c = op->c;
    struct chunk_write *w = &op->write;
    uint32_t b = w->next, blocks = chunk_blocks(c->len), e;

    for (;; b++) {
        if (b == w->from)
            b = w->to;
        if (b >= blocks)
            return false;
        if (CHUNK_BIT(c->present, b))
            break;
    }
    for (e = b; e < blocks && e != w->from && CHUNK_BIT(c->present, e); e++)
        if (e - b == CHUNK_IO_MAX / CHUNK_BLOCK)
            break;
    w->next = b;
    w->run = e - b;
    return true;
}

/* ---- writing ---- */

static const uint8_t *write_source(const struct chunk_op *op, uint32_t b)
{
    const struct chunk_write *w = &op->write;

    if (w->head && b == w->from)
        return w->edges->data;
    if (w->tail && b == w->to - 1)
        return w->edges->data + CHUNK_BLOCK;
    if (w->aligned)
        return w->aligned + (size_t)(b - w->from) * CHUNK_BLOCK;
    return (const uint8_t *)op->data + ((size_t)b * CHUNK_BLOCK - op->offset);
}

static void write_align(struct chunk_op *op)
{
    struct chunk_write *w = &op->write;

    for (uint32_t b = w->from; b < w->to; b++) {
        bool edge = (w->head && b == w->from) || (w->tail && b == w->to - 1);

        if (!edge)
            memcpy(w->copy->data + (size_t)(b - w->from) * CHUNK_BLOCK, write_source(op, b),
                   CHUNK_BLOCK);
    }
    w->aligned = w->copy->data;
}

/* Submits the next run of blocks that go to the slot; false: there is none left. */
static bool write_run(struct chunk_op *op)
{
    struct chunk_write *w = &op->write;
    uint32_t b = w->next, first;
    unsigned n = 0;

    while (b < w->to && CHUNK_BIT(w->log_map, b - w->from))
        b++;
    if (b >= w->to)
        return false;
    first = b;
    for (; b < w->to && !CHUNK_BIT(w->log_map, b - w->from); b++) {
        const uint8_t *src = write_source(op, b);
        struct iovec *last = n ? &op->iov[n - 1] : NULL;

        if (last && (uint8_t *)last->iov_base + last->iov_len == src)
            last->iov_len += CHUNK_BLOCK;
        else
            op->iov[n++] = (struct iovec){.iov_base = (void *)src, .iov_len = CHUNK_BLOCK};
    }
    w->next = b;
    chunk_store_blocks(op, write_slot(op), first, n, w->unchecked ? op->crcs : NULL);
    return true;
}

static uint32_t write_crc(const struct chunk_op *op, uint32_t b)
{
    const struct chunk_write *w = &op->write;

    if (w->head && b == w->from)
        return w->head_crc;
    if (w->tail && b == w->to - 1)
        return w->tail_crc;
    return op->crcs ? op->crcs[b - w->from] : crc32c(write_source(op, b), CHUNK_BLOCK);
}

/* Now it happened: readers see it, and the next commit takes it. */
static void write_apply(struct chunk_op *op)
{
    struct chunk_store *s = op->store;
    struct chunk *c = op->c;
    struct chunk_write *w = &op->write;
    uint32_t end = write_end_offset(op);

    if (w->slot.class) {
        chunk_log_drop(s, c, 0, UINT32_MAX);
        chunk_set_slot(s, c, w->slot);
        w->slot.class = 0;
        c->record_dirty = true;
    }
    for (uint32_t b = w->from; b < w->to; b++) {
        uint32_t crc = write_crc(op, b);

        if (CHUNK_BIT(w->log_map, b - w->from)) {
            chunk_log_put_reserved(s, c, b, write_source(op, b), crc);
            w->n_log--;
        } else {
            chunk_log_drop(s, c, b, b + 1);
            c->record_dirty = true;
        }
        c->crcs[b] = crc;
        CHUNK_SET(c->present, b);
    }
    if (end > c->len) {
        c->len = end;
        c->record_dirty = true;
    }
    chunk_note_op(c, op->op_id);
    if (c->truncate_gen != op->truncate_gen) {
        c->truncate_gen = op->truncate_gen;
        c->record_dirty = true;
    }
    chunk_mark_dirty(s, c, op->len);
}

static int write_finish(struct chunk_op *op)
{
    struct chunk_store *s = op->store;

    write_apply(op);
    write_put_buffers(op); /* before any commit: a writer of this chunk may wait for them */
    chunk_hold_release(op);
    chunk_fold_check(s);
    if (!op->stable && s->dirty_bytes <= s->options.dirty_bytes)
        return write_end(op, 0);
    sm_move(&op->sm, W_COMMIT);
    op->io_status = 0;
    return chunk_commit_wait(op, op->c, op->c->seq) ? STEP_WAIT : STEP_AGAIN;
}

static int write_data(struct chunk_op *op)
{
    sm_move(&op->sm, W_DATA);
    return write_run(op) ? STEP_WAIT : write_finish(op);
}

static int write_start_data(struct chunk_op *op)
{
    struct chunk_write *w = &op->write;
    int rc;

    /* A new slot is nobody's yet, so rubbish may be in it. */
    if (w->unchecked && !(w->slot.class && chunk_place_mapped(op->store, w->slot))) {
        w->unchecked = false;
        rc = chunk_check_sums(op);
        if (rc)
            return write_end(op, rc);
    }
    if (!w->aligned && write_is_misaligned(op))
        write_align(op);
    w->next = w->placed ? w->to : w->from; /* placed: it is there */
    return write_data(op);
}

static int write_copy(struct chunk_op *op)
{
    if (!copy_find(op))
        return write_start_data(op);
    sm_move(&op->sm, W_COPY_READ);
    chunk_fetch(op, op->write.next, op->write.next + op->write.run, op->write.copy->data);
    return STEP_WAIT;
}

static int write_copied(struct chunk_op *op)
{
    struct chunk_write *w = &op->write;

    sm_move(&op->sm, W_COPY_WRITE);
    op->iov[0] = (struct iovec){.iov_base = w->copy->data, .iov_len = (size_t)w->run * CHUNK_BLOCK};
    stat_add(&op->store->n_copied, w->run);
    w->next += w->run;
    chunk_store_blocks(op, w->slot, w->next - w->run, 1, NULL);
    return STEP_WAIT;
}

static int write_buffer(struct chunk_op *op)
{
    struct chunk_write *w = &op->write;

    if (!write_copies(op) && !write_is_misaligned(op))
        return write_start_data(op);
    sm_move(&op->sm, W_BUFFER);
    w->waiter.fn = copy_got;
    buf_wait(op->store->copies, &w->waiter);
    return STEP_WAIT;
}

static int write_gate(struct chunk_op *op)
{
    struct chunk_store *s = op->store;
    int rc = s->failed ? -EIO : chunk_gate_check(op, true);

    if (!rc)
        rc = chunk_get(s, op->inode, op->chunk, &op->c);
    if (rc)
        return write_end(op, rc);
    op->write.from = op->offset / CHUNK_BLOCK;
    op->write.to = chunk_blocks(write_end_offset(op));
    sm_move(&op->sm, W_HOLD);
    chunk_hold(op, op->write.from, op->write.to, true);
    return STEP_WAIT;
}

int op_write_step(struct chunk_op *op)
{
    struct chunk_write *w = &op->write;
    int rc;

    switch (sm_state(&op->sm)) {
    case W_START:
        w->unchecked = write_checks_later(op);
        rc = w->unchecked ? 0 : chunk_check_sums(op);
        if (rc)
            return write_end(op, rc);
        sm_move(&op->sm, W_GATE);
        chunk_gate_enter(op, false);
        return STEP_WAIT;
    case W_GATE:
        return write_gate(op);
    case W_HOLD:
        if (op->store->failed) /* while it waited */
            return write_end(op, -EIO);
        if (op->op_id && chunk_has_op(op->c, op->op_id))
            return write_end(op, 0); /* before a restart: what was written since stays */
        rc = write_plan(op);
        return rc > STEP_AGAIN ? write_buffer(op) : rc;
    case W_SPACE:
        if (op->io_status)
            return write_end(op, op->io_status);
        sm_move(&op->sm, W_HOLD);
        chunk_hold(op, 0, UINT32_MAX, true);
        return STEP_WAIT;
    case W_EDGES:
        return write_head(op);
    case W_HEAD:
        return write_tail(op);
    case W_TAIL:
        if (op->io_status)
            return write_end(op, op->io_status);
        if (w->tail)
            w->tail_crc = edge_merge(op, w->to - 1, w->edges->data + CHUNK_BLOCK);
        return write_buffer(op);
    case W_BUFFER:
        w->next = 0;
        return write_copies(op) ? write_copy(op) : write_start_data(op);
    case W_COPY_READ:
        return op->io_status ? write_end(op, op->io_status) : write_copied(op);
    case W_COPY_WRITE:
        return op->io_status ? write_end(op, op->io_status) : write_copy(op);
    case W_DATA:
        return op->io_status ? write_end(op, op->io_status) : write_data(op);
    default: /* W_COMMIT */
        return write_end(op, op->io_status);
    }
}
