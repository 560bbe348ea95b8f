/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client: one mounted file system on one reactor. The FUSE daemon and libaifs are two skins
 * over this interface.
 *
 * Style: continuation passing. The caller owns a struct core_req, fills in cred, done and arg, and
 * calls core_<operation>(); done(q, status) runs exactly once, on the reactor, with 0 or a negative
 * error (common/base/err.h), and q->out is valid when status is 0. done() may run before
 * core_<operation>() has returned (cache hits do that), so the caller touches q after the call only
 * if its done() has not. Within done() q may be freed or used again, after
 * core_read_done()/core_readdir_done() where these are due. Arguments (names, groups, buffers) are
 * borrowed until done().
 *
 * Inodes are named by their number; it is never used again, so it serves as FUSE node id and as NFS
 * handle. The core keeps no count of lookups. Files that are open are struct core_file, owned by
 * the core from a successful core_open()/core_create_file() until core_release().
 *
 * Threads: every function is called on the reactor's thread (or before it runs); there are no locks
 * inside.
 *
 * Waiting: a hard mount (default) waits for servers for ever, a soft one fails a request with
 * -AIFS_ETIMEOUT when it is older than timeo. Either way core_cancel() gets a waiting request out.
 * A change that was sent and not yet answered goes on behind the caller's back, exactly once, until
 * the server has answered.
 */
#ifndef AIFS_CLIENT_CORE_CORE_H
#define AIFS_CLIENT_CORE_CORE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "client/core/readahead.h"
#include "common/base/compiler.h"
#include "common/base/list.h"
#include "common/base/text.h"
#include "common/crypto/crypto.h"
#include "common/net/net.h"
#include "common/rt/reactor.h"
#include "proto/msg.h"

struct buf;
struct core;
struct core_file;
struct core_inode;

/* An append of one request has one place; others wait for it, and so does the end of a lease. */
#define CORE_APPEND_MAX (16u << 20)
#define CORE_IO_MAX     (1u << 20) /* largest read or other write of one request */
#define CORE_IOV_MAX    20u        /* pieces of one read's result */
#define CORE_MDS_MAX    8u
#define CORE_SIZE_MAX   ((uint64_t)INT64_MAX) /* of a file */

/* ---- life ---- */

/* Toward the kernel: what somebody else has changed. With a NULL function there is nobody to
 * tell. */
struct core_inval {
    uint64_t ino;
    bool data;         /* pages too, not only attributes */
    struct list link;  /* free for the receiver's use */
    uint64_t private_; /* the core's */
};

struct core_events {
    /*
     * Drop what the kernel caches of v->ino. Call core_inval_done() on the reactor once the kernel
     * has done it, now or later: until then this client keeps the lease and serves reads and writes
     * of the inode. Must not block: the notification itself belongs on a thread of its own, because
     * it may wait for pages that this reactor has to deliver.
     */
    void (*inval_inode)(void *arg, struct core_inval *v);
    /*
     * A name changes: the kernel asks again before it uses it. name is borrowed until return. true:
     * core_inval_entry_done(token) follows on the reactor, once the kernel has done it; it may wait
     * for a change in the same directory that is under way. false: it could not be asked.
     */
    bool (*inval_entry)(void *arg, uint64_t parent, const char *name, uint32_t len, void *token);
    /* The attributes of an inode change. Done when it returns; waits for nobody. */
    void (*inval_attr)(void *arg, uint64_t ino);
    /* All cached names are void. Done when it returns; waits for nobody. */
    void (*inval_all)(void *arg);
    void *arg;
};

#define CORE_LEASED_NS (3600 * NS_PER_S) /* as long as the lease holds */

struct core_options {
    const char *mds[CORE_MDS_MAX]; /* "host:port" or "loop:name"; copied, like all strings here */
    unsigned n_mds;
    const char *subdir; /* root of the mount inside the file system; NULL or "/": all of it */
    struct crypto_key key;
    struct net_options net;
    const char *host;      /* for people; NULL: gethostname() */
    const char *mount;     /* mount point or program name, for people */
    const char *job;       /* job id; NULL: from the environment (SLURM_JOB_ID), or none */
    uint64_t memory_limit; /* bytes for cached data, dirty data and metadata together. 0: 1 GiB; at
                              least 32 MiB */
    unsigned memory_threads; /* 1: memory for streams of writes is touched by a thread of its own;
                                0: by the reactor */
    uint64_t warm_bytes; /* of it, for streams, at most an eighth: touched by core_create(), so that
                            the first of them does not wait for fresh memory; where that are 8 MiB
                            and more, 1 MiB for listings as well */
    /* What is kept under a lease of the server is believed while that holds; the kernel is told to
     * ask again (here, not at the server) after so long at the latest. */
    uint64_t attr_ns, entry_ns, negative_ns; /* attributes, names, names that do not exist */
    bool soft;            /* fail with -AIFS_ETIMEOUT after timeo_ns instead of waiting for ever */
    uint64_t timeo_ns;    /* 30 s */
    uint64_t hung_log_ns; /* a warning for requests older than this: 30 s */
    uint64_t readahead_bytes; /* upper bound per open file. 0: computed from stripes and memory */
    bool read_only;
    bool ahead; /* removals and renames may be answered ahead (core_req.ahead); the default */
    bool create_ahead;  /* so may creations; the default of a mount, not here */
    bool relatime;      /* reading moves atime, by the rule of proto/atime.h; else it never does */
    bool no_dir_time;   /* not that of directories */
    bool readers_cache; /* readers of files not opened with O_DIRECT keep what they have read: the
                           kernel's page cache */
    uint64_t straight_bytes; /* a core_req.direct write of so much may leave from the caller's
                                memory. 0: CORE_IO_MAX */
    unsigned connect_max;    /* mounting connects to the storage servers, if they are no more than
                                these; 0, the default: they are connected to when they are needed */
    struct core_events events;
};
void core_options_default(struct core_options *o);

struct core_req;
typedef void core_done_fn(struct core_req *q, int status);

int core_create(struct reactor *r, const struct core_options *o, struct core **ret_core) MUST_USE;
/* Completes when the session is open, the map is known and the root's attributes (out.entry) are
 * read. Wrong key, cluster, version or subdir fail at once; a server that does not answer is waited
 * for until core_cancel() or, when soft, timeo. */
void core_mount(struct core *c, struct core_req *q);
/* Of the connection to the metadata server, after a core_mount() that failed: its last error, and
 * for -ENOTSUP why (may be NULL). */
int core_mds_error(const struct core *c, const char **ret_why);
/* Writes back what is dirty, closes the session and all connections. status: the first write-back
 * error, or 0. With force: drops what is dirty and waits for nobody (after a core_mount() that
 * failed: for a second at most, to close the session); requests in flight end with -EIO. The only
 * calls allowed afterwards are core_release() and core_destroy(). */
void core_unmount(struct core *c, struct core_req *q, bool force);
void core_destroy(
    struct core *c); /* after core_unmount() has completed (or if core_mount() was never called) */

uint64_t core_root(const struct core *c); /* inode of the mount's root; after core_mount() */
/* The kernel cannot be told to forget all names at once: it believes none for longer than this. */
void core_limit_names(struct core *c, uint64_t ns);
void core_inval_done(struct core *c, struct core_inval *v);
void core_inval_entry_done(struct core *c, void *token);

/* ---- requests ---- */

struct core_entry { /* attributes, and how long the kernel may believe them */
    uint64_t ino;   /* 0: the name does not exist (status 0 only for a lookup with want_negative) */
    struct msg_attr attr;
    uint64_t attr_valid_ns, entry_valid_ns;
};

struct core_opened {
    struct core_file *file;
    enum msg_lease lease; /* NONE: the kernel should not cache pages (direct I/O) */
    bool keep_cache;      /* pages cached at an earlier open are still right */
    bool attr_changed;    /* attributes differ from those the last core_entry told */
    bool locks_seen;      /* record locks are used on it here: the kernel should send FLUSH */
    bool fresh;           /* nothing of it was cached before, and its attributes are as told */
    uint32_t whole; /* so many bytes, all of it, are asked for already, and the kernel, which has
                       none, may be given them with the answer: core_give_whole(); or 0 */
};

struct core_dirent {
    uint64_t ino, cookie;
    uint8_t type; /* DT_* */
    uint8_t name_len;
    const char *name; /* not NUL-terminated; in the page */
    bool has_entry;
    /* The kernel has been told all of it by an earlier listing, and believes it still. Telling it
     * again would have it forget what it has found out since: access lists. */
    bool known;
    struct core_entry entry; /* with plus */
};

struct core_req {
    /* in */
    struct msg_cred cred;
    core_done_fn *done;
    void *arg;
    bool in_place;      /* write: at its offset through O_APPEND files too: pages of a mapping */
    bool at_end;        /* write: as through O_APPEND files; else it depends on how it was opened */
    bool direct;        /* the caller keeps many requests going itself. Read into dst: what is not
                         * cached comes straight into its memory and nothing is read ahead. Write: may
                         * leave from its memory, and end when it is durable (straight.c) */
    uint32_t masked;    /* create, mkdir, mknod: what the umask took from mode; a default ACL of the
                           directory counts instead of the umask */
    uint32_t pid;       /* of who asks, to be told when it waits; 0: not known */
    bool want_negative; /* lookup: a name that does not exist is status 0 with out.entry.ino 0 */
    bool ahead; /* unlink, create, mknod, rename: may be over before the server has it, where nobody
                   can tell the difference: behind.h. It is durable when core_fsync_ino() of the
                   directory, or core_unmount(), has said so */

    /* out */
    struct core_entry entry; /* lookup, getattr, setattr, create, mkdir, mknod, symlink, link */
    union {
        struct core_opened opened; /* open, create */
        struct {
            struct iovec iov[CORE_IOV_MAX];
            unsigned n_iov;
            uint32_t bytes; /* less than asked: end of file */
        } read;
        struct {
            uint32_t bytes;
            uint64_t offset; /* where they went (append) */
        } write;
        uint64_t offset;        /* seek */
        uint64_t copied;        /* copy */
        struct msg_bytes bytes; /* readlink, getxattr, listxattr: valid within done() only */
        struct msg_statfs_rep statfs;
        struct msg_lock lock; /* lock_test: in the way; MSG_LOCK_UNLOCK: nothing is */
        struct {
            uint64_t parent; /* inode of ".." */
            bool eof;        /* nothing after this page */
        } dir;
    } out;

    /* private: set up by the core when an operation starts, nothing to initialise */
    struct {
        struct list link; /* in flight */
        struct core *core;
        const char *what;  /* "read" */
        const char *state; /* "waits for oss2 OSS_READ" */
        uint64_t started_ns, ino;
        void (*cancel)(struct core_req *q, int status);
        void *op; /* what works for it */
        bool hung_logged, cancelled;
        uint64_t cancel_ns;
        struct list wait;                   /* a queue it waits in */
        void (*resume)(struct core_req *q); /* called when the wait is over */
        struct core_file *file;
        struct core_inode *inode;
        uint64_t offset;
        uint32_t len, progress, flags;
        uint32_t errors_before, gave_up; /* core_inode.error_seq, .gave_up when it began */
        unsigned pending, stale;         /* how often it was made again with newer attributes */
        int error;
        const struct iovec *iov;
        unsigned n_iov;
        struct buf *room; /* all of iov, and may be kept; NULL: it may not */
        void (*end)(struct core_req *q,
                    int status); /* undoes what the operation holds, then ends q */
        struct buf *pins[CORE_IOV_MAX];
        unsigned n_pins;
        void *dst;
        bool entered; /* counted in inode.active */
        uint64_t n1, n2, list_from;
        struct readahead_plan ahead; /* a read's: what is still to be fetched in advance */
        uint64_t flush[16];          /* struct flush_wait, or struct inval_wait */
        uint64_t timed_ns;           /* what the time-out of a soft mount counts from */
        bool patient;                /* waits for no server, maybe for ever, and ends at once */
        bool lock_woken, lock_held;
        uint64_t lock_wait; /* its name for the server; 0: does not wait */
        struct msg_lock lock;
        struct lock_holder *op_holder;
    } p;
};

/* Ask for a waiting request to end. While all servers are up it is given another second to finish
 * by itself (signals that do not kill interrupt too), else it ends now, with -EINTR. No-op for a
 * request that is done. */
void core_cancel(struct core_req *q);
void core_give_up(struct core_req *q); /* the same, but it ends now in any case where it waits */

/* ---- name space ---- */

void core_lookup(struct core *c, struct core_req *q, uint64_t parent, const char *name,
                 uint32_t len);
void core_getattr(struct core *c, struct core_req *q, uint64_t ino);
/* set->ino, set, mode, uid, gid, size, times; cred and open_id are filled in from q and file (NULL,
 * or the open file of ftruncate(2)). */
void core_setattr(struct core *c, struct core_req *q, const struct msg_setattr_req *set,
                  struct core_file *file);
/* Creates (or with MSG_CREATE_EXCL unset opens) and leaves the file open: out.opened and entry.
 * flags: open(2)'s; with O_TMPFILE the file has no name, and name is any that could be one. stripe:
 * NULL or what was asked. */
void core_create_file(struct core *c, struct core_req *q, uint64_t parent, const char *name,
                      uint32_t len, uint32_t mode, int flags, const struct msg_stripe *stripe);
void core_mkdir(struct core *c, struct core_req *q, uint64_t parent, const char *name, uint32_t len,
                uint32_t mode, const struct msg_stripe *stripe);
void core_mknod(struct core *c, struct core_req *q, uint64_t parent, const char *name, uint32_t len,
                uint32_t mode, uint32_t rdev, const struct msg_stripe *stripe);
void core_symlink(struct core *c, struct core_req *q, uint64_t parent, const char *name,
                  uint32_t len, const char *target, uint32_t target_len);
void core_unlink(struct core *c, struct core_req *q, uint64_t parent, const char *name,
                 uint32_t len);
void core_rmdir(struct core *c, struct core_req *q, uint64_t parent, const char *name,
                uint32_t len);
void core_rename(struct core *c, struct core_req *q, uint64_t parent, const char *name,
                 uint32_t len, uint64_t new_parent, const char *new_name, uint32_t new_len,
                 uint32_t flags);
void core_link(struct core *c, struct core_req *q, uint64_t ino, uint64_t new_parent,
               const char *name, uint32_t len);
void core_readlink(struct core *c, struct core_req *q, uint64_t ino);
/* The target of a symbolic link as a look-up has brought it, whether the link is there still or
 * not; none when it is not known here. Valid until the core runs. */
struct msg_bytes core_link_target(const struct core *c, uint64_t ino);
void core_statfs(struct core *c, struct core_req *q, uint64_t ino);
void core_getxattr(struct core *c, struct core_req *q, uint64_t ino, const char *name,
                   uint32_t len);
void core_setxattr(struct core *c, struct core_req *q, uint64_t ino, const char *name, uint32_t len,
                   const void *value, uint32_t value_len, uint32_t flags);
void core_listxattr(struct core *c, struct core_req *q, uint64_t ino);
void core_removexattr(struct core *c, struct core_req *q, uint64_t ino, const char *name,
                      uint32_t len);
/* The kernel (or the caller) forgets an inode: its cached state may go. */
void core_forget(struct core *c, uint64_t ino);

/*
 * One page of a directory after cookie (0: from the start), of at most max_bytes on the wire. "."
 * and ".." are not in it: the caller makes them (out.dir.parent). There is nothing to open first.
 * core_dirent_next() walks the page: 1 entry, 0 end, or a negative error for a malformed page; call
 * core_readdir_done() when finished with the page (also within done()).
 */
void core_readdir(struct core *c, struct core_req *q, uint64_t ino, uint64_t cookie,
                  uint32_t max_bytes, bool plus);
int core_dirent_next(struct core_req *q, struct core_dirent *ret_entry) MUST_USE;
/* An entry of core_dirent_next() goes to the kernel only now: as what is known by now, or as a name
 * alone. Its page is still there. */
void core_dirent_again(const struct core_req *q, struct core_dirent *e);
uint64_t core_readdir_last(const struct core_req *q); /* the cookie behind the page; 0: none */
void core_readdir_done(struct core_req *q);
uint32_t core_readdir_bytes(const struct core_req *q); /* memory that the page takes until then */
/* How much of it pages that nobody waits for may take together: whoever keeps more lets go of some
 * and asks for them again. */
uint64_t core_readdir_memory(const struct core *c);

/* ---- files ---- */

void core_open(struct core *c, struct core_req *q, uint64_t ino,
               int flags); /* O_ACCMODE, O_TRUNC, O_APPEND, O_SYNC, O_DSYNC */
/* What parent has under name, in one step: nobody can replace it in between. -ENOENT; -EISDIR,
 * -EEXIST: it is no file; -EOPNOTSUPP: the server does not know how. out.opened and entry. */
void core_open_name(struct core *c, struct core_req *q, uint64_t parent, const char *name,
                    uint32_t len, int flags);
/* close(2): writes back, reports the size; returns errors of earlier writes, once per open file. */
void core_flush(struct core *c, struct core_req *q, struct core_file *f);
void core_fsync(struct core *c, struct core_req *q, struct core_file *f,
                bool data_only); /* flush + durable */
/* Directories: what was removed ahead has been executed, and an error of that is told, once. */
void core_fsync_ino(struct core *c, struct core_req *q, uint64_t ino);
/* The kernel is to be given what was just read of f, all of it, in advance: may it? Nobody else has
 * the inode open here, and it is under a lease, so it is right until that is recalled. */
bool core_give_whole(struct core_file *f);
/* The last reference is gone, and with it the locks set through f. Returns at once: the close goes
 * to the server in a batch. Requests on f must be done. */
void core_release(struct core *c, struct core_file *f);
/*
 * Sets a lock through f, or releases it (type MSG_LOCK_UNLOCK). -EAGAIN: it cannot be had now; with
 * wait that is waited for, as long as it takes, and core_cancel() ends it at once with -EINTR.
 * -EDEADLK, -ENOLCK. owner is the caller's: a process, or an open file; unique in this client.
 */
void core_lock(struct core *c, struct core_req *q, struct core_file *f, const struct msg_lock *l,
               bool wait);
void core_lock_test(struct core *c, struct core_req *q, struct core_file *f,
                    const struct msg_lock *l); /* out.lock */
/* Has owner (a process) record locks on the inode of f? Then its close must release them. */
bool core_owns_locks(const struct core_file *f, uint64_t owner);
void core_unlock_owner(struct core *c, struct core_req *q, struct core_file *f, uint64_t owner);
uint64_t core_file_ino(const struct core_file *f);
int core_file_flags(const struct core_file *f);

/*
 * out.read.iov points into the cache or into transport buffers and stays valid until
 * core_read_done(q) (which may be called after, not within, done()); call that exactly once after a
 * successful read. len up to CORE_IO_MAX. With dst (len bytes, or NULL) the data is wanted there:
 * out.read.iov then is dst; whole blocks go from the network straight into it.
 */
void core_read(struct core *c, struct core_req *q, struct core_file *f, uint64_t offset,
               uint32_t len, void *dst);
void core_read_done(struct core_req *q);
enum core_advice {
    CORE_ADVICE_NORMAL,
    CORE_ADVICE_SEQUENTIAL,
    CORE_ADVICE_RANDOM,
    CORE_ADVICE_WILLNEED, /* fetches it, as far as read-ahead may; at most one window */
    CORE_ADVICE_DONTNEED, /* forgets whole blocks that are clean */
};
/* How f will be read; the first three are of the file, the others of a range (len 0: to the end).
 * At once, and never an error. */
void core_advise(struct core_file *f, uint64_t offset, uint64_t len, enum core_advice advice);
/* Bytes are copied once out of iov (or sent from it, when writing through). O_APPEND files ignore
 * offset unless in_place, others with at_end. O_SYNC/O_DSYNC are honoured. Short only with an error
 * remembered for the next. */
void core_write(struct core *c, struct core_req *q, struct core_file *f, uint64_t offset,
                const struct iovec *iov, unsigned n_iov, uint32_t len);
/* The same of one piece. With room (or NULL) it is all of that buffer, which came from
 * core_write_room() and is not written to any more: the core keeps a reference instead of copying,
 * where it is a whole block. */
void core_write_from(struct core *c, struct core_req *q, struct core_file *f, uint64_t offset,
                     const struct iovec *iov, struct buf *room);
/* Memory for 1 MiB that is about to be written, to be given back when the write is over; NULL: none
 * that is free, or as many are out as may be. */
struct buf *core_write_room(struct core *c);
void core_write_room_put(struct core *c, struct buf *room);

/*
 * As fallocate(2): mode 0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE | KEEP_SIZE,
 * FALLOC_FL_ZERO_RANGE with or without KEEP_SIZE; others -EOPNOTSUPP. Nobody of this client reads
 * or writes the file meanwhile. What becomes zeros is durable when it ends, but for small files.
 * Space is not reserved: -ENOSPC when the targets have less free than the file would grow.
 */
void core_fallocate(struct core *c, struct core_req *q, struct core_file *f, int mode,
                    uint64_t offset, uint64_t len);
/* out.offset: the first byte from offset on that is data, or (hole) that is none; the end of the
 * file is a hole. -ENXIO: offset is not before that end, or no data follows. */
void core_seek(struct core *c, struct core_req *q, struct core_file *f, uint64_t offset, bool hole);
/* As copy_file_range(2), through this client: out.copied may be less than len, 0 at the end of
 * from. Within one file ranges must not overlap: -EINVAL. */
void core_copy(struct core *c, struct core_req *q, struct core_file *from, uint64_t from_offset,
               struct core_file *to, uint64_t to_offset, uint64_t len);

/* ---- observation ---- */

struct core_stats {
    uint64_t requests, reads, writes, read_bytes, write_bytes;
    uint64_t read_hits, read_misses, readahead_bytes;
    uint64_t mds_calls, mds_batched, oss_calls, oss_shared, retries, replays, recalls,
        invalidations, glimpses, checksum_errors, sessions_lost, hung;
    uint64_t ahead_bytes; /* read ahead, and nobody has asked for them yet */
    uint64_t memory_limit, memory_used, dirty_bytes, uncommitted_bytes;
    uint64_t inodes, names, open_files, in_flight, memory_waits;
    uint64_t paced_writes;    /* how often one waited for memory under way instead of taking more */
    uint64_t straight_writes; /* large ones that left from the caller's memory */
    uint64_t kept_writes;     /* blocks that are the memory they were written from */
    uint64_t prelists, prereads; /* what came in advance: pages of directories, small files */
    uint64_t relists;            /* listings answered by the page that was listed last */
    uint64_t removed_ahead;      /* removals answered before the server had them */
    uint64_t removals_under_way; /* of these: the server has not answered yet */
    uint64_t removal_waits;      /* how often something waited for such an answer */
    uint64_t removals_refused;   /* the server did not execute them after all */
    uint64_t renamed_ahead, renames_refused; /* the same of renames within a directory */
    uint64_t created_ahead, creations_under_way, creations_refused; /* the same of files made */
    uint64_t created_large; /* not ahead, since those before it became large */
    uint64_t set_ahead;     /* changes of attributes that go along with a creation, or behind it */
    uint64_t sets_refused;
};
bool core_holds_writes(const struct core *c); /* not yet durable */
/* Of writes that were sent, or wait for a server: not among the dirty ones any more. */
uint64_t core_bytes_under_way(const struct core *c);
/* A size, a time, small contents or a removal answered ahead, which the metadata server does not
 * have yet, or data that is not durable. */
bool core_holds_changes(const struct core *c);
bool core_moves_data(const struct core *c); /* reads, or what is not yet durable */
bool core_is_ahead(const struct core *c);   /* the server has not executed all that was answered */
void core_get_stats(const struct core *c, struct core_stats *ret_stats);
/* A line per request in flight: operation, inode, age, state; then calls to servers. */
void core_print_requests(struct core *c, struct strbuf *out);

#endif
