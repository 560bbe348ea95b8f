/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files through libaifs, without a mount: "aifs:" and a source as mount.aifs(8) takes it. At depth
 * 1 each operation is one blocking call; above, each job has a queue of its own: what has ended is
 * taken together, and what was begun meanwhile is submitted together.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/aifs.h"
#include "tools/bench/io.h"

struct fs {
    struct aifs *aifs;
    const char *source, *options;
};

struct io_file {
    struct aifs_file *file;
    struct aifs_queue *queue; /* NULL at depth 1 */
    struct io_op *finished;   /* at depth 1 */
    unsigned depth;
    unsigned n_idle;          /* those that are free are the first of idle */
    unsigned n_begun, n_done; /* begun and not submitted; ended and not handed back */
    struct aifs_io **idle, **begun, **done;
    struct aifs_io ios[];
};

static int connect_fs(struct fs *fs)
{
    if (aifs_mount(fs->source, fs->options, &fs->aifs) == 0)
        return 0;
    bench_error("%s: %s", fs->source, aifs_mount_error());
    fs->aifs = NULL;
    return -EIO;
}

static int lib_start(const char *where, const char *options, void **ret_fs, const char **ret_dir)
{
    struct fs *fs = calloc(1, sizeof *fs);

    if (!fs)
        return -ENOMEM;
    fs->source = where + strlen("aifs:");
    fs->options = options;
    if (connect_fs(fs) < 0) {
        free(fs);
        return -EIO;
    }
    *ret_fs = fs;
    *ret_dir = "";
    return 0;
}

static void lib_stop(void *arg)
{
    struct fs *fs = arg;

    if (fs->aifs && aifs_unmount(fs->aifs) != 0)
        bench_error("%s: at the end: %m", fs->source);
    free(fs);
}

static int lib_drop_caches(void *arg)
{
    struct fs *fs = arg;
    int rc = aifs_unmount(fs->aifs);

    fs->aifs = NULL;
    if (rc != 0)
        bench_error("%s: %m", fs->source);
    return rc ? -EIO : connect_fs(fs);
}

static int result(int rc)
{
    return rc == 0 ? 0 : -errno;
}

static int lib_mkdir(void *fs, const char *path)
{
    return result(aifs_mkdir(((struct fs *)fs)->aifs, path, 0755));
}

static int lib_rmdir(void *fs, const char *path)
{
    struct fs *f = fs;

    return f->aifs ? result(aifs_rmdir(f->aifs, path)) : -ENOTCONN;
}

static int lib_unlink(void *fs, const char *path)
{
    struct fs *f = fs;

    return f->aifs ? result(aifs_unlink(f->aifs, path)) : -ENOTCONN;
}

static int lib_rename(void *fs, const char *from, const char *to)
{
    struct fs *f = fs;

    return f->aifs ? result(aifs_rename(f->aifs, from, to)) : -ENOTCONN;
}

static int lib_open(void *arg, const char *path, int flags, unsigned depth,
                    struct io_file **ret_file)
{
    struct fs *fs = arg;
    unsigned n = depth > 1 ? depth : 0;
    struct io_file *f = calloc(1, sizeof *f + n * (sizeof f->ios[0] + 3 * sizeof f->idle[0]));
    int rc = 0;

    if (!f)
        return -ENOMEM;
    f->depth = n;
    f->idle = (struct aifs_io **)(void *)(f->ios + n);
    f->begun = f->idle + n;
    f->done = f->begun + n;
    f->file = aifs_open(fs->aifs, path, flags, 0644);
    if (!f->file)
        rc = -errno;
    if (rc == 0 && depth > 1) {
        f->queue = aifs_queue_create(fs->aifs);
        if (!f->queue) {
            rc = -errno;
            aifs_close(f->file);
        }
    }
    if (rc < 0) {
        free(f);
        return rc;
    }
    for (unsigned i = 0; i < n; i++)
        f->idle[f->n_idle++] = &f->ios[i];
    *ret_file = f;
    return 0;
}

static int status_of(const struct io_op *op, ssize_t n)
{
    return n < 0 ? (int)n : n == (ssize_t)op->len ? 0 : -EIO;
}

static int lib_begin(struct io_file *f, struct io_op *op)
{
    struct aifs_io *io;
    ssize_t n;

    if (!f->queue) {
        n = op->write ? aifs_pwrite(f->file, op->buf, op->len, (off_t)op->offset)
                      : aifs_pread(f->file, op->buf, op->len, (off_t)op->offset);
        op->status = status_of(op, n < 0 ? -errno : n);
        f->finished = op;
        return 0;
    }
    io = f->idle[--f->n_idle];
    *io = (struct aifs_io){.file = f->file,
                           .op = op->write ? AIFS_WRITE : AIFS_READ,
                           .buf = op->buf,
                           .len = op->len,
                           .offset = (off_t)op->offset,
                           .user = op};
    f->begun[f->n_begun++] = io;
    return 0;
}

static void wait_for_some(struct io_file *f)
{
    int n;

    if (f->n_begun && aifs_submit(f->queue, f->begun, f->n_begun) != 0) {
        for (unsigned i = 0; i < f->n_begun; i++) {
            f->begun[i]->result = -errno;
            f->done[f->n_done++] = f->begun[i];
        }
    }
    f->n_begun = 0;
    while (!f->n_done) {
        n = aifs_wait(f->queue, f->done, 1, f->depth, -1);
        f->n_done = n > 0 ? (unsigned)n : 0;
    }
}

static struct io_op *lib_finish(struct io_file *f)
{
    struct aifs_io *io;
    struct io_op *op;

    if (!f->queue)
        return f->finished;
    if (!f->n_done)
        wait_for_some(f);
    io = f->done[--f->n_done];
    op = io->user;
    op->status = status_of(op, io->result);
    f->idle[f->n_idle++] = io;
    return op;
}

static int lib_sync(struct io_file *f)
{
    return result(aifs_fsync(f->file));
}

static int lib_close(struct io_file *f)
{
    int rc;

    if (f->queue)
        aifs_queue_destroy(f->queue);
    rc = result(aifs_close(f->file));
    free(f);
    return rc;
}

const struct io_backend io_aifs_backend = {
    .name = "aifs",
    .async = true,
    .start = lib_start,
    .stop = lib_stop,
    .drop_caches = lib_drop_caches,
    .mkdir = lib_mkdir,
    .rmdir = lib_rmdir,
    .unlink = lib_unlink,
    .rename = lib_rename,
    .open = lib_open,
    .begin = lib_begin,
    .finish = lib_finish,
    .sync = lib_sync,
    .close = lib_close,
};
