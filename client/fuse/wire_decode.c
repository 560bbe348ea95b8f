/* SPDX-License-Identifier: Apache-2.0 */
/* See wire_decode.h. Each operation takes its arguments from the front of what is left of the
 * message; whoever finds less than it needs ends with -EIO. */
#include "client/fuse/wire_decode.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct rest {
    const uint8_t *at;
    size_t len;
    uint32_t opcode;
    bool killpriv;
};

static const void *take(struct rest *in, size_t len)
{
    const void *at = in->at;

    if (len > in->len)
        return NULL;
    in->at += len;
    in->len -= len;
    return at;
}

/* Text up to its NUL, which must be there; NULL else. */
static const char *take_text(struct rest *in, size_t *ret_len)
{
    const char *text = (const char *)in->at;
    const char *end = in->len ? memchr(text, '\0', in->len) : NULL;

    if (!end)
        return NULL;
    *ret_len = (size_t)(end - text);
    return take(in, *ret_len + 1);
}

/* Names live in q->text: the first at its start, a second behind MSG_NAME_MAX. */
static int take_name(struct rest *in, struct channel_req *q, unsigned index, const char **ret_name)
{
    char *to = q->text + index * (MSG_NAME_MAX + 1);
    size_t len;
    const char *text = take_text(in, &len);

    if (!text || len == 0)
        return -EIO;
    if (len > MSG_NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(to, text, len + 1);
    *ret_name = to;
    return 0;
}

/* ---- inodes and names ---- */

static int in_nothing(struct rest *in UNUSED, struct channel_req *q UNUSED)
{
    return 0;
}

static int in_name(struct rest *in, struct channel_req *q)
{
    return take_name(in, q, 0, &q->name.name);
}

static int in_getattr(struct rest *in, struct channel_req *q)
{
    const struct wire_getattr_in *a =
        take(in, in->opcode == WIRE_STATX ? sizeof(struct wire_statx_in) : sizeof(*a));

    if (!a)
        return -EIO;
    memset(&q->attr, 0, sizeof(q->attr));
    q->attr.has_fh = (a->flags & WIRE_GETATTR_FH) != 0;
    q->attr.fh = q->attr.has_fh ? a->fh : 0;
    q->attr.statx = in->opcode == WIRE_STATX;
    return 0;
}

static uint32_t set_mask(uint32_t valid)
{
    static const struct {
        uint32_t wire, msg;
    } map[] = {{WIRE_FATTR_MODE, MSG_SET_MODE},
               {WIRE_FATTR_UID, MSG_SET_UID},
               {WIRE_FATTR_GID, MSG_SET_GID},
               {WIRE_FATTR_SIZE, MSG_SET_SIZE},
               {WIRE_FATTR_ATIME, MSG_SET_ATIME},
               {WIRE_FATTR_MTIME, MSG_SET_MTIME},
               {WIRE_FATTR_ATIME_NOW, MSG_SET_ATIME_NOW},
               {WIRE_FATTR_MTIME_NOW, MSG_SET_MTIME_NOW},
               {WIRE_FATTR_KILL_SUIDGID, MSG_SET_KILL_PRIV}};
    uint32_t set = 0;

    for (unsigned i = 0; i < ARRAY_LEN(map); i++)
        set |= valid & map[i].wire ? map[i].msg : 0;
    if (set & MSG_SET_ATIME_NOW)
        set &= ~MSG_SET_ATIME;
    if (set & MSG_SET_MTIME_NOW)
        set &= ~MSG_SET_MTIME;
    return set;
}

static int in_setattr(struct rest *in, struct channel_req *q)
{
    const struct wire_setattr_in *a = take(in, sizeof(*a));

    if (!a)
        return -EIO;
    memset(&q->attr, 0, sizeof(q->attr));
    q->attr.has_fh = (a->valid & WIRE_FATTR_FH) != 0;
    q->attr.fh = q->attr.has_fh ? a->fh : 0;
    q->attr.set = set_mask(a->valid);
    q->attr.mode = a->mode & 07777u;
    q->attr.uid = a->uid;
    q->attr.gid = a->gid;
    q->attr.size = a->size;
    q->attr.atime = (struct msg_time){(int64_t)a->atime, a->atimensec};
    q->attr.mtime = (struct msg_time){(int64_t)a->mtime, a->mtimensec};
    return (q->attr.set & MSG_SET_SIZE) && a->size > INT64_MAX ? -EINVAL : 0;
}

/* The kernel leaves the umask to us (DONT_MASK): it applies unless the directory has a default ACL,
 * which the server knows. */
static int make(struct rest *in, struct channel_req *q, uint32_t mode, uint32_t mask)
{
    memset(&q->make, 0, sizeof(q->make));
    q->make.masked = mode & mask & 0777u;
    q->make.mode = mode & ~q->make.masked;
    return take_name(in, q, 0, &q->make.name);
}

static int in_mknod(struct rest *in, struct channel_req *q)
{
    const struct wire_mknod_in *a = take(in, sizeof(*a));
    int rc = a ? make(in, q, a->mode, a->umask) : -EIO;

    if (rc == 0)
        q->make.rdev = a->rdev;
    return rc;
}

static int in_mkdir(struct rest *in, struct channel_req *q)
{
    const struct wire_mkdir_in *a = take(in, sizeof(*a));

    return a ? make(in, q, S_IFDIR | (a->mode & 07777u), a->umask) : -EIO;
}

static int in_create(struct rest *in, struct channel_req *q)
{
    const struct wire_create_in *a = take(in, sizeof(*a));
    int rc = a ? make(in, q, S_IFREG | (a->mode & 07777u), a->umask) : -EIO;

    if (rc == 0)
        q->make.flags = a->flags;
    return rc;
}

/* What stands where the name of a CREATE would be is none. */
static int in_tmpfile(struct rest *in, struct channel_req *q)
{
    const struct wire_create_in *a = take(in, sizeof(*a));

    if (!a)
        return -EIO;
    memset(&q->make, 0, sizeof(q->make));
    q->make.masked = a->mode & a->umask & 0777u;
    q->make.mode = S_IFREG | (a->mode & 07777u & ~q->make.masked);
    q->make.flags = a->flags;
    return 0;
}

static int in_symlink(struct rest *in, struct channel_req *q)
{
    size_t len;
    int rc = make(in, q, S_IFLNK | 0777u, 0);

    if (rc != 0)
        return rc;
    q->make.target = take_text(in, &len);
    if (!q->make.target)
        return -EIO;
    return len >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int in_rename(struct rest *in, struct channel_req *q)
{
    const struct wire_rename2_in *a =
        take(in, in->opcode == WIRE_RENAME2 ? sizeof(*a) : sizeof(struct wire_rename_in));
    int rc = a ? take_name(in, q, 0, &q->rename.name) : -EIO;

    if (rc == 0)
        rc = take_name(in, q, 1, &q->rename.new_name);
    if (rc != 0)
        return rc;
    q->rename.new_parent = a->newdir;
    q->rename.flags = in->opcode == WIRE_RENAME2 ? a->flags : 0;
    return 0;
}

static int in_link(struct rest *in, struct channel_req *q)
{
    const struct wire_link_in *a = take(in, sizeof(*a));
    int rc = a ? take_name(in, q, 0, &q->link_to.new_name) : -EIO;

    if (rc != 0)
        return rc;
    q->link_to.new_parent = q->node; /* the message is about the directory, the request the file */
    q->node = a->oldnodeid;
    return 0;
}

/* ---- files ---- */

static int in_open(struct rest *in, struct channel_req *q)
{
    const struct wire_open_in *a = take(in, sizeof(*a));

    if (!a)
        return -EIO;
    q->open.flags = a->flags;
    q->open.kill_priv = in->killpriv && (a->open_flags & WIRE_OPEN_KILL_SUIDGID) != 0;
    return 0;
}

static int in_read(struct rest *in, struct channel_req *q)
{
    const struct wire_read_in *a = take(in, sizeof(*a));

    if (!a)
        return -EIO;
    memset(&q->io, 0, sizeof(q->io));
    q->io.fh = a->fh;
    q->io.flags = a->flags;
    q->io.offset = a->offset;
    q->io.len = a->size;
    return a->size > CHANNEL_IO_MAX || a->offset > INT64_MAX ? -EINVAL : 0;
}

static int in_write(struct rest *in, struct channel_req *q)
{
    const struct wire_write_in *a = take(in, sizeof(*a));

    if (!a || a->size != in->len)
        return -EIO;
    memset(&q->io, 0, sizeof(q->io));
    q->io.fh = a->fh;
    q->io.flags = a->flags;
    q->io.offset = a->offset;
    q->io.len = a->size;
    q->io.data = in->at;
    q->io.from_cache = (a->write_flags & WIRE_WRITE_CACHE) != 0;
    q->io.kill_priv = in->killpriv && (a->write_flags & WIRE_WRITE_KILL_SUIDGID) != 0;
    return a->size > CHANNEL_IO_MAX || a->offset > INT64_MAX ? -EINVAL : 0;
}

/* The offset is a cookie: any 64 bits. */
static int in_readdir(struct rest *in, struct channel_req *q)
{
    const struct wire_read_in *a = take(in, sizeof(*a));

    if (!a)
        return -EIO;
    memset(&q->io, 0, sizeof(q->io));
    q->io.fh = a->fh;
    q->io.flags = a->flags;
    q->io.offset = a->offset;
    q->io.len = MIN(a->size, CHANNEL_IO_MAX);
    q->io.plus = in->opcode == WIRE_READDIRPLUS;
    return 0;
}

static int in_flush(struct rest *in, struct channel_req *q)
{
    const struct wire_flush_in *a = take(in, sizeof(*a));

    if (!a)
        return -EIO;
    memset(&q->file, 0, sizeof(q->file));
    q->file.fh = a->fh;
    q->file.lock_owner = a->lock_owner;
    return 0;
}

static int in_release(struct rest *in, struct channel_req *q)
{
    const struct wire_release_in *a = take(in, sizeof(*a));

    if (!a)
        return -EIO;
    memset(&q->file, 0, sizeof(q->file));
    q->file.fh = a->fh;
    q->file.flags = a->flags;
    q->file.lock_owner = a->lock_owner;
    return 0;
}

static int in_fsync(struct rest *in, struct channel_req *q)
{
    const struct wire_fsync_in *a = take(in, sizeof(*a));

    if (!a)
        return -EIO;
    memset(&q->file, 0, sizeof(q->file));
    q->file.fh = a->fh;
    q->file.datasync = (a->fsync_flags & WIRE_FSYNC_FDATASYNC) != 0;
    return 0;
}

static int in_lock(struct rest *in, struct channel_req *q)
{
    const struct wire_lk_in *a = take(in, sizeof(*a));
    struct msg_lock *l = &q->lock.lock;

    if (!a)
        return -EIO;
    memset(&q->lock, 0, sizeof(q->lock));
    q->lock.fh = a->fh;
    q->lock.wait = in->opcode == WIRE_SETLKW;
    l->owner = a->owner;
    l->type = a->lk.type == F_RDLCK   ? MSG_LOCK_READ
              : a->lk.type == F_WRLCK ? MSG_LOCK_WRITE
                                      : MSG_LOCK_UNLOCK;
    if (a->lk_flags & WIRE_LK_FLOCK) {
        l->kind = MSG_LOCK_FLOCK;
        l->end = MSG_LOCK_END;
        l->pid = q->pid;
        return 0;
    }
    l->kind = MSG_LOCK_RECORD;
    l->start = a->lk.start;
    l->end = a->lk.end;
    l->pid = a->lk.pid;
    return l->start > l->end || l->end > MSG_LOCK_END ? -EINVAL : 0;
}

/* ---- ranges ---- */

static int in_fallocate(struct rest *in, struct channel_req *q)
{
    const struct wire_fallocate_in *a = take(in, sizeof(*a));

    if (!a)
        return -EIO;
    memset(&q->range, 0, sizeof(q->range));
    q->range.fh = a->fh;
    q->range.offset = a->offset;
    q->range.len = a->length;
    q->range.mode = a->mode;
    return a->offset > INT64_MAX || a->length > INT64_MAX || !a->length ? -EINVAL : 0;
}

static int in_lseek(struct rest *in, struct channel_req *q)
{
    const struct wire_lseek_in *a = take(in, sizeof(*a));

    if (!a)
        return -EIO;
    memset(&q->range, 0, sizeof(q->range));
    q->range.fh = a->fh;
    q->range.offset = a->offset;
    q->range.hole = a->whence == SEEK_HOLE;
    if (a->whence != SEEK_HOLE && a->whence != SEEK_DATA)
        return -EINVAL;
    return a->offset > INT64_MAX ? -ENXIO : 0;
}

static int in_copy_file_range(struct rest *in, struct channel_req *q)
{
    const struct wire_copy_file_range_in *a = take(in, sizeof(*a));

    if (!a)
        return -EIO;
    q->transfer.fh = a->fh_in;
    q->transfer.offset = a->off_in;
    q->transfer.to_node = a->nodeid_out;
    q->transfer.to_fh = a->fh_out;
    q->transfer.to_offset = a->off_out;
    q->transfer.len = a->len;
    return a->off_in > INT64_MAX || a->off_out > INT64_MAX || a->flags ? -EINVAL : 0;
}

/* ---- extended attributes ---- */

static int in_getxattr(struct rest *in, struct channel_req *q)
{
    const struct wire_xattr_in *a = take(in, sizeof(*a));

    if (!a)
        return -EIO;
    memset(&q->xattr, 0, sizeof(q->xattr));
    q->xattr.size = MIN(a->size, MSG_XATTR_MAX);
    return in->opcode == WIRE_GETXATTR ? take_name(in, q, 0, &q->xattr.name) : 0;
}

static int in_setxattr(struct rest *in, struct channel_req *q)
{
    const struct wire_xattr_in *a = take(in, sizeof(*a));
    int rc;

    if (!a)
        return -EIO;
    memset(&q->xattr, 0, sizeof(q->xattr));
    rc = take_name(in, q, 0, &q->xattr.name);
    if (rc != 0)
        return rc;
    if (a->size > MSG_XATTR_MAX)
        return -E2BIG;
    q->xattr.size = a->size;
    q->xattr.flags = a->flags;
    q->xattr.value = take(in, a->size);
    return q->xattr.value ? 0 : -EIO;
}

/* ---- the table ---- */

static const struct {
    int (*fn)(struct rest *in, struct channel_req *q); /* NULL: no such operation */
    enum channel_op op;
} table[WIRE_OPCODES] = {
    [WIRE_LOOKUP] = {in_name, CHANNEL_LOOKUP},
    [WIRE_GETATTR] = {in_getattr, CHANNEL_GETATTR},
    [WIRE_SETATTR] = {in_setattr, CHANNEL_SETATTR},
    [WIRE_READLINK] = {in_nothing, CHANNEL_READLINK},
    [WIRE_SYMLINK] = {in_symlink, CHANNEL_SYMLINK},
    [WIRE_MKNOD] = {in_mknod, CHANNEL_MKNOD},
    [WIRE_MKDIR] = {in_mkdir, CHANNEL_MKDIR},
    [WIRE_UNLINK] = {in_name, CHANNEL_UNLINK},
    [WIRE_RMDIR] = {in_name, CHANNEL_RMDIR},
    [WIRE_RENAME] = {in_rename, CHANNEL_RENAME},
    [WIRE_LINK] = {in_link, CHANNEL_LINK},
    [WIRE_OPEN] = {in_open, CHANNEL_OPEN},
    [WIRE_READ] = {in_read, CHANNEL_READ},
    [WIRE_WRITE] = {in_write, CHANNEL_WRITE},
    [WIRE_STATFS] = {in_nothing, CHANNEL_STATFS},
    [WIRE_RELEASE] = {in_release, CHANNEL_RELEASE},
    [WIRE_FSYNC] = {in_fsync, CHANNEL_FSYNC},
    [WIRE_SETXATTR] = {in_setxattr, CHANNEL_SETXATTR},
    [WIRE_GETXATTR] = {in_getxattr, CHANNEL_GETXATTR},
    [WIRE_LISTXATTR] = {in_getxattr, CHANNEL_LISTXATTR},
    [WIRE_REMOVEXATTR] = {in_name, CHANNEL_REMOVEXATTR},
    [WIRE_FLUSH] = {in_flush, CHANNEL_FLUSH},
    [WIRE_OPENDIR] = {in_open, CHANNEL_OPENDIR},
    [WIRE_READDIR] = {in_readdir, CHANNEL_READDIR},
    [WIRE_RELEASEDIR] = {in_release, CHANNEL_RELEASEDIR},
    [WIRE_FSYNCDIR] = {in_fsync, CHANNEL_FSYNCDIR},
    [WIRE_GETLK] = {in_lock, CHANNEL_GETLK},
    [WIRE_SETLK] = {in_lock, CHANNEL_SETLK},
    [WIRE_SETLKW] = {in_lock, CHANNEL_SETLK},
    [WIRE_CREATE] = {in_create, CHANNEL_CREATE},
    [WIRE_TMPFILE] = {in_tmpfile, CHANNEL_TMPFILE},
    [WIRE_READDIRPLUS] = {in_readdir, CHANNEL_READDIR},
    [WIRE_FALLOCATE] = {in_fallocate, CHANNEL_FALLOCATE},
    [WIRE_LSEEK] = {in_lseek, CHANNEL_LSEEK},
    [WIRE_COPY_FILE_RANGE] = {in_copy_file_range, CHANNEL_COPY_FILE_RANGE},
    [WIRE_RENAME2] = {in_rename, CHANNEL_RENAME},
    [WIRE_STATX] = {in_getattr, CHANNEL_GETATTR},
};

enum channel_op wire_op(uint32_t opcode)
{
    return opcode < WIRE_OPCODES && table[opcode].fn ? table[opcode].op : CHANNEL_N_OPS;
}

int wire_decode(const struct wire_in_header *h, const void *body, size_t len, bool killpriv,
                struct channel_req *q)
{
    size_t extensions = 8u * (size_t)h->total_extlen;
    struct rest in = {.at = body, .opcode = h->opcode, .killpriv = killpriv};

    if (extensions > len || wire_op(h->opcode) == CHANNEL_N_OPS)
        return -EIO;
    in.len = len - extensions;
    return table[h->opcode].fn(&in, q);
}

int wire_ring_join(const struct wire_ring_header *h, uint8_t *payload, size_t payload_max,
                   const void **ret_body, size_t *ret_len)
{
    size_t op_len;

    if (h->payload_len > payload_max || h->in.len < sizeof(h->in) + h->payload_len)
        return -EIO;
    op_len = h->in.len - sizeof(h->in) - h->payload_len;
    if (op_len > WIRE_RING_OP_BYTES || op_len % 8)
        return -EIO;
    memcpy(payload - op_len, h->op_in, op_len);
    *ret_body = payload - op_len;
    *ret_len = op_len + h->payload_len;
    return 0;
}

const struct wire_forget_one *wire_forgets(const void *body, size_t len, size_t *ret_n)
{
    const struct wire_batch_forget_in *a = body;

    *ret_n = 0;
    if (len < sizeof(*a))
        return NULL;
    *ret_n = MIN(a->count, (len - sizeof(*a)) / sizeof(struct wire_forget_one));
    return (const void *)(a + 1);
}
