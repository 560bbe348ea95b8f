/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors and the files behind them.
 *
 * The table has an entry for each descriptor number that was read from: which file it was (device
 * and inode, and the mount) and its file in libaifs, or that it is none of ours. Readers hold an
 * entry while they read, so that a close() elsewhere waits for nobody: the last to let go closes.
 *
 * A mount of aifs is known by an extended attribute that its daemon answers itself, on each of its
 * files: the source, and the options needed to get there. Each file is asked when it is first read
 * from: the number of its device says nothing, another mount has it when this one is gone
 * (mounts.c).
 *
 * The position is the kernel's, and moved past the bytes before they are read, in one step: whoever
 * reads from the descriptor at the same time, from another one that shares it, in another process,
 * or without us, gets the next piece. From there on all that remains is to read those bytes, by the
 * kernel if not by us.
 *
 * A thread that is inside has signals blocked and is not cancelled: a handler might wait for
 * another thread that waits for our lock, or never come back. libaifs' own threads are
 * inside for good.
 *
 * A child that shares our memory (vfork) must not change the table: it is another process by its
 * number, and every change asks for that first.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "client/lib/aifs.h"
#include "client/preload/preload_int.h"

#define ATTRIBUTE "user.aifs.mount"
#define END_S     1 /* a process that ends waits so long for its other threads, and servers */
#define READ_MAX  0x7ffff000 /* as read(2) */
/* One that is never used again, where the kernel has it (6.8). */
#define MNT_ID (STATX_MNT_ID | 0x4000u)

struct file { /* reference counted: its entry, and who reads */
    struct aifs_file *file;
    unsigned refs;
};

struct entry {
    uint32_t major, minor;
    uint64_t ino, mount;
    struct file *file; /* NULL: not served */
    bool known;
};

struct inside { /* what is put back */
    int error, cancel_state;
    sigset_t signals;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry entries[PRELOAD_FDS];
static pid_t owner; /* of the table */
static bool ended;
static unsigned users; /* threads that may be in libaifs without the lock */
static pthread_cond_t no_users = PTHREAD_COND_INITIALIZER;
static _Atomic uint64_t served_bytes;
/* What libaifs reads itself is not for us. Set before the lock is taken. */
static _Thread_local bool inside;

bool preload_is_owner(void)
{
    return syscall(SYS_getpid) == owner;
}

/* What a thread does to itself is not blocked. false: it is inside, or in a process that shares our
 * memory. */
static bool enter(struct inside *in)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t all;

    in->error = errno;
    if (inside || !preload_is_owner())
        return false;
    inside = true;
    sigfillset(&all);
    for (unsigned k = 0; k < sizeof own / sizeof own[0]; k++)
        sigdelset(&all, own[k]);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &in->cancel_state);
    pthread_sigmask(SIG_BLOCK, &all, &in->signals);
    return true;
}

bool preload_is_inside(void)
{
    return inside;
}

void preload_stay_inside(void)
{
    inside = true;
}

static void come_out(const struct inside *in)
{
    inside = false;
    errno = in->error;
    pthread_sigmask(SIG_SETMASK, &in->signals, NULL);
    pthread_setcancelstate(in->cancel_state, NULL);
}

/* Another thread of the parent may have been anywhere in here: the child begins anew. */
static void fork_child(void)
{
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&no_users, NULL);
    users = 0;
    preload_none_is_ours();
    if (preload_mounted())
        memset(entries, 0, sizeof entries);
    preload_mounts_forget();
    ended = inside = false;
    served_bytes = 0;
    owner = getpid();
}

__attribute__((constructor)) static void begin(void)
{
    owner = getpid();
    pthread_atfork(NULL, NULL, fork_child);
    (void)at_quick_exit(preload_end);
}

/* ---- files ---- */

/* Of users, who have got in under the lock. */
static void leave(void)
{
    pthread_mutex_lock(&lock);
    if (!--users)
        pthread_cond_signal(&no_users);
    pthread_mutex_unlock(&lock);
}

static void file_put(struct file *f)
{
    bool last;

    if (!f)
        return;
    pthread_mutex_lock(&lock);
    last = --f->refs == 0;
    users += last;
    pthread_mutex_unlock(&lock);
    if (last) {
        preload_lib.close(f->file);
        free(f);
        leave();
    }
}

/* Takes the file out of its entry, which is unknown again. Under the lock. */
static struct file *entry_clear(struct entry *e)
{
    struct file *f = e->file;

    e->file = NULL;
    e->known = false;
    return f;
}

static struct file *file_open(const char *text, const struct statx *st)
{
    struct aifs *fs = text[0] ? preload_mount_of(text) : NULL;
    struct aifs_file *opened = fs ? preload_lib.open_inode(fs, st->stx_ino, O_RDONLY) : NULL;
    struct file *f = opened ? malloc(sizeof *f) : NULL;

    if (f)
        *f = (struct file){.file = opened, .refs = 1};
    else if (opened)
        preload_lib.close(opened);
    return f;
}

static bool is_of(const struct entry *e, const struct statx *st)
{
    return e->ino == st->stx_ino && e->major == st->stx_dev_major &&
           e->minor == st->stx_dev_minor && e->mount == st->stx_mnt_id;
}

static bool which_file(int fd, struct statx *st)
{
    return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO | MNT_ID, st) ==
           0;
}

/* What its mount says of itself; "": it is none of ours. Its daemon may be slow, so without the
 * lock. */
static void ask_mount(int fd, char text[PRELOAD_TEXT_MAX])
{
    ssize_t n = fgetxattr(fd, ATTRIBUTE, text, PRELOAD_TEXT_MAX - 1);

    text[n > 0 ? n : 0] = 0;
}

static bool is_known(const struct entry *e, const struct statx *st)
{
    bool known;

    pthread_mutex_lock(&lock);
    known = ended || (e->known && is_of(e, st));
    pthread_mutex_unlock(&lock);
    return known;
}

/* The file of fd, held for the caller, who is one of users and has to leave(); or NULL. */
static struct file *file_get(int fd)
{
    struct entry *e = &entries[fd];
    struct file *stale = NULL, *f;
    bool asked = false;
    char text[PRELOAD_TEXT_MAX];
    struct statx st;
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || (flags & (O_ACCMODE | O_DIRECT | O_PATH)) != O_RDONLY ||
        !which_file(fd, &st) || !S_ISREG(st.stx_mode))
        return NULL;
    if (!is_known(e, &st)) {
        ask_mount(fd, text);
        asked = true;
    }
    pthread_mutex_lock(&lock);
    if (asked && e->known && !is_of(e, &st) && !ended)
        stale = entry_clear(e);
    if (asked && !e->known && !ended) {
        *e = (struct entry){.major = st.stx_dev_major,
                            .minor = st.stx_dev_minor,
                            .ino = st.stx_ino,
                            .mount = st.stx_mnt_id,
                            .known = true};
        e->file = file_open(text, &st);
    }
    f = !ended && e->known && is_of(e, &st) ? e->file : NULL;
    if (f) {
        f->refs++;
        users++;
    }
    pthread_mutex_unlock(&lock);
    file_put(stale);
    return f;
}

static struct file *hold(int fd, struct inside *in)
{
    struct file *f;

    if (fd < 0 || fd >= PRELOAD_FDS || !enter(in))
        return NULL;
    f = file_get(fd);
    if (!f)
        come_out(in);
    return f;
}

static void let_go(struct file *f, const struct inside *in)
{
    file_put(f);
    leave();
    come_out(in);
}

/* The page is made ready to be written, which costs 1 us. Where the kernel does not do that (before
 * 5.14, memory of devices) it fetches a byte and stores it again: EFAULT where that cannot be. Who
 * may not ask is believed. */
static bool may_store(uint8_t *at)
{
    size_t in_page = (uintptr_t)at % (size_t)getpagesize();
    struct iovec there = {at, 1}, here = {&(char){0}, 1};

    return madvise(at - in_page, 1, MADV_POPULATE_WRITE) == 0 ||
           (process_vm_writev(owner, &there, 1, &here, 1, 0) == 1 &&
            process_vm_readv(owner, &there, 1, &here, 1, 0) == 1) ||
           errno != EFAULT;
}

/* libaifs would crash, on a thread of its own, where there is no room: the kernel says EFAULT, or
 * reads what there is room for. Of a piece both ends are looked at, which tells a wrong address, or
 * length, from a right one. */
static bool has_room(const struct iovec *iov, int n_iov)
{
    for (int k = 0; k < n_iov; k++) {
        uint8_t *at = iov[k].iov_base;

        if (iov[k].iov_len == 0)
            continue;
        if (!may_store(at) || !may_store(at + iov[k].iov_len - 1))
            return false;
    }
    return true;
}

/* -1: not served; what looks like the end is for the kernel to say. */
static ssize_t read_at(struct file *f, void *buf, size_t len, off_t offset)
{
    ssize_t n = preload_lib.pread(f->file, buf, len, offset);

    if (n > 0)
        served_bytes += (uint64_t)n;
    return n > 0 ? n : -1;
}

ssize_t preload_pread(int fd, void *buf, size_t len, off_t offset)
{
    struct inside in;
    struct file *f = hold(fd, &in);
    ssize_t n = -1;

    if (f) {
        if (has_room(&(struct iovec){buf, len}, 1))
            n = read_at(f, buf, len, offset);
        let_go(f, &in);
    }
    return n;
}

/* A read of the bytes that the position has been moved past. */
struct moved {
    int fd;
    off_t offset, len, done;
};

/* Whatever was not read is read by who comes next. */
static void move_back(void *arg)
{
    const struct moved *m = arg;
    int saved = errno;

    if (m->done < m->len)
        (void)lseek(m->fd, m->done - m->len, SEEK_CUR);
    errno = saved;
}

/* The pieces that are served, one after the other. false: the next one is not. */
static bool serve_pieces(struct file *f, struct moved *m, const struct iovec **iov)
{
    ssize_t n;

    for (; m->done < m->len; m->done += n, (*iov)++) {
        n = read_at(f, (*iov)->iov_base, (*iov)->iov_len, m->offset + m->done);
        if (n < 0)
            return false;
        if ((size_t)n < (*iov)->iov_len) {
            m->done += n;
            break;
        }
    }
    return true;
}

static __attribute__((noinline)) ssize_t read_rest(struct moved *m, const struct iovec *iov,
                                                   preload_pread_fn *kernel)
{
    ssize_t n = 0;

    for (; m->done < m->len; iov++) {
        n = kernel(m->fd, iov->iov_base, iov->iov_len, m->offset + m->done);
        m->done += n > 0 ? n : 0;
        if (n < 0 || (size_t)n < iov->iov_len)
            break;
    }
    return m->done || n >= 0 ? (ssize_t)m->done : -1;
}

/* What is not served. Outside: it may be waited for in vain, interrupted, and cancelled. */
static ssize_t read_by_kernel(struct moved *m, const struct iovec *iov, preload_pread_fn *kernel)
{
    ssize_t n;

    pthread_cleanup_push(move_back, m);
    n = read_rest(m, iov, kernel);
    pthread_cleanup_pop(0);
    return n;
}

bool preload_read(int fd, const struct iovec *iov, int n_iov, preload_pread_fn *kernel,
                  ssize_t *ret_bytes)
{
    struct moved m = {.fd = fd};
    struct inside in;
    struct file *f;
    bool served;

    for (int k = 0; k < n_iov; k++) {
        if (iov[k].iov_len > (size_t)(READ_MAX - m.len))
            return false;
        m.len += (off_t)iov[k].iov_len;
    }
    f = hold(fd, &in);
    m.offset = f && has_room(iov, n_iov) ? lseek(fd, m.len, SEEK_CUR) - m.len : -m.len;
    if (m.offset < 0) {
        if (f)
            let_go(f, &in);
        return false;
    }
    served = serve_pieces(f, &m, &iov);
    let_go(f, &in);
    *ret_bytes = served ? (ssize_t)m.done : read_by_kernel(&m, iov, kernel);
    move_back(&m);
    return true;
}

/* Only what the number still stands for is closed here: an entry may be left over from a descriptor
 * that was closed behind our back, and the number be a socket of libaifs, which then is closed by
 * the very thread that our call would wait for. Such an entry stays until its number is read from
 * or we end. One without a file may be on any thread, too, and is not worth waiting for. */
void preload_forget(int fd)
{
    struct file *f = NULL;
    struct inside in;
    struct entry *e;
    struct statx st;

    if (fd < 0 || fd >= PRELOAD_FDS || !entries[fd].known || !enter(&in))
        return;
    e = &entries[fd];
    if (which_file(fd, &st) && is_of(e, &st) &&
        (e->file ? pthread_mutex_lock(&lock) : pthread_mutex_trylock(&lock)) == 0) {
        if (!ended)
            f = entry_clear(e);
        pthread_mutex_unlock(&lock);
        file_put(f);
    }
    come_out(&in);
}

/* One line, for who wants to see whether it is of any use. */
static void tell(void)
{
    const char *path = getenv("AIFS_PRELOAD_STATS");
    char line[64];
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644) : -1;
    int len =
        snprintf(line, sizeof line, "%d %llu\n", (int)owner, (unsigned long long)served_bytes);

    if (fd >= 0) {
        (void)!write(fd, line, (size_t)len);
        close(fd);
    }
}

/* Nobody is in libaifs, and nobody gets in any more. */
static bool give_back(const struct timespec *until)
{
    for (int fd = 0; fd < PRELOAD_FDS; fd++) {
        struct file *f = entry_clear(&entries[fd]);

        if (f) {
            preload_lib.close(f->file);
            free(f);
        }
    }
    return preload_mounts_end(until);
}

/* Nobody gets in, and those who are in come out: false, not in time. Under the lock. */
static bool all_out(const struct timespec *until)
{
    ended = true;
    while (users && pthread_cond_clockwait(&no_users, &lock, CLOCK_MONOTONIC, until) == 0) {
    }
    return !users;
}

bool preload_vacate(void)
{
    bool done = false, others;
    struct timespec until;
    struct inside in;

    if (!enter(&in))
        return false;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += END_S;
    if (pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, &until) == 0) {
        others = ended; /* who ends has its own word */
        done = !others && all_out(&until) && give_back(&until);
        ended = others;
        pthread_mutex_unlock(&lock);
    }
    come_out(&in);
    return done;
}

/* The servers would wait for a session that just vanishes before they let others write. But a
 * thread that reads on while we end needs it: then the session is left to its lease. */
void preload_end(void)
{
    struct timespec until;
    struct inside in;

    if (!preload_mounted() || !enter(&in))
        return;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += END_S;
    if (pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, &until) == 0) {
        if (!ended) {
            if (all_out(&until))
                (void)give_back(&until);
            tell();
        }
        pthread_mutex_unlock(&lock);
    }
    come_out(&in);
}

/* Whoever reads next mounts again, unless others were reading all the time. */
void preload_go_on(void)
{
    struct inside in;

    if (!enter(&in))
        return;
    pthread_mutex_lock(&lock);
    if (ended)
        served_bytes = 0; /* as told */
    ended = false;
    pthread_mutex_unlock(&lock);
    come_out(&in);
}
