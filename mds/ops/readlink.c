/* SPDX-License-Identifier: Apache-2.0 */
/* READLINK: the target of a symbolic link; -EINVAL for anything else. Lookup brings it too. */
#include <sys/stat.h>

#include "common/base/err.h"
#include "mds/ops/op.h"

void op_readlink(struct mds *m, struct rpc_req *r)
{
    const struct msg_ino_req *req = r->msg;
    struct msg_inode out = {0};
    struct mds_inode in;
    struct mds_op *o = op_begin_inode(m, r, req->ino, &in);
    struct view v;
    int rc;

    if (!o)
        return;
    if (!S_ISLNK(in.mode)) {
        op_reply(o, -EINVAL, NULL);
        return;
    }
    view_begin(o->shard, &v);
    rc = op_fill_data(&v, r, KEY_SYMLINK, &in, &out);
    view_end(&v);
    if (rc == 0 && out.data.len == 0)
        rc = -ENOENT; /* gone between the two views */
    op_reply(o, rc, rc == 0 ? &(struct msg_bytes_rep){.value = out.data} : NULL);
}
