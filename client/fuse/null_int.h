/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the file system in memory: inodes and names (null_fs.c), operations (null_ops.c). */
#ifndef AIFS_CLIENT_FUSE_NULL_INT_H
#define AIFS_CLIENT_FUSE_NULL_INT_H

#include "client/fuse/null_fs.h"
#include "common/base/hmap.h"
#include "common/base/list.h"

#define NULL_ROOT          1u
#define NULL_PATTERN_BYTES (64u * MIB)

struct null_inode {
    struct hmap_node node;
    struct msg_attr attr;
    struct list entries; /* of a directory */
    uint8_t *data;       /* of a file: the first data_cap bytes; of a link: the target */
    uint64_t data_cap;
    bool kept; /* has all its data */
};

struct null_dirent {
    struct hmap_node node;
    struct list link;
    struct null_inode *inode;
    uint64_t parent, serial;
    char name[];
};

struct null_fs {
    struct null_fs_options o;
    struct hmap inodes, names;
    uint64_t next_ino, next_serial;
    uint8_t *pattern;       /* NULL_PATTERN_BYTES + CHANNEL_IO_MAX */
    struct buf_pool *rooms; /* NULL: none */
    struct reactor *reactor;
    void (*ready)(void *arg);
    void *ready_arg;
};

struct msg_time null_time_now(void);
struct null_inode *null_inode_find(const struct null_fs *fs, uint64_t ino);
struct null_inode *null_inode_create(struct null_fs *fs, uint32_t mode, uint32_t uid, uint32_t gid);
void null_inode_free(struct null_fs *fs, struct null_inode *i);
struct null_dirent *null_name_find(const struct null_fs *fs, uint64_t parent, const char *name);
int null_name_add(struct null_fs *fs, uint64_t parent, const char *name,
                  struct null_inode *i) MUST_USE;
void null_name_drop(struct null_fs *fs, struct null_dirent *d);

#endif
