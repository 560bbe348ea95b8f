/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors and the files behind them.
 *
 * The table has an entry for each descriptor number that was read from: which file it was (device
 * and inode) and its file in libaifs, or that it is none of ours. Readers hold an entry while they
 * read, so that a close() elsewhere waits for nobody: the last to let go closes.
 *
 * A mount of aifs is known by an extended attribute that its daemon answers itself, on each of its
 * files: the source, and the options needed to get there. libaifs is loaded, and mounted, with the
 * first such file. What fails is tried again after a while; meanwhile the kernel serves.
 *
 * A signal handler may close, or end the process, in the middle of all this: whoever has the lock
 * is inside, and a thread that is inside does not come here again. libaifs' own threads close
 * descriptors, too: they wait for nothing here, as no entry is theirs (preload_forget()).
 *
 * A child that shares our memory (vfork) must not change the table: it is another process by its
 * number, and every change asks for that first.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "client/lib/aifs.h"
#include "client/preload/preload_int.h"

#define ATTRIBUTE "user.aifs.mount"
/* drive=own: handlers of signals read, too. */
#define OPTIONS   "%s,ro,soft,timeo=%us,mount_timeout=%us,memory_limit=256Mi,drive=own"
#define TIMEOUT_S 5
#define RETRY_S   10
#define END_S     1 /* a process that ends waits so long for its other threads */
#define LOCKS     64

struct file { /* reference counted: its entry, and who reads */
    struct aifs_file *file;
    unsigned refs;
};

struct entry {
    uint32_t major, minor;
    uint64_t ino;
    struct file *file; /* NULL: not served */
    bool known;
};

struct mounted {
    uint32_t major, minor;
    struct aifs *fs; /* NULL: not one of ours, or not now */
    time_t retry;    /* 0: never */
};

static struct {
    int (*mount)(const char *source, const char *options, struct aifs **ret_fs);
    int (*unmount)(struct aifs *fs);
    struct aifs_file *(*open_inode)(struct aifs *fs, uint64_t ino, int flags);
    ssize_t (*pread)(struct aifs_file *f, void *buf, size_t len, off_t offset);
    int (*close)(struct aifs_file *f);
} lib;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t locks[LOCKS] = {[0 ... LOCKS - 1] = PTHREAD_MUTEX_INITIALIZER};
static struct entry entries[PRELOAD_FDS];
static struct mounted mounts[PRELOAD_MOUNTS];
static unsigned n_mounts;
static pid_t owner; /* of the table */
static bool ended;
static unsigned users; /* threads that may be in libaifs without the lock */
static pthread_cond_t no_users = PTHREAD_COND_INITIALIZER;
static _Atomic uint64_t served_bytes;
/* What libaifs reads itself is not for us. Set before the lock is taken. */
static _Thread_local bool inside;

void preload_lock(int fd)
{
    pthread_mutex_lock(&locks[(unsigned)fd % LOCKS]);
}

void preload_unlock(int fd)
{
    pthread_mutex_unlock(&locks[(unsigned)fd % LOCKS]);
}

/* Another thread of the parent may have been anywhere in here: the child begins anew. */
static void fork_child(void)
{
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&no_users, NULL);
    users = 0;
    for (int k = 0; k < LOCKS; k++)
        pthread_mutex_init(&locks[k], NULL);
    if (n_mounts)
        memset(entries, 0, sizeof entries);
    n_mounts = 0;
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

static time_t now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return t.tv_sec;
}

/* ---- libaifs ---- */

static bool find(void *library, const char *name, void *ret_function)
{
    void *f = dlsym(library, name);

    if (f)
        memcpy(ret_function, &f, sizeof f);
    return f != NULL;
}

static bool load(void)
{
    void *library;

    if (lib.close)
        return true;
    library = dlopen("libaifs.so.0", RTLD_NOW | RTLD_LOCAL);
    return library && find(library, "aifs_mount", &lib.mount) &&
           find(library, "aifs_unmount", &lib.unmount) &&
           find(library, "aifs_open_inode", &lib.open_inode) &&
           find(library, "aifs_pread", &lib.pread) && find(library, "aifs_close", &lib.close);
}

static unsigned timeout_s(void)
{
    const char *value = getenv("AIFS_PRELOAD_TIMEOUT");
    unsigned long s = value ? strtoul(value, NULL, 10) : 0;

    return s >= 1 && s <= 3600 ? (unsigned)s : TIMEOUT_S;
}

/* text: "SOURCE\nOPTIONS" */
static struct aifs *mount_by(char *text)
{
    char options[1200];
    char *newline = strchr(text, '\n');
    unsigned s = timeout_s();
    struct aifs *fs = NULL;

    if (!newline || strlen(newline + 1) + sizeof OPTIONS > sizeof options)
        return NULL;
    *newline = 0;
    snprintf(options, sizeof options, OPTIONS, newline + 1, s, s);
    return load() && lib.mount(text, options, &fs) == 0 ? fs : NULL;
}

/* The mount that fd is on, or NULL. Under the lock. */
static struct aifs *mount_of(int fd, const struct statx *st)
{
    struct mounted *m = NULL;
    char text[1100];
    ssize_t n;

    for (unsigned k = 0; k < n_mounts && !m; k++)
        if (mounts[k].major == st->stx_dev_major && mounts[k].minor == st->stx_dev_minor)
            m = &mounts[k];
    if (m && (m->fs || !m->retry || now_s() < m->retry))
        return m->fs;
    if (!m && n_mounts == PRELOAD_MOUNTS)
        return NULL;
    if (!m) {
        m = &mounts[n_mounts++];
        *m = (struct mounted){.major = st->stx_dev_major, .minor = st->stx_dev_minor};
    }
    n = fgetxattr(fd, ATTRIBUTE, text, sizeof text - 1);
    if (n <= 0) {
        m->retry = 0;
        return NULL;
    }
    text[n] = 0;
    m->fs = mount_by(text);
    m->retry = now_s() + RETRY_S;
    return m->fs;
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
        lib.close(f->file);
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

static struct file *file_open(int fd, const struct statx *st)
{
    struct aifs *fs = mount_of(fd, st);
    struct aifs_file *opened = fs ? lib.open_inode(fs, st->stx_ino, O_RDONLY) : NULL;
    struct file *f = opened ? malloc(sizeof *f) : NULL;

    if (f)
        *f = (struct file){.file = opened, .refs = 1};
    else if (opened)
        lib.close(opened);
    return f;
}

static bool is_of(const struct entry *e, const struct statx *st)
{
    return e->ino == st->stx_ino && e->major == st->stx_dev_major && e->minor == st->stx_dev_minor;
}

/* The file of fd, held for the caller, who is one of users and has to leave(); or NULL. */
static struct file *file_get(int fd)
{
    struct entry *e = &entries[fd];
    struct file *stale = NULL, *f;
    struct statx st;
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || (flags & (O_ACCMODE | O_DIRECT | O_PATH)) != O_RDONLY ||
        statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &st) ||
        !S_ISREG(st.stx_mode))
        return NULL;
    pthread_mutex_lock(&lock);
    if (e->known && !is_of(e, &st) && !ended)
        stale = entry_clear(e);
    if (!e->known && !ended) {
        *e = (struct entry){
            .major = st.stx_dev_major, .minor = st.stx_dev_minor, .ino = st.stx_ino, .known = true};
        e->file = file_open(fd, &st);
    }
    f = ended ? NULL : e->file;
    if (f) {
        f->refs++;
        users++;
    }
    pthread_mutex_unlock(&lock);
    file_put(stale);
    return f;
}

ssize_t preload_pread(int fd, void *buf, size_t len, off_t offset)
{
    int saved = errno;
    struct file *f;
    ssize_t n = -1;

    if (inside || fd < 0 || fd >= PRELOAD_FDS)
        return -1;
    inside = true;
    f = syscall(SYS_getpid) == owner ? file_get(fd) : NULL;
    if (f) {
        n = lib.pread(f->file, buf, len, offset);
        if (n > 0)
            served_bytes += (uint64_t)n;
        file_put(f);
        leave();
    }
    inside = false;
    errno = saved;
    return n > 0 ? n : -1; /* what looks like the end is for the kernel to say */
}

/* Only what the number still stands for is closed here: an entry may be left over from a descriptor
 * that was closed behind our back, and the number be a socket of libaifs, which then is closed by
 * the very thread that our call would wait for. Such an entry stays until its number is read from
 * or we end. One without a file may be on any thread, too, and is not worth waiting for. */
void preload_forget(int fd)
{
    struct file *f = NULL;
    int saved = errno;
    struct entry *e;
    struct statx st;

    if (inside || fd < 0 || fd >= PRELOAD_FDS || !entries[fd].known || syscall(SYS_getpid) != owner)
        return;
    e = &entries[fd];
    inside = true;
    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &st) == 0 && is_of(e, &st) &&
        (e->file ? pthread_mutex_lock(&lock) : pthread_mutex_trylock(&lock)) == 0) {
        if (!ended)
            f = entry_clear(e);
        pthread_mutex_unlock(&lock);
        file_put(f);
    }
    inside = false;
    errno = saved;
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
static void give_back(void)
{
    for (int fd = 0; fd < PRELOAD_FDS; fd++) {
        struct file *f = entry_clear(&entries[fd]);

        if (f) {
            lib.close(f->file);
            free(f);
        }
    }
    for (unsigned k = 0; k < n_mounts; k++)
        if (mounts[k].fs)
            lib.unmount(mounts[k].fs);
    n_mounts = 0;
}

/* The servers would wait for a session that just vanishes before they let others write. But a
 * thread that reads on while we end needs it: then the session is left to its lease. */
void preload_end(void)
{
    struct timespec until;

    if (!n_mounts || inside || syscall(SYS_getpid) != owner)
        return;
    inside = true;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += END_S;
    if (pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, &until) == 0) {
        if (!ended) {
            ended = true;
            while (users &&
                   pthread_cond_clockwait(&no_users, &lock, CLOCK_MONOTONIC, &until) == 0) {
            }
            if (!users)
                give_back();
            tell();
        }
        pthread_mutex_unlock(&lock);
    }
    inside = false;
}

/* Whoever reads next mounts again, unless others were reading all the time. */
void preload_go_on(void)
{
    if (inside || syscall(SYS_getpid) != owner)
        return;
    inside = true;
    pthread_mutex_lock(&lock);
    if (ended)
        served_bytes = 0; /* as told */
    ended = false;
    pthread_mutex_unlock(&lock);
    inside = false;
}
