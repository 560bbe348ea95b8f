/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a parcel of the in-process transport: lost, late, twice, out of order, the last
 * one of its connection. Decided by probabilities from one seeded generator and by names that are
 * cut off, or by a function of the test's. Any thread; a lock guards it all.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/cleanup.h"
#include "common/net/net_int.h"

#define CUT_MAX 16

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct net_loop_faults faults;
static uint64_t random_state;
static char cuts[CUT_MAX][NET_ADDR_BYTES];
static net_loop_policy_fn *policy;
static void *policy_arg;

void net_loop_set_faults(const struct net_loop_faults *f)
{
    AUTO_LOCK(&lock);

    faults = f ? *f : (struct net_loop_faults){0};
    random_state = faults.seed;
}

void net_loop_set_policy(net_loop_policy_fn *fn, void *arg)
{
    AUTO_LOCK(&lock);

    policy = fn;
    policy_arg = arg;
}

void net_loop_partition(const char *name, bool cut)
{
    AUTO_LOCK(&lock);
    int slot = -1;

    if (strncmp(name, "loop:", 5) == 0)
        name += 5;
    for (int i = 0; i < CUT_MAX; i++) {
        if (strcmp(cuts[i], name) == 0) {
            slot = i;
            break;
        }
        if (cuts[i][0] == '\0' && slot < 0)
            slot = i;
    }
    ASSERT(slot >= 0);
    snprintf(cuts[slot], sizeof cuts[slot], "%s", cut ? name : "");
}

bool loop_is_cut(const char *name)
{
    AUTO_LOCK(&lock);

    for (int i = 0; i < CUT_MAX; i++)
        if (cuts[i][0] && strcmp(cuts[i], name) == 0)
            return true;
    return false;
}

/* splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). Under the
 * lock. */
static uint64_t next_random(void)
{
    uint64_t z = (random_state += 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static bool roll(uint32_t of_65536)
{
    return of_65536 > 0 && (next_random() & 0xffff) < of_65536;
}

static uint64_t roll_delay(void)
{
    uint64_t range =
        faults.max_delay_ns > faults.min_delay_ns ? faults.max_delay_ns - faults.min_delay_ns : 0;

    return faults.min_delay_ns + (range ? next_random() % (range + 1) : 0);
}

struct net_loop_fate loop_fate(const char *name, const struct reactor *from,
                               const struct reactor *to, enum net_loop_parcel kind)
{
    struct net_loop_fate fate = {0};
    bool cut = loop_is_cut(name);
    AUTO_LOCK(&lock);

    if (policy) {
        policy(policy_arg, from, to, kind, &fate);
        return fate;
    }
    if (kind == NET_LOOP_CONNECT)
        return fate;
    fate.lose = cut;
    if (kind == NET_LOOP_MESSAGE) {
        fate.lose |= roll(faults.drop);
        fate.twice = !fate.lose && roll(faults.duplicate);
        fate.reorder = roll(faults.reorder);
    }
    fate.delay_ns = roll_delay();
    return fate;
}
