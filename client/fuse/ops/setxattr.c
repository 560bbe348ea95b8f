/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SETXATTR. Setting an access list clears the set-group-id bit for who is not in the group, as
 * chmod(2) does, without the server refusing anything: the caller's groups are sent along.
 */
#include <string.h>

#include "client/fuse/fs.h"

static void run(struct op *o)
{
    const struct channel_req *q = o->q;

    core_setxattr(o->fs->core, &o->req, fs_ino(o->fs, q->node), q->xattr.name,
                  (uint32_t)strlen(q->xattr.name), q->xattr.value, q->xattr.size, q->xattr.flags);
}

void op_setxattr(struct channel_req *q)
{
    bool is_acl = strncmp(q->xattr.name, "system.", 7) == 0;

    op_start(q, run, op_reply_status, q->uid != 0 && is_acl);
}
