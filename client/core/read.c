/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading.
 *
 * Happy path: the request passes the inode's gate; under a lease, streams, small files and what is
 * cached are served from blocks (missing ones are fetched whole, all stripes at once, and
 * read-ahead keeps the next ones in flight); everything else goes straight between targets and the
 * reader's memory (direct.c). The answer is a list of pieces of buffers, pinned until
 * core_read_done().
 *
 * A request that has to wait (memory, a block under way) starts again from read_run() afterwards
 * and finds more in place each time.
 */
#include "client/core/core_int.h"

#define READ_PLANNED    0x1u
#define READ_SEQUENTIAL 0x2u
#define READ_REFRESHED  0x4u
#define READ_ALONE      0x8u
#define STREAM_RESTS_NS NS_PER_S /* without a read it is none any more */

static void unpin(struct core_req *q)
{
    while (q->p.n_pins)
        mem_put(q->p.core, q->p.pins[--q->p.n_pins]);
}

static void read_end(struct core_req *q, int status)
{
    struct core_inode *i = q->p.inode;

    if (status)
        unpin(q);
    else if (!(q->p.file->flags & O_NOATIME))
        atime_read(i);
    file_idle(q->p.file);
    if (q->p.entered)
        gate_leave(i);
    req_end(q, status);
    inode_put(i);
}

void read_pin(struct core_req *q, struct buf *b, uint32_t offset, uint32_t len)
{
    if (b) {
        buf_ref(b);
        q->p.pins[q->p.n_pins++] = b;
    }
    q->out.read.iov[q->out.read.n_iov++] = (struct iovec){b->data + offset, len};
    q->out.read.bytes += len;
}

/* The reader named its memory: bring there what is not there yet. */
static void gather(struct core_req *q)
{
    uint8_t *dst = q->p.dst;
    unsigned k;

    for (k = 0; k < q->out.read.n_iov; k++) {
        if (q->out.read.iov[k].iov_base != dst)
            memcpy(dst, q->out.read.iov[k].iov_base, q->out.read.iov[k].iov_len);
        dst += q->out.read.iov[k].iov_len;
    }
    unpin(q);
    q->out.read.iov[0] = (struct iovec){q->p.dst, q->out.read.bytes};
    q->out.read.n_iov = q->out.read.bytes ? 1 : 0;
}

void read_ready(struct core_req *q)
{
    struct core *c = q->p.core;

    if (q->p.dst)
        gather(q);
    c->stats.reads++;
    c->stats.read_bytes += q->out.read.bytes;
    q->p.file->bytes_read += q->out.read.bytes;
    read_end(q, 0);
}

void core_read_done(struct core_req *q)
{
    unpin(q);
}

static uint32_t round_up_block(uint64_t bytes)
{
    return (uint32_t)((bytes + CRC_BLOCK_BYTES - 1) / CRC_BLOCK_BYTES * CRC_BLOCK_BYTES);
}

/* How far a block is worth fetching: a stream wants all of it. */
static uint32_t fetch_end(const struct core_inode *i, const struct stripe_piece *p, bool whole)
{
    uint32_t unit = stripe_block_bytes(&i->layout);
    uint64_t base = p->block * unit;

    if (!whole)
        return round_up_block(p->start + p->len);
    return round_up_block(MIN((uint64_t)unit, i->attr.size > base ? i->attr.size - base : 1));
}

/* false: no memory, without which it is not worth it. */
static bool fetch_range(struct core_inode *i, uint64_t at, uint64_t range_end, bool whole)
{
    while (at < range_end) {
        struct stripe_piece p = stripe_cut(&i->layout, at, range_end);
        uint32_t end = fetch_end(i, &p, whole);
        struct block *b =
            straight_touches(i, p.block) ? NULL : block_get(i, p.block, end, MEM_GROW);

        if (!b || block_fill(b, whole ? 0 : p.start, end, true))
            return false;
        at += p.len;
    }
    return true;
}

static void read_ahead(struct core_req *q)
{
    struct readahead_plan *a = &q->p.ahead;

    while (a->start < a->end) {
        if (!fetch_range(q->p.inode, a->start, a->end, a->sequential))
            return;
        if (a->count > 1) {
            a->count--;
            a->start += (uint64_t)a->step;
            a->end += (uint64_t)a->step;
        } else {
            a->start = a->end = 0;
        }
    }
}

/* Starts fetching what is missing; the first block that is not complete is where the request
 * waits. */
static bool blocks_complete(struct core_req *q, uint64_t end)
{
    struct core_inode *i = q->p.inode;
    struct block *wait_for = NULL;
    uint64_t at = q->p.offset;

    while (at < end) {
        struct stripe_piece p = stripe_cut(&i->layout, at, end);
        uint32_t fill_end = fetch_end(i, &p, q->p.flags & READ_SEQUENTIAL);
        struct block *b = block_get(i, p.block, fill_end, MEM_GROW);

        if (!b) {
            req_wait(q, "waits for memory", req_finish);
            mem_wait(q->p.core, q, read_run);
            return false;
        }
        if (!extents_cover(&b->valid, p.start, p.start + p.len)) {
            if (block_fill(b, p.start, fill_end, false)) {
                req_wait(q, "waits for memory", req_finish);
                mem_wait(q->p.core, q, read_run);
                return false;
            }
            if (!wait_for)
                wait_for = b;
        }
        at += p.len;
    }
    read_ahead(q);
    if (!wait_for)
        return true;
    q->p.core->stats.read_misses++;
    req_wait(q, "waits for OSS_READ", req_finish);
    block_wait(wait_for, q, read_run);
    return false;
}

static bool reader_keeps(const struct core_req *q)
{
    return q->p.core->o.readers_cache && !q->direct && !(q->p.file->flags & O_DIRECT);
}

static void cached_read(struct core_req *q, uint64_t end)
{
    struct core_inode *i = q->p.inode;
    uint32_t unit = stripe_block_bytes(&i->layout);
    uint64_t at = q->p.offset;

    if (!blocks_complete(q, end))
        return;
    while (at < end) {
        struct stripe_piece p = stripe_cut(&i->layout, at, end);
        struct block *b = block_find(q->p.core, i, p.block);

        if (!b || !extents_cover(&b->valid, p.start,
                                 p.start + p.len)) { /* evicted for its own neighbour */
            unpin(q);
            q->out.read.n_iov = q->out.read.bytes = 0;
            req_wait(q, "waits for memory", req_finish);
            mem_wait(q->p.core, q, read_run);
            return;
        }
        read_pin(q, b->buf, p.start, p.len);
        block_wanted(b);
        at += p.len;
        if (reader_keeps(q) && (p.start + p.len == unit || at == i->attr.size))
            block_spend(b);
    }
    q->p.core->stats.read_hits++;
    read_ready(q);
}

static bool any_cached(struct core_req *q, uint64_t end)
{
    struct core_inode *i = q->p.inode;
    uint64_t at = q->p.offset;

    if (!i->n_blocks)
        return false;
    while (at < end) {
        struct stripe_piece p = stripe_cut(&i->layout, at, end);

        const struct block *b = block_find(q->p.core, i, p.block);

        if (b && (!b->scatter || extents_overlap(&b->valid, p.start, p.start + p.len)))
            return true;
        at += p.len;
    }
    return false;
}

void read_stream_end(struct core_file *f)
{
    f->inode->core->n_streams -= !list_empty(&f->streaming);
    list_remove(&f->streaming);
}

static void stream_goes_on(struct core_file *f)
{
    struct core *c = f->inode->core;

    read_stream_end(f);
    f->streamed_ns = reactor_now_ns(c->reactor);
    list_push_back(&c->streams, &f->streaming);
    c->n_streams++;
}

/* Those that rest are left out from here on. */
static uint32_t streams_alive(struct core *c)
{
    const uint64_t now = reactor_now_ns(c->reactor);

    while (c->n_streams) {
        struct core_file *first = list_entry(c->streams.next, struct core_file, streaming);

        if (now - first->streamed_ns <= STREAM_RESTS_NS)
            break;
        read_stream_end(first);
    }
    return c->n_streams;
}

/* Enough for all stripes, and of what all files together may have fetched and not read yet no more
 * than is left: one that begins while others hold everything gets a block. */
static uint64_t readahead_max(const struct core_inode *i)
{
    const struct core *c = i->core;
    uint64_t stripes = (uint64_t)i->layout.stripe_count * CORE_LARGE_BYTES * 2;
    uint64_t max = MIN(MIN(MAX(stripes, (uint64_t)4 * MIB), (uint64_t)32 * MIB), c->max_dirty / 4);
    uint64_t left = c->max_ahead > c->ahead_bytes ? c->max_ahead - c->ahead_bytes : 0;

    if (c->o.readahead_bytes)
        max = c->o.readahead_bytes;
    return MAX(MIN(max, left), stripe_block_bytes(&i->layout));
}

/* Streams that are read at the same time share what one alone would have: together they keep the
 * stripes busy, and what comes early for one comes late for another. Two blocks are left to each.
 */
static uint64_t stream_max(struct core_file *f)
{
    const uint64_t max = readahead_max(f->inode), block = stripe_block_bytes(&f->inode->layout);
    const uint32_t n = streams_alive(f->inode->core) + list_empty(&f->streaming);

    return MIN(max, MAX(max / n, 2 * block));
}

/* Takes what is cached, and brings nothing there but what it needs. */
static bool passes_cache(const struct core_req *q)
{
    return q->direct && q->p.dst;
}

static void plan(struct core_req *q)
{
    struct core_inode *i = q->p.inode;

    q->p.ahead =
        readahead_next(&q->p.file->ra, q->p.offset, q->p.len, i->attr.size,
                       stripe_block_bytes(&i->layout), i->lease ? stream_max(q->p.file) : 0);
    if (q->p.ahead.sequential && i->lease)
        stream_goes_on(q->p.file);
    q->p.flags |= READ_PLANNED | (q->p.ahead.sequential ? READ_SEQUENTIAL : 0);
}

/* Nothing of the range is here that the targets do not have. */
static bool all_stored(const struct core_req *q, uint64_t end)
{
    const struct core_inode *i = q->p.inode;
    uint64_t at = q->p.offset;

    while (at < end) {
        struct stripe_piece p = stripe_cut(&i->layout, at, end);
        const struct block *b = block_find(q->p.core, i, p.block);

        if (b && (!extents_empty(&b->dirty) || b->n_ios || b->unc_in))
            return false;
        at += p.len;
    }
    return true;
}

/* Blocks are fetched whole: what was not asked for may be the damaged part. Once more, alone. */
static bool try_alone(struct core_req *q, uint64_t end)
{
    if (q->p.error != -EIO || q->p.flags & READ_ALONE || q->p.inode->in_line ||
        q->p.offset >= end || !all_stored(q, end))
        return false;
    q->p.flags |= READ_ALONE;
    q->p.error = 0;
    unpin(q);
    q->out.read.n_iov = q->out.read.bytes = 0;
    direct_read(q);
    return true;
}

static void read_enter(struct core_req *q);

void read_run(struct core_req *q)
{
    struct core_inode *i = q->p.inode;
    uint64_t end = q->p.offset + q->p.len;

    if (q->p.error && try_alone(q, MIN(end, i->attr.size)))
        return;
    if (q->p.error) {
        read_end(q, q->p.error);
        return;
    }
    if ((!creating_serves(q->p.file) && !file_ready(q, read_run)) ||
        !gate_wait_growth(q, read_enter) || straight_wait(q, read_run))
        return;
    if (i->lease == MSG_LEASE_NONE && !(q->p.flags & READ_REFRESHED) &&
        (end > i->attr.size || (!i->cuts_told && !i->in_line))) {
        q->p.flags |= READ_REFRESHED;
        req_refresh(q, read_run);
        return;
    }
    end = MIN(end, i->attr.size);
    if (q->p.offset >= end) {
        read_ready(q);
        return;
    }
    if (i->in_line) {
        inline_read(q);
        return;
    }
    if (q->p.flags & READ_ALONE || (passes_cache(q) && !any_cached(q, end))) {
        direct_read(q);
        return;
    }
    if (!(q->p.flags & READ_PLANNED) && !passes_cache(q))
        plan(q);
    if (i->lease != MSG_LEASE_NONE &&
        (q->p.flags & READ_SEQUENTIAL || i->attr.size <= stripe_block_bytes(&i->layout) ||
         any_cached(q, end))) {
        cached_read(q, end);
        return;
    }
    if (i->lease != MSG_LEASE_NONE)
        read_ahead(q); /* the next records of a stride */
    direct_read(q);
}

static void read_enter(struct core_req *q)
{
    if (gate_enter(q, read_enter))
        read_run(q);
}

void core_read(struct core *c, struct core_req *q, struct core_file *f, uint64_t offset,
               uint32_t len, void *dst)
{
    req_begin(c, q, "read", f->inode->ino);
    q->out.read.n_iov = q->out.read.bytes = 0;
    if (!core_usable(c, q))
        return;
    if (len > CORE_IO_MAX || offset + len < offset || (f->flags & O_ACCMODE) == O_WRONLY) {
        req_end(q, (f->flags & O_ACCMODE) == O_WRONLY ? -EBADF : -EINVAL);
        return;
    }
    if (!creating_is_file(f)) {
        req_end(q, -EISDIR);
        return;
    }
    q->p.file = f;
    q->p.inode = inode_ref(f->inode);
    q->p.offset = offset;
    q->p.len = len;
    q->p.dst = dst;
    q->p.end = read_end;
    f->busy++;
    read_enter(q);
}

/* ---- advice ---- */

void read_will_need(const struct core_file *f, uint64_t start, uint64_t end)
{
    struct core_inode *i = f->inode;

    if (f->session_epoch != i->core->session.epoch || !session_believed(i->core) ||
        i->lease == MSG_LEASE_NONE || i->in_line || !i->layout_known || i->gate)
        return; /* it is advice */
    end = MIN(end, i->attr.size);
    if (start < end)
        (void)fetch_range(i, start, MIN(end, start + readahead_max(i)), true);
}

/* Whole blocks that the targets have too. */
static void dont_need(struct core_inode *i, uint64_t start, uint64_t end)
{
    uint32_t unit = stripe_block_bytes(&i->layout);
    struct list *l, *tmp;

    if (!i->layout_known || i->in_line)
        return;
    list_for_each_safe (l, tmp, &i->blocks) {
        struct block *b = list_entry(l, struct block, by_inode);
        uint64_t first = b->index * unit;

        if (first >= start && MIN(first + unit, i->attr.size) <= end && block_clean(b))
            block_drop(b);
    }
}

void core_advise(struct core_file *f, uint64_t offset, uint64_t len, enum core_advice advice)
{
    uint64_t end = len && offset + len > offset ? offset + len : UINT64_MAX;

    switch (advice) {
    case CORE_ADVICE_NORMAL:
        f->ra.advice = READAHEAD_NORMAL;
        break;
    case CORE_ADVICE_SEQUENTIAL:
        f->ra.advice = READAHEAD_SEQUENTIAL;
        break;
    case CORE_ADVICE_RANDOM:
        f->ra.advice = READAHEAD_RANDOM;
        break;
    case CORE_ADVICE_WILLNEED:
        read_will_need(f, offset, end);
        break;
    case CORE_ADVICE_DONTNEED:
        dont_need(f->inode, offset, end);
        break;
    }
}

/* ---- shared with writing ---- */

static void refreshed(struct mds_op *op, int status)
{
    struct core_req *q = op->q;

    if (!status)
        inode_answered(op);
    if (q)
        req_resume(q, status);
}

void req_outdated(struct core_req *q, int status, void (*resume)(struct core_req *q))
{
    if (q->p.stale++ < RETRY_STALE_MAX) {
        req_refresh(q, resume);
        return;
    }
    LOG_WARN("client",
             "%s of inode %llu: given up after %u tries: each time it had changed at the metadata "
             "server before it was asked for: %s",
             q->p.what, (unsigned long long)q->p.ino, q->p.stale, err_text(status));
    req_finish(q, status);
}

void req_refresh(struct core_req *q, void (*resume)(struct core_req *q))
{
    struct mds_op *op = mds_op_new(q->p.core, RPC_OP_GETATTR, q, refreshed);

    if (op) {
        op->msg.ino.ino = q->p.inode->ino;
        mds_op_cred(op, &op->msg.ino.cred, &q->cred);
        op->inode = inode_ref(q->p.inode);
    }
    q->p.resume = resume;
    req_call(q, op, "waits for the metadata server: GETATTR");
}
