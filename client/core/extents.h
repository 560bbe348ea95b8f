/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small set of byte ranges [start, end) inside one cache block: sorted, disjoint, never touching
 * (neighbours merge). Pure: values in, values out. The number of pieces is bounded; an operation
 * that would need more fails with -ENOSPC and changes nothing.
 */
#ifndef AIFS_CLIENT_CORE_EXTENTS_H
#define AIFS_CLIENT_CORE_EXTENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/compiler.h"

#define EXTENTS_MAX 32u

struct extent {
    uint32_t start, end;
};

struct extents {
    uint32_t n;
    struct extent e[EXTENTS_MAX];
};

static inline bool extents_empty(const struct extents *x)
{
    return x->n == 0;
}

void extents_clear(struct extents *x);
int extents_add(struct extents *x, uint32_t start, uint32_t end) MUST_USE;
/* All of more; false: it does not fit, and some of it is in x. */
bool extents_add_all(struct extents *x, const struct extents *more) MUST_USE;
int extents_remove(struct extents *x, uint32_t start, uint32_t end) MUST_USE;
void extents_drop_before(struct extents *x,
                         uint32_t at);            /* drops whole pieces that end at or before at */
void extents_cut(struct extents *x, uint32_t at); /* drops everything from at on */
bool extents_cover(const struct extents *x, uint32_t start, uint32_t end);
bool extents_overlap(const struct extents *x, uint32_t start, uint32_t end);
/* The first part of [start, end) that is not in x. */
bool extents_gap(const struct extents *x, uint32_t start, uint32_t end, struct extent *ret_gap);
/* The first piece that ends behind from. */
bool extents_next(const struct extents *x, uint32_t from, struct extent *ret_piece);
uint32_t extents_bytes(const struct extents *x);
uint32_t extents_end(const struct extents *x); /* of the last piece; 0 when empty */

#endif
