/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reactor: one thread that owns its connections, rings and timers, runs every callback to completion and never blocks but in one place.
 *
 * A turn: run posted and deferred work, poll sources (UCX workers, io_uring), fire due timers, then, if nothing was done: spin for spin_ns while requests
 * are in flight, arm every source, and sleep in epoll_wait with a finite time-out. Waking an idle core costs more than most requests; reactor_stats counts each sleep.
 *
 * Threads: everything but reactor_post() and reactor_stop() is called by the reactor's own thread, or before it runs. All objects are embedded in and owned by
 * their user, and must be removed before they are freed. Callbacks may add and remove anything, themselves included.
 */
#ifndef AIFS_COMMON_RT_REACTOR_H
#define AIFS_COMMON_RT_REACTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/clock.h"
#include "common/base/compiler.h"
#include "common/base/list.h"

struct reactor;

struct reactor_options {
    const char *name;          /* thread name and log tag, at most 15 bytes; borrowed */
    const struct clock *clock; /* NULL: clock_real() */
    uint64_t spin_ns;          /* 0: never spin */
    uint64_t max_sleep_ns;     /* 0: 1 s. Never sleeps longer, whatever a source promises */
};

/* Work to run once on the reactor: posted from any thread, or deferred by its own. Free for use again when fn starts. */
struct reactor_work {
    struct reactor_work *next;
    void (*fn)(struct reactor_work *w);
};

struct reactor_timer {
    uint64_t deadline_ns; /* on the reactor's clock */
    unsigned heap_index;  /* 0: not started */
    void (*fn)(struct reactor_timer *t);
};

/* A file descriptor; events are EPOLLIN/EPOLLOUT..., level-triggered. */
struct reactor_watch {
    int fd;
    uint32_t events;
    void (*fn)(struct reactor_watch *w, uint32_t events);
    bool added;
};

/* Something that is polled in user space and can be armed so that its descriptor becomes readable when there is more. */
struct reactor_source {
    struct list link;
    int (*progress)(struct reactor_source *s); /* how many things were done */
    bool (*arm)(struct reactor_source *s);     /* false: there is more already, do not sleep. May be NULL */
    bool (*busy)(struct reactor_source *s);    /* requests in flight, worth spinning for. May be NULL */
};

struct reactor_stats {
    uint64_t turns, sleeps, spins, timers_fired, work_run;
};

int reactor_create(const struct reactor_options *options, struct reactor **ret_reactor) MUST_USE;
void reactor_destroy(struct reactor *r); /* not running; no timers, watches or sources left */
void reactor_run(struct reactor *r);     /* until reactor_stop() */
bool reactor_run_once(struct reactor *r, uint64_t max_wait_ns); /* one turn; true if anything was done */
void reactor_stop(struct reactor *r);                           /* any thread, also from a signal handler */
bool reactor_is_current(const struct reactor *r);               /* is this its thread? */

void reactor_post(struct reactor *r, struct reactor_work *w);  /* any thread; order kept per poster */
void reactor_defer(struct reactor *r, struct reactor_work *w); /* own thread: later in this turn or in the next */

void reactor_timer_init(struct reactor_timer *t, void (*fn)(struct reactor_timer *t));
void reactor_timer_start(struct reactor *r, struct reactor_timer *t, uint64_t deadline_ns); /* restarts a running one */
void reactor_timer_cancel(struct reactor *r, struct reactor_timer *t);                      /* no-op if not started */
static inline bool reactor_timer_running(const struct reactor_timer *t)
{
    return t->heap_index != 0;
}

int reactor_watch_add(struct reactor *r, struct reactor_watch *w) MUST_USE; /* fd, events, fn filled in by the caller */
int reactor_watch_modify(struct reactor *r, struct reactor_watch *w, uint32_t events) MUST_USE;
void reactor_watch_remove(struct reactor *r, struct reactor_watch *w);

void reactor_source_add(struct reactor *r, struct reactor_source *s);
void reactor_source_remove(struct reactor *r, struct reactor_source *s);

uint64_t reactor_now_ns(struct reactor *r); /* monotonic, read once per turn */
const struct clock *reactor_clock(const struct reactor *r);
void reactor_get_stats(const struct reactor *r, struct reactor_stats *ret_stats);

#endif
