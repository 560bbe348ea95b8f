/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read-ahead detector of one open file: pure. Told of every read, it answers what to fetch in
 * advance.
 *
 * Streams. A read near where one of the last few runs ended (requests of one run may overtake each
 * other a little) continues it; so several readers of one open file, and one that looks something
 * up in between, keep their runs. What may be one read at random has to be met more closely, and
 * reads of less than a block are a stream from the third on: two meet by chance too often; and so
 * do three and more in a file that is read at random and nothing of it twice, so each four reads
 * that belonged to no run (32 count) make it one read later. The window starts small and doubles
 * with the run up to the bound, as in Linux's on-demand read-ahead (mm/readahead.c): the next
 * window is asked for when the reader has used half of the last one, so that a stream never stops
 * and requests are large. A run whose reads come one before the other is read ahead downwards.
 *
 * Strides. Three reads of one length at equal distances, forwards or backwards, make a stride: the
 * records that come next are fetched, not what lies between.
 *
 * Neighbours. Four of the last eight reads in the same 2 MiB (page faults of a mapped file, as a
 * rule): the whole of it is fetched.
 *
 * Whoever reads at random far apart pays nothing.
 */
#ifndef AIFS_CLIENT_CORE_READAHEAD_H
#define AIFS_CLIENT_CORE_READAHEAD_H

#include <stdbool.h>
#include <stdint.h>

#define READAHEAD_STREAMS      4u
#define READAHEAD_RECENT       8u
#define READAHEAD_AROUND       (2u * 1024u * 1024u)
#define READAHEAD_STRIDE_DEPTH 16u /* records in advance, at most */

enum readahead_advice { /* what the reader says of itself */
                        READAHEAD_NORMAL,
                        READAHEAD_SEQUENTIAL, /* every first read begins a stream, with the whole
                                                 window */
                        READAHEAD_RANDOM,     /* nothing is fetched in advance */
};

struct readahead_stream {
    uint64_t next, low; /* end of the furthest read of this run, begin of its lowest */
    uint64_t last;      /* begin of its last read */
    uint64_t fetched;   /* asked for in advance up to here; down: down to here */
    uint64_t window;
    uint32_t run;     /* reads in a row, or SURE_RUN at once; 0: free */
    uint32_t falling; /* of them, the last so many each before the one before it */
    uint32_t used;    /* readahead.clock of the last read */
    bool down;
};

struct readahead {
    struct readahead_stream streams[READAHEAD_STREAMS];
    uint32_t clock; /* reads so far */
    uint32_t alone; /* of the last ones, those that belonged to no run less those that did */
    enum readahead_advice advice;
    struct {
        uint64_t last;
        int64_t step;
        uint32_t len, run, depth; /* depth: so many records behind the last read are asked for */
    } stride;
    uint64_t recent[READAHEAD_RECENT]; /* the 2 MiB of the last reads outside streams, plus one */
};

struct readahead_plan {
    bool sequential;     /* fetch whole blocks */
    uint64_t start, end; /* fetch in advance; empty when start == end */
    int64_t step;        /* and the same at this distance from it, */
    uint32_t count;      /* so many in all; 1 or less: no more */
};

/* unit: bytes of a block, the smallest useful window; max: the bound (0: no read-ahead). */
struct readahead_plan readahead_next(struct readahead *ra, uint64_t offset, uint32_t len,
                                     uint64_t file_size, uint64_t unit, uint64_t max);

#endif
