// SPDX-License-Identifier: Apache-2.0
/*
 * Space for the next writes, on targets that live in memory (tmpfs). What was used before is
 * cheaper to use again than to give back and get anew (page by page, and on a virtual machine from
 * its host), and a stream into slots that are there and mapped costs a third of one into fresh ones
 * (place.c). So empty groups are kept while there are writes, and while nothing at all is asked
 * for, some slots are allocated and filled in before they are needed.
 *
 * That is done on the reactor, in steps of a slot or a group (0.3 to 3 ms), with at least four
 * times as long between them; the first request ends it, and it goes on when there was none for a
 * while. It is not data: used space does not count it, and what is free is what it was. What
 * cannot be had is not there: no failures.
 */
#include <stdio.h>
#include <sys/statvfs.h>

#include "oss/chunk/store_int.h"

/* Empty groups: how much is kept while there are writes, how many turns of the space timer after
 * that, and what one turn gives back at most. */
#define READY_MAX_BYTES  (512ull * MIB)
#define READY_IDLE_BYTES (64ull * MIB)
#define READY_IDLE_TURNS 15u
#define READY_STEP_BYTES (64ull * MIB)
#define READY_FREE_PART  64u
#define READY_CLASS      CHUNK_PLACE_CLASS_MAX /* what streams are written in */
#define READY_QUIET_NS   (200 * NS_PER_MS)
#define READY_PAUSE_NS   (4 * NS_PER_MS)
#define READY_PAUSES     4u

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

/* How much is to be ready while nothing is written. */
static uint64_t ahead_bytes(const struct chunk_store *s, uint64_t avail)
{
    uint64_t bytes = MIN(s->options.ready_bytes, s->options.mapped_bytes);

    if (!bytes || s->failed || !s->super.target_id) /* perhaps it is not to be used at all */
        return 0;
    return MIN(MIN(bytes, s->slots.capacity_bytes / 8),
               MIN(avail, memory_available()) / READY_FREE_PART);
}

/* ---- while nothing is asked for ---- */

/* One more slot or group; false: there is enough, or no more to be had. */
static bool prepare(struct chunk_store *s)
{
    struct chunk_ready *r = &s->ready;
    struct chunk_slot slot;
    int rc = 0;

    while (r->passed < r->ahead && rc == 0) {
        if (!slots_free_from(&s->slots, READY_CLASS, r->at, &slot))
            return slots_back_ahead(&s->slots, READY_CLASS) == 0;
        rc = chunk_place_prepare(s, slot);
        r->at = slot.number + 1;
        r->passed += 1ull << READY_CLASS;
    }
    return rc > 0;
}

static void wait_for_quiet(struct chunk_store *s)
{
    struct chunk_ready *r = &s->ready;

    r->n_ops = s->n_ops;
    r->at = 0;
    r->passed = 0;
    reactor_timer_start(s->reactor, &r->timer, reactor_now_ns(s->reactor) + READY_QUIET_NS);
}

static void on_timer(struct reactor_timer *t)
{
    struct chunk_store *s = container_of(t, struct chunk_store, ready.timer);
    uint64_t begun = clock_mono_ns(reactor_clock(s->reactor)), now;

    if (s->n_ops != s->ready.n_ops || s->batch_posted || !list_empty(&s->dirty)) {
        wait_for_quiet(s);
        return;
    }
    if (!prepare(s))
        return;
    now = clock_mono_ns(reactor_clock(s->reactor));
    reactor_timer_start(s->reactor, t, now + MAX(READY_PAUSE_NS, (now - begun) * READY_PAUSES));
}

/* ---- turns of the space timer ---- */

void chunk_ready_turn(struct chunk_store *s)
{
    uint64_t least = MIN(READY_IDLE_BYTES, s->slots.capacity_bytes / 8), keep;
    struct chunk_ready *r = &s->ready;
    struct statvfs v;
    uint64_t avail;

    if (!s->seg.in_memory || statvfs(s->path, &v) < 0)
        return;
    avail = (uint64_t)v.f_bavail * v.f_frsize;
    r->ahead = ahead_bytes(s, avail + s->slots.empty_bytes);
    least = keep = MAX(least, r->ahead);
    r->idle = s->seq == r->seq ? r->idle + 1 : 0;
    r->seq = s->seq;
    if (r->idle < READY_IDLE_TURNS)
        keep = MAX(least, MIN(READY_MAX_BYTES, avail / 16));
    s->slots.keep_bytes = keep;
    if (avail > s->slots.empty_bytes && s->slots.empty_bytes > READY_STEP_BYTES)
        keep = MAX(keep, s->slots.empty_bytes - READY_STEP_BYTES); /* it takes a while */
    slots_trim(&s->slots, keep);
    if (r->ahead && !reactor_timer_running(&r->timer))
        wait_for_quiet(s);
}

void chunk_ready_init(struct chunk_store *s)
{
    reactor_timer_init(&s->ready.timer, on_timer);
}

void chunk_ready_stop(struct chunk_store *s)
{
    reactor_timer_cancel(s->reactor, &s->ready.timer);
}
