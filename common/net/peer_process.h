/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which process is at the other end of a TCP connection within this machine. What a peer says of
 * itself is no proof: with another's process id it would have us read that process's memory. The
 * kernel is asked instead: the process has under the descriptor it names the very socket whose
 * other end is ours, and that socket belongs to the user it names (pidfd_getfd(2), Linux 5.6).
 */
#ifndef AIFS_COMMON_NET_PEER_PROCESS_H
#define AIFS_COMMON_NET_PEER_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/base/compiler.h"

/*
 * A descriptor of the process (pidfd_open(2)), closed by the caller. fd: our end. -EPERM: it is not
 * at the other end, or is not that user's; else the kernel's -errno, also -EPERM and -ENOSYS where
 * it does not let us ask.
 */
int peer_process_open(int fd, pid_t pid, int their_fd, uid_t uid) MUST_USE;
/* Until it has ended its process id is nobody else's. */
bool peer_process_lives(int process);

#endif
