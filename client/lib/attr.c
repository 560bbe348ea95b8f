/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes and extended attributes: walk to the inode, then one core operation. */
#include "client/lib/lib_int.h"

#include <errno.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

static struct timespec to_timespec(struct msg_time t)
{
    return (struct timespec){.tv_sec = t.sec, .tv_nsec = (long)t.nsec};
}

void lib_stat_fill(struct stat *st, const struct msg_attr *a)
{
    memset(st, 0, sizeof *st);
    st->st_ino = a->ino;
    st->st_mode = a->mode;
    st->st_nlink = a->nlink;
    st->st_uid = a->uid;
    st->st_gid = a->gid;
    st->st_rdev = a->rdev;
    st->st_size = (off_t)a->size;
    st->st_blksize = (blksize_t)MIB;
    st->st_blocks = (blkcnt_t)((a->size + 511) / 512);
    st->st_atim = to_timespec(a->atime);
    st->st_mtim = to_timespec(a->mtime);
    st->st_ctim = to_timespec(a->ctime);
}

static void stat_asked(struct core_req *q, int status)
{
    struct lib_call *c = q->arg;

    if (!status)
        lib_stat_fill(c->out, &q->entry.attr);
    lib_call_done(c, status);
}

static void stat_walked(struct lib_call *c)
{
    const struct core_entry *e = &c->walk->entry;

    if (e->attr.flags & MSG_ATTR_SIZE_UNSURE) { /* who looks up does not wait for a silent writer */
        lib_req(c->fs, &c->q, stat_asked, c);
        core_getattr(c->fs->core, &c->q, e->ino);
        return;
    }
    lib_stat_fill(c->out, &e->attr);
    lib_call_done(c, 0);
}

static int stat_path(struct aifs *fs, const char *path, unsigned flags, struct stat *st)
{
    struct lib_call c;

    if (!st)
        return lib_errno(-EFAULT);
    lib_call_init(&c, fs, NULL);
    c.out = st;
    return lib_errno(lib_path_call(fs, path, flags, stat_walked, &c));
}

int aifs_stat(struct aifs *fs, const char *path, struct stat *st)
{
    return stat_path(fs, path, LIB_FOLLOW, st);
}

int aifs_lstat(struct aifs *fs, const char *path, struct stat *st)
{
    return stat_path(fs, path, 0, st);
}

static void setattr_walked(struct lib_call *c)
{
    struct msg_setattr_req set = *(const struct msg_setattr_req *)c->arg;

    set.ino = c->walk->entry.ino;
    if (set.set & MSG_SET_SIZE && !S_ISREG(c->walk->entry.attr.mode)) {
        lib_call_done(c, S_ISDIR(c->walk->entry.attr.mode) ? -EISDIR : -EINVAL);
        return;
    }
    core_setattr(c->fs->core, &c->q, &set, NULL);
}

static int set_path(struct aifs *fs, const char *path, unsigned flags,
                    const struct msg_setattr_req *set)
{
    struct lib_call c;

    lib_call_init(&c, fs, NULL);
    c.arg = set;
    return lib_errno(lib_path_call(fs, path, flags, setattr_walked, &c));
}

int aifs_truncate(struct aifs *fs, const char *path, off_t size)
{
    if (size < 0)
        return lib_errno(-EINVAL);
    return set_path(fs, path, LIB_FOLLOW,
                    &(struct msg_setattr_req){.set = MSG_SET_SIZE, .size = (uint64_t)size});
}

int aifs_chmod(struct aifs *fs, const char *path, mode_t mode)
{
    return set_path(fs, path, LIB_FOLLOW,
                    &(struct msg_setattr_req){.set = MSG_SET_MODE, .mode = mode & 07777});
}

static int chown_path(struct aifs *fs, const char *path, unsigned flags, uid_t uid, gid_t gid)
{
    struct msg_setattr_req set = {.uid = uid, .gid = gid};

    set.set = (uid == (uid_t)-1 ? 0 : MSG_SET_UID) | (gid == (gid_t)-1 ? 0 : MSG_SET_GID);
    return set_path(fs, path, flags, &set);
}

int aifs_chown(struct aifs *fs, const char *path, uid_t uid, gid_t gid)
{
    return chown_path(fs, path, LIB_FOLLOW, uid, gid);
}

int aifs_lchown(struct aifs *fs, const char *path, uid_t uid, gid_t gid)
{
    return chown_path(fs, path, 0, uid, gid);
}

static int time_arg(const struct timespec *t, struct msg_setattr_req *set, uint32_t now,
                    uint32_t given, struct msg_time *dst)
{
    if (t->tv_nsec == UTIME_OMIT)
        return 0;
    if (t->tv_nsec == UTIME_NOW) {
        set->set |= now;
        return 0;
    }
    if (t->tv_nsec < 0 || t->tv_nsec > 999999999)
        return -EINVAL;
    set->set |= given;
    *dst = (struct msg_time){t->tv_sec, (uint32_t)t->tv_nsec};
    return 0;
}

int aifs_utimens(struct aifs *fs, const char *path, const struct timespec times[2])
{
    struct msg_setattr_req set = {.set = MSG_SET_ATIME_NOW | MSG_SET_MTIME_NOW};
    int err = 0;

    if (times) {
        set.set = 0;
        err = time_arg(&times[0], &set, MSG_SET_ATIME_NOW, MSG_SET_ATIME, &set.atime);
        err = err ? err : time_arg(&times[1], &set, MSG_SET_MTIME_NOW, MSG_SET_MTIME, &set.mtime);
    }
    return err ? lib_errno(err) : set_path(fs, path, LIB_FOLLOW, &set);
}

/* ---- extended attributes ---- */

struct xattr_args {
    const char *name;
    const void *value;
    size_t size;
    int flags;
};

static void bytes_done(struct core_req *q, int status)
{
    struct lib_call *c = q->arg;

    if (!status) {
        c->n1 = q->out.bytes.len;
        if (c->out_size && c->n1 > c->out_size)
            status = -ERANGE;
        else if (c->out_size && c->n1)
            memcpy(c->out, q->out.bytes.data, c->n1);
    }
    lib_call_done(c, status);
}

static void get_walked(struct lib_call *c)
{
    const struct xattr_args *a = c->arg;

    lib_req(c->fs, &c->q, bytes_done, c);
    if (a)
        core_getxattr(c->fs->core, &c->q, c->walk->entry.ino, a->name, (uint32_t)strlen(a->name));
    else
        core_listxattr(c->fs->core, &c->q, c->walk->entry.ino);
}

static ssize_t get_bytes(struct aifs *fs, const char *path, const struct xattr_args *a, void *out,
                         size_t size)
{
    struct lib_call c;
    int err;

    if (size && !out)
        return lib_errno(-EFAULT);
    lib_call_init(&c, fs, NULL);
    c.arg = a;
    c.out = out;
    c.out_size = size;
    err = lib_path_call(fs, path, LIB_FOLLOW, get_walked, &c);
    return err ? lib_errno(err) : (ssize_t)c.n1;
}

static int name_check(const char *name)
{
    if (!name)
        return -EFAULT;
    return !*name || strlen(name) > MSG_NAME_MAX ? -ERANGE : 0;
}

ssize_t aifs_getxattr(struct aifs *fs, const char *path, const char *name, void *value, size_t size)
{
    int err = name_check(name);

    if (err)
        return lib_errno(err);
    return get_bytes(fs, path, &(struct xattr_args){.name = name}, value, size);
}

ssize_t aifs_listxattr(struct aifs *fs, const char *path, char *list, size_t size)
{
    return get_bytes(fs, path, NULL, list, size);
}

static void setxattr_walked(struct lib_call *c)
{
    const struct xattr_args *a = c->arg;
    uint32_t len = (uint32_t)strlen(a->name);

    if (a->value)
        core_setxattr(c->fs->core, &c->q, c->walk->entry.ino, a->name, len, a->value,
                      (uint32_t)a->size, (uint32_t)a->flags);
    else
        core_removexattr(c->fs->core, &c->q, c->walk->entry.ino, a->name, len);
}

static int change_xattr(struct aifs *fs, const char *path, const struct xattr_args *a)
{
    struct lib_call c;
    int err = name_check(a->name);

    if (!err && a->size > MSG_XATTR_MAX)
        err = -E2BIG;
    if (err)
        return lib_errno(err);
    lib_call_init(&c, fs, NULL);
    c.arg = a;
    return lib_errno(lib_path_call(fs, path, LIB_FOLLOW, setxattr_walked, &c));
}

int aifs_setxattr(struct aifs *fs, const char *path, const char *name, const void *value,
                  size_t size, int flags)
{
    if (flags & ~(XATTR_CREATE | XATTR_REPLACE))
        return lib_errno(-EINVAL);
    if (size && !value)
        return lib_errno(-EFAULT);
    return change_xattr(
        fs, path,
        &(struct xattr_args){
            .name = name, .value = value ? value : "", .size = size, .flags = flags});
}

int aifs_removexattr(struct aifs *fs, const char *path, const char *name)
{
    return change_xattr(fs, path, &(struct xattr_args){.name = name});
}
