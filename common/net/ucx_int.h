/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the UCX transport.
 *
 *   ucx_lib.c   the library: its contexts, its log, its signal handlers
 *   ucx.c       offers, and how a connection is moved from its socket to UCX and back to nothing
 *   ucx_send.c  what leaves: small messages whole, large ones as a reference (shared memory) or by
 *               rendezvous (RDMA)
 *   ucx_recv.c  what arrives
 *
 * A connection has a UCX worker of its own with one endpoint. Every message is one active message
 * with the header below. How bulk travels:
 *   - below the threshold it is in the message;
 *   - above, on shared memory, the message carries where the sender's buffers are (REF); the
 *     receiver reads them (cma.h) and sends an ACK;
 *   - above, on RDMA, it is a UCX rendezvous into the receiver's buffers.
 * See docs/adr/0001 for why UCX's own rendezvous is not used on shared memory.
 */
#ifndef AIFS_COMMON_NET_UCX_INT_H
#define AIFS_COMMON_NET_UCX_INT_H

#include <assert.h>
#include <ucp/api/ucp.h>
#include <ucs/config/global_opts.h>
#include <ucs/debug/debug.h>
#include <ucs/debug/log_def.h>

#include "common/net/net_int.h"
#include "common/net/offer.h"

#define UCX_AM_ID        1
#define UCX_HEADER_BYTES 16u
#define UCX_ADDRESS_MAX  FRAME_ADDRESS_MAX
#define UCX_WINDOW       256u /* messages handed to UCX and not finished */
#define UCX_REF_BYTES    16u  /* one buffer of a REF: address (8), length (8) */
#define UCX_HOLD_BYTES                                                                             \
    (1u * MIB) /* holding more than this of a sender's messages: ask it to stop */
#define UCX_HOLD_MESSAGES 256u
#define UCX_HOLD_LIMIT    (64u * MIB) /* it did not stop: protocol error */
#define UCX_ACKS_MAX      256u
#define UCX_ACK_DELAY_NS  NS_PER_MS
#define UCX_ACK_BYTES     (4u * MIB) /* so much, or so many, are acknowledged at once */
#define UCX_ACKS_SOON     16u

/* Active message header: type (1), zero (3), head_len (4), bulk_len (4), id (4); little-endian. */
enum ucx_type {
    UCX_PROBE = 1, /* nothing: does this path work? */
    UCX_MESSAGE,   /* payload: head, bulk */
    UCX_REF,       /* payload: head, references. Answered by an ACK with its id */
    UCX_ACK,       /* payload: ids (4 each) whose buffers have been read */
    UCX_RNDV,      /* RDMA: header is followed by the head, payload is the bulk */
};

struct ucx_header {
    uint8_t type;
    uint32_t head_len, bulk_len, id;
};

/* A message handed to UCX. */
struct ucx_tx {
    struct list link; /* posted or free */
    struct net_ucx *ucx;
    struct net_tx *tx; /* NULL: an ACK or a PROBE */
    uint32_t id;       /* index into net_ucx.by_id */
    bool in_ucx;       /* UCX still needs the memory */
    bool wants_ack;
    int status;
    ucp_dt_iov_t parts[NET_IOV_MAX + 2];
    uint8_t refs[NET_IOV_MAX * UCX_REF_BYTES]; /* or the ids of an ACK */
    uint8_t header[]; /* UCX_HEADER_BYTES; on RDMA max_header: a RNDV has its head there, too */
};
static_assert(UCX_ACKS_MAX * 4 <= NET_IOV_MAX * UCX_REF_BYTES, "one ACK takes them all");

/* A rendezvous under way into our buffers (RDMA). */
struct ucx_rx {
    struct list link;
    struct net_ucx *ucx;
    void *token;
    ucp_dt_iov_t parts[NET_IOV_MAX];
};

/* A message kept because the owner had no room, or because it came before what was still on the
 * socket. */
struct ucx_held {
    struct list link;
    struct ucx_header h;
    void *desc; /* RNDV: UCX's */
    uint32_t len;
    uint8_t data[]; /* head, then bulk or references */
};

enum ucx_state {
    UCX_OFFERED,  /* nothing but an offer */
    UCX_TRYING,   /* both want it: worker made, address sent */
    UCX_SENDING,  /* what we send goes over UCX */
    UCX_STAYED,   /* it did not work: the socket it is */
    UCX_DESTROYED /* connection is closing */
};

struct net_ucx {
    struct net_conn *conn;
    enum ucx_state state;
    enum offer_choice choice;
    struct offer mine, theirs;
    int process;            /* the peer (peer_process.h), on shared memory; -1 */
    struct share_view view; /* of their memory */
    const char *why;
    bool forced;
    uint8_t address[UCX_ADDRESS_MAX];
    uint32_t address_len;
    uint8_t *their_address; /* came before our upgrade */
    ucp_worker_h worker;
    ucp_ep_h ep;
    uint32_t max_header;
    bool probed;     /* their PROBE has come */
    bool ready_said; /* our READY has gone */
    bool peer_stays; /* their STAY has come */
    bool receiving;  /* their SWITCH has come */
    bool stalled;    /* the owner has no room */
    bool held_by_peer;
    bool hold_said;
    struct reactor_source source;
    struct reactor_watch watch; /* the worker's event descriptor */
    struct reactor_timer recheck;
    struct reactor_timer give_up; /* trying takes too long */
    unsigned busy_arms;
    bool answered; /* in this turn, while more was coming: see parse() in socket.c */
    bool armed;    /* its descriptor will tell what comes; nothing has come or been sent since */

    struct list tx_queue; /* struct net_tx, not handed to UCX */
    struct list posted;   /* struct ucx_tx */
    struct list free;     /* struct ucx_tx */
    unsigned n_records, n_posted;
    struct ucx_tx *by_id[UCX_WINDOW];
    uint32_t acks[UCX_ACKS_MAX];
    unsigned n_acks;
    uint64_t ack_bytes; /* that they give back to the peer */
    bool ack_due;       /* they wait for nothing to go with any longer */
    struct reactor_timer ack_timer;

    struct list rx;   /* struct ucx_rx */
    struct list held; /* struct ucx_held */
    uint64_t held_bytes;
    unsigned n_held;
};

/*
 * What we use of UCX. The library is not linked: it is loaded when a connection first wants it,
 * because it costs every program that starts some milliseconds, threads, and signal handlers of its
 * own, and most short-lived ones never need it.
 */
#define UCX_FUNCTIONS(X)                                                                           \
    X(ucp_am_data_release)                                                                         \
    X(ucp_am_recv_data_nbx)                                                                        \
    X(ucp_am_send_nbx)                                                                             \
    X(ucp_config_modify)                                                                           \
    X(ucp_config_read)                                                                             \
    X(ucp_config_release)                                                                          \
    X(ucp_ep_close_nbx)                                                                            \
    X(ucp_ep_create)                                                                               \
    X(ucp_init_version)                                                                            \
    X(ucp_request_check_status)                                                                    \
    X(ucp_request_free)                                                                            \
    X(ucp_worker_arm)                                                                              \
    X(ucp_worker_create)                                                                           \
    X(ucp_worker_destroy)                                                                          \
    X(ucp_worker_get_address)                                                                      \
    X(ucp_worker_get_efd)                                                                          \
    X(ucp_worker_progress)                                                                         \
    X(ucp_worker_query)                                                                            \
    X(ucp_worker_release_address)                                                                  \
    X(ucp_worker_set_am_recv_handler)                                                              \
    X(ucs_debug_disable_signal)                                                                    \
    X(ucs_global_opts_set_value)                                                                   \
    X(ucs_log_push_handler)                                                                        \
    X(ucs_status_string)

struct ucx_api {
#define UCX_FUNCTION(name) __typeof__(name) *name;
    UCX_FUNCTIONS(UCX_FUNCTION)
#undef UCX_FUNCTION
};
extern struct ucx_api ucx_api; /* filled in once a context exists */

/* ucx_lib.c: one context per class for the whole process, made when first needed, any thread;
 * -ENOTSUP, also when UCX is not installed; the next connection tries again. */
int ucx_lib_context(enum offer_choice choice, ucp_context_h *ret_context) MUST_USE;
/* Can shared memory be offered? Not in the child of a process that had loaded UCX: its state is in
 * the middle of whatever the parent's threads were doing. */
bool ucx_lib_has_shm(void);
bool ucx_lib_has_rdma(void);
int ucx_err(ucs_status_t s); /* as -errno or -AIFS_E... */
/* Tests: let `rdma` mean these UCX transports, so that its code runs without a device. Before first
 * use. */
void ucx_lib_fake_rdma(const char *tls);
bool ucx_lib_rdma_is_fake(void);

/* ucx_send.c */
int ucx_post_probe(struct net_ucx *u) MUST_USE;
void ucx_on_ack(struct net_ucx *u, const uint8_t *ids, uint32_t len);
/* The peer may have a message's buffers back. That wakes it if it sleeps, so it goes with what is
 * sent next, or a little later, or once the peer has waited for much. */
void ucx_add_ack(struct net_ucx *u, uint32_t id, uint32_t len);
void ucx_on_ack_timer(struct reactor_timer *t);
void ucx_tx_fail_all(struct net_ucx *u); /* the worker is gone */

/* ucx_recv.c */
bool ucx_peer_gone(const struct net_ucx *u); /* as far as the kernel knows */
ucs_status_t ucx_on_am(void *arg, const void *header, size_t header_len, void *data, size_t len,
                       const ucp_am_recv_param_t *param);
void ucx_take_held(struct net_ucx *u);
void ucx_drop_held(struct net_ucx *u);   /* before the worker goes */
void ucx_rx_fail_all(struct net_ucx *u); /* the worker is gone */

/* ucx.c */
void ucx_on_probe(struct net_ucx *u);

static inline void ucx_header_encode(uint8_t p[UCX_HEADER_BYTES], enum ucx_type type,
                                     uint32_t head_len, uint32_t bulk_len, uint32_t id)
{
    le32_store(p, type);
    le32_store(p + 4, head_len);
    le32_store(p + 8, bulk_len);
    le32_store(p + 12, id);
}

static inline bool ucx_header_decode(const uint8_t *p, size_t len, struct ucx_header *ret)
{
    if (len < UCX_HEADER_BYTES || le32_load(p) < UCX_PROBE || le32_load(p) > UCX_RNDV)
        return false;
    ret->type = p[0];
    ret->head_len = le32_load(p + 4);
    ret->bulk_len = le32_load(p + 8);
    ret->id = le32_load(p + 12);
    return ret->head_len <= NET_HEAD_MAX && ret->bulk_len <= NET_BULK_MAX;
}

#endif
