/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls by name that lose a race. The kernel opens by LOOKUP and OPEN (and asks by LOOKUP and
 * GETATTR), and others may replace the name in between: the second is answered with ESTALE, and the
 * kernel tries once more, with a LOOKUP that trusts no cache. Losing a second time would be an
 * error of open(2).
 *
 * Happy path: who has lost is remembered (fs_raced_lost). Its look-ups open what they find, in one
 * step of the server (core_open_name), so the file lives on under whatever name or none; the OPEN
 * that follows finds it open here. Of a symbolic link, which never leads elsewhere, its target is
 * held instead. Then, or after a second, what was held is let go.
 *
 * Fails: whatever cannot be opened so (a directory; an old server) is looked up as always. More
 * losers at a time than FS_RACED_MAX: the oldest is forgotten, and takes its chance.
 */
#include <fcntl.h>

#include "client/fuse/fs.h"
#include "common/base/mem.h"

#define RACED_NS    NS_PER_S
#define RACED_LOOKS 32 /* it looks up each directory of its path again */

static void drop_found(struct fs *fs, struct fs_raced *r)
{
    if (r->file)
        core_release(fs->core, r->file);
    r->file = NULL;
    mem_free((void *)(uintptr_t)r->target.data);
    r->target = (struct msg_bytes){0};
    r->link = 0;
}

static void let_go(struct fs *fs, struct fs_raced *r)
{
    drop_found(fs, r);
    *r = (struct fs_raced){0};
    fs->n_raced--;
}

static void on_timer(struct reactor_timer *t)
{
    struct fs *fs = container_of(t, struct fs, raced_timer);
    uint64_t now = clock_mono_ns(reactor_clock(fs->reactor)), next = UINT64_MAX;

    for (unsigned i = 0; i < FS_RACED_MAX; i++) {
        struct fs_raced *r = &fs->raced[i];

        if (r->until_ns && r->until_ns <= now)
            let_go(fs, r);
        else if (r->until_ns)
            next = MIN(next, r->until_ns);
    }
    if (next != UINT64_MAX)
        reactor_timer_start(fs->reactor, t, next);
}

void fs_raced_init(struct fs *fs)
{
    reactor_timer_init(&fs->raced_timer, on_timer);
}

struct fs_raced *fs_raced_find(struct fs *fs, const struct channel_req *q)
{
    for (unsigned i = 0; fs->n_raced && i < FS_RACED_MAX; i++) {
        if (fs->raced[i].until_ns && fs->raced[i].pid == q->pid)
            return &fs->raced[i];
    }
    return NULL;
}

bool fs_raced_looks(struct fs *fs, const struct channel_req *q)
{
    struct fs_raced *r = fs_raced_find(fs, q);

    if (!r || !r->looks)
        return false;
    r->looks--;
    return true;
}

static bool is_by_name(const struct channel_req *q)
{
    return (q->op != CHANNEL_GETATTR && q->op != CHANNEL_SETATTR) || !q->attr.has_fh;
}

void fs_raced_lost(struct fs *fs, const struct channel_req *q)
{
    struct fs_raced *r = fs_raced_find(fs, q);

    if (fs->ended || !is_by_name(q))
        return;
    for (unsigned i = 0; !r && i < FS_RACED_MAX; i++) {
        if (!fs->raced[i].until_ns)
            r = &fs->raced[i];
    }
    if (!r) {
        r = &fs->raced[0];
        for (unsigned i = 1; i < FS_RACED_MAX; i++) {
            if (fs->raced[i].until_ns < r->until_ns)
                r = &fs->raced[i];
        }
    }
    if (r->until_ns)
        let_go(fs, r);
    *r = (struct fs_raced){.pid = q->pid,
                           .looks = RACED_LOOKS,
                           .flags = q->op == CHANNEL_OPEN ? (int)q->open.flags & O_ACCMODE : 0,
                           .until_ns = clock_mono_ns(reactor_clock(fs->reactor)) + RACED_NS};
    fs->n_raced++;
    stat_inc(&fs->raced_calls);
    if (!reactor_timer_running(&fs->raced_timer))
        reactor_timer_start(fs->reactor, &fs->raced_timer, r->until_ns);
}

void fs_raced_hold(struct fs *fs, const struct channel_req *q, struct core_file *file)
{
    struct fs_raced *r = fs_raced_find(fs, q);

    if (!r) {
        core_release(fs->core, file);
        return;
    }
    drop_found(fs, r);
    r->file = file;
}

void fs_raced_hold_link(struct fs *fs, const struct channel_req *q, uint64_t ino)
{
    struct fs_raced *r = fs_raced_find(fs, q);
    struct msg_bytes target = core_link_target(fs->core, ino);
    char *copy = r && target.len ? mem_dup(target.data, target.len) : NULL;

    if (copy) {
        drop_found(fs, r);
        r->target = (struct msg_bytes){copy, target.len};
        r->link = ino;
    }
}

void fs_raced_over(struct fs *fs, const struct channel_req *q)
{
    struct fs_raced *r = fs_raced_find(fs, q);

    if (r)
        let_go(fs, r);
}

void fs_raced_end(struct fs *fs)
{
    fs->ended = true;
    for (unsigned i = 0; i < FS_RACED_MAX; i++) {
        if (fs->raced[i].until_ns)
            let_go(fs, &fs->raced[i]);
    }
    reactor_timer_cancel(fs->reactor, &fs->raced_timer);
}
