// SPDX-License-Identifier: Apache-2.0
/*
 * DESTROY: all chunks of an inode go and a tombstone stays, in one batch. What was not committed is
 * thrown away without being written, unless a commit takes it while the chunks are listed, which
 * takes several turns when there are many: then they are listed again. Doing it again is
 * acknowledged.
 */
#include "common/base/err.h"
#include "oss/chunk/store_int.h"

static void destroy_build(struct chunk_op *op)
{
    struct inode_record r = {
        .truncate_gen = op->inode->gen_done,
        .tombstone = true,
        .destroyed_ns = (uint64_t)clock_wall_ns(reactor_clock(op->store->reactor)),
    };

    cut_kill(op, 0);
    cut_put_inode(op, &r);
}

static int destroy_gate(struct chunk_op *op)
{
    if (op->inode->tombstone)
        return cut_end(op, 0);
    if (op->store->failed)
        return cut_end(op, -EIO);
    sm_move(&op->sm, C_FLUSH);
    op->io_status = 0;
    return STEP_AGAIN;
}

static int destroy_scanned(struct chunk_op *op)
{
    if (op->io_status)
        return cut_end(op, op->io_status);
    if (op->inode->taken != op->cut->taken) { /* slots that were listed may be another's by now */
        op->cut->n_victims = 0;
        sm_move(&op->sm, C_FLUSH);
        return STEP_AGAIN;
    }
    op->build = destroy_build;
    sm_move(&op->sm, C_COMMIT);
    chunk_commit_with(op);
    return STEP_WAIT;
}

int op_destroy_step(struct chunk_op *op)
{
    switch (sm_state(&op->sm)) {
    case C_START:
        return cut_start(op);
    case C_GATE:
        return destroy_gate(op);
    case C_FLUSH:
        if (op->io_status)
            return cut_end(op, op->io_status);
        if (cut_flush(op, false))
            return STEP_WAIT;
        sm_move(&op->sm, C_SCAN);
        cut_scan(op, 0, UINT64_MAX);
        return STEP_WAIT;
    case C_SCAN:
        return destroy_scanned(op);
    default: /* C_COMMIT */
        if (!op->io_status) {
            op->inode->tombstone = true;
            op->inode->damaged = false;
        }
        return cut_end(op, op->io_status);
    }
}
