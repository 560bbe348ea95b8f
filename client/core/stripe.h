/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cutting file ranges into cache blocks. Pure. A block is min(chunk size, 1 MiB) bytes, aligned, so
 * that it lies in exactly one chunk and therefore on one chain, and its transfer fits one RPC.
 */
#ifndef AIFS_CLIENT_CORE_STRIPE_H
#define AIFS_CLIENT_CORE_STRIPE_H

#include <stdint.h>

#include "proto/layout.h"

struct stripe_piece {
    uint64_t block;      /* index of the cache block */
    uint32_t start, len; /* within the block */
    uint64_t chunk;
    uint32_t chunk_offset; /* of the block's first byte in its chunk */
};

uint32_t stripe_block_bytes(const struct msg_layout *l);
/* The part of [offset, end) that lies in the block of offset. */
struct stripe_piece stripe_cut(const struct msg_layout *l, uint64_t offset, uint64_t end);

#endif
