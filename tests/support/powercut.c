/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LD_PRELOAD library: keeps beside the files below $POWERCUT_ROOT what a disk would hold if the
 * power failed now. kill -9 keeps the kernel's page cache and so proves nothing about syncs; this
 * does.
 *
 * $POWERCUT_SHADOW/data/<inode> is the durable content of a file: only fsync and fdatasync copy
 * what was written since the last one into it. $POWERCUT_SHADOW/tree mirrors the durable names as
 * hard links into data/: only an fsync of a directory copies its entries. Nothing else is durable,
 * whatever a particular file system might keep. After the program was killed, powercut-apply puts
 * the durable image in place of the live one. The shadow itself needs no syncing: only processes
 * die in these tests.
 *
 * Written bytes are tracked per inode as a few ranges. Needs a file system that does not reuse
 * inode numbers (tmpfs), and programs that write with system calls the C library wraps (no
 * io_uring), or to shared mappings that stay: of a file that has one, a sync takes all.
 * POWERCUT_DROP_SYNC=1: syncs do nothing: what a program without fdatasync would be. Tests must
 * fail then.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAX_RANGES 64
#define MAX_FILES  4096

struct range {
    uint64_t start, end;
};

struct file {
    ino_t ino;
    unsigned n_ranges;
    int is_mapped; /* anything may have been written, unseen */
    struct range ranges[MAX_RANGES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct file *files[MAX_FILES]; /* open hashing by inode */
static char root[PATH_MAX], shadow[PATH_MAX];
static size_t root_len;
static int drop_sync;

static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*real_writev)(int, const struct iovec *, int);
static ssize_t (*real_pwritev)(int, const struct iovec *, int, off_t);
static int (*real_ftruncate)(int, off_t);
static int (*real_fallocate)(int, int, off_t, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_open)(const char *, int, ...);

__attribute__((constructor)) static void powercut_start(void)
{
    const char *r = getenv("POWERCUT_ROOT"), *s = getenv("POWERCUT_SHADOW"),
               *d = getenv("POWERCUT_DROP_SYNC");
    char path[PATH_MAX + 8];

    real_write = dlsym(RTLD_NEXT, "write");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite");
    real_writev = dlsym(RTLD_NEXT, "writev");
    real_pwritev = dlsym(RTLD_NEXT, "pwritev");
    real_ftruncate = dlsym(RTLD_NEXT, "ftruncate");
    real_fallocate = dlsym(RTLD_NEXT, "fallocate");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    real_open = dlsym(RTLD_NEXT, "open");
    drop_sync = d && *d == '1';
    if (!r || !s || !realpath(r, root))
        return;
    root_len = strlen(root);
    snprintf(shadow, sizeof shadow, "%s", s);
    mkdir(shadow, 0755);
    snprintf(path, sizeof path, "%s/data", shadow);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/tree", shadow);
    mkdir(path, 0755);
}

/* Path of fd below the root ("" for the root itself), or NULL when it is elsewhere. */
static const char *tracked_path(int fd, char *buf, size_t len)
{
    char link[64];
    ssize_t n;

    if (root_len == 0)
        return NULL;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, buf, len - 1);
    if (n < 0)
        return NULL;
    buf[n] = '\0';
    if (strncmp(buf, root, root_len) != 0 || (buf[root_len] != '/' && buf[root_len] != '\0'))
        return NULL;
    return buf + root_len;
}

static void give_up(const char *what, const char *path)
{
    fprintf(stderr, "powercut: %s %s: %m\n", what, path);
    abort();
}

static struct file *file_get(ino_t ino)
{
    for (unsigned i = 0; i < MAX_FILES; i++) {
        struct file **f = &files[((unsigned long)ino + i) % MAX_FILES];

        if (!*f) {
            *f = calloc(1, sizeof **f);
            if (*f)
                (*f)->ino = ino;
            return *f;
        }
        if ((*f)->ino == ino)
            return *f;
    }
    fprintf(stderr, "powercut: more than %d files\n", MAX_FILES);
    abort();
}

static void range_add(struct file *f, uint64_t start, uint64_t end)
{
    struct range *r = f->ranges;
    unsigned best = 0;
    uint64_t best_gap = UINT64_MAX;

    for (unsigned i = 0; i < f->n_ranges; i++) {
        uint64_t gap = start > r[i].end   ? start - r[i].end
                       : r[i].start > end ? r[i].start - end
                                          : 0;

        if (gap < best_gap) {
            best_gap = gap;
            best = i;
        }
    }
    if (best_gap != 0 && f->n_ranges < MAX_RANGES) {
        r[f->n_ranges++] = (struct range){start, end};
        return;
    }
    if (start < r[best].start)
        r[best].start = start;
    if (end > r[best].end)
        r[best].end = end;
}

static void mark(int fd, uint64_t start, uint64_t len)
{
    char path[PATH_MAX];
    struct stat st;
    int saved = errno;

    if (len && tracked_path(fd, path, sizeof path) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        pthread_mutex_lock(&lock);
        range_add(file_get(st.st_ino), start, start + len);
        pthread_mutex_unlock(&lock);
    }
    errno = saved;
}

static void data_path(char *out, size_t len, ino_t ino)
{
    snprintf(out, len, "%.*s/data/%lu", (int)(len - 40), shadow, (unsigned long)ino);
}

static void copy_range(int from, int to, uint64_t start, uint64_t end)
{
    static char buf[1 << 18]; /* under lock */

    while (start < end) {
        size_t want = end - start < sizeof buf ? end - start : sizeof buf;
        ssize_t n = pread(from, buf, want, (off_t)start);

        if (n <= 0)
            return;
        if (real_pwrite(to, buf, (size_t)n, (off_t)start) != n)
            give_up("write", shadow);
        start += (uint64_t)n;
    }
}

/* What is there of a file, hole by hole. */
static void copy_all(int from, int to)
{
    off_t start = 0, end;

    while ((start = lseek(from, start, SEEK_DATA)) >= 0 &&
           (end = lseek(from, start, SEEK_HOLE)) > start) {
        copy_range(from, to, (uint64_t)start, (uint64_t)end);
        start = end;
    }
}

/*
 * Under the lock from the look at the size to the end: what a thread has written and not yet marked
 * stays for its own sync, what is marked lies within that size.
 */
static void sync_file(int fd, ino_t ino)
{
    char path[PATH_MAX];
    struct stat st;
    struct file *f;
    int from, to;

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd); /* whatever its name is by now */
    from = real_open(path, O_RDONLY | O_CLOEXEC);
    data_path(path, sizeof path, ino);
    to = real_open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (from < 0 || to < 0)
        give_up("open", path);
    pthread_mutex_lock(&lock);
    if (fstat(from, &st) != 0)
        give_up("stat", path);
    f = file_get(ino);
    for (unsigned i = 0; i < f->n_ranges; i++)
        copy_range(from, to, f->ranges[i].start, f->ranges[i].end);
    f->n_ranges = 0;
    if (f->is_mapped)
        copy_all(from, to);
    if (real_ftruncate(to, st.st_size) != 0)
        give_up("truncate", path);
    pthread_mutex_unlock(&lock);
    close(from);
    close(to);
}

/* `name` becomes another name of `data` in one step: whoever is killed here loses no durable name.
 */
static void link_durable(const char *data, const char *name)
{
    char made[PATH_MAX];
    struct stat of_data, of_name;

    if (stat(data, &of_data) == 0 && stat(name, &of_name) == 0 && of_data.st_ino == of_name.st_ino)
        return;
    snprintf(made, sizeof made, "%.2000s/made", shadow);
    unlink(made);
    if (link(data, made) != 0 || rename(made, name) != 0)
        give_up("link", name);
}

/* Under the lock: two threads that sync one directory would be in each other's way. */
static void sync_names(const char *live, const char *rel)
{
    char dir[PATH_MAX], name[PATH_MAX + 256], data[PATH_MAX];
    struct dirent *e;
    struct stat st;
    DIR *d;

    snprintf(dir, sizeof dir, "%.2000s/tree%.2000s", shadow, rel);
    for (char *p = dir + strlen(shadow) + 1; *p; p++)
        if (*p == '/') {
            *p = '\0';
            mkdir(dir, 0755);
            *p = '/';
        }
    mkdir(dir, 0755);
    d = opendir(dir);
    while (d && (e = readdir(d))) { /* names that are gone */
        snprintf(name, sizeof name, "%.2000s/%s", live, e->d_name);
        if (e->d_type == DT_REG && access(name, F_OK) != 0)
            unlinkat(dirfd(d), e->d_name, 0);
    }
    if (d)
        closedir(d);
    d = opendir(live);
    while (d && (e = readdir(d))) {
        if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            !strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        snprintf(name, sizeof name, "%.2000s/%s", dir, e->d_name);
        if (S_ISDIR(st.st_mode)) {
            mkdir(name, 0755);
        } else if (S_ISREG(st.st_mode)) {
            int fd;

            data_path(data, sizeof data, st.st_ino);
            fd = real_open(data, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
            if (fd >= 0)
                close(fd);
            link_durable(data, name);
        }
    }
    if (d)
        closedir(d);
}

static void made_durable(int fd)
{
    char path[PATH_MAX];
    const char *rel = tracked_path(fd, path, sizeof path);
    struct stat st;
    int saved = errno;

    if (rel && !drop_sync && fstat(fd, &st) == 0) {
        if (S_ISDIR(st.st_mode)) {
            pthread_mutex_lock(&lock);
            sync_names(path, rel);
            pthread_mutex_unlock(&lock);
        } else if (S_ISREG(st.st_mode)) {
            sync_file(fd, st.st_ino);
        }
    }
    errno = saved;
}

ssize_t write(int fd, const void *data, size_t len)
{
    ssize_t n;

    if (!real_write)
        powercut_start();
    n = real_write(fd, data, len);
    if (n > 0 && root_len) {
        off_t end =
            lseek(fd, 0, SEEK_CUR); /* O_APPEND too: the offset is behind what was written */

        if (end >= n)
            mark(fd, (uint64_t)(end - n), (uint64_t)n);
    }
    return n;
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t offset)
{
    ssize_t n = real_pwrite(fd, data, len, offset);

    if (n > 0)
        mark(fd, (uint64_t)offset, (uint64_t)n);
    return n;
}

ssize_t pwrite64(int fd, const void *data, size_t len, off_t offset)
{
    return pwrite(fd, data, len, offset);
}

ssize_t writev(int fd, const struct iovec *iov, int n_iov)
{
    ssize_t n = real_writev(fd, iov, n_iov);

    if (n > 0 && root_len) {
        off_t end = lseek(fd, 0, SEEK_CUR);

        if (end >= n)
            mark(fd, (uint64_t)(end - n), (uint64_t)n);
    }
    return n;
}

ssize_t pwritev(int fd, const struct iovec *iov, int n_iov, off_t offset)
{
    ssize_t n = real_pwritev(fd, iov, n_iov, offset);

    if (n > 0)
        mark(fd, (uint64_t)offset, (uint64_t)n);
    return n;
}

ssize_t pwritev64(int fd, const struct iovec *iov, int n_iov, off_t offset)
{
    return pwritev(fd, iov, n_iov, offset);
}

int ftruncate(int fd, off_t size)
{
    struct stat st;
    off_t old = fstat(fd, &st) == 0 ? st.st_size : 0;
    int rc = real_ftruncate(fd, size);

    if (rc == 0 && size < old)
        mark(fd, (uint64_t)size, (uint64_t)(old - size));
    return rc;
}

int ftruncate64(int fd, off_t size)
{
    return ftruncate(fd, size);
}

int fallocate(int fd, int mode, off_t offset, off_t len)
{
    int rc = real_fallocate(fd, mode, offset, len);

    if (rc == 0 && (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)))
        mark(fd, (uint64_t)offset, (uint64_t)len);
    return rc;
}

int fallocate64(int fd, int mode, off_t offset, off_t len)
{
    return fallocate(fd, mode, offset, len);
}

void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
    void *map = (void *)syscall(SYS_mmap, at, len, prot, flags, fd, offset);
    char path[PATH_MAX];
    struct stat st;

    if (map != MAP_FAILED && (flags & MAP_SHARED) && (prot & PROT_WRITE) &&
        tracked_path(fd, path, sizeof path) && fstat(fd, &st) == 0) {
        pthread_mutex_lock(&lock);
        file_get(st.st_ino)->is_mapped = 1;
        pthread_mutex_unlock(&lock);
    }
    return map;
}

void *mmap64(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
    return mmap(at, len, prot, flags, fd, offset);
}

int fsync(int fd)
{
    int rc = real_fsync(fd);

    if (rc == 0)
        made_durable(fd);
    return rc;
}

int fdatasync(int fd)
{
    int rc = real_fdatasync(fd);

    if (rc == 0)
        made_durable(fd);
    return rc;
}

/* O_TRUNC changes content without a write. */
static void opened(int fd, int flags)
{
    struct stat st;

    if (fd >= 0 && (flags & O_TRUNC) && root_len && fstat(fd, &st) == 0)
        mark(fd, 0, 1);
}

int open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    va_list ap;
    int fd;

    if (!real_open)
        powercut_start();
    va_start(ap, flags);
    if (flags & (O_CREAT | O_TMPFILE))
        mode = va_arg(ap, mode_t);
    va_end(ap);
    fd = real_open(path, flags, mode);
    opened(fd, flags);
    return fd;
}

int open64(const char *path, int flags, ...)
{
    mode_t mode = 0;
    va_list ap;

    va_start(ap, flags);
    if (flags & (O_CREAT | O_TMPFILE))
        mode = va_arg(ap, mode_t);
    va_end(ap);
    return open(path, flags, mode);
}
