/* SPDX-License-Identifier: Apache-2.0 */
/* Locks, from libfuse's callbacks to requests. The kernel tells processes from open files by their
 * owners only: both are numbers it has made up. A range that is none is refused here. */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "client/fuse/libfuse_int.h"

static void lock_run(fuse_req_t raw, enum channel_op op, fuse_ino_t node,
                     const struct fuse_file_info *fi, const struct msg_lock *l, bool wait)
{
    struct channel_req *q = libfuse_req_begin(raw, op, node);

    if (!q)
        return;
    q->lock.fh = fi->fh;
    q->lock.lock = *l;
    q->lock.lock.owner = fi->lock_owner;
    q->lock.wait = wait;
    if (l->start > l->end || l->end > MSG_LOCK_END)
        channel_reply_err(q, -EINVAL);
    else
        channel_req_run(q);
}

static struct msg_lock record_of(const struct flock *f)
{
    struct msg_lock l = {.kind = MSG_LOCK_RECORD,
                         .start = (uint64_t)f->l_start,
                         .end = f->l_len ? (uint64_t)f->l_start + (uint64_t)f->l_len - 1
                                         : MSG_LOCK_END,
                         .pid = (uint32_t)f->l_pid};

    l.type = f->l_type == F_RDLCK   ? MSG_LOCK_READ
             : f->l_type == F_WRLCK ? MSG_LOCK_WRITE
                                    : MSG_LOCK_UNLOCK;
    return l;
}

void channel_on_getlk(fuse_req_t raw, fuse_ino_t node, struct fuse_file_info *fi, struct flock *f)
{
    struct msg_lock l = record_of(f);

    lock_run(raw, CHANNEL_GETLK, node, fi, &l, false);
}

void channel_on_setlk(fuse_req_t raw, fuse_ino_t node, struct fuse_file_info *fi, struct flock *f,
                      int sleep)
{
    struct msg_lock l = record_of(f);

    lock_run(raw, CHANNEL_SETLK, node, fi, &l, sleep != 0);
}

void channel_on_flock(fuse_req_t raw, fuse_ino_t node, struct fuse_file_info *fi, int op)
{
    struct msg_lock l = {
        .kind = MSG_LOCK_FLOCK, .end = MSG_LOCK_END, .pid = (uint32_t)fuse_req_ctx(raw)->pid};

    l.type = op & LOCK_SH ? MSG_LOCK_READ : op & LOCK_EX ? MSG_LOCK_WRITE : MSG_LOCK_UNLOCK;
    lock_run(raw, CHANNEL_SETLK, node, fi, &l, !(op & LOCK_NB));
}
