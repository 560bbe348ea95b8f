/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data cache: blocks of files. A block is min(chunk, 1 MiB) of a file, knows at byte granularity
 * what is valid, dirty, being sent and uncommitted, and lies in one chunk.
 *
 * Life: made by a read or write → filled and read from, or written to → dirty pieces sent
 * (block_send) → committed (commit.c) → clean, on the LRU list → evicted. Blocks exist only under a
 * data lease (and, after the last close, until the next open tells whether they are still right).
 *
 * Failure: a piece that cannot be written is dropped and the inode remembers the error; a fill that
 * fails ends the requests that wait for it.
 */
#include "client/core/core_int.h"

#define SPENT_KEPT 4u

static uint64_t block_hash(uint64_t ino, uint64_t index)
{
    return hash_u64(ino ^ hash_u64(index));
}

struct block *block_find(struct core *c, const struct core_inode *i, uint64_t index)
{
    struct hmap_node *n;

    for (n = hmap_first(&c->blocks, block_hash(i->ino, index)); n; n = hmap_next(n)) {
        struct block *b = container_of(n, struct block, node);

        if (b->inode == i && b->index == index)
            return b;
    }
    return NULL;
}

static bool inline_unsaved(const struct block *b)
{
    const struct core_inode *i = b->inode;

    return !b->dead && i->in_line && i->lease == MSG_LEASE_WRITE && i->meta_seq != i->meta_done &&
           b->index == 0;
}

bool block_clean(const struct block *b)
{
    return extents_empty(&b->dirty) && !b->n_ios && !b->unc_in && b->fill_start == b->fill_end &&
           list_empty(&b->waiters) && !b->settling && !inline_unsaved(b);
}

void block_wanted(struct block *b)
{
    b->inode->core->ahead_bytes -= b->ahead;
    b->ahead = 0;
}

static void block_free(struct block *b)
{
    struct core *c = b->inode->core;

    block_wanted(b);
    list_remove(&b->lru);
    list_remove(&b->unc_link);
    if (!b->dead) {
        hmap_remove(&c->blocks, &b->node);
        list_remove(&b->by_inode);
        b->inode->n_blocks--;
    }
    if (b->buf)
        mem_put(c, b->buf);
    if (b->scatter)
        scatter_free(b);
    mem_free(b);
}

/* Clean and idle: it may be evicted. */
static void block_rest(struct block *b)
{
    struct core *c = b->inode->core;
    unsigned k = b->scatter ? MEM_SCATTERED : mem_class_of(b->buf->size_bytes);

    list_push_back(b->spent ? &c->block_spent[k] : &c->block_lru[k], &b->lru);
}

void block_settle(struct block *b)
{
    struct core *c = b->inode->core;
    bool idle, outer = b->settling;

    b->settling = true; /* it stays, whatever those who go on do */
    if (!list_empty(&b->waiters))
        req_resume_list(&b->waiters);
    b->settling = outer;
    idle = block_clean(b);
    if (b->dead || b->scatter) { /* scattered: nothing is kept */
        if (idle)
            block_free(b);
        return;
    }
    list_remove(&b->lru);
    if (idle) {
        block_rest(b);
        mem_freed(c);
    }
}

static bool evict_first(struct list *blocks)
{
    if (list_empty(blocks))
        return false;
    block_free(list_entry(blocks->next, struct block, lru));
    return true;
}

bool block_evict_class(struct core *c, unsigned class)
{
    return evict_first(&c->block_lru[class]);
}

/* Gives memory of at least the class of bytes back: of those that are kept elsewhere first. */
bool block_evict_one(struct core *c, uint32_t bytes)
{
    for (unsigned k = mem_class_of(bytes); k < MEM_CLASSES; k++)
        if (evict_first(&c->block_spent[k]))
            return true;
    for (unsigned k = mem_class_of(bytes); k < MEM_CLASSES; k++)
        if (evict_first(&c->block_lru[k]))
            return true;
    return false;
}

/* Not the youngest: a neighbouring read of the same block may be on its way. */
bool block_evict_spent(struct core *c, unsigned class)
{
    struct list *l = c->block_spent[class].next;
    unsigned n = 0;

    for (; l != &c->block_spent[class] && n <= SPENT_KEPT; l = l->next)
        n++;
    if (n <= SPENT_KEPT)
        return false;
    block_free(list_entry(c->block_spent[class].next, struct block, lru));
    return true;
}

void block_spend(struct block *b)
{
    b->spent = true;
    if (!list_empty(&b->lru)) {
        list_remove(&b->lru);
        block_rest(b);
    }
}

static bool block_move(struct block *b, uint32_t need, enum mem_how how)
{
    struct core *c = b->inode->core;
    struct buf *other;

    list_remove(&b->lru); /* not to be evicted for its own sake */
    other = mem_get(c, b->scatter ? MAX(need, scatter_end(b)) : need, how);
    if (other && b->scatter) {
        scatter_gather(b, other->data);
        b->buf = other;
    } else if (other) {
        memcpy(other->data, b->buf->data, b->buf->size_bytes);
        mem_put(c, b->buf); /* transfers and readers of the old one hold references */
        b->buf = other;
    }
    if (block_clean(b))
        block_rest(b);
    return other != NULL;
}

static bool block_widen(struct block *b, uint32_t need, enum mem_how how)
{
    return (!b->scatter && b->buf->size_bytes >= need) || block_move(b, need, how);
}

bool block_own(struct block *b)
{
    return block_move(b, b->buf->size_bytes, MEM_GROW);
}

struct block *block_new(struct core_inode *i, uint64_t index, struct buf *buf, struct scatter *s)
{
    struct core *c = i->core;
    struct block *b = core_no_memory() ? NULL : mem_zalloc(sizeof *b);

    if (!b)
        return NULL;
    b->inode = i;
    b->index = index;
    b->buf = buf;
    b->scatter = s;
    list_init(&b->unc_link);
    list_init(&b->waiters);
    hmap_insert(&c->blocks, &b->node, block_hash(i->ino, index));
    list_push_back(&i->blocks, &b->by_inode);
    i->n_blocks++;
    list_init(&b->lru);
    block_rest(b);
    return b;
}

struct block *block_get(struct core_inode *i, uint64_t index, uint32_t need, enum mem_how how)
{
    struct core *c = i->core;
    struct block *b = block_find(c, i, index);
    struct buf *buf;

    if (b) {
        if (!block_widen(b, need, how))
            return NULL;
        b->spent = false;
        if (!list_empty(&b->lru)) {
            list_remove(&b->lru);
            block_rest(b);
        }
        return b;
    }
    buf = mem_get(c, need, how);
    if (!buf)
        return NULL;
    b = block_new(i, index, buf, NULL);
    if (!b)
        mem_put(c, buf);
    return b;
}

bool block_busy(const struct block *b, uint32_t start, uint32_t end)
{
    unsigned k;

    if (b->fill_start < end && b->fill_end > start)
        return true;
    for (k = 0; k < BLOCK_FLYING_MAX; k++)
        if (b->flying[k].start < end && b->flying[k].end > start)
            return true;
    return false;
}

void block_wait(struct block *b, struct core_req *q, void (*resume)(struct core_req *q))
{
    list_remove(&b->lru);
    q->p.resume = resume;
    list_push_back(&b->waiters, &q->p.wait);
}

/* ---- what is dirty ---- */

struct oss_target *block_target(const struct block *b)
{
    const struct msg_layout *l = &b->inode->layout;

    return oss_target_of(b->inode->core, l, layout_chunk(l, b->index * stripe_block_bytes(l)));
}

int block_set_dirty(struct block *b, uint32_t start, uint32_t end)
{
    uint32_t before = extents_bytes(&b->dirty);
    struct extents valid = b->valid;

    if (extents_add(&b->valid, start, end))
        return -ENOSPC;
    if (extents_add(&b->dirty, start, end)) {
        b->valid = valid;
        return -ENOSPC;
    }
    block_account_dirty(b, before);
    list_remove(&b->lru);
    inode_mark_dirty(b->inode);
    return 0;
}

void block_dirty_valid(struct block *b)
{
    uint32_t before = extents_bytes(&b->dirty);

    b->dirty = b->valid;
    block_account_dirty(b, before);
    list_remove(&b->lru);
    inode_mark_dirty(b->inode);
}

bool block_unsaved(const struct block *b, struct extents *ret_unsaved)
{
    *ret_unsaved = b->dirty;
    if (!extents_add_all(ret_unsaved, &b->unc) || !extents_add_all(ret_unsaved, &b->committing))
        return false;
    for (unsigned k = 0; k < BLOCK_FLYING_MAX; k++)
        if (extents_add(ret_unsaved, b->flying[k].start, b->flying[k].end))
            return false;
    return true;
}

bool block_forget_clean(struct block *b)
{
    struct extents keep = b->dirty;

    if (!extents_add_all(&keep, &b->unc) || !extents_add_all(&keep, &b->committing) ||
        keep.n >= b->valid.n)
        return false;
    b->valid = keep;
    return true;
}

static void clear_dirty(struct block *b, uint32_t from)
{
    uint32_t before = extents_bytes(&b->dirty);

    extents_cut(&b->dirty, from);
    block_account_dirty(b, before);
}

void block_cut(struct block *b, uint32_t at)
{
    clear_dirty(b, at);
    extents_cut(&b->valid, at);
    if (b->fill && b->fill_end > at) /* what comes from behind the cut is of before it */
        b->fill->len = MIN(b->fill->len, at > b->fill_start ? at - b->fill_start : 0);
    if (b->unc_in)
        commit_cut_block(b, at);
    block_settle(b);
}

void block_drop(struct block *b)
{
    clear_dirty(b, 0);
    commit_forget_block(b);
    extents_clear(&b->valid);
    if (!b->dead) {
        b->dead = true;
        hmap_remove(&b->inode->core->blocks, &b->node);
        list_remove(&b->by_inode);
        b->inode->n_blocks--;
    }
    block_settle(b);
}

void block_doubt(struct block *b)
{
    struct extents keep;

    if (block_clean(b)) {
        block_drop(b);
        return;
    }
    if (b->fill)
        b->fill->len = 0;
    if (!b->inode->in_line && block_unsaved(b, &keep))
        b->valid = keep;
}

void blocks_drop_all(struct core_inode *i, bool also_dirty)
{
    struct list *l, *tmp;

    if (also_dirty) { /* whoever waited for one goes on, and may free others */
        while (!list_empty(&i->blocks))
            block_drop(list_entry(i->blocks.next, struct block, by_inode));
        return;
    }
    list_for_each_safe (l, tmp, &i->blocks) {
        struct block *b = list_entry(l, struct block, by_inode);

        if (block_clean(b)) /* nobody waits for it: nothing runs when it goes */
            block_drop(b);
    }
}

/* ---- filling ---- */

static void fill_merge(struct block *b, const struct oss_io *io)
{
    const uint8_t *src = io->iov[0].iov_base;
    uint32_t at = io->start, end = io->start + io->len;
    struct extent gap;

    if (src == b->buf->data + io->start)
        return;
    while (extents_gap(&b->valid, at, end, &gap)) {
        memcpy(b->buf->data + gap.start, src + (gap.start - io->start), gap.end - gap.start);
        at = gap.end;
    }
}

static void block_filled(struct oss_io *io, int status)
{
    struct block *b = io->block;
    struct core_inode *i = inode_ref(io->inode);
    uint64_t base = b->index * stripe_block_bytes(&i->layout);
    uint64_t size = i->attr.size > base ? i->attr.size - base : 0;
    uint32_t end = (uint32_t)MIN((uint64_t)io->start + io->len, size);
    struct list *l;

    b->fill = NULL;
    b->fill_start = b->fill_end = 0;
    if (!status && !b->dead) {
        fill_merge(b, io);
        /* What is behind the end may be on its way to be cut off: not to be kept. */
        if (end > io->start && extents_add(&b->valid, io->start, end))
            status = -ENOMEM;
        if (io->ahead)
            io->core->stats.readahead_bytes += io->len;
    }
    list_for_each (l, &b->waiters) {
        if (status)
            list_entry(l, struct core_req, p.wait)->p.error = status;
    }
    if (i->flushing)
        block_send(b, false); /* what had to wait for it */
    block_settle(b);
    if (i->flushing)
        flush_step(i);
    inode_put(i);
}

int block_fill(struct block *b, uint32_t start, uint32_t end, bool ahead)
{
    struct core_inode *i = b->inode;
    struct core *c = i->core;
    uint32_t unit = stripe_block_bytes(&i->layout), from, to;
    uint64_t base = b->index * unit, size = i->attr.size > base ? i->attr.size - base : 0;
    struct stripe_piece p = stripe_cut(&i->layout, base, base + unit);
    struct buf *into = b->buf;
    struct extent gap;
    struct oss_io *io;

    if (b->fill || !extents_gap(&b->valid, start, end, &gap))
        return 0;
    from = gap.start / CRC_BLOCK_BYTES * CRC_BLOCK_BYTES;
    to = (gap.end + CRC_BLOCK_BYTES - 1) / CRC_BLOCK_BYTES * CRC_BLOCK_BYTES;
    if (b->valid.n > EXTENTS_MAX / 2) { /* scattered: make it one piece */
        from = 0;
        to = b->buf->size_bytes;
    }
    to = MIN(to, unit);
    io = oss_io_new(c, OSS_IO_READ, i);
    if (!io)
        return -ENOMEM;
    if (extents_overlap(&b->valid, from, to)) { /* what is here already is newer than what comes */
        into = mem_get(c, to - from, MEM_GROW);
        if (!into) {
            oss_io_drop(io);
            return -ENOMEM;
        }
        io->buf = into;
        io->iov[0] = (struct iovec){into->data, to - from};
    } else {
        buf_ref(into);
        io->buf = into;
        io->iov[0] = (struct iovec){into->data + from, to - from};
    }
    io->n_iov = 1;
    io->block = b;
    io->start = from;
    /* A target that has yet to hear of a cut brings what was behind it, wherever the end is then.
     */
    io->len = (uint32_t)(MAX(MIN((uint64_t)to, size), (uint64_t)from) - from);
    io->range = (struct msg_range){p.chunk, p.chunk_offset + from, to - from};
    io->ahead = ahead;
    if (ahead) {
        b->ahead += to - from;
        c->ahead_bytes += to - from;
    }
    io->done = block_filled;
    b->fill = io;
    b->fill_start = from;
    b->fill_end = to;
    list_remove(&b->lru);
    oss_io_submit(io);
    return 0;
}
