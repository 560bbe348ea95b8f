// SPDX-License-Identifier: Apache-2.0
/* OSS_SEEK: where data or a hole begins, in the chunks of one stripe. */
#include "common/base/err.h"
#include "oss/oss.h"

static void seek_fill(struct oss_fan *f, uint32_t i, struct chunk_op *op)
{
    const struct msg_seek_req *m = f->request->msg;

    (void)i;
    op->kind = CHUNK_SEEK;
    op->ino = m->ino;
    op->truncate_gen = m->truncate_gen;
    op->chunk_bytes = m->chunk_bytes;
    op->stride = m->stride;
    op->start = m->start;
    op->end = m->end;
    op->hole = m->hole;
}

static void seek_each(struct oss_fan *f, uint32_t i, struct chunk_op *op)
{
    struct msg_seek_rep *rep = f->request->state;

    (void)i;
    rep->found = op->ret_found;
    rep->offset = op->ret_offset;
}

static void seek_done(struct oss_request *r, int status)
{
    oss_reply(r, status, status ? NULL : r->state);
}

void oss_op_seek(struct oss_request *r)
{
    const struct msg_seek_req *m = r->msg;
    struct oss_fan *f;

    if (!oss_request_target(r, m->target) ||
        !(r->state = oss_alloc(r, sizeof(struct msg_seek_rep))) || !(f = oss_fan_create(r, 1)))
        return;
    f->fill = seek_fill;
    f->each = seek_each;
    f->done = seek_done;
    oss_fan_run(f);
}
