/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where data and holes are. Happy path: what is dirty is sent, then every stripe's target says
 * where it has the first data (or hole); the least of these is it. A small file is one piece of
 * data. Failure: an error of any target is the answer.
 */
#include "client/core/span.h"

#define SEEK_HOLE_WANTED 0x1u
#define SEEK_REFRESHED   0x2u

static void seek_over(struct core_req *q, int status)
{
    struct core_inode *i = q->p.inode;

    file_idle(q->p.file);
    if (q->p.entered)
        gate_leave(i);
    req_end(q, status);
    inode_put(i);
}

/* at: the first of what is looked for; or the end, which is a hole and not data. */
static void seek_answer(struct core_req *q, uint64_t at, uint64_t end)
{
    q->out.offset = at;
    seek_over(q, at < end || q->p.flags & SEEK_HOLE_WANTED ? 0 : -ENXIO);
}

static void seek_found(struct core_req *q, const struct span *s)
{
    if (q->p.error)
        req_finish(q, q->p.error);
    else
        seek_answer(q, s->found, s->end);
}

static void seek_targets(struct core_req *q)
{
    span_start(q, &(struct span){.kind = OSS_IO_SEEK,
                                 .start = q->p.offset,
                                 .end = q->p.inode->attr.size,
                                 .hole = q->p.flags & SEEK_HOLE_WANTED,
                                 .done = seek_found});
}

static void cancel_flush(struct core_req *q, int status)
{
    flush_cancel((struct flush_wait *)q->p.flush);
    req_finish(q, status);
}

static void seek_inline(struct core_req *q)
{
    uint64_t size = q->p.inode->attr.size, data = MIN(size, CORE_SMALL_BYTES);
    bool in_data = q->p.offset < data;

    if (q->p.flags & SEEK_HOLE_WANTED)
        seek_answer(q, in_data ? data : q->p.offset, size);
    else
        seek_answer(q, in_data ? q->p.offset : size, size);
}

static void seek_flushed(struct flush_wait *w)
{
    struct core_req *q = w->q;

    if (q->p.offset >= q->p.inode->attr.size)
        seek_over(q, -ENXIO);
    else if (q->p.inode->in_line) /* it could not grow */
        seek_inline(q);
    else
        seek_targets(q);
}

static void seek_run(struct core_req *q)
{
    struct core_inode *i = q->p.inode;
    struct flush_wait *w = (struct flush_wait *)q->p.flush;

    if (!file_ready(q, seek_run))
        return;
    if (i->lease == MSG_LEASE_NONE && !(q->p.flags & SEEK_REFRESHED)) {
        q->p.flags |= SEEK_REFRESHED;
        req_refresh(q, seek_run);
    } else if (q->p.offset >= i->attr.size) {
        seek_over(q, -ENXIO);
    } else if (i->in_line) {
        seek_inline(q);
    } else if (i->dirty_bytes || !list_empty(&i->ios)) {
        req_wait(q, "writes back", cancel_flush);
        *w = (struct flush_wait){.q = q};
        flush_start(i, w, false, seek_flushed);
    } else {
        seek_targets(q);
    }
}

static void seek_enter(struct core_req *q)
{
    if (gate_enter(q, seek_enter))
        seek_run(q);
}

void core_seek(struct core *c, struct core_req *q, struct core_file *f, uint64_t offset, bool hole)
{
    req_begin(c, q, "seek", f->inode->ino);
    if (!core_usable(c, q))
        return;
    if (!creating_is_file(f)) {
        req_end(q, -EINVAL);
        return;
    }
    q->p.file = f;
    q->p.inode = inode_ref(f->inode);
    q->p.offset = offset;
    q->p.flags = hole ? SEEK_HOLE_WANTED : 0;
    q->p.end = seek_over;
    f->busy++;
    seek_enter(q);
}
