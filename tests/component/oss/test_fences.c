// SPDX-License-Identifier: Apache-2.0
/* aifs-oss as a process: who is fenced, what is under way then, and older connections. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/crc.h"
#include "tests/component/oss/server.h"
#include "tests/support/suite.h"

START_TEST(a_fenced_session_is_refused_also_after_a_restart)
{
    struct msg_fence fence = {.session = 55, .generation = 1};
    struct msg_fence_req m = {.fence_seq = 1, .n_fences = 1, .fences = &fence};
    struct caller k;

    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10, false, NULL), 0);
    ck_assert_int_eq(server_call(&k, RPC_OP_OSS_FENCE, &m), 0);
    rpc_call_fini(&k.call);
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10, false, NULL), -AIFS_EFENCED);
    bed->generation = 2;
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10, false, NULL), 0);
    bed->generation = 1;
    server_end(SIGKILL, 0);
    unlink(strcat(strcpy((char *)bed->buf + CHUNK, bed->dir), "/run/port"));
    server_start(NULL);
    server_connect();
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10, false, NULL), -AIFS_EFENCED);
}
END_TEST

/*
 * The ranges of one request go to the store a few at a time, so its last ones are written long
 * after the fence. What is read by somebody else once the fence was acknowledged must be there.
 */
static void check_fence_waits(bool by_heartbeat)
{
    static struct msg_range ranges[MSG_RANGES_MAX];
    static uint32_t crcs[MSG_RANGES_MAX];
    struct msg_write_req m = {.target = 100,
                              .ino = 9,
                              .stable = true,
                              .n_ranges = MSG_RANGES_MAX,
                              .ranges = ranges,
                              .n_crcs = MSG_RANGES_MAX,
                              .crcs = crcs};
    struct iovec iov = {bed->buf, MSG_RANGES_MAX * 16};
    uint32_t beats, registrations, len;
    struct caller k;

    server_fill(bed->buf, 16, 6);
    ck_assert_int_eq(server_write(100, 8, 0, 0, bed->buf, 16, true, NULL),
                     0); /* it is registered */
    for (uint32_t i = 0; i < MSG_RANGES_MAX; i++) {
        ranges[i] = (struct msg_range){.chunk = i, .len = 16};
        memcpy(bed->buf + i * 16, bed->buf, 16);
        crc32c_blocks(0, bed->buf, 16, &crcs[i]);
    }
    server_call_start(&k, RPC_OP_OSS_WRITE, &m, &iov, NULL);
    bed->fences[0] = (struct msg_fence){bed->session, bed->generation};
    bed->n_fences = 1;
    bed->fences_in_beats = by_heartbeat;
    bed->register_again = !by_heartbeat;
    beats = bed->beats;
    registrations = bed->registrations;
    while (bed->acked < 1)
        reactor_run_once(bed->reactor, NS_PER_S);
    ck_assert_uint_eq(bed->registrations - registrations, !by_heartbeat);
    ck_assert_uint_gt(bed->beats, beats + 1);
    bed->session++;
    ck_assert_int_eq(server_read(100, 9, MSG_RANGES_MAX - 1, 0, bed->buf + CHUNK, 4096, &len), 0);
    ck_assert_uint_eq(len, 16);
    while (!k.done)
        reactor_run_once(bed->reactor, NS_PER_S);
    ck_assert_int_eq(k.status, 0);
    rpc_call_fini(&k.call);
    bed->session--;
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 16, true, NULL), -AIFS_EFENCED);
}

static void start_with_slow_commits(void)
{
    server_end(SIGTERM, 0);
    setenv("AIFS_FAULT", "chunk.commit.before_sync=delay:700", 1);
    server_start(NULL);
    unsetenv("AIFS_FAULT");
    server_connect();
}

START_TEST(a_fence_of_a_heartbeat_is_acknowledged_when_nothing_is_under_way)
{
    start_with_slow_commits();
    check_fence_waits(true);
}
END_TEST

START_TEST(a_fence_of_a_registration_is_acknowledged_when_nothing_is_under_way)
{
    start_with_slow_commits();
    check_fence_waits(false);
}
END_TEST

START_TEST(clients_are_not_served_before_the_fences_are_known)
{
    struct msg_range range = {.len = 4096};
    struct msg_read_req m = {.target = 100, .ino = 9, .n_ranges = 1, .ranges = &range};
    struct iovec iov = {bed->buf, 4096};
    struct caller k;

    server_end(SIGTERM, 0);
    bed->mute = true;
    bed->fences[0] = (struct msg_fence){.session = 55, .generation = 1};
    bed->n_fences = 1;
    server_start(NULL);
    server_connect();
    ck_assert_int_eq(server_call_bulk(&k, RPC_OP_OSS_READ, &m, NULL, &iov), -AIFS_ERETRY);
    rpc_call_fini(&k.call);
    bed->mute = false;
    ck_assert_int_eq(server_call_ready(&k, RPC_OP_OSS_READ, &m, NULL, &iov), -AIFS_EFENCED);
    rpc_call_fini(&k.call);
}
END_TEST

START_TEST(an_older_connection_of_a_session_is_refused)
{
    bed->incarnation = 5;
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10, false, NULL), 0);
    bed->incarnation = 4;
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10, false, NULL), -AIFS_ECONN);
    bed->incarnation = 6;
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10, false, NULL), 0);
}
END_TEST

START_TEST(a_new_connection_waits_for_what_the_old_one_left_in_flight)
{
    struct msg_range range = {.len = 4096};
    uint32_t crc = crc32c(bed->buf, 4096), len;
    struct msg_write_req m = {.target = 100,
                              .ino = 9,
                              .stable = true,
                              .n_ranges = 1,
                              .ranges = &range,
                              .n_crcs = 1,
                              .crcs = &crc};
    struct iovec iov = {bed->buf, 4096};
    struct caller k = {0};

    server_end(SIGTERM, 0);
    setenv("AIFS_FAULT", "chunk.commit.before_sync=delay:300", 1);
    server_start(NULL);
    unsetenv("AIFS_FAULT");
    server_connect();
    ck_assert_int_eq(server_read(100, 9, 0, 0, bed->buf + CHUNK, 4096, &len), 0);
    server_call_start(&k, RPC_OP_OSS_WRITE, &m, &iov, NULL);
    bed->incarnation = 2;
    ck_assert_int_eq(server_read(100, 9, 0, 0, bed->buf + CHUNK, 4096, &len), 0);
    ck_assert(k.done && !k.status);
    rpc_call_fini(&k.call);
}
END_TEST

static int fence(uint64_t session, uint64_t seq)
{
    struct msg_fence fence = {.session = session, .generation = 1};
    struct msg_fence_req m = {.fence_seq = seq, .n_fences = 1, .fences = &fence};
    struct caller k;
    int rc = server_call(&k, RPC_OP_OSS_FENCE, &m);

    rpc_call_fini(&k.call);
    return rc;
}

static void restart(const char *extra)
{
    char path[200];

    server_end(SIGKILL, 0);
    snprintf(path, sizeof path, "%s/run/port", bed->dir);
    unlink(path);
    server_start(extra);
    server_connect();
}

START_TEST(a_fence_does_not_wait_for_a_target_that_cannot_be_written)
{
    setenv("AIFS_FAULT", "chunk.commit.index=error@1", 1);
    restart(NULL);
    unsetenv("AIFS_FAULT");
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10, true, NULL), -EIO);
    ck_assert_int_eq(fence(bed->session, 1), 0);
    ck_assert_int_eq(server_write(101, 9, 0, 0, bed->buf, 10, true, NULL), -AIFS_EFENCED);
    restart(NULL); /* the other target has it on its disk */
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10, true, NULL), -AIFS_EFENCED);
}
END_TEST

static void until_it_has(uint32_t n_targets)
{
    for (uint32_t before = bed->registrations;
         bed->registrations == before || bed->n_targets != n_targets;)
        reactor_run_once(bed->reactor, NS_PER_S);
}

START_TEST(a_target_is_given_the_fences_it_missed_before_it_serves_again)
{
    char path[200], away[200], only[300];

    snprintf(path, sizeof path, "%s/t1", bed->dir);
    snprintf(away, sizeof away, "%s/away", bed->dir);
    snprintf(only, sizeof only, "--oss.targets=%s", path);
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10, true, NULL), 0);
    ck_assert_int_eq(rename(path, away), 0);
    until_it_has(1);
    ck_assert_int_eq(fence(bed->session, 1), 0);
    ck_assert_int_eq(rename(away, path), 0);
    until_it_has(2);
    restart(only); /* nobody else can tell it of the fence */
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10, true, NULL), -AIFS_EFENCED);
    bed->session++;
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10, true, NULL), 0);
}
END_TEST

START_TEST(a_target_that_was_away_and_cannot_be_written_counts_as_there_again)
{
    char path[200], away[200];

    snprintf(path, sizeof path, "%s/t1", bed->dir);
    snprintf(away, sizeof away, "%s/away", bed->dir);
    setenv("AIFS_FAULT", "chunk.commit.index=error@1", 1);
    restart(NULL);
    unsetenv("AIFS_FAULT");
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10, true, NULL), -EIO);
    ck_assert_int_eq(rename(path, away), 0);
    until_it_has(1);
    ck_assert_int_eq(fence(bed->session, 1), 0);
    ck_assert_int_eq(rename(away, path), 0);
    until_it_has(2);
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10, true, NULL), -AIFS_EFENCED);
    bed->session++;
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10, true, NULL), -EIO);
    restart(NULL); /* the other target has it on its disk */
    bed->session--;
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10, true, NULL), -AIFS_EFENCED);
}
END_TEST

SUITE_MAIN("oss fences", server_make_bed, server_end_bed,
           a_fenced_session_is_refused_also_after_a_restart,
           a_fence_of_a_heartbeat_is_acknowledged_when_nothing_is_under_way,
           a_fence_of_a_registration_is_acknowledged_when_nothing_is_under_way,
           clients_are_not_served_before_the_fences_are_known,
           an_older_connection_of_a_session_is_refused,
           a_new_connection_waits_for_what_the_old_one_left_in_flight,
           a_fence_does_not_wait_for_a_target_that_cannot_be_written,
           a_target_is_given_the_fences_it_missed_before_it_serves_again,
           a_target_that_was_away_and_cannot_be_written_counts_as_there_again)
