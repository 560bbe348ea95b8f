/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch: many operations of one entry, with one slot and one kept reply.
 *
 * Happy path: each is executed in its order and undone by itself when it fails; what became of all
 * of them is the entry's reply, which is committed with what they have changed. So a repetition of
 * the batch gets every outcome again, and none is executed twice. Failure modes: an operation that
 * the leader has kept out, or that finds another state than was resolved, is answered RETRY and
 * kept as that: its caller sends it by itself. Without memory for the reply nothing has happened.
 */
#include <string.h>

#include "mds/shard/shard_int.h"

static int item_execute(struct txn *t, const struct shard_entry *e, struct shard_item *i,
                        const void **ret_rep)
{
    shard_exec_fn *fn = i->op < RPC_OP_LIMIT ? t->shard->o.exec[i->op] : NULL;
    struct shard_entry one;
    int rc;

    if (!fn)
        return -EOPNOTSUPP;
    memset(&one, 0, offsetof(struct shard_entry, arena)); /* the memory is e's */
    one.op = i->op;
    one.session = e->session;
    one.generation = e->generation;
    one.index = e->index;
    one.now_ns = e->now_ns;
    one.msg = i->msg;
    one.check_resolved = i->check_resolved;
    memcpy(one.resolved, i->resolved, sizeof i->resolved);
    one.is_open[0] = one.is_open[1] = i->is_open;
    one.has_layout = i->has_layout;
    one.layout_status = i->layout_status;
    one.layout = i->layout;
    t->entry = &one;
    rc = fn(t, &one, ret_rep);
    i->result = rc == 0 ? one.result : 0;
    i->result_ino = rc == 0 ? one.result_ino : 0;
    return rc;
}

/* Its directory's attributes are told once, by the last of those that change it. */
static void item_reply(struct msg_batch_item_rep *to, struct msg_batch_item_rep *last,
                       const struct msg_inode_rep *rep)
{
    if (!rep)
        return;
    to->has_rep = true;
    to->rep = *rep;
    if (last && last->rep.has_dir && rep->has_dir && last->rep.dir.ino == rep->dir.ino)
        last->rep.has_dir = false;
}

int shard_exec_batch(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    struct msg_batch_rep *rep = txn_alloc(t, sizeof(*rep));
    struct msg_batch_item_rep *items = txn_alloc(t, e->n_items * sizeof(*items)), *last = NULL;

    if (!rep || !items)
        return -ENOMEM;
    memset(items, 0, e->n_items * sizeof(*items));
    for (uint32_t k = 0; k < e->n_items; k++) {
        struct shard_item *i = &e->items[k];
        struct overlay_undo *before = overlay_op_next(t->overlay);
        const void *one = NULL;

        if (i->status == 0)
            i->status = item_execute(t, e, i, &one);
        t->entry = e;
        if (i->status == 0) {
            item_reply(&items[k], last, one);
            last = one ? &items[k] : last;
        } else {
            overlay_op_undo_to(t->overlay, before);
        }
        items[k].status = err_to_wire(i->status);
    }
    *rep = (struct msg_batch_rep){.n_items = e->n_items, .items = items};
    *ret_rep = rep;
    return 0;
}
