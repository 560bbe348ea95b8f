/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channel to the kernel's FUSE driver: decodes what the kernel asks, takes the replies, sends
 * notifications. File system operations are written against this header alone; behind it the
 * protocol is spoken by ourselves, over /dev/fuse (channel_dev.c) or an io_uring (channel_ring.c),
 * or by libfuse's low-level API (channel_libfuse.c). Node id = inode number.
 *
 * Threads: a channel belongs to one reactor. Requests are read, handlers run and replies are sent
 * on its thread; nothing is handed over. Only channel_notify_*() may be called from any thread:
 * they queue for a thread of their own, because the kernel may make a notification wait for locks
 * that an unanswered request holds.
 *
 * A request is owned by its handler from the call until the one channel_reply_*() that ends it;
 * exactly one must follow, at once or later, on the reactor. Everything it points to (names,
 * targets, values, data of a WRITE) is valid until then.
 */
#ifndef AIFS_CLIENT_FUSE_CHANNEL_H
#define AIFS_CLIENT_FUSE_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "common/base/compiler.h"
#include "common/rt/reactor.h"
#include "proto/msg.h"

#define CHANNEL_IO_MAX     (1u << 20) /* largest READ or WRITE the kernel sends */
#define CHANNEL_PRIV_BYTES 2048u      /* room for the handler's own state in each request */
#define CHANNEL_TEXT_BYTES 528u

#define CHANNEL_OPS(X)                                                                             \
    X(LOOKUP, lookup)                                                                              \
    X(GETATTR, getattr)                                                                            \
    X(SETATTR, setattr)                                                                            \
    X(READLINK, readlink)                                                                          \
    X(MKNOD, mknod)                                                                                \
    X(MKDIR, mkdir)                                                                                \
    X(UNLINK, unlink)                                                                              \
    X(RMDIR, rmdir)                                                                                \
    X(SYMLINK, symlink)                                                                            \
    X(RENAME, rename)                                                                              \
    X(LINK, link)                                                                                  \
    X(OPEN, open)                                                                                  \
    X(CREATE, create)                                                                              \
    X(TMPFILE, tmpfile)                                                                            \
    X(READ, read)                                                                                  \
    X(WRITE, write)                                                                                \
    X(FLUSH, flush)                                                                                \
    X(RELEASE, release)                                                                            \
    X(FSYNC, fsync)                                                                                \
    X(OPENDIR, opendir)                                                                            \
    X(READDIR, readdir)                                                                            \
    X(RELEASEDIR, releasedir)                                                                      \
    X(FSYNCDIR, fsyncdir)                                                                          \
    X(STATFS, statfs)                                                                              \
    X(GETXATTR, getxattr)                                                                          \
    X(SETXATTR, setxattr)                                                                          \
    X(LISTXATTR, listxattr)                                                                        \
    X(REMOVEXATTR, removexattr)                                                                    \
    X(GETLK, getlk)                                                                                \
    X(SETLK, setlk)                                                                                \
    X(FALLOCATE, fallocate)                                                                        \
    X(LSEEK, lseek)                                                                                \
    X(COPY_FILE_RANGE, copy_file_range)

#define CHANNEL_OP_ENUM(upper, lower) CHANNEL_##upper,
enum channel_op { CHANNEL_OPS(CHANNEL_OP_ENUM) CHANNEL_N_OPS };
#undef CHANNEL_OP_ENUM

struct channel;
struct channel_buf;
struct buf;

struct channel_req {
    struct channel *channel;
    void *user; /* of channel_options */
    enum channel_op op;
    uint64_t node;
    uint32_t uid, gid, pid;
    union {
        struct { /* LOOKUP UNLINK RMDIR REMOVEXATTR */
            const char *name;
        } name;
        struct { /* GETATTR, SETATTR: set is MSG_SET_*; fh only if has_fh */
            bool has_fh;
            bool statx; /* the kernel wants the birth time too: channel_reply_attr() knows */
            uint64_t fh;
            uint32_t set, mode, uid, gid;
            uint64_t size;
            struct msg_time atime, mtime;
        } attr;
        struct { /* MKNOD MKDIR SYMLINK CREATE TMPFILE: the type is in mode, the umask applied */
            const char *name;
            uint32_t mode, rdev;
            uint32_t masked; /* what the umask took: a default ACL counts instead of it */
            const char *target;
            uint32_t flags; /* CREATE TMPFILE (which has no name): as open(2) */
        } make;
        struct {
            const char *name, *new_name;
            uint64_t new_parent;
            uint32_t flags; /* RENAME_* */
        } rename;
        struct {
            uint64_t new_parent; /* node is the file */
            const char *new_name;
        } link_to;
        struct { /* OPEN OPENDIR */
            uint32_t flags;
            bool kill_priv;
        } open;
        struct { /* READ WRITE READDIR */
            uint64_t fh, offset;
            uint32_t len, flags;
            const void *data; /* WRITE: page aligned */
            bool kill_priv;   /* WRITE: clear set-id bits */
            bool from_cache;  /* WRITE: pages of a mapping, not a write(2) */
            bool plus;        /* READDIR with attributes */
        } io;
        struct { /* FLUSH RELEASE FSYNC RELEASEDIR FSYNCDIR */
            uint64_t fh;
            uint32_t flags;
            bool datasync;
            uint64_t lock_owner; /* FLUSH: the process that closes */
        } file;
        struct { /* GETLK SETLK; of a process or an open file, as owner says */
            uint64_t fh;
            struct msg_lock lock;
            bool wait;
        } lock;
        struct { /* FALLOCATE; LSEEK, for data or a hole */
            uint64_t fh, offset, len;
            uint32_t mode; /* as fallocate(2) */
            bool hole;
        } range;
        struct { /* COPY_FILE_RANGE, from node */
            uint64_t fh, offset, to_node, to_fh, to_offset, len;
        } transfer;
        struct { /* GETXATTR SETXATTR LISTXATTR; size 0 asks for the length needed */
            const char *name;
            const void *value;
            uint32_t size, flags;
        } xattr;
    };
    bool interrupted; /* the kernel has sent INTERRUPT for it */
    unsigned char priv[CHANNEL_PRIV_BYTES] __attribute__((aligned(16)));

    /* the channel's own */
    void *raw;       /* libfuse's request, or the ring's entry */
    uint64_t unique; /* the kernel's number of it */
    void (*interrupt)(struct channel_req *q);
    void *copy; /* of a target or value */
    char text[CHANNEL_TEXT_BYTES];
    struct channel_buf *buf;
    struct buf
        *room; /* WRITE: data is all of this one's memory; NULL: it is not. For the handler */
    uint64_t start_ns;
    struct list link; /* all unanswered requests, oldest first */
};

struct channel_ops {
    void (*op[CHANNEL_N_OPS])(struct channel_req *q);      /* NULL: ENOSYS */
    void (*forget)(void *user, uint64_t node, uint64_t n); /* may be NULL; no reply */
    /* The caller of an answered OPEN, OPENDIR or CREATE was killed: no RELEASE will come. */
    void (*open_lost)(void *user, enum channel_op op, uint64_t node, uint64_t fh);
    /* Memory for the data of the next large WRITE, CHANNEL_IO_MAX bytes, which the handler may keep
     * a reference of; NULL: there is none. room_back() takes the channel's. Both may be NULL */
    struct buf *(*room)(void *user);
    void (*room_back)(void *user, struct buf *room);
    void (*ready)(void *user); /* the kernel has said hello: the mount answers. May be NULL */
    void (*gone)(void *user);  /* unmounted or aborted: no more requests. May be NULL */
};

enum channel_kind {
    CHANNEL_KIND_AUTO, /* the own one; libfuse where that cannot be set up */
    CHANNEL_KIND_FUSE,
    CHANNEL_KIND_LIBFUSE,
    CHANNEL_KIND_IO_URING, /* the own one, with FUSE over io_uring where the kernel has it */
};

struct channel_options {
    struct reactor *reactor;
    enum channel_kind kind;
    const struct channel_ops *ops;
    void *user;
    const char *source, *mountpoint;
    const char *mount_flags;   /* more mount options for the kernel, comma separated; may be NULL */
    uint32_t read_ahead_bytes; /* of the mount; 0 = leave the kernel's default */
    uint32_t max_requests;     /* unanswered at once; 0 = 8192. At the bound reading pauses */
    bool posix_acl;
    bool debug;
};

/* Mounts. The first request can come as soon as the reactor runs. -errno; text of the cause in
 * err. */
int channel_open(const struct channel_options *options, struct channel **ret_channel, char *err,
                 size_t err_len) MUST_USE;
/* On the reactor's thread or after it has ended: answers what is unanswered with EIO, unmounts if
 * still mounted (lazily), stops the notification thread, frees. */
void channel_close(struct channel *c);
/* No more requests are served, and ops->gone is called, as if unmounted: each is answered with
 * ENOTCONN, since who waits for an answer holds locks of the kernel that a notification needs. */
void channel_refuse(struct channel *c);
/* What is mounted where it was mounted is its own mount, with nothing on top. */
bool channel_is_mounted(const struct channel *c);
unsigned channel_in_flight(const struct channel *c);
/* Calls fn for every unanswered request, oldest first, until it returns false. */
void channel_walk(struct channel *c, bool (*fn)(struct channel_req *q, uint64_t age_ns, void *arg),
                  void *arg);
const char *channel_op_name(enum channel_op op);

/* ---- replies; err is 0 or negative, any number of common/base/err.h ---- */

struct channel_entry {
    const struct msg_attr *attr;
    uint64_t entry_timeout_ns, attr_timeout_ns;
};

/* How the kernel treats an open file. */
#define CHANNEL_OPEN_DIRECT     0x1u /* no page cache; writes of several threads in parallel */
#define CHANNEL_OPEN_KEEP_CACHE 0x2u /* pages of the last open are still true */
#define CHANNEL_OPEN_NOFLUSH                                                                       \
    0x4u /* close needs no FLUSH; for files without record locks: it releases them */

/* For a handler that leaves the request unanswered: fn is called, at most once and perhaps at once,
 * when the kernel has sent INTERRUPT for it. fn may reply. */
void channel_on_interrupt(struct channel_req *q, void (*fn)(struct channel_req *q));
void channel_reply_err(struct channel_req *q, int err);
void channel_reply_entry(struct channel_req *q, const struct channel_entry *e);
/* A name that does not exist, and may be remembered so. */
void channel_reply_no_entry(struct channel_req *q, uint64_t entry_timeout_ns);
void channel_reply_attr(struct channel_req *q, const struct msg_attr *a, uint64_t timeout_ns);
void channel_reply_open(struct channel_req *q, uint64_t fh, uint32_t flags);
/* CREATE and TMPFILE */
void channel_reply_create(struct channel_req *q, const struct channel_entry *e, uint64_t fh,
                          uint32_t flags);
void channel_reply_write(struct channel_req *q, uint32_t len); /* and COPY_FILE_RANGE */
void channel_reply_offset(struct channel_req *q, uint64_t offset);
/* Memory for the answer of a READ (its len bytes, page aligned) from where the kernel takes it
 * without a copy of ours; NULL: there is none. Until the reply. */
void *channel_reply_room(struct channel_req *q);
/* sent (may be NULL) is called when iov is no longer needed, before q ends. */
void channel_reply_data(struct channel_req *q, const struct iovec *iov, int n,
                        void (*sent)(struct channel_req *q));
void channel_reply_readlink(struct channel_req *q, const void *target, uint32_t len);
/* GETLK: what is in the way; type MSG_LOCK_UNLOCK: nothing. */
void channel_reply_lock(struct channel_req *q, const struct msg_lock *l);
void channel_reply_statfs(struct channel_req *q, const struct msg_statfs_rep *s);
/* GETXATTR and LISTXATTR: length or value, as asked; -ERANGE when it does not fit. */
void channel_reply_xattr(struct channel_req *q, const void *value, uint32_t len);

/* READDIR: entries are added until one does not fit (false), then sent; all in one go, since the
 * space belongs to the channel. With e the entry carries attributes (READDIRPLUS); in a plus reply
 * an entry without e is known by name only. */
int channel_dir_begin(struct channel_req *q) MUST_USE; /* -ENOMEM */
bool channel_dir_add(struct channel_req *q, const char *name, uint64_t ino, uint32_t type,
                     uint64_t cookie, const struct channel_entry *e);
void channel_reply_dir(struct channel_req *q);

/* Supplementary groups of the caller from /proc, at most max; how many there are, or -errno. Its
 * effective capabilities come along, those of MSG_CAP_ALL. They only let through what the kernel
 * has allowed already: mounts have default_permissions. */
int channel_req_groups(const struct channel_req *q, uint32_t *groups, unsigned max,
                       uint32_t *ret_caps);
/* These, into *c, and over which ids, where it is in a user name space of its own: they are in the
 * memory that is returned (NULL: there is none), for the caller to free. */
uint32_t *channel_req_caps(const struct channel_req *q, uint32_t caps, struct msg_cred *c) MUST_USE;
/* The caller is about to end: SIGKILL waits for it, or a signal that it neither handles, blocks nor
 * ignores. True also when nothing can be known of it. */
bool channel_req_ends(const struct channel_req *q);
/* The caller has left its program: it closes what it had open, and no signal reaches it. False when
 * nothing can be known of it. */
bool channel_req_exits(const struct channel_req *q);

/* The kernel asks for attributes before it uses them again. At once, on the reactor: it takes no
 * lock that a request could hold. */
void channel_expire_attr(struct channel *c, uint64_t node);
/* The beginning of node's contents goes into the page cache. At once, on the reactor: nothing of it
 * may be asked for by a READ that has not been answered. Not before 6.12: kernels may
 * leave what was in that memory before behind the end of the file, where who maps it sees it. */
bool channel_can_store(const struct channel *c);
int channel_store(struct channel *c, uint64_t node, const struct iovec *data, int n);

/* ---- notifications, any thread. Bounded queue: -EAGAIN when full ---- */

/* done (may be NULL) runs on the reactor when the kernel has dropped what was named (err 0 or
 * -ENOENT: it knew nothing of it), or when the channel has gone. */
typedef void (*channel_notified_fn)(void *user, void *arg, int err);
/* Cached data of [offset, offset + len) and the attributes; len 0: to the end; offset < 0: only the
 * attributes. */
int channel_notify_inode(struct channel *c, uint64_t node, int64_t offset, int64_t len,
                         channel_notified_fn done, void *arg);
/* All names at once, where the kernel can (from 6.16): it asks again at their next use. At once,
 * and without waiting for anybody. */
bool channel_can_expire_names(const struct channel *c);
void channel_expire_names(struct channel *c);
int channel_notify_entry(struct channel *c, uint64_t parent, const char *name, uint32_t len,
                         channel_notified_fn done, void *arg);

#endif
