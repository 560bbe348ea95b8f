/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fallocate(2): ranges that become zeros, and sizes that grow without data.
 *
 * Happy path: the request closes the gate behind itself, so that nothing of this client reads or
 * writes the file. A small file is changed where it is cached. Of a striped one everything dirty is
 * written and committed, so that nothing old is sent again afterwards; then each target punches its
 * part (durable when it answers), the cache forgets the range, and size and mtime change as after a
 * write. Without a write lease the same is done on the targets alone and reported at once; a small
 * file is changed under a lease asked for this purpose.
 *
 * Failure: what some targets have punched stays punched; the range is forgotten in any case. A
 * punch that is sent again changes nothing more: a target finishes what came by an older connection
 * before it takes anything by the next.
 */
#include <linux/falloc.h>

#include "client/core/growth.h"
#include "client/core/span.h"

#define ALLOC_KEEPS_SIZE 0x1u
#define ALLOC_ZEROS      0x2u
#define ALLOC_SPACE      0x4u /* the range is to be filled: is there room? */
#define ALLOC_REFRESHED  0x8u

static void alloc_run(struct core_req *q);

static uint64_t alloc_end_of(const struct core_req *q)
{
    return q->p.n1;
}

static bool alloc_grows(const struct core_req *q)
{
    return !(q->p.flags & ALLOC_KEEPS_SIZE) && alloc_end_of(q) > q->p.inode->attr.size;
}

static void alloc_over(struct core_req *q, int status)
{
    struct core_inode *i = q->p.inode;

    if (i->lease_temporary)
        lease_give_up(i, MSG_LEASE_NONE);
    file_idle(q->p.file);
    gate_alone_leave(q);
    req_end(q, status);
    inode_put(i);
}

/* ---- the end: what was changed is to be stored at once, or later ---- */

static void alloc_stored(struct flush_wait *w)
{
    struct core_req *q = w->q;

    alloc_over(q, inode_error_since(q));
}

static void cancel_flush(struct core_req *q, int status)
{
    flush_cancel((struct flush_wait *)q->p.flush);
    req_finish(q, status);
}

static void alloc_flush(struct core_req *q, void (*done)(struct flush_wait *w))
{
    struct flush_wait *w = (struct flush_wait *)q->p.flush;

    *w = (struct flush_wait){.q = q};
    req_wait(q, "waits until it is stored", cancel_flush);
    flush_start(q->p.inode, w, true, done);
}

static void alloc_done(struct core_req *q)
{
    q->p.file->wrote = true;
    if (q->p.file->flags & O_DSYNC || q->p.inode->lease_temporary)
        alloc_flush(q, alloc_stored);
    else
        alloc_over(q, 0);
}

/* Under a write lease. Times change as local file systems do it: also when nothing else does. */
static void alloc_touch(struct core_req *q)
{
    inode_touch_data(q->p.inode, alloc_grows(q) ? alloc_end_of(q) : 0);
    alloc_done(q);
}

/* ---- without a lease: the metadata server is told at once ---- */

static void alloc_refreshed(struct core_req *q)
{
    alloc_done(q);
}

static void alloc_report(struct core_req *q);

static void size_called(struct mds_op *op, int status)
{
    struct core_req *q = op->q;

    if (!status)
        inode_answered(op);
    if (!q)
        return;
    q->p.op = NULL;
    q->p.cancel = NULL;
    if (status == -AIFS_ESTALE_TRUNC) /* cut meanwhile: where it ends now is where it ends */
        req_refresh(q, alloc_refreshed);
    else if (status == -AIFS_ESTALE_LAYOUT) /* grown, and only its attributes are known here */
        req_outdated(q, status, alloc_report);
    else if (status)
        req_finish(q, status);
    else
        alloc_done(q);
}

static void alloc_report(struct core_req *q)
{
    struct core_inode *i = q->p.inode;
    struct mds_op *op;

    if (!file_is_current(q->p.file)) {
        req_finish(q, -EIO);
        return;
    }
    op = mds_op_new(q->p.core, RPC_OP_SIZE, q, size_called);
    if (op) {
        op->inode = inode_ref(i);
        op->msg.size = (struct msg_size_req){
            .ino = i->ino,
            .open_id = q->p.file->open_id,
            .size = q->p.flags & ALLOC_KEEPS_SIZE ? 0 : alloc_end_of(q),
            .mtime = atime_write_time(q->p.inode),
            .truncate_gen = i->attr.truncate_gen,
            .layout_generation = i->layout.generation,
        };
    }
    req_call(q, op, "waits for the metadata server: SIZE");
}

/* ---- on the targets ---- */

static void forget_range(struct core_inode *i, uint64_t start, uint64_t end)
{
    uint32_t unit = stripe_block_bytes(&i->layout);
    struct list *l, *tmp;

    list_for_each_safe (l, tmp, &i->blocks) {
        struct block *b = list_entry(l, struct block, by_inode);

        if (b->index * unit < end && (b->index + 1) * unit > start)
            block_drop(b);
    }
}

static void alloc_punched(struct core_req *q, const struct span *s)
{
    struct core_inode *i = q->p.inode;

    forget_range(i, s->start, s->end);
    if (q->p.error)
        req_finish(q, q->p.error);
    else if (i->lease == MSG_LEASE_WRITE)
        alloc_touch(q);
    else
        alloc_report(q);
}

/* Under a write lease there is nothing behind the end. Without one somebody else may know of more
 * than we do. */
static void alloc_punch(struct core_req *q)
{
    struct core_inode *i = q->p.inode;
    uint64_t end = alloc_end_of(q);

    if (i->lease == MSG_LEASE_WRITE)
        end = MIN(end, i->attr.size);
    if (q->p.offset >= end) {
        alloc_touch(q);
        return;
    }
    span_start(q,
               &(struct span){
                   .kind = OSS_IO_PUNCH, .start = q->p.offset, .end = end, .done = alloc_punched});
}

/* A small file that could not grow is the server's record again: there is nothing to punch. Nor is
 * there in a file whose lease went with the session. */
static void alloc_flushed(struct flush_wait *w)
{
    struct core_req *q = w->q;

    if (q->p.inode->in_line || q->p.inode->lease != MSG_LEASE_WRITE ||
        !file_is_current(q->p.file)) {
        int err = inode_error_since(q);

        req_finish(q, err ? err : -EIO);
    } else {
        alloc_punch(q);
    }
}

static void alloc_striped(struct core_req *q)
{
    bool leased = q->p.inode->lease == MSG_LEASE_WRITE;

    if (q->p.flags & ALLOC_ZEROS && leased)
        alloc_flush(q, alloc_flushed);
    else if (q->p.flags & ALLOC_ZEROS)
        alloc_punch(q);
    else if (leased)
        alloc_touch(q);
    else if (alloc_grows(q))
        alloc_report(q);
    else
        alloc_done(q);
}

/* ---- small files ---- */

static void wait_memory(struct core_req *q)
{
    req_wait(q, "waits for memory", req_finish);
    mem_wait(q->p.core, q, alloc_run);
}

static void alloc_grow(struct core_req *q)
{
    struct core_inode *i = q->p.inode;

    if (!i->layout.table_len) {
        req_finish(q, -ENOSPC);
        return;
    }
    inline_grow(i);
    alloc_striped(q);
}

static void alloc_inline(struct core_req *q)
{
    struct core_inode *i = q->p.inode;
    uint64_t old = i->attr.size, size = alloc_grows(q) ? alloc_end_of(q) : old;
    uint64_t zero_end = q->p.flags & ALLOC_ZEROS ? MIN(alloc_end_of(q), old) : 0;
    struct block *b;

    if (!inline_cached(i)) {
        inline_fetch(q, alloc_run);
        return;
    }
    b = block_find(q->p.core, i, 0);
    if (b && b->buf == i->meta_buf && !block_own(b)) { /* on its way to the server as it is */
        wait_memory(q);
        return;
    }
    if (size > q->p.core->session.inline_max) {
        alloc_grow(q);
        return;
    }
    b = size ? block_get(i, 0, CORE_SMALL_BYTES, MEM_GROW) : NULL;
    if (size && !b) {
        wait_memory(q);
        return;
    }
    if (size > old) {
        memset(b->buf->data + old, 0, size - old);
        if (extents_add(&b->valid, 0, (uint32_t)size))
            extents_clear(&b->valid); /* cannot happen: it is one piece */
    }
    if (q->p.offset < zero_end)
        memset(b->buf->data + q->p.offset, 0, zero_end - q->p.offset);
    if (b)
        list_remove(&b->lru);
    alloc_touch(q);
    if (b)
        block_settle(b);
}

/* ---- the beginning ---- */

static void space_told(struct mds_op *op, int status)
{
    struct core_req *q = op->q;
    const struct msg_statfs_rep *rep = op->call.rep;
    uint64_t size;

    if (!q)
        return;
    q->p.op = NULL;
    q->p.cancel = NULL;
    size = MAX(q->p.inode->attr.size, q->p.offset);
    q->p.flags &= ~ALLOC_SPACE;
    if (status)
        req_finish(q, status);
    else if (alloc_end_of(q) > size && alloc_end_of(q) - size > rep->avail_bytes)
        req_finish(q, -ENOSPC);
    else
        alloc_run(q);
}

static void ask_space(struct core_req *q)
{
    struct mds_op *op = mds_op_new(q->p.core, RPC_OP_STATFS, q, space_told);

    if (op) {
        op->msg.ino.ino = q->p.inode->ino;
        mds_op_cred(op, &op->msg.ino.cred, &q->p.file->cred);
    }
    req_call(q, op, "waits for the metadata server: STATFS");
}

/* Of chunks: a range that exists already, or beyond an end that stays. */
static void alloc_nothing(struct core_req *q)
{
    if (q->p.inode->lease == MSG_LEASE_WRITE)
        alloc_touch(q);
    else
        alloc_report(q);
}

static void alloc_run(struct core_req *q)
{
    struct core_inode *i = q->p.inode;

    if (!file_ready(q, alloc_run))
        return;
    if (i->lease != MSG_LEASE_WRITE && !(q->p.flags & ALLOC_REFRESHED)) {
        q->p.flags |= ALLOC_REFRESHED;
        req_refresh(q, alloc_run);
        return;
    }
    if (growth_must_wait(i, alloc_grows(q) ? alloc_end_of(q) : 0)) {
        punch_wait(q, alloc_run);
        return;
    }
    if (q->p.flags & ALLOC_SPACE && alloc_end_of(q) > i->attr.size)
        ask_space(q);
    else if (!i->in_line && !alloc_grows(q) && !(q->p.flags & ALLOC_ZEROS))
        alloc_nothing(q);
    else if (!i->in_line)
        alloc_striped(q);
    else if (i->lease == MSG_LEASE_WRITE)
        alloc_inline(q);
    else
        inline_lease(q, alloc_run);
}

static void alloc_enter(struct core_req *q)
{
    if (gate_enter(q, alloc_enter))
        gate_alone(q, alloc_run);
}

static int check_mode(int mode, uint32_t *ret_flags)
{
    switch (mode) {
    case 0:
        *ret_flags = ALLOC_SPACE;
        return 0;
    case FALLOC_FL_KEEP_SIZE:
        *ret_flags = ALLOC_SPACE | ALLOC_KEEPS_SIZE;
        return 0;
    case FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE:
        *ret_flags = ALLOC_ZEROS | ALLOC_KEEPS_SIZE;
        return 0;
    case FALLOC_FL_ZERO_RANGE:
        *ret_flags = ALLOC_SPACE | ALLOC_ZEROS;
        return 0;
    case FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE:
        *ret_flags = ALLOC_SPACE | ALLOC_ZEROS | ALLOC_KEEPS_SIZE;
        return 0;
    default:
        return -EOPNOTSUPP;
    }
}

void core_fallocate(struct core *c, struct core_req *q, struct core_file *f, int mode,
                    uint64_t offset, uint64_t len)
{
    uint32_t flags = 0;
    int rc = check_mode(mode, &flags);

    req_begin(c, q, "fallocate", f->inode->ino);
    if (!core_usable(c, q))
        return;
    if (c->o.read_only)
        rc = -EROFS;
    else if ((f->flags & O_ACCMODE) == O_RDONLY || !creating_is_file(f))
        rc = -EBADF;
    else if (!rc && !len)
        rc = -EINVAL;
    else if (!rc && (offset > CORE_SIZE_MAX || len > CORE_SIZE_MAX - offset))
        rc = -EFBIG;
    if (rc) {
        req_end(q, rc);
        return;
    }
    q->p.file = f;
    q->p.inode = inode_ref(f->inode);
    q->p.offset = offset;
    q->p.n1 = offset + len;
    q->p.flags = flags;
    q->p.errors_before = q->p.inode->error_seq;
    q->p.end = alloc_over;
    f->busy++;
    alloc_enter(q);
}
