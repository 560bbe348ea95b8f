/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changing attributes: chmod(2), chown(2), utimensat(2), truncate(2) as to permissions, and what
 * they do to the bits and times beside the ones that were asked for.
 */
#include <errno.h>
#include <sys/stat.h>

#include "mds/ns/ns.h"
#include "proto/atime.h"

int ns_time_compare(struct msg_time a, struct msg_time b)
{
    if (a.sec != b.sec)
        return a.sec < b.sec ? -1 : 1;
    return a.nsec < b.nsec ? -1 : a.nsec > b.nsec;
}

struct msg_time ns_clamp(struct msg_time t, struct msg_time now)
{
    return ns_time_compare(t, now) > 0 ? now : t;
}

void ns_changed(struct mds_inode *in, struct msg_time now)
{
    if (ns_time_compare(in->ctime, now) < 0)
        in->ctime = now;
    in->change++;
}

void ns_modified(struct mds_inode *in, struct msg_time now)
{
    in->mtime = now;
    ns_changed(in, now);
}

void ns_written(struct mds_inode *in, struct msg_time mtime, struct msg_time now)
{
    in->mtime = mtime.sec == 0 && mtime.nsec == 0 ? now : ns_clamp(mtime, now);
    if (ns_time_compare(in->ctime, in->mtime) < 0)
        in->ctime = in->mtime;
    in->change++;
}

static struct msg_time time_next(struct msg_time t)
{
    return t.nsec + 1 < NS_PER_S ? (struct msg_time){t.sec, t.nsec + 1}
                                 : (struct msg_time){t.sec + 1, 0};
}

void ns_written_beside(struct mds_inode *in, struct msg_time mtime, struct msg_time now)
{
    struct msg_time was = in->mtime, next = time_next(in->ctime);
    bool was_set = ns_time_compare(mtime, was) == 0 && ns_time_compare(was, in->ctime) != 0;

    ns_written(in, mtime, now);
    if (was_set || ns_time_compare(in->mtime, was) > 0)
        return;
    if (ns_time_compare(in->mtime, next) < 0)
        in->mtime = next;
    if (ns_time_compare(in->ctime, in->mtime) < 0)
        in->ctime = in->mtime;
}

bool ns_read_counts(const struct mds_inode *in, const struct msg_read_item *item,
                    struct msg_time now)
{
    struct msg_time at = ns_clamp(item->atime, now);

    if (at.nsec >= NS_PER_S ||
        (ns_time_compare(in->atime, item->was) != 0 && ns_time_compare(at, in->ctime) <= 0))
        return false;
    return atime_is_due(in->atime, in->mtime, in->ctime, at);
}

void ns_kill_priv(struct mds_inode *in)
{
    if (S_ISDIR(in->mode))
        return;
    in->mode &= ~(uint32_t)S_ISUID;
    if (in->mode & S_IXGRP)
        in->mode &= ~(uint32_t)S_ISGID;
}

static int check_owner(const struct mds_inode *in, const struct msg_setattr_req *req, bool owner)
{
    const struct msg_cred *c = &req->cred;

    if (ns_can(in, c, MSG_CAP_CHOWN))
        return 0;
    if ((req->set & MSG_SET_UID) && !(owner && req->uid == in->uid))
        return -EPERM;
    if ((req->set & MSG_SET_GID) && !(owner && (req->gid == in->gid || ns_in_group(c, req->gid))))
        return -EPERM;
    return 0;
}

static int check_times(const struct mds_inode *in, const struct msg_setattr_req *req, bool owner)
{
    uint32_t now = req->set & (MSG_SET_ATIME_NOW | MSG_SET_MTIME_NOW);
    uint32_t given = req->set & (MSG_SET_ATIME | MSG_SET_MTIME);

    /* a size change by truncate(2) brings its own mtime: who may write the data may set it */
    if (!(now | given) || owner)
        return 0;
    if (given)
        return -EPERM;
    if ((req->set & MSG_SET_SIZE) && req->open_id)
        return 0;
    return ns_access(in, &req->cred, NS_WRITE);
}

int ns_setattr_check(const struct mds_inode *in, const struct msg_setattr_req *req)
{
    bool owner = req->cred.uid == in->uid;
    int rc;

    if ((req->atime.nsec | req->mtime.nsec) >= NS_PER_S &&
        (req->atime.nsec >= NS_PER_S || req->mtime.nsec >= NS_PER_S))
        return -EINVAL;
    if ((req->set & MSG_SET_MODE) && !ns_owns(in, &req->cred))
        return -EPERM;
    rc = check_owner(in, req, owner);
    if (rc == 0)
        rc = check_times(in, req, ns_owns(in, &req->cred));
    if (rc == 0 && (req->set & MSG_SET_SIZE)) {
        if (S_ISDIR(in->mode))
            rc = -EISDIR;
        else if (!S_ISREG(in->mode))
            rc = -EINVAL;
        else if (req->size > NS_SIZE_MAX)
            rc = -EFBIG;
        else if (!req->open_id)
            rc = ns_access(in, &req->cred, NS_WRITE);
    }
    return rc;
}

static void apply_mode(struct mds_inode *in, const struct msg_setattr_req *req)
{
    uint32_t mode = req->mode & 07777;

    if ((mode & S_ISGID) && !ns_in_group(&req->cred, in->gid) &&
        !ns_can(in, &req->cred, MSG_CAP_FSETID))
        mode &= ~(uint32_t)S_ISGID;
    in->mode = (in->mode & S_IFMT) | mode;
}

void ns_setattr_apply(struct mds_inode *in, const struct msg_setattr_req *req, struct msg_time now)
{
    if (req->set & MSG_SET_UID)
        in->uid = req->uid;
    if (req->set & MSG_SET_GID)
        in->gid = req->gid;
    if (req->set & MSG_SET_MODE)
        apply_mode(in, req);
    else if (req->set & (MSG_SET_UID | MSG_SET_GID | MSG_SET_KILL_PRIV))
        ns_kill_priv(in);
    else if ((req->set & MSG_SET_SIZE) && !ns_is_root(&req->cred))
        ns_kill_priv(in);
    if (req->set & MSG_SET_SIZE)
        in->mtime = now;
    if (req->set & MSG_SET_ATIME_NOW)
        in->atime = now;
    else if (req->set & MSG_SET_ATIME)
        in->atime = req->atime;
    if (req->set & MSG_SET_MTIME_NOW)
        in->mtime = now;
    else if (req->set & MSG_SET_MTIME)
        in->mtime = req->mtime;
    ns_changed(in, now);
}
