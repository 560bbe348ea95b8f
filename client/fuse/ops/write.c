/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WRITE. The kernel leaves it to us to take set-user-id and set-group-id bits away when somebody
 * unprivileged writes: the first such write of an open file looks at the mode, and again after such
 * a bit has been set through this mount. Happy path: one core_write().
 */
#include <errno.h>
#include <sys/stat.h>

#include "client/fuse/fs.h"

static void run_write(struct op *o)
{
    const struct channel_req *q = o->q;

    o->iov = (struct iovec){(void *)(uintptr_t)q->io.data, q->io.len};
    o->req.in_place = q->io.from_cache;
    core_write(o->fs->core, &o->req, fs_file_of(q->io.fh)->file, q->io.offset, &o->iov, 1,
               q->io.len);
}

static void finish_write(struct op *o, int status)
{
    uint32_t bytes = o->req.out.write.bytes;

    if (status != 0)
        op_fail(o, status);
    else
        channel_reply_write(op_end(o, 0), bytes);
}

static void begin_write(struct op *o)
{
    o->run = run_write;
    o->finish = finish_write;
    o->run(o);
}

/* ---- set-id bits ---- */

static void finish_clear(struct op *o, int status)
{
    if (status != 0) {
        op_fail(o, status);
        return;
    }
    fs_file_of(o->q->io.fh)->setid_epoch = o->fs->setid_epoch;
    /* The kernel still believes the old mode. */
    (void)channel_notify_inode(o->q->channel, o->q->node, -1, 0, NULL, NULL);
    begin_write(o);
}

static void run_clear(struct op *o)
{
    struct msg_setattr_req set = {.ino = fs_ino(o->fs, o->q->node), .set = MSG_SET_KILL_PRIV};

    core_setattr(o->fs->core, &o->req, &set, fs_file_of(o->q->io.fh)->file);
}

static void finish_look(struct op *o, int status)
{
    uint32_t mode = o->req.entry.attr.mode;

    if (status != 0) {
        op_fail(o, status);
        return;
    }
    if ((mode & S_ISUID) || (mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP)) {
        o->run = run_clear;
        o->finish = finish_clear;
        o->run(o);
        return;
    }
    fs_file_of(o->q->io.fh)->setid_epoch = o->fs->setid_epoch;
    begin_write(o);
}

static void run_look(struct op *o)
{
    core_getattr(o->fs->core, &o->req, fs_ino(o->fs, o->q->node));
}

void op_write(struct channel_req *q)
{
    if (q->io.kill_priv && fs_file_of(q->io.fh)->setid_epoch != fs_of(q)->setid_epoch)
        op_start(q, run_look, finish_look, false);
    else
        op_start(q, run_write, finish_write, false);
}
