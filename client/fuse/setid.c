/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Set-user-id and set-group-id bits go when somebody unprivileged changes the contents of a file;
 * the kernel leaves that to us. The first such change through an open file looks at the mode, and
 * again after such a bit has been set through this mount. Happy path: nothing to look at, or to
 * clear. When clearing fails nothing is changed.
 */
#include <sys/stat.h>

#include "client/fuse/fs.h"

static void begin(struct op *o)
{
    o->changed->setid_epoch = o->fs->setid_epoch;
    op_go_on(o, o->run_next, o->finish_next);
}

static void finish_clear(struct op *o, int status)
{
    if (status != 0) {
        op_fail(o, status);
        return;
    }
    /* The kernel still believes the old mode. */
    channel_expire_attr(o->q->channel, fs_node(o->fs, o->changed_ino));
    begin(o);
}

static void run_clear(struct op *o)
{
    struct msg_setattr_req set = {.ino = o->changed_ino, .set = MSG_SET_KILL_PRIV};

    core_setattr(o->fs->core, &o->req, &set, o->changed->file);
}

static void finish_look(struct op *o, int status)
{
    uint32_t mode = o->req.entry.attr.mode;

    if (status != 0) {
        op_fail(o, status);
    } else if ((mode & S_ISUID) || (mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP)) {
        op_go_on(o, run_clear, finish_clear);
    } else {
        begin(o);
    }
}

static void run_look(struct op *o)
{
    core_getattr(o->fs->core, &o->req, o->changed_ino);
}

void op_start_change(struct channel_req *q, uint64_t fh, uint64_t node, bool unprivileged,
                     void (*run)(struct op *o), void (*finish)(struct op *o, int status))
{
    struct op *o = (struct op *)(void *)q->priv;

    o->changed = fs_file_of(fh);
    o->changed_ino = fs_ino(fs_of(q), node);
    o->run_next = run;
    o->finish_next = finish;
    if (unprivileged && o->changed->setid_epoch != fs_of(q)->setid_epoch)
        op_start(q, run_look, finish_look, false);
    else
        op_start(q, run, finish, false);
}
