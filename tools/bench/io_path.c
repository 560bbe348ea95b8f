/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of any mounted file system, by pread(2) and pwrite(2): an operation is finished when
 * begin() returns, so each job has one in flight.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/bench/io.h"

struct io_file {
    int fd;
    struct io_op *finished;
};

static int path_start(const char *where, const char *options, void **ret_fs, const char **ret_dir)
{
    struct stat st;

    (void)options;
    if (stat(where, &st) != 0 || !S_ISDIR(st.st_mode)) {
        bench_error("%s: not a directory", where);
        return -ENOTDIR;
    }
    *ret_fs = NULL;
    *ret_dir = where;
    return 0;
}

static void path_stop(void *fs)
{
    (void)fs;
}

static int path_drop_caches(void *fs)
{
    (void)fs;
    return bench_drop_caches();
}

static int path_mkdir(void *fs, const char *path)
{
    (void)fs;
    return mkdir(path, 0755) == 0 ? 0 : -errno;
}

static int path_rmdir(void *fs, const char *path)
{
    (void)fs;
    return rmdir(path) == 0 ? 0 : -errno;
}

static int path_unlink(void *fs, const char *path)
{
    (void)fs;
    return unlink(path) == 0 ? 0 : -errno;
}

static int path_rename(void *fs, const char *from, const char *to)
{
    (void)fs;
    return rename(from, to) == 0 ? 0 : -errno;
}

static int path_open(void *fs, const char *path, int flags, unsigned depth,
                     struct io_file **ret_file)
{
    struct io_file *f = calloc(1, sizeof *f);
    int rc;

    (void)fs;
    (void)depth;
    if (!f)
        return -ENOMEM;
    f->fd = open(path, flags | O_CLOEXEC, 0644);
    if (f->fd < 0) {
        rc = -errno;
        free(f);
        return rc;
    }
    *ret_file = f;
    return 0;
}

static int path_begin(struct io_file *f, struct io_op *op)
{
    uint32_t done = 0;

    op->status = 0;
    while (done < op->len && op->status == 0) {
        off_t at = (off_t)(op->offset + done);
        ssize_t n = op->write ? pwrite(f->fd, op->buf + done, op->len - done, at)
                              : pread(f->fd, op->buf + done, op->len - done, at);

        if (n > 0)
            done += (uint32_t)n;
        else if (n == 0)
            op->status = -EIO;
        else if (errno != EINTR)
            op->status = -errno;
    }
    f->finished = op;
    return 0;
}

static struct io_op *path_finish(struct io_file *f)
{
    return f->finished;
}

static int path_sync(struct io_file *f)
{
    return fsync(f->fd) == 0 ? 0 : -errno;
}

static int path_close(struct io_file *f)
{
    int rc = close(f->fd) == 0 ? 0 : -errno;

    free(f);
    return rc;
}

const struct io_backend io_path_backend = {
    .name = "path",
    .start = path_start,
    .stop = path_stop,
    .drop_caches = path_drop_caches,
    .mkdir = path_mkdir,
    .rmdir = path_rmdir,
    .unlink = path_unlink,
    .rename = path_rename,
    .open = path_open,
    .begin = path_begin,
    .finish = path_finish,
    .sync = path_sync,
    .close = path_close,
};
