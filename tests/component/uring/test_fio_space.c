/* SPDX-License-Identifier: Apache-2.0 */
/* Space for ranges of files: taken whole or not at all, and in memory as huge pages. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fault/fault.h"
#include "tests/component/uring/fio_bench.h"

#define HUGE_BYTES (2ul << 20)
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static struct fio_bench bench;

static void teardown(void)
{
    fault_disarm_all();
}

static uint64_t space_taken(void)
{
    struct stat st;

    ck_assert_int_eq(fstat(bench.file.fd, &st), 0);
    return (uint64_t)st.st_blocks * 512;
}

START_TEST(space_is_taken_reads_as_zeros_and_is_given_back)
{
    const uint64_t at = 2 * HUGE_BYTES, len = 3 * HUGE_BYTES;
    char *buf = bench_alloc(BENCH_ALIGN), *zeros = calloc(1, BENCH_ALIGN);
    struct stat st;

    fio_bench_open(&bench, _i);
    bench_fill(buf, BENCH_ALIGN, 1);
    ck_assert_int_eq(bench_do(&bench, FIO_WRITE, buf, BENCH_ALIGN, at - BENCH_ALIGN), 0);
    ck_assert_int_eq(fio_allocate(&bench.file, at, len), 0);
    ck_assert_uint_ge(space_taken(), len);
    ck_assert_int_eq(fstat(bench.file.fd, &st), 0);
    ck_assert_uint_eq((uint64_t)st.st_size, at + len);
    for (uint64_t i = at; i < at + len; i += HUGE_BYTES / 2) {
        ck_assert_int_eq(bench_do(&bench, FIO_READ, buf, BENCH_ALIGN, i), 0);
        ck_assert_mem_eq(buf, zeros, BENCH_ALIGN);
    }
    ck_assert_int_eq(bench_do(&bench, FIO_READ, buf, BENCH_ALIGN, at - BENCH_ALIGN), 0);
    ck_assert(bench_is_filled(buf, BENCH_ALIGN, 1));
    ck_assert_int_eq(fio_give_back(&bench.file, at, len), 0);
    ck_assert_uint_lt(space_taken(), HUGE_BYTES);
    ck_assert_int_eq(fstat(bench.file.fd, &st), 0);
    ck_assert_uint_eq((uint64_t)st.st_size, at + len);
    free(buf);
    free(zeros);
    fio_bench_close(&bench);
}
END_TEST

START_TEST(a_range_that_begins_anywhere_is_taken_too)
{
    fio_bench_open(&bench, _i);
    ck_assert_int_eq(fio_allocate(&bench.file, 5ul * BENCH_ALIGN, HUGE_BYTES), 0);
    ck_assert_uint_ge(space_taken(), HUGE_BYTES);
    ck_assert_int_eq(fio_allocate(&bench.file, 2 * HUGE_BYTES, 65536), 0);
    ck_assert_uint_ge(space_taken(), HUGE_BYTES + 65536);
    fio_bench_close(&bench);
}
END_TEST

START_TEST(a_range_that_is_not_to_be_had_leaves_nothing_taken)
{
    fio_bench_open(&bench, _i);
    ck_assert_int_eq(fault_arm("fio.space=error"), 0);
    ck_assert_int_eq(fio_allocate(&bench.file, 0, 2 * HUGE_BYTES), -ENOSPC);
    fault_disarm_all();
    ck_assert_uint_eq(space_taken(), 0);
    fio_bench_close(&bench);
}
END_TEST

/* How much of the mapping at an address is mapped by huge pages, in KiB; 0 also if unknown. */
static unsigned long huge_mapped_kib(const void *at)
{
    FILE *f = fopen("/proc/self/smaps", "r");
    unsigned long from = 0, to = 0, kib = 0;
    char line[512];
    bool here = false;

    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            here = from <= (uintptr_t)at && (uintptr_t)at < to;
        else if (here && sscanf(line, "ShmemPmdMapped: %lu", &kib) == 1)
            break;
    }
    fclose(f);
    return kib;
}

/* Maps the huge page's worth of the file that begins at offset: has it come as a huge page, and if
 * not, could it? The kernel may be short of them for a moment. */
static void look_at(uint64_t offset, bool *ret_is, bool *ret_could)
{
    uint8_t *area = mmap(NULL, 2 * HUGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    volatile uint8_t *at;

    ck_assert_ptr_ne(area, MAP_FAILED);
    at = area + (HUGE_BYTES - (uintptr_t)area % HUGE_BYTES) % HUGE_BYTES;
    ck_assert_ptr_eq(mmap((void *)(uintptr_t)at, HUGE_BYTES, PROT_READ, MAP_SHARED | MAP_FIXED,
                          bench.file.fd, (off_t)offset),
                     (void *)(uintptr_t)at);
    ck_assert_uint_eq(at[HUGE_BYTES / 2], 0);
    *ret_is = huge_mapped_kib((const void *)(uintptr_t)at) != 0;
    *ret_could = *ret_is || madvise((void *)(uintptr_t)at, HUGE_BYTES, MADV_COLLAPSE) == 0;
    munmap(area, 2 * HUGE_BYTES);
}

START_TEST(in_memory_it_comes_as_huge_pages)
{
    const unsigned tries = 8;
    unsigned n_could = 0;
    bool is = false, could;

    fio_bench_open(&bench, 0);
    ck_assert(bench.file.memory);
    for (unsigned k = 0; k < tries && !is; k++) {
        ck_assert_int_eq(fio_allocate(&bench.file, k * HUGE_BYTES, HUGE_BYTES), 0);
        look_at(k * HUGE_BYTES, &is, &could);
        n_could += could;
    }
    if (!is)
        printf("huge pages are short here\n");
    ck_assert(is || n_could < tries);
    fio_bench_close(&bench);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fio space");
    TCase *tc = tcase_create("fio space");
    SRunner *sr = srunner_create(s);
    int failed;

    if (access("/dev/shm", W_OK) < 0 || access("/var/tmp", W_OK) < 0) {
        fprintf(stderr, "needs /dev/shm and /var/tmp\n");
        return 77;
    }
    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, space_is_taken_reads_as_zeros_and_is_given_back, 0, FIO_PLACES);
    tcase_add_loop_test(tc, a_range_that_begins_anywhere_is_taken_too, 0, FIO_PLACES);
    tcase_add_loop_test(tc, a_range_that_is_not_to_be_had_leaves_nothing_taken, 0, FIO_PLACES);
    tcase_add_test(tc, in_memory_it_comes_as_huge_pages);
    suite_add_tcase(s, tc);
    srunner_run_all(sr, CK_NORMAL);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? 1 : 0;
}
