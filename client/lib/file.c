/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening, closing, syncing. O_CREAT without O_EXCL creates straight away (one call when the parent
 * is known) and only walks to the end, links and all, when the name turns out to be something that
 * cannot be created over; what is not there at the end of links is made there. Failure: where
 * others put and take away links all the time, EEXIST after a few tries.
 */
#include "client/lib/lib_int.h"

#include <errno.h>
#include <fcntl.h>

#define OPEN_TRIES 8

struct open_args {
    int flags;
    mode_t mode;
    const struct msg_stripe *stripe;
};

static void opened(struct core_req *q, int status)
{
    struct lib_call *c = q->arg;
    struct aifs_file *f = c->out;

    if (!status) {
        f->file = q->out.opened.file;
        f->ino = core_file_ino(f->file);
        f->flags = core_file_flags(f->file);
    }
    lib_call_done(c, status);
}

static void create_walked(struct lib_call *c)
{
    const struct open_args *a = c->arg;

    lib_req(c->fs, &c->q, opened, c);
    core_create_file(c->fs->core, &c->q, c->walk->parent, c->walk->name, c->walk->name_len, a->mode,
                     a->flags, a->stripe);
}

static void name_opened(struct core_req *q, int status)
{
    struct lib_call *c = q->arg;
    const struct open_args *a = c->arg;

    if (status == -ENOENT && a->flags & O_CREAT)
        create_walked(c); /* removed since */
    else
        opened(q, status == -EEXIST ? -ESTALE : status); /* a link by now */
}

/* Somebody may have replaced the name since it was looked up: what it names now is opened by the
 * same step as it is found. */
static void walked_opened(struct core_req *q, int status)
{
    struct lib_call *c = q->arg;
    const struct open_args *a = c->arg;

    if (status != -ENOENT && status != -ESTALE) {
        opened(q, status);
        return;
    }
    lib_req(c->fs, &c->q, name_opened, c);
    core_open_name(c->fs->core, &c->q, c->walk->parent, c->walk->name, c->walk->name_len, a->flags);
}

static void open_walked(struct lib_call *c)
{
    const struct open_args *a = c->arg;
    uint32_t mode = c->walk->entry.attr.mode;

    if (!c->walk->entry.ino) { /* by O_CREAT, at the end of links */
        create_walked(c);
        return;
    }
    if (S_ISDIR(mode) || S_ISLNK(mode) || !S_ISREG(mode) || a->flags & O_DIRECTORY) {
        lib_call_done(c, S_ISDIR(mode)            ? -EISDIR
                         : a->flags & O_DIRECTORY ? -ENOTDIR
                         : S_ISLNK(mode)          ? -ELOOP
                                                  : -ENXIO);
        return;
    }
    lib_req(c->fs, &c->q, walked_opened, c);
    core_open(c->fs->core, &c->q, c->walk->entry.ino, a->flags);
}

/* Opened neither to read nor to write, or made and wanted to be a directory. */
static bool is_odd(int flags)
{
    return (flags & O_ACCMODE) == O_ACCMODE || (flags & O_CREAT && flags & O_DIRECTORY);
}

static int open_call(struct aifs_file *f, const char *path, const struct open_args *a,
                     unsigned walk_flags, void (*then)(struct lib_call *c))
{
    struct lib_call c;

    lib_call_init(&c, f->fs, NULL);
    c.arg = a;
    c.out = f;
    return lib_path_call(f->fs, path, walk_flags, then, &c);
}

static int open_path(struct aifs_file *f, const char *path, const struct open_args *a)
{
    bool create = a->flags & O_CREAT;
    unsigned follow = (a->flags & O_NOFOLLOW ? 0 : LIB_FOLLOW) | (create ? LIB_CREATE : 0);
    int err = -EEXIST;

    if (create)
        err = open_call(f, path, a, LIB_PARENT | LIB_CREATE, create_walked);
    if (create && a->flags & O_EXCL)
        return err;
    for (unsigned k = 0; k < OPEN_TRIES && err == -EEXIST; k++)
        err = open_call(f, path, a, follow, open_walked);
    return err;
}

static struct aifs_file *open_with(struct aifs *fs, const char *path, const struct open_args *a)
{
    struct aifs_file *f = mem_zalloc(sizeof *f);
    int err = -ENOMEM;

    if (is_odd(a->flags)) {
        err = -EINVAL;
    } else if (f) {
        f->fs = fs;
        err = open_path(f, path, a);
    }
    if (!err) {
        f->generation = lib_generation();
        return f;
    }
    mem_free(f);
    (void)lib_errno(err);
    return NULL;
}

static void inode_begin(struct lib_call *c)
{
    core_open(c->fs->core, &c->q, c->n1, (int)c->n2);
}

struct aifs_file *aifs_open_inode(struct aifs *fs, uint64_t ino, int flags)
{
    struct aifs_file *f = mem_zalloc(sizeof *f);
    struct lib_call c;
    int err = -ENOMEM;

    if (is_odd(flags)) {
        err = -EINVAL;
    } else if (f) {
        f->fs = fs;
        lib_call_init(&c, fs, inode_begin);
        c.q.done = opened;
        c.out = f;
        c.n1 = ino;
        c.n2 = (uint64_t)(flags & (O_ACCMODE | O_TRUNC | O_APPEND | O_SYNC | O_DSYNC));
        err = lib_call_run(&c);
    }
    if (!err) {
        f->generation = lib_generation();
        return f;
    }
    mem_free(f);
    (void)lib_errno(err);
    return NULL;
}

static void reopen_begin(struct lib_call *c)
{
    const struct aifs_file *f = c->arg;

    core_open(c->fs->core, &c->q, f->ino, f->flags & (O_ACCMODE | O_APPEND | O_SYNC | O_DSYNC));
}

int lib_file_reopen(struct aifs_file *f)
{
    struct lib_call c;

    lib_call_init(&c, f->fs, reopen_begin);
    c.q.done = opened;
    c.arg = c.out = f;
    return lib_call_run(&c);
}

struct aifs_file *aifs_open(struct aifs *fs, const char *path, int flags, mode_t mode)
{
    return open_with(fs, path, &(struct open_args){.flags = flags, .mode = mode});
}

struct aifs_file *aifs_create_striped(struct aifs *fs, const char *path, int flags, mode_t mode,
                                      uint32_t chunk_bytes, uint32_t stripe_count, const char *pool)
{
    struct msg_stripe s = {
        .chunk_bytes = chunk_bytes,
        .stripe_count = stripe_count == UINT32_MAX ? 0 : stripe_count,
        .all = stripe_count == UINT32_MAX,
        .pool = {pool, pool ? (uint32_t)strlen(pool) : 0},
    };

    return open_with(
        fs, path,
        &(struct open_args){.flags = flags | O_CREAT | O_EXCL, .mode = mode, .stripe = &s});
}

static void flush_begin(struct lib_call *c)
{
    const struct aifs_file *f = c->arg;

    core_flush(c->fs->core, &c->q, f->file);
}

static void close_done(struct core_req *q, int status)
{
    struct lib_call *c = q->arg;
    const struct aifs_file *f = c->arg;

    core_release(c->fs->core, f->file);
    lib_call_done(c, status);
}

int aifs_close(struct aifs_file *f)
{
    struct lib_call c;
    int err;

    if (f->generation != lib_generation()) { /* the parent's, and never used here */
        mem_free(f);
        return 0;
    }
    lib_file_call_init(&c, f, flush_begin);
    c.arg = f;
    c.q.done = close_done;
    err = lib_call_run(&c);
    mem_free(f);
    return lib_errno(err);
}

static void fsync_begin(struct lib_call *c)
{
    const struct aifs_file *f = c->arg;

    core_fsync(c->fs->core, &c->q, f->file, c->n1 != 0);
}

static int sync_file(struct aifs_file *f, bool data_only)
{
    struct lib_call c;

    lib_file_call_init(&c, f, fsync_begin);
    c.arg = f;
    c.n1 = data_only;
    return lib_errno(lib_call_run(&c));
}

int aifs_fsync(struct aifs_file *f)
{
    return sync_file(f, false);
}

int aifs_fdatasync(struct aifs_file *f)
{
    return sync_file(f, true);
}

static void ftruncate_begin(struct lib_call *c)
{
    const struct aifs_file *f = c->arg;
    struct msg_setattr_req set = {.ino = f->ino, .set = MSG_SET_SIZE, .size = c->n1};

    core_setattr(c->fs->core, &c->q, &set, f->file);
}

int aifs_ftruncate(struct aifs_file *f, off_t size)
{
    struct lib_call c;

    if (size < 0 || (f->flags & O_ACCMODE) == O_RDONLY)
        return lib_errno(-EINVAL);
    lib_file_call_init(&c, f, ftruncate_begin);
    c.arg = f;
    c.n1 = (uint64_t)size;
    return lib_errno(lib_call_run(&c));
}

static void fstat_begin(struct lib_call *c)
{
    const struct aifs_file *f = c->arg;

    core_getattr(c->fs->core, &c->q, f->ino);
}

int aifs_fstat(struct aifs_file *f, struct stat *st)
{
    struct lib_call c;
    int err;

    if (!st)
        return lib_errno(-EFAULT);
    lib_file_call_init(&c, f, fstat_begin);
    c.arg = f;
    err = lib_call_run(&c);
    if (!err)
        lib_stat_fill(st, &c.q.entry.attr);
    return lib_errno(err);
}
