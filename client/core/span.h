/* SPDX-License-Identifier: Apache-2.0 */
/* One request to the target of each stripe of a range of a file: span.c. */
#ifndef AIFS_CLIENT_CORE_SPAN_H
#define AIFS_CLIENT_CORE_SPAN_H

#include "client/core/core_int.h"

/*
 * PUNCH or SEEK of [start, end) on the target of each stripe in it, some at a time. Lives in
 * q->p.flush; done() when the last has ended, with q->p.error, and of a seek with found: the first
 * data or hole, or end. Cancellable.
 */
struct span {
    uint64_t start, end, found;
    uint64_t next, last; /* chunks: each the first of its stripe */
    enum oss_kind kind;
    bool hole, filling;
    void (*done)(struct core_req *q, const struct span *s);
};
void span_start(struct core_req *q, const struct span *what);

#endif
