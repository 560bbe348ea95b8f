/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages of blocks of scattered writers.
 *
 * Happy path: a small overwrite takes a page (scatter_get) → its piece is sent and committed like
 * any other → the page is free for the next one (scatter_tidy, or with the block).
 *
 * Failure: no page is free: the request waits until one is; no budget for pages, or too many pages
 * in one block: an ordinary block.
 */
#include "client/core/core_int.h"

static uint32_t page_slot(const struct scatter *s, uint32_t index)
{
    uint32_t k = 0;

    while (k < s->n && s->page[k].index != index)
        k++;
    return k;
}

static struct block *block_of(struct core_inode *i, uint64_t index)
{
    struct block *b = block_find(i->core, i, index);
    struct scatter *s;

    if (b)
        return b->scatter ? b : NULL;
    s = core_no_memory() ? NULL : mem_alloc(sizeof *s);
    if (!s)
        return NULL;
    s->n = 0;
    b = block_new(i, index, NULL, s);
    if (!b)
        mem_free(s);
    return b;
}

static bool has_room(const struct scatter *s, uint32_t first, uint32_t last)
{
    uint32_t n = s->n;

    for (uint32_t k = first; k <= last && n <= SCATTER_PAGES_MAX; k++)
        n += page_slot(s, k) == s->n;
    return n <= SCATTER_PAGES_MAX;
}

static int get_pages(struct core *c, struct scatter *s, uint32_t first, uint32_t last)
{
    if (!has_room(s, first, last))
        return -ENOSPC; /* without taking what it would give back at once */
    for (uint32_t k = first; k <= last; k++) {
        struct buf *page;

        if (page_slot(s, k) < s->n)
            continue;
        page = mem_page_get(c);
        if (!page)
            return c->mem.used_pages ? -ENOMEM : -ENOSPC;
        c->mem.used_pages++;
        s->page[s->n].index = k;
        s->page[s->n++].buf = page;
    }
    return 0;
}

int scatter_get(struct core_inode *i, uint64_t index, uint32_t start, uint32_t end,
                struct block **ret_block)
{
    struct block *b = i->core->mem.pages.max_bytes ? block_of(i, index) : NULL;
    int rc;

    if (!b)
        return -ENOSPC;
    list_remove(&b->lru); /* not to be evicted for its own sake */
    rc = get_pages(i->core, b->scatter, start / SCATTER_PAGE_BYTES, (end - 1) / SCATTER_PAGE_BYTES);
    if (!rc)
        *ret_block = b;
    else if (block_clean(b))
        block_settle(b);
    return rc;
}

struct buf *scatter_page(const struct block *b, uint32_t at, uint32_t *ret_offset)
{
    uint32_t k = page_slot(b->scatter, at / SCATTER_PAGE_BYTES);

    ASSERT(k < b->scatter->n);
    *ret_offset = at % SCATTER_PAGE_BYTES;
    return b->scatter->page[k].buf;
}

static void page_drop(struct block *b, uint32_t k)
{
    struct scatter *s = b->scatter;
    struct buf *page = s->page[k].buf;

    s->page[k] = s->page[--s->n];
    b->inode->core->mem.used_pages--;
    mem_put(b->inode->core, page); /* a transfer of it holds a reference */
}

void scatter_free(struct block *b)
{
    while (b->scatter->n)
        page_drop(b, b->scatter->n - 1);
    mem_free(b->scatter);
    b->scatter = NULL;
}

uint32_t scatter_end(const struct block *b)
{
    const struct scatter *s = b->scatter;
    uint32_t end = 0;

    for (uint32_t k = 0; k < s->n; k++)
        end = MAX(end, (s->page[k].index + 1) * SCATTER_PAGE_BYTES);
    return end;
}

/* Of every page: also what is not valid any more may have to be sent again. */
void scatter_gather(struct block *b, uint8_t *dst)
{
    const struct scatter *s = b->scatter;

    for (uint32_t k = 0; k < s->n; k++)
        memcpy(dst + s->page[k].index * SCATTER_PAGE_BYTES, s->page[k].buf->data,
               SCATTER_PAGE_BYTES);
    scatter_free(b);
}

void scatter_tidy(struct block *b)
{
    struct extents keep;

    if (!b->scatter || !block_unsaved(b, &keep))
        return;
    b->valid = keep;
    for (uint32_t k = b->scatter->n; k-- > 0;) {
        uint32_t at = b->scatter->page[k].index * SCATTER_PAGE_BYTES;

        if (!extents_overlap(&keep, at, at + SCATTER_PAGE_BYTES))
            page_drop(b, k);
    }
}
