/* SPDX-License-Identifier: Apache-2.0 */
/* File I/O with both engines, in memory and on disk. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "tests/component/uring/fio_bench.h"
#include "tests/support/suite.h"

static struct fio_bench bench;

START_TEST(the_engine_is_chosen_by_the_file_system)
{
    struct statfs fs;
    bool memory;

    fio_bench_open(&bench, _i);
    ck_assert_int_eq(fstatfs(bench.file.fd, &fs), 0);
    memory = fs.f_type == TMPFS_MAGIC;
    printf("%s, %s: %s, align %u\n", fio_places[_i].parent, fio_places[_i].want,
           fio_engine_name(&bench.file), bench.file.align_bytes);
    if (!strcmp(fio_places[_i].want, "auto"))
        ck_assert_int_eq(bench.file.engine, memory ? FIO_PLAIN : FIO_URING);
    else
        ck_assert_int_eq(bench.file.engine,
                         strcmp(fio_places[_i].want, "plain") ? FIO_URING : FIO_PLAIN);
    if (memory || bench.file.engine == FIO_PLAIN)
        ck_assert(!bench.file.direct);
    if (bench.file.direct)
        ck_assert_uint_ge(bench.file.align_bytes, 512);
    else
        ck_assert_uint_eq(bench.file.align_bytes, 1);
    ck_assert_int_eq(!!(fcntl(bench.file.fd, F_GETFL) & O_DIRECT), bench.file.direct);
    ck_assert_int_eq(fcntl(bench.file.fd, F_GETFL) & O_NONBLOCK, 0);
    fio_bench_close(&bench);
}
END_TEST

START_TEST(a_thousand_operations_at_once_through_a_ring_of_eight)
{
    enum { N = 1000, BLOCK = 4096 };
    struct bench_op *ops = calloc(N, sizeof(*ops));
    struct fio_stats stats;
    char *buf, *back;

    fio_bench_open(&bench, _i);
    buf = bench_alloc((size_t)N * BLOCK);
    back = bench_alloc((size_t)N * BLOCK);
    for (unsigned i = 0; i < N; i++) {
        unsigned at = i * 7 % N; /* out of order */

        bench_fill(buf + at * BLOCK, BLOCK, at);
        bench_op_init(&ops[i], &bench, FIO_WRITE, buf + at * BLOCK, BLOCK, (uint64_t)at * BLOCK);
        fio_submit(bench.fio, &ops[i].op);
    }
    bench_wait(&bench, ops, N);
    ck_assert_int_eq(bench_do(&bench, FIO_DATASYNC, NULL, 0, 0), 0);
    for (unsigned i = 0; i < N; i++) {
        ck_assert_int_eq(ops[i].status, 0);
        bench_op_init(&ops[i], &bench, FIO_READ, back + i * BLOCK, BLOCK, (uint64_t)i * BLOCK);
        fio_submit(bench.fio, &ops[i].op);
    }
    bench_wait(&bench, ops, N);
    for (unsigned i = 0; i < N; i++) {
        ck_assert_int_eq(ops[i].status, 0);
        ck_assert(bench_is_filled(back + i * BLOCK, BLOCK, i));
    }
    fio_get_stats(bench.fio, &stats);
    ck_assert_uint_eq(stats.submitted, 2 * N + 1);
    if (bench.file.engine == FIO_URING)
        ck_assert_uint_eq(stats.ring_full, 2 * (N - BENCH_DEPTH));
    free(buf);
    free(back);
    free(ops);
    fio_bench_close(&bench);
}
END_TEST

START_TEST(requests_of_one_turn_are_one_system_call)
{
    struct bench_op ops[BENCH_DEPTH];
    struct fio_stats stats;
    char *buf;

    fio_bench_open(&bench, _i);
    buf = bench_alloc(BENCH_ALIGN);
    for (unsigned i = 0; i < BENCH_DEPTH; i++) {
        bench_op_init(&ops[i], &bench, FIO_WRITE, buf, BENCH_ALIGN, (uint64_t)i * BENCH_ALIGN);
        fio_submit(bench.fio, &ops[i].op);
    }
    bench_wait(&bench, ops, BENCH_DEPTH);
    fio_get_stats(bench.fio, &stats);
    ck_assert_uint_eq(stats.enters, bench.file.engine == FIO_URING ? 1 : 0);
    free(buf);
    fio_bench_close(&bench);
}
END_TEST

START_TEST(a_read_past_the_end_of_the_file_is_enodata)
{
    char *buf;

    fio_bench_open(&bench, _i);
    buf = bench_alloc(3 * BENCH_ALIGN);
    bench_fill(buf, 2 * BENCH_ALIGN, 1);
    ck_assert_int_eq(bench_do(&bench, FIO_READ, buf, BENCH_ALIGN, 0), -ENODATA);
    ck_assert_int_eq(bench_do(&bench, FIO_WRITE, buf, 2 * BENCH_ALIGN, 0), 0);
    ck_assert_int_eq(bench_do(&bench, FIO_READ, buf, 2 * BENCH_ALIGN, 0), 0);
    ck_assert_int_eq(bench_do(&bench, FIO_READ, buf, 3 * BENCH_ALIGN, 0), -ENODATA);
    ck_assert_int_eq(bench_do(&bench, FIO_READ, buf, BENCH_ALIGN, 2 * BENCH_ALIGN), -ENODATA);
    ck_assert_int_eq(bench_do(&bench, FIO_READ, buf, BENCH_ALIGN, 1 << 30), -ENODATA);
    ck_assert_int_eq(ftruncate(bench.file.fd, 5000), 0); /* ends within a block */
    ck_assert_int_eq(bench_do(&bench, FIO_READ, buf, BENCH_ALIGN, 0), 0);
    ck_assert_int_eq(bench_do(&bench, FIO_READ, buf, 2 * BENCH_ALIGN, 0), -ENODATA);
    ck_assert_int_eq(bench_do(&bench, FIO_READ, buf, BENCH_ALIGN, BENCH_ALIGN), -ENODATA);
    free(buf);
    fio_bench_close(&bench);
}
END_TEST

START_TEST(what_is_not_aligned_is_einval_where_the_file_is_direct)
{
    int expected;
    char *buf;

    fio_bench_open(&bench, _i);
    expected = bench.file.direct ? -EINVAL : 0;
    buf = bench_alloc(3 * BENCH_ALIGN);
    ck_assert_int_eq(bench_do(&bench, FIO_WRITE, buf, 3 * BENCH_ALIGN, 0), 0);
    ck_assert_int_eq(bench_do(&bench, FIO_WRITE, buf + 1, BENCH_ALIGN, 0), expected);
    ck_assert_int_eq(bench_do(&bench, FIO_WRITE, buf, 100, 0), expected);
    ck_assert_int_eq(bench_do(&bench, FIO_READ, buf, BENCH_ALIGN, 100), expected);
    if (bench.file.direct) /* the promise holds: what is aligned so far is taken by the kernel */
        ck_assert_int_eq(bench_do(&bench, FIO_READ, buf + bench.file.align_bytes,
                                  bench.file.align_bytes, bench.file.align_bytes),
                         0);
    free(buf);
    fio_bench_close(&bench);
}
END_TEST

START_TEST(more_pieces_than_one_system_call_takes)
{
    enum { PIECES = 2500 };
    struct iovec *iov = calloc(PIECES, sizeof(*iov));
    struct bench_op o;
    struct fio_stats stats;
    size_t piece, len;
    char *buf;

    fio_bench_open(&bench, _i);
    piece = bench.file.direct ? bench.file.align_bytes : 7;
    len = PIECES / 2 * piece;
    buf = bench_alloc(len);
    bench_fill(buf, len, 3);
    for (unsigned i = 0; i < PIECES; i++) /* every other one is empty */
        iov[i] = (struct iovec){buf + i / 2 * piece, i % 2 ? piece : 0};
    bench_op_init(&o, &bench, FIO_WRITE, NULL, 0, 0);
    o.op.iov = iov;
    o.op.n_iov = PIECES;
    fio_submit(bench.fio, &o.op);
    bench_wait(&bench, &o, 1);
    ck_assert_int_eq(o.status, 0);
    memset(buf, 0, len);
    ck_assert_int_eq(bench_do(&bench, FIO_READ, buf, len, 0), 0);
    ck_assert(bench_is_filled(buf, len, 3));
    fio_get_stats(bench.fio, &stats);
    ck_assert_uint_ge(stats.continued, 2);
    free(buf);
    free(iov);
    fio_bench_close(&bench);
}
END_TEST

START_TEST(a_transfer_of_nothing_is_done)
{
    fio_bench_open(&bench, _i);
    ck_assert_int_eq(bench_do(&bench, FIO_READ, NULL, 0, 0), 0);
    ck_assert_int_eq(bench_do(&bench, FIO_WRITE, NULL, 0, 1 << 20), 0);
    fio_bench_close(&bench);
}
END_TEST

START_TEST(an_offset_beyond_what_files_can_have_is_einval)
{
    char *buf = bench_alloc(BENCH_ALIGN);

    fio_bench_open(&bench, _i);
    ck_assert_int_eq(bench_do(&bench, FIO_READ, buf, BENCH_ALIGN, UINT64_MAX - 4095), -EINVAL);
    ck_assert_int_eq(bench_do(&bench, FIO_WRITE, buf, BENCH_ALIGN, INT64_MAX - 4095), -EINVAL);
    free(buf);
    fio_bench_close(&bench);
}
END_TEST

START_TEST(errors_of_the_kernel_reach_done)
{
    char *buf = bench_alloc(BENCH_ALIGN);
    struct fio_file writable;

    fio_bench_open(&bench, _i);
    writable = bench.file;
    ck_assert_int_eq(fio_open(bench.path, O_RDONLY, 0, fio_places[_i].want, &bench.file), 0);
    ck_assert_int_eq(bench_do(&bench, FIO_WRITE, buf, BENCH_ALIGN, 0), -EBADF);
    fio_close(&writable);
    free(buf);
    fio_bench_close(&bench);
}
END_TEST

/* ---- a chain: each done() submits the next ---- */

struct chain {
    struct fio_op op;
    struct iovec iov;
    char *buf;
    unsigned left;
};

static void chain_next(struct chain *c)
{
    c->iov = (struct iovec){c->buf, BENCH_ALIGN};
    c->op.offset = (uint64_t)c->left * BENCH_ALIGN;
    fio_submit(bench.fio, &c->op);
}

static void chain_done(struct fio_op *op, int status)
{
    struct chain *c = container_of(op, struct chain, op);

    ck_assert_int_eq(status, 0);
    if (--c->left)
        chain_next(c);
    else
        reactor_stop(bench.reactor);
}

START_TEST(done_may_submit_the_same_operation_again)
{
    struct chain c = {.left = 200};

    fio_bench_open(&bench, _i);
    c.buf = bench_alloc(BENCH_ALIGN);
    c.op = (struct fio_op){
        .kind = FIO_WRITE, .file = &bench.file, .iov = &c.iov, .n_iov = 1, .done = chain_done};
    chain_next(&c);
    reactor_run(bench.reactor); /* also: a completion wakes a reactor that sleeps in epoll */
    ck_assert_uint_eq(c.left, 0);
    free(c.buf);
    fio_bench_close(&bench);
}
END_TEST

START_TEST(only_files_and_known_engines_are_opened)
{
    struct fio_file file = {.fd = 77};
    char path[128];

    fio_bench_open(&bench, _i);
    ck_assert_int_eq(fio_open(bench.dir, O_RDONLY, 0, "auto", &file), -EINVAL);
    ck_assert_int_eq(fio_open(bench.path, O_RDWR, 0, "fastest", &file), -EINVAL);
    snprintf(path, sizeof(path), "%s/none", bench.dir);
    ck_assert_int_eq(fio_open(path, O_RDWR, 0, "auto", &file), -ENOENT);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(fio_open(path, O_RDONLY, 0, "auto", &file), -EINVAL); /* and does not hang */
    ck_assert_int_eq(file.fd, 77);
    unlink(path);
    fio_bench_close(&bench);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("fio");

    if (access("/dev/shm", W_OK) < 0 || access("/var/tmp", W_OK) < 0) {
        fprintf(stderr, "needs /dev/shm and /var/tmp\n");
        return 77;
    }
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, the_engine_is_chosen_by_the_file_system, 0, FIO_PLACES);
    tcase_add_loop_test(tc, a_thousand_operations_at_once_through_a_ring_of_eight, 0, FIO_PLACES);
    tcase_add_loop_test(tc, requests_of_one_turn_are_one_system_call, 0, FIO_PLACES);
    tcase_add_loop_test(tc, a_read_past_the_end_of_the_file_is_enodata, 0, FIO_PLACES);
    tcase_add_loop_test(tc, what_is_not_aligned_is_einval_where_the_file_is_direct, 0, FIO_PLACES);
    tcase_add_loop_test(tc, more_pieces_than_one_system_call_takes, 0, FIO_PLACES);
    tcase_add_loop_test(tc, a_transfer_of_nothing_is_done, 0, FIO_PLACES);
    tcase_add_loop_test(tc, an_offset_beyond_what_files_can_have_is_einval, 0, FIO_PLACES);
    tcase_add_loop_test(tc, errors_of_the_kernel_reach_done, 0, FIO_PLACES);
    tcase_add_loop_test(tc, done_may_submit_the_same_operation_again, 0, FIO_PLACES);
    tcase_add_loop_test(tc, only_files_and_known_engines_are_opened, 0, FIO_PLACES);
    return suite_run_case("fio", tc);
}
