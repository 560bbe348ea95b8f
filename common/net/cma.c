/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a peer's memory. One system call as a rule; a short read (the kernel stops at a page that
 * is not there, or after 2 GiB) goes on where it stopped, and one that brings nothing is -EFAULT.
 */
#include "common/net/cma.h"

#include "common/base/err.h"
#include "common/fault/fault.h"
#include "common/net/net.h"

/* The part of src from byte `from`, at most len bytes long. */
static unsigned clip(const struct iovec *src, unsigned n_src, uint64_t from, uint64_t len,
                     struct iovec out[NET_IOV_MAX])
{
    unsigned n = 0;

    for (unsigned i = 0; i < n_src && len > 0; i++) {
        uint64_t have = src[i].iov_len;

        if (from >= have) {
            from -= have;
            continue;
        }
        have = MIN(have - from, len);
        out[n++] = (struct iovec){(uint8_t *)src[i].iov_base + from, have};
        len -= have;
        from = 0;
    }
    return n;
}

int cma_read(pid_t pid, const struct iovec *local, unsigned n_local, const struct iovec *remote,
             unsigned n_remote, uint64_t from, uint64_t len)
{
    uint64_t done = from, end = from + len;

    if (FAULT("net.cma_read"))
        return -EPERM;
    while (done < end) {
        struct iovec l[NET_IOV_MAX];
        struct iovec r[NET_IOV_MAX];
        unsigned nl = clip(local, n_local, done - from, end - done, l);
        unsigned nr = clip(remote, n_remote, done, end - done, r);
        ssize_t n = process_vm_readv(pid, l, nl, r, nr, 0);

        if (n < 0)
            return -errno;
        if (n == 0)
            return -EFAULT;
        done += (uint64_t)n;
    }
    return 0;
}
