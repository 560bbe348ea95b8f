// SPDX-License-Identifier: Apache-2.0
/* OSS_PUNCH: [start, end) of the inode becomes zeros on this target. */
#include "common/base/err.h"
#include "oss/oss.h"

static void punch_fill(struct oss_fan *f, uint32_t i, struct chunk_op *op)
{
    const struct msg_cut_req *m = f->request->msg;

    (void)i;
    op->kind = CHUNK_PUNCH;
    op->ino = m->ino;
    op->truncate_gen = m->truncate_gen;
    op->chunk_bytes = m->chunk_bytes;
    op->start = m->start;
    op->end = m->end;
}

static void punch_done(struct oss_request *r, int status)
{
    const struct msg_cut_req *m = r->msg;

    if (!status)
        oss_session_done(r, m->once, 1);
    oss_reply(r, status, NULL);
}

void oss_op_punch(struct oss_request *r)
{
    const struct msg_cut_req *m = r->msg;
    struct oss_fan *f;

    if (!oss_request_target(r, m->target))
        return;
    if (oss_session_did(r, m->once, 1)) {
        oss_reply(r, 0, NULL);
        return;
    }
    f = oss_fan_create(r, 1);
    if (!f)
        return;
    f->fill = punch_fill;
    f->done = punch_done;
    oss_fan_run(f);
}
