/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What leaves over UCX.
 *
 * Happy path: net_send() queues; flush hands up to UCX_WINDOW messages to UCX, each with a record
 * that owns the active message header and the list of parts until UCX, and for a REF also the
 * peer's ACK, have come. Acknowledgements gather until there is something else to send, they are
 * many, or a timer fires, and leave as one message.
 *
 * Failures: an error from UCX closes the connection. When the worker is destroyed, everything still
 * on record is failed: nothing reads the memory any more.
 */
#include <string.h>

#include "common/base/assert.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/net/ucx_int.h"

#define ACK_RECORDS 16u /* kept back for acknowledgements */

static struct ucx_tx *record_get(struct net_ucx *u)
{
    struct list *e = list_pop_front(&u->free);
    struct ucx_tx *r;

    if (e)
        return list_entry(e, struct ucx_tx, link);
    if (u->n_records == UCX_WINDOW)
        return NULL;
    r = mem_zalloc(sizeof *r + (u->choice == CHOICE_RDMA ? u->max_header : UCX_HEADER_BYTES));
    if (!r)
        return NULL;
    r->ucx = u;
    r->id = u->n_records++;
    u->by_id[r->id] = r;
    list_init(&r->link);
    return r;
}

static void record_put(struct ucx_tx *r)
{
    list_remove(&r->link);
    list_push_front(&r->ucx->free, &r->link);
    r->ucx->n_posted--;
    r->tx = NULL;
}

static void finish(struct ucx_tx *r)
{
    struct net_ucx *u = r->ucx;
    struct net_tx *tx = r->tx;
    int status = r->status;

    record_put(r);
    if (tx)
        conn_tx_done(u->conn, tx, status);
    if (status < 0)
        net_conn_close(u->conn, -AIFS_ECONN);
    else if (!list_empty(&u->tx_queue) || u->ack_due)
        conn_kick(u->conn, KICK_FLUSH);
}

static void on_sent(void *request, ucs_status_t s, void *arg)
{
    struct ucx_tx *r = arg;

    ucx_api.ucp_request_free(request);
    r->in_ucx = false;
    if (r->ucx->state == UCX_DESTROYED)
        return; /* ucx_tx_fail_all() follows */
    if (s != UCS_OK) {
        r->status = -AIFS_ECONN;
        r->wants_ack = false;
    }
    if (!r->wants_ack)
        finish(r);
}

/* Hands a record to UCX: parts[0..n) are the payload. */
static void post(struct ucx_tx *r, size_t header_len, unsigned n, uint32_t flags)
{
    struct net_ucx *u = r->ucx;
    ucp_request_param_t p = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                             UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS |
                                             UCP_OP_ATTR_FIELD_DATATYPE |
                                             UCP_OP_ATTR_FIELD_MEMORY_TYPE,
                             .flags = flags,
                             .datatype = n > 1 ? UCP_DATATYPE_IOV : ucp_dt_make_contig(1),
                             .memory_type = UCS_MEMORY_TYPE_HOST,
                             .cb.send = on_sent,
                             .user_data = r};
    const void *buffer = n > 1 ? (const void *)r->parts : n == 1 ? r->parts[0].buffer : NULL;
    size_t count = n > 1 ? n : n == 1 ? r->parts[0].length : 0;
    void *request;

    r->status = 0;
    r->in_ucx = true;
    u->armed = false; /* UCX may have to wait before it can send */
    u->n_posted++;
    list_push_back(&u->posted, &r->link);
    request = ucx_api.ucp_am_send_nbx(u->ep, UCX_AM_ID, r->header, header_len, buffer, count, &p);
    if (UCS_PTR_IS_PTR(request))
        return; /* on_sent() */
    r->in_ucx = false;
    if (request) {
        LOG_WARN("ucx", "%s: send: %s", u->conn->describe,
                 ucx_api.ucs_status_string(UCS_PTR_STATUS(request)));
        r->status = -AIFS_ECONN;
        r->wants_ack = false;
    }
    if (!r->wants_ack)
        finish(r);
}

static unsigned add_part(struct ucx_tx *r, unsigned n, const void *data, size_t len)
{
    if (len == 0)
        return n;
    r->parts[n] = (ucp_dt_iov_t){.buffer = (void *)data, .length = len};
    return n + 1;
}

static void post_message(struct ucx_tx *r, const struct net_tx *tx, uint32_t bulk_len)
{
    unsigned n = add_part(r, 0, tx->head, tx->head_len);

    for (unsigned i = 0; i < tx->n_iov; i++)
        n = add_part(r, n, tx->iov[i].iov_base, tx->iov[i].iov_len);
    r->wants_ack = false;
    ucx_header_encode(r->header, UCX_MESSAGE, tx->head_len, bulk_len, r->id);
    post(r, UCX_HEADER_BYTES, n, UCP_AM_SEND_FLAG_EAGER);
}

static void post_ref(struct ucx_tx *r, const struct net_tx *tx, uint32_t bulk_len)
{
    unsigned n = add_part(r, 0, tx->head, tx->head_len);

    for (unsigned i = 0; i < tx->n_iov; i++) {
        le64_store(r->refs + i * UCX_REF_BYTES, (uintptr_t)tx->iov[i].iov_base);
        le64_store(r->refs + i * UCX_REF_BYTES + 8, tx->iov[i].iov_len);
    }
    n = add_part(r, n, r->refs, tx->n_iov * UCX_REF_BYTES);
    r->wants_ack = true;
    ucx_header_encode(r->header, UCX_REF, tx->head_len, bulk_len, r->id);
    post(r, UCX_HEADER_BYTES, n, UCP_AM_SEND_FLAG_EAGER);
}

static void post_rndv(struct ucx_tx *r, const struct net_tx *tx, uint32_t bulk_len)
{
    unsigned n = 0;

    for (unsigned i = 0; i < tx->n_iov; i++)
        n = add_part(r, n, tx->iov[i].iov_base, tx->iov[i].iov_len);
    r->wants_ack = false;
    ucx_header_encode(r->header, UCX_RNDV, tx->head_len, bulk_len, r->id);
    if (tx->head_len)
        memcpy(r->header + UCX_HEADER_BYTES, tx->head, tx->head_len);
    post(r, UCX_HEADER_BYTES + tx->head_len, n, UCP_AM_SEND_FLAG_RNDV);
}

static void post_tx(struct ucx_tx *r, struct net_tx *tx)
{
    struct net_ucx *u = r->ucx;
    uint32_t bulk_len = (uint32_t)tx_bulk_bytes(tx);
    bool large = bulk_len > 0 && bulk_len >= u->conn->options.rndv_threshold;

    r->tx = tx;
    if (large && u->choice == CHOICE_SHM)
        post_ref(r, tx, bulk_len);
    else if (large && UCX_HEADER_BYTES + tx->head_len <= u->max_header)
        post_rndv(r, tx, bulk_len);
    else
        post_message(r, tx, bulk_len);
}

static void post_acks(struct net_ucx *u)
{
    struct ucx_tx *r = record_get(u);
    unsigned n = 0;

    if (!r)
        return; /* a completion brings the next flush */
    for (unsigned i = 0; i < u->n_acks; i++)
        le32_store(r->refs + i * 4, u->acks[i]);
    n = add_part(r, 0, r->refs, u->n_acks * 4);
    u->n_acks = 0;
    u->ack_bytes = 0;
    u->ack_due = false;
    if (list_empty(&u->tx_queue))
        stat_inc(&net_counters.lone_acks);
    reactor_timer_cancel(u->conn->reactor, &u->ack_timer);
    r->wants_ack = false;
    ucx_header_encode(r->header, UCX_ACK, 0, 0, 0);
    post(r, UCX_HEADER_BYTES, n, UCP_AM_SEND_FLAG_EAGER);
}

int ucx_post_probe(struct net_ucx *u)
{
    struct ucx_tx *r = record_get(u);

    if (!r)
        return -ENOMEM;
    r->wants_ack = false;
    ucx_header_encode(r->header, UCX_PROBE, 0, 0, 0);
    post(r, UCX_HEADER_BYTES, 0, UCP_AM_SEND_FLAG_EAGER);
    return 0;
}

void ucx_send(struct net_conn *c, struct net_tx *tx)
{
    tx_queue_add(&c->ucx->tx_queue, tx);
    conn_kick(c, KICK_FLUSH);
}

void ucx_flush(struct net_conn *c)
{
    struct net_ucx *u = c->ucx;

    if (!u || !u->ep)
        return;
    if (u->n_acks > 0 && (u->ack_due || !list_empty(&u->tx_queue)))
        post_acks(u);
    while (!list_empty(&u->tx_queue) && !u->held_by_peer &&
           u->n_posted < UCX_WINDOW - ACK_RECORDS && conn_alive(c)) {
        struct ucx_tx *r = record_get(u);

        if (!r) {
            if (u->n_posted == 0)
                net_conn_close(c, -ENOMEM);
            return;
        }
        post_tx(r, list_entry(list_pop_front(&u->tx_queue), struct net_tx, link));
    }
}

static void acks_due(struct net_ucx *u)
{
    u->ack_due = true;
    conn_kick(u->conn, KICK_FLUSH);
}

void ucx_on_ack_timer(struct reactor_timer *t)
{
    acks_due(container_of(t, struct net_ucx, ack_timer));
}

void ucx_add_ack(struct net_ucx *u, uint32_t id, uint32_t len)
{
    if (u->n_acks == UCX_ACKS_MAX) { /* more than its window allows it to have under way */
        LOG_WARN("ucx", "%s: the peer sends too much at once: closing the connection",
                 u->conn->describe);
        net_conn_close(u->conn, -AIFS_EPROTO);
        return;
    }
    u->acks[u->n_acks++] = id;
    u->ack_bytes += len;
    if (u->n_acks >= UCX_ACKS_SOON || u->ack_bytes >= UCX_ACK_BYTES)
        acks_due(u);
    else if (!reactor_timer_running(&u->ack_timer))
        reactor_timer_start(u->conn->reactor, &u->ack_timer,
                            reactor_now_ns(u->conn->reactor) + UCX_ACK_DELAY_NS);
}

void ucx_on_ack(struct net_ucx *u, const uint8_t *ids, uint32_t len)
{
    for (uint32_t i = 0; i + 4 <= len; i += 4) {
        uint32_t id = le32_load(ids + i);
        struct ucx_tx *r = id < u->n_records ? u->by_id[id] : NULL;

        if (!r || !r->tx || !r->wants_ack) {
            LOG_WARN("ucx", "%s: acknowledgement of nothing: closing the connection",
                     u->conn->describe);
            net_conn_close(u->conn, -AIFS_EPROTO);
            return;
        }
        r->wants_ack = false;
        if (!r->in_ucx)
            finish(r);
    }
}

void ucx_tx_fail_all(struct net_ucx *u)
{
    struct list *e;

    while (!list_empty(&u->posted)) {
        struct ucx_tx *r = list_entry(u->posted.next, struct ucx_tx, link);
        struct net_tx *tx = r->tx;

        record_put(r);
        if (tx)
            conn_tx_done(u->conn, tx, -AIFS_ECONN);
    }
    while ((e = list_pop_front(&u->tx_queue)) != NULL)
        conn_tx_done(u->conn, list_entry(e, struct net_tx, link), -AIFS_ECONN);
    while ((e = list_pop_front(&u->free)) != NULL)
        mem_free(list_entry(e, struct ucx_tx, link));
    u->n_records = 0;
}
