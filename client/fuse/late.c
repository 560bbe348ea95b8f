/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers to LOOKUP that the kernel takes up late. When it asks for a name that it has already, it
 * holds no lock: it may be told that the name is old while our answer from before is there and not
 * taken up, which then makes the name good again.
 *
 * Happy path: the last answers are remembered for LATE_NS (fs_late_told). A name that is told to be
 * old and was answered so lately is told so once more, LATE_NS later. Who is not run for longer is
 * not seen. Kernels that cannot be told that all names are old believe none for longer anyway, and
 * the oldest of these would also unmount what is mounted on the name by then: not there.
 *
 * Fails: more names than LATE_MAX at a time, or no memory: all names are told to be old then. More
 * answers than FS_TOLD_MAX within that time: the oldest are not remembered.
 */
#include <errno.h>
#include <string.h>

#include "client/fuse/fs.h"
#include "common/base/hmap.h"
#include "common/base/mem.h"

#define LATE_NS  NS_PER_S
#define LATE_MAX 1024u

struct late_name {
    struct list link; /* fs.late, the first due first */
    uint64_t due_ns, parent;
    uint32_t len;
    char name[];
};

static uint64_t now_ns(const struct fs *fs)
{
    return clock_mono_ns(reactor_clock(fs->reactor));
}

void fs_late_told(struct fs *fs, uint64_t parent, const char *name)
{
    struct fs_told *t = &fs->told[fs->told_next];

    if (!channel_can_expire_names(fs->channel))
        return;
    fs->told_next = (fs->told_next + 1) % FS_TOLD_MAX;
    *t = (struct fs_told){.parent = parent,
                          .hash = hash_bytes(name, strlen(name), parent),
                          .until_ns = now_ns(fs) + LATE_NS};
}

static bool was_told(const struct fs *fs, uint64_t parent, const char *name, uint32_t len,
                     uint64_t now)
{
    uint64_t hash = hash_bytes(name, len, parent);

    for (unsigned k = 0; k < FS_TOLD_MAX; k++) {
        const struct fs_told *t = &fs->told[k];

        if (t->hash == hash && t->parent == parent && now < t->until_ns)
            return true;
    }
    return false;
}

static void start_timer(struct fs *fs)
{
    if (!list_empty(&fs->late) && !fs->ended && !reactor_timer_running(&fs->late_timer))
        reactor_timer_start(fs->reactor, &fs->late_timer,
                            list_entry(fs->late.next, struct late_name, link)->due_ns);
}

static void all_again(struct fs *fs)
{
    fs->late_all = false;
    channel_expire_names(fs->channel);
}

void fs_late_outdated(struct fs *fs, uint64_t parent, const char *name, uint32_t len)
{
    uint64_t now = now_ns(fs);
    struct late_name *n;

    if (fs->ended || !was_told(fs, parent, name, len, now))
        return;
    n = fs->n_late < LATE_MAX ? mem_alloc(sizeof(*n) + len) : NULL;
    if (!n) {
        fs->late_all = true;
        if (list_empty(&fs->late))
            all_again(fs);
        return;
    }
    *n = (struct late_name){.due_ns = now + LATE_NS, .parent = parent, .len = len};
    memcpy(n->name, name, len);
    list_push_back(&fs->late, &n->link);
    fs->n_late++;
    start_timer(fs);
}

static void forget_first(struct fs *fs)
{
    mem_free(list_entry(list_pop_front(&fs->late), struct late_name, link));
    fs->n_late--;
}

static void on_timer(struct reactor_timer *t)
{
    struct fs *fs = container_of(t, struct fs, late_timer);
    uint64_t now = now_ns(fs);

    while (!list_empty(&fs->late)) {
        const struct late_name *n = list_entry(fs->late.next, struct late_name, link);

        if (n->due_ns > now)
            break;
        if (channel_notify_entry(fs->channel, fs_node(fs, n->parent), n->name, n->len, NULL,
                                 NULL) == -EAGAIN)
            fs->late_all = true;
        forget_first(fs);
    }
    if (fs->late_all && list_empty(&fs->late))
        all_again(fs);
    start_timer(fs);
}

void fs_late_init(struct fs *fs)
{
    list_init(&fs->late);
    reactor_timer_init(&fs->late_timer, on_timer);
}

void fs_late_end(struct fs *fs)
{
    reactor_timer_cancel(fs->reactor, &fs->late_timer);
    while (!list_empty(&fs->late))
        forget_first(fs);
}
