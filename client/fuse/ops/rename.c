/* SPDX-License-Identifier: Apache-2.0 */
/* RENAME, with RENAME_NOREPLACE and RENAME_EXCHANGE. Groups come with it where they do with an
 * unlink. */
#include <string.h>

#include "client/fuse/fs.h"

static void run(struct op *o)
{
    const struct channel_req *q = o->q;

    o->req.ahead = true;
    core_rename(o->fs->core, &o->req, fs_ino(o->fs, q->node), q->rename.name,
                (uint32_t)strlen(q->rename.name), fs_ino(o->fs, q->rename.new_parent),
                q->rename.new_name, (uint32_t)strlen(q->rename.new_name), q->rename.flags);
}

void op_rename(struct channel_req *q)
{
    const struct fs *fs = fs_of(q);

    op_start(q, run, op_reply_removed, fs->removes_by_groups && fs->remover_uid == q->uid);
}
