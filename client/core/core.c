/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core's life: create, mount, tick, unmount, destroy.
 *
 * Happy path of a mount: connect → session → cluster map → walk to the sub-directory → attributes
 * of the root. Of an unmount: everything dirty is written and committed → closes → SESSION_CLOSE →
 * connections closed.
 *
 * Failure: a mount that is refused says why at once; one that nobody answers waits until it is
 * cancelled. A forced unmount drops what is dirty and waits only for the transport to let go of
 * memory; its session stays until the server evicts it, for writes may still be on their way to
 * storage servers. A mount that failed has none: its session is closed, also one that is just being
 * opened, if the server answers soon.
 */
#include "client/core/core_int.h"

#include <stdlib.h>
#include <unistd.h>

static void unmount_step(struct core *c);

void core_options_default(struct core_options *o)
{
    memset(o, 0, sizeof *o);
    net_options_default(&o->net);
    o->memory_limit = GIB;
    o->attr_ns = o->entry_ns = o->negative_ns = CORE_LEASED_NS;
    o->timeo_ns = 30 * NS_PER_S;
    o->hung_log_ns = 30 * NS_PER_S;
    o->ahead = true;
}

static const char *keep_string(struct core *c, const char *s)
{
    char *copy = mem_strdup(s ? s : "");

    if (copy)
        c->strings[c->n_strings++] = copy;
    return copy;
}

static int copy_options(struct core *c, const struct core_options *o)
{
    char host[256] = "";
    unsigned k;

    if (!o->n_mds || o->n_mds > CORE_MDS_MAX)
        return -EINVAL;
    c->o = *o;
    if (!c->o.memory_limit)
        c->o.memory_limit = GIB;
    if (!c->o.straight_bytes)
        c->o.straight_bytes = CORE_LARGE_BYTES;
    if (c->o.memory_limit < 32 * MIB)
        return -EINVAL;
    if (!c->o.hung_log_ns)
        c->o.hung_log_ns = 30 * NS_PER_S;
    for (k = 0; k < o->n_mds; k++) {
        c->o.mds[k] = keep_string(c, o->mds[k]);
        if (!c->o.mds[k])
            return -ENOMEM;
    }
    if (!o->host && gethostname(host, sizeof host - 1))
        memcpy(host, "unknown", sizeof "unknown");
    c->o.host = keep_string(c, o->host ? o->host : host);
    c->o.mount = keep_string(c, o->mount);
    c->o.subdir = keep_string(c, o->subdir);
    c->o.job = keep_string(c, o->job ? o->job : getenv("SLURM_JOB_ID"));
    if (!c->o.host || !c->o.mount || !c->o.subdir || !c->o.job)
        return -ENOMEM;
    c->job = c->o.job[0] ? hash_bytes(c->o.job, strlen(c->o.job), 0) : 0;
    return 0;
}

static int make_node(struct core *c)
{
    struct rpc_node_options n = {.key = c->o.key, .net = c->o.net};
    int err;

    n.self.role = c->o.key.role;
    err = uuid_random(&n.self.boot);
    if (err)
        return err;
    n.self.node = c->client;
    (void)strncpy(n.self.name, c->o.host, sizeof n.self.name - 1);
    (void)strncpy(n.self.version, AIFS_VERSION, sizeof n.self.version - 1);
    return rpc_node_create(c->reactor, &n, &c->node);
}

static void send_closes(struct reactor_timer *t)
{
    file_send_closes(container_of(t, struct core, close_timer));
}

static void tick(struct reactor_timer *t)
{
    struct core *c = container_of(t, struct core, tick);
    uint64_t now = reactor_now_ns(c->reactor);

    if (c->state == CORE_ENDED)
        return;
    reactor_timer_start(c->reactor, t, now + CORE_TICK_NS);
    session_tick(c, now);
    creating_tick(c);
    mds_tick(c, now);
    oss_tick(c, now);
    lease_tick(c, now);
    atime_tick(c, now);
    mem_freed(c); /* what waits for memory that nobody here gives back tries again */
    locks_tick(c);
    if (!c->forced) {
        flush_background(c, now, c->state == CORE_UNMOUNTING);
        punch_tick(c);
    }
    req_tick(c, now);
    invalidate_tick(c, now);
    if (c->state == CORE_UNMOUNTING)
        unmount_step(c);
}

static void unmount_work(struct reactor_work *w)
{
    struct core *c = container_of(w, struct core, unmount_work);

    c->unmount_kicked = false;
    if (c->state == CORE_UNMOUNTING)
        unmount_step(c);
}

void core_kick(struct core *c)
{
    if (c->state != CORE_UNMOUNTING || c->unmount_kicked)
        return;
    c->unmount_kicked = true;
    reactor_defer(c->reactor, &c->unmount_work);
}

static int init_maps(struct core *c)
{
    int err = hmap_init(&c->oss_nodes, 16);

    err = err ? err : hmap_init(&c->oss_targets, 16);
    err = err ? err : hmap_init(&c->blocks, 1024);
    err = err ? err : hmap_init(&c->behind.moving, 64);
    err = err ? err : inode_cache_init(c);
    err = err ? err : names_init(c);
    return err ? err : mem_budget_init(c);
}

int core_create(struct reactor *r, const struct core_options *o, struct core **ret_core)
{
    struct core *c = mem_zalloc(sizeof *c);
    int err;

    if (!c)
        return -ENOMEM;
    c->reactor = r;
    list_init(&c->in_flight);
    list_init(&c->ops);
    list_init(&c->free_ops);
    list_init(&c->punch_waiters);
    list_init(&c->lock_waiters);
    list_init(&c->locks_behind);
    list_init(&c->releases);
    list_init(&c->reads);
    list_init(&c->reads_due);
    list_init(&c->ios);
    list_init(&c->free_ios);
    list_init(&c->free_shares);
    list_init(&c->inode_lru);
    list_init(&c->name_lru);
    list_init(&c->invalidations);
    for (unsigned k = 0; k <= MEM_CLASSES; k++) {
        list_init(&c->block_lru[k]);
        list_init(&c->block_spent[k]);
    }
    list_init(&c->dirty_inodes);
    list_init(&c->files);
    list_init(&c->streams);
    list_init(&c->mem.waiters);
    reactor_timer_init(&c->tick, tick);
    reactor_timer_init(&c->close_timer, send_closes);
    batch_init(c);
    behind_init(c);
    c->unmount_work.fn = unmount_work;
    err = uuid_random(&c->client);
    err = err ? err : copy_options(c, o);
    err = err ? err : init_maps(c);
    err = err ? err : make_node(c);
    if (err) {
        core_destroy(c);
        return err;
    }
    lease_handlers(c);
    invalidate_handlers(c);
    locks_handlers(c);
    mem_warm(c);
    *ret_core = c;
    return 0;
}

void core_destroy(struct core *c)
{
    ASSERT(c->state == CORE_NEW || c->state == CORE_ENDED);
    reactor_timer_cancel(c->reactor, &c->tick);
    reactor_timer_cancel(c->reactor, &c->close_timer);
    reactor_timer_cancel(c->reactor, &c->behind.linger);
    reactor_timer_cancel(c->reactor, &c->behind.hold);
    while (!list_empty(&c->files)) { /* released, but their data could never be written */
        struct core_file *f = list_entry(c->files.next, struct core_file, all);

        list_remove(&f->link);
        list_remove(&f->all);
        mem_free(f);
    }
    cmap_fini(c);
    if (c->node)
        rpc_node_destroy(c->node);
    invalidate_fini(c);
    names_fini(c);
    inode_cache_fini(c);
    mds_fini(c);
    oss_fini(c);
    hmap_fini(&c->oss_nodes);
    hmap_fini(&c->oss_targets);
    hmap_fini(&c->blocks);
    hmap_fini(&c->behind.moving);
    mem_budget_fini(c);
    mem_free(c->session.items); /* a link that came up while the session was being closed */
    while (c->n_strings)
        mem_free(c->strings[--c->n_strings]);
    mem_free(c);
}

/* ---- mounting ---- */

static void mount_end(struct core *c, int status)
{
    struct core_req *q = c->mount_q;

    c->mount_q = NULL;
    reactor_timer_cancel(c->reactor, &c->connect.timer);
    c->unused = status && status != -AIFS_ESESSION; /* it has a session to close */
    if (status)
        c->state = CORE_UNMOUNTING; /* core_unmount() takes it down */
    else
        c->state = CORE_MOUNTED;
    req_end(q, status);
}

static void mount_cancel(struct core_req *q, int status)
{
    mount_end(q->p.core, status);
}

static void mount_walk(struct core *c);

static void mount_connected(struct reactor_timer *t)
{
    struct core *c = container_of(t, struct core, connect.timer);

    if (connect_waits(c))
        connect_look_again(c);
    else
        mount_end(c, 0);
}

static void mount_connect(struct core *c)
{
    c->mount_q->p.state = "connects to the storage servers";
    reactor_timer_init(&c->connect.timer, mount_connected);
    mount_connected(&c->connect.timer);
}

static void walked(struct mds_op *op, int status)
{
    struct core *c = op->core;
    const struct msg_inode_rep *rep = op->call.rep;
    struct core_inode *i;

    if (!c->mount_q)
        return;
    if (!status && !S_ISDIR(rep->inode.attr.mode))
        status = -ENOTDIR;
    if (status) {
        LOG_ERROR("client", "cannot reach %s in the file system: %s",
                  c->o.subdir[0] ? c->o.subdir : "/", err_text(status));
        mount_end(c, status);
        return;
    }
    c->root = rep->inode.attr.ino;
    if (op->call.op == RPC_OP_LOOKUP) {
        mount_walk(c);
        return;
    }
    i = inode_from_reply(op, &rep->inode);
    if (i) {
        inode_entry(i, &c->mount_q->entry);
        inode_put(i);
        mount_connect(c);
    } else {
        mount_end(c, -ENOMEM);
    }
}

/* One component of the sub-directory, or the root's attributes when all are walked. */
static void mount_walk(struct core *c)
{
    const char *at = c->o.subdir + c->walked;
    struct mds_op *op;
    size_t len;

    at += strspn(at, "/");
    len = strcspn(at, "/");
    op = mds_op_new(c, len ? RPC_OP_LOOKUP : RPC_OP_GETATTR, NULL, walked);
    if (!op) {
        mount_end(c, -ENOMEM);
        return;
    }
    if (len) {
        op->msg.name.parent = c->root;
        op->msg.name.name = mds_op_bytes(op, at, (uint32_t)MIN(len, MSG_NAME_MAX + 1u));
        c->walked = (size_t)(at - c->o.subdir) + len;
    } else {
        op->msg.ino.ino = c->root;
    }
    c->mount_q->p.state = "waits for the metadata server: root directory";
    mds_op_start(op);
}

/* The session is open, or the map has come. */
void core_mount_step(struct core *c)
{
    if (!c->mount_q || c->session.state != SESSION_READY)
        return;
    if (!c->map) {
        c->mount_q->p.state = "waits for the cluster map";
        cmap_refresh(c);
        return;
    }
    if (!c->root) {
        c->root = c->session.root;
        connect_ahead(c);
        mount_walk(c);
    }
}

void core_mount(struct core *c, struct core_req *q)
{
    int err;

    req_begin(c, q, "mount", 0);
    if (c->state != CORE_NEW) {
        req_end(q, -EALREADY);
        return;
    }
    c->state = CORE_MOUNTING;
    c->mount_q = q;
    req_wait(q, "connects to the metadata server", mount_cancel);
    reactor_timer_start(c->reactor, &c->tick, reactor_now_ns(c->reactor) + CORE_TICK_NS);
    err = session_start(c);
    if (err)
        mount_end(c, err);
}

uint64_t core_root(const struct core *c)
{
    return c->root;
}

void core_limit_names(struct core *c, uint64_t ns)
{
    c->o.entry_ns = MIN(c->o.entry_ns, ns);
    c->o.negative_ns = MIN(c->o.negative_ns, ns);
    c->names_limited = true;
}

/* ---- unmounting ---- */

static void node_down(void *arg)
{
    struct core *c = arg;
    struct core_req *q = c->unmount_q;

    c->state = CORE_ENDED;
    c->unmount_q = NULL;
    req_end(q, c->unmount_status);
}

static void session_over(struct core *c)
{
    struct hmap_node *h, *next;
    size_t pos;

    if (c->session.up_link)
        rpc_link_unref(c->session.up_link);
    c->session.up_link = NULL;
    if (c->session.peer)
        rpc_peer_destroy(c->session.peer);
    c->session.peer = NULL;
    hmap_for_each (h, next, pos, &c->oss_nodes) {
        struct oss_node *o = container_of(h, struct oss_node, node);

        if (o->peer)
            rpc_peer_destroy(o->peer);
        o->peer = NULL;
    }
    invalidate_tick(c, UINT64_MAX);
    atime_forget_all(c);
    rpc_node_shutdown(c->node, node_down, c);
}

/* It makes one call at a time, and is closed behind that. When nobody wants to wait only that
 * counts which opens it, of a mount that failed: it is not known before. */
static bool session_is_busy(const struct core *c)
{
    const struct core_session *s = &c->session;

    if (!s->call_busy || !c->forced)
        return s->call_busy;
    return c->unused && s->state == SESSION_OPENING && reactor_now_ns(c->reactor) < c->goodbye_ns;
}

static void unmount_step(struct core *c)
{
    if (!c->unmount_q || c->closing)
        return;
    if (!c->forced && !list_empty(&c->dirty_inodes)) {
        flush_background(c, 0, true);
        if (!list_empty(&c->dirty_inodes))
            return;
    }
    if (!c->forced) {
        atime_report_all(c);
        file_send_closes(c);
    }
    if (!list_empty(&c->ops) || !list_empty(&c->ios) || c->commits_busy || mem_is_growing(c) ||
        session_is_busy(c))
        return;
    if (behind_left_error(c) && !c->unmount_status)
        c->unmount_status = -EIO; /* a removal was refused, and nobody has been told */
    c->closing = true;
    if (c->session.call_busy)
        rpc_call_cancel(&c->session.call);
    if (c->forced && !c->unused)
        session_over(c);
    else
        session_close(c, session_over);
}

/* What is dirty is given up; what is in flight is called back. */
static void drop_everything(struct core *c)
{
    struct core_inode *i;
    struct list inodes;

    c->forced = true;
    req_tick(c, reactor_now_ns(c->reactor));
    inodes_collect(c, &inodes);
    while ((i = inodes_next(&inodes)) != NULL) {
        lease_lost(i);
        inode_put(i);
    }
    mds_fail_all(c);
    oss_fail_all(c);
    commit_cancel_all(c);
    if (c->session.call_busy && !session_is_busy(c))
        rpc_call_cancel(&c->session.call);
}

static void unmount_cancel(struct core_req *q, int status)
{
    struct core *c = q->p.core;

    (void)status;
    q->p.cancel = NULL; /* ends soon, by itself */
    c->unmount_status = -EIO;
    if (!c->forced)
        drop_everything(c);
    core_kick(c);
}

void core_unmount(struct core *c, struct core_req *q, bool force)
{
    req_begin(c, q, "unmount", 0);
    if (c->unmount_q || c->state == CORE_ENDED) {
        req_end(q, -EALREADY);
        return;
    }
    if (c->mount_q) {
        mount_end(c, -EINTR);
        c->unused = false; /* it was not given up: whoever forces this waits for nobody */
    }
    if (c->state == CORE_NEW) {
        c->state = CORE_ENDED;
        req_end(q, 0);
        return;
    }
    force |= c->session.state == SESSION_NONE && !c->session.id;
    c->state = CORE_UNMOUNTING;
    c->unmount_q = q;
    c->goodbye_ns = reactor_now_ns(c->reactor) + CORE_GOODBYE_NS;
    req_wait(q, "writes back", unmount_cancel);
    if (force) {
        q->p.cancel = NULL;
        drop_everything(c);
    }
    core_kick(c);
}

/* ---- observation ---- */

bool core_holds_writes(const struct core *c)
{
    return c->dirty_bytes || c->uncommitted_bytes;
}

bool core_moves_data(const struct core *c)
{
    return !list_empty(&c->ios) || core_holds_writes(c);
}

bool core_is_ahead(const struct core *c)
{
    return c->behind.n > 0;
}

uint64_t core_bytes_under_way(const struct core *c)
{
    uint64_t n = 0;
    struct list *l;

    list_for_each (l, &c->ios) {
        const struct oss_io *io = list_entry(l, struct oss_io, all);

        n += io->kind == OSS_IO_WRITE ? io->len : 0;
    }
    return n;
}

bool core_holds_changes(const struct core *c)
{
    return !list_empty(&c->dirty_inodes) || c->behind.n;
}

void core_get_stats(const struct core *c, struct core_stats *ret_stats)
{
    *ret_stats = c->stats;
    ret_stats->memory_limit = c->o.memory_limit;
    ret_stats->memory_used = mem_used(c);
    ret_stats->dirty_bytes = c->dirty_bytes;
    ret_stats->ahead_bytes = c->ahead_bytes;
    ret_stats->uncommitted_bytes = c->uncommitted_bytes;
    ret_stats->inodes = c->inodes.count;
    ret_stats->names = c->n_names;
}
