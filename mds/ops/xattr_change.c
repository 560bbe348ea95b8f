/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XATTR_SET, XATTR_REMOVE. The virtual attribute aifs.layout is understood by the leader, which
 * puts the wishes (directories) or the layout (new files) into the entry. Access lists: acl.c.
 *
 * Failure modes: the errnos of setxattr(2), removexattr(2); a file that has content keeps its
 * layout: -ENOTEMPTY.
 */
#include <sys/stat.h>
#include <sys/xattr.h>

#include "common/base/err.h"
#include "mds/ns/ns.h"
#include "mds/ops/exec.h"

static int layout_set(struct txn *t, const struct shard_entry *e, struct mds_inode *in)
{
    if (S_ISDIR(in->mode)) {
        if (!e->has_stripe)
            return e->layout_status < 0 ? e->layout_status : -EINVAL;
        in->stripe = e->stripe;
    } else {
        uint32_t generation = in->layout.generation;

        if (!e->has_layout)
            return e->layout_status < 0 ? e->layout_status : -EINVAL;
        if (!(in->flags & INODE_INLINE) || in->size > 0 || (in->flags & INODE_STRAY_CHUNKS))
            return -ENOTEMPTY;
        in->layout = e->layout;
        in->layout.generation = generation + 1;
    }
    ns_changed(in, txn_now(t));
    return 0;
}

static int plain_set(struct txn *t, const struct msg_xattr_req *req, struct mds_inode *in)
{
    const void *old;
    uint32_t old_len;
    struct key k;
    int rc;

    if (req->value.len > MSG_XATTR_MAX)
        return -E2BIG;
    if (req->flags & ~(uint32_t)(XATTR_CREATE | XATTR_REPLACE))
        return -EINVAL;
    key_xattr(&k, in->ino, req->name.data, req->name.len);
    rc = in->n_xattrs ? txn_record_get(t, &k, &old, &old_len) : -ENOENT;
    if (rc < 0 && rc != -ENOENT)
        return rc;
    if (rc == 0 && (req->flags & XATTR_CREATE))
        return -EEXIST;
    if (rc == -ENOENT && (req->flags & XATTR_REPLACE))
        return -ENODATA;
    if (rc == -ENOENT) {
        if (in->n_xattrs >= NS_XATTRS_MAX)
            return -ENOSPC;
        in->n_xattrs++;
    }
    ns_changed(in, txn_now(t));
    return txn_record_put(t, &k, req->value.data, req->value.len);
}

static bool is_acl(enum ns_xattr kind)
{
    return kind == NS_XATTR_IS_ACL || kind == NS_XATTR_IS_DEFAULT_ACL;
}

/* The inode for change, and what the name is, if the caller may. */
static int xattr_begin(struct txn *t, const struct msg_xattr_req *req, struct mds_inode **ret_inode,
                       enum ns_xattr *ret_kind)
{
    const struct mds_inode *seen;
    int rc = txn_inode_modify(t, req->ino, ret_inode);

    seen = *ret_inode;
    if (rc == 0)
        rc = exec_acl(t, &seen);
    return rc < 0 ? rc : ns_xattr_check(seen, &req->cred, &req->name, true, ret_kind);
}

int exec_xattr_set(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct msg_xattr_req *req = e->msg;
    struct mds_inode *in;
    enum ns_xattr kind;
    int rc = xattr_begin(t, req, &in, &kind);

    (void)ret_rep;
    if (rc < 0)
        return rc;
    if (is_acl(kind))
        return exec_acl_set(t, in, &req->value, kind == NS_XATTR_IS_DEFAULT_ACL, &req->cred);
    return kind == NS_XATTR_IS_LAYOUT ? layout_set(t, e, in) : plain_set(t, req, in);
}

int exec_xattr_remove(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct msg_xattr_req *req = e->msg;
    struct mds_inode *in;
    enum ns_xattr kind;
    const void *old;
    uint32_t len;
    struct key k;
    int rc = xattr_begin(t, req, &in, &kind);

    (void)ret_rep;
    (void)e;
    if (rc < 0)
        return rc;
    if (is_acl(kind))
        return exec_acl_set(t, in, &(struct msg_bytes){0}, kind == NS_XATTR_IS_DEFAULT_ACL,
                            &req->cred);
    if (kind == NS_XATTR_IS_LAYOUT) {
        if (!S_ISDIR(in->mode))
            return -EPERM;
        in->stripe = (struct mds_stripe){0};
        ns_changed(in, txn_now(t));
        return 0;
    }
    key_xattr(&k, in->ino, req->name.data, req->name.len);
    rc = in->n_xattrs ? txn_record_get(t, &k, &old, &len) : -ENOENT;
    if (rc < 0)
        return rc == -ENOENT ? -ENODATA : rc;
    in->n_xattrs--;
    ns_changed(in, txn_now(t));
    return txn_record_delete(t, &k);
}
