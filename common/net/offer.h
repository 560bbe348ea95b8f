/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an end tells about itself in hello, and the choice of a transport as a pure function of two
 * offers: both ends come to the same answer.
 *
 * Wire form, little-endian, OFFER_BYTES long (a longer one from a later version is read as far as
 * known):
 *
 *   offset  size  field
 *   0       1     version, 1
 *   1       1     want (enum net_want; CALLS is TCP and its flag)
 *   2       2     flags: 1 shared memory possible, 2 RDMA device with an active port, 4 a few calls
 *                 only: nothing but the socket, whatever the other end insists on
 *   4       4     effective user id
 *   8       4     pid
 *   12      4     zero
 *   16      16    boot id: which kernel, and so which host
 *   32      8     pid name space (inode)
 *   40      8     user name space (inode)
 *   48      8     address of the cookie in this process
 *   56      16    cookie: random; who can read it there really reaches our memory
 *   72      8     memory that may be mapped (share.h): its address in this process
 *   80      8     how much; 0, or an offer that ends before: none
 *   88      8     its inode
 *   96      4     its descriptor in this process
 *   100     4     descriptor of this end of the connection in this process, plus 1; 0: not told
 */
#ifndef AIFS_COMMON_NET_OFFER_H
#define AIFS_COMMON_NET_OFFER_H

#include "common/net/net.h"
#include "common/net/share.h"

#define OFFER_VERSION      1
#define OFFER_BYTES        104
#define OFFER_BYTES_MIN    72 /* without shared memory that is mapped */
#define OFFER_COOKIE_BYTES 16

enum offer_flag { OFFER_SHM = 1, OFFER_RDMA = 2, OFFER_CALLS = 4 };

struct offer {
    uint8_t want;
    uint16_t flags;
    uint32_t uid;
    uint32_t pid;
    uint8_t boot_id[16];
    uint64_t pid_ns;
    uint64_t user_ns;
    uint64_t cookie_at;
    uint8_t cookie[OFFER_COOKIE_BYTES];
    struct share share;
    int32_t socket; /* -1: not told */
};

enum offer_choice { CHOICE_SOCKET, CHOICE_SHM, CHOICE_RDMA };
struct choice {
    enum offer_choice choice;
    const char *why; /* one clause, static */
    bool refused;    /* an end insists on a transport that they cannot use together */
};

void offer_encode(const struct offer *o, uint8_t out[OFFER_BYTES]);
int offer_decode(const void *data, uint32_t len,
                 struct offer *ret_offer) MUST_USE;                       /* -AIFS_EPROTO */
struct choice offer_choose(const struct offer *a, const struct offer *b); /* symmetric */

/* This process: ids and name spaces; flags and cookie are the caller's business. -errno when /proc
 * says nothing. */
int offer_of_this_process(struct offer *ret_offer) MUST_USE;

#endif
