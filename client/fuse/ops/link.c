/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: another name for an inode. */
#include <string.h>

#include "client/fuse/fs.h"

static void run(struct op *o)
{
    const struct channel_req *q = o->q;

    core_link(o->fs->core, &o->req, fs_ino(o->fs, q->node), fs_ino(o->fs, q->link_to.new_parent),
              q->link_to.new_name, (uint32_t)strlen(q->link_to.new_name));
}

static void finish(struct op *o, int status)
{
    if (status != 0)
        op_fail(o, status);
    else
        op_reply_entry(o);
}

void op_link(struct channel_req *q)
{
    op_start(q, run, finish, false);
}
