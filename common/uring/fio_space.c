/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Space for a range of a file, before anything is written to it.
 *
 * Happy path: fallocate(2). On tmpfs that takes a page of 4 KiB at a time, which costs more than
 * the data that is written to them. MADV_COLLAPSE (madvise(2), Linux 6.1) makes a huge page of any
 * range that has at least one page, whatever the mount's huge= says; so each huge page's worth of
 * the range gets one small page first.
 *
 * Failure modes: no huge pages (an older kernel, ramfs, memory in pieces): small ones. Errors are
 * those of fallocate(2), and what had been taken of the range is given back.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/compiler.h"
#include "common/fault/fault.h"
#include "common/uring/fio.h"

#define HUGE_BYTES  (2ull << 20)
#define SMALL_BYTES 4096ull
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1, younger than the C library's headers */
#endif

static int space_take(int fd, uint64_t offset, uint64_t len)
{
    return fallocate(fd, 0, (off_t)offset, (off_t)len) < 0 ? -errno : 0;
}

/* Best effort: what stays small is small. The file's place in a huge page must be the address's. */
static void space_collapse(int fd, uint64_t offset, uint64_t len)
{
    size_t room = len + HUGE_BYTES;
    void *area = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    void *at;

    if (area == MAP_FAILED)
        return;
    at = (uint8_t *)area + (HUGE_BYTES - (uintptr_t)area % HUGE_BYTES) % HUGE_BYTES;
    at = mmap(at, len, PROT_READ, MAP_SHARED | MAP_FIXED, fd, (off_t)offset);
    if (at != MAP_FAILED)
        (void)!madvise(at, len, MADV_COLLAPSE);
    munmap(area, room);
}

static int space_take_huge(int fd, uint64_t offset, uint64_t len)
{
    int rc = 0;

    for (uint64_t at = offset; at < offset + len && !rc; at += HUGE_BYTES)
        rc = space_take(fd, at + HUGE_BYTES - SMALL_BYTES, SMALL_BYTES);
    if (!rc)
        space_collapse(fd, offset, len);
    return rc;
}

int fio_allocate(const struct fio_file *file, uint64_t offset, uint64_t len)
{
    int rc = 0;

    if (file->memory && offset % HUGE_BYTES == 0 && len % HUGE_BYTES == 0)
        rc = space_take_huge(file->fd, offset, len);
    if (!rc)
        rc = FAULT("fio.space") ? -ENOSPC : space_take(file->fd, offset, len);
    if (rc && rc != -EOPNOTSUPP)
        (void)!fio_give_back(file, offset, len);
    return rc;
}

int fio_give_back(const struct fio_file *file, uint64_t offset, uint64_t len)
{
    int flags = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

    return fallocate(file->fd, flags, (off_t)offset, (off_t)len) < 0 ? -errno : 0;
}
