/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which descriptors an epoll descriptor watches, and those of its kind among them (UCX workers), as
 * the kernel tells it. For a fork(): what a reactor has open is listed before it, while the reactor
 * rests, and closed in the child. They are not the child's, and a connection that a child keeps
 * open would hide the parent's death. Asked in the child, the kernel would tell what the parent's
 * reactor has done since: the two share it.
 */
#ifndef AIFS_COMMON_RT_WATCHED_H
#define AIFS_COMMON_RT_WATCHED_H

#include "common/base/compiler.h"

struct watched { /* zeroed at first, owned by the caller; n = 0 begins anew */
    int *fds;    /* to be freed with mem_free() */
    unsigned n, room;
};

/* Adds epoll_fd and all that it watches. -ENOMEM, or the errno of reading /proc: some are missing.
 */
int watched_add(struct watched *w, int epoll_fd) MUST_USE;
void watched_close(const struct watched *w); /* async-signal-safe */

#endif
