/* SPDX-License-Identifier: Apache-2.0 */
/* How fast two sleeping processes talk: bench tcp|shm DEPTH ASK SEND SECONDS [THRESHOLD]. Not a
 * test. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/base/log.h"
#include "tests/component/net/harness.h"

static bool never(struct end *e)
{
    return e->closed;
}

static bool settled(struct end *e)
{
    return e->closed || e->options.want == NET_WANT_TCP || net_conn_kind(e->conn) == NET_UCX;
}

static double cpu_s(int who)
{
    struct rusage r;

    getrusage(who, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
    struct child_options co = {.mode = END_ECHO, .buf_bytes = 1u << 20, .n_bufs = 64};
    struct net_options o;
    struct child c;
    struct end e;
    struct reactor_stats rs;
    uint64_t t0;
    double s;
    double cpu;

    if (child_main(argc, argv) >= 0)
        return 0;
    if (argc < 6)
        return 2;
    log_set_level(LOG_LEVEL_ERROR);
    net_options_default(&o);
    o.want = strcmp(argv[1], "tcp") == 0 ? NET_WANT_TCP : NET_WANT_SHM;
    if (argc > 6)
        o.rndv_threshold = (uint32_t)atoi(argv[6]);
    co.rndv_threshold = o.rndv_threshold;
    c = child_start(&co);
    end_init(&e, &o, END_LOAD, 1u << 20, 64);
    end_connect(&e, c.port);
    end_turn_until(&e, settled, 2000);
    e.to_send = UINT64_MAX;
    e.depth = (unsigned)atoi(argv[2]);
    e.ask = (uint32_t)atoi(argv[3]);
    e.max_bulk = e.fixed_bulk = (uint32_t)atoi(argv[4]);
    if (e.fixed_bulk == 0)
        e.fixed_bulk = 1;
    end_pump(&e);
    end_turn_until(&e, never, 300);
    e.received = 0;
    t0 = clock_mono_ns(clock_real());
    cpu = cpu_s(RUSAGE_SELF);
    end_turn_until(&e, never, (unsigned)(atof(argv[5]) * 1000));
    s = (double)(clock_mono_ns(clock_real()) - t0) / 1e9;
    cpu = cpu_s(RUSAGE_SELF) - cpu;
    reactor_get_stats(e.reactor, &rs);
    child_kill(&c);
    printf("%s depth %u ask %u send %u: %.0f op/s, %.2f GB/s, %.1f us per op; cpu client %.0f%% "
           "server %.0f%%; sleeps per op %.2f\n",
           argv[1], e.depth, e.ask, e.max_bulk, (double)e.received / s,
           (double)e.received * (e.ask + e.max_bulk) / s / 1e9,
           s * 1e6 / (double)e.received * e.depth, cpu / s * 100,
           cpu_s(RUSAGE_CHILDREN) / (s + 0.3) * 100, (double)rs.sleeps / (double)e.received);
    return 0;
}
