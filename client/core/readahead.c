/* SPDX-License-Identifier: Apache-2.0 */
/* Read-ahead detector: see the header for the idea. Nothing here can fail. */
#include "client/core/readahead.h"

#include "common/base/compiler.h"

#define SLACK_BYTES (512u * 1024u) /* how far requests of one stream may be out of order */

static bool near(const struct readahead *ra, uint64_t offset, uint32_t len)
{
    uint64_t slack =
        len >= 64 * KIB ? MAX((uint64_t)SLACK_BYTES, (uint64_t)len * 4) : (uint64_t)len * 2;
    uint64_t distance = offset > ra->next ? offset - ra->next : ra->next - offset;

    return distance <= slack;
}

struct readahead_plan readahead_next(struct readahead *ra, uint64_t offset, uint32_t len,
                                     uint64_t file_size, uint64_t unit, uint64_t max)
{
    struct readahead_plan plan = {0};
    uint64_t end = offset + len, target;

    if ((ra->run && near(ra, offset, len)) || (!ra->run && offset == 0)) {
        ra->run += ra->run < 1000000;
    } else {
        *ra = (struct readahead){.next = end, .run = 1};
        if (offset != 0)
            return plan; /* the next one decides */
    }
    plan.sequential = true;
    ra->next = MAX(ra->next, end);
    if (!max)
        return plan;
    if (ra->fetched > ra->next && ra->fetched - ra->next > ra->window / 2)
        return plan;
    ra->window = ra->window ? MIN(ra->window * 2, max) : MIN(MAX(unit, (uint64_t)len), max);
    plan.start = MAX(ra->next, ra->fetched);
    target = (ra->next + ra->window + unit - 1) / unit * unit;
    plan.end = MIN(target, file_size);
    if (plan.start >= plan.end) {
        plan.start = plan.end = 0;
        return plan;
    }
    ra->fetched = plan.end;
    return plan;
}
