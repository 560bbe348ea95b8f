/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small files that are there whole or not at all: written beside their name, synced, renamed, and
 * the directory synced, so that neither a crash nor a full disk leaves half of one. Any thread;
 * every call waits for the disk. Nothing is logged: the caller knows what the file is for.
 */
#ifndef AIFS_COMMON_BASE_FILE_H
#define AIFS_COMMON_BASE_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "common/base/compiler.h"

/* All of it, or -errno: of a full disk -ENOSPC, whatever part of it was written. */
int file_write_all(int fd, const void *data, size_t len) MUST_USE;

/* PATH.new is what it is written to; one that an interrupted attempt left is removed, ours is
 * removed when it fails. mode: less the umask. On failure the old contents are there, except that
 * the directory's sync comes last: when only that fails, the new ones are, until a power cut. */
int file_replace(const char *path, const void *data, size_t len, mode_t mode) MUST_USE;
/* The same for a name in an open directory, which is synced. */
int file_replace_at(int dir, const char *name, const void *data, size_t len, mode_t mode) MUST_USE;

/* Names in it that came, changed or went last. Where the file system has no sync of directories
 * (EINVAL) there is nothing to do, here as above. */
int file_sync_dir(const char *dir) MUST_USE;
int file_sync_parent(const char *path) MUST_USE;

/* 1: there is something in the directory, but what belongs to a file system's own root
 * (lost+found); 0: nothing; or -errno. */
int file_dir_in_use(const char *dir) MUST_USE;

#endif
