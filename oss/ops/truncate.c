// SPDX-License-Identifier: Apache-2.0
/* OSS_TRUNCATE, from the metadata server: cut the inode at `start`, by generation. */
#include "common/base/err.h"
#include "oss/oss.h"

static void truncate_fill(struct oss_fan *f, uint32_t i, struct chunk_op *op)
{
    const struct msg_cut_req *m = f->request->msg;

    (void)i;
    op->kind = CHUNK_TRUNCATE;
    op->ino = m->ino;
    op->truncate_gen = m->truncate_gen;
    op->chunk_bytes = m->chunk_bytes;
    op->start = m->start;
}

static void truncate_done(struct oss_request *r, int status)
{
    oss_reply(r, status, NULL);
}

void oss_op_truncate(struct oss_request *r)
{
    const struct msg_cut_req *m = r->msg;
    struct oss_fan *f;

    if (!oss_request_target(r, m->target) || !(f = oss_fan_create(r, 1)))
        return;
    f->fill = truncate_fill;
    f->done = truncate_done;
    oss_fan_run(f);
}
