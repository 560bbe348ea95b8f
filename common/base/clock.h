/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time as an object, so that tests and the simulator can drive it. clock_real() is the machine's; a
 * virtual clock moves only when told. mono_ns: monotonic, for deadlines. wall_ns: since 1970, for
 * time stamps. Any thread for clock_real(); a virtual clock belongs to its test.
 */
#ifndef AIFS_COMMON_BASE_CLOCK_H
#define AIFS_COMMON_BASE_CLOCK_H

#include <stdint.h>

struct clock {
    uint64_t (*mono_ns)(const struct clock *c);
    int64_t (*wall_ns)(const struct clock *c);
};

const struct clock *clock_real(void);

struct clock_virtual {
    struct clock clock;
    uint64_t now_ns;
    int64_t wall_base_ns;
};
void clock_virtual_init(struct clock_virtual *v, uint64_t now_ns, int64_t wall_base_ns);
void clock_virtual_advance(struct clock_virtual *v, uint64_t by_ns);

static inline uint64_t clock_mono_ns(const struct clock *c)
{
    return c->mono_ns(c);
}

static inline int64_t clock_wall_ns(const struct clock *c)
{
    return c->wall_ns(c);
}

#endif
