/* SPDX-License-Identifier: Apache-2.0 */
/* UNLINK. Who was allowed by a supplementary group will be again, and may not wait for the server
 * each time: then the groups come with the request. */
#include <string.h>

#include "client/fuse/fs.h"

static void run(struct op *o)
{
    const struct channel_req *q = o->q;

    o->req.ahead = true;
    core_unlink(o->fs->core, &o->req, fs_ino(o->fs, q->node), q->name.name,
                (uint32_t)strlen(q->name.name));
}

void op_unlink(struct channel_req *q)
{
    const struct fs *fs = fs_of(q);

    op_start(q, run, op_reply_removed, fs->removes_by_groups && fs->remover_uid == q->uid);
}
