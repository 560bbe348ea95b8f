// SPDX-License-Identifier: Apache-2.0
/* The list of fences: a sorted array, appended to nearly always. Failure modes: out of memory. */
#include "mds/cluster/fence.h"

#include <errno.h>
#include <string.h>

#include "common/base/mem.h"

void fence_list_fini(struct fence_list *l)
{
    mem_free(l->numbers);
    mem_free(l->fences);
    memset(l, 0, sizeof *l);
}

/* Index of the first fence with a number greater than after. */
static uint32_t fence_find(const struct fence_list *l, uint64_t after)
{
    uint32_t lo = 0, hi = l->n;

    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;

        if (l->numbers[mid] <= after)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static int fence_grow(struct fence_list *l)
{
    uint32_t cap = l->cap ? l->cap * 2 : 64;
    uint64_t *numbers = mem_realloc(l->numbers, cap * sizeof *numbers);
    struct msg_fence *fences;

    if (!numbers)
        return -ENOMEM;
    l->numbers = numbers;
    fences = mem_realloc(l->fences, cap * sizeof *fences);
    if (!fences)
        return -ENOMEM;
    l->fences = fences;
    l->cap = cap;
    return 0;
}

int fence_list_add(struct fence_list *l, uint64_t number, const struct msg_fence *f)
{
    uint32_t at = fence_find(l, number);

    if (at > 0 && l->numbers[at - 1] == number)
        return 0;
    if (l->n == l->cap && fence_grow(l) < 0)
        return -ENOMEM;
    memmove(l->numbers + at + 1, l->numbers + at, (l->n - at) * sizeof *l->numbers);
    memmove(l->fences + at + 1, l->fences + at, (l->n - at) * sizeof *l->fences);
    l->numbers[at] = number;
    l->fences[at] = *f;
    l->n++;
    return 0;
}

uint64_t fence_list_last(const struct fence_list *l)
{
    return l->n ? l->numbers[l->n - 1] : 0;
}

uint32_t fence_list_after(const struct fence_list *l, uint64_t after, uint32_t max,
                          const struct msg_fence **ret_fences, uint64_t *ret_upto)
{
    uint32_t at = fence_find(l, after), n = MIN(l->n - at, max);

    *ret_fences = n ? l->fences + at : NULL;
    *ret_upto = n ? l->numbers[at + n - 1] : MAX(after, fence_list_last(l));
    return n;
}

uint32_t fence_list_excess(const struct fence_list *l, uint64_t acked, uint32_t keep)
{
    uint32_t known = fence_find(l, acked);

    return l->n > keep ? MIN(known, l->n - keep) : 0;
}

void fence_list_drop(struct fence_list *l, uint32_t n)
{
    memmove(l->numbers, l->numbers + n, (l->n - n) * sizeof *l->numbers);
    memmove(l->fences, l->fences + n, (l->n - n) * sizeof *l->fences);
    l->n -= n;
}
