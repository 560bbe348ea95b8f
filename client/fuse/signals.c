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
 * A process that ends closes what it has open, and no signal can reach it any more: such a close is
 * cancelled within 200 ms; what was written goes on to the servers, and nobody hears of its
 * outcome.
 *
 * Fails: a caller that cannot be seen (in a PID namespace that is not below ours) is taken to end
 * by a signal, and not to be ending.
 */
#include "client/fuse/fs.h"

#define LOOK_NS (200 * NS_PER_MS)

static bool waits_for_lock(const struct op *o) /* one that has been signalled */
{
    return o->q->op == CHANNEL_SETLK && o->q->lock.wait;
}

static void look(struct op *o)
{
    list_push_back(&o->fs->heeded, &o->heeded); /* cancelling may end it */
    if (waits_for_lock(o) || (o->signalled && channel_req_ends(o->q)) ||
        (o->q->op == CHANNEL_FLUSH && channel_req_exits(o->q)))
        core_cancel(o->waiting);
}

static void start_timer(struct fs *fs)
{
    if (!list_empty(&fs->heeded) && !fs->ended)
        reactor_timer_start(fs->reactor, &fs->signal_timer,
                            clock_mono_ns(reactor_clock(fs->reactor)) + LOOK_NS);
}

static void on_timer(struct reactor_timer *t)
{
    struct fs *fs = container_of(t, struct fs, signal_timer);
    struct list now, *l;

    list_init(&now);
    list_splice(&now, &fs->heeded);
    while ((l = list_pop_front(&now)) != NULL)
        look(list_entry(l, struct op, heeded));
    start_timer(fs);
}

void fs_signals_init(struct fs *fs)
{
    list_init(&fs->heeded);
    reactor_timer_init(&fs->signal_timer, on_timer);
}

void fs_signals_end(struct fs *fs)
{
    reactor_timer_cancel(fs->reactor, &fs->signal_timer);
}

static void start_timer_unless_running(struct fs *fs)
{
    if (!reactor_timer_running(&fs->signal_timer))
        start_timer(fs);
}

static void on_interrupt(struct channel_req *q)
{
    struct op *o = (struct op *)(void *)q->priv;
    struct fs *fs = o->fs;

    if (!o->run || o->signalled) /* it has ended, and its reply is on the way */
        return;
    o->signalled = true;
    stat_inc(&fs->signals);
    list_remove(&o->heeded);
    look(o);
    start_timer_unless_running(fs);
}

void op_heed(struct op *o)
{
    struct fs *fs = o->fs;

    if (o->q->op == CHANNEL_FLUSH && list_empty(&o->heeded)) {
        list_push_back(&fs->heeded, &o->heeded);
        start_timer_unless_running(fs);
    }
    channel_on_interrupt(o->q, on_interrupt); /* which may be at once, and end it */
}
