// SPDX-License-Identifier: Apache-2.0
/*
 * Memory and files that are registered with a ring.
 *
 * Happy path: pools are named by fio_memory_add(); the first operation of the ring makes a table in
 * the kernel and puts each pool into it, which pins its pages; a transfer from or to one piece of
 * such memory then names its place in the table.
 *
 * Failure modes: a kernel without such a table (before 5.19), no more memory may be locked
 * (RLIMIT_MEMLOCK, without CAP_IPC_LOCK): one line in the log, and transfers go as ever; a table
 * that is full: those of what is not in it do. Nothing is pinned in a process whose files all live
 * in memory.
 */
#include <errno.h>
#include <liburing.h>
#include <string.h>
#include <sys/resource.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/fault/fault.h"
#include "common/uring/fio_int.h"

static int fixed_put(struct io_uring *ring, unsigned at, const struct iovec *memory)
{
    int rc = FAULT("fio.register")
                 ? -ENOMEM
                 : io_uring_register_buffers_update_tag(ring, at, memory, NULL, 1);

    return rc < 0 ? rc : 0;
}

static uint64_t fixed_mib(const struct fio_fixed *x)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < x->n; i++)
        bytes += x->memory[i].iov_len;
    return bytes / MIB;
}

/* All or nothing: what a user may lock is for all processes of that user, and their rings too. */
void fio_fixed_start(struct fio_fixed *x, struct io_uring *ring)
{
    int rc = io_uring_register_buffers_sparse(ring, FIO_MEMORIES_MAX);

    x->started = true;
    x->there = rc == 0;
    for (unsigned i = 0; i < x->n && !rc; i++)
        if (x->memory[i].iov_base)
            rc = fixed_put(ring, i, &x->memory[i]);
    if (!rc) {
        LOG_INFO("fio", "%llu MiB of buffers are registered with io_uring",
                 (unsigned long long)fixed_mib(x));
        return;
    }
    LOG_INFO("fio",
             "%llu MiB of buffers are not registered with io_uring (%s): each transfer looks up "
             "their pages",
             (unsigned long long)fixed_mib(x), err_text(rc));
    if (x->there)
        io_uring_unregister_buffers(ring);
    x->there = false;
    x->n = 0;
}

void fio_fixed_add(struct fio_fixed *x, struct io_uring *ring, struct iovec memory)
{
    unsigned i = 0;
    int rc;

    while (i < x->n && x->memory[i].iov_base)
        i++;
    if (i == FIO_MEMORIES_MAX || (x->started && !x->there))
        return;
    x->n = MAX(x->n, i + 1);
    memory.iov_len = MIN(memory.iov_len, GIB); /* the kernel takes no more as one */
    x->memory[i] = memory;
    if (!x->started)
        return;
    rc = fixed_put(ring, i, &x->memory[i]);
    if (rc < 0) { /* what is not in the kernel's table must not be found in ours */
        x->memory[i] = (struct iovec){0};
        LOG_INFO("fio", "%llu KiB of buffers are not registered with io_uring (%s)",
                 (unsigned long long)(memory.iov_len / KIB), err_text(rc));
    }
}

void fio_fixed_remove(struct fio_fixed *x, struct io_uring *ring, struct iovec memory)
{
    const struct iovec none = {0};

    for (unsigned i = 0; i < x->n; i++) {
        if (x->memory[i].iov_base != memory.iov_base)
            continue;
        x->memory[i] = none;
        if (x->started && io_uring_register_buffers_update_tag(ring, i, &none, NULL, 1) < 0)
            LOG_DEBUG("fio", "memory stays pinned until its place in the table is used again");
        return;
    }
}

int fio_fixed_find(const struct fio_fixed *x, const struct iovec *iov)
{
    uintptr_t at = (uintptr_t)iov->iov_base;

    for (unsigned i = 0; x->there && i < x->n; i++) {
        uintptr_t from = (uintptr_t)x->memory[i].iov_base;

        if (at >= from && at - from < x->memory[i].iov_len &&
            iov->iov_len <= x->memory[i].iov_len - (at - from))
            return (int)i;
    }
    return -1;
}

/* ---- files ---- */

static void files_start(struct fio_fixed *x, struct io_uring *ring)
{
    struct rlimit r;
    int rc = -ENOMEM;

    x->files_started = true;
    x->n_files = FIO_FILES_MAX; /* the kernel takes no more than the process may open */
    if (!getrlimit(RLIMIT_NOFILE, &r))
        x->n_files = (unsigned)MIN(r.rlim_cur, x->n_files);
    x->files = FAULT("fio.register") ? NULL : mem_zalloc(FIO_FILES_MAX);
    if (x->files)
        rc = io_uring_register_files_sparse(ring, x->n_files);
    if (rc < 0) {
        fio_fixed_free(x);
        LOG_INFO("fio", "files are not registered with io_uring (%s)", err_text(rc));
    }
}

void fio_fixed_file_add(struct fio_fixed *x, struct io_uring *ring, struct fio_file *file)
{
    const uint8_t *hole;
    int rc;

    if (!x->files_started)
        files_start(x, ring);
    hole = x->files ? memchr(x->files, 0, x->n_files) : NULL;
    if (!hole)
        return;
    rc = io_uring_register_files_update(ring, (unsigned)(hole - x->files), &file->fd, 1);
    if (rc != 1) {
        LOG_DEBUG("fio", "a file is not registered with io_uring: %s", err_text(rc));
        return;
    }
    file->place = (unsigned)(hole - x->files) + 1;
    x->files[file->place - 1] = 1;
}

void fio_fixed_file_remove(struct fio_fixed *x, struct io_uring *ring, struct fio_file *file)
{
    int none = -1, rc;

    if (!file->place)
        return;
    rc = io_uring_register_files_update(ring, file->place - 1, &none, 1);
    if (rc == 1)
        x->files[file->place - 1] = 0;
    else /* the place is lost, and the file stays open */
        LOG_WARN("fio", "a file stays registered with io_uring: %s", err_text(rc));
    file->place = 0;
}

void fio_fixed_free(struct fio_fixed *x)
{
    mem_free(x->files);
    x->files = NULL;
}
