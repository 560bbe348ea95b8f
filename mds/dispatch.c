/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the wire to the operations: which request is served by which function, and the list of those
 * being served.
 *
 * Happy path: the session is known, the request becomes a struct mds_op; a read answers at once, a
 * change lives on until its batch is committed. Failure modes: unknown or evicted sessions are
 * refused here, before anything is read.
 */
#include "mds/dispatch.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "mds/ops/op.h"

#define NO_INO UINT16_MAX

struct change_def {
    uint16_t op;
    uint16_t ino_offset; /* of the inode in the request whose shard serves it */
    uint16_t named[2];   /* of inodes that nobody else may be alone with; or NO_INO */
    uint32_t flags;      /* SHARD_E_* */
    mds_resolve_fn *resolve;
};

#define AT(type, field) offsetof(struct msg_##type, field)
#define CHANGE2(OP, type, field, other, resolve, flags)                                            \
    {                                                                                              \
        RPC_OP_##OP, AT(type, field), {AT(type, field), AT(type, other)}, flags, resolve           \
    }
#define CHANGE(OP, type, field, resolve, flags) CHANGE2(OP, type, field, field, resolve, flags)
/* By an open file: nobody else is alone with it. */
#define OPENED(OP, type, field, resolve, flags)                                                    \
    {                                                                                              \
        RPC_OP_##OP, AT(type, field), {NO_INO, NO_INO}, flags, resolve                             \
    }

static const struct change_def changes[] = {
    CHANGE(SETATTR, setattr_req, ino, resolve_setattr, SHARD_E_FREES),
    CHANGE(CREATE, create_req, parent, resolve_create, 0),
    CHANGE(MKDIR, create_req, parent, resolve_make, 0),
    CHANGE(MKNOD, create_req, parent, resolve_make, 0),
    CHANGE(SYMLINK, create_req, parent, resolve_make, 0),
    CHANGE(UNLINK, name_req, parent, resolve_unlink, SHARD_E_FREES),
    CHANGE(RMDIR, name_req, parent, resolve_rmdir, SHARD_E_FREES),
    CHANGE2(RENAME, rename_req, parent, new_parent, resolve_rename, 0),
    CHANGE2(LINK, link_req, new_parent, ino, resolve_link, 0),
    CHANGE(OPEN, open_req, ino, resolve_open, SHARD_E_FREES),
    CHANGE(XATTR_SET, xattr_req, ino, resolve_xattr, 0),
    CHANGE(XATTR_REMOVE, xattr_req, ino, resolve_xattr, SHARD_E_FREES),
    OPENED(WRITE_INLINE, write_inline_req, ino, resolve_write_inline, 0),
    OPENED(GROW, size_req, ino, resolve_grow, SHARD_E_FREES),
    OPENED(SIZE, size_req, ino, resolve_size, SHARD_E_FREES),
    OPENED(APPEND_RANGE, append_req, ino, resolve_append_range, SHARD_E_FREES),
};

static const struct {
    uint16_t op;
    uint16_t ino_offset; /* of the inode that is read; NO_INO */
    mds_read_fn *fn;
} reads[] = {
    {RPC_OP_LOOKUP, AT(name_req, parent), op_lookup},
    {RPC_OP_GETATTR, AT(ino_req, ino), op_getattr},
    {RPC_OP_READLINK, AT(ino_req, ino), op_readlink},
    {RPC_OP_READDIR, AT(readdir_req, ino), op_readdir},
    {RPC_OP_STATFS, NO_INO, op_statfs},
    {RPC_OP_XATTR_GET, AT(xattr_req, ino), op_xattr_get},
    {RPC_OP_XATTR_LIST, AT(ino_req, ino), op_xattr_list},
    {RPC_OP_FSYNC, NO_INO, op_fsync},
    {RPC_OP_BATCH, NO_INO, op_batch},
    {RPC_OP_LOCK, NO_INO, op_lock},
    {RPC_OP_LOCK_TEST, NO_INO, op_lock_test},
    {RPC_OP_LOCK_CANCEL, NO_INO, op_lock_cancel},
    {RPC_OP_LOCK_LIST, NO_INO, op_lock_list},
    {RPC_OP_WAITS, NO_INO, op_waits},
};

struct mds_op *op_begin(struct mds *m, struct rpc_req *req)
{
    struct mds_dispatch *d = m->dispatch;
    struct mds_op *o = NULL;
    int rc = d->stopping ? -AIFS_EBUSY_SERVER : m->session_ops->check(m, req);

    if (rc == 0) {
        o = arena_alloc(&req->arena, sizeof(*o));
        rc = o ? 0 : -ENOMEM;
    }
    if (rc < 0) {
        stat_inc(&d->failed);
        rpc_reply(req, rc, NULL);
        return NULL;
    }
    memset(o, 0, offsetof(struct mds_op, entry));
    o->mds = m;
    o->req = req;
    o->op = req->header.op;
    o->msg = req->msg;
    o->open_touch = -1;
    list_push_back(&d->active, &o->link);
    d->n_active++;
    return o;
}

struct mds_op *op_begin_at(struct mds *m, struct rpc_req *req, uint64_t ino)
{
    struct mds_op *o = op_begin(m, req);

    if (!o)
        return NULL;
    o->shard = mds_shard_of(m, ino);
    if (!o->shard) {
        op_reply(o, -ENOENT, NULL);
        return NULL;
    }
    return o;
}

void op_end(struct mds_op *o)
{
    struct mds_dispatch *d = o->mds->dispatch;
    uint64_t now = clock_mono_ns(reactor_clock(o->mds->reactor));

    stat_record(&d->latency[o->req->header.op],
                now > o->req->received_ns ? now - o->req->received_ns : 0);
    list_remove(&o->link);
    d->n_active--;
    if (o->entry_used)
        shard_entry_fini(&o->entry);
    o->entry_used = false;
    if (d->stopping && d->n_active == 0 && d->stopped) {
        void (*stopped)(void *arg) = d->stopped;

        d->stopped = NULL;
        stopped(d->stopped_arg);
    }
}

void op_reply(struct mds_op *o, int status, const void *msg)
{
    struct rpc_req *req = o->req;

    if (status < 0)
        stat_inc(&o->mds->dispatch->failed);
    op_end(o);
    rpc_reply(req, status, msg);
}

static uint64_t ino_at(const struct rpc_req *req, uint16_t offset)
{
    return *(const uint64_t *)(const void *)((const char *)req->msg + offset);
}

static bool parked(struct mds *m, struct rpc_req *req, uint16_t offset,
                   void (*again)(struct rpc_req *req))
{
    return offset != NO_INO && m->session_ops->park(m, req, ino_at(req, offset), again);
}

static void handle_change(struct rpc_req *req)
{
    struct mds *m = req->handler_arg;

    for (unsigned i = 0; i < ARRAY_LEN(changes); i++) {
        const struct change_def *c = &changes[i];

        if (c->op != req->header.op)
            continue;
        if (!parked(m, req, c->named[0], handle_change) &&
            !parked(m, req, c->named[1], handle_change))
            mds_mutate(req, m, ino_at(req, c->ino_offset), c->resolve, c->flags);
        return;
    }
    rpc_reply(req, -ENOSYS, NULL);
}

void mds_dispatch_read(struct rpc_req *req)
{
    struct mds *m = req->handler_arg;

    for (unsigned i = 0; i < ARRAY_LEN(reads); i++) {
        if (reads[i].op != req->header.op)
            continue;
        if (!parked(m, req, reads[i].ino_offset, mds_dispatch_read))
            reads[i].fn(m, req);
        return;
    }
    rpc_reply(req, -ENOSYS, NULL);
}

static void dispatch_serve(struct mds *m, unsigned op, rpc_handler_fn *fn)
{
    struct mds_dispatch *d = m->dispatch;

    snprintf(d->labels[op], sizeof(d->labels[op]), "op=\"%s\"", rpc_op_name(op));
    stat_histogram_register(&d->latency[op], "aifs_mds_request_seconds", d->labels[op],
                            "Time from the arrival of a request to its reply");
    rpc_node_handle(m->node, op, fn, m);
}

static int64_t figure_entries(void *arg)
{
    struct shard_stats s;

    shard_get_stats(arg, &s);
    return (int64_t)s.entries;
}

static int64_t figure_commits(void *arg)
{
    struct shard_stats s;

    shard_get_stats(arg, &s);
    return (int64_t)s.commits;
}

static int64_t figure_queued(void *arg)
{
    struct shard_stats s;

    shard_get_stats(arg, &s);
    return (int64_t)s.queued;
}

static int64_t figure_refused(void *arg)
{
    struct shard_stats s;

    shard_get_stats(arg, &s);
    return (int64_t)s.refused;
}

static int64_t figure_misses(void *arg)
{
    struct shard_stats s;

    shard_get_stats(arg, &s);
    return (int64_t)s.view_misses;
}

static int64_t figure_rolled(void *arg)
{
    struct shard_stats s;

    shard_get_stats(arg, &s);
    return (int64_t)s.rolled;
}

static const struct {
    const char *name, *help;
    int64_t (*fn)(void *arg);
} figures[] = {
    {"aifs_mds_entries", "Log entries executed", figure_entries},
    {"aifs_mds_commits", "Batches committed", figure_commits},
    {"aifs_mds_queued", "Log entries waiting for the writer", figure_queued},
    {"aifs_mds_refused", "Log entries refused: queue full, store or disk out of room",
     figure_refused},
    {"aifs_mds_listed_in_memory", "Pages of names that came without the store", figure_rolled},
    {"aifs_mds_cache_misses", "Reads of inodes and names that went to the store", figure_misses},
};

static int dispatch_start(struct mds *m)
{
    struct mds_dispatch *d = mem_zalloc(sizeof(*d));

    if (!d)
        return -ENOMEM;
    d->mds = m;
    list_init(&d->active);
    m->dispatch = d;
    stat_counter_register(&d->failed, "aifs_mds_requests_failed", NULL,
                          "Requests that were answered with an error");
    stat_counter_register(&d->batch_items, "aifs_mds_batch_items_total", NULL,
                          "Changes of names that were executed in batches");
    stat_counter_register(&d->batch_alone, "aifs_mds_batch_alone_total", NULL,
                          "Changes of batches that would have waited: sent back, to come alone");
    for (unsigned i = 0; i < ARRAY_LEN(figures); i++)
        stat_callback_register(&d->shard_figures[i], figures[i].name, "shard=\"0\"",
                               figures[i].help, figures[i].fn, m->shards[0]);
    for (unsigned i = 0; i < ARRAY_LEN(changes); i++)
        dispatch_serve(m, changes[i].op, handle_change);
    for (unsigned i = 0; i < ARRAY_LEN(reads); i++)
        dispatch_serve(m, reads[i].op, mds_dispatch_read);
    return 0;
}

static void dispatch_stop(struct mds *m, void (*stopped)(void *arg), void *arg)
{
    struct mds_dispatch *d = m->dispatch;

    d->stopping = true;
    if (d->n_active == 0) {
        stopped(arg);
        return;
    }
    d->stopped = stopped;
    d->stopped_arg = arg;
    m->session_ops->cancel(m); /* who waits for others would keep us here */
}

static void dispatch_free(struct mds *m)
{
    struct mds_dispatch *d = m->dispatch;

    if (!d)
        return;
    for (unsigned i = 0; i < ARRAY_LEN(changes); i++)
        stat_unregister(&d->latency[changes[i].op].stat);
    for (unsigned i = 0; i < ARRAY_LEN(reads); i++)
        stat_unregister(&d->latency[reads[i].op].stat);
    for (unsigned i = 0; i < ARRAY_LEN(figures); i++)
        stat_unregister(&d->shard_figures[i].stat);
    stat_unregister(&d->failed.stat);
    stat_unregister(&d->batch_items.stat);
    stat_unregister(&d->batch_alone.stat);
    mem_free(d);
    m->dispatch = NULL;
}

bool mds_dispatch_changes(const struct mds *m, uint64_t session)
{
    const struct list *l;

    list_for_each (l, &m->dispatch->active) {
        const struct mds_op *o = list_entry(l, const struct mds_op, link);

        if (o->req->header.session == session && o->req->header.slot)
            return true;
    }
    return false;
}

const struct mds_module mds_dispatch_module = {
    .name = "dispatch", .start = dispatch_start, .stop = dispatch_stop, .free = dispatch_free};
