// SPDX-License-Identifier: Apache-2.0
/* OSS_SEAL, after a writer was evicted: commit what there is of the inode, and say how far it
 * reaches. */
#include "common/base/err.h"
#include "oss/oss.h"

static void seal_fill(struct oss_fan *f, uint32_t i, struct chunk_op *op)
{
    const struct msg_seal_req *m = f->request->msg;

    (void)i;
    op->kind = CHUNK_SEAL;
    op->ino = m->ino;
    op->truncate_gen = m->truncate_gen;
    op->chunk_bytes = m->chunk_bytes;
}

static void seal_each(struct oss_fan *f, uint32_t i, struct chunk_op *op)
{
    struct msg_seal_rep *rep = f->request->state;

    (void)i;
    rep->high_water = op->ret_high_water;
}

static void seal_done(struct oss_request *r, int status)
{
    oss_reply(r, status, status ? NULL : r->state);
}

void oss_op_seal(struct oss_request *r)
{
    const struct msg_seal_req *m = r->msg;
    struct oss_fan *f;

    if (!oss_request_target(r, m->target) ||
        !(r->state = oss_alloc(r, sizeof(struct msg_seal_rep))) || !(f = oss_fan_create(r, 1)))
        return;
    f->fill = seal_fill;
    f->each = seal_each;
    f->done = seal_done;
    oss_fan_run(f);
}
