/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies, as the kernel reads them, for all kinds of channel. A reply that the kernel no longer
 * wants (the caller was killed, the file system was unmounted) is not an error; an open whose reply
 * was lost that way is never released by the kernel, so the file system is told (open_lost).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "client/fuse/channel_int.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"

#define DIR_ENTRY_MAX                                                                              \
    (sizeof(struct wire_entry_out) + sizeof(struct wire_dirent) + MSG_NAME_MAX + sizeof(uint64_t))
#define BLOCK_BYTES 131072 /* st_blksize: what stdio and cp(1) use as buffer */

static void to_attr(const struct msg_attr *a, struct wire_attr *w)
{
    memset(w, 0, sizeof(*w));
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

static void to_entry(const struct channel_entry *e, struct wire_entry_out *out)
{
    memset(out, 0, sizeof(*out));
    out->nodeid = e->attr->ino;
    out->entry_valid = e->entry_timeout_ns / NS_PER_S;
    out->entry_valid_nsec = (uint32_t)(e->entry_timeout_ns % NS_PER_S);
    out->attr_valid = e->attr_timeout_ns / NS_PER_S;
    out->attr_valid_nsec = (uint32_t)(e->attr_timeout_ns % NS_PER_S);
    to_attr(e->attr, &out->attr);
}

/* rc of the send. True when the kernel has taken it. */
static bool req_end(struct channel_req *q, int rc)
{
    if (rc != 0 && rc != -ENOENT && rc != -ENODEV && rc != -EINTR && !q->channel->gone &&
        !q->channel->refusing)
        LOG_WARN("fuse", "reply to %s of inode %llu: %s", channel_op_name(q->op),
                 (unsigned long long)q->node, err_text(rc));
    channel_req_free(q);
    return rc == 0;
}

static int send_iov(struct channel_req *q, const struct iovec *iov, int n)
{
    return q->channel->transport->send(q, 0, iov, n);
}

static int send_bytes(struct channel_req *q, const void *data, size_t len)
{
    struct iovec iov = {(void *)(uintptr_t)data, len};

    return send_iov(q, &iov, 1);
}

void channel_reply_err(struct channel_req *q, int err)
{
    req_end(q, q->channel->transport->send(q, err_to_errno(err), NULL, 0));
}

void channel_reply_entry(struct channel_req *q, const struct channel_entry *e)
{
    struct wire_entry_out out;

    to_entry(e, &out);
    req_end(q, send_bytes(q, &out, sizeof(out)));
}

void channel_reply_no_entry(struct channel_req *q, uint64_t entry_timeout_ns)
{
    struct wire_entry_out out = {.entry_valid = entry_timeout_ns / NS_PER_S,
                                 .entry_valid_nsec = (uint32_t)(entry_timeout_ns % NS_PER_S)};

    if (entry_timeout_ns)
        req_end(q, send_bytes(q, &out, sizeof(out)));
    else
        channel_reply_err(q, -ENOENT);
}

static struct wire_time to_time(struct msg_time t)
{
    return (struct wire_time){.sec = t.sec, .nsec = t.nsec};
}

static void reply_statx(struct channel_req *q, const struct msg_attr *a, uint64_t timeout_ns)
{
    struct wire_statx_out out = {.attr_valid = timeout_ns / NS_PER_S,
                                 .attr_valid_nsec = (uint32_t)(timeout_ns % NS_PER_S)};

    out.stat = (struct wire_statx){.mask = STATX_BASIC_STATS | STATX_BTIME,
                                   .blksize = BLOCK_BYTES,
                                   .nlink = a->nlink,
                                   .uid = a->uid,
                                   .gid = a->gid,
                                   .mode = (uint16_t)a->mode,
                                   .ino = a->ino,
                                   .size = a->size,
                                   .blocks = (a->size + 511) / 512,
                                   .atime = to_time(a->atime),
                                   .btime = to_time(a->btime),
                                   .ctime = to_time(a->ctime),
                                   .mtime = to_time(a->mtime),
                                   .rdev_major = major(a->rdev),
                                   .rdev_minor = minor(a->rdev)};
    req_end(q, send_bytes(q, &out, sizeof(out)));
}

void channel_reply_attr(struct channel_req *q, const struct msg_attr *a, uint64_t timeout_ns)
{
    struct wire_attr_out out = {.attr_valid = timeout_ns / NS_PER_S,
                                .attr_valid_nsec = (uint32_t)(timeout_ns % NS_PER_S)};

    if (q->attr.statx) {
        reply_statx(q, a, timeout_ns);
        return;
    }
    to_attr(a, &out.attr);
    req_end(q, send_bytes(q, &out, sizeof(out)));
}

/* ---- open and create ---- */

static void to_open(uint64_t fh, uint32_t flags, struct wire_open_out *out)
{
    memset(out, 0, sizeof(*out));
    out->fh = fh;
    if (flags & CHANNEL_OPEN_DIRECT)
        out->open_flags |= WIRE_FOPEN_DIRECT_IO | WIRE_FOPEN_PARALLEL_DIRECT_WRITES;
    if (flags & CHANNEL_OPEN_KEEP_CACHE)
        out->open_flags |= WIRE_FOPEN_KEEP_CACHE;
    if (flags & CHANNEL_OPEN_NOFLUSH)
        out->open_flags |= WIRE_FOPEN_NOFLUSH;
}

/* The kernel has no file for this open: close it again. */
static void open_lost(struct channel_req *q, enum channel_op op, uint64_t node, uint64_t fh)
{
    if (q->channel->o.ops->open_lost)
        q->channel->o.ops->open_lost(q->user, op, node, fh);
}

void channel_reply_open(struct channel_req *q, uint64_t fh, uint32_t flags)
{
    struct wire_open_out out;
    int rc;

    to_open(fh, flags, &out);
    rc = send_bytes(q, &out, sizeof(out));
    if (rc != 0)
        open_lost(q, q->op, q->node, fh);
    req_end(q, rc);
}

void channel_reply_create(struct channel_req *q, const struct channel_entry *e, uint64_t fh,
                          uint32_t flags)
{
    struct wire_create_out out;
    int rc;

    to_entry(e, &out.entry);
    to_open(fh, flags, &out.open);
    rc = send_bytes(q, &out, sizeof(out));
    if (rc != 0)
        open_lost(q, q->op, e->attr->ino, fh);
    req_end(q, rc);
}

/* ---- data ---- */

static void reply_size(struct channel_req *q, uint32_t len)
{
    struct wire_size_out out = {.size = len};

    req_end(q, send_bytes(q, &out, sizeof(out)));
}

void channel_reply_write(struct channel_req *q, uint32_t len)
{
    reply_size(q, len);
}

void channel_reply_offset(struct channel_req *q, uint64_t offset)
{
    struct wire_lseek_out out = {.offset = offset};

    req_end(q, send_bytes(q, &out, sizeof(out)));
}

void *channel_reply_room(struct channel_req *q)
{
    const struct channel_transport *t = q->channel->transport;

    return t->room ? t->room(q) : NULL;
}

void channel_reply_data(struct channel_req *q, const struct iovec *iov, int n,
                        void (*sent)(struct channel_req *q))
{
    int rc = send_iov(q, iov, n);

    if (sent)
        sent(q);
    req_end(q, rc);
}

void channel_reply_readlink(struct channel_req *q, const void *target, uint32_t len)
{
    req_end(q, send_bytes(q, target, len));
}

void channel_reply_statfs(struct channel_req *q, const struct msg_statfs_rep *s)
{
    struct wire_statfs_out out = {.blocks = s->total_bytes / 4096,
                                  .bfree = s->free_bytes / 4096,
                                  .bavail = s->avail_bytes / 4096,
                                  .files = s->files,
                                  .ffree = s->files_free,
                                  .bsize = 4096,
                                  .frsize = 4096,
                                  .namelen = MSG_NAME_MAX};

    req_end(q, send_bytes(q, &out, sizeof(out)));
}

void channel_reply_lock(struct channel_req *q, const struct msg_lock *l)
{
    struct wire_lk_out out = {.lk = {.start = l->start, .end = l->end, .pid = l->pid}};

    out.lk.type = l->type == MSG_LOCK_READ    ? F_RDLCK
                  : l->type == MSG_LOCK_WRITE ? F_WRLCK
                                              : F_UNLCK;
    req_end(q, send_bytes(q, &out, sizeof(out)));
}

void channel_reply_xattr(struct channel_req *q, const void *value, uint32_t len)
{
    if (q->xattr.size == 0)
        reply_size(q, len);
    else if (len > q->xattr.size)
        channel_reply_err(q, -ERANGE);
    else
        req_end(q, send_bytes(q, value, len));
}

/* ---- directories ---- */

/* A reply without entries is the end of the directory: what memory there is has to do for one. */
int channel_dir_begin(struct channel_req *q)
{
    struct channel *c = q->channel;

    c->dir_len = 0;
    if (c->dir_cap < q->io.len) {
        uint8_t *larger = mem_realloc(c->dir, q->io.len);

        if (larger) {
            c->dir = larger;
            c->dir_cap = q->io.len;
        }
    }
    c->dir_room = MIN(c->dir_cap, q->io.len);
    return c->dir_room < MIN(q->io.len, DIR_ENTRY_MAX) ? -ENOMEM : 0;
}

bool channel_dir_add(struct channel_req *q, const char *name, uint64_t ino, uint32_t type,
                     uint64_t cookie, const struct channel_entry *e)
{
    struct channel *c = q->channel;
    size_t name_len = strlen(name);
    struct wire_dirent d = {.ino = ino, .off = cookie, .namelen = (uint32_t)name_len, .type = type};
    size_t used = (q->io.plus ? sizeof(struct wire_entry_out) : 0) + sizeof(d) + name_len;
    size_t padding = -used & 7u;
    uint8_t *to = c->dir + c->dir_len;

    if (used + padding > c->dir_room - c->dir_len)
        return false;
    c->dir_len += used + padding;
    if (q->io.plus) {
        struct wire_entry_out entry = {0};

        if (e)
            to_entry(e, &entry);
        memcpy(to, &entry, sizeof(entry));
        to += sizeof(entry);
    }
    memcpy(to, &d, sizeof(d));
    memcpy(to + sizeof(d), name, name_len);
    memset(to + sizeof(d) + name_len, 0, padding);
    return true;
}

void channel_reply_dir(struct channel_req *q)
{
    req_end(q, send_bytes(q, q->channel->dir, q->channel->dir_len));
}
