/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contents that go to the kernel with an OPEN: of a small file that is about to be read whole
 * (client/core/preread.c). A READ is a request, an answer and two wake-ups less.
 *
 * Happy path: the file has been opened → its data, asked for already, comes → it is stored in the
 * page cache (NOTIFY_STORE) → the OPEN is answered, and says that what is cached is right.
 *
 * A page that a READ is to fill is locked until that is answered, and storing would wait for it, on
 * the reactor that has to answer. So nothing is stored but of an inode with this open file only,
 * which the kernel does not know yet: whatever else was open has been released, which comes when
 * its last READ is over. And nothing of one whose attributes the kernel was not told as they are:
 * it might have pages behind the end. Nor with kernels that do not clear the rest of the last page.
 *
 * Fails: no data within WAIT_NS, a lease that is being recalled, a kernel that refuses: the
 * OPEN is answered as ever, and READs come.
 */
#include "client/fuse/fs.h"

#define WAIT_NS (100 * NS_PER_MS) /* servers that answer late keep no open */

static void run(struct op *o)
{
    core_read(o->fs->core, &o->req, o->given->file, 0, o->given_bytes, NULL);
}

static bool store(struct op *o)
{
    const struct core_req *r = &o->req;
    bool stored =
        core_give_whole(o->given->file) && r->out.read.bytes == o->given_bytes &&
        channel_store(o->q->channel, o->q->node, r->out.read.iov, (int)r->out.read.n_iov) == 0;

    core_read_done(&o->req);
    if (stored)
        stat_inc(&o->fs->gifts);
    return stored;
}

static void finish(struct op *o, int status)
{
    uint32_t flags = o->given_flags;

    list_remove(&o->giving);
    if (status == 0 && store(o))
        flags |= CHANNEL_OPEN_KEEP_CACHE;
    channel_reply_open(op_end(o, 0), (uintptr_t)o->given, flags);
}

static void start_timer(struct fs *fs)
{
    if (!fs->ended && !list_empty(&fs->giving) && !reactor_timer_running(&fs->give_timer))
        reactor_timer_start(fs->reactor, &fs->give_timer,
                            list_entry(fs->giving.next, struct op, giving)->give_until_ns);
}

static void on_timer(struct reactor_timer *t)
{
    struct fs *fs = container_of(t, struct fs, give_timer);
    uint64_t now = clock_mono_ns(reactor_clock(fs->reactor));

    while (!list_empty(&fs->giving)) {
        struct op *o = list_entry(fs->giving.next, struct op, giving);

        if (o->give_until_ns > now)
            break;
        list_remove(&o->giving);
        core_give_up(&o->req);
    }
    start_timer(fs);
}

void op_give(struct op *o, struct fs_file *f, uint32_t bytes, uint32_t flags)
{
    struct fs *fs = o->fs;

    o->given = f;
    o->given_bytes = bytes;
    o->given_flags = flags;
    o->give_until_ns = clock_mono_ns(reactor_clock(fs->reactor)) + WAIT_NS;
    list_push_back(&fs->giving, &o->giving);
    start_timer(fs);
    op_go_on(o, run, finish);
}

void fs_give_init(struct fs *fs)
{
    list_init(&fs->giving);
    reactor_timer_init(&fs->give_timer, on_timer);
}

void fs_give_end(struct fs *fs)
{
    reactor_timer_cancel(fs->reactor, &fs->give_timer);
}
