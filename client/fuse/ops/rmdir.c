/* SPDX-License-Identifier: Apache-2.0 */
/* RMDIR. Groups come with it where they do with an unlink. */
#include <string.h>

#include "client/fuse/fs.h"

static void run(struct op *o)
{
    const struct channel_req *q = o->q;

    o->req.ahead = true;
    core_rmdir(o->fs->core, &o->req, fs_ino(o->fs, q->node), q->name.name,
               (uint32_t)strlen(q->name.name));
}

void op_rmdir(struct channel_req *q)
{
    const struct fs *fs = fs_of(q);

    op_start(q, run, op_reply_status, fs->removes_by_groups && fs->remover_uid == q->uid);
}
