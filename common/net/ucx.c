/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a connection moves from its socket to UCX.
 *
 * Both ends have each other's offer when net_conn_upgrade() chooses; the choice is the same on
 * both. The rest is asynchronous, while messages go on over the socket:
 *
 *   ADDRESS  sent by each end that can really do it (shared memory: it knows that the process is
 *            the peer, and has read its cookie) with the address of the worker it has made. On the
 *            peer's it makes an endpoint and sends a PROBE through it.
 *   READY    sent on the peer's PROBE.
 *   SWITCH   sent on the peer's READY, as the last message over the socket; from then on this end
 *            sends over UCX. What comes over UCX before the peer's SWITCH is held, so that nothing
 *            overtakes what was sent before.
 *
 * Failures on the way: STAY, and the socket it is, unless an end insists: then the connection is
 * closed with a line that says why. Where the other end has hung up meanwhile, the channel tells
 * whether that was its refusal (STAY) or its death, which says nothing of transports. After it: the
 * control channel, and only it, tells that the peer is dead; the worker is then destroyed as a
 * whole, after which nothing touches the memory of any message, and all are failed.
 */
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include <sys/epoll.h>

#include "common/base/err.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/net/cma.h"
#include "common/net/peer_process.h"
#include "common/net/ucx_int.h"

#define GIVE_UP_NS (10 * NS_PER_S)
#define RECHECK_NS (200 * NS_PER_US)
#define BUSY_ARMS                                                                                  \
    4u /* then sleep a little at a time: pure polling would take the core the peer needs */
#define ARM_ROUNDS       2u /* the first takes what woke us off the descriptor */
#define PROGRESS_ROUNDS  8
#define MAX_HEADER_BYTES 8192u
#define CLOSE_NS         NS_PER_S /* RDMA: how long tearing down an endpoint may take */

static const char the_other[] = "the other end cannot"; /* which has said so */
static const char its_end[] = "the other process has ended";

static const char *choice_name(enum offer_choice c)
{
    return c == CHOICE_SHM ? "shm" : c == CHOICE_RDMA ? "rdma" : "tcp";
}

static const char *want_name(uint8_t want)
{
    static const char *const names[] = {"auto", "tcp", "shm", "rdma"};

    return want < ARRAY_LEN(names) ? names[want] : "?";
}

/* ---- the worker, as a source of the reactor ---- */

static int on_progress(struct reactor_source *s)
{
    struct net_ucx *u = container_of(s, struct net_ucx, source);
    int n = 0;

    u->answered = false;
    for (int i = 0; i < PROGRESS_ROUNDS && conn_alive(u->conn); i++) {
        unsigned k = ucx_api.ucp_worker_progress(u->worker);

        if (k == 0)
            break;
        n += (int)k;
    }
    if (n > 0)
        u->busy_arms = 0;
    u->armed &= n == 0;
    return n;
}

/*
 * What is armed stays so until something has come, which its descriptor tells, or has been sent.
 * Arming costs two system calls, and there is a worker for each server: most are idle.
 */
static bool arm(struct net_ucx *u)
{
    for (unsigned k = 0; k < ARM_ROUNDS && !u->armed; k++) {
        stat_inc(&net_counters.arms);
        u->armed = ucx_api.ucp_worker_arm(u->worker) == UCS_OK;
    }
    return u->armed;
}

/* UCX stays "busy" while it cannot get rid of something, which is for ever if the peer has
 * stopped. */
static bool on_arm(struct reactor_source *s)
{
    struct net_ucx *u = container_of(s, struct net_ucx, source);

    if (!conn_alive(u->conn) || arm(u))
        return true;
    if (++u->busy_arms < BUSY_ARMS)
        return false;
    if (!reactor_timer_running(&u->recheck))
        reactor_timer_start(u->conn->reactor, &u->recheck,
                            reactor_now_ns(u->conn->reactor) +
                                (RECHECK_NS << MIN((u->busy_arms - BUSY_ARMS) / 4, 5u)));
    return true;
}

static bool on_busy(struct reactor_source *s)
{
    return !list_empty(&container_of(s, struct net_ucx, source)->posted);
}

static void on_event(struct reactor_watch *w, uint32_t events UNUSED)
{
    container_of(w, struct net_ucx, watch)->armed = false; /* this turn makes progress */
}

static void on_recheck(struct reactor_timer *t UNUSED)
{
    /* The turn that this wakes makes progress. */
}

static int worker_open(struct net_ucx *u)
{
    ucp_worker_params_t wp = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                              .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER};
    ucp_am_handler_param_t h = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS,
        .id = UCX_AM_ID,
        .cb = ucx_on_am,
        .arg = u,
        .flags = UCP_AM_FLAG_WHOLE_MSG};
    ucp_context_h ctx;
    ucs_status_t s;
    int fd;
    int rc = ucx_lib_context(u->choice, &ctx);

    if (rc < 0)
        return rc;
    s = ucx_api.ucp_worker_create(ctx, &wp, &u->worker);
    if (s != UCS_OK) {
        u->worker = NULL;
        return ucx_err(s);
    }
    s = ucx_api.ucp_worker_query(u->worker, &attr);
    if (s == UCS_OK)
        s = ucx_api.ucp_worker_set_am_recv_handler(u->worker, &h);
    if (s == UCS_OK)
        s = ucx_api.ucp_worker_get_efd(u->worker, &fd);
    if (s != UCS_OK)
        return ucx_err(s);
    u->max_header = (uint32_t)MIN(attr.max_am_header, MAX_HEADER_BYTES);
    if (u->max_header < UCX_HEADER_BYTES)
        return -ENOTSUP;
    u->watch =
        (struct reactor_watch){.fd = fd, .events = EPOLLIN, .fn = on_event, .of_source = true};
    rc = reactor_watch_add(u->conn->reactor, &u->watch);
    if (rc == 0)
        reactor_source_add(u->conn->reactor, &u->source);
    return rc;
}

/* An endpoint with error handling must be closed before its worker; only RDMA has it. */
static void endpoint_close(struct net_ucx *u)
{
    ucp_request_param_t p = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                             .flags = UCP_EP_CLOSE_FLAG_FORCE};
    const struct clock *clk = clock_real();
    uint64_t until = clock_mono_ns(clk) + CLOSE_NS;
    void *request = ucx_api.ucp_ep_close_nbx(u->ep, &p);

    if (!UCS_PTR_IS_PTR(request))
        return;
    while (ucx_api.ucp_request_check_status(request) == UCS_INPROGRESS &&
           clock_mono_ns(clk) < until)
        ucx_api.ucp_worker_progress(u->worker);
    if (ucx_api.ucp_request_check_status(request) == UCS_INPROGRESS)
        LOG_ERROR("ucx", "%s: an endpoint does not close", u->conn->describe);
    ucx_api.ucp_request_free(request);
}

static void worker_close(struct net_ucx *u)
{
    struct reactor *r = u->conn->reactor;

    reactor_timer_cancel(r, &u->recheck);
    reactor_timer_cancel(r, &u->ack_timer);
    reactor_timer_cancel(r, &u->give_up);
    ucx_drop_held(u);
    if (!u->worker)
        return;
    if (u->watch.added) {
        reactor_watch_remove(r, &u->watch);
        reactor_source_remove(r, &u->source);
    }
    if (u->ep && u->choice == CHOICE_RDMA && !ucx_lib_rdma_is_fake())
        endpoint_close(u);
    ucx_api.ucp_worker_destroy(u->worker);
    u->worker = NULL;
    u->ep = NULL;
}

/* ---- moving over ---- */

static bool hung_up(const struct net_ucx *u)
{
    struct pollfd p = {.fd = sock_descriptor(u->conn), .events = POLLRDHUP};

    return poll(&p, 1, 0) > 0;
}

static void stay(struct net_ucx *u, const char *why, bool tell)
{
    struct net_conn *c = u->conn;
    bool forced = u->forced;

    if (u->state == UCX_SENDING || u->receiving) { /* too late to stay */
        net_conn_close(c, -AIFS_ECONN);
        return;
    }
    if (tell && (why == its_end || hung_up(u))) { /* the channel's last word is yet to be read */
        reactor_timer_start(c->reactor, &u->give_up, reactor_now_ns(c->reactor) + GIVE_UP_NS);
        return;
    }
    if (tell)
        sock_control(c, FRAME_STAY);
    u->state = UCX_DESTROYED;
    worker_close(u);
    ucx_tx_fail_all(u); /* nothing but a PROBE */
    u->state = UCX_STAYED;
    u->why = why;
    stat_inc(&net_counters.stayed);
    if (forced) {
        LOG_ERROR("net", "%s: %s was asked for and does not work here: %s", c->describe,
                  choice_name(u->choice), why);
        net_conn_close(c, -ENOTSUP);
    } else {
        LOG_INFO("net", "%s: stays on tcp: %s", c->describe, why);
    }
}

static void on_give_up(struct reactor_timer *t)
{
    struct net_ucx *u = container_of(t, struct net_ucx, give_up);

    if (u->state == UCX_TRYING)
        stay(u, "no answer over the other transport", true);
}

/* Inside ucx_api.ucp_worker_progress(): the worker cannot be destroyed here. */
static void on_endpoint_error(void *arg, ucp_ep_h ep UNUSED, ucs_status_t s)
{
    struct net_ucx *u = arg;

    LOG_WARN("ucx", "%s: %s", u->conn->describe, ucx_api.ucs_status_string(s));
    if (u->state == UCX_TRYING)
        reactor_timer_start(u->conn->reactor, &u->give_up, reactor_now_ns(u->conn->reactor));
    else if (u->state == UCX_SENDING)
        net_conn_close(u->conn, -AIFS_ECONN);
}

static void say_ready(struct net_ucx *u)
{
    if (u->ep && u->probed && !u->ready_said) {
        u->ready_said = true;
        sock_control(u->conn, FRAME_READY);
    }
}

void ucx_on_probe(struct net_ucx *u)
{
    u->probed = true;
    say_ready(u);
}

static void connect_endpoint(struct net_ucx *u)
{
    ucp_ep_params_t p = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                         .address = (const ucp_address_t *)(void *)u->their_address};
    ucs_status_t s;
    int rc;

    if (u->choice == CHOICE_RDMA && !ucx_lib_rdma_is_fake()) {
        p.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
        p.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        p.err_handler = (ucp_err_handler_t){.cb = on_endpoint_error, .arg = u};
    }
    s = ucx_api.ucp_ep_create(u->worker, &p, &u->ep);
    mem_free(u->their_address);
    u->their_address = NULL;
    if (s != UCS_OK) {
        u->ep = NULL;
        stay(u, ucx_api.ucs_status_string(s), true);
        return;
    }
    rc = ucx_post_probe(u);
    if (rc < 0)
        stay(u, err_text(rc), true);
    else
        say_ready(u);
}

static void switch_over(struct net_ucx *u)
{
    struct net_conn *c = u->conn;

    u->state = UCX_SENDING;
    reactor_timer_cancel(c->reactor, &u->give_up);
    sock_control(c, FRAME_SWITCH);
    c->kind = NET_UCX;
    conn_set_describe(c, choice_name(u->choice));
    LOG_INFO("net", "%s: %s", c->describe, u->why);
}

/* NULL: it can be read, as far as its cookie tells. */
static const char *why_no_cookie(const struct net_ucx *u)
{
    uint8_t got[OFFER_COOKIE_BYTES];
    struct iovec local = {got, sizeof got};
    struct iovec remote = {(void *)(uintptr_t)u->theirs.cookie_at, sizeof got};
    int rc = cma_read((pid_t)u->theirs.pid, &local, 1, &remote, 1, 0, sizeof got);

    if (rc < 0)
        LOG_DEBUG("net", "%s: cannot read process %u: %s", u->conn->describe, u->theirs.pid,
                  err_text(rc));
    if (rc == -ESRCH)
        return its_end; /* on its way out it loses its memory before its connections */
    return rc == 0 && memcmp(got, u->theirs.cookie, sizeof got) == 0
               ? NULL
               : "the other process's memory cannot be read";
}

/* What the peer lets us map. */
static void map_share(struct net_ucx *u)
{
    int rc = u->theirs.share.bytes ? share_map(u->process, &u->theirs.share, &u->view) : 0;

    if (rc < 0)
        LOG_INFO("net", "%s: memory of process %u cannot be mapped: %s", u->conn->describe,
                 u->theirs.pid, err_text(rc));
}

/* NULL: the peer's memory can be read; else why not. */
static const char *why_unreadable(struct net_ucx *u)
{
    int process = peer_process_open(sock_descriptor(u->conn), (pid_t)u->theirs.pid,
                                    u->theirs.socket, u->theirs.uid);
    const char *why;

    if (process < 0) {
        LOG_DEBUG("net", "%s: process %u: %s", u->conn->describe, u->theirs.pid, err_text(process));
        return "it cannot be seen which process is at the other end";
    }
    u->process = process;
    why = why_no_cookie(u);
    if (why)
        return why;
    map_share(u);
    return peer_process_lives(process) ? NULL : its_end;
}

static int send_address(struct net_ucx *u)
{
    ucp_address_t *a;
    size_t len;
    ucs_status_t s = ucx_api.ucp_worker_get_address(u->worker, &a, &len);

    if (s != UCS_OK)
        return ucx_err(s);
    if (len <= UCX_ADDRESS_MAX) {
        memcpy(u->address, a, len);
        u->address_len = (uint32_t)len;
    }
    ucx_api.ucp_worker_release_address(u->worker, a);
    if (len > UCX_ADDRESS_MAX)
        return -ENOTSUP;
    sock_control_data(u->conn, FRAME_ADDRESS, u->address, u->address_len);
    return 0;
}

static void try_it(struct net_ucx *u)
{
    struct net_conn *c = u->conn;
    const char *why;
    int rc;

    u->state = UCX_TRYING;
    if (u->peer_stays) {
        stay(u, the_other, false);
        return;
    }
    why = u->choice == CHOICE_SHM ? why_unreadable(u) : NULL;
    if (why) {
        stay(u, why, true);
        return;
    }
    rc = worker_open(u);
    if (rc == 0)
        rc = send_address(u);
    if (rc < 0) {
        stay(u, err_text(rc), true);
        return;
    }
    reactor_timer_start(c->reactor, &u->give_up, reactor_now_ns(c->reactor) + GIVE_UP_NS);
    if (u->their_address)
        connect_endpoint(u);
}

/* ---- what the rest of common/net calls ---- */

static struct net_ucx *ucx_create(struct net_conn *c)
{
    struct net_ucx *u = mem_zalloc(sizeof *u);

    if (!u)
        return NULL;
    u->conn = c;
    u->process = -1;
    u->source = (struct reactor_source){.progress = on_progress, .arm = on_arm, .busy = on_busy};
    list_init(&u->source.link);
    reactor_timer_init(&u->recheck, on_recheck);
    reactor_timer_init(&u->ack_timer, ucx_on_ack_timer);
    reactor_timer_init(&u->give_up, on_give_up);
    list_init(&u->tx_queue);
    list_init(&u->posted);
    list_init(&u->free);
    list_init(&u->rx);
    list_init(&u->held);
    return u;
}

int ucx_offer(struct net_conn *c, void *offer, uint32_t *len)
{
    struct net_ucx *u = c->ucx ? c->ucx : ucx_create(c);
    struct uuid cookie;
    int rc;

    if (!u)
        return -ENOMEM;
    c->ucx = u;
    if (*len < OFFER_BYTES)
        return -ENOBUFS;
    rc = uuid_random(&cookie);
    if (rc < 0)
        return rc;
    rc = offer_of_this_process(&u->mine);
    if (rc < 0) {
        LOG_WARN("net", "no transport but tcp: /proc does not say where we run: %s", err_text(rc));
        u->mine = (struct offer){0};
        memcpy(u->mine.boot_id, cookie.b, sizeof cookie.b); /* nobody's */
    } else if (c->options.want != NET_WANT_TCP && c->options.want != NET_WANT_CALLS) {
        u->mine.flags =
            (uint16_t)((ucx_lib_has_shm() ? OFFER_SHM : 0) | (ucx_lib_has_rdma() ? OFFER_RDMA : 0));
    }
    u->mine.want = (uint8_t)c->options.want;
    if (c->options.want == NET_WANT_CALLS) {
        u->mine.want = NET_WANT_TCP;
        u->mine.flags = OFFER_CALLS;
    }
    memcpy(u->mine.cookie, cookie.b, OFFER_COOKIE_BYTES);
    u->mine.cookie_at = (uintptr_t)u->mine.cookie;
    u->mine.share = share_mine();
    u->mine.socket = sock_descriptor(c);
    offer_encode(&u->mine, offer);
    *len = OFFER_BYTES;
    return 0;
}

int ucx_upgrade(struct net_conn *c, const void *peer_offer, uint32_t len)
{
    struct net_ucx *u = c->ucx;
    struct choice ch;
    int rc;

    if (!u || u->state != UCX_OFFERED)
        return -EINVAL;
    rc = offer_decode(peer_offer, len, &u->theirs);
    if (rc < 0) {
        LOG_WARN("net", "%s: bad transport offer", c->describe);
        return rc;
    }
    ch = offer_choose(&u->mine, &u->theirs);
    u->choice = ch.choice;
    u->why = ch.why;
    if (ch.refused) {
        LOG_ERROR("net", "%s: the transport asked for (%s here, %s there) cannot be used: %s",
                  c->describe, want_name(u->mine.want), want_name(u->theirs.want), ch.why);
        return -ENOTSUP;
    }
    u->forced = u->mine.want >= NET_WANT_SHM || u->theirs.want >= NET_WANT_SHM;
    if (ch.choice == CHOICE_SOCKET) {
        LOG_INFO("net", "%s: %s", c->describe, ch.why);
        u->state = UCX_STAYED;
        return 0;
    }
    try_it(u);
    return c->state >= CONN_CLOSING ? -ENOTSUP : 0;
}

const char *ucx_why(const struct net_conn *c)
{
    return c->ucx ? c->ucx->why : NULL;
}

bool ucx_is_settled(const struct net_conn *c)
{
    return !c->ucx || c->ucx->state > UCX_TRYING;
}

static void on_address(struct net_ucx *u, const void *data, uint32_t len)
{
    if (u->state > UCX_TRYING || u->ep || u->their_address)
        return;
    u->their_address = mem_dup(data, len);
    if (!u->their_address) {
        net_conn_close(u->conn, -ENOMEM);
        return;
    }
    if (u->state == UCX_TRYING && u->worker)
        connect_endpoint(u);
}

void ucx_control(struct net_conn *c, enum frame_type type, const void *data, uint32_t len)
{
    struct net_ucx *u = c->ucx;

    if (!u) {
        net_conn_close(c, -AIFS_EPROTO);
    } else if (type == FRAME_ADDRESS) {
        on_address(u, data, len);
    } else if (type == FRAME_STAY) {
        u->peer_stays = true; /* may come before our own upgrade */
        if (u->state == UCX_TRYING)
            stay(u, the_other, false);
        else if (u->state == UCX_SENDING)
            net_conn_close(c, -AIFS_ECONN);
    } else if (u->state != UCX_TRYING && u->state != UCX_SENDING) {
        return; /* crossed our STAY */
    } else if (type == FRAME_READY && u->ep && u->state == UCX_TRYING) {
        switch_over(u);
    } else if (type == FRAME_SWITCH && u->ready_said) {
        u->receiving = true;
        ucx_take_held(u);
    } else if (type == FRAME_HOLD) {
        u->held_by_peer = true;
    } else if (type == FRAME_GO) {
        u->held_by_peer = false;
        conn_kick(c, KICK_FLUSH);
    } else {
        LOG_WARN("net", "%s: transport message out of order: closing the connection", c->describe);
        net_conn_close(c, -AIFS_EPROTO);
    }
}

void ucx_abort(struct net_conn *c)
{
    struct net_ucx *u = c->ucx;

    if (!u)
        return;
    u->state = UCX_DESTROYED;
    worker_close(u);
    ucx_rx_fail_all(u);
    ucx_tx_fail_all(u);
}

void ucx_release(struct net_conn *c)
{
    if (!c->ucx)
        return;
    share_unmap(&c->ucx->view);
    if (c->ucx->process >= 0)
        close(c->ucx->process);
    mem_free(c->ucx->their_address);
    mem_free(c->ucx);
}
