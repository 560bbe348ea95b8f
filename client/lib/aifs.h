/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libaifs: an aifs file system as a library, without a mount.
 *
 * Calls behave like their POSIX namesakes and report like them: -1 (or NULL) and errno. Every call
 * may be made by any thread at any time; a file, a directory stream or a queue must not be closed
 * while another thread uses it. Paths are walked from the root of what was mounted, symbolic links
 * included; a leading slash makes no difference. One behind a name says that it is a directory.
 *
 * Rights are those of the process at aifs_mount() (effective user, group and supplementary groups),
 * checked by the servers.
 *
 * Each mounted file system has one thread of its own. A thread that waits in the library may do the
 * file system's work meanwhile, so that small calls wake no other; what it leaves when it comes
 * back is that thread's again. So a handler of a signal must not call the library, unless it was
 * mounted with drive=own, and a thread that waits cannot be cancelled. A child of fork(2) may go on
 * with what it finds: the first call there makes a mount of the child's own (session, connections,
 * thread, and memory_limit), the first call on a file opens it again by its inode, and queues begin
 * empty. A call fails with ENOTCONN when that does not work, and the next one tries again. Locks
 * and what the parent has submitted stay the parent's. Nothing the child does, its exit included,
 * disturbs the parent. If the parent uses shared memory or RDMA, its children use TCP: those
 * libraries cannot be used on both sides of a fork.
 *
 * Data written is visible to every other client when aifs_close() has returned, and durable when
 * aifs_fsync() has. An error of writing in the background is reported by the next aifs_fsync() or
 * aifs_close() of the file, once.
 *
 * The ABI is stable: functions are added under a new version and never change or go, structures
 * never change, and options are text.
 */
#ifndef AIFS_H
#define AIFS_H

#include <stdint.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

struct aifs;        /* a mounted file system */
struct aifs_file;   /* an open file */
struct aifs_dir;    /* a directory stream */
struct aifs_queue;  /* a queue of asynchronous reads and writes */
struct aifs_buffer; /* memory for them */

const char *aifs_version(void); /* "0.1.0" */

/*
 * Mounts. source: "host[:port][,host2...]:/[subdir]". options: NULL or "name=value,name=value", of
 *   key_file=PATH        client key (default /etc/aifs/client.key)
 *   memory_limit=SIZE    cached and dirty data and metadata together, "512Mi" (default 1Gi)
 *   ro                   nothing is ever changed
 *   relatime             reading sets the time of last access, as relatime of mount(8) does
 *   soft, timeo=TIME     calls fail with ETIMEDOUT when they are older than timeo (default: they
 *                        wait for ever)
 *   read_ahead=SIZE      bound per open file (default: from stripes and memory)
 *   net=auto|tcp|shm|rdma
 *   rails=N              addresses of a storage server used at once, 1 to 4 (default 4)
 *   net.devices=NAME[:PORT]+...  the RDMA devices that may be used, one list per process
 *   mount_timeout=TIME   how long aifs_mount() waits for servers that do not answer (default 30s)
 *   umount_timeout=TIME  how long aifs_unmount() writes back when servers do not answer (default
 *                        120s; 0: for ever)
 *   drive=caller|own     who does the file system's work while a thread waits: that thread
 *                        (default), or always the file system's own
 *   spin=TIME            how long that thread polls before it sleeps (default 200us, on one core 0)
 *   job=ID               for accounting (default: $SLURM_JOB_ID)
 *
 * When it fails, aifs_mount_error() is a sentence for people, valid until the next aifs_mount() of
 * the thread.
 */
int aifs_mount(const char *source, const char *options, struct aifs **ret_fs);
const char *aifs_mount_error(void);
/* Writes back what is dirty. -1 with the first error of doing so, EIO when umount_timeout has
 * passed and not all is written; fs is gone in any case. All its files, streams and queues must be
 * closed.
 */
int aifs_unmount(struct aifs *fs);
int aifs_statvfs(struct aifs *fs, struct statvfs *st);

/* ---- files ---- */

/* flags as in open(2): O_ACCMODE, O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_SYNC, O_DSYNC, O_NOFOLLOW.
 * mode matters with O_CREAT; the umask is not applied. */
struct aifs_file *aifs_open(struct aifs *fs, const char *path, int flags, mode_t mode);
/* By its number (st_ino), wherever it is in the file system and whatever it is called: ESTALE or
 * ENOENT when it is no more. No O_CREAT. Rights to the file are checked, those to a path are not.
 */
struct aifs_file *aifs_open_inode(struct aifs *fs, uint64_t ino, int flags);
/* Creates (O_CREAT | O_EXCL) a file with a layout of its own. chunk_bytes, stripe_count: 0 =
 * inherited; stripe_count UINT32_MAX = all. pool: NULL = inherited. */
struct aifs_file *aifs_create_striped(struct aifs *fs, const char *path, int flags, mode_t mode,
                                      uint32_t chunk_bytes, uint32_t stripe_count,
                                      const char *pool);
int aifs_close(struct aifs_file *f); /* f is gone in any case */
/* Any length; large ones run on all servers at once. A read is short only at the end of file, a
 * write when the next of its pieces of 1 MiB failed. With O_APPEND offset means nothing, and all of
 * it has one place, up to 16 MiB: nobody else's bytes come between. */
ssize_t aifs_pread(struct aifs_file *f, void *buf, size_t len, off_t offset);
ssize_t aifs_pwrite(struct aifs_file *f, const void *buf, size_t len, off_t offset);
ssize_t aifs_pwritev(struct aifs_file *f, const struct iovec *iov, int n_iov, off_t offset);
int aifs_fsync(struct aifs_file *f);
int aifs_fdatasync(struct aifs_file *f);
int aifs_ftruncate(struct aifs_file *f, off_t size);
int aifs_fstat(struct aifs_file *f, struct stat *st);
/* As fallocate(2): mode 0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE | KEEP_SIZE,
 * FALLOC_FL_ZERO_RANGE with or without KEEP_SIZE; others fail with EOPNOTSUPP. */
int aifs_fallocate(struct aifs_file *f, int mode, off_t offset, off_t len);
/* As posix_fadvise(2): POSIX_FADV_SEQUENTIAL and RANDOM say how f will be read, WILLNEED fetches a
 * range (as much as read-ahead may), DONTNEED forgets one. */
int aifs_advise(struct aifs_file *f, off_t offset, off_t len, int advice);
/* As lseek(2) with SEEK_DATA or SEEK_HOLE: where the next data or hole begins. A file has no
 * position of its own: other values of whence fail with EINVAL. */
off_t aifs_seek(struct aifs_file *f, off_t offset, int whence);
/* As copy_file_range(2) with both offsets given; less than len at the end of from only. */
ssize_t aifs_copy_file_range(struct aifs_file *from, off_t from_offset, struct aifs_file *to,
                             off_t to_offset, size_t len);

/*
 * Locks that hold on every client, as flock(2): LOCK_SH, LOCK_EX, LOCK_UN, with LOCK_NB or waiting
 * as long as it takes; and as fcntl(2) with F_SETLK, F_SETLKW, F_GETLK (SEEK_SET only). The owner
 * of both is the open file, as of F_OFD_SETLK: they end with aifs_close(). EAGAIN, EDEADLK, ENOLCK.
 */
struct flock;
int aifs_flock(struct aifs_file *f, int operation);
int aifs_lock(struct aifs_file *f, int cmd, struct flock *lock);

/* ---- names and attributes ---- */

int aifs_stat(struct aifs *fs, const char *path, struct stat *st);
int aifs_lstat(struct aifs *fs, const char *path, struct stat *st);
int aifs_mkdir(struct aifs *fs, const char *path, mode_t mode);
int aifs_rmdir(struct aifs *fs, const char *path);
int aifs_unlink(struct aifs *fs, const char *path);
int aifs_rename(struct aifs *fs, const char *from, const char *to);
int aifs_renameat2(struct aifs *fs, const char *from, const char *to,
                   unsigned flags); /* RENAME_NOREPLACE, RENAME_EXCHANGE */
int aifs_link(struct aifs *fs, const char *from, const char *to);
int aifs_symlink(struct aifs *fs, const char *target, const char *path);
ssize_t aifs_readlink(struct aifs *fs, const char *path, char *buf, size_t size);
int aifs_truncate(struct aifs *fs, const char *path, off_t size);
int aifs_chmod(struct aifs *fs, const char *path, mode_t mode);
int aifs_chown(struct aifs *fs, const char *path, uid_t uid, gid_t gid); /* (uid_t)-1: as it is */
int aifs_lchown(struct aifs *fs, const char *path, uid_t uid, gid_t gid);
int aifs_utimens(struct aifs *fs, const char *path,
                 const struct timespec times[2]); /* as utimensat(2); NULL: now */

/* ---- many names at once ---- */

enum aifs_name_op {
    AIFS_NAME_STAT = 0, /* st */
    AIFS_NAME_LSTAT,    /* st */
    AIFS_NAME_CREATE,   /* mode: a new, empty file; EEXIST. st */
    AIFS_NAME_MKDIR,    /* mode; st */
    AIFS_NAME_UNLINK,
    AIFS_NAME_RMDIR,
};

/* Owned by the caller; from aifs_batch_submit() until aifs_batch_wait() has returned 0, it and path
 * belong to the library. */
struct aifs_name {
    int op; /* enum aifs_name_op */
    mode_t mode;
    const char *path;
    void *user;     /* the caller's */
    int result;     /* 0, or a negative errno */
    struct stat st; /* of what is there now, where op says so and result is 0 */
};

struct aifs_batch; /* calls on names under way */

/*
 * Begins all n calls; they run at once, in no order, and each has a result of its own. Many small
 * calls cost a fraction of what they cost one by one. NULL: none has begun. The names are an array;
 * n at least 1. In the child of a fork(2) the batch is the parent's.
 */
struct aifs_batch *aifs_batch_submit(struct aifs *fs, struct aifs_name *names, unsigned n);
/* 0: all have ended, and the batch is gone. -1, ETIMEDOUT: not within timeout_ms (-1: for ever, 0:
 * looks only), it goes on. */
int aifs_batch_wait(struct aifs_batch *b, int timeout_ms);

/* ---- directories ---- */

struct aifs_dirent {
    uint64_t ino;
    unsigned char type; /* DT_* */
    int has_stat;
    struct stat st; /* when has_stat: as of when the page was read */
    char name[256];
};
struct aifs_dir *aifs_opendir(struct aifs *fs, const char *path);
/* The next entry, "." and ".." among them, valid until the next call on this stream; NULL at the
 * end (errno unchanged) and on error. */
const struct aifs_dirent *aifs_readdir(struct aifs_dir *d);
void aifs_rewinddir(struct aifs_dir *d);
int aifs_closedir(struct aifs_dir *d);

/* ---- extended attributes ---- */

ssize_t aifs_getxattr(struct aifs *fs, const char *path, const char *name, void *value,
                      size_t size); /* size 0: how long it is */
int aifs_setxattr(struct aifs *fs, const char *path, const char *name, const void *value,
                  size_t size, int flags);
ssize_t aifs_listxattr(struct aifs *fs, const char *path, char *list, size_t size);
int aifs_removexattr(struct aifs *fs, const char *path, const char *name);

/* ---- asynchronous reads and writes ---- */

enum aifs_op { AIFS_READ = 0, AIFS_WRITE = 1 };

/* Where a buffer is. Only host memory is served; others are refused with EOPNOTSUPP. */
enum aifs_memory { AIFS_MEMORY_HOST = 0, AIFS_MEMORY_CUDA = 1, AIFS_MEMORY_ROCM = 2 };

/*
 * Memory from the library's pool: page-aligned, touched, and used again after aifs_buffer_put(),
 * which is faster than fresh memory and what transports register only once. At least bytes long; of
 * all together, half of memory_limit (ENOMEM). To be put back before aifs_unmount(). Any memory of
 * the caller's serves as well.
 */
struct aifs_buffer *aifs_buffer_get(struct aifs *fs, size_t bytes,
                                    int memory /* enum aifs_memory */);
void *aifs_buffer_data(const struct aifs_buffer *buffer);
void aifs_buffer_put(struct aifs_buffer *buffer); /* NULL is a no-op */

/* Owned by the caller; from aifs_submit() until aifs_wait() returns it, it and buf belong to the
 * library. Set fields that are not named to zero. */
struct aifs_io {
    struct aifs_file *file;
    int op; /* enum aifs_op */
    void *buf;
    size_t len;
    off_t offset;
    void *user;     /* the caller's */
    ssize_t result; /* bytes, or a negative errno */
    int memory;     /* enum aifs_memory: where buf is */
};

struct aifs_queue *aifs_queue_create(struct aifs *fs);
int aifs_queue_destroy(
    struct aifs_queue *q); /* -1, EBUSY: something is still in flight or not yet waited for */
/* A descriptor for poll(2) and epoll(7), readable while there is something to collect. It belongs
 * to the queue: not to be read, written or closed. -1 on error. */
int aifs_queue_fd(struct aifs_queue *q);
/* All n, or none (-1). They run at once, in no order. */
int aifs_submit(struct aifs_queue *q, struct aifs_io *const *ios, unsigned n);
/*
 * Collects between min and max finished ones into done; waits until there are min, but not longer
 * than timeout_ms (-1: for ever, 0: not at all). Returns how many.
 */
int aifs_wait(struct aifs_queue *q, struct aifs_io **done, unsigned min, unsigned max,
              int timeout_ms);

#ifdef __cplusplus
}
#endif

#endif
