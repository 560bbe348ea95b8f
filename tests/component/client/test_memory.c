/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that runs out once, at each place in turn, while two clients work on one file: every call
 * ends, with an error at most, works when it is made again, and what was synced is there.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "common/fault/fault.h"
#include "tests/support/client_bed.h"
#include "tests/support/suite.h"

#define LEN  (2 * MIB + 500000u)
#define RUNS 60u /* of one bed: the fake's inodes are not used again */

static struct bed bed;
static struct core *a, *b;
static uint8_t *data, *back;
static unsigned n_failed;
static char name[16]; /* another one each time: the other client believes in names for a while */

static void setup(void)
{
    bed_setup(&bed, 3);
    a = bed_mount(&bed, NULL);
    b = bed_mount(&bed, NULL);
    data = malloc(LEN);
    back = malloc(LEN);
}

static void teardown(void)
{
    bed_unmount(&bed, a, false, 0);
    bed_unmount(&bed, b, false, 0);
    free(data);
    free(back);
    bed_teardown(&bed);
}

/* One failure at most comes from memory; it may show as one of these. */
static bool failed(int status)
{
    if (!status)
        return false;
    ck_assert_msg(status == -ENOMEM || status == -EIO, "status %d", status);
    n_failed++;
    ck_assert_uint_le(n_failed, 3);
    return true;
}

static struct core_file *create(void)
{
    struct bed_op op;

    do {
        bed_op_init(&op);
        core_create_file(a, &op.q, 1, name, (uint32_t)strlen(name), 0644, O_RDWR | O_CREAT, NULL);
    } while (failed(bed_wait(&bed, &op)));
    return op.q.out.opened.file;
}

static struct core_file *open_file(struct core *c, int flags)
{
    struct bed_op op;
    uint64_t ino;

    do {
        bed_op_init(&op);
        core_lookup(c, &op.q, 1, name, (uint32_t)strlen(name));
    } while (failed(bed_wait(&bed, &op)));
    ino = op.q.entry.ino;
    do {
        bed_op_init(&op);
        core_open(c, &op.q, ino, flags);
    } while (failed(bed_wait(&bed, &op)));
    return op.q.out.opened.file;
}

static void put(struct core_file *f, uint32_t at, uint32_t len)
{
    while (failed(bed_write(&bed, a, f, at, data + at, len)))
        ;
}

/* An error of write-back may have cost anything that was not synced. */
static void sync_all(struct core_file *f, uint32_t len)
{
    while (failed(bed_fsync(&bed, a, f)))
        put(f, 0, len);
}

static void cut(struct core_file *f, uint32_t size)
{
    while (failed(bed_truncate(&bed, a, f, size)))
        ;
}

static void expect(struct core *c, struct core_file *f, uint32_t len)
{
    int got;

    do {
        memset(back, 0xee, len);
        got = bed_read(&bed, c, f, 0, back, len);
    } while (got < 0 && failed(got));
    ck_assert_int_eq(got, (int)len);
    ck_assert_int_eq(memcmp(back, data, len), 0);
}

static void expect_stored(uint32_t len)
{
    struct fake_inode *i = fake_inode(&bed.cluster, name);

    ck_assert_msg(i->attr.size == len, "%s: %llu of %u bytes, %u failed", name,
                  (unsigned long long)i->attr.size, len, n_failed);
    fake_contents(&bed.cluster, i, 0, back, len, true);
    ck_assert_int_eq(memcmp(back, data, len), 0);
}

static void name_work(void)
{
    struct bed_op op;

    do {
        bed_op_init(&op);
        core_rename(a, &op.q, 1, name, (uint32_t)strlen(name), 1, "other", 5, 0);
    } while (failed(bed_wait(&bed, &op)));
    do {
        bed_op_init(&op);
        core_unlink(a, &op.q, 1, "other", 5);
    } while (failed(bed_wait(&bed, &op)));
}

static void work(unsigned seed)
{
    struct core_file *f = create(), *g;
    unsigned k;

    bed_pattern(data, LEN, 0, seed);
    put(f, 0, 1000);
    while (failed(bed_flush(&bed, a, f)))
        put(f, 0, 1000);
    put(f, 0, LEN); /* it grows */
    sync_all(f, LEN);
    expect_stored(LEN);
    for (k = 0; k < 40; k++)
        put(f, k * 60000 + 3, 10);
    put(f, 0, MIB);
    g = open_file(b, O_RDONLY); /* takes the lease away */
    expect(b, g, LEN);
    put(f, 4000, 5000);
    sync_all(f, LEN);
    expect(b, g, LEN);
    core_release(b, g);
    core_release(a, f);
    bed_spin(&bed, 30 * NS_PER_MS);
    f = open_file(a, O_RDWR);
    put(f, MIB + 5, 1000);
    put(f, 7, 1000);
    cut(f, MIB + 9);
    sync_all(f, MIB + 9);
    expect(a, f, MIB + 9);
    expect_stored(MIB + 9);
    core_release(a, f);
    name_work();
}

START_TEST(memory_that_runs_out_anywhere_costs_an_error_at_most)
{
    unsigned from = (unsigned)_i * RUNS + 1, n;
    char spec[64];

    for (n = from; n < from + RUNS; n++) {
        n_failed = 0;
        snprintf(name, sizeof name, "file%u", n);
        snprintf(spec, sizeof spec, "client.memory=error@%u", n);
        ck_assert_int_eq(fault_arm(spec), 0);
        work(n);
        if (fault_count("client.memory") < n)
            n = from + RUNS; /* there are no more places */
        fault_disarm_all();
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("client-memory");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, memory_that_runs_out_anywhere_costs_an_error_at_most, 0, 8);
    return suite_run_case("client-memory", tc);
}
