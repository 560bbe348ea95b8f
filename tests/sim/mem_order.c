/* SPDX-License-Identifier: Apache-2.0 */
/* What a simulated disk does next: any operation that nothing submitted before it must precede. See
 * "Order" in oss/chunk/store.h. */
#include "oss/chunk/store.h"
#include "tests/sim/sim.h"

static bool is_of_one_chunk(const struct chunk_op *op)
{
    return op->kind == CHUNK_READ || op->kind == CHUNK_WRITE;
}

static bool blocks_overlap(const struct chunk_op *a, const struct chunk_op *b)
{
    uint32_t a_from = a->offset / CHUNK_BLOCK, a_to = (a->offset + a->len - 1) / CHUNK_BLOCK;
    uint32_t b_from = b->offset / CHUNK_BLOCK, b_to = (b->offset + b->len - 1) / CHUNK_BLOCK;

    return a->chunk == b->chunk && a_from <= b_to && b_from <= a_to;
}

static bool are_ordered(const struct chunk_op *a, const struct chunk_op *b)
{
    if (!a->ino || a->ino != b->ino || a->kind == CHUNK_COMMIT || b->kind == CHUNK_COMMIT)
        return false;
    return !is_of_one_chunk(a) || !is_of_one_chunk(b) || blocks_overlap(a, b);
}

static bool may_run(const struct list *queue, const struct chunk_op *op)
{
    const struct list *l;

    for (l = queue->next; l != &op->wait_link; l = l->next)
        if (are_ordered(container_of(l, const struct chunk_op, wait_link), op))
            return false;
    return true;
}

bool sim_chunks_first_time(const struct chunk_op *op, uint64_t op_ids[2])
{
    if (op->op_id && (op_ids[0] == op->op_id || op_ids[1] == op->op_id)) {
        sim_hit(SIM_WRITE_REPEATED);
        return false;
    }
    if (op->op_id) {
        op_ids[1] = op_ids[0];
        op_ids[0] = op->op_id;
    }
    return true;
}

struct chunk_op *sim_chunks_draw(struct list *queue)
{
    struct chunk_op *drawn = NULL;
    unsigned n = 0;
    struct list *l;

    list_for_each (l, queue) {
        struct chunk_op *op = list_entry(l, struct chunk_op, wait_link);

        if (may_run(queue, op) && sim_below(++n) == 0)
            drawn = op;
    }
    list_remove(&drawn->wait_link);
    return drawn;
}
