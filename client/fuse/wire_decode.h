/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a message of the kernel to a request. The kernel is not trusted: every length is checked
 * against what has been read, and a message that does not hold what its operation needs is refused.
 * Pure: no input or output, any thread.
 */
#ifndef AIFS_CLIENT_FUSE_WIRE_DECODE_H
#define AIFS_CLIENT_FUSE_WIRE_DECODE_H

#include <stdbool.h>

#include "client/fuse/channel.h"
#include "client/fuse/wire.h"

/* The operation that opcode asks for; CHANNEL_N_OPS: none that is known. */
enum channel_op wire_op(uint32_t opcode);
/*
 * Fills in what q's operation needs (and nothing else of q). body: what follows the header h, len
 * bytes, 8-aligned. Names are copied to q->text; targets, values and data of a WRITE point into
 * body. killpriv: HANDLE_KILLPRIV_V2 is in use. -EIO: malformed; -ENAMETOOLONG, -E2BIG, -EINVAL:
 * what was asked for is beyond bounds.
 */
int wire_decode(const struct wire_in_header *h, const void *body, size_t len, bool killpriv,
                struct channel_req *q) MUST_USE;
/*
 * A request that came by a ring, in one piece for wire_decode(): the operation's header is copied
 * to just before payload, where WIRE_RING_OP_BYTES must be free; payload_max is its room. -EIO:
 * malformed.
 */
int wire_ring_join(const struct wire_ring_header *h, uint8_t *payload, size_t payload_max,
                   const void **ret_body, size_t *ret_len) MUST_USE;
/* BATCH_FORGET: the pairs, and how many of them the message really holds. */
const struct wire_forget_one *wire_forgets(const void *body, size_t len, size_t *ret_n);

#endif
