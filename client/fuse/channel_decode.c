/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From libfuse's callbacks to struct channel_req: each callback fills in what its operation needs
 * and calls the handler. Names are copied into the request (libfuse's pointers end with the
 * message); the data of a WRITE is not: the request takes the whole receive buffer when its handler
 * has not answered at once.
 *
 * A few flags that libfuse 3.14 drops are read from the message itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "client/fuse/libfuse_int.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"

/* ---- begin and run ---- */

struct channel_req *libfuse_req_begin(fuse_req_t raw, enum channel_op op, fuse_ino_t node)
{
    const struct fuse_ctx *ctx = fuse_req_ctx(raw);
    struct channel_req *q =
        channel_req_begin(fuse_req_userdata(raw), op, node, ctx->uid, ctx->gid, (uint32_t)ctx->pid);

    if (!q)
        fuse_reply_err(raw, ENOMEM);
    else
        q->raw = raw;
    return q;
}

/* Names live in q->text: the first at its start, a second behind MSG_NAME_MAX. False: answered. */
static bool take_name(struct channel_req *q, unsigned index, const char *name,
                      const char **ret_name)
{
    size_t len = strlen(name);
    char *to = q->text + index * (MSG_NAME_MAX + 1);

    if (len > MSG_NAME_MAX) {
        channel_reply_err(q, -ENAMETOOLONG);
        return false;
    }
    memcpy(to, name, len + 1);
    *ret_name = to;
    return true;
}

static bool take_copy(struct channel_req *q, const void *data, size_t len)
{
    q->copy = mem_dup(data, len);
    if (!q->copy)
        channel_reply_err(q, -ENOMEM);
    return q->copy != NULL;
}

/* What follows the header in the message being decoded. */
static const void *message_body(const struct channel *c)
{
    return c->message + 1;
}

static void on_raw_interrupt(fuse_req_t raw UNUSED, void *data)
{
    channel_req_interrupted(data);
}

void libfuse_on_interrupt(struct channel_req *q)
{
    fuse_req_interrupt_func(q->raw, on_raw_interrupt, q);
}

/* ---- connection ---- */

static void on_init(void *user, struct fuse_conn_info *conn)
{
    struct channel *c = user;
    const struct wire_init_in *in = message_body(c);
    unsigned want = FUSE_CAP_ASYNC_DIO | FUSE_CAP_ASYNC_READ | FUSE_CAP_PARALLEL_DIROPS |
                    FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_DONT_MASK |
                    FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_CACHE_SYMLINKS;
    uint64_t flags2 = 0;

    if (c->o.posix_acl)
        want |= FUSE_CAP_POSIX_ACL;
    if (c->o.ops->op[CHANNEL_SETLK]) /* else the kernel keeps locks, for this mount only */
        want |= FUSE_CAP_POSIX_LOCKS | FUSE_CAP_FLOCK_LOCKS;
    conn->want = conn->capable & want;
    conn->max_write = CHANNEL_IO_MAX;
    conn->max_read = CHANNEL_IO_MAX;
    conn->max_readahead = CHANNEL_IO_MAX;
    conn->max_background = CHANNEL_MAX_BACKGROUND;
    conn->congestion_threshold = CHANNEL_CONGESTION;
    conn->time_gran = 1;
    c->killpriv = (in->flags & WIRE_HANDLE_KILLPRIV_V2) != 0;
    if ((in->flags & WIRE_INIT_EXT) != 0 && c->message->len >= sizeof(*c->message) + sizeof(*in))
        flags2 = (uint64_t)in->flags2 << 32;
    c->direct_mmap = (flags2 & WIRE_DIRECT_IO_ALLOW_MMAP) != 0;
    c->expire_only = (flags2 & WIRE_HAS_EXPIRE_ONLY) != 0;
    c->init_reply = true;
    c->proto_minor = in->minor;
    LOG_DEBUG("fuse", "kernel protocol %u.%u, offered %#x, used %#x", conn->proto_major,
              conn->proto_minor, conn->capable, conn->want);
    channel_tell_ready(c);
}

/* ---- inodes and names ---- */

static void on_named(fuse_req_t raw, enum channel_op op, fuse_ino_t node, const char *name)
{
    struct channel_req *q = libfuse_req_begin(raw, op, node);

    if (q && take_name(q, 0, name, &q->name.name))
        channel_req_run(q);
}

static void on_lookup(fuse_req_t raw, fuse_ino_t parent, const char *name)
{
    on_named(raw, CHANNEL_LOOKUP, parent, name);
}

static void on_unlink(fuse_req_t raw, fuse_ino_t parent, const char *name)
{
    on_named(raw, CHANNEL_UNLINK, parent, name);
}

static void on_rmdir(fuse_req_t raw, fuse_ino_t parent, const char *name)
{
    on_named(raw, CHANNEL_RMDIR, parent, name);
}

static void on_removexattr(fuse_req_t raw, fuse_ino_t node, const char *name)
{
    on_named(raw, CHANNEL_REMOVEXATTR, node, name);
}

static void on_forget(fuse_req_t raw, fuse_ino_t node, uint64_t n)
{
    struct channel *c = fuse_req_userdata(raw);

    if (c->o.ops->forget)
        c->o.ops->forget(c->o.user, node, n);
    fuse_reply_none(raw);
}

static void on_forget_multi(fuse_req_t raw, size_t count, struct fuse_forget_data *forgets)
{
    struct channel *c = fuse_req_userdata(raw);

    for (size_t i = 0; c->o.ops->forget && i < count; i++)
        c->o.ops->forget(c->o.user, forgets[i].ino, forgets[i].nlookup);
    fuse_reply_none(raw);
}

static void on_getattr(fuse_req_t raw, fuse_ino_t node, struct fuse_file_info *fi)
{
    struct channel_req *q = libfuse_req_begin(raw, CHANNEL_GETATTR, node);

    if (!q)
        return;
    memset(&q->attr, 0, sizeof(q->attr));
    q->attr.has_fh = fi != NULL;
    q->attr.fh = fi ? fi->fh : 0;
    channel_req_run(q);
}

static uint32_t set_mask(int to_set, uint32_t wire_valid)
{
    static const struct {
        int fuse;
        uint32_t msg;
    } map[] = {{FUSE_SET_ATTR_MODE, MSG_SET_MODE},
               {FUSE_SET_ATTR_UID, MSG_SET_UID},
               {FUSE_SET_ATTR_GID, MSG_SET_GID},
               {FUSE_SET_ATTR_SIZE, MSG_SET_SIZE},
               {FUSE_SET_ATTR_ATIME, MSG_SET_ATIME},
               {FUSE_SET_ATTR_MTIME, MSG_SET_MTIME},
               {FUSE_SET_ATTR_ATIME_NOW, MSG_SET_ATIME_NOW},
               {FUSE_SET_ATTR_MTIME_NOW, MSG_SET_MTIME_NOW}};
    uint32_t set = wire_valid & WIRE_FATTR_KILL_SUIDGID ? MSG_SET_KILL_PRIV : 0;

    for (unsigned i = 0; i < ARRAY_LEN(map); i++)
        set |= to_set & map[i].fuse ? map[i].msg : 0;
    if (set & MSG_SET_ATIME_NOW)
        set &= ~MSG_SET_ATIME;
    if (set & MSG_SET_MTIME_NOW)
        set &= ~MSG_SET_MTIME;
    return set;
}

static void on_setattr(fuse_req_t raw, fuse_ino_t node, struct stat *st, int to_set,
                       struct fuse_file_info *fi)
{
    struct channel_req *q = libfuse_req_begin(raw, CHANNEL_SETATTR, node);
    const struct wire_setattr_in *in;

    if (!q)
        return;
    in = message_body(q->channel);
    memset(&q->attr, 0, sizeof(q->attr));
    q->attr.has_fh = fi != NULL;
    q->attr.fh = fi ? fi->fh : 0;
    q->attr.set = set_mask(to_set, in->valid);
    q->attr.mode = st->st_mode & 07777u;
    q->attr.uid = st->st_uid;
    q->attr.gid = st->st_gid;
    q->attr.size = (uint64_t)st->st_size;
    q->attr.atime = (struct msg_time){st->st_atim.tv_sec, (uint32_t)st->st_atim.tv_nsec};
    q->attr.mtime = (struct msg_time){st->st_mtim.tv_sec, (uint32_t)st->st_mtim.tv_nsec};
    channel_req_run(q);
}

static void on_readlink(fuse_req_t raw, fuse_ino_t node)
{
    struct channel_req *q = libfuse_req_begin(raw, CHANNEL_READLINK, node);

    if (q)
        channel_req_run(q);
}

/* The kernel leaves the umask to us (DONT_MASK): it applies unless the directory has a default ACL,
 * which the server knows. */
static struct channel_req *make_begin(fuse_req_t raw, enum channel_op op, fuse_ino_t parent,
                                      const char *name, mode_t mode)
{
    struct channel_req *q = libfuse_req_begin(raw, op, parent);

    if (!q)
        return NULL;
    memset(&q->make, 0, sizeof(q->make));
    if (!take_name(q, 0, name, &q->make.name))
        return NULL;
    q->make.masked = mode & fuse_req_ctx(raw)->umask & 0777u;
    q->make.mode = mode & ~q->make.masked;
    return q;
}

static void on_mknod(fuse_req_t raw, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
    struct channel_req *q = make_begin(raw, CHANNEL_MKNOD, parent, name, mode);

    if (!q)
        return;
    q->make.rdev = (uint32_t)rdev;
    channel_req_run(q);
}

static void on_mkdir(fuse_req_t raw, fuse_ino_t parent, const char *name, mode_t mode)
{
    struct channel_req *q = make_begin(raw, CHANNEL_MKDIR, parent, name, S_IFDIR | (mode & 07777u));

    if (q)
        channel_req_run(q);
}

static void on_symlink(fuse_req_t raw, const char *target, fuse_ino_t parent, const char *name)
{
    struct channel_req *q = make_begin(raw, CHANNEL_SYMLINK, parent, name, 0);

    if (!q || !take_copy(q, target, strlen(target) + 1))
        return;
    q->make.masked = 0;
    q->make.mode = S_IFLNK | 0777;
    q->make.target = q->copy;
    channel_req_run(q);
}

static void on_create(fuse_req_t raw, fuse_ino_t parent, const char *name, mode_t mode,
                      struct fuse_file_info *fi)
{
    struct channel_req *q =
        make_begin(raw, CHANNEL_CREATE, parent, name, S_IFREG | (mode & 07777u));

    if (!q)
        return;
    q->make.flags = (uint32_t)fi->flags;
    channel_req_run(q);
}

static void on_rename(fuse_req_t raw, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
                      const char *new_name, unsigned flags)
{
    struct channel_req *q = libfuse_req_begin(raw, CHANNEL_RENAME, parent);

    if (!q || !take_name(q, 0, name, &q->rename.name))
        return;
    if (!take_name(q, 1, new_name, &q->rename.new_name))
        return;
    q->rename.new_parent = new_parent;
    q->rename.flags = flags;
    channel_req_run(q);
}

static void on_link(fuse_req_t raw, fuse_ino_t node, fuse_ino_t new_parent, const char *new_name)
{
    struct channel_req *q = libfuse_req_begin(raw, CHANNEL_LINK, node);

    if (!q || !take_name(q, 0, new_name, &q->link_to.new_name))
        return;
    q->link_to.new_parent = new_parent;
    channel_req_run(q);
}

/* ---- files ---- */

static void open_run(fuse_req_t raw, enum channel_op op, fuse_ino_t node, struct fuse_file_info *fi)
{
    struct channel_req *q = libfuse_req_begin(raw, op, node);
    const struct wire_open_in *in;

    if (!q)
        return;
    in = message_body(q->channel);
    q->open.flags = (uint32_t)fi->flags;
    q->open.kill_priv = q->channel->killpriv && (in->open_flags & WIRE_OPEN_KILL_SUIDGID) != 0;
    channel_req_run(q);
}

static void on_open(fuse_req_t raw, fuse_ino_t node, struct fuse_file_info *fi)
{
    open_run(raw, CHANNEL_OPEN, node, fi);
}

static void on_opendir(fuse_req_t raw, fuse_ino_t node, struct fuse_file_info *fi)
{
    open_run(raw, CHANNEL_OPENDIR, node, fi);
}

static struct channel_req *io_begin(fuse_req_t raw, enum channel_op op, fuse_ino_t node, size_t len,
                                    off_t offset, const struct fuse_file_info *fi)
{
    struct channel_req *q = libfuse_req_begin(raw, op, node);

    if (!q)
        return NULL;
    memset(&q->io, 0, sizeof(q->io));
    if (len > CHANNEL_IO_MAX || offset < 0) {
        channel_reply_err(q, -EINVAL);
        return NULL;
    }
    q->io.fh = fi->fh;
    q->io.flags = (uint32_t)fi->flags;
    q->io.len = (uint32_t)len;
    q->io.offset = (uint64_t)offset;
    return q;
}

static void on_read(fuse_req_t raw, fuse_ino_t node, size_t len, off_t offset,
                    struct fuse_file_info *fi)
{
    struct channel_req *q = io_begin(raw, CHANNEL_READ, node, len, offset, fi);

    if (q)
        channel_req_run(q);
}

static void on_write(fuse_req_t raw, fuse_ino_t node, const char *data, size_t len, off_t offset,
                     struct fuse_file_info *fi)
{
    struct channel *c = fuse_req_userdata(raw);
    struct channel_req *q = io_begin(raw, CHANNEL_WRITE, node, len, offset, fi);
    const struct wire_write_in *in;

    if (!q)
        return;
    in = message_body(c);
    q->io.data = data;
    q->io.from_cache = (in->write_flags & WIRE_WRITE_CACHE) != 0;
    q->io.kill_priv = c->killpriv && (in->write_flags & WIRE_WRITE_KILL_SUIDGID) != 0;
    q->buf = c->message_buf; /* the data stays where it is until the reply */
    c->message_buf = NULL;
    channel_req_run(q);
}

static void on_readdir(fuse_req_t raw, fuse_ino_t node, size_t len, off_t offset,
                       struct fuse_file_info *fi)
{
    struct channel_req *q = io_begin(raw, CHANNEL_READDIR, node, MIN(len, CHANNEL_IO_MAX), 0, fi);

    if (!q)
        return;
    q->io.offset = (uint64_t)offset; /* a cookie: any 64 bits */
    channel_req_run(q);
}

static void on_readdirplus(fuse_req_t raw, fuse_ino_t node, size_t len, off_t offset,
                           struct fuse_file_info *fi)
{
    struct channel_req *q = io_begin(raw, CHANNEL_READDIR, node, MIN(len, CHANNEL_IO_MAX), 0, fi);

    if (!q)
        return;
    q->io.offset = (uint64_t)offset;
    q->io.plus = true;
    channel_req_run(q);
}

static void file_run(fuse_req_t raw, enum channel_op op, fuse_ino_t node,
                     const struct fuse_file_info *fi, int datasync)
{
    struct channel_req *q = libfuse_req_begin(raw, op, node);

    if (!q)
        return;
    q->file.fh = fi->fh;
    q->file.flags = (uint32_t)fi->flags;
    q->file.datasync = datasync != 0;
    q->file.lock_owner = fi->lock_owner;
    channel_req_run(q);
}

static void on_flush(fuse_req_t raw, fuse_ino_t node, struct fuse_file_info *fi)
{
    file_run(raw, CHANNEL_FLUSH, node, fi, 0);
}

static void on_release(fuse_req_t raw, fuse_ino_t node, struct fuse_file_info *fi)
{
    file_run(raw, CHANNEL_RELEASE, node, fi, 0);
}

static void on_releasedir(fuse_req_t raw, fuse_ino_t node, struct fuse_file_info *fi)
{
    file_run(raw, CHANNEL_RELEASEDIR, node, fi, 0);
}

static void on_fsync(fuse_req_t raw, fuse_ino_t node, int datasync, struct fuse_file_info *fi)
{
    file_run(raw, CHANNEL_FSYNC, node, fi, datasync);
}

static void on_fsyncdir(fuse_req_t raw, fuse_ino_t node, int datasync, struct fuse_file_info *fi)
{
    file_run(raw, CHANNEL_FSYNCDIR, node, fi, datasync);
}

/* ---- the rest ---- */

static void on_statfs(fuse_req_t raw, fuse_ino_t node)
{
    struct channel_req *q = libfuse_req_begin(raw, CHANNEL_STATFS, node);

    if (q)
        channel_req_run(q);
}

static void on_setxattr(fuse_req_t raw, fuse_ino_t node, const char *name, const char *value,
                        size_t size, int flags)
{
    struct channel_req *q = libfuse_req_begin(raw, CHANNEL_SETXATTR, node);

    if (!q || !take_name(q, 0, name, &q->xattr.name))
        return;
    if (size > MSG_XATTR_MAX) {
        channel_reply_err(q, -E2BIG);
        return;
    }
    if (!take_copy(q, value, MAX(size, 1u)))
        return;
    q->xattr.value = q->copy;
    q->xattr.size = (uint32_t)size;
    q->xattr.flags = (uint32_t)flags;
    channel_req_run(q);
}

static void on_getxattr(fuse_req_t raw, fuse_ino_t node, const char *name, size_t size)
{
    struct channel_req *q = libfuse_req_begin(raw, CHANNEL_GETXATTR, node);

    if (!q || !take_name(q, 0, name, &q->xattr.name))
        return;
    q->xattr.size = (uint32_t)MIN(size, (size_t)MSG_XATTR_MAX);
    channel_req_run(q);
}

static void on_listxattr(fuse_req_t raw, fuse_ino_t node, size_t size)
{
    struct channel_req *q = libfuse_req_begin(raw, CHANNEL_LISTXATTR, node);

    if (!q)
        return;
    q->xattr.name = NULL;
    q->xattr.size = (uint32_t)MIN(size, (size_t)MSG_XATTR_MAX);
    channel_req_run(q);
}

const struct fuse_lowlevel_ops channel_libfuse_ops = {
    .init = on_init,
    .lookup = on_lookup,
    .forget = on_forget,
    .forget_multi = on_forget_multi,
    .getattr = on_getattr,
    .setattr = on_setattr,
    .readlink = on_readlink,
    .mknod = on_mknod,
    .mkdir = on_mkdir,
    .unlink = on_unlink,
    .rmdir = on_rmdir,
    .symlink = on_symlink,
    .rename = on_rename,
    .link = on_link,
    .open = on_open,
    .create = on_create,
    .read = on_read,
    .write = on_write,
    .flush = on_flush,
    .release = on_release,
    .fsync = on_fsync,
    .opendir = on_opendir,
    .readdir = on_readdir,
    .readdirplus = on_readdirplus,
    .releasedir = on_releasedir,
    .fsyncdir = on_fsyncdir,
    .statfs = on_statfs,
    .setxattr = on_setxattr,
    .getxattr = on_getxattr,
    .listxattr = on_listxattr,
    .removexattr = on_removexattr,
    .getlk = channel_on_getlk,
    .setlk = channel_on_setlk,
    .flock = channel_on_flock,
    .fallocate = channel_on_fallocate,
    .lseek = channel_on_lseek,
    .copy_file_range = channel_on_copy_file_range,
};
