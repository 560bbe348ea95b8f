// SPDX-License-Identifier: Apache-2.0
/*
 * Folding: committed logged blocks are written to their homes in the slot, and the next commit,
 * which syncs the slot first, drops them from the index. The log record is whole and stays the
 * authority until then, so a torn home block harms nobody. One chunk after the other, oldest first,
 * in the background: when the log is half full, and now and then for what lies still.
 *
 * gate -> commit what is new of the chunk -> hold it whole -> write runs of blocks -> commit.
 */
#include <string.h>

#include "common/base/err.h"
#include "oss/chunk/store_int.h"

enum { F_START, F_GATE, F_COMMITTED, F_HOLD, F_BUFFER, F_WRITE, F_DROPPED, F_END };

static const struct sm_state states[] = {
    [F_START] = {"start", SM_BIT(F_GATE) | SM_BIT(F_END), false},
    [F_GATE] = {"gate", SM_BIT(F_COMMITTED) | SM_BIT(F_END), false},
    [F_COMMITTED] = {"committed", SM_BIT(F_HOLD) | SM_BIT(F_END), false},
    [F_HOLD] = {"hold", SM_BIT(F_BUFFER) | SM_BIT(F_END), false},
    [F_BUFFER] = {"buffer", SM_BIT(F_WRITE) | SM_BIT(F_DROPPED) | SM_BIT(F_END), false},
    [F_WRITE] = {"write", SM_BIT(F_WRITE) | SM_BIT(F_DROPPED) | SM_BIT(F_END), false},
    [F_DROPPED] = {"dropped", SM_BIT(F_END), false},
    [F_END] = {"end", 0, true},
};
const struct sm_conf op_fold_sm = {"chunk.fold", states, ARRAY_LEN(states)};

static void fold_put_buffer(struct chunk_op *op)
{
    buf_put(op->write.copy);
    op->write.copy = NULL;
}

static int fold_end(struct chunk_op *op, int status)
{
    fold_put_buffer(op);
    sm_move(&op->sm, F_END);
    return status;
}

static void fold_buffer(struct buf_waiter *w, struct buf *b)
{
    struct chunk_op *op = container_of(w, struct chunk_op, write.waiter);

    op->write.copy = b;
    chunk_op_wake(op, 0);
}

/* In the index, and nobody's committed record refers to its home. */
static bool is_foldable(const struct chunk *c, const struct chunk_log *l)
{
    return l->data && !(l->flags & CHUNK_LOG_DIRTY) && !CHUNK_BIT(c->locked, l->block);
}

/* Writes the next run of foldable blocks, from block w->next on; false: there is none. */
static bool fold_run(struct chunk_op *op)
{
    struct chunk *c = op->c;
    struct chunk_write *w = &op->write;
    uint32_t i = 0, n = 0;

    while (i < c->n_logs && (c->logs[i].block < w->next || !is_foldable(c, &c->logs[i])))
        i++;
    if (i == c->n_logs)
        return false;
    w->from = c->logs[i].block;
    for (; i < c->n_logs && n < CHUNK_IO_MAX / CHUNK_BLOCK; i++, n++) {
        if (c->logs[i].block != w->from + n || !is_foldable(c, &c->logs[i]))
            break;
        memcpy(w->copy->data + (size_t)n * CHUNK_BLOCK, c->logs[i].data, CHUNK_BLOCK);
    }
    w->to = w->next = w->from + n;
    op->iov[0] = (struct iovec){.iov_base = w->copy->data, .iov_len = (size_t)n * CHUNK_BLOCK};
    chunk_store_blocks(op, c->slot, w->from, 1, NULL);
    return true;
}

static int fold_next(struct chunk_op *op)
{
    struct chunk *c = op->c;

    if (fold_run(op)) {
        sm_move(&op->sm, F_WRITE);
        return STEP_WAIT;
    }
    sm_move(&op->sm, F_DROPPED);
    fold_put_buffer(op);
    chunk_hold_release(op);
    op->io_status = 0;
    return chunk_commit_wait(op, c, c->seq) ? STEP_WAIT : STEP_AGAIN;
}

static int fold_written(struct chunk_op *op)
{
    struct chunk_store *s = op->store;
    struct chunk_write *w = &op->write;

    if (op->io_status)
        return fold_end(op, op->io_status);
    chunk_log_drop(s, op->c, w->from, w->to);
    stat_add(&s->n_folded, w->to - w->from);
    op->c->record_dirty = true;
    chunk_mark_dirty(s, op->c, (uint64_t)(w->to - w->from) * CHUNK_BLOCK);
    return fold_next(op);
}

static int fold_gate(struct chunk_op *op)
{
    int rc = chunk_get(op->store, op->inode, op->chunk, &op->c);

    if (rc)
        return fold_end(op, rc);
    sm_move(&op->sm, F_COMMITTED);
    op->io_status = 0;
    return chunk_commit_wait(op, op->c, op->c->seq) ? STEP_WAIT : STEP_AGAIN;
}

int op_fold_step(struct chunk_op *op)
{
    switch (sm_state(&op->sm)) {
    case F_START:
        sm_move(&op->sm, F_GATE);
        chunk_gate_enter(op, false);
        return STEP_WAIT;
    case F_GATE:
        return fold_gate(op);
    case F_COMMITTED:
        if (op->io_status)
            return fold_end(op, op->io_status);
        sm_move(&op->sm, F_HOLD);
        chunk_hold(op, 0, UINT32_MAX, true);
        return STEP_WAIT;
    case F_HOLD:
        if (op->c->committing) /* somebody wrote meanwhile: another time */
            return fold_end(op, 0);
        sm_move(&op->sm, F_BUFFER);
        op->write.waiter.fn = fold_buffer;
        buf_wait(op->store->copies, &op->write.waiter);
        return STEP_WAIT;
    case F_BUFFER:
        op->write.next = 0;
        return fold_next(op);
    case F_WRITE:
        return fold_written(op);
    default: /* F_DROPPED */
        return fold_end(op, op->io_status);
    }
}

/* ---- which chunk, and when ---- */

static void fold_continue(struct chunk_store *s);

static void fold_done(struct chunk_op *op, int status)
{
    struct chunk_store *s = op->arg;

    s->folding = false;
    if (s->close_waits_fold)
        chunk_store_submit(s, &s->close_op);
    else if (!status)
        fold_continue(s);
}

static void fold_continue(struct chunk_store *s)
{
    struct chunk *c;

    if (s->folding || s->failed || s->closing || list_empty(&s->fold) || !s->fold_left)
        return;
    s->fold_left--;
    c = list_entry(s->fold.next, struct chunk, fold_link);
    list_remove(&c->fold_link);
    list_push_back(&s->fold, &c->fold_link);
    memset(&s->fold_op, 0, sizeof s->fold_op);
    s->fold_op.kind = CHUNK_FOLD;
    s->fold_op.ino = c->inode->ino;
    s->fold_op.chunk = c->index;
    s->fold_op.done = fold_done;
    s->fold_op.arg = s;
    s->folding = true;
    chunk_store_submit(s, &s->fold_op);
}

void chunk_fold_check(struct chunk_store *s)
{
    if (s->log_blocks * 2 < s->log_blocks_max)
        return;
    s->fold_left = MAX(s->fold_left, 16u);
    fold_continue(s);
}

void chunk_fold_all(struct chunk_store *s)
{
    struct list *l;
    uint32_t n = 0;

    list_for_each (l, &s->fold)
        n++;
    s->fold_left = MIN(n, 64u);
    fold_continue(s);
}
