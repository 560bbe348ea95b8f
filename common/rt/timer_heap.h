/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timers of one reactor as an intrusive pairing heap (Fredman, Sedgewick, Sleator, Tarjan: "The
 * pairing heap", Algorithmica 1986), ordered by (deadline, order of starting).
 *
 * Chosen over an array because starting a timer can then not fail for want of memory, and because
 * the usual life of a timer here (a request's deadline: started, then cancelled) costs O(1): a leaf
 * is cut out without touching anything else. The caller owns the timers. One thread.
 */
#ifndef AIFS_COMMON_RT_TIMER_HEAP_H
#define AIFS_COMMON_RT_TIMER_HEAP_H

#include "common/rt/reactor.h"

struct timer_heap {
    struct reactor_timer *root; /* the earliest; NULL: empty */
    uint64_t next_order;
};

/* t->deadline_ns is set, t is in no heap. */
void timer_heap_insert(struct timer_heap *h, struct reactor_timer *t);
/* t is in this heap. */
void timer_heap_remove(struct timer_heap *h, struct reactor_timer *t);

#endif
