/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside common/net: what a connection is, and what a transport has to do.
 *
 * net.c owns the life of a connection (states, pings, close, the one deferred work item); socket.c,
 * ucx.c and loop.c move bytes. A socket connection has a struct net_sock for its whole life, as its
 * control channel, and a struct net_ucx beside it once upgraded.
 *
 * Everything that net.c has to do later goes through conn_kick(): one work item per connection,
 * because deferred work cannot be taken back and the connection must not be freed under it.
 */
#ifndef AIFS_COMMON_NET_NET_INT_H
#define AIFS_COMMON_NET_NET_INT_H

#include "common/net/frame_fmt.h"
#include "common/net/net.h"
#include "common/stat/stat.h"

enum conn_state { CONN_NEW, CONN_STARTED, CONN_CLOSING, CONN_CLOSED };
enum conn_kick { KICK_FLUSH = 1, KICK_RESUME = 2, KICK_CLOSE = 4, KICK_DEAD = 8 };

/* net_stat.c */
struct net_counters {
    struct stat_counter sent[NET_LOOP + 1], sent_bytes[NET_LOOP + 1];
    struct stat_counter received[NET_LOOP + 1], received_bytes[NET_LOOP + 1];
    struct stat_counter opened, closed, silent, garbage, stalls, failed, stayed, arms, lone_acks,
        mapped_bytes;
};
extern struct net_counters net_counters;

struct net_transport {
    void (*start)(struct net_conn *c);
    void (*send)(struct net_conn *c,
                 struct net_tx *tx);   /* queue; never completes it inside the call */
    void (*flush)(struct net_conn *c); /* from the reactor, after send() asked for it */
    void (*resume)(struct net_conn *c);
    void (*ping)(struct net_conn *c, enum frame_type type);
    /* Ends everything now: every tx gets done(-AIFS_ECONN), every half received message
     * received(-AIFS_ECONN). */
    void (*abort)(struct net_conn *c);
    void (*release)(struct net_conn *c); /* after abort() */
};

struct net_conn {
    struct reactor *reactor;
    const struct net_transport *transport;
    enum net_kind kind;
    const struct net_conn_ops *ops;
    void *arg;
    struct net_options options;
    enum conn_state state;
    int status;                /* for closed() */
    uint64_t pending_bytes;    /* accepted by net_send(), done() not yet called */
    struct list dead;          /* txs sent on a dying connection */
    struct reactor_timer ping; /* runs while started */
    uint32_t max_head;         /* net_conn_set_max_head() */
    uint64_t heard_ns;
    uint64_t pinged_ns; /* first ping since we heard something; 0: none */
    uint64_t takes;     /* changes whenever the peer takes something of what is pending */
    uint64_t stuck_takes, stuck_ns; /* takes_nothing(): since when it has been the same; 0: not */
    bool stalled;                   /* head() said -EAGAIN: the socket, or the loop, is not read */
    struct reactor_work work;
    bool work_queued;
    bool freed; /* net_conn_free() came while work was queued */
    unsigned kicks;
    struct net_sock *sock;
    struct net_ucx *ucx;
    struct loop_end *loop;
    char peer[NET_ADDR_BYTES];
    char describe[NET_ADDR_BYTES + 16];
};

/* net.c */
struct net_conn *conn_create(struct reactor *r, const struct net_options *o,
                             const struct net_transport *t, enum net_kind kind, const char *peer);
void conn_kick(struct net_conn *c, enum conn_kick what);
void conn_heard(struct net_conn *c);
void conn_set_describe(struct net_conn *c, const char *transport);
void conn_tx_done(struct net_conn *c, struct net_tx *tx, int status);
uint64_t tx_bulk_bytes(const struct net_tx *tx);
void tx_queue_add(struct list *queue, struct net_tx *tx); /* of what has not begun */
uint64_t iov_bytes(const struct iovec *iov, unsigned n);
static inline bool conn_alive(const struct net_conn *c)
{
    return c->state == CONN_STARTED;
}

/* What became of a head that was offered to the owner. STALLED: keep it until net_conn_resume(). */
enum offered { OFFERED_TAKEN, OFFERED_STALLED, OFFERED_CLOSED };
enum offered conn_offer_head(struct net_conn *c, const void *head, uint32_t head_len,
                             uint32_t bulk_len, struct net_rx *rx);

/* socket.c: takes fd over on success. */
int sock_conn_create(struct reactor *r, const struct net_options *o, int fd, const char *peer,
                     struct net_conn **ret_conn) MUST_USE;
extern const struct net_transport sock_transport;
void sock_control(struct net_conn *c,
                  enum frame_type type); /* queue a control frame, once at a time */
void sock_control_data(struct net_conn *c, enum frame_type type, const void *data,
                       uint32_t len); /* data borrowed until sent */
/* One of two that undo each other, in turns: the opposite is taken back instead while it has not
 * left, so that the last word the peer hears is the last one said. */
void sock_control_either(struct net_conn *c, enum frame_type type, enum frame_type opposite);
int sock_descriptor(const struct net_conn *c);

/* ucx.c */
int ucx_offer(struct net_conn *c, void *offer, uint32_t *len) MUST_USE;
int ucx_upgrade(struct net_conn *c, const void *peer_offer, uint32_t len) MUST_USE;
bool ucx_is_settled(const struct net_conn *c);
const char *ucx_why(const struct net_conn *c);
/* Frames of the upgrade, from the control channel. */
void ucx_control(struct net_conn *c, enum frame_type type, const void *data, uint32_t len);
void ucx_send(struct net_conn *c, struct net_tx *tx);
void ucx_flush(struct net_conn *c);
void ucx_resume(struct net_conn *c);
void ucx_abort(struct net_conn *c);
void ucx_release(struct net_conn *c);

/* addr.c */
void addr_format(const void *sockaddr, char *text, size_t len);

/* lookup.c: the parent's threads are not there. */
void lookup_after_fork(void);

/* loop.c */
int loop_listen(struct reactor *r, const struct net_addr *addr, const struct net_options *o,
                struct net_listener *l) MUST_USE;
void loop_listener_close(struct net_listener *l);
void loop_connect(struct net_connecting *n);
void loop_connect_cancel(struct net_connecting *n);

/* loop_fate.c: name is the listener's */
bool loop_is_cut(const char *name);
struct net_loop_fate loop_fate(const char *name, const struct reactor *from,
                               const struct reactor *to, enum net_loop_parcel kind);

/* listen.c */
struct net_listener {
    struct reactor *reactor;
    struct net_options options;
    void (*accepted)(void *arg, struct net_conn *c);
    void *arg;
    uint16_t port;
    bool *gone;   /* inside accepted(): set when it closes the listener */
    int spare_fd; /* given up when descriptors run out, to tell a caller so by closing it */
    struct reactor_watch watch;
    struct reactor_timer again; /* accepting goes on then */
    struct loop_listener *loop;
    char name[NET_ADDR_BYTES];
};

struct net_connecting {
    struct reactor *reactor;
    struct net_options options;
    struct net_addr addr;
    void (*connected)(void *arg, struct net_conn *c, int status);
    void *arg;
    struct reactor_watch watch; /* socket: until connected */
    struct reactor_timer timer; /* end of an attempt, or a result that is already known */
    uint64_t deadline_ns;       /* of all attempts */
    unsigned next;              /* of the address's places */
    int result;                 /* of the first attempt: the address's best place */
    struct loop_link *loop;
};
void connecting_finish(struct net_connecting *n, struct net_conn *c, int status); /* frees n */

#endif
