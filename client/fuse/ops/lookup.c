/* SPDX-License-Identifier: Apache-2.0 */
/* LOOKUP: a name in a directory. A name that does not exist is remembered by the kernel too, for as
 * long as the core promises. Whoever has just lost a race to somebody who replaced the name has
 * what it names now opened by the same step (raced.c). */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "client/fuse/fs.h"

static void run(struct op *o)
{
    const char *name = o->q->name.name;

    o->req.want_negative = true;
    core_lookup(o->fs->core, &o->req, fs_ino(o->fs, o->q->node), name, (uint32_t)strlen(name));
}

static void finish(struct op *o, int status)
{
    uint64_t valid_ns = o->req.entry.entry_valid_ns;

    if (status == 0 && valid_ns)
        fs_late_told(o->fs, fs_ino(o->fs, o->q->node), o->q->name.name);
    if (status != 0)
        op_fail(o, status);
    else if (o->req.entry.ino == 0)
        channel_reply_no_entry(op_end(o, 0), valid_ns);
    else
        op_reply_entry(o);
}

static void finish_by_loser(struct op *o, int status)
{
    if (status == 0 && S_ISLNK(o->req.entry.attr.mode))
        fs_raced_hold_link(o->fs, o->q, o->req.entry.ino);
    finish(o, status);
}

/* ---- and opens ---- */

static void run_opening(struct op *o)
{
    const struct fs_raced *r = fs_raced_find(o->fs, o->q);
    const char *name = o->q->name.name;

    core_open_name(o->fs->core, &o->req, fs_ino(o->fs, o->q->node), name, (uint32_t)strlen(name),
                   r ? r->flags : O_RDONLY);
}

/* What others have changed meanwhile the kernel was told before it hears this: it is to ask. */
static void pages_dropped(void *user, void *arg, int err UNUSED)
{
    const struct fs *fs = user;
    struct op *o = arg;

    if (fs->ended) /* it has been answered, or will be with all others */
        return;

    o->req.entry.entry_valid_ns = o->req.entry.attr_valid_ns = 0;
    finish(o, 0);
}

static void finish_opening(struct op *o, int status)
{
    struct fs *fs = o->fs;

    if (status == -ENOENT || status == -EINTR) {
        finish(o, status);
        return;
    }
    if (status != 0) {
        op_go_on(o, run, finish_by_loser);
        return;
    }
    fs_raced_hold(fs, o->q, o->req.out.opened.file);
    /* From now on the core holds a lease, and the OPEN that comes is told to keep what the kernel
     * has of it: that must be nothing from before. */
    if (o->req.out.opened.keep_cache) {
        finish(o, 0);
    } else if (channel_notify_inode(o->q->channel, fs_node(fs, o->req.entry.ino), 0, 0,
                                    pages_dropped, o) != 0) {
        fs_raced_over(fs, o->q);
        op_go_on(o, run, finish_by_loser);
    }
}

void op_lookup(struct channel_req *q)
{
    if (fs_raced_looks(fs_of(q), q))
        op_start(q, run_opening, finish_opening, false);
    else
        op_start(q, run, finish, false);
}
