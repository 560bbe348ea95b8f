// SPDX-License-Identifier: Apache-2.0
/* Memory and files that are registered with a ring: the same bytes come and go whether they are or
 * not. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/fault/fault.h"
#include "common/net/buf.h"
#include "tests/component/uring/fio_bench.h"
#include "tests/support/suite.h"

enum { LEN = 64 * 1024, HOW = 3 };

/* Registered, refused by the kernel's table, and not asked for. */
enum { HOW_REGISTERED, HOW_REFUSED, HOW_PLAIN_MEMORY };

static struct fio_bench bench;

static struct fio_stats stats(void)
{
    struct fio_stats s;

    fio_get_stats(bench.fio, &s);
    return s;
}

static void memory_add(void *at, size_t bytes)
{
    fio_memory_add(bench.fio, (struct iovec){at, bytes});
}

static void teardown(void)
{
    fault_disarm_all();
}

static bool rings_have_tables(void)
{
    static int known = -1;

    if (known < 0) {
        void *buf = bench_alloc(BENCH_ALIGN);

        fio_bench_open(&bench, 2);
        memory_add(buf, BENCH_ALIGN);
        ck_assert_int_eq(bench_do(&bench, FIO_WRITE, buf, BENCH_ALIGN, 0), 0);
        known = stats().fixed == 1;
        fio_bench_close(&bench);
        free(buf);
    }
    return known;
}

START_TEST(bytes_are_the_same_with_and_without)
{
    int place = _i / HOW, how = _i % HOW;
    bool table = rings_have_tables();
    char *buf = bench_alloc(LEN), *other = bench_alloc(LEN);
    uint64_t ring;

    if (how == HOW_REFUSED)
        ck_assert_int_eq(fault_arm("fio.register=error"), 0);
    fio_bench_open(&bench, place);
    ring = fio_has_ring(bench.fio) && bench.file.engine == FIO_URING;
    if (how != HOW_PLAIN_MEMORY)
        memory_add(buf, LEN);
    bench_fill(buf, LEN, 9);
    ck_assert_int_eq(bench_do(&bench, FIO_WRITE, buf, LEN, 0), 0);
    ck_assert_int_eq(bench_do(&bench, FIO_READ, other, LEN, 0), 0);
    ck_assert(bench_is_filled(other, LEN, 9));
    bench_fill(other, LEN, 10);
    ck_assert_int_eq(bench_do(&bench, FIO_WRITE, other, LEN, LEN), 0);
    ck_assert_int_eq(bench_do(&bench, FIO_READ, buf, LEN, LEN), 0);
    ck_assert(bench_is_filled(buf, LEN, 10));
    ck_assert_uint_eq(stats().fixed, ring && table && how == HOW_REGISTERED ? 2 : 0);
    ck_assert_uint_eq(stats().fixed + stats().not_fixed, ring ? 4 : 0);
    fio_bench_close(&bench);
    free(buf);
    free(other);
}
END_TEST

START_TEST(only_what_lies_in_it_whole_is_transferred_so)
{
    char *buf = bench_alloc(4 * (size_t)BENCH_ALIGN);
    bool table = rings_have_tables();
    uint64_t before;

    fio_bench_open(&bench, 2);
    memory_add(buf + BENCH_ALIGN, 2 * BENCH_ALIGN);
    bench_fill(buf, 4 * (size_t)BENCH_ALIGN, 3);
    for (unsigned at = 0; at < 4; at++)
        for (unsigned n = 1; n <= 4 - at; n++) {
            bool inside = at >= 1 && at + n <= 3;

            before = stats().fixed;
            ck_assert_int_eq(bench_do(&bench, FIO_WRITE, buf + (size_t)at * BENCH_ALIGN,
                                      (size_t)n * BENCH_ALIGN, (uint64_t)at * BENCH_ALIGN),
                             0);
            ck_assert_uint_eq(stats().fixed - before, inside && table);
        }
    memset(buf, 0, 4 * (size_t)BENCH_ALIGN);
    ck_assert_int_eq(bench_do(&bench, FIO_READ, buf, 4 * (size_t)BENCH_ALIGN, 0), 0);
    ck_assert(bench_is_filled(buf, 4 * (size_t)BENCH_ALIGN, 3));
    fio_bench_close(&bench);
    free(buf);
}
END_TEST

/* New pages at an old address: the kernel's table must not still name the old ones. */
START_TEST(memory_that_is_mapped_anew_is_not_taken_for_what_was_there)
{
    struct buf_pool *pool;
    bool table = rings_have_tables();

    fio_bench_open(&bench, 2);
    for (unsigned i = 0; i < 20; i++) {
        uint8_t *at;

        ck_assert_int_eq(buf_pool_create("t", LEN, 2, &pool), 0);
        at = buf_pool_memory(pool).iov_base;
        ck_assert_uint_eq(buf_pool_memory(pool).iov_len, 2 * LEN);
        fio_memory_add(bench.fio, buf_pool_memory(pool));
        bench_fill(at, LEN, i);
        ck_assert_int_eq(bench_do(&bench, FIO_WRITE, at, LEN, 0), 0);
        ck_assert_int_eq(bench_do(&bench, FIO_READ, at + LEN, LEN, 0), 0);
        ck_assert(bench_is_filled(at + LEN, LEN, i));
        ck_assert_uint_eq(stats().fixed, table ? 2 * (i + 1) : 0);
        fio_memory_remove(bench.fio, buf_pool_memory(pool));
        ck_assert_int_eq(bench_do(&bench, FIO_READ, at, LEN, 0), 0);
        ck_assert_uint_eq(stats().fixed, table ? 2 * (i + 1) : 0);
        buf_pool_destroy(pool);
    }
    fio_bench_close(&bench);
}
END_TEST

START_TEST(a_full_table_and_memory_that_is_not_known_do_no_harm)
{
    struct bench_op ops[FIO_MEMORIES_MAX + 2];
    char *buf = bench_alloc((FIO_MEMORIES_MAX + 2) * (size_t)BENCH_ALIGN);
    bool table = rings_have_tables();

    fio_bench_open(&bench, 2);
    fio_memory_remove(bench.fio, (struct iovec){buf, BENCH_ALIGN});
    for (unsigned i = 0; i < FIO_MEMORIES_MAX + 2; i++)
        memory_add(buf + (size_t)i * BENCH_ALIGN, BENCH_ALIGN);
    for (unsigned i = 0; i < FIO_MEMORIES_MAX + 2; i++) {
        bench_op_init(&ops[i], &bench, FIO_WRITE, buf + (size_t)i * BENCH_ALIGN, BENCH_ALIGN,
                      (uint64_t)i * BENCH_ALIGN);
        fio_submit(bench.fio, &ops[i].op);
    }
    bench_wait(&bench, ops, FIO_MEMORIES_MAX + 2);
    ck_assert_uint_eq(stats().fixed, table ? FIO_MEMORIES_MAX : 0);
    ck_assert_uint_eq(stats().not_fixed, table ? 2 : FIO_MEMORIES_MAX + 2);
    fio_bench_close(&bench);
    free(buf);
}
END_TEST

/* CAP_IPC_LOCK goes, if it is there. */
static void forgo_locking(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[2];

    ck_assert_int_eq(syscall(SYS_capget, &header, caps), 0);
    caps[0].effective &= ~(1u << CAP_IPC_LOCK);
    ck_assert_int_eq(syscall(SYS_capset, &header, caps), 0);
}

/* Without CAP_IPC_LOCK what is registered counts as locked memory. */
START_TEST(no_more_than_may_be_locked_is_registered)
{
    struct rlimit little = {2 * MIB, 2 * MIB}; /* the ring itself needs some */
    char *buf = bench_alloc(8 * MIB);

    ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &little), 0);
    forgo_locking();
    fio_bench_open(&bench, 2);
    memory_add(buf, 8 * MIB);
    bench_fill(buf, LEN, 5);
    ck_assert_int_eq(bench_do(&bench, FIO_WRITE, buf, LEN, 0), 0);
    memset(buf, 0, LEN);
    memory_add(buf, 8 * MIB);
    ck_assert_int_eq(bench_do(&bench, FIO_READ, buf, LEN, 0), 0);
    ck_assert(bench_is_filled(buf, LEN, 5));
    ck_assert_uint_eq(stats().fixed, 0);
    ck_assert_uint_eq(stats().not_fixed, fio_has_ring(bench.fio) ? 2 : 0);
    fio_bench_close(&bench);
    free(buf);
}
END_TEST

START_TEST(short_transfers_from_registered_memory_go_on_in_it)
{
    char *buf = bench_alloc(LEN);
    size_t len;

    fio_bench_open(&bench, _i);
    len = bench.file.direct ? LEN : 50; /* pieces of the alignment, which is one byte then */
    memory_add(buf, LEN);
    ck_assert_int_eq(fault_arm("fio.short=error,fio.again=error@2"), 0);
    bench_fill(buf, len, 6);
    ck_assert_int_eq(bench_do(&bench, FIO_WRITE, buf, len, 0), 0);
    memset(buf, 0, len);
    ck_assert_int_eq(bench_do(&bench, FIO_READ, buf, len, 0), 0);
    ck_assert(bench_is_filled(buf, len, 6));
    fio_bench_close(&bench);
    free(buf);
}
END_TEST

START_TEST(operations_are_the_same_on_registered_files)
{
    int place = _i / 2;
    bool refused = _i % 2, in;
    char *buf = bench_alloc(LEN);

    if (refused)
        ck_assert_int_eq(fault_arm("fio.register=error"), 0);
    fio_bench_open(&bench, place);
    fio_file_add(bench.fio, &bench.file);
    in = bench.file.place != 0;
    if (refused || bench.file.engine == FIO_PLAIN)
        ck_assert(!in);
    else
        ck_assert(in || !rings_have_tables());
    bench_fill(buf, LEN, 7);
    ck_assert_int_eq(bench_do(&bench, FIO_WRITE, buf, LEN, 0), 0);
    ck_assert_int_eq(bench_do(&bench, FIO_DATASYNC, NULL, 0, 0), 0);
    memset(buf, 0, LEN);
    ck_assert_int_eq(bench_do(&bench, FIO_READ, buf, LEN, 0), 0);
    ck_assert(bench_is_filled(buf, LEN, 7));
    ck_assert_int_eq(bench_do(&bench, FIO_READ, buf, LEN, LEN), -ENODATA);
    ck_assert_uint_eq(stats().fixed_files, in ? 4 : 0);
    fio_file_remove(bench.fio, &bench.file);
    ck_assert_int_eq(bench_do(&bench, FIO_READ, buf, LEN, 0), 0);
    ck_assert_uint_eq(stats().fixed_files, in ? 4 : 0);
    fio_bench_close(&bench);
    free(buf);
}
END_TEST

/* The descriptor's number comes back; the kernel's table must not still name the old file. */
START_TEST(a_file_that_was_closed_is_not_taken_for_the_next)
{
    char *buf = bench_alloc(BENCH_ALIGN), path[sizeof bench.path + 4];

    fio_bench_open(&bench, 2);
    for (int i = 0; i < 10; i++) {
        fio_file_add(bench.fio, &bench.file);
        bench_fill(buf, BENCH_ALIGN, (uint32_t)i);
        ck_assert_int_eq(bench_do(&bench, FIO_WRITE, buf, BENCH_ALIGN, 0), 0);
        fio_file_remove(bench.fio, &bench.file);
        fio_close(&bench.file);
        snprintf(path, sizeof path, "%s.%d", bench.path, i % 2);
        ck_assert_int_eq(fio_open(path, O_RDWR | O_CREAT | O_TRUNC, 0600, "auto", &bench.file), 0);
        fio_file_add(bench.fio, &bench.file);
        ck_assert_int_eq(bench_do(&bench, FIO_READ, buf, BENCH_ALIGN, 0), -ENODATA);
        fio_file_remove(bench.fio, &bench.file);
        fio_close(&bench.file);
        unlink(path);
        ck_assert_int_eq(fio_open(bench.path, O_RDWR, 0, "auto", &bench.file), 0);
        ck_assert_int_eq(bench_do(&bench, FIO_READ, buf, BENCH_ALIGN, 0), 0);
        ck_assert(bench_is_filled(buf, BENCH_ALIGN, (uint32_t)i));
    }
    fio_bench_close(&bench);
    free(buf);
}
END_TEST

START_TEST(files_beyond_the_table_are_used_by_their_descriptors)
{
    enum { PLACES = 32, FILES = PLACES + 3 };
    struct rlimit r = {PLACES, PLACES};
    struct fio_file files[FILES];
    char *buf = bench_alloc(BENCH_ALIGN);
    bool in;

    fio_bench_open(&bench, 2);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &r), 0);
    for (unsigned i = 0; i < FILES; i++) {
        files[i] = bench.file;
        fio_file_add(bench.fio, &files[i]);
    }
    in = files[0].place;
    for (unsigned i = 0; i < FILES; i++) {
        struct bench_op o;

        ck_assert(!files[i].place || i < PLACES);
        bench_op_init(&o, &bench, FIO_WRITE, buf, BENCH_ALIGN, (uint64_t)i * BENCH_ALIGN);
        o.op.file = &files[i];
        fio_submit(bench.fio, &o.op);
        bench_wait(&bench, &o, 1);
        ck_assert_int_eq(o.status, 0);
    }
    ck_assert_uint_eq(stats().fixed_files, in ? PLACES : 0);
    for (unsigned i = 0; i < FILES; i++)
        fio_file_remove(bench.fio, &files[i]);
    fio_bench_close(&bench);
    free(buf);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("fio registered");

    if (access("/dev/shm", W_OK) < 0 || access("/var/tmp", W_OK) < 0) {
        fprintf(stderr, "needs /dev/shm and /var/tmp\n");
        return 77;
    }
    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, bytes_are_the_same_with_and_without, 0, FIO_PLACES * HOW);
    tcase_add_test(tc, only_what_lies_in_it_whole_is_transferred_so);
    tcase_add_test(tc, memory_that_is_mapped_anew_is_not_taken_for_what_was_there);
    tcase_add_test(tc, a_full_table_and_memory_that_is_not_known_do_no_harm);
    tcase_add_test(tc, no_more_than_may_be_locked_is_registered);
    tcase_add_loop_test(tc, short_transfers_from_registered_memory_go_on_in_it, 0, FIO_PLACES);
    tcase_add_loop_test(tc, operations_are_the_same_on_registered_files, 0, FIO_PLACES * 2);
    tcase_add_test(tc, a_file_that_was_closed_is_not_taken_for_the_next);
    tcase_add_test(tc, files_beyond_the_table_are_used_by_their_descriptors);
    return suite_run_case("fio registered", tc);
}
