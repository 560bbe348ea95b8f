/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What arrives over UCX.
 *
 * Happy path: an active message is checked, its head offered to the owner, its bulk brought to
 * where the owner wants it (copied, read from the peer's memory, or by a rendezvous), the owner
 * told.
 *
 * A message is held (copied) when the owner has no room, when others are held already, or before
 * the peer's SWITCH says that all it sent over the socket has been delivered. A sender of too much
 * that is held is told to stop, and cut off if it does not.
 *
 * After reading a peer's memory we look whether its control channel is still open: a peer that
 * thought us dead has closed it before it used the buffers again, so what we read before seeing it
 * open is what was sent. And whether the process still lives: if not, its pid might be another's by
 * now, and its socket may still be open in a child of its own.
 */
#include <poll.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/net/cma.h"
#include "common/net/ucx_int.h"

#define MAPPED_BYTES                                                                               \
    (16u * KIB) /* copied at a time, for who looks at it: a processor's nearest cache */

/* A message as it came, from UCX or from the held ones. */
struct arrival {
    struct ucx_header h;
    const uint8_t *head;
    const uint8_t *body; /* bulk, or references */
    uint32_t body_len;
    void *desc; /* RNDV: where UCX fetches the bulk from */
};

static void bad(struct net_ucx *u, const char *what)
{
    LOG_WARN("ucx", "%s: %s: closing the connection", u->conn->describe, what);
    stat_inc(&net_counters.garbage);
    net_conn_close(u->conn, -AIFS_EPROTO);
}

/* ---- landing the bulk ---- */

static void land_copy(struct net_ucx *u, const struct arrival *a, const struct net_rx *rx)
{
    const uint8_t *at = a->body;
    size_t left = a->body_len;

    for (unsigned i = 0; i < rx->n_iov && left > 0; i++) {
        size_t n = MIN(left, rx->iov[i].iov_len);

        memcpy(rx->iov[i].iov_base, at, n);
        at += n;
        left -= n;
    }
    u->conn->ops->received(u->conn, rx->token, 0);
}

/* What is mapped is copied by ourselves: in no time, but it is to stay in the nearest cache. */
static int read_peer(struct net_ucx *u, const struct iovec *local, unsigned n_local,
                     const struct iovec *remote, unsigned n_remote, uint32_t from, uint32_t len)
{
    if (!share_read(&u->view, local, remote, n_remote, from, len))
        return cma_read((pid_t)u->theirs.pid, local, n_local, remote, n_remote, from, len);
    stat_add(&net_counters.mapped_bytes, len);
    return 0;
}

static int read_refs(struct net_ucx *u, const struct arrival *a, const struct net_rx *rx)
{
    uint32_t n = a->body_len / UCX_REF_BYTES, len = a->h.bulk_len, step;
    uint64_t most = rx->part ? rx->part_memory.iov_len : 0;
    struct iovec remote[NET_IOV_MAX];
    int rc = 0;

    for (uint32_t i = 0; i < n; i++)
        remote[i] = (struct iovec){(void *)(uintptr_t)le64_load(a->body + i * UCX_REF_BYTES),
                                   le64_load(a->body + i * UCX_REF_BYTES + 8)};
    if (!rx->part)
        return read_peer(u, rx->iov, rx->n_iov, remote, n, 0, len);
    if (share_holds(&u->view, remote, n))
        most = MIN(most, MAPPED_BYTES);
    for (uint32_t at = 0; at < len && rc == 0; at += step) {
        step = (uint32_t)MIN(len - at, most);
        rc = read_peer(u, &rx->part_memory, 1, remote, n, at, step);
        if (rc == 0)
            rx->part(rx->part_arg, rx->part_memory.iov_base, step);
    }
    return rc;
}

bool ucx_peer_gone(const struct net_ucx *u)
{
    struct pollfd p[2] = {{.fd = sock_descriptor(u->conn), .events = POLLRDHUP},
                          {.fd = u->process, .events = POLLIN}};

    return poll(p, ARRAY_LEN(p), 0) > 0;
}

static void land_refs(struct net_ucx *u, const struct arrival *a, const struct net_rx *rx)
{
    struct net_conn *c = u->conn;
    int rc = rx->n_iov ? read_refs(u, a, rx) : 0;

    if (rc < 0)
        LOG_DEBUG("ucx", "%s: reading %u bytes from process %u: %s", c->describe, a->h.bulk_len,
                  u->theirs.pid, err_text(rc));
    else if (ucx_peer_gone(u))
        rc = -AIFS_ECONN;
    if (rc < 0) {
        net_conn_close(c, -AIFS_ECONN);
        c->ops->received(c, rx->token, -AIFS_ECONN);
        return;
    }
    ucx_add_ack(u, a->h.id, a->h.bulk_len);
    c->ops->received(c, rx->token, 0);
}

static void on_fetched(void *request, ucs_status_t s, size_t len UNUSED, void *arg)
{
    struct ucx_rx *r = arg;
    struct net_ucx *u = r->ucx;
    void *token = r->token;

    ucx_api.ucp_request_free(request);
    if (u->state == UCX_DESTROYED)
        return; /* ucx_rx_fail_all() follows */
    list_remove(&r->link);
    mem_free(r);
    if (s != UCS_OK)
        net_conn_close(u->conn, -AIFS_ECONN);
    u->conn->ops->received(u->conn, token, s == UCS_OK ? 0 : -AIFS_ECONN);
}

static unsigned clip_parts(const struct net_rx *rx, uint32_t len, ucp_dt_iov_t parts[NET_IOV_MAX])
{
    unsigned n = 0;

    for (unsigned i = 0; i < rx->n_iov && len > 0; i++) {
        uint32_t take = (uint32_t)MIN(len, rx->iov[i].iov_len);

        if (take > 0)
            parts[n++] = (ucp_dt_iov_t){.buffer = rx->iov[i].iov_base, .length = take};
        len -= take;
    }
    return n;
}

/* True: UCX keeps the descriptor. */
static bool land_rndv(struct net_ucx *u, const struct arrival *a, const struct net_rx *rx)
{
    ucp_request_param_t p = {.op_attr_mask =
                                 UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                 UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_MEMORY_TYPE |
                                 UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                             .memory_type = UCS_MEMORY_TYPE_HOST,
                             .cb.recv_am = on_fetched};
    struct net_conn *c = u->conn;
    struct ucx_rx *r;
    void *request;
    unsigned n;

    if (rx->n_iov == 0) {
        c->ops->received(c, rx->token, 0);
        return false;
    }
    r = mem_zalloc(sizeof *r);
    if (!r) {
        net_conn_close(c, -ENOMEM);
        c->ops->received(c, rx->token, -ENOMEM);
        return false;
    }
    r->ucx = u;
    r->token = rx->token;
    n = clip_parts(rx, a->h.bulk_len, r->parts);
    p.user_data = r;
    p.datatype = n > 1 ? UCP_DATATYPE_IOV : ucp_dt_make_contig(1);
    list_push_back(&u->rx, &r->link);
    request = ucx_api.ucp_am_recv_data_nbx(u->worker, a->desc,
                                           n > 1 ? (void *)r->parts : r->parts[0].buffer,
                                           n > 1 ? n : r->parts[0].length, &p);
    if (UCS_PTR_IS_PTR(request))
        return true;
    LOG_WARN("ucx", "%s: receive: %s", c->describe,
             ucx_api.ucs_status_string(UCS_PTR_STATUS(request)));
    list_remove(&r->link);
    mem_free(r);
    net_conn_close(c, -AIFS_ECONN);
    c->ops->received(c, rx->token, -AIFS_ECONN);
    return false;
}

enum taken { TAKEN, TAKEN_WITH_DESC, NOT_TAKEN };

static enum taken take(struct net_ucx *u, const struct arrival *a)
{
    struct net_rx rx;

    rx.at_once = !a->desc;
    switch (conn_offer_head(u->conn, a->head, a->h.head_len, a->h.bulk_len, &rx)) {
    case OFFERED_TAKEN:
        break;
    case OFFERED_STALLED:
        u->stalled = true;
        return NOT_TAKEN;
    case OFFERED_CLOSED:
        return TAKEN;
    }
    if (a->desc)
        return land_rndv(u, a, &rx) ? TAKEN_WITH_DESC : TAKEN;
    if (a->h.type == UCX_REF)
        land_refs(u, a, &rx);
    else
        land_copy(u, a, &rx);
    return TAKEN;
}

/* ---- held messages ---- */

static void held_free(struct net_ucx *u, struct ucx_held *m)
{
    list_remove(&m->link);
    u->n_held--;
    u->held_bytes -= m->len;
    mem_free(m);
}

static ucs_status_t hold(struct net_ucx *u, const struct arrival *a)
{
    uint32_t len = a->h.head_len + a->body_len;
    struct ucx_held *m = NULL;

    if (u->held_bytes + len <= UCX_HOLD_LIMIT && u->n_held < UCX_HOLD_LIMIT / 4096)
        m = mem_alloc(sizeof *m + len);
    if (!m) {
        bad(u, "the peer does not stop sending");
        return UCS_OK;
    }
    m->h = a->h;
    m->desc = a->desc;
    m->len = len;
    if (a->h.head_len)
        memcpy(m->data, a->head, a->h.head_len);
    if (a->body_len)
        memcpy(m->data + a->h.head_len, a->body, a->body_len);
    list_push_back(&u->held, &m->link);
    u->n_held++;
    u->held_bytes += len;
    if (!u->hold_said && (u->held_bytes > UCX_HOLD_BYTES || u->n_held > UCX_HOLD_MESSAGES)) {
        u->hold_said = true;
        sock_control_either(u->conn, FRAME_HOLD, FRAME_GO);
    }
    return a->desc ? UCS_INPROGRESS : UCS_OK;
}

void ucx_take_held(struct net_ucx *u)
{
    u->armed = false; /* UCX fetches what is taken, and may have to wait before it can ask for it */
    while (conn_alive(u->conn) && u->receiving && !u->stalled && !list_empty(&u->held)) {
        struct ucx_held *m = list_entry(u->held.next, struct ucx_held, link);
        struct arrival a = {.h = m->h,
                            .head = m->data,
                            .body = m->data + m->h.head_len,
                            .body_len = m->len - m->h.head_len,
                            .desc = m->desc};
        enum taken t = take(u, &a);

        if (t == NOT_TAKEN)
            break;
        if (t == TAKEN && m->desc)
            ucx_api.ucp_am_data_release(u->worker, m->desc);
        held_free(u, m);
    }
    if (u->hold_said && u->held_bytes < UCX_HOLD_BYTES / 2 && u->n_held < UCX_HOLD_MESSAGES / 2) {
        u->hold_said = false;
        sock_control_either(u->conn, FRAME_GO, FRAME_HOLD);
    }
}

void ucx_resume(struct net_conn *c)
{
    if (!c->ucx || !c->ucx->stalled)
        return;
    c->ucx->stalled = false;
    ucx_take_held(c->ucx);
}

void ucx_drop_held(struct net_ucx *u)
{
    while (!list_empty(&u->held)) {
        struct ucx_held *m = list_entry(u->held.next, struct ucx_held, link);

        if (m->desc)
            ucx_api.ucp_am_data_release(u->worker, m->desc);
        held_free(u, m);
    }
}

void ucx_rx_fail_all(struct net_ucx *u)
{
    struct list *e;

    while ((e = list_pop_front(&u->rx)) != NULL) {
        struct ucx_rx *r = list_entry(e, struct ucx_rx, link);
        void *token = r->token;

        mem_free(r);
        u->conn->ops->received(u->conn, token, -AIFS_ECONN);
    }
}

/* ---- active messages ---- */

static bool refs_ok(const struct arrival *a)
{
    uint64_t sum = 0;
    uint32_t n = a->body_len / UCX_REF_BYTES;

    if (n == 0 || n > NET_IOV_MAX || a->body_len % UCX_REF_BYTES != 0)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t len = le64_load(a->body + i * UCX_REF_BYTES + 8);

        if (len > NET_BULK_MAX)
            return false;
        sum += len;
    }
    return sum == a->h.bulk_len;
}

static bool arrival_ok(const struct arrival *a)
{
    if (a->h.type == UCX_REF)
        return refs_ok(a);
    return a->desc || a->body_len == a->h.bulk_len;
}

static ucs_status_t on_message(struct net_ucx *u, const struct arrival *a)
{
    if (!u->receiving || u->stalled || !list_empty(&u->held))
        return hold(u, a);
    switch (take(u, a)) {
    case TAKEN_WITH_DESC:
        return UCS_INPROGRESS;
    case NOT_TAKEN:
        return conn_alive(u->conn) ? hold(u, a) : UCS_OK;
    case TAKEN:
        break;
    }
    if (!u->answered && !list_empty(&u->tx_queue) && conn_alive(u->conn)) {
        u->answered = true;
        ucx_flush(u->conn);
    }
    return UCS_OK;
}

/* How bulk travels is settled with the transport. A process's memory is read only where it has been
 * seen that the process is the peer: on shared memory. */
static bool way_ok(const struct net_ucx *u, uint8_t type)
{
    if (type == UCX_REF)
        return u->choice == CHOICE_SHM;
    return type != UCX_RNDV || u->choice == CHOICE_RDMA;
}

ucs_status_t ucx_on_am(void *arg, const void *header, size_t header_len, void *data, size_t len,
                       const ucp_am_recv_param_t *param)
{
    struct net_ucx *u = arg;
    bool rndv = param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV;
    struct arrival a;

    if (!conn_alive(u->conn) || u->state == UCX_DESTROYED)
        return UCS_OK;
    if (!ucx_header_decode(header, header_len, &a.h) || (rndv && a.h.type != UCX_RNDV) ||
        !way_ok(u, a.h.type)) {
        bad(u, "a message that is none");
        return UCS_OK;
    }
    conn_heard(u->conn);
    a.desc = rndv ? data : NULL;
    if (a.h.type == UCX_RNDV) {
        a.head = (const uint8_t *)header + UCX_HEADER_BYTES;
        a.body = rndv ? NULL : data;
        a.body_len = rndv ? 0 : (uint32_t)len;
        if (header_len != UCX_HEADER_BYTES + a.h.head_len || len != a.h.bulk_len)
            a.h.type = 0;
    } else {
        a.head = data;
        a.body = (const uint8_t *)data + a.h.head_len;
        a.body_len = (uint32_t)len - a.h.head_len;
        if (len < a.h.head_len || len > UINT32_MAX)
            a.h.type = 0;
    }
    switch (a.h.type) {
    case UCX_PROBE:
        ucx_on_probe(u);
        return UCS_OK;
    case UCX_ACK:
        ucx_on_ack(u, a.body, a.body_len);
        return UCS_OK;
    default:
        if (a.h.type != 0 && arrival_ok(&a))
            return on_message(u, &a);
        bad(u, "lengths in a message do not agree");
        return UCS_OK;
    }
}
