/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which thread turns the mount's reactor. Whoever waits for small transfers does so itself: what it
 * submits is sent, and what comes is completed, without waking anybody. For all else there is the
 * mount's own thread.
 *
 * One thread at a time drives. `driven` says that one does; it changes under the lock, which orders
 * what one has done before what the next does, and which nobody holds while driving. The own thread
 *   - drives, until there is nothing to do;
 *   - watches, while nobody drives: asleep in poll(2) until the reactor has something to do;
 *   - stands by, since another drives: looks every 2 ms whether that still goes on, and takes over
 *     when it does not. So timers, renewals and recalls are served at most that much later than a
 *     program comes back to drive.
 * It is called at once where a driver leaves something that should not wait: work just posted,
 * others who wait for theirs, or large transfers, whose bytes are better moved while the program
 * does something else. Where several threads wait for their own at a time, where the program waits
 * on a queue's descriptor, and while large transfers are under way, only the own thread drives.
 *
 * Nothing but creation fails here: -EMFILE and the like.
 */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "client/lib/lib_int.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"

#define STAND_BY_NS (2 * NS_PER_MS)
#define CROWD_NS    (20 * NS_PER_MS) /* several waited: it is the own thread's for so long */
#define LARGE_BYTES (256u * KIB)     /* under way together */
#define SPIN_BYTES  (32u * KIB)      /* servers that have more to do keep the cores busy */
#define TURNS_MAX   16               /* what was begun is sent */

static void cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

int lib_drive_init(struct aifs *fs)
{
    struct lib_drive *d = &fs->drive;
    bool shy = d->shy;
    int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (bell < 0)
        return -errno;

    memset(d, 0, sizeof *d);
    d->shy = shy;
    d->bell = bell;
    pthread_mutex_init(&d->lock, NULL);
    cond_init(&d->call);
    return 0;
}

void lib_drive_abandon(struct aifs *fs)
{
    close(fs->drive.bell);
}

void lib_drive_fini(struct aifs *fs)
{
    close(fs->drive.bell);
    pthread_cond_destroy(&fs->drive.call);
    pthread_mutex_destroy(&fs->drive.lock);
}

/* ---- under the lock ---- */

/* It sees for itself what there is to do. The bell is its alone: what the reactor's descriptor
 * tells would be gone if another drove before it has woken, and it would sleep on. */
static void wake_own(struct lib_drive *d)
{
    int cancel_state;

    if (!d->watching) {
        pthread_cond_signal(&d->call);
    } else if (!d->rung) {
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* not with the lock */
        d->rung = eventfd_write(d->bell, 1) == 0;
        pthread_setcancelstate(cancel_state, NULL);
    }
}

/* The own thread is to drive; nobody does. */
static void call_own(struct lib_drive *d)
{
    if (!d->called) {
        d->called = true;
        wake_own(d);
    }
}

static bool is_crowded(struct lib_drive *d)
{
    return d->crowded_ns && clock_mono_ns(clock_real()) - d->crowded_ns < CROWD_NS;
}

/* Is it left to the own thread, as long as it is like this? */
static bool own_only(struct lib_drive *d)
{
    return d->shy || atomic_load_explicit(&d->flying, memory_order_relaxed) > LARGE_BYTES ||
           is_crowded(d);
}

static struct timespec in_ns(uint64_t ns)
{
    uint64_t at = clock_mono_ns(clock_real()) + ns;

    return (struct timespec){(time_t)(at / NS_PER_S), (long)(at % NS_PER_S)};
}

/* Others drive, or have just done so. One that drives for long says when it leaves. */
static void stand_by(struct lib_drive *d)
{
    while (!d->called && !d->stopping && (d->driven || d->drives != d->seen)) {
        struct timespec until = in_ns(STAND_BY_NS);

        d->seen = d->drives;
        while (!d->called && !d->stopping &&
               pthread_cond_timedwait(&d->call, &d->lock, &until) != ETIMEDOUT) {
        }
        d->told = true;
        while (d->driven && d->drives == d->seen && !d->stopping)
            pthread_cond_wait(&d->call, &d->lock);
        d->told = false;
    }
}

/* Sources stay armed only until somebody drives, who therefore ends this. */
static void watch(struct aifs *fs, uint64_t rest_ns)
{
    struct lib_drive *d = &fs->drive;
    struct pollfd p[2] = {{.fd = reactor_fd(fs->reactor), .events = POLLIN},
                          {.fd = d->bell, .events = POLLIN}};
    struct timespec ts = {(time_t)(rest_ns / NS_PER_S), (long)(rest_ns % NS_PER_S)};

    d->watching = true;
    d->seen = d->drives;
    pthread_mutex_unlock(&d->lock);
    (void)ppoll(p, ARRAY_LEN(p), &ts, NULL);
    pthread_mutex_lock(&d->lock);
    if (d->rung)
        (void)eventfd_read(d->bell, &(eventfd_t){0});
    d->watching = d->rung = false;
}

/* ---- the mount's own thread ---- */

/* How long it may sleep in a turn, for want of others who would drive. */
static uint64_t own_sleep_ns(struct lib_drive *d)
{
    uint64_t ns;

    pthread_mutex_lock(&d->lock);
    ns = d->stopping || !own_only(d) ? 0 : d->shy ? NS_PER_S : CROWD_NS;
    pthread_mutex_unlock(&d->lock);
    return ns;
}

/* Until there is nothing to do; how long that will be so. */
static uint64_t own_turns(struct aifs *fs)
{
    uint64_t rest_ns = 0, sleep_ns;

    while (!rest_ns) {
        sleep_ns = own_sleep_ns(&fs->drive);
        (void)reactor_run_once(fs->reactor, sleep_ns);
        if (!sleep_ns)
            rest_ns = reactor_rest(fs->reactor);
    }
    return rest_ns;
}

void *lib_drive_main(void *arg)
{
    struct aifs *fs = arg;
    struct lib_drive *d = &fs->drive;
    uint64_t rest_ns;

    pthread_mutex_lock(&d->lock);
    while (!d->stopping) {
        stand_by(d);
        if (d->driven || d->stopping)
            continue;
        d->driven = d->own = true;
        d->called = false;
        d->seen = d->drives;
        pthread_mutex_unlock(&d->lock);
        rest_ns = own_turns(fs);
        pthread_mutex_lock(&d->lock);
        d->driven = d->own = false;
        if (!d->stopping && reactor_due_ns(fs->reactor) != 0)
            watch(fs, rest_ns);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

void lib_drive_stop(struct aifs *fs)
{
    struct lib_drive *d = &fs->drive;

    pthread_mutex_lock(&d->lock);
    d->stopping = true;
    wake_own(d);
    reactor_ring(fs->reactor); /* it may drive, and sleep */
    pthread_mutex_unlock(&d->lock);
}

/* ---- others ---- */

void lib_post(struct aifs *fs, struct reactor_work *w)
{
    struct lib_drive *d = &fs->drive;
    int cancel_state;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* posted, and nobody told */
    reactor_post(fs->reactor, w);
    pthread_mutex_lock(&d->lock);
    if (!d->driven)
        call_own(d);
    pthread_mutex_unlock(&d->lock);
    pthread_setcancelstate(cancel_state, NULL);
}

bool lib_drive_begin(struct aifs *fs)
{
    struct lib_drive *d = &fs->drive;
    bool free;

    pthread_mutex_lock(&d->lock);
    free = !d->driven && !d->called && !d->n_waiting && !own_only(d);
    if (free) {
        d->driven = true;
        d->driver = pthread_self();
        d->drives++;
    } else if (d->driven && !d->own) {
        d->crowded_ns = clock_mono_ns(clock_real());
    }
    pthread_mutex_unlock(&d->lock);
    if (free) /* a thread that ended in here would leave nobody to drive */
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &d->cancel_state);
    return free;
}

bool lib_drive_is_mine(struct aifs *fs)
{
    struct lib_drive *d = &fs->drive;

    AUTO_LOCK(&d->lock);
    return d->driven && !d->own && pthread_equal(d->driver, pthread_self());
}

/* A program's thread waits for little, which is near. Where it is more, or is to become durable,
 * it is others' work, who may want this core. `own` changes only while nobody drives. */
uint64_t lib_drive_spin_for_ns(void *arg)
{
    struct aifs *fs = arg;

    if (fs->drive.own || core_holds_writes(fs->core) ||
        atomic_load_explicit(&fs->drive.flying, memory_order_relaxed) > SPIN_BYTES)
        return 0;
    return UINT64_MAX;
}

void lib_drive_turn(struct aifs *fs, uint64_t max_wait_ns)
{
    (void)reactor_run_once(fs->reactor, max_wait_ns);
}

void lib_drive_end(struct aifs *fs)
{
    struct lib_drive *d = &fs->drive;
    int cancel_state = d->cancel_state;

    for (int i = 0; i < TURNS_MAX && reactor_due_ns(fs->reactor) == 0; i++)
        (void)reactor_run_once(fs->reactor, 0);
    pthread_mutex_lock(&d->lock);
    d->driven = false;
    if (d->n_waiting || reactor_due_ns(fs->reactor) == 0 || own_only(d))
        call_own(d);
    else if (d->told || d->watching)
        wake_own(d);
    pthread_mutex_unlock(&d->lock);
    pthread_setcancelstate(cancel_state, NULL);
}

int lib_wait_begin(struct aifs *fs)
{
    struct lib_drive *d = &fs->drive;
    int cancel_state;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    pthread_mutex_lock(&d->lock);
    if (++d->n_waiting > 1)
        d->crowded_ns = clock_mono_ns(clock_real());
    if (!d->driven && !d->watching)
        call_own(d);
    pthread_mutex_unlock(&d->lock);
    return cancel_state;
}

void lib_wait_end(struct aifs *fs, int cancel_state)
{
    pthread_mutex_lock(&fs->drive.lock);
    fs->drive.n_waiting--;
    pthread_mutex_unlock(&fs->drive.lock);
    pthread_setcancelstate(cancel_state, NULL);
}

void lib_drive_shy(struct aifs *fs)
{
    struct lib_drive *d = &fs->drive;

    pthread_mutex_lock(&d->lock);
    d->shy = true;
    if (!d->driven)
        call_own(d);
    pthread_mutex_unlock(&d->lock);
}
