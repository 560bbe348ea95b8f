/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fixed header of every message on the wire: 128 bytes, little-endian, followed by body_len
 * bytes of protobuf and bulk_len bytes of payload. See docs/wire.md.
 */
#ifndef AIFS_PROTO_HEADER_FMT_H
#define AIFS_PROTO_HEADER_FMT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define RPC_MAGIC        0x53464941u /* "AIFS" */
#define RPC_WIRE_VERSION 1u          /* what this program speaks */
#define RPC_WIRE_OLDEST  1u          /* and understands; both ends meet at the lower maximum */

enum rpc_kind { RPC_REQUEST = 1, RPC_REPLY = 2 };

#define RPC_FLAG_RESENT 0x01u /* requests: sent before under the same request id */
/*
 * Replies of the metadata server: leases that come with it (docs/protocols.md section 3). The
 * attributes of this inode, or of this directory and the names in it, may be believed until an
 * INVALIDATE names the inode.
 */
#define RPC_FLAG_KEPT_INODE 0x02u /* the inode of the reply, or the one asked for */
#define RPC_FLAG_KEPT_DIR   0x04u /* the directory of the request; RENAME: the old one */
#define RPC_FLAG_KEPT_DIR2  0x08u /* RENAME: the new one */
/* The session has the file of the reply open, and an INVALIDATE comes before it is cut. */
#define RPC_FLAG_CUTS_TOLD 0x10u
/* MKDIR that asks for it: the session is alone with the new directory. */
#define RPC_FLAG_ALONE 0x20u

struct rpc_header_wire {
    uint32_t magic;
    uint16_t version;
    uint8_t kind;
    uint8_t flags;
    uint16_t op;
    uint16_t header_len;  /* 128; a newer version may append, older readers skip */
    uint32_t status;      /* replies: err_to_wire() */
    uint64_t request_id;  /* unique per sender incarnation; a resend carries the same */
    uint64_t session;     /* 0: none */
    uint32_t generation;  /* of the session */
    uint32_t incarnation; /* of the connection within the session: older ones are finished or
                             dropped first */
    uint64_t map_epoch;   /* the sender's */
    uint32_t slot;        /* exactly-once slot + 1; 0: none */
    uint32_t slot_sequence;
    uint32_t deadline_ms; /* time left when sent; 0: none */
    uint32_t body_len;
    uint32_t bulk_len;
    uint32_t memory;      /* enum buf_memory of the bulk; all but 0 are refused */
    uint64_t job;         /* job id, 0: none */
    uint32_t trace_us[4]; /* replies: receive queue, execute, commit, send queue */
    uint64_t reserved[4];
};
static_assert(sizeof(struct rpc_header_wire) == 128, "wire header");
static_assert(offsetof(struct rpc_header_wire, request_id) == 16, "wire header");
static_assert(offsetof(struct rpc_header_wire, slot) == 48, "wire header");
static_assert(offsetof(struct rpc_header_wire, trace_us) == 80, "wire header");

#endif
