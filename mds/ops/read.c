/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LOOKUP, GETATTR, READLINK, STATFS, FSYNC, and the answer of OPEN: what the reactor answers from
 * the committed view.
 *
 * Happy path: a point view, the permission check, the reply. A file that somebody else is writing
 * under a lease is asked for its size and mtime first (glimpse). Failure modes: the errnos of
 * stat(2), readlink(2), open(2). FSYNC of metadata has nothing to do: every acknowledged change is
 * on the disk.
 */
#include <string.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "mds/ns/ns.h"
#include "mds/ops/exec.h"
#include "mds/ops/op.h"

static void fill_inode(const struct mds_inode *in, struct msg_inode *out)
{
    *out = (struct msg_inode){0};
    rec_inode_attr(in, &out->attr);
    if (S_ISDIR(in->mode))
        rec_stripe_layout(&in->stripe, &out->layout);
    else
        out->layout = in->layout;
}

/* A record of the inode as its data; absent: empty. */
static int fill_data(struct view *v, struct rpc_req *req, enum key_type type,
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

static void glimpse_done(struct mds_glimpse *g)
{
    struct mds_op *o = container_of(g, struct mds_op, glimpse);
    struct msg_attr *a = &o->rep.inode.attr;

    if (g->fresh) {
        a->size = MAX(a->size, g->size);
        if (ns_time_compare(g->mtime, a->mtime) > 0)
            a->mtime = g->mtime;
    }
    op_reply(o, 0, &o->rep);
}

/* The reply with the attributes as the writer sees them, now or when it has said. */
static void reply_attr(struct mds_op *o)
{
    o->glimpse = (struct mds_glimpse){
        .session = o->req->header.session, .ino = o->rep.inode.attr.ino, .done = glimpse_done};
    list_init(&o->glimpse.link);
    if (S_ISREG(o->rep.inode.attr.mode) && o->mds->session_ops->glimpse(o->mds, &o->glimpse))
        return;
    op_reply(o, 0, &o->rep);
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
    rc = ns_access(&dir, &req->cred, NS_EXEC);
    if (rc == 0)
        rc = lookup_name(v, req, &dir, &in);
    if (rc < 0)
        return rc;
    fill_inode(&in, ret_inode);
    return S_ISLNK(in.mode) ? fill_data(v, r, KEY_SYMLINK, &in, ret_inode) : 0;
}

void op_lookup(struct mds *m, struct rpc_req *r)
{
    const struct msg_name_req *req = r->msg;
    struct mds_op *o = op_begin(m, r);
    struct view v;
    int rc;

    if (!o)
        return;
    o->shard = mds_shard_of(m, req->parent);
    if (!o->shard) {
        op_reply(o, -ENOENT, NULL);
        return;
    }
    view_begin(o->shard, &v);
    rc = lookup(&v, r, &o->rep.inode);
    view_end(&v);
    if (rc < 0)
        op_reply(o, rc, NULL);
    else
        reply_attr(o);
}

/* The inode a request names, from a point view; the reply was sent when this fails. */
static struct mds_op *read_inode(struct mds *m, struct rpc_req *r, uint64_t ino,
                                 struct mds_inode *ret_inode)
{
    struct mds_op *o = op_begin(m, r);
    struct view v;
    int rc = -ENOENT;

    if (!o)
        return NULL;
    o->shard = mds_shard_of(m, ino);
    if (o->shard) {
        view_begin(o->shard, &v);
        rc = view_inode(&v, ino, ret_inode);
        view_end(&v);
    }
    if (rc < 0) {
        op_reply(o, rc, NULL);
        return NULL;
    }
    return o;
}

/* Attributes and inline contents of one moment, for whoever may read or write the file. */
static int getattr_with_data(struct mds_op *o, struct rpc_req *r)
{
    const struct msg_ino_req *req = r->msg;
    struct mds_inode in;
    struct view v;
    int rc;

    view_begin(o->shard, &v);
    rc = view_inode(&v, req->ino, &in);
    if (rc == 0 && ns_access(&in, &req->cred, NS_READ) < 0)
        rc = ns_access(&in, &req->cred, NS_WRITE);
    if (rc == 0)
        fill_inode(&in, &o->rep.inode);
    if (rc == 0 && S_ISREG(in.mode) && (in.flags & INODE_INLINE))
        rc = fill_data(&v, r, KEY_INLINE, &in, &o->rep.inode);
    view_end(&v);
    return rc;
}

void op_getattr(struct mds *m, struct rpc_req *r)
{
    const struct msg_ino_req *req = r->msg;
    struct mds_inode in;
    struct mds_op *o = read_inode(m, r, req->ino, &in);
    int rc = 0;

    if (!o)
        return;
    if (req->flags & MSG_INO_DATA)
        rc = getattr_with_data(o, r);
    else
        fill_inode(&in, &o->rep.inode);
    if (rc < 0)
        op_reply(o, rc, NULL);
    else
        reply_attr(o);
}

void op_readlink(struct mds *m, struct rpc_req *r)
{
    const struct msg_ino_req *req = r->msg;
    struct msg_inode out = {0};
    struct mds_inode in;
    struct mds_op *o = read_inode(m, r, req->ino, &in);
    struct view v;
    int rc;

    if (!o)
        return;
    if (!S_ISLNK(in.mode)) {
        op_reply(o, -EINVAL, NULL);
        return;
    }
    view_begin(o->shard, &v);
    rc = fill_data(&v, r, KEY_SYMLINK, &in, &out);
    view_end(&v);
    if (rc == 0 && out.data.len == 0)
        rc = -ENOENT; /* gone between the two views */
    op_reply(o, rc, rc == 0 ? &(struct msg_bytes_rep){.value = out.data} : NULL);
}

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
    struct mds_op *o = read_inode(m, r, req->ino, &in);

    if (o)
        op_reply(o, 0, &(struct msg_empty){0});
}

int op_open_reply(struct mds_op *o, struct msg_inode_rep *rep)
{
    const struct msg_open_req *req = o->req->msg;
    struct mds_inode in;
    struct view v;
    int rc;

    view_begin(o->shard, &v);
    rc = view_inode(&v, req->ino, &in);
    if (rc == 0)
        rc = ns_may_open(&in, &req->cred, req->flags);
    if (rc == 0 && !S_ISREG(in.mode) && !S_ISDIR(in.mode))
        rc = -ENXIO; /* pipes, sockets and devices are the client's own */
    if (rc == 0) {
        *rep = (struct msg_inode_rep){0};
        fill_inode(&in, &rep->inode);
        if (S_ISREG(in.mode) && (in.flags & INODE_INLINE))
            rc = fill_data(&v, o->req, KEY_INLINE, &in, &rep->inode);
    }
    view_end(&v);
    if (rc == 0 && S_ISREG(in.mode)) {
        const struct mds_touch *t;

        if (o->open_touch < 0) /* it has become readable, or a file, since it was resolved */
            return -AIFS_ERETRY;
        t = &o->prepare.touch[o->open_touch];
        rep->open_id = t->open_id;
        rep->inode.lease = t->lease;
        rep->inode.lease_seq = t->lease_seq;
    }
    return rc;
}
