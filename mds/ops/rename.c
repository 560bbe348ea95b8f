/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RENAME, with NOREPLACE and EXCHANGE.
 *
 * The leader resolved: resolved[0] the inode behind the old name, resolved[1] behind the new one
 * (0: none); is_open[1]: the one that is replaced is open somewhere. Happy path: the rules agree
 * (ns/rename.c); names, parents of directories, counts and times change. Failure modes: the errnos
 * of rename(2); a directory can not be moved below itself.
 */
#include <stdio.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "mds/ns/ns.h"
#include "mds/ops/exec.h"

static int rename_find(struct txn *t, uint64_t dir, const struct msg_bytes *name,
                       const struct mds_inode **ret_inode)
{
    struct mds_dirent d;
    int rc = txn_dirent_get(t, dir, name->data, name->len, &d);

    if (rc < 0)
        return rc;
    rc = txn_inode_get(t, d.ino, ret_inode);
    if (rc == 0)
        rc = exec_acl(t, ret_inode);
    return rc == -ENOENT ? -AIFS_ECORRUPT : rc;
}

static int rename_lookup(struct txn *t, const struct msg_rename_req *req, struct ns_rename *r)
{
    int rc = ns_name_check(&req->name);

    *r = (struct ns_rename){.cred = &req->cred, .flags = req->flags};
    if (rc == 0)
        rc = ns_name_check(&req->new_name);
    if (rc == 0)
        rc = exec_dir(t, req->parent, &r->dir);
    if (rc == 0)
        rc = exec_dir(t, req->new_parent, &r->new_dir);
    /* whoever may not search learns nothing of what is there */
    if (rc == 0)
        rc = ns_access(r->dir, &req->cred, NS_EXEC);
    if (rc == 0)
        rc = ns_access(r->new_dir, &req->cred, NS_EXEC);
    if (rc == 0)
        rc = rename_find(t, req->parent, &req->name, &r->src);
    if (rc < 0)
        return rc;
    rc = rename_find(t, req->new_parent, &req->new_name, &r->dst);
    if (rc == -ENOENT)
        rc = 0;
    if (rc == 0 && req->parent != req->new_parent) {
        if (S_ISDIR(r->src->mode))
            rc = exec_is_above(t, r->src->ino, req->new_parent, &r->src_above_new_dir);
        if (rc == 0 && r->dst && S_ISDIR(r->dst->mode))
            rc = exec_is_above(t, r->dst->ino, req->parent, &r->dst_above_dir);
    }
    return rc;
}

/* An inode has another name now: it changed; a directory knows its parent. */
static int rename_touch(struct txn *t, uint64_t ino, uint64_t parent, const struct msg_bytes *name,
                        struct msg_time when)
{
    struct mds_inode *in;
    int rc = txn_inode_modify(t, ino, &in);

    if (rc < 0)
        return rc;
    ns_changed(in, when);
    return S_ISDIR(in->mode) ? exec_parent_set(t, ino, parent, name, false) : 0;
}

static int rename_move(struct txn *t, struct shard_entry *e, const struct msg_rename_req *req,
                       const struct ns_rename *r, struct msg_time when)
{
    uint64_t src = r->src->ino;
    uint32_t mode = r->src->mode;
    int rc = 0;

    if (r->dst) {
        uint64_t dst = r->dst->ino;

        rc = exec_name_remove(t, req->new_parent, &req->new_name, r->dst->mode);
        if (rc == 0)
            rc = exec_link_drop(t, e, dst, e->is_open[1], 0);
    }
    if (rc == 0)
        rc = exec_name_remove(t, req->parent, &req->name, mode);
    if (rc == 0)
        rc = exec_name_add(t, req->new_parent, &req->new_name, src, mode);
    return rc < 0 ? rc : rename_touch(t, src, req->new_parent, &req->new_name, when);
}

static int rename_exchange(struct txn *t, const struct msg_rename_req *req,
                           const struct ns_rename *r, struct msg_time when)
{
    uint64_t src = r->src->ino, dst = r->dst->ino;
    uint32_t src_mode = r->src->mode, dst_mode = r->dst->mode;
    struct mds_inode *dir, *new_dir;
    int rc = txn_inode_modify(t, req->parent, &dir);

    if (rc == 0)
        rc = txn_inode_modify(t, req->new_parent, &new_dir);
    if (rc < 0)
        return rc;
    if (S_ISDIR(src_mode) && !S_ISDIR(dst_mode)) {
        dir->nlink--;
        new_dir->nlink++;
    } else if (!S_ISDIR(src_mode) && S_ISDIR(dst_mode)) {
        dir->nlink++;
        new_dir->nlink--;
    }
    ns_modified(dir, txn_now(t));
    ns_modified(new_dir, txn_now(t));
    rc = txn_dirent_put(t, req->parent, req->name.data, req->name.len, dst, ns_type_of(dst_mode));
    if (rc == 0)
        rc = txn_dirent_put(t, req->new_parent, req->new_name.data, req->new_name.len, src,
                            ns_type_of(src_mode));
    if (rc == 0)
        rc = rename_touch(t, src, req->new_parent, &req->new_name, when);
    return rc < 0 ? rc : rename_touch(t, dst, req->parent, &req->name, when);
}

/* The reply tells what has become of both inodes. */
static int rename_do(struct txn *t, struct shard_entry *e, const struct msg_rename_req *req,
                     const struct ns_rename *r, struct msg_time when, const void **ret_rep)
{
    struct mds_inode last = r->dst ? *r->dst : (struct mds_inode){0};
    uint64_t src = r->src->ino;
    const struct mds_inode *in;
    struct msg_inode_rep *rep;
    int rc = req->flags & RENAME_EXCHANGE ? rename_exchange(t, req, r, when)
                                          : rename_move(t, e, req, r, when);

    if (rc == 0)
        rc = exec_reply_inode(t, e, src, false, ret_rep);
    if (rc < 0 || !last.ino)
        return rc;
    rep = (struct msg_inode_rep *)*ret_rep; /* of this very execution */
    rc = txn_inode_get(t, last.ino, &in);
    if (rc == -ENOENT) {
        last.nlink = 0;
        ns_changed(&last, txn_now(t));
        in = &last;
    } else if (rc < 0) {
        return rc;
    }
    rep->has_victim = true;
    rec_inode_attr(in, &rep->victim);
    return 0;
}

int exec_rename(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct msg_rename_req *req = e->msg;
    int64_t when_ns =
        exec_when(e, req->when_ns); /* the directory's may be later: others changed it */
    struct msg_time when = {when_ns / (int64_t)NS_PER_S, (uint32_t)(when_ns % (int64_t)NS_PER_S)};
    struct ns_rename r;
    int rc = rename_lookup(t, req, &r);

    if (rc == 0) {
        exec_take_time(e, r.dir, req->when_ns);
        rc = exec_expect(e, 0, r.src->ino);
    }
    if (rc == 0)
        rc = exec_expect(e, 1, r.dst ? r.dst->ino : 0);
    if (rc == 0)
        rc = ns_rename_check(&r);
    if (rc == 0)
        rc = rename_do(t, e, req, &r, when, ret_rep);
    if (rc >= 0) /* two names of one file: nothing changes */
        rc = exec_reply_dir(t, req->parent, ret_rep);
    return rc < 0 ? rc : exec_reply_dir(t, req->new_parent, ret_rep);
}
