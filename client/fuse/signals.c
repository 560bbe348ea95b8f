/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals while a call waits. On a local file system a signal that a process handles ends no call
 * on a file but the wait for a lock, and programs rely on it: fsync(2) with EINTR is the end of a
 * database. One that ends the process must not wait for servers.
 *
 * Happy path: the kernel tells of the first signal (INTERRUPT), whichever it is, and of none after
 * it. A wait for a lock is cancelled. Anything else is looked at, now and every 200 ms until it has
 * ended: when its caller is about to end, it is cancelled.
 *
 * Fails: a caller that cannot be seen (in a PID namespace that is not below ours) is taken to end.
 */
#include "client/fuse/fs.h"

#define LOOK_NS (200 * NS_PER_MS)

static bool waits_for_lock(const struct op *o)
{
    return o->q->op == CHANNEL_SETLK && o->q->lock.wait;
}

static void look(struct op *o)
{
    struct fs *fs = o->fs;

    list_push_back(&fs->signalled, &o->signalled); /* cancelling may end it */
    if (waits_for_lock(o) || channel_req_ends(o->q))
        core_cancel(o->waiting);
}

static void start_timer(struct fs *fs)
{
    if (!list_empty(&fs->signalled) && !fs->ended)
        reactor_timer_start(fs->reactor, &fs->signal_timer,
                            clock_mono_ns(reactor_clock(fs->reactor)) + LOOK_NS);
}

static void on_timer(struct reactor_timer *t)
{
    struct fs *fs = container_of(t, struct fs, signal_timer);
    struct list now, *l;

    list_init(&now);
    list_splice(&now, &fs->signalled);
    while ((l = list_pop_front(&now)) != NULL)
        look(list_entry(l, struct op, signalled));
    start_timer(fs);
}

void fs_signals_init(struct fs *fs)
{
    list_init(&fs->signalled);
    reactor_timer_init(&fs->signal_timer, on_timer);
}

void fs_signals_end(struct fs *fs)
{
    reactor_timer_cancel(fs->reactor, &fs->signal_timer);
}

void op_signalled(struct op *o)
{
    struct fs *fs = o->fs;

    if (!list_empty(&o->signalled))
        return;
    stat_inc(&fs->signals);
    look(o);
    if (!reactor_timer_running(&fs->signal_timer))
        start_timer(fs);
}
