/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of byte ranges. Every change is made on a copy and kept only when it fits, so that a failed
 * one leaves the set as it was.
 */
#include "client/core/extents.h"

#include <errno.h>

void extents_clear(struct extents *x)
{
    x->n = 0;
}

static bool append(struct extents *x, uint32_t start, uint32_t end)
{
    if (start >= end)
        return true;
    if (x->n && x->e[x->n - 1].end >= start) {
        x->e[x->n - 1].end = MAX(x->e[x->n - 1].end, end);
        return true;
    }
    if (x->n == EXTENTS_MAX)
        return false;
    x->e[x->n++] = (struct extent){start, end};
    return true;
}

int extents_add(struct extents *x, uint32_t start, uint32_t end)
{
    struct extents out;
    bool placed = false;
    uint32_t i;

    if (start >= end)
        return 0;
    if (x->n && x->e[x->n - 1].end == start) { /* the common case: a sequential writer */
        x->e[x->n - 1].end = end;
        return 0;
    }
    out.n = 0;
    for (i = 0; i < x->n; i++) {
        if (!placed && start <= x->e[i].start) {
            placed = true;
            if (!append(&out, start, end))
                return -ENOSPC;
        }
        if (!append(&out, x->e[i].start, x->e[i].end))
            return -ENOSPC;
    }
    if (!placed && !append(&out, start, end))
        return -ENOSPC;
    *x = out;
    return 0;
}

bool extents_add_all(struct extents *x, const struct extents *more)
{
    for (uint32_t i = 0; i < more->n; i++)
        if (extents_add(x, more->e[i].start, more->e[i].end))
            return false;
    return true;
}

int extents_remove(struct extents *x, uint32_t start, uint32_t end)
{
    struct extents out;
    uint32_t i;

    if (start >= end)
        return 0;
    out.n = 0;
    for (i = 0; i < x->n; i++) {
        struct extent e = x->e[i];

        if (e.end <= start || e.start >= end) {
            if (!append(&out, e.start, e.end))
                return -ENOSPC;
            continue;
        }
        if (!append(&out, e.start, MIN(e.end, start)) || !append(&out, MAX(e.start, end), e.end))
            return -ENOSPC;
    }
    *x = out;
    return 0;
}

void extents_cut(struct extents *x, uint32_t at)
{
    while (x->n && x->e[x->n - 1].start >= at)
        x->n--;
    if (x->n && x->e[x->n - 1].end > at)
        x->e[x->n - 1].end = at;
}

void extents_drop_before(struct extents *x, uint32_t at)
{
    uint32_t i, n = 0;

    for (i = 0; i < x->n; i++)
        if (x->e[i].end > at)
            x->e[n++] = x->e[i];
    x->n = n;
}

bool extents_cover(const struct extents *x, uint32_t start, uint32_t end)
{
    struct extent gap;

    return !extents_gap(x, start, end, &gap);
}

bool extents_overlap(const struct extents *x, uint32_t start, uint32_t end)
{
    struct extent piece;

    return start < end && extents_next(x, start, &piece) && piece.start < end;
}

bool extents_gap(const struct extents *x, uint32_t start, uint32_t end, struct extent *ret_gap)
{
    uint32_t i;

    for (i = 0; i < x->n && start < end; i++) {
        if (x->e[i].end <= start)
            continue;
        if (x->e[i].start > start) {
            *ret_gap = (struct extent){start, MIN(end, x->e[i].start)};
            return true;
        }
        start = x->e[i].end;
    }
    if (start >= end)
        return false;
    *ret_gap = (struct extent){start, end};
    return true;
}

bool extents_next(const struct extents *x, uint32_t from, struct extent *ret_piece)
{
    uint32_t i;

    for (i = 0; i < x->n; i++) {
        if (x->e[i].end > from) {
            *ret_piece = x->e[i];
            return true;
        }
    }
    return false;
}

uint32_t extents_bytes(const struct extents *x)
{
    uint32_t i, sum = 0;

    for (i = 0; i < x->n; i++)
        sum += x->e[i].end - x->e[i].start;
    return sum;
}

uint32_t extents_end(const struct extents *x)
{
    return x->n ? x->e[x->n - 1].end : 0;
}
