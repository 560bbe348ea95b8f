/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server and a client on one reactor, over the loop transport on a virtual clock or over TCP on
 * the real one. The server counts what it is asked (ids and flags of the last requests), can hold
 * requests back, and offers reads and writes with payloads.
 */
#ifndef AIFS_TESTS_RPC_PAIR_H
#define AIFS_TESTS_RPC_PAIR_H

#include "proto/rpc.h"

#define PAIR_BULK  (1u << 20)
#define PAIR_NOTES 256u

struct pair_note {
    unsigned op;
    uint64_t id;
    uint8_t flags;
};

struct pair {
    bool tcp;
    struct clock_virtual clock;
    struct reactor *reactor;
    struct crypto_key key;
    struct rpc_node *server, *client;
    struct rpc_node_options server_options, client_options;
    struct buf_pool *pool;
    char address[64];
    uint16_t port;
    struct rpc_peer *peer;
    /* what the server saw */
    struct pair_note notes[PAIR_NOTES];
    unsigned n_notes;
    bool hold;
    struct list held;             /* struct rpc_req */
    struct rpc_link *server_link; /* last that came up */
    unsigned ups, downs, released;
    uint8_t *data;    /* what OSS_READ answers with */
    uint32_t got_crc; /* of the last OSS_WRITE */
};

/* The outcome of one call. */
struct pair_call {
    struct rpc_call call;
    bool done;
    int status;
    unsigned times;
};

/* The options may be changed between the two. */
void pair_init(struct pair *p, bool tcp);
void pair_start(struct pair *p);
void pair_connect(struct pair *p, const struct rpc_peer_events *events, void *arg);
void pair_stop(struct pair *p);  /* checks that nothing is left */
void pair_serve(struct pair *p); /* a server node of the same address */
void pair_kill_server(struct pair *p);

void pair_turn(struct pair *p); /* everything that can be done now; a little time passes */
bool pair_wait(struct pair *p, const bool *flag, uint64_t ms);
bool pair_wait_count(struct pair *p, const unsigned *count, unsigned at_least, uint64_t ms);
void pair_pass(struct pair *p, uint64_t ms); /* virtual clock only */

void pair_call_init(struct pair_call *c, unsigned op, const void *req);
void pair_release(struct pair *p, int status); /* answers the oldest held request */

#endif
