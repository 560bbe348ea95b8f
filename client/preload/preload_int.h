/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libaifs_preload.so: large reads of an unmodified program go to the servers through libaifs, past
 * the kernel and the mount's daemon.
 *
 * Every descriptor of the program stays what the kernel gave it, a file on the mount, opened by the
 * mount, with the kernel's offset. That is the whole trick: whatever is not served here (mmap,
 * exec, a descriptor passed on, stdio, writing, io_uring, system calls made by hand) is right by
 * itself, and serving can stop at any moment. What is served are reads of PRELOAD_BYTES and more
 * from regular files that are open for reading only: the data comes from libaifs by the file's
 * inode number, and the kernel's offset is moved past it. Any failure, a server that is away
 * included, hands the same call to the kernel.
 *
 *   preload.c   the functions put in front of the C library's
 *   exec.c      what replaces the program
 *   ours.c      descriptors that are libaifs' own
 *   engine.c    descriptors and the files behind them
 *   mounts.c    libaifs, and mounts by what they say of themselves
 *
 * Who a descriptor belongs to is asked of the kernel at each such read, without a question to the
 * mount's daemon (statx(2) with AT_STATX_DONT_SYNC): a number that was closed and used again behind
 * our back, by the C library or in a child that shares our memory, is noticed.
 */
#ifndef AIFS_CLIENT_PRELOAD_INT_H
#define AIFS_CLIENT_PRELOAD_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#define PRELOAD_BYTES                                                                              \
    (1024u * 1024)            /* below, the page cache and read-ahead of the kernel are quicker */
#define PRELOAD_FDS      4096 /* descriptors from here on are not served */
#define PRELOAD_MOUNTS   16
#define PRELOAD_TEXT_MAX 1100 /* of what a mount says of itself */

struct aifs;
struct aifs_file;

struct preload_lib { /* libaifs' functions, once a mount is there */
    int (*mount)(const char *source, const char *options, struct aifs **ret_fs);
    int (*unmount)(struct aifs *fs);
    struct aifs_file *(*open_inode)(struct aifs *fs, uint64_t ino, int flags);
    ssize_t (*pread)(struct aifs_file *f, void *buf, size_t len, off_t offset);
    int (*close)(struct aifs_file *f);
};
extern struct preload_lib preload_lib;

/* ---- mounts.c: under the engine's lock ---- */

/* The mount that says this of itself, "SOURCE\nOPTIONS"; NULL: there is none, or not now. */
struct aifs *preload_mount_of(const char *text);
bool preload_mounted(void); /* any */
/* By a thread of its own: a server that is away is waited for until then only. false: it goes on,
 * or is left to the session's lease. */
bool preload_mounts_end(const struct timespec *until);
void preload_mounts_forget(void); /* in a child: they are the parent's */

/* ---- engine.c, ours.c ---- */

/* Data of fd at offset; -1: not served, ask the kernel. Keeps errno. */
ssize_t preload_pread(int fd, void *buf, size_t len, off_t offset);
/* Data of fd at its position, which is moved. false: not served, and nothing has moved. What cannot
 * be served after that is read by the kernel's function. */
typedef ssize_t preload_pread_fn(int fd, void *buf, size_t len, off_t offset);
bool preload_read(int fd, const struct iovec *iov, int n_iov, preload_pread_fn *kernel,
                  ssize_t *ret_bytes);
void preload_forget(int fd); /* about to be closed or replaced */
void preload_end(void);      /* the process ends: sessions are given back */
void preload_go_on(void);    /* it does not: the exec failed */
bool preload_is_owner(void); /* not a child that shares our memory */
/* libaifs is at work: on this thread, or it is one of its own. */
bool preload_is_inside(void);
void preload_stay_inside(void);
bool preload_is_ours(int fd); /* libaifs' own: not for the program */
void preload_closing(int fd); /* by whoever; libaifs' number is free then */
void preload_none_is_ours(void);
int preload_close_range(unsigned first, unsigned last, int flags); /* but for those */
/* No number is libaifs' any more, until the next read is served. false: it is in use. */
bool preload_vacate(void);

#endif
