/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on names: walk to the parent (two of them for rename and link), then one core operation. */
#include "client/lib/lib_int.h"

#include <errno.h>
#include <linux/fs.h>
#include <string.h>

static int parent_call(struct aifs *fs, const char *path, unsigned walk_flags,
                       void (*then)(struct lib_call *c), const void *arg, uint64_t n1)
{
    struct lib_call c;

    lib_call_init(&c, fs, NULL);
    c.arg = arg;
    c.n1 = n1;
    return lib_errno(lib_path_call(fs, path, LIB_PARENT | walk_flags, then, &c));
}

static void mkdir_walked(struct lib_call *c)
{
    core_mkdir(c->fs->core, &c->q, c->walk->parent, c->walk->name, c->walk->name_len,
               (uint32_t)c->n1, NULL);
}

int aifs_mkdir(struct aifs *fs, const char *path, mode_t mode)
{
    return parent_call(fs, path, LIB_MKDIR, mkdir_walked, NULL, mode & LIB_MKDIR_BITS);
}

static void rmdir_walked(struct lib_call *c)
{
    core_rmdir(c->fs->core, &c->q, c->walk->parent, c->walk->name, c->walk->name_len);
}

int aifs_rmdir(struct aifs *fs, const char *path)
{
    return parent_call(fs, path, LIB_RMDIR, rmdir_walked, NULL, 0);
}

static void unlink_walked(struct lib_call *c)
{
    core_unlink(c->fs->core, &c->q, c->walk->parent, c->walk->name, c->walk->name_len);
}

int aifs_unlink(struct aifs *fs, const char *path)
{
    return parent_call(fs, path, LIB_UNLINK, unlink_walked, NULL, 0);
}

static void symlink_walked(struct lib_call *c)
{
    const char *target = c->arg;

    core_symlink(c->fs->core, &c->q, c->walk->parent, c->walk->name, c->walk->name_len, target,
                 (uint32_t)strlen(target));
}

int aifs_symlink(struct aifs *fs, const char *target, const char *path)
{
    size_t len = target ? strlen(target) : 0;

    if (!target)
        return lib_errno(-EFAULT);
    if (!len || len > MSG_PATH_MAX)
        return lib_errno(len ? -ENAMETOOLONG : -ENOENT);
    return parent_call(fs, path, LIB_NEW, symlink_walked, target, 0);
}

/* ---- two paths ---- */

static void second_walked(struct lib_walk *w, int status)
{
    struct lib_call *c = w->q.arg;
    void (*act)(struct lib_call * c) = c->act;

    if (status)
        lib_call_done(c, status);
    else
        act(c);
}

static void first_walked(struct lib_call *c)
{
    c->walk2->q.arg = c;
    lib_walk_start(c->walk2, second_walked);
}

static int two_paths(struct aifs *fs, const char *from, unsigned from_flags, const char *to,
                     unsigned to_flags, void (*act)(struct lib_call *c), uint64_t n1)
{
    struct lib_call c;
    struct lib_walk *second;
    int err;

    second = lib_walk_new(fs, to, LIB_PARENT | to_flags, &err);
    if (!second)
        return lib_errno(err);
    lib_call_init(&c, fs, NULL);
    c.walk2 = second;
    c.act = act;
    c.n1 = n1;
    err = lib_path_call(fs, from, from_flags, first_walked, &c);
    mem_free(second);
    return lib_errno(err);
}

static void rename_walked(struct lib_call *c)
{
    core_rename(c->fs->core, &c->q, c->walk->parent, c->walk->name, c->walk->name_len,
                c->walk2->parent, c->walk2->name, c->walk2->name_len, (uint32_t)c->n1);
}

/* With a slash behind the new name it is a directory that is renamed, or exchanged with one. */
int aifs_renameat2(struct aifs *fs, const char *from, const char *to, unsigned flags)
{
    size_t len = to ? strlen(to) : 0;
    bool slash = len && to[len - 1] == '/', exchange = flags & RENAME_EXCHANGE;

    if (flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE) ||
        flags == (RENAME_NOREPLACE | RENAME_EXCHANGE))
        return lib_errno(-EINVAL);
    return two_paths(fs, from, LIB_PARENT | (slash && !exchange ? LIB_DIR : 0), to,
                     exchange ? 0 : LIB_TO, rename_walked, flags);
}

int aifs_rename(struct aifs *fs, const char *from, const char *to)
{
    return aifs_renameat2(fs, from, to, 0);
}

static void link_walked(struct lib_call *c)
{
    if (S_ISDIR(c->walk->entry.attr.mode))
        lib_call_done(c, -EPERM);
    else
        core_link(c->fs->core, &c->q, c->walk->entry.ino, c->walk2->parent, c->walk2->name,
                  c->walk2->name_len);
}

int aifs_link(struct aifs *fs, const char *from, const char *to)
{
    return two_paths(fs, from, 0, to, LIB_NEW, link_walked, 0);
}

/* ---- symbolic links ---- */

static void readlink_done(struct core_req *q, int status)
{
    struct lib_call *c = q->arg;

    if (!status) {
        c->n1 = MIN(q->out.bytes.len, c->out_size);
        memcpy(c->out, q->out.bytes.data, c->n1);
    }
    lib_call_done(c, status);
}

static void readlink_walked(struct lib_call *c)
{
    if (!S_ISLNK(c->walk->entry.attr.mode)) {
        lib_call_done(c, -EINVAL);
        return;
    }
    lib_req(c->fs, &c->q, readlink_done, c);
    core_readlink(c->fs->core, &c->q, c->walk->entry.ino);
}

ssize_t aifs_readlink(struct aifs *fs, const char *path, char *buf, size_t size)
{
    struct lib_call c;
    int err;

    if (!size || !buf)
        return lib_errno(size ? -EFAULT : -EINVAL);
    lib_call_init(&c, fs, NULL);
    c.out = buf;
    c.out_size = size;
    err = lib_path_call(fs, path, 0, readlink_walked, &c);
    return err ? lib_errno(err) : (ssize_t)c.n1;
}
