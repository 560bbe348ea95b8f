/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of the file system in memory. Every one answers at once; running out of memory is
 * ENOMEM to the caller. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "client/fuse/null_int.h"
#include "common/base/mem.h"
#include "common/net/buf.h"

/* An open inode lives on as long as the kernel remembers it: it goes with FORGET. */
static void inode_unlink(struct null_inode *i)
{
    i->attr.nlink = S_ISDIR(i->attr.mode) ? 0 : i->attr.nlink - 1;
    i->attr.ctime = null_time_now();
}

static void null_forget(void *user, uint64_t node, uint64_t n UNUSED)
{
    struct null_fs *fs = user;
    struct null_inode *i = null_inode_find(fs, node);

    if (i && i->attr.nlink == 0)
        null_inode_free(fs, i);
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
    struct null_dirent *d = null_name_find(fs_of(q), q->node, q->name.name);

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

    if (null_name_find(fs, q->node, q->make.name)) {
        channel_reply_err(q, -EEXIST);
        return NULL;
    }
    i = null_inode_create(fs, q->make.mode, q->uid, q->gid);
    rc = i ? null_name_add(fs, q->node, q->make.name, i) : -ENOMEM;
    if (rc == 0) {
        i->attr.rdev = q->make.rdev;
        return i;
    }
    if (i)
        null_inode_free(fs, i);
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
    struct null_inode *i = null_inode_find(fs_of(q), q->node);

    if (i && i->data)
        channel_reply_readlink(q, i->data, (uint32_t)i->attr.size);
    else
        channel_reply_err(q, -EINVAL);
}

static uint32_t open_flags(const struct null_fs *fs, uint32_t flags)
{
    bool past = (flags & O_DIRECT) || (flags & O_ACCMODE) == O_WRONLY;

    past = fs->o.direct || (fs->o.writers_direct && past);
    return (past ? CHANNEL_OPEN_DIRECT : CHANNEL_OPEN_KEEP_CACHE) | CHANNEL_OPEN_NOFLUSH;
}

static void null_create(struct channel_req *q)
{
    struct null_inode *i = make(q);
    struct channel_entry e;

    if (!i)
        return;
    e = (struct channel_entry){&i->attr, fs_of(q)->o.timeout_ns, fs_of(q)->o.timeout_ns};
    channel_reply_create(q, &e, 0, open_flags(fs_of(q), q->make.flags));
}

static void null_remove(struct channel_req *q)
{
    struct null_fs *fs = fs_of(q);
    struct null_dirent *d = null_name_find(fs, q->node, q->name.name);

    if (!d) {
        channel_reply_err(q, -ENOENT);
    } else if (q->op == CHANNEL_RMDIR && !list_empty(&d->inode->entries)) {
        channel_reply_err(q, -ENOTEMPTY);
    } else {
        inode_unlink(d->inode);
        null_name_drop(fs, d);
        channel_reply_err(q, 0);
    }
}

static void null_rename(struct channel_req *q)
{
    struct null_fs *fs = fs_of(q);
    struct null_dirent *from = null_name_find(fs, q->node, q->rename.name);
    struct null_dirent *to = null_name_find(fs, q->rename.new_parent, q->rename.new_name);
    int rc = -ENOENT;

    if (q->rename.flags) {
        rc = -EINVAL;
    } else if (from && to && !list_empty(&to->inode->entries)) {
        rc = -ENOTEMPTY;
    } else if (from) {
        if (to) {
            inode_unlink(to->inode);
            null_name_drop(fs, to);
        }
        rc = null_name_add(fs, q->rename.new_parent, q->rename.new_name, from->inode);
        if (rc == 0)
            null_name_drop(fs, from);
    }
    channel_reply_err(q, rc);
}

static void null_link(struct channel_req *q)
{
    struct null_fs *fs = fs_of(q);
    struct null_inode *i = null_inode_find(fs, q->node);
    int rc = i ? 0 : -ENOENT;

    if (rc == 0 && null_name_find(fs, q->link_to.new_parent, q->link_to.new_name))
        rc = -EEXIST;
    if (rc == 0)
        rc = null_name_add(fs, q->link_to.new_parent, q->link_to.new_name, i);
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
    struct null_inode *i = null_inode_find(fs_of(q), q->node);

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
    struct null_inode *i = null_inode_find(fs_of(q), q->node);
    uint32_t set = q->attr.set;

    if (!i) {
        channel_reply_err(q, -ENOENT);
        return;
    }
    i->attr.ctime = null_time_now();
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

/* A file system that has no extended attributes at all would not be asked: one that has is, for
 * access lists, and says so little of labels as a mount of aifs does (ops/getxattr.c). */
static void null_getxattr(struct channel_req *q)
{
    bool label = strcmp(q->xattr.name, "security.selinux") == 0;

    channel_reply_err(q, label ? -EOPNOTSUPP : -ENODATA);
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
    channel_reply_open(q, 0, open_flags(fs_of(q), q->open.flags));
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
    struct null_inode *i = null_inode_find(fs, q->node);
    uint64_t size = i ? i->attr.size : 0;
    uint64_t len = q->io.offset < size ? MIN(q->io.len, size - q->io.offset) : 0;
    struct iovec iov = {fs->pattern + q->io.offset % NULL_PATTERN_BYTES, len};

    if (fs->o.hold_reads) {
        channel_on_interrupt(q, read_interrupted);
        return;
    }
    if (fs->o.remote && len > 0) {
        fs->o.remote->read(q, (uint32_t)len, fs->o.remote->arg);
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
    struct null_inode *i = null_inode_find(fs, q->node);
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
    i->attr.mtime = i->attr.ctime = null_time_now();
    if (fs->o.remote)
        fs->o.remote->write(q, fs->o.remote->arg);
    else
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
    struct null_inode *i = null_inode_find(fs_of(q), q->node);
    uint64_t timeout_ns = fs_of(q)->o.timeout_ns;
    struct list *l;
    int rc = i ? channel_dir_begin(q) : -ENOENT;

    if (rc != 0) {
        channel_reply_err(q, rc);
        return;
    }
    if (q->io.offset < 1)
        channel_dir_add(q, ".", q->node, DT_DIR, 1, NULL);
    if (q->io.offset < 2)
        channel_dir_add(q, "..", NULL_ROOT, DT_DIR, 2, NULL);
    for (l = dir_position(q, i); l != &i->entries; l = l->next) {
        struct null_dirent *d = list_entry(l, struct null_dirent, link);
        struct channel_entry e = {&d->inode->attr, timeout_ns, timeout_ns};

        if (!channel_dir_add(q, d->name, d->inode->attr.ino, IFTODT(d->inode->attr.mode), d->serial,
                             q->io.plus ? &e : NULL))
            break;
    }
    channel_reply_dir(q);
}

/* ---- the table ---- */

static struct buf *null_room(void *user)
{
    struct null_fs *fs = user;

    return fs->rooms ? buf_get(fs->rooms) : NULL;
}

static void null_room_back(void *user UNUSED, struct buf *room)
{
    buf_put(room);
}

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
           [CHANNEL_STATFS] = null_statfs,   [CHANNEL_GETXATTR] = null_getxattr},
    .forget = null_forget,
    .room = null_room,
    .room_back = null_room_back,
    .ready = null_ready,
    .gone = null_gone};
