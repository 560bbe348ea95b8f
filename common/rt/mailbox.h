/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reactor's mailbox: a lock-free stack that many threads push to and one takes whole, and the
 * eventfd that wakes its owner. Whether the owner sleeps is a special value of the stack's head, so
 * that a post to an owner that is awake is one compare-and-swap and no system call, and of many
 * posts to a sleeping one only the first rings.
 *
 * Also the plain queue of work that the reactor's own thread has deferred.
 */
#ifndef AIFS_COMMON_RT_MAILBOX_H
#define AIFS_COMMON_RT_MAILBOX_H

#include <stdatomic.h>

#include "common/rt/reactor.h"

struct mailbox {
    _Atomic(struct reactor_work *) head; /* newest first; or the mark of a sleeping owner */
    int event_fd;
    _Atomic uint64_t wakes;
};

int mailbox_init(struct mailbox *m) MUST_USE; /* -errno of eventfd(2) */
void mailbox_fini(struct mailbox *m);         /* must be empty */

/* Any thread. */
void mailbox_post(struct mailbox *m, struct reactor_work *w);
void mailbox_ring(struct mailbox *m); /* wakes the owner in any case; async-signal-safe */
uint64_t mailbox_wakes(const struct mailbox *m);

/* The owner: everything posted so far, oldest first, or NULL. */
struct reactor_work *mailbox_take(struct mailbox *m);
/* Any thread; of this moment. */
bool mailbox_is_empty(const struct mailbox *m);
/* The owner: from now on posts ring. False: there is something to take, do not sleep. */
bool mailbox_sleep(struct mailbox *m) MUST_USE;
void mailbox_wake(struct mailbox *m);

struct work_queue {
    struct reactor_work *first, *last;
};

static inline bool work_queue_empty(const struct work_queue *q)
{
    return !q->first;
}

static inline void work_queue_push(struct work_queue *q, struct reactor_work *w)
{
    w->next = NULL;
    if (q->first)
        q->last->next = w;
    else
        q->first = w;
    q->last = w;
}

static inline struct reactor_work *work_queue_pop(struct work_queue *q)
{
    struct reactor_work *w = q->first;

    if (w)
        q->first = w->next;
    return w;
}

static inline struct reactor_work *work_queue_take(struct work_queue *q)
{
    struct reactor_work *w = q->first;

    q->first = NULL;
    return w;
}

#endif
