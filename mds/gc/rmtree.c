// SPDX-License-Identifier: Apache-2.0
/*
 * RMTREE: a tree loses its name, in one entry; what is in it goes later (trash.c).
 *
 * Happy path: who keeps the name or the directory's attributes is told; the entry; the answer.
 * Asked again for a tree that is detached already: done. Failure modes: -ENOENT, -ENOTDIR, time is
 * up.
 */
#include "common/fault/fault.h"
#include "mds/gc/gc_int.h"
#include "mds/ops/trash.h"

struct rmtree {
    struct gc *gc;
    struct rpc_req *req;
    struct mds_prepare prepare;
    struct mds_submit submit;
    struct trash_detach msg;
};

static void rmtree_over(struct rmtree *r, int status)
{
    struct gc *gc = r->gc;

    rpc_reply(r->req, status, NULL);
    mem_free(r);
    gc_end(gc);
}

static void rmtree_committed(struct mds_submit *s)
{
    struct rmtree *r = container_of(s, struct rmtree, submit);
    struct mds *m = r->gc->mds;
    struct mds_outcome out = {.status = s->entry.status};

    m->session_ops->finish(m, &r->prepare, &out);
    if (s->entry.status == 0) {
        FAULT_CRASH("mds.gc.rmtree.detached");
        gc_trash_kick(&r->gc->trash);
    }
    mds_submit_fini(s);
    rmtree_over(r, out.status);
}

static void rmtree_ready(struct mds_prepare *p, int status)
{
    struct rmtree *r = container_of(p, struct rmtree, prepare);
    struct mds *m = r->gc->mds;

    if (status < 0)
        rmtree_over(r, status);
    else
        mds_submit(m, &r->submit, mds_shard_of(m, r->msg.ino), SHARD_OP_TRASH_TREE, &r->msg,
                   SHARD_E_FREES, rmtree_committed);
}

void gc_serve_rmtree(struct rpc_req *req)
{
    struct mds *m = req->handler_arg;
    const struct msg_rmtree_req *msg = req->msg;
    struct gc *gc = gc_of(m);
    struct rmtree *r = NULL;
    int rc = 0;

    if (gc->stopping)
        rc = -AIFS_ECANCELLED;
    else if (!mds_shard_of(m, msg->ino) ||
             mds_shard_of(m, msg->ino) != mds_shard_of(m, msg->parent))
        rc = -ENOENT;
    else if (!(r = mem_zalloc(sizeof *r)))
        rc = -ENOMEM;
    if (rc < 0) {
        rpc_reply(req, rc, NULL);
        return;
    }
    gc_begin(gc);
    r->gc = gc;
    r->req = req;
    r->msg = (struct trash_detach){.parent = msg->parent, .ino = msg->ino, .name = msg->name};
    r->prepare =
        (struct mds_prepare){.mds = m, .deadline_ns = req->deadline_ns, .ready = rmtree_ready};
    r->prepare.changes[0] = (struct mds_change){.ino = msg->parent, .name = msg->name};
    r->prepare.changes[1] = (struct mds_change){.ino = msg->ino};
    r->prepare.n_changes = 2;
    m->session_ops->prepare(m, &r->prepare);
}
