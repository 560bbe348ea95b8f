/* SPDX-License-Identifier: Apache-2.0 */
/* Large writes with many requests at once, on real daemons whose targets are in memory: what was
 * answered is there, though its memory was used again and servers were killed meanwhile. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/aifs.h"
#include "common/base/compiler.h"
#include "tests/support/cluster.h"

#define DEPTH  8u
#define BLOCKS 24u
#define ROUNDS 3u

static struct cluster cluster;
static struct aifs *fs;
static struct aifs_file *file;
static struct aifs_queue *queue;
static uint8_t *memory; /* DEPTH blocks */
static unsigned round_of[BLOCKS];

static void setup(void)
{
    setenv("TMPDIR", "/dev/shm", 1);
    ck_assert(cluster_start(&cluster, 2));
    ck_assert_msg(aifs_mount(cluster.source, cluster.options, &fs) == 0, "%s", aifs_mount_error());
    file = aifs_open(fs, "/file", O_RDWR | O_CREAT, 0644);
    queue = aifs_queue_create(fs);
    memory = malloc(DEPTH * MIB);
    ck_assert(file && queue && memory);
}

static void teardown(void)
{
    if (file)
        ck_assert_int_eq(aifs_close(file), 0);
    ck_assert_int_eq(aifs_queue_destroy(queue), 0);
    ck_assert_int_eq(aifs_unmount(fs), 0);
    cluster_stop(&cluster);
    free(memory);
}

static uint32_t word(unsigned block, unsigned round, size_t at)
{
    return (uint32_t)(at * 2654435761u) ^ block << 8 ^ round;
}

static void fill(uint8_t *block, unsigned k, unsigned round)
{
    for (size_t at = 0; at < MIB; at += 4) {
        uint32_t w = word(k, round, at);

        memcpy(block + at, &w, 4);
    }
}

static void expect_block(const uint8_t *block, unsigned k)
{
    uint32_t w = 0;
    size_t at;

    for (at = 0; at < MIB; at += 4) {
        memcpy(&w, block + at, 4);
        if (w != word(k, round_of[k], at))
            break;
    }
    ck_assert_msg(at == MIB, "block %u, byte %zu: %08x", k, at, w);
}

static struct aifs_io ios[DEPTH];

static void begin(unsigned slot, unsigned k, unsigned round)
{
    struct aifs_io *io = &ios[slot];

    fill(memory + slot * MIB, k, round);
    round_of[k] = round;
    *io = (struct aifs_io){.file = file,
                           .op = AIFS_WRITE,
                           .buf = memory + slot * MIB,
                           .len = MIB,
                           .offset = (off_t)(k * MIB)};
    ck_assert_int_eq(aifs_submit(queue, &io, 1), 0);
}

static unsigned collect(void)
{
    struct aifs_io *done;

    ck_assert_int_eq(aifs_wait(queue, &done, 1, 1, -1), 1);
    ck_assert_msg(done->result == (ssize_t)MIB, "a write gave %zd", done->result);
    memset(done->buf, 0xee, MIB); /* it is ours again */
    return (unsigned)(done - ios);
}

static void write_all(unsigned round, void (*halfway)(void))
{
    for (unsigned k = 0; k < BLOCKS + DEPTH; k++) {
        unsigned slot = k < DEPTH ? k : collect();

        if (k < BLOCKS)
            begin(slot, k, round);
        if (halfway && k == BLOCKS / 2)
            halfway();
    }
}

static void read_all(void)
{
    for (unsigned k = 0; k < BLOCKS; k++) {
        ck_assert_int_eq(aifs_pread(file, memory, MIB, (off_t)(k * MIB)), (ssize_t)MIB);
        expect_block(memory, k);
    }
}

static void read_all_afresh(void)
{
    ck_assert_int_eq(aifs_close(file), 0);
    ck_assert_int_eq(aifs_queue_destroy(queue), 0);
    ck_assert_int_eq(aifs_unmount(fs), 0);
    ck_assert_msg(aifs_mount(cluster.source, cluster.options, &fs) == 0, "%s", aifs_mount_error());
    file = aifs_open(fs, "/file", O_RDWR, 0);
    queue = aifs_queue_create(fs);
    ck_assert(file && queue);
    read_all();
}

START_TEST(what_was_answered_is_there_though_its_memory_is_used_again)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        write_all(round, NULL);
        read_all();
    }
    read_all_afresh();
}
END_TEST

static void kill_a_server(void)
{
    cluster_kill_oss(&cluster, 0, SIGKILL);
    cluster_start_oss(&cluster, 0);
}

START_TEST(what_was_answered_is_there_though_servers_are_killed)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        write_all(round, kill_a_server);
        kill_a_server();
        read_all();
    }
    ck_assert_int_eq(aifs_fsync(file), 0);
    read_all_afresh();
}
END_TEST

START_TEST(what_is_small_and_what_is_large_go_in_the_order_in_which_they_are_made)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        write_all(round, NULL);
        for (unsigned k = 0; k < BLOCKS; k += 3) {
            uint32_t w = word(k, round + 100, 4096);

            ck_assert_int_eq(aifs_pwrite(file, &w, 4, (off_t)(k * MIB + 4096)), 4);
        }
        write_all(round + 10, NULL);
        read_all();
    }
    read_all_afresh();
}
END_TEST

CLUSTER_SUITE_MAIN("libaifs-straight", setup, teardown,
                   what_was_answered_is_there_though_its_memory_is_used_again,
                   what_was_answered_is_there_though_servers_are_killed,
                   what_is_small_and_what_is_large_go_in_the_order_in_which_they_are_made)
