/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies. OPEN and CREATE are built by hand, because libfuse 3.14 has no field for parallel direct
 * writes. A reply that the kernel no longer wants (the caller was killed, the file system was
 * unmounted) is not an error; an open whose reply was lost that way is never released by the
 * kernel, so the file system is told (open_lost).
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "client/fuse/channel_int.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"

#define BLOCK_BYTES 131072 /* st_blksize: what stdio and cp(1) use as buffer */

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static void to_stat(const struct msg_attr *a, struct stat *st)
{
    memset(st, 0, sizeof(*st));
    st->st_ino = a->ino;
    st->st_mode = a->mode;
    st->st_nlink = a->nlink;
    st->st_uid = a->uid;
    st->st_gid = a->gid;
    st->st_rdev = a->rdev;
    st->st_size = (off_t)a->size;
    st->st_blksize = BLOCK_BYTES;
    st->st_blocks = (blkcnt_t)((a->size + 511) / 512);
    st->st_atim = (struct timespec){a->atime.sec, a->atime.nsec};
    st->st_mtim = (struct timespec){a->mtime.sec, a->mtime.nsec};
    st->st_ctim = (struct timespec){a->ctime.sec, a->ctime.nsec};
}

static void to_entry(const struct channel_entry *e, struct fuse_entry_param *p)
{
    memset(p, 0, sizeof(*p));
    p->ino = e->attr->ino;
    p->attr_timeout = seconds(e->attr_timeout_ns);
    p->entry_timeout = seconds(e->entry_timeout_ns);
    to_stat(e->attr, &p->attr);
}

/* rc of the send. True when the kernel has taken it. */
static bool req_end(struct channel_req *q, int rc)
{
    if (rc != 0 && rc != -ENOENT && rc != -ENODEV && rc != -EINTR && !q->channel->gone)
        LOG_WARN("fuse", "reply to %s of inode %llu: %s", channel_op_name(q->op),
                 (unsigned long long)q->node, err_text(rc));
    channel_req_free(q);
    return rc == 0;
}

void channel_reply_err(struct channel_req *q, int err)
{
    req_end(q, fuse_reply_err(q->raw, err_to_errno(err)));
}

void channel_reply_entry(struct channel_req *q, const struct channel_entry *e)
{
    struct fuse_entry_param p;

    to_entry(e, &p);
    req_end(q, fuse_reply_entry(q->raw, &p));
}

void channel_reply_no_entry(struct channel_req *q, uint64_t entry_timeout_ns)
{
    struct fuse_entry_param p = {0};

    p.entry_timeout = seconds(entry_timeout_ns);
    if (entry_timeout_ns)
        req_end(q, fuse_reply_entry(q->raw, &p));
    else
        channel_reply_err(q, -ENOENT);
}

void channel_reply_attr(struct channel_req *q, const struct msg_attr *a, uint64_t timeout_ns)
{
    struct stat st;

    to_stat(a, &st);
    req_end(q, fuse_reply_attr(q->raw, &st, seconds(timeout_ns)));
}

/* ---- open and create ---- */

static void to_open_out(uint64_t fh, uint32_t flags, struct fuse_open_out *out)
{
    memset(out, 0, sizeof(*out));
    out->fh = fh;
    if (flags & CHANNEL_OPEN_DIRECT)
        out->open_flags |= FOPEN_DIRECT_IO | WIRE_FOPEN_PARALLEL_DIRECT_WRITES;
    if (flags & CHANNEL_OPEN_KEEP_CACHE)
        out->open_flags |= FOPEN_KEEP_CACHE;
    if (flags & CHANNEL_OPEN_NOFLUSH)
        out->open_flags |= FOPEN_NOFLUSH;
}

/* The kernel has no file for this open: close it again. */
static void open_lost(struct channel_req *q, enum channel_op op, uint64_t node, uint64_t fh)
{
    if (q->channel->o.ops->open_lost)
        q->channel->o.ops->open_lost(q->user, op, node, fh);
}

void channel_reply_open(struct channel_req *q, uint64_t fh, uint32_t flags)
{
    struct fuse_open_out out;
    int rc;

    to_open_out(fh, flags, &out);
    rc = fuse_reply_buf(q->raw, (const char *)&out, sizeof(out));
    if (rc != 0)
        open_lost(q, q->op, q->node, fh);
    req_end(q, rc);
}

static void to_wire_attr(const struct msg_attr *a, struct fuse_attr *w)
{
    w->ino = a->ino;
    w->size = a->size;
    w->blocks = (a->size + 511) / 512;
    w->atime = (uint64_t)a->atime.sec;
    w->mtime = (uint64_t)a->mtime.sec;
    w->ctime = (uint64_t)a->ctime.sec;
    w->atimensec = a->atime.nsec;
    w->mtimensec = a->mtime.nsec;
    w->ctimensec = a->ctime.nsec;
    w->mode = a->mode;
    w->nlink = a->nlink;
    w->uid = a->uid;
    w->gid = a->gid;
    w->rdev = a->rdev;
    w->blksize = BLOCK_BYTES;
}

void channel_reply_create(struct channel_req *q, const struct channel_entry *e, uint64_t fh,
                          uint32_t flags)
{
    struct {
        struct fuse_entry_out entry;
        struct fuse_open_out open;
    } out;
    int rc;

    memset(&out, 0, sizeof(out));
    out.entry.nodeid = e->attr->ino;
    out.entry.entry_valid = e->entry_timeout_ns / NS_PER_S;
    out.entry.entry_valid_nsec = (uint32_t)(e->entry_timeout_ns % NS_PER_S);
    out.entry.attr_valid = e->attr_timeout_ns / NS_PER_S;
    out.entry.attr_valid_nsec = (uint32_t)(e->attr_timeout_ns % NS_PER_S);
    to_wire_attr(e->attr, &out.entry.attr);
    to_open_out(fh, flags, &out.open);
    rc = fuse_reply_buf(q->raw, (const char *)&out, sizeof(out));
    if (rc != 0)
        open_lost(q, q->op, e->attr->ino, fh);
    req_end(q, rc);
}

/* ---- data ---- */

void channel_reply_write(struct channel_req *q, uint32_t len)
{
    req_end(q, fuse_reply_write(q->raw, len));
}

void channel_reply_data(struct channel_req *q, const struct iovec *iov, int n,
                        void (*sent)(struct channel_req *q))
{
    int rc = fuse_reply_iov(q->raw, iov, n);

    if (sent)
        sent(q);
    req_end(q, rc);
}

void channel_reply_readlink(struct channel_req *q, const void *target, uint32_t len)
{
    req_end(q, fuse_reply_buf(q->raw, target, len));
}

void channel_reply_statfs(struct channel_req *q, const struct msg_statfs_rep *s)
{
    struct statvfs v = {0};

    v.f_bsize = v.f_frsize = 4096;
    v.f_blocks = s->total_bytes / 4096;
    v.f_bfree = s->free_bytes / 4096;
    v.f_bavail = s->avail_bytes / 4096;
    v.f_files = s->files;
    v.f_ffree = v.f_favail = s->files_free;
    v.f_namemax = MSG_NAME_MAX;
    req_end(q, fuse_reply_statfs(q->raw, &v));
}

void channel_reply_lock(struct channel_req *q, const struct msg_lock *l)
{
    struct flock f = {.l_whence = SEEK_SET,
                      .l_start = (off_t)l->start,
                      .l_len = l->end >= MSG_LOCK_END ? 0 : (off_t)(l->end - l->start + 1),
                      .l_pid = (pid_t)l->pid};

    f.l_type = l->type == MSG_LOCK_READ ? F_RDLCK : l->type == MSG_LOCK_WRITE ? F_WRLCK : F_UNLCK;
    req_end(q, fuse_reply_lock(q->raw, &f));
}

void channel_reply_xattr(struct channel_req *q, const void *value, uint32_t len)
{
    if (q->xattr.size == 0)
        req_end(q, fuse_reply_xattr(q->raw, len));
    else if (len > q->xattr.size)
        channel_reply_err(q, -ERANGE);
    else
        req_end(q, fuse_reply_buf(q->raw, value, len));
}

/* ---- directories ---- */

void channel_dir_begin(struct channel_req *q)
{
    struct channel *c = q->channel;

    c->dir_len = 0;
    c->dir_room = q->io.len;
    if (c->dir_cap < q->io.len) {
        uint8_t *larger = mem_realloc(c->dir, q->io.len);

        if (larger) {
            c->dir = larger;
            c->dir_cap = q->io.len;
        }
        c->dir_room = MIN(c->dir_cap, q->io.len);
    }
}

bool channel_dir_add(struct channel_req *q, const char *name, uint64_t ino, uint32_t type,
                     uint64_t cookie, const struct channel_entry *e)
{
    struct channel *c = q->channel;
    char *to = (char *)c->dir + c->dir_len;
    size_t room = c->dir_room - c->dir_len, used;

    if (q->io.plus) {
        struct fuse_entry_param p = {0};

        if (e)
            to_entry(e, &p);
        p.attr.st_ino = ino;
        p.attr.st_mode = e ? p.attr.st_mode : DTTOIF(type);
        used = fuse_add_direntry_plus(q->raw, to, room, name, &p, (off_t)cookie);
    } else {
        struct stat st = {.st_ino = ino, .st_mode = DTTOIF(type)};

        used = fuse_add_direntry(q->raw, to, room, name, &st, (off_t)cookie);
    }
    if (used > room)
        return false;
    c->dir_len += used;
    return true;
}

void channel_reply_dir(struct channel_req *q)
{
    req_end(q, fuse_reply_buf(q->raw, (const char *)q->channel->dir, q->channel->dir_len));
}

int channel_req_groups(const struct channel_req *q, uint32_t *groups, unsigned max)
{
    static_assert(sizeof(gid_t) == sizeof(uint32_t), "groups are copied as they are");

    return fuse_req_getgroups(q->raw, (int)max, groups);
}
