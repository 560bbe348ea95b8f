/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairing heap of timers.
 *
 * Happy path: insert makes the new timer a child of the root, or the root. Remove cuts a timer from
 * its siblings and, if it has children, melds them in two passes. prev is the left sibling, or the
 * parent of a leftmost child. Nothing here can fail or recurse.
 */
#include "common/rt/timer_heap.h"

#include "common/base/assert.h"

static bool timer_before(const struct reactor_timer *a, const struct reactor_timer *b)
{
    if (a->deadline_ns != b->deadline_ns)
        return a->deadline_ns < b->deadline_ns;
    return a->order < b->order;
}

/* Two roots (no siblings) become one tree. */
static struct reactor_timer *timer_meld(struct reactor_timer *a, struct reactor_timer *b)
{
    struct reactor_timer *t;

    if (!a)
        return b;
    if (!b)
        return a;
    if (timer_before(b, a)) {
        t = a;
        a = b;
        b = t;
    }
    b->prev = a;
    b->next = a->child;
    if (b->next)
        b->next->prev = b;
    a->child = b;
    return a;
}

/* Melds a list of siblings: pairs from left to right, then the pairs from right to left. */
static struct reactor_timer *timer_meld_siblings(struct reactor_timer *first)
{
    struct reactor_timer *pairs = NULL, *root = NULL;

    while (first) {
        struct reactor_timer *a = first, *b = a->next;

        first = b ? b->next : NULL;
        a->next = a->prev = NULL;
        if (b)
            b->next = b->prev = NULL;
        a = timer_meld(a, b);
        a->next = pairs; /* a stack: the last pair is melded first */
        pairs = a;
    }
    while (pairs) {
        struct reactor_timer *a = pairs;

        pairs = a->next;
        a->next = NULL;
        root = timer_meld(root, a);
    }
    return root;
}

void timer_heap_insert(struct timer_heap *h, struct reactor_timer *t)
{
    t->order = ++h->next_order;
    t->child = t->next = t->prev = NULL;
    h->root = timer_meld(h->root, t);
}

void timer_heap_remove(struct timer_heap *h, struct reactor_timer *t)
{
    struct reactor_timer *below = timer_meld_siblings(t->child);

    if (t == h->root) {
        h->root = below;
    } else {
        ASSERT(t->prev);
        if (t->prev->child == t)
            t->prev->child = t->next;
        else
            t->prev->next = t->next;
        if (t->next)
            t->next->prev = t->prev;
        h->root = timer_meld(h->root, below);
    }
    t->child = t->next = t->prev = NULL;
    t->order = 0;
}
