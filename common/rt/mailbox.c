/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mailbox of a reactor.
 *
 * Happy path: posters push with compare-and-swap; the owner takes the whole stack with one exchange
 * and reverses it, so there is no ABA problem and the order of each poster is kept. Before sleeping
 * the owner swaps the empty head for MAILBOX_ASLEEP; the poster that finds that mark rings.
 *
 * Failure modes: creating the eventfd. Writing to it can only fail by EAGAIN at 2^64 - 2 unread
 * wake-ups, when the owner is awake for good reason.
 */
#include "common/rt/mailbox.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/assert.h"

static struct reactor_work mailbox_asleep;
#define MAILBOX_ASLEEP (&mailbox_asleep)

int mailbox_init(struct mailbox *m)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (fd < 0)
        return -errno;
    m->event_fd = fd;
    atomic_init(&m->head, NULL);
    atomic_init(&m->wakes, 0);
    return 0;
}

void mailbox_fini(struct mailbox *m)
{
    ASSERT(!atomic_load(&m->head));
    close(m->event_fd);
    m->event_fd = -1;
}

void mailbox_ring(struct mailbox *m)
{
    int saved = errno; /* may run in a signal handler */
    uint64_t one = 1;
    ssize_t n = write(m->event_fd, &one, sizeof(one));

    (void)n;
    errno = saved;
}

void mailbox_post(struct mailbox *m, struct reactor_work *w)
{
    struct reactor_work *old = atomic_load_explicit(&m->head, memory_order_relaxed);

    do {
        w->next = old == MAILBOX_ASLEEP ? NULL : old;
    } while (!atomic_compare_exchange_weak_explicit(&m->head, &old, w, memory_order_acq_rel,
                                                    memory_order_relaxed));
    if (old == MAILBOX_ASLEEP) {
        atomic_fetch_add_explicit(&m->wakes, 1, memory_order_relaxed);
        mailbox_ring(m);
    }
}

uint64_t mailbox_wakes(const struct mailbox *m)
{
    return atomic_load_explicit(&m->wakes, memory_order_relaxed);
}

struct reactor_work *mailbox_take(struct mailbox *m)
{
    struct reactor_work *w, *next, *oldest_first = NULL;

    if (!atomic_load_explicit(&m->head, memory_order_relaxed))
        return NULL;
    w = atomic_exchange_explicit(&m->head, NULL, memory_order_acquire);
    for (; w && w != MAILBOX_ASLEEP; w = next) {
        next = w->next;
        w->next = oldest_first;
        oldest_first = w;
    }
    return oldest_first;
}

bool mailbox_is_empty(const struct mailbox *m)
{
    const struct reactor_work *w = atomic_load_explicit(&m->head, memory_order_acquire);

    return !w || w == MAILBOX_ASLEEP;
}

bool mailbox_sleep(struct mailbox *m)
{
    struct reactor_work *empty = NULL;

    return atomic_compare_exchange_strong_explicit(&m->head, &empty, MAILBOX_ASLEEP,
                                                   memory_order_acq_rel, memory_order_relaxed);
}

void mailbox_wake(struct mailbox *m)
{
    struct reactor_work *asleep = MAILBOX_ASLEEP;

    atomic_compare_exchange_strong_explicit(&m->head, &asleep, NULL, memory_order_acq_rel,
                                            memory_order_relaxed);
}
