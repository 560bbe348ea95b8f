// SPDX-License-Identifier: Apache-2.0
/* OSS_COMMIT: what was acknowledged of these inodes is durable when the reply leaves. */
#include "common/base/err.h"
#include "oss/oss.h"

static void commit_fill(struct oss_fan *f, uint32_t i, struct chunk_op *op)
{
    const struct msg_commit_req *m = f->request->msg;

    op->kind = CHUNK_COMMIT;
    op->ino = m->n_inos > OSS_FAN_WIDTH ? 0 : m->inos[i]; /* many: all of the target at once */
}

static void commit_done(struct oss_request *r, int status)
{
    struct msg_commit_rep rep = {.verifier = chunk_store_verifier(r->target->store)};

    oss_reply(r, status, status ? NULL : &rep);
}

void oss_op_commit(struct oss_request *r)
{
    const struct msg_commit_req *m = r->msg;
    struct oss_fan *f;

    if (!oss_request_target(r, m->target))
        return;
    f = oss_fan_create(r, m->n_inos > OSS_FAN_WIDTH ? 1 : m->n_inos);
    if (!f)
        return;
    f->fill = commit_fill;
    f->done = commit_done;
    oss_fan_run(f);
}
