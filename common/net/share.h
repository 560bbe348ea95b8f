/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a process that others of the same user on the same machine map, to copy out of it
 * without asking the kernel for each page (cma.h does). There is at most one such piece in a
 * process, made before its connections and there until it ends, so that an address in it means the
 * same to its peers all the time. What is read there is the sender's still and may change under the
 * reader: copy first, then look.
 *
 * Peers take the descriptor by pidfd_getfd(2), for which the kernel asks the same as for reading
 * the memory; nothing is told to anybody else. Any thread.
 */
#ifndef AIFS_COMMON_NET_SHARE_H
#define AIFS_COMMON_NET_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "common/base/compiler.h"

struct share { /* as its owner tells it */
    uint64_t base;
    uint64_t bytes; /* 0: there is none */
    uint64_t ino;   /* of what fd is: another may have got its number */
    int32_t fd;
};

struct share_view { /* of a peer's; all zero: none */
    const uint8_t *at;
    uint64_t base, bytes;
};

#define SHARE_STEP_BYTES (2u * MIB)

/* Memory of a multiple of 2 MiB, touched, in huge pages. NULL: there is one already, or the kernel
 * cannot. */
uint8_t *share_create(size_t bytes) MUST_USE;
struct share share_mine(void);

/* A process, so that what is asked of it by its pid and what is mapped is the same; -errno. */
int share_open_process(pid_t pid) MUST_USE;
/* -AIFS_EPROTO: it is nothing that can be read without danger; else -errno. */
int share_map(int process, const struct share *s, struct share_view *ret_view) MUST_USE;
void share_unmap(struct share_view *v);

/* Is all of the peer's remote iov in the view? */
bool share_holds(const struct share_view *v, const struct iovec *remote, unsigned n_remote);
/* Copies len bytes, from the given one on, of the peer's remote iov to the beginning of the local
 * one, which has room for them. False: not all of it is in the view. */
bool share_read(const struct share_view *v, const struct iovec *local, const struct iovec *remote,
                unsigned n_remote, uint64_t from, uint64_t len) MUST_USE;

#endif
