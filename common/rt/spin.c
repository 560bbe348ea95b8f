/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of spinning; cannot fail. */
#include "common/rt/spin.h"

#include "common/base/clock.h"
#include "common/base/compiler.h"

#define SHRINK      16u               /* fruitless spinning goes down to this part of the maximum */
#define WAKE_NS     (30 * NS_PER_US)  /* what waking a core takes */
#define TAKEN_NS    (5 * NS_PER_US)   /* where nobody wants the core, yielding takes less than 1 */
#define GAIN_NS     (10 * NS_PER_US)  /* what an event may cost that waking would have cost more */
#define LOSS_NS     (200 * NS_PER_US) /* no more than that beyond what was gained */
#define AWAY_MIN_NS (20 * NS_PER_MS)
#define AWAY_GROWTH 50u
#define FORGIVE     64u /* each spin that pays takes this part off what away has grown to */

void spin_init(struct spin *s, uint64_t max_ns, uint64_t away_ns)
{
    *s = (struct spin){
        .max_ns = max_ns, .now_ns = max_ns, .away_min_ns = away_ns ? away_ns : AWAY_MIN_NS};
}

bool spin_wanted(struct spin *s, uint64_t now_ns, uint64_t for_ns)
{
    if (s->max_ns == 0 || now_ns < s->away_until_ns)
        return false;
    if (s->idle_since_ns == 0)
        s->idle_since_ns = MAX(now_ns, 1u);
    return now_ns - s->idle_since_ns < MIN(s->now_ns, for_ns);
}

void spin_yielded(struct spin *s, uint64_t before_ns, uint64_t after_ns)
{
    if (after_ns - before_ns < TAKEN_NS)
        return;
    s->lost_ns += after_ns - before_ns;
    if (s->lost_ns < LOSS_NS)
        return;
    s->lost_ns = 0;
    s->away_ns = MIN(MAX(s->away_ns * 2, s->away_min_ns), s->away_min_ns * AWAY_GROWTH);
    s->away_until_ns = after_ns + s->away_ns;
}

void spin_came(struct spin *s, uint64_t now_ns)
{
    uint64_t idle_ns = now_ns - s->idle_since_ns;

    if (s->idle_since_ns == 0)
        return;
    s->idle_since_ns = 0;
    s->lost_ns -= MIN(s->lost_ns, GAIN_NS);
    if (idle_ns < s->now_ns)
        s->away_ns -= s->away_ns / FORGIVE;
    if (idle_ns < s->max_ns + WAKE_NS)
        s->now_ns = s->max_ns;
    else
        s->now_ns = MAX(s->now_ns / 2, s->max_ns / SHRINK);
}
