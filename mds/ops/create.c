/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CREATE, MKDIR, MKNOD, SYMLINK: a new name with a new inode; CREATE without O_EXCL of an existing
 * file opens it, and with FOUND makes none. CREATE of an unnamed file makes an orphan, with all
 * that the directory gives; not with FOUND.
 *
 * The leader resolved: resolved[0] the inode behind the name, 0: none.
 * Happy path: the name is free, the caller may write the directory; a number from the directory's
 * run, the inode, the entry, the directory's times. Failure modes: the errnos of open(2), mkdir(2),
 * mknod(2), symlink(2).
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "mds/ns/ns.h"
#include "mds/ops/exec.h"
#include "mds/session/exec.h"

/* Only regular files and directories are made ahead. */
static int ahead_check(const struct shard_entry *e, const struct msg_create_req *req)
{
    bool ahead = req->ino || req->when_ns || req->data.len || req->has_since;

    return ahead && e->op != RPC_OP_MKNOD && e->op != RPC_OP_MKDIR ? -AIFS_EPROTO : 0;
}

/* 0: the name is free. 1: it exists, as *ret_dirent. */
static int create_lookup(struct txn *t, const struct msg_create_req *req,
                         const struct shard_entry *e, struct mds_dirent *ret_dirent)
{
    const struct mds_inode *dir;
    int rc = ahead_check(e, req);

    if (rc == 0)
        rc = ns_name_check(&req->name);
    if (rc == 0)
        rc = exec_dir(t, req->parent, &dir);
    if (rc == 0)
        rc = ns_access(dir, &req->cred, NS_EXEC);
    if (rc < 0)
        return rc;
    rc = txn_dirent_get(t, req->parent, req->name.data, req->name.len, ret_dirent);
    if (rc < 0 && rc != -ENOENT)
        return rc;
    if (rc == 0) {
        rc = exec_expect(e, 0, ret_dirent->ino);
        return rc < 0 ? rc : 1;
    }
    rc = exec_expect(e, 0, 0);
    if (rc == 0 && (req->flags & MSG_CREATE_FOUND))
        rc = -ENOENT;
    return rc < 0 ? rc : ns_may_create(dir, &req->cred);
}

/* 0: the server takes one. */
static int new_number(struct txn *t, const struct shard_entry *e, const struct msg_create_req *req,
                      uint64_t *ret_ino)
{
    if (!req->ino)
        return exec_new_ino(t, req->parent, ret_ino);
    *ret_ino = req->ino;
    return exec_given_ino(t, e, req->parent, req->ino);
}

static int new_inode(struct txn *t, struct shard_entry *e, const struct msg_create_req *req,
                     uint32_t mode, struct mds_inode **ret_inode)
{
    const struct mds_inode *dir;
    struct msg_bytes acl;
    struct mds_inode *in;
    uint64_t ino;
    int rc = new_number(t, e, req, &ino);

    if (rc == 0)
        rc = txn_inode_new(t, ino, &in);
    if (rc == 0)
        rc = txn_inode_get(t, req->parent, &dir);
    if (rc == 0)
        rc = exec_acl_default(t, dir, mode, &acl);
    if (rc < 0)
        return rc == -EEXIST ? -AIFS_ECORRUPT : rc;
    if (acl.len)
        mode |= req->masked & 0777;
    ns_new_inode(in, dir, &req->cred, mode, txn_now(t));
    rc = exec_acl_inherit(t, in, &acl);
    if (rc < 0)
        return rc;
    e->result |= SHARD_R_CREATED;
    e->result_ino = ino;
    *ret_inode = in;
    return 0;
}

static int create_inode(struct txn *t, struct shard_entry *e, const struct msg_create_req *req,
                        uint32_t mode, struct mds_inode **ret_inode)
{
    int rc = new_inode(t, e, req, mode, ret_inode);

    return rc < 0 ? rc : exec_name_add(t, req->parent, &req->name, (*ret_inode)->ino, mode);
}

static int create_layout(const struct shard_entry *e, struct mds_inode *in)
{
    if (!e->has_layout) /* 0: the directory was not there yet when the leader looked */
        return e->layout_status < 0 ? e->layout_status : -AIFS_ERETRY;
    in->layout = e->layout;
    return 0;
}

static int create_existing(struct txn *t, struct shard_entry *e, const struct msg_create_req *req,
                           uint64_t ino, const void **ret_rep)
{
    uint32_t flags = req->open_flags | (req->flags & MSG_CREATE_TRUNC ? O_TRUNC : 0);
    const struct mds_inode *in;
    int rc;

    if (req->flags & MSG_CREATE_EXCL)
        return -EEXIST;
    rc = txn_inode_get(t, ino, &in);
    if (rc < 0)
        return rc;
    if (!S_ISREG(in->mode))
        return S_ISDIR(in->mode) ? -EISDIR : -EEXIST;
    rc = exec_acl(t, &in);
    if (rc == 0)
        rc = ns_may_open(in, &req->cred, flags);
    if (rc == 0 && e->refused)
        rc = -AIFS_ERETRY;
    if (rc == 0 && (req->flags & MSG_CREATE_TRUNC))
        rc = exec_open_trunc(t, e, ino, &req->cred);
    if (rc == 0)
        rc = exec_mark_writer(t, e, ino);
    e->result_ino = ino; /* for a repeat of this request */
    return rc < 0 ? rc : exec_reply_inode(t, e, ino, req->flags & MSG_CREATE_OPEN, ret_rep);
}

static int create_reply(struct txn *t, struct shard_entry *e, uint64_t ino, uint64_t parent,
                        bool opened, const void **ret_rep)
{
    int rc = exec_reply_inode(t, e, ino, opened, ret_rep);

    return rc < 0 ? rc : exec_reply_dir(t, parent, ret_rep);
}

static int create_unnamed(struct txn *t, struct shard_entry *e, const struct msg_create_req *req,
                          const void **ret_rep)
{
    const struct mds_inode *dir;
    struct mds_inode *in;
    int rc = ahead_check(e, req);

    if (rc == 0 && (req->flags & (MSG_CREATE_OPEN | MSG_CREATE_FOUND)) != MSG_CREATE_OPEN)
        rc = -EINVAL;
    if (rc == 0)
        rc = exec_dir(t, req->parent, &dir);
    if (rc == 0)
        rc = ns_access(dir, &req->cred, NS_EXEC);
    if (rc == 0)
        rc = ns_may_create(dir, &req->cred);
    if (rc == 0)
        rc = new_inode(t, e, req, S_IFREG | (req->mode & 07777), &in);
    if (rc == 0)
        rc = create_layout(e, in);
    if (rc < 0)
        return rc;
    in->nlink = 0;
    if (!(req->flags & MSG_CREATE_EXCL))
        in->flags |= INODE_LINKABLE;
    rc = exec_orphan(t, e, in);
    if (rc == 0)
        rc = exec_mark_writer(t, e, in->ino);
    return rc < 0 ? rc : exec_reply_inode(t, e, in->ino, true, ret_rep);
}

int exec_create(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct msg_create_req *req = e->msg;
    struct mds_dirent d;
    struct mds_inode *in;
    int rc;

    if (req->flags & MSG_CREATE_UNNAMED)
        return create_unnamed(t, e, req, ret_rep);
    rc = create_lookup(t, req, e, &d);
    if (rc == 1)
        return create_existing(t, e, req, d.ino, ret_rep);
    if (rc < 0)
        return rc;
    rc = create_inode(t, e, req, S_IFREG | (req->mode & 07777), &in);
    if (rc < 0)
        return rc;
    rc = create_layout(e, in);
    if (rc == 0)
        rc = exec_mark_writer(t, e, in->ino);
    return rc < 0 ? rc
                  : create_reply(t, e, in->ino, req->parent, req->flags & MSG_CREATE_OPEN, ret_rep);
}

/* What has been written to a file since it was made, ahead of this. */
static int create_data(struct txn *t, const struct msg_create_req *req, struct mds_inode *in)
{
    int64_t wrote = (int64_t)req->wrote_ns;
    struct msg_time mtime = {wrote / (int64_t)NS_PER_S, (uint32_t)(wrote % (int64_t)NS_PER_S)};
    struct key k;

    if (req->data.len == 0)
        return 0;
    in->size = req->data.len;
    if (!ns_is_root(&req->cred))
        ns_kill_priv(in);
    ns_written(in, wrote > 0 ? mtime : (struct msg_time){0}, txn_now(t));
    key_number(&k, KEY_INLINE, in->ino);
    return txn_record_add(t, &k, req->data.data, req->data.len);
}

/* It happened when its client has told its own kernel. */
static int create_time(struct txn *t, struct shard_entry *e, const struct msg_create_req *req)
{
    const struct mds_inode *dir;
    int rc = req->when_ns ? txn_inode_get(t, req->parent, &dir) : 0;

    if (rc == 0 && req->when_ns)
        exec_take_time(e, dir, req->when_ns);
    return rc;
}

#define SET_SINCE (MSG_SET_MODE | MSG_SET_UID | MSG_SET_GID | MSG_SET_ATIME | MSG_SET_MTIME)

/* What has been set since it was made, and written to it: as by a SETATTR of its maker. */
static int create_set(const struct shard_entry *e, const struct msg_create_req *req,
                      struct mds_inode *in)
{
    const struct msg_set_since *s = &req->since;
    const struct msg_setattr_req set = {.cred = req->cred,
                                        .set = s->set,
                                        .mode = s->mode,
                                        .uid = s->uid,
                                        .gid = s->gid,
                                        .atime = s->atime,
                                        .mtime = s->mtime};
    int64_t when = exec_when(e, s->when_ns);
    int rc;

    if (!req->has_since)
        return 0;
    rc = s->set & ~SET_SINCE ? -EINVAL : ns_setattr_check(in, &set);
    if (rc < 0)
        return rc;
    ns_setattr_apply(
        in, &set,
        (struct msg_time){when / (int64_t)NS_PER_S, (uint32_t)(when % (int64_t)NS_PER_S)});
    return 0;
}

int exec_mkdir(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct msg_create_req *req = e->msg;
    int64_t now_ns = e->now_ns;
    struct mds_dirent d;
    struct mds_inode *in;
    int rc = req->data.len ? -EINVAL : create_lookup(t, req, e, &d);

    if (rc != 0)
        return rc == 1 ? -EEXIST : rc;
    rc = create_time(t, e, req);
    if (rc == 0)
        rc = create_inode(t, e, req, S_IFDIR | (req->mode & 07777), &in);
    e->now_ns = now_ns;
    if (rc < 0)
        return rc;
    if (e->has_stripe)
        in->stripe = e->stripe;
    else if (req->has_stripe)
        return e->layout_status < 0 ? e->layout_status : -EINVAL;
    rc = create_set(e, req, in);
    if (rc == 0)
        rc = exec_parent_set(t, in->ino, req->parent, &req->name, true);
    return rc < 0 ? rc : create_reply(t, e, in->ino, req->parent, false, ret_rep);
}

static int mknod_check(const struct msg_create_req *req, uint32_t type)
{
    if (type != S_IFREG && type != S_IFIFO && type != S_IFSOCK && type != S_IFCHR &&
        type != S_IFBLK)
        return type == S_IFDIR ? -EPERM : -EINVAL;
    /* A whiteout is no device: everybody's, since Linux 5.8. */
    if ((type == S_IFBLK || (type == S_IFCHR && req->rdev != 0)) &&
        !ns_can_all(&req->cred, MSG_CAP_MKNOD))
        return -EPERM;
    return type != S_IFREG && (req->ino || req->data.len || req->has_since) ? -EINVAL : 0;
}

int exec_mknod(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct msg_create_req *req = e->msg;
    uint32_t type = req->mode & S_IFMT;
    struct mds_dirent d;
    struct mds_inode *in;
    int64_t now_ns = e->now_ns;
    int rc;

    if (type == 0)
        type = S_IFREG;
    rc = mknod_check(req, type);
    if (rc == 0)
        rc = create_lookup(t, req, e, &d);
    if (rc != 0)
        return rc == 1 ? -EEXIST : rc;
    rc = create_time(t, e, req);
    if (rc < 0)
        return rc;
    rc = create_inode(t, e, req, type | (req->mode & 07777), &in);
    if (rc < 0)
        return rc;
    if (type == S_IFCHR || type == S_IFBLK)
        in->rdev = req->rdev;
    rc = type == S_IFREG ? create_layout(e, in) : 0;
    e->now_ns = now_ns;
    if (rc == 0)
        rc = create_data(t, req, in);
    if (rc == 0)
        rc = create_set(e, req, in);
    return rc < 0 ? rc : create_reply(t, e, in->ino, req->parent, false, ret_rep);
}

int exec_symlink(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct msg_create_req *req = e->msg;
    struct mds_dirent d;
    struct mds_inode *in;
    struct key k;
    int rc;

    if (req->target.len == 0)
        return -ENOENT;
    if (req->target.len >= MSG_PATH_MAX)
        return -ENAMETOOLONG;
    if (memchr(req->target.data, '\0', req->target.len))
        return -EINVAL;
    rc = create_lookup(t, req, e, &d);
    if (rc != 0)
        return rc == 1 ? -EEXIST : rc;
    rc = create_inode(t, e, req, S_IFLNK | 0777, &in);
    if (rc < 0)
        return rc;
    in->size = req->target.len;
    key_number(&k, KEY_SYMLINK, in->ino);
    rc = txn_record_add(t, &k, req->target.data, req->target.len);
    return rc < 0 ? rc : create_reply(t, e, in->ino, req->parent, false, ret_rep);
}
