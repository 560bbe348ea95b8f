/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session with the metadata server.
 *
 * Happy path: link up → SESSION_OPEN → ready; renewed every third of the lease. After a restart of
 * the server: link up → RECLAIM of opens and leases in batches → ready.
 *
 * Failure: the server says that it does not know the session (evicted, expired): what was dirty is
 * lost and remembered as EIO for each open file, all caches are void, and a fresh session is opened
 * in which the files that are still open are opened again.
 */
#include <errno.h>

#include "client/core/core_int.h"

#define RECLAIM_BATCH   1024u
#define CALL_TIMEOUT_NS (10 * NS_PER_S)

static void session_open(struct core *c);
static void session_reclaim(struct core *c);
static void session_up(struct core *c);

static void set_wall(struct core *c, int64_t server_wall_ns)
{
    c->wall_offset_ns = server_wall_ns - clock_wall_ns(reactor_clock(c->reactor));
}

static void lease_renewed(struct core_session *s, uint64_t lease_ns)
{
    s->lease_ns = lease_ns ? lease_ns : 15 * NS_PER_S;
    s->valid_until_ns = s->sent_ns + s->lease_ns - s->lease_ns / 10;
    s->renew_at_ns = s->sent_ns + s->lease_ns / 3;
}

/* One call at a time, on this link only: a lost link shows as an error and the next up() starts
 * afresh. */
static bool call_start(struct core *c, unsigned op, const void *req,
                       void (*done)(struct rpc_call *call, int status))
{
    struct core_session *s = &c->session;
    struct rpc_link *l = rpc_peer_link(s->peer);

    if (s->call_busy || !l)
        return false;
    rpc_call_init(&s->call, op, req, done, c);
    s->call.session = s->id;
    s->call.generation = s->generation;
    s->call.incarnation = s->incarnation;
    s->call.job = c->job;
    s->call.timeout_ns = c->forced ? CORE_GOODBYE_NS : CALL_TIMEOUT_NS;
    s->call_busy = true;
    s->sent_ns = reactor_now_ns(c->reactor);
    rpc_link_call(l, &s->call);
    return true;
}

static void call_over(struct core *c)
{
    rpc_call_fini(&c->session.call);
    c->session.call_busy = false;
    core_kick(c);
}

/* The server has answered a call of the session that was sent at sent_ns. */
static void session_heard(struct core *c, uint64_t lease_ns)
{
    lease_renewed(&c->session, lease_ns);
    if (!session_believed(c))
        return;
    session_resume(c);
    if (c->session.state == SESSION_READY && !list_empty(&c->session.session_waiters))
        mds_resume(c);
}

static void session_ready(struct core *c)
{
    struct core_session *s = &c->session;

    s->state = SESSION_READY;
    rpc_peer_ready(s->peer);
    mds_resume(c);
    locks_resume(c);
    core_mount_step(c);
}

static void opened(struct rpc_call *call, int status)
{
    struct core *c = call->arg;
    struct core_session *s = &c->session;
    const struct msg_session_open_rep *rep = call->rep;

    if (status) {
        call_over(c);
        LOG_WARN("client", "metadata server %s refuses a session: %s", c->o.mds[0],
                 status == -EOPNOTSUPP ? "it is an object storage server" : err_text(status));
        s->state = SESSION_NONE;
        s->renew_at_ns = reactor_now_ns(c->reactor) + NS_PER_S;
        if (c->mount_q && status != -AIFS_ECONN && status != -AIFS_ETIMEOUT)
            c->mount_q->p.cancel(c->mount_q, status);
        session_up(c);
        return;
    }
    s->id = rep->session;
    s->generation = rep->generation;
    s->root = rep->root;
    s->inline_max = MIN(rep->inline_max, CORE_SMALL_BYTES);
    s->n_slots = MIN(MAX(rep->slots, 1u), CORE_SLOTS_MAX);
    s->epoch++;
    memset(s->slots, 0, sizeof s->slots);
    set_wall(c, rep->wall_ns);
    lease_renewed(s, rep->lease_ns); /* who waits goes on when the files are open again */
    LOG_INFO("client", "session %llu open", (unsigned long long)s->id);
    bool reclaim = rep->reclaim;
    call_over(c);
    if (reclaim) {
        session_reclaim(c);
        return;
    }
    session_ready(c);
    files_reopen(c);
    session_resume(c);
}

static void session_open(struct core *c)
{
    struct core_session *s = &c->session;

    s->open_req = (struct msg_session_open_req){
        .client = c->client,
        .host = {c->o.host, (uint32_t)strlen(c->o.host)},
        .mount = {c->o.mount, (uint32_t)strlen(c->o.mount)},
        .job = {c->o.job, (uint32_t)strlen(c->o.job)},
        .pid = (uint32_t)getpid(),
        .read_only = c->o.read_only,
    };
    s->id = 0;
    s->generation = 0;
    if (call_start(c, RPC_OP_SESSION_OPEN, &s->open_req, opened))
        s->state = SESSION_OPENING;
}

static void reclaimed(struct rpc_call *call, int status)
{
    struct core *c = call->arg;
    struct core_session *s = &c->session;

    call_over(c);
    if (session_is_over(status)) {
        session_lost(c, s->epoch, status);
        return;
    }
    if (status) {
        LOG_WARN("client", "reclaim failed: %s", err_text(status));
        if (rpc_peer_link(s->peer))
            s->renew_at_ns = reactor_now_ns(c->reactor) + NS_PER_S; /* the tick tries again */
        session_up(c);
        return;
    }
    s->sent_items += s->reclaim_req.n_items;
    if (!s->reclaim_req.last) {
        session_reclaim(c);
        return;
    }
    mem_free(s->items);
    s->items = NULL;
    s->n_items = s->sent_items = 0;
    s->unsettled = s->reclaim_req.unsettled;
    session_ready(c);
    files_reopen(c); /* what is not of this session */
    session_heard(c, s->lease_ns);
    session_settle(c);
}

/* ---- removals that were answered ahead, after a restart of the server ---- */

static void settled(struct rpc_call *call, int status)
{
    struct core *c = call->arg;
    struct core_session *s = &c->session;

    call_over(c);
    if (session_is_over(status))
        session_lost(c, s->epoch, status);
    else if (status)
        LOG_WARN("client", "the metadata server has not heard that removals are over: %s",
                 err_text(status)); /* the tick tells it again */
    else
        s->unsettled = false;
    session_up(c);
}

void session_settle(struct core *c)
{
    struct core_session *s = &c->session;

    if (!s->unsettled || c->behind.n || s->state != SESSION_READY || s->closing || s->up_link)
        return;
    s->reclaim_req = (struct msg_reclaim_req){.last = true};
    (void)call_start(c, RPC_OP_RECLAIM, &s->reclaim_req, settled);
}

static int collect_items(struct core *c)
{
    struct core_session *s = &c->session;
    uint32_t n = 0;
    struct list *l;

    list_for_each (l, &c->files)
        n++;
    mem_free(s->items);
    s->n_items = s->sent_items = 0;
    s->items = core_no_memory() ? NULL : mem_array(n + 1, sizeof *s->items);
    if (!s->items)
        return -ENOMEM;
    list_for_each (l, &c->files) {
        struct core_file *f = list_entry(l, struct core_file, all);

        if (f->session_epoch != s->epoch || !f->open_id) /* it could not be opened again */
            continue;
        s->items[s->n_items++] = (struct msg_reclaim_item){
            .ino = f->inode->ino,
            .open_id = f->open_id,
            .open_flags = (uint32_t)f->flags & O_ACCMODE,
            .lease = f->inode->lease,
            .lease_seq = f->inode->lease_seq,
        };
    }
    return 0;
}

static void session_reclaim(struct core *c)
{
    struct core_session *s = &c->session;
    uint32_t n;

    if (s->state != SESSION_RECLAIMING || !s->items) {
        s->state = SESSION_RECLAIMING;
        if (collect_items(c)) {
            s->renew_at_ns = reactor_now_ns(c->reactor) + NS_PER_S;
            return;
        }
    }
    n = MIN(s->n_items - s->sent_items, RECLAIM_BATCH);
    s->reclaim_req = (struct msg_reclaim_req){
        .n_items = n,
        .items = s->items + s->sent_items,
        .last = s->sent_items + n == s->n_items,
    };
    s->reclaim_req.unsettled = s->reclaim_req.last && c->behind.n;
    (void)call_start(c, RPC_OP_RECLAIM, &s->reclaim_req, reclaimed);
}

static void renewed(struct rpc_call *call, int status)
{
    struct core *c = call->arg;
    struct core_session *s = &c->session;
    const struct msg_renew_rep *rep = call->rep;
    uint64_t lease_ns = status ? 0 : rep->lease_ns;
    bool newer = !status && c->map && rep->map_epoch > c->map->epoch;

    if (!status)
        set_wall(c, rep->wall_ns);
    call_over(c);
    if (!status)
        session_heard(c, lease_ns);
    if (session_is_over(status))
        session_lost(c, s->epoch, status);
    else if (newer)
        cmap_refresh(c);
    session_up(c);
}

static void session_renew(struct core *c)
{
    struct core_session *s = &c->session;

    if (s->call_busy)
        return; /* it may be a renewal, and need what it was made from */
    s->renew_req = (struct msg_renew_req){.n_waits = oss_waits(c, s->waits), .waits = s->waits};
    if (call_start(c, RPC_OP_SESSION_RENEW, &s->renew_req, renewed))
        s->told_waits = s->renew_req.n_waits > 0;
}

static void session_up(struct core *c)
{
    struct core_session *s = &c->session;
    bool rebooted = s->up_rebooted;

    if (s->call_busy || !s->up_link)
        return; /* the call of the old link ends first, then we come back */
    rpc_link_unref(s->up_link);
    s->up_link = NULL;
    s->up_rebooted = false;
    mds_new_link(c);
    if (!s->id) {
        session_open(c);
    } else if (rebooted || s->state == SESSION_RECLAIMING) {
        invalidate_all(c); /* a restarted server does not know what we believe */
        mem_free(s->items);
        s->items = NULL;
        session_reclaim(c);
    } else {
        session_ready(c);
        session_renew(c); /* by it the server knows where to recall */
    }
}

static void peer_up(struct rpc_peer *p, struct rpc_link *l, bool rebooted, void *arg)
{
    struct core *c = arg;
    struct core_session *s = &c->session;

    (void)p;
    s->incarnation++;
    if (s->up_link)
        rpc_link_unref(s->up_link);
    s->up_link = rpc_link_ref(l);
    s->up_rebooted |= rebooted; /* also of a link that broke before anybody looked */
    session_up(c);
}

/* Waiting does not help against these: mounting ends. -ENOTSUP: the transport. */
static void refusal_ends_mount(struct core *c, int status)
{
    bool fatal = status == -AIFS_EAUTH || status == -AIFS_ECLUSTER || status == -AIFS_EVERSION ||
                 status == -AIFS_EROLE || status == -ENOTSUP;

    if (c->mount_q && fatal)
        c->mount_q->p.cancel(c->mount_q, status);
}

static void peer_down(struct rpc_peer *p UNUSED, int status, void *arg)
{
    refusal_ends_mount(arg, status);
}

int session_start(struct core *c)
{
    static const struct rpc_peer_events events = {peer_up, peer_down};

    list_init(&c->session.slot_waiters);
    list_init(&c->session.session_waiters);
    list_init(&c->session.doubters);
    return rpc_peer_create(c->node, c->o.mds, c->o.n_mds, &events, c, &c->session.peer);
}

int core_mds_error(const struct core *c, const char **ret_why)
{
    const struct rpc_peer *p = c->session.peer;

    *ret_why = p ? rpc_peer_last_why(p) : NULL;
    return p ? rpc_peer_last_error(p) : 0;
}

void session_lost(struct core *c, uint32_t epoch, int status)
{
    struct core_session *s = &c->session;
    struct core_inode *i;
    struct list inodes;

    if (!s->id || epoch != s->epoch || s->closing)
        return;
    LOG_ERROR("client", "session %llu is lost (%s): unwritten data is gone",
              (unsigned long long)s->id, err_text(status));
    c->stats.sessions_lost++;
    s->unsettled = false;
    s->id = 0;
    s->state = SESSION_NONE;
    s->valid_until_ns = 0;
    inodes_collect(c, &inodes);
    while ((i = inodes_next(&inodes)) != NULL) {
        lease_lost(i);
        inode_put(i);
    }
    c->n_closes = 0;
    locks_lost(c);
    invalidate_all(c);
    s->renew_at_ns = 0; /* the tick opens the next one; waiting calls stay where they are */
}

/* ---- belief ---- */

bool session_believed(const struct core *c)
{
    return c->session.id && reactor_now_ns(c->reactor) < c->session.valid_until_ns;
}

uint64_t session_trust_ns(const struct core *c, uint64_t ns)
{
    uint64_t now = reactor_now_ns(c->reactor), end = c->session.valid_until_ns;

    return MIN(ns, end > now ? end - now : 0);
}

void session_wait(struct core_req *q, void (*resume)(struct core_req *q))
{
    q->p.resume = resume;
    req_wait(q, "waits for the metadata server: SESSION_RENEW", req_finish);
    list_push_back(&q->p.core->session.doubters, &q->p.wait);
}

void session_resume(struct core *c)
{
    req_resume_list(&c->session.doubters);
}

/* The promise has run out without an answer. What is cached here is not served until the server has
 * spoken again, and then is right, or the session is lost; what the kernel caches must go. Files
 * with reads under way come last: the kernel waits for these before it drops anything else. */
static void lease_lapsed(struct core *c)
{
    struct list inodes, busy;
    struct core_inode *i;

    invalidate_all(c);
    inodes_collect(c, &inodes);
    list_init(&busy);
    while ((i = inodes_next(&inodes)) != NULL) {
        if (i->active) {
            list_push_back(&busy, &i->walk);
            continue;
        }
        lease_kernel_drops(i);
        inode_put(i);
    }
    while ((i = inodes_next(&busy)) != NULL) {
        lease_kernel_drops(i);
        inode_put(i);
    }
}

void session_tick(struct core *c, uint64_t now)
{
    struct core_session *s = &c->session;

    if (!s->peer || s->closing)
        return;
    if (c->mount_q && !rpc_peer_is_up(s->peer)) /* a refused hello is no link that went down */
        refusal_ends_mount(c, rpc_peer_last_error(s->peer));
    if (c->mount_q && rpc_peer_is_unknown(s->peer))
        c->mount_q->p.cancel(c->mount_q, -EHOSTUNREACH);
    if (s->id && s->valid_until_ns && now > s->valid_until_ns) {
        s->valid_until_ns = 0;
        LOG_WARN("client", "no answer from the metadata server for the lease time: what is cached "
                           "waits until it answers");
        lease_lapsed(c);
    }
    if (c->reopen_due && s->state == SESSION_READY) {
        files_reopen(c);
        session_resume(c);
    }
    session_settle(c);
    if (s->call_busy || now < s->renew_at_ns || !rpc_peer_link(s->peer))
        return;
    if (s->up_link)
        session_up(c);
    else if (!s->id)
        session_open(c);
    else if (s->state == SESSION_RECLAIMING)
        session_reclaim(c);
    else if (s->state == SESSION_READY)
        session_renew(c);
}

static void closed(struct rpc_call *call, int status)
{
    struct core *c = call->arg;

    (void)status;
    call_over(c);
    c->session.closed(c);
}

void session_close(struct core *c, void (*done)(struct core *c))
{
    struct core_session *s = &c->session;

    s->closing = true;
    s->closed = done;
    mem_free(s->items);
    s->items = NULL;
    if (!s->id || s->call_busy || !call_start(c, RPC_OP_SESSION_CLOSE, &s->empty, closed))
        done(c);
}
