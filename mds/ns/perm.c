/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may do what: the mode bits, access lists, supplementary groups, the sticky bit, root,
 * and capabilities, in the order of the kernel (fs/namei.c, kernel/capability.c).
 *
 * Failure modes: -EACCES where bits deny, -EPERM where ownership does.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "mds/ns/acl.h"
#include "mds/ns/ns.h"

bool ns_is_root(const struct msg_cred *c)
{
    return c->uid == 0;
}

bool ns_in_group(const struct msg_cred *c, uint32_t gid)
{
    if (c->gid == gid)
        return true;
    for (uint32_t i = 0; i < c->n_groups; i++) {
        if (c->groups[i] == gid)
            return true;
    }
    return false;
}

bool ns_can(const struct mds_inode *in, const struct msg_cred *c, uint32_t cap)
{
    return ns_is_root(c) || cred_can(c, cap, in->uid, in->gid);
}

bool ns_can_all(const struct msg_cred *c, uint32_t cap)
{
    return ns_is_root(c) || cred_can_all(c, cap);
}

bool ns_owns(const struct mds_inode *in, const struct msg_cred *c)
{
    return c->uid == in->uid || ns_is_root(c) || cred_can_user(c, MSG_CAP_FOWNER, in->uid);
}

/* Even root runs only what somebody may run. */
static bool runs_nothing(const struct mds_inode *in, unsigned want)
{
    return (want & NS_EXEC) && !S_ISDIR(in->mode) && !(in->mode & 0111);
}

static bool overrides(const struct mds_inode *in, const struct msg_cred *c, unsigned want)
{
    bool looks = S_ISDIR(in->mode) ? !(want & NS_WRITE) : want == NS_READ;

    if (!c->caps)
        return false;
    return (looks && ns_can(in, c, MSG_CAP_DAC_READ_SEARCH)) ||
           (!runs_nothing(in, want) && ns_can(in, c, MSG_CAP_DAC_OVERRIDE));
}

int ns_access(const struct mds_inode *in, const struct msg_cred *c, unsigned want)
{
    uint32_t mode = in->mode;

    if (ns_is_root(c))
        return runs_nothing(in, want) ? -EACCES : 0;
    if (overrides(in, c, want))
        return 0;
    if (c->uid == in->uid)
        mode >>= 6;
    else if ((in->flags & INODE_ACL) && (mode & S_IRWXG)) /* as Linux: no mask, no list */
        return ns_acl_access(in, c, want);
    else if (ns_in_group(c, in->gid))
        mode >>= 3;
    return (mode & want) == want ? 0 : -EACCES;
}

int ns_may_create(const struct mds_inode *dir, const struct msg_cred *c)
{
    if (!S_ISDIR(dir->mode))
        return -ENOTDIR;
    return ns_access(dir, c, NS_WRITE | NS_EXEC);
}

int ns_may_delete(const struct mds_inode *dir, const struct mds_inode *victim,
                  const struct msg_cred *c)
{
    int rc = ns_may_create(dir, c);

    if (rc < 0)
        return rc;
    if ((dir->mode & S_ISVTX) && c->uid != victim->uid && c->uid != dir->uid &&
        !ns_can(victim, c, MSG_CAP_FOWNER))
        return -EPERM;
    return 0;
}

int ns_may_open(const struct mds_inode *in, const struct msg_cred *c, uint32_t open_flags)
{
    unsigned want = 0;

    if (S_ISLNK(in->mode))
        return -ELOOP;
    switch (open_flags & O_ACCMODE) {
    case O_RDONLY:
        want = NS_READ;
        break;
    case O_WRONLY:
        want = NS_WRITE;
        break;
    case O_RDWR:
        want = NS_READ | NS_WRITE;
        break;
    default:
        return -EINVAL;
    }
    if (open_flags & O_TRUNC)
        want |= NS_WRITE;
    if (S_ISDIR(in->mode) && (want & NS_WRITE))
        return -EISDIR;
    /* a program is read by the kernel on behalf of somebody who may run, not read it */
    if (want == NS_READ && S_ISREG(in->mode) && ns_access(in, c, NS_EXEC) == 0)
        return 0;
    return ns_access(in, c, want);
}
