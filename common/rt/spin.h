/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether to look again before going to sleep. Waking a core costs 25 us, so a reactor whose next
 * event is nearer than that gains by polling; one whose core others want loses by it. Values only:
 * the caller has the clock, polls and yields. Spins grow to max_ns where what comes, comes soon,
 * and shrink to a sixteenth where it does not. A spin offers its core to others each time; where
 * they have kept it for longer than the spins have gained, it is left to them: for 20 ms, or as
 * long as its owner says, doubling up to fifty times that while it goes on.
 */
#ifndef AIFS_COMMON_RT_SPIN_H
#define AIFS_COMMON_RT_SPIN_H

#include <stdbool.h>
#include <stdint.h>

struct spin {
    uint64_t max_ns;                 /* 0: never */
    uint64_t now_ns;                 /* what has paid off of late */
    uint64_t idle_since_ns;          /* when there was nothing to do any more; 0: there is */
    uint64_t lost_ns;                /* waited for the core, less 10 us for each event since */
    uint64_t away_until_ns, away_ns; /* others want the core: no spinning for so long */
    uint64_t away_min_ns;
};

/* away_ns: the shortest time for which the core is left to others; 0: 20 ms. */
void spin_init(struct spin *s, uint64_t max_ns, uint64_t away_ns);
/* There is nothing to do: look once more (after a yield) instead of sleeping? for_ns: no longer
 * than that, whatever the spin. */
bool spin_wanted(struct spin *s, uint64_t now_ns, uint64_t for_ns);
/* The core was offered to others at before_ns, and is ours again at after_ns. */
void spin_yielded(struct spin *s, uint64_t before_ns, uint64_t after_ns);
/* Something has come, while spinning, sleeping, or without either. */
void spin_came(struct spin *s, uint64_t now_ns);

#endif
