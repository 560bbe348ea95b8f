/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps that reads share: an inode as clients see it, the records that come with it.
 */
#include <sys/stat.h>

#include "common/base/err.h"
#include "mds/ops/exec.h"
#include "mds/ops/op.h"

void op_fill_inode(const struct mds_inode *in, struct msg_inode *out)
{
    *out = (struct msg_inode){0};
    rec_inode_attr(in, &out->attr);
    if (!S_ISDIR(in->mode)) /* what a directory asks for is no layout yet: aifs.layout tells it */
        out->layout = in->layout;
}

void op_keep(struct mds_op *o, uint64_t ino, uint8_t flag, const struct msg_time *born)
{
    if (ino && o->mds->session_ops->watch(o->mds, o->req->header.session, ino, born, false))
        o->req->reply_flags |= flag;
    if (flag == RPC_FLAG_KEPT_INODE)
        op_keep_size(o, ino);
}

void op_keep_size(struct mds_op *o, uint64_t ino)
{
    if (o->mds->session_ops->told_of_cuts(o->mds, o->req->header.session, ino))
        o->req->reply_flags |= RPC_FLAG_CUTS_TOLD;
}

void op_keep_dir(struct mds_op *o, uint64_t dir, uint8_t flag)
{
    if (dir && o->mds->session_ops->watch(o->mds, o->req->header.session, dir, NULL, true))
        o->req->reply_flags |= flag;
}

bool op_made_alone(struct mds_op *o, unsigned op, const struct msg_create_req *req, uint64_t ino)
{
    const struct mds_session_ops *s = o->mds->session_ops;

    if (op == RPC_OP_MKDIR && req->alone && s->alone_dir(o->mds, o->req->header.session, ino))
        return true;
    return req->ino && s->alone_entry(o->mds, o->req->header.session, req->parent, ino) &&
           op == RPC_OP_MKNOD;
}

/* A record of the inode as its data; absent: empty. */
int op_fill_data(struct view *v, struct rpc_req *req, enum key_type type,
                 const struct mds_inode *in, struct msg_inode *out)
{
    const void *value = "";
    uint32_t len = 0;
    struct key k;
    int rc = 0;

    if (in->size) {
        key_number(&k, type, in->ino);
        rc = view_record(v, &k, &req->arena, &value, &len);
    }
    if (rc < 0 && rc != -ENOENT)
        return rc;
    out->has_data = true;
    out->data = (struct msg_bytes){.data = value, .len = rc == 0 ? len : 0};
    return 0;
}

/* The inode a request names, from a point view; the reply was sent when this fails. */
struct mds_op *op_begin_inode(struct mds *m, struct rpc_req *r, uint64_t ino,
                              struct mds_inode *ret_inode)
{
    struct mds_op *o = op_begin_at(m, r, ino);
    struct view v;
    int rc;

    if (!o)
        return NULL;
    view_begin(o->shard, &v);
    rc = view_inode(&v, ino, ret_inode);
    view_end(&v);
    if (rc < 0) {
        op_reply(o, rc, NULL);
        return NULL;
    }
    return o;
}
