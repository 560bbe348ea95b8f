/* SPDX-License-Identifier: Apache-2.0 */
/* REMOVEXATTR. Removing an ACL that cannot exist succeeds, as on other file systems. */
#include <string.h>

#include "client/fuse/fs.h"

static void run(struct op *o)
{
    const struct channel_req *q = o->q;

    core_removexattr(o->fs->core, &o->req, fs_ino(o->fs, q->node), q->name.name,
                     (uint32_t)strlen(q->name.name));
}

void op_removexattr(struct channel_req *q)
{
    if (fs_xattr_is_acl(q->name.name))
        channel_reply_err(q, 0);
    else
        op_start(q, run, op_reply_status, false);
}
