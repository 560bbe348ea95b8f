/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reactor's turn, and its watches, timers and sources. The mailbox is in mailbox.c.
 *
 * Happy path: a watch fires, its callback starts requests; they complete through a source, a watch
 * or posted work; deadlines are timers. Each turn does what is there and only then looks at epoll.
 *
 * Failure modes: creation and adding watches return -errno; everything else cannot fail. Objects
 * removed while a batch of events or a walk over the sources is under way are taken out of it.
 */
#include "common/rt/reactor.h"

#include <pthread.h>
#include <sched.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/cleanup.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/rt/mailbox.h"
#include "common/rt/spin.h"
#include "common/rt/timer_heap.h"

#define REACTOR_BATCH        64 /* epoll events fetched at once */
#define REACTOR_POLL_TURNS   16 /* busy turns in a row before epoll is looked at all the same */
#define REACTOR_SPIN_DEFAULT (20 * NS_PER_US)
#define REACTOR_SPIN_WATCHES (200 * NS_PER_US)

struct reactor_counters {
    _Atomic uint64_t turns, sleeps, spins, timers_fired, work_run;
};

struct reactor {
    const struct clock *clock;
    char name[16];
    uint64_t max_sleep_ns;
    struct spin spin;
    uint64_t (*spin_for_ns)(void *arg);
    void *spin_for_arg;
    uint64_t now_ns;
    bool in_turn;
    bool no_pwait2; /* the kernel has no epoll_pwait2(2) */
    unsigned turns_without_poll;
    _Atomic bool stop;
    _Atomic uintptr_t owner; /* address of the owning thread's thread_mark */

    int epoll_fd;
    struct mailbox mailbox;
    struct work_queue deferred;
    struct timer_heap timers;
    struct list sources;
    struct list *next_source; /* of the walk under way */
    unsigned n_watches;
    struct epoll_event events[REACTOR_BATCH]; /* data.ptr: the watch; NULL: mailbox, or removed */
    int n_events, next_event;
    struct reactor_counters counters;
};

static _Thread_local char thread_mark;

/* One writer: no locked instruction needed. */
static void counter_add(_Atomic uint64_t *counter, uint64_t n)
{
    uint64_t v = atomic_load_explicit(counter, memory_order_relaxed);

    atomic_store_explicit(counter, v + n, memory_order_relaxed);
}

/* ---- life ---- */

int reactor_create(const struct reactor_options *options, struct reactor **ret_reactor)
{
    struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
    struct reactor *r = mem_zalloc(sizeof(*r));
    int rc;

    if (!r)
        return -ENOMEM;
    for (unsigned i = 0; options->name && options->name[i] && i < sizeof(r->name) - 1; i++)
        r->name[i] = options->name[i];
    r->clock = options->clock ? options->clock : clock_real();
    spin_init(&r->spin, options->spin_ns, options->spin_away_ns);
    r->spin_for_ns = options->spin_for_ns;
    r->spin_for_arg = options->spin_for_arg;
    r->max_sleep_ns = options->max_sleep_ns ? options->max_sleep_ns : NS_PER_S;
    r->now_ns = clock_mono_ns(r->clock);
    list_init(&r->sources);
    atomic_store(&r->owner, (uintptr_t)&thread_mark);
    r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (r->epoll_fd < 0) {
        rc = -errno;
        LOG_ERROR(r->name, "epoll_create1: %m");
        goto err_free;
    }
    rc = mailbox_init(&r->mailbox);
    if (rc < 0) {
        LOG_ERROR(r->name, "eventfd: %s", err_text(rc));
        goto err_close;
    }
    /* Edge-triggered: each write is one event, and the descriptor never has to be read. */
    if (epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, r->mailbox.event_fd, &ev) < 0) {
        rc = -errno;
        LOG_ERROR(r->name, "epoll_ctl: %m");
        goto err_mailbox;
    }
    *ret_reactor = r;
    return 0;

err_mailbox:
    mailbox_fini(&r->mailbox);
err_close:
    close(r->epoll_fd);
err_free:
    mem_free(r);
    return rc;
}

void reactor_destroy(struct reactor *r)
{
    if (!r)
        return;
    ASSERT(!r->in_turn);
    ASSERT(!r->timers.root);
    ASSERT(r->n_watches == 0);
    ASSERT(list_empty(&r->sources));
    ASSERT(work_queue_empty(&r->deferred));
    mailbox_fini(&r->mailbox);
    close(r->epoll_fd);
    mem_free(r);
}

void reactor_stop(struct reactor *r)
{
    atomic_store(&r->stop, true);
    mailbox_ring(&r->mailbox);
}

bool reactor_is_current(const struct reactor *r)
{
    return atomic_load_explicit(&r->owner, memory_order_relaxed) == (uintptr_t)&thread_mark;
}

static unsigned cores(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) < 0 ? 1 : (unsigned)CPU_COUNT(&set);
}

uint64_t reactor_spin_default_ns(void)
{
    return cores() > 2 ? REACTOR_SPIN_DEFAULT : 0;
}

uint64_t reactor_spin_watches_ns(void)
{
    return cores() > 1 ? REACTOR_SPIN_WATCHES : 0;
}

/* ---- work ---- */

void reactor_post(struct reactor *r, struct reactor_work *w)
{
    mailbox_post(&r->mailbox, w);
}

void reactor_defer(struct reactor *r, struct reactor_work *w)
{
    work_queue_push(&r->deferred, w);
}

static unsigned reactor_run_list(struct reactor *r, struct reactor_work *w)
{
    unsigned n = 0;

    while (w) {
        struct reactor_work *next = w->next; /* w may be gone once fn starts */

        w->fn(w);
        w = next;
        n++;
    }
    counter_add(&r->counters.work_run, n);
    return n;
}

/* What the work itself posts or defers waits for the next turn: a turn always ends. */
static unsigned reactor_run_work(struct reactor *r)
{
    unsigned n = reactor_run_list(r, mailbox_take(&r->mailbox));

    if (!work_queue_empty(&r->deferred))
        n += reactor_run_list(r, work_queue_take(&r->deferred));
    return n;
}

/* ---- timers ---- */

void reactor_timer_init(struct reactor_timer *t, void (*fn)(struct reactor_timer *t))
{
    *t = (struct reactor_timer){.fn = fn};
}

void reactor_timer_start(struct reactor *r, struct reactor_timer *t, uint64_t deadline_ns)
{
    if (reactor_timer_running(t))
        timer_heap_remove(&r->timers, t);
    t->deadline_ns = deadline_ns;
    timer_heap_insert(&r->timers, t);
}

void reactor_timer_cancel(struct reactor *r, struct reactor_timer *t)
{
    if (reactor_timer_running(t))
        timer_heap_remove(&r->timers, t);
}

/* A timer started meanwhile waits for the next turn, even if it is due: a turn always ends. */
static unsigned reactor_fire_timers(struct reactor *r)
{
    uint64_t last_order = r->timers.next_order;
    struct reactor_timer *t;
    unsigned n = 0;

    while ((t = r->timers.root) && t->deadline_ns <= r->now_ns && t->order <= last_order) {
        timer_heap_remove(&r->timers, t);
        t->fn(t);
        n++;
    }
    if (n)
        counter_add(&r->counters.timers_fired, n);
    return n;
}

/* ---- watches ---- */

static int reactor_watch_ctl(struct reactor *r, int op, struct reactor_watch *w)
{
    struct epoll_event ev = {.events = w->events, .data.ptr = w};

    return epoll_ctl(r->epoll_fd, op, w->fd, &ev) < 0 ? -errno : 0;
}

int reactor_watch_add(struct reactor *r, struct reactor_watch *w)
{
    int rc;

    ASSERT(!w->added);
    rc = reactor_watch_ctl(r, EPOLL_CTL_ADD, w);
    if (rc < 0)
        return rc;
    w->added = true;
    r->n_watches++;
    return 0;
}

int reactor_watch_modify(struct reactor *r, struct reactor_watch *w, uint32_t events)
{
    uint32_t old = w->events;
    int rc;

    ASSERT(w->added);
    if (old == events)
        return 0;
    w->events = events;
    rc = reactor_watch_ctl(r, EPOLL_CTL_MOD, w);
    if (rc < 0)
        w->events = old;
    return rc;
}

void reactor_watch_remove(struct reactor *r, struct reactor_watch *w)
{
    if (!w->added)
        return;
    /* Fails only when fd was closed first: it may by now be somebody else's. */
    ASSERT(reactor_watch_ctl(r, EPOLL_CTL_DEL, w) == 0);
    w->added = false;
    r->n_watches--;
    for (int i = r->next_event; i < r->n_events; i++)
        if (r->events[i].data.ptr == w)
            r->events[i].data.ptr = NULL;
}

static unsigned reactor_dispatch(struct reactor *r)
{
    unsigned n = 0;

    while (r->next_event < r->n_events) {
        struct epoll_event *ev = &r->events[r->next_event++];
        struct reactor_watch *w = ev->data.ptr;
        uint32_t events;

        if (!w)
            continue;
        events =
            ev->events & (w->events | EPOLLERR | EPOLLHUP); /* modified since it was fetched? */
        if (events) {
            n += !w->of_source; /* before the call: it may be gone after it */
            w->fn(w, events);
        }
    }
    r->n_events = r->next_event = 0;
    return n;
}

/* ---- sources ---- */

void reactor_source_add(struct reactor *r, struct reactor_source *s)
{
    list_push_back(&r->sources, &s->link);
}

void reactor_source_remove(struct reactor *r, struct reactor_source *s)
{
    if (r->next_source == &s->link)
        r->next_source = s->link.next;
    list_remove(&s->link);
}

/* The next source of the walk, which survives the removal of any of them; NULL at the end. */
static struct reactor_source *reactor_next_source(struct reactor *r)
{
    struct list *l = r->next_source;

    if (l == &r->sources)
        return NULL;
    r->next_source = l->next;
    return list_entry(l, struct reactor_source, link);
}

static unsigned reactor_poll_sources(struct reactor *r)
{
    struct reactor_source *s;
    unsigned n = 0;

    r->next_source = r->sources.next;
    while ((s = reactor_next_source(r))) {
        int done = s->progress(s);

        n += done > 0 ? (unsigned)done : 0;
    }
    r->next_source = NULL;
    return n;
}

static bool reactor_arm_sources(struct reactor *r)
{
    struct reactor_source *s;
    bool armed = true;

    r->next_source = r->sources.next;
    while (armed && (s = reactor_next_source(r)))
        armed = !s->arm || s->arm(s);
    r->next_source = NULL;
    return armed;
}

static bool reactor_sources_busy(struct reactor *r)
{
    struct reactor_source *s;
    bool busy = false;

    r->next_source = r->sources.next;
    while (!busy && (s = reactor_next_source(r)))
        busy = s->busy && s->busy(s);
    r->next_source = NULL;
    return busy;
}

/* ---- the turn ---- */

static uint64_t reactor_refresh_now(struct reactor *r)
{
    uint64_t now_ns = clock_mono_ns(r->clock);

    if (now_ns > r->now_ns)
        r->now_ns = now_ns;
    return r->now_ns;
}

uint64_t reactor_now_ns(struct reactor *r)
{
    return r->in_turn ? r->now_ns : reactor_refresh_now(r);
}

const struct clock *reactor_clock(const struct reactor *r)
{
    return r->clock;
}

/* Fetches what epoll has, waiting up to timeout_ns. */
static unsigned reactor_poll(struct reactor *r, uint64_t timeout_ns)
{
    struct timespec ts = {.tv_sec = (time_t)(timeout_ns / NS_PER_S),
                          .tv_nsec = (long)(timeout_ns % NS_PER_S)};
    int n = -1;

    r->turns_without_poll = 0;
    if (timeout_ns == 0) {
        n = epoll_wait(r->epoll_fd, r->events, REACTOR_BATCH, 0);
    } else {
        if (!r->no_pwait2)
            n = epoll_pwait2(r->epoll_fd, r->events, REACTOR_BATCH, &ts, NULL);
        if (n < 0 && !r->no_pwait2 && (errno == ENOSYS || errno == EPERM))
            r->no_pwait2 = true;
        if (n < 0 && r->no_pwait2)
            n = epoll_wait(r->epoll_fd, r->events, REACTOR_BATCH,
                           (int)MIN((timeout_ns + NS_PER_MS - 1) / NS_PER_MS, 60000u));
    }
    ASSERT(n >= 0 || errno == EINTR);
    r->next_event = 0;
    r->n_events = MAX(n, 0);
    return reactor_dispatch(r);
}

/* How long nothing of our own will be due, up to max_wait_ns. */
static uint64_t reactor_sleep_ns(struct reactor *r, uint64_t max_wait_ns)
{
    uint64_t wait_ns = MIN(max_wait_ns, r->max_sleep_ns);

    if (!r->timers.root)
        return wait_ns;
    if (r->timers.root->deadline_ns <= r->now_ns)
        return 0;
    return MIN(wait_ns, r->timers.root->deadline_ns - r->now_ns);
}

/* Nothing to do: is it worth looking again at once? If so others go first. */
static bool reactor_should_spin(struct reactor *r)
{
    uint64_t for_ns = UINT64_MAX, before_ns;

    if (r->spin_for_ns)
        for_ns = r->spin_for_ns(r->spin_for_arg);
    else if (!reactor_sources_busy(r))
        for_ns = 0;
    if (for_ns == 0 || !spin_wanted(&r->spin, r->now_ns, for_ns))
        return false;
    before_ns = clock_mono_ns(r->clock);
    sched_yield();
    spin_yielded(&r->spin, before_ns, clock_mono_ns(r->clock));
    counter_add(&r->counters.spins, 1);
    return true;
}

static unsigned reactor_wait(struct reactor *r, uint64_t max_wait_ns)
{
    uint64_t wait_ns = reactor_sleep_ns(r, max_wait_ns);
    unsigned n;

    if (wait_ns == 0)
        return reactor_poll(r, 0);
    if (reactor_should_spin(r))
        return reactor_poll(r, 0);
    if (!reactor_arm_sources(r) || !work_queue_empty(&r->deferred))
        return reactor_poll(r, 0);
    wait_ns = reactor_sleep_ns(r, max_wait_ns); /* arming may have started a timer */
    if (!mailbox_sleep(&r->mailbox))
        return reactor_poll(r, 0);
    counter_add(&r->counters.sleeps, 1);
    n = reactor_poll(r, wait_ns);
    mailbox_wake(&r->mailbox);
    return n;
}

static unsigned reactor_do_ready(struct reactor *r)
{
    unsigned n = reactor_run_work(r);

    n += reactor_poll_sources(r);
    n += reactor_fire_timers(r);
    return n;
}

static unsigned reactor_turn(struct reactor *r, uint64_t max_wait_ns)
{
    unsigned n;

    ASSERT(!r->in_turn);
    r->in_turn = true;
    counter_add(&r->counters.turns, 1);
    reactor_refresh_now(r);
    n = reactor_do_ready(r);
    if (n > 0) {
        if (++r->turns_without_poll >= REACTOR_POLL_TURNS)
            n += reactor_poll(r, 0);
    } else {
        n = reactor_wait(r, max_wait_ns);
        reactor_refresh_now(r);
        n += reactor_do_ready(r);
    }
    if (n > 0)
        spin_came(&r->spin, r->now_ns);
    r->in_turn = false;
    return n;
}

uint64_t reactor_due_ns(const struct reactor *r)
{
    if (!mailbox_is_empty(&r->mailbox) || !work_queue_empty(&r->deferred))
        return 0;
    return r->timers.root ? r->timers.root->deadline_ns : UINT64_MAX;
}

bool reactor_run_once(struct reactor *r, uint64_t max_wait_ns)
{
    atomic_store_explicit(&r->owner, (uintptr_t)&thread_mark, memory_order_relaxed);
    return reactor_turn(r, max_wait_ns) > 0;
}

uint64_t reactor_rest(struct reactor *r)
{
    bool armed;

    atomic_store_explicit(&r->owner, (uintptr_t)&thread_mark, memory_order_relaxed);
    r->in_turn = true;
    reactor_refresh_now(r);
    armed = reactor_do_ready(r) == 0 && reactor_arm_sources(r);
    r->in_turn = false;
    /* arming may have deferred work and started timers */
    return armed && reactor_due_ns(r) != 0 ? reactor_sleep_ns(r, r->max_sleep_ns) : 0;
}

int reactor_fd(const struct reactor *r)
{
    return r->epoll_fd;
}

void reactor_ring(struct reactor *r)
{
    mailbox_ring(&r->mailbox);
}

void reactor_run(struct reactor *r)
{
    atomic_store_explicit(&r->owner, (uintptr_t)&thread_mark, memory_order_relaxed);
    if (r->name[0] && gettid() != getpid()) /* the main thread's name is the program's, for ps */
        pthread_setname_np(pthread_self(), r->name);
    while (!atomic_load(&r->stop))
        reactor_turn(r, r->max_sleep_ns);
    atomic_store(&r->stop, false);
}

void reactor_get_stats(const struct reactor *r, struct reactor_stats *ret_stats)
{
    const struct reactor_counters *c = &r->counters;

    *ret_stats = (struct reactor_stats){
        .turns = atomic_load_explicit(&c->turns, memory_order_relaxed),
        .sleeps = atomic_load_explicit(&c->sleeps, memory_order_relaxed),
        .spins = atomic_load_explicit(&c->spins, memory_order_relaxed),
        .timers_fired = atomic_load_explicit(&c->timers_fired, memory_order_relaxed),
        .work_run = atomic_load_explicit(&c->work_run, memory_order_relaxed),
        .wakes = mailbox_wakes(&r->mailbox),
    };
}
