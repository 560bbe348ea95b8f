// SPDX-License-Identifier: Apache-2.0
/*
 * Shared memory is a memfd that cannot become smaller (a seal, which the peer looks for), so that
 * reading it cannot end in a signal: what its owner has punched out reads as zeros. Failure: no
 * view, and the peer's memory is read as if there were none.
 */
#include "common/net/share.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/fault/fault.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

#define HUGE_BYTES ((size_t)SHARE_STEP_BYTES)
#define VIEW_MAX   (1ull * GIB)
#define PAGE_BYTES 4096u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct share mine;

/* ---- ours ---- */

/* Address space that begins where a huge page may. */
static uint8_t *reserve(size_t bytes)
{
    uint8_t *m = mmap(NULL, bytes + HUGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t before;

    if (m == MAP_FAILED)
        return NULL;
    before = -(uintptr_t)m % HUGE_BYTES;
    if (before)
        munmap(m, before);
    munmap(m + before + bytes, HUGE_BYTES - before);
    return m + before;
}

/* The kernel makes a huge page of what has one page. Without them other memory would be better. */
static bool fill(uint8_t *m, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += HUGE_BYTES)
        m[at] = 0;
    return madvise(m, bytes, MADV_COLLAPSE) == 0;
}

static uint8_t *create(size_t bytes, int *ret_fd, uint64_t *ret_ino)
{
    AUTO_CLOSE int fd = memfd_create("aifs-data", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct stat st;
    uint8_t *m;

    if (fd < 0 || FAULT("net.share") || ftruncate(fd, (off_t)bytes) < 0 || fstat(fd, &st) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return NULL;
    m = reserve(bytes);
    if (!m)
        return NULL;
    if (mmap(m, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
        !fill(m, bytes)) {
        munmap(m, bytes);
        return NULL;
    }
    *ret_ino = st.st_ino;
    *ret_fd = fd;
    fd = -1;
    return m;
}

uint8_t *share_create(size_t bytes)
{
    uint8_t *m = NULL;

    if (!bytes || bytes % HUGE_BYTES)
        return NULL;
    pthread_mutex_lock(&lock);
    if (!mine.bytes) {
        m = create(bytes, &mine.fd, &mine.ino);
        if (m) {
            mine.base = (uintptr_t)m;
            mine.bytes = bytes;
        } else {
            LOG_DEBUG("share", "no memory to share: %m");
        }
    }
    pthread_mutex_unlock(&lock);
    return m;
}

struct share share_mine(void)
{
    struct share s;

    pthread_mutex_lock(&lock);
    s = mine;
    pthread_mutex_unlock(&lock);
    return s;
}

/* ---- a peer's ---- */

int share_open_process(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);

    return fd < 0 ? -errno : fd;
}

static bool is_harmless(int fd, const struct share *s)
{
    int seals = fcntl(fd, F_GET_SEALS);
    struct statfs fs;
    struct stat st;

    return seals >= 0 && (seals & F_SEAL_SHRINK) && fstatfs(fd, &fs) == 0 &&
           fs.f_type == TMPFS_MAGIC && fstat(fd, &st) == 0 && st.st_ino == s->ino &&
           st.st_size >= 0 && (uint64_t)st.st_size >= s->bytes;
}

int share_map(int process, const struct share *s, struct share_view *ret_view)
{
    AUTO_CLOSE int fd = -1;
    uint8_t *m;

    if (!s->bytes || s->bytes > VIEW_MAX || s->bytes % PAGE_BYTES || s->base % PAGE_BYTES ||
        s->base > UINT64_MAX - s->bytes || s->fd < 0)
        return -AIFS_EPROTO;
    if (FAULT("net.share"))
        return -EPERM;
    fd = (int)syscall(SYS_pidfd_getfd, process, s->fd, 0);
    if (fd < 0)
        return -errno;
    if (!is_harmless(fd, s))
        return -AIFS_EPROTO;
    m = reserve((s->bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES);
    if (!m)
        return -ENOMEM;
    if (mmap(m, s->bytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
        munmap(m, (s->bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES);
        return -ENOMEM;
    }
    *ret_view = (struct share_view){m, s->base, s->bytes};
    return 0;
}

void share_unmap(struct share_view *v)
{
    if (v->at)
        munmap((void *)(uintptr_t)v->at, (v->bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES);
    *v = (struct share_view){0};
}

static bool is_in(const struct share_view *v, const struct iovec *iov)
{
    uint64_t at = (uintptr_t)iov->iov_base;

    return at >= v->base && iov->iov_len <= v->bytes && at - v->base <= v->bytes - iov->iov_len;
}

bool share_holds(const struct share_view *v, const struct iovec *remote, unsigned n_remote)
{
    for (unsigned i = 0; i < n_remote; i++)
        if (!is_in(v, &remote[i]))
            return false;
    return v->at != NULL;
}

bool share_read(const struct share_view *v, const struct iovec *local, const struct iovec *remote,
                unsigned n_remote, uint64_t from, uint64_t len)
{
    uint64_t put = 0, n;

    if (!share_holds(v, remote, n_remote))
        return false;
    for (; len > 0 && n_remote > 0; remote++, n_remote--) {
        uint64_t skip = MIN(from, remote->iov_len), have = MIN(remote->iov_len - skip, len);
        const uint8_t *at = v->at + ((uintptr_t)remote->iov_base - v->base) + skip;

        from -= skip;
        len -= have;
        for (; have > 0; have -= n, at += n, put += n) {
            for (; put == local->iov_len; local++)
                put = 0;
            n = MIN(have, local->iov_len - put);
            memcpy((uint8_t *)local->iov_base + put, at, n);
        }
    }
    return len == 0;
}
