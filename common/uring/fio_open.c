/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening a file with the engine that suits its file system.
 *
 * Happy path: open, look at what it is, and unless it lives in memory try to switch O_DIRECT on;
 * the kernel says whether it can, and since 6.1 statx(2) also says with which alignment.
 *
 * Failure modes: open(2)'s errors; a file that is neither regular nor a block device is refused. No
 * O_DIRECT is not a failure: io_uring then goes through the page cache.
 */
#include "common/uring/fio.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"

#define FIO_ALIGN_DEFAULT 4096u
#define FIO_ALIGN_MAX     65536u

static bool fio_lives_in_memory(int fd)
{
    struct statfs fs;

    if (fstatfs(fd, &fs) < 0)
        return false;
    return fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
}

/* What O_DIRECT asks of memory, offset and length; 0: there is none. */
static uint32_t fio_direct_align(int fd)
{
#ifdef STATX_DIOALIGN
    struct statx st;
    uint32_t align;

    if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st) == 0 && (st.stx_mask & STATX_DIOALIGN)) {
        align = MAX(st.stx_dio_mem_align, st.stx_dio_offset_align);
        if (st.stx_dio_offset_align == 0 || (align & (align - 1)) || align > FIO_ALIGN_MAX)
            return 0;
        return align;
    }
#else
    (void)fd;
#endif
    return FIO_ALIGN_DEFAULT;
}

/* O_NONBLOCK goes: it would make io_uring answer -EAGAIN instead of waiting for the disk. */
static int fio_set_flags(int fd, bool direct)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0)
        return -errno;
    flags &= ~(O_NONBLOCK | O_DIRECT);
    return fcntl(fd, F_SETFL, flags | (direct ? O_DIRECT : 0)) < 0 ? -errno : 0;
}

static int fio_choose_engine(int fd, const char *want, struct fio_file *file)
{
    uint32_t align;
    int rc;

    *file = (struct fio_file){.fd = fd, .engine = FIO_URING, .align_bytes = 1};
    if (!strcmp(want, "plain"))
        file->engine = FIO_PLAIN;
    else if (!strcmp(want, "auto"))
        file->engine = fio_lives_in_memory(fd) ? FIO_PLAIN : FIO_URING;
    else if (strcmp(want, "uring") != 0)
        return -EINVAL;
    if (file->engine == FIO_URING && !fio_lives_in_memory(fd)) {
        align = fio_direct_align(fd);
        if (align && fio_set_flags(fd, true) == 0) {
            file->direct = true;
            file->align_bytes = align;
            return 0;
        }
    }
    rc = fio_set_flags(fd, false);
    return rc;
}

int fio_open(const char *path, int flags, unsigned mode, const char *want,
             struct fio_file *ret_file)
{
    AUTO_CLOSE int fd = -1;
    struct fio_file file;
    struct stat st;
    int rc;

    /* O_NONBLOCK: opening a fifo that someone put there must not hang. */
    fd = open(path, (flags & ~O_DIRECT) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, (mode_t)mode);
    if (fd < 0) {
        rc = -errno;
        LOG_DEBUG("fio", "open %s: %m", path);
        return rc;
    }
    if (fstat(fd, &st) < 0) {
        rc = -errno;
        LOG_ERROR("fio", "fstat %s: %m", path);
        return rc;
    }
    if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode)) {
        LOG_ERROR("fio", "%s is neither a regular file nor a block device", path);
        return -EINVAL;
    }
    rc = fio_choose_engine(fd, want, &file);
    if (rc < 0) {
        LOG_ERROR("fio", "%s: cannot use engine \"%s\"", path, want);
        return rc;
    }
    fd = -1;
    *ret_file = file;
    return 0;
}

void fio_close(struct fio_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

const char *fio_engine_name(const struct fio_file *file)
{
    if (file->engine == FIO_PLAIN)
        return "plain";
    return file->direct ? "uring, direct" : "uring";
}
