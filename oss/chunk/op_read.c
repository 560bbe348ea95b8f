// SPDX-License-Identifier: Apache-2.0
/*
 * READ: blocks of a chunk into the caller's memory, each checked, with their sums; VERIFY: the
 * whole chunk through a buffer of the store, for its checks alone. A chunk that does not exist has
 * length 0.
 *
 * gate -> hold (shared) -> fetch. Fails with AIFS_ECORRUPT, EIO, AIFS_ESTALE_TRUNC, ENOENT.
 */
#include "common/base/err.h"
#include "oss/chunk/store_int.h"

enum { R_START, R_GATE, R_HOLD, R_BUFFER, R_FETCH, R_END };

static const struct sm_state states[] = {
    [R_START] = {"start", SM_BIT(R_GATE) | SM_BIT(R_END), false},
    [R_GATE] = {"gate", SM_BIT(R_HOLD) | SM_BIT(R_END), false},
    [R_HOLD] = {"hold", SM_BIT(R_BUFFER) | SM_BIT(R_FETCH) | SM_BIT(R_END), false},
    [R_BUFFER] = {"buffer", SM_BIT(R_FETCH) | SM_BIT(R_END), false},
    [R_FETCH] = {"fetch", SM_BIT(R_FETCH) | SM_BIT(R_END), false},
    [R_END] = {"end", 0, true},
};
const struct sm_conf op_read_sm = {"chunk.read", states, ARRAY_LEN(states)};

static int read_end(struct chunk_op *op, int status)
{
    buf_put(op->write.copy);
    op->write.copy = NULL;
    sm_move(&op->sm, R_END);
    return status;
}

static int read_gate(struct chunk_op *op)
{
    uint32_t from = op->offset / CHUNK_BLOCK, to = (op->offset + op->len) / CHUNK_BLOCK;
    int rc = op->kind == CHUNK_READ ? chunk_gate_check(op, false) : 0;

    if (!rc)
        rc = chunk_get(op->store, op->inode, op->chunk, &op->c);
    if (rc)
        return read_end(op, rc);
    sm_move(&op->sm, R_HOLD);
    if (op->kind == CHUNK_VERIFY)
        chunk_hold(op, 0, UINT32_MAX, false);
    else
        chunk_hold(op, from, to, false);
    return STEP_WAIT;
}

static void read_buffer(struct buf_waiter *w, struct buf *b)
{
    struct chunk_op *op = container_of(w, struct chunk_op, write.waiter);

    op->write.copy = b;
    chunk_op_wake(op, 0);
}

static int read_fetch(struct chunk_op *op)
{
    uint32_t from = op->offset / CHUNK_BLOCK, blocks = chunk_blocks(op->c->len);
    uint32_t to = MIN((op->offset + op->len) / CHUNK_BLOCK, blocks);

    if (from >= to)
        return read_end(op, 0);
    sm_move(&op->sm, R_FETCH);
    chunk_fetch(op, from, to, op->data);
    return STEP_WAIT;
}

/* The sums that go with the data: the stored ones, but for a last block that ends early. The chunk
 * may have grown meanwhile, behind the blocks that are held: only what was read is told. */
static void read_sums(struct chunk_op *op)
{
    struct chunk *c = op->c;
    uint32_t from = op->fetch.base, to = op->fetch.end;

    op->ret_len = MIN(c->len, to * CHUNK_BLOCK) - op->offset;
    op->ret_crcs = to - from;
    for (uint32_t b = from; b < to && op->crcs; b++)
        op->crcs[b - from] = CHUNK_BIT(c->present, b) ? c->crcs[b] : op->store->zero_crc;
    if (op->ret_len % CHUNK_BLOCK && op->crcs)
        op->crcs[to - 1 - from] = crc32c(
            (uint8_t *)op->data + (size_t)(to - 1 - from) * CHUNK_BLOCK, op->ret_len % CHUNK_BLOCK);
}

static int verify_next(struct chunk_op *op, uint32_t from)
{
    uint32_t to = MIN(from + CHUNK_IO_MAX / CHUNK_BLOCK, chunk_blocks(op->c->len));

    if (from >= to)
        return read_end(op, 0);
    sm_move(&op->sm, R_FETCH);
    chunk_fetch(op, from, to, op->write.copy->data);
    return STEP_WAIT;
}

int op_read_step(struct chunk_op *op)
{
    bool verify = op->kind == CHUNK_VERIFY;

    switch (sm_state(&op->sm)) {
    case R_START:
        sm_move(&op->sm, R_GATE);
        chunk_gate_enter(op, false);
        return STEP_WAIT;
    case R_GATE:
        return read_gate(op);
    case R_HOLD:
        if (!verify)
            return read_fetch(op);
        sm_move(&op->sm, R_BUFFER);
        op->write.waiter.fn = read_buffer;
        buf_wait(op->store->copies, &op->write.waiter);
        return STEP_WAIT;
    case R_BUFFER:
        return verify_next(op, 0);
    case R_FETCH:
        if (op->io_status)
            return read_end(op, op->io_status);
        if (verify)
            return verify_next(op, op->fetch.end);
        read_sums(op);
        return read_end(op, 0);
    default:
        return read_end(op, -EINVAL);
    }
}
