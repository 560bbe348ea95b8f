// SPDX-License-Identifier: Apache-2.0
/* Hello and authentication. What arrives here comes from anybody: all of it is short, and names are
 * printable. */
#include "common/crypto/crypto.h"
#include "common/net/net.h"
#include "proto/codec/codec_int.h"
#include "proto/schema/hello.pb-c.h"

#define EMPTY(F)
CODEC_MSG(empty, Empty, EMPTY)

#define HELLO_REQ(F)                                                                               \
    F(uuid, cluster)                                                                               \
    F(uuid, node)                                                                                  \
    F(uuid, boot)                                                                                  \
    F(num, role)                                                                                   \
    F(text, name, 63)                                                                              \
    F(text, version, 31)                                                                           \
    F(num, wire_oldest)                                                                            \
    F(num, wire_newest)                                                                            \
    F(num, features)                                                                               \
    F(bytes, nonce, CRYPTO_MAC_BYTES)
CODEC_MSG(hello_req, HelloReq, HELLO_REQ)

#define HELLO_REP(F)                                                                               \
    F(uuid, cluster)                                                                               \
    F(uuid, node)                                                                                  \
    F(uuid, boot)                                                                                  \
    F(num, role)                                                                                   \
    F(text, name, 63)                                                                              \
    F(text, version, 31)                                                                           \
    F(num, wire_version)                                                                           \
    F(num, features)                                                                               \
    F(bytes, nonce, CRYPTO_MAC_BYTES)                                                              \
    F(bytes, proof, CRYPTO_MAC_BYTES)
CODEC_MSG(hello_rep, HelloRep, HELLO_REP)

#define AUTH_REQ(F) F(bytes, proof, CRYPTO_MAC_BYTES) F(bytes, offer, NET_OFFER_BYTES)
CODEC_MSG(auth_req, AuthReq, AUTH_REQ)

#define AUTH_REP(F) F(bytes, offer, NET_OFFER_BYTES)
CODEC_MSG(auth_rep, AuthRep, AUTH_REP)
