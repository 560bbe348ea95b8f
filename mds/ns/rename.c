/* SPDX-License-Identifier: Apache-2.0 */
/*
 * May this rename happen? rename(2), renameat2(2), in the order in which Linux finds the errors.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "mds/ns/ns.h"

int ns_rename_flags_check(uint32_t flags)
{
    if (flags & ~(uint32_t)(RENAME_NOREPLACE | RENAME_EXCHANGE))
        return -EINVAL;
    return flags == (RENAME_NOREPLACE | RENAME_EXCHANGE) ? -EINVAL : 0;
}

static int check_replace(const struct ns_rename *r)
{
    bool is_dir = S_ISDIR(r->src->mode), dst_is_dir = S_ISDIR(r->dst->mode);
    int rc = ns_may_delete(r->new_dir, r->dst, r->cred);

    if (rc < 0 || (r->flags & RENAME_EXCHANGE))
        return rc;
    if (is_dir && !dst_is_dir)
        return -ENOTDIR;
    if (!is_dir && dst_is_dir)
        return -EISDIR;
    return 0;
}

/* A directory that changes its parent is changed itself: its ".." is. */
static int check_moved(const struct mds_inode *in, const struct msg_cred *c)
{
    return S_ISDIR(in->mode) ? ns_access(in, c, NS_WRITE) : 0;
}

int ns_rename_check(const struct ns_rename *r)
{
    bool exchange = r->flags & RENAME_EXCHANGE;
    int rc = ns_rename_flags_check(r->flags);

    if (rc < 0)
        return rc;
    if (!S_ISDIR(r->dir->mode) || !S_ISDIR(r->new_dir->mode))
        return -ENOTDIR;
    rc = ns_access(r->dir, r->cred, NS_EXEC);
    if (rc == 0)
        rc = ns_access(r->new_dir, r->cred, NS_EXEC);
    if (rc < 0)
        return rc;
    if (exchange && !r->dst)
        return -ENOENT;
    if ((r->flags & RENAME_NOREPLACE) && r->dst)
        return -EEXIST;
    if (r->src_above_new_dir)
        return -EINVAL;
    if (r->dst && r->dst_above_dir)
        return exchange ? -EINVAL : -ENOTEMPTY;
    if (r->dst && r->dst->ino == r->src->ino)
        return 1;
    rc = ns_may_delete(r->dir, r->src, r->cred);
    if (rc == 0)
        rc = r->dst ? check_replace(r) : ns_may_create(r->new_dir, r->cred);
    if (rc == 0 && r->dir->ino != r->new_dir->ino) {
        rc = check_moved(r->src, r->cred);
        if (rc == 0 && exchange)
            rc = check_moved(r->dst, r->cred);
    }
    if (rc == 0 && r->dst && !exchange && S_ISDIR(r->dst->mode) && r->dst->entries > 0)
        rc = -ENOTEMPTY;
    return rc;
}
