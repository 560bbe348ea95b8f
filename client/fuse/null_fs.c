/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inodes in one hash map by number, names in another by (parent, name) and on a list of their
 * directory in order of creation, each with a serial number that is its readdir cookie. Every
 * operation answers at once. Fails: out of memory is ENOMEM to the caller.
 */
#include "client/fuse/null_fs.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "common/base/hmap.h"
#include "common/base/mem.h"
#include "common/base/text.h"

#define ROOT          1u
#define PATTERN_BYTES (64u * MIB)
#define BIG_FILES     64u
#define BIG_BYTES     (64ull * GIB)

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
    uint8_t *pattern; /* PATTERN_BYTES + CHANNEL_IO_MAX */
    struct reactor *reactor;
    void (*ready)(void *arg);
    void *ready_arg;
};

/* ---- inodes and names ---- */

static struct msg_time time_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (struct msg_time){t.tv_sec, (uint32_t)t.tv_nsec};
}

static struct null_inode *inode_find(const struct null_fs *fs, uint64_t ino)
{
    struct hmap_node *n;

    for (n = hmap_first(&fs->inodes, hash_u64(ino)); n; n = hmap_next(n)) {
        struct null_inode *i = container_of(n, struct null_inode, node);

        if (i->attr.ino == ino)
            return i;
    }
    return NULL;
}

static struct null_inode *inode_create(struct null_fs *fs, uint32_t mode, uint32_t uid,
                                       uint32_t gid)
{
    struct null_inode *i = mem_zalloc(sizeof(*i));

    if (!i)
        return NULL;
    i->attr.ino = fs->next_ino++;
    i->attr.mode = mode;
    i->attr.nlink = S_ISDIR(mode) ? 2 : 1;
    i->attr.uid = uid;
    i->attr.gid = gid;
    i->attr.atime = i->attr.mtime = i->attr.ctime = time_now();
    i->kept = true;
    list_init(&i->entries);
    hmap_insert(&fs->inodes, &i->node, hash_u64(i->attr.ino));
    return i;
}

static void inode_free(struct null_fs *fs, struct null_inode *i)
{
    hmap_remove(&fs->inodes, &i->node);
    mem_free(i->data);
    mem_free(i);
}

static uint64_t name_hash(uint64_t parent, const char *name)
{
    return hash_bytes(name, strlen(name), parent);
}

static struct null_dirent *name_find(const struct null_fs *fs, uint64_t parent, const char *name)
{
    struct hmap_node *n;

    for (n = hmap_first(&fs->names, name_hash(parent, name)); n; n = hmap_next(n)) {
        struct null_dirent *d = container_of(n, struct null_dirent, node);

        if (d->parent == parent && strcmp(d->name, name) == 0)
            return d;
    }
    return NULL;
}

static int name_add(struct null_fs *fs, uint64_t parent, const char *name, struct null_inode *i)
{
    struct null_inode *dir = inode_find(fs, parent);
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
    dir->attr.mtime = dir->attr.ctime = time_now();
    return 0;
}

static void name_drop(struct null_fs *fs, struct null_dirent *d)
{
    struct null_inode *dir = inode_find(fs, d->parent);

    if (dir)
        dir->attr.mtime = dir->attr.ctime = time_now();
    hmap_remove(&fs->names, &d->node);
    list_remove(&d->link);
    mem_free(d);
}

/* An open inode lives on as long as the kernel remembers it: it goes with FORGET. */
static void inode_unlink(struct null_inode *i)
{
    i->attr.nlink = S_ISDIR(i->attr.mode) ? 0 : i->attr.nlink - 1;
    i->attr.ctime = time_now();
}

static void null_forget(void *user, uint64_t node, uint64_t n UNUSED)
{
    struct null_fs *fs = user;
    struct null_inode *i = inode_find(fs, node);

    if (i && i->attr.nlink == 0)
        inode_free(fs, i);
}

/* ---- operations on names ---- */

static struct null_fs *fs_of(const struct channel_req *q)
{
    return q->user;
}

static void reply_inode(struct channel_req *q, const struct null_inode *i)
{
    uint64_t timeout_ns = fs_of(q)->o.timeout_ns;
    struct channel_entry e = {&i->attr, timeout_ns, timeout_ns};

    channel_reply_entry(q, &e);
}

static void null_lookup(struct channel_req *q)
{
    struct null_dirent *d = name_find(fs_of(q), q->node, q->name.name);

    if (d)
        reply_inode(q, d->inode);
    else
        channel_reply_no_entry(q, fs_of(q)->o.timeout_ns);
}

/* The new inode, or NULL when the request was answered with an error. */
static struct null_inode *make(struct channel_req *q)
{
    struct null_fs *fs = fs_of(q);
    struct null_inode *i;
    int rc;

    if (name_find(fs, q->node, q->make.name)) {
        channel_reply_err(q, -EEXIST);
        return NULL;
    }
    i = inode_create(fs, q->make.mode, q->uid, q->gid);
    rc = i ? name_add(fs, q->node, q->make.name, i) : -ENOMEM;
    if (rc == 0) {
        i->attr.rdev = q->make.rdev;
        return i;
    }
    if (i)
        inode_free(fs, i);
    channel_reply_err(q, rc);
    return NULL;
}

static void null_make(struct channel_req *q)
{
    struct null_inode *i = make(q);

    if (i)
        reply_inode(q, i);
}

static void null_symlink(struct channel_req *q)
{
    struct null_inode *i = make(q);

    if (!i)
        return;
    i->data_cap = i->attr.size = strlen(q->make.target);
    i->data = mem_dup(q->make.target, i->data_cap + 1);
    reply_inode(q, i);
}

static void null_readlink(struct channel_req *q)
{
    struct null_inode *i = inode_find(fs_of(q), q->node);

    if (i && i->data)
        channel_reply_readlink(q, i->data, (uint32_t)i->attr.size);
    else
        channel_reply_err(q, -EINVAL);
}

static uint32_t open_flags(const struct null_fs *fs)
{
    return (fs->o.direct ? CHANNEL_OPEN_DIRECT : CHANNEL_OPEN_KEEP_CACHE) | CHANNEL_OPEN_NOFLUSH;
}

static void null_create(struct channel_req *q)
{
    struct null_inode *i = make(q);
    struct channel_entry e;

    if (!i)
        return;
    e = (struct channel_entry){&i->attr, fs_of(q)->o.timeout_ns, fs_of(q)->o.timeout_ns};
    channel_reply_create(q, &e, 0, open_flags(fs_of(q)));
}

static void null_remove(struct channel_req *q)
{
    struct null_fs *fs = fs_of(q);
    struct null_dirent *d = name_find(fs, q->node, q->name.name);

    if (!d) {
        channel_reply_err(q, -ENOENT);
    } else if (q->op == CHANNEL_RMDIR && !list_empty(&d->inode->entries)) {
        channel_reply_err(q, -ENOTEMPTY);
    } else {
        inode_unlink(d->inode);
        name_drop(fs, d);
        channel_reply_err(q, 0);
    }
}

static void null_rename(struct channel_req *q)
{
    struct null_fs *fs = fs_of(q);
    struct null_dirent *from = name_find(fs, q->node, q->rename.name);
    struct null_dirent *to = name_find(fs, q->rename.new_parent, q->rename.new_name);
    int rc = -ENOENT;

    if (q->rename.flags) {
        rc = -EINVAL;
    } else if (from && to && !list_empty(&to->inode->entries)) {
        rc = -ENOTEMPTY;
    } else if (from) {
        if (to) {
            inode_unlink(to->inode);
            name_drop(fs, to);
        }
        rc = name_add(fs, q->rename.new_parent, q->rename.new_name, from->inode);
        if (rc == 0)
            name_drop(fs, from);
    }
    channel_reply_err(q, rc);
}

static void null_link(struct channel_req *q)
{
    struct null_fs *fs = fs_of(q);
    struct null_inode *i = inode_find(fs, q->node);
    int rc = i ? 0 : -ENOENT;

    if (rc == 0 && name_find(fs, q->link_to.new_parent, q->link_to.new_name))
        rc = -EEXIST;
    if (rc == 0)
        rc = name_add(fs, q->link_to.new_parent, q->link_to.new_name, i);
    if (rc != 0) {
        channel_reply_err(q, rc);
        return;
    }
    i->attr.nlink++;
    reply_inode(q, i);
}

/* ---- attributes ---- */

static void null_getattr(struct channel_req *q)
{
    struct null_inode *i = inode_find(fs_of(q), q->node);

    if (i)
        channel_reply_attr(q, &i->attr, fs_of(q)->o.timeout_ns);
    else
        channel_reply_err(q, -ENOENT);
}

static void resize(struct null_inode *i, uint64_t size)
{
    if (i->data && size < i->data_cap)
        memset(i->data + size, 0, i->data_cap - size);
    i->attr.size = size;
}

static void null_setattr(struct channel_req *q)
{
    struct null_inode *i = inode_find(fs_of(q), q->node);
    uint32_t set = q->attr.set;

    if (!i) {
        channel_reply_err(q, -ENOENT);
        return;
    }
    i->attr.ctime = time_now();
    if (set & MSG_SET_MODE)
        i->attr.mode = (i->attr.mode & S_IFMT) | q->attr.mode;
    if (set & MSG_SET_KILL_PRIV)
        i->attr.mode &= ~(uint32_t)(S_ISUID | S_ISGID);
    if (set & MSG_SET_UID)
        i->attr.uid = q->attr.uid;
    if (set & MSG_SET_GID)
        i->attr.gid = q->attr.gid;
    if (set & MSG_SET_SIZE)
        resize(i, q->attr.size);
    if (set & (MSG_SET_ATIME | MSG_SET_ATIME_NOW))
        i->attr.atime = set & MSG_SET_ATIME ? q->attr.atime : i->attr.ctime;
    if (set & (MSG_SET_MTIME | MSG_SET_MTIME_NOW))
        i->attr.mtime = set & MSG_SET_MTIME ? q->attr.mtime : i->attr.ctime;
    channel_reply_attr(q, &i->attr, fs_of(q)->o.timeout_ns);
}

static void null_statfs(struct channel_req *q)
{
    struct msg_statfs_rep s = {.total_bytes = 1ull << 50,
                               .free_bytes = 1ull << 49,
                               .avail_bytes = 1ull << 49,
                               .files = 1u << 30,
                               .files_free = 1u << 29};

    channel_reply_statfs(q, &s);
}

/* ---- data ---- */

static void null_open(struct channel_req *q)
{
    channel_reply_open(q, 0, open_flags(fs_of(q)));
}

static void null_opendir(struct channel_req *q)
{
    channel_reply_open(q, 0, 0);
}

static void null_ok(struct channel_req *q)
{
    channel_reply_err(q, 0);
}

static void read_interrupted(struct channel_req *q)
{
    channel_reply_err(q, -EINTR);
}

static void null_read(struct channel_req *q)
{
    struct null_fs *fs = fs_of(q);
    struct null_inode *i = inode_find(fs, q->node);
    uint64_t size = i ? i->attr.size : 0;
    uint64_t len = q->io.offset < size ? MIN(q->io.len, size - q->io.offset) : 0;
    struct iovec iov = {fs->pattern + q->io.offset % PATTERN_BYTES, len};

    if (fs->o.hold_reads) {
        channel_on_interrupt(q, read_interrupted);
        return;
    }
    if (i && i->data && i->kept && q->io.offset + len <= i->data_cap)
        iov.iov_base = i->data + q->io.offset;
    channel_reply_data(q, &iov, 1, NULL);
}

/* Room for size bytes of data; without it the data is forgotten. */
static bool keep(const struct null_fs *fs, struct null_inode *i, uint64_t size)
{
    uint64_t cap = MAX(i->data_cap, 4096u);
    uint8_t *data;

    if (size > fs->o.keep_bytes || !i->kept) {
        i->kept = false;
        return false;
    }
    while (cap < size)
        cap *= 2;
    if (cap <= i->data_cap)
        return true;
    data = mem_realloc(i->data, cap);
    i->kept = data != NULL;
    if (!data)
        return false;
    memset(data + i->data_cap, 0, cap - i->data_cap);
    i->data = data;
    i->data_cap = cap;
    return true;
}

static void null_write(struct channel_req *q)
{
    struct null_fs *fs = fs_of(q);
    struct null_inode *i = inode_find(fs, q->node);
    uint64_t end = q->io.offset + q->io.len;

    if (!i) {
        channel_reply_err(q, -EBADF);
        return;
    }
    if (q->io.kill_priv)
        i->attr.mode &= ~(uint32_t)(S_ISUID | S_ISGID);
    if (keep(fs, i, MAX(end, i->attr.size)))
        memcpy(i->data + q->io.offset, q->io.data, q->io.len);
    if (end > i->attr.size)
        i->attr.size = end;
    i->attr.mtime = i->attr.ctime = time_now();
    channel_reply_write(q, q->io.len);
}

static struct list *dir_position(const struct channel_req *q, struct null_inode *i)
{
    struct list *l = i->entries.next;

    /* Serial numbers grow along the list; reading goes on where it was, most often at the end. */
    if (q->io.offset == 0)
        return l;
    for (l = i->entries.prev; l != &i->entries; l = l->prev) {
        if (list_entry(l, struct null_dirent, link)->serial <= q->io.offset)
            return l->next;
    }
    return i->entries.next;
}

static void null_readdir(struct channel_req *q)
{
    struct null_inode *i = inode_find(fs_of(q), q->node);
    uint64_t timeout_ns = fs_of(q)->o.timeout_ns;
    struct list *l;

    if (!i) {
        channel_reply_err(q, -ENOENT);
        return;
    }
    channel_dir_begin(q);
    if (q->io.offset < 1)
        channel_dir_add(q, ".", q->node, DT_DIR, 1, NULL);
    if (q->io.offset < 2)
        channel_dir_add(q, "..", ROOT, DT_DIR, 2, NULL);
    for (l = dir_position(q, i); l != &i->entries; l = l->next) {
        struct null_dirent *d = list_entry(l, struct null_dirent, link);
        struct channel_entry e = {&d->inode->attr, timeout_ns, timeout_ns};

        if (!channel_dir_add(q, d->name, d->inode->attr.ino, IFTODT(d->inode->attr.mode), d->serial,
                             q->io.plus ? &e : NULL))
            break;
    }
    channel_reply_dir(q);
}

/* ---- life ---- */

static void null_ready(void *user)
{
    struct null_fs *fs = user;

    if (fs->ready)
        fs->ready(fs->ready_arg);
}

static void null_gone(void *user)
{
    struct null_fs *fs = user;

    if (fs->reactor)
        reactor_stop(fs->reactor);
}

const struct channel_ops null_fs_ops = {
    .op = {[CHANNEL_LOOKUP] = null_lookup,   [CHANNEL_GETATTR] = null_getattr,
           [CHANNEL_SETATTR] = null_setattr, [CHANNEL_READLINK] = null_readlink,
           [CHANNEL_MKNOD] = null_make,      [CHANNEL_MKDIR] = null_make,
           [CHANNEL_UNLINK] = null_remove,   [CHANNEL_RMDIR] = null_remove,
           [CHANNEL_SYMLINK] = null_symlink, [CHANNEL_RENAME] = null_rename,
           [CHANNEL_LINK] = null_link,       [CHANNEL_OPEN] = null_open,
           [CHANNEL_CREATE] = null_create,   [CHANNEL_READ] = null_read,
           [CHANNEL_WRITE] = null_write,     [CHANNEL_FLUSH] = null_ok,
           [CHANNEL_RELEASE] = null_ok,      [CHANNEL_FSYNC] = null_ok,
           [CHANNEL_OPENDIR] = null_opendir, [CHANNEL_READDIR] = null_readdir,
           [CHANNEL_RELEASEDIR] = null_ok,   [CHANNEL_FSYNCDIR] = null_ok,
           [CHANNEL_STATFS] = null_statfs},
    .forget = null_forget,
    .ready = null_ready,
    .gone = null_gone};

static int add_big_files(struct null_fs *fs)
{
    for (unsigned n = 0; n < BIG_FILES; n++) {
        struct null_inode *i = inode_create(fs, S_IFREG | 0666, 0, 0);
        char name[16];
        int rc;

        if (!i)
            return -ENOMEM;
        i->attr.size = BIG_BYTES;
        i->kept = false;
        snprintf(name, sizeof(name), "big%u", n);
        rc = name_add(fs, ROOT, name, i);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int fill(struct null_fs *fs)
{
    size_t bytes = PATTERN_BYTES + CHANNEL_IO_MAX;
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
    fs->next_ino = ROOT;
    fs->next_serial = 3;
    return inode_create(fs, S_IFDIR | 0777, 0, 0) ? add_big_files(fs) : -ENOMEM;
}

int null_fs_create(const struct null_fs_options *options, struct null_fs **ret_fs)
{
    struct null_fs *fs = mem_zalloc(sizeof(*fs));
    int rc;

    if (!fs)
        return -ENOMEM;
    fs->o = *options;
    rc = fill(fs);
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
    if (fs->pattern)
        munmap(fs->pattern, PATTERN_BYTES + CHANNEL_IO_MAX);
    mem_free(fs);
}

int null_fs_serve(const char *mountpoint, const struct null_fs_options *options,
                  void (*ready)(void *arg), void *arg, char *err, size_t err_len)
{
    struct reactor_options ro = {.name = "null-fs"};
    struct channel_options co = {.ops = &null_fs_ops,
                                 .source = "null",
                                 .mountpoint = mountpoint,
                                 .read_ahead_bytes = CHANNEL_IO_MAX};
    struct channel *channel;
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
        rc = channel_open(&co, &channel, err, err_len);
        if (rc == 0) {
            reactor_run(fs->reactor);
            channel_close(channel);
        }
        reactor_destroy(fs->reactor);
    }
    null_fs_destroy(fs);
    return rc;
}
