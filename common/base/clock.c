// SPDX-License-Identifier: Apache-2.0
/*
 * The machine's clock and a clock that moves only when told. clock_gettime() cannot fail for these
 * two clocks, so nothing here can.
 */
#include "common/base/clock.h"

#include <time.h>

#include "common/base/compiler.h"

static uint64_t read_ns(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static uint64_t real_mono_ns(const struct clock *c UNUSED)
{
    return read_ns(CLOCK_MONOTONIC);
}

static int64_t real_wall_ns(const struct clock *c UNUSED)
{
    return (int64_t)read_ns(CLOCK_REALTIME);
}

const struct clock *clock_real(void)
{
    static const struct clock real = {real_mono_ns, real_wall_ns};

    return &real;
}

static const struct clock_virtual *virtual_of(const struct clock *c)
{
    return (const struct clock_virtual *)(const void *)((const char *)c -
                                                        offsetof(struct clock_virtual, clock));
}

static uint64_t virtual_mono_ns(const struct clock *c)
{
    return virtual_of(c)->now_ns;
}

static int64_t virtual_wall_ns(const struct clock *c)
{
    return virtual_of(c)->wall_base_ns + (int64_t)virtual_of(c)->now_ns;
}

void clock_virtual_init(struct clock_virtual *v, uint64_t now_ns, int64_t wall_base_ns)
{
    v->clock.mono_ns = virtual_mono_ns;
    v->clock.wall_ns = virtual_wall_ns;
    v->now_ns = now_ns;
    v->wall_base_ns = wall_base_ns;
}

void clock_virtual_advance(struct clock_virtual *v, uint64_t by_ns)
{
    v->now_ns += by_ns;
}
