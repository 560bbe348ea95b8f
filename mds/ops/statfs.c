/* SPDX-License-Identifier: Apache-2.0 */
/*
 * STATFS: bytes of the targets, inodes of the shards. FSYNC: every acknowledged change is on the
 * disk already, so that only the inode's existence is left to check.
 */
#include "common/base/err.h"
#include "mds/ops/op.h"

void op_statfs(struct mds *m, struct rpc_req *r)
{
    struct msg_statfs_rep rep = {0};
    struct mds_op *o = op_begin(m, r);
    struct view v;

    if (!o)
        return;
    m->cluster_ops->statfs(m, &rep);
    for (uint32_t i = 0; i < m->n_shards; i++) {
        view_begin(m->shards[i], &v);
        rep.files += view_counter(&v, COUNTER_INODES);
        view_end(&v);
        /* an inode with its name takes about half a KiB of the store */
        rep.files_free += store_free_bytes(shard_store(m->shards[i])) / 512;
    }
    rep.files += rep.files_free;
    op_reply(o, 0, &rep);
}

void op_fsync(struct mds *m, struct rpc_req *r)
{
    const struct msg_ino_req *req = r->msg;
    struct mds_inode in;
    struct mds_op *o = op_begin_inode(m, r, req->ino, &in);

    if (o)
        op_reply(o, 0, &(struct msg_empty){0});
}
