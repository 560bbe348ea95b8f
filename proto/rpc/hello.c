// SPDX-License-Identifier: Apache-2.0
/*
 * Hello: two exchanges on a new connection, before which nothing else is listened to.
 *
 * Happy path: the connecting end sends HELLO (who it is, versions, a nonce); the other end answers
 * with the same and its proof; AUTH carries the connecting end's proof and what transports it has,
 * the answer the other end's; both upgrade, and the link is up.
 *
 * Failure: wrong version, cluster, role or key each end the connection after an answer that names
 * the error, so that both ends log what is wrong. An end whose check of the other's proof fails
 * still sends its own: it gives nothing away, and lets the other see that the keys differ. Silence
 * is ended by a time-out, junk at once.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "proto/codec.h"
#include "proto/rpc/rpc_int.h"

struct hello_tx {
    struct net_tx tx;
    struct rpc_link *link;
};

struct hello {
    struct arena arena;
    struct auth_hello asked, answered;
    struct hello_tx tx[2];
    unsigned n_tx, tx_busy;
    struct rpc_header header; /* of what was received last */
    const void *msg;          /* decoded, NULL with an error status */
    struct crypto_key key;    /* of the connecting end's role */
};

static struct hello *hello_get(struct rpc_link *l)
{
    if (!l->hello) {
        l->hello = mem_zalloc(sizeof *l->hello);
        if (l->hello)
            arena_init(&l->hello->arena, 256 * KIB);
    }
    return l->hello;
}

void hello_free(struct rpc_link *l)
{
    struct hello *h = l->hello;

    if (!h)
        return;
    arena_reset(&h->arena);
    explicit_bzero(h, sizeof *h);
    mem_free(h);
    l->hello = NULL;
}

/* ---- sending ---- */

static void hello_sent(struct net_tx *tx, int status UNUSED)
{
    struct hello_tx *t = container_of(tx, struct hello_tx, tx);
    struct rpc_link *l = t->link;

    l->hello->tx_busy--;
    if (l->state == LINK_UP && l->hello->tx_busy == 0)
        hello_free(l);
}

static int hello_send(struct rpc_link *l, uint8_t kind, unsigned op, int status, const void *msg)
{
    struct hello *h = l->hello;
    struct hello_tx *t;
    struct rpc_header out = {.op = (uint16_t)op,
                             .kind = kind,
                             .status = status,
                             .version = RPC_WIRE_OLDEST,
                             .request_id = op};
    void *wire;
    int rc;

    if (h->n_tx == ARRAY_LEN(h->tx))
        return -AIFS_EPROTO;
    t = &h->tx[h->n_tx];
    rc = codec_encode_room(op, kind == RPC_REPLY, msg, sizeof(struct rpc_header_wire), &h->arena,
                           &wire, &out.body_len);
    if (rc)
        return rc;
    header_encode(&out, wire);
    t->link = l;
    t->tx = (struct net_tx){.head = wire,
                            .head_len = (uint32_t)sizeof(struct rpc_header_wire) + out.body_len,
                            .done = hello_sent};
    h->n_tx++;
    h->tx_busy++;
    net_send(l->conn, &t->tx);
    return 0;
}

/*
 * Answers with an error. The other end reads it and hangs up; if it does not, we do: closing at
 * once could lose the answer.
 */
static int hello_refuse(struct rpc_link *l, unsigned op, int status)
{
    struct reactor *r = l->node->reactor;
    int rc;

    l->status = status;
    l->state = LINK_CLOSING;
    reactor_timer_start(r, &l->timer, reactor_now_ns(r) + RPC_REFUSED_LINGER);
    rc = hello_send(l, RPC_REPLY, op, status, NULL);
    if (rc)
        net_conn_close(l->conn, status);
    return 0;
}

/* ---- messages to and from what is proved ---- */

static int hello_self(struct rpc_link *l, struct auth_hello *me)
{
    const struct rpc_node_options *o = &l->node->options;

    *me = (struct auth_hello){.cluster = o->key.cluster,
                              .id = o->self,
                              .wire_oldest = o->wire_oldest,
                              .wire_newest = o->wire_newest,
                              .features = RPC_FEATURES & ~o->without};
    return crypto_random(me->nonce, sizeof me->nonce);
}

static struct msg_bytes text_bytes(const char *s, size_t cap)
{
    return (struct msg_bytes){s, (uint32_t)strnlen(s, cap)};
}

static void text_copy(char *out, size_t cap, struct msg_bytes from)
{
    size_t len = MIN(cap - 1, from.len);

    memset(out, 0, cap);
    memcpy(out, from.data, len);
}

static void identity_from(struct rpc_identity *id, const struct uuid *node, const struct uuid *boot,
                          uint32_t role, struct msg_bytes name, struct msg_bytes version)
{
    id->node = *node;
    id->boot = *boot;
    id->role = (enum crypto_role)role;
    text_copy(id->name, sizeof id->name, name);
    text_copy(id->version, sizeof id->version, version);
}

/* ---- connecting end ---- */

int hello_start(struct rpc_link *l)
{
    struct hello *h = hello_get(l);
    struct auth_hello *me;
    struct msg_hello_req req;
    int rc;

    if (!h)
        return -ENOMEM;
    me = &h->asked;
    rc = hello_self(l, me);
    if (rc)
        return rc;
    h->key = l->node->options.key;
    me->id.role = h->key.role;
    req = (struct msg_hello_req){
        .cluster = me->cluster,
        .node = me->id.node,
        .boot = me->id.boot,
        .role = (uint32_t)me->id.role,
        .name = text_bytes(me->id.name, 63),
        .version = text_bytes(me->id.version, 31),
        .wire_oldest = me->wire_oldest,
        .wire_newest = me->wire_newest,
        .features = me->features,
        .nonce = {me->nonce, RPC_NONCE_BYTES},
    };
    return hello_send(l, RPC_REQUEST, RPC_OP_HELLO, 0, &req);
}

/* The other end has refused us: it logs its side, this is ours. */
static int hello_refused(struct rpc_link *l, int status)
{
    const struct rpc_node_options *o = &l->node->options;
    char cluster[UUID_TEXT_BYTES];

    uuid_format(&o->key.cluster, cluster);
    if (l->peer && l->peer->logged_error == status)
        LOG_DEBUG("rpc", "%s: still refuses us: %s", l->describe, err_text(status));
    else if (status == -AIFS_ECLUSTER)
        LOG_WARN("rpc", "%s: the server belongs to another cluster than our key (%s)", l->describe,
                 cluster);
    else if (status == -AIFS_EVERSION)
        LOG_WARN("rpc", "%s: the server speaks none of our wire versions (%u to %u)", l->describe,
                 o->wire_oldest, o->wire_newest);
    else if (status == -AIFS_EAUTH)
        LOG_WARN("rpc", "%s: authentication failed: our %s key is not the one the server has",
                 l->describe, crypto_role_name(o->key.role));
    else
        LOG_WARN("rpc", "%s: the server refused our hello: %s", l->describe, err_text(status));
    link_fail(l, status);
    return 0;
}

static int hello_answered(struct rpc_link *l, const struct msg_hello_rep *m)
{
    struct hello *h = l->hello;
    struct auth_hello *you = &h->answered;
    uint8_t proof[CRYPTO_MAC_BYTES], offer[NET_OFFER_BYTES];
    uint32_t offer_len = sizeof offer;
    struct msg_auth_req req = {0};
    int rc;

    if (m->nonce.len != RPC_NONCE_BYTES || m->proof.len != CRYPTO_MAC_BYTES ||
        m->wire_version < h->asked.wire_oldest || m->wire_version > h->asked.wire_newest)
        return -AIFS_EPROTO;
    *you = (struct auth_hello){.cluster = m->cluster,
                               .wire_oldest = m->wire_version,
                               .wire_newest = m->wire_version,
                               .features = m->features};
    identity_from(&you->id, &m->node, &m->boot, m->role, m->name, m->version);
    memcpy(you->nonce, m->nonce.data, RPC_NONCE_BYTES);
    l->identity = you->id;
    l->version = (uint16_t)m->wire_version;
    l->features = m->features & h->asked.features;
    if (!uuid_equal(&m->cluster, &h->asked.cluster))
        return hello_refused(l, -AIFS_ECLUSTER);
    if (m->role != CRYPTO_ROLE_SERVER) {
        LOG_WARN("rpc", "%s: who answers is no server", l->describe);
        return -AIFS_EROLE;
    }
    auth_proof(&h->key, AUTH_SERVER, &h->asked, you, proof);
    if (!crypto_equal(proof, m->proof.data, sizeof proof))
        l->status = -AIFS_EAUTH; /* and let the server find out with our own proof */
    rc = l->status ? 0 : net_conn_offer(l->conn, offer, &offer_len);
    if (rc)
        return rc;
    auth_proof(&h->key, AUTH_CLIENT, &h->asked, you, proof);
    req.proof = (struct msg_bytes){proof, sizeof proof};
    if (!l->status)
        req.offer = (struct msg_bytes){offer, offer_len};
    l->state = LINK_AUTH;
    return hello_send(l, RPC_REQUEST, RPC_OP_AUTH, 0, &req);
}

static int hello_accepted(struct rpc_link *l, const struct msg_auth_rep *m)
{
    int rc;

    if (l->status)
        return hello_refused(l, l->status);
    rc = net_conn_upgrade(l->conn, m->offer.data, m->offer.len);
    if (rc) {
        LOG_WARN("rpc", "%s: cannot use the transport agreed on: %s", l->describe, err_text(rc));
        return rc;
    }
    link_is_up(l);
    return 0;
}

/* ---- accepting end ---- */

static int hello_asked(struct rpc_link *l, const struct msg_hello_req *m)
{
    const struct rpc_node_options *o = &l->node->options;
    char cluster[UUID_TEXT_BYTES];

    if (m->nonce.len != RPC_NONCE_BYTES)
        return -AIFS_EPROTO;
    identity_from(&l->identity, &m->node, &m->boot, m->role, m->name, m->version);
    link_describe(l);
    uuid_format(&m->cluster, cluster);
    if (m->wire_oldest > o->wire_newest || m->wire_newest < o->wire_oldest ||
        m->wire_oldest > m->wire_newest) {
        LOG_WARN("rpc", "%s: speaks wire versions %u to %u, we speak %u to %u", l->describe,
                 m->wire_oldest, m->wire_newest, o->wire_oldest, o->wire_newest);
        return hello_refuse(l, RPC_OP_HELLO, -AIFS_EVERSION);
    }
    if (!uuid_equal(&m->cluster, &o->key.cluster)) {
        LOG_WARN("rpc", "%s: has a key of another cluster (%s)", l->describe, cluster);
        return hello_refuse(l, RPC_OP_HELLO, -AIFS_ECLUSTER);
    }
    if (m->role > CRYPTO_ROLE_CLIENT ||
        crypto_key_derive(&o->key, (enum crypto_role)m->role, &l->hello->key)) {
        LOG_WARN("rpc", "%s: our %s key cannot verify this role", l->describe,
                 crypto_role_name(o->key.role));
        return hello_refuse(l, RPC_OP_HELLO, -AIFS_EROLE);
    }
    l->version = (uint16_t)MIN(m->wire_newest, o->wire_newest);
    return 1;
}

static int hello_answer(struct rpc_link *l, const struct msg_hello_req *m)
{
    struct hello *h = l->hello;
    struct auth_hello *me = &h->answered;
    uint8_t proof[CRYPTO_MAC_BYTES];
    struct msg_hello_rep rep;
    int rc = hello_asked(l, m);

    if (rc != 1)
        return rc;
    h->asked = (struct auth_hello){.cluster = m->cluster,
                                   .id = l->identity,
                                   .wire_oldest = m->wire_oldest,
                                   .wire_newest = m->wire_newest,
                                   .features = m->features};
    memcpy(h->asked.nonce, m->nonce.data, RPC_NONCE_BYTES);
    rc = hello_self(l, me);
    if (rc)
        return rc;
    me->id.role = l->node->options.key.role;
    me->wire_oldest = me->wire_newest = l->version;
    l->features = me->features &= m->features;
    auth_proof(&h->key, AUTH_SERVER, &h->asked, me, proof);
    rep = (struct msg_hello_rep){
        .cluster = me->cluster,
        .node = me->id.node,
        .boot = me->id.boot,
        .role = (uint32_t)me->id.role,
        .name = text_bytes(me->id.name, 63),
        .version = text_bytes(me->id.version, 31),
        .wire_version = l->version,
        .features = l->features,
        .nonce = {me->nonce, RPC_NONCE_BYTES},
        .proof = {proof, sizeof proof},
    };
    l->state = LINK_AUTH;
    return hello_send(l, RPC_REPLY, RPC_OP_HELLO, 0, &rep);
}

static int hello_verify(struct rpc_link *l, const struct msg_auth_req *m)
{
    struct hello *h = l->hello;
    uint8_t proof[CRYPTO_MAC_BYTES], offer[NET_OFFER_BYTES];
    uint32_t offer_len = sizeof offer;
    struct msg_auth_rep rep;
    int rc;

    auth_proof(&h->key, AUTH_CLIENT, &h->asked, &h->answered, proof);
    if (m->proof.len != sizeof proof || !crypto_equal(proof, m->proof.data, sizeof proof)) {
        LOG_WARN("rpc", "%s: authentication failed: its %s key is not the one of this cluster",
                 l->describe, crypto_role_name(h->key.role));
        return hello_refuse(l, RPC_OP_AUTH, -AIFS_EAUTH);
    }
    rc = net_conn_offer(l->conn, offer, &offer_len);
    if (rc)
        return rc;
    rep.offer = (struct msg_bytes){offer, offer_len};
    rc = hello_send(l, RPC_REPLY, RPC_OP_AUTH, 0, &rep);
    if (rc == 0)
        rc = net_conn_upgrade(l->conn, m->offer.data, m->offer.len);
    if (rc) {
        LOG_WARN("rpc", "%s: cannot use the transport agreed on: %s", l->describe, err_text(rc));
        return rc;
    }
    link_is_up(l);
    return 0;
}

/* ---- receiving ---- */

int hello_head(struct rpc_link *l, const struct rpc_header *h, const void *body, struct net_rx *rx)
{
    unsigned op = l->state == LINK_HELLO ? RPC_OP_HELLO : RPC_OP_AUTH;
    void *msg = NULL;
    int rc = 0;

    if (h->op != op || h->kind != (l->accepted ? RPC_REQUEST : RPC_REPLY) || h->bulk_len ||
        h->body_len > RPC_HELLO_BODY_MAX || (!l->accepted && h->request_id != op)) {
        LOG_WARN("rpc", "%s: %s before authentication: closing", l->describe, rpc_op_name(h->op));
        return -AIFS_EPROTO;
    }
    if (!hello_get(l))
        return -ENOMEM;
    if (h->status == 0)
        rc = codec_decode(op, !l->accepted, body, h->body_len, &l->hello->arena, &msg);
    if (rc) {
        LOG_WARN("rpc", "%s: malformed %s", l->describe, rpc_op_name(op));
        return rc;
    }
    l->hello->header = *h;
    l->hello->msg = msg;
    rx->token = rx_token(NULL, RX_HELLO);
    return 0;
}

void hello_received(struct rpc_link *l)
{
    struct hello *h = l->hello;
    int rc;

    if (l->state != LINK_HELLO && l->state != LINK_AUTH)
        return;
    if (!h->msg)
        rc = l->accepted ? -AIFS_EPROTO : hello_refused(l, h->header.status);
    else if (l->state == LINK_HELLO)
        rc = l->accepted ? hello_answer(l, h->msg) : hello_answered(l, h->msg);
    else
        rc = l->accepted ? hello_verify(l, h->msg) : hello_accepted(l, h->msg);
    if (rc < 0)
        link_fail(l, rc);
    else if (l->state == LINK_UP && l->hello && l->hello->tx_busy == 0)
        hello_free(l);
}
