/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of fences in memory, in the order of their numbers. Pure: no I/O, no clock. Numbers only
 * grow; the list is bounded by forgetting what every server has.
 */
#ifndef AIFS_MDS_CLUSTER_FENCE_H
#define AIFS_MDS_CLUSTER_FENCE_H

#include <stdint.h>

#include "common/base/compiler.h"
#include "proto/msg.h"

struct fence_list {
    uint64_t *numbers;
    struct msg_fence *fences; /* same index */
    uint32_t n, cap;
};

void fence_list_fini(struct fence_list *l);
/* In any order; a number that is there already is no error. -ENOMEM. */
int fence_list_add(struct fence_list *l, uint64_t number, const struct msg_fence *f) MUST_USE;
uint64_t fence_list_last(const struct fence_list *l); /* 0: none */
/* Fences behind number after, at most max: a view into the list. ret_upto: the number a server
 * knows everything up to when it has these. Returns how many. */
uint32_t fence_list_after(const struct fence_list *l, uint64_t after, uint32_t max,
                          const struct msg_fence **ret_fences, uint64_t *ret_upto);
/* How many of the oldest may be forgotten when every server knows up to acked and keep are to
 * stay. */
uint32_t fence_list_excess(const struct fence_list *l, uint64_t acked, uint32_t keep);
void fence_list_drop(struct fence_list *l, uint32_t n); /* the n oldest */

#endif
