// SPDX-License-Identifier: Apache-2.0
/*
 * COMMIT: everything of an inode (or of all) that was acknowledged before is durable when it ends.
 * FENCE: evicted sessions are remembered with the next batch. Both fail only when the store has,
 * and then always: chunks that the failed batch had are on no list of what is dirty any more.
 */
#include "common/base/err.h"
#include "oss/chunk/store_int.h"

enum { M_START, M_GATE, M_WAIT, M_END };

static const struct sm_state states[] = {
    [M_START] = {"start", SM_BIT(M_GATE) | SM_BIT(M_WAIT) | SM_BIT(M_END), false},
    [M_GATE] = {"gate", SM_BIT(M_WAIT) | SM_BIT(M_END), false},
    [M_WAIT] = {"wait", SM_BIT(M_WAIT) | SM_BIT(M_END), false},
    [M_END] = {"end", 0, true},
};
const struct sm_conf op_commit_sm = {"chunk.commit", states, ARRAY_LEN(states)};
const struct sm_conf op_fence_sm = {"chunk.fence", states, ARRAY_LEN(states)};

static int commit_end(struct chunk_op *op, int status)
{
    sm_move(&op->sm, M_END);
    return status;
}

/* A change up to target may not be durable yet. */
static bool is_behind(const struct chunk *c, uint64_t target)
{
    return c->seq > c->durable_seq && c->durable_seq < target;
}

static int commit_next_of_inode(struct chunk_op *op, uint64_t target)
{
    struct chunk *c, *first = NULL;
    struct list *l;

    list_for_each (l, &op->inode->chunks) {
        c = list_entry(l, struct chunk, inode_link);
        if (!is_behind(c, target))
            continue;
        chunk_commit_want(op->store, c);
        first = first ? first : c;
    }
    if (!first)
        return commit_end(op, 0);
    sm_move(&op->sm, M_WAIT);
    return chunk_commit_wait(op, first, target) ? STEP_WAIT : STEP_AGAIN;
}

static int commit_next_of_all(struct chunk_op *op, uint64_t target)
{
    struct chunk_store *s = op->store;
    bool behind = s->batch_posted || !list_empty(&s->batch_ops);
    struct list *l;

    list_for_each (l, &s->dirty)
        behind |= is_behind(list_entry(l, struct chunk, dirty_link), target);
    if (!behind)
        return commit_end(op, 0);
    sm_move(&op->sm, M_WAIT);
    chunk_commit_want_all(s);
    chunk_commit_with(op);
    return STEP_WAIT;
}

int op_commit_step(struct chunk_op *op)
{
    if (op->store->failed)
        return commit_end(op, op->store->failed);
    switch (sm_state(&op->sm)) {
    case M_START:
        op->start = op->store->seq; /* what came before */
        if (!op->ino)
            return commit_next_of_all(op, op->start);
        sm_move(&op->sm, M_GATE);
        chunk_gate_enter(op, false);
        return STEP_WAIT;
    case M_GATE:
        return commit_next_of_inode(op, op->start);
    default:
        if (op->io_status)
            return commit_end(op, op->io_status);
        return op->ino ? commit_next_of_inode(op, op->start) : commit_next_of_all(op, op->start);
    }
}

static void fence_build(struct chunk_op *op)
{
    uint8_t key[CHUNK_KEY_MAX], value[sizeof(struct fence_record_fmt)];

    for (uint32_t i = 0; i < op->n_fences; i++) {
        size_t key_len = chunk_key_fence(key, op->fences[i].session);
        size_t len = fence_record_encode(key, key_len, op->fences[i].generation, value);

        rocksdb_writebatch_put(op->store->batch.wb, (char *)key, key_len, (char *)value, len);
    }
}

int op_fence_step(struct chunk_op *op)
{
    if (sm_state(&op->sm) == M_WAIT)
        return commit_end(op, op->io_status);
    op->build = fence_build;
    sm_move(&op->sm, M_WAIT);
    chunk_commit_with(op);
    return STEP_WAIT;
}
