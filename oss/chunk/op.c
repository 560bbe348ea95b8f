// SPDX-License-Identifier: Apache-2.0
/*
 * Running an operation: its step function is called until it waits or ends; whatever it waits for
 * calls chunk_op_wake(), which may also happen inside the step (the plain I/O engine completes at
 * once), so that no recursion grows with the size of a request. The end gives back the hold, the
 * chunk, the gate and the inode, then runs done().
 *
 * The gate of an inode lets many operations on single chunks in, or one on the whole inode; the
 * hold of a chunk serialises operations whose blocks overlap. Both are granted in order of arrival.
 */
#include <string.h>

#include "common/base/assert.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "oss/chunk/store_int.h"

static const struct {
    int (*step)(struct chunk_op *op);
    const struct sm_conf *sm;
} op_table[] = {
    [CHUNK_READ] = {op_read_step, &op_read_sm},
    [CHUNK_VERIFY] = {op_read_step, &op_read_sm},
    [CHUNK_WRITE] = {op_write_step, &op_write_sm},
    [CHUNK_COMMIT] = {op_commit_step, &op_commit_sm},
    [CHUNK_TRUNCATE] = {op_truncate_step, &op_truncate_sm},
    [CHUNK_PUNCH] = {op_punch_step, &op_punch_sm},
    [CHUNK_DESTROY] = {op_destroy_step, &op_destroy_sm},
    [CHUNK_SEAL] = {op_seal_step, &op_seal_sm},
    [CHUNK_SEEK] = {op_seek_step, &op_seek_sm},
    [CHUNK_FENCE] = {op_fence_step, &op_fence_sm},
    [CHUNK_FOLD] = {op_fold_step, &op_fold_sm},
};

static bool gate_open(const struct chunk_inode *i, bool exclusive)
{
    return !i->exclusive && (!exclusive || !i->shared);
}

static void gate_take(struct chunk_op *op)
{
    op->gate_held = true;
    if (op->gate_exclusive)
        op->inode->exclusive = true;
    else
        op->inode->shared++;
}

void chunk_gate_enter(struct chunk_op *op, bool exclusive)
{
    struct chunk_inode *i = op->inode;

    op->gate_exclusive = exclusive;
    if (list_empty(&i->waiting) && gate_open(i, exclusive)) {
        gate_take(op);
        chunk_op_wake(op, 0);
        return;
    }
    list_push_back(&i->waiting, &op->wait_link);
}

/* The caller holds a reference on the inode. */
static void gate_leave(struct chunk_op *op)
{
    struct chunk_inode *i = op->inode;

    if (!op->gate_held)
        return;
    op->gate_held = false;
    if (op->gate_exclusive)
        i->exclusive = false;
    else
        i->shared--;
    if (i->granting) /* called by what was woken below: that loop goes on with it */
        return;
    i->granting = true;
    while (!list_empty(&i->waiting)) {
        struct chunk_op *next = list_entry(i->waiting.next, struct chunk_op, wait_link);

        if (!gate_open(i, next->gate_exclusive))
            break;
        list_remove(&next->wait_link);
        gate_take(next);
        chunk_op_wake(next, 0);
    }
    i->granting = false;
}

int chunk_gate_check(struct chunk_op *op, bool writes)
{
    struct chunk_inode *i = op->inode;

    if (i->damaged)
        return -AIFS_ECORRUPT;
    if (i->tombstone)
        return -ENOENT;
    if (op->truncate_gen < i->gen)
        return -AIFS_ESTALE_TRUNC;
    if (writes)
        i->gen = op->truncate_gen;
    return 0;
}

static struct chunk_op *hold_op(struct list *l)
{
    return container_of(l, struct chunk_op, hold.link);
}

static bool hold_conflicts(const struct chunk *c, const struct chunk_op *op)
{
    const struct list *l;

    if (op->hold.exclusive && c->barrier)
        return true;
    for (l = c->holds.next; l != &c->holds; l = l->next) {
        const struct chunk_op *other = container_of(l, const struct chunk_op, hold.link);

        if ((op->hold.exclusive || other->hold.exclusive) && op->hold.from < other->hold.to &&
            other->hold.from < op->hold.to)
            return true;
    }
    return false;
}

static void hold_take(struct chunk *c, struct chunk_op *op)
{
    op->hold.held = true;
    list_push_back(&c->holds, &op->hold.link);
    c->writers += op->hold.exclusive;
}

void chunk_hold(struct chunk_op *op, uint32_t from, uint32_t to, bool exclusive)
{
    struct chunk *c = op->c;

    ASSERT(!op->hold.held);
    op->hold.from = from;
    op->hold.to = to;
    op->hold.exclusive = exclusive;
    if (list_empty(&c->hold_queue) && !hold_conflicts(c, op)) {
        hold_take(c, op);
        chunk_op_wake(op, 0);
        return;
    }
    list_push_back(&c->hold_queue, &op->hold.link);
}

void chunk_hold_grant(struct chunk_store *s, struct chunk *c)
{
    if (c->granting) /* called by what was woken below: that loop goes on with it */
        return;
    c->granting = true;
    c->refs++; /* what is woken may end and let go of it */
    while (!list_empty(&c->hold_queue)) {
        struct chunk_op *op = hold_op(c->hold_queue.next);

        if (hold_conflicts(c, op))
            break;
        list_remove(&op->hold.link);
        hold_take(c, op);
        chunk_op_wake(op, 0);
    }
    c->granting = false;
    chunk_put(s, c);
}

void chunk_hold_upgrade(struct chunk_op *op)
{
    struct chunk *c = op->c;

    list_remove(&op->hold.link);
    c->writers -= op->hold.exclusive;
    if (c->barrier && !c->writers)
        chunk_commit_schedule(op->store);
    op->hold.held = false;
    op->hold.from = 0;
    op->hold.to = UINT32_MAX;
    op->hold.exclusive = true;
    list_push_front(&c->hold_queue, &op->hold.link);
    chunk_hold_grant(op->store, c);
}

void chunk_hold_release(struct chunk_op *op)
{
    struct chunk *c = op->c;

    if (!op->hold.held)
        return;
    op->hold.held = false;
    list_remove(&op->hold.link);
    c->writers -= op->hold.exclusive;
    if (c->barrier && !c->writers)
        chunk_commit_schedule(op->store);
    chunk_hold_grant(op->store, c);
}

static void op_finish(struct chunk_op *op, int status)
{
    struct chunk_store *s = op->store;
    struct chunk_inode *i = op->inode;

    if (op->kind == CHUNK_WRITE)
        op_write_fini(op);
    if (op->cut)
        op_cut_fini(op);
    if (op->c) {
        chunk_hold_release(op);
        chunk_put(s, op->c);
        op->c = NULL;
    }
    if (i) {
        gate_leave(op);
        op->inode = NULL;
        chunk_inode_put(s, i);
    }
    sm_fini(&op->sm);
    op->done(op, status);
}

void chunk_op_wake(struct chunk_op *op, int status)
{
    int rc;

    op->io_status = status;
    op->woken = true;
    if (op->running)
        return;
    op->running = true;
    do {
        op->woken = false;
        rc = op->step(op);
        if (rc <= 0) {
            op_finish(op, rc);
            return;
        }
    } while (rc == STEP_AGAIN || op->woken);
    op->running = false;
}

static int op_check(const struct chunk_op *op)
{
    bool io = op->kind == CHUNK_READ || op->kind == CHUNK_WRITE;

    if (op->kind != CHUNK_FENCE && op->kind != CHUNK_COMMIT &&
        (!op->ino || op->ino == UINT64_MAX || op->chunk == UINT64_MAX))
        return -EINVAL;
    if (io && (!op->len || op->len > CHUNK_IO_MAX || op->offset >= CHUNK_MAX_BYTES ||
               op->len > CHUNK_MAX_BYTES - op->offset))
        return -EINVAL;
    if (op->kind == CHUNK_READ && (op->offset % CHUNK_BLOCK || op->len % CHUNK_BLOCK))
        return -EINVAL;
    if (op->kind == CHUNK_SEEK && (!op->stride || op->end > INT64_MAX))
        return -EINVAL;
    if (op->kind == CHUNK_TRUNCATE || op->kind == CHUNK_PUNCH || op->kind == CHUNK_SEAL ||
        op->kind == CHUNK_SEEK)
        if (op->chunk_bytes < (1u << CHUNK_CLASS_MIN) || op->chunk_bytes > CHUNK_MAX_BYTES ||
            (op->chunk_bytes & (op->chunk_bytes - 1)))
            return -EINVAL;
    return 0;
}

void chunk_store_submit(struct chunk_store *s, struct chunk_op *op)
{
    int rc = op_check(op);

    s->n_ops++;
    op->store = s;
    op->step = op_table[op->kind].step;
    list_init(&op->wait_link);
    list_init(&op->hold.link);
    if (!rc && op->ino)
        rc = chunk_inode_get(s, op->ino, &op->inode);
    if (rc) {
        op->done(op, rc);
        return;
    }
    sm_init(&op->sm, op_table[op->kind].sm, 0);
    op->sm.id = op->ino;
    chunk_op_wake(op, 0);
}
