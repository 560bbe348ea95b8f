/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access lists of inodes, and what else goes with a change of an inode's data: loaded for the rules
 * that need them, set, removed and inherited (mds/ns/acl.h).
 *
 * An inode says in its flags which lists it has, so one without costs no read. Failure modes: the
 * errnos of setxattr(2); an inode whose list is gone or damaged grants nothing to those whom the
 * list is about.
 */
#include "mds/ns/acl.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "mds/ns/ns.h"
#include "mds/ops/exec.h"
#include "mds/ops/op.h"

static void acl_key(struct key *k, uint64_t ino, bool is_default)
{
    const char *name = is_default ? NS_ACL_DEFAULT : NS_ACL_ACCESS;

    key_xattr(k, ino, name, (uint32_t)strlen(name));
}

static int acl_get(struct txn *t, uint64_t ino, bool is_default, struct msg_bytes *ret)
{
    const void *value;
    uint32_t len;
    struct key k;
    int rc;

    acl_key(&k, ino, is_default);
    rc = txn_record_get(t, &k, &value, &len);
    if (rc == 0)
        *ret = (struct msg_bytes){value, len};
    return rc == -ENOENT ? -AIFS_ECORRUPT : rc;
}

int exec_acl(struct txn *t, const struct mds_inode **in)
{
    struct mds_inode *seen;

    if (!((*in)->flags & INODE_ACL))
        return 0;
    seen = txn_alloc(t, sizeof(*seen));
    if (!seen)
        return -ENOMEM;
    *seen = **in;
    *in = seen;
    return acl_get(t, seen->ino, false, &seen->acl);
}

int op_acl(struct view *v, struct arena *a, struct mds_inode *in)
{
    const void *value;
    uint32_t len;
    struct key k;
    int rc;

    if (!(in->flags & INODE_ACL))
        return 0;
    acl_key(&k, in->ino, false);
    rc = view_record(v, &k, a, &value, &len);
    if (rc == 0)
        in->acl = (struct msg_bytes){value, len};
    return rc == -ENOENT ? -AIFS_ECORRUPT : rc;
}

/* ---- changing ---- */

static int acl_remove(struct txn *t, struct mds_inode *in, bool is_default)
{
    uint32_t flag = is_default ? INODE_DEFAULT_ACL : INODE_ACL;
    struct key k;

    if (!(in->flags & flag))
        return 0;
    in->flags &= ~flag;
    in->n_xattrs--;
    acl_key(&k, in->ino, is_default);
    return txn_record_delete(t, &k);
}

static int acl_store(struct txn *t, struct mds_inode *in, const struct msg_bytes *acl,
                     bool is_default)
{
    uint32_t flag = is_default ? INODE_DEFAULT_ACL : INODE_ACL;
    void *value = txn_alloc(t, acl->len);
    struct key k;

    if (!value)
        return -ENOMEM;
    if (!(in->flags & flag)) {
        if (in->n_xattrs >= NS_XATTRS_MAX)
            return -ENOSPC;
        in->n_xattrs++;
        in->flags |= flag;
    }
    ns_acl_copy(acl, value);
    acl_key(&k, in->ino, is_default);
    return txn_record_put(t, &k, value, acl->len);
}

int exec_acl_set(struct txn *t, struct mds_inode *in, const struct msg_bytes *acl, bool is_default,
                 const struct msg_cred *c)
{
    int rc = ns_acl_check(acl);
    bool keep = !ns_acl_is_empty(acl);
    uint32_t mode;

    if (rc < 0)
        return rc;
    if (is_default && !S_ISDIR(in->mode))
        return keep ? -EACCES : 0;
    if (keep && !is_default) {
        keep = !ns_acl_mode(acl, &mode);
        in->mode = (in->mode & ~0777u) | mode;
        if (!ns_in_group(c, in->gid) && !ns_can(in, c, MSG_CAP_FSETID))
            in->mode &= ~(uint32_t)S_ISGID;
    }
    ns_changed(in, txn_now(t));
    return keep ? acl_store(t, in, acl, is_default) : acl_remove(t, in, is_default);
}

int exec_acl_default(struct txn *t, const struct mds_inode *dir, uint32_t mode,
                     struct msg_bytes *ret)
{
    *ret = (struct msg_bytes){0};
    if (!(dir->flags & INODE_DEFAULT_ACL) || S_ISLNK(mode))
        return 0;
    return acl_get(t, dir->ino, true, ret);
}

int exec_acl_inherit(struct txn *t, struct mds_inode *in, const struct msg_bytes *acl)
{
    int rc = 0;

    if (acl->len == 0)
        return 0;
    if (ns_acl_inherit(acl, &in->mode))
        rc = acl_store(t, in, acl, false);
    if (rc == 0 && S_ISDIR(in->mode))
        rc = acl_store(t, in, acl, true);
    return rc;
}

/* ---- what a change of data or owner takes away ---- */

int exec_caps_drop(struct txn *t, struct mds_inode *in)
{
    static const char name[] = "security.capability";
    const void *value;
    uint32_t len;
    struct key k;
    int rc;

    if (in->n_xattrs == 0 || !S_ISREG(in->mode))
        return 0;
    key_xattr(&k, in->ino, name, sizeof(name) - 1);
    rc = txn_record_get(t, &k, &value, &len);
    if (rc < 0)
        return rc == -ENOENT ? 0 : rc;
    in->n_xattrs--;
    return txn_record_delete(t, &k);
}
