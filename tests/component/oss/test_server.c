// SPDX-License-Identifier: Apache-2.0
/*
 * aifs-oss as a process: registration, data, commits and verifiers over restarts, space promises,
 * wrong input.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/crc.h"
#include "tests/component/oss/server.h"
#include "tests/support/suite.h"

START_TEST(what_was_written_is_read_with_its_sums)
{
    uint8_t *want = malloc(CHUNK);
    uint32_t len = 0;

    server_fill(want, CHUNK, 1);
    ck_assert_int_eq(server_write(100, 9, 0, 0, want, CHUNK, false, NULL), 0);
    ck_assert_int_eq(server_write(100, 9, 1, 0, want, 5000, false, NULL), 0);
    ck_assert_int_eq(server_read(100, 9, 0, 0, bed->buf, CHUNK, &len), 0);
    ck_assert_uint_eq(len, CHUNK);
    ck_assert_int_eq(memcmp(want, bed->buf, len), 0);
    ck_assert_int_eq(server_read(100, 9, 1, 4096, bed->buf, 8192, &len), 0);
    ck_assert_uint_eq(len, 5000 - 4096);
    ck_assert_int_eq(memcmp(want + 4096, bed->buf, len), 0);
    ck_assert_int_eq(server_read(100, 9, 2, 0, bed->buf, 4096, &len), 0);
    ck_assert_uint_eq(len, 0);
    ck_assert_int_eq(server_read(77, 9, 2, 0, bed->buf, 4096, &len), -AIFS_ENOTARGET);
    free(want);
}
END_TEST

START_TEST(many_ranges_are_answered_together_in_their_order)
{
    struct msg_range ranges[MSG_RANGES_MAX];
    uint32_t n = ARRAY_LEN(ranges), at = 0, crcs_at = 0, crcs[2];
    struct msg_read_req m = {.target = 100, .ino = 9, .n_ranges = n, .ranges = ranges};
    struct iovec iov = {bed->buf, CHUNK};
    uint8_t *want = malloc(CHUNK);
    const struct msg_read_rep *rep;
    struct caller k;

    server_fill(want, CHUNK, 1);
    ck_assert_int_eq(server_write(100, 9, 0, 0, want, CHUNK, false, NULL), 0);
    ck_assert_int_eq(server_write(100, 9, 1, 0, want, 5000, false, NULL), 0);
    for (uint32_t i = 0; i < n; i++) /* of a whole chunk, of one that ends early, of none */
        ranges[i] = (struct msg_range){.chunk = i % 3, .offset = i % 5 * 4096, .len = 4096};
    ck_assert_int_eq(server_call_ready(&k, RPC_OP_OSS_READ, &m, NULL, &iov), 0);
    rep = k.call.rep;
    ck_assert_uint_eq(rep->n_lens, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t from = ranges[i].offset, end = i % 3 == 0 ? CHUNK : i % 3 == 1 ? 5000 : 0;
        uint32_t len = end > from ? MIN(end - from, 4096) : 0;

        ck_assert_uint_eq(rep->lens[i], len);
        ck_assert_int_eq(memcmp(bed->buf + at, want + from, len), 0);
        ck_assert(!len || crc32c_blocks(0, want + from, len, crcs) == 1);
        ck_assert(!len || rep->crcs[crcs_at++] == crcs[0]);
        at += len;
    }
    ck_assert_uint_eq(k.call.bulk_in_len, at);
    ck_assert_uint_eq(rep->n_crcs, crcs_at);
    rpc_call_fini(&k.call);
    free(want);
}
END_TEST

START_TEST(a_stable_write_survives_a_kill_and_the_verifier_changes)
{
    struct msg_write_rep before, after;
    uint32_t len = 0;

    server_fill(bed->buf, 10000, 2);
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10000, true, &before), 0);
    ck_assert_uint_gt(before.grant, 0);
    server_end(SIGKILL, 0);
    unlink(strcat(strcpy((char *)bed->buf + CHUNK, bed->dir), "/run/port"));
    server_start(NULL);
    server_connect();
    ck_assert_int_eq(server_read(100, 9, 0, 0, bed->buf + CHUNK, 12288, &len), 0);
    ck_assert_uint_eq(len, 10000);
    server_fill(bed->buf, 10000, 2);
    ck_assert_int_eq(memcmp(bed->buf, bed->buf + CHUNK, 10000), 0);
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10, true, &after), 0);
    ck_assert_uint_ne(before.verifier, after.verifier);
}
END_TEST

static void write_once(uint64_t session, uint64_t once, uint32_t offset, const char *text)
{
    char data[16];

    snprintf(data, sizeof data, "%s", text);
    bed->session = session;
    bed->once = once;
    ck_assert_int_eq(server_write(100, 9, 0, offset, data, 5, true, NULL), 0);
    bed->once = 0;
}

static void there_is(uint32_t offset, const char *text)
{
    uint32_t len = 0;

    ck_assert_int_eq(server_read(100, 9, 0, 0, bed->buf, CHUNK, &len), 0);
    ck_assert_uint_ge(len, offset + 5);
    ck_assert_int_eq(memcmp(bed->buf + offset, text, 5), 0);
}

static void punch_once(uint64_t session, uint64_t once)
{
    struct msg_cut_req m = {
        .target = 100, .ino = 9, .chunk_bytes = CHUNK, .start = 0, .end = 4096, .once = once};
    struct caller k;

    bed->session = session;
    ck_assert_int_eq(server_call_ready(&k, RPC_OP_OSS_PUNCH, &m, NULL, NULL), 0);
    rpc_call_fini(&k.call);
}

/* Its answer was lost, and somebody else has written there meanwhile, and has been answered. */
START_TEST(what_is_sent_again_and_was_done_is_not_done_again)
{
    write_once(5, 1, 0, "first");
    write_once(5, 2, 100, "other");
    write_once(6, 1, 0, "newer"); /* the number of another session */
    write_once(5, 1, 0, "first");
    there_is(0, "newer");
    write_once(5, 3, 0, "third");
    there_is(0, "third");
    write_once(5, 0, 0, "fifth"); /* without a number as often as it comes */
    write_once(5, 0, 0, "sixth");
    there_is(0, "sixth");
    punch_once(5, 4);
    there_is(0, "\0\0\0\0\0");
    write_once(6, 5, 0, "newer");
    punch_once(5, 4);
    there_is(0, "newer");
    punch_once(6, 4);
    there_is(0, "\0\0\0\0\0");
}
END_TEST

static void write_two_once(uint64_t session, uint64_t once, const char *text)
{
    struct msg_range ranges[2] = {{.offset = 0, .len = 5}, {.offset = 100, .len = 5}};
    uint32_t crcs[2];
    struct msg_write_req m = {.target = 100,
                              .ino = 9,
                              .stable = true,
                              .n_ranges = 2,
                              .ranges = ranges,
                              .n_crcs = 2,
                              .crcs = crcs,
                              .once = once};
    char bytes[11];
    struct iovec iov = {bytes, 10};
    struct caller k;

    snprintf(bytes, sizeof bytes, "%s%s", text, text);
    for (unsigned i = 0; i < 2; i++)
        crc32c_blocks(ranges[i].offset, bytes, 5, &crcs[i]);
    bed->session = session;
    ck_assert_int_eq(server_call_ready(&k, RPC_OP_OSS_WRITE, &m, &iov, NULL), 0);
    rpc_call_fini(&k.call);
}

/* A call of several has a number for each of them, and each may come by itself then. */
START_TEST(of_what_was_sent_together_each_is_known_and_none_is_taken_for_another)
{
    write_two_once(5, 1, "first");
    write_once(6, 1, 0, "newer");
    write_once(6, 2, 100, "newer");
    write_once(5, 1, 0, "first");
    write_once(5, 2, 100, "first");
    there_is(0, "newer");
    there_is(100, "newer");
    write_once(5, 11, 0, "third"); /* 11 and 12 never came together */
    write_two_once(5, 11, "forth");
    there_is(100, "forth");
    write_once(5, 12, 100, "wrong");
    there_is(100, "forth");
}
END_TEST

START_TEST(a_write_that_is_sent_again_is_known_after_a_kill)
{
    char port[200];

    write_once(5, 1, 0, "first"); /* with the record of the chunk, and logged over it: */
    write_once(5, 2, 100, "other");
    server_end(SIGKILL, 0);
    snprintf(port, sizeof port, "%s/run/port", bed->dir);
    unlink(port);
    server_start(NULL);
    server_connect();
    write_once(5, 2, 100, "wrong");
    there_is(100, "other");
    write_once(6, 1, 100, "newer");
    write_once(5, 2, 100, "other");
    there_is(100, "newer");
}
END_TEST

START_TEST(a_large_write_to_a_target_in_memory_is_durable_as_it_is_answered)
{
    static struct bed *on_disk;
    struct msg_write_rep rep;
    uint32_t len = 0;
    char port[200];

    server_end_bed();
    on_disk = bed;
    ck_assert_ptr_nonnull(on_disk);
    ck_assert_int_eq(setenv("TMPDIR", "/dev/shm", 1), 0);
    server_make_bed();
    server_fill(bed->buf, CHUNK, 2);
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, CHUNK, false, &rep), 0);
    ck_assert(rep.committed);
    ck_assert_int_eq(server_write(100, 9, 1, 0, bed->buf, 10000, false, &rep), 0);
    ck_assert(!rep.committed);
    server_end(SIGKILL, 0);
    snprintf(port, sizeof port, "%s/run/port", bed->dir);
    unlink(port);
    server_start(NULL);
    server_connect();
    ck_assert_int_eq(server_read(100, 9, 0, 0, bed->buf + CHUNK, CHUNK, &len), 0);
    ck_assert_uint_eq(len, CHUNK);
    ck_assert_int_eq(memcmp(bed->buf, bed->buf + CHUNK, CHUNK), 0);
}
END_TEST

START_TEST(a_clean_stop_commits_everything)
{
    uint32_t len = 0;

    server_fill(bed->buf, 10000, 3);
    ck_assert_int_eq(server_write(101, 9, 0, 0, bed->buf, 10000, false, NULL), 0);
    server_end(SIGTERM, 0);
    server_start(NULL);
    server_connect();
    ck_assert_int_eq(server_read(101, 9, 0, 0, bed->buf, 12288, &len), 0);
    ck_assert_uint_eq(len, 10000);
}
END_TEST

START_TEST(malformed_requests_are_refused_and_harm_nothing)
{
    struct msg_range range = {.chunk = 0, .offset = 0, .len = 4096};
    uint32_t crc = 1;
    struct msg_write_req m = {
        .target = 100, .ino = 9, .n_ranges = 1, .ranges = &range, .n_crcs = 1, .crcs = &crc};
    struct msg_cut_req cut = {.target = 100, .ino = 9, .truncate_gen = 1, .chunk_bytes = 3};
    struct iovec iov = {bed->buf, 4096}, small = {bed->buf, 100};
    struct caller k;

    ck_assert_int_eq(server_call_ready(&k, RPC_OP_OSS_WRITE, &m, &iov, NULL), -AIFS_ECHECKSUM);
    rpc_call_fini(&k.call);
    ck_assert_int_eq(server_call_ready(&k, RPC_OP_OSS_WRITE, &m, &small, NULL), -AIFS_EPROTO);
    rpc_call_fini(&k.call);
    ck_assert_int_eq(server_call_ready(&k, RPC_OP_OSS_WRITE, &m, NULL, NULL), -AIFS_EPROTO);
    rpc_call_fini(&k.call);
    range.offset = 0xfffff000u;
    crc = crc32c(bed->buf, 4096);
    ck_assert_int_eq(server_call_ready(&k, RPC_OP_OSS_WRITE, &m, &iov, NULL), -AIFS_EPROTO);
    rpc_call_fini(&k.call);
    ck_assert_int_eq(server_call(&k, RPC_OP_OSS_TRUNCATE, &cut), -EINVAL);
    rpc_call_fini(&k.call);
    ck_assert_int_eq(server_write(100, 0, 0, 0, bed->buf, 10, false, NULL), -EINVAL);
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10, false, NULL), 0);
}
END_TEST

START_TEST(truncate_seal_list_and_destroy_over_the_wire)
{
    struct msg_cut_req cut = {
        .target = 100, .ino = 9, .truncate_gen = 0, .chunk_bytes = CHUNK, .start = CHUNK + 50};
    struct msg_seal_req seal = {.target = 100, .ino = 9, .chunk_bytes = CHUNK};
    struct msg_chunk_list_req list = {.target = 100, .first = true, .max = 100, .verify = true};
    uint64_t ino = 9;
    struct msg_destroy_req destroy = {.target = 100, .n_inos = 1, .inos = &ino};
    struct caller k;

    server_fill(bed->buf, CHUNK, 4);
    for (uint32_t c = 0; c < 3; c++)
        ck_assert_int_eq(server_write(100, 9, c, 0, bed->buf, CHUNK, false, NULL), 0);
    ck_assert_int_eq(server_call(&k, RPC_OP_OSS_SEAL, &seal), 0);
    ck_assert_uint_eq(((const struct msg_seal_rep *)k.call.rep)->high_water, 3ull * CHUNK);
    rpc_call_fini(&k.call);
    cut.truncate_gen = 1;
    ck_assert_int_eq(server_call(&k, RPC_OP_OSS_TRUNCATE, &cut), 0);
    rpc_call_fini(&k.call);
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10, false, NULL), -AIFS_ESTALE_TRUNC);
    seal.truncate_gen = 1;
    ck_assert_int_eq(server_call(&k, RPC_OP_OSS_SEAL, &seal), 0);
    ck_assert_uint_eq(((const struct msg_seal_rep *)k.call.rep)->high_water, CHUNK + 50);
    rpc_call_fini(&k.call);
    ck_assert_int_eq(server_call(&k, RPC_OP_OSS_CHUNK_LIST, &list), 0);
    ck_assert_uint_eq(((const struct msg_chunk_list_rep *)k.call.rep)->n_chunks, 2);
    ck_assert_uint_eq(((const struct msg_chunk_list_rep *)k.call.rep)->chunks[1].len, 50);
    ck_assert(!((const struct msg_chunk_list_rep *)k.call.rep)->chunks[0].bad);
    ck_assert(((const struct msg_chunk_list_rep *)k.call.rep)->eof);
    rpc_call_fini(&k.call);
    ck_assert_int_eq(server_call(&k, RPC_OP_OSS_DESTROY, &destroy), 0);
    rpc_call_fini(&k.call);
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10, false, NULL), -ENOENT);
}
END_TEST

/* A write of whole chunks to the end, or until there is no room; the first one that was refused. */
static uint64_t fill_target(uint64_t ino)
{
    uint64_t chunk = 0;
    int rc;

    while ((rc = server_write(100, ino, chunk, 0, bed->buf, CHUNK, true, NULL)) == 0)
        chunk++;
    ck_assert_int_eq(rc, -ENOSPC);
    return chunk;
}

START_TEST(space_that_is_promised_to_one_session_is_not_taken_by_another)
{
    struct msg_write_rep rep;
    uint64_t promised, chunk;

    bed->session = 11;
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 4096, true, &rep), 0);
    promised = rep.grant;
    ck_assert_uint_eq(promised, CHUNK); /* as much as is asked for here */
    bed->session = 12;
    ck_assert_uint_gt(fill_target(10), 40);
    bed->session = 11;
    for (chunk = 1; promised; chunk++) {
        ck_assert_int_eq(server_write(100, 9, chunk, 0, bed->buf, 4096, false, &rep), 0);
        ck_assert_uint_le(rep.grant, promised);
        ck_assert_uint_ge(rep.grant + 65536, promised);
        promised = rep.grant;
    }
    ck_assert_uint_ge(chunk, 16);
    ck_assert_int_eq(server_write(100, 9, 100, 0, bed->buf, CHUNK, false, NULL), -ENOSPC);
}
END_TEST

START_TEST(it_registers_once_and_then_beats)
{
    while (bed->beats < 2)
        reactor_run_once(bed->reactor, NS_PER_S);
    ck_assert_uint_eq(bed->registrations, 1);
}
END_TEST

SUITE_MAIN("oss server", server_make_bed, server_end_bed, what_was_written_is_read_with_its_sums,
           many_ranges_are_answered_together_in_their_order,
           a_stable_write_survives_a_kill_and_the_verifier_changes,
           what_is_sent_again_and_was_done_is_not_done_again,
           of_what_was_sent_together_each_is_known_and_none_is_taken_for_another,
           a_write_that_is_sent_again_is_known_after_a_kill,
           a_large_write_to_a_target_in_memory_is_durable_as_it_is_answered,
           a_clean_stop_commits_everything, malformed_requests_are_refused_and_harm_nothing,
           truncate_seal_list_and_destroy_over_the_wire,
           space_that_is_promised_to_one_session_is_not_taken_by_another,
           it_registers_once_and_then_beats)
