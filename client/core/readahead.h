/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read-ahead detector of one open file: pure. Told of every read, it answers what to fetch in
 * advance.
 *
 * A read near where the last one ended (requests of one stream may overtake each other a little)
 * makes a run; the window starts small and doubles with the run up to the bound, as in Linux's
 * on-demand read-ahead (mm/readahead.c): the next window is asked for when the reader has used half
 * of the last one, so that a stream never stops and requests are large.
 */
#ifndef AIFS_CLIENT_CORE_READAHEAD_H
#define AIFS_CLIENT_CORE_READAHEAD_H

#include <stdbool.h>
#include <stdint.h>

struct readahead {
    uint64_t next;    /* end of the furthest read of this run */
    uint64_t fetched; /* asked for in advance up to here */
    uint64_t window;
    uint32_t run; /* reads in a row */
};

struct readahead_plan {
    bool sequential;     /* this read belongs to a stream: fetch whole blocks */
    uint64_t start, end; /* fetch in advance; empty when start == end */
};

/* unit: bytes of a block, the smallest useful window; max: the bound (0: no read-ahead). */
struct readahead_plan readahead_next(struct readahead *ra, uint64_t offset, uint32_t len,
                                     uint64_t file_size, uint64_t unit, uint64_t max);

#endif
