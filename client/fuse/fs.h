/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mounted file system: the client core behind the FUSE channel. Everything runs on one reactor.
 *
 * The owner (client/mount) fills in reactor, core, ready and gone, mounts the core (root), opens
 * the channel with fs_channel_ops, and after gone() unmounts the core.
 *
 * An operation (ops/, one file each) lives in the private space of its request: struct op.
 */
#ifndef AIFS_CLIENT_FUSE_FS_H
#define AIFS_CLIENT_FUSE_FS_H

#include "client/core/core.h"
#include "client/fuse/channel.h"
#include "common/stat/stat.h"

#define FS_GROUPS_INLINE  16
#define FS_DIR_PAGES      4 /* of an open directory: the one that is read from and those behind it */
#define FS_DIR_PAGES_DEEP 32 /* of all open directories; beyond it each asks for one in advance */
#define FS_XATTR_MOUNT    "user.aifs.mount" /* an extended attribute of every inode: mount_text */

/* A thread whose call by name has found its inode gone, and will try once more: raced.c. */
#define FS_RACED_MAX 16
struct fs_raced {
    uint32_t pid;
    unsigned looks;         /* look-ups that it may still make */
    int flags;              /* of an open */
    uint64_t until_ns;      /* 0: nobody */
    struct core_file *file; /* what its latest look-up has found: a file, or NULL, */
    uint64_t link;          /* or a symbolic link and where that leads, or 0 */
    struct msg_bytes target;
};

/* An answer to LOOKUP that the kernel may not have taken up yet: late.c. */
#define FS_TOLD_MAX 64
struct fs_told {
    uint64_t parent, hash, until_ns;
};

struct fs {
    struct reactor *reactor;
    struct core *core;
    struct channel *channel;
    uint64_t root;
    bool removes_by_groups; /* this user may remove names by a supplementary group only */
    uint32_t remover_uid;
    uint32_t setid_epoch; /* from 1; counts set-id bits set through this mount */
    unsigned dir_pages;   /* under way or held, of all open directories */
    struct list dirs;     /* those that hold pages, the longest unread first */
    struct list listing;  /* struct fs_dir.listing */
    struct reactor_timer listing_timer;
    uint64_t dir_bytes;            /* memory of what they hold */
    struct stat_counter dir_drops; /* so often one gave its pages back */
    struct list invals;            /* struct core_inval that found the notification queue full */
    struct reactor_timer inval_timer;
    struct fs_raced raced[FS_RACED_MAX];
    unsigned n_raced;
    struct reactor_timer raced_timer;
    struct stat_counter raced_calls;
    struct fs_told told[FS_TOLD_MAX]; /* a ring */
    unsigned told_next, n_late;
    struct list late; /* struct late_name: to be told to be old once more */
    bool late_all;    /* and all names, with the last of them */
    struct reactor_timer late_timer;
    struct list heeded; /* struct op whose caller got a signal, or may be ending */
    struct reactor_timer signal_timer;
    struct stat_counter signals;
    struct list giving; /* struct op, an OPEN whose contents are to go with it */
    struct reactor_timer give_timer;
    struct stat_counter gifts;
    bool ended; /* no more requests come */
    struct stat_histogram latency[CHANNEL_N_OPS];
    struct stat_counter errors;
    char mount_text[1024]; /* "SOURCE\nOPTIONS" of libaifs, to get at the same files without us */
    void (*ready)(struct fs *fs); /* the kernel has connected. May be NULL */
    void (*gone)(struct fs *fs);  /* unmounted: no more requests. May be NULL */
};

extern const struct channel_ops fs_channel_ops; /* user: the struct fs */

/* fills in the events of core_options; -errno. */
void fs_events(struct fs *fs, struct core_events *ret_events);
void fs_stats_register(struct fs *fs);
void fs_stats_unregister(struct fs *fs);

void fs_raced_init(struct fs *fs);
void fs_raced_lost(struct fs *fs, const struct channel_req *q); /* it ends with ESTALE */
/* Who asks has lost a race, and not opened anything since; NULL. */
struct fs_raced *fs_raced_find(struct fs *fs, const struct channel_req *q);
bool fs_raced_looks(struct fs *fs, const struct channel_req *q); /* so this LOOKUP is to open */
void fs_raced_hold(struct fs *fs, const struct channel_req *q, struct core_file *file);
void fs_raced_hold_link(struct fs *fs, const struct channel_req *q, uint64_t ino);
void fs_raced_over(struct fs *fs, const struct channel_req *q);
void fs_raced_end(struct fs *fs); /* lets go of all */

void fs_late_init(struct fs *fs);
void fs_late_end(struct fs *fs);
/* The kernel is about to be answered that it may believe this name, */
void fs_late_told(struct fs *fs, uint64_t parent, const char *name);
/* and has been told that this one is old. */
void fs_late_outdated(struct fs *fs, uint64_t parent, const char *name, uint32_t len);

void fs_signals_init(struct fs *fs);
void fs_signals_end(struct fs *fs); /* looks at no caller any more */

void fs_give_init(struct fs *fs);
void fs_give_end(struct fs *fs); /* what waits for contents goes on, as long as they take */

/* An open file or directory; fh of the channel is its address. */
struct fs_file {
    struct core_file *file;
    uint32_t setid_epoch; /* the inode had no set-id bits at this epoch of the file system; 0: not
                             asked */
};

struct op;

enum fs_page_state {
    FS_PAGE_NONE,
    FS_PAGE_ASKED,
    FS_PAGE_STALE, /* asked, and thrown away when it comes */
    FS_PAGE_HERE,
    FS_PAGE_END, /* was here, and all of it was given: behind it the directory ends */
};

struct fs_dir_page {
    struct core_req req; /* HERE: entries not yet given to the kernel */
    struct fs_dir *dir;
    enum fs_page_state state;
    bool plus;         /* with attributes */
    uint64_t cookie;   /* the kernel's: the page begins behind it */
    uint64_t asked_ns; /* how old what it says may be */
    struct op *op;     /* waits for it */
};

struct fs_dir {    /* an open directory: ops/readdir.c */
    struct fs *fs; /* this and what follows: of the request in hand */
    uint64_t ino;
    uint32_t uid, gid; /* of who has opened it, whoever reads */
    bool plus, begun;  /* begun: the first one, which tells nothing about the next */
    struct fs_dir_page pages[FS_DIR_PAGES]; /* a ring */
    unsigned current;                       /* the page that is read from */
    unsigned asked, held;                   /* pages under way, and the work; pages here */
    struct list link;                       /* fs.dirs */
    /* fs.listing: names went to the kernel with the last reply, and it may not have taken them up
     * yet. overtaken: it was told meanwhile that all names are old */
    struct list listing;
    bool overtaken;
    struct reactor_work work; /* fills a reply: */
    struct channel_req *reply;
    bool busy, closed;
    bool no_ahead; /* the caller's groups matter: nothing is asked for in advance */
    bool has_next;
    struct core_dirent next; /* read from the page, but did not fit */
    uint64_t next_cookie;    /* where the kernel will go on if it reads in order */
    uint64_t parent;
};

struct op {
    struct core_req req;
    struct fs *fs;
    struct channel_req *q;
    void (*run)(struct op *o);                /* calls core_*(); again with groups when refused */
    void (*finish)(struct op *o, int status); /* replies */
    bool *ended;
    bool has_groups;  /* and capabilities */
    uint32_t *groups; /* when more than fit below */
    uint32_t *ranges; /* of ids: channel_req_caps() */
    uint32_t groups_inline[FS_GROUPS_INLINE];
    struct iovec iov;               /* of a write */
    struct fs_file *changed;        /* op_start_change(): its file, */
    uint64_t changed_ino;           /* the inode of that, */
    void (*run_next)(struct op *o); /* and what comes after set-id bits */
    void (*finish_next)(struct op *o, int status);
    int flushed;              /* FLUSH: its outcome, while locks are released */
    struct core_req *waiting; /* what a signal cancels: req, or the page of a directory */
    struct list heeded;       /* fs.heeded */
    bool signalled;           /* its caller, while it waits */
    struct fs_file *given;    /* OPEN: give.c */
    uint32_t given_bytes, given_flags;
    uint64_t give_until_ns;
    struct list giving;
};

/*
 * Runs run() with the caller's identity; finish() follows exactly once. Supplementary groups and
 * capabilities are fetched only when the server has refused without them (the kernel has already
 * checked permissions), or when need_groups says that the outcome depends on them.
 */
void op_start(struct channel_req *q, void (*run)(struct op *o),
              void (*finish)(struct op *o, int status), bool need_groups);
/* From within finish(), instead of a reply: o goes on with another call. */
void op_go_on(struct op *o, void (*run)(struct op *o), void (*finish)(struct op *o, int status));
/* As op_start(), for what changes the contents of node, open as fh: before it, set-id bits go if
 * the caller is unprivileged (setid.c). */
void op_start_change(struct channel_req *q, uint64_t fh, uint64_t node, bool unprivileged,
                     void (*run)(struct op *o), void (*finish)(struct op *o, int status));
/* From within the finish() of an OPEN, instead of a reply: it comes with all of the contents, so
 * many bytes, when they are here soon (give.c). flags: channel_reply_open() */
void op_give(struct op *o, struct fs_file *f, uint32_t bytes, uint32_t flags);
/* From now on, while o waits: a signal cancels it when that is for its caller to decide (a wait for
 * a lock), or when that ends its caller, now or later; and a close by a caller that is ending. */
void op_heed(struct op *o);
void op_reply_entry(struct op *o); /* req.entry */
void op_fail(struct op *o, int status);
/* Of an operation that names an inode: one that is no more is ESTALE, upon which the kernel looks
 * its name up again (somebody else may have replaced it), not ENOENT, which would be final. */
void op_fail_inode(struct op *o, int status);
void op_reply_status(struct op *o, int status); /* a finish() for operations without a result */
/* The same, of a name that has gone: whose groups have allowed that. */
void op_reply_removed(struct op *o, int status);
void op_finish_create(struct op *o, int status); /* replies to CREATE and TMPFILE */
/* Ends o (before the reply, which frees it) and returns its request. */
struct channel_req *op_end(struct op *o, int status);

static inline struct fs *fs_of(const struct channel_req *q)
{
    return q->user;
}

static inline uint64_t fs_ino(const struct fs *fs, uint64_t node)
{
    return node == 1 ? fs->root : node; /* the kernel calls the root 1 */
}

static inline uint64_t fs_node(const struct fs *fs, uint64_t ino)
{
    return ino == fs->root ? 1 : ino;
}

static inline struct fs_file *fs_file_of(uint64_t fh)
{
    return (struct fs_file *)(uintptr_t)fh;
}

static inline struct fs_dir *fs_dir_of(uint64_t fh)
{
    return (struct fs_dir *)(uintptr_t)fh;
}

#define FS_OP_DECLARE(upper, lower) void op_##lower(struct channel_req *q);
CHANNEL_OPS(FS_OP_DECLARE)
#undef FS_OP_DECLARE

uint32_t fs_open_flags(const struct core_opened *opened, uint32_t flags);
void fs_dir_free(struct fs_dir *d);
void fs_dirs_init(struct fs *fs);
void fs_dirs_end(struct fs *fs);
void fs_dirs_overtaken(struct fs *fs); /* the kernel has just been told that all names are old */

#endif
