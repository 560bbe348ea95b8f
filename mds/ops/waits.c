// SPDX-License-Identifier: Apache-2.0
/* WAITS: what the modules tell of those who wait in them, together. */
#include <errno.h>

#include "mds/locks/locks.h"
#include "mds/ops/op.h"
#include "mds/session/session.h"

void op_waits(struct mds *m, struct rpc_req *req)
{
    struct mds_waits w = {.max = MSG_WAITS_MAX / 4}; /* so that all kinds are always among them */
    struct msg_waits_rep rep;

    w.list = arena_alloc(&req->arena, MSG_WAITS_MAX * sizeof *w.list);
    if (!w.list) {
        rpc_reply(req, -ENOMEM, NULL);
        return;
    }
    session_server_waits(m, &w);
    rep.more = w.more;
    w.more = false;
    w.max = w.n + MSG_WAITS_MAX / 2;
    session_waits(m, &w);
    rep.more = rep.more || w.more;
    w.more = false;
    w.max = MSG_WAITS_MAX;
    locks_waits(m, &w);
    rep.more = rep.more || w.more;
    rep.n_waits = w.n;
    rep.waits = w.list;
    rpc_reply(req, 0, &rep);
}
