// SPDX-License-Identifier: Apache-2.0
/*
 * TRUNCATE by generation: the inode's data from an offset on goes, its record takes the new
 * generation, all in one batch. A generation that was applied before is acknowledged and changes
 * nothing, so that a repeated request cannot cut what was written since.
 *
 * gate (alone) -> commit what is dirty -> list the chunks behind -> cut the one in the middle ->
 * commit.
 */
#include "common/base/err.h"
#include "common/fault/fault.h"
#include "oss/chunk/store_int.h"

/* Chunks from this one on go as a whole. */
static uint64_t truncate_first(const struct chunk_op *op)
{
    return op->start / op->chunk_bytes + (op->start % op->chunk_bytes ? 1 : 0);
}

static void truncate_build(struct chunk_op *op)
{
    struct inode_record r = {.truncate_gen = op->truncate_gen};

    cut_kill(op, truncate_first(op));
    cut_put_inode(op, &r);
    if (op->c && op->c->record_dirty)
        chunk_commit_take(op->store, op->c);
}

static int truncate_commit(struct chunk_op *op)
{
    cut_put_block(op);
    op->build = truncate_build;
    sm_move(&op->sm, C_COMMIT);
    chunk_commit_with(op);
    return STEP_WAIT;
}

static int truncate_gate(struct chunk_op *op)
{
    if (op->inode->damaged)
        return cut_end(op, -AIFS_ECORRUPT);
    if (op->inode->tombstone || op->truncate_gen <= op->inode->gen_done)
        return cut_end(op, 0);
    if (op->store->failed)
        return cut_end(op, -EIO);
    sm_move(&op->sm, C_FLUSH);
    op->io_status = 0;
    return STEP_AGAIN;
}

/* The chunk that the cut goes through, if it reaches that far. */
static int truncate_boundary(struct chunk_op *op)
{
    uint32_t keep = (uint32_t)(op->start % op->chunk_bytes);
    int rc;

    if (!keep)
        return truncate_commit(op);
    rc = chunk_get(op->store, op->inode, op->start / op->chunk_bytes, &op->c);
    if (rc == -AIFS_ECORRUPT) /* an error to its readers, cut or not */
        return truncate_commit(op);
    if (rc)
        return cut_end(op, rc);
    if (op->c->len <= keep)
        return truncate_commit(op);
    return cut_zero(op, keep, UINT32_MAX);
}

static void truncate_cut(struct chunk_op *op)
{
    op->c->len = (uint32_t)(op->start % op->chunk_bytes);
    op->c->truncate_gen = op->truncate_gen;
}

int op_truncate_step(struct chunk_op *op)
{
    bool done = false;
    int rc;

    switch (sm_state(&op->sm)) {
    case C_START:
        return cut_start(op);
    case C_GATE:
        return truncate_gate(op);
    case C_FLUSH:
        if (op->io_status)
            return cut_end(op, op->io_status);
        if (cut_flush(op, true))
            return STEP_WAIT;
        sm_move(&op->sm, C_SCAN);
        cut_scan(op, truncate_first(op), UINT64_MAX);
        return STEP_WAIT;
    case C_SCAN:
        return op->io_status ? cut_end(op, op->io_status) : truncate_boundary(op);
    case C_COMMIT:
        if (!op->io_status)
            op->inode->gen = op->inode->gen_done = op->truncate_gen;
        return cut_end(op, op->io_status);
    default:
        rc = cut_zero_step(op, &done);
        if (!done)
            return rc;
        truncate_cut(op);
        return truncate_commit(op);
    }
}
