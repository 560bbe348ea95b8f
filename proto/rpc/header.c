// SPDX-License-Identifier: Apache-2.0
/* The wire header to host order and back. What does not fit is -AIFS_EPROTO, and the connection
 * with it: after a wrong length nothing that follows can be trusted. */
#include <endian.h>
#include <string.h>

#include "common/base/compiler.h"
#include "common/base/err.h"
#include "proto/rpc/rpc_int.h"

void header_encode(const struct rpc_header *h, uint8_t out[sizeof(struct rpc_header_wire)])
{
    struct rpc_header_wire w = {
        .magic = htole32(RPC_MAGIC),
        .version = htole16(h->version),
        .kind = h->kind,
        .flags = h->flags,
        .op = htole16(h->op),
        .header_len = htole16(sizeof w),
        .status = htole32(err_to_wire(h->status)),
        .request_id = htole64(h->request_id),
        .session = htole64(h->session),
        .generation = htole32(h->generation),
        .incarnation = htole32(h->incarnation),
        .map_epoch = htole64(h->map_epoch),
        .slot = htole32(h->slot),
        .slot_sequence = htole32(h->slot_sequence),
        .deadline_ms = htole32(h->deadline_ms),
        .body_len = htole32(h->body_len),
        .bulk_len = htole32(h->bulk_len),
        .memory = htole32(BUF_HOST),
        .job = htole64(h->job),
    };

    for (unsigned i = 0; i < ARRAY_LEN(w.trace_us); i++)
        w.trace_us[i] = htole32(h->trace_us[i]);
    memcpy(out, &w, sizeof w);
}

int header_decode(const void *head, uint32_t head_len, uint32_t bulk_len, struct rpc_header *ret)
{
    struct rpc_header_wire w;
    uint16_t header_len;

    if (head_len < sizeof w)
        return -AIFS_EPROTO;
    memcpy(&w, head, sizeof w);
    header_len = le16toh(w.header_len);
    if (le32toh(w.magic) != RPC_MAGIC || (w.kind != RPC_REQUEST && w.kind != RPC_REPLY) ||
        header_len < sizeof w || header_len > RPC_HEADER_MAX || header_len > head_len ||
        le32toh(w.body_len) != head_len - header_len || le32toh(w.bulk_len) != bulk_len ||
        le32toh(w.memory) != BUF_HOST)
        return -AIFS_EPROTO;
    *ret = (struct rpc_header){
        .op = le16toh(w.op),
        .flags = w.flags,
        .request_id = le64toh(w.request_id),
        .session = le64toh(w.session),
        .map_epoch = le64toh(w.map_epoch),
        .job = le64toh(w.job),
        .generation = le32toh(w.generation),
        .incarnation = le32toh(w.incarnation),
        .slot = le32toh(w.slot),
        .slot_sequence = le32toh(w.slot_sequence),
        .deadline_ms = le32toh(w.deadline_ms),
        .body_len = le32toh(w.body_len),
        .bulk_len = bulk_len,
        .status = err_from_wire(le32toh(w.status)),
        .kind = w.kind,
        .version = le16toh(w.version),
        .header_len = header_len,
    };
    for (unsigned i = 0; i < ARRAY_LEN(w.trace_us); i++)
        ret->trace_us[i] = le32toh(w.trace_us[i]);
    return 0;
}

/*
 * The smallest items take 6 bytes on the wire and about 200 decoded; names and data about as much
 * as they are. 32 MiB is the largest cluster map.
 */
size_t header_arena_limit(uint32_t body_len)
{
    return MIN((size_t)64 * KIB + (size_t)body_len * 64, (size_t)32 * MIB);
}
