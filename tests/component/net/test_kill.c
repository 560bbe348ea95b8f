/* SPDX-License-Identifier: Apache-2.0 */
/* Connections over UCX between two processes: shared memory, and the RDMA code over a stand-in for
 * a device. */
#include <check.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "tests/component/net/harness.h"
#include "tests/support/suite.h"

#define IN_FLIGHT   64u
#define KILL_ROUNDS 100

static struct net_options shm(void)
{
    struct net_options o;

    net_options_default(&o);
    o.want = NET_WANT_SHM;
    return o;
}

static bool in_full_flight(struct end *e)
{
    return e->closed || e->sent - e->done_ok >= IN_FLIGHT;
}

static bool has_turned(struct end *e)
{
    return e->closed || e->received >= e->depth / 2;
}

/* What must hold once the peer is dead: everything came back exactly once, within 2 s. */
static void everything_comes_back(struct end *e)
{
    ck_assert(end_turn_until(e, end_is_closed, 2000));
    ck_assert_int_eq(e->closed_status, -AIFS_ECONN);
    ck_assert_uint_eq(e->done_ok + e->done_failed, e->sent);
    ck_assert_uint_eq(e->head_calls, e->received_calls);
}

/* Both ends send 64 messages of 1 MiB at a time; the peer is killed while running, or stopped first
 * with everything in flight. */
static void kill_round(struct end *e, bool stop_first)
{
    struct child_options co = {.buf_bytes = 1u << 20, .n_bufs = 12, .load = true};
    struct child c = child_start(&co);

    e->to_send = UINT64_MAX;
    e->depth = IN_FLIGHT;
    e->max_bulk = e->fixed_bulk = 1u << 20;
    end_connect_over(e, c.port);
    end_pump(e);
    ck_assert(end_turn_until(e, has_turned, END_SOON_MS));
    if (stop_first) {
        kill(c.pid, SIGSTOP);
        waitpid(c.pid, NULL, WUNTRACED);
        e->in_flight = 0; /* whatever it owes us will not come */
        end_pump(e);
        ck_assert(end_turn_until(e, in_full_flight, END_SOON_MS));
    }
    child_kill(&c);
    everything_comes_back(e);
}

START_TEST(a_peer_killed_with_64_messages_in_flight_each_way_costs_nothing_100_times)
{
    struct net_options o = shm();
    struct buf_pool_stats s;
    uint64_t rss UNUSED = 0;
    unsigned fds = 0;
    struct end e;

    end_init(&e, &o, END_LOAD, 1u << 20, 150);
    for (int i = 0; i < KILL_ROUNDS; i++) {
        kill_round(&e, i % 2 == 1);
        buf_pool_get_stats(e.pool, &s);
        ck_assert_uint_eq(s.in_use, 0);
        if (i == 10) {
            fds = count_fds();
            rss = rss_bytes();
        }
    }
    ck_assert_uint_eq(count_fds(), fds);
#ifndef __SANITIZE_ADDRESS__ /* which keeps what was freed */
    ck_assert_uint_lt(rss_bytes(), rss + (8u << 20));
#endif
    ck_assert_uint_gt(e.done_failed, KILL_ROUNDS / 2 * IN_FLIGHT);
    end_fini(&e);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *t = tcase_create("net-kill");

    if (child_main(argc, argv) >= 0)
        return 0;
    log_set_level(LOG_LEVEL_ERROR);
    tcase_set_timeout(t, 115);
    tcase_add_test(t, a_peer_killed_with_64_messages_in_flight_each_way_costs_nothing_100_times);
    return suite_run_case("net-kill", t);
}
