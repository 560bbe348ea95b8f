/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two ends of connections, for tests. Each end is a reactor, a pool and connections; the other
 * process is this very program, executed again with "--serve" (nothing of UCX or of a reactor is
 * carried over a fork).
 *
 * The protocol: the first message each way is a hello that carries the transport offer; both ends
 * upgrade on it. Then every message is sent back as it came (echo), or kept. Heads carry a sequence
 * number and the CRC of the bulk; whoever gets a message back checks both.
 */
#ifndef AIFS_TESTS_COMPONENT_NET_HARNESS_H
#define AIFS_TESTS_COMPONENT_NET_HARNESS_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#include "common/net/buf.h"
#include "common/net/net.h"
#include "common/net/share.h"

#define END_MSGS 1024
/* Something that comes at once on a quiet machine: a limit for tests that hang. */
#define END_SOON_MS 30000

/* Also in the child, where Check is not running. */
#define MUST(expr)                                                                                 \
    do {                                                                                           \
        if (!(expr)) {                                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #expr);                             \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

struct end;
struct msg {
    struct net_tx tx;
    struct list link;
    struct iovec iov[3];
    struct buf *buf;
    struct end *end;
    uint32_t bulk_len;
    uint32_t head_len;
    uint32_t landed; /* so much of the bulk came in parts */
    bool hello;
    uint8_t *head; /* HEAD_ROOM bytes */
};

enum end_mode { END_ECHO, END_LOAD, END_HOLD /* take messages, answer none */ };

struct end {
    struct reactor *reactor;
    struct buf_pool *pool;
    struct net_options options;
    enum end_mode mode;
    struct net_conn *conn;
    struct buf_waiter waiter;
    struct buf *spare;
    bool waiting;
    bool hello_done; /* upgraded */
    bool closed;
    int closed_status;
    struct list free_msgs;
    struct msg *msgs;
    uint8_t *heads;
    /* load */
    uint64_t to_send, sent, received, failed_rx, done_ok, done_failed, head_calls, received_calls;
    uint64_t landings; /* parts */
    uint8_t part[128 * KIB];
    unsigned depth, in_flight;
    uint32_t max_bulk, fixed_bulk, fixed_head;
    uint32_t ask; /* send no bulk and ask for so much */
    uint32_t pool_buf_bytes;
    bool ipv6;
    bool scatter;
    bool pump_after_hello;
    void (*forge)(uint8_t *offer);         /* tells something else than the truth in its offer */
    void (*before_upgrade)(struct end *e); /* both offers are known */
    void (*after_upgrade)(struct end *e);
    bool share_buf; /* send one buffer again and again: fresh memory takes long */
    struct buf *shared;
    uint64_t seed;
};

#define HEAD_ROOM (128u * 1024u)

struct net_addr addr_of(const char *text);
/* Reactor, pool and messages; conn comes later. */
void end_init(struct end *e, const struct net_options *o, enum end_mode mode, uint32_t buf_bytes,
              uint32_t n_bufs);
bool end_share(struct end *e, uint32_t buf_bytes, uint32_t n_bufs); /* before it connects */
void end_fini(struct end *e);                                       /* every buffer must be back */
void end_adopt(struct end *e, struct net_conn *c);                  /* starts it, says hello */
void end_connect(struct end *e, uint16_t port); /* turns the reactor until connected and upgraded */
void end_connect_over(struct end *e,
                      uint16_t port); /* and until it has moved to the transport it wants */
void end_hang_up(struct end *e);
void end_echo(struct end *e,
              uint64_t n);    /* n messages there and back, 64 at a time if not said otherwise */
void end_pump(struct end *e); /* keeps depth messages in flight until to_send are sent */
/* Turns the reactor until done(), or false after timeout_ms in which this thread had a core or
 * waited for something else than one. */
bool end_turn_until(struct end *e, bool (*done)(struct end *e), unsigned timeout_ms);
bool end_is_closed(struct end *e);
bool end_is_finished(struct end *e); /* all sent, all received, all done */

/* A serving process: this program with --serve. */
struct child {
    pid_t pid;
    int out; /* it says "PORT\n" first */
    uint16_t port;
};
struct child_options {
    enum end_mode mode;
    enum net_want want;
    uint32_t n_bufs, buf_bytes;
    unsigned ping_ms, timeout_ms;
    bool ipv6;
    uint32_t rndv_threshold;
    bool share; /* its memory may be mapped, where the kernel can do that */
    bool load;  /* sends, too: depth 64 of 1 MiB as soon as it is connected */
};
struct child child_start(const struct child_options *o);
void child_kill(struct child *c);      /* SIGKILL and wait */
int child_main(int argc, char **argv); /* call first in main(); -1: not a child */
unsigned count_fds(void);
uint64_t rss_bytes(void);

#endif
