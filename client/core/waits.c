/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfers that have been waiting for an object storage server for long. They are looked through
 * with every tick: on a soft mount they end, each is named once in the log, and the metadata server
 * is told with the renewals of the session what waits, for people (WAITS): at once when something
 * begins to or nothing does any more.
 *
 * Bounded: MSG_SERVER_WAITS_MAX files and targets, whichever are found first.
 */
#include "client/core/core_int.h"
#include "client/core/where.h"
#include "common/base/err.h"

#define WAIT_TOLD_NS (2 * NS_PER_S)

static struct msg_server_wait *wait_of(struct msg_server_wait *out, uint32_t *n, uint32_t target,
                                       uint64_t ino)
{
    for (uint32_t i = 0; i < *n; i++) {
        if (out[i].target == target && out[i].ino == ino)
            return &out[i];
    }
    if (*n == MSG_SERVER_WAITS_MAX)
        return NULL;
    out[*n] = (struct msg_server_wait){.target = target, .ino = ino};
    return &out[(*n)++];
}

static void wait_add(struct msg_server_wait *out, uint32_t *n, uint32_t target, uint64_t ino,
                     bool write, uint64_t age_ns)
{
    struct msg_server_wait *w = wait_of(out, n, target, ino);

    if (!w)
        return;
    w->write |= write;
    w->requests++;
    w->age_ns = MAX(w->age_ns, age_ns);
}

static bool commit_waits(const struct oss_target *t, uint64_t now_ns)
{
    return t->commit_busy && now_ns - t->commit_sent_ns >= WAIT_TOLD_NS;
}

static void commits_add(struct core *c, uint64_t now_ns, struct msg_server_wait *out, uint32_t *n)
{
    struct hmap_node *h, *next;
    size_t pos;

    hmap_for_each (h, next, pos, &c->oss_targets) {
        const struct oss_target *t = container_of(h, struct oss_target, node);

        for (uint32_t k = 0; commit_waits(t, now_ns) && k < t->commit_req.n_inos; k++)
            wait_add(out, n, t->id, t->commit_inos[k], true, now_ns - t->commit_sent_ns);
    }
}

/* The process whose request is the oldest on a file. */
static void pids_add(struct core *c, struct msg_server_wait *out, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint64_t oldest_ns = UINT64_MAX;
        struct list *l;

        list_for_each (l, &c->in_flight) {
            const struct core_req *q = list_entry(l, struct core_req, p.link);

            if (q->p.ino != out[i].ino || !q->pid || q->p.started_ns >= oldest_ns)
                continue;
            oldest_ns = q->p.started_ns;
            out[i].pid = q->pid;
        }
    }
}

uint32_t oss_waits(struct core *c, struct msg_server_wait *out)
{
    uint64_t now_ns = reactor_now_ns(c->reactor);
    uint32_t n = 0;
    struct list *l;

    list_for_each (l, &c->ios) {
        const struct oss_io *io = list_entry(l, struct oss_io, all);

        if (io->target && now_ns - io->started_ns >= WAIT_TOLD_NS)
            wait_add(out, &n, io->target->id, io->inode->ino,
                     io->kind == OSS_IO_WRITE || io->kind == OSS_IO_PUNCH, now_ns - io->started_ns);
    }
    commits_add(c, now_ns, out, &n);
    pids_add(c, out, n);
    return n;
}

static void io_hung(struct oss_io *io, uint64_t age_ns)
{
    struct where_text where;

    io->hung_logged = true;
    io->core->stats.hung++;
    LOG_WARN("client", "%s, target %u: %s of inode %llu%s has not been answered for %llu s",
             io->node ? io->node->alias : "not sent", io->target ? io->target->id : 0,
             rpc_op_name(io->call.op), (unsigned long long)io->inode->ino,
             where_inode(io->inode, &where), (unsigned long long)(age_ns / NS_PER_S));
}

void oss_io_gave_up(const struct oss_io *io, int status)
{
    struct where_text where;

    LOG_WARN("client", "%s, target %u: %s of inode %llu%s: given up after %u tries: %s",
             io->node ? io->node->alias : "no server", io->target ? io->target->id : 0,
             rpc_op_name(io->call.op), (unsigned long long)io->inode->ino,
             where_inode(io->inode, &where), io->attempt + 1, err_text(status));
}

void oss_tick(struct core *c, uint64_t now)
{
    struct hmap_node *h, *next;
    bool waits = false;
    struct list *l;
    size_t pos;

    list_for_each (l, &c->ios) {
        struct oss_io *io = list_entry(l, struct oss_io, all);
        uint64_t age = now - io->started_ns;

        waits |= io->target && age >= WAIT_TOLD_NS;
        if (c->o.soft && age > c->o.timeo_ns && !io->cancelled)
            oss_io_cancel(io);
        if (!io->hung_logged && age >= c->o.hung_log_ns)
            io_hung(io, age);
    }
    hmap_for_each (h, next, pos, &c->oss_targets)
        waits |= commit_waits(container_of(h, struct oss_target, node), now);
    if (waits != c->session.told_waits && c->session.state == SESSION_READY)
        c->session.renew_at_ns = now; /* the next tick does it */
}
