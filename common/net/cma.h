/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cross memory attach: reading another process's memory with one copy and no help from it
 * (process_vm_readv(2)). Blocking only for the copy itself. Reads only; nobody's memory is ever
 * written from outside.
 */
#ifndef AIFS_COMMON_NET_CMA_H
#define AIFS_COMMON_NET_CMA_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "common/base/compiler.h"

/*
 * Copies len bytes, from the given one on, of the peer's remote iov to the beginning of the local
 * one; both must hold at least that much.
 * All or an error: -ESRCH the process is gone, -EFAULT it has no such memory, -EPERM. The peer's
 * addresses come from the wire: a wrong one is the peer's error, never ours.
 */
int cma_read(pid_t pid, const struct iovec *local, unsigned n_local, const struct iovec *remote,
             unsigned n_remote, uint64_t from, uint64_t len) MUST_USE;

#endif
