/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may read and change which extended attribute: xattr(7).
 *
 * user.* lives on files and directories and follows the mode bits; trusted.* is root's; security.*
 * is readable by all and changed by root; aifs.* is made up by the server. POSIX ACLs (acl.h) are
 * read by all and changed by the owner.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "mds/ns/acl.h"
#include "mds/ns/ns.h"

static bool has_prefix(const struct msg_bytes *name, const char *prefix)
{
    size_t len = strlen(prefix);

    return name->len > len && memcmp(name->data, prefix, len) == 0;
}

static bool is_name(const struct msg_bytes *name, const char *s)
{
    return name->len == strlen(s) && memcmp(name->data, s, name->len) == 0;
}

static int check_user(const struct mds_inode *in, const struct msg_cred *c, bool write)
{
    if (!S_ISREG(in->mode) && !S_ISDIR(in->mode))
        return write ? -EPERM : -ENODATA;
    /* else anybody could fill /tmp's attributes */
    if (write && S_ISDIR(in->mode) && (in->mode & S_ISVTX) && !ns_owns(in, c))
        return -EPERM;
    return ns_access(in, c, write ? NS_WRITE : NS_READ);
}

static int check_acl(const struct mds_inode *in, const struct msg_cred *c, bool is_default,
                     bool write, enum ns_xattr *ret_kind)
{
    uint32_t flag = is_default ? INODE_DEFAULT_ACL : INODE_ACL;

    *ret_kind = is_default ? NS_XATTR_IS_DEFAULT_ACL : NS_XATTR_IS_ACL;
    if (S_ISLNK(in->mode))
        return -EOPNOTSUPP;
    if (!write)
        return in->flags & flag ? 0 : -ENODATA;
    return ns_owns(in, c) ? 0 : -EPERM;
}

static bool may_secure(const struct mds_inode *in, const struct msg_cred *c,
                       const struct msg_bytes *name)
{
    return is_name(name, "security.capability") ? ns_can(in, c, MSG_CAP_SETFCAP)
                                                : ns_can_all(c, MSG_CAP_SYS_ADMIN);
}

int ns_xattr_check(const struct mds_inode *in, const struct msg_cred *c,
                   const struct msg_bytes *name, bool write, enum ns_xattr *ret_kind)
{
    if (name->len == 0 || memchr(name->data, '\0', name->len))
        return -EINVAL;
    if (name->len > MSG_NAME_MAX)
        return -ENAMETOOLONG;
    *ret_kind = NS_XATTR_PLAIN;
    if (is_name(name, NS_XATTR_LAYOUT)) {
        *ret_kind = NS_XATTR_IS_LAYOUT;
        if (!S_ISREG(in->mode) && !S_ISDIR(in->mode))
            return write ? -EPERM : -ENODATA;
        return write && !ns_owns(in, c) ? -EPERM : 0;
    }
    if (is_name(name, NS_XATTR_FID)) {
        *ret_kind = NS_XATTR_IS_FID;
        return write ? -EPERM : 0;
    }
    if (is_name(name, NS_XATTR_FS)) {
        *ret_kind = NS_XATTR_IS_FS;
        return write ? -EPERM : 0;
    }
    if (is_name(name, NS_XATTR_DATA)) {
        *ret_kind = NS_XATTR_IS_DATA;
        return write ? -EPERM : S_ISREG(in->mode) ? 0 : -ENODATA;
    }
    if (has_prefix(name, "user."))
        return check_user(in, c, write);
    if (has_prefix(name, "trusted."))
        return ns_can_all(c, MSG_CAP_SYS_ADMIN) ? 0 : write ? -EPERM : -ENODATA;
    if (has_prefix(name, "security."))
        return write && !may_secure(in, c, name) ? -EPERM : 0;
    if (is_name(name, NS_ACL_ACCESS) || is_name(name, NS_ACL_DEFAULT))
        return check_acl(in, c, is_name(name, NS_ACL_DEFAULT), write, ret_kind);
    return -EOPNOTSUPP;
}

bool ns_xattr_listed(const struct msg_cred *c, const void *name, uint32_t len)
{
    return ns_is_root(c) || len < 8 || memcmp(name, "trusted.", 8) != 0;
}
