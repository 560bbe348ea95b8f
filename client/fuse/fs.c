/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all operations share: the table of handlers, running an operation on the core with the
 * caller's identity, and passing what others have changed on to the kernel.
 */
#include "client/fuse/fs.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"

#define INVAL_AGAIN_NS (10 * NS_PER_MS)

static_assert(sizeof(struct op) <= CHANNEL_PRIV_BYTES, "an operation lives in its request");

/* ---- one operation ---- */

static void load_groups(struct op *o)
{
    uint32_t caps;
    int n = channel_req_groups(o->q, o->groups_inline, FS_GROUPS_INLINE, &caps);

    o->has_groups = true;
    o->req.cred.groups = o->groups_inline;
    if (n > FS_GROUPS_INLINE && n <= (int)MSG_GROUPS_MAX) {
        o->groups = mem_array((size_t)n, sizeof(uint32_t));
        if (o->groups)
            n = MIN(n, channel_req_groups(o->q, o->groups, (unsigned)n, &caps));
        o->req.cred.groups = o->groups ? o->groups : o->groups_inline;
    }
    o->req.cred.n_groups = n < 0 ? 0 : (uint32_t)n;
    if (!o->groups)
        o->req.cred.n_groups = MIN(o->req.cred.n_groups, FS_GROUPS_INLINE);
    o->ranges = channel_req_caps(o->q, caps, &o->req.cred);
}

static void on_done(struct core_req *req, int status)
{
    struct op *o = req->arg;

    if ((status == -EACCES || status == -EPERM) && o->q->uid != 0 && !o->has_groups) {
        load_groups(o);
        if (o->req.cred.n_groups > 0 || o->req.cred.caps) {
            o->run(o);
            return;
        }
    }
    if (o->ended)
        *o->ended = true;
    o->ended = NULL;
    o->finish(o, status);
}

void op_go_on(struct op *o, void (*run)(struct op *o), void (*finish)(struct op *o, int status))
{
    bool ended = false;

    o->run = run;
    o->finish = finish;
    o->ended = &ended;
    run(o);
    if (ended)
        return;
    o->ended = NULL;
    op_heed(o);
}

void op_start(struct channel_req *q, void (*run)(struct op *o),
              void (*finish)(struct op *o, int status), bool need_groups)
{
    struct op *o = (struct op *)(void *)q->priv;

    memset(&o->req.cred, 0, sizeof(o->req.cred));
    o->req.cred.uid = q->uid;
    o->req.cred.gid = q->gid;
    o->req.done = on_done;
    o->req.arg = o;
    o->req.direct = o->req.want_negative = o->req.ahead = false;
    o->req.in_place = o->req.at_end = false;
    o->req.masked = 0;
    o->req.pid = q->pid;
    o->fs = fs_of(q);
    o->q = q;
    o->has_groups = false;
    o->groups = o->ranges = NULL;
    o->waiting = &o->req;
    list_init(&o->heeded);
    o->signalled = false;
    if (need_groups)
        load_groups(o);
    op_go_on(o, run, finish);
}

struct channel_req *op_end(struct op *o, int status)
{
    struct channel_req *q = o->q;
    uint64_t now = clock_mono_ns(reactor_clock(o->fs->reactor));

    stat_record(&o->fs->latency[q->op], now > q->start_ns ? now - q->start_ns : 0);
    if (status != 0 && status != -ENOENT)
        stat_inc(&o->fs->errors);
    mem_free(o->groups);
    mem_free(o->ranges);
    list_remove(&o->heeded);
    o->run = NULL;
    return q;
}

void op_fail(struct op *o, int status)
{
    channel_reply_err(op_end(o, status), status);
}

void op_fail_inode(struct op *o, int status)
{
    if (status == -ENOENT || status == -ESTALE)
        fs_raced_lost(o->fs, o->q);
    op_fail(o, status == -ENOENT ? -ESTALE : status);
}

void op_reply_status(struct op *o, int status)
{
    channel_reply_err(op_end(o, status), status);
}

void op_reply_removed(struct op *o, int status)
{
    if (status == 0 && o->has_groups) {
        o->fs->removes_by_groups = true;
        o->fs->remover_uid = o->q->uid;
    }
    op_reply_status(o, status);
}

void op_reply_entry(struct op *o)
{
    const struct core_entry *in = &o->req.entry;
    struct channel_entry e = {&in->attr, in->entry_valid_ns, in->attr_valid_ns};

    channel_reply_entry(op_end(o, 0), &e);
}

/* ---- what others have changed ---- */

static void on_inval_done(void *user, void *arg, int err UNUSED)
{
    struct fs *fs = user;

    core_inval_done(fs->core, arg);
}

/* The queue is full, of whatever else, or memory is short: again in a moment, since somebody waits
 * for it. */
static void inval_send(struct fs *fs, struct core_inval *v)
{
    int rc;

    rc = fs->channel ? channel_notify_inode(fs->channel, fs_node(fs, v->ino), v->data ? 0 : -1, 0,
                                            on_inval_done, v)
                     : -ENODEV;
    if (rc == -EAGAIN && !fs->ended) {
        list_push_back(&fs->invals, &v->link);
        if (!reactor_timer_running(&fs->inval_timer))
            reactor_timer_start(fs->reactor, &fs->inval_timer,
                                clock_mono_ns(reactor_clock(fs->reactor)) + INVAL_AGAIN_NS);
    } else if (rc != 0) {
        core_inval_done(fs->core, v);
    }
}

static void on_inval_timer(struct reactor_timer *t)
{
    struct fs *fs = container_of(t, struct fs, inval_timer);
    struct list now, *l;

    list_init(&now);
    list_splice(&now, &fs->invals);
    while ((l = list_pop_front(&now)))
        inval_send(fs, list_entry(l, struct core_inval, link));
}

/* The kernel has nothing cached any more. */
static void invals_end(struct fs *fs)
{
    struct list *l;

    reactor_timer_cancel(fs->reactor, &fs->inval_timer);
    while ((l = list_pop_front(&fs->invals)))
        core_inval_done(fs->core, list_entry(l, struct core_inval, link));
}

static void on_inval_inode(void *arg, struct core_inval *v)
{
    inval_send(arg, v);
}

static void on_entry_done(void *user, void *arg, int err UNUSED)
{
    struct fs *fs = user;

    core_inval_entry_done(fs->core, arg);
}

static bool on_inval_entry(void *arg, uint64_t parent, const char *name, uint32_t len, void *token)
{
    struct fs *fs = arg;

    if (!fs->channel || channel_notify_entry(fs->channel, fs_node(fs, parent), name, len,
                                             on_entry_done, token) != 0)
        return false;
    fs_late_outdated(fs, parent, name, len);
    return true;
}

static void on_inval_attr(void *arg, uint64_t ino)
{
    struct fs *fs = arg;

    if (fs->channel)
        channel_expire_attr(fs->channel, fs_node(fs, ino));
}

static void on_inval_all(void *arg)
{
    struct fs *fs = arg;

    if (!fs->channel)
        return;
    channel_expire_names(fs->channel);
    fs_dirs_overtaken(fs);
}

void fs_events(struct fs *fs, struct core_events *ret_events)
{
    list_init(&fs->invals);
    reactor_timer_init(&fs->inval_timer, on_inval_timer);
    fs_dirs_init(fs);
    fs->setid_epoch = 1;
    fs_raced_init(fs);
    fs_late_init(fs);
    fs_signals_init(fs);
    fs_give_init(fs);
    *ret_events = (struct core_events){.inval_inode = on_inval_inode,
                                       .inval_entry = on_inval_entry,
                                       .inval_attr = on_inval_attr,
                                       .inval_all = on_inval_all,
                                       .arg = fs};
}

/* ---- the table ---- */

static void on_forget(void *user, uint64_t node, uint64_t n UNUSED)
{
    struct fs *fs = user;

    core_forget(fs->core, fs_ino(fs, node));
}

static void on_open_lost(void *user, enum channel_op op, uint64_t node UNUSED, uint64_t fh)
{
    struct fs *fs = user;

    if (op == CHANNEL_OPENDIR) {
        fs_dir_free(fs_dir_of(fh));
    } else {
        core_release(fs->core, fs_file_of(fh)->file);
        mem_free(fs_file_of(fh));
    }
}

static struct buf *on_room(void *user)
{
    struct fs *fs = user;

    return core_write_room(fs->core);
}

static void on_room_back(void *user, struct buf *room)
{
    struct fs *fs = user;

    core_write_room_put(fs->core, room);
}

static void on_ready(void *user)
{
    struct fs *fs = user;

    if (!channel_can_expire_names(fs->channel))
        core_limit_names(fs->core, NS_PER_S);
    if (fs->ready)
        fs->ready(fs);
}

static void on_gone(void *user)
{
    struct fs *fs = user;

    fs_raced_end(fs);
    fs_signals_end(fs);
    fs_give_end(fs);
    fs_dirs_end(fs);
    fs_late_end(fs);
    invals_end(fs);
    if (fs->gone)
        fs->gone(fs);
}

#define FS_OP_ENTRY(upper, lower) [CHANNEL_##upper] = op_##lower,
const struct channel_ops fs_channel_ops = {.op = {CHANNEL_OPS(FS_OP_ENTRY)},
                                           .forget = on_forget,
                                           .open_lost = on_open_lost,
                                           .room = on_room,
                                           .room_back = on_room_back,
                                           .ready = on_ready,
                                           .gone = on_gone};
#undef FS_OP_ENTRY

#define FS_OP_LABEL(upper, lower) "op=\"" #lower "\"",
static const char *const op_labels[] = {CHANNEL_OPS(FS_OP_LABEL)};
#undef FS_OP_LABEL

void fs_stats_register(struct fs *fs)
{
    for (unsigned i = 0; i < CHANNEL_N_OPS; i++)
        stat_histogram_register(&fs->latency[i], "aifs_fuse_seconds", op_labels[i],
                                "Time from reading a FUSE request to its reply");
    stat_counter_register(&fs->errors, "aifs_fuse_errors_total", NULL,
                          "FUSE requests answered with an error other than ENOENT");
    stat_counter_register(&fs->dir_drops, "aifs_fuse_directory_drops_total", NULL,
                          "Open directories read in part whose pages went, to be asked for again");
    stat_counter_register(&fs->raced_calls, "aifs_fuse_races_lost_total", NULL,
                          "Opens and other calls by a name that somebody replaced meanwhile");
    stat_counter_register(&fs->signals, "aifs_fuse_signals_total", NULL,
                          "FUSE requests whose caller got a signal while they were under way");
    stat_counter_register(&fs->gifts, "aifs_fuse_contents_with_open_total", NULL,
                          "Small files whose contents the kernel was given with their OPEN");
}

void fs_stats_unregister(struct fs *fs)
{
    for (unsigned i = 0; i < CHANNEL_N_OPS; i++)
        stat_unregister(&fs->latency[i].stat);
    stat_unregister(&fs->errors.stat);
    stat_unregister(&fs->dir_drops.stat);
    stat_unregister(&fs->raced_calls.stat);
    stat_unregister(&fs->signals.stat);
    stat_unregister(&fs->gifts.stat);
}
