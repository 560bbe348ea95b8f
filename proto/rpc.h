/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remote procedure calls over net/: authenticated links, calls with deadlines and resending, and
 * dispatch of incoming requests. Links are symmetric: a server may call its client (recalls).
 *
 * Threads: everything belongs to one reactor. All objects given to these functions are caller-owned
 * and must live until their done() has run.
 *
 *   rpc_node  this process on this reactor: identity, key, handlers, bulk pool
 *   rpc_link  one authenticated connection, either side
 *   rpc_peer  a server we talk to: keeps a link up (reconnects with back-off, first of several
 *             addresses that answers), holds the in-flight table, sends unanswered calls again with
 *             the same id after a reconnect
 *   rpc_call  one outgoing call
 *   rpc_req   one incoming request
 */
#ifndef AIFS_PROTO_RPC_H
#define AIFS_PROTO_RPC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "common/base/hmap.h"
#include "common/base/list.h"
#include "common/base/mem.h"
#include "common/crypto/crypto.h"
#include "common/net/buf.h"
#include "common/net/net.h"
#include "common/rt/reactor.h"
#include "proto/msg.h"
#include "proto/ops.h"

struct rpc_node;
struct rpc_link;
struct rpc_peer;

struct rpc_identity { /* what both ends know of each other after hello */
    struct uuid node; /* persistent id of the process' role: server, mount */
    struct uuid boot; /* new at every start */
    enum crypto_role role;
    char name[64]; /* "oss1", host name; for people */
    char version[32];
};

struct rpc_node_options {
    struct rpc_identity self;
    struct crypto_key key;
    struct net_options net;
    struct buf_pool *bulk_pool; /* where request payloads land: buffers of at least MSG_BULK_MAX;
                                   NULL: refuses payloads */
    uint32_t max_calls;         /* in flight per peer; more wait in order. 0: 1024 */
    /*
     * Being served per link; beyond it the link stops reading, replies and all. 0: 2048. Keep it
     * above the peers' max_calls, or a peer whose calls all wait for a lease could not deliver the
     * LEASE_RELEASE that ends the wait.
     */
    uint32_t max_requests;
    uint16_t wire_oldest,
        wire_newest;  /* versions offered; 0: what this program speaks. For tests of negotiation */
    uint64_t without; /* features not offered: the same */
};

/* What may be used on a link when both ends have it. */
#define RPC_FEATURE_BATCH   0x1u  /* BATCH */
#define RPC_FEATURE_NUMBERS 0x2u  /* MKNOD with a number of the caller's (proto/number.h) */
#define RPC_FEATURE_BY_NAME 0x4u  /* CREATE with MSG_CREATE_FOUND */
#define RPC_FEATURE_AHEAD   0x8u  /* all that creations ahead need besides: MKDIR, since, when_ns */
#define RPC_FEATURE_RENAMES 0x10u /* RENAME in a BATCH, and its when_ns */
#define RPC_FEATURES                                                                               \
    (RPC_FEATURE_BATCH | RPC_FEATURE_NUMBERS | RPC_FEATURE_BY_NAME | RPC_FEATURE_AHEAD |           \
     RPC_FEATURE_RENAMES)

int rpc_node_create(struct reactor *r, const struct rpc_node_options *o,
                    struct rpc_node **ret_node) MUST_USE;
void rpc_node_destroy(
    struct rpc_node *n); /* after rpc_node_shutdown() has reported, and all peers are destroyed */
/* Stops listening, closes all links; done() when they are gone and every request has been replied
 * to. */
void rpc_node_shutdown(struct rpc_node *n, void (*done)(void *arg), void *arg);
/* Replies, and calls that name none, carry this epoch from now on. */
void rpc_node_set_map_epoch(struct rpc_node *n, uint64_t epoch);

/* ---- serving ---- */

struct rpc_header { /* the wire header, checked and in host order */
    uint16_t op;
    uint8_t flags;
    uint64_t request_id, session, map_epoch, job;
    uint32_t generation, incarnation, slot, slot_sequence, deadline_ms;
    uint32_t body_len, bulk_len;
    int status;
    uint8_t kind; /* enum rpc_kind */
    uint16_t version, header_len;
    uint32_t trace_us[4]; /* replies: receive queue, execute, commit, send queue */
};

struct rpc_req {
    struct list link; /* free for the handler's use */
    struct rpc_link *from;
    struct rpc_header header;
    const void *msg;    /* decoded request: struct msg_<...> of the op */
    const void *body;   /* its encoded form, borrowed until the reply: what a log entry records */
    struct arena arena; /* memory of this request; gone after the reply was sent */
    struct buf *bulk;   /* payload; the handler may keep it with buf_ref() */
    struct rpc_placed { /* payload, if it was placed: until the reply. Set by a rpc_place_fn */
        void *data;     /* as many bytes as were announced */
        /* as in struct net_rx; NULL: only all of it */
        void (*part)(void *arg, const void *data, uint32_t len);
        void (*release)(void *arg); /* once, when the transport and the handler are done with it */
        void *arg;
    } placed;
    uint64_t received_ns, deadline_ns; /* reactor clock; 0: none */
    void *handler_arg;
    uint8_t
        reply_flags; /* RPC_FLAG_KEPT_*, _CUTS_TOLD, _ALONE: of the reply, set before it is sent */
};

/* Called on the reactor. Must lead to exactly one rpc_reply(), now or later. Role, session presence
 * and decoding have been checked. */
typedef void rpc_handler_fn(struct rpc_req *req);
/*
 * Other memory than a buffer for the payload of a request whose handler will be called with it:
 * asked when the request is decoded and its payload comes at once (struct net_rx). True:
 * req->placed is filled in, and req->bulk is NULL. Called on the reactor; req->msg, header, arena
 * and handler_arg are there.
 */
typedef bool rpc_place_fn(struct rpc_req *req);
void rpc_node_place(struct rpc_node *n, unsigned op, rpc_place_fn *fn); /* NULL: none */
/* PING and LOAD are answered unless a handler is set. */
void rpc_node_handle(struct rpc_node *n, unsigned op, rpc_handler_fn *fn, void *arg);
int rpc_node_listen(struct rpc_node *n, const struct net_addr *addr, uint16_t *ret_port) MUST_USE;
/* A link came up or went down (after its hello); requests of a dead link may still be replied to:
 * the reply goes nowhere. */
void rpc_node_on_link(struct rpc_node *n, void (*up)(struct rpc_link *l, void *arg),
                      void (*down)(struct rpc_link *l, void *arg), void *arg);

/*
 * msg: reply struct of the op, or NULL with an error status. Consumes req. What iov points to (not
 * iov itself) must stay valid until released(arg), which runs exactly once, never from inside this
 * call, also when the link is gone or status is an error; released may be NULL.
 */
void rpc_reply(struct rpc_req *req, int status, const void *msg);
void rpc_reply_bulk(struct rpc_req *req, int status, const void *msg, const struct iovec *iov,
                    unsigned n_iov, void (*released)(void *arg), void *arg);
/* A reply encoded before (the kept answer of an exactly-once slot). */
void rpc_reply_encoded(struct rpc_req *req, int status, const void *body, uint32_t body_len);

const struct rpc_identity *rpc_link_peer(const struct rpc_link *l);
unsigned rpc_link_wire_version(const struct rpc_link *l); /* both ends speak it */
const char *
rpc_link_describe(const struct rpc_link *l); /* for logs: "client gpu7 10.0.0.3:55012 tcp" */
struct rpc_link *rpc_link_ref(struct rpc_link *l);
void rpc_link_unref(struct rpc_link *l);
bool rpc_link_alive(const struct rpc_link *l);
uint64_t rpc_link_features(const struct rpc_link *l); /* RPC_FEATURE_*: of both ends */
void rpc_link_close(struct rpc_link *l, int status);

/* ---- calling ---- */

/* Where servers listen unless configured otherwise. */
#define RPC_PORT_DEFAULT 7600

#define RPC_CALL_ONCE 0x1u /* do not send again after a lost connection: fail with -AIFS_ECONN */
#define RPC_CALL_WAIT                                                                              \
    0x2u /* while the peer is down, wait (until the deadline) instead of failing at once with      \
            -AIFS_EDOWN */
#define RPC_CALL_URGENT                                                                            \
    0x4u /* ahead of all that the transport has not begun to send, urgent ones too; not of calls   \
            that wait for the peer. No payload */

struct rpc_call {
    struct list link;
    struct hmap_node by_id;
    /* in */
    uint16_t op;
    uint16_t flags; /* RPC_CALL_* */
    const void *req;
    const struct iovec *bulk_out; /* payload to send */
    unsigned n_bulk_out;
    const struct iovec *bulk_in; /* where the reply's payload goes: straight, no copy */
    unsigned n_bulk_in;
    uint64_t timeout_ns; /* 0: none */
    uint64_t session, job, map_epoch;
    uint32_t generation, incarnation;
    uint32_t slot, slot_sequence;                 /* slot + 1 */
    void (*done)(struct rpc_call *c, int status); /* exactly once, never from inside rpc_*_call() */
    void *arg;
    /* out, valid in done() and until rpc_call_fini() */
    const void *rep;          /* decoded reply struct when status is 0 */
    uint32_t bulk_in_len;     /* payload received */
    struct rpc_header header; /* of the reply */
    bool resent;              /* sent over more than one link: the first may have been enough */
    struct arena arena;
    /* private */
    struct rpc_peer *peer;
    struct rpc_link *via;
    struct net_tx tx;
    uint64_t id, deadline_ns, sent_ns, under_way_bytes;
    struct reactor_timer timer;
    uint8_t *wire; /* header and encoded request, in the arena */
    uint32_t body_len;
    uint8_t state;
    int status;
};

void rpc_call_init(struct rpc_call *c, unsigned op, const void *req,
                   void (*done)(struct rpc_call *c, int status), void *arg);
void rpc_call_fini(struct rpc_call *c); /* frees the arena; only before the call or after done() */

struct rpc_peer_events {
    /* Called before any waiting call is sent, with the new link: the place for SESSION_OPEN or
     * RECLAIM (by rpc_link_call). Waiting calls go when rpc_peer_ready() is called. */
    void (*up)(struct rpc_peer *p, struct rpc_link *l, bool rebooted, void *arg);
    void (*down)(struct rpc_peer *p, int status, void *arg);
};
/* addresses: text forms, tried in turn for ever with back-off. Names are looked up beside the
 * reactor, now and again when the server cannot be reached: it may be elsewhere by then. -EINVAL:
 * none of them is an address. events may be NULL: then always ready. */
int rpc_peer_create(struct rpc_node *n, const char *const *addresses, unsigned n_addresses,
                    const struct rpc_peer_events *events, void *arg,
                    struct rpc_peer **ret_peer) MUST_USE;
/*
 * Use up to max (1: only one; at most NET_RAILS_MAX) of its addresses at once for calls with a
 * payload, once there is enough to carry; see rail.c. Such calls may overtake each other, so only
 * for users that await an answer before they send what must come after it. A lost rail is a lost
 * link: down(), then up() with a new one; and so is a call that was sent and given up (cancelled,
 * late), unless it is one that brings a payload. rpc_peer_rails(): how many are in use now.
 */
void rpc_peer_set_rails(struct rpc_peer *p, unsigned max);
unsigned rpc_peer_rails(const struct rpc_peer *p);
/* Fails what is in flight with -AIFS_ECANCELLED, each through its done() as soon as the transport
 * lets go; the peer itself may not be used any more. No events follow. */
void rpc_peer_destroy(struct rpc_peer *p);
void rpc_peer_ready(struct rpc_peer *p);
void rpc_peer_call(struct rpc_peer *p, struct rpc_call *c);
void rpc_link_call(struct rpc_link *l, struct rpc_call *c); /* on this link only, never resent */
void rpc_call_cancel(struct rpc_call *c); /* done(-AIFS_ECANCELLED) follows as soon as the transport
                                             lets go of its memory */
bool rpc_peer_is_up(const struct rpc_peer *p);
int rpc_peer_last_error(
    const struct rpc_peer *p); /* why it is down: -AIFS_EAUTH, -AIFS_ECLUSTER, -ECONNREFUSED, ... */
/* Down because none of its names has an address. */
bool rpc_peer_is_unknown(const struct rpc_peer *p);
/* With -ENOTSUP: why the transport that one of the two insists on cannot be; NULL: not known. */
const char *rpc_peer_last_why(const struct rpc_peer *p);
struct rpc_link *rpc_peer_link(struct rpc_peer *p); /* NULL while down */
/* Up, and not about to move to another transport. */
bool rpc_peer_is_settled(const struct rpc_peer *p);
/* A line per call in flight: op, peer, age, state. */
struct strbuf;
void rpc_node_print_calls(struct rpc_node *n, struct strbuf *out);

/*
 * A peer is "down" when all its addresses were tried in vain since its last link. Calls made, or in
 * flight, before that wait for the outcome of the attempt.
 *
 * Blocking calls for tools: a reactor and a node of its own, one thread. rpc_sync_call() returns
 * the reply in s's arena, valid until the next call.
 */
struct rpc_sync;
int rpc_sync_create(const struct crypto_key *key, const char *name,
                    struct rpc_sync **ret_sync) MUST_USE;
int rpc_sync_create_over(enum net_want want, const struct crypto_key *key, const char *name,
                         struct rpc_sync **ret_sync) MUST_USE;
void rpc_sync_destroy(struct rpc_sync *s);
int rpc_sync_connect(struct rpc_sync *s, const char *address, uint64_t timeout_ns,
                     struct rpc_peer **ret_peer) MUST_USE;
int rpc_sync_call(struct rpc_sync *s, struct rpc_peer *p, unsigned op, const void *req,
                  uint64_t timeout_ns, const void **ret_rep) MUST_USE;
int rpc_sync_call_bulk(struct rpc_sync *s, struct rpc_peer *p, unsigned op, const void *req,
                       void *bulk_in, uint32_t bulk_cap, uint32_t *ret_bulk_len,
                       uint64_t timeout_ns, const void **ret_rep) MUST_USE;

/*
 * Many servers at once. rpc_sync_peer() does not wait: its peer connects, and connects again, while
 * the functions here run. rpc_sync_ask() returns when every ask has its status; those that were
 * asked are given to rpc_sync_ask_fini() then.
 */
struct rpc_sync_ask {
    /* in */
    struct rpc_peer *peer;
    unsigned op;
    const void *req;
    /* out */
    int status;
    const void *rep; /* when it is 0; valid until rpc_sync_ask_fini() */
    /* private */
    struct rpc_call call;
    unsigned *pending;
};
int rpc_sync_peer(struct rpc_sync *s, const char *const *addresses, unsigned n_addresses,
                  struct rpc_peer **ret_peer) MUST_USE;
void rpc_sync_ask(struct rpc_sync *s, struct rpc_sync_ask *asks, unsigned n, uint64_t timeout_ns);
void rpc_sync_ask_fini(struct rpc_sync_ask *asks, unsigned n);
void rpc_sync_sleep(struct rpc_sync *s, uint64_t ns);

#endif
