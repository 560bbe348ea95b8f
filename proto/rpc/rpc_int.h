/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside proto/rpc: nodes, links, peers, calls and requests. All of it on one reactor, without
 * locks.
 *
 * Who is on which list: a link on node->links until its connection is freed; a call on
 * peer->waiting (not sent), on link->calls (sent), or on node->ended (done() to be run); a request
 * on node->dropped when its reply has nowhere to go, on node->cache when it is free.
 *
 * What waits, and who wakes it: a call on peer->waiting, by the end of another (peer_call_over())
 * or by rpc_peer_ready(); a link that stopped reading for too many requests, by the end of one of
 * them (req_put()); one without a buffer for a payload, by link_buf_there(). A buffer is held from
 * the head of a request to its reply, never until the peer has read that: so it waits for the
 * sender's bytes and for the handler only.
 */
#ifndef AIFS_PROTO_RPC_INT_H
#define AIFS_PROTO_RPC_INT_H

#include "proto/header_fmt.h"
#include "proto/rpc.h"

#define RPC_MAX_CALLS      1024u
#define RPC_MAX_REQUESTS   2048u
#define RPC_MAX_HELLOS     1024u          /* connections that have not proved themselves yet */
#define RPC_HELLO_TIMEOUT  (5 * NS_PER_S) /* from connection to proof */
#define RPC_REFUSED_LINGER NS_PER_S       /* for the other end to read why and hang up itself */
#define RPC_HELLO_BODY_MAX 8192u
/* Between attempts to reach a server: a part of the time it has been away. */
#define RPC_BACKOFF_PART 8u
#define RPC_BACKOFF_MIN  (50 * NS_PER_MS)
#define RPC_BACKOFF_MAX  (2 * NS_PER_S)
/* Between two times that a name is looked up: the same part of it. */
#define RPC_LOOK_UP_MIN   NS_PER_S
#define RPC_LOOK_UP_MAX   (15 * NS_PER_S)
#define RPC_CACHE_MAX     256u /* free requests kept */
#define RPC_ADDRESSES_MAX 16u
#define RPC_HEADER_MAX    1024u
#define RPC_NONCE_BYTES   32u

/* ---- header.c ---- */

void header_encode(const struct rpc_header *h, uint8_t out[sizeof(struct rpc_header_wire)]);
/* Checks all that can be checked without knowing the link; -AIFS_EPROTO. bulk_len: what the
 * transport announced. */
int header_decode(const void *head, uint32_t head_len, uint32_t bulk_len,
                  struct rpc_header *ret) MUST_USE;
/* How much memory decoding a body may take. */
size_t header_arena_limit(uint32_t body_len);

/* ---- auth.c: pure ---- */

struct auth_hello { /* what both ends prove to have seen the same way */
    struct uuid cluster;
    struct rpc_identity id;
    uint32_t wire_oldest, wire_newest; /* the answer: both the chosen one */
    uint64_t features;
    uint8_t nonce[RPC_NONCE_BYTES];
};
enum auth_side { AUTH_SERVER, AUTH_CLIENT };
void auth_proof(const struct crypto_key *key, enum auth_side side, const struct auth_hello *asked,
                const struct auth_hello *answered, uint8_t proof[CRYPTO_MAC_BYTES]);

/* ---- objects ---- */

enum link_state {
    LINK_HELLO, /* connecting end: HELLO sent; accepting end: waiting for it */
    LINK_AUTH,  /* the same with AUTH */
    LINK_UP,
    LINK_CLOSING,
    LINK_DEAD,
};

struct rpc_node {
    struct reactor *reactor;
    struct rpc_node_options options;
    struct {
        rpc_handler_fn *fn;
        rpc_place_fn *place;
        void *arg;
    } handlers[RPC_OP_LIMIT];
    struct list links, peers, listeners;
    struct list hellos; /* struct rpc_link, accepted and not up yet, the oldest first */
    struct hmap calls;  /* sent and unanswered, by id */
    struct list ended, dropped;
    struct reactor_work work; /* runs what is on those two */
    bool work_queued, destroyed;
    uint64_t next_id, next_link, map_epoch;
    struct list cache;
    unsigned n_cache, n_requests, n_hellos;
    void (*link_up)(struct rpc_link *l, void *arg);
    void (*link_down)(struct rpc_link *l, void *arg);
    void *link_arg;
    bool shutting;
    void (*shutdown_done)(void *arg);
    void *shutdown_arg;
};

struct hello; /* hello.c: exists until the link is up */

/* What came over a link, for LOAD. Requests are counted where the link is at hand anyway. */
struct link_load {
    struct list serving; /* struct req, the oldest first */
    uint32_t n_serving;
    uint64_t id, session, job;
    uint64_t operations, read_bytes, written_bytes, busy_ns;
};

struct rpc_link {
    struct list link;
    struct list hello_link; /* node->hellos */
    struct rpc_node *node;
    struct net_conn *conn; /* NULL when dead */
    struct rpc_peer *peer; /* who made it; NULL: accepted, or the peer is gone */
    enum link_state state;
    bool accepted, was_up, stalled, waiting;
    bool is_rail, is_used; /* beside the peer's own link; it is the same process */
    unsigned address;      /* of a rail: its number among the peer's */
    unsigned refs, n_requests;
    int status; /* why it is closing */
    struct list calls;
    uint64_t under_way_bytes; /* payloads of calls without an outcome, both directions */
    struct rpc_identity identity;
    uint16_t version;
    uint64_t features;
    struct hello *hello;
    struct reactor_timer timer; /* hello */
    struct buf_waiter waiter;
    struct buf *spare; /* for the request that waits to be read */
    struct link_load load;
    char describe[NET_ADDR_BYTES + 96];
};

struct rail_address {
    uint64_t not_before_ns, pause_ns;
};

struct peer_name {
    struct rpc_peer *peer;     /* NULL: the address is no name */
    struct net_lookup *lookup; /* under way */
    uint64_t not_before_ns;
    int error; /* of the last time */
};

struct rpc_peer {
    struct list link;
    struct rpc_node *node;
    struct net_addr *addresses;
    struct peer_name names[RPC_ADDRESSES_MAX];
    unsigned n_addresses, at, tried;
    struct rpc_peer_events events;
    void *arg;
    struct net_connecting *connecting;
    struct rpc_link *via; /* in hello or up */
    bool up, ready, failed, destroyed;
    bool ever_up, looking; /* looking: with no place to try, waits for names */
    struct uuid boot;
    int last_error, logged_error;
    const char *last_why;    /* net_conn_why() of the last link */
    uint64_t up_ns, away_ns; /* since when: the last link, without a link that lasted */
    uint32_t attempts;
    struct reactor_timer timer;
    struct list waiting;
    unsigned n_sent, n_calls;                  /* in flight; all that are not done */
    struct rpc_link *rails[NET_RAILS_MAX - 1]; /* beside via, in hello or up */
    unsigned n_rails, rails_max, rail_next;
    struct net_connecting *rail_connecting; /* to the address rail_next */
    struct rail_address rail_addresses[RPC_ADDRESSES_MAX];
};

/* Bits of rpc_call.state. */
#define CALL_WAITING 0x01u /* on peer->waiting */
#define CALL_SENT    0x02u /* on link->calls */
#define CALL_TX      0x04u /* the transport has the request */
#define CALL_RX      0x08u /* the reply's payload is landing */
#define CALL_HASHED  0x10u /* a reply would be taken */
#define CALL_ENDED   0x20u /* the outcome is known */
#define CALL_LISTED  0x40u /* on node->ended */
#define CALL_RESENT  0x80u

struct req {
    struct rpc_req pub;
    struct list link;    /* node->dropped, node->cache */
    struct list serving; /* link->load.serving, until the reply */
    struct net_tx tx;
    struct arena reply;
    struct buf *parts; /* by way of which the payload lands, until it has */
    int refused;       /* answer with this error */
    void (*released)(void *arg);
    void *released_arg;
};

/* What a message being received belongs to, in the token given to the transport. */
enum rx_kind { RX_CALL, RX_REQ, RX_HELLO };

/* node.c */
void node_kick(struct rpc_node *n);
void node_check_shutdown(struct rpc_node *n);

/* link.c */
struct rpc_link *link_create(struct rpc_node *n, struct net_conn *c, struct rpc_peer *p);
void link_fail(struct rpc_link *l, int status); /* close; the first status stays */
void link_is_up(struct rpc_link *l);
void link_describe(struct rpc_link *l);
void link_make_room(struct rpc_node *n); /* for one more that has not proved itself yet */

/* hello.c */
int hello_start(struct rpc_link *l) MUST_USE; /* connecting end */
int hello_head(struct rpc_link *l, const struct rpc_header *h, const void *body,
               struct net_rx *rx) MUST_USE;
void hello_received(struct rpc_link *l);
void hello_free(struct rpc_link *l);

/* call.c */
void call_prepare(struct rpc_call *c, struct rpc_node *n); /* a new call: id, deadline */
void call_send(struct rpc_call *c, struct rpc_link *l);
void call_end(struct rpc_call *c, int status); /* done() later, from the reactor */
int call_head(struct rpc_link *l, const struct rpc_header *h, const void *body,
              struct net_rx *rx) MUST_USE;
void call_received(struct rpc_call *c, int status);
void calls_link_lost(struct rpc_link *l);
void calls_run_ended(struct rpc_node *n);
struct rpc_node *call_node(const struct rpc_call *c);

/* peer.c */
void peer_link_up(struct rpc_peer *p, struct rpc_link *l);
void peer_link_lost(struct rpc_peer *p, int status);
void peer_free_if_over(struct rpc_peer *p);
void peer_call_over(struct rpc_peer *p, bool was_sent);
/* A name was looked up: it has other places now, or nothing is new. */
void peer_address_found(struct rpc_peer *p, unsigned at, bool moved);

/* address.c */
int addresses_read(struct rpc_peer *p, const char *const *texts, unsigned n) MUST_USE;
void addresses_look_up(struct rpc_peer *p); /* all names whose turn it is */
void address_look_up(struct rpc_peer *p, unsigned at);
bool address_has_place(const struct rpc_peer *p, unsigned at);
bool addresses_have_place(const struct rpc_peer *p);    /* one of them */
bool addresses_are_looked_up(const struct rpc_peer *p); /* one of them */
void addresses_forget(struct rpc_peer *p);

/* rail.c */
struct rpc_link *rail_pick(struct rpc_peer *p, const struct rpc_call *c); /* of a peer that is up */
void rail_call_given_up(const struct rpc_call *c);                        /* sent, not answered */
void rail_link_up(struct rpc_peer *p, struct rpc_link *l);
void rail_link_lost(struct rpc_peer *p, struct rpc_link *l, int status);
void rails_drop(struct rpc_peer *p, int status);

/* load.c */
void load_begin(struct req *r);                          /* it goes to its handler */
void load_end(struct req *r);                            /* it has its reply */
void load_count(struct req *r, uint32_t reply_bulk_len); /* which is sent; before load_end() */
void load_serve(struct rpc_req *req);                    /* LOAD */

/* req.c */
int req_head(struct rpc_link *l, const struct rpc_header *h, const void *body,
             struct net_rx *rx) MUST_USE;
void req_received(struct req *r, int status);
void reqs_run_dropped(struct rpc_node *n);
void reqs_free_cache(struct rpc_node *n);

static inline void *rx_token(void *object, enum rx_kind kind)
{
    return (void *)((uintptr_t)object | kind);
}

#endif
