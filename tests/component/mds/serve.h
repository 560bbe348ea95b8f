/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A metadata server without its session, cluster and gc modules, and a client, in one thread on one
 * reactor, over the loopback interface. Simple stand-ins take the modules' places and remember what
 * they were asked; session 7 is open.
 */
#ifndef AIFS_TESTS_COMPONENT_MDS_SERVE_H
#define AIFS_TESTS_COMPONENT_MDS_SERVE_H

#include "mds/mds.h"
#include "tests/component/mds/bed.h"

#define SERVE_SESSION 7u
#define SERVE_OPENS   64

struct serve {
    struct bed bed;
    struct mds *mds;
    struct reactor *reactor;
    struct buf_pool *pool;
    struct rpc_node *client;
    struct rpc_peer *peer;
    struct cluster_map *map;
    uint32_t sequence;
    /* what the stand-ins do and saw */
    uint64_t open_ino[SERVE_OPENS]; /* by open id; 0: closed */
    uint64_t next_open;
    enum msg_lease grant;
    struct mds_outcome outcome; /* the last one finished */
    unsigned prepares, finishes, kicks;
    void (*on_prepare)(struct serve *s, struct mds_prepare *p); /* once; then cleared */
    bool lower_lease;               /* the next finish() lowers what was promised */
    struct mds_punch_wait *waiting; /* punch_wait() that was not answered at once */
    bool punch_now;                 /* punch_wait() is answered at once */
    bool writing;                   /* somebody else holds a write lease on everything */
    uint64_t glimpse_size;
    /* the last reply */
    struct rpc_call call;
    bool done, used;
    int status;
    uint8_t bulk[1 << 16];
};

void serve_open(struct serve *s);
void serve_close(struct serve *s);
/* The call's reply as its struct; *ret_status. With the next sequence of slot 1. */
const void *serve_call(struct serve *s, unsigned op, const void *req, int *ret_status);
const void *serve_again(struct serve *s, unsigned op, const void *req, int *ret_status);
void serve_start_call(struct serve *s, unsigned op, const void *req, const struct iovec *bulk);
bool serve_wait(struct serve *s, const bool *until); /* false: nothing happened for 30 s */
const struct msg_inode_rep *serve_inode(struct serve *s, unsigned op,
                                        const void *req); /* must succeed */

#endif
