/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing.
 *
 * Happy path, under a write lease: bytes are copied into blocks, size and mtime change here, blocks
 * that are full go out at once, the rest with a flush or after half a second. O_SYNC waits until it
 * is stored. What no target has promised room for is stored first (through.c), so that ENOSPC
 * reaches the writer and nothing is left of it. Large writes of those who keep many going may leave
 * from their memory (straight.c). Without a write lease: straight to the targets or, small files,
 * to the metadata server.
 *
 * A request that has to wait goes on in write_run() from q->p.progress.
 */
#include "client/core/core_int.h"
#include "client/core/growth.h"
#include "client/core/room.h"
#include "client/core/through.h"

#define WRITE_FLUSHING 0x4u
#define WRITE_PLACED   0x8u        /* an append, under a lease */
#define SCATTERED_MAX  (16u * KIB) /* as much as a target overwrites without moving it */
#define OUT_OF_STEP    16u         /* blocks, of those who write a file in turns */

/* A target that has so much to do will not be idle before more memory is free. */
#define TARGET_BUSY_BYTES (2u * CORE_LARGE_BYTES)

/* The next append may go. */
static void append_over(struct core_req *q)
{
    struct core_inode *i = q->p.inode;

    if (i->appender != q)
        return;
    i->appender = NULL;
    req_resume_list(&i->append_queue);
}

/* Appends under a lease take their place at the end of file one after the other, when nothing under
 * way makes it longer: false, it waits. */
static bool append_place(struct core_req *q)
{
    struct core_inode *i = q->p.inode;

    if (i->appender == q && q->p.flags & WRITE_PLACED)
        return true;
    if (i->appender && i->appender != q) {
        q->p.resume = write_run;
        req_wait(q, "waits for another append", req_finish);
        list_push_back(&i->append_queue, &q->p.wait);
        return false;
    }
    i->appender = q;
    if (straight_wait_all(q, write_run))
        return false;
    if (q->p.len > CORE_SIZE_MAX - i->attr.size) {
        q->p.end(q, -EFBIG);
        return false;
    }
    q->p.flags |= WRITE_PLACED;
    q->p.offset = i->attr.size;
    return true;
}

static void note_written(struct core_req *q)
{
    q->out.write.bytes = q->p.len;
    q->out.write.offset = q->p.offset;
    q->p.core->stats.writes++;
    q->p.core->stats.write_bytes += q->p.len;
    q->p.file->wrote_to = q->p.offset + q->p.len;
}

/* Of an append that waited for too long, what is taken is in the file, and stays. */
static int append_kept(struct core_req *q, int status)
{
    const struct core_inode *i = q->p.inode;

    if ((status != -EINTR && status != -AIFS_ETIMEOUT) || i->appender != q || !q->p.progress ||
        i->lease != MSG_LEASE_WRITE || i->lease_temporary || q->p.gave_up != i->gave_up ||
        q->p.file->flags & O_DSYNC)
        return status;
    q->p.len = q->p.progress;
    note_written(q);
    return 0;
}

static void write_end(struct core_req *q, int status)
{
    struct core_inode *i = q->p.inode;

    status = append_kept(q, status);
    append_over(q);

    if (status && i->lease_temporary)
        lease_give_up(i, MSG_LEASE_NONE);
    file_idle(q->p.file);
    if (q->p.entered)
        gate_leave(i);
    req_end(q, status);
    inode_put(i);
}

static void finish(struct core_req *q)
{
    note_written(q);
    write_end(q, 0);
}

static void stored(struct flush_wait *w)
{
    struct core_req *q = w->q;
    int err = inode_error_since(q); /* an earlier one is for fsync and close to tell */

    if (q->p.inode->lease_temporary)
        lease_give_up(q->p.inode, MSG_LEASE_NONE);
    if (err)
        write_end(q, err);
    else
        finish(q);
}

static void cancel_flush(struct core_req *q, int status)
{
    flush_cancel((struct flush_wait *)q->p.flush);
    req_finish(q, status);
}

void write_done(struct core_req *q)
{
    struct core_inode *i = q->p.inode;
    bool sync = q->p.file->flags & O_DSYNC || i->lease_temporary;
    struct flush_wait *w = (struct flush_wait *)q->p.flush;

    static_assert(sizeof *w <= sizeof q->p.flush, "room for a flush");
    append_over(q);
    q->p.file->wrote = true;
    if (q->p.flags & WRITE_FLUSHING || !sync) {
        finish(q);
        return;
    }
    q->p.flags |= WRITE_FLUSHING;
    req_wait(q, "waits until it is stored", cancel_flush);
    w->q = q;
    w->prompt = sync;
    flush_start(i, w, sync, stored);
}

/* Copies bytes [skip, skip + len) of the request. */
static void copy_in(const struct core_req *q, uint8_t *dst, uint32_t skip, uint32_t len)
{
    unsigned k;

    for (k = 0; k < q->p.n_iov && len; k++) {
        uint32_t have = (uint32_t)q->p.iov[k].iov_len, take;

        if (skip >= have) {
            skip -= have;
            continue;
        }
        take = MIN(have - skip, len);
        memcpy(dst, (const uint8_t *)q->p.iov[k].iov_base + skip, take);
        dst += take;
        len -= take;
        skip = 0;
    }
}

static void wait_memory(struct core_req *q)
{
    req_wait(q, "waits for memory", req_finish);
    mem_wait(q->p.core, q, write_run);
}

static void wait_paced(struct core_req *q)
{
    req_wait(q, "waits for memory under way", req_finish);
    mem_pace(q->p.core, q, write_run);
}

static void wait_block(struct core_req *q, struct block *b)
{
    req_wait(q, "waits for a transfer of the same bytes", req_finish);
    block_wait(b, q, write_run);
}

/* The block is too scattered to note one more piece: let it become simpler first. What is clean is
 * forgotten, not completed: the bytes between may be damaged. false: the request waits. */
static bool untangle(struct core_req *q, struct block *b)
{
    if (!extents_empty(&b->dirty))
        block_send(b, false);
    else if (!b->n_ios && !b->fill && block_forget_clean(b))
        return true;
    if (b->n_ios || b->fill) {
        wait_block(q, b);
    } else if (b->unc_in) {
        commit_request(q->p.inode);
        wait_block(q, b);
    } else {
        wait_memory(q);
    }
    return false;
}

/* A small overwrite of bytes that are not cached, and not the next of a stream. */
static bool is_scattered(const struct core_req *q, const struct stripe_piece *p)
{
    const struct core_inode *i = q->p.inode;

    return p->len == q->p.len && p->len <= SCATTERED_MAX && !i->need_grow &&
           q->p.offset != q->p.file->wrote_to && q->p.offset + q->p.len <= i->attr.size;
}

/* A target that commits at once gives memory back with each answer: while it has enough to do, more
 * memory would only be more that has to be touched. */
static enum mem_how how_to_get(const struct oss_target *t, bool grow)
{
    if (t && t->at_once && t->under_way >= TARGET_BUSY_BYTES)
        return MEM_SPARE;
    return grow ? MEM_BESIDE : MEM_REUSE;
}

/* The memory that the bytes came in becomes the block. NULL: it is not all of one, or what is here
 * of that has more to do. */
static struct block *keep_room(const struct core_req *q, const struct stripe_piece *p)
{
    struct core_inode *i = q->p.inode;
    struct block *b;

    if (!q->p.room || q->p.len != q->p.room->size_bytes || p->len != q->p.len ||
        p->len != stripe_block_bytes(&i->layout))
        return NULL;
    b = block_find(q->p.core, i, p->block);
    if (b && !block_clean(b))
        return NULL;
    if (b)
        block_drop(b);
    b = block_new(i, p->block, q->p.room, NULL);
    if (!b)
        return NULL;
    buf_ref(q->p.room);
    q->p.core->stats.kept_writes++;
    return b;
}

/* NULL: the request waits for memory. */
static struct block *block_to_write(struct core_req *q, const struct stripe_piece *p,
                                    const struct oss_target *t)
{
    struct core_inode *i = q->p.inode;
    uint32_t end = p->start + p->len, unit = stripe_block_bytes(&i->layout);
    uint32_t need = MIN((end + CRC_BLOCK_BYTES - 1) / CRC_BLOCK_BYTES * CRC_BLOCK_BYTES, unit);
    bool grow = (!t || t->under_way < TARGET_BUSY_BYTES) && mem_may_grow(q->p.core);
    enum mem_how how = how_to_get(t, grow);
    struct block *b = keep_room(q, p);
    int rc = -ENOSPC;

    if (b)
        return b;
    b = block_find(q->p.core, i, p->block);
    if (b ? b->scatter != NULL : is_scattered(q, p))
        rc = scatter_get(i, p->block, p->start, end, &b);
    if (!rc)
        return b;
    b = rc == -ENOSPC ? block_get(i, p->block, need, how) : NULL;
    if (!b && rc == -ENOSPC && (!grow || how == MEM_SPARE || mem_is_growing(q->p.core)))
        wait_paced(q);
    else if (!b)
        wait_memory(q);
    return b;
}

static void copy_to_block(const struct core_req *q, struct block *b, const struct stripe_piece *p)
{
    uint32_t at = p->start, end = at + p->len, from = q->p.progress, n;

    if (b->buf && b->buf == q->p.room)
        return; /* they are there */
    for (; b->scatter && at < end; at += n, from += n) {
        uint32_t offset;
        const struct buf *page = scatter_page(b, at, &offset);

        n = MIN(end, scatter_page_end(at)) - at;
        copy_in(q, page->data + offset, from, n);
    }
    if (at < end)
        copy_in(q, b->buf->data + at, from, end - at);
}

/* A block goes out as soon as it is dirty in one piece up to its end. In several it would have the
 * target merge what lies where they meet, and those who write records of one file in turns are
 * never quite in step: what is missing is about to come. Where it does not, the rest has waited
 * long enough when the writing is some blocks further on. */
static void send_written(struct block *b, uint32_t end, uint32_t unit)
{
    if (!b->scatter && b->dirty.n == 1 && extents_end(&b->dirty) == unit) {
        block_send(b, false);
        block_spend(b);
    }
    if (end != unit || b->index < OUT_OF_STEP)
        return;
    b = block_find(b->inode->core, b->inode, b->index - OUT_OF_STEP);
    if (b && !b->scatter && !extents_empty(&b->dirty)) {
        block_send(b, false);
        block_spend(b);
    }
}

/* One block's part; false: the request waits. */
static bool write_piece(struct core_req *q, const struct stripe_piece *p)
{
    struct core_inode *i = q->p.inode;
    uint32_t end = p->start + p->len, unit = stripe_block_bytes(&i->layout);
    struct oss_target *t = oss_target_of(q->p.core, &i->layout, p->chunk);
    struct block *b;

    if (!room_for(i, t, p->block, p->start, end)) {
        through_write(q, p);
        return false;
    }
    b = block_to_write(q, p, t);
    if (!b)
        return false;
    if (block_busy(b, p->start, end)) {
        wait_block(q, b);
        return false;
    }
    while (block_set_dirty(b, p->start, end))
        if (!untangle(q, b))
            return false;
    copy_to_block(q, b, p);
    inode_touch_data(i, p->block * unit + end);
    send_written(b, end, unit);
    if (b->dirty.n >= EXTENTS_MAX / 2 && b->scatter && !i->background_busy)
        flush_background(q->p.core, 0, true); /* before it is too scattered to note more */
    return true;
}

void write_moved(struct core_req *q, uint32_t len)
{
    q->p.progress += len;
    q->p.timed_ns = reactor_now_ns(q->p.core->reactor);
}

static void write_striped(struct core_req *q)
{
    struct core *c = q->p.core;
    uint64_t end = q->p.offset + q->p.len;

    while (q->p.progress < q->p.len) {
        struct stripe_piece p = stripe_cut(&q->p.inode->layout, q->p.offset + q->p.progress, end);

        uint64_t unsaved = c->dirty_bytes + c->uncommitted_bytes;

        if (unsaved >= c->max_dirty) {
            wait_memory(q);
            return;
        }
        if ((unsaved >= c->max_dirty / 2 || c->mem.used_pages > c->mem.pages_to_flush) &&
            !q->p.inode->background_busy)
            flush_background(c, 0, true); /* in time, so that nobody has to wait */
        if (!write_piece(q, &p))
            return;
        write_moved(q, p.len);
    }
    write_done(q);
}

/* Contents stay with the metadata server, unless the file outgrows that. */
static void write_inline(struct core_req *q)
{
    struct core_inode *i = q->p.inode;
    uint64_t old = i->attr.size, end = q->p.offset + q->p.len;
    struct block *b;

    if (!inline_cached(i)) {
        inline_fetch(q, write_run);
        return;
    }
    b = block_find(q->p.core, i, 0);
    if (b && b->buf == i->meta_buf && !block_own(b)) { /* on its way to the server as it is */
        wait_memory(q);
        return;
    }
    if (q->p.file->creating && MAX(end, old) > q->p.core->session.inline_max) {
        creating_outgrown(i);
        creating_wait(q, write_run);
        return;
    }
    if (MAX(end, old) > q->p.core->session.inline_max) {
        if (!i->layout.table_len) {
            write_end(q, -ENOSPC);
            return;
        }
        if (!room_for(i, oss_target_of(q->p.core, &i->layout, 0), 0, 0, (uint32_t)MAX(old, 1))) {
            through_grow(q);
            return;
        }
        inline_grow(i);
        write_striped(q);
        return;
    }
    b = block_get(i, 0, CORE_SMALL_BYTES, MEM_GROW);
    if (!b) {
        wait_memory(q);
        return;
    }
    if (q->p.offset > old)
        memset(b->buf->data + old, 0, q->p.offset - old);
    copy_in(q, b->buf->data + q->p.offset, 0, q->p.len);
    if (extents_add(&b->valid, 0, (uint32_t)MAX(end, old)))
        extents_clear(&b->valid); /* cannot happen: it is one piece */
    list_remove(&b->lru);
    inode_touch_data(i, end);
    q->p.progress = q->p.len;
    write_done(q);
}

void write_run(struct core_req *q)
{
    struct core_inode *i = q->p.inode;
    bool append = write_appends(q);

    q->p.error = 0;
    if (q->p.gave_up != i->gave_up) { /* what it has written went with the growth */
        q->p.gave_up = i->gave_up;
        q->p.progress = 0;
        q->p.flags &= ~WRITE_PLACED;
    }
    if (!creating_serves(q->p.file) && !file_ready(q, write_run))
        return;
    if (i->lease != MSG_LEASE_WRITE && q->p.progress) { /* the lease went while it waited */
        write_end(q, -EIO);
        return;
    }
    if (append && i->lease == MSG_LEASE_WRITE && !append_place(q))
        return;
    straight_prepare(q);
    if (straight_wait(q, write_run))
        return;
    if ((!append || i->lease == MSG_LEASE_WRITE) && growth_must_wait(i, q->p.offset + q->p.len)) {
        punch_wait(q, write_run);
        return;
    }
    if (i->lease != MSG_LEASE_WRITE) {
        if (i->in_line)
            inline_write_direct(q);
        else
            direct_write(q);
    } else if (i->in_line) {
        write_inline(q);
    } else if (straight_may(q)) {
        straight_enter(q);
        direct_write(q);
    } else {
        write_striped(q);
    }
}

static void write_enter(struct core_req *q)
{
    if (gate_enter(q, write_enter))
        write_run(q);
}

static void write_begin(struct core *c, struct core_req *q, struct core_file *f, uint64_t offset,
                        const struct iovec *iov, unsigned n_iov, uint32_t len, struct buf *room)
{
    uint64_t sum = 0;
    unsigned k;

    req_begin(c, q, "write", f->inode->ino);
    q->out.write.bytes = 0;
    q->out.write.offset = offset;
    if (!core_usable(c, q))
        return;
    for (k = 0; k < n_iov; k++)
        sum += iov[k].iov_len;
    q->p.file = f;
    if (c->o.read_only || (f->flags & O_ACCMODE) == O_RDONLY) {
        req_end(q, c->o.read_only ? -EROFS : -EBADF);
        return;
    }
    if (len > (write_appends(q) ? CORE_APPEND_MAX : CORE_IO_MAX) || sum != len) {
        req_end(q, -EINVAL);
        return;
    }
    if (!write_appends(q) && (offset > CORE_SIZE_MAX || len > CORE_SIZE_MAX - offset)) {
        req_end(q, -EFBIG);
        return;
    }
    if (!len) {
        req_end(q, 0);
        return;
    }
    q->p.inode = inode_ref(f->inode);
    q->p.offset = offset;
    q->p.len = len;
    q->p.iov = iov;
    q->p.n_iov = n_iov;
    q->p.room = room;
    q->p.end = write_end;
    q->p.errors_before = f->inode->error_seq;
    q->p.gave_up = f->inode->gave_up;
    f->busy++;
    write_enter(q);
}

void core_write(struct core *c, struct core_req *q, struct core_file *f, uint64_t offset,
                const struct iovec *iov, unsigned n_iov, uint32_t len)
{
    write_begin(c, q, f, offset, iov, n_iov, len, NULL);
}

void core_write_from(struct core *c, struct core_req *q, struct core_file *f, uint64_t offset,
                     const struct iovec *iov, struct buf *room)
{
    write_begin(c, q, f, offset, iov, 1, (uint32_t)iov->iov_len, room);
}

/* ---- waiting until a truncate has reached all targets ---- */

void punch_wait(struct core_req *q, void (*resume)(struct core_req *q))
{
    q->p.resume = resume;
    req_wait(q, "waits until a truncate has reached all targets", req_finish);
    list_push_back(&q->p.core->punch_waiters, &q->p.wait);
}

void punch_tick(struct core *c)
{
    struct list now, *l;

    list_init(&now);
    list_splice(&now, &c->punch_waiters);
    while ((l = list_pop_front(&now)) != NULL) {
        struct core_req *q = list_entry(l, struct core_req, p.wait);

        q->p.cancel = NULL;
        req_refresh(q, q->p.resume);
    }
}
