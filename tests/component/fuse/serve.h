/* SPDX-License-Identifier: Apache-2.0 */
/* The file system in memory, mounted, in a process of its own: one that waits for itself would
 * hang. What cannot be fails the test. */
#ifndef AIFS_TESTS_COMPONENT_FUSE_SERVE_H
#define AIFS_TESTS_COMPONENT_FUSE_SERVE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/fuse/null_fs.h"
#include "tests/support/tmp.h"

extern struct tmp served; /* where it is mounted */
extern pid_t server;

void serve(enum channel_kind kind, const struct null_fs_options *options);
void unserve(void);         /* unmounts it; the server must end well */
uint8_t *noise(size_t len); /* of the heap */
int open_at(const char *name, int flags);
bool ring_is_offered(void); /* by the kernel; says why where it is not */

#endif
