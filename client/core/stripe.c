/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting file ranges into cache blocks; nothing can fail, layouts have been checked by
 * layout_check(). */
#include "client/core/stripe.h"

#include "common/base/compiler.h"

uint32_t stripe_block_bytes(const struct msg_layout *l)
{
    return MIN(l->chunk_bytes, MSG_BULK_MAX);
}

struct stripe_piece stripe_cut(const struct msg_layout *l, uint64_t offset, uint64_t end)
{
    uint32_t unit = stripe_block_bytes(l);
    struct stripe_piece p;
    uint64_t base;

    p.block = offset / unit;
    base = p.block * unit;
    p.start = (uint32_t)(offset - base);
    p.len = (uint32_t)(MIN(end, base + unit) - offset);
    p.chunk = layout_chunk(l, base);
    p.chunk_offset = layout_chunk_offset(l, base);
    return p;
}
