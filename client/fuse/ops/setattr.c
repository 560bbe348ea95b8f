/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SETATTR: chmod, chown, truncate, utimes. Whether a set-group-id bit stays depends on the caller's
 * groups without the server refusing anything, so these are sent along when one is being set.
 */
#include <sys/stat.h>

#include "client/fuse/fs.h"

static void run(struct op *o)
{
    const struct channel_req *q = o->q;
    struct msg_setattr_req set = {.ino = fs_ino(o->fs, q->node),
                                  .set = q->attr.set,
                                  .mode = q->attr.mode,
                                  .uid = q->attr.uid,
                                  .gid = q->attr.gid,
                                  .size = q->attr.size,
                                  .atime = q->attr.atime,
                                  .mtime = q->attr.mtime};

    core_setattr(o->fs->core, &o->req, &set, q->attr.has_fh ? fs_file_of(q->attr.fh)->file : NULL);
}

static void finish(struct op *o, int status)
{
    struct core_entry e = o->req.entry;

    if (status != 0)
        op_fail_inode(o, status);
    else
        channel_reply_attr(op_end(o, 0), &e.attr, e.attr_valid_ns);
}

void op_setattr(struct channel_req *q)
{
    bool sets_mode = (q->attr.set & MSG_SET_MODE) != 0;

    if (sets_mode && (q->attr.mode & (S_ISUID | S_ISGID)))
        fs_of(q)->setid_epoch++;
    op_start(q, run, finish, q->uid != 0 && sets_mode && (q->attr.mode & S_ISGID));
}
