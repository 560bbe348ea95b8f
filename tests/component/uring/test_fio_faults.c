/* SPDX-License-Identifier: Apache-2.0 */
/* File I/O when the kernel gives less than was asked for: by fault points, with both engines. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fault/fault.h"
#include "tests/component/uring/fio_bench.h"
#include "tests/support/suite.h"

static struct fio_bench bench;

static void teardown(void)
{
    fault_disarm_all();
}

START_TEST(short_transfers_are_continued_until_they_are_whole)
{
    enum { LEN = 16 * BENCH_ALIGN };
    struct fio_stats stats;
    char *buf = bench_alloc(LEN);

    fio_bench_open(&bench, _i);
    bench_fill(buf, LEN, 9);
    ck_assert_int_eq(fault_arm("fio.short=error"), 0);
    if (!bench.file.direct)
        bench.file.align_bytes = 4096; /* the size of a short piece; one byte would take for ever */
    ck_assert_int_eq(bench_do(&bench, FIO_WRITE, buf, LEN, 0), 0);
    memset(buf, 0, LEN);
    ck_assert_int_eq(bench_do(&bench, FIO_READ, buf, LEN, 0), 0);
    fault_disarm_all();
    ck_assert(bench_is_filled(buf, LEN, 9));
    fio_get_stats(bench.fio, &stats);
    ck_assert_uint_ge(stats.continued, 30);
    free(buf);
    fio_bench_close(&bench);
}
END_TEST

START_TEST(a_transfer_cut_in_the_middle_of_a_piece_goes_on_there)
{
    static char text[] = "split anywhere", back[sizeof(text)];

    fio_bench_open(&bench, _i);
    if (!bench.file.direct) { /* pieces of one byte */
        ck_assert_int_eq(fault_arm("fio.short=error"), 0);
        ck_assert_int_eq(bench_do(&bench, FIO_WRITE, text, sizeof(text), 3), 0);
        ck_assert_int_eq(bench_do(&bench, FIO_READ, back, sizeof(back), 3), 0);
        fault_disarm_all();
        ck_assert_mem_eq(text, back, sizeof(text));
    }
    fio_bench_close(&bench);
}
END_TEST

START_TEST(an_interrupted_operation_is_tried_again)
{
    struct fio_stats stats;
    char *buf = bench_alloc(BENCH_ALIGN);

    fio_bench_open(&bench, _i);
    bench_fill(buf, BENCH_ALIGN, 5);
    ck_assert_int_eq(fault_arm("fio.again=error@1"), 0);
    ck_assert_int_eq(bench_do(&bench, FIO_WRITE, buf, BENCH_ALIGN, 0), 0);
    fault_disarm_all();
    ck_assert_int_eq(fault_arm("fio.again=error@1"), 0);
    ck_assert_int_eq(bench_do(&bench, FIO_DATASYNC, NULL, 0, 0), 0);
    fault_disarm_all();
    memset(buf, 0, BENCH_ALIGN);
    ck_assert_int_eq(bench_do(&bench, FIO_READ, buf, BENCH_ALIGN, 0), 0);
    ck_assert(bench_is_filled(buf, BENCH_ALIGN, 5));
    fio_get_stats(bench.fio, &stats);
    ck_assert_uint_eq(stats.tried_again, 2);
    free(buf);
    fio_bench_close(&bench);
}
END_TEST

START_TEST(trying_again_has_an_end)
{
    char *buf = bench_alloc(BENCH_ALIGN);

    fio_bench_open(&bench, _i);
    ck_assert_int_eq(fault_arm("fio.again=error"), 0);
    ck_assert_int_eq(bench_do(&bench, FIO_WRITE, buf, BENCH_ALIGN, 0), -EINTR);
    free(buf);
    fio_bench_close(&bench);
}
END_TEST

START_TEST(failures_reach_done_and_harm_no_other_operation)
{
    char *buf = bench_alloc(BENCH_ALIGN);

    fio_bench_open(&bench, _i);
    ck_assert_int_eq(fault_arm("fio.write=error@1,fio.read=error@1,fio.sync=error@1"), 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(bench_do(&bench, FIO_WRITE, buf, BENCH_ALIGN, 0), i ? 0 : -EIO);
        ck_assert_int_eq(bench_do(&bench, FIO_READ, buf, BENCH_ALIGN, 0), i ? 0 : -EIO);
        ck_assert_int_eq(bench_do(&bench, FIO_DATASYNC, NULL, 0, 0), i ? 0 : -EIO);
    }
    free(buf);
    fio_bench_close(&bench);
}
END_TEST

START_TEST(with_io_uring_done_never_runs_inside_submit)
{
    struct bench_op o;
    char *buf = bench_alloc(BENCH_ALIGN);

    fio_bench_open(&bench, _i);
    ck_assert_int_eq(fault_arm("fio.write=error@1"), 0);
    for (int i = 0; i < 2; i++) {
        bench_op_init(&o, &bench, FIO_WRITE, buf, BENCH_ALIGN, 0);
        fio_submit(bench.fio, &o.op);
        ck_assert_uint_eq(o.done, bench.file.engine == FIO_PLAIN);
        bench_wait(&bench, &o, 1);
    }
    free(buf);
    fio_bench_close(&bench);
}
END_TEST

START_TEST(a_kernel_that_takes_no_requests_is_asked_again)
{
    struct bench_op ops[20];
    char *buf = bench_alloc(BENCH_ALIGN);

    fio_bench_open(&bench, _i);
    ck_assert_int_eq(fault_arm("fio.enter=error@1"), 0);
    for (unsigned i = 0; i < 20; i++) {
        bench_op_init(&ops[i], &bench, FIO_WRITE, buf, BENCH_ALIGN, (uint64_t)i * BENCH_ALIGN);
        fio_submit(bench.fio, &ops[i].op);
    }
    bench_wait(&bench, ops, 20);
    for (unsigned i = 0; i < 20; i++)
        ck_assert_int_eq(ops[i].status, 0);
    free(buf);
    fio_bench_close(&bench);
}
END_TEST

START_TEST(without_io_uring_everything_runs_plain)
{
    char *buf = bench_alloc(BENCH_ALIGN);
    struct bench_op o;

    ck_assert_int_eq(fault_arm("fio.create=error"), 0);
    fio_bench_open(&bench, _i);
    ck_assert(!fio_has_ring(bench.fio));
    bench_fill(buf, BENCH_ALIGN, 4);
    bench_op_init(&o, &bench, FIO_WRITE, buf, BENCH_ALIGN, 0);
    fio_submit(bench.fio, &o.op);
    ck_assert_uint_eq(o.done, 1);
    ck_assert_int_eq(o.status, 0);
    memset(buf, 0, BENCH_ALIGN);
    ck_assert_int_eq(bench_do(&bench, FIO_DATASYNC, NULL, 0, 0), 0);
    ck_assert_int_eq(bench_do(&bench, FIO_READ, buf, BENCH_ALIGN, 0), 0);
    ck_assert(bench_is_filled(buf, BENCH_ALIGN, 4));
    free(buf);
    fio_bench_close(&bench);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("fio faults");

    if (access("/dev/shm", W_OK) < 0 || access("/var/tmp", W_OK) < 0) {
        fprintf(stderr, "needs /dev/shm and /var/tmp\n");
        return 77;
    }
    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, short_transfers_are_continued_until_they_are_whole, 0, FIO_PLACES);
    tcase_add_loop_test(tc, a_transfer_cut_in_the_middle_of_a_piece_goes_on_there, 0, FIO_PLACES);
    tcase_add_loop_test(tc, an_interrupted_operation_is_tried_again, 0, FIO_PLACES);
    tcase_add_loop_test(tc, trying_again_has_an_end, 0, FIO_PLACES);
    tcase_add_loop_test(tc, failures_reach_done_and_harm_no_other_operation, 0, FIO_PLACES);
    tcase_add_loop_test(tc, with_io_uring_done_never_runs_inside_submit, 0, FIO_PLACES);
    tcase_add_loop_test(tc, a_kernel_that_takes_no_requests_is_asked_again, 0, FIO_PLACES);
    tcase_add_loop_test(tc, without_io_uring_everything_runs_plain, 0, FIO_PLACES);
    return suite_run_case("fio faults", tc);
}
