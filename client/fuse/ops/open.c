/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OPEN. The page cache is used by readers and by files opened for both, while the core holds a
 * lease. Who only writes goes past it: a page filled by write(2) costs more than the network, and
 * nobody can map such a file. So do O_DIRECT and files that others write.
 */
#include <errno.h>
#include <fcntl.h>

#include "client/fuse/fs.h"
#include "common/base/mem.h"

uint32_t fs_open_flags(const struct core_opened *opened, uint32_t flags)
{
    uint32_t out = 0;

    if (opened->lease == MSG_LEASE_NONE || (flags & O_DIRECT) || (flags & O_ACCMODE) == O_WRONLY)
        out |= CHANNEL_OPEN_DIRECT;
    if (opened->keep_cache)
        out |= CHANNEL_OPEN_KEEP_CACHE;
    if ((flags & O_ACCMODE) == O_RDONLY && !opened->locks_seen)
        out |= CHANNEL_OPEN_NOFLUSH; /* nothing can be dirty */
    return out;
}

static void run(struct op *o)
{
    core_open(o->fs->core, &o->req, fs_ino(o->fs, o->q->node), (int)o->q->open.flags);
}

static void finish(struct op *o, int status)
{
    struct core_opened opened = o->req.out.opened;
    struct fs_file *f;
    uint32_t flags;

    if (status != 0) {
        op_fail_inode(o, status);
        return;
    }
    fs_raced_over(o->fs, o->q);
    f = mem_zalloc(sizeof(*f));
    if (!f) {
        core_release(o->fs->core, opened.file);
        op_fail(o, -ENOMEM);
        return;
    }
    f->file = opened.file;
    if (opened.attr_changed) /* what is open shows what others had written before */
        channel_expire_attr(o->q->channel, o->q->node);
    flags = fs_open_flags(&opened, o->q->open.flags);
    if (opened.whole && channel_can_store(o->q->channel))
        op_give(o, f, opened.whole, flags);
    else
        channel_reply_open(op_end(o, 0), (uintptr_t)f, flags);
}

void op_open(struct channel_req *q)
{
    op_start(q, run, finish, false);
}
