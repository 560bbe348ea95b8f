/* SPDX-License-Identifier: Apache-2.0 */
/* What a new inode gets from its directory and its creator. */
#include <sys/stat.h>

#include "mds/ns/ns.h"

void ns_new_inode(struct mds_inode *in, const struct mds_inode *dir, const struct msg_cred *c,
                  uint32_t mode, struct msg_time now)
{
    in->mode = mode & (S_IFMT | 07777);
    in->uid = c->uid;
    in->gid = c->gid;
    if (dir->mode & S_ISGID) {
        in->gid = dir->gid;
        if (S_ISDIR(mode))
            in->mode |= S_ISGID;
    }
    /* nobody makes a program that runs with a group he is not in */
    if (!S_ISDIR(mode) && (in->mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
        !ns_in_group(c, in->gid) && !ns_can(dir, c, MSG_CAP_FSETID))
        in->mode &= ~(uint32_t)S_ISGID;
    in->nlink = S_ISDIR(mode) ? 2 : 1;
    in->size = S_ISDIR(mode) ? NS_DIR_SIZE : 0;
    in->flags = S_ISREG(mode) ? INODE_INLINE : 0;
    in->atime = in->mtime = in->ctime = in->btime = now;
    in->change = 1;
    if (S_ISDIR(mode))
        in->stripe = dir->stripe;
}
