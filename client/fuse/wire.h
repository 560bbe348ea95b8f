/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of the kernel's FUSE protocol, version 7, as far as aifs speaks it: little more than
 * <linux/fuse.h>, which is as old as the distribution, while the kernel is not. Everything is in
 * the machine's own byte order. A message is a header and what its operation needs; names end with
 * a NUL. Source: include/uapi/linux/fuse.h of Linux 6.18.
 */
#ifndef AIFS_CLIENT_FUSE_WIRE_H
#define AIFS_CLIENT_FUSE_WIRE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_MAJOR           7u
#define WIRE_MINOR           39u /* what is described here */
#define WIRE_MINOR_OLDEST    31u
#define WIRE_MINOR_INC_EPOCH 44u
#define WIRE_MINOR_STORE     41u /* 6.12: clears what is behind the end of what it stores */

enum wire_opcode {
    WIRE_LOOKUP = 1,
    WIRE_FORGET = 2, /* no reply */
    WIRE_GETATTR = 3,
    WIRE_SETATTR = 4,
    WIRE_READLINK = 5,
    WIRE_SYMLINK = 6,
    WIRE_MKNOD = 8,
    WIRE_MKDIR = 9,
    WIRE_UNLINK = 10,
    WIRE_RMDIR = 11,
    WIRE_RENAME = 12,
    WIRE_LINK = 13,
    WIRE_OPEN = 14,
    WIRE_READ = 15,
    WIRE_WRITE = 16,
    WIRE_STATFS = 17,
    WIRE_RELEASE = 18,
    WIRE_FSYNC = 20,
    WIRE_SETXATTR = 21,
    WIRE_GETXATTR = 22,
    WIRE_LISTXATTR = 23,
    WIRE_REMOVEXATTR = 24,
    WIRE_FLUSH = 25,
    WIRE_INIT = 26,
    WIRE_OPENDIR = 27,
    WIRE_READDIR = 28,
    WIRE_RELEASEDIR = 29,
    WIRE_FSYNCDIR = 30,
    WIRE_GETLK = 31,
    WIRE_SETLK = 32,
    WIRE_SETLKW = 33,
    WIRE_CREATE = 35,
    WIRE_INTERRUPT = 36, /* no reply */
    WIRE_DESTROY = 38,
    WIRE_BATCH_FORGET = 42, /* no reply */
    WIRE_FALLOCATE = 43,
    WIRE_READDIRPLUS = 44,
    WIRE_RENAME2 = 45,
    WIRE_LSEEK = 46,
    WIRE_COPY_FILE_RANGE = 47,
    WIRE_TMPFILE = 51, /* 7.37 */
    WIRE_STATX = 52,   /* 7.39 */
    WIRE_OPCODES
};

enum wire_notice {
    WIRE_NOTIFY_INVAL_INODE = 2,
    WIRE_NOTIFY_INVAL_ENTRY = 3,
    WIRE_NOTIFY_STORE = 4,
    WIRE_NOTIFY_INC_EPOCH = 8, /* 7.44 */
};

/* INIT, 64 bits in two words */
#define WIRE_ASYNC_READ           (1ull << 0)
#define WIRE_POSIX_LOCKS          (1ull << 1)
#define WIRE_ATOMIC_O_TRUNC       (1ull << 3)
#define WIRE_BIG_WRITES           (1ull << 5)
#define WIRE_DONT_MASK            (1ull << 6)
#define WIRE_FLOCK_LOCKS          (1ull << 10)
#define WIRE_AUTO_INVAL_DATA      (1ull << 12)
#define WIRE_DO_READDIRPLUS       (1ull << 13)
#define WIRE_READDIRPLUS_AUTO     (1ull << 14)
#define WIRE_ASYNC_DIO            (1ull << 15)
#define WIRE_PARALLEL_DIROPS      (1ull << 18)
#define WIRE_HANDLE_KILLPRIV      (1ull << 19)
#define WIRE_POSIX_ACL            (1ull << 20)
#define WIRE_MAX_PAGES            (1ull << 22)
#define WIRE_CACHE_SYMLINKS       (1ull << 23)
#define WIRE_HANDLE_KILLPRIV_V2   (1ull << 28)
#define WIRE_INIT_EXT             (1ull << 30) /* the second word counts */
#define WIRE_HAS_EXPIRE_ONLY      (1ull << 35)
#define WIRE_DIRECT_IO_ALLOW_MMAP (1ull << 36)
#define WIRE_OVER_IO_URING        (1ull << 41) /* 7.42 */

/* open_out */
#define WIRE_FOPEN_DIRECT_IO              (1u << 0)
#define WIRE_FOPEN_KEEP_CACHE             (1u << 1)
#define WIRE_FOPEN_NOFLUSH                (1u << 5)
#define WIRE_FOPEN_PARALLEL_DIRECT_WRITES (1u << 6)

#define WIRE_GETATTR_FH         (1u << 0)
#define WIRE_OPEN_KILL_SUIDGID  (1u << 0)
#define WIRE_WRITE_CACHE        (1u << 0)
#define WIRE_WRITE_KILL_SUIDGID (1u << 2)
#define WIRE_FSYNC_FDATASYNC    (1u << 0)
#define WIRE_LK_FLOCK           (1u << 0)
#define WIRE_EXPIRE_ONLY        (1u << 0)
#define WIRE_FATTR_MODE         (1u << 0)
#define WIRE_FATTR_UID          (1u << 1)
#define WIRE_FATTR_GID          (1u << 2)
#define WIRE_FATTR_SIZE         (1u << 3)
#define WIRE_FATTR_ATIME        (1u << 4)
#define WIRE_FATTR_MTIME        (1u << 5)
#define WIRE_FATTR_FH           (1u << 6)
#define WIRE_FATTR_ATIME_NOW    (1u << 7)
#define WIRE_FATTR_MTIME_NOW    (1u << 8)
#define WIRE_FATTR_KILL_SUIDGID (1u << 11)

struct wire_in_header {
    uint32_t len, opcode;
    uint64_t unique, nodeid;
    uint32_t uid, gid, pid;
    uint16_t total_extlen; /* of what follows the arguments, in 8 bytes */
    uint16_t padding;
};

struct wire_out_header {
    uint32_t len;
    int32_t error; /* of a notification: its code */
    uint64_t unique;
};

struct wire_attr {
    uint64_t ino, size, blocks;
    uint64_t atime, mtime, ctime;
    uint32_t atimensec, mtimensec, ctimensec;
    uint32_t mode, nlink, uid, gid, rdev, blksize, flags;
};

struct wire_init_in {
    uint32_t major, minor, max_readahead, flags, flags2;
    uint32_t unused[11];
};

struct wire_init_out {
    uint32_t major, minor, max_readahead, flags;
    uint16_t max_background, congestion_threshold;
    uint32_t max_write, time_gran;
    uint16_t max_pages, map_alignment;
    uint32_t flags2;
    uint32_t unused[7];
};

struct wire_forget_in {
    uint64_t nlookup;
};

struct wire_forget_one {
    uint64_t nodeid, nlookup;
};

struct wire_batch_forget_in {
    uint32_t count, dummy;
};

struct wire_interrupt_in {
    uint64_t unique;
};

struct wire_getattr_in {
    uint32_t flags, dummy;
    uint64_t fh;
};

struct wire_statx_in {
    uint32_t flags, reserved;
    uint64_t fh;
    uint32_t sx_flags, sx_mask;
};

struct wire_setattr_in {
    uint32_t valid, padding;
    uint64_t fh, size, lock_owner, atime, mtime, ctime;
    uint32_t atimensec, mtimensec, ctimensec, mode, unused4, uid, gid, unused5;
};

struct wire_mknod_in {
    uint32_t mode, rdev, umask, padding;
};

struct wire_mkdir_in {
    uint32_t mode, umask;
};

struct wire_rename_in {
    uint64_t newdir;
};

struct wire_rename2_in {
    uint64_t newdir;
    uint32_t flags, padding;
};

struct wire_link_in {
    uint64_t oldnodeid;
};

struct wire_open_in {
    uint32_t flags, open_flags;
};

struct wire_create_in {
    uint32_t flags, mode, umask, open_flags;
};

struct wire_read_in { /* READ READDIR READDIRPLUS */
    uint64_t fh, offset;
    uint32_t size, read_flags;
    uint64_t lock_owner;
    uint32_t flags, padding;
};

struct wire_write_in {
    uint64_t fh, offset;
    uint32_t size, write_flags;
    uint64_t lock_owner;
    uint32_t flags, padding;
};

struct wire_flush_in {
    uint64_t fh;
    uint32_t unused, padding;
    uint64_t lock_owner;
};

struct wire_release_in {
    uint64_t fh;
    uint32_t flags, release_flags;
    uint64_t lock_owner;
};

struct wire_fsync_in {
    uint64_t fh;
    uint32_t fsync_flags, padding;
};

struct wire_file_lock {
    uint64_t start, end; /* both included */
    uint32_t type, pid;  /* F_RDLCK... */
};

struct wire_lk_in {
    uint64_t fh, owner;
    struct wire_file_lock lk;
    uint32_t lk_flags, padding;
};

struct wire_xattr_in { /* GETXATTR LISTXATTR: size, SETXATTR: both */
    uint32_t size, flags;
};

struct wire_entry_out {
    uint64_t nodeid, generation, entry_valid, attr_valid;
    uint32_t entry_valid_nsec, attr_valid_nsec;
    struct wire_attr attr;
};

struct wire_attr_out {
    uint64_t attr_valid;
    uint32_t attr_valid_nsec, dummy;
    struct wire_attr attr;
};

struct wire_time {
    int64_t sec;
    uint32_t nsec;
    int32_t reserved;
};

struct wire_statx {
    uint32_t mask, blksize;
    uint64_t attributes;
    uint32_t nlink, uid, gid;
    uint16_t mode, spare0;
    uint64_t ino, size, blocks, attributes_mask;
    struct wire_time atime, btime, ctime, mtime;
    uint32_t rdev_major, rdev_minor, dev_major, dev_minor;
    uint64_t spare2[14];
};

struct wire_statx_out {
    uint64_t attr_valid;
    uint32_t attr_valid_nsec, flags;
    uint64_t spare[2];
    struct wire_statx stat;
};

struct wire_open_out {
    uint64_t fh;
    uint32_t open_flags, padding;
};

struct wire_create_out {
    struct wire_entry_out entry;
    struct wire_open_out open;
};

struct wire_size_out { /* WRITE GETXATTR LISTXATTR */
    uint32_t size, padding;
};

struct wire_statfs_out {
    uint64_t blocks, bfree, bavail, files, ffree;
    uint32_t bsize, namelen, frsize, padding;
    uint32_t spare[6];
};

struct wire_lk_out {
    struct wire_file_lock lk;
};

struct wire_fallocate_in {
    uint64_t fh, offset, length;
    uint32_t mode, padding;
};

struct wire_lseek_in {
    uint64_t fh, offset;
    uint32_t whence, padding;
};

struct wire_lseek_out {
    uint64_t offset;
};

struct wire_copy_file_range_in {
    uint64_t fh_in, off_in, nodeid_out, fh_out, off_out, len, flags;
};

struct wire_dirent { /* READDIRPLUS: behind a wire_entry_out. Padded to 8 bytes */
    uint64_t ino, off;
    uint32_t namelen, type; /* the name follows */
};

struct wire_inval_inode_out {
    uint64_t ino;
    int64_t off, len;
};

struct wire_store_out { /* the data follows */
    uint64_t ino, off;
    uint32_t size, padding;
};

struct wire_inval_entry_out { /* the name follows, with its NUL */
    uint64_t parent;
    uint32_t namelen, flags;
};

/* FUSE over io_uring: a command of the device's descriptor lends the kernel memory for one request
 * at a time, and gives it back with the answer (COMMIT_AND_FETCH). Headers lie apart from what
 * follows them: what the operation's own header does not hold is in the payload. */
enum wire_ring_command {
    WIRE_RING_REGISTER = 1,
    WIRE_RING_COMMIT_AND_FETCH = 2,
};

#define WIRE_RING_OP_BYTES 128u

struct wire_ring_header {
    union {
        struct wire_in_header in;
        struct wire_out_header out;
        uint8_t in_out[128];
    };
    uint8_t op_in[WIRE_RING_OP_BYTES];
    uint64_t flags, commit_id;
    uint32_t payload_len, padding;
    uint64_t reserved;
};

struct wire_ring_cmd {
    uint64_t flags, commit_id;
    uint16_t queue;
    uint8_t padding[6];
};

#define WIRE_IS(type, bytes) static_assert(sizeof(struct type) == (bytes), "the kernel's layout")
WIRE_IS(wire_in_header, 40);
WIRE_IS(wire_out_header, 16);
WIRE_IS(wire_attr, 88);
WIRE_IS(wire_init_in, 64);
WIRE_IS(wire_init_out, 64);
WIRE_IS(wire_forget_one, 16);
WIRE_IS(wire_getattr_in, 16);
WIRE_IS(wire_statx_in, 24);
WIRE_IS(wire_setattr_in, 88);
WIRE_IS(wire_mknod_in, 16);
WIRE_IS(wire_rename2_in, 16);
WIRE_IS(wire_create_in, 16);
WIRE_IS(wire_read_in, 40);
WIRE_IS(wire_write_in, 40);
WIRE_IS(wire_flush_in, 24);
WIRE_IS(wire_release_in, 24);
WIRE_IS(wire_fsync_in, 16);
WIRE_IS(wire_lk_in, 48);
WIRE_IS(wire_entry_out, 128);
WIRE_IS(wire_attr_out, 104);
WIRE_IS(wire_statx, 256);
WIRE_IS(wire_statx_out, 288);
WIRE_IS(wire_create_out, 144);
WIRE_IS(wire_statfs_out, 80);
WIRE_IS(wire_dirent, 24);
WIRE_IS(wire_inval_inode_out, 24);
WIRE_IS(wire_store_out, 24);
WIRE_IS(wire_inval_entry_out, 16);
WIRE_IS(wire_ring_header, 288);
WIRE_IS(wire_ring_cmd, 24);
#undef WIRE_IS

#endif
