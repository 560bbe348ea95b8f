/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LOOKUP, GETATTR: answered on the reactor from the committed view.
 *
 * Happy path: a point view, the permission check, the reply. A file that somebody else is writing
 * under a lease is asked for its size and mtime first (glimpse). Failure modes: the errnos of
 * stat(2); while the writer is silent, or dead and its file not repaired, GETATTR waits, and LOOKUP
 * says that it does not know the size. Of a file that is gone by then LOOKUP looks again what the
 * name stands for: another one may have been moved there.
 */
#include <sys/stat.h>

#include "common/base/err.h"
#include "mds/dispatch.h"
#include "mds/ns/ns.h"
#include "mds/ops/op.h"

/* What was recorded while the writer was asked, or repaired after it had died. */
static int attr_again(struct mds_op *o)
{
    struct mds_inode in;
    struct view v;
    int rc;

    view_begin(mds_shard_of(o->mds, o->glimpse.ino), &v);
    rc = view_inode(&v, o->glimpse.ino, &in);
    view_end(&v);
    if (rc == 0)
        op_fill_inode(&in, &o->rep.inode);
    return rc;
}

static void take_glimpse(const struct mds_glimpse *g, struct msg_attr *a)
{
    if (g->unsure)
        a->flags |= MSG_ATTR_SIZE_UNSURE;
    if (!g->fresh)
        return;
    a->size = MAX(a->size, g->size);
    if (ns_time_compare(g->mtime, a->mtime) > 0)
        a->mtime = g->mtime;
    if (ns_time_compare(a->mtime, a->ctime) > 0 && ns_time_compare(g->mtime, a->mtime) == 0)
        a->ctime = a->mtime; /* as it will be when it has been reported */
}

/* Nothing that was found for the first answer counts. */
static void look_again(struct mds_op *o)
{
    struct rpc_req *req = o->req;

    if (o->mds->dispatch->stopping) {
        op_reply(o, -AIFS_EBUSY_SERVER, NULL);
        return;
    }
    op_end(o);
    req->reply_flags = 0;
    mds_dispatch_read(req);
}

static void glimpse_done(struct mds_glimpse *g, int status)
{
    struct mds_op *o = container_of(g, struct mds_op, glimpse);

    if (status == 0)
        status = attr_again(o);
    if (status == -ENOENT && o->op == RPC_OP_LOOKUP) {
        look_again(o);
        return;
    }
    if (status == 0)
        take_glimpse(g, &o->rep.inode.attr);
    op_reply(o, status, status ? NULL : &o->rep);
}

/* The reply with the attributes as the writer sees them, now or when it has said. A look-up does
 * not wait for one that is silent: the kernel keeps a directory locked meanwhile, and asks for the
 * attributes when anybody wants them. */
static void reply_attr(struct mds_op *o)
{
    int rc = 0;

    o->glimpse = (struct mds_glimpse){.session = o->req->header.session,
                                      .ino = o->rep.inode.attr.ino,
                                      .patient = o->op == RPC_OP_GETATTR,
                                      .deadline_ns = o->req->deadline_ns,
                                      .done = glimpse_done};
    list_init(&o->glimpse.link);
    op_keep(o, o->rep.inode.attr.ino, RPC_FLAG_KEPT_INODE, &o->rep.inode.attr.btime);
    if (S_ISREG(o->rep.inode.attr.mode))
        rc = o->mds->session_ops->glimpse(o->mds, &o->glimpse);
    if (rc > 0)
        return;
    take_glimpse(&o->glimpse, &o->rep.inode.attr);
    op_reply(o, rc, rc < 0 ? NULL : &o->rep);
}

static int lookup_name(struct view *v, const struct msg_name_req *req, const struct mds_inode *dir,
                       struct mds_inode *ret_inode)
{
    const char *name = req->name.data;
    struct mds_dirent d;
    uint64_t ino;
    int rc;

    if (req->name.len == 1 && name[0] == '.') {
        *ret_inode = *dir;
        return 0;
    }
    if (req->name.len == 2 && name[0] == '.' && name[1] == '.') {
        rc = view_parent(v, dir->ino, &ino);
        return rc < 0 ? rc : view_inode(v, ino ? ino : dir->ino, ret_inode);
    }
    rc = ns_name_check(&req->name);
    if (rc == 0)
        rc = view_dirent(v, req->parent, name, req->name.len, &d);
    if (rc < 0)
        return rc;
    rc = view_inode(v, d.ino, ret_inode);
    return rc == -ENOENT ? -AIFS_ECORRUPT : rc;
}

static int lookup(struct view *v, struct rpc_req *r, struct msg_inode *ret_inode)
{
    const struct msg_name_req *req = r->msg;
    struct mds_inode dir, in;
    int rc = view_inode(v, req->parent, &dir);

    if (rc < 0)
        return rc;
    if (!S_ISDIR(dir.mode))
        return -ENOTDIR;
    rc = op_acl(v, &r->arena, &dir);
    if (rc == 0)
        rc = ns_access(&dir, &req->cred, NS_EXEC);
    if (rc == 0)
        rc = lookup_name(v, req, &dir, &in);
    if (rc < 0)
        return rc;
    op_fill_inode(&in, ret_inode);
    return S_ISLNK(in.mode) ? op_fill_data(v, r, KEY_SYMLINK, &in, ret_inode) : 0;
}

void op_lookup(struct mds *m, struct rpc_req *r)
{
    const struct msg_name_req *req = r->msg;
    struct mds_op *o = op_begin_at(m, r, req->parent);
    struct view v;
    int rc;

    if (!o)
        return;
    view_begin(o->shard, &v);
    rc = lookup(&v, r, &o->rep.inode);
    view_end(&v);
    if (rc == 0 && m->session_ops->alone_elsewhere(m, r->header.session, o->rep.inode.attr.ino)) {
        uint64_t ino = o->rep.inode.attr.ino;

        op_end(o); /* first: it goes with the request */
        if (!m->session_ops->park(m, r, ino, mds_dispatch_read))
            rpc_reply(r, -AIFS_EBUSY_SERVER, NULL);
        return;
    }
    if (rc == 0 || rc == -ENOENT)
        op_keep(o, req->parent, RPC_FLAG_KEPT_DIR, NULL);
    if (rc < 0)
        op_reply(o, rc, NULL);
    else
        reply_attr(o);
}

/* Attributes and inline contents of one moment, for whoever may read or write the file,
 * or could when he opened it. */
static int getattr_with_data(struct mds_op *o, struct rpc_req *r)
{
    const struct msg_ino_req *req = r->msg;
    bool is_open = req->open_id &&
                   o->mds->session_ops->has_open(o->mds, r->header.session, req->ino, req->open_id);
    struct mds_inode in;
    struct view v;
    int rc;

    view_begin(o->shard, &v);
    rc = view_inode(&v, req->ino, &in);
    if (rc == 0)
        rc = op_acl(&v, &r->arena, &in);
    if (rc == 0 && !is_open && ns_access(&in, &req->cred, NS_READ) < 0)
        rc = ns_access(&in, &req->cred, NS_WRITE);
    if (rc == 0)
        op_fill_inode(&in, &o->rep.inode);
    if (rc == 0 && S_ISREG(in.mode) && (in.flags & INODE_INLINE))
        rc = op_fill_data(&v, r, KEY_INLINE, &in, &o->rep.inode);
    view_end(&v);
    return rc;
}

void op_getattr(struct mds *m, struct rpc_req *r)
{
    const struct msg_ino_req *req = r->msg;
    struct mds_inode in;
    struct mds_op *o = op_begin_inode(m, r, req->ino, &in);
    int rc;

    if (!o)
        return;
    if (req->flags & MSG_INO_DATA) { /* no glimpse: a later size would make zeros of what it adds */
        rc = getattr_with_data(o, r);
        op_reply(o, rc, rc < 0 ? NULL : &o->rep);
        return;
    }
    op_fill_inode(&in, &o->rep.inode);
    reply_attr(o);
}
