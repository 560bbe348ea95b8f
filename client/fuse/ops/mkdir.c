/* SPDX-License-Identifier: Apache-2.0 */
/* MKDIR. */
#include <string.h>

#include "client/fuse/fs.h"

static void run(struct op *o)
{
    const struct channel_req *q = o->q;

    o->req.masked = q->make.masked;
    o->req.ahead = true;
    core_mkdir(o->fs->core, &o->req, fs_ino(o->fs, q->node), q->make.name,
               (uint32_t)strlen(q->make.name), q->make.mode, NULL);
}

static void finish(struct op *o, int status)
{
    if (status != 0)
        op_fail(o, status);
    else
        op_reply_entry(o);
}

void op_mkdir(struct channel_req *q)
{
    op_start(q, run, finish, false);
}
