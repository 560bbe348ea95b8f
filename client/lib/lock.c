/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks through the library. Their owner is always the open file, as with flock(2) and with the
 * locks of open file descriptions: threads that open a file each exclude each other.
 *
 * Waiting blocks the calling thread only; nothing but the lock, or the loss of the session (EIO),
 * ends it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "client/lib/lib_int.h"

struct lock_call {
    struct aifs_file *f;
    struct msg_lock lock;
    bool wait;
};

static void lock_begin(struct lib_call *c)
{
    const struct lock_call *l = c->arg;

    core_lock(c->fs->core, &c->q, l->f->file, &l->lock, l->wait);
}

static void test_begin(struct lib_call *c)
{
    const struct lock_call *l = c->arg;

    core_lock_test(c->fs->core, &c->q, l->f->file, &l->lock);
}

int aifs_flock(struct aifs_file *f, int operation)
{
    struct lock_call l = {.f = f, .wait = !(operation & LOCK_NB)};
    struct lib_call c;

    l.lock = (struct msg_lock){.kind = MSG_LOCK_FLOCK,
                               .end = MSG_LOCK_END,
                               .owner = (uintptr_t)f,
                               .pid = (uint32_t)getpid()};
    switch (operation & ~LOCK_NB) {
    case LOCK_SH:
        l.lock.type = MSG_LOCK_READ;
        break;
    case LOCK_EX:
        l.lock.type = MSG_LOCK_WRITE;
        break;
    case LOCK_UN:
        l.lock.type = MSG_LOCK_UNLOCK;
        break;
    default:
        return lib_errno(-EINVAL);
    }
    lib_file_call_init(&c, f, lock_begin);
    c.arg = &l;
    return lib_errno(lib_call_run(&c));
}

/* The range of l, counted from the start of the file; -EINVAL. */
static int range_of(const struct flock *l, struct msg_lock *m)
{
    off_t start = l->l_start, len = l->l_len;

    if (l->l_whence != SEEK_SET || start < 0)
        return -EINVAL;
    if (len < 0) { /* the bytes before */
        if (start + len < 0)
            return -EINVAL;
        start += len;
        len = -len;
    }
    if (len && len - 1 > INT64_MAX - start)
        return -EOVERFLOW;
    m->start = (uint64_t)start;
    m->end = len ? (uint64_t)start + (uint64_t)len - 1 : MSG_LOCK_END;
    return 0;
}

static int record_of(const struct aifs_file *f, int cmd, const struct flock *l, struct msg_lock *m)
{
    int access = f->flags & O_ACCMODE;

    *m = (struct msg_lock){
        .kind = MSG_LOCK_RECORD, .owner = (uintptr_t)f, .pid = (uint32_t)getpid()};
    switch (l->l_type) {
    case F_RDLCK:
        m->type = MSG_LOCK_READ;
        break;
    case F_WRLCK:
        m->type = MSG_LOCK_WRITE;
        break;
    case F_UNLCK:
        m->type = MSG_LOCK_UNLOCK;
        break;
    default:
        return -EINVAL;
    }
    if (cmd != F_GETLK && ((m->type == MSG_LOCK_READ && access == O_WRONLY) ||
                           (m->type == MSG_LOCK_WRITE && access == O_RDONLY)))
        return -EBADF;
    return range_of(l, m);
}

static void tell(const struct msg_lock *other, struct flock *l)
{
    if (other->type == MSG_LOCK_UNLOCK) {
        l->l_type = F_UNLCK;
        return;
    }
    *l = (struct flock){.l_type = other->type == MSG_LOCK_WRITE ? F_WRLCK : F_RDLCK,
                        .l_whence = SEEK_SET,
                        .l_start = (off_t)other->start,
                        .l_pid = (pid_t)other->pid};
    if (other->end != MSG_LOCK_END)
        l->l_len = (off_t)(other->end - other->start + 1);
}

int aifs_lock(struct aifs_file *f, int cmd, struct flock *lock)
{
    struct lock_call l = {.f = f, .wait = cmd == F_SETLKW};
    struct lib_call c;
    int err = lock ? record_of(f, cmd, lock, &l.lock) : -EFAULT;

    if (cmd != F_SETLK && cmd != F_SETLKW && cmd != F_GETLK)
        err = -EINVAL;
    if (err)
        return lib_errno(err);
    lib_file_call_init(&c, f, cmd == F_GETLK ? test_begin : lock_begin);
    c.arg = &l;
    err = lib_call_run(&c);
    if (!err && cmd == F_GETLK)
        tell(&c.q.out.lock, lock);
    return lib_errno(err);
}
