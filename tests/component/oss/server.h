/* SPDX-License-Identifier: Apache-2.0 */
/* aifs-oss as a process, between a metadata server played by the test and clients. Two targets, 100
 * and 101; each test has a server of its own, started when it begins. */
#ifndef AIFS_TESTS_COMPONENT_OSS_SERVER_H
#define AIFS_TESTS_COMPONENT_OSS_SERVER_H

#include <check.h>
#include <signal.h>

#include "common/base/err.h"
#include "proto/rpc.h"

#define CHUNK 1048576u

struct bed {
    char dir[128];
    struct crypto_key key;
    struct reactor *reactor;
    struct rpc_node *mds, *client;
    uint16_t mds_port;
    struct rpc_peer *oss;
    pid_t pid;
    uint32_t registrations, beats;
    uint32_t target_ids[8];
    uint32_t n_targets;
    struct msg_fence fences[4];
    uint32_t n_fences;
    bool fences_in_beats; /* and not only with a registration */
    bool register_again;
    uint64_t acked; /* fences */
    bool mute;      /* the metadata server does not answer */
    uint64_t errors_seen;
    uint64_t session; /* of the calls that follow */
    uint64_t once;    /* of the writes that follow */
    uint32_t generation, incarnation;
    uint8_t *buf; /* two chunks */
};

extern struct bed *bed;

struct caller {
    struct rpc_call call;
    bool done;
    int status;
};

void server_make_bed(void);
void server_end_bed(void);
void server_start(const char *extra); /* option, or NULL; the last one has ended */
void server_connect(void);
void server_end(int sig, int want_status);

void server_call_start(struct caller *k, unsigned op, const void *req, struct iovec *out,
                       struct iovec *in);
int server_call_bulk(struct caller *k, unsigned op, const void *req, struct iovec *out,
                     struct iovec *in);
int server_call(struct caller *k, unsigned op, const void *req);
/* Client calls wait until the server is registered. */
int server_call_ready(struct caller *k, unsigned op, const void *req, struct iovec *out,
                      struct iovec *in);
int server_write(uint32_t target, uint64_t ino, uint64_t chunk, uint32_t offset, void *data,
                 uint32_t len, bool stable, struct msg_write_rep *ret_rep);
int server_read(uint32_t target, uint64_t ino, uint64_t chunk, uint32_t offset, void *data,
                uint32_t len, uint32_t *ret_len);
void server_fill(uint8_t *p, uint32_t len, uint32_t seed);

#endif
