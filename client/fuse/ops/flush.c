/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FLUSH: close(2). Writes back what is dirty, reports errors of earlier writes, and releases the
 * record locks of the process that closes, if it has any.
 */
#include "client/fuse/fs.h"

static void run(struct op *o)
{
    const struct channel_req *q = o->q;

    core_flush(o->fs->core, &o->req, fs_file_of(q->file.fh)->file);
}

static void finish_unlock(struct op *o, int status)
{
    op_reply_status(o, o->flushed ? o->flushed : status);
}

static void run_unlock(struct op *o)
{
    const struct channel_req *q = o->q;

    core_unlock_owner(o->fs->core, &o->req, fs_file_of(q->file.fh)->file, q->file.lock_owner);
}

static void finish(struct op *o, int status)
{
    const struct channel_req *q = o->q;

    if (!core_owns_locks(fs_file_of(q->file.fh)->file, q->file.lock_owner)) {
        op_reply_status(o, status);
        return;
    }
    o->flushed = status;
    op_go_on(o, run_unlock, finish_unlock);
}

void op_flush(struct channel_req *q)
{
    op_start(q, run, finish, false);
}
