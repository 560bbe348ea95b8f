/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between two processes: one interface, three transports.
 *
 *   socket  TCP. Every connection starts here; the socket stays open as the control channel that
 *           tells us the peer is alive.
 *   ucx     shared memory with CMA between processes of one host, RDMA verbs where there is a
 *           device. Entered by net_conn_upgrade() once both ends know each other; every
 *           shared-memory peer has a UCX worker of its own, which is destroyed as a whole when the
 *           peer dies.
 *   loop    in process, for tests and the simulator: can drop, delay, duplicate and reorder.
 *
 * A message is a head (RPC header and body, at most NET_HEAD_MAX) and an optional bulk payload (at
 * most NET_BULK_MAX) that goes straight between the buffers of sender and receiver.
 *
 * Threads: a connection belongs to the reactor it was made on; all calls and callbacks happen
 * there.
 *
 * Sending: a struct net_tx and everything it points to is caller-owned until its done() has run,
 * exactly once, with 0 (the transport needs the memory no longer; this says nothing about the peer)
 * or a negative error. Cancelling is not possible: memory comes back when the transport gives it
 * back, at the latest when the connection is destroyed.
 *
 * Receiving: ops->head() is called when a head is there, and names where the bulk goes;
 * ops->received() when all of it has landed. A head is borrowed until head() returns. Between the
 * two the receive buffers belong to the transport.
 *
 * Death: when the control channel ends, a ping stays unanswered, a peer sends rubbish or
 * net_conn_close() is called, then ops->closed() runs exactly once, after every done() and
 * received(-AIFS_ECONN) of this connection. The owner then frees it with net_conn_free().
 */
#ifndef AIFS_COMMON_NET_NET_H
#define AIFS_COMMON_NET_NET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "common/base/compiler.h"
#include "common/base/list.h"
#include "common/rt/reactor.h"

#define NET_HEAD_MAX    (1u << 20)
#define NET_BULK_MAX    (4u << 20)
#define NET_IOV_MAX     64u
#define NET_ADDR_BYTES  108
#define NET_RAILS_MAX   4u
#define NET_OFFER_BYTES 4096 /* opaque transport offer exchanged in hello */

enum net_kind { NET_SOCKET, NET_UCX, NET_LOOP };
/* CALLS: a tool that makes a few calls; TCP, also when the other end insists on something else. */
enum net_want { NET_WANT_AUTO, NET_WANT_TCP, NET_WANT_SHM, NET_WANT_RDMA, NET_WANT_CALLS };

struct net_conn;
struct net_listener;

struct net_tx {
    const void *head;
    uint32_t head_len;
    const struct iovec *iov; /* bulk */
    unsigned n_iov;
    bool urgent; /* goes ahead of all that is queued and not begun; for what is small */
    void (*done)(struct net_tx *tx, int status);
    /* private */
    struct list link;
    void *transport;
    uint64_t sent_bytes;
    uint8_t prefix[16];
};

/* What ops->head() answers. */
struct net_rx {
    void *token; /* handed to received() */
    struct iovec iov[NET_IOV_MAX];
    unsigned n_iov; /* 0 with a bulk on its way: receive and throw it away */
    /* In: the bulk lands and received() runs before the transport does anything else, so that
     * memory given for it is not kept waiting by a slow or silent peer. */
    bool at_once;
    /* Out, NULL unless head() sets it: a bulk that lands at once may come in parts instead, one
     * behind the other, each as much as fits into the memory given here, which is to be small
     * enough for a processor's own cache. Who is called brings it to where it belongs; nothing is
     * put to iov then. Not every transport does. */
    void (*part)(void *arg, const void *data, uint32_t len);
    void *part_arg;
    struct iovec part_memory;
};

struct net_conn_ops {
    /*
     * 0: rx is filled in. -EAGAIN: no buffers now, keep the message (the connection stops reading)
     * until net_conn_resume(). Any other error closes the connection as a protocol error. A message
     * without bulk gets received() right after head() returned 0.
     */
    int (*head)(struct net_conn *c, const void *head, uint32_t head_len, uint32_t bulk_len,
                struct net_rx *rx);
    void (*received)(struct net_conn *c, void *token, int status);
    void (*closed)(struct net_conn *c, int status);
};

struct net_options {
    enum net_want want;
    uint64_t ping_interval_ns; /* 1 s; no more than half of what follows is used */
    uint64_t ping_timeout_ns;  /* nothing heard for so long = dead. 5 s */
    uint64_t connect_timeout_ns;
    uint32_t rndv_threshold;    /* UCX: eager below */
    unsigned rails;             /* addresses of one server used at once, where a caller of calls
                                   wants more than one at all. 4 */
    uint64_t max_pending_bytes; /* per connection, sent and not yet taken by the transport; above it
                                   net_conn_writable() is false */
};
void net_options_default(struct net_options *o);

/*
 * Addresses: "host:port", "[v6]:port", or "loop:name". A name may stand for several ("localhost"
 * of ::1 and 127.0.0.1), of which a server may listen on one: connecting tries one after the other,
 * each for its part of the time that is left; listening takes the first that this machine has.
 */
#define NET_ADDR_PLACES_MAX 8u /* further ones are not used */
struct net_place {
    _Alignas(4) uint8_t sockaddr[28]; /* IPv4 or IPv6 */
    uint32_t len;
};
struct net_addr {
    char text[NET_ADDR_BYTES];
    struct net_place places[NET_ADDR_PLACES_MAX];
    unsigned n_places;
    bool loop;
};
/* Waits for the name service, which may take long: where nothing runs yet, or in a thread of its
 * own. -EINVAL; -EHOSTUNREACH: no such name is known, or nobody says so. */
int net_addr_resolve(const char *text, uint16_t default_port, struct net_addr *ret_addr, char *err,
                     size_t err_len) MUST_USE;
/* Never waits. -EAGAIN: it is a name, which has to be looked up; the address has its text and no
 * place. */
int net_addr_parse(const char *text, uint16_t default_port, struct net_addr *ret_addr, char *err,
                   size_t err_len) MUST_USE;
/*
 * net_addr_resolve() beside the reactor, in one of few threads of the process (lookup.c): done()
 * runs once, from the reactor, never inside this call; addr is borrowed, NULL with a status; why is
 * a clause for people then. Failure: what eventfd(2) and thread_start() say.
 */
struct net_lookup;
typedef void net_lookup_fn(void *arg, int status, const struct net_addr *addr, const char *why);
int net_lookup_start(struct reactor *r, const char *text, uint16_t default_port,
                     net_lookup_fn *done, void *arg, struct net_lookup **ret_lookup) MUST_USE;
void net_lookup_cancel(struct net_lookup *l); /* done() will not run; waits for nobody */
/* For people: the address with the port that is meant when it has none. */
#define NET_ADDR_NAME_BYTES (NET_ADDR_BYTES + 16)
void net_addr_name(const char *text, uint16_t default_port, char *ret_name, size_t len);

/* Accepted connections have no ops yet: accepted() calls net_conn_start() or
 * net_conn_close()+net_conn_free(). */
int net_listen(struct reactor *r, const struct net_addr *addr, const struct net_options *o,
               void (*accepted)(void *arg, struct net_conn *c), void *arg,
               struct net_listener **ret_listener) MUST_USE;
uint16_t net_listener_port(const struct net_listener *l);
void net_listener_close(struct net_listener *l);

/* connected(arg, conn, 0) or (arg, NULL, -err), exactly once, never before net_connect()
 * returned. */
struct net_connecting;
int net_connect(struct reactor *r, const struct net_addr *addr, const struct net_options *o,
                void (*connected)(void *arg, struct net_conn *c, int status), void *arg,
                struct net_connecting **ret_connecting) MUST_USE;
void net_connect_cancel(struct net_connecting *n); /* connected() will not run */

void net_conn_start(struct net_conn *c, const struct net_conn_ops *ops, void *arg);
/* Longer heads than this are rubbish. For the time before a peer has proved who it is: a head that
 * is not small costs memory. Default NET_HEAD_MAX. */
void net_conn_set_max_head(struct net_conn *c, uint32_t max_bytes);
void *net_conn_arg(const struct net_conn *c);
void net_send(struct net_conn *c,
              struct net_tx *tx); /* on a dying connection done() runs later with -AIFS_ECONN */
/* False: the peer takes less than it is sent. Who stops reading it therefore (-EAGAIN from head())
 * hears it no more, and has it closed as dead when it takes nothing for ping_timeout_ns. */
bool net_conn_writable(const struct net_conn *c);
void net_conn_resume(struct net_conn *c);
void net_conn_close(
    struct net_conn *c,
    int status); /* closed() follows from the reactor, never from inside this call */
void net_conn_free(struct net_conn *c); /* after closed() only */

/*
 * Upgrade to UCX. Each end puts net_conn_offer() into its hello; after both offers are known both
 * ends call net_conn_upgrade(), which picks the best transport both can use: the choice is the same
 * on both ends because it depends only on the two offers. What it needs is then done in the
 * background, while messages go on over the socket; each direction changes over when it is proved
 * to work (net_conn_kind() tells), and nothing overtakes what was sent before. 0 also when the
 * choice is to stay on the socket. -ENOTSUP: an end insists (want) on what cannot be; if that shows
 * only later, the connection is closed with -ENOTSUP. A connection closed with that status still
 * says what was given to net_send(), so that the peer sees why. Any other that is closed loses what
 * the peer has not read, also when done() has run: end a conversation with an answer.
 */
int net_conn_offer(struct net_conn *c, void *offer,
                   uint32_t *len) MUST_USE; /* *len: in capacity, out used */
int net_conn_upgrade(struct net_conn *c, const void *peer_offer, uint32_t len) MUST_USE;
enum net_kind net_conn_kind(const struct net_conn *c);
/* Why the transport is what it is, or cannot be: a clause that stays valid; NULL before. */
const char *net_conn_why(const struct net_conn *c);
bool net_conn_is_settled(const struct net_conn *c); /* it will not change over any more */
/* Two texts of one address, or names with one in common; the same machine may have others. */
bool net_addr_equal(const struct net_addr *a, const struct net_addr *b);
bool net_addr_same_places(const struct net_addr *a, const struct net_addr *b); /* in any order */
const char *
net_conn_describe(const struct net_conn *c); /* "10.0.0.1:7000 shm", valid until freed */

/* In the child of a fork(), first of all: what the parent had is forgotten, and a library that was
 * in use there is not used here. */
void net_after_fork(void);

void net_register_stats(void); /* the counters of all connections of this process; once */

/* Loop transport faults: probabilities per message in parts of 65536, from a seeded generator.
 * NULL: none. */
struct net_loop_faults {
    uint32_t drop, duplicate, reorder;
    uint64_t min_delay_ns, max_delay_ns;
    uint64_t seed;
};
void net_loop_set_faults(const struct net_loop_faults *faults);
/*
 * Who wants to decide about every parcel himself, knowing both ends: asked for each, and for the
 * copy of one that goes twice, in the order of sending; the probabilities above count no more. fn
 * NULL: back to those.
 */
enum net_loop_parcel { NET_LOOP_MESSAGE, NET_LOOP_CONTROL, NET_LOOP_CONNECT, NET_LOOP_CLOSED };
struct net_loop_fate {
    bool lose;
    bool sever; /* the connection dies behind this one: nothing more passes, both ends are told */
    bool twice, reorder; /* only messages */
    uint64_t delay_ns;
};
typedef void net_loop_policy_fn(void *arg, const struct reactor *from, const struct reactor *to,
                                enum net_loop_parcel kind, struct net_loop_fate *ret_fate);
void net_loop_set_policy(net_loop_policy_fn *fn, void *arg);
void net_loop_partition(const char *name,
                        bool cut); /* messages from and to this listener vanish while cut */

#endif
