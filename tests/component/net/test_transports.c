/* SPDX-License-Identifier: Apache-2.0 */
/* What every transport between two processes must do: the same tests over TCP, shared memory, and
 * the RDMA code (over a stand-in for a device). */
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/fault/fault.h"
#include "common/net/ucx_int.h"
#include "tests/component/net/harness.h"
#include "tests/support/suite.h"

#define BIG (1u << 20)

static struct net_options options(int i)
{
    static const enum net_want wants[] = {NET_WANT_TCP, NET_WANT_SHM, NET_WANT_RDMA};
    struct net_options o;

    net_options_default(&o);
    o.want = wants[i];
    return o;
}

START_TEST(messages_of_all_sizes_come_back_whole_at_depth_64)
{
    struct net_options o = options(_i);
    struct child_options co = {.mode = END_ECHO, .want = o.want};
    struct child c = child_start(&co);
    struct end e;

    end_init(&e, &o, END_LOAD, NET_BULK_MAX, 130);
    e.scatter = true;
    end_connect_over(&e, c.port);
    ck_assert_int_eq(net_conn_kind(e.conn), _i == 0 ? NET_SOCKET : NET_UCX);
    ck_assert_str_eq(strrchr(net_conn_describe(e.conn), ' '), _i == 0   ? " tcp"
                                                              : _i == 1 ? " shm"
                                                                        : " rdma");
    end_echo(&e, 600);
    ck_assert_int_eq(e.landings > 0, _i == 1); /* the peer's memory is read in parts */
    end_hang_up(&e);
    end_fini(&e);
    child_kill(&c);
}
END_TEST

START_TEST(a_receiver_with_two_buffers_gets_everything)
{
    struct net_options o = options(_i);
    struct child_options co = {.mode = END_ECHO, .want = o.want, .n_bufs = 2, .buf_bytes = BIG};
    struct child c = child_start(&co);
    struct end e;

    end_init(&e, &o, END_LOAD, BIG, 130);
    end_connect_over(&e, c.port);
    end_echo(&e, 600);
    end_hang_up(&e);
    end_fini(&e);
    child_kill(&c);
}
END_TEST

/* Pings of both ends in the tests of quiet connections: one that is not answered in time is soon
 * noticed, and yet a busy machine is not taken for a dead peer. */
#define PING_MS    50
#define TIMEOUT_MS 600

static bool a_while_has_passed(struct end *e)
{
    static uint64_t since;
    uint64_t now = clock_mono_ns(clock_real());

    if (since == 0)
        since = now;
    if (now - since < (TIMEOUT_MS + 200) * NS_PER_MS)
        return e->closed;
    since = 0;
    return true;
}

static bool is_full(struct end *e)
{
    return e->closed || !net_conn_writable(e->conn);
}

START_TEST(a_receiver_that_takes_nothing_stops_the_sender_and_is_not_taken_for_dead)
{
    struct net_options o = options(_i);
    struct child_options co = {.mode = END_HOLD,
                               .want = o.want,
                               .n_bufs = 4,
                               .buf_bytes = BIG,
                               .ping_ms = PING_MS,
                               .timeout_ms = TIMEOUT_MS};
    struct child c = child_start(&co);
    struct end e;

    o.max_pending_bytes = 8 * MIB;
    o.ping_interval_ns = PING_MS * NS_PER_MS;
    o.ping_timeout_ns = TIMEOUT_MS * NS_PER_MS;
    end_init(&e, &o, END_LOAD, BIG, 64);
    end_connect_over(&e, c.port);
    e.to_send = 60;
    e.depth = 60;
    e.fixed_bulk = e.max_bulk = BIG;
    end_pump(&e);
    ck_assert(end_turn_until(&e, is_full, END_SOON_MS));
    ck_assert(end_turn_until(&e, a_while_has_passed, END_SOON_MS));
    ck_assert(!e.closed);
    ck_assert(!net_conn_writable(e.conn));
    ck_assert_uint_lt(e.done_ok, 60);
    child_kill(&c);
    ck_assert(end_turn_until(&e, end_is_closed, END_SOON_MS));
    ck_assert_uint_eq(e.done_ok + e.done_failed, 60);
    end_fini(&e);
}
END_TEST

static bool some_came_back(struct end *e)
{
    return e->closed || e->received > 20;
}

START_TEST(a_frozen_peer_is_found_by_ping)
{
    struct net_options o = options(_i);
    struct child_options co = {.want = o.want, .n_bufs = 12, .buf_bytes = BIG, .load = true};
    struct child c = child_start(&co);
    struct end e;
    uint64_t t0;

    o.ping_interval_ns = 100 * NS_PER_MS;
    o.ping_timeout_ns = 400 * NS_PER_MS;
    end_init(&e, &o, END_LOAD, BIG, 130);
    e.to_send = UINT64_MAX;
    e.depth = 64;
    e.fixed_bulk = e.max_bulk = BIG;
    end_connect_over(&e, c.port);
    end_pump(&e);
    ck_assert(end_turn_until(&e, some_came_back, END_SOON_MS));
    kill(c.pid, SIGSTOP);
    waitpid(c.pid, NULL, WUNTRACED);
    t0 = clock_mono_ns(clock_real());
    ck_assert(end_turn_until(&e, end_is_closed, END_SOON_MS));
    ck_assert_uint_ge(clock_mono_ns(clock_real()) - t0, 200 * NS_PER_MS);
    ck_assert_int_eq(e.closed_status, -AIFS_ECONN);
    ck_assert_uint_eq(e.done_ok + e.done_failed, e.sent);
    ck_assert_uint_eq(e.head_calls, e.received_calls);
    end_fini(&e);
    child_kill(&c);
}
END_TEST

START_TEST(an_idle_connection_stays_open_and_mostly_sleeps)
{
    struct net_options o = options(_i);
    struct child_options co = {.mode = END_ECHO,
                               .want = o.want,
                               .n_bufs = 2,
                               .buf_bytes = 4096,
                               .ping_ms = PING_MS,
                               .timeout_ms = TIMEOUT_MS};
    struct child c = child_start(&co);
    struct reactor_stats before;
    struct reactor_stats after;
    struct end e;

    o.ping_interval_ns = PING_MS * NS_PER_MS;
    o.ping_timeout_ns = TIMEOUT_MS * NS_PER_MS;
    end_init(&e, &o, END_LOAD, 4096, 2);
    end_connect_over(&e, c.port);
    reactor_get_stats(e.reactor, &before);
    ck_assert(end_turn_until(&e, a_while_has_passed, END_SOON_MS));
    reactor_get_stats(e.reactor, &after);
    ck_assert(!e.closed);
    ck_assert_uint_lt(after.turns - before.turns, 640);
    end_echo(&e, 3);
    end_hang_up(&e);
    end_fini(&e);
    child_kill(&c);
}
END_TEST

/* Sleeping again and again beside other work costs a connection nothing on which nothing moves. */
START_TEST(an_idle_connection_is_armed_once_and_wakes_when_something_comes)
{
    struct net_options o = options(_i);
    struct child_options co = {.mode = END_ECHO, .want = o.want, .n_bufs = 2, .buf_bytes = 4096};
    struct child c = child_start(&co);
    struct reactor_stats before;
    struct reactor_stats after;
    struct end e;
    uint64_t arms;

    end_init(&e, &o, END_LOAD, 4096, 2);
    end_connect_over(&e, c.port);
    end_echo(&e, 3);
    arms = stat_value(&net_counters.arms);
    reactor_get_stats(e.reactor, &before);
    for (unsigned k = 0; k < 300; k++)
        reactor_run_once(e.reactor, 10 * NS_PER_US);
    reactor_get_stats(e.reactor, &after);
    ck_assert_uint_gt(after.sleeps - before.sleeps, 200);
    ck_assert_uint_lt(stat_value(&net_counters.arms) - arms, 50); /* some for the end of the echo */
    end_echo(&e, 30);
    ck_assert_uint_eq(stat_value(&net_counters.arms) > 0, _i > 0);
    end_hang_up(&e);
    end_fini(&e);
    child_kill(&c);
}
END_TEST

#define TURNS 64u

static bool one_came_back(struct end *e)
{
    return e->closed || e->received == e->to_send;
}

/* The next request follows a little later, as from a thread that was told of the answer. */
START_TEST(giving_memory_back_to_the_peer_goes_with_the_next_message)
{
    struct net_options o = options(_i);
    struct child_options co = {.mode = END_ECHO, .want = o.want, .n_bufs = 2, .buf_bytes = BIG};
    struct child c = child_start(&co);
    struct end e;
    uint64_t alone;

    end_init(&e, &o, END_LOAD, BIG, 4);
    end_connect_over(&e, c.port);
    e.depth = 1;
    e.fixed_bulk = e.max_bulk = BIG;
    alone = stat_value(&net_counters.lone_acks);
    for (e.to_send = 1; e.to_send <= TURNS; e.to_send++) {
        end_pump(&e);
        ck_assert(end_turn_until(&e, one_came_back, END_SOON_MS));
        reactor_run_once(e.reactor, 0);
    }
    ck_assert(!e.closed);
    ck_assert_uint_lt(stat_value(&net_counters.lone_acks) - alone, TURNS / 2);
    end_hang_up(&e);
    end_fini(&e);
    child_kill(&c);
}
END_TEST

START_TEST(both_ends_may_start_sending_at_once)
{
    struct net_options o = options(_i);
    struct child_options co = {.want = o.want, .n_bufs = 12, .buf_bytes = 65536, .load = true};
    struct child c = child_start(&co);
    struct end e;

    end_init(&e, &o, END_LOAD, 65536, 130);
    e.pump_after_hello = true; /* before the change-over */
    e.to_send = UINT64_MAX;
    e.depth = 64;
    e.fixed_bulk = e.max_bulk = 65536;
    end_connect_over(&e, c.port);
    ck_assert(end_turn_until(&e, some_came_back, END_SOON_MS));
    ck_assert(!e.closed);
    end_hang_up(&e);
    ck_assert_uint_eq(e.done_ok + e.done_failed, e.sent);
    end_fini(&e);
    child_kill(&c);
}
END_TEST

START_TEST(two_ends_that_insist_on_different_transports_part_with_an_error)
{
    struct net_options o = options(1);
    struct child_options co = {
        .mode = END_ECHO, .want = NET_WANT_TCP, .n_bufs = 2, .buf_bytes = 4096};
    struct child c = child_start(&co);
    struct end e;

    log_set_level(LOG_LEVEL_ERROR);
    end_init(&e, &o, END_LOAD, 4096, 2);
    end_connect(&e, c.port);
    ck_assert(end_turn_until(&e, end_is_closed, END_SOON_MS));
    ck_assert_int_ne(e.closed_status, 0);
    end_fini(&e);
    child_kill(&c);
}
END_TEST

static uint64_t mapped(void)
{
    return stat_value(&net_counters.mapped_bytes);
}

/* Both ends', one way by memory that is mapped, unless this is not possible here. */
START_TEST(memory_that_is_shared_is_mapped_and_all_of_it_comes_whole)
{
    struct net_options o = options(1);
    struct child_options co = {
        .mode = END_ECHO, .want = o.want, .n_bufs = 66, .buf_bytes = BIG, .share = true};
    struct child c = child_start(&co);
    uint64_t before = mapped();
    struct end e;
    bool can;

    end_init(&e, &o, END_LOAD, BIG, 130);
    can = end_share(&e, BIG, 130);
    e.scatter = true;
    end_connect_over(&e, c.port);
    end_echo(&e, 300);
    ck_assert_uint_gt(e.landings, 0);
    if (can)
        ck_assert_uint_gt(mapped(), before);
    end_hang_up(&e);
    end_fini(&e);
    child_kill(&c);
}
END_TEST

START_TEST(memory_that_cannot_be_mapped_is_read_as_ever)
{
    struct net_options o = options(1);
    struct child_options co = {
        .mode = END_ECHO, .want = o.want, .n_bufs = 66, .buf_bytes = BIG, .share = true};
    struct child c = child_start(&co);
    uint64_t before = mapped();
    struct end e;

    ck_assert_int_eq(fault_arm("net.share=error"), 0);
    end_init(&e, &o, END_LOAD, BIG, 130);
    ck_assert(!end_share(&e, BIG, 130));
    end_connect_over(&e, c.port);
    ck_assert_int_eq(net_conn_kind(e.conn), NET_UCX);
    end_echo(&e, 100);
    ck_assert_uint_eq(mapped(), before);
    end_hang_up(&e);
    end_fini(&e);
    child_kill(&c);
}
END_TEST

START_TEST(memory_that_cannot_be_read_means_tcp_and_the_connection_lives)
{
    struct child_options co = {.mode = END_ECHO, .n_bufs = 8, .buf_bytes = BIG};
    struct child c = child_start(&co);
    struct net_options o;
    struct end e;

    net_options_default(&o);
    ck_assert_int_eq(fault_arm("net.cma_read=error"), 0);
    end_init(&e, &o, END_LOAD, BIG, 130);
    end_connect(&e, c.port);
    end_echo(&e, 100);
    ck_assert_int_eq(net_conn_kind(e.conn), NET_SOCKET);
    end_hang_up(&e);
    end_fini(&e);
    child_kill(&c);
}
END_TEST

START_TEST(shared_memory_by_force_where_it_does_not_work_is_an_error)
{
    struct net_options o = options(1);
    struct child_options co = {.mode = END_ECHO, .n_bufs = 2, .buf_bytes = 4096};
    struct child c = child_start(&co);
    struct end e;

    ck_assert_int_eq(fault_arm("net.cma_read=error"), 0);
    end_init(&e, &o, END_LOAD, 4096, 2);
    end_connect(&e, c.port);
    ck_assert(end_turn_until(&e, end_is_closed, END_SOON_MS));
    ck_assert_int_eq(e.closed_status, -ENOTSUP);
    end_fini(&e);
    child_kill(&c);
}
END_TEST

static struct child doomed;

static void it_dies(struct end *e)
{
    (void)e;
    child_kill(&doomed);
}

/* Not before it has told us its address. */
static void it_dies_later(struct end *e)
{
    struct pollfd p = {.fd = sock_descriptor(e->conn), .events = POLLIN};

    (void)poll(&p, 1, END_SOON_MS);
    child_kill(&doomed);
}

/* Who waits for it to come back must not take that for a transport that cannot be. */
START_TEST(a_server_that_dies_before_the_change_over_by_force_is_lost_and_not_unfit)
{
    struct net_options o = options(1);
    struct child_options co = {.mode = END_ECHO, .n_bufs = 2, .buf_bytes = 4096};
    struct end e;

    doomed = child_start(&co);
    end_init(&e, &o, END_LOAD, 4096, 2);
    if (_i == 0)
        e.before_upgrade = it_dies;
    else
        e.after_upgrade = it_dies_later;
    end_connect(&e, doomed.port);
    ck_assert(end_turn_until(&e, end_is_closed, END_SOON_MS));
    ck_assert_int_eq(e.closed_status, -AIFS_ECONN);
    end_fini(&e);
}
END_TEST

static pid_t victim;

/* A process with the same memory, the cookie included, and without the connection. */
static void say_that_we_are_another(uint8_t *offer)
{
    int ready[2];
    char byte = 0;

    MUST(pipe(ready) == 0);
    victim = fork();
    MUST(victim >= 0);
    if (victim == 0) {
        dup2(ready[1], STDOUT_FILENO);
        close_range(STDERR_FILENO + 1, ~0u, 0);
        MUST(write(STDOUT_FILENO, &byte, 1) == 1);
        for (;;)
            pause();
    }
    MUST(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    close(ready[1]);
    le32_store(offer + 8, (uint32_t)victim);
}

static bool is_settled(struct end *e)
{
    return e->closed || net_conn_is_settled(e->conn);
}

START_TEST(a_process_that_is_not_at_the_other_end_is_not_read)
{
    struct child_options co = {.mode = END_ECHO, .n_bufs = 8, .buf_bytes = BIG};
    struct child c = child_start(&co);
    struct net_options o;
    struct end e;

    net_options_default(&o);
    end_init(&e, &o, END_LOAD, BIG, 130);
    e.forge = say_that_we_are_another;
    end_connect(&e, c.port);
    ck_assert(end_turn_until(&e, is_settled, END_SOON_MS));
    ck_assert(!e.closed);
    ck_assert_int_eq(net_conn_kind(e.conn), NET_SOCKET);
    end_echo(&e, 20);
    end_hang_up(&e);
    end_fini(&e);
    ck_assert_int_eq(kill(victim, SIGKILL), 0);
    ck_assert_int_eq(waitpid(victim, NULL, 0), victim);
    child_kill(&c);
}
END_TEST

/* It says where the bulk is in some process, as over shared memory. */
START_TEST(over_rdma_nobody_reads_a_process_because_a_peer_says_so)
{
    struct net_options o = options(2);
    struct child_options co = {.mode = END_ECHO, .want = o.want, .n_bufs = 4, .buf_bytes = BIG};
    struct child c = child_start(&co);
    struct end e;

    end_init(&e, &o, END_LOAD, BIG, 4);
    end_connect_over(&e, c.port);
    end_echo(&e, 3);
    e.received = e.sent = 0;
    e.conn->ucx->choice = CHOICE_SHM; /* for what this end sends */
    e.to_send = 1;
    e.depth = 1;
    e.fixed_bulk = e.max_bulk = BIG;
    end_pump(&e);
    ck_assert(end_turn_until(&e, one_came_back, END_SOON_MS));
    ck_assert(e.closed);
    ck_assert_uint_eq(e.received, 0);
    end_fini(&e);
    child_kill(&c);
}
END_TEST

START_TEST(memory_that_cannot_be_read_any_more_ends_the_connection)
{
    struct net_options o = options(1);
    struct child_options co = {.mode = END_ECHO, .n_bufs = 64, .buf_bytes = BIG};
    struct child c = child_start(&co);
    struct end e;

    ck_assert_int_eq(fault_arm("net.cma_read=error@20+"), 0); /* this end's reads only */
    end_init(&e, &o, END_LOAD, BIG, 130);
    end_connect_over(&e, c.port);
    e.to_send = UINT64_MAX;
    e.depth = 32;
    e.fixed_bulk = e.max_bulk = BIG;
    end_pump(&e);
    ck_assert(end_turn_until(&e, end_is_closed, END_SOON_MS));
    ck_assert_int_eq(e.closed_status, -AIFS_ECONN);
    ck_assert_uint_eq(e.done_ok + e.done_failed, e.sent);
    ck_assert_uint_eq(e.head_calls, e.received_calls);
    ck_assert_uint_eq(e.failed_rx, 1);
    end_fini(&e);
    child_kill(&c);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *t = tcase_create("net-transports");

    if (child_main(argc, argv) >= 0)
        return 0;
    log_set_level(LOG_LEVEL_ERROR);
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, messages_of_all_sizes_come_back_whole_at_depth_64, 0, 3);
    tcase_add_loop_test(t, a_receiver_with_two_buffers_gets_everything, 0, 3);
    tcase_add_loop_test(t, a_receiver_that_takes_nothing_stops_the_sender_and_is_not_taken_for_dead,
                        0, 3);
    tcase_add_loop_test(t, a_frozen_peer_is_found_by_ping, 0, 3);
    tcase_add_loop_test(t, an_idle_connection_stays_open_and_mostly_sleeps, 0, 3);
    tcase_add_loop_test(t, an_idle_connection_is_armed_once_and_wakes_when_something_comes, 0, 3);
    tcase_add_loop_test(t, giving_memory_back_to_the_peer_goes_with_the_next_message, 0, 3);
    tcase_add_loop_test(t, both_ends_may_start_sending_at_once, 0, 3);
    tcase_add_test(t, two_ends_that_insist_on_different_transports_part_with_an_error);
    tcase_add_test(t, memory_that_is_shared_is_mapped_and_all_of_it_comes_whole);
    tcase_add_test(t, memory_that_cannot_be_mapped_is_read_as_ever);
    tcase_add_test(t, memory_that_cannot_be_read_means_tcp_and_the_connection_lives);
    tcase_add_test(t, shared_memory_by_force_where_it_does_not_work_is_an_error);
    tcase_add_loop_test(t, a_server_that_dies_before_the_change_over_by_force_is_lost_and_not_unfit,
                        0, 2);
    tcase_add_test(t, a_process_that_is_not_at_the_other_end_is_not_read);
    tcase_add_test(t, over_rdma_nobody_reads_a_process_because_a_peer_says_so);
    tcase_add_test(t, memory_that_cannot_be_read_any_more_ends_the_connection);
    return suite_run_case("net-transports", t);
}
