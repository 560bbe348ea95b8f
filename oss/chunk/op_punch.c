// SPDX-License-Identifier: Apache-2.0
/*
 * PUNCH: [start, end) of the file becomes zeros: whole blocks become holes, the blocks at the edges
 * are logged with zeros; a chunk left without blocks gives its slot back. Lengths stay. Durable
 * when it ends; a crash before leaves some chunks punched and others not. Many chunks are committed
 * some at a time, so that a punch of any size takes bounded memory.
 */
#include "common/base/err.h"
#include "oss/chunk/store_int.h"

#define PUNCH_BATCH 4096u

static bool has_blocks(const struct chunk *c)
{
    for (uint32_t i = 0; i < c->cap_blocks / 64; i++)
        if (c->present[i])
            return true;
    return false;
}

static void punch_apply(struct chunk_op *op)
{
    struct chunk *c = op->c;

    if (c->slot.class && !has_blocks(c))
        chunk_set_slot(op->store, c, (struct chunk_slot){0});
    if (c->record_dirty || c->logs_dirty)
        chunk_mark_dirty(op->store, c, CHUNK_BLOCK);
    chunk_put(op->store, c);
    op->c = NULL;
}

/* The next chunk, or the commit of them all. */
static int punch_next(struct chunk_op *op)
{
    struct chunk_cut *cut = op->cut;
    uint64_t base;
    int rc;

    if (cut->next == cut->n_victims) {
        cut_put_block(op);
        sm_move(&op->sm, C_COMMIT);
        op->io_status = 0;
        return STEP_AGAIN;
    }
    base = cut->victims[cut->next].chunk * op->chunk_bytes;
    rc = chunk_get(op->store, op->inode, cut->victims[cut->next++].chunk, &op->c);
    if (rc)
        return cut_end(op, rc);
    return cut_zero(op, op->start > base ? (uint32_t)(op->start - base) : 0,
                    (uint32_t)MIN(op->end - base, op->chunk_bytes));
}

static int punch_gate(struct chunk_op *op)
{
    int rc = op->store->failed ? -EIO : chunk_gate_check(op, true);

    if (rc || op->start >= op->end)
        return cut_end(op, rc);
    sm_move(&op->sm, C_FLUSH);
    op->io_status = 0;
    return STEP_AGAIN;
}

static int punch_scan(struct chunk_op *op, uint64_t from)
{
    struct chunk_cut *cut = op->cut;

    cut->n_victims = cut->next = 0;
    cut->max_victims = PUNCH_BATCH;
    cut->more = false;
    sm_move(&op->sm, C_SCAN);
    cut_scan(op, from, (op->end - 1) / op->chunk_bytes);
    return STEP_WAIT;
}

static int punch_committed(struct chunk_op *op)
{
    if (op->io_status)
        return cut_end(op, op->io_status);
    if (cut_flush(op, true))
        return STEP_WAIT;
    return op->cut->more ? punch_scan(op, op->cut->scan_from) : cut_end(op, 0);
}

int op_punch_step(struct chunk_op *op)
{
    bool done = false;
    int rc;

    switch (sm_state(&op->sm)) {
    case C_START:
        return cut_start(op);
    case C_GATE:
        return punch_gate(op);
    case C_FLUSH:
        if (op->io_status)
            return cut_end(op, op->io_status);
        if (cut_flush(op, true))
            return STEP_WAIT;
        return punch_scan(op, op->start / op->chunk_bytes);
    case C_SCAN:
        return op->io_status ? cut_end(op, op->io_status) : punch_next(op);
    case C_COMMIT:
        return punch_committed(op);
    default:
        rc = cut_zero_step(op, &done);
        if (!done)
            return rc;
        punch_apply(op);
        return punch_next(op);
    }
}
