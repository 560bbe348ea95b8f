/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small file that was to grow into chunks, and can not: a target is full or away, or GROW failed.
 *
 * The file is again what the server has: its inline record is the only good copy. What targets have
 * taken must never be read, so the server is told, under the same write lease (SIZE with give_up):
 * it makes them cut all of it, and refuse what is still under way. Until it has answered nothing is
 * sent to the targets, no flush ends and so no lease is given back; if it does not hear of it this
 * session is lost, and its eviction does the same.
 *
 * Failure: told again with the next tick, a bounded number of times. A file that has grown after
 * all, or whose server does not know give_up, is asked for as it is.
 */
#include "client/core/growth.h"

#include "client/core/core_int.h"

#define TELL_MAX 128u /* by the tick: longer than the lease time */

void inline_grow(struct core_inode *i)
{
    struct block *b = block_find(i->core, i, 0);

    i->in_line = false;
    i->need_grow = true;
    i->grow_error_seq = i->error_seq;
    i->meta_seq++;
    inode_mark_dirty(i);
    if (b && i->attr.size)
        block_dirty_valid(b);
}

/* What was written since has a report of its own to come. */
static void take_state(struct core_inode *i, const struct mds_op *op)
{
    const struct msg_inode_rep *rep = op->call.rep;

    inode_merge(i, &rep->inode, true);
    if (i->meta_seq == i->meta_done) {
        i->attr.size = i->acked_size = rep->inode.attr.size;
        i->attr.mtime = i->wrote_at = rep->inode.attr.mtime;
    }
}

static void growth_over(struct core_inode *i)
{
    i->giving_up = 0;
    flush_step(i);
}

static bool is_final(const struct core_inode *i, int status)
{
    return status == -ENOENT || status == -EBADF || status == -AIFS_ELEASE ||
           session_is_over(status) || i->core->forced;
}

/* True when the tick is to try it again. */
static bool failed(struct core_inode *i, int status)
{
    if (is_final(i, status))
        return false;
    if (++i->giving_up < TELL_MAX)
        return true;
    LOG_ERROR("client", "inode %llu: the server does not hear that it has not grown: %s",
              (unsigned long long)i->ino, err_text(status));
    return false;
}

/* A later session has its own word; this one's end has been noted. */
static bool is_old(struct core_inode *i, const struct mds_op *op)
{
    i->meta_busy = false;
    if (i->giving_up && op->n1 == i->core->session.epoch)
        return false;
    flush_step(i);
    return true;
}

static struct mds_op *growth_op(struct core_inode *i, unsigned opcode,
                                void (*done)(struct mds_op *op, int status))
{
    struct mds_op *op = mds_op_new(i->core, opcode, NULL, done);

    if (!op)
        return NULL; /* the tick comes here again */
    op->n1 = i->core->session.epoch;
    op->inode = inode_ref(i);
    op->writes_back = true;
    i->meta_busy = true;
    return op;
}

static void asked(struct mds_op *op, int status)
{
    struct core_inode *i = op->inode;

    if (is_old(i, op))
        return;
    if (status && failed(i, status))
        return;
    if (!status)
        take_state(i, op);
    if (!status && op->n2 && i->in_line && failed(i, -AIFS_ESTALE_TRUNC))
        growth_tell(i); /* it was cut meanwhile: of that generation, then */
    else
        growth_over(i);
}

static void told(struct mds_op *op, int status)
{
    struct core_inode *i = op->inode;
    bool outdated = status == -AIFS_ESTALE_LAYOUT || status == -AIFS_ESTALE_TRUNC;

    if (is_old(i, op))
        return;
    if (outdated && (op = growth_op(i, RPC_OP_GETATTR, asked)) != NULL) {
        op->n2 = status == -AIFS_ESTALE_TRUNC;
        op->msg.ino.ino = i->ino;
        mds_op_start(op);
        return;
    }
    if (outdated || (status && failed(i, status)))
        return;
    if (!status)
        take_state(i, op);
    growth_over(i);
}

void growth_tell(struct core_inode *i)
{
    struct mds_op *op;

    if (!list_empty(&i->ios))
        return; /* the last of them comes here again */
    op = growth_op(i, RPC_OP_SIZE, told);
    if (!op)
        return;
    FAULT_CRASH("client.grow.before_give_up");
    op->msg.size = (struct msg_size_req){
        .ino = i->ino,
        .open_id = inode_open_id(i),
        .truncate_gen = i->attr.truncate_gen,
        .layout_generation = i->layout.generation,
        .give_up = true,
    };
    mds_op_start(op);
}

bool growth_may_end(const struct core_inode *i)
{
    return i->need_grow && (i->server_has_inline || i->grow_trial);
}

void growth_give_up(struct core_inode *i)
{
    i->need_grow = false;
    i->in_line = true;
    i->giving_up = 1;
    i->gave_up++;
    flush_meta_over(i, i->meta_seq);
    blocks_drop_all(i, true);
    i->attr.size = i->acked_size = i->server_size;
    growth_tell(i);
}

bool growth_must_wait(const struct core_inode *i, uint64_t end)
{
    if (!i->giving_up && !(i->attr.flags & MSG_ATTR_PUNCH_PENDING))
        return false;
    if (i->in_line)
        return MAX(end, i->attr.size) > i->core->session.inline_max;
    return end > i->attr.size;
}
