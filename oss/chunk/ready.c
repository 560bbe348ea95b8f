// SPDX-License-Identifier: Apache-2.0
/*
 * Space for the next writes, on targets that live in memory (tmpfs). What was used before is
 * cheaper to use again than to give back and get anew (page by page, and on a virtual machine from
 * its host), and a stream into slots that are there and mapped costs a third of one into fresh ones
 * (place.c). So empty groups are kept while there are writes, and while nothing at all is asked
 * for, some slots are allocated and filled in before they are needed.
 *
 * The reactor backs a group (2.5 ms), with at least four times as long between two; a thread of low
 * priority fills slots in, a slot at a time, which takes 0.3 ms or, where a virtual machine gets
 * its memory when it is touched, up to 6. It holds no lock of a file meanwhile, so nobody waits for
 * it. On a target that was never asked for anything this begins at once, else when there was no
 * request for a while, and the first request ends it. It is not data: used space does not count it,
 * and what is free is what it was. What cannot be had is not there: no failures.
 *
 * A slot may be taken, and a group be given back, while its memory is being filled in. The first
 * does no harm. After the second there are pages again that nobody counts: they are given back once
 * more.
 */
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "common/base/assert.h"
#include "oss/chunk/store_int.h"

/* Empty groups: how much is kept while there are writes, how many turns of the space timer after
 * that, and what one turn gives back at most. Of what is available, a part is kept, and a part is
 * made ready. */
#define READY_MAX_BYTES  (512ull * MIB)
#define READY_IDLE_BYTES (64ull * MIB)
#define READY_IDLE_TURNS 15u
#define READY_STEP_BYTES (64ull * MIB)
#define READY_KEEP_PART  16u
#define READY_FREE_PART  64u
#define READY_FIRST_PART 4u   /* of target.ready; more when streams were short of it */
#define READY_CALM_TURNS 300u /* of the space timer, until half of it goes */
#define READY_CLASS      CHUNK_PLACE_CLASS_MAX /* what streams are written in */
#define READY_QUIET_NS   (200 * NS_PER_MS)
#define READY_PAUSE_NS   (4 * NS_PER_MS)
#define READY_PAUSES     4u
#define FILL_BYTES       (64u * KIB)
#define HELPER_NICER     5

/* What processes can have without swapping; 0: not known. */
static uint64_t memory_available(void)
{
    unsigned long long kib = 0;
    char line[128];
    FILE *f = fopen("/proc/meminfo", "re");

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib * KIB;
}

/* What streams would find useful: as much as they had to get for themselves on top of what was
 * there. It comes back to what a target begins with when nobody takes much of it any more. */
static void look_at_demand(struct chunk_store *s)
{
    const struct slots_class *c = &s->slots.classes[READY_CLASS - CHUNK_CLASS_MIN];
    uint64_t most = s->options.ready_bytes, least = most / READY_FIRST_PART;
    struct chunk_ready *r = &s->ready;

    if (c->late_bytes != r->late || c->taken_bytes - r->taken > r->ahead / 4) {
        r->calm = 0;
    } else if (++r->calm >= READY_CALM_TURNS) {
        r->calm = 0;
        r->want /= 2;
    }
    r->want = MIN(most, MAX(least, r->want + (c->late_bytes - r->late)));
    r->late = c->late_bytes;
    r->taken = c->taken_bytes;
}

/* How much is to be ready while nothing is written. avail: what there is but data. */
static uint64_t ahead_bytes(const struct chunk_store *s, uint64_t avail)
{
    if (s->failed || !s->super.target_id) /* perhaps it is not to be used at all */
        return 0;
    return MIN(MIN(MIN(s->ready.want, s->options.mapped_bytes), s->slots.capacity_bytes / 8),
               avail / READY_FREE_PART);
}

/* ---- while nothing is asked for ---- */

static void wait_for_quiet(struct chunk_store *s)
{
    struct chunk_ready *r = &s->ready;
    uint64_t ns = s->n_ops ? READY_QUIET_NS : READY_PAUSE_NS;

    r->n_ops = s->n_ops;
    r->at = 0;
    r->passed = 0;
    reactor_timer_start(s->reactor, &r->timer, reactor_now_ns(s->reactor) + ns);
}

/* Only the calling thread's: others run first. */
static void be_patient(void)
{
    static _Thread_local bool patient;
    struct sched_param p = {0};

    if (patient)
        return;
    patient = true;
    (void)sched_setscheduler(0, SCHED_BATCH, &p);
    (void)setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + HELPER_NICER);
}

/* In small steps: each keeps others of this process from changing their mappings. */
static void fill_run(struct worker_job *j)
{
    struct chunk_ready *r = container_of(j, struct chunk_ready, job);
    size_t bytes = (size_t)1 << r->slot.class;

    if (r->beside)
        be_patient();
    r->status = 0;
    for (size_t at = 0; at < bytes && r->status == 0; at += FILL_BYTES)
        r->status = madvise(r->memory + at, MIN(FILL_BYTES, bytes - at), MADV_POPULATE_WRITE);
}

static void prepare(struct chunk_store *s);

static void pause_since(struct chunk_store *s, uint64_t begun)
{
    uint64_t now = clock_mono_ns(reactor_clock(s->reactor));

    reactor_timer_start(s->reactor, &s->ready.timer,
                        now + MAX(READY_PAUSE_NS, (now - begun) * READY_PAUSES));
}

static void fill_done(struct worker_job *j)
{
    struct chunk_store *s = container_of(j, struct chunk_store, ready.job);
    struct chunk_ready *r = &s->ready;

    r->busy = false;
    if (r->lost && !slots_is_backed(&s->slots, r->slot))
        seg_slots_ops.unback(&s->seg, r->slot.class, r->slot.number, 1);
    else if (!r->lost && r->status == 0)
        chunk_place_prepared(s, r->slot);
    if (r->stopped) {
        r->stopped(s);
        return;
    }
    if (!reactor_timer_running(&r->timer) && r->status == 0 && r->ahead) {
        r->at = r->slot.number + 1;
        r->passed += 1ull << READY_CLASS;
        if (r->beside)
            prepare(s);
        else
            pause_since(s, reactor_now_ns(s->reactor));
    }
}

static bool have_helper(struct chunk_ready *r)
{
    if (!r->helper && worker_pool_create("ready", 1, &r->helper) == 0)
        r->beside = true;
    return r->helper || worker_pool_create("ready", 0, &r->helper) == 0;
}

/* The next slot; or a group, and on after a pause. It ends when there is enough, or no more. */
static void prepare(struct chunk_store *s)
{
    struct chunk_ready *r = &s->ready;
    uint64_t begun = clock_mono_ns(reactor_clock(s->reactor));
    struct chunk_slot slot;
    int rc = 0;

    if (s->n_ops != r->n_ops || s->batch_posted || !list_empty(&s->dirty)) {
        wait_for_quiet(s);
        return;
    }
    while (r->passed < r->ahead) {
        if (!slots_free_from(&s->slots, READY_CLASS, r->at, &slot)) {
            if (slots_back_ahead(&s->slots, READY_CLASS) == 0)
                pause_since(s, begun);
            return;
        }
        rc = chunk_place_prepare(s, slot, &r->memory);
        if (rc != 0)
            break;
        r->at = slot.number + 1;
        r->passed += 1ull << READY_CLASS;
    }
    if (rc <= 0 || !have_helper(r))
        return;
    r->slot = slot;
    r->busy = true;
    r->lost = false;
    r->job = (struct worker_job){.run = fill_run, .done = fill_done};
    worker_pool_submit(r->helper, s->reactor, &r->job);
}

static void on_timer(struct reactor_timer *t)
{
    prepare(container_of(t, struct chunk_store, ready.timer));
}

/* ---- turns of the space timer ---- */

/* How much is kept of what was used before. */
static uint64_t keep_bytes(const struct chunk_store *s, uint64_t avail)
{
    const struct chunk_ready *r = &s->ready;
    uint64_t least = MIN(READY_IDLE_BYTES, s->slots.capacity_bytes / 8);
    uint64_t most = r->idle < READY_IDLE_TURNS ? READY_MAX_BYTES : r->want;

    return MAX(MAX(least, r->ahead), MIN(most, avail / READY_KEEP_PART));
}

void chunk_ready_turn(struct chunk_store *s)
{
    struct chunk_ready *r = &s->ready;
    uint64_t keep, room, avail;
    struct statvfs v;

    if (!s->seg.in_memory || fstatvfs(s->dir_fd, &v) < 0)
        return;
    room = MIN((uint64_t)v.f_bavail * v.f_frsize, memory_available());
    avail = room + s->slots.empty_bytes;
    look_at_demand(s);
    r->ahead = ahead_bytes(s, avail);
    r->idle = s->seq == r->seq ? r->idle + 1 : 0;
    r->seq = s->seq;
    keep = s->slots.keep_bytes = keep_bytes(s, avail);
    if (room > s->slots.empty_bytes && s->slots.empty_bytes > READY_STEP_BYTES)
        keep = MAX(keep, s->slots.empty_bytes - READY_STEP_BYTES); /* it takes a while */
    slots_trim(&s->slots, READY_CLASS, keep);
    if (r->ahead && !r->busy && !reactor_timer_running(&r->timer))
        wait_for_quiet(s);
}

void chunk_ready_init(struct chunk_store *s)
{
    reactor_timer_init(&s->ready.timer, on_timer);
}

void chunk_ready_stop(struct chunk_store *s)
{
    s->ready.ahead = 0;
    reactor_timer_cancel(s->reactor, &s->ready.timer);
}

bool chunk_ready_wait(struct chunk_store *s, void (*stopped)(struct chunk_store *s))
{
    s->ready.stopped = stopped;
    return s->ready.busy;
}

void chunk_ready_fini(struct chunk_store *s)
{
    ASSERT(!s->ready.busy);
    worker_pool_destroy(s->ready.helper);
}
