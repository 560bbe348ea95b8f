/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libaifs inside: a reactor and a thread for it per mount; a blocking call is a struct lib_call on
 * the caller's stack that is posted to it and waited for. Who waits for little turns the reactor
 * meanwhile.
 *
 *   mount.c   options, the thread, mounting and unmounting
 *   drive.c   whose thread turns the reactor
 *   fork.c    what a fork() does to it, and how a child gets a mount of its own
 *   call.c    posting and waiting; errors to errno
 *   walk.c    paths to inodes
 *   file.c    open, close, sync; lock.c locks; io.c reads and writes; queue.c asynchronous ones;
 *             buffer.c memory for them
 *   range.c   fallocate, seeking data and holes, copying ranges
 *   batch.c   many calls on names at once
 *   name.c    calls on names; attr.c attributes, xattr; dir.c directory streams
 */
#ifndef AIFS_CLIENT_LIB_LIB_INT_H
#define AIFS_CLIENT_LIB_LIB_INT_H

#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "client/core/core.h"
#include "client/lib/aifs.h"
#include "common/base/err.h"
#include "common/base/list.h"
#include "common/base/mem.h"

#define LIB_PATH_MAX  4096u
#define LIB_DEPTH_MAX 512u
#define LIB_LINKS_MAX 40u

struct lib_drive { /* drive.c */
    pthread_mutex_t lock;
    pthread_cond_t call;     /* of the own thread */
    _Atomic uint64_t flying; /* bytes of asynchronous transfers */
    int bell;                /* wakes the own thread out of poll(2): an eventfd */
    int cancel_state;        /* the driver's, to be restored */
    /* under the lock */
    pthread_t driver;
    bool driven;         /* a thread turns the reactor */
    bool own;            /* the mount's own one does */
    bool called;         /* it is to; nobody else begins */
    bool watching, rung; /* it is in poll(2); it will look */
    bool told;           /* it is to be told when the driver leaves */
    bool stopping, shy;  /* shy: nobody else drives, for good */
    unsigned n_waiting;  /* threads that wait for what the own one does */
    uint64_t drives;     /* begun by others */
    uint64_t seen;       /* of which the own thread knows */
    uint64_t crowded_ns; /* when several last waited at a time; 0: never */
};

struct aifs {
    struct reactor *reactor;
    struct core *core;
    pthread_t thread;
    struct lib_drive drive;
    char *source, *options; /* to mount again in a child */
    /* Of forks: another one than lib_generation() means that we are in a child and all above is the
     * parent's. */
    _Atomic unsigned generation;
    pthread_mutex_t reviving;
    struct list link; /* of all mounts of this process */
    bool live;        /* has a reactor and its thread; under fork.c's lock */
    struct reactor_work park;
    sem_t parked, resume;
    bool is_parked; /* of the fork under way */
    struct lib_buffers *buffers;
    struct msg_cred cred;
    uint32_t pid;
    uint32_t *groups;
    uint64_t mount_timeout_ns, umount_timeout_ns; /* the latter 0: none */
};

struct aifs_file {
    struct aifs *fs;
    struct core_file *file; /* of the mount of this generation */
    _Atomic unsigned generation;
    uint64_t ino;
    int flags; /* as opened */
};

/* A path on its way to an inode; on the reactor. */
struct lib_walk {
    struct aifs *fs;
    struct core_req q;
    void (*done)(struct lib_walk *w, int status);
    unsigned flags; /* LIB_FOLLOW and so on */
    unsigned links, depth;
    uint32_t dots; /* how long the latest of "." and ".." was; 0: none, it is the root */
    uint64_t dirs[LIB_DEPTH_MAX]; /* from the root to where we are */
    size_t at;
    char path[LIB_PATH_MAX + 1];
    char target[LIB_PATH_MAX + 1];
    /* result: the entry, or with LIB_PARENT the directory and the last name */
    struct core_entry entry;
    uint64_t parent;
    const char *name;
    uint32_t name_len;
};

/* A symbolic link at the end is followed. With LIB_CREATE it may lead to a name that is not there:
 * entry.ino is 0 then, parent and name tell it. */
#define LIB_FOLLOW 0x1u
#define LIB_PARENT 0x2u /* stop at the last name, */
/* which is to be (and each decides what a slash behind it means, and "." and ".."): */
#define LIB_UNLINK 0x4u
#define LIB_RMDIR  0x8u
#define LIB_MKDIR  0x10u
#define LIB_NEW    0x20u  /* made, and is no directory */
#define LIB_CREATE 0x40u  /* made by opening, if it is not there */
#define LIB_TO     0x80u  /* where something is renamed to */
#define LIB_DIR    0x100u /* a directory, slash or not */

#define LIB_MKDIR_BITS 01777u /* of a mode, as mkdir(2) takes them */

struct lib_call {
    struct reactor_work work;
    struct aifs *fs;
    struct aifs_file *file; /* the call is about it; or NULL */
    struct core_req q;
    void (*begin)(struct lib_call *c); /* on the reactor; ends in lib_call_done() */
    void (*then)(struct lib_call *c);  /* after a walk */
    void (*act)(struct lib_call *c);   /* after the second */
    const char *path;
    unsigned walk_flags;
    struct lib_walk *walk, *walk2;
    const void *arg;
    void *out;
    size_t out_size;
    uint64_t n1, n2;
    int status;
    bool large; /* many bytes: the mount's own thread moves them */
    sem_t sem;
};

/* ---- call.c ---- */

void lib_call_init(struct lib_call *c, struct aifs *fs, void (*begin)(struct lib_call *c));
void lib_file_call_init(struct lib_call *c, struct aifs_file *f, void (*begin)(struct lib_call *c));
int lib_call_run(struct lib_call *c); /* posts and waits: 0 or negative error */
int lib_call_begin(
    struct lib_call *c); /* the same, of a mount that is not usable yet, or no more */
void lib_call_done(struct lib_call *c, int status);
void lib_core_done(struct core_req *q, int status); /* a core_done_fn for c->q: ends the call */
int lib_errno(int err);                             /* 0 → 0; else sets errno, returns -1 */
/* A call that walks path first; then() runs on the reactor with c->walk. */
int lib_path_call(struct aifs *fs, const char *path, unsigned walk_flags,
                  void (*then)(struct lib_call *c), struct lib_call *c);
void lib_req(struct aifs *fs, struct core_req *q, core_done_fn *done, void *arg);

/* ---- drive.c ---- */

int lib_drive_init(struct aifs *fs) MUST_USE; /* before its thread starts; again in a child */
void lib_drive_fini(struct aifs *fs);
void lib_drive_abandon(struct aifs *fs); /* in a child: the descriptor is the parent's */
void *lib_drive_main(void *fs);          /* the own thread, until lib_drive_stop() */
void lib_drive_stop(struct aifs *fs);
void lib_drive_shy(struct aifs *fs); /* from now on only the own thread drives */
/* Whoever turns the reactor runs it; any thread. */
void lib_post(struct aifs *fs, struct reactor_work *w);
/*
 * The caller drives: turns, then end. Small things only, and no waiting for anything else in
 * between. False: another does; wait for what it brings between lib_wait_begin() and
 * lib_wait_end(). The driver posts with reactor_post().
 */
bool lib_drive_begin(struct aifs *fs) MUST_USE;
void lib_drive_turn(struct aifs *fs, uint64_t max_wait_ns);
void lib_drive_end(struct aifs *fs);
uint64_t lib_drive_spin_for_ns(void *fs); /* for the reactor */
bool lib_drive_is_mine(struct aifs *fs);  /* in a signal handler, or a library that it calls */
/* Who waits is not cancelled: what it waits for is on its stack, or it holds a lock. Returns what
 * the end puts back. */
int lib_wait_begin(struct aifs *fs) MUST_USE;
void lib_wait_end(struct aifs *fs, int cancel_state);

/* ---- fork.c ---- */

unsigned lib_generation(void);
/* fs (f) belongs to this process: in a child it is mounted (opened) again when first used. 0, or
 * why that does not work: -ENOTCONN, or the error of opening. */
int lib_usable(struct aifs *fs);
int lib_file_usable(struct aifs_file *f);
bool lib_is_parents(const struct aifs *fs);
void lib_known(struct aifs *fs); /* forks have to do with it, until lib_forget() */
void lib_forget(struct aifs *fs);
struct lib_fork_hold { /* what a release puts back */
    sigset_t signals;
    int cancel_state;
};
/* Around the making and the end of a reactor and its thread, and of fs->live: forks wait. No
 * signals meanwhile, whose handlers might fork and wait for themselves; nor is the thread
 * cancelled, which would leave all of them waiting. */
void lib_fork_hold(struct lib_fork_hold *ret_hold);
void lib_fork_release(const struct lib_fork_hold *hold);

/* ---- mount.c ---- */

int lib_mount_again(struct aifs *fs); /* in a child, when the parent's is not to be touched */

/* ---- buffer.c ---- */

int lib_buffers_create(uint64_t limit_bytes, struct lib_buffers **ret_buffers) MUST_USE;
void lib_buffers_destroy(struct lib_buffers *b);
void lib_buffers_after_fork(struct lib_buffers *b); /* in the child: the copies are its own */

/* ---- file.c ---- */

int lib_file_reopen(struct aifs_file *f);

/* ---- walk.c ---- */

struct lib_walk *lib_walk_alloc(struct aifs *fs);
/* The next way to go. -EFAULT, -ENOENT, -ENAMETOOLONG. */
int lib_walk_set(struct lib_walk *w, const char *path, unsigned flags);
struct lib_walk *lib_walk_new(struct aifs *fs, const char *path, unsigned flags, int *ret_err);
void lib_walk_start(struct lib_walk *w, void (*done)(struct lib_walk *w, int status));

/* ---- attr.c ---- */

void lib_stat_fill(struct stat *st, const struct msg_attr *a);

/* ---- io.c ---- */

#define LIB_PIECES_MAX 32u

struct lib_io;
struct lib_piece {
    struct core_req q;
    struct lib_io *io;
    uint64_t offset; /* in the request */
    uint32_t len;
    struct iovec iov;
    bool used;
};

/* One read or write of any length, in pieces. */
struct lib_io {
    struct aifs_file *file;
    int op;
    uint8_t *buf;
    uint64_t offset, len;
    uint64_t next, limit; /* next byte to start; end of what there is */
    unsigned pending, n_pieces;
    int error;
    bool starting, many; /* many: one of a batch */
    void (*over)(struct lib_io *io);
    uint64_t cookie; /* of whom it works for */
    struct list link;
    struct aifs_io *request;
    struct aifs_queue *queue;
    struct lib_piece pieces[];
};

/* Of a read or write, as the system calls say: -EBADF, -EINVAL, -EFAULT. */
int lib_io_check(const struct aifs_file *f, int op, const void *buf, size_t len, off_t offset);
struct lib_io *lib_io_new(struct aifs_file *f, int op, void *buf, size_t len, uint64_t offset);
void lib_io_start(struct lib_io *io);           /* on the reactor */
ssize_t lib_io_result(const struct lib_io *io); /* bytes or negative error */

#endif
