/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forks. A child has the memory of its parent but not its threads, so a mount that came with it is
 * dead there; the sockets behind it are the parent's, and two users of one connection would garble
 * it.
 *
 * Before a fork every mount's reactor is parked at the end of a callback: no lock of ours, of the
 * allocator, of OpenSSL or of UCX is held by a thread that the child will not have. A fork waits
 * while a reactor is made or taken down (lib_fork_hold()). In the child all descriptors of the
 * reactors are closed at once. What of the library is used there afterwards
 * comes to life again: the mount with a reactor, a session and connections of its own, open files
 * by their inode number. The old structures stay as they are, as memory nobody looks at.
 *
 * Failure: a server that cannot be reached, or a file that was removed meanwhile: the call fails,
 * and the next one tries again.
 */
#include "client/lib/lib_int.h"

#include <errno.h>

#include "common/base/cleanup.h"
#include "common/net/net.h"
#include "common/rt/thread.h"
#include "common/rt/watched.h"

static _Atomic unsigned generation;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list; held over a fork */
static struct list mounts = {&mounts, &mounts}; /* those that live, and those that may again */

static struct watched open_files; /* of the reactors, while they are parked */

static void park(struct reactor_work *w)
{
    struct aifs *fs = container_of(w, struct aifs, park);

    sem_post(&fs->parked);
    while (sem_wait(&fs->resume) && errno == EINTR) {
    }
}

static void before(void)
{
    struct list *e;

    pthread_mutex_lock(&lock);
    list_for_each (e, &mounts) {
        struct aifs *fs = list_entry(e, struct aifs, link);

        fs->park.fn = park;
        /* else there is none, or it is below us, in a signal handler */
        fs->is_parked = fs->live && !lib_drive_is_mine(fs);
        if (fs->is_parked)
            lib_post(fs, &fs->park);
    }
    list_for_each (e, &mounts) {
        struct aifs *fs = list_entry(e, struct aifs, link);

        while (fs->is_parked && sem_wait(&fs->parked) && errno == EINTR) {
        }
        /* With less the child keeps what it does not know of. */
        if (fs->live)
            (void)!watched_add(&open_files, reactor_fd(fs->reactor));
    }
}

static void in_parent(void)
{
    struct list *e;

    list_for_each (e, &mounts) {
        struct aifs *fs = list_entry(e, struct aifs, link);

        if (fs->is_parked)
            sem_post(&fs->resume);
    }
    open_files.n = 0;
    pthread_mutex_unlock(&lock);
}

/* One that a thread of the parent was reviving has to be revived again: its lock, too, is new. */
static void in_child(void)
{
    struct list *e;

    atomic_fetch_add(&generation, 1);
    watched_close(&open_files);
    open_files.n = 0;
    list_for_each (e, &mounts) {
        struct aifs *fs = list_entry(e, struct aifs, link);

        if (fs->live)
            lib_drive_abandon(fs);
        fs->live = false;
        pthread_mutex_init(&fs->reviving, NULL);
        lib_buffers_after_fork(fs->buffers);
    }
    net_after_fork();
    pthread_mutex_init(&lock, NULL);
}

static void arm(void)
{
    (void)pthread_atfork(before, in_parent, in_child);
}

unsigned lib_generation(void)
{
    pthread_once(&once, arm);
    return atomic_load_explicit(&generation, memory_order_relaxed);
}

bool lib_is_parents(const struct aifs *fs)
{
    return atomic_load_explicit(&fs->generation, memory_order_acquire) != lib_generation();
}

void lib_known(struct aifs *fs)
{
    (void)lib_generation();
    AUTO_LOCK(&lock);
    list_push_back(&mounts, &fs->link);
}

void lib_forget(struct aifs *fs)
{
    AUTO_LOCK(&lock);

    list_remove(&fs->link);
}

void lib_fork_hold(struct lib_fork_hold *ret_hold)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &ret_hold->cancel_state);
    thread_block_signals(&ret_hold->signals);
    pthread_mutex_lock(&lock);
}

void lib_fork_release(const struct lib_fork_hold *hold)
{
    pthread_mutex_unlock(&lock);
    pthread_sigmask(SIG_SETMASK, &hold->signals, NULL);
    pthread_setcancelstate(hold->cancel_state, NULL);
}

int lib_usable(struct aifs *fs)
{
    int err = 0, cancel_state;

    if (!lib_is_parents(fs))
        return 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* not with the lock */
    pthread_mutex_lock(&fs->reviving);
    if (lib_is_parents(fs))
        err = lib_mount_again(fs);
    pthread_mutex_unlock(&fs->reviving);
    pthread_setcancelstate(cancel_state, NULL);
    return err ? -ENOTCONN : 0;
}

int lib_file_usable(struct aifs_file *f)
{
    int err = lib_usable(f->fs), cancel_state;
    unsigned now = lib_generation();

    if (err || atomic_load_explicit(&f->generation, memory_order_acquire) == now)
        return err;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* not with the lock */
    pthread_mutex_lock(&f->fs->reviving);
    if (atomic_load_explicit(&f->generation, memory_order_acquire) != now)
        err = lib_file_reopen(f);
    if (!err)
        atomic_store_explicit(&f->generation, now, memory_order_release);
    pthread_mutex_unlock(&f->fs->reviving);
    pthread_setcancelstate(cancel_state, NULL);
    return err;
}
