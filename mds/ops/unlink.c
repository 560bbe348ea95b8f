/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UNLINK, RMDIR, LINK: names come and go, the inode counts them.
 *
 * The leader resolved[0]: the inode behind the name that goes; is_open[0] of a file: somebody has
 * it open, so that its last name leaves an orphan. Failure modes: the errnos of unlink(2),
 * rmdir(2), link(2).
 */
#include <sys/stat.h>

#include "common/base/err.h"
#include "mds/ns/ns.h"
#include "mds/ops/exec.h"

/* A name that shall go, its directory and its inode; the caller may remove it. */
static int remove_lookup(struct txn *t, const struct msg_name_req *req,
                         const struct mds_inode **ret_dir, const struct mds_inode **ret_victim)
{
    struct mds_dirent d;
    int rc = ns_name_check(&req->name);

    if (rc == 0)
        rc = exec_dir(t, req->parent, ret_dir);
    if (rc == 0)
        rc = ns_access(*ret_dir, &req->cred, NS_EXEC);
    if (rc == 0)
        rc = txn_dirent_get(t, req->parent, req->name.data, req->name.len, &d);
    if (rc < 0)
        return rc;
    rc = txn_inode_get(t, d.ino, ret_victim);
    if (rc < 0)
        return rc == -ENOENT ? -AIFS_ECORRUPT : rc;
    return ns_may_delete(*ret_dir, *ret_victim, &req->cred);
}

/* What it was, without a name now. */
static int reply_last(struct txn *t, const struct mds_inode *was, const void **ret_rep)
{
    struct msg_inode_rep *rep = txn_alloc(t, sizeof(*rep));
    struct mds_inode last = *was;

    if (!rep)
        return -ENOMEM;
    *rep = (struct msg_inode_rep){0};
    if (!S_ISDIR(last.mode))
        rep->inode.layout = last.layout;
    last.nlink = 0;
    ns_changed(&last, txn_now(t));
    rec_inode_attr(&last, &rep->inode.attr);
    *ret_rep = rep;
    return 0;
}

int exec_unlink(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct msg_name_req *req = e->msg;
    const struct mds_inode *dir, *victim;
    int rc = remove_lookup(t, req, &dir, &victim);

    if (rc < 0)
        return rc;
    exec_take_time(e, dir, req->when_ns);
    if (S_ISDIR(victim->mode))
        return -EISDIR;
    rc = exec_expect(e, 0, victim->ino);
    if (rc == 0)
        rc = exec_name_remove(t, req->parent, &req->name, victim->mode);
    if (rc < 0)
        return rc;
    uint64_t ino = victim->ino;
    struct mds_inode last = *victim;

    rc = exec_link_drop(t, e, ino, e->is_open[0], 0);
    if (rc < 0)
        return rc;
    rc = last.nlink > 1 ? exec_reply_inode(t, e, ino, false, ret_rep)
                        : reply_last(t, &last, ret_rep);
    return rc < 0 ? rc : exec_reply_dir(t, req->parent, ret_rep);
}

int exec_rmdir(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct msg_name_req *req = e->msg;
    const struct mds_inode *dir, *victim;
    int rc = remove_lookup(t, req, &dir, &victim);

    if (rc < 0)
        return rc;
    exec_take_time(e, dir, req->when_ns);
    if (!S_ISDIR(victim->mode))
        return -ENOTDIR;
    if (victim->entries > 0)
        return -ENOTEMPTY;
    rc = exec_expect(e, 0, victim->ino);
    if (rc == 0)
        rc = exec_name_remove(t, req->parent, &req->name, victim->mode);
    if (rc < 0)
        return rc;
    struct mds_inode last = *victim;

    rc = exec_link_drop(t, e, last.ino, false, 0);
    if (rc == 0)
        rc = reply_last(t, &last, ret_rep);
    return rc < 0 ? rc : exec_reply_dir(t, req->parent, ret_rep);
}

/* A file that was made without a name gets its first; one that has lost its last stays without. */
static int adopt(struct txn *t, struct mds_inode *in)
{
    struct key k;

    if (!(in->flags & INODE_LINKABLE))
        return -ENOENT;
    in->flags &= ~(INODE_LINKABLE | INODE_ORPHAN);
    key_number(&k, KEY_ORPHAN, in->ino);
    return txn_record_delete(t, &k);
}

int exec_link(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct msg_link_req *req = e->msg;
    const struct mds_inode *dir;
    struct mds_dirent d;
    struct mds_inode *in;
    int rc = ns_name_check(&req->new_name);

    if (rc == 0)
        rc = exec_dir(t, req->new_parent, &dir);
    if (rc == 0)
        rc = ns_access(dir, &req->cred, NS_EXEC);
    if (rc < 0)
        return rc;
    rc = txn_dirent_get(t, req->new_parent, req->new_name.data, req->new_name.len, &d);
    if (rc != -ENOENT)
        return rc == 0 ? -EEXIST : rc;
    rc = ns_may_create(dir, &req->cred);
    if (rc == 0)
        rc = txn_inode_modify(t, req->ino, &in);
    if (rc < 0)
        return rc;
    if (S_ISDIR(in->mode))
        return -EPERM;
    if (in->nlink >= NS_LINK_MAX)
        return -EMLINK;
    rc = in->nlink == 0 ? adopt(t, in) : 0;
    if (rc < 0)
        return rc;
    in->nlink++;
    ns_changed(in, txn_now(t));
    rc = exec_name_add(t, req->new_parent, &req->new_name, in->ino, in->mode);
    if (rc == 0)
        rc = exec_reply_inode(t, e, in->ino, false, ret_rep);
    return rc < 0 ? rc : exec_reply_dir(t, req->new_parent, ret_rep);
}
