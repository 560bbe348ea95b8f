/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands to a driver, through an io_uring of a reactor (IORING_OP_URING_CMD): each is given to
 * the kernel with the descriptor of the device, stays there as long as the driver likes, and comes
 * back with a result.
 *
 * A command is caller-owned; done() runs exactly once for each submission, on the reactor, never
 * before cmd_ring_submit() has returned, and may submit again. At most depth are submitted and not
 * done. They go to the kernel together with cmd_ring_flush(), at the latest before the reactor
 * sleeps. Own thread for everything.
 */
#ifndef AIFS_COMMON_URING_CMD_RING_H
#define AIFS_COMMON_URING_CMD_RING_H

#include <stddef.h>
#include <stdint.h>

#include "common/rt/reactor.h"

#define CMD_BYTES_MAX 80u /* of what the driver defines */

struct iovec;
struct cmd_ring;

struct cmd {
    void (*done)(struct cmd *c, int result); /* the driver's, or -errno */
};

/* fd: of the device, borrowed, open until the ring is destroyed. -ENOMEM; -ENOSYS, -EPERM...: no
 * io_uring with large entries is to be had. */
int cmd_ring_create(struct reactor *r, int fd, unsigned depth, struct cmd_ring **ret_ring) MUST_USE;
/* Commands in the kernel are cancelled, and their done() does not run. The kernel may let go of the
 * device a moment later. Not from within a done(). NULL is a no-op. */
void cmd_ring_destroy(struct cmd_ring *cr);
/* op, bytes: as the driver defines them; iov (n_iov of them, or NULL) is borrowed until done(). */
void cmd_ring_submit(struct cmd_ring *cr, struct cmd *c, uint32_t op, const struct iovec *iov,
                     unsigned n_iov, const void *bytes, size_t len);
/* Hands what was submitted to the kernel. */
void cmd_ring_flush(struct cmd_ring *cr);
/* Runs done() of what has come back; how many. */
int cmd_ring_digest(struct cmd_ring *cr);

#endif
