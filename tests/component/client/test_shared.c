/* SPDX-License-Identifier: Apache-2.0 */
/* Small transfers that share a call: fewer calls, the right bytes to each, and the fault of one is
 * not that of the others. */
#include <check.h>
#include <fcntl.h>
#include <string.h>

#include "common/base/err.h"
#include "tests/support/client_bed.h"
#include "tests/support/suite.h"

#define ROOM    (6u * MIB)
#define READERS 48u
#define PIECE   4096u

static struct bed bed;
static struct core *writer, *c;
static struct core_file *wf, *f;
static uint8_t *data, *back;
static struct bed_op ops[READERS];
static uint64_t at[READERS];

/* A file of another client's, of which c has nothing yet. */
static void setup(void)
{
    struct core_opened opened;

    bed_setup(&bed, 3);
    writer = bed_mount(&bed, NULL);
    c = bed_mount(&bed, NULL);
    data = malloc(ROOM);
    back = malloc(READERS * PIECE);
    bed_pattern(data, ROOM, 0, 1);
    wf = bed_create(&bed, writer, "f");
    for (uint32_t k = 0; k < ROOM; k += MIB)
        ck_assert_int_eq(bed_write(&bed, writer, wf, k, data + k, MIB), 0);
    ck_assert_int_eq(bed_fsync(&bed, writer, wf), 0);
    f = bed_open(&bed, c, "f", O_RDWR, &opened);
}

static void teardown(void)
{
    core_release(c, f);
    core_release(writer, wf);
    bed_unmount(&bed, c, false, 0);
    bed_unmount(&bed, writer, false, 0);
    free(data);
    free(back);
    bed_teardown(&bed);
}

static void start_reads(void)
{
    for (unsigned k = 0; k < READERS; k++) {
        at[k] = (uint64_t)(k * 2654435761u) % (ROOM / PIECE) * PIECE;
        memset(back + k * PIECE, 0xee, PIECE);
        bed_op_init(&ops[k]);
        ops[k].q.direct = true;
        core_read(c, &ops[k].q, f, at[k], PIECE, back + k * PIECE);
    }
}

static void end_read(unsigned k)
{
    ck_assert_int_eq(bed_wait(&bed, &ops[k]), 0);
    ck_assert_uint_eq(ops[k].q.out.read.bytes, PIECE);
    ck_assert_int_eq(memcmp(back + k * PIECE, data + at[k], PIECE), 0);
    core_read_done(&ops[k].q);
}

static void end_reads(void)
{
    for (unsigned k = 0; k < READERS; k++)
        end_read(k);
}

static unsigned calls(bool writes, unsigned *ret_ranges)
{
    unsigned n = 0;

    *ret_ranges = 0;
    for (unsigned k = 0; k < bed.cluster.n_oss; k++) {
        const struct fake_oss *o = &bed.cluster.oss[k];

        n += writes ? o->writes : o->reads;
        *ret_ranges += writes ? o->write_ranges : o->read_ranges;
    }
    return n;
}

START_TEST(reads_of_one_moment_are_one_call_for_each_server)
{
    struct core_stats stats;
    unsigned n, ranges;

    start_reads();
    end_reads();
    n = calls(false, &ranges);
    ck_assert_uint_eq(ranges, READERS);
    ck_assert_uint_eq(n, bed.cluster.n_oss);
    core_get_stats(c, &stats);
    ck_assert_uint_eq(stats.oss_shared, READERS);
}
END_TEST

START_TEST(holes_and_the_end_of_a_chunk_move_nobody_elses_bytes)
{
    static const uint64_t cut = 2 * MIB + 3 * PIECE + 100; /* inside what is read */
    struct bed_op one;

    ck_assert_int_eq(bed_truncate(&bed, writer, wf, cut), 0);
    ck_assert_int_eq(bed_truncate(&bed, writer, wf, ROOM), 0);
    memset(data + cut, 0, ROOM - cut);
    bed_spin(&bed, 2 * NS_PER_S); /* what c believed of the size is over */
    bed_op_init(&one);
    core_getattr(c, &one.q, core_file_ino(f));
    ck_assert_int_eq(bed_wait(&bed, &one), 0);
    ck_assert_uint_eq(one.q.entry.attr.size, ROOM);
    start_reads();
    end_reads();
}
END_TEST

START_TEST(a_shared_read_that_fails_is_made_again_by_each_alone)
{
    unsigned n, ranges;

    bed.cluster.oss[1].fail_reads = 1;
    bed.cluster.oss[2].corrupt_reads = 1;
    start_reads();
    end_reads();
    n = calls(false, &ranges);
    ck_assert_uint_eq(bed.cluster.oss[0].reads, 1);
    ck_assert_uint_gt(bed.cluster.oss[1].reads, 8);
    ck_assert_uint_eq(bed.cluster.oss[2].reads, 2); /* the damaged one, alone */
    ck_assert_uint_gt(n, 8);
}
END_TEST

START_TEST(an_error_that_stays_is_that_of_each)
{
    unsigned failed = 0;

    bed.cluster.oss[1].fail_reads = 1000;
    start_reads();
    for (unsigned k = 0; k < READERS; k++) {
        int status = bed_wait(&bed, &ops[k]);

        ck_assert(!status || status == -EIO);
        failed += status != 0;
        if (status)
            continue;
        ck_assert_int_eq(memcmp(back + k * PIECE, data + at[k], PIECE), 0);
        core_read_done(&ops[k].q);
    }
    ck_assert_uint_gt(failed, 0);
    ck_assert_uint_lt(failed, READERS);
}
END_TEST

START_TEST(one_that_is_cancelled_takes_nobody_along)
{
    unsigned k;

    fake_targets_hold(&bed.cluster);
    start_reads();
    while (bed.cluster.oss[0].held_now + bed.cluster.oss[1].held_now + bed.cluster.oss[2].held_now <
           3)
        bed_spin(&bed, NS_PER_MS);
    core_cancel(&ops[5].q);
    ck_assert_int_eq(bed_wait(&bed, &ops[5]), -EINTR);
    fake_targets_release(&bed.cluster);
    for (k = 0; k < READERS; k++)
        if (k != 5)
            end_read(k);
}
END_TEST

/* Forty pieces of a file that only its writer has open. */
static struct core_file *scattered_writes(void)
{
    struct core_file *own = bed_create(&bed, writer, "own");

    for (uint32_t k = 0; k < ROOM; k += MIB)
        ck_assert_int_eq(bed_write(&bed, writer, own, k, data + k, MIB), 0);
    ck_assert_int_eq(bed_fsync(&bed, writer, own), 0); /* the targets have promised room */
    for (uint32_t k = 0; k < 40; k++) {
        uint32_t to = k % 3 * MIB + k * 37 % 64 * 8192;

        bed_pattern(data + to, PIECE, to, 7);
        ck_assert_int_eq(bed_write(&bed, writer, own, to, data + to, PIECE), 0);
    }
    return own;
}

static void expect_durable(void)
{
    uint8_t *stored = malloc(ROOM);

    fake_contents(&bed.cluster, fake_inode(&bed.cluster, "own"), 0, stored, ROOM, true);
    ck_assert_int_eq(memcmp(stored, data, ROOM), 0);
    free(stored);
}

START_TEST(scattered_writes_are_sent_together)
{
    struct core_file *own = scattered_writes();
    unsigned n, ranges, ranges_before, n_before = calls(true, &ranges_before);

    ck_assert_int_eq(bed_fsync(&bed, writer, own), 0);
    n = calls(true, &ranges);
    ck_assert_uint_eq(ranges - ranges_before, 40);
    ck_assert_uint_lt(n - n_before, 12);
    expect_durable();
    core_release(writer, own);
}
END_TEST

START_TEST(a_shared_write_that_fails_is_made_again_by_each_alone)
{
    struct core_file *own = scattered_writes();
    unsigned n, ranges, ranges_before, n_before = calls(true, &ranges_before);

    for (unsigned k = 0; k < bed.cluster.n_oss; k++) {
        bed.cluster.oss[k].fail_writes = -EIO;
        bed.cluster.oss[k].fail_writes_n = 1;
    }
    ck_assert_int_eq(bed_fsync(&bed, writer, own), 0);
    n = calls(true, &ranges);
    ck_assert_uint_gt(n - n_before, 40); /* each, and those that failed */
    expect_durable();
    core_release(writer, own);
}
END_TEST

SUITE_MAIN("client-shared", setup, teardown, reads_of_one_moment_are_one_call_for_each_server,
           holes_and_the_end_of_a_chunk_move_nobody_elses_bytes,
           a_shared_read_that_fails_is_made_again_by_each_alone,
           an_error_that_stays_is_that_of_each, one_that_is_cancelled_takes_nobody_along,
           scattered_writes_are_sent_together,
           a_shared_write_that_fails_is_made_again_by_each_alone)
