/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The 16 bytes before every message on a socket, little-endian:
 *
 *   offset  size  field
 *   0       2     magic 0xaf15
 *   2       1     type (enum frame_type)
 *   3       1     zero
 *   4       4     head_len: at most NET_HEAD_MAX for FRAME_MESSAGE, FRAME_ADDRESS_MAX for
 *                 FRAME_ADDRESS; else 0
 *   8       4     bulk_len: at most NET_BULK_MAX; 0 unless type is FRAME_MESSAGE
 *   12      4     CRC-32C of bytes 0..11 and the head
 *
 * The head follows, then the bulk. The bulk has no sum here: who sends data sums it block by block
 * from end to end.
 */
#ifndef AIFS_COMMON_NET_FRAME_FMT_H
#define AIFS_COMMON_NET_FRAME_FMT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/bytes.h"
#include "common/base/crc.h"

#define FRAME_BYTES       16u
#define FRAME_MAGIC       0xaf15u
#define FRAME_ADDRESS_MAX 4000u

enum frame_type {
    FRAME_MESSAGE = 1,
    FRAME_PING,    /* answer with a pong */
    FRAME_PONG,    /* also sent unasked by an end that has stopped reading */
    FRAME_ADDRESS, /* the upgrade (ucx.c): my UCX worker address is the head */
    FRAME_READY,   /* you reach me over it */
    FRAME_STAY,    /* it cannot be: both stay on the socket */
    FRAME_SWITCH,  /* what I send from here on comes over the upgraded transport */
    FRAME_HOLD,    /* I hold too much that came over the upgraded transport: send nothing new */
    FRAME_GO,      /* go on */
    FRAME_TYPE_END
};

struct frame {
    uint8_t type;
    uint32_t head_len;
    uint32_t bulk_len;
    uint32_t crc;
};

static inline uint32_t frame_crc(const uint8_t p[FRAME_BYTES], const void *head, uint32_t head_len)
{
    uint32_t crc = crc32c(p, 12);

    return head_len ? crc32c_more(crc, head, head_len) : crc;
}

static inline void frame_encode(uint8_t p[FRAME_BYTES], enum frame_type type, const void *head,
                                uint32_t head_len, uint32_t bulk_len)
{
    le16_store(p, FRAME_MAGIC);
    p[2] = (uint8_t)type;
    p[3] = 0;
    le32_store(p + 4, head_len);
    le32_store(p + 8, bulk_len);
    le32_store(p + 12, frame_crc(p, head, head_len));
}

/* False: this is none of ours. The sum is checked once the head is there. */
static inline bool frame_decode(const uint8_t p[FRAME_BYTES], uint32_t head_max, uint32_t bulk_max,
                                struct frame *ret)
{
    ret->type = p[2];
    ret->head_len = le32_load(p + 4);
    ret->bulk_len = le32_load(p + 8);
    ret->crc = le32_load(p + 12);
    if (le16_load(p) != FRAME_MAGIC || p[3] != 0 || ret->type == 0 || ret->type >= FRAME_TYPE_END)
        return false;
    if (ret->type == FRAME_MESSAGE)
        return ret->head_len <= head_max && ret->bulk_len <= bulk_max;
    return ret->head_len <= (ret->type == FRAME_ADDRESS ? FRAME_ADDRESS_MAX : 0) &&
           ret->bulk_len == 0;
}

#endif
