/* SPDX-License-Identifier: Apache-2.0 */
/*
 * close(2) and fsync(2): a flush of the inode, then the file's own error: fsync tells it once, and
 * close what fsync has not told, of each descriptor (one may be closed by a process that ends, and
 * nobody hears of it). Before it is told the kernel drops what it caches of the file: from then on
 * everybody reads what the servers have.
 */
#include "client/core/core_int.h"

static void sync_end(struct core_req *q, int status)
{
    struct core_file *f = q->p.file;
    struct core_inode *i = q->p.inode;

    if (!status) /* close tells it of each descriptor that fsync has not told */
        status = q->p.n1 ? inode_take_error(f) : inode_error_of(f);
    file_idle(f);
    req_end(q, status);
    inode_put(i);
}

static void dropped(struct inval_wait *w)
{
    req_finish(w->q, 0);
}

static void cancel_drop(struct core_req *q, int status)
{
    list_remove(&((struct inval_wait *)q->p.flush)->link);
    req_finish(q, status);
}

static void flushed(struct flush_wait *w)
{
    struct core_req *q = w->q;
    struct inval_wait *drop = (struct inval_wait *)q->p.flush;

    if (!inode_error_of(q->p.file) || q->p.core->forced) {
        req_finish(q, 0);
        return;
    }
    req_wait(q, "waits until what was lost is not cached", cancel_drop);
    *drop = (struct inval_wait){.q = q, .fn = dropped};
    list_init(&drop->link);
    lease_kernel_drops_then(q->p.inode, drop);
}

static void cancel_sync(struct core_req *q, int status)
{
    flush_cancel((struct flush_wait *)q->p.flush);
    req_finish(q, status);
}

static void flush_go(struct core_req *q)
{
    struct flush_wait *w = (struct flush_wait *)q->p.flush;
    const bool commit = q->p.n1;

    req_wait(q, commit ? "writes back and commits" : "writes back", cancel_sync);
    w->q = q;
    w->prompt = commit;
    flush_start(q->p.inode, w, commit, flushed);
}

static void sync_start(struct core *c, struct core_req *q, struct core_file *f, const char *what,
                       bool commit)
{
    req_begin(c, q, what, f->inode->ino);
    if (!core_usable(c, q))
        return;
    if (!commit && f->creating) { /* what it has written goes along with it */
        req_end(q, inode_error_of(f));
        return;
    }
    q->p.file = f;
    q->p.inode = inode_ref(f->inode);
    q->p.end = sync_end;
    q->p.n1 = commit;
    f->busy++;
    if (commit && f->inode->behind.moved) /* its name is to be durable, too */
        creating_wait(q, flush_go);
    else
        flush_go(q);
}

void core_flush(struct core *c, struct core_req *q, struct core_file *f)
{
    sync_start(c, q, f, "flush", false);
}

void core_fsync(struct core *c, struct core_req *q, struct core_file *f, bool data_only)
{
    (void)data_only; /* a size that was not reported would make the data unreachable */
    sync_start(c, q, f, "fsync", true);
}

static void ino_synced(struct mds_op *op, int status)
{
    if (status == -ENOENT) /* one that is removed has nothing to be kept */
        status = 0;
    if (op->q)
        req_finish(op->q, status ? status : behind_take_error(op->core, op->msg.ino.ino));
}

void core_fsync_ino(struct core *c, struct core_req *q, uint64_t ino)
{
    struct mds_op *op;

    req_begin(c, q, "fsync", ino);
    if (!core_usable(c, q))
        return;
    op = mds_op_new(c, RPC_OP_FSYNC, q, ino_synced);
    if (op) {
        op->msg.ino.ino = ino;
        mds_op_cred(op, &op->msg.ino.cred, &q->cred);
    }
    req_call(q, op, "waits for the metadata server: FSYNC");
}
