/* SPDX-License-Identifier: Apache-2.0 */
/* UNLINK. */
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
    op_start(q, run, op_reply_status, false);
}
