/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small files, whose contents are at the metadata server: cached as block 0, which is then either
 * whole or absent.
 *
 * Happy path: OPEN brings the contents; reads are served from block 0; writes change it and the
 * flush sends it whole (flush.c). A write beyond the limit turns the file into a striped one on
 * this side: everything is dirty, and the flush ends with GROW. Without a lease contents are
 * fetched for each read and each write goes to the server, which merges it; what does not fit there
 * any more is written under a write lease asked for this purpose.
 */
#include "client/core/core_int.h"

bool inline_cached(const struct core_inode *i)
{
    const struct block *b;

    if (i->attr.size == 0)
        return true;
    b = block_find(i->core, i, 0);
    return b && extents_cover(&b->valid, 0, (uint32_t)MIN(i->attr.size, CORE_SMALL_BYTES));
}

void inline_saved(struct core_inode *i)
{
    struct block *b = i->in_line ? block_find(i->core, i, 0) : NULL;

    if (b)
        block_settle(b);
}

void inline_not_stored(struct core_inode *i)
{
    if (!i->in_line || i->lease != MSG_LEASE_WRITE || !list_empty(&i->truncations))
        return;
    blocks_drop_all(i, true);
    i->attr.size = i->acked_size = i->server_size;
}

void inline_load(struct core_inode *i, const struct msg_inode *m)
{
    uint32_t size = (uint32_t)MIN(i->attr.size, CORE_SMALL_BYTES);
    const struct msg_bytes *data = &m->data;
    struct block *b;

    if (i->lease == MSG_LEASE_NONE || !i->in_line || i->meta_seq != i->meta_done ||
        data->len > size || m->attr.change < i->attr.change) /* overtaken by what was written */
        return;
    i->server_has_inline = data->len > 0;
    if (!size)
        return;
    b = block_get(i, 0, CORE_SMALL_BYTES, MEM_GROW);
    if (!b)
        return; /* fetched again when it is wanted */
    if (data->len)
        memcpy(b->buf->data, data->data, data->len);
    memset(b->buf->data + data->len, 0, size - data->len); /* extended by truncate */
    extents_clear(&b->valid);
    if (extents_add(&b->valid, 0, size))
        extents_clear(&b->valid);
}

static void fetched(struct mds_op *op, int status)
{
    struct core_req *q = op->q;
    const struct msg_inode_rep *rep = op->call.rep;

    if (!status) {
        inode_merge(op->inode, &rep->inode, true);
        if (rep->inode.has_data)
            inline_load(op->inode, &rep->inode);
    }
    if (q)
        req_resume(q, status);
}

static struct mds_op *fetch(struct core_req *q, void (*done)(struct mds_op *op, int status))
{
    struct mds_op *op = mds_op_new(q->p.core, RPC_OP_GETATTR, q, done);

    if (op) {
        op->msg.ino.ino = q->p.inode->ino;
        op->msg.ino.flags = MSG_INO_DATA;
        op->msg.ino.open_id = q->p.file->open_id;
        mds_op_cred(op, &op->msg.ino.cred, &q->p.file->cred);
        op->inode = inode_ref(q->p.inode);
    }
    return op;
}

void inline_fetch(struct core_req *q, void (*resume)(struct core_req *q))
{
    q->p.resume = resume;
    req_call(q, fetch(q, fetched), "waits for the metadata server: GETATTR");
}

/* ---- reading ---- */

/* What is behind the record is zeros: a file that was extended by truncate only. */
static struct buf *compose(struct core_req *q, const struct msg_bytes *data, uint32_t len)
{
    struct buf *b = mem_get(q->p.core, len, MEM_GROW);
    uint32_t have =
        q->p.offset < data->len ? (uint32_t)MIN((uint64_t)len, data->len - q->p.offset) : 0;

    if (!b)
        return NULL;
    if (have)
        memcpy(b->data, (const uint8_t *)data->data + q->p.offset, have);
    memset(b->data + have, 0, len - have);
    return b;
}

static void read_called(struct mds_op *op, int status)
{
    struct core_req *q = op->q;
    const struct msg_inode_rep *rep = op->call.rep;
    const struct msg_bytes *data = status ? NULL : &rep->inode.data;
    struct core_inode *i = op->inode;
    struct buf *b;
    uint64_t size;
    uint32_t len;

    if (!status)
        inode_merge(i, &rep->inode, true);
    if (!q)
        return;
    q->p.op = NULL;
    q->p.cancel = NULL;
    if (status) {
        req_finish(q, status);
        return;
    }
    if (!(rep->inode.attr.flags & MSG_ATTR_INLINE) || i->meta_seq != i->meta_done) {
        read_run(q); /* it has grown, or was written, meanwhile */
        return;
    }
    if (data->len > MSG_INLINE_MAX) {
        req_finish(q, -AIFS_EPROTO);
        return;
    }
    inline_load(i, &rep->inode);
    size = rep->inode.attr.size;
    len = q->p.offset < size ? (uint32_t)MIN((uint64_t)q->p.len, size - q->p.offset) : 0;
    b = len ? compose(q, data, len) : NULL;
    if (len && !b) {
        req_wait(q, "waits for memory", req_finish);
        mem_wait(q->p.core, q, read_run);
        return;
    }
    if (b) {
        read_pin(q, b, 0, len);
        buf_put(b);
    }
    read_ready(q);
}

void inline_read(struct core_req *q)
{
    struct core_inode *i = q->p.inode;
    struct block *b = block_find(q->p.core, i, 0);

    if (i->lease != MSG_LEASE_NONE && b && i->attr.size <= CORE_SMALL_BYTES && inline_cached(i)) {
        q->p.core->stats.read_hits++;
        read_pin(q, b->buf, (uint32_t)q->p.offset,
                 (uint32_t)MIN((uint64_t)q->p.len, i->attr.size - q->p.offset));
        read_ready(q);
        return;
    }
    q->p.core->stats.read_misses++;
    req_call(q, fetch(q, read_called), "waits for the metadata server: GETATTR");
}

/* ---- writing ---- */

static void leased(struct mds_op *op, int status)
{
    struct core_req *q = op->q;
    struct core_inode *i = op->inode;
    const struct msg_inode_rep *rep = op->call.rep;

    if (!status) {
        inode_merge(i, &rep->inode, true);
        lease_reply(i, op, &rep->inode);
        if (mds_op_is_current(op))
            i->lease_temporary = i->lease == MSG_LEASE_WRITE;
        if (rep->inode.has_data)
            inline_load(i, &rep->inode);
        if (!i->lease_temporary)
            gate_growth_over(i); /* it was taken back meanwhile */
    }
    if (!q) {
        if (!status && i->lease_temporary)
            lease_give_up(i, MSG_LEASE_NONE);
        return;
    }
    req_resume(q, status);
}

void inline_lease(struct core_req *q, void (*resume)(struct core_req *q))
{
    struct mds_op *op;

    q->p.resume = resume;
    if (q->p.stale++ >= RETRY_STALE_MAX) { /* asked for again and again, and never given */
        LOG_WARN("client",
                 "%s of inode %llu: given up: its lease was asked for %u times, and the metadata "
                 "server has not given it",
                 q->p.what, (unsigned long long)q->p.ino, RETRY_STALE_MAX);
        req_finish(q, -EIO);
        return;
    }
    op = mds_op_new(q->p.core, RPC_OP_LEASE_GET, q, leased);
    if (op) {
        op->inode = inode_ref(q->p.inode);
        op->msg.lease = (struct msg_lease_req){.ino = q->p.inode->ino, .lease = MSG_LEASE_WRITE};
    }
    req_call(q, op, "waits for the metadata server: LEASE_GET");
}

static void write_called(struct mds_op *op, int status)
{
    struct core_req *q = op->q;
    struct core_inode *i = op->inode;
    const struct msg_inode_rep *rep = op->call.rep;
    uint64_t size = status ? 0 : rep->inode.attr.size;

    if (!status) {
        inode_merge(i, &rep->inode, true);
        blocks_drop_all(i, false);
    }
    if (!q)
        return;
    q->p.op = NULL;
    q->p.cancel = NULL;
    if (status == -AIFS_EINLINE_FULL) {
        inline_lease(q, write_run);
    } else if (status == -AIFS_ESTALE_LAYOUT || status == -AIFS_ESTALE_TRUNC) {
        req_outdated(q, status, write_run);
    } else if (status) {
        req_finish(q, status);
    } else {
        if (write_appends(q))
            q->p.offset = size - MIN(size, (uint64_t)q->p.len); /* not that of a newer answer */
        write_done(q);
    }
}

void inline_write_direct(struct core_req *q)
{
    struct core_inode *i = q->p.inode;
    bool append = write_appends(q);
    struct mds_op *op;
    uint8_t *copy;
    unsigned k;

    if ((append ? i->attr.size : q->p.offset) + q->p.len > q->p.core->session.inline_max) {
        inline_lease(q, write_run);
        return;
    }
    op = mds_op_new(q->p.core, RPC_OP_WRITE_INLINE, q, write_called);
    copy = op && !core_no_memory() ? arena_alloc(&op->arena, q->p.len) : NULL;
    if (!copy) {
        if (op)
            mds_op_drop(op);
        req_finish(q, -ENOMEM);
        return;
    }
    op->iov = (struct iovec){copy, q->p.len}; /* the call may outlive the request */
    for (k = 0; k < q->p.n_iov; k++) {
        memcpy(copy, q->p.iov[k].iov_base, q->p.iov[k].iov_len);
        copy += q->p.iov[k].iov_len;
    }
    op->inode = inode_ref(i);
    op->call.bulk_out = &op->iov;
    op->call.n_bulk_out = 1;
    op->msg.write_inline = (struct msg_write_inline_req){
        .ino = i->ino,
        .open_id = q->p.file->open_id,
        .offset = q->p.offset,
        .append = append,
        .mtime = atime_write_time(i),
        .truncate_gen = i->attr.truncate_gen,
        .layout_generation = i->layout.generation,
    };
    mds_op_cred(op, &op->msg.write_inline.cred, &q->p.file->cred);
    req_call(q, op, "waits for the metadata server: WRITE_INLINE");
}
