/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of scattered overwrites: a block that small writes hit here and there has the pages they
 * touched instead of a buffer for all of it, because fresh memory costs more than the network: a
 * buffer of 1 MiB for each 4 KiB is 256 times as much to fill. What is clean of such a block is not
 * kept. Whoever reads the block, or fills it, gets an ordinary one (block_get()).
 */
#ifndef AIFS_CLIENT_CORE_SCATTER_H
#define AIFS_CLIENT_CORE_SCATTER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/compiler.h"

#define SCATTER_PAGE_BYTES 4096u
#define SCATTER_PAGES_MAX  32u /* of a block; one with more is not scattered */

struct block;
struct core;
struct core_inode;
struct buf;

struct scatter {
    uint32_t n;
    struct {
        uint32_t index;
        struct buf *buf;
    } page[SCATTER_PAGES_MAX];
};

/* The block, found or made, with pages for bytes [start, end). -ENOMEM: there will be some when
 * what is dirty has been written back. -ENOSPC: the block, or this client, is not for it. */
int scatter_get(struct core_inode *i, uint64_t index, uint32_t start, uint32_t end,
                struct block **ret_block) MUST_USE;
/* The page of a byte that has been written, and how much of it lies before the byte. */
struct buf *scatter_page(const struct block *b, uint32_t at, uint32_t *ret_offset);
/* The end of what follows a byte in its page. */
static inline uint32_t scatter_page_end(uint32_t at)
{
    return at / SCATTER_PAGE_BYTES * SCATTER_PAGE_BYTES + SCATTER_PAGE_BYTES;
}
uint32_t scatter_end(const struct block *b);        /* of its furthest page, in the block */
void scatter_gather(struct block *b, uint8_t *dst); /* what the pages hold; then they are gone */
void scatter_tidy(struct block *b);                 /* forgets what is clean */
void scatter_free(struct block *b);

#endif
