/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reactor: one thread that owns its connections, rings and timers, runs every callback to
 * completion and never blocks but in one place.
 *
 * A turn: run posted and deferred work, poll sources (UCX workers, io_uring), fire due timers. If
 * nothing was done: spin (spin.h; up to spin_ns, and only while a source has requests in flight or
 * the owner says so), then arm every source and sleep in epoll with a finite time-out. Waking an
 * idle core costs more than most requests: reactor_stats counts each sleep, and a post to a reactor
 * that is awake costs no system call.
 *
 * Threads: everything but reactor_post(), reactor_stop(), reactor_is_current() and
 * reactor_get_stats() is called by the reactor's own thread, or before it runs. All objects are
 * embedded in and owned by their user, and must be removed before they are freed. Callbacks may add
 * and remove anything, themselves included; a watch or source that was removed is not called again,
 * not even for an event that had already been fetched. Callbacks never run the reactor.
 *
 * Threads may take turns at being its owner, by a lock of theirs that is not held during a turn:
 * run_once() and rest() make their caller the owner, who may let go of the reactor after them.
 * While nobody has it, reactor_fd() tells when somebody should.
 *
 * On a virtual clock use reactor_run_once(r, 0): it fires what is due by that clock and never
 * waits.
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
    /* For how long is what comes next worth spinning for at most (no longer than spin_ns)? 0: not
     * at all. NULL: for spin_ns as long as a source has requests in flight. */
    uint64_t (*spin_for_ns)(void *arg);
    void *spin_for_arg;
    uint64_t spin_away_ns; /* how long others get the core at least (spin.h); 0: 20 ms */
    uint64_t max_sleep_ns; /* 0: 1 s. Never sleeps longer, whatever a source promises */
};

/*
 * Work to run once on the reactor: posted from any thread, or deferred by its own. Free for use
 * again when fn starts.
 */
struct reactor_work {
    struct reactor_work *next;
    void (*fn)(struct reactor_work *w);
};

/* One shot. Due timers fire in the order of their deadlines, equal ones in the order of
 * starting. */
struct reactor_timer {
    uint64_t deadline_ns; /* on the reactor's clock */
    void (*fn)(struct reactor_timer *t);
    /* private */
    uint64_t order; /* 0: not started */
    struct reactor_timer *child, *next, *prev;
};

/* A file descriptor; events are EPOLLIN/EPOLLOUT..., level-triggered. Remove it before closing
 * fd. */
struct reactor_watch {
    int fd;
    uint32_t events;
    void (*fn)(struct reactor_watch *w, uint32_t events);
    bool of_source; /* tells of a source: what it does counts, the event itself does not. It may
                       stay readable until the source is armed, and would keep a spin going */
    bool added;
};

/*
 * Something that is polled in user space and can be armed so that its descriptor becomes readable
 * when there is more.
 */
struct reactor_source {
    struct list link;
    int (*progress)(struct reactor_source *s); /* how many things were done */
    bool (*arm)(
        struct reactor_source *s); /* false: there is more already, do not sleep. May be NULL */
    bool (*busy)(
        struct reactor_source *s); /* requests in flight, worth spinning for. May be NULL */
};

struct reactor_stats {
    uint64_t turns, sleeps, spins, timers_fired, work_run,
        wakes; /* wakes: posts that had to wake it */
};

/* -ENOMEM or the errno of epoll_create1(2), eventfd(2). */
int reactor_create(const struct reactor_options *options, struct reactor **ret_reactor) MUST_USE;
/*
 * Not running; no timers, watches, sources or work left (run_once() until it returns false), and
 * every thread that posts has come back from its last reactor_post(). NULL is a no-op.
 */
void reactor_destroy(struct reactor *r);
/*
 * When it has something to do without being told anything new, on its clock: 0 at once, else the
 * deadline of its first timer, UINT64_MAX never. Does not know of sources and watches. For one
 * thread that turns several reactors on a virtual clock.
 */
uint64_t reactor_due_ns(const struct reactor *r);
/* Until reactor_stop(); at once if that came first. Names the thread, unless it is the main one. */
void reactor_run(struct reactor *r);
/* One turn, waiting up to max_wait_ns for something to do; true if anything was done. */
bool reactor_run_once(struct reactor *r, uint64_t max_wait_ns);
/*
 * Before nobody turns it for a while: does what is ready; if that is nothing, arms every source. 0:
 * there may be more to do at once; else in how many nanoseconds there is. What comes before makes
 * reactor_fd() readable (poll(2) only), but for posts: whoever posts to a reactor without an owner
 * has to reactor_ring() too.
 */
uint64_t reactor_rest(struct reactor *r);
int reactor_fd(const struct reactor *r);
void reactor_ring(struct reactor *r); /* any thread */
/* Any thread, also from a signal handler. */
void reactor_stop(struct reactor *r);
/* Is this its thread (the one that created it, until another runs it)? Any thread. */
bool reactor_is_current(const struct reactor *r);
/* The spin_ns to use where nobody configured one: 0 on up to two cores. */
uint64_t reactor_spin_default_ns(void);
uint64_t reactor_spin_watches_ns(void); /* for watches, with spin_for_ns: 0 on one core */

/* Any thread; order kept per poster. */
void reactor_post(struct reactor *r, struct reactor_work *w);
/* Own thread: runs later in this turn or in the next. */
void reactor_defer(struct reactor *r, struct reactor_work *w);

void reactor_timer_init(struct reactor_timer *t, void (*fn)(struct reactor_timer *t));
/* Restarts a running one. A deadline in the past fires in this turn or the next, never inside. */
void reactor_timer_start(struct reactor *r, struct reactor_timer *t, uint64_t deadline_ns);
/* No-op if not started. */
void reactor_timer_cancel(struct reactor *r, struct reactor_timer *t);
static inline bool reactor_timer_running(const struct reactor_timer *t)
{
    return t->order != 0;
}

/* fd, events and fn are filled in by the caller; -errno of epoll_ctl(2). */
int reactor_watch_add(struct reactor *r, struct reactor_watch *w) MUST_USE;
int reactor_watch_modify(struct reactor *r, struct reactor_watch *w, uint32_t events) MUST_USE;
/* No-op if not added. */
void reactor_watch_remove(struct reactor *r, struct reactor_watch *w);

void reactor_source_add(struct reactor *r, struct reactor_source *s);
void reactor_source_remove(struct reactor *r, struct reactor_source *s);

/* Monotonic, read once per turn. */
uint64_t reactor_now_ns(struct reactor *r);
const struct clock *reactor_clock(const struct reactor *r);
/* Any thread; the counters are read one by one. */
void reactor_get_stats(const struct reactor *r, struct reactor_stats *ret_stats);

#endif
