/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inodes in one hash map by number, names in another by (parent, name) and on a list of their
 * directory in order of creation, each with a serial number that is its readdir cookie. Fails: out
 * of memory.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "client/fuse/null_int.h"
#include "common/base/mem.h"
#include "common/net/buf.h"

#define BIG_FILES 64u
#define BIG_BYTES (64ull * GIB)

/* ---- inodes and names ---- */

struct msg_time null_time_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (struct msg_time){t.tv_sec, (uint32_t)t.tv_nsec};
}

struct null_inode *null_inode_find(const struct null_fs *fs, uint64_t ino)
{
    struct hmap_node *n;

    for (n = hmap_first(&fs->inodes, hash_u64(ino)); n; n = hmap_next(n)) {
        struct null_inode *i = container_of(n, struct null_inode, node);

        if (i->attr.ino == ino)
            return i;
    }
    return NULL;
}

struct null_inode *null_inode_create(struct null_fs *fs, uint32_t mode, uint32_t uid, uint32_t gid)
{
    struct null_inode *i = mem_zalloc(sizeof(*i));

    if (!i)
        return NULL;
    i->attr.ino = fs->next_ino++;
    i->attr.mode = mode;
    i->attr.nlink = S_ISDIR(mode) ? 2 : 1;
    i->attr.uid = uid;
    i->attr.gid = gid;
    i->attr.atime = i->attr.mtime = i->attr.ctime = i->attr.btime = null_time_now();
    i->kept = true;
    list_init(&i->entries);
    hmap_insert(&fs->inodes, &i->node, hash_u64(i->attr.ino));
    return i;
}

void null_inode_free(struct null_fs *fs, struct null_inode *i)
{
    hmap_remove(&fs->inodes, &i->node);
    mem_free(i->data);
    mem_free(i);
}

static uint64_t name_hash(uint64_t parent, const char *name)
{
    return hash_bytes(name, strlen(name), parent);
}

struct null_dirent *null_name_find(const struct null_fs *fs, uint64_t parent, const char *name)
{
    struct hmap_node *n;

    for (n = hmap_first(&fs->names, name_hash(parent, name)); n; n = hmap_next(n)) {
        struct null_dirent *d = container_of(n, struct null_dirent, node);

        if (d->parent == parent && strcmp(d->name, name) == 0)
            return d;
    }
    return NULL;
}

int null_name_add(struct null_fs *fs, uint64_t parent, const char *name, struct null_inode *i)
{
    struct null_inode *dir = null_inode_find(fs, parent);
    struct null_dirent *d;

    if (!dir || !S_ISDIR(dir->attr.mode))
        return -ENOTDIR;
    d = mem_alloc(sizeof(*d) + strlen(name) + 1);
    if (!d)
        return -ENOMEM;
    d->inode = i;
    d->parent = parent;
    d->serial = fs->next_serial++;
    strcpy(d->name, name);
    hmap_insert(&fs->names, &d->node, name_hash(parent, name));
    list_push_back(&dir->entries, &d->link);
    dir->attr.mtime = dir->attr.ctime = null_time_now();
    return 0;
}

void null_name_drop(struct null_fs *fs, struct null_dirent *d)
{
    struct null_inode *dir = null_inode_find(fs, d->parent);

    if (dir)
        dir->attr.mtime = dir->attr.ctime = null_time_now();
    hmap_remove(&fs->names, &d->node);
    list_remove(&d->link);
    mem_free(d);
}

/* ---- life ---- */

static int add_big_files(struct null_fs *fs)
{
    for (unsigned n = 0; n < BIG_FILES; n++) {
        struct null_inode *i = null_inode_create(fs, S_IFREG | 0666, 0, 0);
        char name[16];
        int rc;

        if (!i)
            return -ENOMEM;
        i->attr.size = BIG_BYTES;
        i->kept = false;
        snprintf(name, sizeof(name), "big%u", n);
        rc = null_name_add(fs, NULL_ROOT, name, i);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int fill(struct null_fs *fs)
{
    size_t bytes = NULL_PATTERN_BYTES + CHANNEL_IO_MAX;
    int rc = hmap_init(&fs->inodes, 1024);

    if (rc == 0)
        rc = hmap_init(&fs->names, 1024);
    if (rc != 0)
        return rc;
    fs->pattern = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fs->pattern == MAP_FAILED) {
        fs->pattern = NULL;
        return -errno;
    }
    for (size_t i = 0; i < bytes; i++)
        fs->pattern[i] = (uint8_t)(i % 251);
    fs->next_ino = NULL_ROOT;
    fs->next_serial = 3;
    return null_inode_create(fs, S_IFDIR | 0777, 0, 0) ? add_big_files(fs) : -ENOMEM;
}

int null_fs_create(const struct null_fs_options *options, struct null_fs **ret_fs)
{
    struct null_fs *fs = mem_zalloc(sizeof(*fs));
    int rc;

    if (!fs)
        return -ENOMEM;
    fs->o = *options;
    rc = fill(fs);
    if (rc == 0 && fs->o.rooms > 0)
        rc = buf_pool_create("null-fs", CHANNEL_IO_MAX, fs->o.rooms, &fs->rooms);
    if (rc != 0) {
        null_fs_destroy(fs);
        return rc;
    }
    *ret_fs = fs;
    return 0;
}

void null_fs_destroy(struct null_fs *fs)
{
    struct hmap_node *n, *next;
    size_t pos;

    if (!fs)
        return;
    if (fs->names.buckets) {
        hmap_for_each (n, next, pos, &fs->names)
            mem_free(container_of(n, struct null_dirent, node));
        hmap_fini(&fs->names);
    }
    if (fs->inodes.buckets) {
        hmap_for_each (n, next, pos, &fs->inodes) {
            mem_free(container_of(n, struct null_inode, node)->data);
            mem_free(container_of(n, struct null_inode, node));
        }
        hmap_fini(&fs->inodes);
    }
    if (fs->rooms)
        buf_pool_destroy(fs->rooms);
    if (fs->pattern)
        munmap(fs->pattern, NULL_PATTERN_BYTES + CHANNEL_IO_MAX);
    mem_free(fs);
}

/* Until it is unmounted. */
static int serve(struct null_fs *fs, struct channel_options *co, char *err, size_t err_len)
{
    const struct null_fs_remote *remote = fs->o.remote;
    struct channel *channel;
    int rc = remote ? remote->start(fs->reactor, remote->arg) : 0;

    if (rc != 0)
        return rc;
    rc = channel_open(co, &channel, err, err_len);
    if (rc == 0) {
        reactor_run(fs->reactor);
        channel_close(channel);
    }
    if (remote)
        remote->stop(remote->arg);
    return rc;
}

int null_fs_serve(const char *mountpoint, const struct null_fs_options *options,
                  void (*ready)(void *arg), void *arg, char *err, size_t err_len)
{
    struct reactor_options ro = {.name = "null-fs"};
    struct channel_options co = {.kind = options->channel,
                                 .ops = &null_fs_ops,
                                 .source = "null",
                                 .mountpoint = mountpoint,
                                 .read_ahead_bytes = CHANNEL_IO_MAX};
    struct null_fs *fs;
    int rc = null_fs_create(options, &fs);

    snprintf(err, err_len, "out of memory");
    if (rc != 0)
        return rc;
    fs->ready = ready;
    fs->ready_arg = arg;
    rc = reactor_create(&ro, &fs->reactor);
    if (rc == 0) {
        co.reactor = fs->reactor;
        co.user = fs;
        rc = serve(fs, &co, err, err_len);
        reactor_destroy(fs->reactor);
    }
    null_fs_destroy(fs);
    return rc;
}
