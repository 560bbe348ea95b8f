/* SPDX-License-Identifier: Apache-2.0 */
/* What is mounted where, from /proc/self/mountinfo (proc(5)): asks no file system, so it cannot
 * hang on a dead one. Any thread. */
#ifndef AIFS_CLIENT_FUSE_MOUNTINFO_H
#define AIFS_CLIENT_FUSE_MOUNTINFO_H

#include "common/base/compiler.h"

struct mountinfo {
    unsigned major, minor;
    char type[64];
    char source[256]; /* cut if longer */
};

/* The topmost mount at exactly path (absolute, without symbolic links): 1, or 0 when nothing is
 * mounted there, or -errno. */
int mountinfo_find(const char *path, struct mountinfo *ret_info) MUST_USE;

/* Is the file system with this device number mounted anywhere, as a whole or in part (a bind
 * mount)? In this mount name space. 1, 0 or -errno. */
int mountinfo_has_device(unsigned major, unsigned minor) MUST_USE;

#endif
