/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions in front of the C library's: reads, in all their spellings, and what ends a
 * descriptor or the process. Happy path of a read: the engine moves the kernel's position and reads
 * what is before it. Two who read from one position at once get each a piece, as from the kernel.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "client/preload/preload_int.h"

#define EXPORT __attribute__((visibility("default")))

ssize_t __read_chk(int fd, void *buf, size_t len, size_t room);
ssize_t __pread_chk(int fd, void *buf, size_t len, off_t offset, size_t room);
ssize_t __pread64_chk(int fd, void *buf, size_t len, off_t offset, size_t room);
void __chk_fail(void) __attribute__((noreturn));

/* What we stand in front of. Theirs, not system calls: these are where threads are cancelled. */
static struct {
    ssize_t (*read)(int fd, void *buf, size_t len);
    ssize_t (*pread)(int fd, void *buf, size_t len, off_t offset);
    ssize_t (*readv)(int fd, const struct iovec *iov, int n);
    ssize_t (*preadv)(int fd, const struct iovec *iov, int n, off_t offset);
    int (*close)(int fd);
    int (*dup2)(int from, int to);
    int (*dup3)(int from, int to, int flags);
    int (*fclose)(FILE *f);
    void (*closefrom)(int from);
} next;

static void find(const char *name, void *ret_function)
{
    *(void **)ret_function = dlsym(RTLD_NEXT, name);
}

/* Early: dlsym() is nothing for a signal handler. Constructors of others may call us before. */
__attribute__((constructor)) static void find_all(void)
{
    find("pread64", &next.pread);
    find("readv", &next.readv);
    find("preadv64", &next.preadv);
    find("close", &next.close);
    find("dup2", &next.dup2);
    find("dup3", &next.dup3);
    find("fclose", &next.fclose);
    find("closefrom", &next.closefrom);
    find("read", &next.read);
}

static void ready(void)
{
    if (!next.read)
        find_all();
}

static ssize_t do_pread(int fd, void *buf, size_t len, off_t offset)
{
    ssize_t n = len >= PRELOAD_BYTES && offset >= 0 ? preload_pread(fd, buf, len, offset) : -1;

    if (n >= 0)
        return n;
    ready();
    return next.pread(fd, buf, len, offset);
}

static ssize_t do_read(int fd, void *buf, size_t len)
{
    struct iovec iov = {buf, len};
    ssize_t n;

    ready();
    if (len >= PRELOAD_BYTES && preload_read(fd, &iov, 1, next.pread, &n))
        return n;
    return next.read(fd, buf, len);
}

EXPORT ssize_t read(int fd, void *buf, size_t len)
{
    return do_read(fd, buf, len);
}

EXPORT ssize_t __read_chk(int fd, void *buf, size_t len, size_t room)
{
    if (len > room)
        __chk_fail();
    return do_read(fd, buf, len);
}

EXPORT ssize_t pread(int fd, void *buf, size_t len, off_t offset)
{
    return do_pread(fd, buf, len, offset);
}

EXPORT ssize_t pread64(int fd, void *buf, size_t len, off64_t offset)
{
    return do_pread(fd, buf, len, offset);
}

EXPORT ssize_t __pread_chk(int fd, void *buf, size_t len, off_t offset, size_t room)
{
    if (len > room)
        __chk_fail();
    return do_pread(fd, buf, len, offset);
}

EXPORT ssize_t __pread64_chk(int fd, void *buf, size_t len, off_t offset, size_t room)
{
    if (len > room)
        __chk_fail();
    return do_pread(fd, buf, len, offset);
}

/* Vectors: a short piece ends it, as the end of the file does. One small piece: the kernel does
 * them all better. */
static bool all_large(const struct iovec *iov, int n)
{
    if (n < 1 || n > 1024)
        return false;
    for (int k = 0; k < n; k++)
        if (iov[k].iov_len < PRELOAD_BYTES)
            return false;
    return true;
}

EXPORT ssize_t readv(int fd, const struct iovec *iov, int n)
{
    ssize_t got;

    ready();
    if (all_large(iov, n) && preload_read(fd, iov, n, next.pread, &got))
        return got;
    return next.readv(fd, iov, n);
}

static ssize_t do_preadv(int fd, const struct iovec *iov, int n, off_t offset)
{
    ssize_t sum = 0, got;

    ready();
    if (!all_large(iov, n))
        return next.preadv(fd, iov, n, offset);
    for (int k = 0; k < n; k++) {
        got = do_pread(fd, iov[k].iov_base, iov[k].iov_len, offset + sum);
        if (got < 0)
            return sum ? sum : got;
        sum += got;
        if ((size_t)got < iov[k].iov_len)
            break;
    }
    return sum;
}

EXPORT ssize_t preadv(int fd, const struct iovec *iov, int n, off_t offset)
{
    return do_preadv(fd, iov, n, offset);
}

EXPORT ssize_t preadv64(int fd, const struct iovec *iov, int n, off64_t offset)
{
    return do_preadv(fd, iov, n, offset);
}

/* ---- ends ---- */

EXPORT int close(int fd)
{
    ready();
    if (preload_is_ours(fd)) {
        errno = EBADF;
        return -1;
    }
    preload_closing(fd);
    preload_forget(fd);
    return next.close(fd);
}

/* The number is wanted: false, it cannot be had. */
static bool make_way(int from, int to)
{
    if (from == to)
        return true;
    if (preload_is_ours(to) && !preload_vacate()) {
        errno = EBUSY;
        return false;
    }
    preload_forget(to);
    return true;
}

EXPORT int dup2(int from, int to)
{
    ready();
    return make_way(from, to) ? next.dup2(from, to) : -1;
}

EXPORT int dup3(int from, int to, int flags)
{
    ready();
    return make_way(from, to) ? next.dup3(from, to, flags) : -1;
}

EXPORT int fclose(FILE *f)
{
    int fd = fileno(f);

    ready();
    if (fd >= 0)
        preload_forget(fd);
    return next.fclose(f);
}

static void forget_range(unsigned first, unsigned last)
{
    for (unsigned fd = first; fd <= last && fd < PRELOAD_FDS; fd++)
        preload_forget((int)fd);
}

EXPORT int close_range(unsigned first, unsigned last, int flags)
{
    if (!(flags & (int)CLOSE_RANGE_CLOEXEC))
        forget_range(first, last);
    return preload_close_range(first, last, flags);
}

EXPORT void closefrom(int from)
{
    unsigned first = from < 0 ? 0 : (unsigned)from;

    ready();
    forget_range(first, PRELOAD_FDS);
    if (preload_close_range(first, ~0u, 0))
        next.closefrom(from);
}

EXPORT void _exit(int status)
{
    preload_end();
    syscall(SYS_exit_group, status);
    __builtin_unreachable();
}

EXPORT void _Exit(int status)
{
    _exit(status);
}

__attribute__((destructor)) static void at_exit(void)
{
    preload_end();
}
