// SPDX-License-Identifier: Apache-2.0
/* OSS_DESTROY, from the metadata server's queue: all chunks of these inodes go, tombstones stay. */
#include "common/base/err.h"
#include "oss/oss.h"

static void destroy_fill(struct oss_fan *f, uint32_t i, struct chunk_op *op)
{
    const struct msg_destroy_req *m = f->request->msg;

    op->kind = CHUNK_DESTROY;
    op->ino = m->inos[i];
}

static void destroy_done(struct oss_request *r, int status)
{
    oss_reply(r, status, NULL);
}

void oss_op_destroy(struct oss_request *r)
{
    const struct msg_destroy_req *m = r->msg;
    struct oss_fan *f;

    if (!oss_request_target(r, m->target) || !(f = oss_fan_create(r, m->n_inos)))
        return;
    f->fill = destroy_fill;
    f->done = destroy_done;
    oss_fan_run(f);
}
